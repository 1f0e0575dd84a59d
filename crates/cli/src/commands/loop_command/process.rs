//! `beamtalk loop start|stop|restart|logs PROCESS`: one process of a running loop.

use std::io::Write;

use beamtalk_loop::control::{Answer, Ask, unanswered};
use beamtalk_loop::core::Operation;

use super::{Located, no_loop};
use crate::exit::Exit;

/// Ask for an operation and wait until it is done.
pub(super) fn operate(place: &Located, process: &str, operation: Operation) -> anyhow::Result<Exit> {
    let Some(mut client) = place.connect() else {
        return no_loop();
    };
    let done = match operation {
        Operation::Start => "started",
        Operation::Stop => "stopped",
        Operation::Restart => "restarted",
    };
    match client.ask(&Ask::Process {
        process: process.to_owned(),
        operation,
    })? {
        Answer::Done => {
            writeln!(std::io::stdout(), "{done} process {process}")?;
            Ok(Exit::Success)
        }
        Answer::Error(text) => refused(&text),
        other => anyhow::bail!("the loop gave an unexpected answer: {other:?}"),
    }
}

pub(super) fn refused(text: &str) -> anyhow::Result<Exit> {
    writeln!(std::io::stderr(), "error: {text}")?;
    Ok(Exit::Failure)
}

/// Print the last lines of a process, and with `follow` what it says from then on.
pub(super) fn logs(
    place: &Located,
    process: &str,
    tail: usize,
    follow: bool,
    json: bool,
) -> anyhow::Result<Exit> {
    let Some(mut client) = place.connect() else {
        return no_loop();
    };
    let ask = Ask::Logs {
        process: process.to_owned(),
        tail,
        follow,
    };
    let mut answer = Some(client.ask(&ask)?);
    let mut out = std::io::stdout().lock();
    while let Some(found) = answer {
        match found {
            Answer::Log(said) if json => writeln!(out, "{}", serde_json::to_string(&said)?)?,
            Answer::Log(said) => writeln!(out, "{}", said.line)?,
            Answer::Skipped(count) => {
                writeln!(std::io::stderr(), "warning: {count} lines were left out")?;
            }
            Answer::Lines if follow => out.flush()?,
            Answer::Lines => break,
            Answer::Error(text) => return refused(&text),
            other => anyhow::bail!("the loop gave an unexpected answer: {other:?}"),
        }
        if follow {
            out.flush()?;
        }
        // A loop that ends closes the connection, maybe in the middle of a line.
        answer = client.receive().unwrap_or(None);
        if answer.is_none() && !follow {
            return Err(unanswered().into());
        }
    }
    Ok(Exit::Success)
}
