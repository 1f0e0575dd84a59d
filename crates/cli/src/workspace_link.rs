//! From a command to its workspace: which one is meant, where it runs, starting it when it does not.

use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use beamtalk_client::{Connection, Control, ControlError, Endpoint, Events, Greeting};
use beamtalk_project::build::Package;
use beamtalk_project::lock::Locking;
use beamtalk_project::{Network, Project};
use beamtalk_storage::{
    Metadata, NodeInfo, SessionName, StateDirectory, StorageError, WorkspaceDirectory, WorkspaceId,
    find_project_root, process_start_time,
};
use beamtalk_workspace::{StartOptions, StartOrder, StartReport};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;

/// How long a daemon that holds the lock but does not answer yet is waited for.
const WAIT_TIME: Duration = Duration::from_secs(10);
/// How long a daemon may take to end: what runs in it is given time.
const STOP_TIME: Duration = Duration::from_secs(20);

/// A workspace, running or not.
pub(crate) struct Place {
    pub(crate) state: StateDirectory,
    pub(crate) id: WorkspaceId,
    /// The user named it.
    pub(crate) is_named: bool,
    pub(crate) root: PathBuf,
}

/// A workspace that answered.
pub(crate) struct Found {
    pub(crate) info: NodeInfo,
    /// This command started it; what the daemon said then.
    pub(crate) started: Option<StartReport>,
}

/// A daemon at its control socket.
struct Answering {
    control: Control,
    info: NodeInfo,
    is_stopping: bool,
}

/// What an earlier run of the workspace left behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    Everything,
    /// Secrets, build output and pending changes go.
    Nothing,
}

/// The state directory; what had to be tightened is told.
pub(crate) fn open_state(terminal: &mut Terminal) -> anyhow::Result<StateDirectory> {
    let state = StateDirectory::open(None).map_err(refused)?;
    tell_notices(terminal, &state);
    Ok(state)
}

fn tell_notices(terminal: &mut Terminal, state: &StateDirectory) {
    for notice in state.take_notices() {
        terminal.error(format_args!("{notice}"));
    }
}

impl Place {
    /// The workspace a command means: by flag, by variable, or by the directory it stands in.
    pub(crate) fn find(terminal: &mut Terminal, name: Option<&str>) -> anyhow::Result<Self> {
        let state = open_state(terminal)?;
        let flag = name.or(terminal.workspace.as_deref());
        let explicit = WorkspaceId::explicit(flag).map_err(refused)?;
        let here = find_project_root(&std::env::current_dir()?, state.path()).map_err(refused)?;
        let (id, is_named) = match explicit {
            Some(id) => (id, true),
            None => (WorkspaceId::for_root(&here).map_err(refused)?, false),
        };
        let mut place = Self {
            state,
            id,
            is_named,
            root: here,
        };
        let metadata = place.metadata()?;
        // The directories of workspaces were opened for that.
        tell_notices(terminal, &place.state);
        if let Some(metadata) = metadata
            && is_named
            && metadata.project_path != place.root.display().to_string()
        {
            terminal.error(format_args!(
                "warning: workspace '{}' belongs to {}",
                place.id, metadata.project_path
            ));
            place.root = PathBuf::from(metadata.project_path);
        }
        Ok(place)
    }

    /// A workspace found in the state directory, to look at or to stop; its root is that on record.
    pub(crate) fn of(state: &StateDirectory, id: WorkspaceId) -> Self {
        let mut place = Self {
            state: state.clone(),
            id,
            is_named: true,
            root: PathBuf::new(),
        };
        if let Ok(Some(metadata)) = place.metadata() {
            place.root = PathBuf::from(metadata.project_path);
        }
        place
    }

    pub(crate) fn directory(&self) -> anyhow::Result<Option<WorkspaceDirectory>> {
        Ok(self.state.workspace(&self.id).map_err(refused)?)
    }

    /// The directory of a workspace that must have been created.
    pub(crate) fn require_directory(&self) -> anyhow::Result<WorkspaceDirectory> {
        self.directory()?.ok_or_else(|| {
            Fault {
                exit: Exit::NotRunning,
                kind: "no_workspace",
                message: format!("there is no workspace '{}'", self.id),
                hint: Some("beamtalk repl makes one".to_owned()),
            }
            .into()
        })
    }

    pub(crate) fn metadata(&self) -> anyhow::Result<Option<Metadata>> {
        match self.directory()? {
            Some(directory) => Ok(directory.metadata().map_err(refused)?),
            None => Ok(None),
        }
    }

    /// The control socket of the daemon that serves this workspace, if one does.
    pub(crate) fn control(&self) -> anyhow::Result<Option<(Control, NodeInfo)>> {
        let answering = self.answering()?;
        Ok(answering.map(|daemon| (daemon.control, daemon.info)))
    }

    /// How the daemon says it is, if one answers soon.
    pub(crate) fn status_within(&self, limit: Duration) -> anyhow::Result<Option<Value>> {
        let Some(info) = self.running()? else {
            return Ok(None);
        };
        let mut control = Control::connect(info.socket.as_ref())?;
        Ok(Some(control.call_within(&json!({"op": "status"}), limit)?))
    }

    fn answering(&self) -> anyhow::Result<Option<Answering>> {
        let Some(directory) = self.directory()? else {
            return Ok(None);
        };
        let Some(info) = directory.node_info().map_err(refused)? else {
            return Ok(None);
        };
        let mut control = match Control::connect(info.socket.as_ref()) {
            Ok(control) => control,
            Err(ControlError::NotRunning) => return Ok(None),
            Err(error @ ControlError::NotOurs { .. }) => {
                return Err(environment("storage", error.to_string()).into());
            }
            Err(error) => return Err(not_running(error.to_string()).into()),
        };
        let hello = control.call_within(&json!({"op": "hello"}), WAIT_TIME)?;
        // A file of an earlier daemon may lead to the socket of another workspace.
        if hello["workspace_id"] != self.id.as_str() || hello["nonce"] != info.nonce {
            return Ok(None);
        }
        Ok(Some(Answering {
            control,
            info,
            is_stopping: hello["stopping"] == true,
        }))
    }

    /// Stop the workspace and wait for its end; false if it did not run. By force, one that does not answer is ended.
    pub(crate) fn stop(&self, op: &str, force: bool) -> anyhow::Result<bool> {
        match self.tell_to_stop(op, force) {
            Err(error) if force && error.is::<ControlError>() => self.kill()?,
            told => {
                if !told? {
                    return Ok(false);
                }
            }
        }
        if self.has_ended()? {
            return Ok(true);
        }
        if force {
            self.kill()?;
            if self.has_ended()? {
                return Ok(true);
            }
        }
        let message = format!("workspace {} does not stop", self.id);
        Err(Fault::failure("does_not_stop", message)
            .with_hint("beamtalk workspace stop --force")
            .into())
    }

    fn tell_to_stop(&self, op: &str, force: bool) -> anyhow::Result<bool> {
        let Some((mut control, _)) = self.control()? else {
            return Ok(false);
        };
        let request = json!({"op": op, "force": force});
        let answer = if force {
            control.call_within(&request, WAIT_TIME)?
        } else {
            control.call(&request)?
        };
        control_answer(answer)?;
        Ok(true)
    }

    fn has_ended(&self) -> anyhow::Result<bool> {
        let Some(directory) = self.directory()? else {
            return Ok(true);
        };
        let deadline = Instant::now() + STOP_TIME;
        while Instant::now() < deadline {
            // Only a free lock proves that it has ended: the records go a moment earlier.
            if directory.lock().map_err(refused)?.is_some() {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(false)
    }

    /// End the daemon that holds the lock; its node ends with it. A record whose process is another one by now ends nobody.
    fn kill(&self) -> anyhow::Result<()> {
        let Some(info) = self.running()? else {
            return Ok(());
        };
        let is_it =
            process_start_time(info.pid).is_none_or(|start| info.start_time == 0 || start == info.start_time);
        if let Some(pid) = i32::try_from(info.pid)
            .ok()
            .and_then(Pid::from_raw)
            .filter(|_| is_it)
        {
            // It may have ended by itself meanwhile.
            let _ = kill_process(pid, Signal::KILL);
        }
        Ok(())
    }

    pub(crate) fn require_control(&self) -> anyhow::Result<(Control, NodeInfo)> {
        self.control()?.ok_or_else(|| {
            not_running(format!("workspace '{}' is not running", self.id))
                .with_hint("beamtalk workspace start, or beamtalk repl")
                .into()
        })
    }

    /// The running daemon, or a new one. A daemon that was killed holds its lock until the system has cleared it away,
    /// so only one that answers counts.
    pub(crate) fn find_or_start(
        &self,
        terminal: &mut Terminal,
        options: &StartOptions,
    ) -> anyhow::Result<Found> {
        let began = Instant::now();
        while self.running()?.is_some() {
            let (limit, failure) = match self.answering() {
                Ok(Some(daemon)) if !daemon.is_stopping => {
                    return Ok(Found {
                        info: daemon.info,
                        started: None,
                    });
                }
                // One that is about to end admits nobody any more; its successor does.
                Ok(Some(_)) => (STOP_TIME, unanswered().into()),
                Ok(None) => (WAIT_TIME, unanswered().into()),
                Err(error) => (WAIT_TIME, error),
            };
            if began.elapsed() >= limit {
                return Err(failure);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.start(terminal, options, Trust::Everything)
    }

    /// The record of a daemon that lives. The connection to it will tell whether it is the right one.
    pub(crate) fn running(&self) -> anyhow::Result<Option<NodeInfo>> {
        let Some(directory) = self.directory()? else {
            return Ok(None);
        };
        let Some(info) = directory.node_info().map_err(refused)? else {
            return Ok(None);
        };
        // Whoever holds the lock is the daemon; a free lock means that the record is a leftover.
        let is_free = directory.lock().map_err(refused)?.is_some();
        Ok((!is_free).then_some(info))
    }

    /// What a daemon for this workspace is started with.
    pub(crate) fn order(&self, options: &StartOptions, trust: Trust) -> StartOrder {
        let parent = rustix::process::getppid().map_or(1, |pid| pid.as_raw_nonzero().get().unsigned_abs());
        let session = SessionName::choose(self.is_named.then_some(&self.id), parent);
        StartOrder {
            id: self.id.to_string(),
            session: session.to_string(),
            root: self.root.clone(),
            options: options.clone(),
            clean: matches!(trust, Trust::Nothing),
        }
    }

    /// Fetch what the project needs and has not got, so that the start does not wait for a network.
    fn fetch_dependencies(&self, terminal: &mut Terminal) -> anyhow::Result<()> {
        let found = match Project::at(&self.root) {
            Ok(Some(project)) => Package::resolve(terminal, project, Locking::Follow).map(drop),
            Ok(None) => Ok(()),
            Err(error) => Err(error),
        };
        match (found, terminal.network) {
            (Err(error), Network::Refused) => Err(error.into()),
            // The daemon finds the same fault when it builds, and tells it to everybody who joins.
            (_, _) => Ok(()),
        }
    }

    /// Start a daemon, detached, and wait until it is ready. What it had to say is told.
    pub(crate) fn start(
        &self,
        terminal: &mut Terminal,
        options: &StartOptions,
        trust: Trust,
    ) -> anyhow::Result<Found> {
        let found = self.launch(terminal, options, trust)?;
        for notice in found.started.iter().flat_map(|report| &report.notices) {
            terminal.error(format_args!("{notice}"));
        }
        Ok(found)
    }

    /// The same without a word.
    #[expect(clippy::disallowed_methods, reason = "the daemon outlives this process")]
    pub(crate) fn launch(
        &self,
        terminal: &mut Terminal,
        options: &StartOptions,
        trust: Trust,
    ) -> anyhow::Result<Found> {
        if !options.no_load {
            self.fetch_dependencies(terminal)?;
        }
        let directory = self.state.create_workspace(&self.id).map_err(refused)?;
        let order = self.order(options, trust);
        let log = directory.create_startup_log().map_err(refused)?;
        let mut daemon = Command::new(std::env::current_exe()?)
            .arg("daemon")
            .arg(serde_json::to_string(&order)?)
            .env("BEAMTALK_HOME", self.state.path())
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log)
            .spawn()?;
        let Some(output) = daemon.stdout.take() else {
            anyhow::bail!("the daemon has no pipe");
        };
        let report = read_report(output, Duration::from_secs(options.start_timeout_s))?;
        let Some(report) = report else {
            return Err(Fault {
                exit: Exit::Internal,
                kind: "start_failed",
                message: "the workspace did not start".to_owned(),
                hint: Some(format!("read {}", directory.startup_log_path().display())),
            }
            .into());
        };
        if let Some(failure) = &report.error {
            if failure.kind == "taken" {
                if trust == Trust::Nothing {
                    let message = "the workspace was started meanwhile by somebody else, and not cleaned";
                    return Err(Fault::failure("taken", message)
                        .with_hint("try again; a session that is open somewhere may start it")
                        .into());
                }
                return self.wait_for_winner();
            }
            return Err(Fault {
                exit: Exit::Code(failure.exit),
                kind: "start_failed",
                message: failure.message.clone(),
                hint: failure.hint.clone(),
            }
            .into());
        }
        let Some(info) = report.info.clone() else {
            anyhow::bail!("the daemon's report is broken");
        };
        Ok(Found {
            info,
            started: Some(report),
        })
    }

    /// Another daemon came first; its records appear when it is ready.
    fn wait_for_winner(&self) -> anyhow::Result<Found> {
        let deadline = Instant::now() + WAIT_TIME;
        while Instant::now() < deadline {
            if let Some((_, info)) = self.control()? {
                return Ok(Found { info, started: None });
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(unanswered().into())
    }
}

/// One line from the daemon's pipe; `None` when it ended without a word.
fn read_report(output: std::process::ChildStdout, limit: Duration) -> anyhow::Result<Option<StartReport>> {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        drop(BufReader::new(output).read_line(&mut line));
        drop(sender.send(line));
    });
    let line = receiver.recv_timeout(limit).map_err(|_| {
        not_running(format!(
            "the workspace was not ready within {} s",
            limit.as_secs()
        ))
    })?;
    Ok(serde_json::from_str(&line).ok())
}

/// Do something in a workspace that runs.
pub(crate) fn attached<T>(
    place: &Place,
    info: &NodeInfo,
    work: impl AsyncFnOnce(Connection, Events) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let greeting = Greeting {
            client: "attach",
            resume: None,
        };
        let (connection, events) = connect(place, info, greeting).await?;
        work(connection, events).await
    })
}

/// Connect to a workspace of this user: the cookie is read from its file.
pub(crate) async fn connect(
    place: &Place,
    info: &NodeInfo,
    greeting: Greeting<'_>,
) -> anyhow::Result<(Connection, Events)> {
    let directory = place.require_directory()?;
    let cookie = directory
        .cookie()
        .map_err(refused)?
        .ok_or_else(|| environment("storage", format!("workspace '{}' has no cookie", place.id)))?;
    let address = info.local_address();
    let endpoint = Endpoint {
        host: address.ip().to_string(),
        port: address.port(),
        tls: None,
    };
    Connection::open(&endpoint, "cookie", cookie.expose(), greeting)
        .await
        .map_err(|error| connection_fault(&error).into())
}

pub(crate) fn connection_fault(error: &beamtalk_client::Error) -> Fault {
    let (exit, kind) = match error {
        beamtalk_client::Error::Refused(_) => (Exit::Owned, "auth_failed"),
        beamtalk_client::Error::Failed(_) => (Exit::Failure, "failed"),
        beamtalk_client::Error::TooLong(_) => (Exit::Failure, "too_large"),
        beamtalk_client::Error::Busy => (Exit::Failure, "busy"),
        _ => (Exit::NotRunning, "not_reachable"),
    };
    let hint = match error {
        beamtalk_client::Error::UnknownHost { host, .. } => Some(format!(
            "start it with --allow-host {host}, or use the address it is bound to"
        )),
        beamtalk_client::Error::Unreachable { cause, .. } if cause.contains("CertificateRequired") => {
            Some("this workspace asks clients for a certificate: --cert FILE --key FILE".to_owned())
        }
        _ => None,
    };
    Fault {
        exit,
        kind,
        message: error.to_string(),
        hint,
    }
}

/// The error inside an answer of the control socket, if it has one.
pub(crate) fn control_answer(answer: Value) -> anyhow::Result<Value> {
    match answer.get("error") {
        None => Ok(answer),
        Some(error) => Err(Fault {
            exit: match error["kind"].as_str() {
                Some("invalid_parameter" | "missing_parameter") => Exit::Usage,
                _ => Exit::Failure,
            },
            kind: "control_failed",
            message: error["message"]
                .as_str()
                .unwrap_or("the workspace refused")
                .to_owned(),
            hint: error["hint"].as_str().map(str::to_owned),
        }
        .into()),
    }
}

pub(crate) fn refused(error: StorageError) -> Fault {
    let exit = match error.class() {
        beamtalk_storage::Class::Usage => Exit::Usage,
        beamtalk_storage::Class::Environment => Exit::Environment,
    };
    Fault {
        exit,
        kind: "storage",
        message: error.to_string(),
        hint: error.repair(),
    }
}

fn environment(kind: &'static str, message: String) -> Fault {
    Fault {
        exit: Exit::Environment,
        kind,
        message,
        hint: None,
    }
}

fn unanswered() -> Fault {
    not_running("a daemon holds the workspace and does not answer".to_owned())
        .with_hint("beamtalk workspace stop --force ends it")
}

pub(crate) fn not_running(message: String) -> Fault {
    Fault {
        exit: Exit::NotRunning,
        kind: "not_running",
        message,
        hint: None,
    }
}
