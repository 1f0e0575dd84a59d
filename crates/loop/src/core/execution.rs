//! One execution: a top-level workflow with everything it runs inline or triggers.
//!
//! The walk only: which step is next, who triggers whom, what has run already. What a step does
//! is the business of the core.

use std::collections::BTreeSet;

use super::Ms;
use super::lane::Request;
use crate::config::{Config, Step};
use crate::report::Source;

/// How a workflow came to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    Top,
    Inline,
    Triggered,
}

#[derive(Debug)]
struct Frame {
    workflow: String,
    role: Role,
    step: usize,
    step_began: Ms,
    /// The next trigger to look at; none when this run does not trigger.
    trigger: Option<usize>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Perform this step, then say [`Execution::step_done`].
    Perform(Step),
    /// The top-level or a triggered workflow begins.
    Begins(String),
    /// An inline workflow ended, and with it the step that ran it.
    InlineDone(StepPlace),
    Finished,
}

/// Where a step stands, for reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StepPlace {
    pub(crate) workflow: String,
    /// From 1.
    pub(crate) index: usize,
    pub(crate) action: &'static str,
    pub(crate) began: Ms,
}

#[derive(Debug)]
pub(crate) struct Execution {
    pub(crate) request: Request,
    pub(crate) began: Ms,
    frames: Vec<Frame>,
    triggered: BTreeSet<String>,
    /// Inline workflows whose triggers have had their turn.
    expanded: BTreeSet<String>,
    announced: bool,
}

impl Execution {
    pub(crate) fn new(request: Request, now: Ms) -> Self {
        let top = Frame {
            workflow: request.workflow.clone(),
            role: Role::Top,
            step: 0,
            step_began: now,
            trigger: Some(0),
        };
        Self {
            request,
            began: now,
            frames: vec![top],
            triggered: BTreeSet::new(),
            expanded: BTreeSet::new(),
            announced: false,
        }
    }

    pub(crate) fn next(&mut self, config: &Config, now: Ms) -> Next {
        if !self.announced {
            self.announced = true;
            return Next::Begins(self.request.workflow.clone());
        }
        loop {
            let Some(frame) = self.frames.last_mut() else {
                return Next::Finished;
            };
            let workflow = config
                .workflow
                .get(&frame.workflow)
                .expect("a checked config names its workflows");
            if let Some(step) = workflow.steps.get(frame.step) {
                frame.step_began = now;
                let Step::RunWorkflow(name) = step else {
                    return Next::Perform(step.clone());
                };
                let trigger = self.expanded.insert(name.clone()).then_some(0);
                self.frames.push(Frame {
                    workflow: name.clone(),
                    role: Role::Inline,
                    step: 0,
                    step_began: now,
                    trigger,
                });
                continue;
            }
            if let Some(index) = frame.trigger
                && let Some(name) = workflow.triggers.get(index)
            {
                frame.trigger = Some(index + 1);
                if self.triggered.insert(name.clone()) {
                    self.frames.push(Frame {
                        workflow: name.clone(),
                        role: Role::Triggered,
                        step: 0,
                        step_began: now,
                        trigger: Some(0),
                    });
                    return Next::Begins(name.clone());
                }
                continue;
            }
            let role = frame.role;
            self.frames.pop();
            if role == Role::Inline {
                let place = self
                    .place(config)
                    .expect("an inline workflow has a caller at its step");
                self.step_done();
                return Next::InlineDone(place);
            }
        }
    }

    /// Every step in the order it would run if all succeed, with the workflow that holds it.
    pub(crate) fn foresee(config: &Config, workflow: &str) -> Vec<(StepPlace, Step)> {
        let mut execution = Self::new(Request::new(workflow, Source::Workspace, Vec::new()), 0);
        let mut steps = Vec::new();
        loop {
            match execution.next(config, 0) {
                Next::Perform(step) => {
                    if let Some(place) = execution.place(config) {
                        steps.push((place, step));
                    }
                    execution.step_done();
                }
                Next::Begins(_) | Next::InlineDone(_) => {}
                Next::Finished => return steps,
            }
        }
    }

    /// The step last given by [`Self::next`] succeeded.
    pub(crate) fn step_done(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.step += 1;
        }
    }

    /// The workflow that holds the current step.
    pub(crate) fn holder(&self) -> &str {
        self.frames
            .last()
            .map_or(&self.request.workflow, |frame| &frame.workflow)
    }

    /// The current step.
    pub(crate) fn place(&self, config: &Config) -> Option<StepPlace> {
        let frame = self.frames.last()?;
        let step = config.workflow.get(&frame.workflow)?.steps.get(frame.step)?;
        Some(StepPlace {
            workflow: frame.workflow.clone(),
            index: frame.step + 1,
            action: step.action(),
            began: frame.step_began,
        })
    }

    /// The current step itself, and how many its workflow has.
    pub(crate) fn step<'a>(&self, config: &'a Config) -> Option<(&'a Step, usize)> {
        let frame = self.frames.last()?;
        let steps = &config.workflow.get(&frame.workflow)?.steps;
        Some((steps.get(frame.step)?, steps.len()))
    }
}

#[cfg(test)]
mod tests;
