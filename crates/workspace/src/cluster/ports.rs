//! Where the nodes of this user listen: one file for each in `cluster/` of the state directory, under the node's name.
//!
//! Nodes read it to find each other. The daemon holds its file locked for as long as it lives, so a name belongs to
//! one node at a time and what a killed daemon left is known for it.

use std::fs::{File, TryLockError};
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use beamtalk_storage::{Directory, StateDirectory, StorageError};

const DIRECTORY: &str = "cluster";

/// The directory nodes look into.
pub(crate) fn directory(state: &StateDirectory) -> Result<PathBuf, StorageError> {
    Ok(state.directory(DIRECTORY)?.path().to_owned())
}

/// A name that is this daemon's; free again when it is dropped.
#[derive(Debug)]
pub(crate) struct Registration {
    directory: Directory,
    name: String,
    file: File,
}

impl Registration {
    /// Take a name; `None` if another daemon has it.
    pub(crate) fn claim(state: &StateDirectory, name: &str) -> Result<Option<Self>, StorageError> {
        let directory = state.directory(DIRECTORY)?;
        loop {
            let file = directory.append(name)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(cause)) => {
                    return Err(StorageError::file("lock", directory.path_of(name))(cause));
                }
            }
            // Whoever had the name may have removed the file before it was locked here.
            if directory.open(name)?.is_some_and(|now| is_same(&now, &file)) {
                return Ok(Some(Self {
                    directory,
                    name: name.to_owned(),
                    file,
                }));
            }
        }
    }

    /// Tell others the port. A reader sees all of it or, for a moment, nothing.
    pub(crate) fn tell(&mut self, port: u64) -> Result<(), StorageError> {
        let failed = || StorageError::file("write", self.directory.path_of(&self.name));
        self.file.set_len(0).map_err(failed())?;
        let text = format!("{port}\n");
        (&self.file).write_all(text.as_bytes()).map_err(failed())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Still locked: nobody can have taken it for theirs.
        if let Err(error) = self.directory.remove(&self.name) {
            tracing::error!("{error}");
        }
    }
}

fn is_same(one: &File, other: &File) -> bool {
    let identity = |file: &File| file.metadata().map(|found| (found.dev(), found.ino())).ok();
    identity(one).is_some() && identity(one) == identity(other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_belongs_to_one_and_is_free_again() {
        let home = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(Some(home.path().join("h"))).unwrap();
        let claim = || Registration::claim(&state, "a@127.0.0.1").unwrap();
        let path = directory(&state).unwrap().join("a@127.0.0.1");
        // What a killed daemon left keeps nobody out.
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(&path).unwrap().write_all(b"9199\n").unwrap();
        let mut first = claim().unwrap();
        assert!(claim().is_none());
        for port in [9104, 9100] {
            first.tell(port).unwrap();
            assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{port}\n"));
        }
        drop(first);
        assert!(!path.exists());
        assert!(claim().is_some());
    }
}
