//! What `lint --fix` would change.

use beamtalk_syntax::diagnostic::Diagnostic;
use serde_json::Value;

use super::{Asked, action};
use crate::analysis::references::Certainty;
use crate::edit::Edits;
use crate::fault::Fault;
use crate::requests::diagnostic;
use crate::world::is_script;

/// The findings of the document that come with a change.
fn fixable(asked: &Asked<'_>) -> Vec<Diagnostic> {
    let Some(document) = asked.snapshot.state.documents.get(&asked.view.key) else {
        return Vec::new();
    };
    let is_script = is_script(&asked.view.key);
    let found = diagnostic::findings(
        &document.draft,
        &asked.view.world,
        &asked.view.world.table,
        is_script,
        false,
    );
    found.into_iter().filter(|one| !one.edits.is_empty()).collect()
}

/// One action for each finding at the place.
pub(super) fn single(asked: &Asked<'_>) -> Result<Vec<Value>, Fault> {
    let mut actions = Vec::new();
    for finding in fixable(asked) {
        if finding.span.start > asked.span.end || asked.span.start > finding.span.end {
            continue;
        }
        let mut edits = Edits::new(asked.snapshot, "");
        for edit in &finding.edits {
            edits.replace(&asked.view.file, edit.span, edit.text, Certainty::Sure)?;
        }
        actions.push(action(
            format!("Fix: {}", finding.message),
            "quickfix",
            edits.finish()?,
        ));
    }
    Ok(actions)
}

/// All of them at once, as far as they do not touch each other.
pub(super) fn all(asked: &Asked<'_>) -> Result<Vec<Value>, Fault> {
    let found = fixable(asked);
    let Some((text, _)) = beamtalk_compiler::lint::fix(asked.view.text(), &found) else {
        return Ok(Vec::new());
    };
    let mut edits = Edits::new(asked.snapshot, "");
    for (span, new) in beamtalk_syntax::diff::changes(asked.view.text(), &text) {
        edits.replace(&asked.view.file, span, new, Certainty::Sure)?;
    }
    let title = "Fix everything that can be fixed".to_owned();
    Ok(vec![action(title, "source.fixAll", edits.finish()?)])
}
