//! What files read as.

use beamtalk_ninep::Refusal;
use beamtalk_storage::time::now_seconds;
use std::sync::atomic::Ordering;

use super::TreeNode;
use super::place::Place;
use crate::access::Level;
use crate::config::Item;
use crate::events::Event;
use crate::mail::Box as MailBox;
use crate::session::core::State;
use crate::session::record::Record;
use crate::session::shared::SessionShared;

fn line(text: Option<&str>) -> Vec<u8> {
    match text {
        Some(text) if !text.is_empty() => format!("{text}\n").into_bytes(),
        _ => Vec::new(),
    }
}

impl TreeNode {
    /// Version and time of the last change.
    pub(super) fn version(&self) -> (u32, u32) {
        match self.place.session().and_then(|id| self.hub.session(id).ok()) {
            Some(session) => (session.version(), session.changed()),
            None => self.file_version().unwrap_or_else(|| self.hub.version()),
        }
    }

    /// What changes with every event and every request has its own age: that of the file behind it.
    fn file_version(&self) -> Option<(u32, u32)> {
        let name = match &self.place {
            Place::Top("audit") => "audit.jsonl",
            Place::Top("events.json") => "events.jsonl",
            _ => return None,
        };
        let metadata = std::fs::metadata(self.hub.places.state.join(name)).ok()?;
        let changed = metadata
            .modified()
            .ok()?
            .duration_since(std::time::UNIX_EPOCH)
            .ok()?;
        Some((metadata.len() as u32 | 1, changed.as_secs() as u32))
    }

    /// The length, without making the content where that would be dear.
    pub(super) fn length(&self) -> Result<u64, Refusal> {
        match &self.place {
            Place::File(id, "output") => {
                let extent = self.hub.session(id)?.output.extent();
                Ok(extent.end - extent.base)
            }
            Place::File(id, "log") => Ok(self.hub.session(id)?.chat.length()),
            Place::File(id, "screen") => {
                Ok(self.hub.session(id)?.screen_length.load(Ordering::Relaxed).into())
            }
            Place::OfApproval(_, "answer") => Ok(0),
            Place::File(_, "in" | "mail" | "worktree" | "diff" | "diff.stat")
            | Place::UserFile("mail")
            | Place::Absent(_) => Ok(0),
            Place::Top("audit") => {
                Ok(std::fs::metadata(self.hub.places.state.join("audit.jsonl")).map_or(0, |meta| meta.len()))
            }
            _ => Ok(self.content()?.len() as u64),
        }
    }

    /// The content of a value or document.
    pub(super) fn content(&self) -> Result<Vec<u8>, Refusal> {
        match &self.place {
            Place::Top(name) => self.top_content(name),
            Place::Item(shelf, name) => {
                let library = self.library();
                let item = library.on(*shelf).get(name).ok_or(Refusal::NOT_FOUND)?;
                Ok(item.text.clone().into_bytes())
            }
            Place::Sources => {
                let library = self.library();
                let line = |(name, item): (&String, &Item)| format!("{name}\t{}\n", item.source);
                Ok(library.skills.iter().map(line).collect::<String>().into_bytes())
            }
            Place::OfApprovals(_) => {
                let waiting = self.hub.approvals.list(self.own_id());
                let line = |request| format!("{}\n", serde_json::json!(request));
                Ok(waiting.iter().map(line).collect::<String>().into_bytes())
            }
            Place::OfApproval(id, "request") => {
                let request = self.hub.approvals.find(id).ok_or(Refusal::NOT_FOUND)?;
                Ok(line(Some(&serde_json::json!(request).to_string())))
            }
            Place::Message(who, which, id) => self.hub.mail.read(who, *which, id).ok_or(Refusal::NOT_FOUND),
            Place::File(id, name) => {
                let session = self.hub.session(id)?;
                Ok(session_content(&session, name, || self.full_record(&session)))
            }
            _ => Ok(Vec::new()),
        }
    }

    fn full_record(&self, session: &SessionShared) -> Record {
        let mut record = session.record();
        record.inbox = self.hub.mail.count(&session.id, MailBox::Inbox);
        record
    }

    fn top_content(&self, name: &str) -> Result<Vec<u8>, Refusal> {
        let sessions = self.hub.sessions();
        let mut out = String::new();
        match name {
            "list" => {
                for session in sessions {
                    session.with_record(|record| {
                        let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
                        out.push_str(&format!(
                            "{}\t{}\t{}\t{}\t{}\t{}\n",
                            record.id,
                            record.backend,
                            record.state,
                            dash(&record.alias),
                            dash(&record.role),
                            record.cwd
                        ));
                    });
                }
            }
            "list.json" => {
                let records: Vec<Record> = sessions.iter().map(|session| self.full_record(session)).collect();
                out = serde_json::to_string(&records).map_err(|_| Refusal::INTERNAL)?;
                out.push('\n');
            }
            "status" => {
                for session in sessions {
                    let inbox = self.hub.mail.count(&session.id, MailBox::Inbox);
                    session.with_record(|record| {
                        let idle = match record.idle_since {
                            Some(since) if record.state() == State::Idle => {
                                format!("{}s", now_seconds().saturating_sub(since))
                            }
                            _ => "-".to_owned(),
                        };
                        out.push_str(&format!("{} {} {idle} {inbox}\n", record.id, record.state));
                    });
                }
            }
            "backends" => out = self.hub.config().backend_lines(),
            "events.json" => return Ok(self.hub.events.kept_lines(|_| true)),
            "audit" => return self.hub.audit.read().map_err(|_| Refusal::INTERNAL),
            _ => {}
        }
        Ok(out.into_bytes())
    }

    /// Which events a caller sees: a session its own and every change of state.
    pub(super) fn sees(level: &Level, event: &Event) -> bool {
        match level {
            Level::Session(id) => event.source == *id || event.kind == "StateChange",
            Level::Read | Level::Control => true,
        }
    }
}

fn session_content(session: &SessionShared, name: &str, record: impl FnOnce() -> Record) -> Vec<u8> {
    match name {
        "out" => session.with_texts(|texts| texts.out.clone()).into_bytes(),
        "context" => session.with_texts(|texts| texts.context.clone()).into_bytes(),
        "acl" => session
            .with_texts(|texts| texts.acl.text().to_owned())
            .into_bytes(),
        "log" => session.chat.text(),
        "queue" => session.prompts.lines().into_bytes(),
        "usage" => line(Some(&session.with_texts(|texts| texts.usage.to_json()))),
        "budget" => session.with_texts(|texts| texts.budget.clone()).into_bytes(),
        "info" => line(Some(&record().to_json())),
        _ => session.with_record(|record| match name {
            "state" => line(Some(&record.state)),
            "pid" => line(record.pid.map(|pid| pid.to_string()).as_deref()),
            "cwd" => line(Some(&record.cwd)),
            "backend" => line(Some(&record.backend)),
            "model" => line(record.model.as_deref()),
            "sandbox" => line(Some(&record.sandbox)),
            "level" => line(record.level.as_deref()),
            "tmux" => line(Some(&record.tmux)),
            "alias" => line(Some(record.alias.as_deref().unwrap_or(&record.id))),
            "role" => line(record.role.as_deref()),
            "conversation" => line(record.conversation.as_deref()),
            _ => Vec::new(),
        }),
    }
}
