//! What the running workspace of a project knows, beside its files.
//!
//! One thread follows the workspaces of all projects that are open: it connects where one runs, keeps what it is told,
//! and passes questions on. It never starts a workspace, and nothing waits for it longer than it says.

pub(crate) mod image;
mod link;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use beamtalk_client::Endpoint;
use beamtalk_wire::Operation;
use crossbeam_channel::{RecvTimeoutError, bounded};
use serde_json::{Map, Value};
use tokio::sync::mpsc;

pub(crate) use image::Image;

use crate::fault::Fault;

/// Answers that only add to what files say come in this time or not at all.
pub(crate) const BRIEF: Duration = Duration::from_millis(100);
/// What a person asked for may take a while.
pub(crate) const PATIENT: Duration = Duration::from_mins(2);

/// Where a workspace is reached, and with what.
pub struct Reach {
    pub endpoint: Endpoint,
    pub cookie: String,
}

/// Finds the workspace of a project.
pub trait Workspaces: Send + Sync {
    /// The running one, if there is one. Must not start any.
    fn find(&self, root: &Path) -> Result<Option<Reach>, String>;
}

/// What the thread tells the owner of all state.
#[derive(Debug)]
pub(crate) enum News {
    /// What is known of a workspace now; nothing when it is gone.
    Image(PathBuf, Option<Box<Image>>),
    Transcript(String),
    /// Files that a flush has written.
    Flushed(PathBuf, Vec<String>),
}

/// A question to a workspace.
struct Ask {
    op: &'static str,
    fields: Map<String, Value>,
    as_person: bool,
    reply: crossbeam_channel::Sender<Result<Reply, String>>,
}

/// What a workspace answered, with what was printed meanwhile.
#[derive(Clone, Debug, Default)]
pub(crate) struct Reply {
    pub(crate) message: Map<String, Value>,
    pub(crate) output: String,
}

/// The workspaces that are followed, each with a way to ask it.
#[derive(Clone, Default)]
pub(crate) struct Links {
    links: Arc<Mutex<BTreeMap<PathBuf, mpsc::UnboundedSender<Ask>>>>,
}

impl std::fmt::Debug for Links {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Links")
    }
}

impl Links {
    /// Follow the workspace of a project from now on.
    pub(crate) fn follow(
        &self,
        root: &Path,
        workspaces: &Arc<dyn Workspaces>,
        news: impl Fn(News) + Send + Clone + 'static,
    ) {
        let mut links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
        if links.contains_key(root) {
            return;
        }
        let (asks, asked) = mpsc::unbounded_channel();
        links.insert(root.to_owned(), asks);
        let (root, workspaces) = (root.to_owned(), workspaces.clone());
        // A thread that cannot be had leaves the editor with what files say.
        drop(
            std::thread::Builder::new()
                .name("lsp-live".to_owned())
                .spawn(move || link::run(&root, workspaces.as_ref(), asked, &news)),
        );
    }

    /// Ask the workspace of a project and wait for the answer, at most so long.
    pub(crate) fn ask<O: Operation>(
        &self,
        root: &Path,
        request: &O,
        patience: Duration,
    ) -> Result<O::Answer, Fault> {
        let reply = self.send(
            root,
            O::OP.name(),
            beamtalk_wire::object(request),
            patience,
            false,
        )?;
        let answer = beamtalk_client::Answer::<O::Answer>::read(reply.message);
        answer.body.map_err(|error| Fault::Failed(error.message))
    }

    /// Run code that a person asked to run. It goes over a connection of its own: the server's runs none.
    pub(crate) fn evaluate(
        &self,
        root: &Path,
        request: &beamtalk_wire::requests::Eval,
    ) -> Result<Reply, Fault> {
        let op = beamtalk_wire::Op::Eval.name();
        self.send(root, op, beamtalk_wire::object(request), PATIENT, true)
    }

    fn send(
        &self,
        root: &Path,
        op: &'static str,
        fields: Map<String, Value>,
        patience: Duration,
        as_person: bool,
    ) -> Result<Reply, Fault> {
        let missing = || {
            let text = "no workspace runs for this project; `beamtalk repl` starts one".to_owned();
            Fault::Failed(text)
        };
        let (reply, answer) = bounded(1);
        let ask = Ask {
            op,
            fields,
            as_person,
            reply,
        };
        {
            let links = self.links.lock().unwrap_or_else(PoisonError::into_inner);
            let link = links.get(root).ok_or_else(missing)?;
            link.send(ask).map_err(|_| missing())?;
        }
        match answer.recv_timeout(patience) {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(text)) => Err(Fault::Failed(text)),
            Err(RecvTimeoutError::Timeout) => {
                Err(Fault::Failed("the workspace did not answer in time".to_owned()))
            }
            Err(RecvTimeoutError::Disconnected) => Err(missing()),
        }
    }
}
