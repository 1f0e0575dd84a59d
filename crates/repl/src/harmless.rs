//! Text nobody vouches for, as a terminal may be sent it.

use std::io::{IsTerminal, Write};

use serde_json::Value;

/// What a terminal may be sent of such a text: a session that writes control
/// sequences into a message or its output must not steer the terminal of who reads it.
pub fn harmless(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        let mut letters = chunk.valid().chars().peekable();
        while let Some(letter) = letters.next() {
            match letter {
                '\n' | '\t' => shown.push(letter),
                // The end of a line as terminals write it.
                '\r' if letters.peek() == Some(&'\n') => {}
                letter if letter.is_control() => {
                    shown.extend(format!("\\x{:02x}", u32::from(letter)).chars());
                }
                letter => shown.push(letter),
            }
        }
        for byte in chunk.invalid() {
            shown.extend(format!("\\x{byte:02x}").chars());
        }
    }
    shown
}

/// Does a text in this value steer the terminal, or turn the direction of what follows it?
pub fn steers(value: &Value) -> bool {
    match value {
        Value::String(text) => text.contains(steering),
        Value::Array(items) => items.iter().any(steers),
        Value::Object(fields) => fields.values().any(steers),
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
    }
}

/// The value with such letters written out.
pub fn value(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains(steering) => {
            let letters = text.chars();
            let shown = letters.map(|letter| {
                if steering(letter) {
                    format!("\\x{:02X}", u32::from(letter))
                } else {
                    letter.to_string()
                }
            });
            Value::String(shown.collect())
        }
        Value::Array(items) => items.into_iter().map(self::value).collect(),
        Value::Object(fields) => {
            let fields = fields.into_iter();
            Value::Object(fields.map(|(key, field)| (key, self::value(field))).collect())
        }
        other => other,
    }
}

fn steering(letter: char) -> bool {
    let is_direction = matches!(letter, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    is_direction || letter.is_control() && !matches!(letter, '\n' | '\t')
}

/// Standard output for bytes that come in pieces: as they are, or harmless where it is a terminal.
pub struct Sink<W> {
    out: W,
    is_terminal: bool,
    /// The beginning of a letter, or of the end of a line, whose rest is in the next piece.
    begun: Vec<u8>,
}

impl Sink<std::io::Stdout> {
    pub fn stdout() -> Self {
        let out = std::io::stdout();
        let is_terminal = out.is_terminal();
        Self::new(out, is_terminal)
    }
}

impl<W: Write> Sink<W> {
    fn new(out: W, is_terminal: bool) -> Self {
        Self {
            out,
            is_terminal,
            begun: Vec::new(),
        }
    }

    /// Write a piece; all that can be known of it is out afterwards.
    pub fn piece(&mut self, bytes: &[u8]) -> std::io::Result<()> {
        if self.is_terminal {
            self.begun.extend_from_slice(bytes);
            let rest = self.begun.split_off(self.begun.len() - begun(&self.begun));
            let whole = std::mem::replace(&mut self.begun, rest);
            self.out.write_all(harmless(&whole).as_bytes())?;
        } else {
            self.out.write_all(bytes)?;
        }
        self.out.flush()
    }

    /// What was begun has no more to come.
    pub fn end(&mut self) -> std::io::Result<()> {
        let rest = std::mem::take(&mut self.begun);
        self.out.write_all(harmless(&rest).as_bytes())?;
        self.out.flush()
    }
}

/// How many bytes at the end are a part of something longer: at most three of a letter, or a return.
fn begun(bytes: &[u8]) -> usize {
    if bytes.last() == Some(&b'\r') {
        return 1;
    }
    (1..=3.min(bytes.len()))
        .find(|length| {
            let tail = bytes.get(bytes.len() - length..).unwrap_or_default();
            // An error without a length is an end that came too soon.
            tail.first().is_some_and(|byte| *byte >= 0xc2)
                && std::str::from_utf8(tail).is_err_and(|error| error.error_len().is_none())
        })
        .unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{Sink, harmless};

    #[test]
    fn control_characters_are_shown_and_not_sent() {
        let text = "a\tb\r\n\x1b]0;x\x07\r\x7f\u{9b}ü".as_bytes();
        assert_eq!(harmless(text), "a\tb\n\\x1b]0;x\\x07\\x0d\\x7f\\x9bü");
        assert_eq!(harmless(b"\x9b1m"), "\\x9b1m");
    }

    fn shown(pieces: &[&[u8]], is_terminal: bool) -> Vec<u8> {
        let mut out = Vec::new();
        let mut sink = Sink::new(&mut out, is_terminal);
        for piece in pieces {
            sink.piece(piece).unwrap();
        }
        sink.end().unwrap();
        out
    }

    #[test]
    fn pieces_show_what_the_whole_does() {
        let text = [
            b"a\r\n\x1b[2J\r",
            "ü€😀".as_bytes(),
            b"\xc3\r\xf0\x9f\n\xff\xe2\x82",
        ]
        .concat();
        for cut in 0..=text.len() {
            for other in cut..=text.len() {
                let pieces = [&text[..cut], &text[cut..other], &text[other..]];
                assert_eq!(
                    shown(&pieces, true),
                    harmless(&text).into_bytes(),
                    "{cut} {other}"
                );
                assert_eq!(shown(&pieces, false), text);
            }
        }
    }
}
