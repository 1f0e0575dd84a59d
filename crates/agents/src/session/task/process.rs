//! The process of a session: launch, watch, stop.

use std::sync::Arc;
use std::time::{Duration, Instant};

use beamtalk_process::{Entry, entry_of};
use rustix::process::{
    Pid, PidfdFlags, Signal, kill_process, kill_process_group, pidfd_open, test_kill_process,
};

use super::Task;
use crate::config::{Config, WorkspaceRight};
use crate::error::refusal;
use crate::sandbox::Started;
use crate::secrets::new_token;
use crate::session::core::{Ending, Event, Rules, State};
use crate::session::launch;
use crate::session::record::{Process, Record};
use crate::session::shared::Command;
use crate::tmux::{TmuxError, Window, WindowOptions};
use crate::{files, sys};

/// How long tmux may take to collect a process that has ended.
const COLLECT_LIMIT: Duration = Duration::from_secs(2);

fn entry(pid: i32) -> Option<Entry> {
    entry_of(u32::try_from(pid).ok()?)
}

impl Process {
    pub(crate) fn of(pid: i32) -> Self {
        let start = entry(pid).map(|entry| entry.started);
        Process { pid, start }
    }
}

fn children(pid: i32) -> Vec<i32> {
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect()
}

/// Whether the recorded process still lives: signal 0, start time, not a zombie.
pub(crate) fn is_alive(process: Process) -> bool {
    let Some(handle) = Pid::from_raw(process.pid) else {
        return false;
    };
    if matches!(test_kill_process(handle), Err(rustix::io::Errno::SRCH)) {
        return false;
    }
    match entry(process.pid) {
        Some(now) => process.start.is_none_or(|start| start == now.started) && !now.is_zombie,
        None => true,
    }
}

/// Have tmux collect a pane's process that has ended. tmux hears of it by a signal, which is lost
/// when it comes while libutempter runs its helper with the signal's default action; nobody sends it again.
fn remind_parent(process: Process) {
    let waiting = entry(process.pid).filter(|entry| entry.is_zombie && process.start == Some(entry.started));
    let parent = waiting.and_then(|entry| Pid::from_raw(i32::try_from(entry.parent).ok()?));
    if let Some(parent) = parent {
        // A parent that is gone leaves the process to one that collects it.
        kill_process(parent, Signal::CHILD).ok();
    }
}

/// What still runs in the terminal session of a pane.
fn left_in_pane(pane: Process) -> Vec<Pid> {
    crate::files::names(std::path::Path::new("/proc"))
        .into_iter()
        .filter_map(|name| name.parse::<i32>().ok())
        .filter(|pid| *pid != pane.pid)
        // A number that was used again belongs to a process of a session that began later.
        .filter(|pid| {
            entry(*pid).is_some_and(|entry| {
                i32::try_from(entry.session) == Ok(pane.pid) && Some(entry.started) >= pane.start
            })
        })
        .filter_map(Pid::from_raw)
        .collect()
}

impl Task {
    /// Whether anything of the session's process is left: the backend, or what watches over it.
    pub(super) fn is_alive(&self) -> bool {
        self.processes().into_iter().any(is_alive)
    }

    fn processes(&self) -> Vec<Process> {
        self.shared.with_record(Record::processes)
    }

    pub(super) fn has_children(&self) -> bool {
        let Some(pid) = self.shared.with_record(|record| record.pid) else {
            return false;
        };
        !children(pid).is_empty()
    }

    /// The process in the pane; its end is noticed as it happens, whatever tmux says.
    pub(super) fn note_pane(&self, pid: Option<i32>) {
        let pane = pid.map(Process::of);
        self.shared.change_record(|record| {
            record.pane = pane;
            record.pid = None;
            record.pid_start = None;
        });
        let handle = pid.and_then(Pid::from_raw);
        let opened = handle.map(|pid| pidfd_open(pid, PidfdFlags::NONBLOCK));
        let Some(Ok(process)) = opened else {
            // Ended already, or a kernel before 5.3: the window tells.
            self.shared.tell(Command::Tick);
            return;
        };
        let shared = Arc::downgrade(&self.shared);
        tokio::spawn(async move {
            if let Ok(process) = crate::sys::wait_on(process) {
                // Readable is all a process can become, when it ends.
                drop(process.readable().await);
            }
            if let Some(shared) = shared.upgrade() {
                shared.tell(Command::Tick);
            }
        });
    }

    /// The backend, once the launcher has said which process it is.
    pub(super) fn note_backend(&self) {
        let (pane, known) = self
            .shared
            .with_record(|record| (record.pane, record.pid.is_some()));
        let Some(pane) = pane.filter(|_| !known) else {
            return;
        };
        // What was left by an earlier launch is no child of this one's launcher.
        let started = Started::read(&self.shared.directory).filter(|started| {
            started.pid == pane.pid
                || entry(started.pid).is_some_and(|entry| i32::try_from(entry.parent) == Ok(pane.pid))
        });
        if let Some(started) = started {
            let process = Process::of(started.pid);
            self.shared.change_record(|record| {
                record.pid = Some(process.pid);
                record.pid_start = process.start;
            });
        }
    }

    /// Start the process in its window, or in a new one.
    pub(in crate::session) async fn launch(&mut self, resume: bool) {
        let now = self.hub.now();
        let config = self.hub.config();
        if let Ok(backend) = config.backend(&self.backend.name) {
            self.backend = backend.clone();
            self.core.rules = Rules::of(&self.backend);
        }
        match self.try_launch(&config, resume).await {
            Ok(()) => self.feed_quietly(Event::Launched { now }).await,
            Err((reason, retry)) => {
                self.feed_quietly(Event::LaunchFailed { now, reason, retry })
                    .await;
            }
        }
    }

    async fn try_launch(&mut self, config: &Config, resume: bool) -> Result<(), (String, bool)> {
        let id = self.shared.id.clone();
        self.launches += 1;
        self.dialogs_done.clear();
        let token = new_token().map_err(|error| (error.to_string(), true))?;
        let record = self.shared.record();
        let planned = launch::plan(
            config,
            &self.hub.places,
            self.hub.kernel,
            &record,
            self.launches,
            &token,
            resume,
        );
        let (mut launch, mut report) = planned.map_err(|refused| (refused.text.into_owned(), false))?;
        launch.open_files = self.hub.usual_files;
        if !launch.mount && sys::is_confined(std::process::id()) == Some(true) {
            // This daemon looks like its sessions: only a proof tells the owner from them.
            self.hub.ask_everybody();
            report
                .missing
                .push("the owner cannot be told from sessions; everybody proves who they are".to_owned());
        }
        let io = |error: std::io::Error| (error.to_string(), true);
        files::make_directory(&launch.tmp).map_err(io)?;
        let evaluates = self.backend.workspace == WorkspaceRight::Write;
        crate::helpers::write(&launch.tmp, evaluates).map_err(io)?;
        // Left over from the launch before; normally absent.
        drop(std::fs::remove_file(self.shared.directory.join("launch.error")));
        let bytes = serde_json::to_vec(&launch).map_err(|error| (error.to_string(), true))?;
        files::replace(&self.shared.directory.join("launch.json"), &bytes).map_err(io)?;
        self.hub.secrets.set_session_token(&id, &token);
        self.shared.output.refresh();
        self.launch_offset = self.shared.output.extent().end;
        // The door asks by it, and the backend may knock before the window is known.
        self.shared.change_record(|record| record.sandbox_report = report);
        let window = self.open_window(record.window.as_deref(), &record.cwd).await;
        let window = window.map_err(|error| (error.to_string(), true))?;
        let server = self.server().await;
        self.shared.change_record(|record| {
            record.window = Some(window.clone());
            record.server = server;
            // A new program, with an empty line.
            record.is_typing = false;
        });
        let tmux = &self.hub.tmux;
        let failed = |error: TmuxError| (error.to_string(), true);
        tmux.capture(&window, &id).await.map_err(failed)?;
        let pid = tmux.pane_pid(&window).await.map_err(failed)?;
        self.note_pane(pid);
        self.note_backend();
        self.save_options().await;
        Ok(())
    }

    async fn open_window(&self, old: Option<&str>, cwd: &str) -> Result<String, TmuxError> {
        let tmux = &self.hub.tmux;
        if let Some(window) = old
            && tmux.respawn(window, &self.shared.id, cwd).await.is_ok()
        {
            return Ok(window.to_owned());
        }
        let _one_at_a_time = self.hub.window_order.lock().await;
        tmux.launch(
            &self.backend.name,
            &self.shared.id,
            cwd,
            (self.backend.size.rows, self.backend.size.cols),
        )
        .await
    }

    /// Write the record, and what tmux has to know to adopt the window without it.
    pub(super) async fn save_options(&self) {
        let record = self.shared.record();
        if let Err(error) = self.shared.save() {
            tracing::error!(%error, session = %record.id, "record cannot be written");
        }
        let Some(window) = record.window else { return };
        let options = WindowOptions {
            backend: record.backend,
            cwd: record.cwd,
            alias: record.alias.unwrap_or_default(),
            role: record.role.unwrap_or_default(),
            model: record.model.unwrap_or_default(),
            sandbox: record.sandbox,
        };
        if let Err(error) = self.hub.tmux.set_options(&window, &record.id, &options).await {
            tracing::warn!(%error, session = %record.id, "window options cannot be set");
        }
    }

    /// Compare tmux with what we believe.
    pub(in crate::session) async fn check_window(&mut self) {
        let now = self.hub.now();
        let (own, id) = (
            self.shared.with_record(|record| record.window.clone()),
            self.shared.id.clone(),
        );
        let windows = match self.hub.tmux.windows().await {
            Ok(windows) => windows,
            Err(error) => {
                // Without a server there is no terminal either; one that is slow to answer has both.
                if matches!(error, TmuxError::Said(_)) || !self.is_alive() {
                    self.lose_window(now).await;
                }
                return;
            }
        };
        let found = windows
            .into_iter()
            .find(|window| window.session_id == id || Some(&window.number) == own.as_ref());
        match found {
            Some(window) if window.dead || self.has_ended() => {
                let ending = self.ending(window).await;
                self.ended(now, ending).await;
            }
            Some(_) if self.core.state == State::Error && self.is_alive() => {
                self.feed_quietly(Event::FoundAlive { now }).await;
            }
            Some(_) => {}
            None if own.is_some()
                && self.shared.with_record(|record| record.server) != self.server().await =>
            {
                self.lose_window(now).await;
            }
            None if own.is_some() && !matches!(self.core.state, State::Stopped) => {
                // Somebody destroyed the window while its server lives: the session is over.
                self.destroy().await;
                self.feed_quietly(Event::Killed).await;
            }
            None => {}
        }
    }

    async fn server(&self) -> Option<i32> {
        self.hub.tmux.server_pid().await.ok().flatten()
    }

    /// The tmux server is gone, and the window with it; what runs on is out of everybody's reach.
    async fn lose_window(&mut self, now: u64) {
        self.wait_for_end(500).await;
        self.end_for_good().await;
        self.shared.change_record(|record| record.window = None);
        self.feed_quietly(Event::WindowLost { now }).await;
    }

    /// Whether the program that answers is over, although something may still hold its terminal.
    pub(in crate::session) fn has_ended(&self) -> bool {
        !self.processes().into_iter().all(is_alive)
    }

    /// How the process of a window ended; tmux may have to be reminded to find out.
    async fn ending(&self, mut window: Window) -> Ending {
        let pane = self.shared.with_record(|record| record.pane);
        let pane = pane.or_else(|| window.pid.map(Process::of));
        let limit = Instant::now() + COLLECT_LIMIT;
        while window.status.is_none() && window.signal.is_none() && Instant::now() < limit {
            if let Some(pane) = pane {
                remind_parent(pane);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
            let Ok(again) = self.hub.tmux.windows().await else {
                break;
            };
            match again.into_iter().find(|other| other.number == window.number) {
                Some(found) => window = found,
                None => break,
            }
        }
        Ending {
            status: window.status,
            signal: window.signal,
        }
    }

    async fn ended(&mut self, now: u64, ending: Ending) {
        self.clear_pane();
        self.shared.change_record(|record| {
            record.forget_processes();
            record.last_exit = ending.status.or_else(|| ending.signal.map(|signal| 128 + signal));
        });
        // The tail of the output may still be on its way.
        self.settle_output().await;
        let refused = files::read_limited(&self.shared.directory.join("launch.error"), 4096).ok();
        match refused {
            Some(bytes) if self.core.state == State::Starting => {
                let reason = String::from_utf8_lossy(&bytes).into_owned();
                self.feed_quietly(Event::LaunchFailed {
                    now,
                    reason,
                    retry: false,
                })
                .await;
            }
            _ => self.feed_quietly(Event::Ended { now, ending }).await,
        }
    }

    async fn settle_output(&self) {
        for _ in 0..5 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            if self.shared.output.refresh() == 0 {
                return;
            }
        }
    }

    /// C-c twice, then SIGTERM, then SIGKILL to the process group.
    pub(super) async fn stop_process(&mut self) {
        for _ in 0..2 {
            if !self.is_alive() {
                break;
            }
            // A window that is gone leaves the signals below.
            drop(self.press("C-c").await);
            self.wait_for_end(500).await;
        }
        self.end_process(Signal::TERM, 300).await;
        self.end_for_good().await;
    }

    /// Nothing of the process is left after this, nor of what it started in its terminal.
    async fn end_for_good(&mut self) {
        // The backend first: its watcher then ends everything around it and itself.
        self.end_process(Signal::KILL, 500).await;
        if let Some(pane) = self.shared.with_record(|record| record.pane) {
            if is_alive(pane)
                && let Some(pid) = Pid::from_raw(pane.pid)
            {
                kill_process_group(pid, Signal::KILL).ok();
            }
            let limit = Instant::now() + COLLECT_LIMIT;
            while entry(pane.pid).is_some_and(|now| Some(now.started) == pane.start) && Instant::now() < limit
            {
                remind_parent(pane);
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        }
        self.clear_pane();
        self.shared.change_record(Record::forget_processes);
    }

    /// End what its process left in the terminal; where there is a process namespace, nothing is.
    fn clear_pane(&self) {
        let Some(pane) = self.shared.with_record(|record| record.pane) else {
            return;
        };
        for pid in left_in_pane(pane) {
            // It may end by itself meanwhile.
            kill_process(pid, Signal::KILL).ok();
        }
    }

    /// Signal the group of the backend and wait until it is gone, and its watcher with it.
    async fn end_process(&self, signal: Signal, limit: u64) {
        self.note_backend();
        if !self.is_alive() {
            return;
        }
        let group = self
            .shared
            .with_record(|record| record.pid.or(record.pane.map(|pane| pane.pid)));
        if let Some(pid) = group.and_then(Pid::from_raw) {
            // It may end between the check and the signal.
            kill_process_group(pid, signal).ok();
        }
        self.wait_for_end(limit).await;
    }

    async fn wait_for_end(&self, limit: u64) {
        let limit = Instant::now() + Duration::from_millis(limit);
        while self.is_alive() && Instant::now() < limit {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Destroy the window and whatever is left of the process.
    pub(super) async fn destroy(&mut self) {
        if let Some(window) = self.shared.with_record(|record| record.window.clone()) {
            // A window that is gone already is what we want.
            drop(self.hub.tmux.kill_window(&window).await);
        }
        self.wait_for_end(300).await;
        self.end_for_good().await;
        self.shared.change_record(|record| record.window = None);
    }
}

/// The error of a session that does not exist.
pub(crate) fn not_found() -> beamtalk_ninep::Refusal {
    refusal("session not found")
}
