//! The audit trail: what was asked through the boundary, one JSON object per line.
//!
//! A record is written before the answer it belongs to is sent; where the trail is required, one is written before
//! anything is done too. Its `seq` has no gaps, across restarts and rotation, so that a record that is missing is
//! seen, and those that could not be written are counted. Code in the image acts as the same user and could alter the
//! file; the trail does not claim otherwise.

mod event;
mod mark;
mod read;

use std::io;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};

use beamtalk_storage::{Directory, RotatingLog, StorageError, WorkspaceDirectory, sha256_hex, time};
use serde::Serialize;
use tokio::sync::mpsc::{Receiver, Sender};

pub use event::{Entry, Event, KINDS, Outcome, Source, Who};
use mark::{Mark, MarkFile};
pub use read::{AuditReader, Fault, Filter, Record, Tail, Verification, parse_since};

/// The file of the trail in the workspace's directory.
const FILE: &str = "audit.log";
const FILE_BYTES: u64 = 10 << 20;
const OLD_FILES: u32 = 10;
/// Records that may wait to be told.
const HEARD: usize = 4096;

#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("cannot write the audit trail {}: {cause}", path.display())]
    Write { path: PathBuf, cause: io::Error },
    #[error("cannot read the audit trail: {0}")]
    Read(io::Error),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// What the flags of the start ask of the trail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditOptions {
    /// Keep source texts, which may hold secrets, and not only their hashes.
    pub text: bool,
    /// Do nothing that may change something before it is recorded.
    pub required: bool,
}

/// How large the trail grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditSize {
    pub file_bytes: u64,
    pub old_files: u32,
}

impl Default for AuditSize {
    fn default() -> Self {
        Self {
            file_bytes: FILE_BYTES,
            old_files: OLD_FILES,
        }
    }
}

pub use beamtalk_wire::answers::AuditState;

/// The trail of one workspace, open for writing by its daemon.
#[derive(Debug)]
pub struct Audit {
    options: AuditOptions,
    trail: Mutex<Trail>,
}

#[derive(Debug)]
struct Trail {
    log: Box<dyn Lines>,
    directory: Directory,
    path: PathBuf,
    mark: Mark,
    remembered: MarkFile,
    error: Option<String>,
    listener: Option<Sender<Vec<u8>>>,
}

/// Where the lines go: each as a whole, or not at all.
trait Lines: Send + std::fmt::Debug {
    fn append(&mut self, line: &[u8]) -> io::Result<()>;
    /// The file that is given up when `line` is appended.
    fn given_up_for(&self, line: &[u8]) -> Option<String>;
    fn reopen(&mut self) -> Result<(), StorageError>;
}

impl Lines for RotatingLog {
    fn append(&mut self, line: &[u8]) -> io::Result<()> {
        self.write_whole(line)
    }

    fn given_up_for(&self, line: &[u8]) -> Option<String> {
        Self::given_up_for(self, line)
    }

    fn reopen(&mut self) -> Result<(), StorageError> {
        Self::reopen(self)
    }
}

/// A line as it is written.
#[derive(Serialize)]
struct Line<'a> {
    ts: String,
    seq: u64,
    #[serde(rename = "type")]
    kind: &'static str,
    /// The record that was written before the same thing was done.
    #[serde(skip_serializing_if = "Option::is_none")]
    begin: Option<u64>,
    #[serde(flatten)]
    who: &'a Who,
    #[serde(flatten)]
    event: &'a Event,
}

impl Audit {
    /// Open the trail, go on after its last record, and repair a line that was cut short.
    pub fn open(
        workspace: &WorkspaceDirectory,
        size: AuditSize,
        options: AuditOptions,
    ) -> Result<Self, AuditError> {
        Self::open_in(workspace.directory(), size, options)
    }

    fn open_in(directory: &Directory, size: AuditSize, options: AuditOptions) -> Result<Self, AuditError> {
        let log = RotatingLog::open(directory.clone(), FILE, size.file_bytes, size.old_files)?;
        Self::open_with(directory, Box::new(log), options)
    }

    fn open_with(
        directory: &Directory,
        log: Box<dyn Lines>,
        options: AuditOptions,
    ) -> Result<Self, AuditError> {
        let was_torn = read::repair(directory)?;
        let found = read::last_seq(directory)?;
        let known = Mark::read(directory)?;
        let is_forgotten = known.is_none() && found > 0;
        let mut mark = known.unwrap_or_default();
        if mark.first == 0 {
            mark.first = read::first_seq(directory)?.unwrap_or(1);
        }
        // Half a record is one that was lost; beyond the last whole one, the gap will show it.
        if was_torn && mark.last <= found {
            mark.lost += 1;
        }
        mark.last = mark.last.max(found);
        let remembered = MarkFile::open(directory, mark)?;
        let mut trail = Trail {
            log,
            directory: directory.clone(),
            path: directory.path_of(FILE),
            mark,
            remembered,
            error: None,
            listener: None,
        };
        trail.remember();
        if is_forgotten {
            let event = Event::Limit {
                what: TRAIL.to_owned(),
                detail: "audit.state was not there: records may be missing before this one".to_owned(),
                count: None,
            };
            // Where this cannot be written it counts as lost, and that is told.
            drop(trail.record(&event.by(Who::default())));
        }
        Ok(Self {
            options,
            trail: Mutex::new(trail),
        })
    }

    /// Write a record; answers its number. On an error it is counted as lost.
    pub fn record(&self, entry: Entry) -> Result<u64, AuditError> {
        self.trail().record(&entry)
    }

    /// Hear every record from now on. Who is too slow misses some, and sees that by their numbers.
    pub(crate) fn listen(&self) -> Receiver<Vec<u8>> {
        let (sender, receiver) = tokio::sync::mpsc::channel(HEARD);
        self.trail().listener = Some(sender);
        receiver
    }

    /// Something is about to be done. Where the trail is required it is recorded first, and not done if that fails.
    pub fn begin(&self, entry: impl FnOnce() -> Entry) -> Result<Option<u64>, AuditError> {
        if self.options.required {
            self.trail().record(&entry()).map(Some)
        } else {
            Ok(None)
        }
    }

    /// What is recorded of a source text: hash and length, and the text itself only if asked for.
    pub fn source(&self, text: &str) -> Source {
        Source {
            sha256: sha256_hex(text.as_bytes()),
            bytes: text.len(),
            text: self.options.text.then(|| text.to_owned()),
        }
    }

    pub fn state(&self) -> AuditState {
        let trail = self.trail();
        AuditState {
            ok: trail.error.is_none(),
            seq: trail.mark.last,
            lost: trail.mark.lost,
            error: trail.error.clone(),
            text: self.options.text,
            required: self.options.required,
        }
    }

    /// Open the file again, after it was moved away.
    pub fn reopen(&self) -> Result<(), AuditError> {
        Ok(self.trail().log.reopen()?)
    }

    fn trail(&self) -> MutexGuard<'_, Trail> {
        self.trail.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Trail {
    fn record(&mut self, entry: &Entry) -> Result<u64, AuditError> {
        let written = self.confess_losses().and_then(|()| self.write(entry));
        if written.is_err() {
            self.mark.lost += 1;
        }
        self.remember();
        written
    }

    fn write(&mut self, entry: &Entry) -> Result<u64, AuditError> {
        let line = Line {
            ts: time::timestamp(time::now_millis()),
            seq: self.mark.last + 1,
            kind: entry.event.kind(),
            begin: entry.begin,
            who: &entry.who,
            event: &entry.event,
        };
        let mut text = serde_json::to_vec(&line).expect("an audit record is plain data");
        text.push(b'\n');
        if let Some(file) = self.log.given_up_for(&text) {
            self.give_up(&file);
        }
        match self.log.append(&text) {
            Ok(()) => {
                self.mark.last += 1;
                self.error = None;
                if let Some(listener) = &self.listener {
                    drop(listener.try_send(text));
                }
                Ok(self.mark.last)
            }
            Err(cause) => {
                self.error = Some(cause.to_string());
                Err(AuditError::Write {
                    path: self.path.clone(),
                    cause,
                })
            }
        }
    }

    /// The records of `file` make room. Remembered before they go: after a kill in between there are more than need be.
    fn give_up(&mut self, file: &str) {
        // What is not in it any more was not given up, and stays missing.
        if let Ok(Some(last)) = read::last_seq_of(&self.directory, file) {
            self.mark.first = self.mark.first.max(last + 1);
            self.remember();
        }
    }

    /// The first record after some were lost says so.
    fn confess_losses(&mut self) -> Result<(), AuditError> {
        let lost = self.mark.lost;
        if lost == 0 {
            return Ok(());
        }
        let event = Event::Limit {
            what: TRAIL.to_owned(),
            detail: format!("{lost} records could not be written"),
            count: Some(lost),
        };
        self.write(&event.by(Who::default()))?;
        self.mark.lost = 0;
        Ok(())
    }

    /// Where even this fails, the loss is known for as long as the daemon lives.
    fn remember(&mut self) {
        if let Err(cause) = self.remembered.keep(self.mark) {
            tracing::error!("audit.state cannot be written: {cause}");
        }
    }
}

/// What a `limit` record about the trail itself is about.
const TRAIL: &str = "audit";

#[cfg(test)]
mod tests;
