//! Where image and disk differ.

use std::rc::Rc;

use beamtalk_syntax::definitions::{Dialect, Edit, Key, Member, Outline, edit, remove_class};
use beamtalk_syntax::diff;
use beamtalk_wire::ErrorBody;
use beamtalk_wire::answers::{self, ChangeSidesAnswer, DiffAnswer};
use beamtalk_wire::requests::{ChangeSides, Diff};

use super::{Selection, bases, disk_text, failed, image_text};
use crate::changes::{Kind, Side, Wanted, hash};
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
        let text: String = places(workspace, Some(&file), &wanted)?
            .iter()
            .map(three_way)
            .collect();
        let diff = if text.is_empty() { own } else { text };
        return Ok(DiffAnswer { diff });
    }
    let disk = disk_text(workspace, &file)?.unwrap_or_default();
    let edits: Vec<Edit> = wanted.iter().map(Wanted::edit).collect();
    let new = match entry.kind {
        Kind::RemoveClass => remove_class(&disk, &entry.class),
        _ if entry.is_whole_file => source.unwrap_or_default(),
        _ => edit(&disk, Dialect::File, &edits).unwrap_or_else(|_| disk.clone()),
    };
    Ok(DiffAnswer {
        diff: diff::unified(&file, &disk, &new),
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
    let image = diff::unified(&format!("{title} (image against base)"), &base, &image);
    let disk = diff::unified(&format!("{title} (disk against base)"), &base, &disk);
    format!("{image}{disk}")
}

/// One definition three ways.
#[derive(Debug)]
struct Place {
    key: Key,
    base: Option<String>,
    image: Option<String>,
    disk: Option<String>,
}

fn places(workspace: &Workspace, file: Option<&str>, wanted: &[Wanted]) -> Result<Vec<Place>, ErrorBody> {
    let disk = file.map(|file| disk_text(workspace, file)).transpose()?.flatten();
    let disk = disk.unwrap_or_default();
    let disk = Outline::of_file(&disk);
    let place = |wanted: &Wanted| Place {
        key: wanted.key.clone(),
        base: wanted.base.clone(),
        image: wanted.source.clone(),
        disk: disk.text_of(&wanted.key),
    };
    Ok(wanted.iter().map(place).collect())
}

/// Base, image and disk of a file and of what is pending in it.
pub(in crate::ops) fn sides(
    workspace: &Rc<Workspace>,
    request: &ChangeSides,
) -> Result<ChangeSidesAnswer, ErrorBody> {
    let selection = Selection::of(workspace, request.into())?;
    let file = selection.file(workspace);
    let log = workspace.changes.borrow();
    let wanted = match (&file, selection.entries.as_slice()) {
        (_, [one]) => log.wanted_of(one),
        (Some(file), _) => log.wanted(file),
        (None, _) => Ok(Vec::new()),
    };
    let mut wanted = wanted.map_err(failed)?;
    drop(log);
    wanted.retain(|wanted| selection.means(&wanted.key));
    let places = places(workspace, file.as_deref(), &wanted)?;
    let part = |key: &Key| match &key.member {
        Member::Header => (None, None),
        Member::Method { is_class, selector } => {
            let side = if *is_class { Side::Class } else { Side::Instance };
            (Some(side), Some(selector.to_string()))
        }
    };
    let shown = places.iter().map(|place| {
        let (side, selector) = part(&place.key);
        answers::Place {
            class: place.key.class.to_string(),
            side,
            selector,
            base: place.base.clone(),
            image: place.image.clone(),
            disk: place.disk.clone(),
        }
    });
    let shown = shown.collect();
    let disk = match &file {
        Some(file) => disk_text(workspace, file)?,
        None => None,
    };
    let image = file.as_ref().and_then(|file| image_text(workspace, file));
    let base = file.as_ref().and_then(|file| bases(workspace).remove(file));
    let texts = match (places.as_slice(), selection.is_whole_file()) {
        ([place], false) => [place.base.clone(), place.image.clone(), place.disk.clone()],
        _ => [base, image.map(|image| image.text), disk.clone()],
    };
    let [base, image, shown_disk] = texts;
    Ok(ChangeSidesAnswer {
        file,
        base,
        image,
        disk: shown_disk,
        disk_sha256: disk.map(|disk| hash(disk.as_bytes())),
        places: shown,
    })
}
