//! The daemon: start order, the hub everything hangs on, stop.

mod approve;
mod connection;
mod create;
mod doors;
mod hub;
mod listen;
mod notify;
mod recover;
mod watch;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use beamtalk_process::Rest;
use serde_json::json;
use tokio::signal::unix::{SignalKind, signal};

pub(crate) use create::NEW_USAGE;
pub(crate) use hub::Hub;
pub(crate) use listen::Entrance;
pub(crate) use recover::recover as recover_sessions;

use crate::ages::{self, AgeWriter};
use crate::config::{AuthMode, Config};
use crate::error::Fatal;
use crate::link::{DoorRules, LinkTarget, Links};
use crate::namespace::Namespace;
use crate::pidfile::PidFile;
use crate::places::Places;
use crate::tmux::{self, TMUX_MINIMUM};

/// The service name.
pub const NAME: &str = "anvilsrv";

const SWEEP: Duration = Duration::from_secs(5);
const TIDY: Duration = Duration::from_hours(1);
/// A power failure loses at most this much of the events.
const SYNC: Duration = Duration::from_secs(1);

/// How a daemon is started.
pub struct DaemonOptions {
    pub namespace: PathBuf,
    pub auth: Option<AuthMode>,
    /// Leave what ran before a reboot stopped.
    pub no_resume: bool,
    /// The workspace whose image is part of the tree.
    pub workspace: Option<LinkTarget>,
    /// What sessions may do with the files of a workspace.
    pub rules: DoorRules,
    /// Told once: the namespace had to be tightened.
    pub warn: fn(&str),
    /// Called when the socket answers.
    pub ready: fn(),
}

/// Bring events to the disk a second after they came; an idle daemon does not wake for it.
async fn keep_events(hub: Arc<Hub>) {
    let mut signal = hub.events.signal.subscribe();
    while signal.changed().await.is_ok() {
        tokio::time::sleep(SYNC).await;
        signal.borrow_and_update();
        hub.events.sync();
    }
}

/// Run the daemon until it is told to stop.
pub async fn serve(options: DaemonOptions) -> Result<(), Fatal> {
    let namespace = Namespace::open(&options.namespace)?;
    if let Some(warning) = &namespace.warning {
        (options.warn)(warning);
    }
    let pid_file = PidFile::take(&namespace.directory)?;
    let found = tmux::version().ok_or(Fatal::NoTmux {
        minimum: TMUX_MINIMUM,
    })?;
    if !tmux::is_new_enough(&found) {
        return Err(Fatal::OldTmux {
            found,
            minimum: TMUX_MINIMUM,
        });
    }
    let places = Places::of(&options.namespace);
    let mut config = Config::load(&places.config)?;
    if let Some(mode) = options.auth {
        config.auth.mode = mode;
    }
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    let mut hangup = signal(SignalKind::hangup())?;

    let links = Links::new(options.workspace, options.rules);
    let hub = Hub::new(&namespace, places, config, options.auth, links)?;
    hub.find_asked_mail();
    // Without it the mount asks.
    let ages = AgeWriter::create(&namespace.directory)
        .inspect_err(|error| tracing::warn!(%error, "no file for the version of the classes"));
    hub.links.start(&hub, ages.ok());
    tokio::spawn(watch::run(Arc::clone(&hub)));
    let adopted = recover::recover(&hub, !options.no_resume).await;
    hub.go_on_asking();
    let listener = listen::bind(&namespace.directory)?;
    let data =
        json!({"pid": std::process::id(), "version": env!("CARGO_PKG_VERSION"), "recovered": adopted.len()});
    hub.events.emit("daemon", "DaemonStarted", data);
    listen::notify_ready();
    (options.ready)();
    tracing::info!(namespace = %options.namespace.display(), sessions = adopted.len(), "daemon started");

    let accepting = tokio::spawn(listen::accept(listener, Arc::clone(&hub), Entrance::Owner));
    let syncing = tokio::spawn(keep_events(Arc::clone(&hub)));
    let notifying = tokio::spawn(notify::run(Arc::clone(&hub)));
    let mut tidy = tokio::time::interval(TIDY);
    let mut sweep = tokio::time::interval(SWEEP);
    sweep.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut rest = Rest::default();
    loop {
        tokio::select! {
            _ = interrupt.recv() => break,
            _ = terminate.recv() => break,
            _ = hangup.recv() => hub.reload(),
            _ = sweep.tick() => {
                hub.sweep();
                rest.look();
            }
            _ = tidy.tick() => {
                let places = hub.places.clone();
                // How much there is was up to the sessions: nobody waits for it.
                tokio::task::spawn_blocking(move || recover::forget_old(&places));
            }
        }
    }
    accepting.abort();
    syncing.abort();
    notifying.abort();
    hub.events
        .emit("daemon", "DaemonStopping", json!({"pid": std::process::id()}));
    hub.stop().await;
    // Without sessions the private tmux server has nothing left to hold.
    if hub.tmux.windows().await.is_ok_and(|windows| windows.is_empty()) {
        tmux::end_servers(&hub.places).await;
    }
    listen::unbind(&namespace.directory);
    ages::remove(&namespace.directory);
    drop(pid_file);
    tracing::info!("daemon stopped");
    Ok(())
}
