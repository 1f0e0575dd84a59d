//! The lane at work, and the polls beside it: which execution is next, what each step does, how it ends.

use std::collections::BTreeSet;

use serde_json::Value;

use super::execution::{Execution, Next, Role, Run, StepPlace};
use super::health::request_limit;
use super::lane::Request;
use super::operate::By;
use super::process::Input;
use super::{Captured, Core, Effect, Ms, Phase, Save, Wait, finish, log};
use crate::config::{LogStyle, ProbeTarget, Step};
use crate::report::{Level, Part, Report, Source};
use crate::template::{Insert, render};

/// A poll without a limit of its own is stopped after this time.
const POLL_LIMIT: Ms = 30_000;

impl Core {
    /// Take up the next execution when the lane is free for it.
    pub(super) fn run_lane(&mut self, now: Ms, out: &mut Vec<Effect>) {
        loop {
            self.continue_execution(now, out);
            if self.running.is_some() {
                return;
            }
            self.apply_config(now, out);
            let request = match self.phase {
                Phase::Starting if self.autostart.is_empty() => {
                    let Some(request) = self.startup.pop_front() else {
                        self.become_ready(now, out);
                        continue;
                    };
                    request
                }
                Phase::Running => match self.lane.pop() {
                    Some(request) => request,
                    None if self.plan.once => {
                        self.shut_down(now, "done".into(), out);
                        return;
                    }
                    None => return,
                },
                Phase::Waiting | Phase::Starting | Phase::Stopping | Phase::Ended => return,
            };
            self.start_execution(now, request, out);
        }
    }

    fn become_ready(&mut self, now: Ms, out: &mut Vec<Effect>) {
        self.phase = Phase::Running;
        self.revision += 1;
        if self.plan.once {
            return;
        }
        out.push(Effect::Ready);
        out.push(log(Level::Info, Part::Engine, "loop ready"));
        self.window.release(now);
        self.close_window(now, out);
        self.polls.begin(now);
    }

    /// Polls run beside the lane: they delay no execution and wait for none.
    pub(super) fn start_polls(&mut self, now: Ms, out: &mut Vec<Effect>) {
        while self.phase == Phase::Running
            && let Some(hook) = self.polls.take_due(now)
        {
            self.start_poll(hook, out);
        }
    }

    fn start_poll(&mut self, hook: String, out: &mut Vec<Effect>) {
        let id = self.ids.next();
        let limit = self
            .config
            .hook
            .get(&hook)
            .and_then(|hook| hook.timeout_ms)
            .unwrap_or(POLL_LIMIT);
        out.push(Effect::RunHook {
            id,
            hook: hook.clone(),
            workflow: "observe".into(),
            changed: Vec::new(),
            limit: Some(limit),
        });
        self.polling.insert(id, hook);
    }

    fn start_execution(&mut self, now: Ms, request: Request, out: &mut Vec<Effect>) {
        let warning = self.counts.began(now, &request).map(|path| {
            let name = &request.workflow;
            format!("workflow '{name}' appears to trigger itself through '{path}'")
        });
        self.revision += 1;
        let execution = Execution::new(request, now, self.lane.numbers.clone());
        let top = execution.top.clone();
        self.running = Some(execution);
        self.run_began(&top, out);
        out.extend(warning.map(|text| log(Level::Warn, Part::Engine, text)));
    }

    /// Run steps until one has to wait or the execution ends.
    fn continue_execution(&mut self, now: Ms, out: &mut Vec<Effect>) {
        while matches!(self.wait, Wait::Nothing) {
            let config = std::sync::Arc::clone(&self.config);
            let Some(execution) = self.running.as_mut() else {
                return;
            };
            match execution.next(&config, now) {
                Next::Begins(run) => {
                    if run.role != Role::Inline {
                        let changed = execution
                            .request
                            .changed
                            .iter()
                            .cloned()
                            .map(Value::String)
                            .collect();
                        let name = Value::String(run.workflow.clone());
                        self.set_state(now, "last_workflow", name, out);
                        self.set_state(now, "last_changed_files", Value::Array(changed), out);
                    }
                    if run.role != Role::Top {
                        self.run_began(&run, out);
                    }
                }
                Next::Perform(step) => {
                    self.revision += 1;
                    if let Some(result) = self.perform(now, &step, out) {
                        self.step_result(now, result, out);
                    }
                }
                Next::Ends(run, place) => {
                    self.run_ended(now, &run, &Ok(()), out);
                    out.extend(place.map(|place| step_report(now, place, true)));
                }
                Next::Finished => self.finish_execution(now, Ok(()), out),
            }
        }
    }

    /// Do what a step says; gives its result, or nothing when it has to be waited for.
    fn perform(&mut self, now: Ms, step: &Step, out: &mut Vec<Effect>) -> Option<Result<(), String>> {
        match step {
            Step::StartProcess(name) => self.operate(now, name, Input::Start, out),
            Step::StopProcess(name) => self.operate(now, name, Input::Stop, out),
            Step::RestartProcess(name) => self.operate(now, name, Input::Restart, out),
            Step::WaitForProcess(name) => {
                let Some(probe) = self
                    .config
                    .process
                    .get(name)
                    .and_then(|found| found.readiness.as_ref())
                else {
                    return Some(Ok(()));
                };
                let deadline = now + probe.timeout_ms;
                self.wait = Wait::Ready {
                    process: name.clone(),
                    deadline,
                    next: now,
                    flight: None,
                };
                self.tick_wait(now, out);
                None
            }
            Step::RunHook(hook) => {
                let id = self.ids.next();
                let execution = self.running.as_ref()?;
                let effect = Effect::RunHook {
                    id,
                    hook: hook.clone(),
                    workflow: execution.holder().to_owned(),
                    changed: execution.request.changed.clone(),
                    limit: self.config.hook.get(hook).and_then(|hook| hook.timeout_ms),
                };
                out.push(effect);
                self.wait = Wait::Hook(id);
                None
            }
            Step::RunWorkflow(_) => Some(Ok(())),
            Step::SleepMs(duration) => {
                self.wait = Wait::Sleep {
                    until: now.saturating_add(*duration),
                };
                None
            }
            Step::WriteState { key, value } => {
                let text = render(value, Insert::AsIs, |key| self.state.get(key));
                self.set_state(now, key, Value::String(text), out);
                if !self.state.is_dirty() {
                    return Some(Ok(()));
                }
                out.push(Effect::Save(Save::Step));
                self.wait = Wait::Save;
                None
            }
            Step::Log { message, style } => {
                let text = render(message, Insert::Visible, |key| self.state.get(key));
                let lines = match style {
                    LogStyle::Plain => vec![text],
                    LogStyle::Boxed => boxed(&text),
                };
                out.extend(
                    lines
                        .into_iter()
                        .map(|text| Effect::Report(Report::Said { text })),
                );
                Some(Ok(()))
            }
            Step::NotifyReload => {
                self.counts.reloads += 1;
                out.push(log(Level::Info, Part::Browser, "told browsers to reload"));
                out.push(Effect::Reload);
                Some(Ok(()))
            }
        }
    }

    fn operate(
        &mut self,
        now: Ms,
        name: &str,
        input: Input,
        out: &mut Vec<Effect>,
    ) -> Option<Result<(), String>> {
        // The answer may come at once, through `step_result`.
        self.wait = Wait::Process(name.to_owned());
        self.command(now, name, input, By::Somebody, out);
        None
    }

    /// The current step has ended. What follows happens when the lane is looked at next, which is
    /// before the event at hand is done with.
    pub(super) fn step_result(&mut self, now: Ms, result: Result<(), String>, out: &mut Vec<Effect>) {
        if self.end_superseded(now, out) {
            return;
        }
        let Some(execution) = self.running.as_mut() else {
            return;
        };
        let Some(place) = execution.place(&self.config) else {
            return;
        };
        out.push(step_report(now, place.clone(), result.is_ok()));
        match result {
            Ok(()) => execution.step_done(),
            Err(cause) => {
                let text = format!(
                    "{} step {} {}: {cause}",
                    place.workflow, place.index, place.action
                );
                self.finish_execution(now, Err(text), out);
            }
        }
    }

    fn finish_execution(&mut self, now: Ms, result: Result<(), String>, out: &mut Vec<Effect>) {
        let Some(execution) = &self.running else { return };
        self.wait = Wait::Nothing;
        self.superseding = None;
        self.revision += 1;
        if let Err(error) = &result {
            let name = &execution.request.workflow;
            let text = format!("workflow failed; continuing runtime workflow={name} error={error}");
            out.push(log(Level::Error, Part::Engine, text));
            if self.plan.once {
                self.code = 1;
            }
        }
        // A failure ends everybody who waited for the step; a success has only the top left.
        let mut runs: Vec<Run> = execution.runs().cloned().collect();
        if runs.is_empty() {
            runs.push(execution.top.clone());
        }
        for run in runs {
            self.run_ended(now, &run, &result, out);
        }
        if let Some(execution) = self.running.take() {
            finish(&execution.request, &result, out);
        }
    }

    pub(super) fn hook_done(
        &mut self,
        now: Ms,
        id: u64,
        result: Result<Captured, String>,
        out: &mut Vec<Effect>,
    ) {
        if let Some(hook) = self.polling.remove(&id) {
            self.poll_done(now, &hook, result, out);
        } else if matches!(self.wait, Wait::Hook(waiting) if waiting == id) {
            self.wait = Wait::Nothing;
            if self.is_stopping() {
                self.cancel_running(now, out);
                return;
            }
            let hook = self
                .running
                .as_ref()
                .and_then(|execution| match execution.step(&self.config) {
                    Some((Step::RunHook(hook), _)) => Some(hook.clone()),
                    _ => None,
                });
            let result = result.map(|captured| {
                if let Some(hook) = hook {
                    self.store(now, &hook, captured, out);
                }
            });
            self.step_result(now, result, out);
        }
    }

    fn poll_done(&mut self, now: Ms, hook: &str, result: Result<Captured, String>, out: &mut Vec<Effect>) {
        self.polls.ended(now, hook);
        // It may be gone from the config since it was started.
        if self.is_stopping() || !self.config.hook.contains_key(hook) {
            return;
        }
        match result {
            Ok(captured) => {
                let observe = self.config.hook.get(hook).and_then(|hook| hook.observe.clone());
                if self.store(now, hook, captured, out)
                    && let Some(observe) = observe
                {
                    let cause = vec![format!("hook {hook} (changed state)")];
                    self.lane.push(Request::new(
                        &observe.workflow,
                        Source::Observe,
                        Vec::new(),
                        cause,
                    ));
                    self.revision += 1;
                }
            }
            Err(text) => {
                if self.polls.may_warn(now, hook, &text) {
                    out.push(log(Level::Warn, Part::Engine, format!("poll failed: {text}")));
                }
            }
        }
    }

    /// Store a value, and say so when it is another than before.
    pub(super) fn set_state(&mut self, now: Ms, key: &str, value: Value, out: &mut Vec<Effect>) -> bool {
        let is_new = self.state.set(now, key, value);
        if is_new {
            out.push(Effect::StateChanged(key.to_owned()));
        }
        is_new
    }

    /// Store what a hook captured; true when it changed a key.
    fn store(&mut self, now: Ms, hook: &str, captured: Captured, out: &mut Vec<Effect>) -> bool {
        match captured {
            Captured::Nothing => false,
            Captured::Text(text) => {
                let key = self.config.hook.get(hook).and_then(|hook| hook.state_key.clone());
                key.is_some_and(|key| self.set_state(now, &key, Value::String(text), out))
            }
            Captured::Json(members) => {
                let mut changed = false;
                for (key, value) in members {
                    changed |= self.set_state(now, &key, value, out);
                }
                changed
            }
        }
    }

    /// A sleep that is over, or a readiness check that is due.
    pub(super) fn tick_wait(&mut self, now: Ms, out: &mut Vec<Effect>) {
        match &mut self.wait {
            Wait::Sleep { until } => {
                if now >= *until {
                    self.wait = Wait::Nothing;
                    self.step_result(now, Ok(()), out);
                }
            }
            Wait::Ready {
                process,
                deadline,
                next,
                flight,
            } => {
                let name = process.clone();
                let (deadline, due) = (*deadline, flight.is_none() && now >= *next);
                // A process that ended and stays down will not become ready.
                if let Some(exit) = self
                    .processes
                    .get(&name)
                    .and_then(super::Supervised::ended_for_good)
                {
                    self.wait = Wait::Nothing;
                    let text = format!("process '{name}' exited with {exit} while waiting for readiness");
                    self.step_result(now, Err(text), out);
                    return;
                }
                if !due {
                    return;
                }
                let Some(probe) = self
                    .config
                    .process
                    .get(&name)
                    .and_then(|found| found.readiness.as_ref())
                else {
                    return;
                };
                match &probe.target {
                    ProbeTarget::StateKey(key) => {
                        let ready = self.state.is_set(key);
                        self.wait_answer(now, &name, ready, out);
                    }
                    ProbeTarget::Http(url) => {
                        let id = self.ids.next();
                        let limit = request_limit(deadline.saturating_sub(now));
                        *flight = Some(id);
                        out.push(Effect::Probe {
                            id,
                            url: url.clone(),
                            limit,
                        });
                    }
                }
            }
            Wait::Nothing | Wait::Process(_) | Wait::Hook(_) | Wait::Save => {}
        }
    }

    /// Whether a probe was the one a wait asked for.
    pub(super) fn wait_probed(
        &mut self,
        now: Ms,
        id: u64,
        answer: &Result<(), String>,
        out: &mut Vec<Effect>,
    ) -> bool {
        let Wait::Ready { process, flight, .. } = &mut self.wait else {
            return false;
        };
        if *flight != Some(id) {
            return false;
        }
        *flight = None;
        let name = process.clone();
        self.wait_answer(now, &name, answer.is_ok(), out);
        true
    }

    fn wait_answer(&mut self, now: Ms, name: &str, ready: bool, out: &mut Vec<Effect>) {
        let Some(probe) = self
            .config
            .process
            .get(name)
            .and_then(|found| found.readiness.clone())
        else {
            return;
        };
        let Wait::Ready { deadline, next, .. } = &mut self.wait else {
            return;
        };
        if ready {
            let text = match &probe.target {
                ProbeTarget::Http(url) => format!("process {name} is healthy at {url}"),
                ProbeTarget::StateKey(key) => format!("process {name} is ready via state key {key}"),
            };
            self.wait = Wait::Nothing;
            out.push(log(Level::Info, Part::Process, text));
            self.seen_ready(now, name, out);
            self.step_result(now, Ok(()), out);
        } else if now >= *deadline {
            let text = match &probe.target {
                ProbeTarget::Http(url) => format!("timed out waiting for process '{name}' probe {url}"),
                ProbeTarget::StateKey(key) => {
                    format!("timed out waiting for process '{name}' state key {key}")
                }
            };
            self.wait = Wait::Nothing;
            self.step_result(now, Err(text), out);
        } else {
            *next = (now + probe.interval_ms).min(*deadline);
        }
    }

    /// A host asks for a workflow by name.
    pub(super) fn requested(
        &mut self,
        workflow: &str,
        changed: Vec<String>,
        waiter: u64,
        out: &mut Vec<Effect>,
    ) {
        let refusal = if !self.config.workflow.contains_key(workflow) {
            format!("no workflow named '{workflow}'")
        } else if self.is_stopping() {
            "the loop is shutting down".to_owned()
        } else {
            let changed: BTreeSet<String> = changed.into_iter().collect();
            let cause = vec!["workspace".to_owned()];
            let mut request = Request::new(workflow, Source::Workspace, changed.into_iter().collect(), cause);
            request.waiters.push(waiter);
            let number = self.lane.push(request);
            out.push(Effect::Queued { waiter, number });
            self.revision += 1;
            return;
        };
        out.push(Effect::Finished {
            waiter,
            result: Err(refusal),
        });
    }
}

fn step_report(now: Ms, place: StepPlace, ok: bool) -> Effect {
    Effect::Report(Report::Step {
        workflow: place.workflow,
        index: place.index,
        action: place.action,
        ms: now - place.began,
        ok,
    })
}

/// The text in a box, padded to its widest line.
fn boxed(text: &str) -> Vec<String> {
    use unicode_width::UnicodeWidthStr;
    let widest = text.lines().map(UnicodeWidthStr::width).max().unwrap_or(0);
    let edge = format!("+{}+", "-".repeat(widest + 4));
    let mut lines = vec![edge.clone()];
    let mut body: Vec<&str> = text.lines().collect();
    if body.is_empty() {
        body.push("");
    }
    for line in body {
        lines.push(format!("|  {line}{}  |", " ".repeat(widest - line.width())));
    }
    lines.push(edge);
    lines
}
