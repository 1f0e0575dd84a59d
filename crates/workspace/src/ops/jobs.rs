//! `job-start`, `job-get`, `job-cancel`: work that goes on without its client.

use std::rc::Rc;
use std::time::Duration;

use beamtalk_wire::answers::{JobAnswer, Nothing};
use beamtalk_wire::requests::{JobCancel, JobGet, JobStart};
use beamtalk_wire::{ErrorBody, ErrorKind};

use super::Caller;
use crate::gate::{AuthKind, Principal};
use crate::handles::principal;
use crate::workspace::Workspace;

/// The longest that is waited for an end.
const WAIT: Duration = Duration::from_secs(30);

/// Who works for a caller.
fn of(caller: &Caller) -> Principal {
    let auth = caller.session.auth.borrow();
    Principal {
        role: caller.role,
        auth: match auth.split_once(':') {
            Some(("token", name)) => AuthKind::Token(name.to_owned()),
            Some(("session", id)) => AuthKind::Agent(id.to_owned()),
            _ => AuthKind::Cookie,
        },
        policy: None,
    }
}

pub(super) fn start(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &JobStart,
) -> Result<JobAnswer, ErrorBody> {
    let Some(service) = workspace.mcp.borrow().clone() else {
        return Err(ErrorBody::new(
            ErrorKind::InternalError,
            "there is nobody to do the work",
        ));
    };
    let job = workspace.jobs.add(principal(&caller.session))?;
    let work = service.work(
        of(caller),
        request.order.clone(),
        job.name.clone(),
        job.progress.clone(),
    );
    let worked = job.clone();
    let task = tokio::task::spawn_local(async move { worked.end(work.await) });
    job.is_done_by(task.abort_handle());
    Ok(job.answer())
}

pub(super) async fn get(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &JobGet,
) -> Result<JobAnswer, ErrorBody> {
    let job = workspace.jobs.find(&principal(&caller.session), &request.job)?;
    if let Some(wait) = request.wait_ms {
        job.wait(Duration::from_millis(wait).min(WAIT)).await;
    }
    Ok(job.answer())
}

pub(super) fn cancel(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &JobCancel,
) -> Result<Nothing, ErrorBody> {
    workspace
        .jobs
        .find(&principal(&caller.session), &request.job)?
        .cancel();
    Ok(Nothing {})
}
