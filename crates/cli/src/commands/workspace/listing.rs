//! All workspaces of the user, and removing one.

use std::io::{BufRead, IsTerminal, Write};
use std::time::Duration;

use beamtalk_client::Place;
use beamtalk_storage::{StateDirectory, Verdict, WorkspaceId, find_project_root};
use serde_json::{Value, json};

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;
use crate::workspace_link::open_state;

/// How long one may take to say how it is: it must not hide the others.
const LOOK_TIME: Duration = Duration::from_secs(2);

struct Row {
    id: WorkspaceId,
    project_path: Option<String>,
    status: &'static str,
    port: Option<u16>,
    pid: Option<u32>,
    created_at: Option<u64>,
}

pub(super) fn list(terminal: &mut Terminal) -> anyhow::Result<Exit> {
    let state = open_state(terminal)?;
    let current = current(terminal, &state);
    let mut rows = Vec::new();
    for id in state.workspaces().map_err(Fault::from)? {
        rows.push(look(&state, id)?);
    }
    if terminal.is_json() {
        let rows: Vec<Value> = rows
            .iter()
            .map(|row| {
                json!({
                    "workspace_id": row.id.as_str(), "project_path": row.project_path, "status": row.status,
                    "port": row.port, "pid": row.pid, "created_at": row.created_at,
                })
            })
            .collect();
        terminal.print(Value::from(rows))?;
        return Ok(Exit::Success);
    }
    if rows.is_empty() {
        terminal.status("There are no workspaces yet; beamtalk repl makes one.");
    }
    for row in rows {
        let mark = if current.as_ref() == Some(&row.id) {
            "▸"
        } else {
            " "
        };
        let port = row.port.map_or_else(|| "-".to_owned(), |port| port.to_string());
        let project = row.project_path.as_deref().unwrap_or("(metadata unreadable)");
        terminal.print(format_args!(
            "{mark} {:<14} {:<8} {port:>5}  {project}",
            row.id.as_str(),
            row.status
        ))?;
    }
    Ok(Exit::Success)
}

/// The workspace other commands would mean here.
fn current(terminal: &Terminal, state: &StateDirectory) -> Option<WorkspaceId> {
    if let Some(id) = WorkspaceId::explicit(terminal.workspace.as_deref()).ok()? {
        return Some(id);
    }
    let root = find_project_root(&std::env::current_dir().ok()?, state.path()).ok()?;
    WorkspaceId::for_root(&root).ok()
}

/// One workspace; a damaged file of it must not hide the others.
fn look(state: &StateDirectory, id: WorkspaceId) -> anyhow::Result<Row> {
    let mut row = Row {
        id: id.clone(),
        project_path: None,
        status: "stopped",
        port: None,
        pid: None,
        created_at: None,
    };
    let Some(directory) = state.workspace(&id).map_err(Fault::from)? else {
        return Ok(row);
    };
    if let Ok(Some(metadata)) = directory.metadata() {
        row.project_path = Some(metadata.project_path);
        row.created_at = Some(metadata.created_at);
    }
    match directory.judge() {
        Ok(Verdict::NotRunning) => {}
        Ok(Verdict::Running | Verdict::Unsettled) => {
            if let Ok(Some(info)) = directory.node_info() {
                row.port = Some(info.port);
                row.pid = Some(info.pid);
            }
            row.status = match Place::of(state, id).status_within(LOOK_TIME) {
                Ok(Some(status)) if status["node"] == "failed" => "failed",
                Ok(_) => "running",
                Err(_) => "silent",
            };
        }
        Ok(Verdict::Stale | Verdict::ForeignProcess | Verdict::ForeignSocket) | Err(_) => {
            row.status = "stale";
        }
    }
    Ok(row)
}

pub(super) fn remove(terminal: &mut Terminal, name: &str, is_confirmed: bool) -> anyhow::Result<Exit> {
    let state = open_state(terminal)?;
    let id = WorkspaceId::named(name).map_err(Fault::from)?;
    let Some(directory) = state.workspace(&id).map_err(Fault::from)? else {
        return Err(Fault::usage("no_workspace", format!("there is no workspace '{id}'")).into());
    };
    let Some(lock) = directory.lock().map_err(Fault::from)? else {
        let message = format!("workspace '{id}' is running");
        let hint = format!("beamtalk workspace stop {id}");
        return Err(Fault::usage("running", message).with_hint(hint).into());
    };
    if !is_confirmed && !confirm(terminal, &id, &directory.path().display().to_string())? {
        terminal.status("Nothing was deleted.");
        return Ok(Exit::Failure);
    }
    state.remove_workspace(lock).map_err(Fault::from)?;
    if terminal.is_json() {
        terminal.print(json!({"removed": id.as_str()}))?;
    } else {
        terminal.status(format_args!("Workspace {id} deleted."));
    }
    Ok(Exit::Success)
}

fn confirm(terminal: &mut Terminal, id: &WorkspaceId, path: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Fault::usage("not_confirmed", format!("deleting workspace '{id}' needs --yes")).into());
    }
    terminal.error(format_args!(
        "This deletes {path}: cookie, tokens, logs, audit trail and pending changes. Files of the project stay."
    ));
    let mut out = std::io::stderr().lock();
    write!(out, "Delete workspace {id}? [y/N] ")?;
    out.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}
