//! Writing a plan to the sources in two phases.
//!
//! Phase A writes every new content beside its file and moves every deleted file aside; phase B puts them in place. A
//! journal says which phase was reached and what belongs to it, so after a crash phase A is undone and phase B is
//! completed. A file that somebody changed meanwhile is left alone.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use beamtalk_storage::{Directory, PRIVATE_FILE};
use rustix::fs::{CWD, RenameFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use super::error::ChangeError;
use super::plan::{Conflict, ConflictReason, FilePlan};
use super::project::{Project, hash};

const JOURNAL: &str = "flush.json";
const NEW_FILE: u32 = 0o644;

/// Between two steps a process may die; tests die there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Announced,
    Staged,
    Committing,
    Committed,
    Retired,
}

pub(crate) type Watch<'a> = &'a mut dyn FnMut(Step) -> Result<(), ChangeError>;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Phase {
    /// Undo it.
    Staging,
    /// Complete it.
    Committing,
}

#[derive(Debug, Serialize, Deserialize)]
struct Journal {
    phase: Phase,
    items: Vec<Item>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Item {
    /// Relative to the project.
    file: String,
    /// The file itself, behind links.
    target: PathBuf,
    /// Where its new content is, or where it was moved to be deleted.
    aside: PathBuf,
    old_hash: Option<String>,
    /// `None` deletes it.
    new_hash: Option<String>,
    seqs: Vec<u64>,
}

/// A file that is as it should be.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) file: String,
    pub(crate) seqs: Vec<u64>,
}

/// What became of the files of a plan.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) done: Vec<Done>,
    pub(crate) conflicts: Vec<Conflict>,
}

/// Write the files. `retire` is told what is done before the journal goes.
pub(crate) fn perform(
    directory: &Directory,
    project: &Project,
    plans: &[FilePlan],
    epoch: u64,
    watch: Watch,
    retire: impl FnOnce(&[Done]) -> Result<(), ChangeError>,
) -> Result<Outcome, ChangeError> {
    let mut outcome = Outcome::default();
    let mut items = Vec::new();
    for plan in plans {
        match item(project, plan, epoch) {
            Ok(item) => items.push((item, plan)),
            Err(cause) => outcome
                .conflicts
                .push(write_failed(&plan.file, &plan.retired, &cause)),
        }
    }
    if !outcome.conflicts.is_empty() {
        return Ok(outcome);
    }
    let mut journal = Journal {
        phase: Phase::Staging,
        items: items.iter().map(|(item, _)| item.clone()).collect(),
    };
    write_journal(directory, &journal)?;
    watch(Step::Announced)?;
    for (index, (item, plan)) in items.iter().enumerate() {
        if let Err(cause) = stage(item, plan) {
            let begun = items.get(..index).unwrap_or_default();
            begun.iter().for_each(|(item, _)| unstage(item));
            directory.remove(JOURNAL)?;
            outcome
                .conflicts
                .push(write_failed(&item.file, &item.seqs, &cause));
            return Ok(outcome);
        }
        watch(Step::Staged)?;
    }
    journal.phase = Phase::Committing;
    write_journal(directory, &journal)?;
    watch(Step::Committing)?;
    for item in &journal.items {
        match commit(item) {
            Ok(true) => outcome.done.push(done(item)),
            Ok(false) => {
                give_up(item);
                outcome.conflicts.push(Conflict {
                    file: item.file.clone(),
                    reason: ConflictReason::ExternalEdit,
                    detail: None,
                    seqs: item.seqs.clone(),
                });
            }
            Err(cause) => {
                give_up(item);
                outcome
                    .conflicts
                    .push(write_failed(&item.file, &item.seqs, &cause));
            }
        }
        watch(Step::Committed)?;
    }
    retire(&outcome.done)?;
    watch(Step::Retired)?;
    directory.remove(JOURNAL)?;
    Ok(outcome)
}

/// Finish what a crash left: undo phase A, complete phase B. `retire` is told what is done.
pub(crate) fn recover(
    directory: &Directory,
    retire: impl FnOnce(&[Done]) -> Result<(), ChangeError>,
) -> Result<(), ChangeError> {
    let Some(bytes) = directory.read(JOURNAL)? else {
        return Ok(());
    };
    // It is written atomically, so one that cannot be read is not ours.
    let Ok(journal) = serde_json::from_slice::<Journal>(&bytes) else {
        directory.remove(JOURNAL)?;
        return Ok(());
    };
    let mut finished = Vec::new();
    for item in &journal.items {
        match journal.phase {
            Phase::Staging => unstage(item),
            Phase::Committing if commit(item).unwrap_or(false) => finished.push(done(item)),
            Phase::Committing => give_up(item),
        }
    }
    retire(&finished)?;
    directory.remove(JOURNAL)?;
    Ok(())
}

fn write_journal(directory: &Directory, journal: &Journal) -> Result<(), ChangeError> {
    let bytes = serde_json::to_vec(journal).map_err(|cause| ChangeError::Write { cause: cause.into() })?;
    Ok(directory.write_atomically(JOURNAL, &bytes, PRIVATE_FILE)?)
}

fn item(project: &Project, plan: &FilePlan, epoch: u64) -> io::Result<Item> {
    let outside = || io::Error::other("the file is not in the project");
    let target = project.resolve(&plan.file)?.ok_or_else(outside)?;
    let suffix = match plan.content {
        Some(_) => ".tmp".to_owned(),
        None => {
            let seq = plan.retired.iter().max().copied().unwrap_or_default();
            format!(".tmp-delete-{epoch}-{seq}")
        }
    };
    let mut aside = target.clone().into_os_string();
    aside.push(suffix);
    // Whatever is there once the journal names it is ours, and may be removed.
    if Path::new(&aside).symlink_metadata().is_ok() {
        let name = Path::new(&aside).display();
        return Err(io::Error::other(format!("{name} is in the way")));
    }
    Ok(Item {
        file: plan.file.clone(),
        target,
        aside: aside.into(),
        old_hash: plan.old_hash.clone(),
        new_hash: plan.content.as_ref().map(|content| hash(content.as_bytes())),
        seqs: plan.retired.clone(),
    })
}

fn done(item: &Item) -> Done {
    Done {
        file: item.file.clone(),
        seqs: item.seqs.clone(),
    }
}

fn write_failed(file: &str, seqs: &[u64], cause: &io::Error) -> Conflict {
    Conflict {
        file: file.to_owned(),
        reason: ConflictReason::WriteFailed,
        detail: Some(cause.to_string()),
        seqs: seqs.to_vec(),
    }
}

// ---- phase A ----

fn stage(item: &Item, plan: &FilePlan) -> io::Result<()> {
    match &plan.content {
        Some(content) => write_aside(item, content),
        None => {
            fs::rename(&item.target, &item.aside)?;
            sync_parent(&item.target)
        }
    }
}

fn write_aside(item: &Item, content: &str) -> io::Result<()> {
    let mode = match fs::metadata(&item.target) {
        Ok(metadata) => metadata.permissions(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Permissions::from_mode(NEW_FILE),
        Err(error) => return Err(error),
    };
    if let Some(parent) = item.target.parent() {
        fs::create_dir_all(parent)?;
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(PRIVATE_FILE)
        .open(&item.aside)?;
    let written = file
        .set_permissions(mode)
        .and_then(|()| file.write_all(content.as_bytes()))
        .and_then(|()| file.sync_all());
    written.inspect_err(|_| {
        let _ = fs::remove_file(&item.aside);
    })
}

/// Take back what phase A did to a file. What fails here was not done.
fn unstage(item: &Item) {
    let undone = if item.new_hash.is_some() {
        fs::remove_file(&item.aside)
    } else {
        rename_to_free(&item.aside, &item.target)
    };
    if undone.is_ok() {
        let _ = sync_parent(&item.target);
    }
}

/// The same once files may have been exchanged: what lies aside may be somebody else's, and is left alone then.
fn give_up(item: &Item) {
    let aside = hash_of(&item.aside).ok().flatten();
    match &item.new_hash {
        Some(_) if aside == item.new_hash => unstage(item),
        Some(_) => {}
        None => {
            unstage(item);
            // Somebody made the file again; what was to be deleted is not wanted any more.
            if aside == item.old_hash && hash_of(&item.target).ok().flatten().is_some() {
                let _ = fs::remove_file(&item.aside);
            }
        }
    }
}

// ---- phase B ----

/// Put a file in its place; also when that was done before. False when somebody else changed it.
fn commit(item: &Item) -> io::Result<bool> {
    let (current, aside) = (hash_of(&item.target)?, hash_of(&item.aside)?);
    let Some(new_hash) = &item.new_hash else {
        if aside.is_none() {
            return Ok(current.is_none());
        }
        // Somebody wrote to it before it was moved, or made it again after.
        if aside != item.old_hash || current.is_some() {
            return Ok(false);
        }
        return leave(item);
    };
    let is_new = |hash: &Option<String>| hash.as_ref() == Some(new_hash);
    if aside.is_none() {
        return Ok(is_new(&current));
    }
    if is_new(&current) && !is_new(&aside) {
        return exchanged(item, aside.as_ref());
    }
    if current != item.old_hash || !is_new(&aside) {
        return Ok(false);
    }
    if item.old_hash.is_none() {
        match rename_to_free(&item.aside, &item.target) {
            Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            outcome => outcome?,
        }
        sync_parent(&item.target)?;
        return Ok(true);
    }
    match exchange(item) {
        Ok(()) => {
            let aside = hash_of(&item.aside)?;
            exchanged(item, aside.as_ref())
        }
        // The file system cannot exchange: a save in this instant would be lost.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            fs::rename(&item.aside, &item.target)?;
            sync_parent(&item.target)?;
            Ok(true)
        }
        Err(cause) => Err(cause.into()),
    }
}

fn exchange(item: &Item) -> Result<(), Errno> {
    rustix::fs::renameat_with(CWD, &item.aside, CWD, &item.target, RenameFlags::EXCHANGE)
}

/// The new content is in place; what came out must be what was read, or it goes back.
fn exchanged(item: &Item, came_out: Option<&String>) -> io::Result<bool> {
    if came_out == item.old_hash.as_ref() {
        return leave(item);
    }
    exchange(item)?;
    Ok(false)
}

/// The last step: what lies aside is not needed any more.
fn leave(item: &Item) -> io::Result<bool> {
    fs::remove_file(&item.aside)?;
    sync_parent(&item.target)?;
    Ok(true)
}

/// Rename unless something is there already.
fn rename_to_free(from: &Path, to: &Path) -> io::Result<()> {
    match rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE) {
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) if to.symlink_metadata().is_err() => {
            fs::rename(from, to)
        }
        outcome => Ok(outcome?),
    }
}

fn hash_of(path: &Path) -> io::Result<Option<String>> {
    match beamtalk_storage::read_written(path) {
        Ok(bytes) => Ok(Some(hash(&bytes))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn sync_parent(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(parent) => File::open(parent)?.sync_all(),
        None => Ok(()),
    }
}
