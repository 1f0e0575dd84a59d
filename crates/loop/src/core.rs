//! The core: events in, effects out.
//!
//! A plain value that carries every decision of the loop: when a window closes, what runs next in
//! the lane, which step follows, when a process is started again, whether an event is accepted,
//! when the run may end. It has no clock (time comes with each event), no channel and no file.
//! The shell performs its effects and feeds back what came of them.

mod execution;
mod health;
mod lane;
mod operate;
mod polls;
mod posts;
mod process;
mod reconfigure;
mod runs;
mod state;
mod status;
mod supervise;
mod window;
mod workflows;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use regex::Regex;
use serde_json::Value;

use self::execution::Execution;
use self::health::Ids;
use self::lane::{Lane, Request};
use self::polls::Polls;
use self::state::State;
use self::status::Counts;
use self::supervise::Supervised;
use self::window::Window;
use crate::config::{Config, EventDeclaration, OnBusy};
use crate::pattern::Groups;
use crate::report::{Exit, Level, Part, Report, Source};

pub(crate) use execution::Execution as Foresight;
pub use operate::Operation;
pub use posts::{Post, Verdict};
pub use runs::ARROW;
pub use status::{DetachedStatus, GroupStatus, RunStatus, Servers, Status, WatchStatus};
pub use window::Change;

/// Milliseconds since the run began.
pub type Ms = u64;

/// How long the config file must be left alone before an edit is read.
const CONFIG_AFTER: Ms = 100;

/// How the run is meant to go.
#[derive(Clone, Debug, Default)]
pub struct Plan {
    /// Run the workflows, then end; no watching, no polls.
    pub once: bool,
    /// These instead of the startup workflows.
    pub workflows: Option<Vec<String>>,
    /// The change list of those.
    pub changed: Vec<String>,
    /// The wall clock when the run began, in milliseconds since 1970.
    pub epoch_ms: u64,
}

/// What a successful hook brought.
#[derive(Clone, Debug, PartialEq)]
pub enum Captured {
    Nothing,
    Text(String),
    Json(serde_json::Map<String, Value>),
}

/// Something that happened.
#[derive(Clone, Debug)]
pub enum Event {
    /// Everything is in place: processes may start.
    Begin,
    /// A deadline has passed.
    Tick,
    /// Files changed; `at` is when that was seen, which is when a window opens.
    Changed {
        changes: Vec<Change>,
        at: Ms,
    },
    /// The answer to [`Effect::CheckWindow`]: those that do not exist, and those that files such
    /// as `.gitignore` exclude.
    WindowChecked {
        missing: BTreeSet<String>,
        excluded: BTreeSet<String>,
    },
    ConfigChanged,
    /// The edited config is valid.
    Reconfigured(Arc<Config>),
    /// A user asks for an operation on one process.
    Operate {
        process: String,
        operation: Operation,
        waiter: u64,
    },
    Spawned {
        process: String,
        generation: u64,
        pid: u32,
    },
    SpawnFailed {
        process: String,
        generation: u64,
        reason: String,
    },
    Exited {
        process: String,
        generation: u64,
        exit: Exit,
        leftovers: bool,
    },
    Gone {
        process: String,
        generation: u64,
    },
    /// Some of the start cannot be killed.
    StopFailed {
        process: String,
        generation: u64,
        left: Vec<u32>,
    },
    /// An output rule found a value.
    Matched {
        process: String,
        generation: u64,
        key: String,
        value: String,
    },
    Probed {
        id: u64,
        answer: Result<(), String>,
    },
    HookDone {
        id: u64,
        result: Result<Captured, String>,
    },
    /// The answer to [`Effect::Save`]; `version` is what [`Core::version`] gave when it was written.
    Saved {
        why: Save,
        version: u64,
        result: Result<(), String>,
    },
    Posted(Post),
    /// A host asks for a declared workflow.
    Requested {
        workflow: String,
        changed: Vec<String>,
        waiter: u64,
    },
    Shutdown {
        line: String,
        reason: String,
    },
    /// The time of a single run is over.
    TimedOut {
        limit: Ms,
    },
    Fatal {
        part: Part,
        text: String,
    },
}

/// Why the state is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Save {
    /// Because it changed, or before a child starts.
    Due,
    /// A `write_state` step waits for it.
    Step,
    /// A posted event waits for it.
    Post,
}

/// Something to do.
#[derive(Clone, Debug)]
pub enum Effect {
    Report(Report),
    /// The value of this key is another now; where it stands among the reports is when that was.
    StateChanged(String),
    /// Write the state; answered by [`Event::Saved`].
    Save(Save),
    Spawn {
        process: String,
        generation: u64,
    },
    /// Stop the group; answered by [`Event::Gone`].
    Stop {
        process: String,
        generation: u64,
    },
    /// Ask an address; answered by [`Event::Probed`].
    Probe {
        id: u64,
        url: String,
        limit: Ms,
    },
    /// Run a hook; answered by [`Event::HookDone`].
    RunHook {
        id: u64,
        hook: String,
        workflow: String,
        changed: Vec<String>,
        limit: Option<Ms>,
    },
    /// Stop a running hook, which then reports its end.
    StopHook {
        id: u64,
    },
    /// See which of the paths exist and which are excluded; answered by [`Event::WindowChecked`].
    CheckWindow(Vec<String>),
    /// See whether the edited config is valid, then [`Event::Reconfigured`].
    LoadConfig,
    /// The config that is in force from now on.
    Applied(Arc<Config>),
    Reload,
    /// Answer a post.
    Answer {
        post: u64,
        verdict: Verdict,
    },
    /// The workflow a waiter asked for waits for its turn, with the number its run will have.
    Queued {
        waiter: u64,
        number: u64,
    },
    /// The workflow a waiter asked for has ended.
    Finished {
        waiter: u64,
        result: Result<(), String>,
    },
    Ready,
    /// No new work is taken from here on.
    Closing,
    /// Everything is down: end with this code.
    End {
        code: u8,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    Waiting,
    Starting,
    Running,
    Stopping,
    Ended,
}

/// What the execution under way waits for.
#[derive(Debug)]
enum Wait {
    Nothing,
    Process(String),
    Hook(u64),
    Sleep {
        until: Ms,
    },
    Ready {
        process: String,
        deadline: Ms,
        next: Ms,
        flight: Option<u64>,
    },
    Save,
}

pub struct Core {
    config: Arc<Config>,
    plan: Plan,
    groups: Groups,
    patterns: BTreeMap<String, Regex>,
    state: State,
    phase: Phase,
    autostart: VecDeque<String>,
    startup: VecDeque<Request>,
    lane: Lane,
    running: Option<Execution>,
    wait: Wait,
    /// The polls under way, beside the lane: the hook of each.
    polling: BTreeMap<u64, String>,
    polls: Polls,
    window: Window,
    /// The paths of a closed window, until it is known which of them exist.
    closed: Option<BTreeMap<String, bool>>,
    processes: BTreeMap<String, Supervised>,
    /// Starts that wait for other processes.
    held: BTreeMap<String, operate::Held>,
    /// Who waits for an operation on a process.
    operators: BTreeMap<String, Vec<u64>>,
    /// Shutdown: those that wait for others to be stopped first.
    to_stop: Vec<String>,
    /// What begins when the step under way is over, instead of the next one.
    superseding: Option<Request>,
    /// When the edited config is read.
    load_at: Option<Ms>,
    /// A config that waits for the execution under way.
    next_config: Option<Arc<Config>>,
    /// In the order they were last started.
    started: Vec<String>,
    posts: VecDeque<posts::Saving>,
    counts: Counts,
    ids: Ids,
    revision: u64,
    code: u8,
    reason: String,
    hinted: Option<Ms>,
}

impl Core {
    pub fn new(config: Arc<Config>, plan: Plan, values: BTreeMap<String, Value>) -> Self {
        let patterns = patterns_of(&config);
        let processes = config
            .process
            .iter()
            .map(|(name, process)| (name.clone(), Supervised::new(name, process)))
            .collect();
        let autostart = config
            .process
            .iter()
            .filter(|(_, process)| process.autostart)
            .map(|(name, _)| name.clone());
        let names = plan.workflows.as_ref().unwrap_or(&config.startup_workflows);
        let startup = names
            .iter()
            .map(|name| {
                Request::new(
                    name,
                    Source::Startup,
                    plan.changed.clone(),
                    vec!["startup".to_owned()],
                )
            })
            .collect();
        Self {
            groups: Groups::new(&config),
            patterns,
            state: State::new(values),
            phase: Phase::Waiting,
            autostart: autostart.collect(),
            startup,
            lane: Lane::default(),
            running: None,
            wait: Wait::Nothing,
            polling: BTreeMap::new(),
            polls: Polls::new(&config),
            window: Window::new(config.debounce_ms, config.debounce_mode),
            closed: None,
            processes,
            held: BTreeMap::new(),
            operators: BTreeMap::new(),
            to_stop: Vec::new(),
            superseding: None,
            load_at: None,
            next_config: None,
            started: Vec::new(),
            posts: VecDeque::new(),
            counts: Counts::new(&config),
            ids: Ids::default(),
            revision: 0,
            code: 0,
            reason: "done".into(),
            hinted: None,
            config,
            plan,
        }
    }

    /// The values to write when a save is asked for.
    pub fn values(&self) -> &BTreeMap<String, Value> {
        self.state.values()
    }

    /// Which change the values stand at; handed back with [`Event::Saved`].
    pub fn version(&self) -> u64 {
        self.state.version()
    }

    /// Grows with everything a status shows.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    pub fn is_stopping(&self) -> bool {
        matches!(self.phase, Phase::Stopping | Phase::Ended)
    }

    /// Set a key before the run begins.
    pub fn preset(&mut self, key: &str, value: Value) {
        self.state.set(0, key, value);
    }

    /// When the core wants to hear a [`Event::Tick`], if nothing else happens.
    pub fn deadline(&self) -> Option<Ms> {
        let processes = self.processes.values().filter_map(Supervised::deadline);
        let wait = match &self.wait {
            Wait::Sleep { until } => Some(*until),
            Wait::Ready {
                next, flight: None, ..
            } => Some(*next),
            Wait::Ready { flight: Some(_), .. }
            | Wait::Nothing
            | Wait::Process(_)
            | Wait::Hook(_)
            | Wait::Save => None,
        };
        let poll = if self.phase == Phase::Running {
            self.polls.deadline()
        } else {
            None
        };
        // A window that is open when the end begins never closes.
        let window = if self.is_stopping() {
            None
        } else {
            self.window.deadline()
        };
        let others = [self.state.save_at(), window, wait, poll, self.load_at];
        processes.chain(others.into_iter().flatten()).min()
    }

    pub fn handle(&mut self, now: Ms, event: Event) -> Vec<Effect> {
        let mut out = Vec::new();
        self.counts.at(now);
        match event {
            Event::Begin => {
                self.phase = Phase::Starting;
                self.start_next_process(now, &mut out);
            }
            Event::Tick => {}
            Event::Changed { changes, at } => {
                if !self.is_stopping() {
                    self.window.add(at.min(now), changes);
                }
            }
            Event::WindowChecked { missing, excluded } => {
                self.window_checked(now, &missing, &excluded, &mut out);
            }
            Event::Reconfigured(config) => self.reconfigured(config),
            Event::Operate {
                process,
                operation,
                waiter,
            } => self.operated(now, &process, operation, waiter, &mut out),
            Event::ConfigChanged => self.config_changed(now, &mut out),
            Event::Spawned {
                process,
                generation,
                pid,
            } => {
                self.process(
                    now,
                    &process,
                    process::Input::Spawned { generation, pid },
                    &mut out,
                );
            }
            Event::SpawnFailed {
                process,
                generation,
                reason,
            } => {
                self.process(
                    now,
                    &process,
                    process::Input::SpawnFailed { generation, reason },
                    &mut out,
                );
            }
            Event::Exited {
                process,
                generation,
                exit,
                leftovers,
            } => {
                self.process(
                    now,
                    &process,
                    process::Input::Exited {
                        generation,
                        exit,
                        leftovers,
                    },
                    &mut out,
                );
            }
            Event::Gone { process, generation } => {
                self.process(now, &process, process::Input::Gone { generation }, &mut out);
            }
            Event::StopFailed {
                process,
                generation,
                left,
            } => {
                self.process(
                    now,
                    &process,
                    process::Input::StopFailed { generation, left },
                    &mut out,
                );
            }
            Event::Matched {
                process,
                generation,
                key,
                value,
            } => {
                if self
                    .processes
                    .get(&process)
                    .is_some_and(|found| found.generation() == generation)
                {
                    self.set_state(now, &key, Value::String(value), &mut out);
                }
            }
            Event::Probed { id, answer } => self.probed(now, id, answer, &mut out),
            Event::HookDone { id, result } => self.hook_done(now, id, result, &mut out),
            Event::Saved { why, version, result } => self.saved(now, why, version, result, &mut out),
            Event::Posted(post) => self.posted(now, post, &mut out),
            Event::Requested {
                workflow,
                changed,
                waiter,
            } => {
                self.requested(&workflow, changed, waiter, &mut out);
            }
            Event::Shutdown { line, reason } => {
                out.push(log(Level::Info, Part::Engine, line));
                self.shut_down(now, reason, &mut out);
            }
            Event::TimedOut { limit } => {
                self.code = 1;
                out.push(log(
                    Level::Error,
                    Part::Engine,
                    format!("the run did not end within {limit} ms"),
                ));
                self.shut_down(now, "timeout".into(), &mut out);
            }
            Event::Fatal { part, text } => {
                self.code = 1;
                out.push(log(Level::Error, part, text.clone()));
                self.shut_down(now, text, &mut out);
            }
        }
        self.advance(now, &mut out);
        self.save_first(&mut out);
        out
    }

    /// The file holds what memory holds before a child starts or a post is answered. Effects are
    /// carried out when the event has been dealt with completely, and a save writes what memory
    /// holds then: so whether one is needed is known only here, and it goes before all of them.
    fn save_first(&mut self, out: &mut Vec<Effect>) {
        if !self.state.is_dirty() {
            return;
        }
        let needs_file = |effect: &Effect| {
            matches!(
                effect,
                Effect::Spawn { .. }
                    | Effect::RunHook { .. }
                    | Effect::Answer {
                        verdict: Verdict::Accepted { .. },
                        ..
                    }
            )
        };
        if let Some(first) = out.iter().position(needs_file)
            && !out
                .iter()
                .take(first)
                .any(|effect| matches!(effect, Effect::Save(_)))
        {
            out.insert(first, Effect::Save(Save::Due));
            self.state.saving();
        }
    }

    /// Everything that may be due or possible now.
    fn advance(&mut self, now: Ms, out: &mut Vec<Effect>) {
        self.tick_processes(now, out);
        self.start_held(now, out);
        self.tick_wait(now, out);
        self.close_window(now, out);
        if self.load_at.is_some_and(|due| now >= due) {
            self.load_at = None;
            out.push(Effect::LoadConfig);
        }
        self.run_lane(now, out);
        self.start_polls(now, out);
        if self.state.save_at().is_some_and(|due| now >= due) {
            out.push(Effect::Save(Save::Due));
            self.state.saving();
        }
        self.stop_in_order(now, out);
        self.forget_retired();
        self.end_if_down(out);
    }

    fn close_window(&mut self, now: Ms, out: &mut Vec<Effect>) {
        if self.closed.is_none()
            && !self.is_stopping()
            && let Some(paths) = self.window.take(now)
        {
            let names = paths.keys().cloned().collect();
            self.closed = Some(paths);
            out.push(Effect::CheckWindow(names));
        }
    }

    fn window_checked(
        &mut self,
        now: Ms,
        missing: &BTreeSet<String>,
        excluded: &BTreeSet<String>,
        out: &mut Vec<Effect>,
    ) {
        let Some(paths) = self.closed.take() else { return };
        if self.is_stopping() {
            return;
        }
        let mut requests: BTreeMap<String, (Vec<String>, Vec<String>, OnBusy)> = BTreeMap::new();
        // A path nobody knew before and that is gone again was scratch.
        let real = paths
            .into_iter()
            .filter(|(path, known)| *known || !missing.contains(path));
        for (path, known) in real {
            for (group, workflow) in self.groups.matching(&path) {
                let Some(found) = self.config.watch.get(group) else {
                    continue;
                };
                if found.ignore_files && excluded.contains(&path) {
                    continue;
                }
                let (changed, cause, on_busy) = requests
                    .entry(workflow.to_owned())
                    .or_insert_with(|| (Vec::new(), Vec::new(), OnBusy::Queue));
                if changed.last() != Some(&path) {
                    changed.push(path.clone());
                }
                if cause.is_empty() {
                    let what = match (known, missing.contains(&path)) {
                        (_, true) => "removed",
                        (true, false) => "modified",
                        (false, false) => "created",
                    };
                    *cause = vec![format!("file {path} ({what})"), format!("watch {group}")];
                }
                if found.on_busy == OnBusy::Restart {
                    *on_busy = OnBusy::Restart;
                }
            }
        }
        for (workflow, (changed, mut cause, on_busy)) in requests {
            if let (Some(first), more @ 1..) = (cause.first_mut(), changed.len() - 1) {
                first.push_str(&format!(" and {more} more"));
            }
            let request = Request::new(&workflow, Source::Watch, changed, cause);
            match on_busy {
                OnBusy::Queue => {
                    self.lane.push(request);
                }
                OnBusy::Restart => self.supersede(now, request, out),
            }
            self.revision += 1;
        }
    }

    fn config_changed(&mut self, now: Ms, out: &mut Vec<Effect>) {
        if self.is_stopping() {
            return;
        }
        if self.config.reload_config {
            // An editor may not be done with it yet.
            self.load_at = Some(now + CONFIG_AFTER);
            return;
        }
        // One save of the file is several changes; one hint is enough.
        if self.hinted.is_none_or(|last| now >= last + 1000) {
            let text = format!(
                "{} changed; restart the loop to apply it",
                self.config.file.display()
            );
            out.push(log(Level::Info, Part::Engine, text));
        }
        self.hinted = Some(now);
    }

    fn saved(&mut self, now: Ms, why: Save, version: u64, result: Result<(), String>, out: &mut Vec<Effect>) {
        self.state.tried(version, result.is_ok());
        match why {
            Save::Due => {
                if let Err(reason) = result {
                    out.push(log(Level::Warn, Part::State, reason));
                }
            }
            Save::Step => {
                if matches!(self.wait, Wait::Save) {
                    self.wait = Wait::Nothing;
                    self.step_result(now, result, out);
                }
            }
            Save::Post => self.post_saved(result, out),
        }
    }

    fn shut_down(&mut self, now: Ms, reason: String, out: &mut Vec<Effect>) {
        if self.is_stopping() {
            return;
        }
        self.phase = Phase::Stopping;
        self.reason = reason;
        self.revision += 1;
        out.push(Effect::Closing);
        self.autostart.clear();
        self.startup.clear();
        self.polls.stop();
        for request in self.lane.clear() {
            finish(&request, &Err("the loop is shutting down".into()), out);
        }
        self.cancel_running(now, out);
        out.extend(self.polling.keys().map(|&id| Effect::StopHook { id }));
        let never: Vec<String> = self
            .processes
            .keys()
            .filter(|name| !self.started.contains(name))
            .cloned()
            .collect();
        self.held.clear();
        self.next_config = None;
        self.load_at = None;
        self.to_stop = self.started.iter().rev().cloned().chain(never).collect();
        for name in self.to_stop.clone() {
            self.process(now, &name, process::Input::Close, out);
        }
        for waiter in std::mem::take(&mut self.operators).into_values().flatten() {
            out.push(Effect::Finished {
                waiter,
                result: Err("the loop is shutting down".into()),
            });
        }
        self.stop_in_order(now, out);
    }

    fn end_if_down(&mut self, out: &mut Vec<Effect>) {
        let down = self.phase == Phase::Stopping
            && self.running.is_none()
            && self.polling.is_empty()
            && self.posts.is_empty()
            && self.processes.values().all(Supervised::is_settled);
        if down {
            self.phase = Phase::Ended;
            if self.state.is_dirty() {
                out.push(Effect::Save(Save::Due));
            }
            out.push(Effect::Report(Report::Stop {
                reason: self.reason.clone(),
                exit: self.code,
            }));
            out.push(Effect::End { code: self.code });
        }
    }
}

/// The patterns posted values have to match.
fn patterns_of(config: &Config) -> BTreeMap<String, Regex> {
    let compile = |(name, event): (&String, &EventDeclaration)| {
        Some((name.clone(), Regex::new(event.pattern.as_ref()?).ok()?))
    };
    config.event.iter().filter_map(compile).collect()
}

fn log(level: Level, part: Part, text: impl Into<String>) -> Effect {
    Effect::Report(Report::log(level, part, text))
}

/// Tell everybody who waits for the request.
fn finish(request: &Request, result: &Result<(), String>, out: &mut Vec<Effect>) {
    for &waiter in &request.waiters {
        out.push(Effect::Finished {
            waiter,
            result: result.clone(),
        });
    }
}

#[cfg(test)]
mod tests;
