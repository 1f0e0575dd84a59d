//! Messages to a client, each one text frame.

use serde_json::{Map, Value, json};

use crate::ErrorBody;

/// The last message of a request that went well.
pub fn answer(id: &str, session: Option<&str>, mut fields: Map<String, Value>, flags: &[&str]) -> Value {
    let mut status = vec!["done"];
    status.extend(flags);
    fields.insert("id".to_owned(), id.into());
    // `clone` answers the session it made.
    if let (Some(session), false) = (session, fields.contains_key("session")) {
        fields.insert("session".to_owned(), session.into());
    }
    fields.insert("status".to_owned(), json!(status));
    Value::Object(fields)
}

/// The last message of a request that failed. Without `id` when the request's own could not be read.
pub fn failure(id: Option<&str>, session: Option<&str>, error: &ErrorBody) -> Value {
    let mut status = vec!["done", "error"];
    if error.kind == "interrupted" {
        status.push("interrupted");
    }
    let mut message = json!({"status": status, "error": error});
    if let Some(id) = id {
        message["id"] = id.into();
    }
    if let Some(session) = session {
        message["session"] = session.into();
    }
    message
}

pub fn output(id: &str, session: &str, text: &str) -> Value {
    json!({"id": id, "session": session, "out": text})
}

pub fn needs_input(id: &str, session: &str, prompt: &str) -> Value {
    json!({"id": id, "session": session, "status": ["need-input"], "prompt": prompt})
}
