//! The change log: what was changed, what of it is pending, what to write, how to undo it.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;

use beamtalk_storage::{Directory, time};
use beamtalk_syntax::diff;

use super::entry::{Entry, EntryView, Intent, Kind, NewEntry, Side, State};
use super::error::ChangeError;
use super::flush::{self, Done};
use super::new_class::{NewClass, NewClassFault, check_new_class};
use super::plan::{self, FileState, Filter, FlushReport, FlushedFile, Pending};
use super::project::Project;
use super::revert::{InverseChange, inverse};
use super::splice::{find_class, find_method, is_readable};
use super::store::Store;

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
    /// Open the log in a directory of its own for the project at `root`. Counts as a start: what was pending is of an
    /// earlier epoch now. Finishes a flush that a crash interrupted.
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
        log.prune(|entry| entry.epoch != epoch)?;
        log.set_state(State::Waiting, |entry| entry.epoch != epoch)?;
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
            source_file: new.source_file,
            span: None,
            file_hash: None,
            author: new.author,
            author_kind: new.author_kind,
            state: State::Pending,
        };
        self.place(&mut entry, new.prev_source.is_some());
        if let Some(source) = &new.source {
            entry.source_ref = Some(self.store.write_source(seq, "source", source)?);
        }
        if let Some(source) = &new.prev_source {
            entry.prev_source_ref = Some(self.store.write_source(seq, "prev", source)?);
        }
        self.store
            .append(&entry, new.source.as_deref(), new.prev_source.as_deref())?;
        self.entries.push(entry.clone());
        self.archive()?;
        Ok(entry)
    }

    /// The source of a method as this log changed it last, since the start.
    pub fn last_source(&self, class: &str, selector: &str, side: Side) -> Option<String> {
        let mut latest = self.entries.iter().rev();
        let entry = latest.find(|entry| {
            entry.epoch == self.epoch
                && entry.class == class
                && entry.selector.as_deref() == Some(selector)
                && entry.side == Some(side)
        })?;
        self.source(entry).ok().flatten()
    }

    /// Find out where in which file a change belongs, and whether it can be written there.
    fn place(&self, entry: &mut Entry, is_replacement: bool) {
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
        let is_created = self.pending().any(|one| {
            one.kind == Kind::NewClass && one.source_file.as_ref() == Some(&relative) && one.is_durable()
        });
        match self.project.state(&relative) {
            FileState::Text { text, hash } if entry.kind == Kind::RemoveClass || is_readable(&text) => {
                entry.flushable = true;
                if entry.selector.is_some() || is_replacement {
                    entry.span = find_span(entry, &text);
                }
                entry.file_hash = Some(hash);
            }
            FileState::Missing if is_created || entry.kind == Kind::NewClass => entry.flushable = true,
            FileState::Outside => entry.not_flushable_reason = Some(format!("dependency:{relative}")),
            FileState::Text { .. } | FileState::Missing | FileState::Unreadable(_) => {
                entry.not_flushable_reason = Some("dynamic".to_owned());
            }
        }
        entry.source_file = Some(relative);
    }

    /// Whether a class may be made for that file.
    pub fn check_new_class(&self, class: &str, path: &str, is_loaded: bool) -> Result<(), NewClassFault> {
        let state = self.project.state(path);
        let is_promised = self
            .pending()
            .any(|one| one.kind == Kind::NewClass && one.source_file == self.project.relative(path));
        check_new_class(NewClass {
            class,
            path,
            path_exists: is_promised || !matches!(state, FileState::Missing | FileState::Outside),
            is_inside_project: !matches!(state, FileState::Outside),
            is_loaded,
        })
    }

    // ---- views ----

    pub fn entry(&self, seq: u64) -> Result<&Entry, ChangeError> {
        self.entries
            .iter()
            .find(|entry| entry.seq == seq)
            .ok_or(ChangeError::NoEntry { seq })
    }

    /// Entries of this epoch that differ from disk, without those that later ones replaced.
    pub fn active(&self) -> Result<Vec<EntryView>, ChangeError> {
        let mut views = self.all()?;
        views.retain(|view| view.active && !view.shadowed && !view.clean);
        Ok(views)
    }

    /// Entries of earlier starts that are neither in the image nor in their files.
    pub fn waiting(&self) -> Result<Vec<EntryView>, ChangeError> {
        let mut views = self.all()?;
        views.retain(|view| view.orphan && !view.shadowed);
        Ok(views)
    }

    /// These are in the image again, or not any more.
    pub fn reopen(&mut self, seqs: &[u64], state: State) -> Result<(), ChangeError> {
        let mut entries = self.entries.clone();
        for entry in entries.iter_mut().filter(|entry| seqs.contains(&entry.seq)) {
            entry.state = state;
        }
        self.store.rewrite(&entries)?;
        self.entries = entries;
        Ok(())
    }

    /// Something else took the place of these.
    pub(crate) fn replace(&mut self, seqs: &[u64]) -> Result<(), ChangeError> {
        self.set_state(State::Cleared, |entry| seqs.contains(&entry.seq))?;
        Ok(())
    }

    /// The node ended: what was only tried is gone with it.
    pub fn node_ended(&mut self) -> Result<(), ChangeError> {
        self.prune(|_| true)
    }

    /// Everything that is in the log, oldest first.
    pub fn all(&self) -> Result<Vec<EntryView>, ChangeError> {
        let mut files = BTreeMap::new();
        self.entries
            .iter()
            .map(|entry| self.view(entry, &mut files))
            .collect()
    }

    fn view(&self, entry: &Entry, files: &mut BTreeMap<String, FileState>) -> Result<EntryView, ChangeError> {
        let prior_epoch = entry.epoch != self.epoch;
        let active = entry.is_pending();
        let same = |later: &&Entry| later.state == entry.state;
        let shadowed = self.entries.iter().filter(same).any(|later| later.shadows(entry));
        let clean = match &entry.source_file {
            _ if entry.state == State::Flushed => true,
            Some(file) if active && !shadowed && entry.flushable => {
                let state = files
                    .entry(file.clone())
                    .or_insert_with(|| self.project.state(file));
                let source = self.source(entry)?;
                let one = Pending {
                    entry,
                    source: source.as_deref(),
                };
                plan::is_clean(one, state)
            }
            _ => false,
        };
        Ok(EntryView {
            entry: entry.clone(),
            orphan: entry.is_waiting(),
            prior_epoch,
            active,
            shadowed,
            clean,
        })
    }

    /// Selectors by class; `new-class` and `remove-class` for the classes themselves.
    pub fn dirty(&self) -> Result<BTreeMap<String, Vec<String>>, ChangeError> {
        let mut dirty: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for view in self.active()? {
            let entry = view.entry;
            let name = entry.selector.unwrap_or_else(|| entry.kind.as_str().to_owned());
            let names = dirty.entry(entry.class).or_default();
            if !names.contains(&name) {
                names.push(name);
            }
        }
        Ok(dirty)
    }

    pub fn source(&self, entry: &Entry) -> Result<Option<String>, ChangeError> {
        self.store.read_source(entry.source_ref.as_ref())
    }

    pub fn previous_source(&self, entry: &Entry) -> Result<Option<String>, ChangeError> {
        self.store.read_source(entry.prev_source_ref.as_ref())
    }

    /// The change as a unified diff.
    pub fn diff(&self, seq: u64) -> Result<String, ChangeError> {
        let entry = self.entry(seq)?;
        let with_end = |text: Option<String>| match text {
            Some(text) if !text.ends_with('\n') => format!("{text}\n"),
            other => other.unwrap_or_default(),
        };
        let old = with_end(self.previous_source(entry)?);
        let new = with_end(self.source(entry)?);
        let title = entry.title();
        Ok(diff::unified(
            entry.source_file.as_ref().unwrap_or(&title),
            &old,
            &new,
        ))
    }

    fn pending(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.is_pending())
    }

    // ---- flush, revert, clear ----

    /// Write pending changes to their files, on behalf of a session.
    pub fn flush(&mut self, filter: &Filter, author: &str) -> Result<FlushReport, ChangeError> {
        self.flush_watched(filter, author, &mut |_| Ok(()))
    }

    pub(crate) fn flush_watched(
        &mut self,
        filter: &Filter,
        author: &str,
        watch: flush::Watch,
    ) -> Result<FlushReport, ChangeError> {
        self.recover()?;
        let filter = Filter {
            file: filter.file.as_ref().map(|file| self.normal(file)),
            force_file: filter.force_file.as_ref().map(|file| self.normal(file)),
            ..filter.clone()
        };
        let mut plan = self.plan(&filter)?;
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
                (None, _) => "deleted",
                (Some(_), None) => "created",
                (Some(_), Some(_)) => "changed",
            };
            report.flushed += plan.methods;
            report.files.push(FlushedFile {
                file: plan.file.clone(),
                kind,
            });
            report.new_classes.extend(plan.new_class.clone());
            report.removed_classes.extend(plan.removed_class.clone());
        }
        if report.conflicts.is_empty() {
            self.prune(|entry| entry.author == author)?;
        }
        self.archive()?;
        Ok(report)
    }

    fn normal(&self, file: &str) -> String {
        self.project.relative(file).unwrap_or_else(|| file.to_owned())
    }

    fn plan(&self, filter: &Filter) -> Result<plan::Plan, ChangeError> {
        let mut files = BTreeMap::new();
        let mut sources = Vec::new();
        for entry in self.pending() {
            sources.push((entry, self.source(entry)?));
            if let Some(file) = &entry.source_file {
                files
                    .entry(file.clone())
                    .or_insert_with(|| self.project.state(file));
            }
        }
        let pending: Vec<Pending> = sources
            .iter()
            .map(|(entry, source)| Pending {
                entry,
                source: source.as_deref(),
            })
            .collect();
        Ok(plan::plan(&pending, &files, filter))
    }

    fn recover(&mut self) -> Result<(), ChangeError> {
        let directory = self.store.directory.clone();
        flush::recover(&directory, |done| self.retire(done, &[]))
    }

    /// Note what is in its file now. Changes of the same files that still wait are measured against the new text.
    fn retire(&mut self, done: &[Done], clean: &[u64]) -> Result<(), ChangeError> {
        if done.is_empty() && clean.is_empty() {
            return Ok(());
        }
        let seqs: Vec<u64> = done
            .iter()
            .flat_map(|done| &done.seqs)
            .chain(clean)
            .copied()
            .collect();
        let mut entries = self.entries.clone();
        for entry in &mut entries {
            if seqs.contains(&entry.seq) {
                entry.state = State::Flushed;
            } else if entry.is_pending()
                && done
                    .iter()
                    .any(|done| Some(&done.file) == entry.source_file.as_ref())
            {
                self.place_again(entry);
            }
        }
        self.store.rewrite(&entries)?;
        self.entries = entries;
        Ok(())
    }

    fn place_again(&self, entry: &mut Entry) {
        let Some(file) = &entry.source_file else { return };
        if let FileState::Text { text, hash } = self.project.state(file) {
            if entry.selector.is_some() || entry.is_redefinition() {
                entry.span = find_span(entry, &text);
            }
            entry.file_hash = Some(hash);
        }
    }

    /// The change that undoes an entry.
    pub fn revert(&self, seq: u64) -> Result<InverseChange, ChangeError> {
        let entry = self.entry(seq)?;
        let file = entry.source_file.as_ref().map(|file| self.project.state(file));
        inverse(entry, self.previous_source(entry)?, self.epoch, file.as_ref())
    }

    /// Forget everything that is pending; says how many entries that were.
    pub fn clear(&mut self) -> Result<usize, ChangeError> {
        self.set_state(State::Cleared, |_| true)
    }

    /// Move everything to the archive, for a start from the files alone.
    pub fn archive_all(&mut self) -> Result<(), ChangeError> {
        let Some((last, old)) = self.entries.split_last() else {
            return Ok(());
        };
        // The last one stays: numbers go on from it.
        let mut last = last.clone();
        if last.is_pending() {
            last.state = State::Cleared;
        }
        self.store.archive(old, std::slice::from_ref(&last))?;
        self.entries = vec![last];
        Ok(())
    }

    fn prune(&mut self, is_over: impl Fn(&Entry) -> bool) -> Result<(), ChangeError> {
        self.set_state(State::Pruned, |entry| {
            entry.intent == Intent::Ephemeral && is_over(entry)
        })?;
        Ok(())
    }

    fn set_state(&mut self, state: State, is_meant: impl Fn(&Entry) -> bool) -> Result<usize, ChangeError> {
        let mut entries = self.entries.clone();
        let mut count = 0;
        for entry in entries.iter_mut().filter(|entry| entry.is_pending()) {
            if is_meant(entry) {
                entry.state = state;
                count += 1;
            }
        }
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
        let mut surplus = self.entries.len() - self.limit;
        let last = self.entries.last().map(|entry| entry.seq);
        let (mut old, mut kept) = (Vec::new(), Vec::new());
        for entry in &self.entries {
            let is_waiting = entry.is_pending() || entry.is_waiting();
            if surplus > 0 && !is_waiting && Some(entry.seq) != last {
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

/// Where in the text the method stands, or the class that was defined anew.
fn find_span(entry: &Entry, text: &str) -> Option<Range<usize>> {
    match (&entry.selector, entry.kind) {
        (Some(selector), _) => {
            let side = entry.side.unwrap_or(Side::Instance);
            find_method(text, &entry.class, side, selector)
        }
        (None, Kind::NewClass) => find_class(text, &entry.class),
        (None, _) => None,
    }
}
