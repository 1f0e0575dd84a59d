//! The shell: waits on the world, feeds the core, performs its effects.

mod alarm;
mod children;
mod control_server;
mod detached;
mod environment;
mod hooks;
mod perform;
mod probes;
mod reconfigure;
mod signals;
mod tails;

use std::collections::{BTreeMap, VecDeque};
use std::ffi::OsString;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use beamtalk_process::Keepers;
use serde_json::{Map, Value};
use tokio::sync::{broadcast, mpsc, oneshot, watch};
use tokio::task::AbortHandle;

use self::alarm::Alarm;
use self::children::Job;
use self::detached::Register;
use self::probes::Prober;
pub(crate) use self::signals::Signals;
pub use self::tails::Said;
pub(crate) use self::tails::Tails;
use crate::config::{Config, WatcherKind};
use crate::core::{
    Core, Effect, Event, GroupStatus, Ms, Operation, Plan, Post, Servers, Status, Verdict, WatchStatus,
};
use crate::error::Fatal;
use crate::events::audit::AuditLog;
use crate::events::gate::{Failures, Gate, Token};
use crate::events::server::Desk;
use crate::host::{Fact, Handle};
use crate::output::{Output, Style};
use crate::record::Record;
use crate::report::{Level, Part, Report};
use crate::watch::{Found, Notice, Scope, Teller, Watching};
use crate::{events, reload, state_file, watch as watching};

/// How a run is meant to go.
#[derive(Clone, Debug)]
pub struct Options {
    pub style: Style,
    pub plan: Plan,
    /// Start with empty state, whatever the file says.
    pub fresh_state: bool,
    /// End a single run after this time.
    pub timeout_ms: Option<u64>,
    /// What children inherit in the place of this program's own environment.
    pub environment: Option<Environment>,
}

/// Variables and their values.
pub type Environment = BTreeMap<OsString, OsString>;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// An orderly end with this code.
    Ended(u8),
    /// Another run owns the state file.
    Owned,
    /// A second signal forced the end.
    Forced,
}

/// How much may wait for the shell. Whoever has more to say waits: a child for the reading of its
/// output, the watcher for its changes, a client for its answer.
const INBOX: usize = 1024;

/// What comes to the shell from its tasks.
pub(crate) enum Inbound {
    Event(Event),
    Notice(Notice),
    Post {
        event: String,
        value: String,
        verdict: oneshot::Sender<Verdict>,
        done: Option<oneshot::Sender<Result<(), String>>>,
    },
    Rejected {
        event: String,
    },
    Operate {
        process: String,
        operation: Operation,
        reply: oneshot::Sender<Result<(), String>>,
    },
    /// A host asks for a declared workflow.
    Request {
        workflow: String,
        changed: Vec<String>,
        /// Told the number of the run.
        queued: oneshot::Sender<u64>,
        done: oneshot::Sender<Result<(), String>>,
    },
    /// A watcher for another config has seen everything there is.
    Watching(Watching),
    Status {
        reply: oneshot::Sender<Status>,
    },
    State {
        key: Option<String>,
        reply: oneshot::Sender<Map<String, Value>>,
    },
    Stop,
}

/// Run the loop to its end. Everything it has to say goes to the output streams.
pub fn run(config: Config, options: Options) -> Outcome {
    let made = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .and_then(|runtime| Ok((runtime, Output::new(options.style)?)));
    let (runtime, output) = match made {
        Ok(made) => made,
        Err(error) => {
            // There is no output yet to report through.
            drop(writeln!(std::io::stderr(), "error: {}", Fatal::Runtime(error)));
            return Outcome::Ended(1);
        }
    };
    let signals = {
        let _inside = runtime.enter();
        Signals::install()
    };
    let start = Start {
        signals,
        opened: None,
    };
    drive(runtime, config, options, &output, start)
}

/// How a run is begun: what ends it, and who waits for the way to talk to it.
pub(crate) struct Start {
    pub(crate) signals: std::io::Result<Signals>,
    pub(crate) opened: Option<oneshot::Sender<Handle>>,
}

pub(crate) fn drive(
    runtime: tokio::runtime::Runtime,
    config: Config,
    options: Options,
    output: &Output,
    start: Start,
) -> Outcome {
    let outcome = runtime.block_on(async {
        let outcome = run_with(config, options, output, start).await;
        output.flush().await;
        outcome
    });
    // Blocking work that is still under way must not hold up the end.
    runtime.shutdown_background();
    outcome
}

async fn run_with(config: Config, options: Options, output: &Output, start: Start) -> Outcome {
    let failed = |error: &Fatal| {
        output.report(&Report::log(Level::Error, part_of(error), error.to_string()));
        output.report(&Report::Stop {
            reason: error.to_string(),
            exit: if is_owned(error) { 4 } else { 1 },
        });
        if is_owned(error) {
            Outcome::Owned
        } else {
            Outcome::Ended(1)
        }
    };
    let mut signals = match start.signals {
        Ok(signals) => signals,
        Err(error) => return failed(&Fatal::Runtime(error)),
    };
    let epoch = Instant::now();
    let prepared = tokio::select! {
        prepared = prepare(config, options, output, epoch) => prepared,
        name = signals.next() => {
            // Nothing was started yet; what was prepared is dropped, which frees lock and guard.
            output.report(&Report::log(Level::Info, Part::Engine, format!("received {name}, shutting down")));
            output.report(&Report::Stop { reason: name.into(), exit: 0 });
            return Outcome::Ended(0);
        }
    };
    match prepared {
        Ok(shell) => {
            if let Some(opened) = start.opened {
                drop(opened.send(Handle::new(shell.desk.clone(), shell.revision.subscribe())));
            }
            shell.run(signals).await
        }
        Err(error) => failed(&error),
    }
}

fn is_owned(error: &Fatal) -> bool {
    matches!(error, Fatal::Owned { .. })
}

fn part_of(error: &Fatal) -> Part {
    match error {
        Fatal::Owned { .. }
        | Fatal::Lock { .. }
        | Fatal::ReadState { .. }
        | Fatal::ParseState { .. }
        | Fatal::WriteState { .. } => Part::State,
        Fatal::Process(_) => Part::Process,
        Fatal::Watch { .. } => Part::Watch,
        Fatal::Bind {
            server: "browser reload server",
            ..
        } => Part::Browser,
        Fatal::Bind { .. } => Part::Events,
        Fatal::Socket { .. } | Fatal::Random(_) | Fatal::Runtime(_) => Part::Engine,
    }
}

/// Steps 2 to 5 of the start: lock and guard, state, watches, servers.
async fn prepare(config: Config, options: Options, output: &Output, epoch: Instant) -> Result<Shell, Fatal> {
    let mut options = options;
    options.plan.epoch_ms = beamtalk_storage::time::now_millis();
    let lock = state_file::lock(&config.state_file).await?;
    state_file::sweep(&config.state_file);
    let keepers = Keepers::start(Some(&lock))?;
    let config = Arc::new(config);
    let values = if options.fresh_state {
        BTreeMap::new()
    } else {
        state_file::read(&config.state_file)?
    };
    let mut core = Core::new(Arc::clone(&config), options.plan.clone(), values);
    core.preset("root", Value::String(config.root.to_string_lossy().into_owned()));
    state_file::write(&config.state_file, core.values())?;
    let saved = core.handle(
        0,
        Event::Saved {
            why: crate::core::Save::Due,
            version: core.version(),
            result: Ok(()),
        },
    );
    debug_assert!(saved.is_empty(), "nothing is due before the run begins");

    let (inbox, inbound) = mpsc::channel(INBOX);
    let watching = if options.plan.once {
        None
    } else {
        Some(start_watching(&config, output, inbox.clone()).await?)
    };
    let gate = Arc::new(Mutex::new(Gate::new(&config).map_err(Fatal::Random)?));
    let desk = Desk {
        config: Arc::new(Mutex::new(Arc::clone(&config))),
        tails: Tails::default(),
        gate: Arc::clone(&gate),
        inbox: inbox.clone(),
        audit: Arc::new(AuditLog::beside(&config.state_file)),
        output: output.clone(),
        failures: Arc::new(Mutex::new(Failures::default())),
    };
    let mut shell = Shell {
        core,
        epoch,
        output: output.clone(),
        inbox,
        inbound,
        keepers: Some(keepers),
        leaving: None,
        _lock: lock,
        found: watching
            .as_ref()
            .map(|watching| watching.found)
            .unwrap_or_default(),
        watching,
        jobs: BTreeMap::new(),
        quiet: BTreeMap::new(),
        detached: Register::beside(&config.state_file),
        marks: BTreeMap::new(),
        config_text: None,
        hooks: BTreeMap::new(),
        tokens: BTreeMap::new(),
        desk,
        reloads: reload::channel(),
        servers: Servers::default(),
        tasks: Vec::new(),
        prober: Prober::default(),
        posts: BTreeMap::new(),
        next_post: 0,
        revision: watch::Sender::new(0),
        timeout_ms: options.timeout_ms,
        environment: options.environment,
        pids: BTreeMap::new(),
        ended: None,
        config,
    };
    if let Err(error) = shell.bind_servers().await {
        control_server::unbind(&shell.config.state_file);
        return Err(error);
    }
    Ok(shell)
}

async fn start_watching(
    config: &Config,
    output: &Output,
    inbox: mpsc::Sender<Inbound>,
) -> Result<Watching, Fatal> {
    // The thread that watches waits for room: what happens meanwhile stays with the system.
    let teller: Teller = Box::new(move |notice| inbox.blocking_send(Inbound::Notice(notice)).is_ok());
    let watching = watching::start(Scope::new(config), config.watcher.clone(), teller)
        .await
        .map_err(|cause| Fatal::Watch {
            root: config.root.clone(),
            cause,
        })?;
    for target in &watching.targets {
        let path = config.root.join(&target.path);
        let path = path.to_string_lossy();
        let path = path.trim_end_matches('/');
        let text = if target.recursive {
            format!("watching {path} (recursive)")
        } else {
            format!("watching {path}")
        };
        output.report(&Report::log(Level::Info, Part::Watch, text));
    }
    Ok(watching)
}

/// Somebody who posted and waits.
#[derive(Default)]
struct Poster {
    verdict: Option<oneshot::Sender<Verdict>>,
    queued: Option<oneshot::Sender<u64>>,
    done: Option<oneshot::Sender<Result<(), String>>>,
}

pub(crate) struct Shell {
    core: Core,
    config: Arc<Config>,
    epoch: Instant,
    output: Output,
    inbox: mpsc::Sender<Inbound>,
    inbound: mpsc::Receiver<Inbound>,
    keepers: Option<Keepers>,
    /// Those whose guard was killed: nothing is started by them, but they are not gone yet.
    leaving: Option<Keepers>,
    _lock: std::fs::File,
    watching: Option<Watching>,
    found: Found,
    jobs: BTreeMap<(String, u64), Job>,
    /// The config as it was read last, once it was edited.
    config_text: Option<Vec<u8>>,
    /// Programs that outlive the loop.
    detached: Register,
    /// Detached hooks under way: their names, and the marks of what they leave behind.
    marks: BTreeMap<u64, (String, String)>,
    /// What polls that show only news showed last.
    quiet: BTreeMap<String, Arc<Mutex<Vec<hooks::Shown>>>>,
    hooks: BTreeMap<u64, oneshot::Sender<()>>,
    /// Tokens of children with a scope of their own.
    tokens: BTreeMap<Holder, Token>,
    desk: Desk,
    reloads: broadcast::Sender<()>,
    servers: Servers,
    tasks: Vec<AbortHandle>,
    prober: Prober,
    posts: BTreeMap<u64, Poster>,
    next_post: u64,
    revision: watch::Sender<u64>,
    timeout_ms: Option<u64>,
    /// What children inherit, where it is not this program's own.
    environment: Option<Environment>,
    /// Those that run, as the host was told.
    pids: BTreeMap<String, u32>,
    ended: Option<u8>,
}

/// Who holds a scoped token.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Holder {
    Process(String, u64),
    Hook(u64),
}

impl Shell {
    async fn bind_servers(&mut self) -> Result<(), Fatal> {
        let socket = control_server::bind(&self.config.state_file).map_err(|cause| Fatal::Socket {
            path: crate::control::socket_path(&self.config.state_file),
            cause,
        })?;
        if let Err(error) = Record::write(&self.config.file, &self.config.state_file) {
            let text = format!("this loop is found by its config only: {error}");
            self.log(Level::Warn, Part::Engine, text);
        }
        let control = control_server::run(socket, self.desk.clone(), self.revision.subscribe());
        self.tasks.push(tokio::spawn(control).abort_handle());
        if !self.config.event.is_empty()
            && let Some(address) = self.config.event_server.address()
        {
            let (listener, local) = beamtalk_http::bind(address).await.map_err(|cause| Fatal::Bind {
                server: "external event server",
                address: self.config.event_server.bind.clone(),
                cause,
            })?;
            let url = format!("http://{local}");
            self.log(
                Level::Info,
                Part::Events,
                format!("listening for external events at {url}"),
            );
            self.servers.events = Some(url);
            self.tasks
                .push(tokio::spawn(events::server::run(listener, local, self.desk.clone())).abort_handle());
        }
        if self.config.uses_reload()
            && let Some(address) = self.config.browser_reload_server.address()
        {
            let (listener, local) = beamtalk_http::bind(address).await.map_err(|cause| Fatal::Bind {
                server: "browser reload server",
                address: self.config.browser_reload_server.bind.clone(),
                cause,
            })?;
            let url = format!("http://{local}{}", reload::PATH);
            self.log(
                Level::Info,
                Part::Browser,
                format!("listening for browser reload events at {url}"),
            );
            self.servers.browser = Some(url);
            self.tasks
                .push(tokio::spawn(reload::run(listener, local, self.reloads.clone())).abort_handle());
        }
        Ok(())
    }

    fn log(&self, level: Level, part: Part, text: String) {
        self.output.report(&Report::log(level, part, text));
    }

    fn now(&self) -> Ms {
        self.epoch.elapsed().as_millis() as Ms
    }

    async fn run(mut self, mut signals: Signals) -> Outcome {
        let limit = self
            .timeout_ms
            .map(|limit| self.epoch + Duration::from_millis(limit));
        let mut limit = limit.map(tokio::time::Instant::from_std);
        let mut stopping = false;
        let mut alarm = match Alarm::new() {
            Ok(alarm) => alarm,
            Err(error) => {
                self.log(Level::Error, Part::Engine, Fatal::Runtime(error).to_string());
                return self.finish().await;
            }
        };
        self.feed(Event::Begin);
        while self.ended.is_none() {
            alarm.set(
                self.core
                    .deadline()
                    .map(|due| self.epoch + Duration::from_millis(due)),
            );
            tokio::select! {
                biased;
                name = signals.next() => {
                    if stopping {
                        return self.force();
                    }
                    stopping = true;
                    let line = format!("received {name}, shutting down");
                    self.feed(Event::Shutdown { line, reason: name.into() });
                }
                () = sleep_until(limit) => {
                    limit = None;
                    stopping = true;
                    self.feed(Event::TimedOut { limit: self.timeout_ms.unwrap_or_default() });
                }
                () = guard_ended(self.keepers.as_ref()) => {
                    self.leaving = self.keepers.take();
                    let text = "the guard process ended; the loop stops, for without it programs could be left running".to_owned();
                    self.feed(Event::Fatal { part: Part::Process, text });
                }
                Some(inbound) = self.inbound.recv() => self.receive(inbound),
                () = alarm.ring() => self.feed(Event::Tick),
            }
            self.revision.send_if_modified(|revision| {
                let changed = *revision != self.core.revision();
                *revision = self.core.revision();
                changed
            });
        }
        self.finish().await
    }

    fn receive(&mut self, inbound: Inbound) {
        match inbound {
            Inbound::Event(event) => self.feed(event),
            Inbound::Notice(Notice::Changed(changes, seen)) => {
                let at = seen.saturating_duration_since(self.epoch).as_millis() as Ms;
                self.feed(Event::Changed { changes, at });
            }
            Inbound::Notice(Notice::ConfigChanged) => self.feed(Event::ConfigChanged),
            Inbound::Notice(Notice::Warning(text)) => self.log(Level::Warn, Part::Watch, text),
            Inbound::Notice(Notice::Counted(found)) => self.found = found,
            Inbound::Notice(Notice::Failed(text)) => self.feed(Event::Fatal {
                part: Part::Watch,
                text,
            }),
            Inbound::Operate {
                process,
                operation,
                reply,
            } => {
                self.next_post += 1;
                let waiter = self.next_post;
                let waiting = Poster {
                    done: Some(reply),
                    ..Poster::default()
                };
                self.posts.insert(waiter, waiting);
                self.feed(Event::Operate {
                    process,
                    operation,
                    waiter,
                });
            }
            Inbound::Request {
                workflow,
                changed,
                queued,
                done,
            } => {
                self.next_post += 1;
                let waiter = self.next_post;
                let waiting = Poster {
                    queued: Some(queued),
                    done: Some(done),
                    ..Poster::default()
                };
                self.posts.insert(waiter, waiting);
                self.feed(Event::Requested {
                    workflow,
                    changed,
                    waiter,
                });
            }
            Inbound::Watching(watching) => {
                if !self.core.is_stopping() {
                    self.found = watching.found;
                    self.watching = Some(watching);
                }
            }
            Inbound::Post {
                event,
                value,
                verdict,
                done,
            } => {
                self.next_post += 1;
                let id = self.next_post;
                let waits = done.is_some();
                self.posts.insert(
                    id,
                    Poster {
                        verdict: Some(verdict),
                        done,
                        ..Poster::default()
                    },
                );
                self.feed(Event::Posted(Post {
                    id,
                    event,
                    value,
                    waits,
                }));
            }
            Inbound::Rejected { event } => {
                let now = self.now();
                self.core.count_rejected(now, &event);
            }
            // Somebody who asked and went away needs no answer.
            Inbound::Status { reply } => drop(reply.send(self.status())),
            Inbound::State { key, reply } => {
                let wanted = |name: &String| key.as_ref().is_none_or(|key| key == name);
                let values = self.core.values().iter().filter(|(name, _)| wanted(name));
                drop(
                    reply.send(
                        values
                            .map(|(name, value)| (name.clone(), value.clone()))
                            .collect(),
                    ),
                );
            }
            Inbound::Stop => self.feed(Event::Shutdown {
                line: "asked to stop, shutting down".into(),
                reason: "stop".into(),
            }),
        }
    }

    fn status(&mut self) -> Status {
        let backend = match self.config.watcher.kind {
            WatcherKind::Native => "native",
            WatcherKind::Poll => "poll",
        };
        let config = Arc::clone(&self.config);
        let groups = config.watch.iter().map(|(name, group)| GroupStatus {
            name: name.clone(),
            workflow: group.workflow.clone(),
            patterns: group.paths.clone(),
        });
        let watch = WatchStatus {
            backend: backend.to_owned(),
            directories: self.found.directories,
            files: self.found.files,
            groups: groups.collect(),
        };
        let mut status = self
            .core
            .status(self.now(), std::process::id(), watch, self.servers.clone());
        status.detached = self.detached.statuses();
        status
    }

    /// A second signal: everything dies now. The guard sees to it.
    fn force(self) -> Outcome {
        if let Some(keepers) = &self.keepers {
            keepers.kill_all();
        }
        self.unbind();
        self.output.report(&Report::Stop {
            reason: "forced".into(),
            exit: 130,
        });
        Outcome::Forced
    }

    fn unbind(&self) {
        control_server::unbind(&self.config.state_file);
        Record::remove(&self.config.file);
    }

    /// Everything is down: close what is open, let the guard go.
    async fn finish(mut self) -> Outcome {
        for task in self.tasks.drain(..) {
            task.abort();
        }
        drop(self.watching.take());
        self.unbind();
        if let Some(keepers) = self.keepers.take().or(self.leaving.take()) {
            keepers.dismiss().await;
        }
        Outcome::Ended(self.ended.unwrap_or(1))
    }

    /// Give the core an event and carry out what it wants, and what comes of that, to the end.
    fn feed(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            self.child_gone(&event);
            self.tell_process(&event);
            let now = self.now();
            // Deeds first: a child starts sooner when nobody is woken before it to write a line.
            // What comes of a deed is handled, and told, after the words of this round.
            let mut words = Vec::new();
            for effect in self.core.handle(now, event) {
                if matches!(
                    effect,
                    Effect::Report(_) | Effect::StateChanged(_) | Effect::Reload
                ) {
                    words.push(effect);
                } else {
                    events.extend(self.perform(effect));
                }
            }
            for word in words {
                events.extend(self.perform(word));
            }
        }
    }

    /// Tell the host of starts and ends.
    fn tell_process(&mut self, event: &Event) {
        match event {
            Event::Spawned { process, pid, .. } => {
                self.pids.insert(process.clone(), *pid);
                self.output.tell(&Fact::Started { process, pid: *pid });
            }
            Event::Exited { process, exit, .. } => {
                let pid = self.pids.remove(process);
                self.output.tell(&Fact::Exited {
                    process,
                    pid,
                    exit: *exit,
                });
            }
            _ => {}
        }
    }

    fn end(&mut self, code: u8) {
        self.ended = Some(code);
    }
}

async fn sleep_until(deadline: Option<tokio::time::Instant>) {
    match deadline {
        Some(deadline) => tokio::time::sleep_until(deadline).await,
        None => std::future::pending().await,
    }
}

async fn guard_ended(keepers: Option<&Keepers>) {
    match keepers {
        Some(keepers) => keepers.ended().await,
        None => std::future::pending().await,
    }
}
