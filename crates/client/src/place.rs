//! From a name or a directory to a workspace: which one is meant, whether its daemon runs, its end.
//!
//! Starting one is the caller's: it needs the program itself and what the project depends on.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use beamtalk_storage::{
    Metadata, NodeInfo, StateDirectory, StorageError, WorkspaceDirectory, WorkspaceId, find_project_root,
    process_start_time,
};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::{Connection, Control, ControlError, Endpoint, Events, Exit, Fault, Greeting};

/// How long a daemon that holds the lock but does not answer yet is waited for.
const WAIT_TIME: Duration = Duration::from_secs(10);
/// How long a daemon may take to end: what runs in it is given time.
const STOP_TIME: Duration = Duration::from_secs(20);

/// A workspace, running or not.
pub struct Place {
    pub state: StateDirectory,
    pub id: WorkspaceId,
    /// The user named it.
    pub is_named: bool,
    pub root: PathBuf,
}

/// A daemon at its control socket.
struct Answering {
    control: Control,
    info: NodeInfo,
    is_stopping: bool,
}

/// Why a daemon could not be asked. By force, one that does not answer is ended.
enum Unasked {
    Silent(ControlError),
    Fault(Fault),
}

impl From<Fault> for Unasked {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

impl From<StorageError> for Unasked {
    fn from(error: StorageError) -> Self {
        Self::Fault(error.into())
    }
}

impl From<Unasked> for Fault {
    fn from(error: Unasked) -> Self {
        match error {
            Unasked::Silent(error) => error.into(),
            Unasked::Fault(fault) => fault,
        }
    }
}

impl Place {
    /// The workspace that is meant by this name, by `BEAMTALK_WORKSPACE`, or by this directory; `tell` is given what
    /// the user should know of that.
    pub fn find(
        state: StateDirectory,
        name: Option<&str>,
        here: &Path,
        mut tell: impl FnMut(&str),
    ) -> Result<Self, Fault> {
        let explicit = WorkspaceId::explicit(name)?;
        let here = find_project_root(here, state.path())?;
        let (id, is_named) = match explicit {
            Some(id) => (id, true),
            None => (WorkspaceId::for_root(&here)?, false),
        };
        let mut place = Self {
            state,
            id,
            is_named,
            root: here,
        };
        let metadata = place.metadata()?;
        // The directories of workspaces were opened for that.
        place
            .state
            .take_notices()
            .iter()
            .for_each(|notice| tell(&notice.to_string()));
        if let Some(metadata) = metadata
            && is_named
            && metadata.project_path != place.root.display().to_string()
        {
            tell(&format!(
                "warning: workspace '{}' belongs to {}",
                place.id, metadata.project_path
            ));
            place.root = PathBuf::from(metadata.project_path);
        }
        Ok(place)
    }

    /// A workspace found in the state directory, to look at or to stop; its root is that on record.
    pub fn of(state: &StateDirectory, id: WorkspaceId) -> Self {
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

    pub fn directory(&self) -> Result<Option<WorkspaceDirectory>, Fault> {
        Ok(self.state.workspace(&self.id)?)
    }

    /// The directory of a workspace that must have been created.
    pub fn require_directory(&self) -> Result<WorkspaceDirectory, Fault> {
        self.directory()?.ok_or_else(|| {
            let message = format!("there is no workspace '{}'", self.id);
            Fault::new(Exit::NotRunning, "no_workspace", message).with_hint("beamtalk repl makes one")
        })
    }

    pub fn metadata(&self) -> Result<Option<Metadata>, Fault> {
        match self.directory()? {
            Some(directory) => Ok(directory.metadata()?),
            None => Ok(None),
        }
    }

    /// The control socket of the daemon that serves this workspace, if one does.
    pub fn control(&self) -> Result<Option<(Control, NodeInfo)>, Fault> {
        let answering = self.answering()?;
        Ok(answering.map(|daemon| (daemon.control, daemon.info)))
    }

    pub fn require_control(&self) -> Result<(Control, NodeInfo), Fault> {
        self.control()?.ok_or_else(|| {
            self.is_not_running()
                .with_hint("beamtalk workspace start, or beamtalk repl")
        })
    }

    /// How the daemon says it is, if one answers soon.
    pub fn status_within(&self, limit: Duration) -> Result<Option<Value>, Fault> {
        let Some(info) = self.running()? else {
            return Ok(None);
        };
        let mut control = Control::connect(info.socket.as_ref())?;
        Ok(Some(control.call_within(&json!({"op": "status"}), limit)?))
    }

    fn answering(&self) -> Result<Option<Answering>, Unasked> {
        let Some(directory) = self.directory()? else {
            return Ok(None);
        };
        let Some(info) = directory.node_info()? else {
            return Ok(None);
        };
        let mut control = match Control::connect(info.socket.as_ref()) {
            Ok(control) => control,
            Err(ControlError::NotRunning) => return Ok(None),
            Err(error @ ControlError::NotOurs { .. }) => {
                return Err(Fault::new(Exit::Environment, "storage", error.to_string()).into());
            }
            Err(error) => return Err(Fault::not_running(error.to_string()).into()),
        };
        let hello = control
            .call_within(&json!({"op": "hello"}), WAIT_TIME)
            .map_err(Unasked::Silent)?;
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
    pub fn stop(&self, op: &str, force: bool) -> Result<bool, Fault> {
        match self.tell_to_stop(op, force) {
            Err(Unasked::Silent(_)) if force => self.kill()?,
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
        Err(Fault::failure("does_not_stop", message).with_hint("beamtalk workspace stop --force"))
    }

    fn tell_to_stop(&self, op: &str, force: bool) -> Result<bool, Unasked> {
        let Some(Answering { mut control, .. }) = self.answering()? else {
            return Ok(false);
        };
        let request = json!({"op": op, "force": force});
        let answer = if force {
            control.call_within(&request, WAIT_TIME)
        } else {
            control.call(&request)
        };
        control_answer(answer.map_err(Unasked::Silent)?)?;
        Ok(true)
    }

    fn has_ended(&self) -> Result<bool, Fault> {
        let Some(directory) = self.directory()? else {
            return Ok(true);
        };
        let deadline = Instant::now() + STOP_TIME;
        while Instant::now() < deadline {
            // Only a free lock proves that it has ended: the records go a moment earlier.
            if directory.lock()?.is_some() {
                return Ok(true);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(false)
    }

    /// End the daemon that holds the lock; its node ends with it. A record whose process is another one by now ends nobody.
    fn kill(&self) -> Result<(), Fault> {
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

    /// The daemon that admits clients, if there is one or soon will be; `None` when it must be started. A daemon that
    /// was killed holds its lock until the system has cleared it away, so only one that answers counts.
    pub fn wait_for_daemon(&self) -> Result<Option<NodeInfo>, Fault> {
        let began = Instant::now();
        while self.running()?.is_some() {
            let (limit, failure) = match self.answering() {
                Ok(Some(daemon)) if !daemon.is_stopping => return Ok(Some(daemon.info)),
                // One that is about to end admits nobody any more; its successor does.
                Ok(Some(_)) => (STOP_TIME, unanswered()),
                Ok(None) => (WAIT_TIME, unanswered()),
                Err(error) => (WAIT_TIME, error.into()),
            };
            if began.elapsed() >= limit {
                return Err(failure);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(None)
    }

    /// Another daemon came first; its records appear when it is ready.
    pub fn wait_for_winner(&self) -> Result<NodeInfo, Fault> {
        let deadline = Instant::now() + WAIT_TIME;
        while Instant::now() < deadline {
            if let Some((_, info)) = self.control()? {
                return Ok(info);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Err(unanswered())
    }

    /// The record of a daemon that lives. The connection to it will tell whether it is the right one.
    pub fn running(&self) -> Result<Option<NodeInfo>, Fault> {
        let Some(directory) = self.directory()? else {
            return Ok(None);
        };
        let Some(info) = directory.node_info()? else {
            return Ok(None);
        };
        // Whoever holds the lock is the daemon; a free lock means that the record is a leftover.
        let is_free = directory.lock()?.is_some();
        Ok((!is_free).then_some(info))
    }

    pub fn is_not_running(&self) -> Fault {
        Fault::not_running(format!("workspace '{}' is not running", self.id))
    }

    /// Connect to it, if it runs: where it is and the cookie are read from its files, each time anew.
    pub async fn dial(&self, greeting: Greeting<'_>) -> Result<(Connection, Events), Fault> {
        let info = self.running()?.ok_or_else(|| self.is_not_running())?;
        self.connect(&info, greeting).await
    }

    /// Connect to the daemon of this record: the cookie is read from its file.
    pub async fn connect(
        &self,
        info: &NodeInfo,
        greeting: Greeting<'_>,
    ) -> Result<(Connection, Events), Fault> {
        let cookie = self.require_directory()?.cookie()?.ok_or_else(|| {
            let message = format!("workspace '{}' has no cookie", self.id);
            Fault::new(Exit::Environment, "storage", message)
        })?;
        let endpoint = Endpoint::here(info);
        Ok(Connection::open(&endpoint, "cookie", cookie.expose(), greeting).await?)
    }
}

/// The error inside an answer of the control socket, if it has one.
pub fn control_answer(answer: Value) -> Result<Value, Fault> {
    let Some(error) = answer.get("error") else {
        return Ok(answer);
    };
    let exit = match error["kind"].as_str() {
        Some("invalid_parameter" | "missing_parameter") => Exit::Usage,
        _ => Exit::Failure,
    };
    let message = error["message"].as_str().unwrap_or("the workspace refused");
    Err(Fault {
        hint: error["hint"].as_str().map(str::to_owned),
        ..Fault::new(exit, "control_failed", message)
    })
}

fn unanswered() -> Fault {
    Fault::not_running("a daemon holds the workspace and does not answer")
        .with_hint("beamtalk workspace stop --force ends it")
}
