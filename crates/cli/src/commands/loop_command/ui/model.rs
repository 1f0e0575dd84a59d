//! What the view shows and what keys do.

use std::collections::{BTreeMap, VecDeque};

use beamtalk_loop::control::Answer;
use beamtalk_loop::core::{Operation, Status};
use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::{Map, Value};

/// How many lines of output are kept.
const LINES: usize = 1000;

/// What a key asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Action {
    None,
    Quit,
    Operate(String, Operation),
}

/// What fills the lower part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Pane {
    /// Workflows, state and events side by side.
    #[default]
    Overview,
    /// The output of the chosen process over the whole width.
    Output,
}

#[derive(Default)]
pub(super) struct Model {
    pub(super) status: Option<Status>,
    pub(super) state: Map<String, Value>,
    output: BTreeMap<String, VecDeque<String>>,
    pub(super) pane: Pane,
    pub(super) message: String,
    selected: usize,
}

impl Model {
    /// Take in an answer of the loop.
    pub(super) fn learn(&mut self, answer: Answer) {
        match answer {
            Answer::Status(status) => {
                self.selected = self.selected.min(status.processes.len().saturating_sub(1));
                self.status = Some(*status);
            }
            Answer::State(values) => self.state = values,
            Answer::Done => "done".clone_into(&mut self.message),
            Answer::Error(text) => self.message = text,
            _ => {}
        }
    }

    /// Take in what a process said.
    pub(super) fn said(&mut self, process: &str, answer: Answer) {
        let line = match answer {
            Answer::Log(said) => said.line,
            Answer::Skipped(count) => format!("({count} lines were left out)"),
            _ => return,
        };
        let output = self.output.entry(process.to_owned()).or_default();
        if output.len() == LINES {
            output.pop_front();
        }
        // What a program writes must not steer this terminal.
        output.push_back(line.chars().filter(|letter| !letter.is_control()).collect());
    }

    /// What the chosen process said.
    pub(super) fn output(&self) -> impl DoubleEndedIterator<Item = &String> + ExactSizeIterator {
        const NOTHING: &VecDeque<String> = &VecDeque::new();
        let output = self.chosen().and_then(|name| self.output.get(name));
        output.unwrap_or(NOTHING).iter()
    }

    pub(super) fn selected(&self) -> usize {
        self.selected
    }

    /// The name of the chosen process.
    pub(super) fn chosen(&self) -> Option<&str> {
        let processes = &self.status.as_ref()?.processes;
        processes.get(self.selected).map(|process| process.name.as_str())
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Action {
        let count = self.status.as_ref().map_or(0, |status| status.processes.len());
        match key.code {
            KeyCode::Char('c') if key.modifiers.contains(KeyModifiers::CONTROL) => return Action::Quit,
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Esc if self.pane == Pane::Overview => return Action::Quit,
            KeyCode::Esc => self.pane = Pane::Overview,
            KeyCode::Down | KeyCode::Char('j') if self.selected + 1 < count => self.selected += 1,
            KeyCode::Up | KeyCode::Char('k') => self.selected = self.selected.saturating_sub(1),
            KeyCode::Char('l') | KeyCode::Enter => {
                self.pane = match self.pane {
                    Pane::Overview => Pane::Output,
                    Pane::Output => Pane::Overview,
                };
            }
            KeyCode::Char('s') => return self.operate(Operation::Start),
            KeyCode::Char('r') => return self.operate(Operation::Restart),
            KeyCode::Char('x') => return self.operate(Operation::Stop),
            _ => {}
        }
        Action::None
    }

    fn operate(&mut self, operation: Operation) -> Action {
        let Some(name) = self.chosen().map(str::to_owned) else {
            "there is no process".clone_into(&mut self.message);
            return Action::None;
        };
        let word = match operation {
            Operation::Start => "starting",
            Operation::Stop => "stopping",
            Operation::Restart => "restarting",
        };
        self.message = format!("{word} {name}");
        Action::Operate(name, operation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(names: &[&str]) -> Answer {
        let processes: Vec<Value> = names
            .iter()
            .map(|name| {
                serde_json::json!({
                    "name": name, "state": "running", "pid": 7, "since": null, "restarts": 0,
                    "last_exit": null, "next_start_ms": null,
                })
            })
            .collect();
        let status = serde_json::json!({
            "schema": 1, "pid": 1, "config": "/c", "root": "/r", "state_file": "/s", "since": "", "phase": "running",
            "watch": { "backend": "native", "directories": 1, "files": 2, "groups": [] },
            "processes": processes, "lane": { "running": null, "queue": [] }, "workflows": [], "events": [],
            "servers": { "events": null, "browser": null },
        });
        Answer::Status(Box::new(serde_json::from_value(status).unwrap()))
    }

    fn press(model: &mut Model, code: KeyCode) -> Action {
        model.press(KeyEvent::new(code, KeyModifiers::NONE))
    }

    #[test]
    fn keys_work_on_the_chosen_process() {
        let mut model = Model::default();
        assert_eq!(press(&mut model, KeyCode::Char('s')), Action::None);
        model.learn(status(&["db", "web"]));
        assert_eq!(model.chosen(), Some("db"));
        press(&mut model, KeyCode::Down);
        press(&mut model, KeyCode::Down);
        assert_eq!(
            press(&mut model, KeyCode::Char('r')),
            Action::Operate("web".into(), Operation::Restart)
        );
        assert_eq!(
            press(&mut model, KeyCode::Char('x')),
            Action::Operate("web".into(), Operation::Stop)
        );
        // The list may shrink when the config is edited.
        model.learn(status(&["db"]));
        assert_eq!(model.chosen(), Some("db"));
        assert_eq!(press(&mut model, KeyCode::Enter), Action::None);
        assert_eq!(model.pane, Pane::Output);
        assert_eq!(press(&mut model, KeyCode::Esc), Action::None);
        assert_eq!(press(&mut model, KeyCode::Char('q')), Action::Quit);
    }

    #[test]
    fn output_is_kept_apart_and_without_escapes() {
        let mut model = Model::default();
        model.learn(status(&["db"]));
        let said = |line: &str| {
            let said = serde_json::json!({ "log": { "at": "", "stream": "stdout", "line": line } });
            serde_json::from_value::<Answer>(said).unwrap()
        };
        model.said("web", said("not this"));
        model.said("db", said("\u{1b}[2Jthis"));
        assert_eq!(model.output().collect::<Vec<_>>(), ["[2Jthis"]);
        for number in 0..2000 {
            model.said("db", said(&number.to_string()));
        }
        assert_eq!(model.output().len(), LINES);
    }
}
