//! What a flush would do: pure, from the open entries, what is known about their files, and what the image loaded of them.
//!
//! Every definition is compared three ways: its base (as loaded or last flushed), the image (the latest entry), the disk.
//! A file is written only where each definition that the image changed is on disk what it was in its base; whatever else
//! somebody changed on disk stays.

use std::collections::{BTreeMap, BTreeSet};

use beamtalk_syntax::definitions::{
    Change, Dialect, Edit, Key, Member, Outline, class_changes, class_texts, edit, remove_class, says,
};
use beamtalk_syntax::span::LineIndex;
use beamtalk_wire::answers::FlushAnswer;
pub use beamtalk_wire::answers::{Conflict, ConflictReason};
pub(crate) use beamtalk_wire::answers::{FlushedFile, Skip};

use super::entry::{AuthorKind, Entry, Kind, Side};

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
    /// Absent: any.
    pub seqs: Option<Vec<u64>>,
    /// Classes that were removed take their files with them.
    pub confirm_destructive: bool,
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
            && self.seqs.as_ref().is_none_or(|seqs| seqs.contains(&entry.seq))
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

/// An entry with its texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pending<'a> {
    pub(crate) entry: &'a Entry,
    pub(crate) source: Option<&'a str>,
    pub(crate) base: Option<&'a str>,
}

/// One definition as the image wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) key: Key,
    /// `None`: gone.
    pub(crate) source: Option<String>,
    pub(crate) base: Option<String>,
}

impl Wanted {
    /// Whether a text has it so already.
    pub(crate) fn is_in(&self, text: &str) -> bool {
        match &self.source {
            Some(source) => says(text, &self.key, source),
            None => Outline::of_file(text).text_of(&self.key).is_none(),
        }
    }

    pub(crate) fn edit(&self) -> Edit<'_> {
        Edit {
            key: &self.key,
            change: self.source.as_deref().map_or(Change::Remove, Change::Put),
        }
    }
}

/// What a flush did, as the wire tells it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FlushReport {
    /// How many definitions were written or taken out, and classes removed.
    pub flushed: usize,
    pub files: Vec<FlushedFile>,
    /// Files that had also changed on disk.
    pub merged: Vec<String>,
    pub new_classes: Vec<String>,
    pub removed_classes: Vec<String>,
    pub skipped: Vec<Skip>,
    pub conflicts: Vec<Conflict>,
    /// What the image has as the base of these files from now on.
    pub bases: Vec<(String, Option<String>)>,
}

impl FlushReport {
    /// What clients are told of it.
    pub(crate) fn told(self) -> FlushAnswer {
        FlushAnswer {
            flushed: self.flushed as u64,
            files: self.files,
            merged: self.merged,
            new_classes: self.new_classes,
            removed_classes: self.removed_classes,
            skipped: self.skipped,
            conflicts: self.conflicts,
        }
    }
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
    /// How many definitions it changes.
    pub(crate) changed: usize,
    pub(crate) is_merged: bool,
    pub(crate) new_class: Option<String>,
    pub(crate) removed_classes: Vec<String>,
    /// The base of the file once it is written.
    pub(crate) base: Option<String>,
}

impl FilePlan {
    /// A file that is to have this text.
    pub(crate) fn whole(file: &str, content: &str, old_hash: Option<String>) -> Self {
        Self {
            file: file.to_owned(),
            content: Some(content.to_owned()),
            old_hash,
            retired: Vec::new(),
            changed: 0,
            is_merged: false,
            new_class: None,
            removed_classes: Vec::new(),
            base: Some(content.to_owned()),
        }
    }
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Plan {
    pub(crate) files: Vec<FilePlan>,
    /// Entries whose files say the same already.
    pub(crate) clean: Vec<u64>,
    /// Skips, conflicts, and classes whose files are gone already.
    pub(crate) report: FlushReport,
}

/// `pending` holds the pending entries, oldest first; `loaded` the texts of files as the image has them for its base.
pub(crate) fn plan(
    pending: &[Pending],
    files: &BTreeMap<String, FileState>,
    loaded: &BTreeMap<String, String>,
    filter: &Filter,
) -> Plan {
    let mut plan = Plan::default();
    let mut groups: BTreeMap<&str, Vec<Pending>> = BTreeMap::new();
    for one in pending.iter().filter(|one| filter.admits(one.entry)) {
        let reason = match &one.entry.not_flushable_reason {
            Some(reason) => Some(reason.as_str()),
            None if !one.entry.is_durable() => Some("ephemeral"),
            None if !one.entry.flushable => Some("dynamic"),
            None => None,
        };
        let is_shadowed = pending
            .iter()
            .any(|later| later.entry.is_durable() && later.entry.shadows(one.entry));
        // In a file without what the class got before it, such as a slot, a method may not compile.
        let waits = |header: &&Pending| {
            header.entry.seq < one.entry.seq
                && header.entry.class == one.entry.class
                && !filter.admits(header.entry)
                && changes_header(header)
        };
        let reason = match one.entry.selector {
            Some(_) if pending.iter().any(|header| waits(&header)) => reason.or(Some("needs_class")),
            _ => reason,
        };
        match (reason, &one.entry.source_file) {
            _ if is_shadowed => {}
            (Some(reason), _) => plan.report.skipped.push(skip(one.entry, reason)),
            (None, Some(file)) => groups.entry(file).or_default().push(*one),
            (None, None) => {}
        }
    }
    for (file, group) in groups {
        let target = TargetFile {
            file,
            group: &group,
            pending,
            state: files.get(file).unwrap_or(&FileState::Missing),
            loaded: loaded.get(file).map(String::as_str),
        };
        target.plan(filter, &mut plan);
    }
    plan
}

/// Whether a pending redefinition changes the class itself and not only methods of it.
fn changes_header(one: &Pending) -> bool {
    let entry = one.entry;
    entry.kind == Kind::NewClass
        && entry.is_redefinition()
        && entry.is_durable()
        && class_changes(
            &entry.class,
            one.base.unwrap_or_default(),
            one.source.unwrap_or_default(),
        )
        .iter()
        .any(|(key, _)| key.member == Member::Header)
}

/// What the entries of a file want of its definitions, the latest word for each. `entries` are oldest first.
pub(crate) fn wanted(entries: &[Pending]) -> Vec<Wanted> {
    let mut all: BTreeMap<Key, Wanted> = BTreeMap::new();
    let mut extensions = BTreeSet::new();
    for one in entries {
        let entry = one.entry;
        match (&entry.selector, entry.kind) {
            (Some(selector), _) => {
                let is_class = entry.side == Some(Side::Class);
                let key = Key::method(&entry.class, is_class, selector);
                let wanted = Wanted {
                    key: key.clone(),
                    source: one.source.map(str::to_owned),
                    base: one.base.map(str::to_owned),
                };
                if entry.is_extension {
                    extensions.insert(key.clone());
                }
                all.insert(key, wanted);
            }
            (None, Kind::NewClass) if entry.is_redefinition() => {
                all.retain(|key, _| key.class != entry.class || extensions.contains(key));
                let base = one.base.unwrap_or_default();
                let before = Outline::of_file(base);
                for (key, source) in class_changes(&entry.class, base, one.source.unwrap_or_default()) {
                    let base = before.text_of(&key);
                    all.insert(key.clone(), Wanted { key, source, base });
                }
            }
            (None, Kind::RemoveClass) => all.retain(|key, _| key.class != entry.class),
            (None, _) => {}
        }
    }
    all.into_values().collect()
}

/// The bases that entries hold for definitions.
pub(crate) fn bases(entries: &[Pending]) -> BTreeMap<Key, Option<String>> {
    let mut all = BTreeMap::new();
    for one in entries {
        let entry = one.entry;
        match (&entry.selector, entry.kind) {
            (Some(selector), _) => {
                let is_class = entry.side == Some(Side::Class);
                let base = one.base.map(str::to_owned);
                all.insert(Key::method(&entry.class, is_class, selector), base);
            }
            (None, Kind::NewClass | Kind::RemoveClass) if !entry.is_whole_file => {
                let before = Outline::of_file(one.base.unwrap_or_default());
                for key in before.keys() {
                    all.insert(key.clone(), before.text_of(key));
                }
            }
            (None, _) => {}
        }
    }
    all
}

/// A text with these definitions in it.
pub(crate) fn with_definitions(text: &str, definitions: &BTreeMap<Key, Option<String>>) -> String {
    let edits: Vec<Edit> = definitions
        .iter()
        .map(|(key, source)| Edit {
            key,
            change: source.as_deref().map_or(Change::Remove, Change::Put),
        })
        .collect();
    edit(text, Dialect::File, &edits).unwrap_or_else(|_| text.to_owned())
}

/// Whether the file of an entry has the same already.
pub(crate) fn is_clean(one: Pending, state: &FileState) -> bool {
    if !one.entry.flushable {
        return false;
    }
    match (one.entry.kind, state) {
        (Kind::RemoveClass, FileState::Missing) => true,
        (Kind::RemoveClass, FileState::Text { text, .. }) => {
            Outline::of_file(text).class(&one.entry.class).is_none()
        }
        (Kind::NewClass, FileState::Text { text, .. }) if one.entry.is_whole_file => one.source == Some(text),
        (_, FileState::Text { text, .. }) => wanted(&[one]).iter().all(|wanted| wanted.is_in(text)),
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

/// The first thing that is wrong with a text, with its line.
pub(crate) fn first_error(text: &str) -> Option<String> {
    let outline = Outline::of_file(text);
    let error = outline.error()?;
    let line = LineIndex::new(text).line(error.span.start);
    Some(format!("line {line}: {}", error.message))
}

/// One file with the entries that shall change it.
struct TargetFile<'a> {
    file: &'a str,
    group: &'a [Pending<'a>],
    pending: &'a [Pending<'a>],
    state: &'a FileState,
    loaded: Option<&'a str>,
}

impl TargetFile<'_> {
    fn plan(&self, filter: &Filter, plan: &mut Plan) {
        let detail = match self.state {
            FileState::Outside => Some("the file is not in the project".to_owned()),
            FileState::Unreadable(cause) => Some(cause.clone()),
            FileState::Missing | FileState::Text { .. } => None,
        };
        if let Some(detail) = detail {
            return self.conflict(plan, ConflictReason::WriteFailed, Some(detail));
        }
        // The latest says what the others said, and more.
        let creation = self.group.iter().rfind(|one| one.entry.is_whole_file);
        match (creation, self.state) {
            (Some(creation), _) => self.creation(creation, plan),
            (None, FileState::Text { text, hash }) => self.changes(text, hash, filter, plan),
            (None, _) => self.without_file(plan),
        }
    }

    /// Removals of classes, and everything else.
    fn parts(&self) -> (Vec<Pending<'_>>, Vec<Pending<'_>>) {
        let is_removal = |one: &Pending| one.entry.kind == Kind::RemoveClass;
        self.group.iter().partition(|one| is_removal(one))
    }

    /// These entries and everything pending that they make irrelevant.
    fn retired(&self, done: &[Pending]) -> Vec<u64> {
        let is_done = |one: &&Pending| {
            one.entry.is_durable()
                && done
                    .iter()
                    .any(|later| later.entry.seq == one.entry.seq || later.entry.shadows(one.entry))
        };
        self.pending
            .iter()
            .filter(is_done)
            .map(|one| one.entry.seq)
            .collect()
    }

    fn conflict(&self, plan: &mut Plan, reason: ConflictReason, detail: Option<String>) {
        self.conflict_of(self.group, plan, reason, detail);
    }

    fn conflict_of(
        &self,
        entries: &[Pending],
        plan: &mut Plan,
        reason: ConflictReason,
        detail: Option<String>,
    ) {
        plan.report.conflicts.push(Conflict {
            file: self.file.to_owned(),
            reason,
            detail,
            seqs: entries.iter().map(|one| one.entry.seq).collect(),
        });
    }

    fn file_plan(&self, content: Option<String>, old_hash: Option<&String>, done: &[Pending]) -> FilePlan {
        FilePlan {
            base: content.clone(),
            retired: self.retired(done),
            content: content.clone(),
            ..FilePlan::whole(
                self.file,
                content.as_deref().unwrap_or_default(),
                old_hash.cloned(),
            )
        }
    }

    /// Classes that went are not in the file any more.
    fn gone(&self, removals: &[Pending], plan: &mut Plan) {
        plan.clean.extend(self.retired(removals));
        // One that was never written is gone from nowhere.
        let written = removals.iter().filter(|one| one.base.is_some());
        let classes: Vec<String> = written.map(|one| one.entry.class.clone()).collect();
        plan.report.flushed += classes.len();
        plan.report.removed_classes.extend(classes);
    }

    /// Where there is no file, there is none of a class that went either; other definitions have no place.
    fn without_file(&self, plan: &mut Plan) {
        let (removals, rest) = self.parts();
        self.gone(&removals, plan);
        if rest.is_empty() {
            return;
        }
        let was_never_written = !removals.is_empty() && removals.iter().all(|one| one.base.is_none());
        let wanted = wanted(&rest);
        let edits: Vec<Edit> = wanted.iter().map(Wanted::edit).collect();
        match edit("", Dialect::File, &edits) {
            Ok(content) if was_never_written => plan.files.push(FilePlan {
                changed: wanted.len(),
                ..self.file_plan(Some(content), None, &rest)
            }),
            _ => self.conflict_of(&rest, plan, ConflictReason::FileMissing, None),
        }
    }

    /// A file that the image made.
    fn creation(&self, creation: &Pending, plan: &mut Plan) {
        let later: Vec<Pending> = self
            .group
            .iter()
            .copied()
            .filter(|one| one.entry.seq > creation.entry.seq)
            .collect();
        let wanted = wanted(&later);
        let edits: Vec<Edit> = wanted.iter().map(Wanted::edit).collect();
        let source = without_classes(creation.source.unwrap_or_default(), &removals_of(&later));
        let Ok(content) = edit(&source, Dialect::File, &edits) else {
            let titles = titles(wanted.iter());
            return self.conflict(plan, ConflictReason::SpanOutOfRange, Some(titles));
        };
        let old_hash = match self.state {
            FileState::Text { text, .. } if *text == content => {
                plan.clean.extend(self.retired(self.group));
                plan.report.bases.push((self.file.to_owned(), Some(content)));
                return;
            }
            FileState::Text { text, hash } if creation.base == Some(text) => Some(hash),
            FileState::Text { .. } => return self.conflict(plan, ConflictReason::TargetExists, None),
            FileState::Missing | FileState::Outside | FileState::Unreadable(_) => None,
        };
        plan.files.push(FilePlan {
            changed: wanted.len(),
            new_class: Some(creation.entry.class.clone()),
            ..self.file_plan(Some(content), old_hash, self.group)
        });
    }

    /// Definitions of a file that exists. It goes itself with the last of them, only when that is confirmed.
    fn changes(&self, text: &str, hash: &String, filter: &Filter, plan: &mut Plan) {
        if let Some(error) = first_error(text) {
            return self.conflict(plan, ConflictReason::ExternalEdit, Some(error));
        }
        let disk = Outline::of_file(text);
        let (removals, mut done) = self.parts();
        let (mut removals, gone): (Vec<Pending>, Vec<Pending>) = removals
            .iter()
            .partition(|one| disk.class(&one.entry.class).is_some());
        self.gone(&gone, plan);
        let wanted = wanted(&done);
        let is_emptied = is_emptied(text, &removals, &wanted);
        if is_emptied && !filter.confirm_destructive {
            let skipped = removals.drain(..).map(|one| skip(one.entry, "destructive"));
            plan.report.skipped.extend(skipped);
        }
        if removals.is_empty() && done.is_empty() {
            return;
        }
        done.extend(&removals);
        let classes = removals_of(&removals);
        let rest = without_classes(text, &classes);
        let edited: Vec<&Wanted> = wanted.iter().filter(|wanted| !wanted.is_in(&rest)).collect();
        let others: Vec<&Wanted> = edited
            .iter()
            .copied()
            .filter(|wanted| disk.text_of(&wanted.key) != wanted.base)
            .collect();
        let mut titles: Vec<String> = others.iter().map(|wanted| wanted.key.title()).collect();
        // Of a file that goes all has to be as it was known.
        let is_known = |one: &&Pending| {
            has_class_of_base(one, text)
                && (!is_emptied || one.base == Some(text) || self.loaded.is_some_and(|loaded| loaded == text))
        };
        let edited_classes = removals.iter().filter(|one| !is_known(one));
        titles.extend(edited_classes.map(|one| one.entry.class.clone()));
        if !titles.is_empty() {
            let is_gone = titles.len() == others.len()
                && others.iter().all(|wanted| disk.text_of(&wanted.key).is_none());
            let reason = if is_gone {
                ConflictReason::SpanOutOfRange
            } else {
                ConflictReason::ExternalEdit
            };
            return self.conflict_of(&done, plan, reason, Some(titles.join(", ")));
        }
        let edits: Vec<Edit> = edited.iter().map(|wanted| wanted.edit()).collect();
        let content = match edit(&rest, Dialect::File, &edits) {
            Ok(content) => content,
            Err((index, _)) => {
                let title = edited.get(index).map(|wanted| wanted.key.title());
                return self.conflict_of(&done, plan, ConflictReason::SpanOutOfRange, title);
            }
        };
        let is_merged = self.loaded.is_some_and(|loaded| loaded != text);
        let base = match self.loaded {
            Some(loaded) if is_merged => moved_base(&without_classes(loaded, &classes), &content, &wanted),
            _ => content.clone(),
        };
        if content == text {
            plan.clean.extend(self.retired(&done));
            plan.report.bases.push((self.file.to_owned(), Some(base)));
            return;
        }
        let content = Some(content).filter(|content| classes.is_empty() || has_definitions(content));
        plan.files.push(FilePlan {
            base: content.is_some().then_some(base),
            changed: edited.len() + classes.len(),
            is_merged: is_merged && content.is_some(),
            removed_classes: classes.iter().map(|class| (*class).to_owned()).collect(),
            ..self.file_plan(content, Some(hash), &done)
        });
    }
}

fn has_definitions(text: &str) -> bool {
    Outline::of_file(text).has_definitions()
}

/// Whether nothing but comments would be left in a file.
fn is_emptied(text: &str, removals: &[Pending], wanted: &[Wanted]) -> bool {
    let rest = without_classes(text, &removals_of(removals));
    let edits: Vec<Edit> = wanted
        .iter()
        .filter(|wanted| !wanted.is_in(&rest))
        .map(Wanted::edit)
        .collect();
    !removals.is_empty() && edit(&rest, Dialect::File, &edits).is_ok_and(|content| !has_definitions(&content))
}

/// The classes that entries remove.
fn removals_of<'a>(entries: &[Pending<'a>]) -> Vec<&'a str> {
    let removals = entries.iter().filter(|one| one.entry.kind == Kind::RemoveClass);
    removals.map(|one| one.entry.class.as_str()).collect()
}

/// A text without some of its classes.
pub(crate) fn without_classes(text: &str, classes: &[&str]) -> String {
    let without = |text: String, class: &&str| remove_class(&text, class);
    classes.iter().fold(text.to_owned(), without)
}

/// Whether the class that an entry removes is in a text what it was when it was removed.
fn has_class_of_base(removal: &Pending, text: &str) -> bool {
    is_class_same(&removal.entry.class, removal.base.unwrap_or_default(), text)
}

/// Whether two texts have the same class, to the letter.
pub(crate) fn is_class_same(class: &str, one: &str, other: &str) -> bool {
    class_texts(one, class) == class_texts(other, class)
}

/// The base with those definitions as a text has them.
pub(crate) fn moved_base(base: &str, text: &str, wanted: &[Wanted]) -> String {
    let now = Outline::of_file(text);
    let definitions = wanted
        .iter()
        .map(|wanted| (wanted.key.clone(), now.text_of(&wanted.key)))
        .collect();
    with_definitions(base, &definitions)
}

fn titles<'a>(wanted: impl Iterator<Item = &'a Wanted>) -> String {
    let titles: Vec<String> = wanted.map(|wanted| wanted.key.title()).collect();
    titles.join(", ")
}
