//! Bytes to lines, as a terminal would show them: `\n`, `\r` and `\r\n` end a line.
//!
//! A line longer than [`LINE_LIMIT`] is handed on in pieces, so memory stays bounded whatever a
//! program prints. Text is decoded only once a piece is complete, so a character that arrives in
//! two reads stays whole.

/// The longest piece handed on at once, in bytes.
pub const LINE_LIMIT: usize = 64 * 1024;

/// One line, or one piece of a line that is longer than the limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The text, without its line end; bytes that are not UTF-8 became U+FFFD.
    pub text: String,
    /// True for every piece of a long line but the first.
    pub continued: bool,
}

/// Collects bytes and gives lines.
#[derive(Debug, Default)]
pub struct LineSplitter {
    pending: Vec<u8>,
    after_return: bool,
    continued: bool,
}

impl LineSplitter {
    pub fn new() -> Self {
        Self::default()
    }

    /// Take `bytes` and append every line they complete to `lines`.
    pub fn push(&mut self, bytes: &[u8], lines: &mut Vec<Line>) {
        let mut rest = bytes;
        while let Some((&first, tail)) = rest.split_first() {
            if self.after_return {
                self.after_return = false;
                if first == b'\n' {
                    rest = tail;
                    continue;
                }
            }
            let end = rest.iter().position(|&byte| byte == b'\n' || byte == b'\r');
            let (body, ending) = rest.split_at(end.unwrap_or(rest.len()));
            self.take(body, lines);
            match ending.split_first() {
                Some((&ending, after)) => {
                    self.finish_line(lines);
                    self.after_return = ending == b'\r';
                    rest = after;
                }
                None => rest = &[],
            }
        }
    }

    /// The end of the output: a last line without line end counts.
    pub fn finish(&mut self, lines: &mut Vec<Line>) {
        if !self.pending.is_empty() {
            self.finish_line(lines);
        }
        *self = Self::default();
    }

    fn take(&mut self, mut body: &[u8], lines: &mut Vec<Line>) {
        while self.pending.len() + body.len() > LINE_LIMIT {
            let (now, later) = body.split_at(LINE_LIMIT - self.pending.len());
            self.pending.extend_from_slice(now);
            body = later;
            let whole = whole_characters(&self.pending);
            let tail = self.pending.split_off(whole);
            self.emit(lines);
            self.continued = true;
            self.pending = tail;
        }
        self.pending.extend_from_slice(body);
    }

    fn finish_line(&mut self, lines: &mut Vec<Line>) {
        // The end of a long line that was already handed on is not a line of its own.
        if !(self.continued && self.pending.is_empty()) {
            self.emit(lines);
        }
        self.continued = false;
    }

    fn emit(&mut self, lines: &mut Vec<Line>) {
        let bytes = std::mem::take(&mut self.pending);
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => String::from_utf8_lossy(error.as_bytes()).into_owned(),
        };
        lines.push(Line {
            text,
            continued: self.continued,
        });
    }
}

/// How many leading bytes hold only whole characters: a sequence cut at the end is left out.
fn whole_characters(bytes: &[u8]) -> usize {
    for back in 1..=3.min(bytes.len()) {
        let at = bytes.len() - back;
        let byte = bytes.get(at).copied().unwrap_or(0);
        let needs = match byte {
            0xC0..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF7 => 4,
            0x80..=0xBF => continue,
            _ => 1,
        };
        return if needs > back { at } else { bytes.len() };
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(chunks: &[&[u8]]) -> Vec<String> {
        let mut splitter = LineSplitter::new();
        let mut lines = Vec::new();
        for chunk in chunks {
            splitter.push(chunk, &mut lines);
        }
        splitter.finish(&mut lines);
        lines.into_iter().map(|line| line.text).collect()
    }

    #[test]
    fn every_kind_of_line_end_counts_once() {
        assert_eq!(split(&[b"10%\r20%\r\n\n\xce", b"\xbc"]), ["10%", "20%", "", "μ"]);
        assert_eq!(split(&[b"a\r", b"\nb"]), ["a", "b"]);
        assert_eq!(split(&[b"a\r\r\nb\n"]), ["a", "", "b"]);
        assert_eq!(split(&[b""]), [""; 0]);
        assert_eq!(split(&[b"\n"]), [""]);
    }

    #[test]
    fn bytes_that_are_not_text_are_replaced() {
        assert_eq!(split(&[b"a\xffb\n"]), ["a\u{fffd}b"]);
    }

    #[test]
    fn long_lines_are_broken_at_whole_characters() {
        let mut text = "x".repeat(LINE_LIMIT - 1);
        text.push_str("μ and the rest");
        let mut splitter = LineSplitter::new();
        let mut lines = Vec::new();
        splitter.push(text.as_bytes(), &mut lines);
        splitter.push(b"\nnext\n", &mut lines);
        let shape: Vec<_> = lines
            .iter()
            .map(|line| (line.text.len(), line.continued))
            .collect();
        assert_eq!(shape, [(LINE_LIMIT - 1, false), (15, true), (4, false)]);
    }

    #[test]
    fn a_long_line_that_ends_at_the_limit_leaves_no_empty_line() {
        let mut splitter = LineSplitter::new();
        let mut lines = Vec::new();
        splitter.push(&vec![b'x'; LINE_LIMIT * 2 + 1], &mut lines);
        splitter.push(b"\n", &mut lines);
        assert_eq!(
            lines.iter().map(|line| line.text.len()).sum::<usize>(),
            LINE_LIMIT * 2 + 1
        );
        assert!(lines.iter().all(|line| !line.text.is_empty()));
    }

    proptest! {
        #[test]
        fn how_bytes_are_cut_into_reads_does_not_matter(
            bytes in proptest::collection::vec(any::<u8>(), 0..400),
            cuts in proptest::collection::vec(0usize..400, 0..8),
        ) {
            let whole = split(&[&bytes]);
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.sort_unstable();
            let mut chunks: Vec<&[u8]> = Vec::new();
            let mut from = 0;
            for cut in cuts {
                chunks.push(&bytes[from..cut]);
                from = cut;
            }
            chunks.push(&bytes[from..]);
            prop_assert_eq!(split(&chunks), whole);
        }

        #[test]
        fn no_piece_is_longer_than_the_limit(length in 0usize..300_000, byte in any::<u8>()) {
            let mut splitter = LineSplitter::new();
            let mut lines = Vec::new();
            splitter.push(&vec![byte; length], &mut lines);
            splitter.finish(&mut lines);
            prop_assert!(lines.iter().all(|line| line.text.chars().count() <= LINE_LIMIT));
        }
    }
}
