//! The formatter: the tree and the comments beside it, printed in the one canonical layout.
//!
//! Two spaces, 80 columns, LF, one newline at the end. Statements stand on lines of their own, and
//! at most one empty line between them is kept. A comment stays before or behind the statement,
//! member, element or arm it stands at; a statement with a comment anywhere else keeps its own
//! layout. The result is parsed again, and given up when its tree differs.

mod comments;
mod document;
mod expression;
mod item;
mod pattern;

use crate::ast::Unit;
use crate::diagnostic::{Diagnostic, Severity};
use crate::dump::dump;
use crate::format::document::Document;
use crate::parser::{self, Mode};
use crate::span::Span;

/// Why a text was not formatted.
#[derive(Clone, Debug, thiserror::Error)]
pub enum FormatError {
    /// The text has syntax errors; it holds all diagnostics of the parse.
    #[error("the source has syntax errors")]
    Syntax(Vec<Diagnostic>),
    /// The formatted text would mean something else: a fault of the formatter.
    #[error("formatting would change the meaning of the source")]
    Changed,
}

/// Formats a package file.
pub fn format(source: &str) -> Result<String, FormatError> {
    format_as(source, Mode::File)
}

/// Formats the input of a session: any mix of items and statements.
pub fn format_input(source: &str) -> Result<String, FormatError> {
    format_as(source, Mode::Input)
}

fn format_as(source: &str, mode: Mode) -> Result<String, FormatError> {
    let (unit, diagnostics) = parser::parse(source, mode);
    if has_errors(&diagnostics) {
        return Err(FormatError::Syntax(diagnostics));
    }
    let formatted = Formatter::new(source, &unit).format();
    let (again, diagnostics) = parser::parse(&formatted, mode);
    let is_same = !has_errors(&diagnostics)
        && again.comments.len() == unit.comments.len()
        && dump(&unit) == dump(&again);
    if is_same {
        Ok(formatted)
    } else {
        Err(FormatError::Changed)
    }
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error)
}

struct Formatter<'s> {
    source: &'s str,
    unit: &'s Unit,
    /// The first comment that is not printed yet.
    next: usize,
    /// A comment stands where the current statement cannot show it.
    is_odd: bool,
    /// Spans of strings and block comments over several lines, whose lines must not move.
    frozen: Vec<Span>,
}

impl<'s> Formatter<'s> {
    fn new(source: &'s str, unit: &'s Unit) -> Self {
        Self {
            source,
            unit,
            next: 0,
            is_odd: false,
            frozen: comments::frozen_spans(source, unit),
        }
    }

    fn format(mut self) -> String {
        let document: Document = self.unit_document();
        document::print(&document)
    }

    fn source_text(&self, span: Span) -> &'s str {
        span.text(self.source)
    }

    fn gap(&self, from: u32, to: u32) -> &'s str {
        Span::new(from, to.max(from)).text(self.source)
    }

    /// Does an empty line separate two places?
    fn has_blank_line(&self, from: u32, to: u32) -> bool {
        self.gap(from, to).matches('\n').count() > 1
    }

    fn is_same_line(&self, from: u32, to: u32) -> bool {
        !self.gap(from, to).contains('\n')
    }
}
