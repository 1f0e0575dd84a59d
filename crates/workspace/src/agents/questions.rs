//! What the image asks of agents, as file operations.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use beamtalk_ninep::{Attachment, Error};
use beamtalk_wire::{ErrorBody, ErrorKind};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{AgentsLink, fault};

/// How long a new agent may take until it is ready; its backend has a limit of its own.
const READY: Duration = Duration::from_mins(2);
/// As much of a text as the image is sent at once.
const TEXT_LIMIT: usize = 8 << 20;
/// The files of a session that can be read and written through here, and no others.
const READABLE: &[&str] = &[
    "state",
    "alias",
    "cwd",
    "backend",
    "pid",
    "context",
    "role",
    "out",
    "log",
    "screen",
    "output",
    "queue",
    "worktree",
    "diff",
    "diff.stat",
    "usage",
    "budget",
    "info",
    "model",
    "level",
];
const WRITABLE: &[&str] = &["alias", "context", "role", "in", "queue", "budget"];
const OPTIONS: &[&str] = &[
    "sandbox", "model", "level", "alias", "role", "context", "worktree", "base",
];

#[derive(Debug, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case")]
enum Question {
    IsRunning,
    All,
    Backends,
    At {
        name: String,
    },
    New {
        backend: String,
        cwd: String,
        #[serde(default)]
        options: BTreeMap<String, String>,
    },
    Read {
        id: String,
        file: String,
    },
    Write {
        id: String,
        file: String,
        text: String,
    },
    Ctl {
        id: String,
        line: String,
    },
    Prompt {
        id: String,
        text: String,
        ms: u64,
    },
    Mail {
        from: String,
        to: String,
        r#type: String,
        subject: String,
        body: String,
    },
    Inbox {
        of: String,
    },
    Complete {
        of: String,
        message: String,
    },
}

pub(super) fn answer(link: &AgentsLink, question: Value) -> Result<Value, ErrorBody> {
    let question: Question = serde_json::from_value(question)
        .map_err(|cause| ErrorBody::new(ErrorKind::InvalidParameter, cause.to_string()))?;
    match question {
        Question::IsRunning => {
            let is_running = link.with(|tree| tree.read("agents/status")).is_ok();
            Ok(json!({"running": is_running}))
        }
        Question::All => {
            let ids: Vec<Value> = sessions(link)?
                .into_iter()
                .map(|session| session["id"].clone())
                .collect();
            Ok(json!({"ids": ids}))
        }
        Question::Backends => {
            let text = link.with(|tree| tree.read("agents/backends"))?;
            let text = String::from_utf8_lossy(&text);
            let names: Vec<&str> = text.lines().filter_map(|line| line.split('\t').next()).collect();
            Ok(json!({"names": names}))
        }
        Question::At { name } => {
            let is_meant = |session: &&Value| session["id"] == *name || session["alias"] == *name;
            let sessions = sessions(link)?;
            let found = sessions.iter().find(is_meant).ok_or_else(|| {
                ErrorBody::new("agent_not_found", format!("there is no agent '{name}'"))
                    .hint("Agents all lists them")
            })?;
            Ok(json!({"id": found["id"]}))
        }
        Question::New {
            backend,
            cwd,
            options,
        } => new(link, &backend, &cwd, &options),
        Question::Read { id, file } => {
            let path = path(&id, &file, READABLE)?;
            let bytes = link.with(|tree| tree.read(&path))?;
            Ok(json!({"text": text_of(&bytes)}))
        }
        Question::Write { id, file, text } => {
            let path = path(&id, &file, WRITABLE)?;
            link.with(|tree| tree.write(&path, text.as_bytes()))?;
            Ok(json!({}))
        }
        Question::Ctl { id, line } => {
            let path = format!("{}/ctl", session(&id)?);
            link.with(|tree| tree.write(&path, line.as_bytes()))?;
            Ok(json!({}))
        }
        Question::Prompt { id, text, ms } => prompt(link, &id, &text, Duration::from_millis(ms)),
        Question::Mail {
            from,
            to,
            r#type,
            subject,
            body,
        } => mail(link, &from, &to, &r#type, &subject, &body),
        Question::Inbox { of } => inbox(link, &of),
        Question::Complete { of, message } => {
            let path = format!("{}/ctl", participant(&of)?);
            let line = format!("complete {}", quoted(&message)?);
            link.with(|tree| tree.write(&path, line.as_bytes()))?;
            Ok(json!({}))
        }
    }
}

/// The directory of a session, by its id: no other name can be meant.
fn session(id: &str) -> Result<String, ErrorBody> {
    let is_id = id.len() == 8 && id.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_id {
        return Ok(format!("agents/{id}"));
    }
    Err(ErrorBody::new(
        "agent_not_found",
        format!("'{id}' is not the id of an agent"),
    ))
}

/// A session or `user`.
fn participant(id: &str) -> Result<String, ErrorBody> {
    if id == "user" {
        return Ok("agents/user".to_owned());
    }
    session(id)
}

fn path(id: &str, file: &str, known: &[&str]) -> Result<String, ErrorBody> {
    if known.contains(&file) {
        return Ok(format!("{}/{file}", session(id)?));
    }
    let text = format!("there is no file '{file}' of an agent to be used like this");
    Err(ErrorBody::new(ErrorKind::InvalidParameter, text))
}

/// What a program wrote is any bytes; the image has Strings.
fn text_of(bytes: &[u8]) -> String {
    let start = bytes.len().saturating_sub(TEXT_LIMIT);
    String::from_utf8_lossy(bytes.get(start..).unwrap_or_default()).into_owned()
}

fn sessions(link: &AgentsLink) -> Result<Vec<Value>, ErrorBody> {
    let bytes = link.with(|tree| tree.read("agents/list.json"))?;
    serde_json::from_slice(&bytes)
        .map_err(|cause| ErrorBody::new("agent_failed", format!("list.json: {cause}")))
}

/// One word of a command line, quoted.
fn quoted(text: &str) -> Result<String, ErrorBody> {
    if text.contains(['\n', '\r', '\0']) {
        let text = "a line of ctl has no line breaks";
        return Err(ErrorBody::new("agent_failed", text));
    }
    Ok(format!("'{}'", text.replace('\'', "''")))
}

fn new(
    link: &AgentsLink,
    backend: &str,
    cwd: &str,
    options: &BTreeMap<String, String>,
) -> Result<Value, ErrorBody> {
    let mut line = format!("new {} {}", quoted(backend)?, quoted(cwd)?);
    for (name, value) in options {
        if !OPTIONS.contains(&name.as_str()) {
            let text = format!("there is no option '{name}' of an agent");
            return Err(
                ErrorBody::new("agent_failed", text).hint(format!("there are: {}", OPTIONS.join(", ")))
            );
        }
        // A context has lines; it is written once the session is there.
        if name != "context" {
            line.push_str(&format!(" {name}={}", quoted(value)?));
        }
    }
    let id = link.with(|tree| tree.rpc("agents/ctl", line.as_bytes()))?;
    let id = String::from_utf8_lossy(&id).trim().to_owned();
    let directory = session(&id)?;
    if let Some(context) = options.get("context") {
        let path = format!("{directory}/context");
        link.with(|tree| tree.write(&path, context.as_bytes()))?;
    }
    let state = link.with(|tree| settled(tree, &directory))?;
    if state == "error" {
        let info = link.with(|tree| tree.read(&format!("{directory}/info")))?;
        let info: Value = serde_json::from_slice(&info).unwrap_or_default();
        let reason = info["last_error"]
            .as_str()
            .unwrap_or("it did not start")
            .to_owned();
        return Err(ErrorBody::new("agent_failed", format!("{id}: {reason}")));
    }
    Ok(json!({"id": id}))
}

/// The state once it is neither starting nor running.
fn settled(tree: &Attachment, directory: &str) -> Result<String, Error> {
    let mut file = tree.open(&format!("{directory}/wait"), 0)?;
    let state = file.read_next(Some(READY))?;
    Ok(String::from_utf8_lossy(state.as_ref()).trim().to_owned())
}

/// Write a prompt and wait for the end of its turn.
fn prompt(link: &AgentsLink, id: &str, text: &str, limit: Duration) -> Result<Value, ErrorBody> {
    let path = format!("{}/prompt", session(id)?);
    let bytes = link.with(|tree| {
        let deadline = Instant::now() + limit;
        let mut file = tree.open(&path, 2)?;
        file.write_document(text.as_bytes())?;
        let mut bytes = Vec::new();
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let piece = file.read_next(Some(left))?;
            if piece.is_empty() || bytes.len() > TEXT_LIMIT {
                return Ok(bytes);
            }
            bytes.extend_from_slice(piece.as_ref());
        }
    })?;
    Ok(json!({"text": text_of(&bytes)}))
}

fn mail(
    link: &AgentsLink,
    from: &str,
    to: &str,
    kind: &str,
    subject: &str,
    body: &str,
) -> Result<Value, ErrorBody> {
    let sender = participant(from)?;
    let receiver = participant(to)?;
    let message = json!({"to": to, "type": kind, "subject": subject, "body": body}).to_string();
    link.with(|tree| tree.write(&format!("{sender}/mail"), message.as_bytes()))?;
    // The server gives the id; the newest message that says this is the one.
    let messages = messages(link, &receiver)?;
    let is_it = |found: &&Value| {
        found["from"] == from && found["subject"] == subject && found["body"] == body && found["type"] == kind
    };
    let id = messages.iter().rev().find(is_it).map(|found| found["id"].clone());
    Ok(json!({"id": id}))
}

fn inbox(link: &AgentsLink, of: &str) -> Result<Value, ErrorBody> {
    let messages = messages(link, &participant(of)?)?;
    Ok(json!({"messages": messages}))
}

/// The messages of an inbox, the oldest first; one that is taken away meanwhile is left out.
fn messages(link: &AgentsLink, directory: &str) -> Result<Vec<Value>, ErrorBody> {
    link.with(|tree| {
        let mut names: Vec<String> = tree
            .list(&format!("{directory}/inbox"))?
            .into_iter()
            .map(|entry| entry.name)
            .collect();
        names.sort();
        let mut messages = Vec::new();
        for name in names {
            match tree.read(&format!("{directory}/inbox/{name}")) {
                Ok(bytes) => messages.extend(serde_json::from_slice::<Value>(&bytes)),
                Err(Error::Refused(refusal)) if fault::kind_of(&refusal.text) == "agent_not_found" => {}
                Err(error) => return Err(error),
            }
        }
        Ok(messages)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ids_lead_to_sessions() {
        assert_eq!(session("5e1fa0c2").unwrap_or_default(), "agents/5e1fa0c2");
        for name in [
            "",
            "..",
            "5e1fa0c",
            "5E1FA0C2",
            "tokens",
            "5e1fa0c2/../user",
            "user",
        ] {
            assert_eq!(
                session(name)
                    .map_err(|error| error.kind.name().to_owned())
                    .err()
                    .as_deref(),
                Some("agent_not_found"),
                "{name}"
            );
        }
        assert!(path("5e1fa0c2", "acl", READABLE).is_err());
        assert!(path("5e1fa0c2", "../../tokens", WRITABLE).is_err());
    }

    #[test]
    fn words_are_quoted_and_lines_are_refused() {
        assert_eq!(quoted("it's").unwrap_or_default(), "'it''s'");
        assert!(quoted("a\nkill").is_err());
    }
}
