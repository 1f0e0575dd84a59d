//! A new session with a copy of the variables; it lives for the grace time unless somebody resumes it.

use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_wire::ErrorBody;
use beamtalk_wire::answers::CloneAnswer;

use super::Caller;
use crate::sessions::Newcomer;
use crate::terms;
use crate::workspace::Workspace;

pub(super) async fn clone(workspace: &Rc<Workspace>, caller: &Caller) -> Result<CloneAnswer, ErrorBody> {
    let session = &caller.session;
    workspace.enter_node(session).await?;
    let connection = u64::MAX;
    let copy = workspace.sessions.add(Newcomer {
        keeps: caller.session.kept.is_some(),
        taken: Vec::new(),
        client: session.client,
        role: session.role,
        auth: session.auth.borrow().clone(),
        peer: session.peer.borrow().clone(),
        connection,
    })?;
    copy.leave(connection);
    let arguments = terms::map([
        ("session", Term::binary(&copy.id)),
        ("kind", Term::binary(session.client.name())),
    ]);
    workspace.image.call(&session.id, "clone", arguments).await?;
    copy.node_start.set(workspace.image.start_number());
    copy.set_names(session.names());
    Ok(CloneAnswer {
        session: copy.id.clone(),
    })
}
