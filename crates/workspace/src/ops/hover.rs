//! What is at the cursor.

use std::rc::Rc;

use beamtalk_wire::answers::HoverAnswer;
use beamtalk_wire::requests::Hover;
use beamtalk_wire::{ErrorBody, Op};

use super::complete::{place, variables};
use crate::compile::job::Job;
use crate::sessions::Session;
use crate::workspace::Workspace;

pub(super) async fn hover(
    workspace: &Rc<Workspace>,
    session: &Session,
    request: &Hover,
) -> Result<HoverAnswer, ErrorBody> {
    let job = Job::Hover {
        code: request.code.clone(),
        cursor: place(Op::Hover, &request.code, request.cursor)?,
        bound: variables(workspace, session).await,
    };
    Ok(workspace.compiler.run(job).await?.outcome.hover)
}
