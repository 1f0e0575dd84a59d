//! Files: atomic writing, and finding sources below a directory.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use beamtalk_storage::{Disk, mode_of, replace_file};

use crate::error::{At, Error, Result};

/// SHA-256 in hexadecimal.
pub use beamtalk_storage::sha256_hex as hash;

/// Replace a file's content so that nobody ever sees half of it; keeps the mode of the old file.
pub fn write_atomic(path: &Path, content: &[u8]) -> Result<()> {
    Ok(replace_file(path, content, mode_of(path), Disk::Wait)?)
}

/// All files below a directory whose extension is one of these, sorted by path. Hidden directories,
/// `_build` and links to directories are not followed.
pub fn find(directory: &Path, extensions: &[&str]) -> Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    collect(directory, extensions, &mut found).at("cannot read directory", directory)?;
    found.sort();
    Ok(found)
}

fn collect(directory: &Path, extensions: &[&str], found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let path = entry.path();
        let name = entry.file_name();
        let is_hidden = name.as_encoded_bytes().starts_with(b".");
        let kind = entry.file_type()?;
        if kind.is_dir() {
            if !is_hidden && name != "_build" {
                collect(&path, extensions, found)?;
            }
        } else if !is_hidden && has_extension(&path, extensions) && (kind.is_file() || path.is_file()) {
            found.push(path);
        }
    }
    Ok(())
}

pub fn has_extension(path: &Path, extensions: &[&str]) -> bool {
    path.extension()
        .is_some_and(|extension| extensions.iter().any(|wanted| extension == *wanted))
}

/// The text of a source file.
pub fn read_source(path: &Path) -> Result<String> {
    let bytes = fs::read(path).at("cannot read", path)?;
    String::from_utf8(bytes).map_err(|_| Error::NotText {
        path: path.to_owned(),
    })
}

/// A path as shown to people: relative to the directory where it can be, with `/`.
pub fn shown(path: &Path, base: &Path) -> String {
    path.strip_prefix(base).unwrap_or(path).display().to_string()
}
