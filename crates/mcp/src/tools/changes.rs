//! The change log: what is pending, its diffs, and every way to decide about it.

use std::collections::BTreeMap;

use beamtalk_wire::answers::{Conflict, ConflictReason, FileChange, Place};
use beamtalk_wire::requests::{self, From as Take, OneOrMore, WantedKind};
use beamtalk_wire::{Entry, Side};

use super::editing::home_of;
pub(crate) use super::parts::Nothing;
use super::parts::{
    Author, Change, FileConflict, FoundFault, conflicts, input, open_faults, output, page, some,
};
use super::{Context, Failure};
use crate::confirmation::{Effect, fingerprint};
use crate::data::Data;
use crate::host::{Host, HostError, failure};

input! {
    ListChanges {
        ;
        /// Settled ones, too.
        all: bool,
        /// Only changes by people, or only by agents.
        author_kind: Author,
        /// How many, the newest; 100 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
        limit: u64,
    }
}

output! {
    ChangeList {
        entries: Vec<Change>,
        conflicts: Vec<FileConflict>,
        ;
        /// From an earlier run, not in memory; a person restores or discards them.
        waiting: Vec<Change>,
    }
}

pub(crate) async fn list_changes<H: Host>(
    context: &Context<'_, H>,
    input: ListChanges,
) -> Result<ChangeList, Failure> {
    require_node(context.host).await?;
    let request = requests::Changes {
        all: input.all,
        disk: None,
    };
    let answer = context.ask(&request).await?.answer;
    let is_wanted = |entry: &Entry| {
        input
            .author_kind
            .is_none_or(|author| entry.author_kind == author.into())
    };
    let mut entries: Vec<Change> = answer
        .entries
        .iter()
        .filter(|view| is_wanted(&view.entry))
        .map(Change::from)
        .collect();
    entries.sort_by_key(|entry| std::cmp::Reverse(entry.seq));
    let waiting = answer.waiting.iter().filter(|view| is_wanted(&view.entry));
    Ok(ChangeList {
        entries: page(entries, input.limit, 100),
        conflicts: conflicts(&answer.conflicts),
        waiting: some(waiting.map(Change::from).collect()),
    })
}

/// The entries of a log, as the tools show them.
pub(crate) fn change_values(changes: &beamtalk_wire::answers::ChangesAnswer) -> Vec<serde_json::Value> {
    let one = |view: &beamtalk_wire::EntryView| serde_json::to_value(Change::from(view)).unwrap_or_default();
    changes.entries.iter().map(one).collect()
}

output! {
    Dirty {
        /// Selectors by class.
        dirty: BTreeMap<String, Vec<String>>,
    }
}

pub(crate) async fn dirty_methods<H: Host>(context: &Context<'_, H>, _: Nothing) -> Result<Dirty, Failure> {
    require_node(context.host).await?;
    let dirty = context.ask(&requests::Dirty {}).await?.answer.dirty;
    Ok(Dirty { dirty })
}

input! {
    DiffChange {
        ;
        /// Number of a change.
        seq: u64,
        /// All pending changes of this class.
        class: String,
    }
}

output! {
    Diff {
        /// Unified; empty when nothing is pending.
        diff: Data,
        ;
        /// In a conflict: as it was loaded.
        base: Data,
        /// In a conflict: as it is in memory.
        image: Data,
        /// In a conflict: as it is in the file.
        disk: Data,
    }
}

/// While the node is on its way no change is pending: those that it had wait until they are installed again.
pub(crate) async fn require_node<H: Host>(host: &H) -> Result<(), HostError> {
    let brief = requests::Health { brief: Some(true) };
    let node = host.ask(&brief).await?.answer.node;
    if matches!(node.as_str(), "starting" | "down") {
        let error = failure("node_starting", "the node is being started");
        return Err(Box::new(error.hint("try again in a moment")));
    }
    Ok(())
}

/// The diff of the pending changes that are meant.
pub(crate) async fn pending_diff<H: Host>(
    host: &H,
    is_meant: impl Fn(&Entry) -> bool,
) -> Result<String, HostError> {
    require_node(host).await?;
    let changes = host.ask(&requests::Changes::default()).await?.answer;
    let mut text = String::new();
    for view in changes
        .entries
        .iter()
        .filter(|view| view.active && !view.shadowed && is_meant(&view.entry))
    {
        let request = requests::Diff { seq: view.entry.seq };
        text.push_str(&host.ask(&request).await?.answer.diff);
    }
    Ok(text)
}

/// Who names a change by a wrong number learns where the numbers are.
fn which_change(mut error: HostError) -> HostError {
    error.hint.get_or_insert_with(|| {
        "list_changes shows the numbers; with all also of those that were written".to_owned()
    });
    error
}

pub(crate) async fn diff_change<H: Host>(
    context: &Context<'_, H>,
    input: DiffChange,
) -> Result<Diff, Failure> {
    if input.seq.is_some() {
        super::one_of(&[("seq", true), ("class", input.class.is_some())])?;
    }
    require_node(context.host).await?;
    let changes = context.ask(&requests::Changes::default()).await?.answer;
    // Nothing to show would sound as if the class had no changes.
    if let Some(class) = &input.class
        && !changes.entries.iter().any(|view| view.entry.class == *class)
    {
        home_of(context, class).await?;
    }
    let diff = match input.seq {
        Some(seq) => {
            let asked = context.ask(&requests::Diff { seq }).await;
            asked.map_err(which_change)?.answer.diff
        }
        None => {
            let is_meant = |entry: &Entry| input.class.as_ref().is_none_or(|class| entry.class == *class);
            pending_diff(context.host, is_meant).await?
        }
    };
    let is_meant = |entry: &Entry| {
        input.seq.is_none_or(|seq| entry.seq == seq)
            && input.class.as_ref().is_none_or(|class| entry.class == *class)
    };
    let in_conflict = changes.conflicts.iter().flat_map(|conflict| &conflict.seqs);
    let is_one = |seq: &u64| {
        let mut entries = changes.entries.iter();
        entries.any(|view| view.entry.seq == *seq && is_meant(&view.entry))
    };
    // Of the changes of a file that is in conflict, the first which is so itself.
    let mut sides = None;
    for seq in in_conflict.copied().filter(is_one) {
        let request = requests::ChangeSides {
            seq: Some(seq),
            ..requests::ChangeSides::default()
        };
        let found = context.ask(&request).await?.answer;
        let is_conflict = found.disk != found.base && found.disk != found.image;
        if is_conflict || sides.is_none() {
            sides = Some(found);
        }
        if is_conflict {
            break;
        }
    }
    let side = |text: Option<String>| text.map(Data::new);
    let (base, image, disk) = match sides {
        Some(sides) => (side(sides.base), side(sides.image), side(sides.disk)),
        None => (None, None, None),
    };
    Ok(Diff {
        diff: Data::new(diff),
        base,
        image,
        disk,
    })
}

input! {
    Flush {
        ;
        /// Only changes of this class.
        class: String,
        /// Only changes of this file.
        file: String,
        /// Only changes of this kind.
        kind: WantedKind,
        /// Only changes by people, or only by agents.
        author_kind: Author,
        /// Delete the files of removed classes too. Needs policy `full`.
        confirm_destructive: bool,
    }
}

output! {
    WrittenFile {
        file: String,
        kind: FileChange,
    }
}

output! {
    SkippedChange {
        seq: u64,
        title: String,
        reason: String,
    }
}

output! {
    Flushed {
        /// How many definitions were written or taken out.
        flushed: u64,
        files: Vec<WrittenFile>,
        /// Files that had also changed on disk.
        merged: Vec<String>,
        new_classes: Vec<String>,
        removed_classes: Vec<String>,
        skipped: Vec<SkippedChange>,
        conflicts: Vec<FileConflict>,
    }
}

/// What taking removed classes out of their files would do; a person is not asked about what cannot be done yet.
async fn deletion<H: Host>(
    context: &Context<'_, H>,
    input: &Flush,
    file: Option<&str>,
) -> Result<Effect, HostError> {
    require_node(context.host).await?;
    let changes = context.ask(&requests::Changes::default()).await?.answer;
    let is_removed = |view: &&beamtalk_wire::EntryView| {
        view.entry.kind == beamtalk_wire::ChangeKind::RemoveClass && view.active && view.entry.flushable
    };
    let is_meant = |entry: &Entry| {
        input.class.as_ref().is_none_or(|class| entry.class == *class)
            && file.is_none_or(|file| entry.source_file.as_deref() == Some(file))
            && input.kind.is_none_or(|kind| kind.kind() == entry.kind)
    };
    let removed: Vec<&beamtalk_wire::EntryView> = changes.entries.iter().filter(is_removed).collect();
    let (mut files, mut classes): (Vec<String>, Vec<String>) = (Vec::new(), Vec::new());
    let (mut deleted, mut cut): (Vec<&str>, Vec<String>) = (Vec::new(), Vec::new());
    for view in removed.iter().filter(|view| is_meant(&view.entry)) {
        let Some(file) = &view.entry.source_file else {
            continue;
        };
        let stays = |one: &&beamtalk_wire::EntryView| {
            one.entry.source_file.as_ref() == Some(file) && !is_meant(&one.entry)
        };
        if view.deletes_file == Some(true) && !removed.iter().any(stays) {
            deleted.push(file);
        } else {
            cut.push(format!("cut {} out of {file}", view.entry.class));
        }
        if !files.contains(file) {
            files.push(file.clone());
        }
        classes.push(view.entry.class.clone());
    }
    deleted.dedup();
    let mut deeds = Vec::new();
    if !deleted.is_empty() || cut.is_empty() {
        let list = deleted.join(", ");
        deeds.push(format!(
            "delete {}",
            if list.is_empty() { "no file" } else { &list }
        ));
    }
    deeds.extend(cut);
    let deeds = deeds.join(", ");
    let (first, rest) = deeds.split_at(1);
    Ok(Effect {
        summary: format!("Write pending changes and {deeds}?"),
        action: format!("{}{rest}", first.to_uppercase()),
        classes,
        files,
        ..Effect::default()
    })
}

pub(crate) async fn flush<H: Host>(context: &Context<'_, H>, input: Flush) -> Result<Flushed, Failure> {
    let file = input
        .file
        .as_deref()
        .map(|file| context.host.inside(file))
        .transpose()?;
    if input.confirm_destructive == Some(true) {
        let effect = deletion(context, &input, file.as_deref()).await?;
        context.confirm(Some(true), effect)?;
    }
    let request = requests::Flush {
        class: input.class,
        file,
        kind: input.kind.map(OneOrMore::One),
        author_kind: input.author_kind.map(|author| OneOrMore::One(author.into())),
        confirm_destructive: input.confirm_destructive,
        force_file: None,
        seqs: None,
        expect: None,
    };
    let answer = context.ask(&request).await?.answer;
    let file = |file: beamtalk_wire::answers::FlushedFile| WrittenFile {
        file: file.file,
        kind: file.kind,
    };
    let skip = |skip: beamtalk_wire::answers::Skip| SkippedChange {
        seq: skip.seq,
        title: skip.subject(),
        reason: skip.reason,
    };
    Ok(Flushed {
        flushed: answer.flushed,
        files: answer.files.into_iter().map(file).collect(),
        merged: answer.merged,
        new_classes: answer.new_classes,
        removed_classes: answer.removed_classes,
        skipped: answer.skipped.into_iter().map(skip).collect(),
        conflicts: conflicts(&answer.conflicts),
    })
}

input! {
    RevertChange {
        /// Number of the change.
        seq: u64,
    }
}

output! {
    Reverted {
        ;
        /// The change that undoes it, if one was needed.
        entry: Change,
    }
}

pub(crate) async fn revert_change<H: Host>(
    context: &Context<'_, H>,
    input: RevertChange,
) -> Result<Reverted, Failure> {
    let asked = context.ask(&requests::Revert { seq: input.seq }).await;
    let entry = asked.map_err(which_change)?.answer.entry;
    Ok(Reverted {
        entry: entry.as_ref().map(Change::from),
    })
}

input! {
    ResolveConflict {
        /// The class whose change is in conflict.
        class: String,
        /// Which side stays: memory (`image`) or the file (`disk`).
        take: Take,
        ;
        /// One of its methods; everything of the class if absent.
        selector: String,
        /// `instance` if absent.
        side: Side,
        /// The person said yes. Asked for where the client can ask.
        confirm: bool,
    }
}

output! {
    Resolved {
        entries: Vec<Change>,
        conflicts: Vec<FileConflict>,
    }
}

/// Whether memory and file have different changes of what is meant.
async fn is_in_conflict<H: Host>(
    context: &Context<'_, H>,
    input: &ResolveConflict,
    side: Option<Side>,
    places: &[Place],
) -> Result<bool, HostError> {
    let changes = context.ask(&requests::Changes::default()).await?.answer;
    let is_meant = |entry: &Entry| {
        let is_method = entry.selector == input.selector && entry.side == side;
        entry.class == input.class && (input.selector.is_none() || entry.selector.is_none() || is_method)
    };
    let has_meant = |conflict: &&Conflict| {
        let mut entries = changes.entries.iter();
        entries.any(|view| conflict.seqs.contains(&view.entry.seq) && is_meant(&view.entry))
    };
    // Where definitions are in conflict, others of the same file need not be.
    let is_about = |conflict: &Conflict| match conflict.reason {
        ConflictReason::ExternalEdit | ConflictReason::SpanOutOfRange if input.selector.is_some() => places
            .iter()
            .any(|place| place.disk != place.base && place.disk != place.image),
        _ => true,
    };
    Ok(changes.conflicts.iter().filter(has_meant).any(is_about))
}

pub(crate) async fn resolve_conflict<H: Host>(
    context: &Context<'_, H>,
    mut input: ResolveConflict,
) -> Result<Resolved, Failure> {
    let side = match (&mut input.selector, input.side) {
        (Some(selector), side) => {
            *selector = selector.trim_start_matches('#').to_owned();
            Some(side.unwrap_or(Side::Instance))
        }
        (None, None) => None,
        (None, Some(_)) => {
            let error = failure("invalid_parameter", "'side' is that of a 'selector'")
                .hint("name the method, or leave 'side' out to decide about everything of the class")
                .detail("path", "/side")
                .detail("expected", "'selector' beside it");
            return Err(Failure::Error(Box::new(error)));
        }
    };
    let sides = requests::ChangeSides {
        class: Some(input.class.clone()),
        selector: input.selector.clone(),
        side,
        ..requests::ChangeSides::default()
    };
    let sides = context.ask(&sides).await?.answer;
    let subject = match (&input.selector, side) {
        (Some(selector), Some(Side::Class)) => format!("{} class>>{selector}", input.class),
        (Some(selector), _) => format!("{}>>{selector}", input.class),
        (None, _) => input.class.clone(),
    };
    if !is_in_conflict(context, &input, side, &sides.places).await? {
        let error = failure("not_found", format!("{subject} is in no conflict")).hint(
            "list_changes shows conflicts and what is pending; flush writes a pending change, revert_change undoes it",
        );
        return Err(Failure::Error(Box::new(error)));
    }
    // A yes is for the texts as they were: an edit that was made meanwhile would be lost with it.
    let of = serde_json::to_value(&sides).unwrap_or_default();
    let of = of.as_object().map(fingerprint).unwrap_or_default();
    let file = sides.file.unwrap_or_default();
    let (kept, lost) = match input.take {
        Take::Image => ("memory", "the file's"),
        Take::Disk => ("the file", "memory's"),
    };
    let effect = Effect {
        summary: format!("Take {subject} from {kept}? In {file} {lost} version of it is lost."),
        action: format!("Lose {lost} version"),
        classes: vec![input.class.clone()],
        files: vec![file],
        of,
        ..Effect::default()
    };
    context.confirm(input.confirm, effect)?;
    let request = requests::Take {
        from: input.take,
        class: Some(input.class),
        selector: input.selector,
        side,
        disk_sha256: sides.disk_sha256,
        ..requests::Take::default()
    };
    let answer = context.ask(&request).await?.answer;
    Ok(Resolved {
        entries: answer.entries.iter().map(Change::from).collect(),
        conflicts: conflicts(&answer.conflicts),
    })
}

output! {
    Rechecked {
        checked: u64,
        stale: u64,
        findings: Vec<FoundFault>,
    }
}

pub(crate) async fn recheck_image<H: Host>(
    context: &Context<'_, H>,
    _: Nothing,
) -> Result<Rechecked, Failure> {
    let answer = context.ask(&requests::RecheckImage {}).await?.answer;
    Ok(Rechecked {
        checked: answer.checked,
        stale: answer.stale,
        findings: open_faults(context.host, &answer.findings),
    })
}
