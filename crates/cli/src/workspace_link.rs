//! From a command to its workspace: the one it means, started when it does not run.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};
use std::time::Duration;

use beamtalk_client::{Connection, Events, Exit, Fault, Greeting, Place};
use beamtalk_project::build::Package;
use beamtalk_project::lock::Locking;
use beamtalk_project::{Network, Project};
use beamtalk_storage::{NodeInfo, SessionName, StateDirectory};
use beamtalk_workspace::{StartOptions, StartOrder, StartReport};

use crate::terminal::Terminal;

/// A workspace that answered.
pub(crate) struct Found {
    pub(crate) info: NodeInfo,
    /// This command started it; what the daemon said then.
    pub(crate) started: Option<StartReport>,
}

/// What an earlier run of the workspace left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    Everything,
    /// Secrets, build output and pending changes go.
    Nothing,
}

/// The state directory; what had to be tightened is told.
pub(crate) fn open_state(terminal: &mut Terminal) -> Result<StateDirectory, Fault> {
    let state = StateDirectory::open(None)?;
    for notice in state.take_notices() {
        terminal.error(notice);
    }
    Ok(state)
}

/// The workspace a command means: by flag, by variable, or by the directory it stands in.
pub(crate) fn find_place(terminal: &mut Terminal, name: Option<&str>) -> anyhow::Result<Place> {
    let state = open_state(terminal)?;
    let flag = terminal.workspace.clone();
    let here = std::env::current_dir()?;
    Ok(Place::find(state, name.or(flag.as_deref()), &here, |line| {
        terminal.error(line);
    })?)
}

/// The running daemon, or a new one.
pub(crate) fn find_or_start(
    place: &Place,
    terminal: &mut Terminal,
    options: &StartOptions,
) -> anyhow::Result<Found> {
    match place.wait_for_daemon()? {
        Some(info) => Ok(Found { info, started: None }),
        None => start(place, terminal, options, Trust::Everything),
    }
}

/// What a daemon for this workspace is started with.
pub(crate) fn order(place: &Place, options: &StartOptions, trust: Trust) -> StartOrder {
    let parent = rustix::process::getppid().map_or(1, |pid| pid.as_raw_nonzero().get().unsigned_abs());
    let session = SessionName::choose(place.is_named.then_some(&place.id), parent);
    StartOrder {
        id: place.id.to_string(),
        session: session.to_string(),
        root: place.root.clone(),
        options: options.clone(),
        clean: matches!(trust, Trust::Nothing),
    }
}

/// Fetch what the project needs and has not got, so that the start does not wait for a network.
fn fetch_dependencies(place: &Place, terminal: &mut Terminal) -> anyhow::Result<()> {
    let found = match Project::at(&place.root) {
        Ok(Some(project)) => Package::resolve(terminal, project, Locking::Follow).map(drop),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    match (found, terminal.network) {
        (Err(error), Network::Refused) => Err(error.into()),
        // The daemon finds the same fault when it builds, and tells it to everybody who joins.
        (_, _) => Ok(()),
    }
}

/// Start a daemon, detached, and wait until it is ready. What it had to say is told.
pub(crate) fn start(
    place: &Place,
    terminal: &mut Terminal,
    options: &StartOptions,
    trust: Trust,
) -> anyhow::Result<Found> {
    let found = launch(place, terminal, options, trust)?;
    for notice in found.started.iter().flat_map(|report| &report.notices) {
        terminal.error(notice);
    }
    Ok(found)
}

/// The same without a word.
#[expect(clippy::disallowed_methods, reason = "the daemon outlives this process")]
pub(crate) fn launch(
    place: &Place,
    terminal: &mut Terminal,
    options: &StartOptions,
    trust: Trust,
) -> anyhow::Result<Found> {
    if !options.no_load {
        fetch_dependencies(place, terminal)?;
    }
    let directory = place.state.create_workspace(&place.id).map_err(Fault::from)?;
    let order = order(place, options, trust);
    let log = directory.create_startup_log().map_err(Fault::from)?;
    let mut daemon = Command::new(std::env::current_exe()?)
        .arg("daemon")
        .arg(serde_json::to_string(&order)?)
        .env("BEAMTALK_HOME", place.state.path())
        .current_dir(&place.root)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()?;
    let Some(output) = daemon.stdout.take() else {
        anyhow::bail!("the daemon has no pipe");
    };
    let report = read_report(output, Duration::from_secs(options.start_timeout_s))?;
    let Some(report) = report else {
        return Err(
            Fault::new(Exit::Internal, "start_failed", "the workspace did not start")
                .with_hint(format!("read {}", directory.startup_log_path().display()))
                .into(),
        );
    };
    if let Some(failure) = &report.error {
        if failure.kind == "taken" {
            if trust == Trust::Nothing {
                let message = "the workspace was started meanwhile by somebody else, and not cleaned";
                return Err(Fault::failure("taken", message)
                    .with_hint("try again; a session that is open somewhere may start it")
                    .into());
            }
            return Ok(Found {
                info: place.wait_for_winner()?,
                started: None,
            });
        }
        return Err(Fault {
            hint: failure.hint.clone(),
            ..Fault::new(Exit::Code(failure.exit), "start_failed", failure.message.clone())
        }
        .into());
    }
    let Some(info) = report.info.clone() else {
        anyhow::bail!("the daemon's report is broken");
    };
    Ok(Found {
        info,
        started: Some(report),
    })
}

/// One line from the daemon's pipe; `None` when it ended without a word.
fn read_report(output: std::process::ChildStdout, limit: Duration) -> Result<Option<StartReport>, Fault> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        drop(BufReader::new(output).read_line(&mut line));
        drop(sender.send(line));
    });
    let line = receiver.recv_timeout(limit).map_err(|_| {
        Fault::not_running(format!(
            "the workspace was not ready within {} s",
            limit.as_secs()
        ))
    })?;
    Ok(serde_json::from_str(&line).ok())
}

/// Do something in a workspace that runs.
pub(crate) fn attached<T>(
    place: &Place,
    info: &NodeInfo,
    work: impl AsyncFnOnce(Connection, Events) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let greeting = Greeting {
            client: "attach",
            resume: None,
        };
        let (connection, events) = place.connect(info, greeting).await?;
        work(connection, events).await
    })
}
