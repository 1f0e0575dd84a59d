//! A method taken out of the image.

use std::rc::Rc;

use beamtalk_wire::answers::EntryAnswer;
use beamtalk_wire::requests::RemoveMethod;
use beamtalk_wire::{ErrorBody, LoggedEntry, Side};

use super::changes::drop_method;
use super::entries::record;
use super::eval::refuse_errors;
use super::load::{class_info, install};
use super::{Caller, check};
use crate::changes::{Intent, Kind};
use crate::compile::job::Job;
use crate::workspace::Workspace;

pub(super) async fn remove_method(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &RemoveMethod,
) -> Result<EntryAnswer, ErrorBody> {
    let class = &request.class;
    let selector = request.selector.trim_start_matches('#');
    let is_class_side = request.side == Some(Side::Class);
    class_info(workspace, class).await?;
    drop_method(workspace, class, selector, is_class_side).await?;
    let entry = removed_method(workspace, caller, class, selector, is_class_side).await?;
    Ok(EntryAnswer { entry })
}

/// The image has dropped a method: compile its class without it, and log that.
async fn removed_method(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    class: &str,
    selector: &str,
    is_class_side: bool,
) -> Result<Option<LoggedEntry>, ErrorBody> {
    let job = Job::RemoveMethod {
        class: class.to_owned(),
        is_class_side,
        selector: selector.to_owned(),
    };
    let compiled = workspace.compiler.run(job).await?;
    refuse_errors(&compiled)?;
    if compiled.outcome.modules.is_empty() {
        let declares = compiled.outcome.declares.clone();
        workspace.compiler.known.borrow_mut().declare(declares);
    } else {
        install(workspace, &compiled).await?;
    }
    let Some(definition) = compiled.outcome.definitions.first() else {
        return Ok(None);
    };
    let entry = record(
        workspace,
        caller,
        Kind::RemoveMethod,
        definition,
        Intent::Durable,
        None,
    )?;
    check::soon(workspace, compiled.outcome.definitions.clone());
    Ok(Some(entry))
}
