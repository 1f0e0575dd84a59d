//! Requests as file operations; nothing here knows more than the tree says.

use beamtalk_ninep::Attachment;
use hyper::Method;
use serde_json::{Value, json};

use crate::client::{Ending, Order, messages, parse, status_value};
use crate::{Client, Failure, errno_of};

/// A request that was let in.
pub(super) struct Asked {
    pub(super) method: Method,
    pub(super) path: String,
    pub(super) query: String,
    pub(super) last_event: Option<u64>,
    pub(super) body: Value,
}

pub(super) enum Answer {
    Json(Value),
    Text(Vec<u8>),
}

/// Files of a session that read as text at once.
const TEXTS: &[&str] = &[
    "out", "output", "log", "screen", "state", "pid", "cwd", "backend", "model", "sandbox", "level", "tmux",
    "alias", "context", "role", "acl", "info",
];

impl Failure {
    /// The HTTP status of a failure.
    pub(super) fn status(&self) -> u16 {
        match (self.ending(), errno_of(self.message())) {
            (Ending::Unreachable, _) => 503,
            (Ending::Denied, _) | (_, 13) => 403,
            (Ending::NoSession, _) | (_, 2) => 404,
            (_, 16) => 409,
            (_, 5) if self.message() == "internal error" => 500,
            _ => 400,
        }
    }
}

fn done() -> Answer {
    Answer::Json(json!({"ok": true}))
}

/// A text field of the request.
fn field<'a>(body: &'a Value, name: &str) -> Result<&'a str, Failure> {
    body.get(name)
        .and_then(Value::as_str)
        .ok_or_else(|| Failure::plain(format!("missing field: {name}")))
}

fn optional(body: &Value, name: &str) -> Result<Option<String>, Failure> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Failure::plain(format!("invalid {name}"))),
    }
}

pub(super) fn perform(client: &Client, asked: &Asked) -> Result<Answer, Failure> {
    let Some(path) = asked.path.strip_prefix("/api/") else {
        return Err(Failure::plain("not found"));
    };
    let parts: Vec<&str> = path.split('/').collect();
    let get = asked.method == Method::GET;
    let post = asked.method == Method::POST;
    match parts.as_slice() {
        ["daemon", "status"] if get => Ok(Answer::Json(status_value(client).0)),
        ["backends"] if get => Ok(Answer::Text(client.tree()?.read("backends")?)),
        ["sessions"] if get => Ok(Answer::Json(parse(&client.tree()?.read_text("list.json")?)?)),
        ["sessions"] if post => create(client, &asked.body),
        ["inbox"] if get => Ok(Answer::Json(messages(&client.tree()?, "user/inbox")?.into())),
        ["archive"] if get => Ok(Answer::Json(messages(&client.tree()?, "user/completed")?.into())),
        ["inbox", "count"] if get => {
            let count = client.tree()?.list("user/inbox")?.len();
            Ok(Answer::Json(json!({ "count": count })))
        }
        ["inbox", "reply"] if post => reply(client, &asked.body),
        ["inbox", "archive"] if post => {
            let id = one_word(field(&asked.body, "id")?)?;
            client
                .tree()?
                .write("user/ctl", format!("complete {id}").as_bytes())?;
            Ok(done())
        }
        ["approvals"] if get => {
            let pending = client.tree()?.read_text("approvals/pending")?;
            let waiting: Result<Vec<Value>, Failure> = pending.lines().map(parse).collect();
            Ok(Answer::Json(waiting?.into()))
        }
        ["approvals", "answer"] if post => answer(client, &asked.body),
        ["session", name, rest @ ..] => session(client, name, rest, asked),
        _ => Err(Failure::plain("not found")),
    }
}

fn session(client: &Client, name: &str, rest: &[&str], asked: &Asked) -> Result<Answer, Failure> {
    let (tree, id) = client.session(name)?;
    let method = &asked.method;
    match rest {
        [] if *method == Method::GET => Ok(Answer::Json(parse(&tree.read_text(&format!("{id}/info"))?)?)),
        [] if *method == Method::DELETE => {
            tree.write(&format!("{id}/ctl"), b"kill")?;
            Ok(done())
        }
        [file] if *method == Method::GET && TEXTS.contains(file) => {
            Ok(Answer::Text(tree.read(&format!("{id}/{file}"))?))
        }
        ["prompt"] if *method == Method::POST => {
            tree.write(&format!("{id}/in"), field(&asked.body, "text")?.as_bytes())?;
            Ok(done())
        }
        ["ctl"] if *method == Method::POST => {
            let command = field(&asked.body, "command")?.trim();
            if command.contains('\n') {
                return Err(Failure::plain("unknown command"));
            }
            tree.write(&format!("{id}/ctl"), command.as_bytes())?;
            Ok(done())
        }
        [file @ ("alias" | "context" | "role")] if *method == Method::PUT => {
            tree.write(&format!("{id}/{file}"), field(&asked.body, "value")?.as_bytes())?;
            Ok(done())
        }
        _ => Err(Failure::plain("not found")),
    }
}

fn create(client: &Client, body: &Value) -> Result<Answer, Failure> {
    let order = Order {
        backend: field(body, "backend")?.to_owned(),
        directory: optional(body, "cwd")?,
        sandbox: optional(body, "sandbox")?,
        model: optional(body, "model")?,
        level: optional(body, "level")?,
        alias: optional(body, "alias")?,
        role: optional(body, "role")?,
        context: optional(body, "context")?,
        ..Order::default()
    };
    let tree = client.tree()?;
    let id = order.place(&tree)?;
    Ok(Answer::Json(parse(&tree.read_text(&format!("{id}/info"))?)?))
}

/// A message id as it may stand in a path or a command line.
fn one_word(id: &str) -> Result<&str, Failure> {
    let is_plain = !id.is_empty()
        && id
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
    if is_plain {
        Ok(id)
    } else {
        Err(Failure::plain("message not found in inbox"))
    }
}

fn reply(client: &Client, body: &Value) -> Result<Answer, Failure> {
    let id = one_word(field(body, "id")?)?;
    let (kind, text) = (field(body, "type")?, field(body, "body")?);
    let tree = client.tree()?;
    let message = inbox_message(&tree, id)?;
    let known = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
    let mut subject = format!("Re: {}", known("subject"));
    while subject.len() > 200 {
        subject.pop();
    }
    let answer = json!({"to": known("from"), "type": kind, "subject": subject, "body": text});
    tree.write("user/mail", answer.to_string().as_bytes())?;
    Ok(done())
}

/// Say yes, no or something to what waits; a yes is for exactly what was shown.
fn answer(client: &Client, body: &Value) -> Result<Answer, Failure> {
    let id = one_word(field(body, "id")?).map_err(|_| Failure::plain("not found"))?;
    let text = optional(body, "text")?.unwrap_or_default();
    let line = match field(body, "verdict")? {
        "approve" => format!("approve sha256={}", one_word(field(body, "sha256")?)?),
        word @ ("reject" | "answer") => format!("{word} {text}"),
        _ => return Err(Failure::plain("invalid verdict")),
    };
    let path = format!("approvals/{id}/answer");
    client.tree()?.write(&path, line.trim_end().as_bytes())?;
    Ok(done())
}

fn inbox_message(tree: &Attachment, id: &str) -> Result<Value, Failure> {
    let text = tree
        .read_text(&format!("user/inbox/{id}.json"))
        .map_err(|error| match Failure::from(error) {
            failure if failure.message() == "not found" => Failure::plain("message not found in inbox"),
            failure => failure,
        })?;
    parse(&text)
}
