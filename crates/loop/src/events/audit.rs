//! `events.log`: one line for every request that names an event, without value or token.

use std::path::{Path, PathBuf};

use beamtalk_storage::time::{now_micros, timestamp_micros};
use beamtalk_storage::{Directory, RotatingLog, sha256_hex};
use serde::Serialize;

use crate::report::Audit;

const FILE: &str = "events.log";
/// At this size the log is set aside and a new one begun.
const SIZE_LIMIT: u64 = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct AuditLog {
    directory: PathBuf,
    limit: u64,
}

#[derive(Serialize)]
struct Line<'a> {
    ts: String,
    #[serde(flatten)]
    audit: &'a Audit,
}

impl AuditLog {
    pub(crate) fn beside(state_file: &Path) -> Self {
        Self {
            directory: state_file.parent().unwrap_or(Path::new("/")).to_owned(),
            limit: SIZE_LIMIT,
        }
    }

    pub(crate) fn append(&self, audit: &Audit) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(&Line {
            ts: timestamp_micros(now_micros()),
            audit,
        })?;
        line.push(b'\n');
        let directory = Directory::open_existing(&self.directory)?;
        // Anew each time: whoever removes the file, or the directory, gets another one.
        RotatingLog::open(directory, FILE, self.limit, 1)?.write_whole(&line)
    }
}

/// The first hex digits of a value's hash: enough to recognise it, too little to recover it.
pub(crate) fn fingerprint(value: &str) -> String {
    sha256_hex(value.as_bytes())[..8].to_owned()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn audit() -> Audit {
        Audit {
            event: "page".into(),
            via: "http",
            by: "run".into(),
            status: 204,
            changed: Some(true),
            bytes: Some(4),
            sha256: Some(fingerprint("test")),
            workflow: Some("publish".into()),
        }
    }

    #[test]
    fn a_line_is_json_with_the_fingerprint_only() {
        let directory = tempfile::tempdir().unwrap();
        let log = AuditLog::beside(&directory.path().join("state.json"));
        log.append(&audit()).unwrap();
        let text = std::fs::read_to_string(log.directory.join(FILE)).unwrap();
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["sha256"], "9f86d081");
        assert_eq!(line["by"], "run");
        assert!(!text.contains("test"));
        assert_eq!(
            log.directory.join(FILE).metadata().unwrap().permissions().mode() & 0o777,
            0o600
        );
    }

    #[test]
    fn a_full_log_is_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = AuditLog::beside(&directory.path().join("state.json"));
        log.limit = 400;
        for _ in 0..5 {
            log.append(&audit()).unwrap();
        }
        assert!(log.directory.join(FILE).metadata().unwrap().len() <= 400);
        assert!(log.directory.join("events.log.1").exists());
    }
}
