//! The file `mcp`: each open is a connection to a server of its own, which runs outside the session's sandbox and
//! enters by the session's door, so that what it may do is decided here.

use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use beamtalk_ninep::{OpenFile, Payload, ReadAnswer, Refusal, WriteAnswer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::Mutex;

use super::TreeNode;
use super::place::Place;
use crate::config::{LoopRight, WorkspaceRight};
use crate::daemon::Hub;
use crate::error::refusal;

/// How long a server may take to end once nobody speaks to it.
const LAST_CALLS: Duration = Duration::from_secs(2);
/// How soon it is seen that a session has ended while a read waits.
const LOOK: Duration = Duration::from_millis(500);

struct PipeFile {
    hub: Arc<Hub>,
    id: String,
    input: Arc<Mutex<Option<ChildStdin>>>,
    output: Arc<Mutex<ChildStdout>>,
    child: Option<Child>,
    _place: tokio::sync::OwnedSemaphorePermit,
}

impl TreeNode {
    pub(super) fn open_pipe(&self) -> Result<Box<dyn OpenFile>, Refusal> {
        let Place::File(id, _) = &self.place else {
            return Err(Refusal::INTERNAL);
        };
        let session = self.hub.session(id)?;
        let place = Arc::clone(&session.servers)
            .try_acquire_owned()
            .map_err(|_| refusal("too many connections"))?;
        let (backend, cwd) = session.with_record(|record| (record.backend.clone(), record.cwd.clone()));
        let config = self.hub.config();
        let backend = config.backend(&backend)?;
        let workspace = match backend.workspace {
            WorkspaceRight::None => "none",
            WorkspaceRight::Read => "read",
            WorkspaceRight::Write => "write",
        };
        let on_loop = match backend.loop_right {
            LoopRight::None => "none",
            LoopRight::Observe => "observe",
            LoopRight::Post => "post",
            LoopRight::Control => "control",
        };
        let program = std::env::current_exe().map_err(|_| Refusal::INTERNAL)?;
        #[expect(clippy::disallowed_methods, reason = "the server ends with the file")]
        let mut command = Command::new(program);
        let mut child = command
            .args([
                "mcp",
                "--door",
                id,
                "--door-workspace",
                workspace,
                "--door-loop",
                on_loop,
            ])
            .env("AGENT_ID", id)
            .env("NAMESPACE", self.hub.places.door(id))
            .current_dir(&cwd)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .map_err(|cause| refusal(format!("cannot start the server: {cause}")))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(Refusal::INTERNAL);
        };
        Ok(Box::new(PipeFile {
            hub: Arc::clone(&self.hub),
            id: id.clone(),
            input: Arc::new(Mutex::new(Some(input))),
            output: Arc::new(Mutex::new(output)),
            child: Some(child),
            _place: place,
        }))
    }
}

impl OpenFile for PipeFile {
    /// What the server wrote; empty when it has ended.
    fn read(&mut self, _: u64, count: u32) -> ReadAnswer {
        let (hub, id, output) = (Arc::clone(&self.hub), self.id.clone(), Arc::clone(&self.output));
        ReadAnswer::Later(Box::pin(async move {
            let mut output = output.lock().await;
            let mut bytes = vec![0; (count as usize).min(64 * 1024)];
            loop {
                match tokio::time::timeout(LOOK, output.read(&mut bytes)).await {
                    Ok(Ok(count)) => {
                        bytes.truncate(count);
                        return Ok(Payload::from(bytes));
                    }
                    Ok(Err(_)) => return Ok(Payload::default()),
                    // The session is gone, and its rights with it.
                    Err(_) if hub.session(&id).is_err() => return Ok(Payload::default()),
                    Err(_) => {}
                }
            }
        }))
    }

    /// A write of nothing is the end of the input.
    fn write(&mut self, _: u64, data: Payload) -> WriteAnswer {
        let (hub, id, input) = (Arc::clone(&self.hub), self.id.clone(), Arc::clone(&self.input));
        WriteAnswer::Later(Box::pin(async move {
            hub.session(&id)?;
            let mut input = input.lock().await;
            if data.is_empty() {
                input.take();
                return Ok(());
            }
            let ended = || refusal("the server has ended");
            let pipe = input.as_mut().ok_or_else(ended)?;
            let written = pipe.write_all(data.as_ref()).await;
            written.map_err(|_| ended())
        }))
    }

    fn set_length(&mut self, _: u64) -> Result<(), Refusal> {
        Ok(())
    }
}

impl Drop for PipeFile {
    fn drop(&mut self) {
        let (Some(mut child), Ok(runtime)) = (self.child.take(), tokio::runtime::Handle::try_current())
        else {
            return;
        };
        let input = Arc::clone(&self.input);
        // The end of its input lets it stop what runs; what does not end by itself is killed.
        runtime.spawn(async move {
            input.lock().await.take();
            drop(tokio::time::timeout(LAST_CALLS, child.wait()).await);
        });
    }
}
