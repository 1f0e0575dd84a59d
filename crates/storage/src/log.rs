//! A log that grows to a size, is set aside under `.1`, and starts again.

use std::fs::File;
use std::io::{self, Write};

use crate::StorageError;
use crate::directory::Directory;

/// An append-only file of mode 0600 with `count` older ones beside it, `.1` the newest.
#[derive(Debug)]
pub struct RotatingLog {
    directory: Directory,
    name: String,
    limit: u64,
    count: u32,
    file: File,
    length: u64,
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
        })
    }

    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Names of all the files there may be, the oldest first, the current one last.
    pub fn names(name: &str, count: u32) -> Vec<String> {
        let older = (1..=count).rev().map(|number| numbered(name, number));
        older.chain([name.to_owned()]).collect()
    }

    /// Open the file of that name again: somebody may have moved it away.
    pub fn reopen(&mut self) -> Result<(), StorageError> {
        let file = self.directory.append(&self.name)?;
        self.length =
            length_of(&file).map_err(StorageError::file("examine", self.directory.path_of(&self.name)))?;
        self.file = file;
        Ok(())
    }

    /// Write bytes as a whole: into one file, and all of them or none.
    pub fn write_whole(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.length > 0 && self.length + bytes.len() as u64 > self.limit {
            self.rotate().map_err(io::Error::other)?;
        }
        if let Err(cause) = self.file.write_all(bytes) {
            // A disk that is full takes a part; without it the next line would begin inside this one.
            self.file.set_len(self.length)?;
            return Err(cause);
        }
        self.length += bytes.len() as u64;
        Ok(())
    }

    fn rotate(&mut self) -> Result<(), StorageError> {
        for number in (1..self.count).rev() {
            self.directory
                .rename(&numbered(&self.name, number), &numbered(&self.name, number + 1))?;
        }
        if self.count > 0 {
            self.directory.rename(&self.name, &numbered(&self.name, 1))?;
        } else {
            self.directory.remove(&self.name)?;
        }
        self.reopen()
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
