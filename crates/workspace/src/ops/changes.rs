//! The change log: what is pending, where image and disk differ, and every way to decide about it.

use std::collections::BTreeMap;
use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_syntax::definitions::{Change, Dialect, Edit, Key, Member, Outline, edit, remove_class};
use beamtalk_syntax::diff;
use beamtalk_wire::{Channel, ErrorBody, Request};
use serde_json::{Value, json};

use super::load::{class_info, install_text, load_texts, source_text};
use super::{Answer, Caller};
use crate::changes::{
    AuthorKind, ChangeError, Conflict, ConflictReason, Entry, FileState, Filter, Kind, NewEntry, Settled,
    Side, State, Wanted, first_error, hash, moved_base,
};
use crate::compile::job::SourceText;
use crate::terms;
use crate::workspace::Workspace;

pub(super) fn failed(error: ChangeError) -> ErrorBody {
    ErrorBody::new(error.kind(), error.to_string())
}

/// The package of the project itself.
fn own_package(workspace: &Workspace) -> Option<String> {
    let project = workspace.project.borrow();
    project.as_ref().and_then(|image| image.name.clone())
}

/// The path by which the change log knows a text, if it is one of the project's own files.
pub(super) fn project_file(workspace: &Workspace, text: &SourceText) -> Option<String> {
    let is_own = text.package.is_none() || text.package == own_package(workspace);
    is_own.then(|| workspace.changes.borrow().normal(&text.path))
}

/// The project's files as the image loaded or last flushed them.
pub(super) fn bases(workspace: &Workspace) -> BTreeMap<String, String> {
    let own = own_package(workspace);
    workspace.compiler.known.borrow().bases(own.as_deref())
}

/// A file of the project as the image has it.
pub(super) fn image_text(workspace: &Workspace, file: &str) -> Option<SourceText> {
    let own = own_package(workspace);
    let known = workspace.compiler.known.borrow();
    known
        .file(own.as_deref(), file)
        .or_else(|| known.file(None, file))
        .cloned()
}

fn set_base(workspace: &Workspace, file: &str, base: Option<String>) {
    let package = image_text(workspace, file).map_or_else(|| own_package(workspace), |text| text.package);
    let path = workspace.root.join(file);
    match &base {
        Some(base) => workspace.disk.borrow_mut().loaded(&path, base.as_bytes()),
        None => workspace.disk.borrow_mut().removed(&path),
    }
    workspace
        .compiler
        .known
        .borrow_mut()
        .set_base(package.as_deref(), file, base);
}

/// The text of a file on disk; `None` when there is none.
fn disk_text(workspace: &Workspace, file: &str) -> Result<Option<String>, ErrorBody> {
    match workspace.changes.borrow().file_state(file) {
        FileState::Text { text, .. } => Ok(Some(text)),
        FileState::Missing => Ok(None),
        FileState::Outside => Err(ErrorBody::new(
            "read_error",
            format!("{file} is not in the project"),
        )),
        FileState::Unreadable(cause) => Err(ErrorBody::new("read_error", format!("{file}: {cause}"))),
    }
}

/// Every path that writes a file of the project passes here first.
pub(super) fn may_write(workspace: &Workspace, what: &str) -> Result<(), ErrorBody> {
    if !workspace.options.read_only_fs {
        return Ok(());
    }
    Err(ErrorBody::new(
        "capability_disabled",
        format!("{what} is switched off in this workspace (--read-only-fs)"),
    )
    .hint("Restart the workspace without the flag to allow it")
    .detail("capability", "fs"))
}

// ---- looking ----

pub(super) fn changes(workspace: &Rc<Workspace>, request: &Request) -> Result<Answer, ErrorBody> {
    let log = workspace.changes.borrow();
    let entries = if request.flag("all")? {
        log.all()
    } else {
        log.active()
    };
    let waiting = log.waiting().map_err(failed)?;
    let conflicts = log.conflicts(&bases(workspace)).map_err(failed)?;
    Ok(json!({"entries": entries.map_err(failed)?, "waiting": waiting, "conflicts": conflicts}).into())
}

pub(super) fn dirty(workspace: &Rc<Workspace>) -> Result<Answer, ErrorBody> {
    let dirty = workspace.changes.borrow().dirty().map_err(failed)?;
    Ok(json!({ "dirty": dirty }).into())
}

/// An entry against its file as it is now; in a conflict base, image and disk; else what the entry changed.
pub(super) fn diff(workspace: &Rc<Workspace>, request: &Request) -> Result<Answer, ErrorBody> {
    let seq = seq(request)?;
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
        return Ok(json!({"diff": own}).into());
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
        return Ok(json!({"diff": if text.is_empty() { own } else { text }}).into());
    }
    let disk = disk_text(workspace, &file)?.unwrap_or_default();
    let edits: Vec<Edit> = wanted.iter().map(Wanted::edit).collect();
    let new = match entry.kind {
        Kind::RemoveClass => remove_class(&disk, &entry.class),
        _ if entry.is_whole_file => source.unwrap_or_default(),
        _ => edit(&disk, Dialect::File, &edits).unwrap_or_else(|_| disk.clone()),
    };
    Ok(json!({"diff": diff::unified(&file, &disk, &new)}).into())
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
pub(super) fn sides(workspace: &Rc<Workspace>, request: &Request) -> Result<Answer, ErrorBody> {
    let selection = Selection::of(workspace, request)?;
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
        Member::Header => (Value::Null, Value::Null),
        Member::Method { is_class, selector } => (
            json!(if *is_class { Side::Class } else { Side::Instance }),
            json!(selector.as_str()),
        ),
    };
    let shown: Vec<Value> = places
        .iter()
        .map(|place| {
            let (side, selector) = part(&place.key);
            json!({
                "class": place.key.class.as_str(), "side": side, "selector": selector,
                "base": place.base, "image": place.image, "disk": place.disk,
            })
        })
        .collect();
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
    Ok(json!({
        "file": file, "base": base, "image": image, "disk": shown_disk,
        "disk_sha256": disk.map(|disk| hash(disk.as_bytes())), "places": shown,
    })
    .into())
}

/// What a request is about.
struct Selection {
    /// Pending or waiting entries, oldest first; one of any state when its number is given.
    entries: Vec<Entry>,
    class: Option<String>,
    /// Selector and side.
    method: Option<(String, Option<bool>)>,
    whole_file: Option<String>,
}

impl Selection {
    /// One of `seq`, `class` (with `selector` and `side`), `file`, `all`.
    fn of(workspace: &Workspace, request: &Request) -> Result<Self, ErrorBody> {
        let log = workspace.changes.borrow();
        let file = request.optional_text("file")?.map(|file| log.normal(file));
        let class = request.optional_text("class")?.map(str::to_owned);
        let selector = request.optional_text("selector")?;
        let side = match request.optional_text("side")? {
            None => None,
            Some("instance") => Some(false),
            Some("class") => Some(true),
            Some(_) => return Err(request.invalid("side", "instance or class")),
        };
        let seq = request.number("seq")?;
        let all = request.flag("all")?;
        let given = [seq.is_some(), class.is_some(), file.is_some(), all];
        if given.iter().filter(|given| **given).count() != 1 {
            return Err(ErrorBody::new(
                "missing_parameter",
                format!(
                    "'{}' needs exactly one of 'seq', 'class', 'file', 'all'",
                    request.op.name()
                ),
            ));
        }
        let method = selector.map(|selector| (selector.trim_start_matches('#').to_owned(), side));
        let entries = match seq {
            Some(seq) => vec![log.entry(seq).map_err(failed)?.clone()],
            None => log.select(|entry| {
                entry.is_open()
                    && class.as_ref().is_none_or(|class| *class == entry.class)
                    && file
                        .as_ref()
                        .is_none_or(|file| Some(file) == entry.source_file.as_ref())
            }),
        };
        let mut selection = Self {
            entries,
            class,
            method,
            whole_file: file,
        };
        if selection.method.is_some() {
            let mut entries = std::mem::take(&mut selection.entries);
            entries.retain(|entry| entry.selector.is_none() || selection.means(&key_of(entry)));
            selection.entries = entries;
        }
        Ok(selection)
    }

    fn means(&self, key: &Key) -> bool {
        let is_class = self.class.as_ref().is_none_or(|class| key.class == *class);
        let is_method = match (&self.method, &key.member) {
            (None, _) => true,
            (
                Some((selector, side)),
                Member::Method {
                    is_class,
                    selector: own,
                },
            ) => own == selector && side.is_none_or(|side| side == *is_class),
            (Some(_), Member::Header) => false,
        };
        is_class && is_method
    }

    fn is_whole_file(&self) -> bool {
        self.whole_file.is_some()
    }

    /// The one file it is about.
    fn file(&self, workspace: &Workspace) -> Option<String> {
        if let Some(file) = &self.whole_file {
            return Some(file.clone());
        }
        if let Some(file) = self.entries.iter().find_map(|entry| entry.source_file.clone()) {
            return Some(file);
        }
        let known = workspace.compiler.known.borrow();
        let of_class = |text: &SourceText| {
            let class = self.class.as_deref().unwrap_or_default();
            Outline::of_file(&text.text).class(class).is_some()
        };
        known.files(of_class).first().map(|text| text.path.clone())
    }

    /// Its entries by file; those without one are under the empty name.
    fn by_file(&self) -> BTreeMap<String, Vec<Entry>> {
        let mut files: BTreeMap<String, Vec<Entry>> = BTreeMap::new();
        for entry in &self.entries {
            let file = entry.source_file.clone().filter(|_| entry.flushable);
            files
                .entry(file.unwrap_or_default())
                .or_default()
                .push(entry.clone());
        }
        files
    }
}

fn key_of(entry: &Entry) -> Key {
    match &entry.selector {
        Some(selector) => Key::method(&entry.class, entry.side == Some(Side::Class), selector),
        None => Key::header(&entry.class),
    }
}

pub(super) fn seq(request: &Request) -> Result<u64, ErrorBody> {
    request.number("seq")?.ok_or_else(|| {
        ErrorBody::new(
            "missing_parameter",
            format!("'{}' needs the field 'seq'", request.op.name()),
        )
    })
}

/// Entries as they are now.
fn shown(workspace: &Workspace, seqs: &[u64]) -> Vec<Value> {
    let log = workspace.changes.borrow();
    let entries = seqs.iter().filter_map(|seq| log.entry(*seq).ok());
    entries.map(|entry| json!(entry)).collect()
}

/// A choice counts for what was shown.
fn check_shown(request: &Request, disk: Option<&str>, file: &str) -> Result<(), ErrorBody> {
    let Some(wanted) = request.optional_text("disk_sha256")? else {
        return Ok(());
    };
    let now = disk.map(|disk| hash(disk.as_bytes()));
    if now.as_deref() == Some(wanted) || (now.is_none() && wanted.is_empty()) {
        return Ok(());
    }
    let error = ErrorBody::new(
        "file_changed",
        format!("{file} is not what it was when it was shown"),
    )
    .hint("look at it again, then choose");
    Err(error.detail("disk_sha256", now.map_or(Value::Null, Value::from)))
}

// ---- choosing ----

/// Settle conflicts in favour of one side.
pub(super) async fn take(workspace: &Rc<Workspace>, request: &Request) -> Result<Answer, ErrorBody> {
    let selection = Selection::of(workspace, request)?;
    let from_disk = match request.text("from")? {
        "image" => false,
        "disk" => true,
        _ => return Err(request.invalid("from", "image or disk")),
    };
    if selection.entries.is_empty() {
        return Err(ErrorBody::new("not_found", "there is no pending change of that")
            .hint(":changes lists what is pending"));
    }
    let mut seqs = Vec::new();
    for (file, entries) in selection.by_file() {
        let entries: Vec<Entry> = entries.into_iter().filter(Entry::is_pending).collect();
        if file.is_empty() || entries.is_empty() {
            continue;
        }
        let entries = with_shadowed(workspace, &entries);
        let disk = disk_text(workspace, &file)?;
        check_shown(request, disk.as_deref(), &file)?;
        if let Some(error) = disk.as_deref().and_then(first_error) {
            return Err(
                ErrorBody::new("parse_error", format!("{file}: {error}")).hint("repair the file first")
            );
        }
        if from_disk {
            let Some(disk) = disk else {
                return Err(
                    ErrorBody::new("file_not_found", format!("{file} is not there any more"))
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
    Ok(json!({"entries": shown(workspace, &seqs), "conflicts": left}).into())
}

/// The image's version is wanted: the disk's version of now becomes the base. Answers the entries changed.
fn keep_image(
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
    let of_file: Vec<u64> = log
        .select(|entry| entry.is_pending() && entry.source_file.as_deref() == Some(file))
        .iter()
        .map(|entry| entry.seq)
        .collect();
    let entry = log
        .record(NewEntry {
            kind: Kind::NewClass,
            class: class.unwrap_or_else(|| last.class.clone()),
            selector: None,
            side: None,
            intent: last.intent,
            source: Some(image.text),
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
async fn adopt(
    workspace: &Rc<Workspace>,
    selection: &Selection,
    file: &str,
    disk: &str,
    entries: &[Entry],
    how: Settled,
) -> Result<(Vec<u64>, Vec<Value>), ErrorBody> {
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
                Ok(answer) => classes = list(&answer, "classes"),
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
            classes = change_image(workspace, file, &changes).await?;
            let base = bases(workspace).remove(file).unwrap_or_default();
            set_base(workspace, file, Some(moved_base(&base, disk, &wanted)));
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
        let (own, others): (Vec<Wanted>, Vec<Wanted>) = log
            .wanted_of(entry)
            .map_err(failed)?
            .into_iter()
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
    for wanted in own {
        let Member::Method { is_class, selector } = &wanted.key.member else {
            continue;
        };
        let copy = log
            .record(NewEntry {
                kind: match (&wanted.source, is_class) {
                    (None, _) => Kind::RemoveMethod,
                    (Some(_), true) => Kind::Class,
                    (Some(_), false) => Kind::Instance,
                },
                class: entry.class.clone(),
                selector: Some(selector.to_string()),
                side: Some(if *is_class { Side::Class } else { Side::Instance }),
                intent: entry.intent,
                source: wanted.source.clone(),
                prev_source: wanted.base.clone(),
                base: wanted.base.clone(),
                is_whole_file: false,
                source_file: entry.source_file.clone(),
                author: entry.author.clone(),
                author_kind: entry.author_kind,
                not_flushable_reason: None,
            })
            .map_err(failed)?;
        log.settle(&[copy.seq], Settled::Replaced).map_err(failed)?;
    }
    let source = log.source(entry).map_err(failed)?.unwrap_or_default();
    let base = log.base(entry).map_err(failed)?.unwrap_or_default();
    let (source, base) = (moved_base(&source, disk, own), moved_base(&base, disk, own));
    log.narrow(entry.seq, &source, &base).map_err(failed)
}

/// Give the image other definitions of a file; answers the classes loaded.
pub(super) async fn change_image(
    workspace: &Rc<Workspace>,
    file: &str,
    changes: &[(Key, Option<String>)],
) -> Result<Vec<Value>, ErrorBody> {
    let Some(image) = image_text(workspace, file) else {
        return Err(ErrorBody::new(
            "reload_failed",
            format!("{file} is not in the image"),
        ));
    };
    let edits: Vec<Edit> = changes
        .iter()
        .map(|(key, source)| Edit {
            key,
            change: source.as_deref().map_or(Change::Remove, Change::Put),
        })
        .collect();
    let text = edit(&image.text, Dialect::File, &edits).map_err(|(index, _)| {
        let title = changes.get(index).map(|(key, _)| key.title()).unwrap_or_default();
        ErrorBody::new(
            "reload_failed",
            format!("{title} has no place in {file} as the image has it"),
        )
        .hint("reload the class, or define it anew")
    })?;
    if text == image.text {
        return Ok(Vec::new());
    }
    let answer = install_text(workspace, SourceText { text, ..image }).await?;
    Ok(list(&answer, "classes"))
}

fn list(answer: &serde_json::Map<String, Value>, field: &str) -> Vec<Value> {
    answer
        .get(field)
        .and_then(Value::as_array)
        .cloned()
        .unwrap_or_default()
}

/// Set changes aside, and load what is on disk for them.
pub(super) async fn discard(workspace: &Rc<Workspace>, request: &Request) -> Result<Answer, ErrorBody> {
    let mut selection = Selection::of(workspace, request)?;
    selection.entries.retain(Entry::is_open);
    let by_number = request.number("seq")?;
    if let (Some(seq), true) = (by_number, selection.entries.is_empty()) {
        return Err(ErrorBody::new(
            "invalid_parameter",
            format!("change {seq} is neither pending nor waiting"),
        ));
    }
    let (mut seqs, mut classes) = (Vec::new(), Vec::new());
    for (file, entries) in selection.by_file() {
        let (waiting, pending): (Vec<Entry>, Vec<Entry>) = entries.into_iter().partition(Entry::is_waiting);
        let waiting: Vec<u64> = waiting.iter().map(|entry| entry.seq).collect();
        workspace
            .changes
            .borrow_mut()
            .settle(&waiting, Settled::Discarded)
            .map_err(failed)?;
        seqs.extend(waiting);
        if pending.is_empty() {
            continue;
        }
        // Together with a definition go the earlier entries for it.
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
    Ok(json!({"entries": shown(workspace, &seqs), "classes": classes}).into())
}

/// Entries with the pending ones that they made irrelevant.
fn with_shadowed(workspace: &Workspace, entries: &[Entry]) -> Vec<Entry> {
    workspace.changes.borrow().select(|one| {
        one.is_pending()
            && entries
                .iter()
                .any(|entry| entry.seq == one.seq || entry.shadows(one))
    })
}

/// What is in no file goes back to what it was before the first of the entries.
async fn undo_without_file(
    workspace: &Rc<Workspace>,
    entries: &[Entry],
    how: Settled,
) -> Result<(Vec<u64>, Vec<Value>), ErrorBody> {
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
        super::edit::put_back(workspace, entry, previous).await?;
        classes.push(json!(entry.class));
    }
    let seqs: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
    workspace
        .changes
        .borrow_mut()
        .settle(&seqs, how)
        .map_err(failed)?;
    Ok((seqs, classes))
}

/// Write a text that somebody made of all sides, load it, and settle what is pending in its file.
pub(super) async fn settle(workspace: &Rc<Workspace>, request: &Request) -> Result<Answer, ErrorBody> {
    may_write(workspace, "Workspace>>settle")?;
    let file = workspace.changes.borrow().normal(request.text("file")?);
    let text = request.text("text")?;
    request.text("disk_sha256")?;
    let disk = disk_text(workspace, &file)?;
    check_shown(request, disk.as_deref(), &file)?;
    let entries = workspace
        .changes
        .borrow()
        .select(|entry| entry.is_open() && entry.source_file.as_deref() == Some(file.as_str()));
    if let Some(Value::Object(expected)) = request.fields.get("expect") {
        let log = workspace.changes.borrow();
        for entry in entries.iter().filter(|entry| entry.is_pending()) {
            let source = log.source(entry).map_err(failed)?.unwrap_or_default();
            let wanted = expected.get(&entry.seq.to_string()).and_then(Value::as_str);
            if wanted != Some(&hash(source.as_bytes())) {
                let message = format!("change {} is not what it was when it was shown", entry.seq);
                return Err(ErrorBody::new("version_conflict", message).hint("look at it again, then choose"));
            }
        }
    }
    // First the image: a text that does not compile changes nothing anywhere.
    let path = workspace.root.join(&file);
    let image = image_text(workspace, &file);
    let new = match &image {
        Some(image) => SourceText {
            text: text.to_owned(),
            ..image.clone()
        },
        None => super::load::new_source(workspace, &file, text),
    };
    let answer = install_text(workspace, new).await?;
    let old_hash = disk.as_ref().map(|disk| hash(disk.as_bytes()));
    let conflicts = workspace
        .changes
        .borrow_mut()
        .write_file(&file, text, old_hash)
        .map_err(failed)?;
    if let Some(conflict) = conflicts.first() {
        if let Some(image) = image {
            install_text(workspace, image).await?;
        }
        let detail = conflict.detail.clone().unwrap_or_default();
        return Err(match conflict.reason {
            ConflictReason::WriteFailed => {
                ErrorBody::new("write_failed", format!("{}: {detail}", path.display()))
            }
            _ => ErrorBody::new(
                "file_changed",
                format!("{file} is not what it was when it was shown"),
            )
            .hint("look at it again, then choose"),
        });
    }
    set_base(workspace, &file, Some(text.to_owned()));
    let seqs: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
    workspace
        .changes
        .borrow_mut()
        .settle(&seqs, Settled::Flushed)
        .map_err(failed)?;
    told(workspace, &json!([{"file": file, "kind": "changed"}]));
    Ok(json!({"entries": shown(workspace, &seqs), "classes": list(&answer, "classes")}).into())
}

/// Undo one entry, or bring back one that was undone.
pub(super) async fn revert(workspace: &Rc<Workspace>, request: &Request) -> Result<Answer, ErrorBody> {
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
            super::edit::put_again(workspace, &entry, source)
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
    // What was changed on top of it goes with it.
    let key = key_of(&entry);
    let later = workspace.changes.borrow().select(|one| {
        one.is_pending()
            && one.seq >= entry.seq
            && one.class == entry.class
            && (key_of(one) == key
                || entry.selector.is_none()
                || (one.selector.is_none() && one.seq > entry.seq))
    });
    let seqs: Vec<u64> = later.iter().map(|entry| entry.seq).collect();
    workspace
        .changes
        .borrow_mut()
        .settle(&seqs, Settled::Reverted)
        .map_err(failed)?;
    if let Err(error) = super::edit::put_back(workspace, &entry, previous).await {
        workspace
            .changes
            .borrow_mut()
            .reopen(&seqs, State::Pending)
            .map_err(failed)?;
        return Err(install_failed(error));
    }
    Ok(json!({"entry": shown(workspace, &[entry.seq]).pop()}).into())
}

pub(super) fn clear(workspace: &Rc<Workspace>) -> Result<Answer, ErrorBody> {
    let cleared = workspace.changes.borrow_mut().clear().map_err(failed)?;
    Ok(json!({"cleared": cleared}).into())
}

// ---- writing ----

pub(super) fn flush(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    may_write(workspace, "Workspace>>flush")?;
    let texts = |field: &str| -> Result<Vec<String>, ErrorBody> {
        match request.fields.get(field) {
            Some(Value::String(text)) => Ok(vec![text.clone()]),
            _ => request.texts(field),
        }
    };
    let filter = Filter {
        class: request.optional_text("class")?.map(str::to_owned),
        file: request.optional_text("file")?.map(str::to_owned),
        kinds: texts("kind")?
            .iter()
            .map(|name| Kind::named(name).ok_or_else(|| request.invalid("kind", "a kind of change")))
            .collect::<Result<_, _>>()?,
        author_kinds: texts("author_kind")?
            .iter()
            .map(|name| match name.as_str() {
                "human" => Ok(AuthorKind::Human),
                "agent" => Ok(AuthorKind::Agent),
                _ => Err(request.invalid("author_kind", "human or agent")),
            })
            .collect::<Result<_, _>>()?,
        confirm_destructive: request.flag("confirm_destructive")?,
    };
    if let Some(file) = request.optional_text("force_file")? {
        force(workspace, file)?;
    }
    Ok(write_files(workspace, &filter, &caller.session.id)?.into())
}

/// The image's version of everything that is in conflict in a file.
fn force(workspace: &Rc<Workspace>, file: &str) -> Result<(), ErrorBody> {
    let file = workspace.changes.borrow().normal(file);
    let conflicts = workspace
        .changes
        .borrow()
        .conflicts(&bases(workspace))
        .map_err(failed)?;
    let is_of_file = |conflict: &&Conflict| conflict.file == file;
    let seqs: Vec<u64> = conflicts
        .iter()
        .filter(is_of_file)
        .flat_map(|conflict| conflict.seqs.clone())
        .collect();
    if seqs.is_empty() {
        return Ok(());
    }
    let entries = workspace
        .changes
        .borrow()
        .select(|entry| seqs.contains(&entry.seq));
    let selection = Selection {
        entries: Vec::new(),
        class: None,
        method: None,
        whole_file: Some(file.clone()),
    };
    let disk = disk_text(workspace, &file)?;
    keep_image(workspace, &selection, &file, disk.as_deref(), &entries)?;
    Ok(())
}

/// Write what is pending. Every flush comes here, by hand or by itself.
pub(super) fn write_files(
    workspace: &Rc<Workspace>,
    filter: &Filter,
    author: &str,
) -> Result<Value, ErrorBody> {
    may_write(workspace, "Workspace>>flush")?;
    let loaded = bases(workspace);
    let report = workspace
        .changes
        .borrow_mut()
        .flush(filter, author, &loaded)
        .map_err(failed)?;
    for (file, base) in &report.bases {
        set_base(workspace, file, base.clone());
    }
    let report = json!(report);
    told(workspace, &report["files"]);
    Ok(report)
}

fn told(workspace: &Workspace, files: &Value) {
    workspace.publish(Channel::Workspace, "flush_completed", &json!({ "files": files }));
    if let Some(link) = workspace.image.link() {
        link.control("flushed", terms::from_json(&json!({ "files": files })));
    }
}

/// Whether a class is in the image.
pub(super) async fn is_loaded(workspace: &Rc<Workspace>, class: &str) -> bool {
    class_info(workspace, class).await.is_ok()
}

/// Take a method out of the image.
pub(super) async fn drop_method(
    workspace: &Rc<Workspace>,
    class: &str,
    selector: &str,
    is_class_side: bool,
) -> Result<(), ErrorBody> {
    let side = if is_class_side { "class" } else { "instance" };
    let arguments = terms::map([
        ("class", Term::binary(class)),
        ("selector", Term::binary(selector)),
        ("side", Term::binary(side)),
    ]);
    workspace.image.call("", "remove-method", arguments).await?;
    let key = Key::method(class, is_class_side, selector);
    workspace.compiler.known.borrow_mut().forget_method(&key);
    Ok(())
}
