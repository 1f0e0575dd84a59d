//! Loading a file while changes of it are pending: the disk's version of everything else, the image's of those.

use beamtalk_syntax::definitions::{Dialect, Edit, Outline, edit};

use super::entry::Kind;
use super::plan::{Conflict, ConflictReason, Pending, Wanted, first_error, wanted, without_classes};

/// What the image is to have of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Merge {
    /// `None`: nothing of the file is loaded, the image stays as it is.
    pub(crate) text: Option<String>,
    /// Entries whose changes the disk has too.
    pub(crate) settled: Vec<u64>,
    /// Definitions that are another on disk than the image thinks.
    pub(crate) conflict: Option<Conflict>,
}

/// `pending` are the entries of the file, oldest first.
pub(crate) fn merge(file: &str, pending: &[Pending], disk: &str) -> Merge {
    let conflict = |reason, detail| Conflict {
        file: file.to_owned(),
        reason,
        detail,
        seqs: pending.iter().map(|one| one.entry.seq).collect(),
    };
    let is_removal = |one: &&Pending| one.entry.kind == Kind::RemoveClass;
    let latest = pending
        .iter()
        .filter(|one| one.entry.selector.is_none() && !is_removal(one))
        .max_by_key(|one| one.entry.seq);
    let is_over = |one: &Pending| pending.iter().any(|later| later.entry.shadows(one.entry));
    if let Some(one) = latest
        && one.entry.is_whole_file
        && one.source != Some(disk)
        && !is_over(one)
    {
        return Merge {
            conflict: Some(conflict(ConflictReason::TargetExists, None)),
            ..Merge::default()
        };
    }
    // A text that cannot be read is told by whoever loads it.
    if first_error(disk).is_some() {
        return Merge {
            text: Some(disk.to_owned()),
            ..Merge::default()
        };
    }
    let all = wanted(pending);
    let removals = pending.iter().filter(is_removal).filter(|one| !is_over(one));
    let classes: Vec<&str> = removals.map(|one| one.entry.class.as_str()).collect();
    let rest = without_classes(disk, &classes);
    if !classes.is_empty() && all.is_empty() && !Outline::of_file(&rest).has_definitions() {
        return Merge::default();
    }
    let edits: Vec<Edit> = all.iter().map(Wanted::edit).collect();
    let text = edit(&rest, Dialect::File, &edits);
    let now = Outline::of_file(disk);
    let others: Vec<String> = all
        .iter()
        .filter(|wanted| !wanted.is_in(disk) && now.text_of(&wanted.key) != wanted.base)
        .map(|wanted| wanted.key.title())
        .collect();
    let is_settled = |one: &&Pending| {
        let is_in_disk = if is_removal(one) {
            now.class(&one.entry.class).is_none()
        } else {
            wanted(&[**one]).iter().all(|wanted| wanted.is_in(disk))
        };
        one.entry.is_durable() && one.entry.flushable && is_in_disk
    };
    // The latest durable word for a definition decides, and what it replaced goes with it: a method that was added and
    // removed again is not on disk either, but nobody wants it back.
    let replaces =
        |later: &Pending, one: &Pending| later.entry.is_durable() && later.entry.shadows(one.entry);
    let is_latest = |one: &&Pending| !pending.iter().any(|later| replaces(later, one));
    let latest: Vec<&Pending> = pending.iter().filter(is_latest).filter(is_settled).collect();
    let is_done = |one: &&Pending| {
        let is_meant = |later: &&Pending| later.entry.seq == one.entry.seq || replaces(later, one);
        one.entry.is_durable() && latest.iter().any(is_meant)
    };
    Merge {
        settled: pending.iter().filter(is_done).map(|one| one.entry.seq).collect(),
        conflict: match &text {
            Ok(_) if others.is_empty() => None,
            Ok(_) => Some(conflict(ConflictReason::ExternalEdit, Some(others.join(", ")))),
            Err((index, _)) => {
                let title = all.get(*index).map(|wanted| wanted.key.title());
                Some(conflict(ConflictReason::SpanOutOfRange, title))
            }
        },
        text: text.ok(),
    }
}
