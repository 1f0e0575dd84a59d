//! What may stand at the cursor.

use std::rc::Rc;

use beamtalk_wire::answers::{BindingsAnswer, CompleteAnswer};
use beamtalk_wire::requests::{Bindings, Complete};
use beamtalk_wire::{ErrorBody, Op};

use super::Caller;
use crate::compile::job::{Job, Variable};
use crate::sessions::Session;
use crate::workspace::Workspace;

pub(super) async fn complete(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    session: &Session,
    request: &Complete,
) -> Result<CompleteAnswer, ErrorBody> {
    let job = Job::Complete {
        code: request.code.clone(),
        cursor: place(Op::Complete, &request.code, request.cursor)?,
        bound: variables(workspace, session).await,
    };
    let found = workspace.compiler.run(job).await?.outcome.completion;
    let mut answer = found.answer;
    // Names of Erlang are known to the node only.
    if let Some(wanted) = found.erlang {
        let names = workspace.image.ask(&caller.session.id, &wanted).await?;
        answer.completions = names.completions;
    }
    Ok(answer)
}

/// The place of a cursor in a text; its end if there is none.
pub(super) fn place(op: Op, code: &str, cursor: Option<u64>) -> Result<usize, ErrorBody> {
    let cursor = cursor.map_or(code.len(), |cursor| usize::try_from(cursor).unwrap_or(usize::MAX));
    if !code.is_char_boundary(cursor) {
        return Err(op.invalid("cursor", "the byte offset of a character in 'code'"));
    }
    Ok(cursor)
}

/// The session's variables with their classes; without a node just their names.
pub(super) async fn variables(workspace: &Rc<Workspace>, session: &Session) -> Vec<Variable> {
    let answer = workspace.image.ask(&session.id, &Bindings::default()).await;
    let BindingsAnswer { mut bindings } = answer.unwrap_or_default();
    let names = workspace.names(session).into_iter();
    names
        .map(|name| Variable {
            class: bindings.remove(&name).and_then(|bound| bound.class),
            name,
        })
        .collect()
}
