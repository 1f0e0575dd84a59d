//! The audit trail: what was asked through the boundary, one JSON object per line.
//!
//! A record is written before the answer it belongs to is sent. Its `seq` has no gaps, across
//! restarts and rotation, so that a record that is missing is seen. Code in the image acts as the
//! same user and could alter the file; the trail does not claim otherwise.

mod event;
mod read;

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

use beamtalk_storage::{Directory, RotatingLog, StorageError, WorkspaceDirectory, time};
use serde::Serialize;
use sha2::{Digest, Sha256};

pub use event::{Entry, Event, KINDS, Outcome, Source, Who};
pub use read::{AuditReader, Fault, Filter, Record, Tail, Verification, parse_since};

/// The file of the trail in the workspace's directory.
const FILE: &str = "audit.log";
const FILE_BYTES: u64 = 10 << 20;
const OLD_FILES: u32 = 10;

#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    #[error("cannot write the audit trail")]
    Write(#[source] io::Error),
    #[error("cannot read the audit trail")]
    Read(#[source] io::Error),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// What the flags of the start ask of the trail.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AuditOptions {
    /// Keep source texts, which may hold secrets, and not only their hashes.
    pub text: bool,
    /// Refuse what may change something while the trail cannot be written.
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

/// How the trail is, for `status`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuditState {
    pub ok: bool,
    /// The number of the last record; 0 before the first.
    pub seq: u64,
    /// Records that could not be written since the last one that could.
    pub lost: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    pub text: bool,
    pub required: bool,
}

/// The trail of one workspace, open for writing by its daemon.
#[derive(Debug)]
pub struct Audit {
    options: AuditOptions,
    trail: Mutex<Trail>,
}

#[derive(Debug)]
struct Trail {
    log: RotatingLog,
    last: u64,
    lost: u64,
    error: Option<String>,
}

/// A line as it is written.
#[derive(Serialize)]
struct Line<'a> {
    ts: String,
    seq: u64,
    #[serde(rename = "type")]
    kind: &'static str,
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
        read::repair(directory)?;
        let last = read::last_seq(directory)?;
        let log = RotatingLog::open(directory.clone(), FILE, size.file_bytes, size.old_files)?;
        Ok(Self {
            options,
            trail: Mutex::new(Trail {
                log,
                last,
                lost: 0,
                error: None,
            }),
        })
    }

    /// Write a record. On an error the caller goes on, unless the trail is required.
    pub fn record(&self, entry: Entry) -> Result<(), AuditError> {
        let mut trail = self.trail();
        trail.confess_losses().inspect_err(|_| trail.lost += 1)?;
        trail.write(&entry.who, &entry.event)
    }

    /// May something be changed now? Only a trail that is required and cannot be written says no.
    pub fn permit(&self) -> Result<(), AuditError> {
        let mut trail = self.trail();
        if self.options.required {
            trail.confess_losses()
        } else {
            Ok(())
        }
    }

    /// What is recorded of a source text: hash and length, and the text itself only if asked for.
    pub fn source(&self, text: &str) -> Source {
        Source {
            sha256: Sha256::digest(text.as_bytes())
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect(),
            bytes: text.len(),
            text: self.options.text.then(|| text.to_owned()),
        }
    }

    pub fn state(&self) -> AuditState {
        let trail = self.trail();
        AuditState {
            ok: trail.error.is_none(),
            seq: trail.last,
            lost: trail.lost,
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
    fn write(&mut self, who: &Who, event: &Event) -> Result<(), AuditError> {
        let line = Line {
            ts: time::timestamp(time::now_millis()),
            seq: self.last + 1,
            kind: event.kind(),
            who,
            event,
        };
        let mut text = serde_json::to_vec(&line).expect("an audit record is plain data");
        text.push(b'\n');
        match self.log.write_whole(&text) {
            Ok(()) => {
                self.last += 1;
                Ok(())
            }
            Err(cause) => {
                self.lost += 1;
                self.error = Some(cause.to_string());
                Err(AuditError::Write(cause))
            }
        }
    }

    /// The first record after some were lost says so.
    fn confess_losses(&mut self) -> Result<(), AuditError> {
        if self.lost == 0 {
            return Ok(());
        }
        let lost = self.lost;
        let event = Event::Limit {
            what: "audit".to_owned(),
            detail: format!("{lost} records could not be written"),
        };
        let outcome = self.write(&Who::default(), &event);
        match &outcome {
            Ok(()) => {
                self.lost = 0;
                self.error = None;
            }
            // Not one more of what was asked through the boundary.
            Err(_) => self.lost = lost,
        }
        outcome
    }
}

#[cfg(test)]
mod tests;
