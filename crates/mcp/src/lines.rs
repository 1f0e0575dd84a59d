//! Lines from a stream, each within its limit. What is too long is skipped, not kept.

use serde_json::Value;

use crate::message::LINE_LIMIT;
use crate::passing_id::PassingId;

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(Vec<u8>),
    /// Its id, if it has one.
    TooLong(Option<Value>),
}

/// Cuts what comes piece by piece into lines; blank ones are left out.
#[derive(Default)]
pub struct LineReader {
    line: Vec<u8>,
    /// Of a line that is too long only the id is looked for.
    long: Option<PassingId>,
}

impl LineReader {
    /// The lines that end within these bytes.
    pub fn take(&mut self, bytes: &[u8]) -> Vec<Line> {
        let mut pieces = bytes.split(|byte| *byte == b'\n');
        let rest = pieces.next_back().unwrap_or_default();
        let mut found = Vec::new();
        for piece in pieces {
            self.keep(piece);
            found.extend(self.end());
        }
        self.keep(rest);
        found
    }

    /// The line that the stream ends with.
    pub fn end(&mut self) -> Option<Line> {
        let line = std::mem::take(&mut self.line);
        if let Some(id) = self.long.take() {
            return Some(Line::TooLong(id.found()));
        }
        // Some write the mark before each message.
        let line = match line.strip_prefix(b"\xef\xbb\xbf") {
            Some(rest) => rest.to_vec(),
            None => line,
        };
        let is_blank = line.iter().all(u8::is_ascii_whitespace);
        (!is_blank).then_some(Line::Text(line))
    }

    fn keep(&mut self, piece: &[u8]) {
        if let Some(id) = &mut self.long {
            return id.pass(piece);
        }
        self.line.extend_from_slice(piece);
        if self.line.len() > LINE_LIMIT {
            let line = std::mem::take(&mut self.line);
            self.long.insert(PassingId::default()).pass(&line);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines of a text, which are the same in whatever pieces it comes.
    fn lines(text: &[u8]) -> Vec<Line> {
        let cut = |length: usize| {
            let mut reader = LineReader::default();
            let mut found: Vec<Line> = text.chunks(length).flat_map(|piece| reader.take(piece)).collect();
            found.extend(reader.end());
            found
        };
        let whole = cut(usize::MAX);
        for length in [1, 7, 64 * 1024] {
            assert_eq!(cut(length), whole, "in pieces of {length}");
        }
        whole
    }

    #[test]
    fn blank_lines_marks_and_carriage_returns_do_not_matter() {
        let found = lines(b"\xef\xbb\xbf{}\r\n\n  \r\n\xef\xbb\xbf[1]");
        assert_eq!(found, [Line::Text(b"{}\r".to_vec()), Line::Text(b"[1]".to_vec())]);
    }

    #[test]
    fn a_line_that_is_too_long_is_skipped_and_the_next_one_read() {
        let mut text = vec![b'x'; 3 * LINE_LIMIT];
        text.extend_from_slice(b"\n{}\n");
        assert_eq!(lines(&text), [Line::TooLong(None), Line::Text(b"{}".to_vec())]);
    }

    /// The clients of npm write the id last; without it they would wait for an answer until their patience ends.
    #[test]
    fn the_id_of_a_line_that_is_too_long_is_found_at_either_end() {
        let long = "x".repeat(2 * LINE_LIMIT);
        for text in [
            format!(r#"{{"jsonrpc":"2.0","id":4,"params":{{"code":"{long}"}}}}"#),
            format!(r#"{{"params":{{"code":"{long}","id":9}},"jsonrpc":"2.0","id":4}}"#),
        ] {
            assert_eq!(lines(text.as_bytes()), [Line::TooLong(Some(4.into()))]);
        }
    }

    #[test]
    fn the_longest_line_is_taken() {
        let mut text = vec![b'x'; LINE_LIMIT];
        text.push(b'\n');
        assert!(matches!(&lines(&text)[..], [Line::Text(_)]));
    }
}
