//! How the workspace does.

use std::rc::Rc;
use std::time::Duration;

use beamtalk_etf::Term;
use beamtalk_wire::ErrorBody;
use beamtalk_wire::answers::{HealthAnswer, LoadedProject, NodeMemory};
use serde::Deserialize;

use crate::terms;
use crate::workspace::Workspace;

/// How long the node's numbers are waited for: what is asked about it is answered even when it cannot.
const NUMBERS: Duration = Duration::from_secs(1);

/// What the node says about itself.
#[derive(Deserialize)]
struct Numbers {
    memory: NodeMemory,
    processes: u64,
    run_queue: u64,
}

pub(crate) async fn health(workspace: &Rc<Workspace>, is_brief: bool) -> HealthAnswer {
    let mut health = workspace.health();
    health.project = workspace.project.borrow().as_ref().and_then(|image| {
        Some(LoadedProject {
            name: image.name.clone()?,
            version: image.version.clone(),
            classes: image.modules.len() as u64,
        })
    });
    if is_brief {
        return health;
    }
    // The node's own numbers, if it is there to tell them.
    if let Ok(node) = numbers(workspace).await {
        health.memory = Some(node.memory);
        health.processes = Some(node.processes);
        health.run_queue = Some(node.run_queue);
    }
    health
}

async fn numbers(workspace: &Workspace) -> Result<Numbers, ErrorBody> {
    let wanted = Term::Map(Vec::new());
    terms::typed(workspace.image.call_within(NUMBERS, "", "health", wanted).await?)
}
