//! `mail`: messages between sessions and the user.

use std::io::Read;

use beamtalk_agents::Places;
use beamtalk_ninep::Attachment;
use clap::Subcommand;
use serde_json::{Value, json};

use beamtalk_agents::client::messages;

use super::context::{Client, Failure, emit, say};
use crate::exit::Exit;

#[derive(Subcommand)]
pub(super) enum MailCommand {
    /// Send a message; the body comes from standard input if it is absent.
    Send {
        #[arg(long)]
        to: String,
        #[arg(long = "type")]
        kind: String,
        #[arg(long)]
        subject: String,
        #[arg(long)]
        from: Option<String>,
        #[arg(allow_hyphen_values = true)]
        body: Option<String>,
    },
    /// List an inbox.
    Inbox { who: Option<String> },
    /// Print a message.
    Read { message: String },
    /// Mark a message as handled.
    Complete { message: String },
    /// Print what somebody sent and received.
    History {
        who: String,
        #[arg(long, value_name = "YYYYMMDD", value_parser = day)]
        date: Option<String>,
    },
    /// Search what somebody sent and received.
    Search {
        who: String,
        pattern: String,
        #[arg(long, value_name = "YYYYMMDD", value_parser = day)]
        date: Option<String>,
    },
}

fn day(text: &str) -> Result<String, String> {
    if text.len() == 8 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        Ok(text.to_owned())
    } else {
        Err("expected eight digits, as 20260131".to_owned())
    }
}

fn is_session_id(name: &str) -> bool {
    name.len() == 8 && name.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// The path of a participant: itself, or a session by any name.
fn participant(client: &Client, tree: &Attachment, who: Option<&str>) -> Result<String, Failure> {
    let own = std::env::var("AGENT_ID").ok().filter(|id| !id.is_empty());
    match who.map(str::to_owned).or(own) {
        None => Ok("user".to_owned()),
        Some(name) if name == "user" => Ok(name),
        Some(name) => client.resolve(tree, &name),
    }
}

pub(super) fn run(client: &Client, command: MailCommand) -> Result<Exit, Failure> {
    let tree = client.tree()?;
    match command {
        MailCommand::Send {
            to,
            kind,
            subject,
            from,
            body,
        } => {
            let body = match body {
                Some(body) => body,
                None => {
                    let mut text = String::new();
                    std::io::stdin().read_to_string(&mut text)?;
                    text
                }
            };
            let from = participant(client, &tree, from.as_deref())?;
            // A prefix is ours to complete; who does not exist is the server's to say.
            let to = participant(client, &tree, Some(&to)).unwrap_or(to);
            let message = json!({"to": to, "type": kind, "subject": subject, "body": body});
            tree.write(&format!("{from}/mail"), message.to_string().as_bytes())?;
            client.done()
        }
        MailCommand::Inbox { who } => {
            let who = participant(client, &tree, who.as_deref())?;
            let messages = messages(&tree, &format!("{who}/inbox"))?;
            if client.json {
                client.print(&Value::Array(messages))?;
                return Ok(Exit::Success);
            }
            for message in &messages {
                let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
                say(&format!(
                    "{}  {}  {}  {}",
                    text("id"),
                    text("from"),
                    text("type"),
                    text("subject")
                ))?;
            }
            Ok(Exit::Success)
        }
        MailCommand::Read { message } => {
            let (path, _) = find(client, &tree, &message)?;
            let text = tree.read_text(&path)?;
            let value: Value =
                serde_json::from_str(&text).map_err(|error| Failure::plain(error.to_string()))?;
            if client.json {
                client.print(&value)?;
                return Ok(Exit::Success);
            }
            let field = |key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default();
            for key in ["from", "to", "type", "subject"] {
                say(&format!("{key}: {}", field(key)))?;
            }
            say("")?;
            say(field("body"))?;
            Ok(Exit::Success)
        }
        MailCommand::Complete { message } => {
            let (path, who) = find(client, &tree, &message)?;
            let id = path
                .rsplit('/')
                .next()
                .unwrap_or_default()
                .trim_end_matches(".json")
                .to_owned();
            tree.write(&format!("{who}/ctl"), format!("complete {id}").as_bytes())?;
            client.done()
        }
        MailCommand::History { who, date } => history(client, &tree, &who, date.as_deref(), None),
        MailCommand::Search { who, pattern, date } => {
            let pattern = regex::Regex::new(&pattern).map_err(|error| Failure::plain(error.to_string()))?;
            history(client, &tree, &who, date.as_deref(), Some(&pattern))
        }
    }
}

/// Path and owner of a message, looked for in our own boxes by id or unique prefix.
fn find(client: &Client, tree: &Attachment, message: &str) -> Result<(String, String), Failure> {
    let who = participant(client, tree, None)?;
    let mut found = Vec::new();
    for which in ["inbox", "completed"] {
        let directory = format!("{who}/{which}");
        found.extend(
            tree.list(&directory)?
                .into_iter()
                .filter(|stat| !message.is_empty() && stat.name.starts_with(message))
                .map(|stat| format!("{directory}/{}", stat.name)),
        );
    }
    match found.len() {
        0 => Err(Failure::plain("message not found in inbox")),
        1 => Ok((found.remove(0), who)),
        several => Err(Failure::plain(format!("{several} messages begin with {message}"))),
    }
}

/// The history is kept as files beside the tree, for the owner only.
fn history(
    client: &Client,
    tree: &Attachment,
    who: &str,
    date: Option<&str>,
    pattern: Option<&regex::Regex>,
) -> Result<Exit, Failure> {
    let all = Places::of(&client.living_namespace()).state.join("mail/history");
    let who = match participant(client, tree, Some(who)) {
        // What a session wrote outlives it.
        Err(_) if is_session_id(who) && all.join(who).is_dir() => who.to_owned(),
        outcome => outcome?,
    };
    let directory = all.join(&who);
    let mut names: Vec<String> = match std::fs::read_dir(&directory) {
        Ok(entries) => entries
            .flatten()
            .filter_map(|entry| entry.file_name().into_string().ok())
            .collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(error.into()),
    };
    names.sort();
    for name in names
        .iter()
        .filter(|name| date.is_none_or(|date| name.starts_with(date)))
    {
        for line in std::fs::read_to_string(directory.join(name))?.lines() {
            if pattern.is_none_or(|pattern| pattern.is_match(line)) {
                emit(format!("{line}\n").as_bytes())?;
            }
        }
    }
    Ok(Exit::Success)
}
