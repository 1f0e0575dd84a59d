//! Findings of the compiler in the form clients get.

use beamtalk_syntax::diagnostic::{Category, Diagnostic, Severity};
use beamtalk_syntax::span::LineIndex;
use beamtalk_wire::answers::{self, Note, TextEdit};

pub(crate) fn is_error(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity == Severity::Error
}

pub(crate) fn shown(diagnostic: &Diagnostic, file: &str, text: &str) -> answers::Diagnostic {
    let lines = LineIndex::new(text);
    let start = lines.position(text, diagnostic.span.start);
    let end = lines.position(text, diagnostic.span.end);
    let notes = diagnostic.notes.iter().map(|(span, note)| {
        let at = lines.position(text, span.start);
        Note {
            message: note.to_string(),
            line: at.line,
            column: at.column,
        }
    });
    let fix = diagnostic.edits.iter().map(|edit| TextEdit {
        start: edit.span.start,
        end: edit.span.end,
        text: edit.text.to_owned(),
    });
    answers::Diagnostic {
        file: Some(file.to_owned()),
        line: Some(start.line),
        code: Some(diagnostic.code.to_owned()),
        severity: match diagnostic.severity {
            Severity::Error => answers::Severity::Error,
            Severity::Warning => answers::Severity::Warning,
            Severity::Hint => answers::Severity::Hint,
            Severity::Lint => answers::Severity::Lint,
        },
        category: diagnostic
            .category
            .map(|category| Category::name(category).to_owned()),
        message: diagnostic.message.to_string(),
        hint: diagnostic.hint.as_deref().map(str::to_owned),
        notes: notes.collect(),
        span_start: Some(diagnostic.span.start),
        span_end: Some(diagnostic.span.end),
        column: Some(start.column),
        end_line: Some(end.line),
        end_column: Some(end.column),
        fix: (!diagnostic.edits.is_empty()).then(|| fix.collect()),
    }
}
