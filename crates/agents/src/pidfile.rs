//! The PID file. Running means: its lock is held.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, Mode, OFlags};

use crate::error::Fatal;
use crate::sys;

pub(crate) const PID_FILE: &str = "anvilsrv.pid";

/// What the PID file says about a daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Instance {
    Absent,
    Stale,
    Running { pid: String },
}

/// The held PID file; removed on drop if it is still ours.
pub(crate) struct PidFile {
    directory: OwnedFd,
    /// Keeps the lock.
    _file: File,
    pid: String,
}

fn open(directory: impl AsFd, flags: OFlags) -> rustix::io::Result<File> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
    rustix::fs::openat(directory, PID_FILE, flags, Mode::from_raw_mode(0o600)).map(File::from)
}

fn content(file: &mut File) -> String {
    let mut bytes = Vec::new();
    // What cannot be read counts as damaged.
    drop(file.take(32).read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).trim().to_owned()
}

impl PidFile {
    /// Become the one daemon of a namespace.
    pub(crate) fn take(directory: &OwnedFd) -> Result<Self, Fatal> {
        for _ in 0..ATTEMPTS {
            match open(directory, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL) {
                Ok(mut file) => {
                    // Until it was locked another one could take it for stale.
                    if !sys::try_lock(&file)? || !is_named(directory, &file) {
                        continue;
                    }
                    let pid = std::process::id().to_string();
                    file.write_all(format!("{pid}\n").as_bytes())?;
                    return Ok(PidFile {
                        directory: directory.try_clone()?,
                        _file: file,
                        pid,
                    });
                }
                Err(rustix::io::Errno::EXIST) => remove_stale(directory)?,
                Err(error) => return Err(std::io::Error::from(error).into()),
            }
        }
        Err(Fatal::AlreadyRunning {
            pid: "unknown".to_owned(),
        })
    }
}

/// A process that was just killed holds its lock a moment longer.
const DYING: Duration = Duration::from_millis(300);
/// How often several that start at once may get into each other's way.
const ATTEMPTS: usize = 5;

/// Whether a file is the one its name leads to.
fn is_named(directory: &OwnedFd, file: &File) -> bool {
    let named = rustix::fs::statat(directory, PID_FILE, AtFlags::SYMLINK_NOFOLLOW);
    match (named, rustix::fs::fstat(file)) {
        (Ok(named), Ok(own)) => (named.st_dev, named.st_ino) == (own.st_dev, own.st_ino),
        _ => false,
    }
}

fn remove_stale(directory: &OwnedFd) -> Result<(), Fatal> {
    let limit = Instant::now() + DYING;
    let held = loop {
        let Ok(mut file) = open(directory, OFlags::RDWR) else {
            break None;
        };
        if sys::try_lock(&file).unwrap_or(true) {
            break Some(file);
        }
        if Instant::now() > limit {
            return Err(Fatal::AlreadyRunning {
                pid: content(&mut file),
            });
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    // Another one was faster, and what has the name now is its own.
    if held.as_ref().is_some_and(|file| !is_named(directory, file)) {
        return Ok(());
    }
    match rustix::fs::unlinkat(directory, PID_FILE, AtFlags::empty()) {
        Ok(()) | Err(rustix::io::Errno::NOENT) => Ok(()),
        Err(rustix::io::Errno::ISDIR) => rustix::fs::unlinkat(directory, PID_FILE, AtFlags::REMOVEDIR)
            .map_err(|e| std::io::Error::from(e).into()),
        Err(error) => Err(std::io::Error::from(error).into()),
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let ours = open(&self.directory, OFlags::RDONLY).is_ok_and(|mut file| content(&mut file) == self.pid);
        if ours {
            // The directory may be gone; then so is the file.
            rustix::fs::unlinkat(&self.directory, PID_FILE, AtFlags::empty()).ok();
        }
    }
}

/// Whether a daemon runs in `namespace`, without taking its lock.
pub fn probe_instance(namespace: &Path) -> Instance {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let Ok(directory) = rustix::fs::open(namespace, flags, Mode::empty()) else {
        return Instance::Absent;
    };
    match open(&directory, OFlags::RDONLY) {
        Ok(mut file) => match sys::is_locked(&file) {
            Ok(true) => Instance::Running {
                pid: content(&mut file),
            },
            _ => Instance::Stale,
        },
        Err(rustix::io::Errno::NOENT) => Instance::Absent,
        Err(_) => Instance::Stale,
    }
}

/// Remove a stale file; used by `stop`.
pub(crate) fn remove_if_stale(namespace: &Path) {
    let flags = OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    if let Ok(directory) = rustix::fs::open(namespace, flags, Mode::empty()) {
        // A daemon that appeared meanwhile keeps its file.
        drop(remove_stale(&directory));
    }
}

impl Instance {
    /// Remove the file this stale instance left.
    pub fn clean_up(&self, namespace: &Path) {
        if *self == Instance::Stale {
            remove_if_stale(namespace);
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{Mode, OFlags};

    use super::{Instance, PID_FILE, PidFile, probe_instance};

    #[test]
    fn hostile_files_are_no_obstacle_and_a_held_lock_is() {
        let base = tempfile::tempdir().unwrap();
        let directory = rustix::fs::open(base.path(), OFlags::DIRECTORY, Mode::empty()).unwrap();
        let path = base.path().join(PID_FILE);
        let victim = base.path().join("victim");
        std::fs::write(&victim, "keep").unwrap();
        std::os::unix::fs::symlink(&victim, &path).unwrap();
        assert_eq!(probe_instance(base.path()), Instance::Stale);
        drop(PidFile::take(&directory).unwrap());
        assert_eq!(std::fs::read_to_string(&victim).unwrap(), "keep");
        for hostile in ["1\n", "-1", "99999999999999999999", "\u{0}garbage", ""] {
            std::fs::write(&path, hostile).unwrap();
            assert_eq!(probe_instance(base.path()), Instance::Stale, "{hostile:?}");
            let held = PidFile::take(&directory).unwrap();
            let pid = std::process::id().to_string();
            assert_eq!(
                probe_instance(base.path()),
                Instance::Running { pid: pid.clone() }
            );
            let refused = PidFile::take(&directory).err().unwrap().to_string();
            assert_eq!(refused, format!("anvilsrv already running (PID {pid})"));
            drop(held);
            assert_eq!(probe_instance(base.path()), Instance::Absent);
        }
    }
}
