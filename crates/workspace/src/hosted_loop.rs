//! A loop inside the daemon: the command that asked for it stays attached and shows its output, the image sees it as
//! the class `Loop`.

mod announce;
pub(crate) mod files;
mod questions;
mod told;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use beamtalk_loop::config::{RemoteBind, load};
use beamtalk_loop::core::Plan;
use beamtalk_loop::host::{self, Handle, Stage, Streams};
use beamtalk_loop::report::Level;
use beamtalk_loop::{Colour, Options, Outcome, Style};
use beamtalk_wire::{ErrorBody, ErrorKind};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::{mpsc, oneshot, watch};

pub(crate) use questions::{answer, run};
use told::Told;

use crate::gate::ControlCall;
use crate::workspace::Workspace;

/// How many runs of workflows are remembered for those who wait.
const RUNS: usize = 1_000;
/// How long a loop may take to stop with the workspace.
const STOP: Duration = Duration::from_secs(20);
/// Pieces of output that wait for the attached command.
const PIECES: usize = 64;

/// What `beamtalk loop run --workspace` asks for.
#[derive(Debug, Deserialize)]
struct Order {
    config: PathBuf,
    #[serde(default)]
    json: bool,
    #[serde(default)]
    level: Option<String>,
    #[serde(default)]
    stdout_colour: bool,
    #[serde(default)]
    stderr_colour: bool,
    #[serde(default)]
    once: bool,
    #[serde(default)]
    workflows: Vec<String>,
    #[serde(default)]
    changed: Vec<String>,
    #[serde(default)]
    timeout_ms: Option<u64>,
    #[serde(default)]
    fresh_state: bool,
    #[serde(default)]
    allow_remote_bind: bool,
    /// What children inherit: the command's own variables.
    #[serde(default)]
    environment: BTreeMap<String, String>,
}

impl Order {
    fn options(&self) -> Options {
        let colour = |is_on| if is_on { Colour::On } else { Colour::Off };
        let variable = |(name, value): (&String, &String)| (OsString::from(name), OsString::from(value));
        Options {
            style: Style {
                json: self.json,
                level: self
                    .level
                    .as_deref()
                    .and_then(Level::named)
                    .unwrap_or(Level::Info),
                stdout: colour(self.stdout_colour),
                stderr: colour(self.stderr_colour),
            },
            plan: Plan {
                once: self.once,
                workflows: (!self.workflows.is_empty()).then(|| self.workflows.clone()),
                changed: self.changed.clone(),
                epoch_ms: 0,
            },
            fresh_state: self.fresh_state,
            timeout_ms: self.timeout_ms,
            environment: Some(self.environment.iter().map(variable).collect()),
        }
    }
}

/// How a run of a workflow ended; nothing while it has not.
type Ending = watch::Receiver<Option<Result<(), String>>>;

struct Hosted {
    handle: Handle,
    told: Arc<Told>,
    stops: mpsc::UnboundedSender<&'static str>,
    ended: watch::Receiver<bool>,
}

/// The place of the one loop a workspace hosts.
#[derive(Default)]
pub(crate) struct LoopPlace {
    hosted: RefCell<Option<Rc<Hosted>>>,
    is_taken: Cell<bool>,
    runs: RefCell<BTreeMap<u64, Ending>>,
    next_run: Cell<u64>,
}

impl LoopPlace {
    pub(crate) fn is_taken(&self) -> bool {
        self.is_taken.get()
    }

    fn running(&self) -> Option<Rc<Hosted>> {
        self.hosted.borrow().clone()
    }

    /// Ask the loop to stop; a second time forces its end.
    pub(crate) fn stop(&self, reason: &'static str) -> bool {
        self.running()
            .is_some_and(|hosted| hosted.stops.send(reason).is_ok())
    }

    /// Stop with the workspace; what is left is the guard's.
    pub(crate) async fn end(&self) {
        let Some(hosted) = self.running() else { return };
        let _ = hosted.stops.send("SIGTERM");
        let mut ended = hosted.ended.clone();
        drop(tokio::time::timeout(STOP, ended.wait_for(|ended| *ended)).await);
    }

    /// Remember a run; its number is what the image knows of it. Each loop counts its own runs from the beginning, the
    /// image counts those of all loops.
    fn remember(&self, ending: Ending) -> u64 {
        let number = self.next_run.get() + 1;
        self.next_run.set(number);
        let mut runs = self.runs.borrow_mut();
        runs.insert(number, ending);
        while runs.len() > RUNS {
            runs.pop_first();
        }
        number
    }
}

/// Frees the place when the loop has ended, however that came about.
struct Taken<'a>(&'a LoopPlace);

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.0.hosted.borrow_mut().take();
        self.0.is_taken.set(false);
    }
}

/// Run a loop for the command that asks, which sees its output and hears how it ended. When the command goes, the
/// loop stops.
pub(crate) async fn attend(workspace: &Rc<Workspace>, call: &ControlCall) {
    let answer = match host(workspace, call).await {
        Ok(exit) => json!({"done": true, "exit": exit}),
        Err(error) => json!({"error": error}),
    };
    call.answer.send(answer).await;
}

async fn host(workspace: &Rc<Workspace>, call: &ControlCall) -> Result<u8, ErrorBody> {
    let order: Order = serde_json::from_value(call.request.clone())
        .map_err(|cause| ErrorBody::new(ErrorKind::InvalidParameter, cause.to_string()))?;
    let place = &workspace.hosted_loop;
    if place.is_taken.replace(true) {
        return Err(
            ErrorBody::new("loop_running", "this workspace runs a loop already")
                .hint("stop it with: beamtalk loop stop"),
        );
    }
    let taken = Taken(place);
    let remote = if order.allow_remote_bind {
        RemoteBind::Allow
    } else {
        RemoteBind::Refuse
    };
    let config = load(Some(&order.config), &workspace.root, remote)
        .valid()
        .map_err(|problems| {
            let texts: Vec<String> = problems.into_iter().map(|problem| problem.text).collect();
            ErrorBody::new(ErrorKind::InvalidParameter, texts.join("\nerror: "))
        })?;

    let (pieces, mut shown) = mpsc::channel(PIECES);
    let (opened, handle) = oneshot::channel();
    let (stops, told) = mpsc::unbounded_channel();
    let (end, ended) = watch::channel(false);
    let news = workspace.news.clone();
    let told_by_loop = Arc::new(Told::default());
    let hears = Arc::clone(&told_by_loop);
    let stage = Stage {
        streams: Streams {
            stdout: Box::new(Piece("out", pieces.clone())),
            stderr: Box::new(Piece("err", pieces)),
        },
        listener: Arc::new(move |fact| {
            hears.hear(fact);
            announce::tell(&news, fact);
        }),
        opened,
        stops: told,
    };
    let options = order.options();
    let (finished, mut outcome) = oneshot::channel();
    std::thread::Builder::new()
        .name("loop".to_owned())
        .spawn(move || {
            let _ = finished.send(host::run(config, options, stage));
        })
        .map_err(|cause| ErrorBody::new(ErrorKind::InternalError, cause.to_string()))?;
    let mut handle = std::pin::pin!(handle);
    let mut is_open = false;
    let mut is_attached = true;
    let outcome = loop {
        tokio::select! {
            biased;
            Some(piece) = shown.recv() => {
                call.answer.send(piece).await;
            }
            outcome = &mut outcome => break outcome,
            opened = &mut handle, if !is_open => {
                is_open = true;
                if let Ok(handle) = opened {
                    *place.hosted.borrow_mut() = Some(Rc::new(Hosted {
                        handle,
                        told: Arc::clone(&told_by_loop),
                        stops: stops.clone(),
                        ended: ended.clone(),
                    }));
                }
            }
            () = call.answer.closed(), if is_attached => {
                is_attached = false;
                let _ = stops.send("SIGHUP");
            }
        }
    };
    // Everything was written before the loop ended.
    while let Ok(piece) = shown.try_recv() {
        call.answer.send(piece).await;
    }
    drop(taken);
    // Whoever waits may find the place free already.
    let _ = end.send(true);
    Ok(match outcome {
        Ok(Outcome::Ended(code)) => code,
        Ok(Outcome::Owned) => 4,
        Ok(Outcome::Forced) => 130,
        Err(_) => 70,
    })
}

/// One stream of the loop, in pieces for the attached command. One that has gone reads nothing and stops nothing.
struct Piece(&'static str, mpsc::Sender<Value>);

impl Write for Piece {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let text = String::from_utf8_lossy(bytes);
        let _ = self.1.blocking_send(json!({self.0: text}));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
