//! The life of a daemon: start in order, serve, stop in order.

mod classes;
mod life;
mod log;
mod memory;
mod node;
mod pulse;

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use beamtalk_node::{Erlang, Runtime};
use beamtalk_storage::{
    Metadata, NodeInfo, PRIVATE_FILE, PidRecord, PortRecord, RunDirectory, Secret, SessionName,
    StateDirectory, StorageError, WorkspaceDirectory, WorkspaceId, WorkspaceLock, process_start_time,
    read_secret_file,
};
use beamtalk_wire::{ErrorBody, ErrorKind, PROTOCOL};
use log::DaemonLog;
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::{Notify, Semaphore};
use tokio::task::LocalSet;

use crate::agents::{self, AgentsDoor, AgentsLink};
use crate::approvals::Approvals;
use crate::audit::{Audit, AuditError, AuditOptions, AuditSize, Event};
use crate::changes::{ChangeError, ChangeLog};
use crate::compile::{CompilerLimits, CompilerPool};
use crate::desk::Desk;
use crate::disk::Disk;
use crate::exposure;
use crate::gate::{self, Credentials, Gate, GateConfig, GateError, TlsError, Tokens};
use crate::handles::Handles;
use crate::hosted_loop::LoopPlace;
use crate::image::{Image, NodeSetup};
use crate::jobs::Jobs;
use crate::mcp::{self, Inside, Link, MakeService};
use crate::news::News;
use crate::options::StartOptions;
use crate::questions::Questions;
use crate::sessions::{Sessions, now};
use crate::stops::Stops;
use crate::told::Told;
use crate::workspace::Workspace;
use crate::{connection, control, project};

/// The options of the node's TLS, when it is distributed.
const DISTRIBUTION_OPTIONS: &str = "dist.config";
/// Requests of AI clients that wait to be looked at.
const VISITS: usize = 64;
/// How often, 10 ms apart, a daemon tries to get the lock before it leaves the workspace to another.
const LOCK_ATTEMPTS: u32 = 20;

/// What a daemon is started with.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartOrder {
    pub id: String,
    pub session: String,
    pub root: PathBuf,
    pub options: StartOptions,
    /// Trust nothing that code in the image could have left: new cookie, no tokens, no build output, no pending
    /// changes.
    #[serde(default)]
    pub clean: bool,
}

#[derive(Debug, thiserror::Error)]
pub enum StartError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("another daemon serves this workspace")]
    Taken,
    #[error(transparent)]
    Audit(#[from] AuditError),
    #[error(transparent)]
    Changes(#[from] ChangeError),
    #[error(transparent)]
    Node(#[from] beamtalk_node::Error),
    #[error(transparent)]
    Gate(#[from] GateError),
    #[error(transparent)]
    Exposure(#[from] exposure::Refusal),
    #[error(transparent)]
    Cluster(#[from] node::ClusterError),
    #[error("{}", .0.message)]
    Failed(ErrorBody),
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

impl StartError {
    /// The exit code of §7.1 and a stable name.
    pub fn class(&self) -> (u8, &'static str) {
        match self {
            Self::Storage(error) => (error.class().exit_code(), error.kind()),
            Self::Audit(_)
            | Self::Changes(_)
            | Self::Gate(GateError::Storage(_) | GateError::Tls(TlsError::Key(_))) => (5, "storage"),
            Self::Taken => (3, "taken"),
            Self::Node(_) => (5, "erlang"),
            Self::Cluster(_) => (5, "cluster"),
            Self::Failed(error) if error.kind == ErrorKind::NodeDown => (5, "node_down"),
            Self::Gate(_) | Self::Exposure(_) => (2, "refused"),
            Self::Failed(_) | Self::Io(_) => (70, "internal_error"),
        }
    }
}

impl StartError {
    fn repair(&self) -> Option<String> {
        match self {
            Self::Storage(error)
            | Self::Audit(AuditError::Storage(error))
            | Self::Node(beamtalk_node::Error::Storage(error))
            | Self::Gate(GateError::Storage(error))
            | Self::Cluster(node::ClusterError::Storage(error)) => error.repair(),
            Self::Audit(AuditError::Write { path, cause })
            | Self::Node(beamtalk_node::Error::File { path, cause, .. }) => {
                beamtalk_storage::repair_of(path, cause)
            }
            Self::Failed(error) => error.hint.clone(),
            _ => None,
        }
    }
}

/// What is told to whoever started the daemon, once.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartReport {
    pub info: Option<NodeInfo>,
    pub is_first: bool,
    pub project: Option<Value>,
    pub notices: Vec<String>,
    pub error: Option<StartFailure>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StartFailure {
    pub kind: String,
    pub message: String,
    /// What repairs it.
    pub hint: Option<String>,
    pub exit: u8,
}

/// Run a daemon until it stops. It is given the way to the agents, if they run, and what answers AI clients; `report`
/// is called once, when the daemon is ready or has failed.
pub fn run(
    order: StartOrder,
    surroundings: (AgentsDoor, MakeService),
    report: impl FnOnce(StartReport),
) -> Result<(), StartError> {
    beamtalk_storage::disable_core_dumps()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let local = LocalSet::new();
    local.block_on(&runtime, async move {
        let mut notices = Vec::new();
        match start(order, surroundings, &mut notices).await {
            Ok(daemon) => {
                report(StartReport {
                    info: Some(daemon.workspace.info.borrow().clone()),
                    is_first: daemon.is_first,
                    project: daemon.project.clone(),
                    notices,
                    error: None,
                });
                life::serve(daemon).await;
                Ok(())
            }
            Err(error) => {
                let (exit, kind) = error.class();
                report(StartReport {
                    info: None,
                    is_first: false,
                    project: None,
                    notices,
                    error: Some(StartFailure {
                        kind: kind.to_owned(),
                        message: with_causes(&error),
                        hint: error.repair(),
                        exit,
                    }),
                });
                Err(error)
            }
        }
    })
}

/// An error and what caused it, in one line.
fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let more = error.to_string();
        if !text.ends_with(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        cause = error.source();
    }
    text
}

pub(crate) struct Daemon {
    pub(crate) workspace: Rc<Workspace>,
    pub(crate) log: DaemonLog,
    pub(crate) run: RunDirectory,
    pub(crate) lock: WorkspaceLock,
    is_first: bool,
    project: Option<Value>,
}

/// The lock, which other commands take for a moment when they look whether a daemon lives.
async fn take_lock(state: &StateDirectory, id: &WorkspaceId) -> Result<WorkspaceLock, StartError> {
    for _ in 0..LOCK_ATTEMPTS {
        if let Some(lock) = state.lock_workspace(id)? {
            return Ok(lock);
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Err(StartError::Taken)
}

/// Lock, storage, secrets, sockets, compiler, node, project, listener, records: nothing can be reached before it
/// can authenticate.
async fn start(
    order: StartOrder,
    (door, make_service): (AgentsDoor, MakeService),
    notices: &mut Vec<String>,
) -> Result<Daemon, StartError> {
    let state = StateDirectory::open(None)?;
    let id = WorkspaceId::named(&order.id)?;
    let lock = take_lock(&state, &id).await?;
    let directory = state.create_workspace(&id)?;
    directory.clear_stale(&lock)?;
    let asked = order.options;
    let mut options = asked.clone();
    let metadata = match directory.metadata()? {
        Some(metadata) => metadata,
        None => Metadata::new(&id, &order.root.display().to_string(), now()),
    };
    if order.clean {
        evict(&state, &directory, &order.root)?;
    }
    let found = directory.cookie()?;
    let is_first = found.is_none();
    let cookie = match found {
        Some(cookie) => cookie,
        None => directory.create_cookie()?,
    };
    // Before anything is started: an exposure that is refused leaves nothing behind.
    let tokens = match directory.tokens()? {
        Some(bytes) => Tokens::parse(&bytes).map_err(GateError::from)?,
        None => Tokens::default(),
    };
    options.tls = exposure::serves_tls(&options);
    let listener = exposure::decide(&options, &tokens, &state, &id, now())?;
    let session = SessionName::parse(&order.session)?;
    let run = RunDirectory::claim(&state, &session, &lock, &PidRecord::of_this_process(&id))?;
    let log = DaemonLog::start(run.log()?);
    notices.extend(state.take_notices().iter().map(ToString::to_string));
    tracing::info!("workspace {id} starts, version {}", env!("CARGO_PKG_VERSION"));
    let program = std::env::current_exe()?;
    let root = order.root;

    // Everything that takes time begins now and goes on side by side.
    let erlang = Erlang::find()?;
    let runtime = Runtime::prepare()?;
    let built = if options.no_load {
        None
    } else {
        Some(tokio::task::spawn_local({
            let (program, root) = (program.clone(), root.clone());
            async move { project::build(&program, &root, false).await }
        }))
    };
    crate::narrow::read(&root).apply(&mut options);
    let compiler = CompilerPool::new(
        program.clone(),
        root.clone(),
        compiler_limits(&options),
        options.no_ffi,
    );
    compiler.warm_up().map_err(StartError::Failed)?;
    let distribution = match &listener.cluster {
        Some(cluster) => {
            // Others must not be able to read the key; the node will not look.
            read_secret_file(&cluster.tls.key)?;
            let text = cluster.options_text();
            let own = directory.directory();
            own.write_atomically(DISTRIBUTION_OPTIONS, text.as_bytes(), PRIVATE_FILE)?;
            // One from before there were none of distributed nodes may hold the secret of distribution.
            directory.remove_crash_dump()?;
            let ports = crate::cluster::ports::directory(&state)?;
            Some(cluster.flags(own.path_of(DISTRIBUTION_OPTIONS), ports))
        }
        None => None,
    };
    let image = Image::new(NodeSetup {
        erlang,
        runtime,
        directory: root.clone(),
        log: Rc::new(RefCell::new(
            directory.log_of(options.log_max_mb << 20, options.log_files)?,
        )),
        crash_dump: directory.crash_dump_path(),
        disabled_capabilities: disabled(&options),
        distribution,
        log_level: options.log_level.clone(),
        transcript: options.transcript,
        compiler_timeout_s: options.compiler_timeout_s,
        compiler_memory_mb: options.compiler_memory_mb,
        max_processes: options.max_processes,
        memory_mb: options.node_max_memory_mb.unwrap_or_else(memory::half),
    });
    let messages = image.start().map_err(StartError::Failed)?;

    let audit_options = AuditOptions {
        text: options.audit_text,
        required: options.audit_required,
    };
    let audit_size = AuditSize {
        file_bytes: options.audit_max_mb << 20,
        old_files: options.audit_files,
    };
    let audit = Arc::new(Audit::open(&directory, audit_size, audit_options)?);
    let nonce = Secret::random()?.expose().to_owned();
    let (visitors, visits) = tokio::sync::mpsc::channel(VISITS);
    let gate_config = GateConfig {
        bind: listener.address,
        port: options.port,
        tls: listener.tls,
        allow_hosts: options.allow_hosts.clone(),
        allow_origins: options.allow_origins.clone(),
        workspace_id: id.to_string(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        control_socket: run.socket_path()?,
        pages: gate::workspace_page,
        mcp: options.mcp_http.then_some(visitors),
        pace: gate::Pace::default(),
    };
    let credentials = Credentials {
        cookie: gate::Credential::from(&cookie),
        tokens,
        store: Arc::new(state.create_workspace(&id)?),
    };
    let sink = Arc::new(control::GateAudit::new(audit.clone(), run.clone()));
    let (gate, admissions, calls) = Gate::open(gate_config, credentials, sink).await?;
    if let Some(warning) = gate::exposure_warning(gate.address) {
        tracing::warn!("{warning}");
        notices.push(warning);
    }
    let info = NodeInfo {
        workspace_id: id.to_string(),
        pid: std::process::id(),
        start_time: process_start_time(std::process::id()).unwrap_or(0),
        node_pid: image.pid(),
        port: gate.address.port(),
        bind_addr: gate.address.ip().to_string(),
        local: gate.local,
        tls: options.tls,
        nonce,
        session: run.session().to_string(),
        socket: run.socket_path()?.display().to_string(),
        started_at: now(),
        protocol: PROTOCOL.to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        capabilities: options.capabilities(),
    };
    let approvals = Approvals::open(&directory);
    let desk = Desk::open(directory.desk()?)?;
    let told = if options.transcript_in_memory {
        Told::default()
    } else {
        Told::open(directory.transcript()?)?
    };
    let mut changes = ChangeLog::open(directory.changes()?, &root)?.with_limit(options.changes);
    if order.clean {
        changes.archive_all()?;
    }
    remember(&directory, metadata.clone(), &asked, &options)?;
    let workspace = Rc::new(Workspace {
        info: RefCell::new(info),
        directory,
        run: run.clone(),
        login_pages: Cell::new(0),
        root,
        program,
        autoflush: Cell::new(metadata.settings.autoflush),
        options,
        cluster: listener.cluster,
        cluster_status: RefCell::new(Value::Null),
        registration: RefCell::new(None),
        audit,
        compiler,
        image,
        sessions: Sessions::default(),
        handles: Handles::default(),
        questions: Questions::default(),
        jobs: Jobs::default(),
        stops: Stops::default(),
        approvals: Rc::new(approvals),
        mcp: RefCell::new(None),
        hosted_loop: LoopPlace::default(),
        news: News::default(),
        agents: AgentsLink::new(door.clone()),
        desk: RefCell::new(desk),
        told: RefCell::new(told),
        broadcast: RefCell::default(),
        tests: RefCell::default(),
        pending_told: RefCell::default(),
        changes: RefCell::new(changes),
        gate: RefCell::new(Some(gate)),
        project: RefCell::new(None),
        loaded: RefCell::new(FxHashMap::default()),
        disk: RefCell::new(Disk::default()),
        not_installed: RefCell::new(BTreeMap::new()),
        missing: RefCell::new(BTreeSet::new()),
        reinstalled: Cell::new(None),
        classes_changed: Notify::new(),
        findings: RefCell::new(FxHashMap::default()),
        observing: Semaphore::new(1),
        connections: RefCell::new(BTreeMap::new()),
        next_connection: Cell::new(1),
        started: Instant::now(),
        last_use: Cell::new(Instant::now()),
        stopping: RefCell::new(None),
        stop_wanted: Notify::new(),
    });
    let start = workspace.image.start_number();
    let booted = node::keep(workspace.clone(), messages);
    booted.await.map_err(|reason| {
        StartError::Failed(
            ErrorBody::new(ErrorKind::NodeDown, format!("the node did not start: {reason}"))
                .hint("beamtalk workspace logs shows what it said"),
        )
    })?;
    for warning in node::distribute(&workspace).await? {
        tracing::warn!("{warning}");
        notices.push(warning);
    }
    let built = match built {
        Some(build) => build.await.ok(),
        None => None,
    };
    let project = node::load_built(&workspace, built, notices).await;
    let waiting = crate::ops::waiting(&workspace);
    if waiting > 0 {
        notices.push(waiting_notice(waiting));
    }
    workspace.image.ready(start);
    classes::remember(&workspace).await;
    tokio::task::spawn_local(classes::keep(workspace.clone()));
    tokio::task::spawn_local(admit(workspace.clone(), admissions));
    tokio::task::spawn_local(control::serve(workspace.clone(), calls));
    let inside = Inside {
        link: Link::new(&workspace),
        options: workspace.options.clone(),
        root: workspace.root.clone(),
        id: id.to_string(),
    };
    match make_service(inside) {
        Ok(service) => *workspace.mcp.borrow_mut() = Some(service),
        Err(reason) => {
            tracing::warn!("AI clients are not served: {reason}");
            if workspace.options.mcp_http {
                notices.push(format!("/mcp is not served: {reason}"));
            }
        }
    }
    tokio::task::spawn_local(mcp::serve(workspace.clone(), visits));
    tokio::task::spawn_local(workspace.news.clone().deliver(workspace.clone()));
    tokio::task::spawn_local(tell_records(workspace.clone()));
    let news = workspace.news.clone();
    std::thread::Builder::new()
        .name("agents".to_owned())
        .spawn(move || agents::follow(&door, &news))?;
    if let Some(gate) = workspace.gate.borrow_mut().as_mut() {
        gate.start();
    }
    let info = workspace.info.borrow().clone();
    workspace.directory.write_port(&PortRecord {
        port: info.local_address().port(),
        nonce: info.nonce.clone(),
    })?;
    workspace.directory.write_node_info(&info)?;
    workspace.record_own(Event::Start {
        version: info.version,
        bind: info.bind_addr,
        tls: info.tls,
        capabilities: info.capabilities,
    });
    if order.clean {
        workspace.record_own(Event::Rotate {
            action: "clean restart".to_owned(),
        });
    }
    Ok(Daemon {
        workspace,
        log,
        run,
        lock,
        is_first,
        project,
    })
}

async fn admit(workspace: Rc<Workspace>, mut admissions: tokio::sync::mpsc::Receiver<gate::Admitted>) {
    while let Some(admitted) = admissions.recv().await {
        tokio::task::spawn_local(connection::serve(workspace.clone(), admitted));
    }
}

fn compiler_limits(options: &StartOptions) -> CompilerLimits {
    CompilerLimits {
        memory_mib: options.compiler_memory_mb,
        time: Duration::from_secs(options.compiler_timeout_s),
        cpu: beamtalk_wire::limits::COMPILER_CPU,
        workers: match options.compiler_pool {
            // Never one alone: an observer's job must not keep the owner waiting.
            0 => std::thread::available_parallelism().map_or(2, |count| count.get().clamp(2, 4)),
            workers => workers,
        },
    }
}

fn disabled(options: &StartOptions) -> Vec<String> {
    let flags = [
        ("subprocess", options.no_subprocess),
        ("ffi", options.no_ffi),
        ("http", options.no_http),
        ("fs", options.read_only_fs),
    ];
    flags
        .into_iter()
        .filter(|(_, is_off)| *is_off)
        .map(|(name, _)| name.to_owned())
        .collect()
}

/// Keep the flags of this start for `restart`: what was asked for, not what the project narrowed it to.
fn remember(
    directory: &WorkspaceDirectory,
    mut metadata: Metadata,
    asked: &StartOptions,
    options: &StartOptions,
) -> Result<(), StartError> {
    metadata.capabilities = options.capabilities();
    if let Value::Object(limits) = options.limits() {
        metadata.limits = limits;
    }
    if let Ok(Value::Object(start)) = serde_json::to_value(asked) {
        metadata.start = start;
    }
    metadata.stopped = false;
    Ok(directory.write_metadata(&metadata)?)
}

/// What is said of changes that wait.
fn waiting_notice(count: usize) -> String {
    match count {
        1 => {
            "1 change of the last run was not flushed (:restore installs it, :discard forgets it)".to_owned()
        }
        count => format!(
            "{count} changes of the last run were not flushed (:restore installs them, :discard forgets them)"
        ),
    }
}

/// Remove what somebody who ran code in the workspace could have left there to come back with.
fn evict(
    state: &StateDirectory,
    directory: &WorkspaceDirectory,
    root: &std::path::Path,
) -> Result<(), StartError> {
    directory.rotate_cookie()?;
    directory.remove_distribution_cookie()?;
    directory.write_tokens(&Tokens::default().to_json())?;
    for build in [root.join("_build"), state.build_of(root)] {
        match std::fs::remove_dir_all(build) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    Ok(())
}

/// Tell the owners who listen what is recorded.
async fn tell_records(workspace: Rc<Workspace>) {
    let mut records = workspace.audit.listen();
    while let Some(line) = records.recv().await {
        let Ok(record) = serde_json::from_slice::<serde_json::Map<String, serde_json::Value>>(&line) else {
            continue;
        };
        let seq = record.get("seq").and_then(serde_json::Value::as_u64);
        let event = beamtalk_wire::Event::Audit(beamtalk_wire::AuditEvent::Record { record });
        workspace.publish_numbered(&event, seq, true);
    }
}
