//! What is shown and what keys mean; no terminal, no connection.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use serde_json::Value;

use super::editor::Editor;
use crate::MESSAGE_TYPES;

pub(super) const HELP: &str = "\
s start        space, Enter prompt   t attach   v follow output
T stop         c context             A alias    l log
R restart      o role                / filter   e events
K kill         i inbox               a archive  m write mail
Q queue        W worktree            D diff     U usage
r refresh      d daemon              ? help     q quit
w what waits for you

j n C-n ↓ next     k p C-p ↑ previous     Esc closes a pane

Texts scroll with the same keys, and with page keys, g and G.
In the inbox: Enter shows, a approves, x rejects, d completes.
In what waits: Enter shows, a approves or answers, x rejects.
In a text field: C-d sends, Esc cancels. Enter sends too, except where
several lines are wanted: prompts, contexts and mail.
With the daemon: s starts it, T stops it.";

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
    Directory {
        backend: String,
        level: String,
    },
    Filter,
    MailTo,
    MailSubject {
        to: String,
        kind: String,
    },
    MailBody {
        to: String,
        kind: String,
        subject: String,
    },
    Reject(Box<Value>),
    /// The answer to a question.
    Reply(Box<Value>),
}

/// What is chosen from a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Chosen {
    Backend,
    Level { backend: String },
    Role(String),
    MailType { to: String },
}

/// What a text pane is read from, again and again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Source {
    File(String),
    Events,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Pane {
    Text {
        title: String,
        /// Shown from its end, which grows; otherwise from its beginning.
        source: Option<Source>,
        text: String,
        /// Rows away from where it starts.
        scrolled: usize,
    },
    Field {
        purpose: Purpose,
        label: String,
        editor: Editor,
    },
    Choice {
        title: String,
        chosen: Chosen,
        /// What is chosen, and how it is shown.
        items: Vec<(String, String)>,
        selected: usize,
    },
    Kill(String),
    Inbox {
        folder: &'static str,
        messages: Vec<Value>,
        selected: usize,
    },
    Daemon(String),
}

/// What to do with the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Daemon {
    Look,
    Start,
    Stop,
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
    /// Open a field with what a file of a session holds.
    Edit(String, &'static str),
    ChooseBackend,
    ChooseRole(String),
    New {
        backend: String,
        level: String,
        directory: String,
    },
    Show(String, Source),
    OpenBox(&'static str),
    Send {
        to: String,
        kind: String,
        subject: String,
        body: String,
    },
    Answer(Box<Value>, &'static str, String),
    Complete(String),
    Daemon(Daemon),
}

#[derive(Default)]
pub(super) struct Model {
    pub(super) rows: Vec<Row>,
    pub(super) selected: usize,
    /// A session to select as soon as it is among the rows.
    pub(super) wanted: Option<String>,
    pub(super) preview: String,
    pub(super) status: String,
    pub(super) filter: String,
    pub(super) connected: bool,
    /// The panes over the table, the last on top.
    pub(super) panes: Vec<Pane>,
    /// The field whose text is on its way; it comes back if that fails.
    pub(super) submitted: Option<Pane>,
}

pub(super) fn text_of(message: &Value, key: &str) -> String {
    let value = message.get(key).and_then(Value::as_str);
    value.unwrap_or_default().to_owned()
}

/// Where a key that moves leads in a list.
fn moved(code: KeyCode, selected: usize, length: usize) -> usize {
    match code {
        KeyCode::Down | KeyCode::Char('j' | 'n') => (selected + 1).min(length.saturating_sub(1)),
        KeyCode::Up | KeyCode::Char('k' | 'p') => selected.saturating_sub(1),
        _ => selected,
    }
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

    /// Show other rows; the selected session stays selected wherever it moves.
    pub(super) fn show_rows(&mut self, rows: Vec<Row>) {
        let current = self.wanted.take().or_else(|| self.current());
        self.rows = rows;
        let visible = self.visible();
        let same = visible.iter().position(|row| Some(&row.id) == current.as_ref());
        self.selected = same.unwrap_or(self.selected.min(visible.len().saturating_sub(1)));
    }

    pub(super) fn press(&mut self, mut key: KeyEvent) -> Action {
        // Escape and the key after it, read from the terminal in one piece, look like a key with Alt.
        if key.modifiers.contains(KeyModifiers::ALT) {
            key.modifiers.remove(KeyModifiers::ALT);
            self.press(KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE));
        }
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let Some(pane) = self.panes.pop() else {
            return self.press_in_sessions(key.code, control);
        };
        if key.code == KeyCode::Esc || control && key.code == KeyCode::Char('c') {
            return Action::None;
        }
        match pane {
            Pane::Text { .. } => self.press_in_text(key.code, pane),
            Pane::Field {
                purpose,
                label,
                editor,
            } => self.press_in_field(key, purpose, label, editor),
            Pane::Choice {
                title,
                chosen,
                items,
                selected,
            } => self.press_in_choice(key.code, title, chosen, items, selected),
            Pane::Kill(id) => match key.code {
                KeyCode::Char('y') => Action::Ctl(id, "kill"),
                _ => Action::None,
            },
            Pane::Inbox {
                folder,
                messages,
                selected,
            } => self.press_in_inbox(key.code, folder, messages, selected),
            Pane::Daemon(_) => match key.code {
                KeyCode::Char('s') => Action::Daemon(Daemon::Start),
                KeyCode::Char('T') => Action::Daemon(Daemon::Stop),
                KeyCode::Char('q') => Action::None,
                _ => Action::Daemon(Daemon::Look),
            },
        }
    }

    /// Text from the clipboard goes into the field as it is.
    pub(super) fn paste(&mut self, text: &str) {
        if let Some(Pane::Field { purpose, editor, .. }) = self.panes.last_mut() {
            let text = text.replace("\r\n", "\n").replace('\r', "\n");
            let text = if purpose.has_lines() {
                text
            } else {
                text.replace('\n', " ")
            };
            editor.insert(&text);
        }
    }

    pub(super) fn open_field(&mut self, purpose: Purpose, label: &str, text: &str) -> Action {
        self.panes.push(Pane::Field {
            purpose,
            label: label.to_owned(),
            editor: Editor::new(text),
        });
        Action::None
    }

    pub(super) fn open_choice(&mut self, title: &str, chosen: Chosen, items: Vec<(String, String)>) {
        self.panes.push(Pane::Choice {
            title: title.to_owned(),
            chosen,
            items,
            selected: 0,
        });
    }

    fn open_text(&mut self, title: &str, text: String) -> Action {
        self.panes.push(Pane::Text {
            title: title.to_owned(),
            source: None,
            text,
            scrolled: 0,
        });
        Action::None
    }

    fn press_in_sessions(&mut self, code: KeyCode, control: bool) -> Action {
        if control {
            return match code {
                KeyCode::Char('c') => Action::Quit,
                KeyCode::Char('n') => self.step(KeyCode::Down),
                KeyCode::Char('p') => self.step(KeyCode::Up),
                _ => Action::None,
            };
        }
        match code {
            KeyCode::Down | KeyCode::Up | KeyCode::Char('n' | 'j' | 'p' | 'k') => return self.step(code),
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('s') => return Action::ChooseBackend,
            KeyCode::Char('/') => {
                let filter = self.filter.clone();
                return self.open_field(Purpose::Filter, "filter", &filter);
            }
            KeyCode::Char('m') => {
                let to = self.current().unwrap_or_default();
                return self.open_field(Purpose::MailTo, "mail to (id, alias or user)", &to);
            }
            KeyCode::Char('i') => return Action::OpenBox("inbox"),
            KeyCode::Char('a') => return Action::OpenBox("completed"),
            KeyCode::Char('w') => return Action::OpenBox("approvals"),
            KeyCode::Char('e') => return Action::Show("events".to_owned(), Source::Events),
            KeyCode::Char('r') => return Action::Refresh,
            KeyCode::Char('d') => return Action::Daemon(Daemon::Look),
            KeyCode::Char('?') => return self.open_text("help", HELP.to_owned()),
            _ => {}
        }
        let Some(id) = self.current() else {
            return Action::None;
        };
        let file = |name: &str| Source::File(format!("{id}/{name}"));
        match code {
            KeyCode::Char(' ') | KeyCode::Enter => {
                let label = format!("prompt for {id} (C-d sends)");
                self.open_field(Purpose::Prompt(id), &label, "")
            }
            KeyCode::Char('c') => Action::Edit(id, "context"),
            KeyCode::Char('A') => Action::Edit(id, "alias"),
            KeyCode::Char('o') => Action::ChooseRole(id),
            KeyCode::Char('T') => Action::Ctl(id, "stop"),
            KeyCode::Char('R') => Action::Ctl(id, "restart"),
            KeyCode::Char('K') => {
                self.panes.push(Pane::Kill(id));
                Action::None
            }
            KeyCode::Char('t') => Action::Attach(id),
            KeyCode::Char('v') => Action::Show(format!("output of {id}"), file("output")),
            KeyCode::Char('l') => Action::Show(format!("log of {id}"), file("log")),
            KeyCode::Char('Q') => Action::Show(format!("queue of {id}"), file("queue")),
            KeyCode::Char('W') => Action::Show(format!("worktree of {id}"), file("worktree")),
            KeyCode::Char('D') => Action::Show(format!("diff of {id}"), file("diff")),
            KeyCode::Char('U') => Action::Show(format!("usage of {id}"), file("usage")),
            _ => Action::None,
        }
    }

    fn step(&mut self, code: KeyCode) -> Action {
        self.selected = moved(code, self.selected, self.visible().len());
        Action::Refresh
    }

    fn press_in_text(&mut self, code: KeyCode, mut pane: Pane) -> Action {
        if let Pane::Text { source, scrolled, .. } = &mut pane {
            let from_end = source.is_some();
            // The view brings a number that is too large back into the text.
            let (back, far) = match code {
                KeyCode::Char('q') => return Action::None,
                KeyCode::Up | KeyCode::Char('k' | 'p') => (true, 1),
                KeyCode::Down | KeyCode::Char('j' | 'n') => (false, 1),
                KeyCode::PageUp => (true, 10),
                KeyCode::PageDown | KeyCode::Char(' ') => (false, 10),
                KeyCode::Home | KeyCode::Char('g') => (true, usize::MAX),
                KeyCode::End | KeyCode::Char('G') => (false, usize::MAX),
                _ => (false, 0),
            };
            *scrolled = if back == from_end {
                scrolled.saturating_add(far)
            } else {
                scrolled.saturating_sub(far)
            };
        }
        self.panes.push(pane);
        Action::None
    }

    fn press_in_field(
        &mut self,
        key: KeyEvent,
        purpose: Purpose,
        label: String,
        mut editor: Editor,
    ) -> Action {
        let control = key.modifiers.contains(KeyModifiers::CONTROL);
        let sends = match key.code {
            KeyCode::Char('d') => control,
            KeyCode::Enter => !purpose.has_lines(),
            _ => false,
        };
        if sends {
            let text = editor.text.clone();
            self.submitted = Some(Pane::Field {
                purpose: purpose.clone(),
                label,
                editor,
            });
            return self.submit(purpose, text);
        }
        if key.code == KeyCode::Enter {
            editor.insert("\n");
        } else {
            editor.press(key);
        }
        self.panes.push(Pane::Field {
            purpose,
            label,
            editor,
        });
        Action::None
    }

    fn submit(&mut self, purpose: Purpose, text: String) -> Action {
        match purpose {
            Purpose::Prompt(id) => Action::Write(id, "in", text),
            Purpose::Context(id) => Action::Write(id, "context", text),
            Purpose::Alias(id) => Action::Write(id, "alias", text),
            Purpose::Directory { backend, level } => Action::New {
                backend,
                level,
                directory: text,
            },
            Purpose::Reject(message) => Action::Answer(message, "rejected", text),
            Purpose::Reply(message) => Action::Answer(message, "answered", text),
            Purpose::MailBody { to, kind, subject } => Action::Send {
                to,
                kind,
                subject,
                body: text,
            },
            Purpose::MailSubject { to, kind } => {
                let purpose = Purpose::MailBody {
                    to,
                    kind,
                    subject: text,
                };
                self.open_field(purpose, "body (C-d sends)", "")
            }
            Purpose::MailTo => {
                // One writes requests more often than responses.
                let mut types = MESSAGE_TYPES.map(|kind| (kind.to_owned(), kind.to_owned()));
                types.sort_by_key(|(kind, _)| !kind.ends_with("_REQUEST"));
                self.open_choice("type", Chosen::MailType { to: text }, types.to_vec());
                Action::None
            }
            Purpose::Filter => {
                self.filter = text;
                self.selected = 0;
                Action::Refresh
            }
        }
    }

    fn press_in_choice(
        &mut self,
        code: KeyCode,
        title: String,
        chosen: Chosen,
        items: Vec<(String, String)>,
        selected: usize,
    ) -> Action {
        if code != KeyCode::Enter {
            if code != KeyCode::Char('q') {
                let selected = moved(code, selected, items.len());
                self.panes.push(Pane::Choice {
                    title,
                    chosen,
                    items,
                    selected,
                });
            }
            return Action::None;
        }
        let Some((item, _)) = items.get(selected).cloned() else {
            return Action::None;
        };
        match chosen {
            Chosen::Backend => {
                let levels = [
                    ("", "the backend's own choice"),
                    ("low", "low: mechanical, bounded edits"),
                    ("standard", "standard: ordinary work on several files"),
                    ("high", "high: design, concurrency, novel algorithms"),
                ];
                let levels = levels.map(|(word, shown)| (word.to_owned(), shown.to_owned()));
                self.open_choice("level", Chosen::Level { backend: item }, levels.to_vec());
                Action::None
            }
            Chosen::Level { backend } => {
                let here = std::env::current_dir().unwrap_or_default();
                let purpose = Purpose::Directory { backend, level: item };
                self.open_field(purpose, "directory", &here.display().to_string())
            }
            Chosen::Role(id) => Action::Write(id, "role", item),
            Chosen::MailType { to } => {
                let purpose = Purpose::MailSubject { to, kind: item };
                self.open_field(purpose, "subject", "")
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
        if code == KeyCode::Char('q') {
            return Action::None;
        }
        let current = messages.get(selected).cloned();
        // It stays below whatever a key opens.
        self.panes.push(Pane::Inbox {
            folder,
            selected: moved(code, selected, messages.len()),
            messages,
        });
        let Some(message) = current else {
            return Action::None;
        };
        if code == KeyCode::Enter {
            let title = format!(
                "{} from {}",
                text_of(&message, "subject"),
                text_of(&message, "from")
            );
            let body = text_of(&message, "body");
            return self.open_text(&title, body);
        }
        let kind = text_of(&message, "type");
        let asks = folder == "approvals" || matches!(kind.as_str(), "APPROVAL_REQUEST" | "REVIEW_REQUEST");
        match code {
            // What is archived has been handled.
            _ if folder == "completed" => Action::None,
            KeyCode::Char('a') if kind == "question" => {
                self.open_field(Purpose::Reply(Box::new(message)), "answer", "")
            }
            KeyCode::Char('a') if asks => Action::Answer(Box::new(message), "approved", String::new()),
            KeyCode::Char('x') if asks => self.open_field(Purpose::Reject(Box::new(message)), "reason", ""),
            KeyCode::Char('a' | 'x') => {
                "only an approval or review request can be answered so".clone_into(&mut self.status);
                Action::None
            }
            KeyCode::Char('d') if folder == "inbox" => Action::Complete(text_of(&message, "id")),
            _ => Action::None,
        }
    }
}

impl Purpose {
    fn has_lines(&self) -> bool {
        matches!(
            self,
            Purpose::Prompt(_) | Purpose::Context(_) | Purpose::MailBody { .. }
        )
    }
}

#[cfg(test)]
mod tests;
