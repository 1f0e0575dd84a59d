//! Findings of the compiler about a text that is not installed.

use std::rc::Rc;

use beamtalk_wire::answers::DiagnosticsAnswer;
use beamtalk_wire::requests::Diagnostics;
use beamtalk_wire::{ErrorBody, Side};

use super::Caller;
use super::save_method::shape;
use crate::compile::job::{Job, MethodOwner};
use crate::workspace::Workspace;

pub(super) async fn diagnostics(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Diagnostics,
) -> Result<DiagnosticsAnswer, ErrorBody> {
    let of = match &request.class {
        Some(class) => Some(MethodOwner {
            class: class.clone(),
            is_class_side: request.side == Some(Side::Class),
            shape: shape(workspace, class).await?,
        }),
        None => None,
    };
    let job = Job::Check {
        code: request.code.clone(),
        bound: workspace.names(&caller.session),
        mode: request.mode.unwrap_or_default(),
        of,
    };
    let diagnostics = workspace.compiler.run(job).await?.outcome.diagnostics;
    Ok(DiagnosticsAnswer { diagnostics })
}
