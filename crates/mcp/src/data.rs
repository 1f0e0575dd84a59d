//! Text that somebody else wrote: values, output, sources, messages. It is shown so that nothing in it is invisible.

use beamtalk_wire::escape;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::named_secrets;

/// A string that is data and no instruction. Its schema says so.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Data(String);

impl Data {
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(escape(text.as_ref()))
    }

    /// The value of something with a name, which may say that it is secret, as may names inside of it.
    pub(crate) fn named(name: &str, text: impl AsRef<str>) -> Self {
        Self::new(named_secrets::named(name, text.as_ref()))
    }

    /// What code wrote.
    pub(crate) fn output(text: &str) -> Self {
        Self::new(named_secrets::masked_output(text))
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
    fn what_is_named_like_a_secret_is_not_shown() {
        assert_eq!(Data::named("apiToken", "x"), Data::new("***"));
        assert_eq!(Data::named("count", "x"), Data::new("x"));
    }
}
