//! What must never be sent. Every line to a client passes here as the last thing, so that no tool, resource or message of an
//! error has to think of it; and since texts are cut in many places before, parts of a secret count too.

use std::cell::RefCell;
use std::rc::Rc;

use serde_json::Value;

/// So many letters of a secret are one still.
const PART: usize = 8;
/// What tokens begin with.
const TOKENS: [&str; 2] = ["btk_", "bt9_"];
/// What stands shortly before a token of the loop's events, which is nothing but so many hexadecimal digits.
const BEFORE_DIGITS: [&str; 2] = ["EVENTS_TOKEN", "Bearer "];
const DIGITS: usize = 64;
const SHORTLY: usize = 16;
const MASK: &str = "***";
/// Ids that the client chose: it would not know its own call again.
const OF_THE_CLIENT: [&str; 3] = ["id", "progressToken", "requestId"];

/// The secrets that are known, shared by all that writes to clients.
#[derive(Clone, Debug, Default)]
pub struct Secrets(Rc<RefCell<Parts>>);

/// All parts of `PART` letters, in order, and a table that says of most texts that they are none.
#[derive(Default)]
struct Parts {
    sorted: Vec<u64>,
    table: [u64; 16],
}

impl std::fmt::Debug for Parts {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Parts(redacted)")
    }
}

/// Where a part is in the table.
fn place(part: u64) -> (usize, u64) {
    // Fibonacci's multiplier spreads neighbours.
    let spread = part.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54;
    ((spread >> 6) as usize, 1 << (spread & 63))
}

/// The parts of a text, each with where it ends.
fn parts(text: &str) -> impl Iterator<Item = (usize, u64)> {
    let mut last = 0;
    text.bytes().enumerate().filter_map(move |(index, byte)| {
        last = last << 8 | u64::from(byte);
        (index + 1 >= PART).then_some((index + 1, last))
    })
}

impl Parts {
    fn has(&self, part: u64) -> bool {
        let (word, bit) = place(part);
        self.table.get(word).is_some_and(|word| word & bit != 0) && self.sorted.binary_search(&part).is_ok()
    }

    /// Whether something secret may be in a text.
    fn may_be_in(&self, text: &str) -> bool {
        parts(text).any(|(_, part)| self.has(part))
            || TOKENS
                .iter()
                .chain(&BEFORE_DIGITS)
                .any(|prefix| text.contains(prefix))
    }

    fn masked(&self, text: &str) -> String {
        let mut kept = String::with_capacity(text.len());
        let mut copied = 0;
        for (end, part) in parts(text) {
            if !self.has(part) {
                continue;
            }
            // What overlaps or touches what was found before belongs to it.
            let start = end - PART;
            // Texts are JSON in others: a letter behind a backslash is a part of that.
            let start = start + usize::from(text.get(..start).is_some_and(|before| before.ends_with('\\')));
            if copied == 0 || start > copied {
                kept.push_str(text.get(copied..start).unwrap_or_default());
                kept.push_str(MASK);
            }
            copied = end;
        }
        kept.push_str(text.get(copied..).unwrap_or_default());
        TOKENS
            .iter()
            .fold(without_digits(kept), |text, prefix| without_tokens(text, prefix))
    }

    fn mask(&self, value: &mut Value) {
        match value {
            Value::String(text) if self.may_be_in(text) => *text = self.masked(text),
            Value::Array(values) => values.iter_mut().for_each(|value| self.mask(value)),
            Value::Object(fields) => {
                for (name, value) in fields.iter_mut() {
                    if !OF_THE_CLIENT.contains(&name.as_str()) {
                        self.mask(value);
                    }
                }
                if fields.keys().any(|name| self.may_be_in(name)) {
                    let named = std::mem::take(fields).into_iter();
                    *fields = named.map(|(name, value)| (self.masked(&name), value)).collect();
                }
            }
            Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
}

/// Without the tokens that are known by what stands before them.
fn without_digits(mut text: String) -> String {
    for before in BEFORE_DIGITS {
        let mut from = 0;
        while let Some(place) = text.get(from..).and_then(|rest| rest.find(before)) {
            from += place + before.len();
            let rest = text.get(from..).unwrap_or_default().as_bytes();
            let is_digit = |byte: &u8| byte.is_ascii_hexdigit();
            let Some(start) = rest.iter().take(SHORTLY).position(is_digit) else {
                continue;
            };
            let length = rest.iter().skip(start).take_while(|byte| is_digit(byte)).count();
            if length >= DIGITS {
                text.replace_range(from + start..from + start + length, MASK);
            }
        }
    }
    text
}

fn without_tokens(text: String, prefix: &str) -> String {
    if !text.contains(prefix) {
        return text;
    }
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.as_str();
    while let Some(place) = rest.find(prefix) {
        let (before, found) = rest.split_at(place);
        kept.push_str(before);
        let body = found.get(prefix.len()..).unwrap_or_default();
        let length = body
            .find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_' || letter == '-'))
            .unwrap_or(body.len());
        // A few letters are a word and no token.
        if length >= PART {
            kept.push_str(MASK);
            rest = body.get(length..).unwrap_or_default();
        } else {
            kept.push_str(prefix);
            rest = body;
        }
    }
    kept.push_str(rest);
    kept
}

impl Secrets {
    /// These are the secrets from now on.
    pub fn learn<'a>(&self, secrets: impl IntoIterator<Item = &'a str>) {
        let mut learned = Parts::default();
        for (_, part) in secrets
            .into_iter()
            .filter(|secret| secret.is_ascii())
            .flat_map(parts)
        {
            learned.sorted.push(part);
            let (word, bit) = place(part);
            if let Some(word) = learned.table.get_mut(word) {
                *word |= bit;
            }
        }
        learned.sorted.sort_unstable();
        *self.0.borrow_mut() = learned;
    }

    /// A message without secrets, in its texts and names.
    pub(crate) fn leave_out(&self, line: String) -> String {
        let parts = self.0.borrow();
        if !parts.may_be_in(&line) {
            return line;
        }
        match serde_json::from_str::<Value>(&line) {
            Ok(mut message) => {
                parts.mask(&mut message);
                message.to_string()
            }
            Err(_) => parts.masked(&line),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COOKIE: &str = "q3Zt7_VxN-0dKmYp5sWcR8bLfHaJ2uEoTgXi4Q9yMzk";

    fn known() -> Secrets {
        let secrets = Secrets::default();
        secrets.learn([COOKIE]);
        secrets
    }

    fn masked(text: &str) -> String {
        let line = known().leave_out(serde_json::json!({ "text": text }).to_string());
        let message: Value = serde_json::from_str(&line).expect("JSON");
        message["text"].as_str().expect("a text").to_owned()
    }

    /// A token of the loop looks like the name of a text, so it is known by what stands before it.
    #[test]
    fn tokens_of_events_are_left_out() {
        let token = "0123456789abcdef".repeat(4);
        for (text, shown) in [
            (
                format!("DEVLOOP_EVENTS_TOKEN={token}\nHOME=/x"),
                "DEVLOOP_EVENTS_TOKEN=***\nHOME=/x",
            ),
            (
                format!("{{\"DEVLOOP_EVENTS_TOKEN\": \"{token}\"}} DEVLOOP_EVENTS_TOKEN => {token}"),
                "{\"DEVLOOP_EVENTS_TOKEN\": \"***\"} DEVLOOP_EVENTS_TOKEN => ***",
            ),
            (
                format!("Authorization: Bearer {token}."),
                "Authorization: Bearer ***.",
            ),
            (
                format!("sha256 {token} ends EVENTS_TOKEN"),
                &format!("sha256 {token} ends EVENTS_TOKEN"),
            ),
            (
                "EVENTS_TOKEN=abc é Bearer é".to_owned(),
                "EVENTS_TOKEN=abc é Bearer é",
            ),
        ] {
            assert_eq!(masked(&text), shown);
        }
    }

    #[test]
    fn secrets_and_tokens_are_left_out() {
        let text = format!("a {COOKIE} b btk_abcDEF0123_- c btk_no bt9_0123456789.{COOKIE}{COOKIE}");
        assert_eq!(masked(&text), "a *** b *** c btk_no ***.***");
        assert_eq!(masked(COOKIE), "***");
    }

    #[test]
    fn names_are_texts_too_and_ids_of_the_client_stay() {
        let line = serde_json::json!({"id": "btk_0123456789", "result": {format!("a {COOKIE}"): [{"btk_abcDEF0123": COOKIE}]}});
        let expected = r#"{"id":"btk_0123456789","result":{"a ***":[{"***":"***"}]}}"#;
        let found: Value = serde_json::from_str(&known().leave_out(line.to_string())).expect("JSON");
        assert_eq!(found, serde_json::from_str::<Value>(expected).expect("JSON"));
    }

    #[test]
    fn what_was_learned_before_is_forgotten() {
        let secrets = known();
        secrets.learn(["another-secret-of-some-length"]);
        assert_eq!(
            secrets.leave_out(format!("\"{COOKIE}\"")),
            format!("\"{COOKIE}\"")
        );
    }

    proptest! {
        /// Wherever a text was cut, and whatever stands beside it, no part of a secret is left, and nothing else is lost.
        #[test]
        fn no_part_is_left(before in "[ -~\n\u{e9}\u{1f600}]{0,20}", after in "[ -~\n\u{e9}]{0,20}", from in 0..COOKIE.len(), length in 0..COOKIE.len()) {
            let part = COOKIE.get(from..(from + length).min(COOKIE.len())).expect("ASCII");
            let shown = masked(&format!("{before}{part}{after}"));
            let is_left = COOKIE.as_bytes().windows(PART).any(|window| {
                shown.as_bytes().windows(PART).any(|shown| shown == window)
            });
            prop_assert!(!is_left, "{shown}");
            if part.len() < PART && !format!("{before}{after}").contains("bt") {
                prop_assert!(shown.contains(part));
            }
        }
    }
}
