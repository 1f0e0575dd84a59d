use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;

use super::RunDirectory;
use crate::{PidRecord, ProcessState, SessionName, StateDirectory, StorageError, WorkspaceId, WorkspaceLock};

fn id(name: &str) -> WorkspaceId {
    WorkspaceId::named(name).unwrap()
}

#[test]
fn a_terminal_shared_by_two_workspaces_gets_two_directories() {
    let home = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(Some(home.path().join("h"))).unwrap();
    let terminal = SessionName::choose(None, 9);
    let claim = |name: &str, lock: &WorkspaceLock| {
        RunDirectory::claim(&state, &terminal, lock, &PidRecord::of_this_process(&id(name))).unwrap()
    };
    let orbit_lock = state.lock_workspace(&id("orbit")).unwrap().unwrap();
    let lamp_lock = state.lock_workspace(&id("lamp")).unwrap().unwrap();
    let orbit = claim("orbit", &orbit_lock);
    assert_eq!(orbit.session().as_str(), "shell-9");
    let pid_file = orbit.directory().path_of("daemon.pid");
    assert_eq!(fs::metadata(&pid_file).unwrap().mode() & 0o777, 0o600);
    let lamp = claim("lamp", &lamp_lock);
    assert_eq!(lamp.session().as_str(), "shell-9-lamp");
    lamp.release().unwrap();
    // The first daemon dies without a word, its pid file says so, and its lock is free.
    drop(UnixListener::bind(orbit.socket_path().unwrap()).unwrap());
    drop(orbit_lock);
    let lamp = claim("lamp", &lamp_lock);
    assert_eq!(lamp.session().as_str(), "shell-9");
    assert_eq!(lamp.pid_record().unwrap().unwrap().workspace_id, "lamp");
    UnixListener::bind(lamp.socket_path().unwrap()).unwrap();
}

#[test]
fn a_damaged_pid_file_stands_in_nobodys_way() {
    let home = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(Some(home.path().join("h"))).unwrap();
    let lock = state.lock_workspace(&id("orbit")).unwrap().unwrap();
    let terminal = SessionName::choose(None, 9);
    let run = state.create_run_directory(&terminal).unwrap();
    for damage in ["", "{", "7", r#"{"pid":1,"start_time":1,"workspace_id":"../x"}"#] {
        fs::write(run.directory().path_of("daemon.pid"), damage).unwrap();
        let claimed = RunDirectory::claim(
            &state,
            &terminal,
            &lock,
            &PidRecord::of_this_process(&id("orbit")),
        );
        if damage.contains("workspace_id") && !rustix::process::geteuid().is_root() {
            assert!(matches!(claimed, Err(StorageError::ForeignProcess { .. })));
        } else {
            assert_eq!(claimed.unwrap().session(), &terminal, "{damage}");
        }
    }
}

#[test]
fn a_record_knows_its_process() {
    let mut record = PidRecord::of_this_process(&id("orbit"));
    assert_eq!(record.process_state(), ProcessState::Alive);
    if record.start_time != 0 {
        record.start_time += 1;
        assert_eq!(record.process_state(), ProcessState::Reused);
    }
    record.pid = u32::MAX;
    assert_eq!(record.process_state(), ProcessState::Missing);
}

#[test]
fn a_socket_path_too_long_proposes_a_shorter_home() {
    let home = tempfile::tempdir().unwrap();
    let long = home.path().join("x".repeat(100));
    let state = StateDirectory::open(Some(long)).unwrap();
    let run = state.create_run_directory(&SessionName::choose(None, 1)).unwrap();
    let error = run.socket_path().unwrap_err();
    assert!(
        error
            .to_string()
            .contains(if cfg!(target_os = "linux") { "107" } else { "103" }),
        "{error}"
    );
    assert!(error.repair().unwrap().contains("BEAMTALK_HOME"));
}

#[test]
fn the_longest_socket_path_can_be_bound() {
    let home = tempfile::tempdir().unwrap();
    let tail = "/sessions/shell-1/daemon.sock".len();
    let room = super::SOCKET_LIMIT - tail - home.path().as_os_str().len() - 1;
    for (length, fits) in [(room, true), (room + 1, false)] {
        let state = StateDirectory::open(Some(home.path().join("x".repeat(length)))).unwrap();
        let run = state.create_run_directory(&SessionName::choose(None, 1)).unwrap();
        assert_eq!(run.socket_path().is_ok(), fits);
        assert_eq!(
            UnixListener::bind(run.directory().path_of("daemon.sock")).is_ok(),
            fits
        );
    }
}

#[test]
fn login_pages_are_secret_and_go_away() {
    let home = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(Some(home.path().join("h"))).unwrap();
    let run = state.create_run_directory(&SessionName::choose(None, 1)).unwrap();
    let page = run.write_login_page(b"<form>").unwrap();
    assert_ne!(run.write_login_page(b"<form>").unwrap(), page);
    assert_eq!(fs::metadata(&page).unwrap().mode() & 0o777, 0o600);
    run.remove_login_pages().unwrap();
    assert!(run.directory().names().unwrap().is_empty());
    let history = run.history_path().unwrap();
    assert_eq!(fs::metadata(history).unwrap().mode() & 0o777, 0o600);
}
