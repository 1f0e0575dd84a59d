//! The status of a run as data, and the counts behind it.

use std::collections::{BTreeMap, VecDeque};

use beamtalk_storage::time::timestamp_micros;
use serde::{Deserialize, Serialize};

use super::execution::Run;
use super::lane::Request;
use super::process::Phase as ProcessPhase;
use super::{Core, Ms, Phase};
use crate::config::Config;
use crate::report::{Exit, Source};

/// What `loop status --json` prints. Neither tokens nor state values are part of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub schema: u32,
    pub pid: u32,
    pub config: String,
    pub root: String,
    pub state_file: String,
    pub since: String,
    pub phase: String,
    pub watch: WatchStatus,
    pub processes: Vec<ProcessStatus>,
    pub lane: LaneStatus,
    pub workflows: Vec<WorkflowStatus>,
    pub events: Vec<EventStatus>,
    pub servers: Servers,
    /// The last runs of workflows and why they ran, the newest last.
    #[serde(default)]
    pub runs: Vec<RunStatus>,
    /// How often browsers were told to reload.
    #[serde(default)]
    pub reloads: u64,
    /// Programs that outlive the loop and still live.
    #[serde(default)]
    pub detached: Vec<DetachedStatus>,
}

/// One run of a workflow.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStatus {
    pub workflow: String,
    pub at: String,
    /// The links from what happened to the workflow.
    pub cause: Vec<String>,
    /// `running`, `ok`, `failed` or `cancelled`.
    pub result: String,
    pub ms: Option<u64>,
}

/// A program that was started to outlive the loop.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DetachedStatus {
    /// `process NAME` or `hook NAME`.
    pub name: String,
    pub pid: u32,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WatchStatus {
    pub backend: String,
    pub directories: usize,
    pub files: usize,
    pub groups: Vec<GroupStatus>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupStatus {
    pub name: String,
    pub workflow: String,
    pub patterns: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessStatus {
    pub name: String,
    pub state: String,
    pub pid: Option<u32>,
    pub since: Option<String>,
    pub restarts: u64,
    pub last_exit: Option<ExitStatus>,
    pub next_start_ms: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ExitStatus {
    pub code: Option<i32>,
    pub signal: Option<i32>,
    pub at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaneStatus {
    pub running: Option<RunningStatus>,
    pub queue: Vec<QueuedStatus>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningStatus {
    pub workflow: String,
    pub step: usize,
    pub steps: usize,
    pub action: String,
    pub target: Option<String>,
    pub since: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueuedStatus {
    pub workflow: String,
    pub source: String,
    pub changed: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowStatus {
    pub name: String,
    pub runs: u64,
    pub failures: u64,
    pub last: Option<LastRun>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LastRun {
    pub result: String,
    pub at: String,
    pub ms: u64,
    pub error: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EventStatus {
    pub name: String,
    pub accepted: u64,
    pub rejected: u64,
    pub last_at: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Servers {
    pub events: Option<String>,
    pub browser: Option<String>,
}

/// How many runs are remembered.
const RUNS: usize = 200;

/// A run this soon after the last one ended counts as caused by it.
const SELF_TRIGGER_GAP: Ms = 1000;
const SELF_TRIGGER_RUNS: u32 = 10;

#[derive(Debug, Default)]
struct WorkflowCount {
    runs: u64,
    failures: u64,
    last: Option<(Ms, u64, Option<String>)>,
    ended: Option<Ms>,
    streak: u32,
}

#[derive(Debug, Default)]
struct EventCount {
    accepted: u64,
    rejected: u64,
    last: Option<Ms>,
}

#[derive(Debug)]
struct PastRun {
    workflow: String,
    cause: Vec<String>,
    at: Ms,
    end: Option<(&'static str, u64)>,
}

#[derive(Debug)]
pub(super) struct Counts {
    workflows: BTreeMap<String, WorkflowCount>,
    events: BTreeMap<String, EventCount>,
    runs: VecDeque<PastRun>,
    pub(super) reloads: u64,
    now: Ms,
}

impl Counts {
    pub(super) fn new(config: &Config) -> Self {
        Self {
            workflows: config
                .workflow
                .keys()
                .map(|name| (name.clone(), WorkflowCount::default()))
                .collect(),
            events: config
                .event
                .keys()
                .map(|name| (name.clone(), EventCount::default()))
                .collect(),
            runs: VecDeque::new(),
            reloads: 0,
            now: 0,
        }
    }

    /// Count for the names of another config, keeping what is known.
    pub(super) fn reconfigure(&mut self, config: &Config) {
        let mut fresh = Self::new(config);
        for (name, count) in &mut fresh.workflows {
            *count = self.workflows.remove(name).unwrap_or_default();
        }
        for (name, count) in &mut fresh.events {
            *count = self.events.remove(name).unwrap_or_default();
        }
        self.workflows = fresh.workflows;
        self.events = fresh.events;
    }

    /// A run of any kind begins.
    pub(super) fn run_began(&mut self, run: &Run) {
        if self.runs.len() == RUNS {
            self.runs.pop_front();
        }
        self.runs.push_back(PastRun {
            workflow: run.workflow.clone(),
            cause: run.cause.clone(),
            at: run.began,
            end: None,
        });
    }

    fn run_ended(&mut self, now: Ms, workflow: &str, result: &'static str) {
        let mut open = self.runs.iter_mut().rev();
        if let Some(run) = open.find(|run| run.workflow == workflow && run.end.is_none()) {
            run.end = Some((result, now.saturating_sub(run.at)));
        }
    }

    pub(super) fn at(&mut self, now: Ms) {
        self.now = now;
    }

    /// An execution begins. Gives a path when the workflow seems to run because of itself.
    pub(super) fn began(&mut self, now: Ms, request: &Request) -> Option<String> {
        let count = self.workflows.get_mut(&request.workflow)?;
        let soon = count.ended.is_some_and(|ended| now < ended + SELF_TRIGGER_GAP);
        count.streak = if soon && request.source == Source::Watch {
            count.streak + 1
        } else {
            0
        };
        (count.streak == SELF_TRIGGER_RUNS).then(|| request.changed.first().cloned().unwrap_or_default())
    }

    pub(super) fn ended(&mut self, now: Ms, workflow: &str, ms: u64, result: &Result<(), String>) {
        if let Some(count) = self.workflows.get_mut(workflow) {
            count.runs += 1;
            count.failures += u64::from(result.is_err());
            count.last = Some((now, ms, result.as_ref().err().cloned()));
            count.ended = Some(now);
        }
        self.run_ended(now, workflow, if result.is_ok() { "ok" } else { "failed" });
    }

    pub(super) fn cancelled(&mut self, now: Ms, workflow: &str) {
        if let Some(count) = self.workflows.get_mut(workflow) {
            count.ended = Some(now);
        }
        self.run_ended(now, workflow, "cancelled");
    }

    pub(super) fn posted(&mut self, event: &str, accepted: bool) {
        if let Some(count) = self.events.get_mut(event) {
            count.accepted += u64::from(accepted);
            count.rejected += u64::from(!accepted);
            count.last = Some(self.now);
        }
    }
}

impl Core {
    /// The status, with what only the shell knows.
    pub fn status(&self, now: Ms, pid: u32, watch: WatchStatus, servers: Servers) -> Status {
        let at = |ms: Ms| timestamp_micros((self.plan.epoch_ms + ms) * 1000);
        Status {
            schema: 1,
            pid,
            config: self.config.file.display().to_string(),
            root: self.config.root.display().to_string(),
            state_file: self.config.state_file.display().to_string(),
            since: at(0),
            phase: match self.phase {
                Phase::Waiting | Phase::Starting => "starting",
                Phase::Running => "running",
                Phase::Stopping | Phase::Ended => "stopping",
            }
            .to_owned(),
            watch,
            processes: self.process_statuses(now, &at),
            lane: LaneStatus {
                running: self.running_status(&at),
                queue: self
                    .lane
                    .iter()
                    .map(|request| QueuedStatus {
                        workflow: request.workflow.clone(),
                        source: source_name(request.source).to_owned(),
                        changed: request.changed.len(),
                    })
                    .collect(),
            },
            workflows: self
                .counts
                .workflows
                .iter()
                .map(|(name, count)| WorkflowStatus {
                    name: name.clone(),
                    runs: count.runs,
                    failures: count.failures,
                    last: count.last.as_ref().map(|(when, ms, error)| LastRun {
                        result: if error.is_none() { "ok" } else { "failed" }.to_owned(),
                        at: at(*when),
                        ms: *ms,
                        error: error.clone(),
                    }),
                })
                .collect(),
            events: self
                .counts
                .events
                .iter()
                .map(|(name, count)| EventStatus {
                    name: name.clone(),
                    accepted: count.accepted,
                    rejected: count.rejected,
                    last_at: count.last.map(at),
                })
                .collect(),
            servers,
            runs: self
                .counts
                .runs
                .iter()
                .map(|run| RunStatus {
                    workflow: run.workflow.clone(),
                    at: at(run.at),
                    cause: run.cause.clone(),
                    result: run.end.map_or("running", |(result, _)| result).to_owned(),
                    ms: run.end.map(|(_, ms)| ms),
                })
                .collect(),
            reloads: self.counts.reloads,
            detached: Vec::new(),
        }
    }

    fn process_statuses(&self, now: Ms, at: &impl Fn(Ms) -> String) -> Vec<ProcessStatus> {
        self.processes
            .iter()
            .map(|(name, found)| {
                let (pid, since, next) = match found.machine.phase() {
                    ProcessPhase::Up { since, pid } => (Some(pid), Some(at(since)), None),
                    ProcessPhase::Backoff { until, .. } => (None, None, Some(until.saturating_sub(now))),
                    ProcessPhase::Down
                    | ProcessPhase::Exited { .. }
                    | ProcessPhase::Spawning
                    | ProcessPhase::Stopping { .. } => (None, None, None),
                };
                ProcessStatus {
                    name: name.clone(),
                    state: found.state().to_owned(),
                    pid,
                    since,
                    restarts: found.machine.restarts(),
                    last_exit: found.machine.last_exit().map(|(exit, when)| match exit {
                        Exit::Code(code) => ExitStatus {
                            code: Some(code),
                            signal: None,
                            at: at(when),
                        },
                        Exit::Signal(signal) => ExitStatus {
                            code: None,
                            signal: Some(signal),
                            at: at(when),
                        },
                    }),
                    next_start_ms: next,
                }
            })
            .collect()
    }

    fn running_status(&self, at: &impl Fn(Ms) -> String) -> Option<RunningStatus> {
        let execution = self.running.as_ref()?;
        let place = execution.place(&self.config)?;
        let (step, steps) = execution.step(&self.config)?;
        Some(RunningStatus {
            workflow: execution.request.workflow.clone(),
            step: place.index,
            steps,
            action: place.action.to_owned(),
            target: step.target().map(str::to_owned),
            since: at(execution.began),
        })
    }
}

fn source_name(source: Source) -> &'static str {
    match source {
        Source::Startup => "startup",
        Source::Watch => "watch",
        Source::Event => "event",
        Source::Observe => "observe",
        Source::Workspace => "workspace",
        Source::Trigger => "trigger",
        Source::Inline => "inline",
    }
}
