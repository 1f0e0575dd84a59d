//! State files: replaced atomically, private from the first moment.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use beamtalk_storage::{Disk, PRIVATE_FILE, random_hex, replace_file};

/// Replace `path` by `bytes`, for good.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Ok(replace_file(path, bytes, Some(PRIVATE_FILE), Disk::Wait)?)
}

/// Replace without waiting for the disk, for what can be rebuilt.
pub(crate) fn replace_quickly(path: &Path, bytes: &[u8]) -> io::Result<()> {
    Ok(replace_file(path, bytes, Some(PRIVATE_FILE), Disk::Later)?)
}

pub(crate) fn sync_directory(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Options that make 0600 files, follow no link, and do not wait for the other end of a pipe that
/// somebody put in the place of a file.
pub(crate) fn private() -> OpenOptions {
    let mut options = OpenOptions::new();
    options
        .mode(0o600)
        .custom_flags(libc::O_NOFOLLOW | libc::O_CLOEXEC | libc::O_NONBLOCK);
    options
}

pub(crate) fn appender(path: &Path) -> io::Result<File> {
    private().append(true).create(true).open(path)
}

/// Make a 0700 directory and its missing parents.
pub(crate) fn make_directory(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// At most `limit` bytes of a file that must not be a link.
pub(crate) fn read_limited(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    private()
        .read(true)
        .open(path)?
        .take(limit)
        .read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Remove a directory and all in it. What lies deeper is moved up first, so that neither the depth of
/// a tree nor its modes, which a session chose, make this fail.
pub(crate) fn remove_tree(top: &Path) -> io::Result<()> {
    let mark = random_hex::<8>()?;
    let mut moved = 0_u64;
    loop {
        let mut deeper = false;
        for entry in entries(top)? {
            if !entry.file_type()?.is_dir() {
                fs::remove_file(entry.path())?;
                continue;
            }
            for inner in entries(&entry.path())? {
                if inner.file_type()?.is_dir() {
                    fs::rename(inner.path(), top.join(format!("{mark}-{moved}")))?;
                    moved += 1;
                    deeper = true;
                } else {
                    fs::remove_file(inner.path())?;
                }
            }
            fs::remove_dir(entry.path())?;
        }
        if !deeper {
            return fs::remove_dir(top);
        }
    }
}

/// What is in a directory, whatever its mode was.
fn entries(directory: &Path) -> io::Result<Vec<fs::DirEntry>> {
    fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    fs::read_dir(directory)?.collect()
}

/// The names in a directory, sorted; none if it does not exist.
pub(crate) fn names(directory: &Path) -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(directory)
        .map(|entries| {
            entries
                .flatten()
                .filter_map(|entry| entry.file_name().into_string().ok())
                .collect()
        })
        .unwrap_or_default();
    names.sort();
    names
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::{read_limited, remove_tree};

    #[test]
    fn deep_and_locked_trees_go_and_links_lead_nowhere() {
        let base = tempfile::tempdir().unwrap();
        let (tree, other) = (base.path().join("tree"), base.path().join("other"));
        std::fs::create_dir(&other).unwrap();
        std::fs::write(other.join("kept"), "x").unwrap();
        // Longer than any path can be.
        std::fs::create_dir(&tree).unwrap();
        let mut at =
            rustix::fs::open(&tree, rustix::fs::OFlags::DIRECTORY, rustix::fs::Mode::empty()).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&at, "down", rustix::fs::Mode::RWXU).unwrap();
            let flags = rustix::fs::OFlags::DIRECTORY;
            at = rustix::fs::openat(&at, "down", flags, rustix::fs::Mode::empty()).unwrap();
        }
        symlink(&other, tree.join("link")).unwrap();
        std::fs::create_dir_all(tree.join("locked/in")).unwrap();
        std::fs::set_permissions(tree.join("locked"), std::fs::Permissions::from_mode(0o000)).unwrap();
        remove_tree(&tree).unwrap();
        assert!(!tree.exists() && other.join("kept").exists());
    }

    #[test]
    fn a_pipe_in_the_place_of_a_file_is_not_waited_for() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        assert_eq!(read_limited(&path, 10).unwrap(), b"");
    }
}
