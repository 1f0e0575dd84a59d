//! Mailboxes on disk. A message is in exactly one box; what was answered for is stored.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use beamtalk_ninep::Refusal;
use beamtalk_storage::time::now_seconds;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::error::refusal;
use crate::files;
use crate::ids::{date, uuid_v7};

/// The single human participant.
pub(crate) const USER: &str = "user";

/// What a message can be.
pub const MESSAGE_TYPES: [&str; 8] = [
    "PROMPT_RESPONSE",
    "PROMPT_REQUEST",
    "QUERY_REQUEST",
    "QUERY_RESPONSE",
    "REVIEW_REQUEST",
    "REVIEW_RESPONSE",
    "APPROVAL_REQUEST",
    "APPROVAL_RESPONSE",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Box {
    Inbox,
    Outbox,
    Completed,
}

impl Box {
    pub(crate) const ALL: [Box; 3] = [Box::Inbox, Box::Outbox, Box::Completed];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Box::Inbox => "inbox",
            Box::Outbox => "outbox",
            Box::Completed => "completed",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Message {
    pub(crate) id: String,
    pub(crate) from: String,
    pub(crate) to: String,
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) subject: String,
    pub(crate) body: String,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub(crate) metadata: Map<String, Value>,
    pub(crate) timestamp: u64,
    #[serde(default)]
    pub(crate) retries: u32,
}

impl Message {
    /// For events: everything but the body.
    pub(crate) fn without_body(&self) -> Value {
        let mut value = serde_json::to_value(self).unwrap_or_default();
        if let Some(map) = value.as_object_mut() {
            map.remove("body");
        }
        value
    }
}

/// What a sender wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Draft {
    pub(crate) to: String,
    pub(crate) kind: String,
    pub(crate) subject: String,
    pub(crate) body: String,
    pub(crate) metadata: Map<String, Value>,
}

impl Draft {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|error| refusal(format!("invalid message JSON: {error}")))?;
        let Value::Object(map) = value else {
            return Err(refusal("invalid message JSON: expected an object"));
        };
        let text = |key: &str| match map.get(key) {
            None => Err(refusal(format!("missing field: {key}"))),
            Some(Value::String(text)) => Ok(text.clone()),
            Some(_) => Err(refusal(format!("invalid message JSON: {key} must be a string"))),
        };
        let to = text("to")?;
        let kind = text("type")?;
        if !MESSAGE_TYPES.contains(&kind.as_str()) {
            return Err(refusal(format!(
                "invalid message type. valid types are: {}",
                MESSAGE_TYPES.join(", ")
            )));
        }
        let subject = text("subject")?;
        if subject.len() > 200 || subject.contains('\n') {
            return Err(refusal(
                "invalid message JSON: subject must be one line of at most 200 bytes",
            ));
        }
        let body = text("body")?;
        let metadata = match map.get("metadata") {
            None | Some(Value::Null) => Map::new(),
            Some(Value::Object(metadata)) => metadata.clone(),
            Some(_) => return Err(refusal("invalid message JSON: metadata must be an object")),
        };
        Ok(Draft {
            to,
            kind,
            subject,
            body,
            metadata,
        })
    }
}

/// The post office.
pub(crate) struct Mail {
    root: PathBuf,
    inbox_limit: usize,
    completed_limit: usize,
    /// The last id given. Deliveries are made one after the other, so they keep their order.
    last: Mutex<String>,
}

fn broken(error: std::io::Error) -> Refusal {
    tracing::error!(%error, "mail cannot be stored");
    Refusal::INTERNAL
}

impl Mail {
    pub(crate) fn new(root: PathBuf, inbox_limit: usize, completed_limit: usize) -> Self {
        Mail {
            root,
            inbox_limit,
            completed_limit,
            last: Mutex::default(),
        }
    }

    fn directory(&self, who: &str, which: Box) -> PathBuf {
        self.root.join(who).join(which.name())
    }

    fn path(&self, who: &str, which: Box, id: &str) -> PathBuf {
        self.directory(who, which).join(format!("{id}.json"))
    }

    /// The message ids in a box, oldest first.
    pub(crate) fn list(&self, who: &str, which: Box) -> Vec<String> {
        files::names(&self.directory(who, which))
            .iter()
            .filter_map(|name| name.strip_suffix(".json").map(str::to_owned))
            .collect()
    }

    pub(crate) fn count(&self, who: &str, which: Box) -> usize {
        self.list(who, which).len()
    }

    pub(crate) fn read(&self, who: &str, which: Box, id: &str) -> Option<Vec<u8>> {
        if id.contains('/') || id.starts_with('.') {
            return None;
        }
        std::fs::read(self.path(who, which, id)).ok()
    }

    pub(crate) fn message(&self, who: &str, which: Box, id: &str) -> Option<Message> {
        serde_json::from_slice(&self.read(who, which, id)?).ok()
    }

    fn store(&self, who: &str, which: Box, message: &Message) -> std::io::Result<()> {
        files::make_directory(&self.directory(who, which))?;
        let mut bytes = serde_json::to_vec(message)?;
        bytes.push(b'\n');
        files::replace(&self.path(who, which, &message.id), &bytes)
    }

    fn history(&self, who: &str, direction: &str, message: &Message) -> std::io::Result<()> {
        let directory = self.root.join("history").join(who);
        files::make_directory(&directory)?;
        let mut line = serde_json::to_vec(message)?;
        line.push(b'\n');
        let name = format!("{}-{direction}.jsonl", date(message.timestamp));
        files::appender(&directory.join(name))?.write_all(&line)
    }

    /// Store a message from `from` to the participant `to`, then put it into the inbox.
    pub(crate) fn send(&self, from: &str, to: &str, draft: Draft) -> Result<Message, Refusal> {
        let mut last = self
            .last
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        if self.count(to, Box::Inbox) >= self.inbox_limit {
            return Err(refusal("mailbox full"));
        }
        // Ids of one millisecond sort at random; only a later one will do.
        let mut id = uuid_v7().map_err(broken)?;
        while id <= *last {
            id = uuid_v7().map_err(broken)?;
        }
        last.clone_from(&id);
        let message = Message {
            id,
            from: from.to_owned(),
            to: to.to_owned(),
            kind: draft.kind,
            subject: draft.subject,
            body: draft.body,
            metadata: draft.metadata,
            timestamp: now_seconds(),
            retries: 0,
        };
        self.store(from, Box::Outbox, &message).map_err(broken)?;
        self.history(from, "sent", &message).map_err(broken)?;
        self.deliver(&message).map_err(broken)?;
        drop(last);
        Ok(message)
    }

    /// Outbox to inbox; a message the receiver already has is not stored twice.
    fn deliver(&self, message: &Message) -> std::io::Result<()> {
        let known = [Box::Inbox, Box::Completed]
            .iter()
            .any(|which| self.path(&message.to, *which, &message.id).exists());
        if !known {
            self.store(&message.to, Box::Inbox, message)?;
            self.history(&message.to, "recv", message)?;
        }
        std::fs::remove_file(self.path(&message.from, Box::Outbox, &message.id))
    }

    /// After a crash: deliver what was stored but not delivered. Undeliverable ones are returned.
    pub(crate) fn recover(&self, exists: impl Fn(&str) -> bool) -> Vec<Message> {
        let mut undeliverable = Vec::new();
        for who in files::names(&self.root) {
            for id in self.list(&who, Box::Outbox) {
                let Some(mut message) = self.message(&who, Box::Outbox, &id) else {
                    continue;
                };
                message.retries += 1;
                let outcome = if exists(&message.to) {
                    self.deliver(&message)
                } else {
                    message
                        .metadata
                        .insert("error".to_owned(), "receiver does not exist".into());
                    let stored = self.store(&who, Box::Completed, &message);
                    undeliverable.push(message);
                    stored.and_then(|()| std::fs::remove_file(self.path(&who, Box::Outbox, &id)))
                };
                if let Err(error) = outcome {
                    tracing::error!(%error, %id, "mail cannot be delivered");
                }
            }
        }
        undeliverable
    }

    /// Inbox to completed.
    pub(crate) fn complete(&self, who: &str, id: &str) -> Result<(), Refusal> {
        let missing = || refusal("message not found in inbox");
        if id.contains('/') || id.starts_with('.') {
            return Err(missing());
        }
        let directory = self.directory(who, Box::Completed);
        files::make_directory(&directory).map_err(broken)?;
        std::fs::rename(self.path(who, Box::Inbox, id), self.path(who, Box::Completed, id))
            .map_err(|_| missing())?;
        for path in [&directory, &self.directory(who, Box::Inbox)] {
            files::sync_directory(path).map_err(broken)?;
        }
        let all = self.list(who, Box::Completed);
        for old in all.iter().take(all.len().saturating_sub(self.completed_limit)) {
            // One that stays a little longer does no harm.
            drop(std::fs::remove_file(self.path(who, Box::Completed, old)));
        }
        Ok(())
    }

    pub(crate) fn delete_completed(&self, who: &str, id: &str) -> Result<(), Refusal> {
        let missing = || refusal("message not found in inbox");
        if id.contains('/') || id.starts_with('.') {
            return Err(missing());
        }
        std::fs::remove_file(self.path(who, Box::Completed, id)).map_err(|_| missing())
    }

    #[cfg(test)]
    pub(crate) fn history_files(&self, who: &str) -> Vec<String> {
        files::names(&self.root.join("history").join(who))
    }
}

#[cfg(test)]
mod tests {
    use super::{Box, Draft, Mail};

    fn draft(to: &str) -> Draft {
        let text =
            format!(r#"{{"to":"{to}","type":"QUERY_REQUEST","subject":"s","body":"b","from":"forged"}}"#);
        Draft::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn bad_drafts_are_refused() {
        for (text, message) in [
            ("[]", "invalid message JSON: expected an object"),
            (r#"{"type":"QUERY_REQUEST"}"#, "missing field: to"),
            (
                r#"{"to":"user","type":"QUERY_REQUEST","subject":"a\nb","body":""}"#,
                "invalid message JSON: subject must be one line of at most 200 bytes",
            ),
        ] {
            assert_eq!(Draft::parse(text.as_bytes()).unwrap_err().text, message);
        }
        let gossip = Draft::parse(br#"{"to":"u","type":"GOSSIP","subject":"s","body":"b"}"#).unwrap_err();
        assert!(
            gossip
                .text
                .starts_with("invalid message type. valid types are: PROMPT_RESPONSE, PROMPT_REQUEST,")
        );
    }

    #[test]
    fn a_message_is_in_exactly_one_box() {
        let base = tempfile::tempdir().unwrap();
        let mail = Mail::new(base.path().to_owned(), 2, 1);
        let message = mail.send("user", "5e1fa0c2", draft("5e1fa0c2")).unwrap();
        assert_eq!(message.from, "user");
        assert_eq!(mail.list("user", Box::Outbox).len(), 0);
        assert_eq!(
            mail.list("5e1fa0c2", Box::Inbox),
            std::slice::from_ref(&message.id)
        );
        mail.complete("5e1fa0c2", &message.id).unwrap();
        assert_eq!(
            mail.complete("5e1fa0c2", &message.id).unwrap_err().text,
            "message not found in inbox"
        );
        assert_eq!(mail.list("5e1fa0c2", Box::Completed), [message.id]);
        mail.send("user", "5e1fa0c2", draft("5e1fa0c2")).unwrap();
        mail.send("user", "5e1fa0c2", draft("5e1fa0c2")).unwrap();
        assert_eq!(
            mail.send("user", "5e1fa0c2", draft("5e1fa0c2")).unwrap_err().text,
            "mailbox full"
        );
        assert_eq!(mail.history_files("user").len(), 1);
    }

    #[test]
    fn mail_stored_before_a_crash_is_delivered_once() {
        let base = tempfile::tempdir().unwrap();
        let mail = Mail::new(base.path().to_owned(), 10, 10);
        let message = mail.send("user", "aaaaaaaa", draft("aaaaaaaa")).unwrap();
        // As if the crash came before the outbox was emptied.
        mail.store("user", Box::Outbox, &message).unwrap();
        assert!(mail.recover(|_| true).is_empty());
        assert_eq!(mail.count("aaaaaaaa", Box::Inbox), 1);
        assert_eq!(mail.count("user", Box::Outbox), 0);
        mail.store(
            "user",
            Box::Outbox,
            &super::Message {
                to: "gone".to_owned(),
                ..message
            },
        )
        .unwrap();
        assert_eq!(mail.recover(|who| who != "gone").len(), 1);
        assert_eq!(mail.list("user", Box::Completed).len(), 1);
    }
}
