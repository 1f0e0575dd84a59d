//! The variables of one's own session forgotten.

use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_wire::ErrorBody;
use beamtalk_wire::answers::Nothing;

use super::Caller;
use crate::workspace::Workspace;

pub(super) async fn clear(workspace: &Rc<Workspace>, caller: &Caller) -> Result<Nothing, ErrorBody> {
    workspace.enter_node(&caller.session).await?;
    workspace
        .image
        .call(&caller.session.id, "clear", Term::Map(Vec::new()))
        .await?;
    caller.session.set_names(Vec::new());
    Ok(Nothing {})
}
