//! Input for an evaluation that waits for it.

use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_wire::answers::Nothing;
use beamtalk_wire::requests::Stdin;
use beamtalk_wire::{ErrorBody, ErrorKind, Op};

use super::Caller;
use crate::terms;
use crate::workspace::Workspace;

pub(super) async fn stdin(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Stdin,
) -> Result<Nothing, ErrorBody> {
    let is_running = caller
        .session
        .running
        .borrow()
        .as_ref()
        .is_some_and(|(id, _)| *id == request.r#for);
    if !is_running {
        return Err(ErrorBody::new(
            ErrorKind::NoInputPending,
            format!("request '{}' does not wait for input", request.r#for),
        ));
    }
    let arguments = match (request.eof, &request.value) {
        (Some(true), _) => terms::map([("eof", Term::atom("true"))]),
        (_, Some(value)) => terms::map([("value", Term::binary(value))]),
        (_, None) => return Err(Op::Stdin.missing("value")),
    };
    workspace
        .image
        .call(&caller.session.id, "stdin", arguments)
        .await?;
    Ok(Nothing {})
}
