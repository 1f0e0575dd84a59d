//! What processes said last: kept in memory for those who ask, and in a file where the config
//! wants one.

use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use beamtalk_storage::RotatingLog;
use beamtalk_storage::time::{now_micros, timestamp_micros};
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use crate::report::Stream;

/// How much of each process is kept: lines, and bytes of them.
const LINES: usize = 1000;
const BYTES: usize = 1024 * 1024;
/// How far behind somebody who follows may be before lines are left out for them.
const BEHIND: usize = 1024;
/// When a log file is set aside, and how many of those are kept.
const FILE_LIMIT: u64 = 10 * 1024 * 1024;
const FILES: u32 = 3;

/// One line of a process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Said {
    pub at: String,
    pub stream: Stream,
    pub line: String,
}

struct Tail {
    lines: VecDeque<Said>,
    bytes: usize,
    followers: broadcast::Sender<Said>,
}

/// The last lines of every process.
#[derive(Clone, Default)]
pub(crate) struct Tails(Arc<Mutex<BTreeMap<String, Tail>>>);

impl Tails {
    pub(crate) fn add(&self, process: &str, stream: Stream, line: &str) {
        let said = Said {
            at: timestamp_micros(now_micros()),
            stream,
            line: line.to_owned(),
        };
        self.with(process, |tail| {
            tail.bytes += said.line.len();
            tail.lines.push_back(said.clone());
            while tail.lines.len() > LINES || tail.bytes > BYTES {
                let Some(oldest) = tail.lines.pop_front() else {
                    break;
                };
                tail.bytes -= oldest.line.len();
            }
            // Nobody following is fine.
            drop(tail.followers.send(said));
        });
    }

    /// The last `count` lines of a process, and what it says from then on.
    pub(crate) fn read(&self, process: &str, count: usize) -> (Vec<Said>, broadcast::Receiver<Said>) {
        self.with(process, |tail| {
            let skipped = tail.lines.len().saturating_sub(count);
            let lines = tail.lines.iter().skip(skipped).cloned().collect();
            (lines, tail.followers.subscribe())
        })
    }

    fn with<T>(&self, process: &str, act: impl FnOnce(&mut Tail) -> T) -> T {
        let mut tails = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let tail = tails.entry(process.to_owned()).or_insert_with(|| Tail {
            lines: VecDeque::new(),
            bytes: 0,
            followers: broadcast::Sender::new(BEHIND),
        });
        act(tail)
    }
}

/// The file a process's output is kept in.
#[derive(Clone)]
pub(crate) struct LogFile(Arc<Mutex<RotatingLog>>);

impl LogFile {
    pub(crate) fn open(root: &Path, path: &Path) -> Result<Self, String> {
        let path: PathBuf = crate::config::clean(&root.join(path));
        let describe = |error: &dyn std::fmt::Display| format!("the log file {}: {error}", path.display());
        let name = path.file_name().and_then(|name| name.to_str());
        let (Some(directory), Some(name)) = (path.parent(), name) else {
            return Err(describe(&"not a name for a file"));
        };
        std::fs::create_dir_all(directory).map_err(|error| describe(&error))?;
        let directory =
            beamtalk_storage::Directory::open_existing(directory).map_err(|error| describe(&error))?;
        let log = RotatingLog::open(directory, name, FILE_LIMIT, FILES).map_err(|error| describe(&error))?;
        Ok(Self(Arc::new(Mutex::new(log))))
    }

    /// The file for a program that writes to it by itself and outlives the loop.
    pub(crate) fn for_others(root: &Path, path: &Path) -> Result<std::fs::File, String> {
        use std::os::unix::fs::OpenOptionsExt;
        let path = crate::config::clean(&root.join(path));
        let opened = path
            .parent()
            .map_or(Ok(()), std::fs::create_dir_all)
            .and_then(|()| {
                let mut options = std::fs::OpenOptions::new();
                crate::files::open(&path, options.append(true).create(true).mode(0o600))
            });
        opened.map_err(|error| format!("the log file {}: {error}", path.display()))
    }

    /// Write a line as a whole.
    pub(crate) fn write(&self, line: &str) -> std::io::Result<()> {
        let mut bytes = Vec::with_capacity(line.len() + 1);
        bytes.extend_from_slice(line.as_bytes());
        bytes.push(b'\n');
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .write_whole(&bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_much_is_kept() {
        let tails = Tails::default();
        for number in 0..2000 {
            tails.add("p", Stream::Stdout, &number.to_string());
        }
        let (lines, _) = tails.read("p", 3);
        let texts: Vec<&str> = lines.iter().map(|said| said.line.as_str()).collect();
        assert_eq!(texts, ["1997", "1998", "1999"]);
        assert_eq!(tails.read("p", usize::MAX).0.len(), LINES);
        for _ in 0..100 {
            tails.add("p", Stream::Stdout, &"x".repeat(60_000));
        }
        assert!(tails.read("p", usize::MAX).0.len() < 20);
        assert!(tails.read("q", 5).0.is_empty());
    }
}
