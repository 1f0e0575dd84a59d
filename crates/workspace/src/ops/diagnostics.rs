//! Findings of the compiler about a text that is not installed.

use std::rc::Rc;

use beamtalk_wire::ErrorBody;
use beamtalk_wire::answers::DiagnosticsAnswer;
use beamtalk_wire::requests::Diagnostics;

use super::Caller;
use crate::compile::job::Job;
use crate::workspace::Workspace;

pub(super) async fn diagnostics(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Diagnostics,
) -> Result<DiagnosticsAnswer, ErrorBody> {
    let job = Job::Check {
        code: request.code.clone(),
        bound: workspace.names(&caller.session),
        mode: request.mode.unwrap_or_default(),
    };
    let diagnostics = workspace.compiler.run(job).await?.outcome.diagnostics;
    Ok(DiagnosticsAnswer { diagnostics })
}
