//! Prompts that wait until their session is idle: one file each, delivered in order and at most once.
//!
//! A prompt is marked on disk before it is typed. One that was marked when the daemon died may or may not have
//! arrived: it is listed as unknown and never typed again.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use beamtalk_ninep::Refusal;
use beamtalk_storage::sha256_hex;
use beamtalk_storage::time::now_seconds;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::refusal;
use crate::{files, ids};

/// How many prompts may wait.
pub(crate) const LIMIT: usize = 100;
/// The largest file of a prompt: all of its text escaped, and a frame.
const FILE_LIMIT: u64 = 8 << 20;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Queued {
    pub(crate) id: String,
    pub(crate) text: String,
    /// A session id or `user`.
    pub(crate) author: String,
    pub(crate) at: u64,
    /// It was about to be typed.
    #[serde(default)]
    marked: bool,
}

impl Queued {
    fn line(&self) -> String {
        let state = if self.marked { "unknown" } else { "waiting" };
        let line = json!({
            "id": self.id, "text_bytes": self.text.len(), "sha256": sha256_hex(self.text.as_bytes()),
            "author": self.author, "at": self.at, "state": state,
        });
        format!("{line}\n")
    }
}

pub(crate) struct PromptQueue {
    directory: PathBuf,
    entries: Mutex<Vec<Queued>>,
}

fn stored<T>(outcome: std::io::Result<T>) -> Result<T, Refusal> {
    outcome.map_err(|error| {
        tracing::error!(%error, "the queue cannot be written");
        Refusal::INTERNAL
    })
}

impl PromptQueue {
    /// The queue a directory holds, in the order of its names.
    pub(crate) fn open(directory: &Path) -> Self {
        let mut names = files::names(directory);
        names.sort();
        let read = |name: &String| {
            let bytes = files::read_limited(&directory.join(name), FILE_LIMIT).ok()?;
            serde_json::from_slice::<Queued>(&bytes).ok()
        };
        Self {
            directory: directory.to_owned(),
            entries: Mutex::new(names.iter().filter_map(read).collect()),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Queued>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn path(&self, id: &str) -> PathBuf {
        self.directory.join(format!("{id}.json"))
    }

    fn write(&self, entry: &Queued) -> std::io::Result<()> {
        files::make_directory(&self.directory)?;
        let text = serde_json::to_string(entry)?;
        files::replace(&self.path(&entry.id), text.as_bytes())
    }

    /// Put a prompt at the end; how many wait before it.
    pub(crate) fn add(&self, text: &str, author: &str) -> Result<usize, Refusal> {
        let mut entries = self.lock();
        let before = entries.iter().filter(|entry| !entry.marked).count();
        if before >= LIMIT {
            return Err(refusal("queue full"));
        }
        let entry = Queued {
            id: stored(ids::uuid_v7())?,
            text: text.to_owned(),
            author: author.to_owned(),
            at: now_seconds(),
            marked: false,
        };
        stored(self.write(&entry))?;
        entries.push(entry);
        Ok(before)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lock().iter().all(|entry| entry.marked)
    }

    /// The next prompt, marked on disk: from here on it is typed at most once.
    pub(crate) fn begin(&self) -> Option<Queued> {
        let mut entries = self.lock();
        let entry = entries.iter_mut().find(|entry| !entry.marked)?;
        entry.marked = true;
        if let Err(error) = self.write(entry) {
            tracing::error!(%error, "a queued prompt cannot be marked, so it waits");
            entry.marked = false;
            return None;
        }
        Some(entry.clone())
    }

    /// It was delivered, or is not wanted any more.
    pub(crate) fn remove(&self, id: &str) -> Result<(), Refusal> {
        let mut entries = self.lock();
        let at = entries.iter().position(|entry| entry.id == id);
        let at = at.ok_or(Refusal::NOT_FOUND)?;
        match std::fs::remove_file(self.path(id)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => stored(Err(error))?,
            _ => {}
        }
        entries.remove(at);
        Ok(())
    }

    /// Nothing was typed: it waits again.
    pub(crate) fn give_back(&self, id: &str) {
        let mut entries = self.lock();
        if let Some(entry) = entries.iter_mut().find(|entry| entry.id == id) {
            entry.marked = false;
            if let Err(error) = self.write(entry) {
                tracing::error!(%error, "a queued prompt cannot be unmarked");
            }
        }
    }

    pub(crate) fn clear(&self) -> Result<(), Refusal> {
        let ids: Vec<String> = self.lock().iter().map(|entry| entry.id.clone()).collect();
        ids.iter().try_for_each(|id| self.remove(id))
    }

    /// What `queue` reads as.
    pub(crate) fn lines(&self) -> String {
        self.lock().iter().map(Queued::line).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_come_in_order_and_at_most_once() {
        let directory = tempfile::tempdir().unwrap();
        let place = directory.path().join("queue");
        let queue = PromptQueue::open(&place);
        assert_eq!(queue.add("one", "user").unwrap(), 0);
        std::thread::sleep(std::time::Duration::from_millis(2));
        assert_eq!(queue.add("two", "user").unwrap(), 1);
        let first = queue.begin().unwrap();
        assert_eq!(first.text, "one");
        // The daemon dies here: what was marked is not typed again.
        let queue = PromptQueue::open(&place);
        assert!(
            queue
                .lines()
                .lines()
                .next()
                .unwrap()
                .contains(r#""state":"unknown""#)
        );
        let second = queue.begin().unwrap();
        assert_eq!(second.text, "two");
        queue.remove(&second.id).unwrap();
        assert!(queue.begin().is_none() && queue.is_empty());
        queue.clear().unwrap();
        assert_eq!(PromptQueue::open(&place).lines(), "");
        assert_eq!(queue.remove("no").unwrap_err(), Refusal::NOT_FOUND);
    }

    #[test]
    fn a_full_queue_refuses() {
        let directory = tempfile::tempdir().unwrap();
        let queue = PromptQueue::open(directory.path());
        for _ in 0..LIMIT {
            queue.add("x", "user").unwrap();
        }
        assert_eq!(queue.add("x", "user").unwrap_err().text, "queue full");
    }
}
