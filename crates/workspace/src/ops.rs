//! The operations of the protocol: who may, what is done, what is recorded, what is answered.
//!
//! Clients and code in the image reach the same handlers; what the node alone can answer is passed on to it.

mod approvals;
mod audit_summary;
mod audit_trail;
mod autoflush;
mod browse_class;
mod changes;
mod check;
mod clear;
mod clone;
mod complete;
mod deadline;
mod describe;
mod desk;
mod diagnostics;
mod doc_cells;
mod docs;
mod documents;
mod entries;
mod eval;
mod examples;
mod format;
mod handles;
mod health;
mod hover;
mod interrupt;
mod jobs;
mod load;
mod load_file;
mod load_project;
mod load_source;
mod load_tests;
mod log;
mod native;
mod precheck_method;
mod put;
mod questions;
mod recheck_image;
mod reload;
mod remove_class;
mod remove_method;
mod replay;
mod reply;
mod restore;
mod run_entry;
mod save_class;
mod save_method;
mod self_target;
mod show_codegen;
mod stdin;
mod subscribe;
mod tests;
mod transcript;
mod unbind;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use beamtalk_wire::answers::{Nothing, SessionsAnswer, ValueAnswer, Warning};
use beamtalk_wire::requests::Scope;
use beamtalk_wire::{Access, Call, ErrorBody, ErrorKind, Head, Op, Request, Role};

pub(crate) use autoflush::autoflush;
pub(crate) use deadline::Deadline;
pub(crate) use health::health;
pub use load::sources_below;
pub(crate) use load_project::{load_image, load_project};
pub(crate) use precheck_method::compile_evaluation;
pub(crate) use reply::{Reply, text_of};
pub(crate) use restore::{after_node_exit, reinstall, tell_waiting, waiting};

use crate::audit::Event;
use crate::changes::Intent;
use crate::gate::Outgoing;
use crate::hosted_loop::files;
use crate::image::Phase;
use crate::sessions::{ConnectionId, Session};
use crate::stops::interrupted;
use crate::terms;
use crate::workspace::Workspace;
use reply::Passed;

/// On whose behalf something is done.
#[derive(Clone)]
pub(crate) struct Caller {
    pub session: Rc<Session>,
    pub role: Role,
    /// `None` when code in the image asks.
    pub connection: Option<ConnectionId>,
}

/// Where output of an operation goes while it runs.
#[derive(Clone)]
pub(crate) enum Sink {
    Client {
        outgoing: Outgoing,
        id: String,
        session: String,
    },
    /// A session that keeps its frames: they go to whichever connection it has.
    Kept {
        session: Rc<Session>,
        id: String,
    },
    Nowhere,
    /// A text that is read when all of it is there.
    Text(Rc<RefCell<String>>),
}

impl Sink {
    /// Waits while the client's queue is full. What nobody wants to read is dropped.
    pub(crate) async fn output(&self, text: &str) {
        if let Self::Text(all) = self {
            all.borrow_mut().push_str(text);
        }
        self.send(|id, session| Head::output(id, session, text)).await;
    }

    pub(crate) async fn needs_input(&self, prompt: &str) {
        self.send(|id, session| Head::needs_input(id, session, prompt))
            .await;
    }

    async fn send(&self, message: impl FnOnce(&str, &str) -> Head) {
        match self {
            Self::Client {
                outgoing,
                id,
                session,
            } => {
                let _ = outgoing.send(text_of(&message(id, session))).await;
            }
            Self::Kept { session, id } => {
                session
                    .deliver(id, &text_of(&message(id, &session.id)), false)
                    .await;
            }
            Self::Nowhere | Self::Text(_) => {}
        }
    }

    /// A frame as it is.
    pub(crate) async fn raw(&self, text: String) {
        if let Self::Client { outgoing, .. } = self {
            let _ = outgoing.send(text).await;
        }
    }
}

/// Perform an operation for a caller.
pub(crate) async fn perform(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    call: &Call,
    sink: &Sink,
) -> Result<Reply, ErrorBody> {
    if !caller.role.may(call.op.access()) || caller.role == Role::Observer && call.op.is_owners() {
        let refusal = Event::AuthFail {
            reason: "role".to_owned(),
            bytes: 0,
            count: 1,
        };
        workspace.record(caller, refusal, None);
        return Err(ErrorBody::new(
            ErrorKind::Forbidden,
            format!("an observer may not use '{}'", call.op.name()),
        ));
    }
    let session = session_of(workspace, caller, call)?;
    let request = call.request.as_ref().map_err(Clone::clone)?;
    let (caller, session) = &match request.handle() {
        None => (caller.clone(), session),
        Some(handle) => handles::enter(workspace, caller, request, handle, &Deadline::of(call)).await?,
    };
    let begin = workspace.begin(caller, request)?;
    let started = Instant::now();
    let mut reply = dispatch(workspace, caller, session, call, request, sink).await;
    if let (Some(handle), Err(error)) = (request.handle(), &mut reply) {
        handles::explain(workspace, caller, handle, error);
    }
    handles::leave(workspace, request, session).await;
    if call.op.access() != Access::Read {
        workspace.tell_changes();
    }
    let is_recorded = workspace.record_operation(caller, request, &reply, started, begin);
    // It was done: saying otherwise would be worse than a trail that tells only that it began.
    if let (Some(begin), false, Ok(reply)) = (begin, is_recorded, &mut reply) {
        reply.warnings.push(Warning::said(format!(
            "this was done, but its outcome could not be recorded; record {begin} says that it began"
        )));
    }
    reply
}

/// Whether an operation decides what becomes of pending changes. While the node is on its way they are neither in the
/// image nor given up, and what was decided then would be undone when they are installed again.
fn decides_about_changes(op: Op) -> bool {
    matches!(
        op,
        Op::LoadProject
            | Op::Reload
            | Op::Revert
            | Op::Take
            | Op::Settle
            | Op::Discard
            | Op::Restore
            | Op::Flush
            | Op::ClearChanges
    )
}

/// Whether an operation changes code, or says something that depends on all of it. While the node is on its way the image has
/// only some of its classes: to a client, those that are not there yet would be none at all.
fn needs_all_code(op: Op) -> bool {
    matches!(
        op,
        Op::LoadFile
            | Op::LoadSource
            | Op::LoadTests
            | Op::Unload
            | Op::SaveMethod
            | Op::TryMethod
            | Op::SaveClass
            | Op::RemoveMethod
            | Op::RemoveClass
            | Op::PrecheckMethod
            | Op::RecheckImage
            | Op::ChangeSides
            | Op::Complete
            | Op::Diagnostics
            | Op::Hover
            | Op::ShowCodegen
    )
}

/// Whether an operation runs code of the image and can be interrupted.
pub(crate) fn runs_code(op: Op) -> bool {
    matches!(op, Op::Eval | Op::RunEntry | Op::LoopRun | Op::Test | Op::TestAll)
}

/// Stop what nobody waits for any more.
pub(crate) async fn give_up(workspace: Rc<Workspace>, caller: Caller, id: String) {
    let stop = beamtalk_wire::requests::Interrupt {
        r#for: Some(id),
        handle: None,
    };
    let session = caller.session.clone();
    drop(interrupt::interrupt(&workspace, &caller, &session, &stop).await);
}

async fn dispatch(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    session: &Rc<Session>,
    call: &Call,
    request: &Request,
    sink: &Sink,
) -> Result<Reply, ErrorBody> {
    let is_client = caller.connection.is_some();
    if (decides_about_changes(call.op) || is_client && needs_all_code(call.op))
        && matches!(workspace.image.phase(), Phase::Starting | Phase::Down)
    {
        return Err(workspace.image.down());
    }
    let deadline = Deadline::of(call);
    // A question is ended with the future that works on it.
    let is_stoppable = !call.op.is_question();
    let stoppable = is_stoppable.then(|| workspace.stops.enter(caller.connection, &call.id));
    let stopped = async || match &stoppable {
        Some(stoppable) => stoppable.stopped().await,
        None => std::future::pending().await,
    };
    let reply = match request {
        Request::Eval(eval) => {
            let evaluated = eval::eval(workspace, caller, &call.id, eval, &deadline, sink).await?;
            evaluated.into()
        }
        Request::RunEntry(entry) => {
            let evaluated = run_entry::run_entry(workspace, caller, &call.id, entry, &deadline, sink).await?;
            evaluated.into()
        }
        Request::Stdin(stdin) => Reply::new(stdin::stdin(workspace, caller, stdin).await?),
        Request::Interrupt(stop) => Reply::new(interrupt::interrupt(workspace, caller, session, stop).await?),
        Request::Complete(at) => Reply::new(complete::complete(workspace, caller, session, at).await?),
        Request::Hover(at) => Reply::new(hover::hover(workspace, session, at).await?),
        Request::Docs(docs) => Reply::new(docs::docs(workspace, session, docs).await?),
        Request::Diagnostics(text) => Reply::new(diagnostics::diagnostics(workspace, caller, text).await?),
        Request::ShowCodegen(of) => Reply::new(show_codegen::show_codegen(workspace, caller, of).await?),
        Request::LoadFile(file) => Reply::new(load_file::load_file(workspace, file).await?),
        Request::LoadSource(source) => Reply::new(load_source::load_source(workspace, caller, source).await?),
        Request::LoadProject(project) => Reply::new(load_project::load(workspace, project).await?),
        Request::LoadTests(_) => Reply::new(load_tests::load_tests(workspace).await?),
        Request::Reload(reload) => Reply::new(reload::reload(workspace, reload).await?),
        Request::Unload(unload) => {
            let reply = in_node(workspace, session, request).await?;
            workspace.forget_class(&unload.class);
            reply
        }
        Request::Sessions(_) => Reply::new(SessionsAnswer {
            sessions: workspace.sessions.describe(),
        }),
        Request::Replay(replay) => Reply::new(replay::replay(caller, replay, sink).await?),
        Request::DeskRead(read) => Reply::new(desk::read(workspace, read)),
        Request::DeskWrite(write) => Reply::new(desk::write(workspace, write)?),
        Request::DocList(of) => Reply::new(documents::list(workspace, caller.role, of).await?),
        Request::DocRead(of) => Reply::new(documents::read(workspace, caller.role, of)?),
        Request::DocWrite(write) => Reply::new(documents::write(workspace, write).await?),
        Request::DocCells(text) => Reply::new(doc_cells::doc_cells(text)),
        Request::AuditTrail(page) => Reply::new(audit_trail::audit_trail(workspace, page).await?),
        Request::Autoflush(wanted) => Reply::new(autoflush::switch(workspace, wanted)),
        Request::Format(code) => Reply::new(format::format(code)?),
        Request::Transcript(of) => transcript::transcript(workspace, of),
        Request::Cancel(of) => Reply::new(ValueAnswer {
            value: workspace.stops.stop(caller.connection, &of.r#for),
        }),
        Request::Log(of) => Reply::new(log::log(workspace, of).await?),
        Request::LastResults(_) => Reply::new(workspace.tests.borrow().answer()),
        Request::Unbind(name) => Reply::new(unbind::unbind(workspace, caller, name).await?),
        Request::Clear(_) => Reply::new(clear::clear(workspace, caller).await?),
        Request::Clone(_) => Reply::new(clone::clone(workspace, caller).await?),
        Request::Close(_) => {
            // Its connection is closed after the answer.
            workspace.end_session(&caller.session).await;
            Reply::new(Nothing {})
        }
        Request::HandleOpen(_) => Reply::new(handles::open(workspace, caller).await?),
        Request::HandleClose(close) => Reply::new(handles::close(workspace, caller, close).await?),
        Request::HandleList(_) => Reply::new(handles::list(workspace, caller)),
        Request::QuestionKeep(keep) => Reply::new(questions::keep(workspace, caller, keep)?),
        Request::QuestionTake(take) => Reply::new(questions::take(workspace, caller, take)?),
        Request::JobStart(start) => Reply::new(jobs::start(workspace, caller, start)?),
        Request::JobGet(get) => Reply::new(jobs::get(workspace, caller, get).await?),
        Request::JobCancel(cancel) => Reply::new(jobs::cancel(workspace, caller, cancel)?),
        Request::ApprovalAsk(ask) => Reply::new(approvals::ask(workspace, caller, &call.id, ask).await?),
        Request::Approvals(of) => Reply::new(approvals::list(workspace, caller, of)),
        Request::ApprovalAnswer(said) => Reply::new(approvals::answer(workspace, caller, said)?),
        Request::LoopRun(run) => Reply::new(crate::hosted_loop::run(workspace, run).await?),
        Request::AuditSummary(_) => Reply::new(audit_summary::audit_summary(workspace, caller).await?),
        Request::TreeList(of) => Reply::new(files::list(workspace, of).await?),
        Request::TreeRead(of) => Reply::new(files::read(workspace, of).await?),
        Request::TreeFollow(of) => tokio::select! {
            ended = files::follow(workspace, of, sink) => Reply::new(ended?),
            () = stopped() => return Err(interrupted()),
        },
        Request::TreeWrite(to) => Reply::new(files::write(workspace, to).await?),
        // Its record is all there is to it.
        Request::McpCall(_) => Reply::new(Nothing {}),
        Request::SaveMethod(save) => {
            let base = save.base_sha256.as_deref();
            let saved = save_method::save_method(workspace, caller, save.into(), base, Intent::Durable);
            Reply::new(saved.await?)
        }
        Request::TryMethod(tried) => {
            let base = tried.base_sha256.as_deref();
            let saved = save_method::save_method(workspace, caller, tried.into(), base, Intent::Ephemeral);
            Reply::new(saved.await?)
        }
        Request::SaveClass(class) => Reply::new(save_class::save_class(workspace, caller, class).await?),
        Request::RemoveMethod(gone) => {
            Reply::new(remove_method::remove_method(workspace, caller, gone).await?)
        }
        Request::RemoveClass(gone) => Reply::new(remove_class::remove_class(workspace, caller, gone).await?),
        Request::PrecheckMethod(method) => {
            Reply::new(precheck_method::precheck_method(workspace, caller, method).await?)
        }
        Request::Changes(changes) => Reply::new(changes::changes(workspace, changes).await?),
        Request::Dirty(_) => Reply::new(changes::dirty(workspace)?),
        Request::Diff(diff) => Reply::new(changes::diff(workspace, diff)?),
        Request::Revert(revert) => Reply::new(changes::revert(workspace, revert).await?),
        Request::Take(take) => Reply::new(changes::take(workspace, take).await?),
        Request::Settle(settle) => Reply::new(changes::settle(workspace, settle).await?),
        Request::Discard(discard) => Reply::new(changes::discard(workspace, discard).await?),
        Request::Restore(restore) => Reply::new(restore::restore(workspace, restore).await?),
        Request::ChangeSides(of) => Reply::new(changes::change_sides(workspace, of)?),
        Request::ClearChanges(_) => Reply::new(changes::clear(workspace)?),
        Request::Flush(flush) => Reply::new(changes::flush(workspace, caller, flush).await?),
        Request::RecheckImage(_) => Reply::new(recheck_image::recheck_image(workspace).await?),
        Request::ReloadFindings(_) => Reply::new(recheck_image::reload_findings(workspace)),
        Request::Subscribe(to) => Reply::new(subscribe::subscribe(workspace, caller, to).await?),
        Request::Unsubscribe(from) => Reply::new(subscribe::unsubscribe(workspace, caller, from)?),
        Request::Describe(_) => Reply::new(describe::describe(workspace)),
        Request::Health(wanted) => Reply::new(health(workspace, wanted.brief == Some(true)).await),
        Request::Shutdown(shutdown) => {
            workspace.stop(shutdown.force == Some(true), "shutdown");
            Reply::new(Nothing {})
        }
        Request::SupervisionTree(tree) => {
            if caller.role == Role::Observer && tree.scope == Some(Scope::System) {
                return Err(ErrorBody::new(
                    ErrorKind::Forbidden,
                    "observers do not see the system's own processes",
                ));
            }
            in_node(workspace, session, request).await?
        }
        Request::ListTests(_) => {
            let mut answer = pass(workspace, session, request).await?;
            let documents = serde_json::to_value(examples::list(workspace).await?).unwrap_or_default();
            answer.0.insert("documents".to_owned(), documents);
            Reply::new(answer)
        }
        Request::Test(_) | Request::TestAll(_) => {
            let run = tests::run(workspace, caller, session, request);
            // What is not waited for any more is stopped in the node.
            let run = tokio::select! {
                run = deadline.within(run) => run,
                () = stopped() => return Err(interrupted()),
            };
            run.unwrap_or_else(|| Err(deadline.error("the tests did not end")))?
        }
        Request::BrowseClass(of) => Reply::new(browse_class::browse_class(workspace, session, of).await?),
        Request::Info(_)
        | Request::ErlangComplete(_)
        | Request::Modules(_)
        | Request::Bindings(_)
        | Request::ListClasses(_)
        | Request::Methods(_)
        | Request::BrowseClasses(_)
        | Request::BrowseProtocols(_)
        | Request::BrowseMethodSource(_)
        | Request::BrowseClassDefinition(_)
        | Request::BrowseNativeSource(_)
        | Request::NavQuery(_)
        | Request::NavSymbols(_)
        | Request::Actors(_)
        | Request::Inspect(_)
        | Request::Views(_)
        | Request::View(_)
        | Request::Vitals(_)
        | Request::PidStats(_)
        | Request::TopActors(_)
        | Request::Kill(_)
        | Request::EnableTracing(_)
        | Request::DisableTracing(_)
        | Request::ClearTraces(_)
        | Request::GetTraces(_)
        | Request::ActorStats(_)
        | Request::ExportTraces(_)
        | Request::LogLevel(_) => in_node(workspace, session, request).await?,
    };
    Ok(reply)
}

/// An operation the node performs by itself.
async fn in_node(
    workspace: &Rc<Workspace>,
    session: &Session,
    request: &Request,
) -> Result<Reply, ErrorBody> {
    Ok(Reply::new(pass(workspace, session, request).await?))
}

/// What the node answers, as it is: recorded conversations show that it fits the answer's type.
async fn pass(workspace: &Rc<Workspace>, session: &Session, request: &Request) -> Result<Passed, ErrorBody> {
    workspace.enter_node(session).await?;
    let arguments = terms::of(request)?;
    let answer = workspace.image.call(&session.id, request.op().name(), arguments);
    Ok(Passed(answer.await?))
}

/// The session a request is about: the caller's, or another one for reading and interrupting.
fn session_of(workspace: &Workspace, caller: &Caller, call: &Call) -> Result<Rc<Session>, ErrorBody> {
    let Some(wanted) = &call.session else {
        return Ok(caller.session.clone());
    };
    if *wanted == caller.session.id {
        return Ok(caller.session.clone());
    }
    if caller.role == Role::Observer && !workspace.options.observers_see_bindings {
        return Err(
            ErrorBody::new(ErrorKind::Forbidden, "observers see no session but their own")
                .hint("the owner allows it by starting the workspace with --observers-see-bindings"),
        );
    }
    if call.op.access() != beamtalk_wire::Access::Read && call.op != Op::Interrupt {
        return Err(ErrorBody::new(
            ErrorKind::CrossSessionMutationUnsupported,
            format!("'{}' works on your own session only", call.op.name()),
        ));
    }
    let missing = || {
        ErrorBody::new(
            ErrorKind::SessionNotFound,
            format!("there is no session '{wanted}'"),
        )
    };
    workspace.sessions.find(wanted).ok_or_else(missing)
}
