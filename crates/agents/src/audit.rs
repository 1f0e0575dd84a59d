//! The audit log: one JSON object per line, rotated by size, never a prompt text or a token.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use beamtalk_ninep::Refusal;
use rustix::io::Errno;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::error::refusal;
use crate::files;
use crate::ids::{hex, milliseconds, rfc3339};

const ROTATE: u64 = 64 << 20;
const KEEP: u32 = 4;
/// Room on the disk taken ahead, so that the record of what is done next has a place.
const AHEAD: u64 = 256 << 10;
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
        let entry = self
            .with("bytes", bytes.len())
            .with("sha256", hex(&Sha256::digest(bytes)));
        if with_text {
            entry.with("text", String::from_utf8_lossy(bytes).into_owned())
        } else {
            entry
        }
    }
}

struct Open {
    file: Option<File>,
    length: u64,
    /// Bytes the disk has promised.
    reserved: u64,
    /// The last line could not be written.
    broken: bool,
}

pub(crate) struct Audit {
    path: PathBuf,
    rotate: u64,
    open: Mutex<Open>,
}

impl Audit {
    pub(crate) fn open(state: &Path) -> std::io::Result<Self> {
        let path = state.join("audit.jsonl");
        let file = files::appender(&path)?;
        let length = file.metadata()?.len();
        Ok(Audit {
            path,
            rotate: ROTATE,
            open: Mutex::new(Open {
                file: Some(file),
                length,
                reserved: 0,
                broken: false,
            }),
        })
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
            let line = line_of(Entry::new("audit").with("result", "resumed"))?;
            return self.record(&mut open, &line);
        }
        let wanted = open.length + LINE;
        if wanted <= open.reserved {
            return Ok(());
        }
        let Some(file) = &open.file else { return Ok(()) };
        let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(file, flags, open.length, AHEAD) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::IO | Errno::ROFS | Errno::FBIG)) => {
                tracing::error!(%error, "audit log has no room");
                Err(refusal("audit unavailable"))
            }
            // Not every file system can promise room; then the write itself has to tell.
            _ => {
                open.reserved = open.length + AHEAD;
                Ok(())
            }
        }
    }

    /// Write a line; operations that change something must not be answered if this fails.
    pub(crate) fn write(&self, entry: Entry) -> Result<(), Refusal> {
        let line = line_of(entry)?;
        self.record(&mut self.lock(), &line)
    }

    fn record(&self, open: &mut Open, line: &[u8]) -> Result<(), Refusal> {
        let outcome = self.append(open, line);
        open.broken = outcome.is_err();
        outcome.map_err(|error| {
            tracing::error!(%error, "audit log cannot be written");
            refusal("audit unavailable")
        })
    }

    fn append(&self, open: &mut Open, line: &[u8]) -> std::io::Result<()> {
        if open.length > self.rotate {
            open.file = None;
            for number in (1..KEEP).rev() {
                // A missing older file is the normal case.
                drop(std::fs::rename(self.numbered(number), self.numbered(number + 1)));
            }
            std::fs::rename(&self.path, self.numbered(1))?;
            open.length = 0;
            open.reserved = 0;
        }
        let file = match &mut open.file {
            Some(file) => file,
            none => none.insert(files::appender(&self.path)?),
        };
        file.write_all(line)?;
        open.length += line.len() as u64;
        Ok(())
    }

    fn numbered(&self, number: u32) -> PathBuf {
        self.path.with_extension(format!("jsonl.{number}"))
    }

    pub(crate) fn read(&self) -> std::io::Result<Vec<u8>> {
        std::fs::read(&self.path)
    }
}

fn line_of(entry: Entry) -> Result<Vec<u8>, Refusal> {
    let mut map = entry.map;
    map.insert("ts".to_owned(), rfc3339(milliseconds()).into());
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
        let mut audit = Audit::open(base.path()).unwrap();
        audit.rotate = 100;
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
        let audit = Audit::open(base.path()).unwrap();
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let good = audit.lock().file.replace(full).unwrap();
        let refused = audit.write(Entry::new("ctl")).unwrap_err();
        assert_eq!(refused.text, "audit unavailable");
        assert_eq!(audit.ready().unwrap_err().text, "audit unavailable");
        audit.lock().file = Some(good);
        audit.ready().unwrap();
        audit.write(Entry::new("ctl")).unwrap();
        assert!(
            String::from_utf8(audit.read().unwrap())
                .unwrap()
                .contains("resumed")
        );
    }
}
