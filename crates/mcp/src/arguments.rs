//! Arguments against the schema that was published for them. The schemas are our own and use a handful of words of
//! JSON Schema: `type`, `properties`, `required`, `enum`, `items` and limits; these are what is understood here.

use beamtalk_wire::{ErrorBody, ErrorKind};
use serde_json::{Map, Value};

/// The first thing that is wrong with the arguments of a tool.
pub(crate) fn check(schema: &Value, arguments: &Map<String, Value>) -> Result<(), ErrorBody> {
    object(schema, arguments, "")
}

fn object(schema: &Value, given: &Map<String, Value>, path: &str) -> Result<(), ErrorBody> {
    let none = Map::new();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    for (name, value) in given {
        let path = format!("{path}/{name}");
        match properties.get(name) {
            Some(schema) => check_value(schema, value, &path)?,
            None => return Err(unknown(name, &path, properties)),
        }
    }
    for name in schema["required"].as_array().into_iter().flatten() {
        let name = name.as_str().unwrap_or_default();
        if !given.contains_key(name) {
            let wanted = properties.get(name).map_or("a value".to_owned(), expected);
            return Err(wrong(
                &format!("{path}/{name}"),
                &wanted,
                "nothing",
                format!("the argument '{name}' is missing"),
            ));
        }
    }
    Ok(())
}

fn check_value(schema: &Value, value: &Value, path: &str) -> Result<(), ErrorBody> {
    let fits = match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => true,
    };
    let has_place = |allowed: &Vec<Value>| allowed.contains(value);
    if !fits || !schema["enum"].as_array().is_none_or(has_place) {
        return Err(misfit(schema, value, path));
    }
    let length = |text: &str| text.chars().count() as u64;
    let is_within = match value {
        Value::String(text) => {
            schema["maxLength"]
                .as_u64()
                .is_none_or(|most| length(text) <= most)
                && schema["minLength"]
                    .as_u64()
                    .is_none_or(|least| length(text) >= least)
        }
        Value::Array(values) => {
            for (number, value) in values.iter().enumerate() {
                check_value(&schema["items"], value, &format!("{path}/{number}"))?;
            }
            schema["maxItems"]
                .as_u64()
                .is_none_or(|most| values.len() as u64 <= most)
        }
        Value::Number(number) => {
            let number = number.as_i64().unwrap_or(i64::MAX);
            schema["maximum"].as_i64().is_none_or(|most| number <= most)
                && schema["minimum"].as_i64().is_none_or(|least| number >= least)
        }
        _ => true,
    };
    if is_within {
        Ok(())
    } else {
        Err(misfit(schema, value, path))
    }
}

/// What a schema wants, in words.
fn expected(schema: &Value) -> String {
    if let Some(allowed) = schema["enum"].as_array() {
        let words: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
        return format!("one of {}", words.join(", "));
    }
    let limit = |key: &str| schema[key].as_u64().filter(|limit| *limit > 0);
    match schema["type"].as_str() {
        Some("string") => within("a string", limit("minLength"), limit("maxLength"), " characters"),
        Some("integer") => within("an integer", limit("minimum"), limit("maximum"), ""),
        Some("array") => within("an array", None, limit("maxItems"), " elements"),
        Some("boolean") => "true or false".to_owned(),
        Some("object") => "an object".to_owned(),
        _ => "a value".to_owned(),
    }
}

fn within(what: &str, least: Option<u64>, most: Option<u64>, unit: &str) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("{what} of {least} to {most}{unit}"),
        (Some(least), None) => format!("{what} of at least {least}{unit}"),
        (None, Some(most)) => format!("{what} of at most {most}{unit}"),
        (None, None) => what.to_owned(),
    }
}

fn misfit(schema: &Value, value: &Value, path: &str) -> ErrorBody {
    let wanted = expected(schema);
    let got = match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "boolean".to_owned(),
        Value::Number(number) => format!("number {number}"),
        Value::String(text) if text.chars().count() > 40 => {
            format!("string of {} characters", text.chars().count())
        }
        Value::String(text) => format!("string {:?}", beamtalk_wire::escape(text)),
        Value::Array(values) => format!("array of {}", values.len()),
        Value::Object(_) => "object".to_owned(),
    };
    let name = path.trim_start_matches('/');
    wrong(
        path,
        &wanted,
        &got,
        format!("the argument '{name}' must be {wanted}"),
    )
}

fn unknown(name: &str, path: &str, properties: &Map<String, Value>) -> ErrorBody {
    let name = beamtalk_wire::escape(&name.chars().take(64).collect::<String>());
    let error = wrong(
        path,
        "a known argument",
        "an unknown one",
        format!("there is no argument '{name}'"),
    );
    match nearest(&name, properties.keys().map(String::as_str)) {
        Some(close) => error
            .hint(format!("did you mean '{close}'?"))
            .detail("nearest", close),
        None => {
            let known: Vec<&str> = properties.keys().map(String::as_str).collect();
            error.hint(format!("known: {}", known.join(", ")))
        }
    }
}

fn wrong(path: &str, expected: &str, got: &str, message: String) -> ErrorBody {
    ErrorBody::new(ErrorKind::InvalidParameter, message)
        .detail("path", path)
        .detail("expected", expected)
        .detail("got", got)
}

/// The name that is meant, if one is close.
pub(crate) fn nearest<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let room = (name.chars().count() / 3).max(2);
    // Capitals alone are the smallest difference.
    let small = name.to_lowercase();
    known
        .map(|known| {
            let distance = strsim::damerau_levenshtein(&small, &known.to_lowercase());
            (distance, strsim::damerau_levenshtein(name, known), known)
        })
        .filter(|(distance, ..)| *distance <= room)
        .min()
        .map(|(_, _, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fault(arguments: Value) -> (String, Value) {
        let schema = json!({
            "type": "object",
            "properties": {
                "code": {"type": "string", "maxLength": 5},
                "timeout_ms": {"type": "integer", "minimum": 0, "maximum": 100},
                "side": {"type": "string", "enum": ["instance", "class"]},
                "path": {"type": "array", "items": {"type": "string"}},
                "trace": {"type": "boolean"},
            },
            "required": ["code"],
        });
        match check(&schema, arguments.as_object().expect("an object")) {
            Ok(()) => (String::new(), Value::Null),
            Err(error) => (
                error.details["path"].as_str().unwrap_or_default().to_owned(),
                error.details.get("nearest").cloned().unwrap_or_default(),
            ),
        }
    }

    #[test]
    fn the_argument_that_is_wrong_is_named() {
        for (arguments, path) in [
            (
                json!({"code": "1", "timeout_ms": 100, "side": "class", "path": ["a"]}),
                "",
            ),
            (json!({"code": 5}), "/code"),
            (json!({"code": null}), "/code"),
            (json!({}), "/code"),
            (json!({"code": "123456"}), "/code"),
            (json!({"code": "1", "timeout_ms": "9"}), "/timeout_ms"),
            (json!({"code": "1", "timeout_ms": 1.5}), "/timeout_ms"),
            (json!({"code": "1", "timeout_ms": -1}), "/timeout_ms"),
            (json!({"code": "1", "timeout_ms": 101}), "/timeout_ms"),
            (json!({"code": "1", "side": "left"}), "/side"),
            (json!({"code": "1", "path": ["a", 1]}), "/path/1"),
            (json!({"code": "1", "trace": "true"}), "/trace"),
        ] {
            assert_eq!(fault(arguments.clone()).0, path, "{arguments}");
        }
        assert_eq!(fault(json!({"cod": "1"})), ("/cod".to_owned(), json!("code")));
    }
}
