//! Findings of the compiler in the form clients get.

use beamtalk_syntax::diagnostic::{Category, Diagnostic, Severity};
use beamtalk_syntax::span::LineIndex;
use serde_json::{Value, json};

pub(crate) fn is_error(diagnostic: &Diagnostic) -> bool {
    diagnostic.severity == Severity::Error
}

pub(crate) fn json(diagnostic: &Diagnostic, file: &str, text: &str) -> Value {
    let lines = LineIndex::new(text);
    let start = lines.position(text, diagnostic.span.start);
    let end = lines.position(text, diagnostic.span.end);
    let notes: Vec<Value> = diagnostic
        .notes
        .iter()
        .map(|(span, note)| {
            let at = lines.position(text, span.start);
            json!({"message": note.as_str(), "line": at.line, "column": at.column})
        })
        .collect();
    json!({
        "file": file,
        "code": diagnostic.code,
        "severity": diagnostic.severity.name(),
        "category": diagnostic.category.map(Category::name),
        "message": diagnostic.message.as_str(),
        "span_start": diagnostic.span.start,
        "span_end": diagnostic.span.end,
        "line": start.line, "column": start.column,
        "end_line": end.line, "end_column": end.column,
        "hint": diagnostic.hint.as_deref(),
        "notes": notes,
    })
}
