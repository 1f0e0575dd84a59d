//! What the log has, as others look at it.

use std::collections::BTreeMap;

use beamtalk_syntax::diff;

use super::{ChangeLog, EntryTexts, pending_of};
use crate::changes::entry::{Entry, EntryView, Settled};
use crate::changes::error::ChangeError;
use crate::changes::plan::{self, FileState};
use crate::changes::project::hash;

impl ChangeLog {
    pub fn entry(&self, seq: u64) -> Result<&Entry, ChangeError> {
        self.entries
            .iter()
            .find(|entry| entry.seq == seq)
            .ok_or(ChangeError::NoEntry { seq })
    }

    /// Pending entries that differ from disk, without those that later ones replaced.
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

    /// Everything that is in the log, oldest first.
    pub fn all(&self) -> Result<Vec<EntryView>, ChangeError> {
        let mut files = BTreeMap::new();
        self.entries
            .iter()
            .map(|entry| self.view(entry, &mut files))
            .collect()
    }

    pub(super) fn view(
        &self,
        entry: &Entry,
        files: &mut BTreeMap<String, FileState>,
    ) -> Result<EntryView, ChangeError> {
        let active = entry.is_pending();
        // A try hides nothing that will be written.
        let is_same_state =
            |later: &&Entry| later.state == entry.state && (later.is_durable() || !entry.is_durable());
        let shadowed = entry.is_open()
            && self
                .entries
                .iter()
                .filter(is_same_state)
                .any(|later| later.shadows(entry));
        let clean = match &entry.source_file {
            _ if entry.settled == Some(Settled::Flushed) => true,
            Some(file) if active && !shadowed && entry.flushable => {
                let state = files
                    .entry(file.clone())
                    .or_insert_with(|| self.project.state(file));
                let texts = self.texts(&[entry])?;
                pending_of(&texts)
                    .first()
                    .is_some_and(|one| plan::is_clean(*one, state))
            }
            _ => false,
        };
        Ok(EntryView {
            entry: entry.clone(),
            orphan: entry.is_waiting(),
            prior_epoch: entry.epoch != self.epoch,
            active,
            shadowed,
            clean,
            sha256: hash(self.source(entry)?.unwrap_or_default().as_bytes()),
            not_installed: None,
            deletes_file: None,
        })
    }

    /// Selectors by class; `new-class` and `remove-class` for the classes themselves.
    pub fn dirty(&self) -> Result<BTreeMap<String, Vec<String>>, ChangeError> {
        let mut dirty: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for view in self.active()? {
            let entry = view.entry;
            if !entry.is_durable() {
                continue;
            }
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

    pub fn base(&self, entry: &Entry) -> Result<Option<String>, ChangeError> {
        self.store.read_source(entry.base_ref.as_ref())
    }

    /// Entries with their texts.
    pub(super) fn texts<'a>(&self, entries: &[&'a Entry]) -> Result<Vec<EntryTexts<'a>>, ChangeError> {
        let read = |entry: &&'a Entry| {
            Ok(EntryTexts {
                entry,
                source: self.source(entry)?,
                base: self.base(entry)?,
            })
        };
        entries.iter().map(read).collect()
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
        let name = entry.source_file.as_ref().unwrap_or(&title);
        let names = [format!("{name}\tbefore"), format!("{name}\tafter")];
        Ok(diff::unified([&names[0], &names[1]], &old, &new))
    }

    pub(crate) fn pending(&self) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(|entry| entry.is_pending())
    }

    pub(super) fn pending_in(&self, file: &str) -> impl Iterator<Item = &Entry> {
        self.pending()
            .filter(move |entry| entry.source_file.as_deref() == Some(file))
    }
}
