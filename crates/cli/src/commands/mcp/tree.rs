//! The agents' file tree as tools reach it: entered when it is first needed, and again when the link broke.

use std::sync::{Arc, Mutex, PoisonError};

use beamtalk_mcp::{HostError, TreeAct};
use beamtalk_ninep::{Attachment, Error};
use beamtalk_wire::{ErrorBody, ErrorKind};
use beamtalk_workspace::DoorFault;

use crate::commands::daemon::agents_door;

pub(super) type Tree = Arc<Mutex<Option<Arc<Attachment>>>>;

fn entered(tree: &Tree) -> Result<Arc<Attachment>, HostError> {
    let mut known = tree.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(attachment) = &*known {
        return Ok(attachment.clone());
    }
    let attachment = agents_door()().map_err(|fault| {
        let (kind, text) = match fault {
            DoorFault::Unreachable(text) => ("agents_unavailable", text),
            DoorFault::Denied(text) => ("agents", text),
        };
        let body = ErrorBody::new(ErrorKind::from(kind), text);
        Box::new(body.hint("'beamtalk agents start' starts the daemon of the agents"))
    })?;
    let attachment = Arc::new(attachment);
    *known = Some(attachment.clone());
    Ok(attachment)
}

fn once(tree: &Attachment, act: &TreeAct) -> Result<String, Error> {
    let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
    match act {
        TreeAct::List(path) => {
            let names: Vec<String> = tree.list(path)?.into_iter().map(|stat| stat.name).collect();
            Ok(names.join("\n"))
        }
        TreeAct::Read(path) => tree.read(path).map(text),
        TreeAct::Write { path, text } => tree.write(path, text.as_bytes()).map(|()| String::new()),
        TreeAct::Ask { path, text: asked } => tree.rpc(path, asked.as_bytes()).map(text),
    }
}

pub(super) fn perform(tree: &Tree, act: TreeAct) -> Result<String, HostError> {
    let attachment = entered(tree)?;
    match once(&attachment, &act) {
        Ok(answer) => Ok(answer),
        // What the tree says is the answer.
        Err(Error::Refused(refusal)) => Err(Box::new(ErrorBody::new(
            ErrorKind::from("agents"),
            refusal.to_string(),
        ))),
        Err(lost) => {
            tree.lock().unwrap_or_else(PoisonError::into_inner).take();
            let body = ErrorBody::new(ErrorKind::from("agents_unavailable"), lost.to_string());
            Err(Box::new(body.hint("the next call looks for the agents again")))
        }
    }
}
