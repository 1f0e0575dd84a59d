//! The file operations behind Assist, and the thread that hears of events.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use beamtalk_ninep::Attachment;
use beamtalk_storage::time::Civil;
use rustix::process::{Pid, test_kill_process};
use serde_json::{Value, json};

use super::Keeper;
use super::model::{Action, Chosen, Daemon, Model, Pane, Purpose, Row, Source, text_of};
use crate::client::{Order, absolute, messages, status_value};
use crate::{Client, Failure, check_directory, clean};

/// How much of a long file is shown.
const SHOWN: u64 = 64 << 10;

pub(super) struct Remote<'a> {
    client: &'a Client,
    keeper: &'a dyn Keeper,
    tree: Option<Attachment>,
    news: Arc<AtomicBool>,
}

impl<'a> Remote<'a> {
    pub(super) fn new(client: &'a Client, keeper: &'a dyn Keeper) -> Self {
        Remote {
            client,
            keeper,
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
        model.show_rows(records.iter().map(row).collect());
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
        if let Some(Pane::Text {
            source: Some(source),
            text,
            ..
        }) = model.panes.last_mut()
        {
            // The end of a session leaves what was read of it.
            if let Ok(now) = show(tree, source) {
                *text = now;
            }
        }
        // What waits comes and goes while it is looked at; the one that is chosen stays chosen.
        if let Some(Pane::Inbox {
            folder: folder @ "approvals",
            messages,
            selected,
        }) = model.panes.last_mut()
            && let Ok(now) = in_folder(tree, folder)
        {
            let chosen = messages.get(*selected).map(|message| text_of(message, "id"));
            let at = now
                .iter()
                .position(|message| Some(text_of(message, "id")) == chosen);
            *selected = at.unwrap_or_else(|| (*selected).min(now.len().saturating_sub(1)));
            *messages = now;
        }
        Ok(())
    }

    /// Do what a key asked for; a text that could not be sent goes back into its field.
    pub(super) fn perform(&mut self, model: &mut Model, action: Action) {
        let submitted = model.submitted.take();
        model.status = match self.try_perform(model, action) {
            Ok(text) => text,
            Err(failure) => {
                model.panes.extend(submitted);
                failure.message().to_owned()
            }
        };
    }

    fn try_perform(&mut self, model: &mut Model, action: Action) -> Result<String, Failure> {
        match action {
            Action::None | Action::Quit | Action::Attach(_) | Action::Refresh => Ok(String::new()),
            Action::Daemon(wanted) => self.look_after_daemon(model, wanted),
            Action::New {
                backend,
                level,
                directory,
            } => {
                // A bad path is refused here, before anybody is asked.
                let directory = absolute(&directory)?;
                let directory =
                    check_directory(&directory).map_err(|refused| Failure::plain(refused.text.as_ref()))?;
                let order = Order {
                    backend,
                    directory: Some(directory),
                    level: (!level.is_empty()).then_some(level),
                    ..Order::default()
                };
                let id = order.place(self.connect()?)?;
                let said = format!("started {id}");
                model.wanted = Some(id);
                Ok(said)
            }
            Action::Ctl(id, word) => {
                self.connect()?.write(&format!("{id}/ctl"), word.as_bytes())?;
                Ok(format!("{word} {id}"))
            }
            Action::Write(id, file, text) => {
                self.connect()?.write(&format!("{id}/{file}"), text.as_bytes())?;
                let what = if file == "in" { "prompt" } else { file };
                Ok(format!("{what} written to {id}"))
            }
            Action::Edit(id, file) => {
                let record = self.connect()?.read_text(&format!("{id}/info"))?;
                let record: Value =
                    serde_json::from_str(&record).map_err(|error| Failure::plain(error.to_string()))?;
                if file == "alias" {
                    let label = format!("alias of {id}");
                    model.open_field(Purpose::Alias(id), &label, &text_of(&record, "alias"));
                } else {
                    let text = self.connect()?.read_text(&format!("{id}/{file}"))?;
                    let label = format!("context of {id} (C-d saves)");
                    model.open_field(Purpose::Context(id), &label, &text);
                }
                Ok(String::new())
            }
            Action::ChooseBackend => {
                let lines = self.connect()?.read_text("backends")?;
                let items = lines.lines().map(|line| {
                    let name = line.split('\t').next().unwrap_or_default();
                    (name.to_owned(), line.replace('\t', "  "))
                });
                model.open_choice("backend", Chosen::Backend, items.collect());
                Ok(String::new())
            }
            Action::ChooseRole(id) => {
                let names = self.connect()?.list("roles")?;
                let items = names.iter().map(|stat| {
                    let name = stat.name.trim_end_matches(".md").to_owned();
                    (name.clone(), name)
                });
                let title = format!("role of {id}");
                model.open_choice(&title, Chosen::Role(id), items.collect());
                Ok(String::new())
            }
            Action::Show(title, source) => {
                let text = show(self.connect()?, &source)?;
                model.panes.push(Pane::Text {
                    title,
                    source: Some(source),
                    text,
                    scrolled: 0,
                });
                Ok(String::new())
            }
            Action::OpenBox(folder) => {
                let messages = in_folder(self.connect()?, folder)?;
                model.panes.push(Pane::Inbox {
                    folder,
                    messages,
                    selected: 0,
                });
                Ok(String::new())
            }
            Action::Send {
                to,
                kind,
                subject,
                body,
            } => {
                let message = json!({"to": to, "type": kind, "subject": subject, "body": body});
                self.connect()?
                    .write("user/mail", message.to_string().as_bytes())?;
                Ok(format!("sent to {to}"))
            }
            Action::Answer(message, verdict, reason) => {
                if message.get("sha256").is_some() {
                    self.decide(&message, verdict, &reason)?;
                    self.show_left(model)?;
                } else {
                    self.answer(&message, verdict, &reason)?;
                    self.complete(model, &text_of(&message, "id"))?;
                }
                Ok(verdict.to_owned())
            }
            Action::Complete(id) => {
                self.complete(model, &id)?;
                Ok("completed".to_owned())
            }
        }
    }

    fn look_after_daemon(&mut self, model: &mut Model, wanted: Daemon) -> Result<String, Failure> {
        match wanted {
            Daemon::Look => {}
            Daemon::Start => self.keeper.start()?,
            Daemon::Stop => self.keeper.stop()?,
        }
        if wanted != Daemon::Look {
            self.tree = None;
        }
        let (status, _) = status_value(self.client);
        let shown = |key: &str| status.get(key).map(ToString::to_string).unwrap_or_default();
        let state = if status.get("running") == Some(&Value::Bool(true)) {
            format!("runs, PID {}, {} sessions", shown("pid"), shown("sessions"))
        } else {
            "does not run".to_owned()
        };
        model.panes.push(Pane::Daemon(format!(
            "The daemon in {} {state}.\n\ns starts it, T stops it; sessions go on without it.",
            text_of(&status, "namespace")
        )));
        Ok(String::new())
    }

    /// Send the response that belongs to a request.
    fn answer(&mut self, message: &Value, verdict: &str, reason: &str) -> Result<(), Failure> {
        let kind = text_of(message, "type").replace("_REQUEST", "_RESPONSE");
        let body = if reason.is_empty() {
            verdict.to_owned()
        } else {
            format!("{verdict}: {reason}")
        };
        let mut subject = format!("Re: {}", text_of(message, "subject"));
        subject.truncate(subject.floor_char_boundary(200));
        let answer = json!({"to": text_of(message, "from"), "type": kind, "subject": subject, "body": body});
        let bytes = answer.to_string();
        Ok(self.connect()?.write("user/mail", bytes.as_bytes())?)
    }

    /// Answer what waits for a person. A yes is for what was shown.
    fn decide(&mut self, request: &Value, verdict: &str, text: &str) -> Result<(), Failure> {
        let line = match verdict {
            "approved" => format!("approve sha256={}", text_of(request, "sha256")),
            "answered" => format!("answer {text}"),
            _ => format!("reject {text}"),
        };
        let path = format!("approvals/{}/answer", text_of(request, "id"));
        Ok(self.connect()?.write(&path, line.as_bytes())?)
    }

    /// Mark a message as handled and show what is left.
    fn complete(&mut self, model: &mut Model, id: &str) -> Result<(), Failure> {
        let tree = self.connect()?;
        tree.write("user/ctl", format!("complete {id}").as_bytes())?;
        self.show_left(model)
    }

    fn show_left(&mut self, model: &mut Model) -> Result<(), Failure> {
        if let Some(Pane::Inbox {
            messages,
            selected,
            folder,
        }) = model.panes.last_mut()
        {
            let left = in_folder(self.connect()?, folder)?;
            *selected = (*selected).min(left.len().saturating_sub(1));
            *messages = left;
        }
        Ok(())
    }
}

/// The messages of a box of the user, or what waits for an answer in the same form.
fn in_folder(tree: &Attachment, folder: &str) -> Result<Vec<Value>, Failure> {
    if folder != "approvals" {
        return messages(tree, &format!("user/{folder}"));
    }
    let text = tree.read_text("approvals/pending")?;
    let requests = text.lines().filter_map(|line| serde_json::from_str(line).ok());
    Ok(requests.map(|request: Value| as_message(&request)).collect())
}

fn as_message(request: &Value) -> Value {
    let parts = ["summary", "command", "diff"].map(|key| text_of(request, key));
    let body: Vec<&str> = parts
        .iter()
        .map(String::as_str)
        .filter(|part| !part.is_empty())
        .collect();
    json!({
        "id": request.get("id"), "from": request.get("session"), "type": request.get("kind"),
        "subject": request.get("summary"), "body": body.join("\n\n"), "sha256": request.get("sha256"),
    })
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
fn show(tree: &Attachment, source: &Source) -> Result<String, Failure> {
    let path = match source {
        Source::File(path) => path,
        Source::Events => "events.json",
    };
    let start = tree.stat(path)?.length.saturating_sub(SHOWN);
    let mut file = tree.open(path, 0)?;
    file.seek(start);
    let bytes = file.read_to_end()?;
    Ok(match source {
        Source::File(_) => clean(&bytes),
        Source::Events => event_lines(&String::from_utf8_lossy(&bytes)),
    })
}

/// Time, source, type and data of each event; a line that is cut is none.
fn event_lines(text: &str) -> String {
    let shown = text.lines().filter_map(|line| {
        let event: Value = serde_json::from_str(line).ok()?;
        let at = Civil::of(event.get("ts")?.as_u64()?);
        Some(format!(
            "{:02}:{:02}:{:02}  {:<8}  {}{}\n",
            at.hour,
            at.minute,
            at.second,
            text_of(&event, "source"),
            text_of(&event, "type"),
            data_words(event.get("data").unwrap_or(&Value::Null))
        ))
    });
    shown.collect()
}

/// What an event tells, without what its line says already.
fn data_words(data: &Value) -> String {
    const KNOWN: [&str; 5] = ["id", "state", "timestamp", "retries", "metadata"];
    let fields = data.as_object().into_iter().flatten();
    fields
        .filter(|(key, value)| !KNOWN.contains(&key.as_str()) && !value.is_null())
        .map(|(key, value)| match value {
            Value::String(text) => format!("  {key}={text}"),
            other => format!("  {key}={other}"),
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::event_lines;

    #[test]
    fn events_are_lines_of_words() {
        let text = "ut off\"}\n{\"ts\":1767225661,\"source\":\"5e1fa0c2\",\"type\":\"StateChange\",\
                    \"data\":{\"old_state\":\"running\",\"new_state\":\"idle\",\"state\":\"idle\"}}\n\
                    {\"ts\":0,\"source\":\"daemon\",\"type\":\"DaemonStopping\"}\n";
        assert_eq!(
            event_lines(text),
            "00:01:01  5e1fa0c2  StateChange  new_state=idle  old_state=running\n\
             00:00:00  daemon    DaemonStopping\n"
        );
    }
}
