//! Each test here tries to break a promise about files: modes, links, owners.

use std::ffi::CString;
use std::fs::{self, Permissions};
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::fs::Mode;
use tempfile::TempDir;

use super::Directory;
use crate::{Class, PidRecord, SecretFault, SessionName, StateDirectory, StorageError, WorkspaceId};

const NOBODY: u32 = 65_534;

fn state() -> (TempDir, StateDirectory) {
    let home = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(Some(home.path().join("state"))).unwrap();
    (home, state)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn orbit() -> WorkspaceId {
    WorkspaceId::named("orbit").unwrap()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Run one ignored test of this file in a process of its own: umask and user belong to a process.
fn run_alone(test: &str, user: Option<u32>) {
    let directory = tempfile::tempdir().unwrap();
    set_mode(directory.path(), 0o755);
    let program = directory.path().join("tests");
    // The build directory may be closed to the other user. Copied by another program: were the file
    // open for writing here, a child that another test starts meanwhile would keep it busy.
    let copied = Command::new("cp")
        .arg(std::env::current_exe().unwrap())
        .arg(&program)
        .status();
    assert!(copied.unwrap().success());
    let mut command = Command::new(program);
    command.args(["--exact", &format!("directory::tests::{test}"), "--ignored"]);
    if let Some(user) = user {
        command.uid(user).current_dir("/");
    }
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[test]
fn cookie_never_wider_than_0600() {
    run_alone("cookie_under_a_umask_of_zero", None);
}

#[test]
#[ignore = "changes the umask: started by cookie_never_wider_than_0600"]
fn cookie_under_a_umask_of_zero() {
    rustix::process::umask(Mode::empty());
    let (_home, state) = state();
    let workspace = state.create_workspace(&orbit()).unwrap();
    for directory in [state.path(), &state.path().join("workspaces"), workspace.path()] {
        assert_eq!(mode(directory), 0o700, "{}", directory.display());
    }
    // A file that was there before, open to all.
    fs::write(workspace.path().join("cookie"), "").unwrap();
    set_mode(&workspace.path().join("cookie"), 0o666);
    let path = workspace.path().to_owned();
    let done = AtomicBool::new(false);
    let seen = std::thread::scope(|scope| {
        let watcher = scope.spawn(|| watch(&path, &done));
        for _ in 0..300 {
            workspace.rotate_cookie().unwrap();
        }
        done.store(true, Ordering::Relaxed);
        watcher.join().unwrap()
    });
    assert!(seen > 300, "the watcher saw only {seen} files");
    assert_eq!(mode(&path.join("cookie")), 0o600);
    assert_eq!(
        fs::read_dir(&path).unwrap().count(),
        1,
        "temporary files are left"
    );
}

/// Look at every file that has a byte in it, until told to stop; answers how many looks.
fn watch(path: &Path, done: &AtomicBool) -> usize {
    let mut seen = 0;
    while !done.load(Ordering::Relaxed) {
        for entry in fs::read_dir(path).unwrap().filter_map(Result::ok) {
            // Opened first, so that length and mode are those of one file.
            let Ok(found) = fs::File::open(entry.path()).and_then(|file| file.metadata()) else {
                continue;
            };
            seen += 1;
            assert!(
                found.len() == 0 || !super::is_open_to_others(found.mode()),
                "{:o}",
                found.mode()
            );
        }
    }
    seen
}

#[test]
fn directories_are_private_under_any_umask() {
    run_alone("directories_under_a_umask_of_all", None);
    if is_root() {
        run_alone("directories_under_a_umask_of_all", Some(NOBODY));
    }
}

#[test]
#[ignore = "changes the umask: started by directories_are_private_under_any_umask"]
fn directories_under_a_umask_of_all() {
    let home = tempfile::tempdir().unwrap();
    rustix::process::umask(Mode::from_raw_mode(0o777));
    let state = StateDirectory::open(Some(home.path().join("a/b/state"))).unwrap();
    let workspace = state.create_workspace(&orbit()).unwrap();
    workspace.create_cookie().unwrap();
    workspace.write_tokens(b"[]").unwrap();
    for path in [
        "a",
        "a/b",
        "a/b/state",
        "a/b/state/workspaces",
        "a/b/state/workspaces/orbit",
    ] {
        assert_eq!(mode(&home.path().join(path)), 0o700, "{path}");
    }
    assert_eq!(mode(&workspace.path().join("tokens.json")), 0o600);
}

#[test]
fn symlink_refused() {
    let (home, state) = state();
    let elsewhere = home.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    set_mode(&elsewhere, 0o700);

    // A directory on the way.
    symlink(&elsewhere, state.path().join("sessions")).unwrap();
    let error = state
        .create_run_directory(&SessionName::choose(None, 1))
        .unwrap_err();
    assert!(matches!(error, StorageError::Symlink { .. }), "{error}");
    assert_eq!(error.class(), Class::Environment);
    assert_eq!(error.class().exit_code(), 5);

    fs::remove_file(state.path().join("sessions")).unwrap();

    // The leaf directory.
    state.directory("workspaces").unwrap();
    symlink(&elsewhere, state.path().join("workspaces/orbit")).unwrap();
    assert!(matches!(
        state.create_workspace(&orbit()),
        Err(StorageError::Symlink { .. })
    ));
    assert!(matches!(
        state.workspace(&orbit()),
        Err(StorageError::Symlink { .. })
    ));
    fs::remove_file(state.path().join("workspaces/orbit")).unwrap();

    // The files: neither read nor written through.
    let workspace = state.create_workspace(&orbit()).unwrap();
    let target = elsewhere.join("target");
    fs::write(&target, "untouched").unwrap();
    set_mode(&target, 0o600);
    for name in ["cookie", "metadata.json", "workspace.log", "startup.log"] {
        symlink(&target, workspace.path().join(name)).unwrap();
    }
    let error = workspace.cookie().unwrap_err();
    assert!(
        matches!(
            error,
            StorageError::Secret {
                fault: SecretFault::Symlink,
                ..
            }
        ),
        "{error}"
    );
    assert_eq!(
        error.repair().as_deref(),
        Some("beamtalk workspace rotate-cookie")
    );
    assert!(workspace.metadata().is_err());
    assert!(workspace.log().is_err());
    workspace.create_startup_log().unwrap();
    // The repair replaces the link and leaves alone what it led to.
    workspace.rotate_cookie().unwrap();
    workspace.cookie().unwrap().unwrap();
    assert_eq!(fs::read_to_string(&target).unwrap(), "untouched");
    // Removing the workspace does not follow links either.
    symlink(&elsewhere, workspace.path().join("changes")).unwrap();
    state
        .remove_workspace(workspace.lock().unwrap().unwrap())
        .unwrap();
    assert!(target.exists());
    assert!(!workspace.path().exists());
}

#[test]
fn the_state_directory_itself_may_be_a_symlink() {
    let home = tempfile::tempdir().unwrap();
    let real = home.path().join("real");
    fs::create_dir(&real).unwrap();
    set_mode(&real, 0o700);
    symlink(&real, home.path().join("state")).unwrap();
    let state = StateDirectory::open(Some(home.path().join("state"))).unwrap();
    assert_eq!(state.path(), real.canonicalize().unwrap(), "resolved once");
    state.create_workspace(&orbit()).unwrap().create_cookie().unwrap();
    assert!(real.join("workspaces/orbit/cookie").exists());
}

#[test]
fn an_open_directory_is_not_resolved_again() {
    let (home, state) = state();
    let workspace = state.create_workspace(&orbit()).unwrap();
    // Somebody swaps the directory while the daemon runs.
    let planted = home.path().join("planted");
    fs::create_dir(&planted).unwrap();
    fs::rename(workspace.path(), home.path().join("moved")).unwrap();
    symlink(&planted, state.path().join("workspaces/orbit")).unwrap();
    workspace.rotate_cookie().unwrap();
    assert_eq!(fs::read_dir(&planted).unwrap().count(), 0);
    assert!(home.path().join("moved/cookie").exists());
}

#[test]
fn foreign_owner_refused() {
    if !is_root() {
        return;
    }
    let (_home, state) = state();
    let workspace = state.create_workspace(&orbit()).unwrap();
    workspace.create_cookie().unwrap();
    let cookie = workspace.path().join("cookie");
    std::os::unix::fs::chown(&cookie, Some(NOBODY), None).unwrap();
    let error = workspace.cookie().unwrap_err();
    assert!(matches!(
        error,
        StorageError::Secret {
            fault: SecretFault::ForeignOwner,
            ..
        }
    ));
    assert_eq!(error.class().exit_code(), 5);
    for name in ["workspaces/orbit", "workspaces", ""] {
        std::os::unix::fs::chown(state.path().join(name), Some(NOBODY), None).unwrap();
        let opened =
            StateDirectory::open(Some(state.path().to_owned())).and_then(|state| state.workspace(&orbit()));
        assert!(matches!(opened, Err(StorageError::ForeignOwner { .. })), "{name}");
        std::os::unix::fs::chown(state.path().join(name), Some(0), None).unwrap();
    }
}

#[test]
fn hardlink_refused() {
    let (_home, state) = state();
    let workspace = state.create_workspace(&orbit()).unwrap();
    workspace.create_cookie().unwrap();
    fs::hard_link(workspace.path().join("cookie"), workspace.path().join("copy")).unwrap();
    assert!(matches!(
        workspace.cookie(),
        Err(StorageError::Secret {
            fault: SecretFault::Links(2),
            ..
        })
    ));
    // The old name keeps the old secret, the new cookie is alone.
    let fresh = workspace.rotate_cookie().unwrap();
    assert_eq!(workspace.cookie().unwrap().unwrap().expose(), fresh.expose());
    let old = fs::read_to_string(workspace.path().join("copy")).unwrap();
    assert_ne!(old.trim_end(), fresh.expose());
}

#[test]
fn a_secret_others_could_read_is_refused() {
    let (_home, state) = state();
    let workspace = state.create_workspace(&orbit()).unwrap();
    workspace.create_cookie().unwrap();
    let cookie = workspace.path().join("cookie");
    for wide in [0o640, 0o604, 0o620, 0o601] {
        set_mode(&cookie, wide);
        let error = workspace.create_cookie().unwrap_err();
        assert!(matches!(error, StorageError::Secret { fault: SecretFault::Mode(mode), .. } if mode == wide));
    }
    set_mode(&cookie, 0o600);
    fs::write(&cookie, "short\n").unwrap();
    let error = workspace.cookie().unwrap_err();
    assert!(matches!(
        error,
        StorageError::Secret {
            fault: SecretFault::Malformed,
            ..
        }
    ));
    assert!(!error.to_string().contains("short"));
}

#[test]
fn a_pipe_or_device_in_the_place_of_a_secret_does_not_block() {
    let (_home, state) = state();
    let workspace = state.create_workspace(&orbit()).unwrap();
    let path = CString::new(workspace.path().join("cookie").to_str().unwrap()).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path.as_c_str(),
        rustix::fs::FileType::Fifo,
        Mode::RUSR | Mode::WUSR,
        0,
    )
    .unwrap();
    assert!(matches!(
        workspace.cookie(),
        Err(StorageError::Secret {
            fault: SecretFault::NotRegular,
            ..
        })
    ));
}

#[test]
fn writable_directories_are_refused_and_readable_ones_tightened() {
    let (_home, state) = state();
    let workspace = state.create_workspace(&orbit()).unwrap();
    let reopen = || {
        let state = StateDirectory::open(Some(state.path().to_owned()))?;
        state.workspace(&orbit())?;
        Ok::<_, StorageError>(state.take_notices())
    };
    for directory in [state.path(), &state.path().join("workspaces"), workspace.path()] {
        for wide in [0o720, 0o702, 0o770, 0o777, 0o1777] {
            set_mode(directory, wide);
            let error = reopen().unwrap_err();
            assert!(
                matches!(error, StorageError::WritableByOthers { .. }),
                "{error} {wide:o}"
            );
            assert_eq!(error.class().exit_code(), 5);
            assert_eq!(
                error.repair().unwrap(),
                format!("chmod 700 {}", directory.display())
            );
        }
        set_mode(directory, 0o755);
        let notices = reopen().unwrap();
        assert_eq!(notices.len(), 1);
        assert_eq!(notices[0].path, directory);
        assert_eq!(mode(directory), 0o700);
        assert!(reopen().unwrap().is_empty());
    }
}

#[test]
fn a_directory_for_another_purpose_is_left_as_it_is() {
    let parent = tempfile::tempdir().unwrap();
    let other = parent.path().join("etc");
    std::fs::create_dir(&other).unwrap();
    std::fs::write(other.join("passwd"), "root").unwrap();
    for wide in [0o755, 0o777, 0o1777] {
        set_mode(&other, wide);
        let error = StateDirectory::open(Some(other.clone())).unwrap_err();
        assert!(matches!(error, StorageError::NotAHome { .. }), "{error}");
        assert_eq!(mode(&other), wide);
    }
    let file = other.join("passwd");
    let error = StateDirectory::open(Some(file)).unwrap_err();
    assert!(!error.repair().unwrap().contains("rm "), "{error}");
    // One that is empty, or ours, is made private.
    std::fs::remove_file(other.join("passwd")).unwrap();
    set_mode(&other, 0o755);
    StateDirectory::open(Some(other.clone())).unwrap();
    assert_eq!(mode(&other), 0o700);
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let (_home, state) = state();
    for name in ["", ".", "..", "a/b", "../x", "a\\b", "a\0b", "a..b"] {
        assert!(
            matches!(state.root().read(name), Err(StorageError::UnsafeName { .. })),
            "{name:?}"
        );
        assert!(state.root().write_secret(name, b"x").is_err());
        assert!(state.directory(name).is_err());
    }
}

#[test]
fn a_write_that_fails_leaves_the_old_content_and_nothing_else() {
    let (_home, state) = state();
    let root = state.root();
    root.write_atomically("kept", b"old", 0o644).unwrap();
    assert_eq!(mode(&root.path_of("kept")), 0o644);
    // A directory cannot be replaced by a file.
    state.directory("taken").unwrap();
    assert!(root.write_secret("taken", b"x").is_err());
    assert_eq!(root.names().unwrap(), ["kept", "taken"]);
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 2);
    assert!(root.create_new("fresh", b"1", 0o600).unwrap());
    assert!(!root.create_new("fresh", b"2", 0o600).unwrap());
    assert_eq!(root.read("fresh").unwrap().unwrap(), b"1");
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 3);
}

#[test]
fn descriptors_do_not_reach_programs_we_start() {
    let (_home, state) = state();
    let workspace = state.create_workspace(&orbit()).unwrap();
    let _lock = workspace.lock().unwrap().unwrap();
    let log = workspace.log().unwrap();
    let output = Command::new("ls").args(["-l", "/proc/self/fd"]).output().unwrap();
    let open = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(!open.contains(state.path().to_str().unwrap()), "{open}");
    drop(log);
}

#[test]
fn eperm_not_removed() {
    if is_root() {
        run_alone("eperm_of_another_users_process", Some(NOBODY));
    } else {
        eperm_of_another_users_process();
    }
}

#[test]
#[ignore = "needs a user who may not signal process 1: started by eperm_not_removed"]
fn eperm_of_another_users_process() {
    let (_home, state) = state();
    let workspace = state.create_workspace(&orbit()).unwrap();
    let lock = workspace.lock().unwrap().unwrap();
    let record = PidRecord {
        pid: 1,
        start_time: 1,
        workspace_id: "orbit".to_owned(),
    };
    let run = crate::RunDirectory::claim(&state, &SessionName::choose(None, 5), &lock, &record).unwrap();
    fs::write(run.socket_path().unwrap(), "").unwrap();
    let error = workspace.clear_stale(&lock).unwrap_err();
    assert!(
        matches!(error, StorageError::ForeignProcess { pid: 1, .. }),
        "{error}"
    );
    assert_eq!(error.class().exit_code(), 5);
    let again = crate::RunDirectory::claim(&state, &SessionName::choose(None, 5), &lock, &record);
    assert!(matches!(again, Err(StorageError::ForeignProcess { .. })));
    let kept: Vec<PathBuf> = fs::read_dir(run.directory().path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert_eq!(kept.len(), 2, "{kept:?}");
}

#[test]
fn a_tree_is_removed_whole() {
    let (_home, state) = state();
    let outer = state.directory("outer").unwrap();
    let (inner, _) = outer.create_directory("inner").unwrap();
    inner.write_atomically("file", b"x", 0o644).unwrap();
    assert!(state.root().remove_tree("outer").unwrap());
    assert!(!state.root().remove_tree("outer").unwrap());
    assert!(
        Directory::open_root(outer.path()).is_ok(),
        "a new one can be made"
    );
}
