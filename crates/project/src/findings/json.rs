//! One finding as one line of JSON.

use beamtalk_syntax::span::LineIndex;
use serde_json::json;

use super::{Finding, places};

pub fn render(index: &LineIndex, path: &str, text: &str, finding: &Finding) -> String {
    let (start, end) = places(index, text, finding.span);
    let notes: Vec<serde_json::Value> = finding
        .notes
        .iter()
        .map(|note| {
            let (start, end) = places(index, text, note.span);
            json!({
                "message": note.text,
                "span_start": note.span.0,
                "span_end": note.span.1,
                "line": start.line,
                "column": start.column,
                "end_line": end.line,
                "end_column": end.column,
            })
        })
        .collect();
    json!({
        "file": path,
        "code": finding.code,
        "severity": finding.severity.name(),
        "category": finding.category,
        "message": finding.message,
        "span_start": finding.span.0,
        "span_end": finding.span.1,
        "line": start.line,
        "column": start.column,
        "end_line": end.line,
        "end_column": end.column,
        "hint": finding.hint,
        "witness": finding.witness,
        "notes": notes,
    })
    .to_string()
}
