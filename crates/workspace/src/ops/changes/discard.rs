//! Changes set aside: the disk's version is loaded for them.

use std::collections::BTreeMap;
use std::rc::Rc;

use beamtalk_syntax::definitions::Key;
use beamtalk_wire::answers::DecideAnswer;
use beamtalk_wire::requests::Discard;
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::take::adopt;
use super::{Selection, close, disk_text, failed, key_of, shown, with_shadowed};
use crate::changes::{Entry, Settled};
use crate::workspace::Workspace;

/// Set changes aside, and load what is on disk for them.
pub(in crate::ops) async fn discard(
    workspace: &Rc<Workspace>,
    request: &Discard,
) -> Result<DecideAnswer, ErrorBody> {
    let mut selection = Selection::of(workspace, request.into())?;
    selection.entries.retain(Entry::is_open);
    let by_number = request.seq;
    if let (Some(seq), true) = (by_number, selection.entries.is_empty()) {
        return Err(ErrorBody::new(
            ErrorKind::InvalidParameter,
            format!("change {seq} is neither pending nor waiting"),
        ));
    }
    if let (Some(_), [entry]) = (by_number, selection.entries.as_slice())
        && is_shadowed(workspace, entry)
    {
        // A later entry is what the image has, or is to have: that one stays.
        workspace
            .changes
            .borrow_mut()
            .discard_shadowed(entry)
            .map_err(failed)?;
        return Ok(DecideAnswer {
            entries: shown(workspace, &[entry.seq]),
            classes: Vec::new(),
        });
    }
    let (mut seqs, mut classes) = (Vec::new(), Vec::new());
    for (file, entries) in selection.by_file() {
        let (waiting, pending): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(Entry::is_waiting);
        // Together with a definition go the earlier entries for it, lest one of them takes its place.
        let waiting = with_shadowed(workspace, &waiting);
        seqs.extend(close(workspace, &waiting, Settled::Discarded)?);
        if pending.is_empty() {
            continue;
        }
        let pending = with_shadowed(workspace, &pending);
        let disk = if file.is_empty() {
            None
        } else {
            disk_text(workspace, &file)?
        };
        let (own, loaded) = match disk {
            Some(disk) => adopt(workspace, &selection, &file, &disk, &pending, Settled::Discarded).await?,
            None => undo_without_file(workspace, &pending, Settled::Discarded).await?,
        };
        seqs.extend(own);
        classes.extend(loaded);
    }
    Ok(DecideAnswer {
        entries: shown(workspace, &seqs),
        classes,
    })
}

/// Whether a later entry of the same state has made this one irrelevant.
fn is_shadowed(workspace: &Workspace, entry: &Entry) -> bool {
    let later = |one: &Entry| one.state == entry.state && one.shadows(entry);
    !workspace.changes.borrow().select(later).is_empty()
}

/// What is in no file goes back to what it was before the first of the entries.
async fn undo_without_file(
    workspace: &Rc<Workspace>,
    entries: &[Entry],
    how: Settled,
) -> Result<(Vec<u64>, Vec<String>), ErrorBody> {
    let mut first: BTreeMap<Key, &Entry> = BTreeMap::new();
    for entry in entries {
        first.entry(key_of(entry)).or_insert(entry);
    }
    let mut classes = Vec::new();
    let is_class_gone = |key: &Key| {
        let header = first.get(&Key::header(&key.class));
        header.is_some_and(|entry| entry.prev_source_ref.is_none())
    };
    for (key, entry) in &first {
        if is_class_gone(key) && entry.selector.is_some() {
            continue;
        }
        let previous = workspace
            .changes
            .borrow()
            .previous_source(entry)
            .map_err(failed)?;
        crate::ops::put::put_back(workspace, entry, previous).await?;
        classes.push(entry.class.clone());
    }
    let seqs = close(workspace, entries, how)?;
    Ok((seqs, classes))
}
