//! What is shown and what keys mean; no terminal, no connection.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

pub(super) const HELP: &str = "\
s start        space, Enter prompt   t attach      v follow output   l log
T stop         c context             A alias       o role            e events
R restart      i inbox               a archive     m write mail      / filter
K kill         j n C-n ↓ next        k p C-p ↑ previous              r refresh
d daemon       ? help                q quit, Esc closes a pane

In the inbox: Enter shows, a approves, x rejects, d completes.
In a text field: C-d sends, Esc cancels; Enter starts a new line in prompts.";

/// One session of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) id: String,
    pub(super) cells: [String; 6],
    pub(super) pid: Option<i32>,
}

/// What a text field is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    Prompt(String),
    Context(String),
    Alias(String),
    Role(String),
    Start,
    Filter,
    Mail,
    Reject(Box<Value>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(super) enum Pane {
    #[default]
    Sessions,
    Text {
        title: String,
        /// Read again as it grows: the file behind it.
        path: Option<String>,
        text: String,
    },
    Field {
        purpose: Purpose,
        label: String,
        text: String,
    },
    Kill(String),
    Inbox {
        folder: &'static str,
        messages: Vec<Value>,
        selected: usize,
    },
}

/// What the caller has to do.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Action {
    None,
    Quit,
    Attach(String),
    Refresh,
    Ctl(String, &'static str),
    /// Write the text to a file of a session.
    Write(String, &'static str, String),
    New(String),
    ShowFile(String, String),
    OpenBox(&'static str),
    SendMail(String),
    Answer(Box<Value>, &'static str, String),
    Complete(String),
    Daemon,
    Events,
}

#[derive(Default)]
pub(super) struct Model {
    pub(super) rows: Vec<Row>,
    pub(super) selected: usize,
    pub(super) preview: String,
    pub(super) status: String,
    pub(super) filter: String,
    pub(super) connected: bool,
    pub(super) pane: Pane,
}

impl Model {
    /// The rows that pass the filter.
    pub(super) fn visible(&self) -> Vec<&Row> {
        let passes =
            |row: &&Row| self.filter.is_empty() || row.cells.iter().any(|cell| cell.contains(&self.filter));
        self.rows.iter().filter(passes).collect()
    }

    pub(super) fn current(&self) -> Option<String> {
        self.visible().get(self.selected).map(|row| row.id.clone())
    }

    pub(super) fn press(&mut self, key: KeyEvent) -> Action {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        match std::mem::take(&mut self.pane) {
            Pane::Sessions => self.press_in_sessions(key.code, control),
            Pane::Text { .. } if matches!(key.code, KeyCode::Esc | KeyCode::Char('q')) => Action::None,
            text @ Pane::Text { .. } => {
                self.pane = text;
                Action::None
            }
            Pane::Field { purpose, label, text } => {
                self.press_in_field(key.code, control, purpose, label, text)
            }
            Pane::Kill(id) => {
                if key.code == KeyCode::Char('y') {
                    Action::Ctl(id, "kill")
                } else {
                    Action::None
                }
            }
            Pane::Inbox {
                folder,
                messages,
                selected,
            } => self.press_in_inbox(key.code, folder, messages, selected),
        }
    }

    fn field(&mut self, purpose: Purpose, label: &str) -> Action {
        self.pane = Pane::Field {
            purpose,
            label: label.to_owned(),
            text: String::new(),
        };
        Action::None
    }

    fn step(&mut self, down: bool) -> Action {
        let last = self.visible().len().saturating_sub(1);
        self.selected = if down {
            (self.selected + 1).min(last)
        } else {
            self.selected.saturating_sub(1)
        };
        Action::Refresh
    }

    fn press_in_sessions(&mut self, code: KeyCode, control: bool) -> Action {
        match code {
            KeyCode::Down => return self.step(true),
            KeyCode::Up => return self.step(false),
            KeyCode::Char('n' | 'j') => return self.step(true),
            KeyCode::Char('p' | 'k') => return self.step(false),
            KeyCode::Char('c') if control => return Action::Quit,
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('s') => return self.field(Purpose::Start, "backend [directory] [level=L]"),
            KeyCode::Char('/') => return self.field(Purpose::Filter, "filter"),
            KeyCode::Char('m') => {
                return self.field(Purpose::Mail, "to TYPE subject — then the body on the next lines");
            }
            KeyCode::Char('i') => return Action::OpenBox("inbox"),
            KeyCode::Char('a') => return Action::OpenBox("completed"),
            KeyCode::Char('e') => return Action::Events,
            KeyCode::Char('r') => return Action::Refresh,
            KeyCode::Char('d') => return Action::Daemon,
            KeyCode::Char('?') => {
                self.pane = Pane::Text {
                    title: "help".to_owned(),
                    path: None,
                    text: HELP.to_owned(),
                };
                return Action::None;
            }
            _ => {}
        }
        let Some(id) = self.current() else {
            return Action::None;
        };
        match code {
            KeyCode::Char(' ') | KeyCode::Enter => self.field(Purpose::Prompt(id), "prompt (C-d sends)"),
            KeyCode::Char('c') => self.field(Purpose::Context(id), "context (C-d saves)"),
            KeyCode::Char('A') => self.field(Purpose::Alias(id), "alias"),
            KeyCode::Char('o') => self.field(Purpose::Role(id), "role"),
            KeyCode::Char('T') => Action::Ctl(id, "stop"),
            KeyCode::Char('R') => Action::Ctl(id, "restart"),
            KeyCode::Char('K') => {
                self.pane = Pane::Kill(id);
                Action::None
            }
            KeyCode::Char('t') => Action::Attach(id),
            KeyCode::Char('v') => Action::ShowFile(format!("output of {id}"), format!("{id}/output")),
            KeyCode::Char('l') => Action::ShowFile(format!("log of {id}"), format!("{id}/log")),
            _ => Action::None,
        }
    }

    fn press_in_field(
        &mut self,
        code: KeyCode,
        control: bool,
        purpose: Purpose,
        label: String,
        mut text: String,
    ) -> Action {
        let many_lines = matches!(purpose, Purpose::Prompt(_) | Purpose::Context(_) | Purpose::Mail);
        match code {
            KeyCode::Esc => return Action::None,
            KeyCode::Char('d') if control => return self.submit(purpose, text),
            KeyCode::Enter if !many_lines => return self.submit(purpose, text),
            KeyCode::Enter => text.push('\n'),
            KeyCode::Backspace => {
                text.pop();
            }
            KeyCode::Char(letter) if !control => text.push(letter),
            _ => {}
        }
        self.pane = Pane::Field { purpose, label, text };
        Action::None
    }

    fn submit(&mut self, purpose: Purpose, text: String) -> Action {
        match purpose {
            Purpose::Prompt(id) => Action::Write(id, "in", text),
            Purpose::Context(id) => Action::Write(id, "context", text),
            Purpose::Alias(id) => Action::Write(id, "alias", text),
            Purpose::Role(id) => Action::Write(id, "role", text),
            Purpose::Start => Action::New(text),
            Purpose::Mail => Action::SendMail(text),
            Purpose::Reject(message) => Action::Answer(message, "rejected", text),
            Purpose::Filter => {
                self.filter = text;
                self.selected = 0;
                Action::None
            }
        }
    }

    fn press_in_inbox(
        &mut self,
        code: KeyCode,
        folder: &'static str,
        messages: Vec<Value>,
        selected: usize,
    ) -> Action {
        let current = messages.get(selected).cloned();
        let text = |message: &Value, key: &str| {
            message
                .get(key)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let last = messages.len().saturating_sub(1);
        let selected = match code {
            KeyCode::Esc | KeyCode::Char('q') => return Action::None,
            KeyCode::Down | KeyCode::Char('j' | 'n') => (selected + 1).min(last),
            KeyCode::Up | KeyCode::Char('k' | 'p') => selected.saturating_sub(1),
            _ => selected,
        };
        if let Some(message) = current {
            let asks = matches!(
                text(&message, "type").as_str(),
                "APPROVAL_REQUEST" | "REVIEW_REQUEST"
            );
            match code {
                KeyCode::Enter => {
                    let title = format!("{} from {}", text(&message, "subject"), text(&message, "from"));
                    self.pane = Pane::Text {
                        title,
                        path: None,
                        text: text(&message, "body"),
                    };
                    return Action::None;
                }
                KeyCode::Char('a') if asks => {
                    return Action::Answer(Box::new(message), "approved", String::new());
                }
                KeyCode::Char('x') if asks => {
                    return self.field(Purpose::Reject(Box::new(message)), "reason");
                }
                KeyCode::Char('d') => return Action::Complete(text(&message, "id")),
                _ => {}
            }
        }
        self.pane = Pane::Inbox {
            folder,
            messages,
            selected,
        };
        Action::None
    }
}

#[cfg(test)]
mod tests {
    use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
    use serde_json::json;

    use super::{Action, Model, Pane, Row};

    fn model() -> Model {
        let row = |id: &str| Row {
            id: id.to_owned(),
            cells: [id, "echo", "idle", "-", "-", "/tmp"].map(str::to_owned),
            pid: None,
        };
        Model {
            rows: vec![row("aaaaaaaa"), row("bbbbbbbb")],
            connected: true,
            ..Model::default()
        }
    }

    fn press(model: &mut Model, keys: &str) -> Action {
        let mut action = Action::None;
        for letter in keys.chars() {
            action = match letter {
                '\u{4}' => model.press(KeyEvent::new(KeyCode::Char('d'), KeyModifiers::CONTROL)),
                '\n' => model.press(KeyEvent::new(KeyCode::Enter, KeyModifiers::NONE)),
                '\u{1b}' => model.press(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)),
                other => model.press(KeyEvent::new(KeyCode::Char(other), KeyModifiers::NONE)),
            };
        }
        action
    }

    #[test]
    fn a_prompt_has_several_lines_and_is_sent_by_control_d() {
        let mut model = model();
        let action = press(&mut model, "j one\ntwo\u{4}");
        assert_eq!(
            action,
            Action::Write("bbbbbbbb".to_owned(), "in", "one\ntwo".to_owned())
        );
        assert_eq!(press(&mut model, " never\u{1b}"), Action::None);
        assert_eq!(model.pane, Pane::Sessions);
    }

    #[test]
    fn killing_asks_first() {
        let mut model = model();
        assert_eq!(press(&mut model, "Kn"), Action::None);
        assert_eq!(
            press(&mut model, "Ky"),
            Action::Ctl("aaaaaaaa".to_owned(), "kill")
        );
    }

    #[test]
    fn the_filter_narrows_the_table() {
        let mut model = model();
        press(&mut model, "/bbb\n");
        assert_eq!(model.current().as_deref(), Some("bbbbbbbb"));
        assert_eq!(press(&mut model, "q"), Action::Quit);
    }

    #[test]
    fn only_requests_can_be_approved() {
        let mut model = model();
        let messages = vec![
            json!({"id": "m1", "type": "QUERY_REQUEST"}),
            json!({"id": "m2", "type": "REVIEW_REQUEST"}),
        ];
        model.pane = Pane::Inbox {
            folder: "inbox",
            messages: messages.clone(),
            selected: 0,
        };
        assert_eq!(press(&mut model, "a"), Action::None);
        assert_eq!(
            press(&mut model, "ja"),
            Action::Answer(Box::new(messages[1].clone()), "approved", String::new())
        );
        model.pane = Pane::Inbox {
            folder: "inbox",
            messages: messages.clone(),
            selected: 1,
        };
        let action = press(&mut model, "xtoo big\n");
        assert_eq!(
            action,
            Action::Answer(Box::new(messages[1].clone()), "rejected", "too big".to_owned())
        );
    }
}
