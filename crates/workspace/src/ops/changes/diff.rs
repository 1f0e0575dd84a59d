//! What a change changes.

use std::rc::Rc;

use beamtalk_syntax::definitions::{Dialect, Edit, Outline, edit, remove_class};
use beamtalk_syntax::diff;
use beamtalk_wire::ErrorBody;
use beamtalk_wire::answers::DiffAnswer;
use beamtalk_wire::requests::Diff;

use super::change_sides::{Place, places, removed_place};
use super::{bases, disk_text, failed};
use crate::changes::{Kind, Wanted};
use crate::workspace::Workspace;

/// An entry against its file as it is now; in a conflict base, image and disk; else what the entry changed.
pub(in crate::ops) fn diff(workspace: &Rc<Workspace>, request: &Diff) -> Result<DiffAnswer, ErrorBody> {
    let seq = request.seq;
    let (own, entry, source) = {
        let log = workspace.changes.borrow();
        let entry = log.entry(seq).map_err(failed)?.clone();
        let source = log.source(&entry).map_err(failed)?;
        (log.diff(seq).map_err(failed)?, entry, source)
    };
    let Some(file) = entry
        .source_file
        .clone()
        .filter(|_| entry.is_pending() && entry.flushable)
    else {
        return Ok(DiffAnswer { diff: own });
    };
    let wanted = workspace.changes.borrow().wanted_of(&entry).map_err(failed)?;
    let conflicts = workspace
        .changes
        .borrow()
        .conflicts(&bases(workspace))
        .map_err(failed)?;
    if conflicts.iter().any(|conflict| conflict.seqs.contains(&seq)) {
        let mut places = places(workspace, Some(&file), &wanted)?;
        places.extend(removed_place(workspace, &entry)?);
        let text: String = places.iter().map(three_way).collect();
        let diff = if text.is_empty() { own } else { text };
        return Ok(DiffAnswer { diff });
    }
    let disk = disk_text(workspace, &file)?.unwrap_or_default();
    let edits: Vec<Edit> = wanted.iter().map(Wanted::edit).collect();
    let new = match entry.kind {
        Kind::RemoveClass => {
            let rest = remove_class(&disk, &entry.class);
            // A file without definitions is deleted, whatever else is in it.
            Some(rest)
                .filter(|rest| Outline::of_file(rest).has_definitions())
                .unwrap_or_default()
        }
        _ if entry.is_whole_file => source.unwrap_or_default(),
        _ => edit(&disk, Dialect::File, &edits).unwrap_or_else(|_| disk.clone()),
    };
    Ok(DiffAnswer {
        // What stands behind a tab is no part of the name for programs that apply a difference.
        diff: diff::unified([&format!("{file}\tdisk"), &format!("{file}\timage")], &disk, &new),
    })
}

/// Base, image and disk of one definition as two unified differences.
fn three_way(place: &Place) -> String {
    let part = |text: &Option<String>| {
        text.as_ref()
            .map_or_else(String::new, |text| format!("{}\n", text.trim_end()))
    };
    let title = place.key.title();
    let (base, image, disk) = (part(&place.base), part(&place.image), part(&place.disk));
    let [named_base, named_image, named_disk] =
        ["base", "image", "disk"].map(|side| format!("{title}\t{side}"));
    let image = diff::unified([&named_base, &named_image], &base, &image);
    let disk = diff::unified([&named_base, &named_disk], &base, &disk);
    format!("{image}{disk}")
}
