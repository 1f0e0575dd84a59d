//! Programs that outlive the loop: started outside the guard, written down beside the state file.
//!
//! A detached process is not stopped when the loop ends, and is found again by the next run. A
//! detached hook runs as any other; what it leaves behind stays.

use std::path::{Path, PathBuf};

use beamtalk_process::{Detached, detached_with_mark};
use serde::{Deserialize, Serialize};

use crate::core::DetachedStatus;

/// The variable by which what a detached hook leaves behind is found.
pub(crate) const MARK: &str = "BEAMTALK_LOOP_DETACHED";

/// One program that was written down.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Entry {
    /// `process NAME` or `hook NAME`.
    name: String,
    pid: u32,
    /// When it started, in ticks since boot.
    started: u64,
}

/// The programs of this state file that outlive the loop.
pub(crate) struct Register {
    file: PathBuf,
    entries: Vec<Entry>,
}

impl Register {
    /// Read what earlier runs wrote; what cannot be read is nobody.
    pub(crate) fn beside(state_file: &Path) -> Self {
        let file = state_file.with_file_name("detached.json");
        let entries = crate::files::read(&file)
            .ok()
            .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            .unwrap_or_default();
        let mut register = Self { file, entries };
        register.forget_the_dead();
        register
    }

    fn forget_the_dead(&mut self) {
        self.entries
            .retain(|entry| Detached::find(entry.pid, entry.started).is_some());
    }

    /// The living program of a process, when there is one.
    pub(crate) fn find(&self, process: &str) -> Option<Detached> {
        let name = format!("process {process}");
        let entry = self.entries.iter().find(|entry| entry.name == name)?;
        Detached::find(entry.pid, entry.started)
    }

    pub(crate) fn add(&mut self, name: String, program: Detached) -> std::io::Result<()> {
        self.forget_the_dead();
        self.entries.push(Entry {
            name,
            pid: program.id(),
            started: program.started(),
        });
        self.save()
    }

    /// Write down what a hook left behind.
    pub(crate) fn add_marked(&mut self, hook: &str, mark: &str) -> std::io::Result<()> {
        for program in detached_with_mark(MARK, mark) {
            self.add(format!("hook {hook}"), program)?;
        }
        Ok(())
    }

    fn save(&self) -> std::io::Result<()> {
        let text = serde_json::to_vec_pretty(&self.entries)?;
        crate::state_file::replace_bytes(&self.file, &text)
    }

    pub(crate) fn statuses(&mut self) -> Vec<DetachedStatus> {
        self.forget_the_dead();
        let status = |entry: &Entry| DetachedStatus {
            name: entry.name.clone(),
            pid: entry.pid,
        };
        self.entries.iter().map(status).collect()
    }
}
