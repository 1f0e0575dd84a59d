//! Results within their size: long strings are cut at a character, long lists at an element, and the result says so.

use serde_json::{Map, Value};

/// The largest result.
pub(crate) const RESULT_BYTES: usize = 64 * 1024;

/// Cut a result until it fits; says if that was needed.
pub(crate) fn fit(result: &mut Map<String, Value>, limit: usize) -> bool {
    let mut is_cut = false;
    // What is cut loses at least a third each time.
    for _ in 0..64 {
        let size = size_of_fields(result);
        let room = limit.saturating_sub(20);
        if size <= room {
            break;
        }
        is_cut = true;
        let Some(largest) = result.values_mut().max_by_key(|value| size_of(value)) else {
            break;
        };
        shrink(largest, size - room);
    }
    if is_cut {
        result.insert("truncated".to_owned(), true.into());
    }
    is_cut
}

fn size_of(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(_) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => 2 + text.bytes().map(size_of_letter).sum::<usize>(),
        Value::Array(values) => 2 + values.iter().map(|value| size_of(value) + 1).sum::<usize>(),
        Value::Object(fields) => size_of_fields(fields),
    }
}

/// As a part of a JSON string.
fn size_of_letter(byte: u8) -> usize {
    match byte {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..=31 => 6,
        _ => 1,
    }
}

fn size_of_fields(fields: &Map<String, Value>) -> usize {
    let one = |(key, value): (&String, &Value)| key.len() + 4 + size_of(value);
    2 + fields.iter().map(one).sum::<usize>()
}

fn shrink(value: &mut Value, excess: usize) {
    match value {
        Value::String(text) => {
            let wanted = text.len().saturating_sub(excess.max(text.len() / 3));
            text.truncate(text.floor_char_boundary(wanted));
        }
        Value::Array(values) => {
            let all: usize = values.iter().map(size_of).sum();
            let largest = values.iter_mut().max_by_key(|value| size_of(value));
            match largest {
                // One element is most of it.
                Some(largest) if size_of(largest) * 2 > all => {
                    let is_whole = matches!(largest, Value::Null | Value::Bool(_) | Value::Number(_));
                    if is_whole {
                        values.pop();
                    } else {
                        shrink(largest, excess);
                    }
                }
                Some(_) => {
                    let mut gone = 0;
                    while gone < excess.max(all / 3) {
                        match values.pop() {
                            Some(value) => gone += size_of(&value),
                            None => break,
                        }
                    }
                }
                None => {}
            }
        }
        Value::Object(fields) => {
            if let Some(largest) = fields.values_mut().max_by_key(|value| size_of(value)) {
                shrink(largest, excess);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fitted(value: Value) -> (bool, Map<String, Value>) {
        let Value::Object(mut result) = value else {
            panic!("no object")
        };
        let is_cut = fit(&mut result, 1_000);
        assert!(Value::Object(result.clone()).to_string().len() <= 1_000);
        (is_cut, result)
    }

    #[test]
    fn a_string_has_the_size_of_its_json() {
        let text: String = (0..300).filter_map(char::from_u32).collect();
        let value = Value::from(text);
        assert_eq!(size_of(&value), value.to_string().len());
    }

    #[test]
    fn what_fits_stays() {
        let (is_cut, result) = fitted(json!({"a": "b", "list": [1, 2]}));
        assert!(!is_cut && result["list"] == json!([1, 2]));
    }

    #[test]
    fn strings_are_cut_at_a_character_and_lists_at_an_element() {
        let (is_cut, result) = fitted(json!({"text": "ä".repeat(2_000), "kept": 7}));
        assert!(is_cut && result["truncated"] == true && result["kept"] == 7);
        let (_, result) = fitted(json!({"rows": (0..500).map(|n| json!({"n": n})).collect::<Vec<_>>()}));
        let rows = result["rows"].as_array().expect("a list");
        assert!(rows.len() > 10 && rows[0] == json!({"n": 0}));
        let (_, result) = fitted(json!({"rows": [{"text": "\u{1}".repeat(5_000)}, {"text": "b"}]}));
        assert_eq!(result["rows"][1], json!({"text": "b"}));
        fitted(json!({"deep": {"deep": {"deep": ["x".repeat(9_000), ["y".repeat(9_000)]]}}}));
    }
}
