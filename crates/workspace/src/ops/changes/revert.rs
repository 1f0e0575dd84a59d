//! One change undone.

use std::rc::Rc;

use beamtalk_syntax::definitions::{Outline, class_source};
use beamtalk_syntax::layout::same_method;
use beamtalk_wire::{ErrorBody, Request};
use serde_json::json;

use super::{bases, disk_text, failed, key_of, seq, shown};
use crate::changes::{Entry, Kind, Settled, State};
use crate::ops::Answer;
use crate::workspace::Workspace;

/// Undo one entry, or bring back one that was undone.
pub(in crate::ops) async fn revert(
    workspace: &Rc<Workspace>,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let entry = workspace
        .changes
        .borrow()
        .entry(seq(request)?)
        .map_err(failed)?
        .clone();
    let not_possible = |reason: &str| {
        ErrorBody::new(
            "revert_not_possible",
            format!("change {} cannot be reverted: {reason}", entry.seq),
        )
    };
    let install_failed = |mut error: ErrorBody| {
        "revert_install_failed".clone_into(&mut error.kind);
        error
    };
    match (entry.state, entry.settled) {
        (State::Pending, _) => {}
        (State::Settled, Some(Settled::Reverted)) => {
            let source = workspace.changes.borrow().source(&entry).map_err(failed)?;
            crate::ops::edit::put_again(workspace, &entry, source)
                .await
                .map_err(install_failed)?;
            workspace
                .changes
                .borrow_mut()
                .reopen(&[entry.seq], State::Pending)
                .map_err(failed)?;
            return Ok(json!({"entry": shown(workspace, &[entry.seq]).pop()}).into());
        }
        (State::Waiting, _) => {
            return Err(not_possible("it is not in the image").hint(":discard forgets it"));
        }
        (State::Settled, Some(Settled::Flushed) | None) => {
            return Err(not_possible("it is in its file; undo it with version control"));
        }
        (State::Settled, _) => return Err(not_possible("it was set aside")),
    }
    if entry.kind == Kind::Unknown {
        let message = format!("change {} is of a kind this version cannot revert", entry.seq);
        return Err(ErrorBody::new("unsupported_revert_kind", message));
    }
    let previous = workspace
        .changes
        .borrow()
        .previous_source(&entry)
        .map_err(failed)?;
    if entry.kind == Kind::RemoveClass
        && let Some(file) = entry.source_file.as_ref().filter(|_| entry.flushable)
        && disk_text(workspace, file)? != previous
    {
        return Err(not_possible("its file is not what it was"));
    }
    let previous = as_loaded(workspace, &entry, previous)?;
    // What was changed on top of it goes with it.
    let key = key_of(&entry);
    let later = workspace.changes.borrow().select(|one| {
        one.is_pending()
            && one.seq >= entry.seq
            && one.overlaps(&entry)
            && (key_of(one) == key || entry.selector.is_none() || one.seq > entry.seq)
    });
    let seqs: Vec<u64> = later.iter().map(|entry| entry.seq).collect();
    workspace
        .changes
        .borrow_mut()
        .settle(&seqs, Settled::Reverted)
        .map_err(failed)?;
    if let Err(error) = crate::ops::edit::put_back(workspace, &entry, previous).await {
        workspace
            .changes
            .borrow_mut()
            .reopen(&seqs, State::Pending)
            .map_err(failed)?;
        return Err(install_failed(error));
    }
    Ok(json!({"entry": shown(workspace, &[entry.seq]).pop()}).into())
}

/// What was loaded for the definition since, if the change was made to what was loaded before: a change that was brought
/// back may be older than its file.
fn as_loaded(
    workspace: &Workspace,
    entry: &Entry,
    previous: Option<String>,
) -> Result<Option<String>, ErrorBody> {
    let base = workspace.changes.borrow().base(entry).map_err(failed)?;
    let is_base = match (&previous, &base) {
        (Some(previous), Some(base)) => same_method(previous, base),
        (None, None) => true,
        _ => false,
    };
    let file = entry.source_file.as_ref().filter(|_| entry.flushable);
    let loaded = file.and_then(|file| bases(workspace).remove(file));
    let (Some(loaded), true, false) = (loaded, is_base, entry.is_whole_file) else {
        return Ok(previous);
    };
    let outline = Outline::of_file(&loaded);
    Ok(match (&entry.selector, outline.class(&entry.class)) {
        (Some(_), _) => outline.source_of(&key_of(entry)),
        (None, Some(class)) if entry.kind == Kind::NewClass => Some(class_source(&loaded, class).to_owned()),
        (None, _) => previous,
    })
}
