//! `{{KEY}}` in the texts of `write_state` and `log` steps. One pass: what is put in is not read
//! again.

use serde_json::Value;

/// How a value appears in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Insert {
    AsIs,
    /// Control characters become visible, so a value cannot steer a terminal.
    Visible,
}

pub(crate) fn render<'a>(
    template: &str,
    insert: Insert,
    lookup: impl Fn(&str) -> Option<&'a Value>,
) -> String {
    let mut text = String::with_capacity(template.len());
    let mut rest = template;
    while let Some(open) = rest.find("{{") {
        let (before, from) = rest.split_at(open);
        text.push_str(before);
        let Some((key, after)) = key_at(from) else {
            // Not a place to fill: keep one brace and look again behind it.
            text.push('{');
            rest = &from[1..];
            continue;
        };
        let value = lookup(key).map(plain).unwrap_or_default();
        match insert {
            Insert::AsIs => text.push_str(&value),
            Insert::Visible => push_visible(&mut text, &value),
        }
        rest = after;
    }
    text.push_str(rest);
    text
}

/// The key of a place that begins at the start of `text`, and what follows the place.
fn key_at(text: &str) -> Option<(&str, &str)> {
    let inside = text.strip_prefix("{{")?;
    let (inside, after) = inside.split_once("}}")?;
    let key = inside.trim_matches([' ', '\t']);
    let named = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-');
    (!key.is_empty() && key.bytes().all(named)).then_some((key, after))
}

fn plain(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => value.to_string(),
    }
}

fn push_visible(text: &mut String, value: &str) {
    use std::fmt::Write;
    for letter in value.chars() {
        match letter {
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            _ if letter.is_control() => {
                write!(text, "\\x{:02x}", u32::from(letter)).expect("writing to a text cannot fail");
            }
            _ => text.push(letter),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn filled(template: &str, insert: Insert) -> String {
        let values: BTreeMap<&str, Value> = BTreeMap::from([
            ("host", json!("h")),
            ("port", json!(80)),
            ("on", json!(true)),
            ("list", json!([1, 2])),
            ("null", json!(null)),
            ("again", json!("{{host}}")),
            ("evil", json!("\u{1b}[2Jx\ny\u{9b}")),
        ]);
        render(template, insert, |key| values.get(key))
    }

    #[test]
    fn places_are_filled_once() {
        let table = [
            ("{{host}}:{{ port }}/x", "h:80/x"),
            ("[{{nope}}] {{a b}}", "[] {{a b}}"),
            ("{{on}} {{list}} <{{null}}>", "true [1,2] <>"),
            ("{{again}}", "{{host}}"),
            ("{{{host}}}", "{h}"),
            ("{{", "{{"),
            ("{{}}", "{{}}"),
            ("{{ host", "{{ host"),
        ];
        for (template, expected) in table {
            assert_eq!(filled(template, Insert::AsIs), expected, "{template}");
        }
    }

    #[test]
    fn control_characters_of_values_become_visible() {
        assert_eq!(filled("a\n{{evil}}", Insert::Visible), "a\n\\x1b[2Jx\\ny\\x9b");
    }

    proptest! {
        #[test]
        fn text_without_values_is_kept(template in "[^}]{0,60}") {
            prop_assert_eq!(filled(&template, Insert::AsIs), template);
        }

        #[test]
        fn no_value_brings_control_characters(value in ".{0,40}") {
            let value = Value::String(value);
            let text = render("{{k}}", Insert::Visible, |_| Some(&value));
            prop_assert!(!text.chars().any(char::is_control));
        }
    }
}
