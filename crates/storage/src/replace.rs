//! Replacing a file as a whole: readers see the old content or the new.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{self, Write};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::fs::{self, AtFlags, Mode, OFlags};

use crate::StorageError;
use crate::secret::random_hex;

/// Bytes of a file's name that stand in that of its draft; some file systems take 255 in all.
const NAME_BYTES: usize = 200;

/// Whether a write is over before the disk has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disk {
    Wait,
    /// For what can be made again.
    Later,
}

/// Replace the file at `path`, or make it. A link there is replaced, not followed. With a mode the file has it from its
/// first byte; without one it is as the umask says. What a killed writer leaves is called `<name>.tmp-…`.
pub fn replace_file(path: &Path, bytes: &[u8], mode: Option<u32>, disk: Disk) -> Result<(), StorageError> {
    let attempt = |draft: &OsStr, name: &OsStr| {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = File::open(parent.unwrap_or(Path::new(".")))?;
        let directory = directory.as_fd();
        through_draft(directory, draft, bytes, mode, disk, || {
            fs::renameat(directory, draft, directory, name).map_err(io::Error::from)
        })
    };
    let name = path.file_name().ok_or_else(|| StorageError::UnsafeName {
        name: path.display().to_string(),
    })?;
    let start = &name.as_bytes()[..name.len().min(NAME_BYTES)];
    let mut draft = OsStr::from_bytes(start).to_owned();
    draft.push(OsString::from(format!(".tmp-{}", random_hex::<8>()?)));
    attempt(&draft, name).map_err(StorageError::file("write", path))
}

/// The mode of the file at `path`, if there is one.
pub fn mode_of(path: &Path) -> Option<u32> {
    Some(std::fs::metadata(path).ok()?.mode() & 0o7777)
}

/// Write a draft beside the place where it goes, and publish it; of a failure nothing is left.
pub(crate) fn through_draft(
    directory: BorrowedFd<'_>,
    draft: &OsStr,
    bytes: &[u8],
    mode: Option<u32>,
    disk: Disk,
    publish: impl FnOnce() -> io::Result<()>,
) -> io::Result<()> {
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let created = Mode::from_raw_mode(if mode.is_some() { 0o600 } else { 0o666 });
    let mut file = File::from(fs::openat(directory, draft, flags, created)?);
    let attempt = || -> io::Result<()> {
        if let Some(mode) = mode {
            // Before the first byte: the mode of the open is subject to the umask.
            fs::fchmod(&file, Mode::from_raw_mode(mode as fs::RawMode))?;
        }
        file.write_all(bytes)?;
        if disk == Disk::Wait {
            file.sync_all()?;
        }
        publish()?;
        if disk == Disk::Wait {
            fs::fsync(directory)?;
        }
        Ok(())
    };
    attempt().inspect_err(|_| {
        // What is left of it, if anything; the first error is the one worth telling.
        let _ = fs::unlinkat(directory, draft, AtFlags::empty());
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::{Disk, mode_of, replace_file};

    #[test]
    fn a_file_is_replaced_with_its_mode_and_nothing_is_left_beside_it() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("x".repeat(255));
        for (mode, text) in [(Some(0o600), "private"), (Some(0o640), "shared")] {
            for disk in [Disk::Wait, Disk::Later] {
                replace_file(&path, text.as_bytes(), mode, disk).unwrap();
                assert_eq!(std::fs::read_to_string(&path).unwrap(), text);
                assert_eq!(mode_of(&path), mode);
            }
        }
        let open = base.path().join("open");
        replace_file(&open, b"", None, Disk::Wait).unwrap();
        assert_eq!(mode_of(&open).unwrap() & 0o400, 0o400);
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_link_is_replaced_and_a_directory_is_not() {
        let base = tempfile::tempdir().unwrap();
        let (victim, link) = (base.path().join("victim"), base.path().join("link"));
        std::fs::write(&victim, "kept").unwrap();
        symlink(&victim, &link).unwrap();
        replace_file(&link, b"new", Some(0o600), Disk::Wait).unwrap();
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "kept");
        assert!(!link.is_symlink());
        std::fs::create_dir(base.path().join("full")).unwrap();
        assert!(replace_file(&base.path().join("full"), b"", None, Disk::Wait).is_err());
        assert!(replace_file(&base.path().join("no/file"), b"", None, Disk::Wait).is_err());
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 3);
    }
}
