//! One change undone.

use std::rc::Rc;

use beamtalk_syntax::definitions::{Outline, class_source};
use beamtalk_syntax::layout::same_method;
use beamtalk_wire::answers::EntryAnswer;
use beamtalk_wire::requests::Revert;
use beamtalk_wire::{ErrorBody, ErrorKind, LoggedEntry};

use super::{bases, close, disk_text, failed, key_of};
use crate::changes::{Entry, Kind, Settled, State, is_class_same};
use crate::workspace::Workspace;

/// Undo one entry, or bring back one that was undone.
pub(in crate::ops) async fn revert(
    workspace: &Rc<Workspace>,
    Revert { seq }: &Revert,
) -> Result<EntryAnswer, ErrorBody> {
    let entry = workspace.changes.borrow().entry(*seq).map_err(failed)?.clone();
    let not_possible = |reason: &str| {
        ErrorBody::new(
            ErrorKind::RevertNotPossible,
            format!("change {} cannot be reverted: {reason}", entry.seq),
        )
    };
    let install_failed = |mut error: ErrorBody| {
        error.kind = ErrorKind::RevertInstallFailed;
        error
    };
    match (entry.state, entry.settled) {
        (State::Pending, _) => {}
        (State::Settled, Some(Settled::Reverted)) => {
            let source = workspace.changes.borrow().source(&entry).map_err(failed)?;
            crate::ops::put::put_again(workspace, &entry, source)
                .await
                .map_err(install_failed)?;
            workspace
                .changes
                .borrow_mut()
                .reopen(&[entry.seq], State::Pending)
                .map_err(failed)?;
            return Ok(now(workspace, *seq));
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
        return Err(ErrorBody::new(ErrorKind::UnsupportedRevertKind, message));
    }
    let previous = workspace
        .changes
        .borrow()
        .previous_source(&entry)
        .map_err(failed)?;
    if entry.kind == Kind::RemoveClass
        && let Some(file) = entry.source_file.as_ref().filter(|_| entry.flushable)
    {
        let disk = disk_text(workspace, file)?.unwrap_or_default();
        let base = workspace.changes.borrow().base(&entry).map_err(failed)?;
        if !is_class_same(&entry.class, &base.unwrap_or_default(), &disk) {
            let hint = ":diff shows it, :take disk loads what is there now";
            return Err(not_possible("the class in its file is not what it was").hint(hint));
        }
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
    let seqs = close(workspace, &later, Settled::Reverted)?;
    if let Err(error) = crate::ops::put::put_back(workspace, &entry, previous).await {
        workspace
            .changes
            .borrow_mut()
            .reopen(&seqs, State::Pending)
            .map_err(failed)?;
        return Err(install_failed(error));
    }
    Ok(now(workspace, *seq))
}

/// The entry as it is now.
fn now(workspace: &Workspace, seq: u64) -> EntryAnswer {
    let log = workspace.changes.borrow();
    let entry = log.entry(seq).ok().cloned();
    EntryAnswer {
        entry: entry.map(|entry| LoggedEntry { entry, warning: None }),
    }
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
