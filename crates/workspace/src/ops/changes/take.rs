//! A conflict decided for one side.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use beamtalk_syntax::definitions::{Dialect, Edit, Key, Member, Outline, edit};
use beamtalk_wire::answers::TakeAnswer;
use beamtalk_wire::requests::{From, Take};
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::{
    Selection, bases, change_image, check_shown, disk_text, failed, image_text, key_of, set_base, shown,
    with_shadowed,
};
use crate::changes::{
    Entry, Intent, Kind, NewEntry, Settled, Side, State, Wanted, first_error, is_class_same, moved_base,
};
use crate::compile::job::SourceText;
use crate::ops::load::{install_text, load_texts, source_text};
use crate::workspace::Workspace;

/// Settle conflicts in favour of one side.
pub(in crate::ops) async fn take(workspace: &Rc<Workspace>, request: &Take) -> Result<TakeAnswer, ErrorBody> {
    let mut selection = Selection::of(workspace, request.into())?;
    let from_disk = request.from == From::Disk;
    if selection.entries.is_empty() {
        return Err(
            ErrorBody::new(ErrorKind::NotFound, "there is no pending change of that")
                .hint(":changes lists what is pending"),
        );
    }
    let mut seqs = Vec::new();
    for (file, entries) in selection.by_file() {
        let entries: Vec<Entry> = entries.into_iter().filter(Entry::is_pending).collect();
        if file.is_empty() || entries.is_empty() {
            continue;
        }
        let disk = disk_text(workspace, &file)?;
        check_shown(request.disk_sha256.as_ref(), disk.as_deref(), &file)?;
        if let Some(error) = disk.as_deref().and_then(first_error) {
            return Err(ErrorBody::new(ErrorKind::ParseError, format!("{file}: {error}"))
                .hint("repair the file first"));
        }
        let mut entries = entries;
        if let (None, Some(disk)) = (&selection.method, &disk) {
            entries = in_conflict(workspace, &mut selection, &file, disk, entries)?;
            if entries.is_empty() {
                continue;
            }
        }
        let entries = with_shadowed(workspace, &entries);
        if from_disk {
            let Some(disk) = disk else {
                return Err(
                    ErrorBody::new(ErrorKind::FileNotFound, format!("{file} is not there any more"))
                        .hint("put it back, or :take image"),
                );
            };
            seqs.extend(
                adopt(workspace, &selection, &file, &disk, &entries, Settled::Replaced)
                    .await?
                    .0,
            );
        } else {
            seqs.extend(keep_image(
                workspace,
                &selection,
                &file,
                disk.as_deref(),
                &entries,
            )?);
        }
    }
    let left = workspace
        .changes
        .borrow()
        .conflicts(&bases(workspace))
        .map_err(failed)?;
    Ok(TakeAnswer {
        entries: shown(workspace, &seqs),
        conflicts: left,
    })
}

/// Those of the pending entries of a file that are in conflict with the disk; from now on the selection means only their
/// definitions that are. What was changed only in the image is nothing to choose about.
fn in_conflict(
    workspace: &Workspace,
    selection: &mut Selection,
    file: &str,
    disk: &str,
    mut entries: Vec<Entry>,
) -> Result<Vec<Entry>, ErrorBody> {
    let log = workspace.changes.borrow();
    let now = Outline::of_file(disk);
    let differs = |wanted: &Wanted| {
        !wanted.is_in(disk) && (now.text_of(&wanted.key) != wanted.base || !has_place(wanted, disk))
    };
    let wanted = log.wanted(file).map_err(failed)?;
    let keys: BTreeSet<Key> = wanted
        .into_iter()
        .filter(differs)
        .map(|wanted| wanted.key)
        .collect();
    let mut kept = Vec::new();
    for entry in entries.drain(..) {
        let is_conflict = if entry.is_whole_file {
            log.source(&entry).map_err(failed)?.as_deref() != Some(disk)
        } else if entry.kind == Kind::RemoveClass {
            let base = log.base(&entry).map_err(failed)?.unwrap_or_default();
            now.class(&entry.class).is_some() && !is_class_same(&entry.class, &base, disk)
        } else {
            let own = log.wanted_of(&entry).map_err(failed)?;
            own.iter().any(|wanted| keys.contains(&wanted.key))
        };
        if is_conflict {
            kept.push(entry);
        }
    }
    drop(log);
    selection.only = Some(keys);
    Ok(kept)
}

/// Whether a flush could put the image's version into a text.
fn has_place(wanted: &Wanted, text: &str) -> bool {
    edit(text, Dialect::File, &[wanted.edit()]).is_ok()
}

/// The image's version is wanted: the disk's version of now becomes the base. Answers the entries changed.
pub(super) fn keep_image(
    workspace: &Rc<Workspace>,
    selection: &Selection,
    file: &str,
    disk: Option<&str>,
    entries: &[Entry],
) -> Result<Vec<u64>, ErrorBody> {
    let Some(disk) = disk else {
        return written_anew(workspace, file, entries);
    };
    let now = Outline::of_file(disk);
    let mut log = workspace.changes.borrow_mut();
    let mut seqs = Vec::new();
    for entry in entries {
        let own = log.wanted_of(entry).map_err(failed)?;
        let lost = own.iter().find(|one| {
            selection.means(&one.key) && now.class(&entry.class).is_none() && !has_place(one, disk)
        });
        if let Some(lost) = lost {
            let title = lost.key.title();
            return Err(ErrorBody::new(
                ErrorKind::ReloadFailed,
                format!("{title} has no place in {file} as it is on disk"),
            )
            .hint(format!("put {} back into the file, or :take disk", entry.class)));
        }
        let base = match (&entry.selector, entry.kind) {
            (Some(_), _) => now.text_of(&key_of(entry)),
            _ if entry.is_whole_file => Some(disk.to_owned()),
            (None, Kind::RemoveClass) => Some(disk.to_owned()),
            _ => {
                let base = log.base(entry).map_err(failed)?.unwrap_or_default();
                let wanted = log.wanted_of(entry).map_err(failed)?;
                let meant: Vec<Wanted> = wanted
                    .into_iter()
                    .filter(|one| selection.means(&one.key))
                    .collect();
                let class = now.class(&entry.class);
                // Without the class on disk there is nothing that could be replaced.
                class.is_some().then(|| moved_base(&base, disk, &meant))
            }
        };
        log.rebase(entry.seq, base.as_deref()).map_err(failed)?;
        seqs.push(entry.seq);
    }
    Ok(seqs)
}

/// The file is gone: the next flush writes it as the image has it.
fn written_anew(workspace: &Rc<Workspace>, file: &str, entries: &[Entry]) -> Result<Vec<u64>, ErrorBody> {
    let Some(image) = image_text(workspace, file) else {
        return Ok(Vec::new());
    };
    let Some(last) = entries.last() else {
        return Ok(Vec::new());
    };
    let class = Outline::of_file(&image.text)
        .classes()
        .next()
        .map(|class| class.name.text.to_string());
    let mut log = workspace.changes.borrow_mut();
    let text = log.without_tries(file, &image.text).map_err(failed)?;
    let of_file: Vec<u64> = log
        .select(|entry| {
            entry.is_pending() && entry.is_durable() && entry.source_file.as_deref() == Some(file)
        })
        .iter()
        .map(|entry| entry.seq)
        .collect();
    let entry = log
        .record(NewEntry {
            kind: Kind::NewClass,
            class: class.unwrap_or_else(|| last.class.clone()),
            selector: None,
            side: None,
            intent: Intent::Durable,
            source: Some(text),
            prev_source: None,
            base: None,
            is_whole_file: true,
            source_file: Some(file.to_owned()),
            author: last.author.clone(),
            author_kind: last.author_kind,
            not_flushable_reason: None,
        })
        .map_err(failed)?;
    log.settle(&of_file, Settled::Replaced).map_err(failed)?;
    Ok(of_file.into_iter().chain([entry.seq]).collect())
}

/// The disk's version of what entries of a file changed goes into the image, and they are settled. Answers their numbers
/// and the classes loaded.
pub(super) async fn adopt(
    workspace: &Rc<Workspace>,
    selection: &Selection,
    file: &str,
    disk: &str,
    entries: &[Entry],
    how: Settled,
) -> Result<(Vec<u64>, Vec<String>), ErrorBody> {
    let mut settled: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
    let is_whole = entries
        .iter()
        .any(|entry| entry.is_whole_file || entry.kind == Kind::RemoveClass);
    let mut classes = Vec::new();
    if entries.iter().any(Entry::is_pending) {
        if is_whole || image_text(workspace, file).is_none() {
            // The file as a whole: what is settled here must not come back from the log while it is loaded.
            let pending: Vec<u64> = entries
                .iter()
                .filter(|one| one.is_pending())
                .map(|one| one.seq)
                .collect();
            workspace
                .changes
                .borrow_mut()
                .settle(&pending, how)
                .map_err(failed)?;
            let text = source_text(workspace, &workspace.root.join(file))?;
            match load_texts(workspace, vec![text]).await {
                Ok(answer) => classes = answer.classes,
                Err(error) => {
                    let mut log = workspace.changes.borrow_mut();
                    log.reopen(&pending, State::Pending).map_err(failed)?;
                    return Err(error);
                }
            }
        } else {
            let (wanted, in_part) = wanted_of(workspace, selection, entries)?;
            let now = Outline::of_file(disk);
            let changes: Vec<(Key, Option<String>)> = wanted
                .iter()
                .map(|wanted| (wanted.key.clone(), now.source_of(&wanted.key)))
                .collect();
            let base = bases(workspace).remove(file).unwrap_or_default();
            let base = match change_image(workspace, file, &changes).await {
                Ok(loaded) => {
                    classes = loaded;
                    moved_base(&base, disk, &wanted)
                }
                // The rest of the image's text may not go with them: then the whole file becomes the disk's.
                Err(_) => {
                    classes = adopt_file(workspace, file, disk, &wanted).await?;
                    disk.to_owned()
                }
            };
            set_base(workspace, file, Some(base));
            for (entry, own) in &in_part {
                narrow(workspace, entry, disk, own)?;
            }
            // What a narrowed entry made irrelevant must not come back by its end.
            let stays = |entry: &Entry| {
                in_part
                    .iter()
                    .any(|(one, _)| one.seq == entry.seq || one.shadows(entry))
            };
            settled.retain(|seq| !entries.iter().any(|entry| entry.seq == *seq && stays(entry)));
        }
    }
    workspace
        .changes
        .borrow_mut()
        .settle(&settled, how)
        .map_err(failed)?;
    Ok((entries.iter().map(|entry| entry.seq).collect(), classes))
}

/// The disk's version of a file goes into the image, except what is pending beside these definitions.
async fn adopt_file(
    workspace: &Rc<Workspace>,
    file: &str,
    disk: &str,
    wanted: &[Wanted],
) -> Result<Vec<String>, ErrorBody> {
    let mut rest = workspace.changes.borrow().wanted(file).map_err(failed)?;
    rest.retain(|one| !wanted.iter().any(|wanted| wanted.key == one.key));
    let edits: Vec<Edit> = rest.iter().map(Wanted::edit).collect();
    let text = edit(disk, Dialect::File, &edits).map_err(|(index, _)| {
        let title = rest
            .get(index)
            .map(|wanted| wanted.key.title())
            .unwrap_or_default();
        ErrorBody::new(
            ErrorKind::ReloadFailed,
            format!("{title} has no place in {file} as it is on disk"),
        )
        .hint("take or discard that one too")
    })?;
    let text = SourceText {
        text,
        ..source_text(workspace, &workspace.root.join(file))?
    };
    Ok(install_text(workspace, text).await?.classes)
}

/// An entry with those of its definitions that are meant.
type InPart = (Entry, Vec<Wanted>);

/// The definitions that are meant, and the class definitions of which only a part is.
fn wanted_of(
    workspace: &Workspace,
    selection: &Selection,
    entries: &[Entry],
) -> Result<(Vec<Wanted>, Vec<InPart>), ErrorBody> {
    let log = workspace.changes.borrow();
    // A method may be in a definition of its class and in an entry of its own.
    let (mut meant, mut in_part) = (BTreeMap::new(), Vec::new());
    for entry in entries.iter().filter(|entry| entry.is_pending()) {
        if entries
            .iter()
            .any(|later| later.is_pending() && later.shadows(entry))
        {
            continue;
        }
        // A later entry that is not among them is what the image has.
        let is_later = |key: &Key| {
            let later = |one: &Entry| {
                one.is_pending() && one.seq > entry.seq && one.selector.is_some() && key_of(one) == *key
            };
            let among = |one: &Entry| entries.iter().any(|entry| entry.seq == one.seq);
            log.select(later).iter().any(|one| !among(one))
        };
        let (own, others): (Vec<Wanted>, Vec<Wanted>) = log
            .wanted_of(entry)
            .map_err(failed)?
            .into_iter()
            .filter(|wanted| !is_later(&wanted.key))
            .partition(|wanted| selection.means(&wanted.key));
        if !others.is_empty() {
            in_part.push((entry.clone(), own.clone()));
        }
        meant.extend(own.into_iter().map(|wanted| (wanted.key.clone(), wanted)));
    }
    Ok((meant.into_values().collect(), in_part))
}

/// Some definitions of a class definition have become the disk's; the rest stays pending. What they were stays in the log.
fn narrow(workspace: &Workspace, entry: &Entry, disk: &str, own: &[Wanted]) -> Result<(), ErrorBody> {
    let mut log = workspace.changes.borrow_mut();
    let source = log.source(entry).map_err(failed)?.unwrap_or_default();
    let base = log.base(entry).map_err(failed)?.unwrap_or_default();
    for wanted in own {
        let method = match &wanted.key.member {
            Member::Method { is_class, selector } => Some((*is_class, selector.to_string())),
            Member::Header => None,
        };
        let (kind, text, prev_source, known) = match &method {
            // A header is nothing by itself: the definition as it was.
            None => (
                entry.kind,
                Some(source.clone()),
                log.previous_source(entry).map_err(failed)?,
                Some(base.clone()),
            ),
            Some((is_class, _)) => {
                let kind = match (&wanted.source, is_class) {
                    (None, _) => Kind::RemoveMethod,
                    (Some(_), true) => Kind::Class,
                    (Some(_), false) => Kind::Instance,
                };
                (
                    kind,
                    wanted.source.clone(),
                    wanted.base.clone(),
                    wanted.base.clone(),
                )
            }
        };
        let side = |is_class| if is_class { Side::Class } else { Side::Instance };
        let copy = log
            .record(NewEntry {
                kind,
                class: entry.class.clone(),
                side: method.as_ref().map(|(is_class, _)| side(*is_class)),
                selector: method.map(|(_, selector)| selector),
                intent: entry.intent,
                source: text,
                prev_source,
                base: known,
                is_whole_file: false,
                source_file: entry.source_file.clone(),
                author: entry.author.clone(),
                author_kind: entry.author_kind,
                not_flushable_reason: None,
            })
            .map_err(failed)?;
        log.settle(&[copy.seq], Settled::Replaced).map_err(failed)?;
    }
    let (source, base) = (moved_base(&source, disk, own), moved_base(&base, disk, own));
    log.narrow(entry.seq, &source, &base).map_err(failed)
}
