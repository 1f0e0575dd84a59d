//! Answers about the change log: entries, differences, flush.

use beamtalk_wire::answers::{
    ChangesAnswer, Conflict, ConflictReason, DecideAnswer, DirtyAnswer, FlushAnswer, RestoreAnswer,
    TakeAnswer,
};
use beamtalk_wire::requests::{Discard, Flush, OneOrMore, Restore, WantedKind};
use beamtalk_wire::{ChangeKind, Entry, EntryView};

use super::super::render::{Rendered, note, view_note, with_hint};
use super::count;

/// What an entry is about: `Lamp>>isOn`, or `Lamp` for a class as a whole.
pub(crate) fn subject(entry: &Entry) -> String {
    match entry.selector {
        Some(_) => entry.title(),
        None => entry.class.clone(),
    }
}

/// The kind of a change where its subject does not show it.
fn kind(entry: &Entry) -> String {
    match entry.kind {
        ChangeKind::NewClass | ChangeKind::RemoveMethod | ChangeKind::RemoveClass => {
            format!(" {}", entry.kind.as_str())
        }
        ChangeKind::Instance | ChangeKind::Class | ChangeKind::Unknown => String::new(),
    }
}

pub(crate) fn entries(answer: &ChangesAnswer) -> Rendered {
    let mut rendered = Rendered::default();
    for view in &answer.entries {
        rendered.line(&line_of(&view.entry, &view_note(view)));
    }
    let waiting = answer.waiting.len() as u64;
    if answer.entries.is_empty() && waiting == 0 {
        rendered.line("No changes");
    }
    if waiting > 0 {
        rendered.line(&waiting_sentence(waiting));
    }
    for view in &answer.waiting {
        rendered.line(&waiting_line(&view.entry));
    }
    rendered
}

/// What is said of changes that wait.
pub(crate) fn waiting_sentence(waiting: u64) -> String {
    let (were, them) = if waiting == 1 {
        ("was", "it")
    } else {
        ("were", "them")
    };
    format!(
        "{} of the last run {were} not flushed (:restore installs {them}, :discard forgets {them})",
        count(waiting, "change")
    )
}

/// One change that waits: its number, what it is about, who made it and when.
pub(crate) fn waiting_line(entry: &Entry) -> String {
    format!(
        "{:>4}  {}{} (by {} {}, {})",
        entry.seq,
        subject(entry),
        kind(entry),
        entry.author_kind.name(),
        entry.author,
        entry.ts
    )
}

/// What names changes: a number, a class, or `all`.
enum Chosen {
    Seq(u64),
    Class(String),
    All,
}

impl Chosen {
    fn parse(words: &str) -> Self {
        match words.parse::<u64>() {
            Ok(seq) => Self::Seq(seq),
            Err(_) if words == "all" => Self::All,
            Err(_) => Self::Class(words.to_owned()),
        }
    }
}

pub(crate) fn restore(words: &str) -> Restore {
    let mut request = Restore::default();
    match Chosen::parse(words) {
        Chosen::Seq(seq) => request.seq = Some(seq),
        Chosen::Class(class) => request.class = Some(class),
        Chosen::All => request.all = Some(true),
    }
    request
}

/// The classes that a flush would take out of their files, before it is asked whether it shall.
pub(crate) fn deletions(entries: &[EntryView], flush: &Flush) -> Rendered {
    let is_meant = |entry: &Entry| {
        let is_kind = |kinds: &OneOrMore<WantedKind>| {
            let mut kinds = kinds.as_slice().iter();
            kinds.any(|kind| kind.kind() == entry.kind)
        };
        flush.class.as_ref().is_none_or(|class| entry.class == *class)
            && flush.kind.as_ref().is_none_or(is_kind)
            && (flush.file.is_none() || flush.file == entry.source_file)
    };
    let is_removed =
        |view: &&EntryView| view.entry.kind == ChangeKind::RemoveClass && view.active && view.entry.flushable;
    let mut rendered = Rendered::default();
    for view in entries.iter().filter(is_removed) {
        let entry = &view.entry;
        let (true, Some(file)) = (is_meant(entry), &entry.source_file) else {
            continue;
        };
        let mut of_file = entries.iter().filter(is_removed);
        let stays = of_file.any(|one| one.entry.source_file == entry.source_file && !is_meant(&one.entry));
        let class = &entry.class;
        rendered.complaint(&match view.deletes_file {
            Some(true) if !stays => format!("  {file} is deleted ({class} was removed)"),
            Some(_) => format!("  {class} is cut out of {file}, the rest of the file stays"),
            None => format!("  {class} is taken out of {file}, unless that is in conflict"),
        });
    }
    rendered
}

pub(crate) fn discard(words: &str) -> Discard {
    let mut request = Discard::default();
    match Chosen::parse(words) {
        Chosen::Seq(seq) => request.seq = Some(seq),
        Chosen::Class(class) => request.class = Some(class),
        Chosen::All => request.all = Some(true),
    }
    request
}

/// The answer of `restore`.
pub(crate) fn restored(answer: &RestoreAnswer) -> Rendered {
    let mut rendered = Rendered::default();
    for entry in &answer.entries {
        rendered.line(&format!("Installed {} {}", subject(entry), note(entry)));
    }
    for failure in &answer.failed {
        let error = &failure.error;
        let told = format!("Error: change {} still waits: {}", failure.seq, error.message);
        rendered.complaint(&with_hint(told, error.hint.as_deref()));
    }
    for held in &answer.conflicts {
        rendered.complaint(&format!(
            "{} waits on: {} (:restore {} takes it nevertheless)",
            held.subject(),
            held.detail,
            held.seq
        ));
    }
    if rendered.out.is_empty() && rendered.err.is_empty() {
        rendered.line("Nothing waits");
    }
    rendered
}

/// The answer of `take`.
pub(crate) fn taken(answer: &TakeAnswer) -> Rendered {
    let mut rendered = Rendered::default();
    for entry in &answer.entries {
        rendered.line(&entry_line(entry));
    }
    conflict_lines(&mut rendered, &answer.conflicts);
    rendered
}

/// The answer of `discard`.
pub(crate) fn discarded(answer: &DecideAnswer) -> Rendered {
    let mut rendered = Rendered::default();
    for entry in &answer.entries {
        rendered.line(&format!("Discarded {:>4}  {}", entry.seq, subject(entry)));
    }
    if answer.entries.is_empty() {
        rendered.line("Nothing to discard");
    }
    rendered
}

/// What is in conflict, a line for each file.
pub(crate) fn conflict_lines(rendered: &mut Rendered, conflicts: &[Conflict]) {
    for conflict in conflicts {
        rendered.complaint(&conflict_line(conflict));
    }
}

/// One entry: its number, what it is about, its kind where the name does not show it, what becomes of it.
pub(crate) fn entry_line(entry: &Entry) -> String {
    line_of(entry, &note(entry))
}

fn line_of(entry: &Entry, note: &str) -> String {
    format!("{:>4}  {}{} {note}", entry.seq, subject(entry), kind(entry))
}

pub(crate) fn dirty(answer: &DirtyAnswer) -> Rendered {
    let mut rendered = Rendered::default();
    for (class, selectors) in &answer.dirty {
        rendered.line(&format!("{class}: {}", selectors.join(", ")));
    }
    if answer.dirty.is_empty() {
        rendered.line("Nothing differs from disk");
    }
    rendered
}

/// The answer of `flush`.
pub(crate) fn flushed(answer: &FlushAnswer) -> Rendered {
    let mut rendered = Rendered::default();
    // Classes that went are told by name.
    let methods = answer.flushed.saturating_sub(answer.removed_classes.len() as u64);
    let merged = if answer.merged.is_empty() {
        ""
    } else {
        ", merged with changes on disk (:sync loads them)"
    };
    if methods > 0 {
        rendered.line(&format!(
            "flushed {} across {}{merged}",
            count(methods, "method"),
            count(answer.files.len() as u64, "file")
        ));
    }
    for (verb, classes) in [
        ("wrote", &answer.new_classes),
        ("deleted", &answer.removed_classes),
    ] {
        if !classes.is_empty() {
            rendered.line(&format!("{verb} {}", classes.join(", ")));
        }
    }
    if rendered.out.is_empty() && answer.conflicts.is_empty() {
        rendered.line("nothing to flush");
    }
    for skipped in &answer.skipped {
        let reason = match skipped.reason.as_str() {
            "destructive" => "destructive, use :flush-destructive".to_owned(),
            "stdlib" => "standard library".to_owned(),
            "dynamic" => "no source file".to_owned(),
            "needs_class" => "its class was redefined before it and is not written now".to_owned(),
            reason => reason.strip_prefix("dependency:").map_or_else(
                || reason.to_owned(),
                |path| format!("belongs to the dependency {path}"),
            ),
        };
        let kind = skipped.kind.as_str();
        rendered.line(&format!("skipped: {} ({kind}) — {reason}", skipped.subject()));
    }
    conflict_lines(&mut rendered, &answer.conflicts);
    rendered
}

fn conflict_line(conflict: &Conflict) -> String {
    let (what, way) = match conflict.reason {
        ConflictReason::ExternalEdit => (
            "changed on disk and in the image",
            ":diff shows both, :take image or :take disk settles it",
        ),
        ConflictReason::FileMissing => (
            "was moved or deleted",
            "put it back, or :take image to write it anew",
        ),
        ConflictReason::TargetExists => (
            "exists already",
            ":take image, :take disk, or choose another path",
        ),
        ConflictReason::SpanOutOfRange => (
            "no longer has the method",
            ":take image or :take disk, or edit it by hand, then :reload the class",
        ),
        ConflictReason::WriteFailed => ("cannot be written", "repair that, then :flush again"),
    };
    let detail = conflict
        .detail
        .as_ref()
        .map_or_else(String::new, |detail| format!(" ({detail})"));
    format!("conflict: {} {what}{detail} — {way}", conflict.file)
}

/// What `:flush` narrows to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Filter {
    All,
    Class(String),
    Kind(WantedKind),
    File(String),
}

impl Filter {
    /// `Class`, `#'new-class'` or `#kind`, `#{#file => "path"}`. `None` when it is none of these.
    pub(crate) fn parse(words: &str) -> Option<Self> {
        let words = words.trim();
        if words.is_empty() {
            return Some(Self::All);
        }
        if let Some(inside) = words.strip_prefix("#{").and_then(|rest| rest.strip_suffix('}')) {
            let (key, value) = inside.split_once("=>")?;
            let file = value.trim().strip_prefix('"')?.strip_suffix('"')?;
            return (key.trim() == "#file" && !file.is_empty()).then(|| Self::File(file.to_owned()));
        }
        if let Some(kind) = words.strip_prefix('#') {
            let kind = kind
                .strip_prefix('\'')
                .map_or(Some(kind), |kind| kind.strip_suffix('\''))?;
            return serde_json::from_value(kind.into()).ok().map(Self::Kind);
        }
        let is_class = words.starts_with(|first: char| first.is_uppercase()) && is_word(words);
        is_class.then(|| Self::Class(words.to_owned()))
    }

    /// What is asked for.
    pub(crate) fn request(self) -> Flush {
        let mut request = Flush::default();
        match self {
            Self::All => {}
            Self::Class(class) => request.class = Some(class),
            Self::Kind(kind) => request.kind = Some(OneOrMore::One(kind)),
            Self::File(file) => request.file = Some(file),
        }
        request
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|character| character.is_alphanumeric() || matches!(character, '_' | '-' | '@'))
}
