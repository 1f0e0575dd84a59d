//! The process of a session: launch, watch, stop.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group, test_kill_process};

use super::Task;
use crate::config::Config;
use crate::error::refusal;
use crate::files;
use crate::secrets::new_token;
use crate::session::core::{Ending, Event, Rules, State};
use crate::session::launch;
use crate::tmux::{TmuxError, Window, WindowOptions};

/// Field 22 of `/proc/<pid>/stat`.
pub(crate) fn start_time(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name may contain blanks and brackets; fields count from the last bracket.
    let (_, rest) = text.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// State letter and parent of a process.
pub(crate) fn stat_fields(pid: i32) -> Option<(char, i32, i32)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let letter = fields.next()?.chars().next()?;
    let parent = fields.next()?.parse().ok()?;
    let _group = fields.next()?;
    let session = fields.next()?.parse().ok()?;
    Some((letter, parent, session))
}

fn children(pid: i32) -> Vec<i32> {
    std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children"))
        .unwrap_or_default()
        .split_whitespace()
        .filter_map(|number| number.parse().ok())
        .collect()
}

/// Whether the recorded process still lives: signal 0, start time, not a zombie.
pub(crate) fn is_alive(pid: Option<i32>, start: Option<u64>) -> bool {
    let Some(number) = pid else { return false };
    let Some(handle) = Pid::from_raw(number) else {
        return false;
    };
    if matches!(test_kill_process(handle), Err(rustix::io::Errno::SRCH)) {
        return false;
    }
    let same = start.is_none_or(|start| start_time(number).is_none_or(|now| now == start));
    same && stat_fields(number).is_none_or(|(letter, ..)| letter != 'Z')
}

impl Task {
    pub(super) fn is_alive(&self) -> bool {
        let (pid, start) = self.shared.with_record(|record| (record.pid, record.pid_start));
        is_alive(pid, start)
    }

    pub(super) fn has_children(&self) -> bool {
        let Some(pid) = self.shared.with_record(|record| record.pid) else {
            return false;
        };
        // In a process namespace of its own the backend is a grandchild.
        let apart = self.shared.with_record(|record| {
            let used = &record.sandbox_report.namespaces;
            used.iter().any(|name| name == "pid")
        });
        let mut generation = vec![pid];
        for _ in 0..if apart { 2 } else { 0 } {
            generation = generation.into_iter().flat_map(children).collect();
        }
        generation.into_iter().any(|pid| !children(pid).is_empty())
    }

    pub(super) fn note_pid(&self, pid: Option<i32>) {
        self.shared.change_record(|record| {
            record.pid = pid;
            record.pid_start = pid.and_then(start_time);
        });
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
        let (launch, report) = planned.map_err(|refused| (refused.text.into_owned(), false))?;
        let io = |error: std::io::Error| (error.to_string(), true);
        files::make_directory(&launch.tmp).map_err(io)?;
        // Left over from the launch before; normally absent.
        drop(std::fs::remove_file(self.shared.directory.join("launch.error")));
        let bytes = serde_json::to_vec(&launch).map_err(|error| (error.to_string(), true))?;
        files::replace(&self.shared.directory.join("launch.json"), &bytes).map_err(io)?;
        self.hub.secrets.set_session_token(&id, &token);
        self.shared.output.refresh();
        self.launch_offset = self.shared.output.extent().end;
        let window = self.open_window(record.window.as_deref(), &record.cwd).await;
        let window = window.map_err(|error| (error.to_string(), true))?;
        self.shared.change_record(|record| {
            record.window = Some(window.clone());
            record.sandbox_report = report;
        });
        let tmux = &self.hub.tmux;
        let failed = |error: TmuxError| (error.to_string(), true);
        tmux.capture(&window, &id).await.map_err(failed)?;
        let pid = tmux.pane_pid(&window).await.map_err(failed)?;
        self.note_pid(pid);
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
    pub(super) async fn check_window(&mut self) {
        let now = self.hub.now();
        let (own, id) = (
            self.shared.with_record(|record| record.window.clone()),
            self.shared.id.clone(),
        );
        let windows = self.hub.tmux.windows().await;
        let Ok(windows) = windows else {
            if !self.is_alive() {
                self.shared.change_record(|record| record.window = None);
                self.feed_quietly(Event::WindowLost { now }).await;
            }
            return;
        };
        let found = windows
            .into_iter()
            .find(|window| window.session_id == id || Some(&window.number) == own.as_ref());
        match found {
            Some(window) if window.dead => {
                let ending = self.ending(window).await;
                self.ended(now, ending).await;
            }
            Some(_) if self.core.state == State::Error && self.is_alive() => {
                self.feed_quietly(Event::FoundAlive { now }).await;
            }
            Some(_) => {}
            None if own.is_some() && !matches!(self.core.state, State::Stopped) => {
                // Somebody destroyed the window while its server lives: the session is over.
                self.destroy().await;
                self.feed_quietly(Event::Killed).await;
            }
            None => {}
        }
    }

    /// How the process of a dead window ended; tmux may have to be made to find out.
    async fn ending(&self, mut window: Window) -> Ending {
        for _ in 0..20 {
            if window.status.is_some() || window.signal.is_some() {
                break;
            }
            let collected = self.hub.tmux.collect_children().await;
            tokio::time::sleep(Duration::from_millis(25)).await;
            let again = match collected {
                Ok(()) => self.hub.tmux.windows().await,
                Err(error) => Err(error),
            };
            let Ok(again) = again else { break };
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
        self.shared.change_record(|record| {
            record.pid = None;
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
        self.signal(Signal::TERM, 300).await;
        self.signal(Signal::KILL, 1000).await;
        self.shared.change_record(|record| record.pid = None);
    }

    async fn signal(&self, signal: Signal, limit: u64) {
        if !self.is_alive() {
            return;
        }
        if let Some(pid) = self
            .shared
            .with_record(|record| record.pid)
            .and_then(Pid::from_raw)
        {
            // It may end between the check and the signal.
            kill_process_group(pid, signal).ok();
        }
        self.wait_for_end(limit).await;
    }

    async fn wait_for_end(&self, limit: u64) {
        for _ in 0..limit.div_ceil(10) {
            if !self.is_alive() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// Destroy the window and whatever is left of the process.
    pub(super) async fn destroy(&mut self) {
        if let Some(window) = self.shared.with_record(|record| record.window.clone()) {
            // A window that is gone already is what we want.
            drop(self.hub.tmux.kill_window(&window).await);
        }
        self.wait_for_end(300).await;
        self.signal(Signal::KILL, 1000).await;
        self.shared.change_record(|record| {
            record.pid = None;
            record.window = None;
        });
    }
}

/// The error of a session that does not exist.
pub(crate) fn not_found() -> beamtalk_ninep::Refusal {
    refusal("session not found")
}
