//! What the running image says about a document: conflicts with unflushed changes, findings of re-checked callers.

use beamtalk_syntax::ast::Item;
use beamtalk_syntax::span::Span;
use beamtalk_wire::answers::{Conflict, ConflictReason, Finding, Severity};
use gen_lsp_types as lsp;
use serde_json::json;

use crate::live::Image;
use crate::position::Lines;
use crate::state::{Document, Snapshot};
use crate::uri;

/// The conflict of a document's file, if there is one.
pub(crate) fn conflict<'a>(image: &'a Image, document: &Document, key: &str) -> Option<&'a Conflict> {
    let path = uri::to_path(key)?;
    let file = path.strip_prefix(&document.root).ok()?.to_str()?.to_owned();
    image.conflicts.iter().find(|conflict| conflict.file == file)
}

/// Where a conflict is shown: the method it is about, else the first name of the file.
pub(crate) fn place(image: &Image, conflict: &Conflict, document: &Document) -> Span {
    let items = &document.draft.source.unit.items;
    let mut concerned = image
        .entries
        .iter()
        .filter(|one| conflict.seqs.contains(&one.entry.seq));
    let method = concerned.find_map(|one| {
        items.iter().find_map(|item| match item {
            Item::Class(class) if class.name.text == one.entry.class => {
                let selector = one.entry.selector.as_deref();
                let mut methods = class.methods.iter();
                let method = methods.find(|method| Some(method.head.selector.as_str()) == selector);
                Some(method.map_or(class.name.span, |method| method.head.span))
            }
            _ => None,
        })
    });
    let first = items.iter().find_map(|item| match item {
        Item::Class(class) => Some(class.name.span),
        Item::Protocol(protocol) => Some(protocol.name.span),
        Item::TypeAlias(alias) => Some(alias.name.span),
        Item::Extension(extension) => Some(extension.target.span),
        Item::Statement(_) => None,
    });
    method.or(first).unwrap_or_default()
}

pub(super) fn of(snapshot: &Snapshot, document: &Document, key: &str, lines: &Lines) -> Vec<lsp::Diagnostic> {
    let Some(image) = snapshot.state.images.get(&document.root) else {
        return Vec::new();
    };
    let text = &document.draft.source.text;
    let range = |span: Span| lines.range(text, span, snapshot.state.encoding);
    let mut found = Vec::new();
    if let Some(conflict) = conflict(image, document, key) {
        let reason = match conflict.reason {
            ConflictReason::ExternalEdit => "changed in the image and on disk",
            ConflictReason::FileMissing => "changed in the image, and its file is gone",
            ConflictReason::TargetExists => "made in the image, and its file is there already",
            ConflictReason::SpanOutOfRange => "changed in the image, and not found in the file any more",
            ConflictReason::WriteFailed => "changed in the image, and its file cannot be written",
        };
        let detail = conflict.detail.as_deref().unwrap_or(&conflict.file);
        found.push(lsp::Diagnostic {
            severity: Some(lsp::DiagnosticSeverity::Warning),
            data: Some(json!({"tag": "conflict"})),
            ..diagnostic(
                range(place(image, conflict, document)),
                conflict.reason.name(),
                format!("{detail}: {reason}"),
            )
        });
    }
    for item in &document.draft.source.unit.items {
        let Item::Class(class) = item else { continue };
        let findings = image.findings.get(class.name.text.as_str());
        for finding in findings.into_iter().flatten() {
            found.push(of_finding(finding, class.name.span, text, &range));
        }
    }
    found
}

/// A finding about a caller of something that was changed; without a place it stands at the class.
fn of_finding(
    finding: &Finding,
    class: Span,
    text: &str,
    range: &impl Fn(Span) -> lsp::Range,
) -> lsp::Diagnostic {
    let found = finding.diagnostic();
    let span = match (found.span_start, found.span_end) {
        (Some(start), Some(end)) if end as usize <= text.len() => Span::new(start, end.max(start)),
        _ => class,
    };
    let severity = match found.severity {
        Severity::Error => lsp::DiagnosticSeverity::Error,
        Severity::Warning => lsp::DiagnosticSeverity::Warning,
        Severity::Lint => lsp::DiagnosticSeverity::Information,
        Severity::Hint => lsp::DiagnosticSeverity::Hint,
    };
    lsp::Diagnostic {
        severity: Some(severity),
        ..diagnostic(
            range(span),
            found.code.as_deref().unwrap_or_default(),
            found.message.clone(),
        )
    }
}

fn diagnostic(range: lsp::Range, code: &str, message: String) -> lsp::Diagnostic {
    lsp::Diagnostic {
        range,
        severity: None,
        code: Some(lsp::Code::String(code.to_owned())),
        code_description: None,
        source: Some("beamtalk reload".to_owned()),
        message: lsp::Message::String(message),
        tags: None,
        related_information: None,
        data: Some(json!({"tag": "reload"})),
    }
}
