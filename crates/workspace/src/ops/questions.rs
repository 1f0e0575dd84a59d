//! `question-keep`, `question-take`: what a person is asked, until the answer comes.

use beamtalk_wire::answers::{QuestionKeepAnswer, QuestionTakeAnswer};
use beamtalk_wire::requests::{QuestionKeep, QuestionTake};
use beamtalk_wire::{ErrorBody, ErrorKind, Op, limits};

use super::Caller;
use crate::handles::principal;
use crate::workspace::Workspace;

pub(super) fn keep(
    workspace: &Workspace,
    caller: &Caller,
    request: &QuestionKeep,
) -> Result<QuestionKeepAnswer, ErrorBody> {
    if request.text.len() > limits::QUESTION_BYTES {
        let wanted = format!("at most {} bytes", limits::QUESTION_BYTES);
        return Err(Op::QuestionKeep.invalid("text", &wanted));
    }
    let principal = principal(&caller.session);
    let state = workspace.questions.keep(principal, request.text.clone())?;
    Ok(QuestionKeepAnswer { state })
}

pub(super) fn take(
    workspace: &Workspace,
    caller: &Caller,
    request: &QuestionTake,
) -> Result<QuestionTakeAnswer, ErrorBody> {
    let principal = principal(&caller.session);
    match workspace.questions.take(&principal, &request.state) {
        Some(text) => Ok(QuestionTakeAnswer { text }),
        None => Err(ErrorBody::new(ErrorKind::NotFound, "no such question waits")
            .hint("it was answered already, or ten minutes are over; call the tool again")),
    }
}
