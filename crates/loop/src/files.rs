//! Opening files that others can replace: never waiting, and only what is a regular file.
//!
//! A pipe under the name of a config or a log would hold up whoever opens it until somebody comes
//! to the other end, which may be never.

use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind, Read, Result};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// The largest file that is read as a whole. Configs and states are far smaller.
const SIZE_LIMIT: u64 = 256 * 1024 * 1024;

/// Open without waiting; anything but a regular file is an error.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> Result<File> {
    let flags = i32::try_from(OFlags::NONBLOCK.bits()).map_err(Error::other)?;
    let irregular = || Error::new(ErrorKind::InvalidInput, "not a regular file");
    let file = match options.custom_flags(flags).open(path) {
        Ok(file) => file,
        // What a pipe without a reader and a socket answer.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NXIO.raw_os_error()) => {
            return Err(irregular());
        }
        Err(error) => return Err(error),
    };
    let found = file.metadata()?;
    if found.is_dir() {
        return Err(ErrorKind::IsADirectory.into());
    }
    if !found.is_file() {
        return Err(irregular());
    }
    Ok(file)
}

/// The whole content of a file.
pub(crate) fn read(path: &Path) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let file = open(path, OpenOptions::new().read(true))?;
    if file.take(SIZE_LIMIT + 1).read_to_end(&mut bytes)? as u64 > SIZE_LIMIT {
        return Err(Error::new(
            ErrorKind::FileTooLarge,
            format!("larger than {SIZE_LIMIT} bytes"),
        ));
    }
    Ok(bytes)
}

/// The first bytes of a file, at most so many.
pub(crate) fn read_start(path: &Path, limit: u64) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, OpenOptions::new().read(true))?
        .take(limit)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_regular_files_are_opened_and_nobody_waits() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&pipe).status().unwrap();
        assert!(made.success());
        let append = || OpenOptions::new().append(true).create(true).clone();
        for error in [
            read(&pipe).unwrap_err(),
            open(&pipe, &mut append()).unwrap_err(),
            read(Path::new("/dev/zero")).unwrap_err(),
        ] {
            assert_eq!(error.to_string(), "not a regular file");
        }
        let file = directory.path().join("file");
        std::fs::write(&file, "text").unwrap();
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(&file, &link).unwrap();
        assert_eq!(read(&link).unwrap(), b"text");
        assert_eq!(read_start(&file, 2).unwrap(), b"te");
    }
}
