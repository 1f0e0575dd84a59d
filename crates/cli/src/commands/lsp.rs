//! `beamtalk lsp`: the language server, over standard input and output.

use beamtalk_lsp::{Ended, Setup};

use crate::exit::Exit;
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {}

pub(crate) fn run(terminal: &mut Terminal, _arguments: &Arguments) -> anyhow::Result<Exit> {
    let _ = terminal;
    let stdio = beamtalk_lsp::stdio()?;
    let setup = Setup { log: Box::new(log) };
    let ended = beamtalk_lsp::serve(&stdio.connection, setup)?;
    stdio.finish();
    Ok(match ended {
        Ended::Properly => Exit::Success,
        Ended::Abruptly => Exit::Failure,
    })
}

/// What the server has to say beside the protocol goes where editors show it as a log.
fn log(text: &str) {
    use std::io::Write;
    drop(writeln!(std::io::stderr(), "{text}"));
}
