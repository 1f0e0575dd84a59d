//! The chat log of a session: prompts and answers, trimmed at entry boundaries.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Mutex;

use crate::bytelog::Signal;
use crate::files;

struct Extent {
    /// Bytes trimmed off in all.
    base: u64,
    end: u64,
}

pub(crate) struct Chat {
    path: PathBuf,
    extent: Mutex<Extent>,
    pub(crate) signal: Signal,
    limit: u64,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Speaker {
    User,
    Assistant,
}

impl Chat {
    pub(crate) fn open(path: PathBuf, limit: u64) -> Self {
        let end = std::fs::metadata(&path).map_or(0, |meta| meta.len());
        Chat {
            path,
            extent: Mutex::new(Extent { base: 0, end }),
            signal: Signal::default(),
            limit,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Extent> {
        self.extent
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(crate) fn add(&self, speaker: Speaker, text: &str) -> std::io::Result<()> {
        let heading = if speaker == Speaker::User {
            "USER:"
        } else {
            "ASSISTANT:"
        };
        let newline = if text.is_empty() || text.ends_with('\n') {
            ""
        } else {
            "\n"
        };
        let entry = format!("{heading}\n{text}{newline}---\n");
        let mut extent = self.lock();
        files::appender(&self.path)?.write_all(entry.as_bytes())?;
        extent.end += entry.len() as u64;
        if extent.end - extent.base > self.limit {
            let bytes = std::fs::read(&self.path)?;
            let excess = (extent.end - extent.base - self.limit) as usize;
            let cut = entry_boundary(&bytes, excess);
            files::replace_quickly(&self.path, bytes.get(cut..).unwrap_or_default())?;
            extent.base += cut as u64;
        }
        drop(extent);
        self.signal.bump();
        Ok(())
    }

    pub(crate) fn text(&self) -> Vec<u8> {
        std::fs::read(&self.path).unwrap_or_default()
    }

    pub(crate) fn length(&self) -> u64 {
        let extent = self.lock();
        extent.end - extent.base
    }

    pub(crate) fn end(&self) -> u64 {
        self.lock().end
    }

    /// What was added since `offset`; `None` if it was trimmed.
    pub(crate) fn since(&self, offset: u64) -> Option<Vec<u8>> {
        let base = self.lock().base;
        let from = offset.checked_sub(base)?;
        Some(self.text().get(from as usize..).unwrap_or_default().to_vec())
    }
}

/// The first place at or after `at` where an entry starts.
fn entry_boundary(bytes: &[u8], at: usize) -> usize {
    let mark = b"\n---\n";
    bytes
        .get(at.saturating_sub(1)..)
        .and_then(|rest| rest.windows(mark.len()).position(|window| window == mark))
        .map_or(bytes.len(), |found| at.saturating_sub(1) + found + mark.len())
}

#[cfg(test)]
mod tests {
    use super::{Chat, Speaker};

    #[test]
    fn old_entries_go_whole() {
        let base = tempfile::tempdir().unwrap();
        let chat = Chat::open(base.path().join("chat.log"), 60);
        chat.add(Speaker::User, "first question, rather long").unwrap();
        let mark = chat.end();
        chat.add(Speaker::Assistant, "echo: an answer\n").unwrap();
        let text = String::from_utf8(chat.text()).unwrap();
        assert_eq!(text, "ASSISTANT:\necho: an answer\n---\n");
        assert_eq!(chat.since(mark).unwrap(), text.as_bytes());
        assert!(chat.since(0).is_none());
    }
}
