//! The audit log: one JSON object per line, rotated by size, never a prompt text or a token.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use beamtalk_ninep::Refusal;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

use crate::error::refusal;
use crate::files;
use crate::ids::{hex, milliseconds, rfc3339};

const ROTATE: u64 = 64 << 20;
const KEEP: u32 = 4;

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
}

pub(crate) struct Audit {
    path: PathBuf,
    open: Mutex<Open>,
}

impl Audit {
    pub(crate) fn open(state: &Path) -> std::io::Result<Self> {
        let path = state.join("audit.jsonl");
        let file = files::appender(&path)?;
        let length = file.metadata()?.len();
        Ok(Audit {
            path,
            open: Mutex::new(Open {
                file: Some(file),
                length,
            }),
        })
    }

    /// Write a line; operations that change something must not go on if this fails.
    pub(crate) fn write(&self, entry: Entry) -> Result<(), Refusal> {
        let mut map = entry.map;
        map.insert("ts".to_owned(), rfc3339(milliseconds()).into());
        let mut line = serde_json::to_vec(&Value::Object(map)).map_err(|_| refusal("audit unavailable"))?;
        line.push(b'\n');
        let mut open = self
            .open
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        self.append(&mut open, &line).map_err(|error| {
            tracing::error!(%error, "audit log cannot be written");
            refusal("audit unavailable")
        })
    }

    fn append(&self, open: &mut Open, line: &[u8]) -> std::io::Result<()> {
        if open.length > ROTATE {
            open.file = None;
            for number in (1..KEEP).rev() {
                // A missing older file is the normal case.
                drop(std::fs::rename(self.numbered(number), self.numbered(number + 1)));
            }
            std::fs::rename(&self.path, self.numbered(1))?;
            open.length = 0;
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
