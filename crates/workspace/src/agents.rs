//! The agents' daemon as the image sees it: the workspace is a client of its file tree like any other, and neither needs
//! the other to run.

mod fault;
mod follow;
mod questions;

use std::sync::{Arc, Mutex, PoisonError};

use beamtalk_ninep::{Attachment, Error};
use beamtalk_wire::ErrorBody;
use serde_json::Value;

pub(crate) use follow::follow;

/// Why the tree cannot be entered.
#[derive(Debug)]
pub enum DoorFault {
    /// Nobody serves it.
    Unreachable(String),
    Denied(String),
}

/// The way into the agents' tree; connecting and proving who we are is the business of whoever starts the daemon.
pub type AgentsDoor = Arc<dyn Fn() -> Result<Attachment, DoorFault> + Send + Sync>;

/// The link to the agents' daemon. It is made when it is first needed and again when it broke.
#[derive(Clone)]
pub(crate) struct AgentsLink {
    door: AgentsDoor,
    tree: Arc<Mutex<Option<Arc<Attachment>>>>,
}

impl AgentsLink {
    pub(crate) fn new(door: AgentsDoor) -> Self {
        Self {
            door,
            tree: Arc::default(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<Attachment>>> {
        self.tree.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tree(&self) -> Result<Arc<Attachment>, DoorFault> {
        let mut tree = self.lock();
        if let Some(tree) = &*tree {
            return Ok(tree.clone());
        }
        let fresh = Arc::new((self.door)()?);
        *tree = Some(fresh.clone());
        Ok(fresh)
    }

    /// Do something with the tree. A link that broke since it was used last is made anew, once.
    fn with<T>(&self, act: impl Fn(&Attachment) -> Result<T, Error>) -> Result<T, ErrorBody> {
        for attempt in 0..2 {
            let tree = self.tree().map_err(fault::of_door)?;
            match act(&tree) {
                Err(error) if fault::is_broken(&error) => {
                    *self.lock() = None;
                    // What was asked may have been done: only what was refused by a dead link is asked again.
                    if attempt == 1 || !fault::is_unsent(&error) {
                        return Err(fault::of(&error));
                    }
                }
                outcome => return outcome.map_err(|error| fault::of(&error)),
            }
        }
        Err(fault::unavailable("the connection broke"))
    }
}

/// A question of the image. The client of the tree waits, so it does so in a thread of its own.
pub(crate) async fn answer(link: &AgentsLink, question: Value) -> Result<Value, ErrorBody> {
    let link = link.clone();
    let asked = tokio::task::spawn_blocking(move || questions::answer(&link, question));
    asked
        .await
        .unwrap_or_else(|cause| Err(fault::unavailable(&cause.to_string())))
}
