//! What a flush would do: pure, from the pending entries and what is known about their files.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::Serialize;

use super::entry::{AuthorKind, Entry, Kind, Side};
use super::splice::{Change, Edit, replace_class, splice};

/// Which entries a flush takes; the default takes all that leave their file in place.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub class: Option<String>,
    /// Relative to the project.
    pub file: Option<String>,
    /// Empty: any.
    pub kinds: Vec<Kind>,
    /// Empty: any.
    pub author_kinds: Vec<AuthorKind>,
    /// Classes that were removed lose their files.
    pub confirm_destructive: bool,
    /// Write to this file although it is not what it was.
    pub force_file: Option<String>,
}

impl Filter {
    fn admits(&self, entry: &Entry) -> bool {
        self.class.as_ref().is_none_or(|class| *class == entry.class)
            && self
                .file
                .as_ref()
                .is_none_or(|file| Some(file) == entry.source_file.as_ref())
            && (self.kinds.is_empty() || self.kinds.contains(&entry.kind))
            && (self.author_kinds.is_empty() || self.author_kinds.contains(&entry.author_kind))
    }
}

/// What a file is now.
#[derive(Clone, Debug)]
pub(crate) enum FileState {
    Missing,
    Text {
        text: String,
        hash: String,
    },
    /// Not in the project, or a link that leads out of it.
    Outside,
    /// The text says why.
    Unreadable(String),
}

/// An entry with its source.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) source: Option<&'a str>,
}

/// What a flush did, as the wire tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FlushReport {
    /// How many methods were written or taken out, and classes written anew.
    pub flushed: usize,
    pub files: Vec<FlushedFile>,
    pub new_classes: Vec<String>,
    pub removed_classes: Vec<String>,
    pub skipped: Vec<Skip>,
    pub conflicts: Vec<Conflict>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FlushedFile {
    pub file: String,
    /// `changed`, `created` or `deleted`.
    pub kind: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Skip {
    pub seq: u64,
    pub class: String,
    pub selector: Option<String>,
    pub kind: Kind,
    /// `destructive`, `ephemeral`, or why the entry is not flushable.
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Conflict {
    pub file: String,
    pub reason: ConflictReason,
    pub detail: Option<String>,
    /// The entries that stay pending.
    pub seqs: Vec<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ConflictReason {
    ExternalEdit,
    FileMissing,
    TargetExists,
    SpanOutOfRange,
    WriteFailed,
}

/// The change of one file.
#[derive(Clone, Debug)]
pub(crate) struct FilePlan {
    pub(crate) file: String,
    /// `None` deletes it.
    pub(crate) content: Option<String>,
    /// What it must still be; `None`: it must not exist.
    pub(crate) old_hash: Option<String>,
    /// Entries that are done with it.
    pub(crate) retired: Vec<u64>,
    /// How many methods it changes, and classes it has anew.
    pub(crate) methods: usize,
    pub(crate) new_class: Option<String>,
    pub(crate) removed_class: Option<String>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) files: Vec<FilePlan>,
    /// Entries whose files say the same already.
    pub(crate) clean: Vec<u64>,
    /// Skips, conflicts, and classes whose files are gone already.
    pub(crate) report: FlushReport,
}

/// `pending` holds the entries of this epoch, oldest first.
pub(crate) fn plan(pending: &[Pending], files: &BTreeMap<String, FileState>, filter: &Filter) -> Plan {
    let mut plan = Plan::default();
    let mut candidates: Vec<Pending> = Vec::new();
    for one in pending.iter().filter(|one| filter.admits(one.entry)) {
        let reason = match &one.entry.not_flushable_reason {
            Some(reason) => Some(reason.as_str()),
            None if !one.entry.is_durable() => Some("ephemeral"),
            None if !one.entry.flushable => Some("dynamic"),
            None => None,
        };
        match reason {
            None => candidates.push(*one),
            Some(_) if pending.iter().any(|later| later.entry.shadows(one.entry)) => {}
            Some(reason) => plan.report.skipped.push(skip(one.entry, reason)),
        }
    }
    let mut groups: BTreeMap<&str, Vec<Pending>> = BTreeMap::new();
    for one in &candidates {
        let is_shadowed = candidates.iter().any(|later| later.entry.shadows(one.entry));
        if let (Some(file), false) = (&one.entry.source_file, is_shadowed) {
            groups.entry(file).or_default().push(*one);
        }
    }
    for (file, group) in groups {
        let target = TargetFile {
            file,
            group: &group,
            pending,
            state: files.get(file).unwrap_or(&FileState::Missing),
            is_forced: filter.force_file.as_deref() == Some(file),
        };
        target.plan(filter, &mut plan);
    }
    plan
}

/// Whether the file of an entry has the same already.
pub(crate) fn is_clean(one: Pending, state: &FileState) -> bool {
    if !one.entry.flushable {
        return false;
    }
    match (one.entry.kind, state) {
        (Kind::RemoveClass, FileState::Missing) => true,
        (Kind::NewClass, FileState::Text { text, .. }) if one.entry.is_redefinition() => {
            redefined(&one, text).is_some_and(|new_text| new_text == *text)
        }
        (Kind::NewClass, FileState::Text { text, .. }) => one.source == Some(text),
        (Kind::Instance | Kind::Class | Kind::RemoveMethod, FileState::Text { text, .. }) => edit(&one)
            .is_some_and(|edit| {
                splice(text, &[Edit { span: None, ..edit }]).is_ok_and(|new_text| new_text == *text)
            }),
        _ => false,
    }
}

fn skip(entry: &Entry, reason: &str) -> Skip {
    Skip {
        seq: entry.seq,
        class: entry.class.clone(),
        selector: entry.selector.clone(),
        kind: entry.kind,
        reason: reason.to_owned(),
    }
}

/// The text of a file with the new definition of one of its classes.
fn redefined(one: &Pending, text: &str) -> Option<String> {
    replace_class(text, &one.entry.class, one.source?)
}

fn edit<'a>(one: &Pending<'a>) -> Option<Edit<'a>> {
    let change = match one.entry.kind {
        Kind::Instance | Kind::Class => Change::Put(one.source?),
        Kind::RemoveMethod => Change::Remove,
        Kind::NewClass | Kind::RemoveClass | Kind::Unknown => return None,
    };
    Some(Edit {
        class: &one.entry.class,
        side: one.entry.side.unwrap_or(Side::Instance),
        selector: one.entry.selector.as_deref()?,
        span: one.entry.span.as_ref(),
        change,
    })
}

/// One file with the entries that shall change it.
struct TargetFile<'a> {
    file: &'a str,
    group: &'a [Pending<'a>],
    pending: &'a [Pending<'a>],
    state: &'a FileState,
    is_forced: bool,
}

impl<'a> TargetFile<'a> {
    fn plan(&self, filter: &Filter, plan: &mut Plan) {
        let detail = match self.state {
            FileState::Outside => Some("the file is not in the project".to_owned()),
            FileState::Unreadable(cause) => Some(cause.clone()),
            FileState::Missing | FileState::Text { .. } => None,
        };
        if let Some(detail) = detail {
            self.conflict(plan, ConflictReason::WriteFailed, Some(detail), self.seqs());
            return;
        }
        let of_kind = |kind| self.group.iter().find(|one| one.entry.kind == kind);
        if let Some(removal) = of_kind(Kind::RemoveClass) {
            self.deletion(removal, filter, plan);
        } else {
            self.writing(of_kind(Kind::NewClass), plan);
        }
    }

    fn seqs(&self) -> Vec<u64> {
        self.group.iter().map(|one| one.entry.seq).collect()
    }

    /// The entry and everything pending that it makes irrelevant.
    fn chain(&self, one: &Pending) -> Vec<u64> {
        let shadowed = self
            .pending
            .iter()
            .filter(|earlier| earlier.entry.is_durable() && one.entry.shadows(earlier.entry));
        shadowed
            .map(|earlier| earlier.entry.seq)
            .chain([one.entry.seq])
            .collect()
    }

    fn conflict(&self, plan: &mut Plan, reason: ConflictReason, detail: Option<String>, seqs: Vec<u64>) {
        plan.report.conflicts.push(Conflict {
            file: self.file.to_owned(),
            reason,
            detail,
            seqs,
        });
    }

    /// The file is not what it was when the first of its pending changes was made.
    fn is_edited(&self, hash: &str) -> bool {
        let recorded = self
            .pending
            .iter()
            .filter(|one| one.entry.flushable && one.entry.source_file.as_deref() == Some(self.file))
            .find_map(|one| one.entry.file_hash.as_deref());
        !self.is_forced && recorded.is_some_and(|recorded| recorded != hash)
    }

    fn deletion(&self, removal: &Pending, filter: &Filter, plan: &mut Plan) {
        let class = &removal.entry.class;
        let FileState::Text { hash, .. } = self.state else {
            plan.clean.extend(self.chain(removal));
            plan.report.removed_classes.push(class.clone());
            return;
        };
        if !filter.confirm_destructive {
            plan.report.skipped.push(skip(removal.entry, "destructive"));
        } else if self.is_edited(hash) {
            self.conflict(plan, ConflictReason::ExternalEdit, None, self.seqs());
        } else {
            plan.files.push(FilePlan {
                file: self.file.to_owned(),
                content: None,
                old_hash: Some(hash.clone()),
                retired: self.chain(removal),
                methods: 0,
                new_class: None,
                removed_class: Some(class.clone()),
            });
        }
    }

    fn writing(&self, definition: Option<&Pending<'a>>, plan: &mut Plan) {
        let creation = definition.filter(|one| !one.entry.is_redefinition());
        let redefinition = definition.filter(|one| one.entry.is_redefinition());
        let made = creation.and_then(|one| one.source);
        let base = match (made, self.state) {
            (Some(source), FileState::Missing) => Cow::Borrowed(source),
            (Some(source), FileState::Text { text, .. }) if text == source || self.is_forced => {
                Cow::Borrowed(source)
            }
            (Some(_), _) => {
                return self.conflict(plan, ConflictReason::TargetExists, None, self.seqs());
            }
            (None, FileState::Text { text, .. }) => match redefinition {
                None => Cow::Borrowed(text.as_str()),
                Some(one) => match redefined(one, text) {
                    Some(text) => Cow::Owned(text),
                    None => return self.misplaced(one, plan),
                },
            },
            (None, _) => {
                return self.conflict(plan, ConflictReason::FileMissing, None, self.seqs());
            }
        };
        let (content, applied) = self.spliced(&base, redefinition.is_some(), plan);
        let mut retired: Vec<u64> = applied.iter().flat_map(|one| self.chain(one)).collect();
        retired.extend(definition.into_iter().flat_map(|one| self.chain(one)));
        let old_hash = match self.state {
            FileState::Text { text, .. } if *text == content => {
                plan.clean.extend(retired);
                return;
            }
            FileState::Text { hash, .. } if made.is_none() && self.is_edited(hash) => {
                return self.conflict(plan, ConflictReason::ExternalEdit, None, self.seqs());
            }
            FileState::Text { hash, .. } => Some(hash.clone()),
            FileState::Missing | FileState::Outside | FileState::Unreadable(_) => None,
        };
        plan.files.push(FilePlan {
            file: self.file.to_owned(),
            content: Some(content),
            old_hash,
            retired,
            methods: applied.len() + redefinition.iter().len(),
            new_class: creation.map(|one| one.entry.class.clone()),
            removed_class: None,
        });
    }

    /// What was changed is not in the file any more. A file that somebody edited is told as such, once.
    fn misplaced(&self, one: &Pending, plan: &mut Plan) {
        let is_edited = matches!(self.state, FileState::Text { hash, .. } if self.is_edited(hash));
        let reason = if is_edited {
            ConflictReason::ExternalEdit
        } else {
            ConflictReason::SpanOutOfRange
        };
        self.conflict(plan, reason, Some(one.entry.title()), self.seqs());
    }

    /// The text with all edits that can be made, and the entries of those; the others are conflicts.
    /// In a class that was defined anew methods are found by name alone.
    fn spliced(&self, base: &str, is_redefined: bool, plan: &mut Plan) -> (String, Vec<Pending<'a>>) {
        let mut applied: Vec<Pending> = self
            .group
            .iter()
            .copied()
            .filter(|one| edit(one).is_some())
            .collect();
        loop {
            let mut edits: Vec<Edit> = applied.iter().filter_map(edit).collect();
            if is_redefined {
                edits.iter_mut().for_each(|edit| edit.span = None);
            }
            match splice(base, &edits) {
                Ok(content) => return (content, applied),
                Err((index, _)) => {
                    let faulty = applied.remove(index);
                    let seqs = vec![faulty.entry.seq];
                    // A file that somebody edited is told as such, once.
                    let is_edited =
                        matches!(self.state, FileState::Text { hash, .. } if self.is_edited(hash));
                    if !is_edited {
                        self.conflict(
                            plan,
                            ConflictReason::SpanOutOfRange,
                            Some(faulty.entry.title()),
                            seqs,
                        );
                    }
                }
            }
        }
    }
}
