//! The agents' file tree as tools of AI clients reach it: entered when it is first needed, and again when the link broke.

mod execute;
mod pipe;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use beamtalk_mcp::{HostError, TreeAct};
use beamtalk_ninep::{Attachment, Error, File, Refusal};
use beamtalk_wire::{ErrorBody, ErrorKind};

use crate::door::enter_somewhere;
use crate::places::{Places, is_door};
use crate::tree::is_of_workspace;

pub use execute::execute;
pub use pipe::{copy, own_door};

/// How often it is looked whether somebody still waits for an answer.
const SLICE: Duration = Duration::from_millis(250);
/// What belongs to people and other agents alone.
const PRIVATE: [&str; 7] = [
    "user",
    "inbox",
    "outbox",
    "completed",
    "mail",
    "approvals",
    "audit",
];

#[derive(Clone)]
pub struct Tree {
    link: Arc<Mutex<Option<Arc<Entered>>>>,
    /// The workspace of whoever asks.
    workspace: String,
    /// Whether only what everybody may read is open.
    is_narrow: bool,
}

struct Entered {
    tree: Attachment,
    /// The workspace the tree shows, empty for none; `None` where it cannot be known.
    workspace: Option<String>,
}

impl Entered {
    /// Whether the image in the tree is not that of a workspace.
    fn is_foreign_to(&self, workspace: &str) -> bool {
        !matches!(self.workspace.as_deref(), Some(shown) if shown.is_empty() || shown == workspace)
    }
}

/// Somebody waits for an answer, as long as this is kept.
struct Wanted(Arc<AtomicBool>);

impl Drop for Wanted {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn lost(error: &Error) -> HostError {
    let body = ErrorBody::new(ErrorKind::from("agents_unavailable"), error.to_string());
    Box::new(body.hint("the next call looks for the agents again"))
}

/// A daemon of agents is its user's and shows one workspace, perhaps that of another project.
fn foreign() -> HostError {
    let text = "these files of the tree are those of another workspace";
    let body = ErrorBody::new(ErrorKind::from("path_denied"), text);
    Box::new(body.hint(
        "tools such as read_source, list_actors and read_transcript show this workspace; \
         'beamtalk agents start' in this project shows it in the tree",
    ))
}

fn refused(text: String) -> HostError {
    Box::new(ErrorBody::new(ErrorKind::from("agents"), text))
}

impl Tree {
    pub fn new(workspace: &str, is_narrow: bool) -> Self {
        Self {
            link: Arc::default(),
            workspace: workspace.to_owned(),
            is_narrow,
        }
    }

    /// Do something in the tree. What nobody waits for any more is given up.
    pub async fn act(&self, act: TreeAct) -> Result<String, HostError> {
        if self.is_narrow && !is_open(&act) {
            return Err(refused("permission denied".to_owned()));
        }
        let wanted = Arc::new(AtomicBool::new(true));
        let _wanted = Wanted(wanted.clone());
        let tree = self.clone();
        let done = tokio::task::spawn_blocking(move || tree.perform(&act, &wanted));
        done.await.unwrap_or_else(|_| {
            let body = ErrorBody::new(ErrorKind::InternalError, "the agents could not be asked");
            Err(Box::new(body))
        })
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<Entered>>> {
        self.link.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn entered(&self) -> Result<Arc<Entered>, HostError> {
        let mut known = self.lock();
        if let Some(entered) = &*known {
            return Ok(entered.clone());
        }
        let (tree, namespace) = enter_somewhere().map_err(|fault| {
            let kind = if fault.is_denial() {
                "agents"
            } else {
                "agents_unavailable"
            };
            let body = ErrorBody::new(ErrorKind::from(kind), fault.to_string());
            Box::new(body.hint("'beamtalk agents start' starts the daemon of the agents"))
        })?;
        let workspace = if is_door(&namespace) {
            // A door shows the workspace of its session's directory, in which the session's server runs.
            Some(self.workspace.clone())
        } else {
            // Written once, before the daemon can be entered.
            std::fs::read_to_string(Places::of(&namespace).workspace()).ok()
        };
        let entered = Arc::new(Entered { tree, workspace });
        *known = Some(entered.clone());
        Ok(entered)
    }

    fn perform(&self, act: &TreeAct, wanted: &AtomicBool) -> Result<String, HostError> {
        let entered = self.entered()?;
        if is_of_workspace(act.path()) && entered.is_foreign_to(&self.workspace) {
            return Err(foreign());
        }
        match once(&entered.tree, act, wanted) {
            Ok(answer) => Ok(answer),
            // What the tree says is the answer.
            Err(Error::Refused(refusal)) => Err(refused(refusal.to_string())),
            Err(cause) => {
                self.lock().take();
                Err(lost(&cause))
            }
        }
    }
}

/// Whether a path is open to one who may only read what everybody may.
fn is_open(act: &TreeAct) -> bool {
    match act {
        TreeAct::List(path) | TreeAct::Read(path) => !path.split('/').any(|part| PRIVATE.contains(&part)),
        TreeAct::Write { .. } | TreeAct::Ask { .. } => false,
    }
}

fn read(file: &mut File, wanted: &AtomicBool) -> Result<String, Error> {
    let mut bytes = Vec::new();
    loop {
        let piece = file.read_wanted(u32::MAX, SLICE, || wanted.load(Ordering::Relaxed))?;
        if piece.is_empty() {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
        bytes.extend_from_slice(piece.as_ref());
    }
}

fn once(tree: &Attachment, act: &TreeAct, wanted: &AtomicBool) -> Result<String, Error> {
    match act {
        TreeAct::List(path) if !tree.is_directory(path)? => Err(Error::Refused(Refusal::new(
            20,
            "is no directory: read_file shows what is in it",
        ))),
        TreeAct::List(path) => {
            let names: Vec<String> = tree.list(path)?.into_iter().map(|stat| stat.name).collect();
            Ok(names.join("\n"))
        }
        TreeAct::Read(path) if tree.is_directory(path)? => Err(Error::Refused(Refusal::new(
            21,
            "is a directory: list_files shows what is in it",
        ))),
        TreeAct::Read(path) => {
            let mut file = tree.open(path, 0)?;
            let text = read(&mut file, wanted)?;
            file.close()?;
            Ok(text)
        }
        TreeAct::Write { path, text } => tree.write(path, text.as_bytes()).map(|()| String::new()),
        TreeAct::Ask { path, text: asked } => {
            let mut file = tree.open(path, 2)?;
            file.write_document(asked.as_bytes())?;
            let text = read(&mut file, wanted)?;
            file.close()?;
            Ok(text)
        }
    }
}
