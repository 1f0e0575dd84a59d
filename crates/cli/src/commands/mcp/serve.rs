//! Standard input and output as a client of the server: lines in, lines out, and an end that leaves nothing running.

use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;
use beamtalk_mcp::{Host, Line, Outgoing, Session, Settings, Way, door};
use tokio::signal::unix::{SignalKind, signal};
use tokio::task::LocalSet;
use tokio::time::{Instant, timeout_at};

use super::host::Workspace;
use super::streams::{Input, Output};
use crate::exit::Exit;

/// After so long without a line the server gives back what it does not need.
const REST: Duration = Duration::from_secs(1);
/// How long what runs may take to end by itself once the input has ended.
const LAST_CALLS: Duration = Duration::from_millis(250);
/// How long writing what is ready may take after the end.
const LAST_WORDS: Duration = Duration::from_millis(500);

pub(crate) fn serve(host: Rc<Workspace>, settings: Rc<Settings>) -> anyhow::Result<Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("no runtime")?;
    let served = LocalSet::new().block_on(&runtime, talk(host, settings));
    // A start that is still waited for must not hold up the end.
    runtime.shutdown_background();
    served
}

async fn talk(host: Rc<Workspace>, settings: Rc<Settings>) -> anyhow::Result<Exit> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut lines = Input::open();
    let (outgoing, answers) = Outgoing::new(host.secrets());
    let mut output = Output::open(answers);
    let (settings, first) = match settings.way {
        // A client at a door may want less than it could have.
        Way::Door => match lines.next().await {
            Some(Line::Text(text)) => match door::heard(&settings, &text) {
                Some(narrower) => (Rc::new(narrower), None),
                None => (settings, Some(Line::Text(text))),
            },
            other => (settings, other),
        },
        Way::Stdio | Way::Http => (settings, None),
    };
    let session = Session::new(host.clone(), settings, outgoing.clone());
    if let Some(line) = first {
        session.receive(line);
    }
    let mut is_resting = false;
    loop {
        let next = async {
            session.room().await;
            lines.next().await
        };
        tokio::select! {
            line = next => match line {
                Some(line) => session.receive(line),
                None => break,
            },
            bytes = output.written() => match bytes {
                Some(bytes) => outgoing.written(bytes),
                // Nobody reads any more.
                None => break,
            },
            () = tokio::time::sleep(REST), if !is_resting => {
                beamtalk_process::give_back();
                is_resting = true;
                continue;
            }
            _ = terminate.recv() => break,
            _ = interrupt.recv() => break,
        }
        is_resting = false;
    }
    let calls_end = Instant::now() + LAST_CALLS;
    while !session.is_idle() {
        match timeout_at(calls_end, output.written()).await {
            Ok(Some(bytes)) => outgoing.written(bytes),
            Ok(None) | Err(_) => break,
        }
    }
    let end = Instant::now() + LAST_WORDS;
    drop(timeout_at(end, session.cancel_all()).await);
    // What was cancelled is over when the workspace has answered it, and its record is written.
    drop(timeout_at(end, host.settle()).await);
    drop(session);
    drop(timeout_at(end, host.leave()).await);
    while outgoing.is_writing() {
        match timeout_at(end, output.written()).await {
            Ok(Some(bytes)) => outgoing.written(bytes),
            Ok(None) | Err(_) => break,
        }
    }
    Ok(Exit::Success)
}
