//! Starts, stops and restarts that somebody asks for, and the order processes keep.
//!
//! A process with `after` is started when those it names are ready and stopped before them. It
//! starts none of them: a start that waits for one that nobody starts waits with it, or fails when
//! somebody waits for the answer.

use super::process::{Input, Phase as ProcessPhase};
use super::{Core, Effect, Ms, Wait, log};
use crate::report::{Level, Part};

/// What may be asked of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    Start,
    Stop,
    Restart,
}

impl Operation {
    fn input(self) -> Input {
        match self {
            Self::Start => Input::Start,
            Self::Stop => Input::Stop,
            Self::Restart => Input::Restart,
        }
    }
}

/// Who wants a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// The beginning of the run, which goes on meanwhile.
    Itself,
    /// A step or a user, who waits for the answer.
    Somebody,
}

/// A start that waits for others.
#[derive(Clone, Debug)]
pub(super) struct Held {
    input: Input,
    by: By,
}

enum Order {
    Now,
    Later,
    Never(String),
}

impl Core {
    /// A user asks for an operation on one process.
    pub(super) fn operated(
        &mut self,
        now: Ms,
        name: &str,
        operation: Operation,
        waiter: u64,
        out: &mut Vec<Effect>,
    ) {
        if !self.processes.contains_key(name) {
            out.push(Effect::Finished {
                waiter,
                result: Err(format!("no process named '{name}'")),
            });
            return;
        }
        self.operators.entry(name.to_owned()).or_default().push(waiter);
        self.command(now, name, operation.input(), By::Somebody, out);
    }

    /// Give a process an operation, when those it comes after allow it.
    pub(super) fn command(&mut self, now: Ms, name: &str, input: Input, by: By, out: &mut Vec<Effect>) {
        if input == Input::Stop {
            self.held.remove(name);
            self.process(now, name, input, out);
            return;
        }
        match self.order(name, by) {
            Order::Now => self.process(now, name, input, out),
            Order::Later => {
                self.held.insert(name.to_owned(), Held { input, by });
                if by == By::Itself && self.autostart.front().is_some_and(|front| front == name) {
                    // The others need not wait.
                    self.autostart.pop_front();
                    self.start_next_process(now, out);
                }
            }
            Order::Never(reason) => self.not_started(now, name, &reason, out),
        }
    }

    fn not_started(&mut self, now: Ms, name: &str, reason: &str, out: &mut Vec<Effect>) {
        let text = format!("failed to start process '{name}': {reason}");
        if self.autostart.front().is_some_and(|front| front == name) {
            self.autostart.pop_front();
            out.push(log(Level::Error, Part::Process, text));
            self.start_next_process(now, out);
        } else {
            self.answer_operation(now, name, Err(text), out);
        }
    }

    /// Start those whose time has come, and give up those whose time never comes.
    pub(super) fn start_held(&mut self, now: Ms, out: &mut Vec<Effect>) {
        let names: Vec<String> = self.held.keys().cloned().collect();
        for name in names {
            let Some(Held { input, by }) = self.held.get(&name).cloned() else {
                continue;
            };
            match self.order(&name, by) {
                Order::Later => {}
                Order::Now => {
                    self.held.remove(&name);
                    self.process(now, &name, input, out);
                }
                Order::Never(reason) => {
                    self.held.remove(&name);
                    self.not_started(now, &name, &reason, out);
                }
            }
        }
    }

    fn order(&self, name: &str, by: By) -> Order {
        let after = self.config.process.get(name).map(|process| &process.after);
        let mut order = Order::Now;
        for other in after.into_iter().flatten() {
            let Some(found) = self.processes.get(other) else {
                continue;
            };
            let is_coming = self.held.contains_key(other) || self.autostart.contains(other);
            match found.machine.phase() {
                ProcessPhase::Up { .. } if found.health.is_expired() => {
                    return Order::Never(format!("'{other}' did not become ready in time"));
                }
                ProcessPhase::Up { .. } if !found.health.is_waiting_for_readiness() => {}
                ProcessPhase::Down | ProcessPhase::Exited { .. } if is_coming => order = Order::Later,
                ProcessPhase::Exited { .. } => {
                    return Order::Never(match found.ended_for_good() {
                        Some(exit) => format!("'{other}' exited with {exit}"),
                        None => format!("'{other}' could not be started"),
                    });
                }
                ProcessPhase::Down if by == By::Somebody => {
                    return Order::Never(format!("'{other}' is not running"));
                }
                ProcessPhase::Up { .. }
                | ProcessPhase::Down
                | ProcessPhase::Spawning
                | ProcessPhase::Stopping { .. }
                | ProcessPhase::Backoff { .. } => order = Order::Later,
            }
        }
        order
    }

    /// An operation is over: tell whoever waits for it.
    pub(super) fn answer_operation(
        &mut self,
        now: Ms,
        name: &str,
        result: Result<(), String>,
        out: &mut Vec<Effect>,
    ) {
        let waiters = self.operators.remove(name).unwrap_or_default();
        let is_step = matches!(&self.wait, Wait::Process(waiting) if waiting == name);
        if waiters.is_empty()
            && !is_step
            && let Err(text) = &result
        {
            out.push(log(Level::Error, Part::Process, text.clone()));
        }
        for waiter in waiters {
            out.push(Effect::Finished {
                waiter,
                result: result.clone(),
            });
        }
        if is_step {
            self.wait = Wait::Nothing;
            self.step_result(now, result, out);
        }
    }

    /// Shutdown: stop those nobody who still runs comes after; the others follow.
    pub(super) fn stop_in_order(&mut self, now: Ms, out: &mut Vec<Effect>) {
        let names = std::mem::take(&mut self.to_stop);
        for name in names {
            let is_needed = self.processes.iter().any(|(other, found)| {
                let after = self.config.process.get(other).map(|process| &process.after);
                !found.is_settled() && after.is_some_and(|after| after.contains(&name))
            });
            if is_needed {
                self.to_stop.push(name);
            } else {
                self.process(now, &name, Input::Shutdown, out);
            }
        }
    }
}
