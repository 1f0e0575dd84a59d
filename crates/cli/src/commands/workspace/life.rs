//! Making, starting and stopping workspaces.

use beamtalk_client::Place;
use beamtalk_storage::Metadata;
use beamtalk_workspace::{StartOptions, StartReport};
use serde_json::{Value, json};

use crate::commands::daemon::agents_door;
use crate::config::Config;
use crate::exit::{Exit, Fault};
use crate::start_flags::StartFlags;
use crate::terminal::Terminal;
use crate::workspace_link::{Trust, find_or_start, find_place, open_state, order};

pub(super) fn create(
    terminal: &mut Terminal,
    name: &str,
    starts: bool,
    flags: &StartFlags,
) -> anyhow::Result<Exit> {
    let place = find_place(terminal, Some(name))?;
    if place.directory()?.is_some() {
        let message = format!("there is a workspace '{name}' already");
        let hint = format!("beamtalk workspace start {name}");
        return Err(Fault::usage("workspace_exists", message).with_hint(hint).into());
    }
    let options = flags.options(Config::of(&place.state)?.start)?;
    let directory = place.state.create_workspace(&place.id).map_err(Fault::from)?;
    let created_at = beamtalk_storage::time::now_seconds();
    let mut metadata = Metadata::new(&place.id, &place.root.display().to_string(), created_at);
    metadata.capabilities = options.capabilities();
    if let Value::Object(start) = serde_json::to_value(&options)? {
        metadata.start = start;
    }
    directory.write_metadata(&metadata).map_err(Fault::from)?;
    if starts {
        return start_at(terminal, &place, &options, flags);
    }
    if terminal.is_json() {
        terminal.print(json!({"workspace_id": place.id.as_str(), "project_path": place.root}))?;
    } else {
        terminal.print(format_args!(
            "Workspace {name} created for {}.",
            place.root.display()
        ))?;
    }
    Ok(Exit::Success)
}

pub(super) fn start(terminal: &mut Terminal, name: Option<&str>, flags: &StartFlags) -> anyhow::Result<Exit> {
    let place = find_place(terminal, name)?;
    let options = flags.options(defaults(&place, Config::of(&place.state)?.start)?)?;
    start_at(terminal, &place, &options, flags)
}

fn start_at(
    terminal: &mut Terminal,
    place: &Place,
    options: &StartOptions,
    flags: &StartFlags,
) -> anyhow::Result<Exit> {
    let found = find_or_start(place, terminal, options)?;
    if found.started.is_none() {
        warn_without_effect(terminal, place, flags)?;
    }
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

/// Flags belong to a start: say so when the workspace runs with others.
pub(crate) fn warn_without_effect(
    terminal: &mut Terminal,
    place: &Place,
    flags: &StartFlags,
) -> anyhow::Result<()> {
    let Some(running) = flags_of_last_start(place)? else {
        return Ok(());
    };
    if flags.options(running.clone())? != running {
        terminal.error(format_args!(
            "warning: workspace {} runs with other flags; those given have no effect until it is restarted",
            place.id
        ));
    }
    Ok(())
}

/// The flags of the last start, or those it was created with.
pub(crate) fn flags_of_last_start(place: &Place) -> anyhow::Result<Option<StartOptions>> {
    let Some(metadata) = place.metadata()?.filter(|metadata| !metadata.start.is_empty()) else {
        return Ok(None);
    };
    let options = serde_json::from_value(Value::Object(metadata.start));
    Ok(Some(options.map_err(|cause| {
        Fault::usage("corrupt_state", format!("the flags of the last start: {cause}"))
    })?))
}

/// What flags are laid over: for the first start what `create` was told, otherwise the configuration. A workspace that
/// was not stopped on purpose stays as restricted as it was.
pub(crate) fn defaults(place: &Place, config: StartOptions) -> anyhow::Result<StartOptions> {
    let Some(last) = flags_of_last_start(place)? else {
        return Ok(config);
    };
    let was_started = match place.directory()? {
        Some(directory) => directory.startup_log_path().exists(),
        None => false,
    };
    if !was_started {
        return Ok(last);
    }
    let was_stopped = place.metadata()?.is_some_and(|metadata| metadata.stopped);
    Ok(if was_stopped {
        config
    } else {
        config.restricted_as(&last)
    })
}

/// Be the daemon, in this process and this session.
pub(super) fn start_in_foreground(
    terminal: &mut Terminal,
    name: Option<&str>,
    flags: &StartFlags,
) -> anyhow::Result<Exit> {
    let place = find_place(terminal, name)?;
    let options = flags.options(defaults(&place, Config::of(&place.state)?.start)?)?;
    if place.control()?.is_some() {
        warn_without_effect(terminal, &place, flags)?;
        terminal.status(format_args!("Workspace {} runs already.", place.id));
        return Ok(Exit::Success);
    }
    let directory = place.state.create_workspace(&place.id).map_err(Fault::from)?;
    directory.create_startup_log().map_err(Fault::from)?;
    rustix::process::umask(rustix::fs::Mode::from_raw_mode(0o077));
    std::env::set_current_dir(&place.root)?;
    let mut failure = None;
    let order = order(&place, &options, Trust::Everything);
    let service = Box::new(crate::commands::mcp::make_service);
    let ended = beamtalk_workspace::run(order, (agents_door(), service), |report| {
        failure = tell(terminal, &place, report);
    });
    match (ended, failure) {
        (Ok(()), _) => Ok(Exit::Success),
        (Err(_), Some(fault)) => Err(fault.into()),
        (Err(error), None) => Err(error.into()),
    }
}

fn tell(terminal: &mut Terminal, place: &Place, report: StartReport) -> Option<Fault> {
    for notice in &report.notices {
        terminal.error(format_args!("{notice}"));
    }
    if let Some(info) = report.info {
        terminal.status(format_args!("Workspace {} runs on port {}.", place.id, info.port));
    }
    report.error.map(|error| Fault {
        exit: Exit::Code(error.exit),
        kind: "start_failed",
        message: error.message,
        hint: error.hint,
    })
}

pub(super) fn stop(terminal: &mut Terminal, name: Option<&str>, force: bool) -> anyhow::Result<Exit> {
    let place = find_place(terminal, name)?;
    let was_running = place.stop("stop", force)?;
    report_stop(terminal, &place, was_running)
}

fn report_stop(terminal: &mut Terminal, place: &Place, was_running: bool) -> anyhow::Result<Exit> {
    if terminal.is_json() {
        terminal.print(json!({"workspace_id": place.id.as_str(), "was_running": was_running}))?;
    } else if was_running {
        terminal.status(format_args!("Workspace {} stopped.", place.id));
    } else {
        terminal.status(format_args!("Workspace {} is not running.", place.id));
    }
    Ok(Exit::Success)
}

pub(super) fn stop_all(terminal: &mut Terminal, force: bool) -> anyhow::Result<Exit> {
    let state = open_state(terminal)?;
    let mut is_any = false;
    for id in state.workspaces().map_err(Fault::from)? {
        let place = Place::of(&state, id);
        if place.stop("stop", force)? {
            is_any = true;
            report_stop(terminal, &place, true)?;
        }
    }
    if !is_any {
        terminal.status("No workspace is running.");
    }
    Ok(Exit::Success)
}
