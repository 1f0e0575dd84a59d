//! Questions that go back to the client: kept by the workspace under a name that is looked up once.

use beamtalk_wire::requests;
use serde_json::{Map, Value, json};

use crate::host::{Host, HostError};
use crate::message::Fault;
use crate::session::{Call, Session};

pub(crate) fn unknown() -> Fault {
    Fault::params("params.requestState is unknown, used, or of another call; call again without it")
}

/// What was kept of the question that this call answers, if it answers one. It can be taken once.
pub(crate) async fn take<H: Host>(session: &Session<H>, call: &Call) -> Result<Option<String>, Fault> {
    let state = match call.params.get("requestState") {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::String(state)) if call.era.is_modern() => state.clone(),
        Some(_) => return Err(Fault::params("params.requestState is not one of this server")),
    };
    let taken = session.host.ask(&requests::QuestionTake { state }).await;
    Ok(Some(taken.map_err(|_| unknown())?.answer.text))
}

/// The result that asks the client; what its answer is for is kept.
pub(crate) async fn ask<H: Host>(
    session: &Session<H>,
    kept: String,
    asked: Map<String, Value>,
) -> Result<Value, HostError> {
    let kept = session.host.ask(&requests::QuestionKeep { text: kept }).await?;
    Ok(json!({
        "resultType": "input_required",
        "inputRequests": asked,
        "requestState": kept.answer.state,
    }))
}
