//! Handles: `handle-open`, `handle-close`, `handle-list`, and working in the variables of one.

use std::rc::Rc;
use std::time::Duration;

use beamtalk_wire::answers::{HandleListAnswer, HandleOpenAnswer, ValueAnswer};
use beamtalk_wire::requests::HandleClose;
use beamtalk_wire::{ErrorBody, ErrorKind, Request};
use tokio::time::timeout;

use super::Caller;
use super::deadline::Deadline;
use crate::handles::principal;
use crate::sessions::{ConnectionId, Newcomer, Session};
use crate::workspace::Workspace;

/// For variables that are forgotten after one evaluation.
const ONCE: &str = "once";

/// How long a handle waits for a node that is on its way.
const PATIENCE: Duration = Duration::from_secs(10);

/// A session that no connection has, and that none can resume.
async fn session(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    deadline: &Deadline,
) -> Result<Rc<Session>, ErrorBody> {
    let own = &caller.session;
    deadline
        .keep(workspace.image.up(), "the node was on its way")
        .await?;
    let session = workspace.sessions.add(Newcomer {
        client: own.client,
        role: own.role,
        auth: own.auth.borrow().clone(),
        peer: own.peer.borrow().clone(),
        connection: ConnectionId::MAX,
        keeps: false,
        taken: Vec::new(),
    })?;
    session.has_no_input.set(true);
    session.ends_with_node.set(true);
    if let Err(error) = workspace.enter_node(&session).await {
        workspace.sessions.remove(&session.id);
        return Err(error);
    }
    Ok(session)
}

pub(super) async fn open(workspace: &Rc<Workspace>, caller: &Caller) -> Result<HandleOpenAnswer, ErrorBody> {
    if let Some(session) = workspace.handles.make_room(&principal(&caller.session))? {
        workspace.end_session(&session).await;
    }
    if timeout(PATIENCE, workspace.image.up()).await.is_err() {
        return Err(workspace.image.down());
    }
    let session = session(workspace, caller, &Deadline::after(PATIENCE)).await?;
    let handle = workspace.handles.keep(&caller.session, session, false)?;
    Ok(HandleOpenAnswer { handle })
}

pub(super) async fn close(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &HandleClose,
) -> Result<ValueAnswer, ErrorBody> {
    find(workspace, caller, &request.handle)?;
    let ended = workspace.handles.end(&request.handle, "closed");
    if let Some(session) = &ended {
        workspace.end_session(session).await;
    }
    Ok(ValueAnswer {
        value: ended.is_some(),
    })
}

pub(super) fn list(workspace: &Workspace, caller: &Caller) -> HandleListAnswer {
    HandleListAnswer {
        handles: workspace.handles.describe(&principal(&caller.session)),
    }
}

fn find(workspace: &Workspace, caller: &Caller, handle: &str) -> Result<Rc<Session>, ErrorBody> {
    let found = workspace
        .handles
        .find(&caller.session, handle, workspace.image.start_number())?;
    // The trail names the connection that acts, not the one that opened it.
    caller
        .session
        .peer
        .borrow()
        .clone_into(&mut found.peer.borrow_mut());
    Ok(found)
}

/// Who asks and whose variables are meant, when a request names a handle.
pub(super) async fn enter(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
    handle: &str,
    deadline: &Deadline,
) -> Result<(Caller, Rc<Session>), ErrorBody> {
    let session = match (request, handle) {
        (Request::Eval(_), ONCE) => {
            let session = session(workspace, caller, deadline).await?;
            workspace.handles.keep(&caller.session, session.clone(), true)?;
            session
        }
        _ => find(workspace, caller, handle)?,
    };
    let caller = Caller {
        session: session.clone(),
        ..caller.clone()
    };
    Ok((caller, session))
}

/// A handle that ended while the request was on its way is unknown to the node, but not to us: say why it is gone.
pub(super) fn explain(workspace: &Workspace, caller: &Caller, handle: &str, error: &mut ErrorBody) {
    if error.kind == ErrorKind::SessionNotFound
        && handle != ONCE
        && let Err(ended) = find(workspace, caller, handle)
    {
        *error = ended;
    }
}

/// Variables for one evaluation go with it.
pub(super) async fn leave(workspace: &Rc<Workspace>, request: &Request, session: &Session) {
    if !matches!(request, Request::Eval(eval) if eval.handle.as_deref() == Some(ONCE)) {
        return;
    }
    if let Some(name) = workspace.handles.passing(session) {
        workspace.handles.end(&name, "closed");
        workspace.end_session(session).await;
    }
}
