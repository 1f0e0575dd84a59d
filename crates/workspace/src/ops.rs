//! The operations of the protocol: who may, what is done, what is recorded, what is answered.
//!
//! Clients and code in the image reach the same handlers; what the node alone can answer is passed on to it.

mod changes;
mod check;
mod deadline;
mod describe;
mod edit;
mod evaluate;
mod language;
mod load;
mod native;
mod restore;
mod sessions;
mod watch;

use std::rc::Rc;
use std::time::Instant;

use beamtalk_wire::{ErrorBody, Op, Request, Role};

pub(crate) use deadline::Deadline;
pub(crate) use describe::numbers;
pub(crate) use edit::{compile_evaluation, of_image};
pub(crate) use load::{load_image, load_project};
pub(crate) use restore::{after_node_exit, reinstall, tell_waiting, waiting};
use serde_json::{Map, Value};

use crate::audit::Event;
use crate::gate::Outgoing;
use crate::image::Phase;
use crate::sessions::{ConnectionId, Session};
use crate::terms;
use crate::workspace::Workspace;

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
    Nowhere,
}

impl Sink {
    /// Waits while the client's queue is full. What nobody wants to read is dropped.
    pub(crate) async fn output(&self, text: &str) {
        if let Self::Client {
            outgoing,
            id,
            session,
        } = self
        {
            let _ = outgoing
                .send(beamtalk_wire::output(id, session, text).to_string())
                .await;
        }
    }

    pub(crate) async fn needs_input(&self, prompt: &str) {
        if let Self::Client {
            outgoing,
            id,
            session,
        } = self
        {
            let message = beamtalk_wire::needs_input(id, session, prompt);
            let _ = outgoing.send(message.to_string()).await;
        }
    }
}

/// What an operation answers.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    pub fields: Map<String, Value>,
    pub flags: Vec<&'static str>,
}

impl From<Map<String, Value>> for Answer {
    fn from(fields: Map<String, Value>) -> Self {
        Self {
            fields,
            flags: Vec::new(),
        }
    }
}

/// For answers written as `json!({…})`.
impl From<Value> for Answer {
    fn from(value: Value) -> Self {
        match value {
            Value::Object(fields) => fields.into(),
            _ => Self::default(),
        }
    }
}

/// Perform an operation for a caller.
pub(crate) async fn perform(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
    sink: &Sink,
) -> Result<Answer, ErrorBody> {
    if !caller.role.may(request.op.access()) {
        let refusal = Event::AuthFail {
            reason: "role".to_owned(),
            bytes: 0,
            count: 1,
        };
        workspace.record(caller, refusal, None);
        return Err(ErrorBody::new(
            "forbidden",
            format!("an observer may not use '{}'", request.op.name()),
        ));
    }
    session_of(workspace, caller, request)?;
    let begin = workspace.begin(caller, request)?;
    let started = Instant::now();
    let mut answer = dispatch(workspace, caller, request, sink).await;
    if let Ok(answer) = &mut answer {
        edit::tell_warnings(&mut answer.fields);
    }
    let is_recorded = workspace.record_operation(caller, request, &answer, started, begin);
    // It was done: saying otherwise would be worse than a trail that tells only that it began.
    if let (Some(begin), false, Ok(answer)) = (begin, is_recorded, &mut answer) {
        warn(
            answer,
            &format!(
                "this was done, but its outcome could not be recorded; record {begin} says that it began"
            ),
        );
    }
    answer
}

fn warn(answer: &mut Answer, message: &str) {
    let warning = serde_json::json!({"severity": "warning", "message": message});
    match answer.fields.get_mut("warnings") {
        Some(Value::Array(warnings)) => warnings.push(warning),
        _ => drop(
            answer
                .fields
                .insert("warnings".to_owned(), Value::Array(vec![warning])),
        ),
    }
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

async fn dispatch(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
    sink: &Sink,
) -> Result<Answer, ErrorBody> {
    if decides_about_changes(request.op) && matches!(workspace.image.phase(), Phase::Starting | Phase::Down) {
        return Err(workspace.image.down());
    }
    match request.op {
        Op::Eval => evaluate::eval(workspace, caller, request, sink).await,
        Op::Stdin => evaluate::stdin(workspace, caller, request).await,
        Op::Interrupt => evaluate::interrupt(workspace, caller, request).await,
        Op::RunEntry => evaluate::run_entry(workspace, caller, request, sink).await,
        Op::Complete => language::complete(workspace, caller, request).await,
        Op::Hover => language::hover(workspace, caller, request).await,
        Op::Diagnostics => language::diagnostics(workspace, caller, request).await,
        Op::ShowCodegen => language::show_codegen(workspace, caller, request).await,
        Op::LoadFile => load::file(workspace, request).await,
        Op::LoadSource => load::source(workspace, caller, request).await,
        Op::LoadProject => load::project(workspace, request).await,
        Op::LoadTests => load::tests(workspace).await,
        Op::Reload => load::reload(workspace, request).await,
        Op::Unload => load::unload(workspace, caller, request).await,
        Op::Sessions => Ok(serde_json::json!({"sessions": workspace.sessions.describe()}).into()),
        Op::Bindings => sessions::bindings(workspace, caller, request).await,
        Op::Clear => sessions::clear(workspace, caller).await,
        Op::Clone => sessions::clone(workspace, caller).await,
        Op::Close => sessions::close(workspace, caller).await,
        Op::SaveMethod | Op::TryMethod => edit::method(workspace, caller, request).await,
        Op::SaveClass => edit::class(workspace, caller, request).await,
        Op::RemoveMethod => edit::remove_method(workspace, caller, request).await,
        Op::RemoveClass => edit::remove_class(workspace, caller, request).await,
        Op::PrecheckMethod => edit::precheck(workspace, caller, request).await,
        Op::Changes => {
            let mut answer = changes::changes(workspace, request)?;
            restore::mark_failures(workspace, &mut answer);
            if request.flag("disk")? {
                let files = workspace.files_changed_on_disk().await;
                answer.fields.insert("disk_changed".to_owned(), files.into());
            }
            Ok(answer)
        }
        Op::Dirty => changes::dirty(workspace),
        Op::Diff => changes::diff(workspace, request),
        Op::Revert => changes::revert(workspace, request).await,
        Op::Take => changes::take(workspace, request).await,
        Op::Settle => changes::settle(workspace, request).await,
        Op::Discard => changes::discard(workspace, request).await,
        Op::Restore => restore::restore(workspace, request).await,
        Op::ChangeSides => changes::sides(workspace, request),
        Op::ClearChanges => changes::clear(workspace),
        Op::Flush => changes::flush(workspace, caller, request),
        Op::RecheckImage => check::recheck(workspace).await,
        Op::ReloadFindings => Ok(check::findings(workspace)),
        Op::Subscribe => watch::subscribe(workspace, caller, request),
        Op::Unsubscribe => watch::unsubscribe(workspace, caller, request),
        Op::Describe => Ok(describe::describe(workspace)),
        Op::Health => describe::health(workspace).await,
        Op::Shutdown => {
            workspace.stop(request.flag("force")?, "shutdown");
            Ok(Answer::default())
        }
        Op::SupervisionTree => {
            if caller.role == Role::Observer && request.optional_text("scope")? == Some("system") {
                return Err(ErrorBody::new(
                    "forbidden",
                    "observers do not see the system's own processes",
                ));
            }
            in_node(workspace, caller, request).await
        }
        Op::Test | Op::TestAll => {
            // What is not waited for any more is stopped in the node.
            let deadline = Deadline::of(request)?;
            let run = deadline.within(in_node(workspace, caller, request)).await;
            let mut answer = run.unwrap_or_else(|| Err(deadline.error("the tests did not end")))?;
            let failed = answer.fields.remove("failed") == Some(Value::Bool(true));
            if failed {
                answer.flags.push("test-error");
            }
            Ok(answer)
        }
        Op::Docs => language::docs(workspace, caller, request).await,
        Op::Info
        | Op::ErlangComplete
        | Op::Modules
        | Op::ListClasses
        | Op::Methods
        | Op::BrowseClasses
        | Op::BrowseProtocols
        | Op::BrowseMethodSource
        | Op::BrowseClassDefinition
        | Op::BrowseNativeSource
        | Op::NavQuery
        | Op::NavSymbols
        | Op::Actors
        | Op::Inspect
        | Op::PidStats
        | Op::Kill
        | Op::ListTests
        | Op::EnableTracing
        | Op::DisableTracing
        | Op::ClearTraces
        | Op::GetTraces
        | Op::ActorStats
        | Op::ExportTraces
        | Op::LogLevel => in_node(workspace, caller, request).await,
    }
}

/// An operation the node performs by itself.
async fn in_node(workspace: &Rc<Workspace>, caller: &Caller, request: &Request) -> Result<Answer, ErrorBody> {
    let session = session_of(workspace, caller, request)?;
    workspace.enter_node(&session).await?;
    let answer = workspace
        .image
        .call(
            &session.id,
            request.op.name(),
            terms::from_object(&request.fields),
        )
        .await?;
    Ok(answer.into())
}

/// The session a request is about: the caller's, or another one for reading and interrupting.
fn session_of(workspace: &Workspace, caller: &Caller, request: &Request) -> Result<Rc<Session>, ErrorBody> {
    let Some(wanted) = &request.session else {
        return Ok(caller.session.clone());
    };
    if *wanted == caller.session.id {
        return Ok(caller.session.clone());
    }
    if caller.role == Role::Observer && !workspace.options.observers_see_bindings {
        return Err(
            ErrorBody::new("forbidden", "observers see no session but their own")
                .hint("the owner allows it by starting the workspace with --observers-see-bindings"),
        );
    }
    if request.op.access() != beamtalk_wire::Access::Read && request.op != Op::Interrupt {
        return Err(ErrorBody::new(
            "cross_session_mutation_unsupported",
            format!("'{}' works on your own session only", request.op.name()),
        ));
    }
    workspace
        .sessions
        .find(wanted)
        .ok_or_else(|| ErrorBody::new("session_not_found", format!("there is no session '{wanted}'")))
}
