//! `approval-ask`, `approvals`, `approval-answer`: calls that wait for a person.

use std::rc::Rc;
use std::time::Duration;

use beamtalk_wire::answers::{ApprovalAskAnswer, ApprovalsAnswer, Nothing};
use beamtalk_wire::requests::{ApprovalAnswer, ApprovalAsk, Approvals};
use beamtalk_wire::{ClientKind, ErrorBody, ErrorKind, Event, Op, Role, WorkspaceEvent};

use super::Caller;
use crate::approvals::{Held, Said};
use crate::handles::principal;
use crate::workspace::Workspace;

/// The longest part of a request that is shown.
const TEXT_BYTES: usize = 512 * 1024;

/// Tell everybody who may answer how many wait.
pub(super) fn tell(workspace: &Workspace) {
    let count = workspace.approvals.list(None).len() as u64;
    let event = Event::Workspace(WorkspaceEvent::ApprovalsWaiting { count });
    workspace.publish_to_owners(&event);
    workspace.publish_approvals();
}

pub(super) async fn ask(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    id: &str,
    request: &ApprovalAsk,
) -> Result<ApprovalAskAnswer, ErrorBody> {
    if request.text.len() > TEXT_BYTES {
        return Err(Op::ApprovalAsk.invalid("text", &format!("a text of at most {TEXT_BYTES} bytes")));
    }
    if let Some(rule) = workspace.approvals.rule_for(request) {
        return Ok(ApprovalAskAnswer {
            approval: rule,
            answer: "approve".to_owned(),
            text: None,
        });
    }
    let asked = (caller.connection, id.to_owned());
    let (id, seconds, said) = workspace
        .approvals
        .ask(&principal(&caller.session), asked, request)?;
    let waiting = Rc::downgrade(workspace);
    let _held = Held {
        approvals: workspace.approvals.clone(),
        id: id.clone(),
        tell: Box::new(move || {
            if let Some(workspace) = waiting.upgrade() {
                tell(&workspace);
            }
        }),
    };
    tell(workspace);
    let said = tokio::time::timeout(Duration::from_secs(seconds), said).await;
    let (answer, text) = match said {
        Ok(Ok(said)) => (said.answer, said.text),
        Ok(Err(_)) | Err(_) => ("no answer".to_owned(), None),
    };
    Ok(ApprovalAskAnswer {
        approval: id,
        answer,
        text,
    })
}

/// Who may answer sees all; a client of an AI sees its own.
pub(super) fn list(workspace: &Workspace, caller: &Caller, request: &Approvals) -> ApprovalsAnswer {
    let may_answer = may_answer(caller);
    let own = principal(&caller.session);
    let is_asked_for_rules = request.rules == Some(true);
    ApprovalsAnswer {
        approvals: match (caller.role, may_answer) {
            (Role::Observer, _) => Vec::new(),
            (Role::Owner, true) => workspace.approvals.list(None),
            (Role::Owner, false) => workspace.approvals.list(Some(&own)),
        },
        rules: if is_asked_for_rules && may_answer {
            workspace.approvals.rules()
        } else {
            Vec::new()
        },
    }
}

/// A person at a terminal or page: neither an AI client nor code of the image.
fn may_answer(caller: &Caller) -> bool {
    caller.role == Role::Owner
        && caller.connection.is_some()
        && !matches!(caller.session.client, ClientKind::Mcp | ClientKind::Agent)
}

pub(super) fn answer(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &ApprovalAnswer,
) -> Result<Nothing, ErrorBody> {
    if !may_answer(caller) {
        return Err(ErrorBody::new(
            ErrorKind::Forbidden,
            "only a person can answer this",
        ));
    }
    if request.answer == "forget" {
        workspace
            .approvals
            .forget_rule(&workspace.directory, &request.r#for)?;
        return Ok(Nothing {});
    }
    let is_always = request.answer == "always";
    let answer = match request.answer.as_str() {
        "approve" | "always" => "approve",
        word @ ("reject" | "text") => word,
        _ => {
            return Err(Op::ApprovalAnswer.invalid("answer", "approve, always, reject, text or forget"));
        }
    };
    let waiting = workspace.approvals.list(None);
    let approval = waiting.iter().find(|approval| approval.id == request.r#for);
    if is_always {
        match approval {
            Some(approval) if !approval.may_be_rule => {
                return Err(ErrorBody::new(
                    ErrorKind::InvalidParameter,
                    "this kind of call is approved one at a time",
                ));
            }
            _ => {}
        }
    }
    let said = Said {
        answer: answer.to_owned(),
        text: request.text.clone(),
    };
    let by = format!("{} {}", principal(&caller.session), caller.session.client.name());
    let answered = workspace
        .approvals
        .answer(&request.r#for, said, request.sha256.as_deref(), &by)?;
    if is_always {
        workspace.approvals.always(&workspace.directory, &answered)?;
    }
    tell(workspace);
    Ok(Nothing {})
}
