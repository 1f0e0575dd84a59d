use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixListener;

use tempfile::TempDir;

use super::WorkspaceDirectory;
use crate::{
    Capabilities, Metadata, NodeInfo, PidRecord, PortRecord, RunDirectory, SessionName, StateDirectory,
    StorageError, Verdict, WorkspaceId,
};

fn orbit() -> WorkspaceId {
    WorkspaceId::named("orbit").unwrap()
}

fn workspace() -> (TempDir, StateDirectory, WorkspaceDirectory) {
    let home = tempfile::tempdir().unwrap();
    let state = StateDirectory::open(Some(home.path().join("h"))).unwrap();
    let workspace = state.create_workspace(&orbit()).unwrap();
    (home, state, workspace)
}

/// What a daemon that is up has written.
fn start(
    state: &StateDirectory,
    workspace: &WorkspaceDirectory,
    record: &PidRecord,
) -> (RunDirectory, UnixListener) {
    let lock = workspace.lock().unwrap().unwrap();
    let run = RunDirectory::claim(state, &SessionName::choose(None, 3), &lock, record).unwrap();
    let socket = run.socket_path().unwrap();
    let listener = UnixListener::bind(&socket).unwrap();
    let nonce = "q3T0".to_owned();
    workspace
        .write_port(&PortRecord {
            port: 41873,
            nonce: nonce.clone(),
        })
        .unwrap();
    let info = NodeInfo {
        workspace_id: workspace.id().to_string(),
        pid: record.pid,
        start_time: record.start_time,
        node_pid: None,
        port: 41873,
        bind_addr: "127.0.0.1".to_owned(),
        local: None,
        tls: false,
        nonce,
        session: run.session().to_string(),
        socket: socket.to_str().unwrap().to_owned(),
        started_at: 1,
        protocol: "1.0".to_owned(),
        version: "0.1.0".to_owned(),
        capabilities: Capabilities::default(),
    };
    workspace.write_node_info(&info).unwrap();
    assert_eq!(workspace.node_info().unwrap().unwrap(), info);
    (run, listener)
}

#[test]
fn the_lock_has_one_holder() {
    let (_home, state, workspace) = workspace();
    let lock = workspace.lock().unwrap().unwrap();
    assert!(workspace.lock().unwrap().is_none());
    assert!(state.lock_workspace(&orbit()).unwrap().is_none());
    assert!(
        state
            .lock_workspace(&WorkspaceId::named("lamp").unwrap())
            .unwrap()
            .is_some()
    );
    drop(lock);
    assert!(workspace.lock().unwrap().is_some());
    let file = state.path().join("workspaces/orbit.lock");
    assert_eq!(fs::metadata(file).unwrap().mode() & 0o777, 0o600);
    assert_eq!(state.workspaces().unwrap(), [orbit()]);
}

#[test]
fn a_lock_of_a_removed_file_is_no_lock() {
    let (_home, state, workspace) = workspace();
    let lock = workspace.lock().unwrap().unwrap();
    state.remove_workspace(lock).unwrap();
    assert!(state.workspaces().unwrap().is_empty());
    assert!(!state.path().join("workspaces/orbit.lock").exists());
    let first = state.lock_workspace(&orbit()).unwrap();
    assert!(first.is_some());
    assert!(state.lock_workspace(&orbit()).unwrap().is_none());
}

#[test]
fn what_a_dead_daemon_left_is_seen_and_removed() {
    let (_home, state, workspace) = workspace();
    assert_eq!(workspace.judge().unwrap(), Verdict::NotRunning);
    let (run, listener) = start(&state, &workspace, &PidRecord::of_this_process(&orbit()));
    workspace.create_startup_log().unwrap();
    workspace.create_cookie().unwrap();
    assert_eq!(workspace.judge().unwrap(), Verdict::Running);

    // It no longer listens but holds the lock: it starts or stops.
    drop(listener);
    let lock = workspace.lock().unwrap().unwrap();
    assert_eq!(workspace.judge().unwrap(), Verdict::Unsettled);
    drop(lock);
    // The process is alive and the socket is there, yet the lock is free.
    assert_eq!(workspace.judge().unwrap(), Verdict::Stale);

    let lock = workspace.lock().unwrap().unwrap();
    fs::write(workspace.path().join(".tmp-0123"), "left by a killed writer").unwrap();
    workspace.clear_stale(&lock).unwrap();
    assert!(run.directory().names().unwrap().is_empty());
    let left: Vec<String> = workspace.directory().names().unwrap();
    assert_eq!(left, ["cookie", "startup.log"]);
    assert!(!workspace.path().join(".tmp-0123").exists());
    drop(lock);
    assert_eq!(workspace.judge().unwrap(), Verdict::NotRunning);
}

#[test]
fn a_daemon_killed_before_it_wrote_node_info_is_cleared_too() {
    let (_home, state, workspace) = workspace();
    let (run, listener) = start(&state, &workspace, &PidRecord::of_this_process(&orbit()));
    drop(listener);
    workspace.remove_running_records().unwrap();
    let lock = workspace.lock().unwrap().unwrap();
    workspace.clear_stale(&lock).unwrap();
    assert!(run.directory().names().unwrap().is_empty());
}

#[test]
fn the_run_directory_of_another_workspace_is_left_alone() {
    let (_home, state, workspace) = workspace();
    let lamp = WorkspaceId::named("lamp").unwrap();
    let lamp_lock = state.lock_workspace(&lamp).unwrap().unwrap();
    let record = PidRecord::of_this_process(&lamp);
    let run = RunDirectory::claim(&state, &SessionName::choose(None, 3), &lamp_lock, &record).unwrap();
    let lock = workspace.lock().unwrap().unwrap();
    workspace.clear_stale(&lock).unwrap();
    assert_eq!(run.pid_record().unwrap(), Some(record));
}

#[test]
fn metadata_is_never_silently_replaced() {
    let (_home, _state, workspace) = workspace();
    assert_eq!(workspace.metadata().unwrap(), None);
    let metadata = Metadata::new(&orbit(), "/home/ada/orbit", 1_767_225_600);
    workspace.write_metadata(&metadata).unwrap();
    assert_eq!(workspace.metadata().unwrap(), Some(metadata));
    let path = workspace.path().join("metadata.json");
    assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o644);
    for damage in ["", "{", "[]", r#"{"workspace_id":"orbit"}"#] {
        fs::write(&path, damage).unwrap();
        let error = workspace.metadata().unwrap_err();
        assert!(matches!(error, StorageError::CorruptMetadata { .. }));
        assert_eq!(
            error.to_string(),
            format!("workspace metadata file is empty or corrupt: {}", path.display())
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), damage);
    }
}

#[test]
fn the_cookie_survives_and_rotation_replaces_it() {
    let (_home, state, workspace) = workspace();
    assert!(workspace.cookie().unwrap().is_none());
    let cookie = workspace.create_cookie().unwrap();
    let again = state
        .workspace(&orbit())
        .unwrap()
        .unwrap()
        .create_cookie()
        .unwrap();
    assert_eq!(again.expose(), cookie.expose());
    let text = fs::read_to_string(workspace.path().join("cookie")).unwrap();
    assert_eq!(text, format!("{}\n", cookie.expose()));
    let rotated = workspace.rotate_cookie().unwrap();
    assert_ne!(rotated.expose(), cookie.expose());
    assert_eq!(workspace.cookie().unwrap().unwrap().expose(), rotated.expose());
    assert_ne!(
        workspace.create_distribution_cookie().unwrap().expose(),
        rotated.expose()
    );
}
