//! One name forgotten.

use std::rc::Rc;

use beamtalk_wire::answers::Nothing;
use beamtalk_wire::requests::Unbind;
use beamtalk_wire::{ErrorBody, Request};

use super::{Caller, terms};
use crate::workspace::Workspace;

pub(super) async fn unbind(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Unbind,
) -> Result<Nothing, ErrorBody> {
    workspace.enter_node(&caller.session).await?;
    let arguments = terms::of(&Request::from(request.clone()))?;
    let mut fields = workspace
        .image
        .call(&caller.session.id, "unbind", arguments)
        .await?;
    super::eval::learn_names(&caller.session, &mut fields);
    Ok(Nothing {})
}
