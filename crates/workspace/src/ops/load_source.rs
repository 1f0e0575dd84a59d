//! The classes of a text defined.

use std::rc::Rc;

use beamtalk_wire::answers::SourceAnswer;
use beamtalk_wire::requests::LoadSource;
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::Caller;
use super::entries::defined;
use super::eval::refuse_errors;
use super::load::install;
use crate::compile::job::Job;
use crate::workspace::Workspace;

pub(super) async fn load_source(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &LoadSource,
) -> Result<SourceAnswer, ErrorBody> {
    let job = Job::Input {
        code: request.source.clone(),
        bound: workspace.names(&caller.session),
        file: request.name.clone(),
        trace: false,
    };
    let compiled = workspace.compiler.run(job).await?;
    refuse_errors(&compiled)?;
    if compiled.outcome.expression.is_some() {
        return Err(ErrorBody::new(
            ErrorKind::InvalidParameter,
            "'source' has statements outside of classes",
        )
        .hint("use 'eval' to run statements"));
    }
    let loaded = install(workspace, &compiled).await?;
    let mut answer = SourceAnswer {
        classes: loaded.classes,
        entries: None,
        affected_actors: loaded.affected_actors,
        migration_failures: loaded.migration_failures,
    };
    if let Some(defined) = defined(workspace, caller, &compiled)? {
        answer.entries = Some(defined.entries);
        answer.classes = defined.classes;
    }
    Ok(answer)
}
