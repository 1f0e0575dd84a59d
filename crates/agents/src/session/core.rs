//! What a session does next: events in, effects out; no clock, no tmux.

use crate::config::{Backend, IdleMode, Ready, RestartPolicy};

/// The states of a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    Starting,
    Idle,
    Running,
    /// In a turn, showing a question of its program.
    Waiting,
    Stopped,
    Error,
    Exited,
}

impl State {
    /// Those that may be named in a write.
    pub const ALL: [State; 6] = [
        State::Idle,
        State::Running,
        State::Stopped,
        State::Starting,
        State::Error,
        State::Exited,
    ];

    pub fn word(self) -> &'static str {
        match self {
            State::Starting => "starting",
            State::Idle => "idle",
            State::Running => "running",
            State::Waiting => "waiting",
            State::Stopped => "stopped",
            State::Error => "error",
            State::Exited => "exited",
        }
    }

    pub fn parse(word: &str) -> Option<State> {
        State::ALL
            .into_iter()
            .chain([State::Waiting])
            .find(|state| state.word() == word)
    }
}

/// The parts of a backend that decide about states.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) ready: Ready,
    pub(crate) ready_min_bytes: u64,
    pub(crate) ready_quiet_ms: u64,
    pub(crate) start_timeout_ms: u64,
    pub(crate) idle: IdleMode,
    pub(crate) idle_min_bytes: u64,
    pub(crate) idle_quiet_ms: u64,
    pub(crate) max_running_ms: u64,
    pub(crate) policy: RestartPolicy,
    pub(crate) delay_ms: u64,
    pub(crate) max_crashes: u32,
    pub(crate) window_ms: u64,
    pub(crate) continues: bool,
    /// The program asks questions that are to be seen.
    pub(crate) asks: bool,
}

impl Rules {
    pub(crate) fn of(backend: &Backend) -> Self {
        Rules {
            ready: backend.ready,
            ready_min_bytes: backend.ready_min_bytes,
            ready_quiet_ms: backend.ready_quiet_ms,
            start_timeout_ms: backend.start_timeout_ms,
            idle: backend.idle,
            idle_min_bytes: backend.idle_min_bytes,
            idle_quiet_ms: backend.idle_quiet_ms,
            max_running_ms: backend.max_running_ms,
            policy: backend.restart.policy,
            delay_ms: backend.restart.delay_ms,
            max_crashes: backend.restart.max,
            window_ms: backend.restart.window_ms,
            continues: backend.restart.continues,
            asks: backend.approval.is_some(),
        }
    }
}

/// How a process ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Ending {
    pub(crate) status: Option<i32>,
    pub(crate) signal: Option<i32>,
}

impl Ending {
    fn is_clean(self) -> bool {
        self.status == Some(0) && self.signal.is_none()
    }

    fn describe(self) -> String {
        match (self.signal, self.status) {
            (Some(signal), _) => format!("killed by signal {signal}"),
            (None, Some(status)) => format!("exited with status {status}"),
            (None, None) => "process disappeared".to_owned(),
        }
    }
}

/// What happened. Times are milliseconds of one clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Launched {
        now: u64,
    },
    /// The launch could not be made; `retry` is false for refusals of the sandbox.
    LaunchFailed {
        now: u64,
        reason: String,
        retry: bool,
    },
    Output {
        now: u64,
        bytes: u64,
    },
    /// The last screen line matches what readiness or idleness asks for.
    ScreenMatches {
        now: u64,
    },
    /// The screen shows a question of the program, or none.
    Question {
        now: u64,
        asked: bool,
    },
    ErrorLine {
        line: String,
    },
    Tick {
        now: u64,
        busy_children: bool,
    },
    /// `state` was written, by a hook or a person.
    Written {
        now: u64,
        to: State,
        control: bool,
    },
    Prompted {
        now: u64,
    },
    DeliveryFailed {
        now: u64,
    },
    MailSent {
        now: u64,
    },
    Stopped,
    RestartAsked {
        now: u64,
    },
    Killed,
    Ended {
        now: u64,
        ending: Ending,
    },
    /// The window is gone with the tmux server, or was gone when the daemon started.
    WindowLost {
        now: u64,
    },
    /// `refresh` found a living process.
    FoundAlive {
        now: u64,
    },
    /// The machine was started anew: what was alive is started again.
    Rebooted {
        now: u64,
    },
    /// A new daemon took the session over.
    Adopted {
        now: u64,
    },
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Effect {
    Refuse(String),
    /// Collect the turn's output; comes before the state changes.
    FinishTurn,
    Changed {
        old: State,
        new: State,
    },
    /// Tell about the finished turn; comes after the state changed.
    AnnounceTurn {
        reason: &'static str,
    },
    Crashed {
        ending: Ending,
        crashes: u32,
    },
    /// Start the process again by itself.
    Relaunch {
        attempt: u32,
    },
    /// Start the process because somebody asked.
    Launch,
    /// Look at the last screen line.
    ReadScreen,
    /// The next prompt carries the context again.
    ContextDue,
    /// Tell the agent to go on with interrupted work.
    Continue,
    TurnBegan,
}

#[derive(Clone, Debug)]
pub(crate) struct Core {
    pub(crate) state: State,
    pub(crate) rules: Rules,
    pub(crate) last_error: Option<String>,
    pub(crate) crashes: u32,
    crash_times: Vec<u64>,
    since: u64,
    bytes: u64,
    last_output: Option<u64>,
    screen_due: Option<u64>,
    restart_at: Option<u64>,
    attempt: u32,
    /// The session was working when it crashed.
    interrupted: bool,
    /// After recovery a session with hooks may never hear of the end of its turn.
    fallback: bool,
}

/// How long output must rest before the screen is looked at.
const SCREEN_REST_MS: u64 = 50;
const FALLBACK_QUIET_MS: u64 = 10_000;
const LONGEST_DELAY_MS: u64 = 60_000;

impl Core {
    pub(crate) fn new(rules: Rules, state: State) -> Self {
        Core {
            state,
            rules,
            last_error: None,
            crashes: 0,
            crash_times: Vec::new(),
            since: 0,
            bytes: 0,
            last_output: None,
            screen_due: None,
            restart_at: None,
            attempt: 0,
            interrupted: false,
            fallback: false,
        }
    }

    /// Why a prompt is not possible now.
    pub(crate) fn prompt_refusal(&self) -> Option<String> {
        match self.state {
            State::Idle => None,
            State::Starting => Some("session still starting".to_owned()),
            State::Running | State::Waiting => Some("session busy".to_owned()),
            State::Stopped => Some("session stopped (use restart)".to_owned()),
            State::Error => Some(format!(
                "session failed: {}",
                self.last_error.as_deref().unwrap_or("unknown")
            )),
            State::Exited => Some("session not found".to_owned()),
        }
    }

    pub(crate) fn handle(&mut self, event: Event) -> Vec<Effect> {
        match event {
            Event::Launched { now } if self.state == State::Starting => {
                self.begin_phase(now);
                if self.rules.ready == Ready::Immediate {
                    self.become_idle(now, None)
                } else {
                    vec![]
                }
            }
            Event::LaunchFailed { now, reason, retry } if self.state == State::Starting => {
                self.last_error = Some(reason);
                let mut effects = self.change(State::Error);
                if retry {
                    effects.extend(self.plan_restart(now));
                }
                effects
            }
            Event::Output { now, bytes } => {
                self.bytes += bytes;
                self.last_output = Some(now);
                if self.watches_screen() {
                    self.screen_due = Some(now + SCREEN_REST_MS);
                }
                vec![]
            }
            Event::ScreenMatches { now } => match self.state {
                State::Starting if self.rules.ready == Ready::Regex => self.become_idle(now, None),
                State::Running if self.rules.idle == IdleMode::Regex && self.bytes > 0 => {
                    self.become_idle(now, Some("idle"))
                }
                _ => vec![],
            },
            Event::Question { now, asked } => match (self.state, asked) {
                (State::Running, true) => self.change(State::Waiting),
                (State::Waiting, false) => {
                    self.last_output = Some(now);
                    self.change(State::Running)
                }
                _ => vec![],
            },
            Event::ErrorLine { line } if self.state == State::Starting => {
                self.last_error = Some(format!("backend launch failed: {line}"));
                self.change(State::Error)
            }
            Event::Tick { now, busy_children } => self.tick(now, busy_children),
            Event::Written { now, to, control } => self.written(now, to, control),
            Event::Prompted { now } => match self.prompt_refusal() {
                Some(text) => vec![Effect::Refuse(text)],
                None => self.begin_turn(now),
            },
            Event::DeliveryFailed { now } if self.state == State::Running => {
                self.begin_phase(now);
                self.change(State::Idle)
            }
            Event::MailSent { now } if self.state == State::Running && self.rules.idle == IdleMode::Mail => {
                self.become_idle(now, Some("mail"))
            }
            Event::Stopped if self.state != State::Exited => {
                self.restart_at = None;
                self.leave_for(State::Stopped, "stop")
            }
            Event::RestartAsked { now } if self.state != State::Exited => {
                self.crashes = 0;
                self.crash_times.clear();
                self.attempt = 0;
                self.interrupted = false;
                self.restart_at = None;
                self.last_error = None;
                self.begin_phase(now);
                let mut effects = self.leave_for(State::Starting, "restart");
                effects.extend([Effect::ContextDue, Effect::Launch]);
                effects
            }
            Event::RestartAsked { .. } => vec![Effect::Refuse("session not found".to_owned())],
            Event::Killed if self.state != State::Exited => {
                self.restart_at = None;
                self.leave_for(State::Exited, "kill")
            }
            Event::Ended { now, ending } => self.ended(now, ending),
            Event::WindowLost { now } => match self.state {
                State::Exited | State::Stopped => vec![],
                State::Error if self.restart_at.is_some() => vec![],
                _ => {
                    self.last_error = Some("window lost".to_owned());
                    self.interrupted = self.is_in_turn();
                    let mut effects = self.leave_for(State::Error, "crash");
                    effects.extend(self.plan_restart(now));
                    effects
                }
            },
            Event::Rebooted { now }
                if self.is_in_turn() || matches!(self.state, State::Starting | State::Idle) =>
            {
                self.last_error = None;
                self.interrupted = false;
                self.restart_at = None;
                let mut effects = self.leave_for(State::Starting, "reboot");
                self.begin_phase(now);
                effects.extend([Effect::ContextDue, Effect::Relaunch { attempt: 0 }]);
                effects
            }
            Event::FoundAlive { now } if self.state == State::Error => {
                self.last_error = None;
                self.restart_at = None;
                self.begin_phase(now);
                self.change(State::Idle)
            }
            Event::Adopted { now } => {
                self.begin_phase(now);
                // Output from before counts: nothing more may come.
                self.bytes = 1;
                self.last_output = Some(now);
                self.fallback = self.state == State::Running && self.rules.idle == IdleMode::Hook;
                if self.watches_screen() {
                    self.screen_due = Some(now + SCREEN_REST_MS);
                }
                if self.state == State::Error {
                    return self.plan_restart(now);
                }
                vec![]
            }
            _ => vec![],
        }
    }

    /// When `Tick` is wanted next.
    pub(crate) fn deadline(&self) -> Option<u64> {
        let quiet = |rest: u64| self.last_output.map(|at| at + rest);
        let phase = match self.state {
            State::Starting => {
                let timeout = Some(self.since + self.rules.start_timeout_ms);
                let ready = if self.rules.ready == Ready::Quiet {
                    quiet(self.rules.ready_quiet_ms)
                } else {
                    None
                };
                [timeout, ready]
            }
            State::Running => {
                let limit = (self.rules.max_running_ms > 0).then_some(self.since + self.rules.max_running_ms);
                [limit, self.idle_quiet().and_then(quiet)]
            }
            _ => [None, None],
        };
        phase
            .into_iter()
            .chain([self.screen_due, self.restart_at])
            .flatten()
            .min()
    }

    fn is_in_turn(&self) -> bool {
        matches!(self.state, State::Running | State::Waiting)
    }

    fn idle_quiet(&self) -> Option<u64> {
        match self.rules.idle {
            IdleMode::Quiet => Some(self.rules.idle_quiet_ms),
            IdleMode::Hook if self.fallback => Some(FALLBACK_QUIET_MS),
            _ => None,
        }
    }

    fn watches_screen(&self) -> bool {
        match self.state {
            State::Starting => self.rules.ready == Ready::Regex,
            State::Running => self.rules.idle == IdleMode::Regex || self.rules.asks,
            State::Waiting => true,
            _ => false,
        }
    }

    fn tick(&mut self, now: u64, busy_children: bool) -> Vec<Effect> {
        let mut effects = Vec::new();
        if self.screen_due.is_some_and(|due| now >= due) {
            self.screen_due = None;
            effects.push(Effect::ReadScreen);
        }
        let quiet_for = self.last_output.map(|at| now.saturating_sub(at));
        match self.state {
            State::Starting => {
                let quiet = quiet_for.is_some_and(|rest| rest >= self.rules.ready_quiet_ms);
                if self.rules.ready == Ready::Quiet && quiet && self.bytes >= self.rules.ready_min_bytes {
                    effects.extend(self.become_idle(now, None));
                } else if now >= self.since + self.rules.start_timeout_ms {
                    self.last_error = Some("timeout waiting for ready".to_owned());
                    effects.extend(self.change(State::Error));
                }
            }
            State::Running => {
                let quiet = self
                    .idle_quiet()
                    .is_some_and(|rest| quiet_for.is_some_and(|passed| passed >= rest));
                if quiet && self.bytes >= self.rules.idle_min_bytes && !busy_children {
                    effects.extend(self.become_idle(now, Some("idle")));
                } else if self.rules.max_running_ms > 0 && now >= self.since + self.rules.max_running_ms {
                    effects.extend(self.become_idle(now, Some("timeout")));
                } else if quiet && busy_children {
                    // Ask again after another rest.
                    self.last_output = Some(now);
                }
            }
            State::Error | State::Stopped if self.restart_at.is_some_and(|at| now >= at) => {
                self.restart_at = None;
                self.attempt += 1;
                self.begin_phase(now);
                effects.extend(self.change(State::Starting));
                effects.extend([
                    Effect::ContextDue,
                    Effect::Relaunch {
                        attempt: self.attempt,
                    },
                ]);
            }
            _ => {}
        }
        effects
    }

    fn written(&mut self, now: u64, to: State, control: bool) -> Vec<Effect> {
        self.fallback = false;
        match (self.state, to) {
            (old, new) if old == new => vec![],
            (State::Starting, State::Idle) => self.become_idle(now, None),
            (State::Idle, State::Running) => self.begin_turn(now),
            (State::Running, State::Idle) => self.become_idle(now, Some("idle")),
            // A program that asks does not know that it is asked about.
            (State::Waiting, State::Idle) if control => self.become_idle(now, Some("idle")),
            (State::Waiting, State::Running) if control => self.change(State::Running),
            (State::Error, State::Idle) if control => {
                self.restart_at = None;
                self.last_error = None;
                self.begin_phase(now);
                self.change(State::Idle)
            }
            (State::Error, State::Idle) => vec![Effect::Refuse("permission denied".to_owned())],
            (old, new) => {
                vec![Effect::Refuse(format!(
                    "invalid state transition: {} → {}",
                    old.word(),
                    new.word()
                ))]
            }
        }
    }

    fn begin_phase(&mut self, now: u64) {
        self.since = now;
        self.bytes = 0;
        self.last_output = None;
        self.screen_due = None;
        self.fallback = false;
    }

    fn begin_turn(&mut self, now: u64) -> Vec<Effect> {
        self.begin_phase(now);
        let mut effects = vec![Effect::TurnBegan];
        effects.extend(self.change(State::Running));
        effects
    }

    /// `reason` is given when a turn ends by this.
    fn become_idle(&mut self, now: u64, reason: Option<&'static str>) -> Vec<Effect> {
        self.begin_phase(now);
        let mut effects = Vec::new();
        if reason.is_some() {
            effects.push(Effect::FinishTurn);
        }
        effects.extend(self.change(State::Idle));
        if let Some(reason) = reason {
            effects.push(Effect::AnnounceTurn { reason });
        }
        if std::mem::take(&mut self.interrupted) && self.rules.continues {
            effects.push(Effect::Continue);
        }
        effects
    }

    /// Change state; a turn under way ends by it.
    fn leave_for(&mut self, new: State, reason: &'static str) -> Vec<Effect> {
        let in_turn = self.is_in_turn();
        let mut effects = Vec::new();
        if in_turn {
            effects.push(Effect::FinishTurn);
        }
        effects.extend(self.change(new));
        if in_turn {
            effects.push(Effect::AnnounceTurn { reason });
        }
        effects
    }

    fn change(&mut self, new: State) -> Vec<Effect> {
        let old = std::mem::replace(&mut self.state, new);
        if old == new {
            vec![]
        } else {
            vec![Effect::Changed { old, new }]
        }
    }

    fn ended(&mut self, now: u64, ending: Ending) -> Vec<Effect> {
        match self.state {
            State::Idle | State::Running | State::Waiting if ending.is_clean() => {
                let effects = self.leave_for(State::Stopped, "exit");
                if self.rules.policy == RestartPolicy::Always {
                    self.restart_at = Some(now + self.rules.delay_ms);
                }
                effects
            }
            State::Starting if ending.is_clean() => {
                self.last_error = Some(format!("{} while starting", ending.describe()));
                let effects = self.change(State::Error);
                if self.rules.policy == RestartPolicy::Always {
                    self.restart_at = Some(now + self.rules.delay_ms);
                }
                effects
            }
            State::Starting | State::Idle | State::Running | State::Waiting => {
                self.crashes += 1;
                self.interrupted |= self.is_in_turn();
                self.last_error = Some(ending.describe());
                let mut effects = self.leave_for(State::Error, "crash");
                effects.push(Effect::Crashed {
                    ending,
                    crashes: self.crashes,
                });
                effects.extend(self.plan_restart(now));
                effects
            }
            _ => vec![],
        }
    }

    /// Decide whether and when a failed session starts again.
    fn plan_restart(&mut self, now: u64) -> Vec<Effect> {
        if self.rules.policy == RestartPolicy::Never {
            return vec![];
        }
        self.crash_times.push(now);
        self.crash_times
            .retain(|at| now.saturating_sub(*at) < self.rules.window_ms);
        let recent = self.crash_times.len() as u32;
        if recent >= self.rules.max_crashes {
            let seconds = self.rules.window_ms / 1000;
            self.last_error = Some(format!(
                "crash loop: {} crashes in {seconds} s",
                self.rules.max_crashes
            ));
            self.restart_at = None;
            return vec![];
        }
        let doubled = self
            .rules
            .delay_ms
            .saturating_mul(1 << recent.saturating_sub(1).min(16));
        self.restart_at = Some(now + doubled.min(LONGEST_DELAY_MS.max(self.rules.delay_ms)));
        vec![]
    }
}

#[cfg(test)]
mod tests;
