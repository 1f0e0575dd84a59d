//! A small pretty printer: text, places where a line may break, groups and indentation.
//!
//! A group is printed on one line when it fits, else every break directly in it becomes a line end.

use ecow::EcoString;

const WIDTH: usize = 80;
const INDENT: usize = 2;

#[derive(Clone, Debug)]
pub(super) enum Document {
    Text(EcoString),
    /// Source text over several lines, moved as a whole.
    Verbatim(Vec<VerbatimLine>),
    /// A space, or a line end in a broken group.
    Line,
    /// Nothing, or a line end in a broken group.
    SoftLine,
    /// Always a line end; breaks the groups around it.
    HardLine,
    /// Always a line end with an empty line.
    BlankLine,
    /// Breaks the groups around it.
    ForceBreak,
    Nest(Box<Document>),
    Group {
        content: Box<Document>,
        is_forced: bool,
    },
    Concat(Vec<Document>),
    /// The text in an unbroken group; nothing in a broken one.
    FlatText(&'static str),
}

#[derive(Clone, Debug)]
pub(super) struct VerbatimLine {
    /// Columns right of the place where the text starts; `None` keeps the line untouched.
    pub(super) indent: Option<usize>,
    pub(super) text: EcoString,
}

pub(super) fn text(text: impl Into<EcoString>) -> Document {
    Document::Text(text.into())
}

pub(super) fn nest(content: Document) -> Document {
    Document::Nest(Box::new(content))
}

pub(super) fn concat(parts: Vec<Document>) -> Document {
    Document::Concat(parts)
}

pub(super) fn group(content: Document) -> Document {
    let is_forced = is_forced(&content);
    Document::Group {
        content: Box::new(content),
        is_forced,
    }
}

/// Must the groups around this be broken?
pub(super) fn is_forced(document: &Document) -> bool {
    match document {
        Document::HardLine | Document::BlankLine | Document::ForceBreak => true,
        Document::Group { is_forced, .. } => *is_forced,
        Document::Nest(content) => is_forced(content),
        Document::Concat(parts) => parts.iter().any(is_forced),
        Document::Verbatim(lines) => lines.len() > 1,
        Document::Text(_) | Document::Line | Document::SoftLine | Document::FlatText(_) => false,
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Flat,
    Broken,
}

struct Printer {
    out: String,
    column: usize,
}

pub(super) fn print(document: &Document) -> String {
    let mut printer = Printer {
        out: String::new(),
        column: 0,
    };
    let mut stack = vec![(0, Shape::Broken, document)];
    while let Some((indent, shape, document)) = stack.pop() {
        match document {
            Document::Text(text) => printer.text(text),
            Document::FlatText(text) if shape == Shape::Flat => printer.text(text),
            Document::FlatText(_) | Document::ForceBreak => {}
            Document::Verbatim(lines) => printer.verbatim(indent, lines),
            Document::Line if shape == Shape::Flat => printer.text(" "),
            Document::SoftLine if shape == Shape::Flat => {}
            Document::Line | Document::SoftLine | Document::HardLine => printer.line(indent),
            Document::BlankLine => {
                printer.line(0);
                printer.line(indent);
            }
            Document::Nest(content) => stack.push((indent + INDENT, shape, content)),
            Document::Concat(parts) => stack.extend(parts.iter().rev().map(|part| (indent, shape, part))),
            Document::Group { content, is_forced } => {
                let shape = if !is_forced && fits(WIDTH.saturating_sub(printer.column), content, &stack) {
                    Shape::Flat
                } else {
                    Shape::Broken
                };
                stack.push((indent, shape, content));
            }
        }
    }
    printer.finish()
}

/// Does the content, and what follows it up to the next line end, fit into `width` columns?
fn fits(width: usize, content: &Document, rest: &[(usize, Shape, &Document)]) -> bool {
    let mut left = width;
    let mut stack = vec![(Shape::Flat, content)];
    let mut rest = rest.iter().rev();
    loop {
        let next = stack
            .pop()
            .or_else(|| rest.next().map(|(_, shape, document)| (*shape, *document)));
        let Some((shape, document)) = next else {
            return true;
        };
        let used = match document {
            Document::Text(text) => text.chars().count(),
            Document::FlatText(text) if shape == Shape::Flat => text.len(),
            Document::FlatText(_) | Document::ForceBreak => 0,
            Document::Verbatim(lines) => {
                let first = lines.first().map_or(0, |line| line.text.chars().count());
                if lines.len() > 1 {
                    return first <= left;
                }
                first
            }
            Document::Line if shape == Shape::Flat => 1,
            Document::SoftLine if shape == Shape::Flat => 0,
            Document::Line | Document::SoftLine | Document::HardLine | Document::BlankLine => return true,
            Document::Nest(content) => {
                stack.push((shape, content));
                0
            }
            Document::Group { content, is_forced } => {
                stack.push((if *is_forced { Shape::Broken } else { shape }, content));
                0
            }
            Document::Concat(parts) => {
                stack.extend(parts.iter().rev().map(|part| (shape, part)));
                0
            }
        };
        match left.checked_sub(used) {
            Some(rest) => left = rest,
            None => return false,
        }
    }
}

impl Printer {
    fn text(&mut self, text: &str) {
        self.out.push_str(text);
        self.column += text.chars().count();
    }

    fn line(&mut self, indent: usize) {
        self.trim_line();
        self.out.push('\n');
        self.out.extend(std::iter::repeat_n(' ', indent));
        self.column = indent;
    }

    /// Removes spaces that only indent an empty line.
    fn trim_line(&mut self) {
        let content = self.out.trim_end_matches(' ');
        if content.is_empty() || content.ends_with('\n') {
            let length = content.len();
            self.out.truncate(length);
        }
    }

    fn verbatim(&mut self, indent: usize, lines: &[VerbatimLine]) {
        for (index, line) in lines.iter().enumerate() {
            if index > 0 {
                self.out.push('\n');
                self.column = 0;
                if let Some(extra) = line.indent
                    && !line.text.is_empty()
                {
                    self.out.extend(std::iter::repeat_n(' ', indent + extra));
                    self.column = indent + extra;
                }
            }
            self.text(&line.text);
        }
    }

    fn finish(mut self) -> String {
        self.trim_line();
        let length = self.out.trim_end_matches('\n').len();
        self.out.truncate(length);
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        self.out
    }
}
