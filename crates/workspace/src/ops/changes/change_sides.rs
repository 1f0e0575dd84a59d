//! Where image and disk differ.

use std::rc::Rc;

use beamtalk_syntax::definitions::{Key, Member, Outline, class_texts};
use beamtalk_wire::ErrorBody;
use beamtalk_wire::answers::{self, ChangeSidesAnswer};
use beamtalk_wire::requests::ChangeSides;

use super::{Selection, bases, disk_text, failed, image_text};
use crate::changes::{Entry, Kind, Side, Wanted, hash};
use crate::workspace::Workspace;

/// One definition three ways.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) key: Key,
    pub(super) base: Option<String>,
    pub(super) image: Option<String>,
    pub(super) disk: Option<String>,
}

pub(super) fn places(
    workspace: &Workspace,
    file: Option<&str>,
    wanted: &[Wanted],
) -> Result<Vec<Place>, ErrorBody> {
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

/// A class that is removed: what of it would go out of its file.
pub(super) fn removed_place(workspace: &Workspace, entry: &Entry) -> Result<Option<Place>, ErrorBody> {
    let file = entry.source_file.as_deref().filter(|_| entry.flushable);
    let (Kind::RemoveClass, Some(file)) = (entry.kind, file) else {
        return Ok(None);
    };
    let disk = disk_text(workspace, file)?;
    let base = workspace.changes.borrow().base(entry).map_err(failed)?;
    let text = |text: Option<String>| {
        let texts = class_texts(text.as_deref()?, &entry.class).join("\n\n");
        (!texts.is_empty()).then_some(texts)
    };
    Ok(Some(Place {
        key: Key::header(&entry.class),
        base: text(base),
        image: None,
        disk: text(disk),
    }))
}

/// Base, image and disk of a file and of what is pending in it.
pub(in crate::ops) fn change_sides(
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
    let mut places = places(workspace, file.as_deref(), &wanted)?;
    let removals = selection.entries.iter().filter(|entry| entry.is_pending());
    for entry in removals {
        let place = removed_place(workspace, entry)?;
        places.extend(place.filter(|place| selection.means(&place.key)));
    }
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
