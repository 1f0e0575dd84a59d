//! `run .` and `run --connect`: in the workspace instead of a node of its own.

use std::io::Write;
use std::path::Path;

use beamtalk_client::{Answer, Connection, Reply};
use beamtalk_project::Project;
use beamtalk_project::build::package::Entry;
use beamtalk_repl::Palette;
use beamtalk_wire::Operation;
use beamtalk_wire::answers::EvalAnswer;
use beamtalk_wire::requests::{Eval, RunEntry, SupervisionTree};

use crate::commands::workspace::defaults;
use crate::config::Config;
use crate::exit::{Exit, Fault};
use crate::start_flags::StartFlags;
use crate::terminal::Terminal;
use crate::workspace_link::{attached, find_or_start, find_place};

/// Start the supervisor of `[application]` in the workspace and return.
pub(super) fn serve(terminal: &mut Terminal) -> anyhow::Result<Exit> {
    let project = Project::find(Path::new("."))?;
    let supervisor = project
        .and_then(|project| project.manifest)
        .and_then(|manifest| manifest.supervisor);
    let Some(supervisor) = supervisor else {
        let message = "`run .` needs [application] with a supervisor in beamtalk.toml";
        return Err(Fault::usage("no_application", message)
            .with_hint("write [application] with supervisor = \"MyAppSup\", or run a class method: beamtalk run Main run")
            .into());
    };
    in_workspace(terminal, async |terminal, connection, is_new| {
        let tree = ask(connection, &SupervisionTree::default()).await?;
        let mut nodes = tree.nodes.iter();
        let is_up = nodes.any(|node| node.class.as_ref() == Some(&supervisor));
        if is_up && !is_new {
            terminal.status(format_args!("{supervisor} is running already."));
            return Ok(Exit::Success);
        }
        if !is_up {
            let eval = Eval {
                code: format!("Workspace startSupervisor: {supervisor}"),
                ..Eval::default()
            };
            ask(connection, &eval).await?;
        }
        terminal.status(format_args!("{supervisor} started."));
        Ok(Exit::Success)
    })
}

/// Send the message in the workspace; what it writes is written here, its exit code is ours.
pub(super) fn run_entry(
    terminal: &mut Terminal,
    entry: &Entry,
    words: Option<Vec<String>>,
) -> anyhow::Result<Exit> {
    in_workspace(terminal, async |terminal, connection, _| {
        let program = RunEntry {
            class: entry.class.clone(),
            selector: entry.selector.clone(),
            args: words.clone(),
        };
        let failed = Fault::from;
        let mut pending = connection.send(&program).map_err(failed)?;
        loop {
            match pending.next().await.map_err(failed)? {
                Reply::Output(text) => {
                    let mut out = std::io::stdout().lock();
                    out.write_all(text.as_bytes())?;
                    out.flush()?;
                }
                Reply::NeedsInput(_) => {}
                Reply::Done(message) => return finished(terminal, Answer::read(message)),
            }
        }
    })
}

fn finished(terminal: &Terminal, answer: Answer<EvalAnswer>) -> anyhow::Result<Exit> {
    let answer = match answer.body {
        Ok(answer) => answer,
        Err(error) if terminal.is_json() => {
            return Err(Fault {
                exit: Exit::Failure,
                kind: "raised",
                message: error.message,
                hint: error.hint,
            }
            .into());
        }
        // As a session tells it, and a program that runs alone.
        Err(error) => {
            let palette = if terminal.has_color {
                Palette::Colored
            } else {
                Palette::Plain
            };
            let told = beamtalk_repl::failure(&error, "", palette);
            std::io::stderr().lock().write_all(told.as_bytes())?;
            return Ok(Exit::Failure);
        }
    };
    let status = answer.exit_code.unwrap_or(0);
    Ok(Exit::Program(u8::try_from(status).unwrap_or(1)))
}

/// Do something in the workspace of the project, which is started when it is not running.
pub(crate) fn in_workspace<T>(
    terminal: &mut Terminal,
    work: impl AsyncFnOnce(&mut Terminal, &Connection, bool) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let place = find_place(terminal, None)?;
    let options =
        StartFlags::of_environment()?.options(defaults(&place, Config::of(&place.state)?.start)?)?;
    let found = find_or_start(&place, terminal, &options)?;
    attached(&place, &found.info, async |connection, _| {
        if found.started.is_none() {
            let state = ask(&connection, &beamtalk_repl::state()).await?;
            for line in beamtalk_repl::state_lines(Some(&state)) {
                terminal.status(line);
            }
        }
        work(terminal, &connection, found.started.is_some()).await
    })
}

pub(crate) async fn ask<O: Operation>(connection: &Connection, request: &O) -> anyhow::Result<O::Answer> {
    let answer = connection.ask(request).await;
    Ok(answer.map_err(Fault::from)?)
}
