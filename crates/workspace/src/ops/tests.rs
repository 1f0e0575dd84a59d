//! Tests run in the node; what came of them is kept and told.

use std::rc::Rc;

use beamtalk_wire::answers::TestAnswer;
use beamtalk_wire::{ErrorBody, Event, Flag, Request, TestsEvent};
use serde_json::Value;

use super::{Caller, Reply, pass, terms};
use crate::sessions::Session;
use crate::workspace::Workspace;

/// A run that is given up is over too.
struct Run<'a> {
    workspace: &'a Workspace,
    number: u64,
}

impl Drop for Run<'_> {
    fn drop(&mut self) {
        self.workspace.tests.borrow_mut().end(self.number);
    }
}

pub(super) async fn run(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    session: &Session,
    request: &Request,
) -> Result<Reply, ErrorBody> {
    let (class, method) = match request {
        Request::Test(test) => (test.class.clone(), test.method.clone()),
        _ => (None, None),
    };
    let author = &caller.session.id;
    let number = workspace.tests.borrow_mut().begin(author, class.as_deref());
    let _run = Run { workspace, number };
    workspace.publish(&Event::Tests(TestsEvent::Started {
        class,
        method,
        session: author.clone(),
    }));
    let mut answer = pass(workspace, session, request).await?;
    let is_failed = answer.0.remove("failed") == Some(Value::Bool(true));
    let told: TestAnswer = terms::typed(answer.0.clone())?;
    for test in told.results.tests {
        let test = Box::new(workspace.tests.borrow_mut().keep(test));
        workspace.publish(&Event::Tests(TestsEvent::Result { test }));
    }
    workspace.publish(&Event::Tests(TestsEvent::Finished {
        total: told.results.total,
        passed: told.results.passed,
        failed: told.results.failed,
        skipped: told.results.skipped,
        session: author.clone(),
    }));
    let mut reply = Reply::new(answer);
    reply.flags.extend(is_failed.then_some(Flag::TestError));
    Ok(reply)
}
