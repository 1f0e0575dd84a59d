//! A log that grows to a size, is set aside under `.1`, and starts again.

use std::fs::File;
use std::io::{self, Write};

use rustix::io::Errno;

use crate::StorageError;
use crate::directory::Directory;
use crate::tail::identity;

/// Room that is taken beyond what was asked for, so that not every line asks.
const AHEAD: u64 = 256 << 10;

/// An append-only file of mode 0600 with `count` older ones beside it, `.1` the newest.
#[derive(Debug)]
pub struct RotatingLog {
    directory: Directory,
    name: String,
    limit: u64,
    count: u32,
    file: File,
    length: u64,
    /// Up to where the disk has promised room.
    reserved: u64,
    at_line_start: bool,
}

impl RotatingLog {
    pub fn open(directory: Directory, name: &str, limit: u64, count: u32) -> Result<Self, StorageError> {
        let file = directory.append(name)?;
        let length = length_of(&file).map_err(StorageError::file("examine", directory.path_of(name)))?;
        Ok(Self {
            directory,
            name: name.to_owned(),
            limit,
            count,
            file,
            length,
            reserved: 0,
            at_line_start: true,
        })
    }

    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// The files there are of a log, the oldest first; more than are kept now, if more once were.
    pub fn files(directory: &Directory, name: &str) -> Result<Vec<String>, StorageError> {
        // 0 is the current file.
        let number = |file: &str| match file.strip_prefix(name)? {
            "" => Some(0),
            rest => rest.strip_prefix('.')?.parse::<u32>().ok(),
        };
        let names = directory.names()?;
        let mut files: Vec<(u32, String)> = names
            .into_iter()
            .filter_map(|file| Some((number(&file)?, file)))
            .collect();
        files.sort_unstable_by(|one, other| other.cmp(one));
        Ok(files.into_iter().map(|(_, file)| file).collect())
    }

    /// All files of a log, the oldest first, each once.
    pub fn open_all(directory: &Directory, name: &str) -> Result<Vec<(String, File)>, StorageError> {
        let mut files: Vec<(String, File)> = Vec::new();
        let mut seen = Vec::new();
        // From the newest: a rotation under way moves files on to where we still come, so that one is
        // met twice at most and none is missed.
        for name in Self::files(directory, name)?.into_iter().rev() {
            let Some(file) = directory.open(&name)? else {
                continue;
            };
            let identity =
                identity(&file).map_err(StorageError::file("examine", directory.path_of(&name)))?;
            if !seen.contains(&identity) {
                seen.push(identity);
                files.push((name, file));
            }
        }
        files.reverse();
        Ok(files)
    }

    /// Open the file of that name again: somebody may have moved it away.
    pub fn reopen(&mut self) -> Result<(), StorageError> {
        let file = self.directory.append(&self.name)?;
        self.length =
            length_of(&file).map_err(StorageError::file("examine", self.directory.path_of(&self.name)))?;
        self.file = file;
        self.reserved = 0;
        self.at_line_start = true;
        Ok(())
    }

    fn must_rotate(&self, bytes: &[u8]) -> bool {
        let is_full = self.length > 0 && self.length + bytes.len() as u64 > self.limit;
        // A writer may hand over a line in pieces, which belong into one file.
        is_full && (self.at_line_start || self.length > 2 * self.limit)
    }

    /// The file that makes room, for good, when these bytes are written; it need not be there yet.
    pub fn given_up_for(&self, bytes: &[u8]) -> Option<String> {
        let oldest = || match self.count {
            0 => self.name.clone(),
            count => numbered(&self.name, count),
        };
        self.must_rotate(bytes).then(oldest)
    }

    /// Have the disk promise room for so many bytes more, as far as its file system can; an error if there is none.
    pub fn reserve(&mut self, bytes: u64) -> io::Result<()> {
        if self.length + bytes <= self.reserved {
            return Ok(());
        }
        let flags = rustix::fs::FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.file, flags, self.length, bytes + AHEAD) {
            Err(error @ (Errno::NOSPC | Errno::DQUOT | Errno::IO | Errno::ROFS | Errno::FBIG)) => {
                Err(error.into())
            }
            // Not every file system can promise room; then the write itself has to tell.
            _ => {
                self.reserved = self.length + bytes + AHEAD;
                Ok(())
            }
        }
    }

    /// Write bytes as a whole: into one file, and all of them or none.
    pub fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.must_rotate(bytes) {
            self.rotate().map_err(io::Error::other)?;
        }
        if let Err(cause) = self.file.write_all(bytes) {
            // A disk that is full takes a part; without it the next line would begin inside this one.
            self.file.set_len(self.length)?;
            return Err(cause);
        }
        self.length += bytes.len() as u64;
        self.at_line_start = bytes.last().is_none_or(|last| *last == b'\n');
        Ok(())
    }

    fn rotate(&mut self) -> Result<(), StorageError> {
        // First: a disk on which nothing can be made must not cost the oldest file at every try.
        let fresh = format!("{}.new", self.name);
        let file = self.directory.append(&fresh)?;
        for number in (1..self.count).rev() {
            self.directory
                .rename(&numbered(&self.name, number), &numbered(&self.name, number + 1))?;
        }
        if self.count > 0 {
            self.directory.rename(&self.name, &numbered(&self.name, 1))?;
        } else {
            self.directory.remove(&self.name)?;
        }
        self.directory.rename(&fresh, &self.name)?;
        self.file = file;
        self.length = 0;
        self.reserved = 0;
        self.at_line_start = true;
        Ok(())
    }
}

impl Write for RotatingLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_whole(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn numbered(name: &str, number: u32) -> String {
    format!("{name}.{number}")
}

fn length_of(file: &File) -> io::Result<u64> {
    Ok(file.metadata()?.len())
}

#[cfg(test)]
mod tests;
