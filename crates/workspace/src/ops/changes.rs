//! The change log: what is pending, where image and disk differ, and every way to decide about it.

mod change_sides;
mod diff;
mod discard;
mod flush;
mod revert;
mod settle;
mod take;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_syntax::definitions::{Change, Dialect, Edit, Key, Member, Outline, edit};
use beamtalk_wire::answers::{ChangesAnswer, ClearChangesAnswer, DirtyAnswer};
use beamtalk_wire::requests::{ChangeSides, Changes, Discard, Take};
use beamtalk_wire::{EntryView, ErrorBody, ErrorKind, Op};
use serde_json::Value;

use super::load::{class_info, install_text};
use crate::changes::{ChangeError, Entry, FileState, Kind, Settled, Side, hash};
use crate::compile::job::SourceText;
use crate::terms;
use crate::workspace::Workspace;

pub(super) use change_sides::change_sides;
pub(super) use diff::diff;
pub(super) use discard::discard;
pub(super) use flush::{flush, write_files};
pub(super) use revert::revert;
pub(super) use settle::settle;
pub(super) use take::take;

pub(super) fn failed(error: ChangeError) -> ErrorBody {
    ErrorBody::new(error.kind(), error.to_string())
}

/// Nobody waits for these any more; their numbers.
fn close(workspace: &Workspace, entries: &[Entry], how: Settled) -> Result<Vec<u64>, ErrorBody> {
    let seqs: Vec<u64> = entries.iter().map(|entry| entry.seq).collect();
    let mut log = workspace.changes.borrow_mut();
    log.settle(&seqs, how).map_err(failed)?;
    Ok(seqs)
}

/// The package of the project itself.
pub(super) fn own_package(workspace: &Workspace) -> Option<String> {
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
            ErrorKind::ReadError,
            format!("{file} is not in the project"),
        )),
        FileState::Unreadable(cause) => Err(ErrorBody::new(ErrorKind::ReadError, format!("{file}: {cause}"))),
    }
}

/// Every path that writes a file of the project passes here first.
pub(super) fn may_write(workspace: &Workspace, what: &str) -> Result<(), ErrorBody> {
    if !workspace.options.read_only_fs {
        return Ok(());
    }
    Err(ErrorBody::new(
        ErrorKind::CapabilityDisabled,
        format!("{what} is switched off in this workspace (--read-only-fs)"),
    )
    .hint("Restart the workspace without the flag to allow it")
    .detail("capability", "fs"))
}

// ---- looking ----

pub(super) async fn changes(
    workspace: &Rc<Workspace>,
    request: &Changes,
) -> Result<ChangesAnswer, ErrorBody> {
    let (mut answer, losing) = {
        let log = workspace.changes.borrow();
        let outlook = log.outlook(&bases(workspace)).map_err(failed)?;
        let entries = if request.all == Some(true) {
            log.all()
        } else {
            log.active()
        };
        let answer = ChangesAnswer {
            entries: entries.map_err(failed)?,
            waiting: log.waiting().map_err(failed)?,
            conflicts: outlook.conflicts,
            disk_changed: None,
            autoflush: Some(workspace.autoflush.get()),
        };
        (answer, outlook.losing)
    };
    for view in &mut answer.entries {
        mark(workspace, view, &losing);
    }
    if request.disk == Some(true) {
        answer.disk_changed = Some(workspace.files_changed_on_disk().await);
    }
    Ok(answer)
}

/// An entry that the image does not have says why; one that takes a class out of its file, what becomes of that.
fn mark(workspace: &Workspace, view: &mut EntryView, losing: &BTreeMap<String, bool>) {
    let file = view.entry.source_file.as_ref().filter(|_| view.entry.flushable);
    if view.entry.kind == Kind::RemoveClass && view.active && !view.clean {
        view.deletes_file = file.and_then(|file| losing.get(file)).copied();
    }
    let not_installed = workspace.not_installed.borrow();
    view.not_installed = not_installed.get(&view.entry.seq).cloned();
}

pub(super) fn dirty(workspace: &Rc<Workspace>) -> Result<DirtyAnswer, ErrorBody> {
    let dirty = workspace.changes.borrow().dirty().map_err(failed)?;
    Ok(DirtyAnswer { dirty })
}

/// The fields by which requests choose changes.
struct Choice<'a> {
    op: Op,
    seq: Option<u64>,
    class: Option<&'a String>,
    file: Option<&'a String>,
    selector: Option<&'a String>,
    side: Option<Side>,
    all: bool,
}

impl<'a> From<&'a Discard> for Choice<'a> {
    fn from(request: &'a Discard) -> Self {
        Self {
            op: Op::Discard,
            seq: request.seq,
            class: request.class.as_ref(),
            file: request.file.as_ref(),
            selector: None,
            side: None,
            all: request.all == Some(true),
        }
    }
}

impl<'a> From<&'a Take> for Choice<'a> {
    fn from(request: &'a Take) -> Self {
        Self {
            op: Op::Take,
            seq: request.seq,
            class: request.class.as_ref(),
            file: request.file.as_ref(),
            selector: request.selector.as_ref(),
            side: request.side,
            all: request.all == Some(true),
        }
    }
}

impl<'a> From<&'a ChangeSides> for Choice<'a> {
    fn from(request: &'a ChangeSides) -> Self {
        Self {
            op: Op::ChangeSides,
            seq: request.seq,
            class: request.class.as_ref(),
            file: request.file.as_ref(),
            selector: request.selector.as_ref(),
            side: request.side,
            all: false,
        }
    }
}

/// What a request is about.
struct Selection {
    /// Pending or waiting entries, oldest first; one of any state when its number is given.
    entries: Vec<Entry>,
    class: Option<String>,
    /// Selector and side.
    method: Option<(String, Option<bool>)>,
    whole_file: Option<String>,
    /// Only these definitions, if not all of the above.
    only: Option<BTreeSet<Key>>,
}

impl Selection {
    /// One of `seq`, `class` (with `selector` and `side`), `file`, `all`.
    fn of(workspace: &Workspace, choice: Choice<'_>) -> Result<Self, ErrorBody> {
        let log = workspace.changes.borrow();
        let file = choice.file.map(|file| log.normal(file));
        let class = choice.class.cloned();
        let side = choice.side.map(|side| side == Side::Class);
        let seq = choice.seq;
        let given = [seq.is_some(), class.is_some(), file.is_some(), choice.all];
        if given.iter().filter(|given| **given).count() != 1 {
            return Err(ErrorBody::new(
                ErrorKind::MissingParameter,
                format!(
                    "'{}' needs exactly one of 'seq', 'class', 'file', 'all'",
                    choice.op.name()
                ),
            ));
        }
        let method = choice
            .selector
            .map(|selector| (selector.trim_start_matches('#').to_owned(), side));
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
            only: None,
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
        is_class && is_method && self.only.as_ref().is_none_or(|only| only.contains(key))
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

/// Entries as they are now.
fn shown(workspace: &Workspace, seqs: &[u64]) -> Vec<Entry> {
    let log = workspace.changes.borrow();
    let entries = seqs.iter().filter_map(|seq| log.entry(*seq).ok());
    entries.cloned().collect()
}

/// A choice counts for what was shown.
fn check_shown(wanted: Option<&String>, disk: Option<&str>, file: &str) -> Result<(), ErrorBody> {
    let Some(wanted) = wanted else {
        return Ok(());
    };
    let now = disk.map(|disk| hash(disk.as_bytes()));
    if now.as_ref() == Some(wanted) || (now.is_none() && wanted.is_empty()) {
        return Ok(());
    }
    let error = ErrorBody::new(
        ErrorKind::FileChanged,
        format!("{file} is not what it was when it was shown"),
    )
    .hint("look at it again, then choose");
    Err(error.detail("disk_sha256", now.map_or(Value::Null, Value::from)))
}

// ---- choosing ----

/// Give the image other definitions of a file; answers the classes loaded.
pub(super) async fn change_image(
    workspace: &Rc<Workspace>,
    file: &str,
    changes: &[(Key, Option<String>)],
) -> Result<Vec<String>, ErrorBody> {
    let Some(image) = image_text(workspace, file) else {
        return Err(ErrorBody::new(
            ErrorKind::ReloadFailed,
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
            ErrorKind::ReloadFailed,
            format!("{title} has no place in {file} as the image has it"),
        )
        .hint("reload the class, or define it anew")
    })?;
    if text == image.text {
        return Ok(Vec::new());
    }
    let answer = install_text(workspace, SourceText { text, ..image }).await?;
    Ok(answer.classes)
}

pub(super) fn clear(workspace: &Rc<Workspace>) -> Result<ClearChangesAnswer, ErrorBody> {
    let cleared = workspace.changes.borrow_mut().clear().map_err(failed)? as u64;
    Ok(ClearChangesAnswer { cleared })
}

// ---- writing ----

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
    take_out(workspace, class, selector, is_class_side, Instead::Nothing).await
}

/// Give a class the method back that its code has, or take it out where its code has none.
pub(super) async fn restore_method(
    workspace: &Rc<Workspace>,
    class: &str,
    selector: &str,
    is_class_side: bool,
) -> Result<(), ErrorBody> {
    take_out(workspace, class, selector, is_class_side, Instead::Code).await
}

/// What takes the place of a method that goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Instead {
    Nothing,
    Code,
}

async fn take_out(
    workspace: &Rc<Workspace>,
    class: &str,
    selector: &str,
    is_class_side: bool,
    instead: Instead,
) -> Result<(), ErrorBody> {
    let side = if is_class_side { "class" } else { "instance" };
    let arguments = terms::map([
        ("class", Term::binary(class)),
        ("selector", Term::binary(selector)),
        ("side", Term::binary(side)),
        (
            "restore",
            Term::atom(if instead == Instead::Code { "true" } else { "false" }),
        ),
    ]);
    workspace.image.call("", "remove-method", arguments).await?;
    let key = Key::method(class, is_class_side, selector);
    workspace.compiler.known.borrow_mut().forget_method(&key);
    Ok(())
}

/// Entries with the open ones of the same state that they made irrelevant.
fn with_shadowed(workspace: &Workspace, entries: &[Entry]) -> Vec<Entry> {
    workspace.changes.borrow().select(|one| {
        let goes_along =
            |entry: &Entry| entry.seq == one.seq || (entry.state == one.state && entry.shadows(one));
        one.is_open() && entries.iter().any(goes_along)
    })
}
