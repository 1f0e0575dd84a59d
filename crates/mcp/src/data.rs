//! Text that somebody else wrote: values, output, sources, messages. It is shown so that nothing in it is invisible.

use beamtalk_wire::escape;
use serde::Serialize;
use serde_json::{Map, Value};

/// A string that is data and no instruction. Its schema says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Data(String);

impl Data {
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(escape(text.as_ref()))
    }

    /// The value of something whose name says that it is secret.
    pub(crate) fn named(name: &str, text: impl AsRef<str>) -> Self {
        let name = name.to_lowercase();
        let is_secret = ["cookie", "token", "secret", "password"]
            .iter()
            .any(|word| name.contains(word));
        if is_secret {
            Self("***".to_owned())
        } else {
            Self::new(text)
        }
    }
}

/// Any JSON as data.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct AnyData(Value);

impl AnyData {
    pub(crate) fn new(value: Value) -> Self {
        Self(escape_all(value))
    }
}

/// An object as data.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(transparent)]
pub(crate) struct Fields(Map<String, Value>);

impl Fields {
    /// Anything else has no fields.
    pub(crate) fn new(value: Value) -> Self {
        match escape_all(value) {
            Value::Object(fields) => Self(fields),
            _ => Self::default(),
        }
    }

    /// From its JSON text.
    pub(crate) fn read(text: &str) -> Self {
        Self::new(serde_json::from_str(text).unwrap_or_default())
    }

    /// Only those of these names and types.
    pub(crate) fn of(mut self, known: &[(&str, &str)]) -> Self {
        let is_of = |value: &Value, kind: &str| match value {
            Value::Null => false,
            Value::Bool(_) => kind == "boolean",
            Value::Number(number) => kind == "integer" && !number.is_f64(),
            Value::String(_) => kind == "string",
            Value::Array(_) => kind == "array",
            Value::Object(_) => kind == "object",
        };
        self.0.retain(|name, value| {
            known
                .iter()
                .any(|(known, kind)| name == known && is_of(value, kind))
        });
        self
    }
}

fn escape_all(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(escape(&text)),
        Value::Array(values) => values.into_iter().map(escape_all).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(key, value)| (escape(&key), escape_all(value)))
            .collect(),
        other => other,
    }
}

/// So many letters of a secret are one still.
const PART: usize = 8;

/// A value without secrets, in its strings and names.
pub(crate) fn redact_value(value: &mut Value, secrets: &[String]) {
    match value {
        Value::String(text) => *text = redact(std::mem::take(text), secrets),
        Value::Array(values) => values.iter_mut().for_each(|value| redact_value(value, secrets)),
        Value::Object(fields) => {
            *fields = std::mem::take(fields)
                .into_iter()
                .map(|(name, mut value)| {
                    redact_value(&mut value, secrets);
                    (redact(name, secrets), value)
                })
                .collect();
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The text without secrets: those that are known, also where the text was cut inside of one, and what has the form of a token.
pub(crate) fn redact(text: String, secrets: &[String]) -> String {
    let mut text = text;
    for secret in secrets
        .iter()
        .filter(|secret| secret.len() >= PART && secret.is_ascii())
    {
        if text.contains(secret.as_str()) {
            text = text.replace(secret.as_str(), "***");
        }
        let parts = PART..secret.len();
        if let Some(length) = parts
            .clone()
            .rev()
            .find(|length| text.ends_with(&secret[..*length]))
        {
            text.truncate(text.len() - length);
            text.push_str("***");
        }
        let rest = |length: &usize| &secret[secret.len() - length..];
        if let Some(length) = parts.rev().find(|length| text.starts_with(rest(length))) {
            text.replace_range(..length, "***");
        }
    }
    for prefix in ["btk_", "bt9_"] {
        if text.contains(prefix) {
            text = without_tokens(&text, prefix);
        }
    }
    text
}

fn without_tokens(text: &str, prefix: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(place) = rest.find(prefix) {
        let (before, found) = rest.split_at(place);
        kept.push_str(before);
        let body = found.get(prefix.len()..).unwrap_or_default();
        let length = body
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'))
            .unwrap_or(body.len());
        // A few letters are a word and no token.
        if length >= 8 {
            kept.push_str("***");
            rest = body.get(length..).unwrap_or_default();
        } else {
            kept.push_str(prefix);
            rest = body;
        }
    }
    kept.push_str(rest);
    kept
}

#[cfg(feature = "schema")]
mod schema {
    use super::{AnyData, Data, Fields};
    use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

    impl JsonSchema for Data {
        fn inline_schema() -> bool {
            true
        }
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Data".into()
        }
        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({"type": "string", "x-beamtalk-origin": "data"})
        }
    }

    impl JsonSchema for Fields {
        fn inline_schema() -> bool {
            true
        }
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "Fields".into()
        }
        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            json_schema!({"type": "object", "x-beamtalk-origin": "data"})
        }
    }

    impl JsonSchema for AnyData {
        fn inline_schema() -> bool {
            true
        }
        fn schema_name() -> std::borrow::Cow<'static, str> {
            "AnyData".into()
        }
        fn json_schema(_: &mut SchemaGenerator) -> Schema {
            // Any value; some clients hold a schema that excludes nothing for a mistake.
            json_schema!({"maxLength": crate::fit::RESULT_BYTES, "x-beamtalk-origin": "data"})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_seen_is_shown() {
        assert_eq!(escape("a\tb\nc"), "a\tb\nc");
        assert_eq!(escape("a\u{202e}b\u{1b}[31m"), "a\\u{202e}b\\u{1b}[31m");
        assert_eq!(
            escape("\u{e0041}\u{feff}\u{200b}"),
            "\\u{e0041}\\u{feff}\\u{200b}"
        );
    }

    #[test]
    fn fields_of_other_names_and_types_are_left_out() {
        let known = [
            ("pid", "integer"),
            ("alias", "string"),
            ("runs", "array"),
            ("lane", "object"),
        ];
        let given = r#"{"pid": 7, "alias": null, "runs": "none", "lane": {"a\u202eb": 1}, "other": 1}"#;
        let fields = serde_json::to_value(Fields::read(given).of(&known)).expect("fields");
        assert_eq!(fields, serde_json::json!({"pid": 7, "lane": {"a\\u{202e}b": 1}}));
        assert_eq!(Fields::read("[1]"), Fields::default());
        assert_eq!(Fields::read("none"), Fields::default());
    }

    #[test]
    fn secrets_are_left_out() {
        let secrets = ["0123456789abcdef".to_owned()];
        let text = "a 0123456789abcdef b btk_abcDEF0123_- c btk_no bt9_0123456789.".to_owned();
        assert_eq!(redact(text, &secrets), "a *** b *** c btk_no ***.");
        for length in 1..secrets[0].len() {
            let (head, tail) = secrets[0].split_at(length);
            let is_part = |part: &str| part.len() >= PART;
            let found = redact(format!("x {head}"), &secrets);
            assert_eq!(found.ends_with("***"), is_part(head), "{found}");
            let found = redact(format!("{tail} x"), &secrets);
            assert_eq!(found.starts_with("***"), is_part(tail), "{found}");
        }
    }

    #[test]
    fn what_is_named_like_a_secret_is_not_shown() {
        assert_eq!(Data::named("apiToken", "x"), Data::new("***"));
        assert_eq!(Data::named("count", "x"), Data::new("x"));
    }
}
