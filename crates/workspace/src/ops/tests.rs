//! Tests run in the node; what came of them is kept and told.

use std::rc::Rc;

use beamtalk_wire::answers::TestAnswer;
use beamtalk_wire::{ErrorBody, Event, Flag, Request, TestsEvent};

use super::{Caller, Reply, examples, pass, terms};
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
        Request::Test(test) => (
            test.class.clone().or_else(|| test.document.clone()),
            test.method.clone(),
        ),
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
    let answer = match request {
        Request::Test(test) if test.document.is_some() => TestAnswer {
            results: Box::pin(examples::run(workspace, caller, test)).await?,
        },
        _ => in_image(workspace, session, request).await?,
    };
    let told = &answer.results;
    for test in &told.tests {
        let test = Box::new(workspace.tests.borrow_mut().keep(test.clone()));
        workspace.publish(&Event::Tests(TestsEvent::Result { test }));
    }
    workspace.publish(&Event::Tests(TestsEvent::Finished {
        total: told.total,
        passed: told.passed,
        failed: told.failed,
        skipped: told.skipped,
        session: author.clone(),
    }));
    let is_failed = told.failed > 0;
    let mut reply = Reply::new(answer);
    reply.flags.extend(is_failed.then_some(Flag::TestError));
    Ok(reply)
}

/// Classes of tests, run by the node.
async fn in_image(
    workspace: &Rc<Workspace>,
    session: &Session,
    request: &Request,
) -> Result<TestAnswer, ErrorBody> {
    let mut answer = pass(workspace, session, request).await?;
    answer.0.remove("failed");
    terms::typed(answer.0)
}
