//! What is wrong with a document: everything `check` and `lint` find, with the severities of the project.

pub(crate) mod live;

use beamtalk_compiler::lint::lint_file;
use beamtalk_compiler::{ClassTable, compile_input, reads};
use beamtalk_project::findings::{Finding, Level};
use beamtalk_syntax::diagnostic::{Diagnostic, Severity};
use beamtalk_syntax::span::Span;
use gen_lsp_types as lsp;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::position::Lines;
use crate::state::Snapshot;
use crate::world::{Draft, World, is_script};

pub(crate) fn handle(snapshot: &Snapshot, params: lsp::DocumentDiagnosticParams) -> Result<Value, Fault> {
    let key = crate::state::key(&params.text_document.uri.0);
    // A document that is too long has diagnostics and nothing else.
    if !snapshot.state.documents.contains_key(&key) {
        snapshot.view(&params.text_document)?;
    }
    let items = of(snapshot, &key)?;
    Ok(json!({"kind": "full", "items": items}))
}

/// The findings of an open document; none for one that belongs to somebody else.
pub(crate) fn of(snapshot: &Snapshot, key: &str) -> Result<Vec<lsp::Diagnostic>, Fault> {
    let Some(document) = snapshot.state.documents.get(key) else {
        return Ok(Vec::new());
    };
    if document.is_read_only {
        return Ok(Vec::new());
    }
    let world = snapshot.state.world(&document.root);
    let text = &document.draft.source.text;
    let lines = Lines::new(text);
    let checked = reads::noting(&world.table, |table| {
        findings(
            &document.draft,
            &world,
            table,
            is_script(key),
            document.is_too_long,
        )
    });
    let found = checked.diagnostics;
    snapshot.go_on()?;
    snapshot.state.noted.note(key, checked.reads);
    let range = |span: Span| lines.range(text, span, snapshot.state.encoding);
    let items = found.iter().filter_map(|diagnostic| {
        let finding = world.policy.apply(&Finding::from(diagnostic))?;
        let mut message = finding.message;
        if let Some(hint) = &finding.hint {
            message = format!("{message}\n{hint}");
        }
        let related = diagnostic
            .notes
            .iter()
            .map(|(span, text)| lsp::DiagnosticRelatedInformation {
                location: lsp::Location {
                    uri: document.uri.clone(),
                    range: range(*span),
                },
                message: text.to_string(),
            });
        let related: Vec<lsp::DiagnosticRelatedInformation> = related.collect();
        let tag = match finding.category.as_deref() {
            Some("unused" | "dead-assignment") => Some(lsp::DiagnosticTag::Unnecessary),
            Some("deprecation") => Some(lsp::DiagnosticTag::Deprecated),
            _ => None,
        };
        Some(lsp::Diagnostic {
            range: range(diagnostic.span),
            severity: Some(severity(finding.severity)),
            code: Some(lsp::Code::String(finding.code)),
            code_description: None,
            source: Some("beamtalk".to_owned()),
            message: lsp::Message::String(message),
            tags: tag.map(|tag| vec![tag]),
            related_information: Some(related).filter(|related| !related.is_empty()),
            data: finding.category.map(|category| json!({"category": category})),
        })
    });
    let mut items: Vec<lsp::Diagnostic> = items.collect();
    items.extend(live::of(snapshot, document, key, &lines));
    Ok(items)
}

/// What parser, compiler and linter say. Until the project is read, an unknown name says nothing.
pub(crate) fn findings(
    draft: &Draft,
    world: &World,
    table: &ClassTable,
    is_script: bool,
    is_too_long: bool,
) -> Vec<Diagnostic> {
    let mut found = draft.diagnostics.clone();
    if is_too_long || !world.is_complete {
        return found;
    }
    let is_broken = found
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error);
    if is_script {
        found.extend(compile_input(&draft.source, table, &[]).diagnostics);
    } else if is_broken {
        found.extend(beamtalk_compiler::check_file(&draft.source, table));
    } else {
        found.extend(lint_file(&draft.source, table));
    }
    found.sort_by_key(|diagnostic| diagnostic.span);
    found
}

fn severity(level: Level) -> lsp::DiagnosticSeverity {
    match level {
        Level::Error => lsp::DiagnosticSeverity::Error,
        Level::Warning => lsp::DiagnosticSeverity::Warning,
        Level::Lint => lsp::DiagnosticSeverity::Information,
        Level::Hint => lsp::DiagnosticSeverity::Hint,
    }
}
