//! The state file: one owner, whole at every instant.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use beamtalk_process::entry_of;
use beamtalk_storage::{Disk, PRIVATE_FILE, mode_of, replace_file};
use serde_json::Value;

use crate::error::Fatal;
use crate::files;

/// A run that was killed a moment ago lives until the kernel has taken it down.
const DYING_PATIENCE: Duration = Duration::from_millis(200);

/// How long a new run waits for the guard of a dead one.
const GUARD_PATIENCE: Duration = Duration::from_secs(10);

/// The file beside the state file with `suffix` appended to its name.
fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(suffix);
    path.with_file_name(name)
}

/// Make the directory of the state file, private to the user.
fn make_directory(path: &Path) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    if directory.is_dir() {
        return Ok(());
    }
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o755)
        .create(directory)
}

/// Take the lock of a state file, waiting for the guard of a run that is gone.
pub(crate) async fn lock(state: &Path) -> Result<File, Fatal> {
    let path = beside(state, ".lock");
    let failed = |cause| Fatal::Lock {
        path: path.clone(),
        cause,
    };
    make_directory(state).map_err(failed)?;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    let mut file = files::open(&path, options.mode(0o600)).map_err(failed)?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::Error(cause)) => return Err(failed(cause)),
            Err(TryLockError::WouldBlock) => {
                let owner = read_owner(&mut file);
                let alive = owner.is_some_and(|(pid, began)| start_of(pid) == Some(began));
                let patience = if alive { DYING_PATIENCE } else { GUARD_PATIENCE };
                if began.elapsed() > patience {
                    let pid = owner.map_or(0, |(pid, _)| pid);
                    return Err(Fatal::Owned {
                        pid,
                        path: state.to_owned(),
                    });
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
    let me = std::process::id();
    file.set_len(0)
        .and_then(|()| file.rewind())
        .and_then(|()| writeln!(file, "{me} {}", start_of(me).unwrap_or(0)))
        .map_err(failed)?;
    Ok(file)
}

/// Remove what killed runs left half written. The lock is held, so nobody writes now.
pub(crate) fn sweep(state: &Path) {
    let target = std::fs::canonicalize(state).unwrap_or_else(|_| state.to_owned());
    let prefix = beside(&target, ".tmp-");
    let (Some(directory), Some(prefix)) = (target.parent(), prefix.file_name()) else {
        return;
    };
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(prefix.as_encoded_bytes()) {
            // One that cannot be removed harms nobody.
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

/// Whether no run owns the state file.
pub fn is_free(state: &Path) -> bool {
    let Ok(file) = files::open(&beside(state, ".lock"), OpenOptions::new().read(true)) else {
        return true;
    };
    !matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
}

/// The process written in a lock file, and when it started.
fn read_owner(file: &mut File) -> Option<(u32, u64)> {
    let mut text = String::new();
    file.rewind().ok()?;
    file.take(100).read_to_string(&mut text).ok()?;
    let mut words = text.split_whitespace();
    Some((words.next()?.parse().ok()?, words.next()?.parse().ok()?))
}

/// When a process started, in ticks since boot; none when it is gone. Where there is no `/proc`
/// a living process starts at 0.
fn start_of(pid: u32) -> Option<u64> {
    match entry_of(pid) {
        Some(entry) => (!entry.is_zombie).then_some(entry.started),
        None if cfg!(target_os = "linux") => None,
        None => {
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)?;
            rustix::process::test_kill_process(pid).ok().map(|()| 0)
        }
    }
}

/// The values in a state file; none when there is no file.
pub fn read(path: &Path) -> Result<BTreeMap<String, Value>, Fatal> {
    let bytes = match files::read(path) {
        Ok(bytes) => bytes,
        Err(cause) if cause.kind() == std::io::ErrorKind::NotFound => return Ok(BTreeMap::new()),
        Err(cause) => {
            return Err(Fatal::ReadState {
                path: path.to_owned(),
                cause,
            });
        }
    };
    serde_json::from_slice(&bytes).map_err(|error| Fatal::ParseState {
        path: path.to_owned(),
        reason: error.to_string(),
    })
}

/// Replace the state file by one with these values: written aside, synced, renamed.
pub(crate) fn write(path: &Path, values: &BTreeMap<String, Value>) -> Result<(), Fatal> {
    replace(path, values).map_err(|cause| Fatal::WriteState {
        path: path.to_owned(),
        cause,
    })
}

fn replace(path: &Path, values: &BTreeMap<String, Value>) -> std::io::Result<()> {
    let mut text = serde_json::to_vec_pretty(values)?;
    text.push(b'\n');
    replace_bytes(path, &text)
}

/// Replace a file of ours: written aside, synced, renamed.
pub(crate) fn replace_bytes(path: &Path, text: &[u8]) -> std::io::Result<()> {
    // A link stays a link: the file it points to is the one that is replaced.
    let target = std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    // Read-only files can be renamed over; the user's wish not to have them written is kept, except
    // for those whom modes do not bind.
    if target.exists() && rustix::fs::access(&target, rustix::fs::Access::WRITE_OK).is_err() {
        return Err(std::io::Error::new(
            std::io::ErrorKind::PermissionDenied,
            "the file is read-only",
        ));
    }
    make_directory(&target)?;
    let mode = mode_of(&target).unwrap_or(PRIVATE_FILE);
    Ok(replace_file(&target, text, Some(mode), Disk::Wait)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn values() -> BTreeMap<String, Value> {
        BTreeMap::from([("b".into(), json!(1)), ("a".into(), json!("x"))])
    }

    #[test]
    fn a_written_file_is_sorted_private_and_reads_back() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("deep/state.json");
        write(&path, &values()).unwrap();
        assert_eq!(
            std::fs::read_to_string(&path).unwrap(),
            "{\n  \"a\": \"x\",\n  \"b\": 1\n}\n"
        );
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(read(&path).unwrap(), values());
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn mode_and_link_of_an_existing_file_are_kept() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().join("real.json");
        let link = directory.path().join("state.json");
        std::fs::write(&real, "{}").unwrap();
        std::fs::set_permissions(&real, std::fs::Permissions::from_mode(0o640)).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        write(&link, &values()).unwrap();
        assert!(link.symlink_metadata().unwrap().is_symlink());
        assert_eq!(read(&real).unwrap(), values());
        assert_eq!(real.metadata().unwrap().permissions().mode() & 0o777, 0o640);
    }

    #[test]
    fn a_corrupt_file_is_an_error_and_a_missing_one_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        assert_eq!(read(&path).unwrap(), BTreeMap::new());
        for text in ["[1]", "{", "", "null", "\"x\""] {
            std::fs::write(&path, text).unwrap();
            assert!(matches!(read(&path), Err(Fatal::ParseState { .. })), "{text}");
        }
    }

    #[test]
    fn a_write_that_fails_leaves_the_old_file_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("state.json");
        write(&path, &values()).unwrap();
        // Its place is taken by something that cannot be replaced.
        let blocked = directory.path().join("blocked");
        std::fs::create_dir_all(blocked.join("inside")).unwrap();
        assert!(matches!(
            write(&blocked, &values()),
            Err(Fatal::WriteState { .. })
        ));
        assert_eq!(read(&path).unwrap(), values());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
    }

    proptest! {
        #[test]
        fn any_bytes_are_values_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("state.json");
            std::fs::write(&path, &bytes).unwrap();
            prop_assert!(read(&path).is_err() || bytes.contains(&0x7b));
        }
    }
}
