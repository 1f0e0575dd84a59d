//! The change log: what was changed, what of it is pending, what to write, how to undo it.

mod views;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use beamtalk_storage::{Directory, time};
use beamtalk_syntax::definitions::{Key, Outline, method_source};
use beamtalk_wire::answers::FileChange;

use super::entry::{Entry, Intent, Kind, NewEntry, Settled, Side, State};
use super::error::ChangeError;
use super::flush::{self, Done};
use super::merge::{self, Merge};
use super::new_class::{NewClass, NewClassFault, check_new_class};
use super::plan::{self, Conflict, FilePlan, FileState, Filter, FlushReport, FlushedFile, Pending, Wanted};
use super::project::Project;
use super::store::{Store, Texts};

/// Entries that stay in the log; older ones that nobody waits for go to the archive.
const DEFAULT_LIMIT: usize = 1000;
/// How many more there may be before the archive is written.
const ARCHIVE_BATCH: usize = 100;

#[derive(Debug)]
pub struct ChangeLog {
    store: Store,
    project: Project,
    /// By `seq`.
    entries: Vec<Entry>,
    epoch: u64,
    limit: usize,
}

impl ChangeLog {
    /// Open the log in a directory of its own for the project at `root`. Counts as a start: what was pending waits now.
    /// Finishes a flush that a crash interrupted.
    pub fn open(directory: Directory, root: &Path) -> Result<Self, ChangeError> {
        let store = Store::open(directory)?;
        let entries = store.load()?;
        let epoch = store.next_epoch(&entries)?;
        let mut log = Self {
            store,
            project: Project::new(root),
            entries,
            epoch,
            limit: DEFAULT_LIMIT,
        };
        log.recover()?;
        log.transform(|entry| {
            let is_left = entry.is_pending() && entry.epoch != epoch;
            match entry.intent {
                _ if !is_left => return false,
                Intent::Ephemeral => entry.settle(Settled::Pruned),
                Intent::Durable => entry.state = State::Waiting,
            }
            true
        })?;
        Ok(log)
    }

    /// How many entries stay in the log.
    #[must_use]
    pub fn with_limit(mut self, limit: usize) -> Self {
        self.limit = limit.max(1);
        self
    }

    #[cfg(test)]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    // ---- recording ----

    /// Record a change of the image. It is on the disk when this returns.
    pub fn record(&mut self, new: NewEntry) -> Result<Entry, ChangeError> {
        let seq = self.entries.last().map_or(0, |entry| entry.seq) + 1;
        let mut entry = Entry {
            seq,
            ts: time::timestamp(time::now_millis()),
            epoch: self.epoch,
            kind: new.kind,
            class: new.class,
            selector: new.selector,
            side: new.side,
            intent: new.intent,
            flushable: false,
            not_flushable_reason: new.not_flushable_reason,
            source_ref: None,
            prev_source_ref: None,
            base_ref: None,
            source_file: new.source_file,
            author: new.author,
            author_kind: new.author_kind,
            state: State::Pending,
            settled: None,
            is_whole_file: new.is_whole_file,
            is_extension: false,
        };
        let is_extension = |text: &Option<String>| {
            let text = text.as_ref();
            text.is_some_and(|text| method_source(text) != *text)
        };
        entry.is_extension = entry.selector.is_some()
            && (is_extension(&new.source) || is_extension(&new.prev_source) || is_extension(&new.base));
        self.place(&mut entry);
        let base = self.base_of_new(&entry, new.base)?;
        let texts = Texts {
            source: new.source.as_deref(),
            prev_source: new.prev_source.as_deref(),
            base: base.as_deref(),
        };
        let keep = |role, text: Option<&str>| {
            text.map(|text| self.store.write_source(seq, role, text))
                .transpose()
        };
        entry.source_ref = keep("source", texts.source)?;
        entry.prev_source_ref = keep("prev", texts.prev_source)?;
        entry.base_ref = keep("base", texts.base)?;
        self.store.append(&entry, texts)?;
        self.entries.push(entry.clone());
        self.archive()?;
        Ok(entry)
    }

    /// The base of a definition does not move while an entry for it is pending, whatever the image has loaded since. What
    /// waits is not in the image: it has nothing to say about the text that was loaded without it.
    fn base_of_new(&self, entry: &Entry, base: Option<String>) -> Result<Option<String>, ChangeError> {
        let is_of_class = |one: &&Entry| {
            one.is_pending()
                && one.flushable
                && one.class == entry.class
                && one.source_file == entry.source_file
        };
        let open: Vec<&Entry> = self.entries.iter().filter(is_of_class).collect();
        if open.is_empty() || !entry.flushable || entry.is_whole_file {
            return Ok(base);
        }
        if let Some(selector) = &entry.selector {
            let key = Key::method(&entry.class, entry.side == Some(Side::Class), selector);
            return self.base_of_method(&open, &key, base);
        }
        // Nothing that stands beside a class is in its text.
        let open: Vec<&Entry> = open.into_iter().filter(|one| !one.is_extension).collect();
        let texts = self.texts(&open)?;
        // The latest creation or removal speaks of the file as a whole.
        let bases = plan::bases(&pending_of(&texts));
        Ok(base.map(|base| plan::with_definitions(&base, &bases)))
    }

    /// The base that open entries hold for a method, or else this one. Only what speaks of it is read, the latest
    /// first: of a method that is changed often there are many entries.
    fn base_of_method(
        &self,
        open: &[&Entry],
        key: &Key,
        base: Option<String>,
    ) -> Result<Option<String>, ChangeError> {
        for one in open.iter().rev() {
            match (&one.selector, one.kind) {
                (Some(selector), _) => {
                    if Key::method(&one.class, one.side == Some(Side::Class), selector) == *key {
                        return self.base(one);
                    }
                }
                (None, Kind::NewClass | Kind::RemoveClass) if !one.is_whole_file => {
                    let before = self.base(one)?.unwrap_or_default();
                    let before = Outline::of_file(&before);
                    if before.keys().any(|known| known == key) {
                        return Ok(before.text_of(key));
                    }
                }
                (None, _) => {}
            }
        }
        Ok(base)
    }

    /// The source of a method as this log changed it last, since the start.
    pub fn last_source(&self, class: &str, selector: &str, side: Side) -> Option<String> {
        let mut latest = self.entries.iter().rev();
        let entry = latest.find(|entry| {
            entry.is_pending()
                && entry.class == class
                && entry.selector.as_deref() == Some(selector)
                && entry.side == Some(side)
        })?;
        self.source(entry).ok().flatten()
    }

    /// Find out in which file a change belongs, and whether it can be written there.
    fn place(&self, entry: &mut Entry) {
        if entry.not_flushable_reason.is_some() {
            return;
        }
        let Some(file) = &entry.source_file else {
            entry.not_flushable_reason = Some("dynamic".to_owned());
            return;
        };
        let Some(relative) = self.project.relative(file) else {
            entry.not_flushable_reason = Some(format!("dependency:{file}"));
            return;
        };
        let is_created = self
            .pending()
            .any(|one| one.is_whole_file && one.source_file.as_ref() == Some(&relative) && one.is_durable());
        match self.project.state(&relative) {
            FileState::Text { text, .. } => {
                if entry.kind == Kind::RemoveClass || plan::first_error(&text).is_none() {
                    entry.flushable = true;
                } else {
                    entry.not_flushable_reason = Some("dynamic".to_owned());
                }
            }
            FileState::Missing if is_created || entry.is_whole_file => entry.flushable = true,
            FileState::Outside => entry.not_flushable_reason = Some(format!("dependency:{relative}")),
            FileState::Missing | FileState::Unreadable(_) => {
                entry.not_flushable_reason = Some("dynamic".to_owned());
            }
        }
        entry.source_file = Some(relative);
    }

    /// Changes whose file could not be read when they were made can be written once it can.
    fn place_again(&mut self) -> Result<(), ChangeError> {
        let is_left = |entry: &&Entry| {
            entry.is_open() && !entry.flushable && entry.not_flushable_reason.as_deref() == Some("dynamic")
        };
        let mut placed = BTreeMap::new();
        for entry in self
            .entries
            .iter()
            .filter(is_left)
            .filter(|entry| entry.source_file.is_some())
        {
            let mut again = entry.clone();
            again.not_flushable_reason = None;
            self.place(&mut again);
            if again.flushable {
                placed.insert(again.seq, again);
            }
        }
        self.transform(|entry| {
            let again = placed.remove(&entry.seq);
            let is_meant = again.is_some();
            if let Some(again) = again {
                *entry = again;
            }
            is_meant
        })?;
        Ok(())
    }

    /// Whether a class may be made for that file.
    pub fn check_new_class(&self, class: &str, path: &str, is_loaded: bool) -> Result<(), NewClassFault> {
        let state = self.project.state(path);
        let own = self.project.relative(path);
        let of_file = || self.pending().filter(|one| one.source_file == own);
        let is_promised =
            of_file().any(|one| one.kind == Kind::NewClass && !of_file().any(|later| later.shadows(one)));
        check_new_class(NewClass {
            class,
            path,
            path_exists: is_promised || !matches!(state, FileState::Missing | FileState::Outside),
            is_inside_project: !matches!(state, FileState::Outside),
            is_loaded,
        })
    }

    // ---- flush, revert, clear ----

    /// Write pending changes to their files, on behalf of a session. `loaded` has the files as the image loaded or last
    /// flushed them.
    pub fn flush(
        &mut self,
        filter: &Filter,
        author: &str,
        loaded: &BTreeMap<String, String>,
    ) -> Result<FlushReport, ChangeError> {
        self.flush_watched(filter, author, loaded, &mut |_| Ok(()))
    }

    pub(crate) fn flush_watched(
        &mut self,
        filter: &Filter,
        author: &str,
        loaded: &BTreeMap<String, String>,
        watch: flush::Watch,
    ) -> Result<FlushReport, ChangeError> {
        self.recover()?;
        self.place_again()?;
        let filter = Filter {
            file: filter.file.as_ref().map(|file| self.normal(file)),
            ..filter.clone()
        };
        let mut plan = self.plan(&filter, loaded)?;
        let (project, epoch) = (self.project.clone(), self.epoch);
        let directory = self.store.directory.clone();
        let plans = std::mem::take(&mut plan.files);
        let mut report = plan.report;
        let clean = plan.clean;
        let outcome = if plans.is_empty() {
            self.retire(&[], &clean)?;
            flush::Outcome::default()
        } else {
            flush::perform(&directory, &project, &plans, epoch, watch, |done| {
                self.retire(done, &clean)
            })?
        };
        report.conflicts.extend(outcome.conflicts);
        for plan in &plans {
            if !outcome.done.iter().any(|done| done.file == plan.file) {
                continue;
            }
            let kind = match (&plan.content, &plan.old_hash) {
                (None, _) => FileChange::Deleted,
                (Some(_), None) => FileChange::Created,
                (Some(_), Some(_)) => FileChange::Changed,
            };
            report.flushed += plan.changed;
            report.merged.extend(plan.is_merged.then(|| plan.file.clone()));
            report.bases.push((plan.file.clone(), plan.base.clone()));
            report.files.push(FlushedFile {
                file: plan.file.clone(),
                kind,
            });
            report.new_classes.extend(plan.new_class.clone());
            report.removed_classes.extend(plan.removed_classes.clone());
        }
        if report.conflicts.is_empty() {
            self.prune(|entry| entry.author == author)?;
        }
        self.archive()?;
        Ok(report)
    }

    /// A path as entries have it.
    pub(crate) fn normal(&self, file: &str) -> String {
        self.project.relative(file).unwrap_or_else(|| file.to_owned())
    }

    /// Where a file of the project really is; `None` when that is not in the project.
    pub(crate) fn resolve(&self, file: &str) -> std::io::Result<Option<std::path::PathBuf>> {
        self.project.resolve(file)
    }

    /// What a file of the project is now.
    pub(crate) fn file_state(&self, file: &str) -> FileState {
        self.project.state(file)
    }

    fn plan(&self, filter: &Filter, loaded: &BTreeMap<String, String>) -> Result<plan::Plan, ChangeError> {
        let pending: Vec<&Entry> = self.pending().collect();
        let mut files = BTreeMap::new();
        for file in pending.iter().filter_map(|entry| entry.source_file.as_ref()) {
            files
                .entry(file.clone())
                .or_insert_with(|| self.project.state(file));
        }
        let texts = self.texts(&pending)?;
        Ok(plan::plan(&pending_of(&texts), &files, loaded, filter))
    }

    /// What flushing everything would leave out, without doing any of it.
    pub fn conflicts(&self, loaded: &BTreeMap<String, String>) -> Result<Vec<Conflict>, ChangeError> {
        Ok(self.outlook(loaded)?.conflicts)
    }

    /// What flushing everything would come to, without doing any of it.
    pub(crate) fn outlook(&self, loaded: &BTreeMap<String, String>) -> Result<Outlook, ChangeError> {
        // A class that is removed here and was changed there is one too, although a plain flush leaves its file alone.
        let all = Filter {
            confirm_destructive: true,
            ..Filter::default()
        };
        let plan = self.plan(&all, loaded)?;
        let mut outlook = Outlook {
            conflicts: plan.report.conflicts,
            ..Outlook::default()
        };
        for file in plan
            .files
            .into_iter()
            .filter(|file| !file.removed_classes.is_empty())
        {
            outlook.losing.insert(file.file, file.content.is_none());
        }
        Ok(outlook)
    }

    /// What the image wants of the definitions of a file, by its pending entries; ephemeral ones count.
    pub(crate) fn wanted(&self, file: &str) -> Result<Vec<Wanted>, ChangeError> {
        let entries: Vec<&Entry> = self.pending_in(file).collect();
        let texts = self.texts(&entries)?;
        Ok(plan::wanted(&pending_of(&texts)))
    }

    /// A text of the image without what was only tried: the latest durable version of each such definition, or its base.
    pub(crate) fn without_tries(&self, file: &str, text: &str) -> Result<String, ChangeError> {
        let (durable, tries): (Vec<&Entry>, Vec<&Entry>) =
            self.pending_in(file).partition(|entry| entry.is_durable());
        let durable = self.texts(&durable)?;
        let kept: BTreeMap<Key, Option<String>> = plan::wanted(&pending_of(&durable))
            .into_iter()
            .map(|wanted| (wanted.key, wanted.source))
            .collect();
        let tries = self.texts(&tries)?;
        let definitions = plan::wanted(&pending_of(&tries)).into_iter().map(|tried| {
            let version = kept.get(&tried.key).cloned().unwrap_or(tried.base);
            (tried.key, version)
        });
        Ok(plan::with_definitions(text, &definitions.collect()))
    }

    /// What the image is to have of a file whose text on disk is this: what is on disk, and its own version of what is
    /// pending.
    pub(crate) fn merge(&self, file: &str, disk: &str) -> Result<Merge, ChangeError> {
        let entries: Vec<&Entry> = self.pending_in(file).collect();
        let texts = self.texts(&entries)?;
        Ok(merge::merge(file, &pending_of(&texts), disk))
    }

    /// Entries that are meant by a file, or a class and a method of it.
    pub(crate) fn select(&self, is_meant: impl Fn(&Entry) -> bool) -> Vec<Entry> {
        self.entries
            .iter()
            .filter(|entry| is_meant(entry))
            .cloned()
            .collect()
    }

    /// The definitions of files that an open entry is about, with their bases.
    pub(crate) fn wanted_of(&self, entry: &Entry) -> Result<Vec<Wanted>, ChangeError> {
        let texts = self.texts(&[entry])?;
        Ok(plan::wanted(&pending_of(&texts)))
    }

    /// Write one text to one file, on behalf of whoever chose it.
    pub(crate) fn write_file(
        &mut self,
        file: &str,
        content: &str,
        old_hash: Option<String>,
    ) -> Result<Vec<Conflict>, ChangeError> {
        self.recover()?;
        let plan = FilePlan::whole(file, content, old_hash);
        let (project, epoch) = (self.project.clone(), self.epoch);
        let directory = self.store.directory.clone();
        let outcome = flush::perform(&directory, &project, &[plan], epoch, &mut |_| Ok(()), |_| Ok(()))?;
        Ok(outcome.conflicts)
    }

    fn recover(&mut self) -> Result<(), ChangeError> {
        let directory = self.store.directory.clone();
        flush::recover(&directory, |done| self.retire(done, &[]))
    }

    /// Note what is in its file now.
    fn retire(&mut self, done: &[Done], clean: &[u64]) -> Result<(), ChangeError> {
        let seqs: Vec<u64> = done
            .iter()
            .flat_map(|done| &done.seqs)
            .chain(clean)
            .copied()
            .collect();
        self.settle(&seqs, Settled::Flushed)
    }

    /// Nobody waits for these any more.
    pub fn settle(&mut self, seqs: &[u64], how: Settled) -> Result<(), ChangeError> {
        self.transform(|entry| {
            let is_meant = seqs.contains(&entry.seq) && entry.is_open();
            if is_meant {
                entry.settle(how);
            }
            is_meant
        })?;
        Ok(())
    }

    /// Set aside an entry that a later one has made irrelevant. What came before it comes before the next entry of the
    /// same definition now, so that undoing that one does not bring back what was set aside.
    pub(crate) fn discard_shadowed(&mut self, entry: &Entry) -> Result<(), ChangeError> {
        let is_next = |one: &&Entry| {
            one.state == entry.state
                && one.seq > entry.seq
                && one.class == entry.class
                && one.selector == entry.selector
                && one.side == entry.side
        };
        if let Some(next) = self.entries.iter().find(is_next).map(|next| next.seq) {
            let previous = self.previous_source(entry)?;
            let reference = previous
                .map(|text| self.store.replace_source(next, "prev", &text))
                .transpose()?;
            self.transform(|one| {
                let is_meant = one.seq == next;
                if is_meant {
                    one.prev_source_ref.clone_from(&reference);
                }
                is_meant
            })?;
        }
        self.settle(&[entry.seq], Settled::Discarded)
    }

    /// These are in the image again, or not any more.
    pub fn reopen(&mut self, seqs: &[u64], state: State) -> Result<(), ChangeError> {
        self.transform(|entry| {
            let is_meant = seqs.contains(&entry.seq) && entry.state != state;
            if is_meant {
                entry.state = state;
                entry.settled = None;
            }
            is_meant
        })?;
        Ok(())
    }

    /// An open class definition that says less than it did.
    pub(crate) fn narrow(&mut self, seq: u64, source: &str, base: &str) -> Result<(), ChangeError> {
        self.store.replace_source(seq, "source", source)?;
        self.rebase(seq, Some(base))
    }

    /// The node ended: what was only tried is gone, and of the rest nothing is in the image. Answers the changes that
    /// wait because of that.
    pub(crate) fn node_ended(&mut self) -> Result<Vec<u64>, ChangeError> {
        self.prune(|_| true)?;
        let pending: Vec<u64> = self.pending().map(|entry| entry.seq).collect();
        self.reopen(&pending, State::Waiting)?;
        Ok(pending)
    }

    /// Open entries of definitions that stand in another file by now become entries of that file, with the bases they
    /// had: those of a class whose file is gone, and those of a method that only this file has. `is_moved` is asked with
    /// the class and its file before.
    pub(crate) fn follow_moved(
        &mut self,
        file: &str,
        disk: &Outline,
        is_moved: impl Fn(&str, &str) -> bool,
    ) -> Result<Moved, ChangeError> {
        self.place_again()?;
        let project = self.project.clone();
        let mut moved = Moved::default();
        if project.relative(file).is_none() {
            return Ok(moved);
        }
        self.transform(|entry| {
            if !entry.is_open() || entry.is_whole_file || entry.source_file.as_deref() == Some(file) {
                return false;
            }
            let old = entry.source_file.clone();
            let state = old.as_deref().map(|old| project.state(old));
            let is_class = entry.flushable
                && matches!(state, Some(FileState::Missing))
                && old.as_deref().is_some_and(|old| is_moved(&entry.class, old));
            let is_method = !is_class && stands_only(entry, state.as_ref(), disk);
            if is_class {
                moved.classes.insert(entry.class.clone());
            } else if is_method {
                moved.left.extend(old);
            } else {
                return false;
            }
            entry.source_file = Some(file.to_owned());
            entry.flushable = true;
            entry.not_flushable_reason = None;
            true
        })?;
        Ok(moved)
    }

    /// Another base for an open entry.
    pub fn rebase(&mut self, seq: u64, base: Option<&str>) -> Result<(), ChangeError> {
        let reference = base
            .map(|base| self.store.replace_source(seq, "base", base))
            .transpose()?;
        self.transform(|entry| {
            let is_meant = entry.seq == seq;
            if is_meant {
                entry.base_ref.clone_from(&reference);
            }
            is_meant
        })?;
        Ok(())
    }

    /// Forget everything that is pending or waits; says how many entries that were.
    pub fn clear(&mut self) -> Result<usize, ChangeError> {
        self.transform(|entry| {
            let is_meant = entry.is_open();
            if is_meant {
                entry.settle(Settled::Cleared);
            }
            is_meant
        })
    }

    /// Move everything to the archive, for a start from the files alone.
    pub fn archive_all(&mut self) -> Result<(), ChangeError> {
        let Some((last, old)) = self.entries.split_last() else {
            return Ok(());
        };
        // The last one stays: numbers go on from it.
        let mut last = last.clone();
        if last.is_open() {
            last.settle(Settled::Cleared);
        }
        self.store.archive(old, std::slice::from_ref(&last))?;
        self.entries = vec![last];
        Ok(())
    }

    fn prune(&mut self, is_over: impl Fn(&Entry) -> bool) -> Result<(), ChangeError> {
        self.transform(|entry| {
            let is_meant = entry.is_pending() && entry.intent == Intent::Ephemeral && is_over(entry);
            if is_meant {
                entry.settle(Settled::Pruned);
            }
            is_meant
        })?;
        Ok(())
    }

    /// Change entries in the log and on disk; `change` says whether it did. Answers how many were changed.
    fn transform(&mut self, mut change: impl FnMut(&mut Entry) -> bool) -> Result<usize, ChangeError> {
        let mut entries = self.entries.clone();
        let count = entries
            .iter_mut()
            .filter_map(|entry| change(entry).then_some(()))
            .count();
        if count > 0 {
            self.store.rewrite(&entries)?;
            self.entries = entries;
        }
        Ok(count)
    }

    fn archive(&mut self) -> Result<(), ChangeError> {
        if self.entries.len() <= self.limit + ARCHIVE_BATCH {
            return Ok(());
        }
        let last = self.entries.last().map(|entry| entry.seq);
        let is_old = |entry: &Entry| !entry.is_open() && Some(entry.seq) != last;
        if !self.entries.iter().any(is_old) {
            return Ok(());
        }
        let mut surplus = self.entries.len() - self.limit;
        let (mut old, mut kept) = (Vec::new(), Vec::new());
        for entry in &self.entries {
            if surplus > 0 && is_old(entry) {
                surplus -= 1;
                old.push(entry.clone());
            } else {
                kept.push(entry.clone());
            }
        }
        self.store.archive(&old, &kept)?;
        self.entries = kept;
        Ok(())
    }
}

/// What flushing everything would come to.
#[derive(Debug, Default)]
pub(crate) struct Outlook {
    pub(crate) conflicts: Vec<Conflict>,
    /// The files that would lose classes, and whether they would be deleted with them.
    pub(crate) losing: BTreeMap<String, bool>,
}

/// What belongs to another file by now.
#[derive(Debug, Default)]
pub(crate) struct Moved {
    /// Classes with their methods.
    pub(crate) classes: BTreeSet<String>,
    /// Files from which methods went.
    pub(crate) left: BTreeSet<String>,
}

/// Whether a text has the method of an entry, and the entry's own file, if it has one, does not.
fn stands_only(entry: &Entry, own: Option<&FileState>, text: &Outline) -> bool {
    let Some(selector) = &entry.selector else {
        return false;
    };
    let key = Key::method(&entry.class, entry.side == Some(Side::Class), selector);
    let is_elsewhere = match own {
        None => matches!(entry.not_flushable_reason.as_deref(), Some("dynamic" | "stdlib")),
        Some(FileState::Missing) => true,
        Some(FileState::Text { text, .. }) => {
            let outline = Outline::of_file(text);
            outline.error().is_none() && outline.text_of(&key).is_none()
        }
        Some(FileState::Outside | FileState::Unreadable(_)) => false,
    };
    is_elsewhere && text.text_of(&key).is_some()
}

/// An entry with the texts that decide about its file.
struct EntryTexts<'a> {
    entry: &'a Entry,
    source: Option<String>,
    base: Option<String>,
}

fn pending_of<'a>(texts: &'a [EntryTexts]) -> Vec<Pending<'a>> {
    texts
        .iter()
        .map(|one| Pending {
            entry: one.entry,
            source: one.source.as_deref(),
            base: one.base.as_deref(),
        })
        .collect()
}
