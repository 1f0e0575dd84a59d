//! Places in a source text.

/// A half-open range of byte offsets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    pub start: u32,
    pub end: u32,
}

impl Span {
    pub fn new(start: u32, end: u32) -> Self {
        Self { start, end }
    }

    /// The smallest span that holds both.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span::new(self.start.min(other.start), self.end.max(other.end))
    }

    /// The text this span covers; empty when it does not fit the source.
    pub fn text(self, source: &str) -> &str {
        source.get(self.start as usize..self.end as usize).unwrap_or("")
    }
}

/// Line starts of one source text, for turning offsets into lines and columns.
#[derive(Clone, Debug)]
pub struct LineIndex {
    starts: Vec<u32>,
    /// What is added to a line: the text may be a part of a larger one.
    shift: i32,
}

/// A place as people count it: both numbers start at 1, columns count Unicode scalar values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    pub line: u32,
    pub column: u32,
}

impl LineIndex {
    pub fn new(source: &str) -> Self {
        let newlines = source.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0)
            .chain(newlines.map(|(at, _)| at as u32 + 1))
            .collect();
        Self { starts, shift: 0 }
    }

    /// Lines as in the larger text of which this one is a part: `offset` is on `line` there.
    #[must_use]
    pub fn with_line_at(mut self, offset: u32, line: u32) -> Self {
        self.shift = line as i32 - self.own_line(offset) as i32;
        self
    }

    /// The 1-based line of an offset.
    pub fn line(&self, offset: u32) -> u32 {
        self.own_line(offset).saturating_add_signed(self.shift).max(1)
    }

    fn own_line(&self, offset: u32) -> u32 {
        self.starts.partition_point(|start| *start <= offset) as u32
    }

    pub fn position(&self, source: &str, offset: u32) -> Position {
        let line = self.own_line(offset);
        let start = self.starts.get(line as usize - 1).copied().unwrap_or(0);
        let column = Span::new(start, offset).text(source).chars().count() as u32 + 1;
        Position { line, column }
    }
}
