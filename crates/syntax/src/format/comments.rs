//! Where comments go, and source text that keeps its own layout.

use super::Formatter;
use super::document::{Document, VerbatimLine, concat, text};
use crate::ast::{Comment, CommentKind, Unit};
use crate::lexer::lex;
use crate::parser::starts_line;
use crate::span::Span;
use crate::token::TokenKind;

/// Where a block comment before something on its line goes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Placement {
    /// It stays there.
    Inline,
    /// Above: the column of a member has a meaning.
    Above,
}

/// One line-level thing in a sequence: its lines, where it starts and where it ends.
pub(super) struct Entry {
    pub(super) document: Document,
    pub(super) start: u32,
    pub(super) end: u32,
    /// An empty line before it, whatever the source has.
    pub(super) wants_blank: bool,
}

/// Tokens and comments over several lines, in order.
pub(super) fn frozen_spans(source: &str, unit: &Unit) -> Vec<Span> {
    let is_long = |span: &Span| span.text(source).contains('\n');
    let tokens = lex(source).tokens;
    let strings = tokens.iter().filter(|token| {
        matches!(
            token.kind,
            TokenKind::String
                | TokenKind::StringStart
                | TokenKind::StringMiddle
                | TokenKind::StringEnd
                | TokenKind::Character
        )
    });
    let mut spans: Vec<Span> = strings
        .map(|token| token.span())
        .chain(unit.comments.iter().map(|comment| comment.span))
        .filter(is_long)
        .collect();
    spans.sort();
    spans
}

impl<'s> Formatter<'s> {
    pub(super) fn pending(&self) -> Option<&'s Comment> {
        self.unit.comments.get(self.next)
    }

    /// Where the last printed comment ends.
    fn printed_end(&self) -> u32 {
        let last = self
            .next
            .checked_sub(1)
            .and_then(|index| self.unit.comments.get(index));
        last.map_or(0, |comment| comment.span.end)
    }

    pub(super) fn has_pending_before(&self, offset: u32) -> bool {
        self.pending().is_some_and(|comment| comment.span.start < offset)
    }

    /// A construct with lines of its own starts here: comments before it have no place.
    pub(super) fn enter(&mut self, start: u32) {
        self.is_odd |= self.has_pending_before(start);
    }

    fn comment_text(&self, comment: &Comment) -> Document {
        let source = self.source_text(comment.span);
        if comment.kind == CommentKind::Block && source.contains('\n') {
            let lines = source.split('\n').map(|line| VerbatimLine {
                indent: None,
                text: line.strip_suffix('\r').unwrap_or(line).into(),
            });
            return Document::Verbatim(lines.collect());
        }
        if comment.kind == CommentKind::Doc {
            text(source)
        } else {
            text(source.trim_end())
        }
    }

    /// All comments before `offset` as lines of their own; answers where the first one starts.
    pub(super) fn leading(&mut self, offset: u32, placement: Placement) -> (Vec<Document>, Option<u32>) {
        let mut parts = Vec::new();
        let mut first = None;
        while let Some(comment) = self.pending().filter(|comment| comment.span.start < offset) {
            self.next += 1;
            first.get_or_insert(comment.span.start);
            parts.push(self.comment_text(comment));
            let following = self.pending().map_or(offset, |next| next.span.start.min(offset));
            let is_inline = comment.kind == CommentKind::Block
                && self.is_same_line(comment.span.end, following)
                && (placement == Placement::Inline || following < offset);
            if is_inline {
                parts.push(text(" "));
            } else if self.has_blank_line(comment.span.end, following) {
                parts.push(Document::BlankLine);
            } else {
                parts.push(Document::HardLine);
            }
        }
        (parts, first)
    }

    /// Whether a comment stands on the line of what ends before it. One behind a lone separator begins a line.
    pub(super) fn is_beside(&self, end: u32, comment: u32) -> bool {
        self.is_same_line(end, comment) && !starts_line(self.source, comment)
    }

    /// Comments behind something on its line, up to `limit`; answers where the last one ends.
    pub(super) fn trailing(&mut self, end: u32, limit: u32) -> (Vec<Document>, u32) {
        let mut parts = Vec::new();
        let mut end = end;
        while let Some(comment) = self.pending() {
            let span = comment.span;
            if span.start >= limit || span.start < end || !self.is_beside(end, span.start) {
                break;
            }
            self.next += 1;
            parts.push(text(" "));
            parts.push(self.comment_text(comment));
            parts.push(Document::ForceBreak);
            end = span.end;
        }
        (parts, end)
    }

    /// Things on lines of their own, with the comments and empty lines between them. Comments up to
    /// `limit` belong here; `from` is where the text before the first one ends.
    pub(super) fn lines<T>(
        &mut self,
        items: &[T],
        from: Option<u32>,
        limit: u32,
        placement: Placement,
        start_of: impl Fn(&T) -> u32,
        mut print: impl FnMut(&mut Self, &T, bool) -> Entry,
    ) -> Vec<Document> {
        let mut parts: Vec<Document> = Vec::new();
        let mut previous = from;
        let mut is_first = true;
        for (index, item) in items.iter().enumerate() {
            let start = start_of(item);
            let (leading, comment) = self.leading(start, placement);
            let is_last = index + 1 == items.len();
            let entry = print(self, item, is_last);
            let begin = comment.unwrap_or(entry.start);
            if !is_first || from.is_some() {
                let has_blank = previous.is_some_and(|end| self.has_blank_line(end, begin));
                let is_blank = has_blank || (entry.wants_blank && !is_first);
                parts.push(if is_blank {
                    Document::BlankLine
                } else {
                    Document::HardLine
                });
            }
            is_first = false;
            parts.extend(leading);
            parts.push(entry.document);
            let next_start = items.get(index + 1).map_or(limit, &start_of);
            let (trailing, end) = self.trailing(entry.end, next_start);
            parts.extend(trailing);
            previous = Some(end.max(self.printed_end()));
        }
        let (mut dangling, comment) = self.leading(limit, Placement::Above);
        if let Some(begin) = comment {
            dangling.pop();
            if !is_first || from.is_some() {
                let has_blank = previous.is_some_and(|end| self.has_blank_line(end, begin));
                parts.push(if has_blank {
                    Document::BlankLine
                } else {
                    Document::HardLine
                });
            }
            parts.extend(dangling);
            parts.push(Document::ForceBreak);
        }
        parts
    }

    /// Builds a document that must show every comment up to `span.end`, or else keeps the source.
    pub(super) fn or_verbatim(
        &mut self,
        span: Span,
        least_indent: usize,
        build: impl FnOnce(&mut Self) -> Document,
    ) -> Document {
        let outer = std::mem::replace(&mut self.is_odd, false);
        let document = build(self);
        let is_odd = self.is_odd || self.has_pending_before(span.end);
        self.is_odd = outer;
        if !is_odd {
            return document;
        }
        while self.has_pending_before(span.end) {
            self.next += 1;
        }
        self.verbatim(span, least_indent)
    }

    /// Source text with its own line ends, moved as a whole to the place where it is printed.
    pub(super) fn verbatim(&self, span: Span, least_indent: usize) -> Document {
        let line_start = self
            .source
            .get(..span.start as usize)
            .map_or(0, |before| before.rfind('\n').map_or(0, |at| at + 1));
        let column = self
            .gap(line_start as u32, span.start)
            .trim_start_matches('\u{feff}')
            .chars()
            .count();
        let mut offset = span.start;
        let mut lines = Vec::new();
        for line in self.source_text(span).split('\n') {
            let is_frozen = self.is_frozen(offset);
            let line_end = offset + line.len() as u32;
            let ends_frozen = self.is_frozen(line_end + 1) && line_end < span.end;
            let line = if ends_frozen { line } else { trim_line(line) };
            let entry = if is_frozen && offset > span.start {
                VerbatimLine {
                    indent: None,
                    text: line.into(),
                }
            } else {
                let content = if offset > span.start {
                    line.trim_start()
                } else {
                    line
                };
                let width = line.chars().count() - content.chars().count();
                let indent = width.saturating_sub(column).max(least_indent);
                VerbatimLine {
                    indent: Some(indent),
                    text: content.into(),
                }
            };
            lines.push(entry);
            offset = line_end + 1;
        }
        concat(vec![Document::Verbatim(lines), Document::ForceBreak])
    }

    /// Is this offset inside a string or comment over several lines?
    fn is_frozen(&self, offset: u32) -> bool {
        let before = self.frozen.partition_point(|span| span.start < offset);
        let span = before.checked_sub(1).and_then(|index| self.frozen.get(index));
        span.is_some_and(|span| offset < span.end)
    }
}

/// Without spaces at the end, unless they belong to `$ ` or `$\ `.
fn trim_line(line: &str) -> &str {
    let trimmed = line.trim_end();
    let extra = if trimmed.ends_with('$') || trimmed.ends_with("$\\") {
        line.get(trimmed.len()..)
    } else {
        None
    };
    let extra = extra
        .and_then(|spaces| spaces.chars().next())
        .filter(|char| *char != '\r');
    line.get(..trimmed.len() + extra.map_or(0, char::len_utf8))
        .unwrap_or(trimmed)
}
