//! `beamtalk lsp`: the language server, over standard input and output.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use beamtalk_client::{Endpoint, Place};
use beamtalk_lsp::{Ended, Reach, Setup, Workspaces};
use beamtalk_storage::{StateDirectory, WorkspaceId};

use crate::exit::Exit;
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Print what an editor would get in this directory, and why something is missing.
    #[arg(long)]
    check: bool,
    /// What editors pass to any language server; standard input and output are all there is.
    #[arg(long, hide = true)]
    stdio: bool,
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    if arguments.check {
        let report = beamtalk_lsp::check(&std::env::current_dir()?, &Running);
        return check(terminal, &report);
    }
    let stdio = beamtalk_lsp::stdio()?;
    let setup = Setup {
        log: Box::new(log),
        workspaces: Some(Arc::new(Running)),
    };
    let ended = beamtalk_lsp::serve(&stdio.connection, setup)?;
    stdio.finish();
    Ok(match ended {
        Ended::Properly => Exit::Success,
        Ended::Abruptly => Exit::Failure,
    })
}

fn check(terminal: &mut Terminal, report: &beamtalk_lsp::Report) -> anyhow::Result<Exit> {
    if terminal.is_json() {
        terminal.print(serde_json::json!({ "features": report.features }))?;
    } else {
        for feature in &report.features {
            let mark = if feature.is_there { "ok" } else { "--" };
            terminal.print(format_args!("{mark}  {:<14} {}", feature.name, feature.detail))?;
        }
    }
    Ok(if report.is_usable {
        Exit::Success
    } else {
        Exit::Failure
    })
}

/// What the server has to say beside the protocol goes where editors show it as a log.
fn log(text: &str) {
    drop(writeln!(std::io::stderr(), "{text}"));
}

/// The workspaces of this user that run. None is ever started.
struct Running;

impl Workspaces for Running {
    fn find(&self, root: &Path) -> Result<Option<Reach>, String> {
        let find = || -> anyhow::Result<Option<Reach>> {
            let state = StateDirectory::open(None)?;
            let id = match WorkspaceId::explicit(None)? {
                Some(id) => id,
                None => WorkspaceId::for_root(root)?,
            };
            let place = Place::of(&state, id);
            let Some(info) = place.running()? else {
                return Ok(None);
            };
            let cookie = place.require_directory()?.cookie()?;
            let address = info.local_address();
            Ok(cookie.map(|cookie| Reach {
                endpoint: Endpoint {
                    host: address.ip().to_string(),
                    port: address.port(),
                    tls: None,
                },
                cookie: cookie.expose().to_owned(),
            }))
        };
        find().map_err(|cause| cause.to_string())
    }
}
