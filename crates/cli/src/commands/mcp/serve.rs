//! Standard input and output as a client of the server: lines in, lines out, and an end that leaves nothing running.

use std::io::{BufReader, Write};
use std::rc::Rc;
use std::time::Duration;

use anyhow::Context;
use beamtalk_mcp::{Line, LineReader, Outgoing, Session, Settings, Way};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use tokio::task::LocalSet;
use tokio::time::{Instant, timeout_at};

use super::door;
use super::host::Workspace;
use crate::exit::Exit;

/// Lines that are read ahead.
const AHEAD: usize = 16;
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
    let mut lines = read_lines();
    let (outgoing, answers) = Outgoing::new();
    let mut written = write_lines(answers);
    let (settings, first) = match settings.way {
        // A client at a door may want less than it could have.
        Way::Door => match lines.recv().await {
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
            lines.recv().await
        };
        tokio::select! {
            line = next => match line {
                Some(line) => session.receive(line),
                None => break,
            },
            bytes = written.recv() => match bytes {
                Some(bytes) => outgoing.written(bytes),
                // Nobody reads any more.
                None => break,
            },
            () = tokio::time::sleep(REST), if !is_resting => {
                crate::memory::give_back();
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
        match timeout_at(calls_end, written.recv()).await {
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
        match timeout_at(end, written.recv()).await {
            Ok(Some(bytes)) => outgoing.written(bytes),
            Ok(None) | Err(_) => break,
        }
    }
    Ok(Exit::Success)
}

/// A thread that reads, since standard input may be anything.
fn read_lines() -> mpsc::Receiver<Line> {
    let (sender, lines) = mpsc::channel(AHEAD);
    std::thread::spawn(move || {
        let mut reader = LineReader::new(BufReader::with_capacity(64 * 1024, std::io::stdin().lock()));
        while let Ok(Some(line)) = reader.read() {
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    lines
}

/// A thread that writes, so that a client that does not read holds up nobody else; it tells what was written.
fn write_lines(mut answers: mpsc::UnboundedReceiver<String>) -> mpsc::UnboundedReceiver<usize> {
    let (sender, written) = mpsc::unbounded_channel();
    std::thread::spawn(move || {
        let mut out = std::io::stdout().lock();
        while let Some(text) = answers.blocking_recv() {
            let bytes = text.len();
            let mut line = text.into_bytes();
            line.push(b'\n');
            if out.write_all(&line).and_then(|()| out.flush()).is_err() || sender.send(bytes).is_err() {
                break;
            }
        }
    });
    written
}
