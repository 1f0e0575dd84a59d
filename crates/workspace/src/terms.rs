//! Terms of the node and JSON of the clients, one into the other.

use beamtalk_etf::Term;
use beamtalk_wire::{ErrorBody, ErrorKind};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Number, Value};

/// Text of the node that is no UTF-8 is shown with replacement characters.
pub(crate) fn to_json(term: &Term) -> Value {
    match term {
        Term::Atom(name) => match name.as_str() {
            "true" => Value::Bool(true),
            "false" => Value::Bool(false),
            "nil" | "null" | "undefined" => Value::Null,
            name => name.into(),
        },
        Term::Integer(number) => (*number).into(),
        Term::BigInteger(number) => number.to_string().into(),
        Term::Float(number) => Number::from_f64(*number).map_or(Value::Null, Value::Number),
        Term::Binary(bytes) => text_of(bytes).into(),
        Term::Tuple(elements) | Term::List(elements) => elements.iter().map(to_json).collect(),
        Term::ImproperList(elements, tail) => {
            let mut all: Vec<Value> = elements.iter().map(to_json).collect();
            all.push(to_json(tail));
            all.into()
        }
        Term::Map(pairs) => Value::Object(
            pairs
                .iter()
                .map(|(key, value)| (key_text(key), to_json(value)))
                .collect(),
        ),
    }
}

/// What the node answered, as the type it should be.
pub(crate) fn typed<T: DeserializeOwned>(fields: Map<String, Value>) -> Result<T, ErrorBody> {
    serde_json::from_value(Value::Object(fields)).map_err(|cause| {
        let message = format!("the node answered what cannot be read: {cause}");
        ErrorBody::new(ErrorKind::InternalError, message)
    })
}

/// The fields of a map; empty for anything else.
pub(crate) fn to_object(term: &Term) -> Map<String, Value> {
    match to_json(term) {
        Value::Object(fields) => fields,
        _ => Map::new(),
    }
}

pub(crate) fn from_json(value: &Value) -> Term {
    match value {
        Value::Null => Term::atom("nil"),
        Value::Bool(true) => Term::atom("true"),
        Value::Bool(false) => Term::atom("false"),
        Value::Number(number) => match (number.as_i64(), number.as_f64()) {
            (Some(number), _) => Term::Integer(number),
            (None, Some(number)) => Term::Float(number),
            (None, None) => Term::atom("nil"),
        },
        Value::String(text) => Term::binary(text),
        Value::Array(elements) => Term::list(elements.iter().map(from_json)),
        Value::Object(fields) => from_object(fields),
    }
}

/// A request for the node.
pub(crate) fn of(request: &impl Serialize) -> Result<Term, ErrorBody> {
    let value = serde_json::to_value(request)
        .map_err(|cause| ErrorBody::new(ErrorKind::InternalError, cause.to_string()))?;
    Ok(from_json(&value))
}

fn from_object(fields: &Map<String, Value>) -> Term {
    Term::Map(
        fields
            .iter()
            .map(|(key, value)| (Term::binary(key), from_json(value)))
            .collect(),
    )
}

/// A map with binary keys.
pub(crate) fn map<const N: usize>(pairs: [(&str, Term); N]) -> Term {
    Term::Map(
        pairs
            .into_iter()
            .map(|(key, value)| (Term::binary(key), value))
            .collect(),
    )
}

fn key_text(key: &Term) -> String {
    match key {
        Term::Atom(name) => name.to_string(),
        Term::Binary(bytes) => text_of(bytes),
        other => format!("{other:?}"),
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    #[test]
    fn terms_become_the_json_they_stand_for() {
        let term = Term::Map(vec![
            (Term::atom("found"), Term::atom("true")),
            (Term::binary("name"), Term::binary("Lamp")),
            (Term::atom("kind"), Term::atom("class")),
            (Term::atom("doc"), Term::atom("nil")),
            (
                Term::atom("sizes"),
                Term::list([Term::Integer(1), Term::Float(2.5)]),
            ),
        ]);
        assert_eq!(
            to_json(&term),
            json!({"found": true, "name": "Lamp", "kind": "class", "doc": null, "sizes": [1, 2.5]})
        );
    }

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            ".{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 30, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::btree_map("[a-z]{1,4}", inner, 0..4)
                    .prop_map(|fields| Value::Object(fields.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn json_survives_the_way_through_terms(value in value()) {
            prop_assert_eq!(to_json(&from_json(&value)), value);
        }
    }
}
