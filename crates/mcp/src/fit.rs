//! Results within their size: long strings are cut at a character, long lists at an element, and the result says so.

use serde_json::{Map, Value};

/// The largest result.
pub(crate) const RESULT_BYTES: usize = 64 * 1024;
/// For what says that something was cut.
const ROOM_TO_SAY: usize = 20;

/// Members of an object that is no list of its own: such are cut before any is left out.
const FIELDS: usize = 32;
/// Members of others are rather left out than cut to less.
const MEMBER_BYTES: usize = 256;

/// Cut a result so that it fits, whatever it has in it; says if that was needed.
pub(crate) fn fit(result: &mut Map<String, Value>, limit: usize) -> bool {
    if size_of_fields(result) <= limit.saturating_sub(ROOM_TO_SAY) {
        return false;
    }
    cut_fields(result, limit.saturating_sub(ROOM_TO_SAY));
    result.insert("truncated".to_owned(), true.into());
    true
}

fn size_of(value: &Value) -> usize {
    match value {
        Value::Null => 4,
        Value::Bool(_) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => size_of_text(text),
        Value::Array(values) => 2 + values.iter().map(|value| size_of(value) + 1).sum::<usize>(),
        Value::Object(fields) => size_of_fields(fields),
    }
}

fn size_of_text(text: &str) -> usize {
    2 + text.bytes().map(size_of_letter).sum::<usize>()
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
    2 + fields.iter().map(size_of_field).sum::<usize>()
}

/// With the colon and the comma.
fn size_of_field((key, value): (&String, &Value)) -> usize {
    size_of_text(key) + 2 + size_of(value)
}

/// Cut a value to its room; says whether that can be done.
pub(crate) fn cut(value: &mut Value, room: usize) -> bool {
    if size_of(value) <= room {
        return true;
    }
    if room < 2 {
        return false;
    }
    match value {
        Value::String(text) => {
            let mut left = room - 2;
            let end = text.char_indices().find(|(_, letter)| {
                let mut bytes = [0; 4];
                let size = letter.encode_utf8(&mut bytes).bytes().map(size_of_letter).sum();
                let is_over = size > left;
                left = left.saturating_sub(size);
                is_over
            });
            let end = end.map_or(text.len(), |(place, _)| place);
            text.truncate(end);
        }
        Value::Array(values) => {
            let sizes: Vec<usize> = values.iter().map(|value| size_of(value) + 1).collect();
            // One that is most of it is cut, so that others stay.
            let (kept, most) = shares(&sizes, room - 2, (room - 2) / 4);
            values.truncate(kept);
            values.retain_mut(|value| cut(value, most.saturating_sub(1)));
        }
        Value::Object(fields) => cut_fields(fields, room),
        Value::Null | Value::Bool(_) | Value::Number(_) => return false,
    }
    true
}

fn cut_fields(fields: &mut Map<String, Value>, room: usize) {
    let room = room.saturating_sub(2);
    let sizes: Vec<usize> = fields.iter().map(size_of_field).collect();
    let least = (room / sizes.len().clamp(1, FIELDS)).min(MEMBER_BYTES);
    let (kept, most) = shares(&sizes, room, least);
    let mut number = 0;
    fields.retain(|key, value| {
        number += 1;
        let left = most.checked_sub(size_of_text(key) + 2);
        number <= kept && left.is_some_and(|left| cut(value, left))
    });
}

/// How many members from the first on are kept in a room if none is cut to less than `least`, and how much each may have.
fn shares(sizes: &[usize], room: usize, least: usize) -> (usize, usize) {
    let mut left = room;
    let fitting = sizes.iter().take_while(|size| {
        let needed = least.min(**size);
        let fits = needed <= left;
        left = left.saturating_sub(needed);
        fits
    });
    let kept = fitting.count();
    let mut sorted: Vec<usize> = sizes.iter().take(kept).copied().collect();
    sorted.sort_unstable();
    let mut left = room;
    for (place, size) in sorted.iter().enumerate() {
        let share = left / (kept - place);
        if *size > share {
            return (kept, share);
        }
        left -= size;
    }
    (kept, usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
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
    #[test]
    fn dictionaries_lose_entries_and_long_keys() {
        let many: Map<String, Value> = (0..3_000).map(|n| (format!("key{n}"), "v".into())).collect();
        let (_, result) = fitted(json!({"value": many, "text": "t".repeat(3_000), "ms": 1}));
        assert!(result["value"].as_object().expect("entries").len() > 5 && result["ms"] == 1);
        let (_, result) = fitted(json!({"value": {"k".repeat(9_000): 1, "b": 2}}));
        assert_eq!(result["value"], json!({"b": 2}));
        let bound = |n: u32| {
            (
                format!("v{n}"),
                json!({"text": "x".repeat(3_000), "class": "String"}),
            )
        };
        let (_, result) = fitted(json!({"bindings": (0..10).map(bound).collect::<Map<_, _>>()}));
        let bindings = result["bindings"].as_object().expect("bindings");
        assert!(bindings.len() == 10 && bindings.values().all(|one| one["class"] == "String"));
    }

    fn any() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any_number(),
            "[a-z\u{1}\"é]{0,600}".prop_map(Value::from)
        ];
        leaf.prop_recursive(5, 400, 40, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..40).prop_map(Value::from),
                proptest::collection::btree_map("[a-z\u{1}\"é]{0,400}", inner, 0..40)
                    .prop_map(|fields| fields.into_iter().collect()),
            ]
        })
    }

    fn any_number() -> impl Strategy<Value = Value> {
        proptest::num::i64::ANY.prop_map(Value::from)
    }

    proptest! {
        #[test]
        fn whatever_it_is_it_fits(value in any()) {
            prop_assert!(size_of(&value) >= value.to_string().len());
            let result = json!({"value": value});
            let room = 1_000 - ROOM_TO_SAY;
            let is_over = size_of(&result) > room;
            let (is_cut, result) = fitted(result);
            prop_assert_eq!(is_cut, is_over);
            prop_assert!(result.contains_key("value") || matches!(result.get("truncated"), Some(Value::Bool(true))));
        }
    }
}
