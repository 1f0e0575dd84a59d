//! Reading a rotating log while it grows.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::os::unix::fs::MetadataExt;

use crate::directory::Directory;
use crate::{RotatingLog, StorageError};

/// The whole lines of a log: first those there are, the oldest first, then those that come.
#[derive(Debug)]
pub struct LogTail {
    directory: Directory,
    name: String,
    current: Option<BufReader<File>>,
    /// The beginning of a line whose end is not written yet.
    part: Vec<u8>,
}

impl LogTail {
    pub fn new(directory: &Directory, name: &str) -> Self {
        Self {
            directory: directory.clone(),
            name: name.to_owned(),
            current: None,
            part: Vec::new(),
        }
    }

    /// The lines that came since the last call, without their ends; none when there are none yet.
    pub fn poll(&mut self) -> Result<Vec<Vec<u8>>, StorageError> {
        let mut lines = Vec::new();
        self.read_current(&mut lines)?;
        let newer = self.newer_files()?;
        if !newer.is_empty() {
            // What was written between reading and rotating.
            self.read_current(&mut lines)?;
        }
        for file in newer {
            lines.extend(self.rest());
            self.current = Some(BufReader::new(file));
            self.read_current(&mut lines)?;
        }
        Ok(lines)
    }

    /// A last line without an end, if there is one.
    pub fn rest(&mut self) -> Option<Vec<u8>> {
        Some(std::mem::take(&mut self.part)).filter(|part| !part.is_empty())
    }

    fn read_current(&mut self, lines: &mut Vec<Vec<u8>>) -> Result<(), StorageError> {
        let Some(current) = &mut self.current else {
            return Ok(());
        };
        loop {
            let read = current.read_until(b'\n', &mut self.part);
            read.map_err(StorageError::file("read", self.directory.path_of(&self.name)))?;
            if self.part.pop_if(|last| *last == b'\n').is_none() {
                return Ok(());
            }
            lines.push(std::mem::take(&mut self.part));
        }
    }

    /// The files after the one that is being read; all of them when it is not there any more.
    fn newer_files(&self) -> Result<Vec<File>, StorageError> {
        let failed = || StorageError::file("examine", self.directory.path_of(&self.name));
        let current = match &self.current {
            Some(current) => Some(identity(current.get_ref()).map_err(failed())?),
            None => None,
        };
        let mut newer = Vec::new();
        for (_, file) in RotatingLog::open_all(&self.directory, &self.name)? {
            if current.is_some() && Some(identity(&file).map_err(failed())?) == current {
                newer.clear();
            } else {
                newer.push(file);
            }
        }
        Ok(newer)
    }
}

pub(crate) fn identity(file: &File) -> io::Result<(u64, u64)> {
    let found = file.metadata()?;
    Ok((found.dev(), found.ino()))
}

#[cfg(test)]
mod tests {
    use super::LogTail;
    use crate::{RotatingLog, StateDirectory};

    #[test]
    fn lines_come_once_and_in_order_through_rotations() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(Some(home.path().join("h"))).unwrap();
        let mut tail = LogTail::new(state.root(), "a.log");
        assert!(tail.poll().unwrap().is_empty(), "there is no log yet");
        let mut log = RotatingLog::open(state.root().clone(), "a.log", 20, 9).unwrap();
        let mut seen = Vec::new();
        for number in 0..40 {
            log.write_whole(format!("line {number:02}\n").as_bytes()).unwrap();
            // Sometimes there were several rotations since the last look.
            if number % 7 == 0 {
                seen.extend(tail.poll().unwrap());
            }
        }
        seen.extend(tail.poll().unwrap());
        let wanted: Vec<Vec<u8>> = (0..40)
            .map(|number| format!("line {number:02}").into_bytes())
            .collect();
        assert_eq!(seen, wanted);
        log.write_whole(b"ha").unwrap();
        assert!(tail.poll().unwrap().is_empty(), "not whole yet");
        log.write_whole(b"lf\n").unwrap();
        assert_eq!(tail.poll().unwrap(), [b"half"]);
        log.write_whole(b"rest").unwrap();
        assert!(tail.poll().unwrap().is_empty());
        assert_eq!(tail.rest().as_deref(), Some(&b"rest"[..]));
        assert_eq!(tail.rest(), None);
    }
}
