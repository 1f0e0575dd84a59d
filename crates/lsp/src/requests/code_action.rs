//! Changes that are offered at a place: fixes for findings, and ways to write the same thing otherwise.

mod annotate;
mod conflict;
mod declare;
mod dependency;
mod extract;
mod fix;
mod inline;
mod reorder;
mod signature;

use beamtalk_syntax::span::Span;
use gen_lsp_types::CodeActionParams;
use serde_json::{Value, json};

use crate::fault::Fault;
use crate::state::{Snapshot, View};
use crate::world::Access;

/// A place where actions are asked for.
struct Asked<'a> {
    snapshot: &'a Snapshot,
    view: &'a View,
    span: Span,
}

/// The kinds there are; a client may ask for some of them.
pub(crate) const KINDS: &[&str] = &[
    "quickfix",
    "refactor.extract",
    "refactor.inline",
    "refactor.rewrite",
    "source.fixAll",
];

pub(crate) fn handle(snapshot: &Snapshot, params: CodeActionParams) -> Result<Vec<Value>, Fault> {
    let view = snapshot.view(&params.text_document)?;
    if view.file.access != Access::Own {
        return Ok(Vec::new());
    }
    let asked = Asked {
        snapshot,
        view: &view,
        span: view.span(params.range)?,
    };
    let only: Option<Vec<String>> = params
        .context
        .only
        .map(|kinds| kinds.into_iter().map(String::from).collect());
    let wants = |kind: &str| {
        only.as_ref().is_none_or(|kinds| {
            let is_in = |wanted: &String| kind == wanted || kind.starts_with(&format!("{wanted}."));
            kinds.iter().any(is_in)
        })
    };
    let mut actions = Vec::new();
    if wants("quickfix") {
        actions.extend(conflict::actions(&asked));
        actions.extend(fix::single(&asked)?);
        actions.extend(declare::actions(&asked)?);
        actions.extend(dependency::actions(&asked)?);
    }
    if wants("source.fixAll") {
        actions.extend(fix::all(&asked)?);
    }
    if wants("refactor.rewrite") {
        actions.extend(annotate::actions(&asked)?);
        actions.extend(signature::actions(&asked)?);
    }
    if wants("refactor.extract") {
        actions.extend(extract::actions(&asked)?);
    }
    if wants("refactor.inline") {
        actions.extend(inline::actions(&asked)?);
    }
    Ok(actions)
}

fn action(title: String, kind: &str, edit: Value) -> Value {
    json!({"title": title, "kind": kind, "edit": edit})
}
