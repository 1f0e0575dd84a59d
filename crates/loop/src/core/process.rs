//! One supervised process: what it is doing and what should happen next.
//!
//! A pure machine. It never lets a new start happen before the old group is gone, and a stop that
//! was asked for never brings a restart.

use super::Ms;
use crate::config::{Backoff, Restart};
use crate::report::{Exit, Level};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    Start,
    Stop,
    Restart,
    Spawned {
        generation: u64,
        pid: u32,
    },
    SpawnFailed {
        generation: u64,
        reason: String,
    },
    /// The leader ended; `leftovers` when others of its group are still there.
    Exited {
        generation: u64,
        exit: Exit,
        leftovers: bool,
    },
    /// After a stop: leader collected, group empty.
    Gone {
        generation: u64,
    },
    /// After a stop: these cannot be killed.
    StopFailed {
        generation: u64,
        left: Vec<u32>,
    },
    /// Liveness failed often enough.
    Unhealthy,
    Tick,
    /// No start from here on.
    Close,
    Shutdown,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Spawn {
        generation: u64,
    },
    Stop {
        generation: u64,
    },
    Log(Level, String),
    /// The operation somebody waits for is complete.
    Done(Result<(), String>),
    /// The process runs from now on.
    Started,
    /// The process does not run any more.
    Ended,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Never started, or stopped on request.
    Down,
    /// Ended on its own, no restart due.
    Exited {
        leftovers: bool,
    },
    Spawning,
    Up {
        since: Ms,
        pid: u32,
    },
    Stopping {
        then: Then,
    },
    /// Waits for its restart; `clear` when nothing of the old group is left.
    Backoff {
        until: Ms,
        clear: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Down,
    Start,
    Backoff,
}

#[derive(Debug)]
pub(crate) struct Machine {
    name: String,
    policy: Restart,
    backoff: Backoff,
    phase: Phase,
    generation: u64,
    attempts: u32,
    restarts: u64,
    last_exit: Option<(Exit, Ms)>,
    ever_started: bool,
    /// Somebody waits for the operation under way.
    asked: bool,
    /// What was asked while the spawn was under way.
    after_spawn: Option<Then>,
    closing: bool,
}

impl Machine {
    pub(crate) fn new(name: &str, policy: Restart, backoff: Backoff) -> Self {
        Self {
            name: name.to_owned(),
            policy,
            backoff,
            phase: Phase::Down,
            generation: 0,
            attempts: 0,
            restarts: 0,
            last_exit: None,
            ever_started: false,
            asked: false,
            after_spawn: None,
            closing: false,
        }
    }

    pub(crate) fn reconfigure(&mut self, policy: Restart, backoff: Backoff) {
        (self.policy, self.backoff) = (policy, backoff);
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase
    }

    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn restarts(&self) -> u64 {
        self.restarts
    }

    pub(crate) fn last_exit(&self) -> Option<(Exit, Ms)> {
        self.last_exit
    }

    pub(crate) fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Up { .. })
    }

    /// Down for good until somebody asks, after it had been started: how it ended.
    pub(crate) fn ended_for_good(&self) -> Option<Exit> {
        match self.phase {
            Phase::Exited { .. } if self.ever_started => self.last_exit.map(|(exit, _)| exit),
            Phase::Exited { .. }
            | Phase::Down
            | Phase::Spawning
            | Phase::Up { .. }
            | Phase::Stopping { .. }
            | Phase::Backoff { .. } => None,
        }
    }

    /// Nothing of the process is alive and nothing will start it.
    pub(crate) fn is_settled(&self) -> bool {
        matches!(self.phase, Phase::Down | Phase::Exited { leftovers: false })
    }

    pub(crate) fn deadline(&self) -> Option<Ms> {
        match self.phase {
            Phase::Backoff { until, clear: true } => Some(until),
            Phase::Backoff { clear: false, .. }
            | Phase::Down
            | Phase::Exited { .. }
            | Phase::Spawning
            | Phase::Up { .. }
            | Phase::Stopping { .. } => None,
        }
    }

    pub(crate) fn handle(&mut self, now: Ms, input: Input) -> Vec<Output> {
        let mut out = Vec::new();
        match input {
            Input::Start => self.start(&mut out),
            Input::Restart => self.restart(&mut out),
            Input::Stop => self.stop(&mut out),
            Input::Spawned { generation, pid } if generation == self.generation => {
                self.spawned(now, pid, &mut out);
            }
            Input::SpawnFailed { generation, reason } if generation == self.generation => {
                self.spawn_failed(now, &reason, &mut out);
            }
            Input::Exited {
                generation,
                exit,
                leftovers,
            } if generation == self.generation => {
                self.exited(now, exit, leftovers, &mut out);
            }
            Input::Gone { generation } if generation == self.generation => self.gone(now, &mut out),
            Input::StopFailed { generation, left } if generation == self.generation => {
                self.stop_failed(&left, &mut out);
            }
            Input::Unhealthy => {
                if self.is_up() && self.policy != Restart::Never && !self.closing {
                    self.phase = Phase::Stopping { then: Then::Backoff };
                    out.push(Output::Stop {
                        generation: self.generation,
                    });
                }
            }
            Input::Tick => {
                if let Phase::Backoff { until, clear: true } = self.phase
                    && now >= until
                    && !self.closing
                {
                    self.restarts += 1;
                    self.spawn(&mut out);
                }
            }
            Input::Close => {
                self.closing = true;
                match self.phase {
                    Phase::Spawning => self.after_spawn = Some(Then::Down),
                    Phase::Stopping { .. } => self.phase = Phase::Stopping { then: Then::Down },
                    Phase::Down | Phase::Exited { .. } | Phase::Up { .. } | Phase::Backoff { .. } => {}
                }
            }
            Input::Shutdown => self.shutdown(&mut out),
            // A report about an earlier start.
            Input::StopFailed { .. } => {}
            Input::Spawned { .. } | Input::SpawnFailed { .. } | Input::Exited { .. } | Input::Gone { .. } => {
            }
        }
        out
    }

    fn spawn(&mut self, out: &mut Vec<Output>) {
        self.generation += 1;
        self.phase = Phase::Spawning;
        out.push(Output::Spawn {
            generation: self.generation,
        });
    }

    fn start(&mut self, out: &mut Vec<Output>) {
        if self.closing {
            out.push(Output::Done(Err("the loop is shutting down".into())));
            return;
        }
        match self.phase {
            Phase::Up { .. } => out.push(Output::Done(Ok(()))),
            Phase::Down | Phase::Exited { leftovers: false } | Phase::Backoff { clear: true, .. } => {
                self.begin();
                self.spawn(out);
            }
            Phase::Exited { leftovers: true } => {
                self.begin();
                self.phase = Phase::Stopping { then: Then::Start };
                out.push(Output::Stop {
                    generation: self.generation,
                });
            }
            Phase::Backoff { clear: false, .. } | Phase::Stopping { .. } => {
                self.begin();
                self.phase = Phase::Stopping { then: Then::Start };
            }
            Phase::Spawning => {
                self.begin();
                self.after_spawn = None;
            }
        }
    }

    /// A workflow or a user begins an operation: it waits, and the backoff begins anew.
    fn begin(&mut self) {
        self.asked = true;
        self.attempts = 0;
    }

    fn restart(&mut self, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Up { .. } if !self.closing => {
                self.begin();
                self.phase = Phase::Stopping { then: Then::Start };
                out.push(Output::Stop {
                    generation: self.generation,
                });
            }
            Phase::Spawning if !self.closing => {
                self.begin();
                self.after_spawn = Some(Then::Start);
            }
            Phase::Up { .. }
            | Phase::Spawning
            | Phase::Down
            | Phase::Exited { .. }
            | Phase::Stopping { .. }
            | Phase::Backoff { .. } => self.start(out),
        }
    }

    fn stop(&mut self, out: &mut Vec<Output>) {
        let already = Output::Log(Level::Info, format!("process {} already exited", self.name));
        match self.phase {
            Phase::Down => out.push(Output::Done(Ok(()))),
            Phase::Exited { leftovers: false } | Phase::Backoff { clear: true, .. } => {
                self.phase = Phase::Down;
                out.extend([already, Output::Done(Ok(()))]);
            }
            Phase::Exited { leftovers: true } => {
                self.asked = true;
                self.phase = Phase::Stopping { then: Then::Down };
                out.extend([
                    already,
                    Output::Stop {
                        generation: self.generation,
                    },
                ]);
            }
            Phase::Backoff { clear: false, .. } => {
                self.asked = true;
                self.phase = Phase::Stopping { then: Then::Down };
                out.push(already);
            }
            Phase::Up { .. } => {
                self.asked = true;
                self.phase = Phase::Stopping { then: Then::Down };
                out.push(Output::Stop {
                    generation: self.generation,
                });
            }
            Phase::Stopping { .. } => {
                self.asked = true;
                self.phase = Phase::Stopping { then: Then::Down };
            }
            Phase::Spawning => {
                self.asked = true;
                self.after_spawn = Some(Then::Down);
            }
        }
    }

    fn spawned(&mut self, now: Ms, pid: u32, out: &mut Vec<Output>) {
        if self.phase != Phase::Spawning {
            return;
        }
        self.ever_started = true;
        self.phase = Phase::Up { since: now, pid };
        out.push(Output::Log(Level::Info, format!("started process {}", self.name)));
        out.push(Output::Started);
        if let Some(then) = self.after_spawn.take() {
            self.phase = Phase::Stopping { then };
            out.push(Output::Stop {
                generation: self.generation,
            });
        } else {
            self.done(Ok(()), out);
        }
    }

    fn spawn_failed(&mut self, now: Ms, reason: &str, out: &mut Vec<Output>) {
        if self.phase != Phase::Spawning {
            return;
        }
        let text = format!("failed to start process '{}': {reason}", self.name);
        self.phase = Phase::Exited { leftovers: false };
        match self.after_spawn.take() {
            Some(Then::Start) => return self.spawn(out),
            Some(Then::Down | Then::Backoff) => {
                self.phase = Phase::Down;
                return self.done(Ok(()), out);
            }
            None => {}
        }
        if self.asked {
            self.done(Err(text), out);
        } else {
            out.push(Output::Log(Level::Error, text));
            if self.policy != Restart::Never {
                self.schedule(now, true, out);
            }
        }
        out.push(Output::Ended);
    }

    fn exited(&mut self, now: Ms, exit: Exit, leftovers: bool, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Up { since, .. } => {
                self.last_exit = Some((exit, now));
                let level = if exit.is_success() {
                    Level::Info
                } else {
                    Level::Warn
                };
                out.push(Output::Log(
                    level,
                    format!("process {} exited with {exit}", self.name),
                ));
                if now.saturating_sub(since) >= self.backoff.reset_after_ms {
                    self.attempts = 0;
                }
                let again = match self.policy {
                    Restart::Never => false,
                    Restart::OnFailure => !exit.is_success(),
                    Restart::Always => true,
                };
                if again && !self.closing {
                    self.schedule(now, !leftovers, out);
                    if leftovers {
                        out.push(Output::Stop {
                            generation: self.generation,
                        });
                    }
                } else {
                    self.phase = Phase::Exited { leftovers };
                }
                out.push(Output::Ended);
            }
            Phase::Stopping { .. } => self.last_exit = Some((exit, now)),
            Phase::Down | Phase::Exited { .. } | Phase::Spawning | Phase::Backoff { .. } => {}
        }
    }

    fn schedule(&mut self, now: Ms, clear: bool, out: &mut Vec<Output>) {
        let doubled = self
            .backoff
            .initial_ms
            .saturating_mul(1u64.checked_shl(self.attempts).unwrap_or(u64::MAX));
        let delay = doubled.min(self.backoff.max_ms);
        self.attempts = (self.attempts + 1).min(63);
        self.phase = Phase::Backoff {
            until: now + delay,
            clear,
        };
        let text = format!(
            "restarting process {} in {delay} ms (attempt {})",
            self.name, self.attempts
        );
        out.push(Output::Log(Level::Info, text));
    }

    fn gone(&mut self, now: Ms, out: &mut Vec<Output>) {
        match self.phase {
            Phase::Stopping { then } => {
                out.push(Output::Log(Level::Info, format!("stopped process {}", self.name)));
                out.push(Output::Ended);
                match then {
                    Then::Down => {
                        self.phase = Phase::Down;
                        self.done(Ok(()), out);
                    }
                    Then::Start => self.spawn(out),
                    Then::Backoff => self.schedule(now, true, out),
                }
            }
            Phase::Backoff { until, .. } => self.phase = Phase::Backoff { until, clear: true },
            Phase::Exited { .. } => self.phase = Phase::Exited { leftovers: false },
            Phase::Down | Phase::Spawning | Phase::Up { .. } => {}
        }
    }

    /// Whatever was to follow the stop does not: a new start beside the old one would be worse.
    fn stop_failed(&mut self, left: &[u32], out: &mut Vec<Output>) {
        let text = format!(
            "process '{}' cannot be killed: {} is left",
            self.name,
            crate::report::numbers(left)
        );
        out.push(Output::Log(Level::Error, text.clone()));
        // At the end nobody waits for it any longer.
        self.phase = Phase::Exited {
            leftovers: !self.closing,
        };
        self.done(Err(text), out);
    }

    fn shutdown(&mut self, out: &mut Vec<Output>) {
        self.closing = true;
        match self.phase {
            Phase::Up { .. } | Phase::Exited { leftovers: true } => {
                self.phase = Phase::Stopping { then: Then::Down };
                out.push(Output::Stop {
                    generation: self.generation,
                });
            }
            Phase::Stopping { .. } | Phase::Backoff { clear: false, .. } => {
                self.phase = Phase::Stopping { then: Then::Down };
            }
            Phase::Backoff { clear: true, .. } => self.phase = Phase::Exited { leftovers: false },
            Phase::Spawning => self.after_spawn = Some(Then::Down),
            Phase::Down | Phase::Exited { leftovers: false } => {}
        }
    }

    fn done(&mut self, result: Result<(), String>, out: &mut Vec<Output>) {
        if std::mem::take(&mut self.asked) {
            out.push(Output::Done(result));
        }
    }
}

#[cfg(test)]
mod tests;
