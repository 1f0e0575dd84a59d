//! The id of a message that cannot be read or is too long to be kept, found while its bytes pass by: some clients write
//! it first, others last. Who gets no answer under the id waits until their patience ends.

use serde_json::Value;

/// The longest id that is found.
const LONGEST: usize = 4 * 1024;

#[derive(Debug, Default)]
pub(crate) struct PassingId {
    depth: usize,
    is_text: bool,
    is_escaped: bool,
    /// What stands in the outermost object since the last `{`, `:` or `,`.
    part: Vec<u8>,
    /// It belongs to the name `id`.
    is_id: bool,
    is_over: bool,
    found: Option<Value>,
}

impl PassingId {
    /// That of a whole message.
    pub(crate) fn of(text: &[u8]) -> Option<Value> {
        let mut id = Self::default();
        id.pass(text);
        id.found()
    }

    pub(crate) fn pass(&mut self, bytes: &[u8]) {
        for byte in bytes {
            if self.is_over {
                return;
            }
            self.step(*byte);
        }
    }

    pub(crate) fn found(self) -> Option<Value> {
        self.found
    }

    fn step(&mut self, byte: u8) {
        if self.is_text {
            self.keep(byte);
            match byte {
                _ if self.is_escaped => self.is_escaped = false,
                b'\\' => self.is_escaped = true,
                b'"' => self.is_text = false,
                _ => {}
            }
            return;
        }
        match (byte, self.depth) {
            // A batch has no id of its own.
            (b'[', 0) => self.is_over = true,
            (b'{' | b'[', _) => self.depth += 1,
            (b'}' | b']', 0 | 1) => {
                self.end_member();
                self.is_over = true;
            }
            (b'}' | b']', _) => self.depth -= 1,
            (b':', 1) => {
                self.is_id = self.part.trim_ascii() == b"\"id\"";
                self.part.clear();
            }
            (b',', 1) => self.end_member(),
            _ => {
                self.is_text = byte == b'"';
                self.keep(byte);
            }
        }
    }

    fn keep(&mut self, byte: u8) {
        if self.depth == 1 && self.part.len() <= LONGEST {
            self.part.push(byte);
        }
    }

    fn end_member(&mut self) {
        if self.is_id {
            let id: Option<Value> = serde_json::from_slice(&self.part).ok();
            self.found = id.filter(|id| id.is_string() || id.is_i64() || id.is_u64());
            self.is_over = true;
        }
        self.part.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn found(text: &str) -> Option<Value> {
        let mut id = PassingId::default();
        id.pass(text.as_bytes());
        id.found()
    }

    #[test]
    fn the_id_is_that_of_the_message_itself() {
        for (text, wanted) in [
            (
                r#"{"jsonrpc":"2.0", "id" : 4 ,"method":"a","params":{"x":"aaaa"#,
                Some(json!(4)),
            ),
            (r#"{"id":"a\"b","x":"#, Some(json!("a\"b"))),
            (
                r#"{"params":{"id":4,"x":[{"id":5}]},"method":"id","id":6}"#,
                Some(json!(6)),
            ),
            (r#"{"params":{"id":4},"x":"#, None),
            (r#"{"x":"id","id":[1],"id":2}"#, None),
            (r#"{"x":"\"id\":5,","y":1}"#, None),
            (r#"{"id":1.5}"#, None),
            (r#"{"id":null}"#, None),
            (r#"[{"id":1}]"#, None),
            (r#"{"id":7"#, None),
        ] {
            assert_eq!(found(text), wanted, "{text}");
        }
        assert_eq!(found(&format!(r#"{{"id":"{}"}}"#, "x".repeat(LONGEST))), None);
    }

    proptest! {
        #[test]
        fn it_does_not_matter_how_the_bytes_are_cut(bytes in proptest::collection::vec(any::<u8>(), 0..300), cut in 0_usize..300) {
            let (mut whole, mut cut_id) = (PassingId::default(), PassingId::default());
            whole.pass(&bytes);
            let (head, rest) = bytes.split_at(cut.min(bytes.len()));
            cut_id.pass(head);
            cut_id.pass(rest);
            prop_assert_eq!(whole.found(), cut_id.found());
        }

        #[test]
        fn any_message_keeps_its_id(id in any::<i64>(), text in ".*", is_first in any::<bool>()) {
            let (id, text) = (json!(id), json!({"x": [text]}));
            let line = if is_first {
                format!(r#"{{"id":{id},"params":{text}}}"#)
            } else {
                format!(r#"{{"params":{text},"id":{id}}}"#)
            };
            prop_assert_eq!(found(&line), Some(id));
        }
    }
}
