//! `beamtalk loop why`: what led to the last runs.

use std::io::Write;

use beamtalk_loop::control::{Answer, Ask};
use beamtalk_loop::core::ARROW;

use super::process::refused;
use super::{Located, no_loop};
use crate::exit::Exit;

/// How many runs are shown when nobody asks for JSON.
const SHOWN: usize = 10;

pub(super) fn why(place: &Located, workflow: Option<String>, json: bool) -> anyhow::Result<Exit> {
    let Some(mut client) = place.connect() else {
        return no_loop();
    };
    let runs = match client.ask(&Ask::Why { workflow })? {
        Answer::Runs(runs) => runs,
        Answer::Error(text) => return refused(&text),
        other => anyhow::bail!("the loop gave an unexpected answer: {other:?}"),
    };
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(&runs)?)?;
        return Ok(Exit::Success);
    }
    for run in runs.iter().skip(runs.len().saturating_sub(SHOWN)) {
        let ms = run.ms.map(|ms| format!(" {ms} ms")).unwrap_or_default();
        writeln!(out, "{} {}{ms}: {}", run.at, run.result, run.cause.join(ARROW))?;
    }
    Ok(Exit::Success)
}
