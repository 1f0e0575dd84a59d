//! `beamtalk daemon` and `beamtalk compiler-worker`: the processes behind a workspace, started by others.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use beamtalk_workspace::{AgentsDoor, DoorFault, StartOrder, StartReport};

use crate::exit::Exit;

/// After so long without a job a compiler worker gives back the memory it does not need.
const WORKER_REST: Duration = Duration::from_secs(5);

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// What to serve, as JSON.
    order: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<Exit> {
    let order: StartOrder = serde_json::from_str(&arguments.order)?;
    // A terminal that closes does not end the daemon. It may lead a session already, under an init system.
    let _ = rustix::process::setsid();
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    let service = Box::new(super::mcp::make_service);
    match beamtalk_workspace::run(order, (agents_door(), service), report) {
        Ok(()) => Ok(Exit::Success),
        Err(error) => Ok(Exit::Code(error.class().0)),
    }
}

/// The way into the agents' tree, as any client finds it.
pub(crate) fn agents_door() -> AgentsDoor {
    Arc::new(enter_agents)
}

fn enter_agents() -> Result<beamtalk_ninep::Attachment, DoorFault> {
    beamtalk_agents::enter().map_err(|door| {
        if door.is_denial() {
            DoorFault::Denied(door.to_string())
        } else {
            DoorFault::Unreachable(door.to_string())
        }
    })
}

/// One line to whoever waits, then silence: the pipe must not stay open for the daemon's whole life.
fn report(report: StartReport) {
    let line = serde_json::to_string(&report).unwrap_or_default() + "\n";
    drop(std::io::stdout().write_all(line.as_bytes()));
    drop(std::io::stdout().flush());
    if let Ok(nothing) = OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(&nothing);
    }
}

pub(crate) fn run_compiler_worker() -> anyhow::Result<Exit> {
    let input = std::io::stdin().as_fd().try_clone_to_owned()?;
    let input = beamtalk_process::RestingInput::new(input, WORKER_REST);
    beamtalk_workspace::run_compiler_worker(input, std::io::stdout().lock())?;
    Ok(Exit::Success)
}
