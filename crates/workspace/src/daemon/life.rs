//! From ready to the end: signals, idle time, the orderly stop.

use std::time::{Duration, Instant};

use beamtalk_etf::Term;
use beamtalk_process::Rest;
use beamtalk_storage::Metadata;
use beamtalk_wire::{ErrorBody, ErrorKind, WorkspaceEvent, limits};
use serde::Deserialize;
use tokio::signal::unix::{SignalKind, signal};

use super::log::DaemonLog;
use super::{Daemon, classes};
use crate::audit::Event;
use crate::gate::Gate;
use crate::terms;
use crate::workspace::{Stop, Workspace};

/// How long running evaluations, and then supervisors, may take when the workspace stops.
const EVALUATIONS: Duration = Duration::from_secs(5);
const SUPERVISORS: Duration = Duration::from_secs(10);
/// How long the node is given to count what its actors did.
const WORK: Duration = Duration::from_secs(10);
/// How often sessions without connection are looked at.
const SWEEP: Duration = Duration::from_secs(30);
/// How often it is looked whether the daemon rests.
const REST: Duration = Duration::from_secs(5);

pub(super) async fn serve(daemon: Daemon) {
    let Daemon {
        workspace,
        log,
        run,
        lock,
        ..
    } = daemon;
    let stop = wait(&workspace, &log).await;
    tracing::info!("the workspace stops: {}", stop.reason);
    end(&workspace, &stop).await;
    if let Err(error) = workspace.directory.remove_running_records() {
        tracing::error!("{error}");
    }
    if let Err(error) = run.release() {
        tracing::error!("{error}");
    }
    drop(lock);
}

/// Until somebody wants the workspace to stop.
async fn wait(workspace: &Workspace, log: &DaemonLog) -> Stop {
    let (Ok(mut terminate), Ok(mut interrupt), Ok(mut hangup)) = (
        signal(SignalKind::terminate()),
        signal(SignalKind::interrupt()),
        signal(SignalKind::hangup()),
    ) else {
        return stop("signals");
    };
    let mut sweep = tokio::time::interval(SWEEP);
    let mut rest = tokio::time::interval(REST);
    rest.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut work = Rest::default();
    let mut idle = tokio::time::interval(idle_check(workspace));
    idle.reset();
    let mut last_work = None;
    loop {
        tokio::select! {
            () = workspace.stop_wanted.notified() => {
                let wanted = workspace.stopping.borrow().clone();
                if let Some(stop) = wanted {
                    return stop;
                }
            }
            _ = terminate.recv() => return stop("SIGTERM"),
            _ = interrupt.recv() => return stop("SIGINT"),
            _ = hangup.recv() => {
                log.reopen();
                reopen(workspace);
            }
            _ = sweep.tick() => {
                let grace = Duration::from_secs(workspace.options.session_grace_s);
                for session in workspace.sessions.expired(grace) {
                    workspace.end_session(&session).await;
                }
                for session in workspace.handles.expired(Duration::from_secs(workspace.options.handle_idle_s)) {
                    workspace.end_session(&session).await;
                }
            }
            _ = rest.tick() => work.look(),
            _ = idle.tick() => {
                if is_idle(workspace, &mut last_work).await {
                    return stop("idle");
                }
            }
        }
    }
}

fn stop(reason: &'static str) -> Stop {
    Stop {
        is_forced: false,
        reason,
    }
}

/// Logs may have been moved away, certificates renewed.
fn reopen(workspace: &Workspace) {
    if let Err(error) = workspace.audit.reopen() {
        tracing::error!("audit.log: {error}");
    }
    if let Err(error) = workspace.image.reopen_log() {
        tracing::error!("workspace.log: {error}");
    }
    if let Some(Err(error)) = workspace.gate.borrow().as_ref().map(Gate::reload_tls) {
        tracing::error!("certificates: {error}");
    }
}

fn idle_check(workspace: &Workspace) -> Duration {
    let limit = Duration::from_secs(workspace.options.idle_timeout_s.max(1));
    limits::IDLE_CHECK.min(limit)
}

/// Nobody connected, and nothing happened in the image for the time that was set.
async fn is_idle(workspace: &Workspace, last_work: &mut Option<u64>) -> bool {
    let is_used = !workspace.connections.borrow().is_empty()
        || workspace.sessions.all().iter().any(|session| session.is_busy());
    if workspace.options.persistent || is_used || workspace.hosted_loop.is_taken() {
        workspace.last_use.set(Instant::now());
        return false;
    }
    // A node that does not answer is not known to be at rest; one that has ended for good is.
    let work = match actors_work(workspace).await {
        Ok(work) => Some(work.reductions),
        Err(error) if error.kind == ErrorKind::Timeout => return false,
        Err(_) => None,
    };
    if work != *last_work {
        *last_work = work;
        workspace.last_use.set(Instant::now());
        return false;
    }
    workspace.last_use.get().elapsed() >= Duration::from_secs(workspace.options.idle_timeout_s)
}

/// What actors have done so far, whoever asked them to.
#[derive(Deserialize)]
struct Work {
    reductions: u64,
}

async fn actors_work(workspace: &Workspace) -> Result<Work, ErrorBody> {
    let asked = Term::Map(Vec::new());
    terms::typed(workspace.image.call_within(WORK, "", "work", asked).await?)
}

/// The next start may be one with other flags.
fn remember_stop(workspace: &Workspace) {
    let outcome = workspace
        .directory
        .metadata()
        .and_then(|metadata| match metadata {
            Some(metadata) => {
                let stopped = true;
                workspace
                    .directory
                    .write_metadata(&Metadata { stopped, ..metadata })
            }
            None => Ok(()),
        });
    if let Err(error) = outcome {
        tracing::error!("{error}");
    }
}

/// Refuse what is new, let evaluations end, stop supervisors, then the node.
async fn end(workspace: &Workspace, stop: &Stop) {
    workspace
        .stopping
        .borrow_mut()
        .get_or_insert_with(|| stop.clone());
    workspace.record_own(Event::Stop {
        reason: stop.reason.to_owned(),
    });
    workspace.publish(&beamtalk_wire::Event::Workspace(WorkspaceEvent::Stopping {
        reason: stop.reason.to_owned(),
    }));
    if let Some(gate) = workspace.gate.borrow_mut().as_mut() {
        gate.stop_accepting();
    }
    workspace.hosted_loop.end().await;
    if !stop.is_forced {
        let deadline = Instant::now() + EVALUATIONS;
        let is_busy = || workspace.sessions.all().iter().any(|session| session.is_busy());
        while is_busy() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }
    classes::remember(workspace).await;
    if stop.is_on_purpose() {
        remember_stop(workspace);
    }
    if let Some(gate) = workspace.gate.borrow().as_ref() {
        gate.close_all(1001, "the workspace stops");
    }
    if let Some(link) = workspace.image.link() {
        if stop.is_forced {
            link.kill();
            link.exited().await;
        } else {
            link.stop(SUPERVISORS).await;
        }
    }
    drop(workspace.registration.borrow_mut().take());
    // The last frames are on their way to the clients.
    tokio::time::sleep(Duration::from_millis(20)).await;
    drop(workspace.gate.borrow_mut().take());
}
