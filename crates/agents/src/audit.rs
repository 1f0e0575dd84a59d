//! The audit log: one JSON object per line, rotated by size, never a prompt text or a token.

use std::path::Path;
use std::sync::Mutex;

use beamtalk_ninep::Refusal;
use beamtalk_storage::time::{now_millis, timestamp};
use beamtalk_storage::{Directory, RotatingLog, sha256_hex};
use serde_json::{Map, Value};

use crate::error::refusal;

const FILE: &str = "audit.jsonl";
const FILE_BYTES: u64 = 64 << 20;
const OLD_FILES: u32 = 4;
/// Longer than any line, texts aside.
const LINE: u64 = 16 << 10;

/// One line to be.
pub(crate) struct Entry {
    map: Map<String, Value>,
}

impl Entry {
    pub(crate) fn new(op: &str) -> Self {
        let mut map = Map::new();
        map.insert("op".to_owned(), op.into());
        Entry { map }
    }

    pub(crate) fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.map.insert(key.to_owned(), value.into());
        self
    }

    /// Length and hash of a text, and the text itself only if asked for.
    pub(crate) fn about(self, bytes: &[u8], with_text: bool) -> Self {
        let entry = self.with("bytes", bytes.len()).with("sha256", sha256_hex(bytes));
        if with_text {
            entry.with("text", String::from_utf8_lossy(bytes).into_owned())
        } else {
            entry
        }
    }
}

struct Open {
    log: RotatingLog,
    /// The last line could not be written.
    broken: bool,
}

pub(crate) struct Audit {
    open: Mutex<Open>,
}

impl Audit {
    pub(crate) fn open(state: &Path) -> std::io::Result<Self> {
        Self::open_with(state, FILE_BYTES)
    }

    fn open_with(state: &Path, limit: u64) -> std::io::Result<Self> {
        let log = RotatingLog::open(Directory::open_existing(state)?, FILE, limit, OLD_FILES)?;
        let open = Mutex::new(Open { log, broken: false });
        Ok(Audit { open })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Open> {
        self.open
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Make sure that what is done next can be recorded; nothing may change otherwise.
    pub(crate) fn ready(&self) -> Result<(), Refusal> {
        let mut open = self.lock();
        if open.broken {
            return open.record(&line_of(Entry::new("audit").with("result", "resumed"))?);
        }
        open.log.reserve(LINE).map_err(|error| {
            tracing::error!(%error, "audit log has no room");
            refusal("audit unavailable")
        })
    }

    /// Write a line; operations that change something must not be answered if this fails.
    pub(crate) fn write(&self, entry: Entry) -> Result<(), Refusal> {
        self.lock().record(&line_of(entry)?)
    }

    pub(crate) fn read(&self) -> std::io::Result<Vec<u8>> {
        Ok(self.lock().log.directory().read(FILE)?.unwrap_or_default())
    }
}

impl Open {
    fn record(&mut self, line: &[u8]) -> Result<(), Refusal> {
        let outcome = self.log.write_whole(line);
        self.broken = outcome.is_err();
        outcome.map_err(|error| {
            tracing::error!(%error, "audit log cannot be written");
            refusal("audit unavailable")
        })
    }
}

fn line_of(entry: Entry) -> Result<Vec<u8>, Refusal> {
    let mut map = entry.map;
    map.insert("ts".to_owned(), timestamp(now_millis()).into());
    let mut line = serde_json::to_vec(&Value::Object(map)).map_err(|_| refusal("audit unavailable"))?;
    line.push(b'\n');
    Ok(line)
}

#[cfg(test)]
mod tests {
    use super::{Audit, Entry};

    #[test]
    fn a_full_log_is_rotated_and_four_old_ones_are_kept() {
        let base = tempfile::tempdir().unwrap();
        let audit = Audit::open_with(base.path(), 100).unwrap();
        for number in 0..40 {
            audit.ready().unwrap();
            audit.write(Entry::new("ctl").with("number", number)).unwrap();
        }
        let mut names = crate::files::names(base.path());
        names.sort();
        assert_eq!(
            names,
            [
                "audit.jsonl",
                "audit.jsonl.1",
                "audit.jsonl.2",
                "audit.jsonl.3",
                "audit.jsonl.4"
            ]
        );
        // No line is lost between the files that are kept, and the newest is in the open one.
        let mut numbers = Vec::new();
        for name in names.iter().skip(1).rev().chain(names.first()) {
            for line in std::fs::read_to_string(base.path().join(name)).unwrap().lines() {
                let value: serde_json::Value = serde_json::from_str(line).unwrap();
                numbers.push(value["number"].as_i64().unwrap());
            }
        }
        let expected: Vec<i64> = (40 - numbers.len() as i64..40).collect();
        assert_eq!(numbers, expected);
    }

    #[test]
    fn without_a_log_nothing_may_change_until_it_can_be_written_again() {
        let base = tempfile::tempdir().unwrap();
        let audit = Audit::open_with(base.path(), 1).unwrap();
        audit.write(Entry::new("ctl")).unwrap();
        // Where the next file would be begun there is something else.
        let obstacle = base.path().join("audit.jsonl.new");
        std::fs::create_dir(&obstacle).unwrap();
        let refused = audit.write(Entry::new("ctl")).unwrap_err();
        assert_eq!(refused.text, "audit unavailable");
        assert_eq!(audit.ready().unwrap_err().text, "audit unavailable");
        std::fs::remove_dir(&obstacle).unwrap();
        audit.ready().unwrap();
        assert!(
            String::from_utf8(audit.read().unwrap())
                .unwrap()
                .contains("resumed")
        );
        audit.write(Entry::new("ctl")).unwrap();
    }
}
