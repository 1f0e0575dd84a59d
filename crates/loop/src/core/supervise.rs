//! The processes of a run: their machines and their health, wired to the core.

use serde_json::Value;

use super::health::{self, Health};
use super::operate::By;
use super::process::{Input, Machine, Output, Phase};
use super::{Core, Effect, Ms, log};
use crate::config::Process;
use crate::report::{Exit, Level, Part, Report};

pub(super) struct Supervised {
    pub(super) machine: Machine,
    pub(super) health: Health,
    /// The last state told in a report.
    told: &'static str,
}

impl Supervised {
    pub(super) fn new(name: &str, process: &Process) -> Self {
        Self {
            machine: Machine::new(name, process.restart, process.backoff),
            health: Health::new(process.readiness.clone(), process.liveness.clone()),
            told: "stopped",
        }
    }

    /// Go on by another config.
    pub(super) fn reconfigure(&mut self, process: &Process) {
        self.machine.reconfigure(process.restart, process.backoff);
        self.health = Health::new(process.readiness.clone(), process.liveness.clone());
    }

    pub(super) fn generation(&self) -> u64 {
        self.machine.generation()
    }

    pub(super) fn deadline(&self) -> Option<Ms> {
        [self.machine.deadline(), self.health.deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    pub(super) fn is_settled(&self) -> bool {
        self.machine.is_settled()
    }

    pub(super) fn ended_for_good(&self) -> Option<Exit> {
        self.machine.ended_for_good()
    }

    /// The word a status shows.
    pub(super) fn state(&self) -> &'static str {
        match self.machine.phase() {
            Phase::Down => "stopped",
            Phase::Exited { .. } => "exited",
            Phase::Spawning => "starting",
            Phase::Stopping { .. } => "stopping",
            Phase::Backoff { .. } => "backoff",
            Phase::Up { .. } if self.health.is_unhealthy() => "unhealthy",
            Phase::Up { .. } if self.health.is_ready() => "ready",
            Phase::Up { .. } if self.health.is_waiting_for_readiness() => "starting",
            Phase::Up { .. } => "running",
        }
    }
}

impl Core {
    /// Startup: the next process that starts on its own, or, after the last, the workflows.
    pub(super) fn start_next_process(&mut self, now: Ms, out: &mut Vec<Effect>) {
        if let Some(name) = self.autostart.front().cloned() {
            self.command(now, &name, Input::Start, By::Itself, out);
        }
    }

    /// Give a process an input and carry out what it answers.
    pub(super) fn process(&mut self, now: Ms, name: &str, input: Input, out: &mut Vec<Effect>) {
        let Some(found) = self.processes.get_mut(name) else {
            return;
        };
        for output in found.machine.handle(now, input) {
            match output {
                Output::Spawn { generation } => self.spawn(now, name, generation, out),
                Output::Stop { generation } => {
                    self.with(name, |found| found.health.ended());
                    out.push(Effect::Stop {
                        process: name.to_owned(),
                        generation,
                    });
                }
                Output::Log(level, text) => out.push(log(level, Part::Process, text)),
                Output::Started => {
                    self.started.retain(|other| other != name);
                    self.started.push(name.to_owned());
                    self.with(name, |found| found.health.started(now));
                }
                Output::Ended => self.with(name, |found| found.health.ended()),
                Output::Done(result) => self.operation_done(now, name, result, out),
            }
        }
        self.tell(name, out);
    }

    fn with(&mut self, name: &str, change: impl FnOnce(&mut Supervised)) {
        if let Some(found) = self.processes.get_mut(name) {
            change(found);
        }
    }

    fn spawn(&mut self, now: Ms, name: &str, generation: u64, out: &mut Vec<Effect>) {
        let config = std::sync::Arc::clone(&self.config);
        let rules = config.process.get(name).map(|process| &process.output.rules);
        for rule in rules.into_iter().flatten() {
            self.set_state(now, &rule.state_key, Value::String(String::new()), out);
        }
        out.push(Effect::Spawn {
            process: name.to_owned(),
            generation,
        });
    }

    fn operation_done(&mut self, now: Ms, name: &str, result: Result<(), String>, out: &mut Vec<Effect>) {
        if self.autostart.front().is_some_and(|front| front == name) {
            self.autostart.pop_front();
            match result {
                Ok(()) => self.start_next_process(now, out),
                Err(text) => {
                    self.code = 1;
                    out.push(log(Level::Error, Part::Process, text.clone()));
                    self.shut_down(now, text, out);
                }
            }
        } else {
            self.answer_operation(now, name, result, out);
        }
    }

    /// Report the state of a process when it is another than last time.
    fn tell(&mut self, name: &str, out: &mut Vec<Effect>) {
        let Some(found) = self.processes.get_mut(name) else {
            return;
        };
        let state = found.state();
        if state == found.told {
            return;
        }
        found.told = state;
        self.revision += 1;
        let pid = match found.machine.phase() {
            Phase::Up { pid, .. } => Some(pid),
            Phase::Down
            | Phase::Exited { .. }
            | Phase::Spawning
            | Phase::Stopping { .. }
            | Phase::Backoff { .. } => None,
        };
        let exit = match state {
            "exited" | "backoff" => found.machine.last_exit().map(|(exit, _)| exit),
            _ => None,
        };
        out.push(Effect::Report(Report::Process {
            name: name.to_owned(),
            state,
            pid,
            exit,
        }));
    }

    pub(super) fn tick_processes(&mut self, now: Ms, out: &mut Vec<Effect>) {
        let due: Vec<String> = self
            .processes
            .iter()
            .filter(|(_, found)| found.deadline().is_some_and(|deadline| now >= deadline))
            .map(|(name, _)| name.clone())
            .collect();
        for name in due {
            self.process(now, &name, Input::Tick, out);
            let Some(found) = self.processes.get_mut(&name) else {
                continue;
            };
            let outputs = found.health.tick(now, &self.state, &mut self.ids);
            self.health_outputs(now, &name, outputs, out);
        }
    }

    pub(super) fn probed(&mut self, now: Ms, id: u64, answer: Result<(), String>, out: &mut Vec<Effect>) {
        if self.wait_probed(now, id, &answer, out) {
            return;
        }
        let names: Vec<String> = self.processes.keys().cloned().collect();
        for name in names {
            let Some(found) = self.processes.get_mut(&name) else {
                continue;
            };
            let outputs = found.health.answered(now, id, answer.clone());
            self.health_outputs(now, &name, outputs, out);
        }
    }

    /// A wait of a workflow saw the process ready.
    pub(super) fn seen_ready(&mut self, now: Ms, name: &str, out: &mut Vec<Effect>) {
        let Some(found) = self.processes.get_mut(name) else {
            return;
        };
        let outputs = found.health.pass(now);
        self.health_outputs(now, name, outputs, out);
    }

    fn health_outputs(&mut self, now: Ms, name: &str, outputs: Vec<health::Output>, out: &mut Vec<Effect>) {
        for output in outputs {
            match output {
                health::Output::Ask { id, url, limit } => out.push(Effect::Probe { id, url, limit }),
                health::Output::BecameReady => {}
                health::Output::Recovered => {
                    out.push(log(
                        Level::Info,
                        Part::Process,
                        format!("liveness probe passes again for {name}"),
                    ));
                }
                health::Output::Failed { reason, restart } => {
                    let text = format!("liveness probe failed for {name}: {reason}");
                    out.push(log(Level::Warn, Part::Process, text));
                    if restart {
                        self.process(now, name, Input::Unhealthy, out);
                    }
                }
            }
        }
        self.tell(name, out);
    }
}
