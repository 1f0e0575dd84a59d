//! A yes from the person: what is asked, and what a yes is bound to.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The key of the one question of a call.
pub(crate) const KEY: &str = "go";

/// What a call would do. A yes holds for exactly this.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Effect {
    pub(crate) summary: String,
    /// The same as the title of a button.
    pub(crate) action: String,
    pub(crate) classes: Vec<String>,
    pub(crate) actors: u64,
    pub(crate) files: Vec<String>,
    /// A name for what is lost, where that may change while the person thinks.
    pub(crate) of: String,
}

impl Effect {
    pub(crate) fn to_json(&self) -> Value {
        json!({
            "summary": self.summary,
            "classes": self.classes,
            "actors": self.actors,
            "files": self.files,
        })
    }

    /// The form that is shown to the person.
    pub(crate) fn form(&self, has_mode: bool) -> Value {
        let mut form = json!({
            "message": beamtalk_wire::escape(&self.summary),
            "requestedSchema": {
                "type": "object",
                "properties": {"approve": {"type": "boolean", "title": beamtalk_wire::escape(&self.action)}},
                "required": ["approve"],
            },
        });
        if has_mode {
            form["mode"] = "form".into();
        }
        form
    }
}

/// A question that waits for its answer, as it is kept.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Question {
    pub(crate) tool: String,
    /// Of the arguments.
    pub(crate) sha256: String,
    pub(crate) effect: Effect,
}

/// Whether the person said yes.
pub(crate) fn is_yes(answer: &Value) -> bool {
    answer["action"] == "accept" && answer["content"]["approve"] == true
}

/// A name for arguments: equal ones have equal names, whatever the order of their properties.
pub(crate) fn fingerprint(arguments: &Map<String, Value>) -> String {
    let mut text = String::new();
    write_fields(&mut text, arguments);
    let digit = |half: u8| char::from_digit(half.into(), 16).unwrap_or_default();
    Sha256::digest(text.as_bytes())
        .iter()
        .flat_map(|byte| [digit(byte >> 4), digit(byte & 15)])
        .collect()
}

fn write_fields(text: &mut String, fields: &Map<String, Value>) {
    let mut names: Vec<&String> = fields.keys().collect();
    names.sort_unstable();
    text.push('{');
    for name in names {
        text.push_str(&serde_json::to_string(name).unwrap_or_default());
        text.push(':');
        write_sorted(text, fields.get(name).unwrap_or(&Value::Null));
        text.push(',');
    }
    text.push('}');
}

fn write_sorted(text: &mut String, value: &Value) {
    match value {
        Value::Object(fields) => write_fields(text, fields),
        Value::Array(values) => {
            text.push('[');
            for value in values {
                write_sorted(text, value);
                text.push(',');
            }
            text.push(']');
        }
        plain => text.push_str(&serde_json::to_string(plain).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_is_one() {
        assert!(is_yes(&json!({"action": "accept", "content": {"approve": true}})));
        for no in [
            json!({"action": "accept", "content": {"approve": false}}),
            json!({"action": "accept", "content": {"approve": "true"}}),
            json!({"action": "accept"}),
            json!({"action": "decline", "content": {"approve": true}}),
            json!(null),
        ] {
            assert!(!is_yes(&no), "{no}");
        }
    }

    #[test]
    fn arguments_are_named_whatever_their_order() {
        let name = |value: Value| fingerprint(value.as_object().expect("an object"));
        assert_eq!(name(json!({"a": 1, "b": [2]})), name(json!({"b": [2], "a": 1})));
        assert_ne!(name(json!({"a": 1})), name(json!({"a": 2})));
        assert_ne!(name(json!({"a": [1, 2]})), name(json!({"a": [12]})));
        let empty = "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a";
        assert_eq!(
            name(json!({})),
            empty,
            "the name of '{{}}', as every program tells it"
        );
    }
}
