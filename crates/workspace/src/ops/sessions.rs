//! Sessions: their variables, copies, end.

use std::rc::Rc;

use beamtalk_etf::Term;
use beamtalk_wire::{ErrorBody, Request};
use serde_json::json;

use super::{Answer, Caller, session_of};
use crate::sessions::Newcomer;
use crate::terms;
use crate::workspace::Workspace;

pub(super) async fn bindings(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let session = session_of(workspace, caller, request)?;
    workspace.enter_node(&session).await?;
    let answer = workspace
        .image
        .call(&session.id, "bindings", terms::from_object(&request.fields))
        .await?;
    Ok(answer.into())
}

pub(super) async fn clear(workspace: &Rc<Workspace>, caller: &Caller) -> Result<Answer, ErrorBody> {
    workspace.enter_node(&caller.session).await?;
    workspace
        .image
        .call(&caller.session.id, "clear", Term::Map(Vec::new()))
        .await?;
    caller.session.set_names(Vec::new());
    Ok(Answer::default())
}

/// A new session with a copy of the variables; it lives for the grace time unless somebody resumes it.
pub(super) async fn clone(workspace: &Rc<Workspace>, caller: &Caller) -> Result<Answer, ErrorBody> {
    let session = &caller.session;
    workspace.enter_node(session).await?;
    let connection = u64::MAX;
    let copy = workspace.sessions.add(Newcomer {
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
    Ok(json!({"session": copy.id}).into())
}

/// End the session now; its connection is closed after the answer.
pub(super) async fn close(workspace: &Rc<Workspace>, caller: &Caller) -> Result<Answer, ErrorBody> {
    workspace.end_session(&caller.session).await;
    Ok(Answer::default())
}
