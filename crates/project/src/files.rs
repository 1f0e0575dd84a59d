//! Files: atomic writing, and finding sources below a directory.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::error::{At, Error, Result};

/// Replace a file's content so that nobody ever sees half of it; keeps the mode of the old file.
pub fn write_atomic(path: &Path, content: &[u8]) -> Result<()> {
    write_via_temporary(path, content).at("cannot write", path)
}

fn write_via_temporary(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty())
        .unwrap_or(Path::new("."));
    let mode = match fs::metadata(path) {
        Ok(metadata) => metadata.permissions().mode() & 0o7777,
        Err(_) => 0o666 & !current_umask(),
    };
    let mut temporary = tempfile::Builder::new()
        .prefix(".beamtalk-")
        .tempfile_in(directory)?;
    temporary.write_all(content)?;
    temporary
        .as_file()
        .set_permissions(fs::Permissions::from_mode(mode))?;
    temporary.as_file().sync_all()?;
    temporary.persist(path).map_err(|error| error.error)?;
    File::open(directory)?.sync_all()
}

/// The mask of the running process, read without changing it.
fn current_umask() -> u32 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("Umask:"));
    mask.and_then(|mask| u32::from_str_radix(mask.trim(), 8).ok())
        .unwrap_or(0o022)
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
        } else if !is_hidden && has_extension(&path, extensions) && path.is_file() {
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

/// SHA-256 in hexadecimal.
pub fn hash(bytes: &[u8]) -> String {
    use sha2::{Digest, Sha256};
    use std::fmt::Write as _;
    Sha256::digest(bytes)
        .iter()
        .fold(String::with_capacity(64), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        })
}
