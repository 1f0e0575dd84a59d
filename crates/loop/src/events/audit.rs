//! `events.log`: one line for every request that names an event, without value or token.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;
use sha2::{Digest, Sha256};

use crate::report::Audit;
use crate::time::{now_micros, timestamp};

/// At this size the log is set aside and a new one begun.
const SIZE_LIMIT: u64 = 1024 * 1024;

#[derive(Debug)]
pub(crate) struct AuditLog {
    path: PathBuf,
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
            path: state_file.with_file_name("events.log"),
            limit: SIZE_LIMIT,
        }
    }

    pub(crate) fn append(&self, audit: &Audit) -> std::io::Result<()> {
        let mut line = serde_json::to_vec(&Line {
            ts: timestamp(now_micros()),
            audit,
        })?;
        line.push(b'\n');
        let mut file = self.open()?;
        if file.metadata()?.len() + line.len() as u64 > self.limit {
            std::fs::rename(&self.path, self.path.with_file_name("events.log.1"))?;
            file = self.open()?;
        }
        file.write_all(&line)
    }

    fn open(&self) -> std::io::Result<File> {
        let mut options = OpenOptions::new();
        crate::files::open_own(&self.path, options.append(true).create(true).mode(0o600))
    }
}

/// The first hex digits of a value's hash: enough to recognise it, too little to recover it.
pub(crate) fn fingerprint(value: &str) -> String {
    let digest = Sha256::digest(value.as_bytes());
    digest
        .iter()
        .take(4)
        .fold(String::new(), |text, byte| text + &format!("{byte:02x}"))
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
        let text = std::fs::read_to_string(&log.path).unwrap();
        let line: serde_json::Value = serde_json::from_str(&text).unwrap();
        assert_eq!(line["sha256"], "9f86d081");
        assert_eq!(line["by"], "run");
        assert!(!text.contains("test"));
        assert_eq!(log.path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_full_log_is_set_aside() {
        let directory = tempfile::tempdir().unwrap();
        let mut log = AuditLog::beside(&directory.path().join("state.json"));
        log.limit = 400;
        for _ in 0..5 {
            log.append(&audit()).unwrap();
        }
        assert!(log.path.metadata().unwrap().len() <= 400);
        assert!(log.path.with_file_name("events.log.1").exists());
    }
}
