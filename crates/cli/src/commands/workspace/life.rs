//! Starting, stopping, and what a workspace says of itself.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::exit::Exit;
use crate::start_flags::StartFlags;
use crate::terminal::Terminal;
use crate::workspace_link::{Place, control_answer};

/// How long a workspace may take to stop: evaluations, supervisors, and a little more.
const STOP_TIME: Duration = Duration::from_secs(20);

pub(super) fn start(terminal: &mut Terminal, name: Option<&str>, flags: &StartFlags) -> anyhow::Result<Exit> {
    let place = Place::find(terminal, name)?;
    let options = flags.options(beamtalk_workspace::StartOptions::default())?;
    let found = place.find_or_start(terminal, &options)?;
    let port = found.info.port;
    if terminal.is_json() {
        terminal.print(json!(found.info))?;
    } else if found.started.is_some() {
        terminal.print(format_args!("Workspace {} runs on port {port}.", place.id))?;
    } else {
        terminal.print(format_args!(
            "Workspace {} runs already, on port {port}.",
            place.id
        ))?;
    }
    Ok(Exit::Success)
}

pub(super) fn status(terminal: &mut Terminal, name: Option<&str>) -> anyhow::Result<Exit> {
    let place = Place::find(terminal, name)?;
    let (mut control, _) = place.require_control()?;
    let status = control_answer(control.call(&json!({"op": "status"}))?)?;
    terminal.print(serde_json::to_string_pretty(&status)?)?;
    Ok(Exit::Success)
}

pub(super) fn stop(terminal: &mut Terminal, name: Option<&str>, force: bool) -> anyhow::Result<Exit> {
    let place = Place::find(terminal, name)?;
    let Some((mut control, _)) = place.control()? else {
        terminal.status(format_args!("Workspace {} is not running.", place.id));
        return Ok(Exit::Success);
    };
    control_answer(control.call(&json!({"op": "stop", "force": force}))?)?;
    let deadline = Instant::now() + STOP_TIME;
    while Instant::now() < deadline {
        if place.running()?.is_none() {
            terminal.status(format_args!("Workspace {} stopped.", place.id));
            return Ok(Exit::Success);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    anyhow::bail!("workspace {} does not stop; try --force", place.id)
}
