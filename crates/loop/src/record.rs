//! Where a running loop is written down for those who know only its config file.
//!
//! `loops/HASH.json` in the state directory of the user: found by the path of the config alone, so
//! that a config that cannot be read any more hides no loop. What it says is believed only when
//! the process it names is the one that wrote it.

use std::path::{Path, PathBuf};

use beamtalk_storage::{PRIVATE_FILE, StateDirectory, StorageError, process_start_time, sha256_hex};
use serde::{Deserialize, Serialize};

const DIRECTORY: &str = "loops";

/// How to reach a running loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    pub socket: PathBuf,
    pub pid: u32,
    /// When the process started, in ticks since boot.
    pub started: u64,
    pub state_file: PathBuf,
    pub config: PathBuf,
}

impl Record {
    /// The loop of a config, when one runs.
    pub fn find(config: &Path) -> Option<Self> {
        let state = StateDirectory::open(None).ok()?;
        let bytes = state.directory(DIRECTORY).ok()?.read(&name(config)).ok()??;
        let record: Self = serde_json::from_slice(&bytes).ok()?;
        let is_alive = process_start_time(record.pid) == Some(record.started);
        // The lock decides: a process may be there and yet have ended its run.
        (is_alive && record.config == config && !crate::is_free(&record.state_file)).then_some(record)
    }

    /// Write down this process as the loop of a config.
    pub(crate) fn write(config: &Path, state_file: &Path) -> Result<(), StorageError> {
        let pid = std::process::id();
        let record = Self {
            socket: crate::control::socket_path(state_file),
            pid,
            started: process_start_time(pid).unwrap_or(0),
            state_file: state_file.to_owned(),
            config: config.to_owned(),
        };
        let text = serde_json::to_vec_pretty(&record).unwrap_or_default();
        let state = StateDirectory::open(None)?;
        state
            .directory(DIRECTORY)?
            .write_atomically(&name(config), &text, PRIVATE_FILE)
    }

    /// The run has ended.
    pub(crate) fn remove(config: &Path) {
        let removed = StateDirectory::open(None)
            .and_then(|state| state.directory(DIRECTORY))
            .and_then(|directory| directory.remove(&name(config)));
        // A record that stays is known to be stale by its process.
        drop(removed);
    }
}

fn name(config: &Path) -> String {
    format!(
        "{}.json",
        &sha256_hex(config.as_os_str().as_encoded_bytes())[..16]
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_names_its_record_by_sixteen_digits_of_its_hash() {
        assert_eq!(name(Path::new("/a/devloop.toml")), "1978e6ba8508bb1d.json");
        assert_ne!(name(Path::new("/a")), name(Path::new("/b")));
    }
}
