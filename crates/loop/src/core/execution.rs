//! One execution: a top-level workflow with everything it runs inline or triggers.
//!
//! The walk only: which step is next, who triggers whom, what has run already. What a step does
//! is the business of the core.

use std::collections::BTreeSet;

use super::Ms;
use super::lane::{Numbers, Request};
use crate::config::{Config, Step};
use crate::report::Source;

/// How a workflow came to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Top,
    Inline,
    Triggered,
}

/// One run of a workflow, whatever made it run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) workflow: String,
    pub(crate) role: Role,
    /// Sets it apart from every other run of the loop.
    pub(crate) number: u64,
    pub(crate) began: Ms,
    /// What led to it, the first cause first, itself last.
    pub(crate) cause: Vec<String>,
}

#[derive(Debug)]
struct Frame {
    workflow: String,
    step: usize,
    step_began: Ms,
    run: Run,
    /// The next trigger to look at; none when this run does not trigger.
    trigger: Option<usize>,
}

/// What to do next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// Perform this step, then say [`Execution::step_done`].
    Perform(Step),
    /// A workflow begins.
    Begins(Run),
    /// A triggered or an inline workflow ended; an inline one with the step that ran it.
    Ends(Run, Option<StepPlace>),
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
    /// The run of the top-level workflow.
    pub(crate) top: Run,
    frames: Vec<Frame>,
    triggered: BTreeSet<String>,
    /// Inline workflows whose triggers have had their turn.
    expanded: BTreeSet<String>,
    announced: bool,
    numbers: Numbers,
}

impl Frame {
    fn new(workflow: &str, role: Role, at: (u64, Ms), cause: &[String], trigger: Option<usize>) -> Self {
        let (number, now) = at;
        let link = match role {
            Role::Top => "workflow",
            Role::Inline => "inline",
            Role::Triggered => "trigger",
        };
        let mut cause = cause.to_vec();
        cause.push(format!("{link} {workflow}"));
        Self {
            workflow: workflow.to_owned(),
            step: 0,
            step_began: now,
            run: Run {
                workflow: workflow.to_owned(),
                role,
                number,
                began: now,
                cause,
            },
            trigger,
        }
    }
}

impl Execution {
    pub(crate) fn new(request: Request, now: Ms, numbers: Numbers) -> Self {
        let at = (request.number.unwrap_or_else(|| numbers.take()), now);
        let top = Frame::new(&request.workflow, Role::Top, at, &request.cause, Some(0));
        Self {
            request,
            began: now,
            top: top.run.clone(),
            frames: vec![top],
            triggered: BTreeSet::new(),
            expanded: BTreeSet::new(),
            announced: false,
            numbers,
        }
    }

    pub(crate) fn next(&mut self, config: &Config, now: Ms) -> Next {
        if !self.announced {
            self.announced = true;
            if let Some(top) = self.frames.first() {
                return Next::Begins(top.run.clone());
            }
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
                let at = (self.numbers.take(), now);
                let inner = Frame::new(name, Role::Inline, at, &frame.run.cause, trigger);
                let run = inner.run.clone();
                self.frames.push(inner);
                return Next::Begins(run);
            }
            if let Some(index) = frame.trigger
                && let Some(name) = workflow.triggers.get(index)
            {
                frame.trigger = Some(index + 1);
                if self.triggered.insert(name.clone()) {
                    let at = (self.numbers.take(), now);
                    let next = Frame::new(name, Role::Triggered, at, &frame.run.cause, Some(0));
                    let run = next.run.clone();
                    self.frames.push(next);
                    return Next::Begins(run);
                }
                continue;
            }
            let run = frame.run.clone();
            self.frames.pop();
            match run.role {
                Role::Top => {}
                Role::Triggered => return Next::Ends(run, None),
                Role::Inline => {
                    let place = self.place(config);
                    self.step_done();
                    return Next::Ends(run, place);
                }
            }
        }
    }

    /// Every step in the order it would run if all succeed, with the workflow that holds it.
    pub(crate) fn foresee(config: &Config, workflow: &str) -> Vec<(StepPlace, Step)> {
        let request = Request::new(workflow, Source::Workspace, Vec::new(), Vec::new());
        let mut execution = Self::new(request, 0, Numbers::default());
        let mut steps = Vec::new();
        loop {
            match execution.next(config, 0) {
                Next::Perform(step) => {
                    if let Some(place) = execution.place(config) {
                        steps.push((place, step));
                    }
                    execution.step_done();
                }
                Next::Begins(_) | Next::Ends(..) => {}
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

    /// The runs under way, the innermost first.
    pub(crate) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.frames.iter().rev().map(|frame| &frame.run)
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
