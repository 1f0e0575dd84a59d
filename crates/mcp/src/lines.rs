//! Lines from a stream, each within its limit. What is too long is skipped, not kept.

use std::io::{BufRead, ErrorKind};

use serde_json::Value;

use crate::message::LINE_LIMIT;
use crate::passing_id::PassingId;

#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    Text(Vec<u8>),
    /// Its id, if it has one.
    TooLong(Option<Value>),
}

pub struct LineReader<R> {
    source: R,
}

impl<R: BufRead> LineReader<R> {
    pub fn new(source: R) -> Self {
        Self { source }
    }

    /// The next line that is not blank; `None` at the end.
    pub fn read(&mut self) -> std::io::Result<Option<Line>> {
        loop {
            let (line, long, is_end) = self.piece()?;
            if let Some(id) = long {
                return Ok(Some(Line::TooLong(id.found())));
            }
            if !line.iter().all(u8::is_ascii_whitespace) {
                return Ok(Some(Line::Text(line)));
            }
            if is_end {
                return Ok(None);
            }
        }
    }

    /// What stands before the next line feed: its text, or only its id where it is too long; whether the stream ends with it.
    fn piece(&mut self) -> std::io::Result<(Vec<u8>, Option<PassingId>, bool)> {
        let mut line = Vec::new();
        let mut long: Option<PassingId> = None;
        let is_end = loop {
            let bytes = match self.source.fill_buf() {
                Ok(bytes) => bytes,
                Err(cause) if cause.kind() == ErrorKind::Interrupted => continue,
                Err(cause) => return Err(cause),
            };
            if bytes.is_empty() {
                break true;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let piece = bytes.get(..end.unwrap_or(bytes.len())).unwrap_or_default();
            if let Some(id) = &mut long {
                id.pass(piece);
            } else {
                line.extend_from_slice(piece);
                if line.len() > LINE_LIMIT {
                    long.insert(PassingId::default()).pass(&std::mem::take(&mut line));
                }
            }
            let used = end.map_or(bytes.len(), |end| end + 1);
            self.source.consume(used);
            if end.is_some() {
                break false;
            }
        };
        // Some write the mark before each message.
        if let Some(rest) = line.strip_prefix(b"\xef\xbb\xbf") {
            line = rest.to_vec();
        }
        Ok((line, long, is_end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(text: &[u8]) -> Vec<Line> {
        let mut reader = LineReader::new(text);
        std::iter::from_fn(|| reader.read().expect("memory")).collect()
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
