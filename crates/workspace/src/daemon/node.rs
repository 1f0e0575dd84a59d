//! Keeping the node alive: its messages, its restarts, and the project in it.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::future::Future;
use std::rc::Rc;
use std::time::{Duration, Instant};

use beamtalk_etf::Term;
use beamtalk_node::{NodeLink, NodeMessage};
use beamtalk_wire::answers::{LoadAnswer, Severity};
use beamtalk_wire::{Call, Channel, ErrorBody, ErrorKind, Event as Told, Op, Request, Role, WorkspaceEvent};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use tokio::sync::mpsc::Receiver;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::memory;
use super::pulse::{self, Patience};
use crate::agents;
use crate::audit::Event;
use crate::cluster;
use crate::cluster::ports::Registration;
use crate::hosted_loop;
use crate::image::Phase;
use crate::ops::{self, Caller, Sink};
use crate::project::{BuildFailure, ProjectImage};
use crate::terms;
use crate::workspace::Workspace;

/// How often the memory the system has given to the node is looked at.
const MEMORY_CHECK: Duration = Duration::from_millis(500);
/// The same while it is far from its limit.
const RARE_MEMORY_CHECK: Duration = Duration::from_secs(2);
/// How often in a row it is too much; the node needs a few seconds to act by itself.
const MEMORY_CHECKS: u32 = 12;
/// Questions of the image that are worked on at a time; more are refused.
const OPEN_QUESTIONS: usize = 256;

/// What building gave, if it was tried.
pub(super) type Built = Option<Result<Option<ProjectImage>, BuildFailure>>;

/// A node that ends so soon after changes were installed in it again may have ended because of them.
const SUSPICIOUS: Duration = Duration::from_mins(1);

/// Why the node is not distributed.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error("a node named {0} is registered already")]
    Taken(String),
    #[error(transparent)]
    Storage(#[from] beamtalk_storage::StorageError),
    #[error("distribution of {name} does not start: {reason}")]
    Node { name: String, reason: String },
}

/// Serve the node for as long as the daemon lives, restarting it when it ends. The future is done once the first node
/// has booted.
pub(super) fn keep(
    workspace: Rc<Workspace>,
    messages: Receiver<NodeMessage>,
) -> impl Future<Output = Result<(), String>> {
    let (booted, boot) = oneshot::channel();
    tokio::task::spawn_local(run(workspace, messages, booted));
    async { boot.await.unwrap_or_else(|_| Err("it ended".to_owned())) }
}

async fn run(
    workspace: Rc<Workspace>,
    mut messages: Receiver<NodeMessage>,
    booted: oneshot::Sender<Result<(), String>>,
) {
    let mut booted = Some(booted);
    loop {
        let reason = attend(&workspace, &mut messages, &mut booted).await;
        if let Some(booted) = booted.take() {
            drop(booted.send(Err(reason)));
            return;
        }
        if workspace.is_stopping() {
            return;
        }
        tracing::error!("the node ended: {reason}");
        workspace.record_own(Event::NodeExit {
            reason: reason.clone(),
        });
        workspace.compiler.known.borrow_mut().clear();
        workspace.loaded.borrow_mut().clear();
        let reinstalled = workspace.reinstalled.take();
        let is_soon = reinstalled.is_some_and(|at| at.elapsed() < SUSPICIOUS);
        if let Err(error) = ops::after_node_exit(&workspace, is_soon) {
            tracing::error!("{}", error.message);
        }
        // Whether they are why it ends is seen from here on: one of them may end the node while it is installed.
        if !workspace.missing.borrow().is_empty() {
            workspace.reinstalled.set(Some(Instant::now()));
        }
        let pause = workspace.image.ended(reason.clone());
        workspace.publish(&Told::Workspace(WorkspaceEvent::NodeExited { reason }));
        let Some(pause) = pause else { return };
        tokio::time::sleep(pause).await;
        match workspace.image.start() {
            Ok(fresh) => messages = fresh,
            Err(error) => {
                tracing::error!("{}", error.message);
                return;
            }
        }
        workspace.info.borrow_mut().node_pid = workspace.image.pid();
        let info = workspace.info.borrow().clone();
        if let Err(error) = workspace.directory.write_node_info(&info) {
            tracing::error!("node.info: {error}");
        }
    }
}

/// Serve one node until it ends; answers why it did.
async fn attend(
    workspace: &Rc<Workspace>,
    messages: &mut Receiver<NodeMessage>,
    booted: &mut Option<oneshot::Sender<Result<(), String>>>,
) -> String {
    let Some(link) = workspace.image.link() else {
        return "it did not start".to_owned();
    };
    let has_started = Rc::new(Notify::new());
    let mut trouble = std::pin::pin!(trouble(workspace, &link, &has_started));
    // Why it ends, known before it does.
    let mut told = None;
    let questions = Rc::new(Cell::new(0));
    // What is still on its way into this node ends with it: done in the next one it would be old, and welcome requests too early.
    let mut preparing = JoinSet::new();
    loop {
        let message = tokio::select! {
            message = messages.recv() => message,
            reason = &mut trouble, if told.is_none() => {
                told = Some(reason);
                link.kill();
                continue;
            }
        };
        let Some(message) = message else {
            return told.unwrap_or_else(|| "its pipe ended".to_owned());
        };
        match message {
            NodeMessage::Event { channel, name, data } => {
                if channel == "workspace" && name == "node_started" {
                    has_started.notify_one();
                    started(workspace, booted, &mut preparing);
                } else {
                    event(workspace, &channel, &name, &data);
                }
            }
            NodeMessage::Ask {
                number,
                session,
                op,
                args,
            } => {
                if questions.get() >= OPEN_QUESTIONS {
                    let busy = ErrorBody::new(
                        ErrorKind::Busy,
                        format!("{OPEN_QUESTIONS} questions of the image are open"),
                    );
                    link.answer(number, Err(terms::from_json(&json!(busy))));
                    continue;
                }
                questions.set(questions.get() + 1);
                let (workspace, questions) = (workspace.clone(), questions.clone());
                tokio::task::spawn_local(async move {
                    answer(workspace, number, session, op, args).await;
                    questions.set(questions.get() - 1);
                });
            }
            NodeMessage::DamagedFrame(reason) => tracing::warn!("the node sent a damaged frame: {reason}"),
            NodeMessage::Exited(status) => {
                let told = told.or_else(|| given_up(workspace, status?.code()?));
                let status = status.map_or_else(|| "unknown reason".to_owned(), |status| status.to_string());
                return told.map_or_else(|| status.clone(), |reason| format!("{reason} ({status})"));
            }
        }
    }
}

/// Why a node ended itself (`beamtalk_guard:give_up/1`).
fn given_up(workspace: &Workspace, code: i32) -> Option<String> {
    match code {
        71 => {
            let limit = workspace.image.memory_limit()? / (1024 * 1024);
            Some(format!("the node's memory limit of {limit} MiB was reached"))
        }
        72 => Some("a process at a high priority held up all others".to_owned()),
        _ => None,
    }
}

/// Until the node has to be ended, and why.
async fn trouble(workspace: &Workspace, link: &NodeLink, has_started: &Notify) -> String {
    let limit = Duration::from_secs(workspace.options.start_timeout_s.max(1));
    if timeout(limit, has_started.notified()).await.is_err() {
        return format!("it did not boot within {} s", limit.as_secs());
    }
    tokio::select! {
        waited = pulse::silence(link) => format!("it gave no sign of life for {} s", waited.as_secs()),
        limit = outgrown(workspace, link) => {
            format!("it holds more than its memory limit of {} MiB", limit / (1024 * 1024))
        }
    }
}

/// Until the system has given the node clearly more than its limit for a while, or has little left itself. The node ends
/// evaluations, and then itself, before; this is for what it does not see. While it collects garbage it may hold everything
/// twice, and more than that a moment later.
async fn outgrown(workspace: &Workspace, link: &NodeLink) -> u64 {
    let Some(limit) = workspace.image.memory_limit() else {
        return std::future::pending().await;
    };
    let bearable = limit + limit / 4;
    let calm = || Patience::new(MEMORY_CHECKS, MEMORY_CHECK);
    let mut patience = calm();
    let mut pause = MEMORY_CHECK;
    loop {
        sleep(pause).await;
        let resident = memory::resident(link.pid()).unwrap_or(0);
        let is_far = resident < limit / 4;
        pause = if is_far { RARE_MEMORY_CHECK } else { MEMORY_CHECK };
        if resident <= bearable {
            patience = calm();
        } else if patience.is_over(link.pid()) || memory::is_scarce() {
            return limit;
        }
    }
}

/// The first node is prepared by whoever waits for it, a later one here.
fn started(
    workspace: &Rc<Workspace>,
    booted: &mut Option<oneshot::Sender<Result<(), String>>>,
    preparing: &mut JoinSet<()>,
) {
    workspace.tell_node_channels();
    if let Some(booted) = booted.take() {
        drop(booted.send(Ok(())));
        return;
    }
    let workspace = workspace.clone();
    let start = workspace.image.start_number();
    preparing.spawn_local(async move {
        if let Err(error) = distribute(&workspace).await {
            tracing::error!("{error}");
        }
        if !workspace.options.no_load {
            let root = workspace.root.clone();
            let mut notices = Vec::new();
            match ops::load_project(&workspace, &root, true).await {
                Ok(answer) => tell_load_errors(&answer, &mut notices),
                Err(error) => notices.push(format!("the project was not loaded: {}", error.message)),
            }
            for notice in notices {
                tracing::error!("{notice}");
            }
        }
        let installed = ops::reinstall(&workspace).await;
        if !installed.seqs.is_empty() {
            workspace.reinstalled.set(Some(Instant::now()));
        }
        workspace.image.ready(start);
        start_application(&workspace).await;
        let waiting = ops::waiting(&workspace);
        workspace.publish(&Told::Workspace(WorkspaceEvent::NodeStarted {
            reinstalled: installed.seqs.len() as u64,
            failed: installed.failures(),
            waiting: waiting as u64,
        }));
        if waiting > 0 {
            ops::tell_waiting(&workspace);
        }
    });
}

/// Names bound for all sessions.
#[derive(Deserialize)]
struct Globals {
    names: Vec<String>,
}

/// Something was refused because a capability is switched off.
#[derive(Deserialize)]
struct Refused {
    what: String,
    detail: String,
}

/// What was written to the Transcript, with the node's own number of the request that did.
#[derive(Deserialize)]
struct Written {
    text: String,
    r#for: Option<u64>,
    /// The actor that wrote it, if no evaluation did.
    #[serde(default)]
    by: Option<String>,
}

fn event(workspace: &Rc<Workspace>, channel: &str, name: &str, data: &Term) {
    workspace.last_use.set(std::time::Instant::now());
    let data = terms::to_object(data);
    let told = match (channel, name) {
        ("workspace", "globals") => terms::typed(data).map(|Globals { names }| {
            *workspace.image.globals.borrow_mut() = names;
        }),
        ("workspace", "capability_disabled") => terms::typed(data).map(|Refused { what, detail }| {
            workspace.record_own(Event::CapabilityDisabled { what, detail });
        }),
        ("transcript", "text") => {
            terms::typed(data).map(|Written { text, r#for, by }| workspace.publish_text(&text, r#for, by))
        }
        _ => {
            let event = [
                ("channel", channel.into()),
                ("event", name.into()),
                ("data", data.into()),
            ];
            let event = event.map(|(key, value): (&str, Value)| (key.to_owned(), value));
            terms::typed(Map::from_iter(event)).map(|event: Told| {
                if event.channel() == Channel::Classes {
                    workspace.classes_changed.notify_one();
                }
                workspace.publish(&event);
            })
        }
    };
    if let Err(error) = told {
        tracing::warn!("event {channel}/{name}: {}", error.message);
    }
}

/// The image wants an operation performed, on behalf of the session whose evaluation asks.
async fn answer(workspace: Rc<Workspace>, number: i64, session: Option<String>, op: String, args: Term) {
    let outcome = if op == "compile-evaluation" {
        ops::compile_evaluation(&workspace, &args).await
    } else {
        let fields = perform(&workspace, session.as_deref(), &op, &args).await;
        fields.map(|fields| terms::from_json(&fields))
    };
    let outcome = outcome.map_err(|error| terms::from_json(&json!(error)));
    if let Some(link) = workspace.image.link() {
        link.answer(number, outcome);
    }
}

async fn perform(
    workspace: &Rc<Workspace>,
    session: Option<&str>,
    op: &str,
    args: &Term,
) -> Result<Value, ErrorBody> {
    let session = session.and_then(|id| workspace.sessions.find(id));
    let loop_right = session.as_ref().and_then(|session| session.loop_right.get());
    let session = session.or_else(|| workspace.sessions.all().first().cloned());
    let session = match session {
        Some(session) => session,
        None => workspace.sessions.anonymous()?,
    };
    let caller = Caller {
        session,
        role: Role::Owner,
        connection: None,
    };
    match op {
        "autoflush" => return Ok(ops::autoflush(workspace, args)),
        "loop" => return hosted_loop::answer(workspace, terms::to_json(args), loop_right).await,
        "agents" => return agents::answer(&workspace.agents, terms::to_json(args)).await,
        _ => {}
    }
    let Some(op) = Op::from_name(op) else {
        return Err(ErrorBody::new(
            ErrorKind::UnknownOp,
            format!("there is no op '{op}'"),
        ));
    };
    let call = Call {
        id: "image".to_owned(),
        session: None,
        timeout_ms: None,
        about: None,
        op,
        request: Request::parse(op, &terms::to_json(args).to_string()),
    };
    let reply = ops::perform(workspace, &caller, &call, &Sink::Nowhere).await?;
    Ok(Value::Object(reply.object()))
}

/// Make the node one of several, if that was asked for. What the user should know is in the answer.
pub(super) async fn distribute(workspace: &Workspace) -> Result<Vec<String>, ClusterError> {
    let Some(cluster) = &workspace.cluster else {
        return Ok(Vec::new());
    };
    let name = cluster.name.to_string();
    if workspace.registration.borrow().is_none() {
        let claimed = Registration::claim(workspace.directory.state(), &name)?;
        *workspace.registration.borrow_mut() = Some(claimed.ok_or(ClusterError::Taken(name))?);
    }
    let cookie = workspace.directory.create_distribution_cookie()?;
    let answer = workspace
        .image
        .call("", "cluster", cluster.request(&cookie))
        .await;
    let answer = answer.map_err(|error| ClusterError::Node {
        name: cluster.name.to_string(),
        reason: error.message,
    })?;
    let field = |name: &str| answer.get(name).cloned().unwrap_or_default();
    let port = field("port");
    if let (Some(registration), Some(port)) = (&mut *workspace.registration.borrow_mut(), port.as_u64()) {
        registration.tell(port)?;
    }
    *workspace.cluster_status.borrow_mut() = cluster.describe(&port);
    let warning = cluster::exposure_warning(cluster.address, &port);
    Ok(warning.into_iter().collect())
}

/// Load the project that was built while the node booted. A project that does not build is reported; the workspace
/// starts without it.
pub(super) async fn load_built(
    workspace: &Rc<Workspace>,
    built: Built,
    notices: &mut Vec<String>,
) -> Option<Value> {
    let image = match built {
        Some(Ok(Some(image))) => image,
        Some(Err(failure)) => {
            let found = failure.diagnostics.iter();
            let found = found.map(|one| notice(one.severity, one.file.as_deref(), one.line, &one.message));
            notices.extend(found);
            notices.push(format!(
                "the project does not build; the workspace starts without its classes: {}",
                failure.error.message
            ));
            return None;
        }
        Some(Ok(None)) | None => return None,
    };
    match ops::load_image(workspace, image, true).await {
        Ok(answer) => {
            tell_load_errors(&answer, notices);
            start_application(workspace).await;
            let project = workspace.project.borrow();
            project.as_ref().map(
                |image| json!({"name": image.name, "version": image.version, "classes": image.modules.len()}),
            )
        }
        Err(error) => {
            notices.push(format!("the project was not loaded: {}", error.message));
            None
        }
    }
}

/// What is wrong with files that were left out, while everything else is loaded.
fn tell_load_errors(answer: &LoadAnswer, notices: &mut Vec<String>) {
    let mut files = BTreeSet::new();
    for error in &answer.errors {
        files.extend(error.path.clone());
        notices.push(notice(
            Severity::Error,
            error.path.as_deref(),
            error.line,
            &error.message,
        ));
    }
    if !files.is_empty() {
        let files: Vec<String> = files.into_iter().collect();
        notices.push(format!(
            "not loaded because of errors: {}; everything else of the project is",
            files.join(", ")
        ));
    }
}

fn notice(severity: Severity, file: Option<&str>, line: Option<u32>, message: &str) -> String {
    let severity = severity.name();
    match (file, line) {
        (None, _) => format!("{severity}: {message}"),
        (Some(file), Some(line)) => format!("{severity}: {file}:{line}: {message}"),
        (Some(file), None) => format!("{severity}: {file}: {message}"),
    }
}

/// Start the supervisor of `[application]`, if there is one.
async fn start_application(workspace: &Rc<Workspace>) {
    let supervisor = workspace
        .project
        .borrow()
        .as_ref()
        .and_then(|image| image.supervisor.clone());
    let Some(supervisor) = supervisor else { return };
    if workspace.image.phase() == Phase::Failed {
        return;
    }
    let arguments = terms::map([("class", Term::binary(&supervisor))]);
    if let Err(error) = workspace.image.call("", "start-application", arguments).await {
        tracing::error!("{supervisor} did not start: {}", error.message);
    }
}
