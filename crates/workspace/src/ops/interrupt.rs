//! Stopping what runs in a session.

use std::rc::Rc;
use std::time::{Duration, Instant};

use beamtalk_wire::answers::ValueAnswer;
use beamtalk_wire::requests::Interrupt;
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::Caller;
use super::eval::number;
use crate::sessions::Session;
use crate::terms;
use crate::workspace::Workspace;

/// How long an interrupted session may take to say so.
const TIME: Duration = Duration::from_secs(2);
/// How long to wait before asking again.
const AGAIN: Duration = Duration::from_millis(5);

pub(super) async fn interrupt(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    session: &Rc<Session>,
    request: &Interrupt,
) -> Result<ValueAnswer, ErrorBody> {
    let nothing = ValueAnswer { value: false };
    if let Some(wanted) = &request.r#for
        && let Some(held) = workspace.approvals.give_up(&(caller.connection, wanted.clone()))
    {
        // Its answer is dropped, which ends whoever waits for it.
        workspace.approvals.withdraw(&held);
        super::approvals::tell(workspace);
        return Ok(ValueAnswer { value: true });
    }
    let session = match &request.r#for {
        None => session.clone(),
        Some(wanted) => {
            let runs = |session: &Rc<Session>| {
                let running = session.running.borrow();
                running.as_ref().is_some_and(|(id, _)| id == wanted)
            };
            // Clients number their requests alike: those of one's own connection come first.
            let (own, others): (Vec<_>, Vec<_>) = workspace
                .sessions
                .all()
                .into_iter()
                .partition(|session| session.runs_for.get() == caller.connection);
            let mut sessions = [session.clone()].into_iter().chain(own).chain(others);
            match sessions.find(runs) {
                Some(session) => session,
                // It may be on its way there.
                None => {
                    let value = workspace.stops.stop(caller.connection, wanted);
                    return Ok(ValueAnswer { value });
                }
            }
        }
    };
    let current = || session.running.borrow().as_ref().map(|(_, number)| *number);
    let deadline = Instant::now() + TIME;
    // What is still being compiled is meant too: it runs in a moment.
    while current().is_none() && session.is_busy() && Instant::now() < deadline {
        tokio::time::sleep(AGAIN).await;
    }
    let Some(running) = current() else {
        return Ok(nothing);
    };
    loop {
        let arguments = terms::map([("for", number(running))]);
        let answer = workspace
            .image
            .call_within(TIME, &session.id, "interrupt", arguments)
            .await;
        match answer {
            Err(error) if error.kind == ErrorKind::Timeout => {
                workspace.image.replace_session(&session.id);
                return Ok(ValueAnswer { value: true });
            }
            answer => {
                let answer: ValueAnswer = terms::typed(answer?)?;
                // This may have overtaken the evaluation on its way to the session.
                if answer.value || current() != Some(running) || Instant::now() > deadline {
                    return Ok(answer);
                }
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}
