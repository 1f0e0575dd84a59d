//! The version of all classes in a small file of the namespace: the mount looks there before it uses what it keeps,
//! which costs it no way to the daemon and back.
//!
//! The daemon writes it before it answers or tells on what made it grow, so whoever heard of a change finds it grown.

use std::fs::File;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use rustix::fs::{AtFlags, CWD, Mode, OFlags};

/// The name of the file.
const NAME: &str = "classes.version";
const WIDTH: usize = size_of::<u64>();

/// The daemon's side.
pub(crate) struct AgeWriter {
    state: Mutex<(u64, File)>,
}

impl AgeWriter {
    /// A new file in the place of one that another daemon left.
    pub(crate) fn create(namespace: impl AsFd) -> std::io::Result<Self> {
        remove(&namespace);
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file: OwnedFd = rustix::fs::openat(&namespace, NAME, flags, Mode::from_raw_mode(0o600))?;
        let writer = AgeWriter {
            state: Mutex::new((0, file.into())),
        };
        writer.grow();
        Ok(writer)
    }

    pub(crate) fn grow(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.0 += 1;
        let written = state.1.write_all_at(&state.0.to_le_bytes(), 0);
        // Who finds no whole number in it asks the daemon.
        if let Err(error) = written.or_else(|_| state.1.set_len(0)) {
            tracing::error!(%error, "the version of the classes cannot be written");
        }
    }
}

/// Gone already is what we want.
pub(crate) fn remove(namespace: impl AsFd) {
    rustix::fs::unlinkat(namespace, NAME, AtFlags::empty()).ok();
}

/// The reader's side.
pub struct Ages {
    file: File,
}

impl Ages {
    /// The file of the daemon of a namespace, if it has one.
    pub fn open(namespace: &Path) -> Option<Self> {
        let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::openat(CWD, namespace.join(NAME), flags, Mode::empty()).ok()?;
        Some(Ages { file: file.into() })
    }

    /// What it is now; `None` if the daemon has to be asked.
    pub(crate) fn now(&self) -> Option<u64> {
        let mut bytes = [0; WIDTH];
        self.file.read_exact_at(&mut bytes, 0).ok()?;
        Some(u64::from_le_bytes(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_growth_is_seen_and_what_another_daemon_left_is_not() {
        let base = tempfile::tempdir().unwrap();
        let namespace = File::open(base.path()).unwrap();
        assert!(Ages::open(base.path()).is_none());
        let first = AgeWriter::create(&namespace).unwrap();
        let old = Ages::open(base.path()).unwrap();
        let second = AgeWriter::create(&namespace).unwrap();
        let ages = Ages::open(base.path()).unwrap();
        let before = ages.now().unwrap();
        first.grow();
        assert_eq!(ages.now(), Some(before));
        second.grow();
        assert_ne!(ages.now(), Some(before));
        assert_eq!(old.now(), Some(before + 1));
        remove(&namespace);
        assert!(Ages::open(base.path()).is_none());
    }

    #[test]
    fn half_a_number_is_none() {
        let base = tempfile::tempdir().unwrap();
        let writer = AgeWriter::create(File::open(base.path()).unwrap()).unwrap();
        let ages = Ages::open(base.path()).unwrap();
        writer.state.lock().unwrap().1.set_len(3).unwrap();
        assert_eq!(ages.now(), None);
    }
}
