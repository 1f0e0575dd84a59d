//! What the workspace is and how it does.

use std::rc::Rc;
use std::time::Duration;

use beamtalk_etf::Term;
use beamtalk_wire::{ErrorBody, Op, PROTOCOL, limits};
use serde_json::{Map, Value, json};

use super::Answer;
use crate::workspace::Workspace;

pub(super) fn describe(workspace: &Workspace) -> Answer {
    let ops: Map<String, Value> = Op::ALL
        .iter()
        .map(|op| {
            let about = json!({
                "class": op.access().letter(),
                "fields": op.fields(),
                "audit": op.audit(),
            });
            (op.name().to_owned(), about)
        })
        .collect();
    json!({
        "ops": ops,
        "versions": {"protocol": PROTOCOL, "beamtalk": env!("CARGO_PKG_VERSION")},
        "capabilities": workspace.options.capabilities(),
        "limits": {
            "inbound_frame": limits::INBOUND_FRAME,
            "outbound_frame": limits::OUTBOUND_FRAME,
            "open_requests": limits::OPEN_REQUESTS,
            "waiting_evals": limits::WAITING_EVALUATIONS,
            "eval_heap_mb": workspace.options.eval_max_heap_mb,
            "eval_timeout_s": workspace.options.eval_timeout_s,
            "eval_output": limits::EVAL_OUTPUT,
            "eval_text": limits::EVAL_TEXT,
            "session_grace_s": workspace.options.session_grace_s,
            "compiler_memory_mb": workspace.options.compiler_memory_mb,
            "compiler_timeout_s": workspace.options.compiler_timeout_s,
        },
    })
    .into()
}

pub(super) async fn health(workspace: &Rc<Workspace>) -> Result<Answer, ErrorBody> {
    let mut fields = workspace.health();
    // The node's own numbers, if it is there to tell them.
    if let Ok(node) = numbers(workspace).await {
        for (key, value) in node {
            fields.entry(key).or_insert(value);
        }
    }
    Ok(fields.into())
}

/// How long the node's numbers are waited for: what is asked about it is answered even when it cannot.
const NUMBERS: Duration = Duration::from_secs(1);

/// What the node says about itself.
pub(crate) async fn numbers(workspace: &Workspace) -> Result<Map<String, Value>, ErrorBody> {
    let wanted = Term::Map(Vec::new());
    workspace.image.call_within(NUMBERS, "", "health", wanted).await
}
