//! What the trail remembers beside itself: the numbers of its first and last record, and how many could not be written
//! since.
//!
//! The file has its size from the beginning and is overwritten in place, which a full disk allows; so records that
//! were lost are known to be lost even when the daemon is killed before it can say so in the trail.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::FileExt;

use beamtalk_storage::{Directory, PRIVATE_FILE, StorageError};

use super::AuditError;

const FILE: &str = "audit.state";

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// The number of the last record that was written.
    pub(super) last: u64,
    /// Records that could not be written and are not yet confessed.
    pub(super) lost: u64,
    /// The number of the oldest record that was not given up for room; 0 where that was not remembered.
    pub(super) first: u64,
}

impl Mark {
    fn text(self) -> String {
        format!("{:020} {:020} {:020}\n", self.last, self.lost, self.first)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut numbers = text.trim_end().split(' ').map(str::parse);
        Some(Self {
            last: numbers.next()?.ok()?,
            lost: numbers.next()?.ok()?,
            // Earlier versions wrote two.
            first: numbers.next().unwrap_or(Ok(0)).ok()?,
        })
    }

    /// What is remembered; `None` where there is no such file, or none that can be read.
    pub(super) fn read(directory: &Directory) -> Result<Option<Self>, AuditError> {
        let bytes = directory.read(FILE)?.unwrap_or_default();
        Ok(String::from_utf8(bytes).ok().and_then(|text| Self::parse(&text)))
    }
}

/// The file, open for overwriting.
#[derive(Debug)]
pub(super) struct MarkFile(File);

impl MarkFile {
    pub(super) fn open(directory: &Directory, mark: Mark) -> Result<Self, AuditError> {
        let length = |file: &mut File| -> io::Result<usize> {
            let mut text = String::new();
            file.read_to_string(&mut text)
        };
        let text = mark.text();
        if let Some(mut file) = directory.open_for_update(FILE)?
            && length(&mut file).is_ok_and(|length| length == text.len())
        {
            return Ok(Self(file));
        }
        directory.write_atomically(FILE, text.as_bytes(), PRIVATE_FILE)?;
        let missing = || StorageError::file("open", directory.path_of(FILE))(io::ErrorKind::NotFound);
        Ok(Self(directory.open_for_update(FILE)?.ok_or_else(missing)?))
    }

    pub(super) fn keep(&self, mark: Mark) -> io::Result<()> {
        self.0.write_all_at(mark.text().as_bytes(), 0)
    }
}
