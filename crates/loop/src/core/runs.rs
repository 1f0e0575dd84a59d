//! Runs of workflows as they are told and counted, and runs that newer changes replace.

use super::execution::{Role, Run};
use super::lane::Request;
use super::{Core, Effect, Ms, Wait, finish, log};
use crate::report::{Level, Part, Report, Source, WorkflowPhase};

/// Between the links of a cause.
pub const ARROW: &str = " → ";

impl Core {
    /// A run begins: every kind is logged, told and counted alike.
    pub(super) fn run_began(&mut self, run: &Run, out: &mut Vec<Effect>) {
        self.counts.run_began(run);
        let text = format!("running workflow {}", run.workflow);
        out.push(log(Level::Info, Part::Engine, text));
        out.push(self.run_report(run, WorkflowPhase::Start, None, None));
    }

    pub(super) fn run_ended(
        &mut self,
        now: Ms,
        run: &Run,
        result: &Result<(), String>,
        out: &mut Vec<Effect>,
    ) {
        let ms = now.saturating_sub(run.began);
        let phase = if result.is_ok() {
            WorkflowPhase::Ok
        } else {
            WorkflowPhase::Failed
        };
        let error = result.as_ref().err().cloned();
        out.push(self.run_report(run, phase, error, Some(ms)));
        self.counts.ended(now, &run.workflow, ms, result);
    }

    fn run_report(&self, run: &Run, phase: WorkflowPhase, error: Option<String>, ms: Option<u64>) -> Effect {
        let request = self.running.as_ref().map(|execution| &execution.request);
        let source = match run.role {
            Role::Top => request.map_or(Source::Startup, |request| request.source),
            Role::Inline => Source::Inline,
            Role::Triggered => Source::Trigger,
        };
        Effect::Report(Report::Workflow {
            name: run.workflow.clone(),
            number: run.number,
            phase,
            source,
            changed: request.map(|request| request.changed.clone()).unwrap_or_default(),
            cause: run.cause.join(ARROW),
            error,
            ms,
        })
    }

    /// Changes for a workflow whose group does not wait: the run under way ends and begins anew
    /// with the changes of both. Anything else is queued.
    pub(super) fn supersede(&mut self, now: Ms, request: Request, out: &mut Vec<Effect>) {
        let running = self.running.as_ref().map(|execution| &execution.request);
        let Some(running) = running.filter(|running| running.workflow == request.workflow) else {
            self.lane.push(request);
            return;
        };
        if let Some(waiting) = &mut self.superseding {
            waiting.unite(request);
            return;
        }
        let mut next = request;
        next.unite(Request {
            waiters: Vec::new(),
            ..running.clone()
        });
        self.superseding = Some(next);
        match self.wait {
            Wait::Hook(id) => out.push(Effect::StopHook { id }),
            // What is asked of a process or a file is not taken back: its answer is awaited.
            Wait::Process(_) | Wait::Save => {}
            Wait::Sleep { .. } | Wait::Ready { .. } | Wait::Nothing => {
                self.end_superseded(now, out);
            }
        }
    }

    /// The step that was under way is over: begin anew, if that is what newer changes want.
    pub(super) fn end_superseded(&mut self, now: Ms, out: &mut Vec<Effect>) -> bool {
        let Some(mut next) = self.superseding.take() else {
            return false;
        };
        self.wait = Wait::Nothing;
        let text = format!("workflow {} begins anew: more files changed", next.workflow);
        out.push(log(Level::Info, Part::Engine, text));
        self.cancel_runs(now, "begun anew", out);
        if let Some(execution) = self.running.take() {
            next.waiters.extend(execution.request.waiters);
        }
        self.lane.push_first(next);
        self.revision += 1;
        true
    }

    /// Every run of the execution under way is over without an end of its own.
    pub(super) fn cancel_runs(&mut self, now: Ms, why: &str, out: &mut Vec<Effect>) {
        let Some(execution) = &self.running else { return };
        let runs: Vec<Run> = execution.runs().cloned().collect();
        for run in runs {
            let ms = now.saturating_sub(run.began);
            out.push(self.run_report(&run, WorkflowPhase::Failed, Some(why.to_owned()), Some(ms)));
            self.counts.cancelled(now, &run.workflow);
        }
    }

    /// Shutdown: the execution goes no further. A hook is stopped first.
    pub(super) fn cancel_running(&mut self, now: Ms, out: &mut Vec<Effect>) {
        self.superseding = None;
        if let Wait::Hook(id) = self.wait {
            out.push(Effect::StopHook { id });
            return;
        }
        self.wait = Wait::Nothing;
        self.cancel_runs(now, "the loop is shutting down", out);
        if let Some(execution) = self.running.take() {
            finish(&execution.request, &Err("the loop is shutting down".into()), out);
        }
    }
}
