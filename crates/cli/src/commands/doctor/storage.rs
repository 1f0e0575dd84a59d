//! The state directory: owner, modes, secrets, and what daemons that are dead left behind.

use std::os::unix::fs::PermissionsExt;

use beamtalk_storage::{SecretFault, StateDirectory, StorageError, Verdict, WorkspaceDirectory, WorkspaceId};

use super::{Check, Repair};

const FREE_BYTES: u64 = 256 * 1024 * 1024;

pub(super) fn check(checks: &mut Vec<Check>, repair: Repair) {
    let location = match StateDirectory::location() {
        Ok(location) => location,
        Err(error) => {
            checks.push(Check::bad(
                "home",
                error.to_string(),
                "export BEAMTALK_HOME=$HOME/.beamtalk",
            ));
            return;
        }
    };
    if repair == Repair::Wanted && location.is_dir() {
        let mode = std::fs::Permissions::from_mode(0o700);
        if let Err(error) = std::fs::set_permissions(&location, mode) {
            let fix = format!("chmod 700 {}", location.display());
            checks.push(Check::bad("home mode", error.to_string(), fix));
        }
    }
    let state = match StateDirectory::open(None) {
        Ok(state) => state,
        Err(error) => {
            checks.push(refused("home", &error));
            return;
        }
    };
    checks.push(Check::good("home", state.path().display().to_string()));
    check_workspaces(checks, &state, repair);
    for notice in state.take_notices() {
        checks.push(Check::warning(
            "home mode",
            notice.to_string(),
            "find out what opened it",
        ));
    }
    checks.push(check_space(&state));
}

fn refused(name: &'static str, error: &StorageError) -> Check {
    let fix = error
        .repair()
        .unwrap_or_else(|| "look at the file named".to_owned());
    Check::bad(name, error.to_string(), fix)
}

fn check_workspaces(checks: &mut Vec<Check>, state: &StateDirectory, repair: Repair) {
    let ids = match state.workspaces() {
        Ok(ids) => ids,
        Err(error) => {
            checks.push(refused("workspaces", &error));
            return;
        }
    };
    let before = checks.len();
    for id in &ids {
        match state.workspace(id) {
            Ok(Some(workspace)) => {
                check_secrets(checks, id, &workspace, repair);
                check_life(checks, id, &workspace, repair);
            }
            Ok(None) => {}
            Err(error) => checks.push(refused("workspace", &error)),
        }
    }
    if checks.len() == before {
        let detail = format!("{}, all files acceptable, nothing stale", count(ids.len()));
        checks.push(Check::good("workspaces", detail));
    }
}

fn count(number: usize) -> String {
    match number {
        1 => "1 workspace".to_owned(),
        number => format!("{number} workspaces"),
    }
}

fn check_secrets(checks: &mut Vec<Check>, id: &WorkspaceId, workspace: &WorkspaceDirectory, repair: Repair) {
    let readings = || {
        [
            ("cookie", workspace.cookie().map(drop)),
            ("tokens", workspace.tokens().map(drop)),
        ]
    };
    for (name, read) in readings() {
        let Err(mut error) = read else { continue };
        if repair == Repair::Wanted && close(&error) {
            match readings().into_iter().find(|(again, _)| *again == name) {
                Some((_, Err(still))) => error = still,
                _ => continue,
            }
        }
        let fix = match name {
            "cookie" => format!("beamtalk workspace rotate-cookie {id}"),
            _ => format!(
                "make new tokens and remove {}",
                workspace.path().join("tokens.json").display()
            ),
        };
        checks.push(Check::bad(name, error.to_string(), fix));
    }
    if let Err(error) = workspace.metadata() {
        checks.push(refused("metadata", &error));
    }
}

/// Close a secret to others that is fine otherwise. Others may have read it, which only its owner can judge.
fn close(error: &StorageError) -> bool {
    match error {
        StorageError::Secret {
            path,
            fault: SecretFault::Mode(_),
        } => std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).is_ok(),
        _ => false,
    }
}

fn check_life(checks: &mut Vec<Check>, id: &WorkspaceId, workspace: &WorkspaceDirectory, repair: Repair) {
    match workspace.judge() {
        Ok(Verdict::Running | Verdict::Unsettled | Verdict::NotRunning) => {}
        Ok(Verdict::Stale) => {
            let is_cleared = repair == Repair::Wanted
                && workspace
                    .lock()
                    .ok()
                    .flatten()
                    .is_some_and(|lock| workspace.clear_stale(&lock).is_ok());
            if !is_cleared {
                let detail = format!("a daemon of {id} died and left its socket or records");
                checks.push(Check::warning("stale files", detail, "beamtalk doctor --fix"));
            }
        }
        Ok(Verdict::ForeignProcess | Verdict::ForeignSocket) => {
            let detail = format!("the records of {id} lead to a process of another user");
            let fix = format!("look at {}", workspace.path().display());
            checks.push(Check::bad("foreign files", detail, fix));
        }
        Err(error) => checks.push(refused("workspace", &error)),
    }
}

fn check_space(state: &StateDirectory) -> Check {
    match rustix::fs::statvfs(state.path()) {
        Ok(space) if space.f_bavail.saturating_mul(space.f_frsize) >= FREE_BYTES => {
            Check::good("disk space", "at least 256 MiB free")
        }
        Ok(_) => Check::bad("disk space", "less than 256 MiB free", "make room"),
        Err(error) => Check::warning("disk space", error.to_string(), "check the file system"),
    }
}
