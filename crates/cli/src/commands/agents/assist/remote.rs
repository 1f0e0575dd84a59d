//! The file operations behind Assist, and the thread that hears of events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use beamtalk_agents::{clean, clean_path};
use beamtalk_ninep::Attachment;
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use super::super::context::{Client, Failure};
use super::super::daemon::ensure_started;
use super::super::mail::messages;
use super::super::sessions::absolute;
use super::model::{Action, Model, Pane, Row};

/// How much of a long file is shown.
const SHOWN: usize = 64 << 10;

pub(super) struct Remote<'a> {
    client: &'a Client,
    tree: Option<Attachment>,
    news: Arc<AtomicBool>,
}

impl<'a> Remote<'a> {
    pub(super) fn new(client: &'a Client) -> Self {
        Remote {
            client,
            tree: None,
            news: Arc::new(AtomicBool::new(false)),
        }
    }

    pub(super) fn has_news(&self) -> bool {
        self.news.swap(false, Ordering::Relaxed)
    }

    fn connect(&mut self) -> Result<&Attachment, Failure> {
        if self.tree.is_none() {
            let tree = self.client.tree()?;
            // A connection of its own, so that its blocked read is nobody's business.
            let events = self.client.tree()?;
            let news = Arc::clone(&self.news);
            std::thread::spawn(move || {
                let Ok(mut stream) = events.open("events", 0) else {
                    return;
                };
                while stream.read_next(None).is_ok_and(|piece| !piece.is_empty()) {
                    news.store(true, Ordering::Relaxed);
                }
            });
            self.tree = Some(tree);
        }
        self.tree.as_ref().ok_or_else(|| Failure::plain("disconnected"))
    }

    /// Read the table and the preview again; a lost daemon leaves the last view.
    pub(super) fn refresh(&mut self, model: &mut Model) {
        match self.try_refresh(model) {
            Ok(()) => model.connected = true,
            Err(_) => {
                self.tree = None;
                model.connected = false;
            }
        }
    }

    fn try_refresh(&mut self, model: &mut Model) -> Result<(), Failure> {
        let tree = self.connect()?;
        let text = tree.read_text("list.json")?;
        let records: Vec<Value> =
            serde_json::from_str(&text).map_err(|error| Failure::plain(error.to_string()))?;
        model.rows = records.iter().map(row).collect();
        model.selected = model.selected.min(model.visible().len().saturating_sub(1));
        for row in &model.rows {
            let gone = row.pid.and_then(Pid::from_raw).is_some_and(|pid| {
                // Only a process that does not exist: one we may not signal lives.
                matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH))
            });
            if gone {
                tree.write(&format!("{}/ctl", row.id), b"refresh").ok();
            }
        }
        model.preview = match model.current() {
            Some(id) => tree.read_text(&format!("{id}/screen")).unwrap_or_default(),
            None => String::new(),
        };
        if let Pane::Text {
            path: Some(path),
            text,
            ..
        } = &mut model.pane
        {
            *text = show(tree, path)?;
        }
        Ok(())
    }

    pub(super) fn perform(&mut self, model: &mut Model, action: Action) {
        model.status = match self.try_perform(model, action) {
            Ok(text) => text,
            Err(failure) => failure.message().to_owned(),
        };
    }

    fn try_perform(&mut self, model: &mut Model, action: Action) -> Result<String, Failure> {
        if action == Action::Daemon {
            ensure_started(self.client, false)?;
            self.tree = None;
            return Ok("the daemon runs; stop it with `beamtalk agents stop`".to_owned());
        }
        let tree = self.connect()?;
        match action {
            Action::Ctl(id, word) => {
                tree.write(&format!("{id}/ctl"), word.as_bytes())?;
                Ok(format!("{word} {id}"))
            }
            Action::Write(id, file, text) => {
                tree.write(&format!("{id}/{file}"), text.as_bytes())?;
                Ok(format!("{file} written"))
            }
            Action::New(words) => {
                let line = new_line(&words)?;
                let answer = tree.rpc("ctl", line.as_bytes())?;
                Ok(format!("started {}", String::from_utf8_lossy(&answer).trim()))
            }
            Action::ShowFile(title, path) => {
                let text = show(tree, &path)?;
                model.pane = Pane::Text {
                    title,
                    path: Some(path),
                    text,
                };
                Ok(String::new())
            }
            Action::Events => {
                let text = show(tree, "events.json")?;
                model.pane = Pane::Text {
                    title: "events".to_owned(),
                    path: Some("events.json".to_owned()),
                    text,
                };
                Ok(String::new())
            }
            Action::OpenBox(folder) => {
                let messages = messages(tree, &format!("user/{folder}"))?;
                model.pane = Pane::Inbox {
                    folder,
                    messages,
                    selected: 0,
                };
                Ok(String::new())
            }
            Action::SendMail(text) => {
                let (head, body) = text.split_once('\n').unwrap_or((&text, ""));
                let mut words = head.splitn(3, ' ');
                let mut next = || words.next().unwrap_or_default().to_owned();
                let message = json!({"to": next(), "type": next(), "subject": next(), "body": body});
                tree.write("user/mail", message.to_string().as_bytes())?;
                Ok("sent".to_owned())
            }
            Action::Answer(message, verdict, reason) => {
                let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
                let kind = text("type").replace("_REQUEST", "_RESPONSE");
                let body = if reason.is_empty() {
                    verdict.to_owned()
                } else {
                    format!("{verdict}: {reason}")
                };
                let subject: String = format!("Re: {}", text("subject")).chars().take(150).collect();
                let answer = json!({"to": text("from"), "type": kind, "subject": subject, "body": body});
                tree.write("user/mail", answer.to_string().as_bytes())?;
                tree.write("user/ctl", format!("complete {}", text("id")).as_bytes())?;
                Ok(verdict.to_owned())
            }
            Action::Complete(id) => {
                tree.write("user/ctl", format!("complete {id}").as_bytes())?;
                Ok("completed".to_owned())
            }
            Action::None | Action::Quit | Action::Attach(_) | Action::Refresh | Action::Daemon => {
                Ok(String::new())
            }
        }
    }
}

fn row(record: &Value) -> Row {
    let text = |key: &str| record.get(key).and_then(Value::as_str).unwrap_or("-").to_owned();
    Row {
        id: text("id"),
        cells: ["id", "backend", "state", "alias", "role", "cwd"].map(text),
        pid: record
            .get("pid")
            .and_then(Value::as_i64)
            .and_then(|pid| i32::try_from(pid).ok()),
    }
}

/// The end of a file as plain text.
fn show(tree: &Attachment, path: &str) -> Result<String, Failure> {
    let bytes = tree.read(path)?;
    let start = bytes.len().saturating_sub(SHOWN);
    Ok(clean(bytes.get(start..).unwrap_or_default()))
}

/// The ctl line for what was typed; the path is checked here first.
fn new_line(words: &str) -> Result<String, Failure> {
    let mut line = String::from("new");
    for (index, word) in words.split_whitespace().enumerate() {
        if index == 1 && !word.contains('=') {
            let path = clean_path(&absolute(word)?);
            let metadata = std::fs::metadata(&path)
                .map_err(|_| Failure::plain(format!("path does not exist: {path}")))?;
            if !metadata.is_dir() {
                return Err(Failure::plain(format!("path is not a directory: {path}")));
            }
            line.push_str(&format!(" '{}'", path.replace('\'', "''")));
        } else {
            line.push_str(&format!(" {word}"));
        }
    }
    Ok(line)
}
