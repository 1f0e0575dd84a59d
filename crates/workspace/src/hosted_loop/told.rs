//! What a hosted loop told, numbered, and the runs of workflows made of it: for those who follow and those who ask later.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beamtalk_loop::core::ARROW;
use beamtalk_loop::host::Fact;
use beamtalk_loop::report::{Report, WorkflowPhase};
use beamtalk_storage::time::{now_micros, timestamp_micros};
use serde::Serialize;
use serde_json::Value;
use tokio::sync::watch;

/// How much is kept: objects, bytes of them, runs, steps of a run and paths of one.
const OBJECTS: usize = 10_000;
const BYTES: usize = 4 << 20;
const RUNS: usize = 200;
const STEPS: usize = 1_000;
const PATHS: usize = 1_000;

#[derive(Debug, Serialize)]
struct Step {
    index: usize,
    action: &'static str,
    ms: u64,
    ok: bool,
}

/// One run of a workflow; what is not known yet is null.
#[derive(Debug, Serialize)]
struct Run {
    number: u64,
    workflow: String,
    at: String,
    ms: Option<u64>,
    ok: Option<bool>,
    cause: Vec<String>,
    changed: Vec<String>,
    steps: Vec<Step>,
    error: Option<String>,
    /// The numbers of the first and last object of `loop/follow` while it ran.
    output: (u64, Option<u64>),
}

#[derive(Default)]
struct Kept {
    last: u64,
    objects: VecDeque<(u64, Arc<str>)>,
    bytes: usize,
    runs: VecDeque<Run>,
}

/// Fed by the thread of the loop, read by that of the daemon.
#[derive(Default)]
pub(super) struct Told {
    kept: Mutex<Kept>,
    grew: watch::Sender<u64>,
}

impl Told {
    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn hear(&self, fact: &Fact<'_>) {
        let Some(mut object) = fact.object() else { return };
        let mut kept = self.lock();
        kept.last += 1;
        let number = kept.last;
        object.insert("n".to_owned(), number.into());
        let line = format!("{}\n", Value::Object(object));
        kept.bytes += line.len();
        kept.objects.push_back((number, line.into()));
        while kept.objects.len() > OBJECTS || kept.bytes > BYTES {
            let Some((_, oldest)) = kept.objects.pop_front() else {
                break;
            };
            kept.bytes -= oldest.len();
        }
        if let Fact::Report(report) = fact {
            kept.count(number, report);
        }
        drop(kept);
        self.grew.send_replace(number);
    }

    /// Objects after a number, and whether some of them are forgotten.
    pub(super) fn after(&self, number: u64) -> (Vec<(u64, Arc<str>)>, bool) {
        let kept = self.lock();
        let start = kept.objects.partition_point(|(known, _)| *known <= number);
        let found: Vec<_> = kept.objects.iter().skip(start).cloned().collect();
        let is_lost = found.first().is_some_and(|(first, _)| *first > number + 1);
        (found, is_lost)
    }

    pub(super) fn last(&self) -> u64 {
        self.lock().last
    }

    pub(super) fn grew(&self) -> watch::Receiver<u64> {
        self.grew.subscribe()
    }

    /// The last runs as JSON lines, the newest last.
    pub(super) fn runs(&self) -> String {
        let kept = self.lock();
        let line = |run: &Run| serde_json::to_string(run).map_or_else(|_| String::new(), |line| line + "\n");
        kept.runs.iter().map(line).collect()
    }
}

impl Kept {
    fn count(&mut self, number: u64, report: &Report) {
        match report {
            Report::Workflow {
                name,
                number: run,
                phase: WorkflowPhase::Start,
                changed,
                cause,
                ..
            } => {
                if self.runs.len() == RUNS {
                    self.runs.pop_front();
                }
                self.runs.push_back(Run {
                    number: *run,
                    workflow: name.clone(),
                    at: timestamp_micros(now_micros()),
                    ms: None,
                    ok: None,
                    cause: cause.split(ARROW).map(str::to_owned).collect(),
                    changed: changed.iter().take(PATHS).cloned().collect(),
                    steps: Vec::new(),
                    error: None,
                    output: (number, None),
                });
            }
            Report::Workflow {
                number: ended,
                phase,
                error,
                ms,
                ..
            } => {
                if let Some(run) = self.runs.iter_mut().rev().find(|run| run.number == *ended) {
                    run.ms = *ms;
                    run.ok = Some(*phase == WorkflowPhase::Ok);
                    run.error.clone_from(error);
                    run.output.1 = Some(number);
                }
            }
            Report::Step {
                workflow,
                index,
                action,
                ms,
                ok,
            } => {
                // One thing runs at a time: it is the innermost that did.
                let mut open = self.runs.iter_mut().rev();
                let run = open.find(|run| run.ok.is_none() && run.workflow == *workflow);
                if let Some(run) = run.filter(|run| run.steps.len() < STEPS) {
                    run.steps.push(Step {
                        index: *index,
                        action,
                        ms: *ms,
                        ok: *ok,
                    });
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use beamtalk_loop::report::Source;

    use super::*;

    fn workflow(name: &str, number: u64, phase: WorkflowPhase) -> Report {
        Report::Workflow {
            name: name.to_owned(),
            number,
            phase,
            source: Source::Watch,
            changed: vec!["a.css".to_owned()],
            cause: format!("file a.css{ARROW}workflow {name}"),
            error: (phase == WorkflowPhase::Failed).then(|| "no".to_owned()),
            ms: (phase != WorkflowPhase::Start).then_some(7),
        }
    }

    fn step(workflow: &str, index: usize) -> Report {
        Report::Step {
            workflow: workflow.to_owned(),
            index,
            action: "log",
            ms: 1,
            ok: true,
        }
    }

    /// A run has the steps, the ending and the numbers of what was told while it ran; one inside another has its own.
    #[test]
    fn runs_are_made_of_what_is_told() {
        let told = Told::default();
        for report in [
            workflow("outer", 1, WorkflowPhase::Start),
            workflow("inner", 2, WorkflowPhase::Start),
            step("inner", 1),
            workflow("inner", 2, WorkflowPhase::Ok),
            step("outer", 1),
            workflow("outer", 1, WorkflowPhase::Failed),
        ] {
            told.hear(&Fact::Report(&report));
        }
        let runs: Vec<Value> = told
            .runs()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(runs[0]["number"], 1);
        assert_eq!(runs[0]["ok"], false);
        assert_eq!(runs[0]["error"], "no");
        assert_eq!(runs[0]["output"], serde_json::json!([1, 6]));
        assert_eq!(
            runs[0]["cause"],
            serde_json::json!(["file a.css", "workflow outer"])
        );
        assert_eq!(runs[1]["ok"], true);
        assert_eq!(runs[1]["output"], serde_json::json!([2, 4]));
        assert_eq!(runs[1]["steps"].as_array().unwrap().len(), 1);
    }

    /// Who asks for what is forgotten is told so.
    #[test]
    fn only_so_much_is_kept() {
        let told = Told::default();
        for _ in 0..OBJECTS + 5 {
            told.hear(&Fact::Report(&step("w", 1)));
        }
        let (found, is_lost) = told.after(0);
        assert_eq!((found.len(), found[0].0, is_lost), (OBJECTS, 6, true));
        assert!(!told.after(5).1);
        assert!(told.after(told.last()).0.is_empty());
    }
}
