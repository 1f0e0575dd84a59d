//! Places in a text as editors count them: lines from 0, columns in bytes, UTF-16 units or characters.

use beamtalk_syntax::span::Span;
use gen_lsp_types::{Position, PositionEncodingKind, Range};

/// What columns count, as client and server agreed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Encoding {
    Utf8,
    #[default]
    Utf16,
    Utf32,
}

impl Encoding {
    /// Bytes if the client takes them, since that is how spans are kept; else its first choice; UTF-16 is what every
    /// client has to take.
    pub(crate) fn negotiate(offered: Option<&[PositionEncodingKind]>) -> Self {
        let offered = offered.unwrap_or_default();
        if offered.contains(&PositionEncodingKind::UTF8) {
            return Self::Utf8;
        }
        match offered.first() {
            Some(PositionEncodingKind::UTF32) => Self::Utf32,
            _ => Self::Utf16,
        }
    }

    pub(crate) fn kind(self) -> PositionEncodingKind {
        match self {
            Self::Utf8 => PositionEncodingKind::UTF8,
            Self::Utf16 => PositionEncodingKind::UTF16,
            Self::Utf32 => PositionEncodingKind::UTF32,
        }
    }

    fn width(self, c: char) -> usize {
        match self {
            Self::Utf8 => c.len_utf8(),
            Self::Utf16 => c.len_utf16(),
            Self::Utf32 => 1,
        }
    }

    pub(crate) fn length(self, text: &str) -> u32 {
        match self {
            Self::Utf8 => text.len() as u32,
            _ => text.chars().map(|c| self.width(c)).sum::<usize>() as u32,
        }
    }
}

/// Where the lines of a text begin. A line ends with `\n`, `\r\n` or `\r`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Lines {
    starts: Vec<u32>,
}

/// A line that the text does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} is past the end of the document, which has {count} lines")]
pub(crate) struct PastEnd {
    pub(crate) line: u32,
    pub(crate) count: u32,
}

impl Lines {
    pub(crate) fn new(text: &str) -> Self {
        let bytes = text.as_bytes();
        let mut starts = vec![0];
        for (at, byte) in bytes.iter().enumerate() {
            let ends = match byte {
                b'\n' => true,
                b'\r' => bytes.get(at + 1) != Some(&b'\n'),
                _ => false,
            };
            if ends {
                starts.push(at as u32 + 1);
            }
        }
        Self { starts }
    }

    pub(crate) fn count(&self) -> u32 {
        self.starts.len() as u32
    }

    /// The line of an offset, from 0.
    pub(crate) fn line(&self, offset: u32) -> u32 {
        (self.starts.partition_point(|start| *start <= offset) as u32).saturating_sub(1)
    }

    pub(crate) fn start(&self, line: u32) -> u32 {
        self.starts.get(line as usize).copied().unwrap_or_default()
    }

    /// A line without what ends it.
    pub(crate) fn text<'a>(&self, text: &'a str, line: u32) -> &'a str {
        let start = self.start(line) as usize;
        let end = self
            .starts
            .get(line as usize + 1)
            .map_or(text.len(), |end| *end as usize);
        text.get(start..end)
            .unwrap_or_default()
            .trim_end_matches(['\n', '\r'])
    }

    pub(crate) fn position(&self, text: &str, offset: u32, encoding: Encoding) -> Position {
        let offset = offset.min(text.len() as u32);
        let line = self.line(offset);
        let before = text
            .get(self.start(line) as usize..offset as usize)
            .unwrap_or_default();
        Position {
            line,
            character: encoding.length(before),
        }
    }

    pub(crate) fn range(&self, text: &str, span: Span, encoding: Encoding) -> Range {
        Range {
            start: self.position(text, span.start, encoding),
            end: self.position(text, span.end, encoding),
        }
    }

    /// The offset of a position. A column past the end of its line means the end of the line, one inside of a character
    /// its start; a line past the end is a fault, except the one right behind the last.
    pub(crate) fn offset(&self, text: &str, position: Position, encoding: Encoding) -> Result<u32, PastEnd> {
        if position.line == self.count() && position.character == 0 {
            return Ok(text.len() as u32);
        }
        if position.line >= self.count() {
            return Err(PastEnd {
                line: position.line,
                count: self.count(),
            });
        }
        let line = self.text(text, position.line);
        let mut column = 0;
        let mut offset = self.start(position.line);
        for c in line.chars() {
            column += encoding.width(c);
            if column > position.character as usize {
                break;
            }
            offset += c.len_utf8() as u32;
        }
        Ok(offset)
    }

    pub(crate) fn span(&self, text: &str, range: Range, encoding: Encoding) -> Result<Span, PastEnd> {
        let start = self.offset(text, range.start, encoding)?;
        let end = self.offset(text, range.end, encoding)?;
        Ok(Span::new(start.min(end), start.max(end)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a😀é\r\nx\rlast";

    #[test]
    fn every_boundary_survives_the_way_there_and_back() {
        let lines = Lines::new(TEXT);
        for encoding in [Encoding::Utf8, Encoding::Utf16, Encoding::Utf32] {
            for (at, _) in TEXT.char_indices().filter(|(_, c)| *c != '\n') {
                let position = lines.position(TEXT, at as u32, encoding);
                assert_eq!(
                    lines.offset(TEXT, position, encoding),
                    Ok(at as u32),
                    "{encoding:?} {at}"
                );
            }
        }
    }

    #[test]
    fn columns_count_what_was_agreed() {
        let lines = Lines::new(TEXT);
        let column = |encoding| lines.position(TEXT, 5, encoding).character;
        assert_eq!(
            (
                column(Encoding::Utf8),
                column(Encoding::Utf16),
                column(Encoding::Utf32)
            ),
            (5, 3, 2)
        );
    }

    #[test]
    fn a_column_past_the_line_is_its_end_and_a_line_past_the_text_a_fault() {
        let lines = Lines::new(TEXT);
        let at = |line, character| lines.offset(TEXT, Position { line, character }, Encoding::Utf16);
        assert_eq!(at(0, 99), Ok(7));
        assert_eq!(at(0, 2), Ok(1));
        assert_eq!(at(3, 0), Ok(TEXT.len() as u32));
        assert_eq!(at(3, 1), Err(PastEnd { line: 3, count: 3 }));
        assert_eq!(
            at(u32::MAX, u32::MAX),
            Err(PastEnd {
                line: u32::MAX,
                count: 3
            })
        );
    }

    #[test]
    fn bytes_are_taken_where_they_are_offered() {
        use PositionEncodingKind as Kind;
        assert_eq!(Encoding::negotiate(None), Encoding::Utf16);
        assert_eq!(Encoding::negotiate(Some(&[Kind::UTF32])), Encoding::Utf32);
        assert_eq!(
            Encoding::negotiate(Some(&[Kind::UTF16, Kind::UTF8])),
            Encoding::Utf8
        );
    }
}
