//! Evaluation: compile in a worker, run in the node, stream what it prints.

use std::rc::Rc;
use std::time::Duration;

use beamtalk_etf::Term;
use beamtalk_node::Answer as NodeAnswer;
use beamtalk_wire::answers::{Diagnostic, EvalAnswer, MigrationFailure, Severity, Warning};
use beamtalk_wire::requests::Eval;
use beamtalk_wire::{ClientKind, ErrorBody, ErrorKind, limits};
use serde_json::Value;

use super::deadline::{Deadline, out_of_time};
use super::entries::defined;
use super::self_target::{RECEIVER, subject};
use super::{Caller, Sink};
use crate::compile::Compiled;
use crate::compile::job::{Expression, Job};
use crate::image::{Image, error_body};
use crate::workspace::Workspace;
use crate::{sessions::Session, terms};

/// What an evaluation came to.
pub(super) struct Evaluated {
    pub(super) answer: EvalAnswer,
    pub(super) warnings: Vec<Warning>,
    /// The value was too long to be shown whole.
    pub(super) is_cut: bool,
}

pub(super) async fn eval(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    id: &str,
    request: &Eval,
    deadline: &Deadline,
    sink: &Sink,
) -> Result<Evaluated, ErrorBody> {
    let session = caller.session.clone();
    let loop_right = request.loop_right.as_deref().map(str::parse).transpose();
    let loop_right =
        loop_right.map_err(|cause: String| ErrorBody::new(ErrorKind::InvalidParameter, cause))?;
    let _turn = deadline
        .keep(
            session.take_turn(),
            "it waited for another evaluation of its session",
        )
        .await?;
    session.runs_for.set(caller.connection);
    session.loop_right.set(loop_right);
    let enter = async {
        // What the image itself asks for while it is being started cannot wait for that.
        if caller.connection.is_some() {
            workspace.image.up().await?;
        }
        workspace.enter_node(&session).await
    };
    deadline.keep(enter, "it waited for the node").await?;
    let subject = match &request.self_ {
        Some(target) => Some(subject(workspace, &session, target, &request.code).await?),
        None => None,
    };
    let compiling = async {
        match &subject {
            Some(subject) if !subject.is_actor => subject.compile(workspace, &request.code).await,
            _ => {
                let mut bound = workspace.names(&session);
                bound.extend(subject.is_some().then(|| RECEIVER.to_owned()));
                let job = Job::Input {
                    code: match &subject {
                        Some(_) => format!("{RECEIVER} {}", request.code),
                        None => request.code.clone(),
                    },
                    bound,
                    file: request.file.clone(),
                    trace: request.trace == Some(true),
                };
                workspace.compiler.run(job).await
            }
        }
    };
    let compiled = deadline.keep(compiling, "it was being compiled").await;
    let compiled = compiled.map_err(of_request)?;
    refuse_errors(&compiled)?;
    let asked = deadline.left();
    let time = time_limit(workspace, &session, asked);
    let mut arguments = arguments(workspace, &compiled, time, request.width);
    if let Term::Map(pairs) = &mut arguments {
        if request.hold == Some(true) {
            pairs.push((Term::binary("hold"), Term::atom("true")));
        }
        // Who may come back later may look later, too.
        if request.hold == Some(true) || session.kept.is_some() {
            pairs.push((Term::binary("hold_failure"), Term::atom("true")));
        }
        // A program that tries again begins where it began before; a person sees how far it went.
        if session.client == ClientKind::Mcp {
            pairs.push((Term::binary("undo"), Term::atom("true")));
        }
        if let Some(subject) = &subject {
            subject.tell(&compiled, pairs);
        }
    }
    // From here on it is the node that stops it.
    workspace.stops.check(caller.connection, id)?;
    let ran = run(workspace, &session, id, (arguments, time), sink).await;
    let mut fields = ran.map_err(|error| if time == asked { of_request(error) } else { error })?;
    let is_cut = fields.remove("truncated") == Some(Value::Bool(true));
    let mut answer: EvalAnswer = terms::typed(fields)?;
    let outcome = &compiled.outcome;
    if let Some(echo) = &outcome.echo
        && outcome.expression.is_none()
        && outcome.steps.is_empty()
    {
        answer.value = Some(echo.as_str().into());
        answer.text.clone_from(echo);
        answer.class = Some("Symbol".to_owned());
    }
    // The method that code with a `self` is run as belongs to nobody.
    let is_own_method = subject.as_ref().is_some_and(|subject| !subject.is_actor);
    if !is_own_method && let Some(defined) = defined(workspace, caller, &compiled)? {
        answer.entries = Some(defined.entries);
        answer.classes = Some(defined.classes);
    }
    let mut warnings: Vec<Warning> = outcome.diagnostics.iter().cloned().map(Warning::Found).collect();
    answer.migration_failures = answer.migration_failures.filter(|failures| !failures.is_empty());
    let failures = answer.migration_failures.iter().flatten();
    warnings.extend(failures.map(unable_to_follow));
    Ok(Evaluated {
        answer,
        warnings,
        is_cut,
    })
}

/// An actor keeps the code and state it had before an input changed its class.
fn unable_to_follow(failure: &MigrationFailure) -> Warning {
    let MigrationFailure { actor, reason } = failure;
    Warning::said(format!("{actor} keeps its old code and state: {reason}"))
}

/// Errors of the compiler as one error of the request.
pub(super) fn refuse_errors(compiled: &Compiled) -> Result<(), ErrorBody> {
    let outcome = &compiled.outcome;
    if !outcome.has_errors {
        return Ok(());
    }
    let first = outcome
        .diagnostics
        .iter()
        .find(|found| found.severity == Severity::Error);
    let mut error = ErrorBody::new(
        ErrorKind::CompileFailed,
        first.map_or("the code does not compile", |found| &found.message),
    );
    error.hint = first.and_then(|found| found.hint.clone());
    error.location = first.and_then(Diagnostic::location);
    error.diagnostics.clone_from(&outcome.diagnostics);
    Err(error)
}

/// What the node needs to load and run an input.
pub(super) fn arguments(
    workspace: &Workspace,
    compiled: &Compiled,
    time: Option<Duration>,
    width: Option<u64>,
) -> Term {
    let outcome = &compiled.outcome;
    let mut pairs = vec![
        (
            "modules",
            Term::list(
                outcome
                    .modules
                    .iter()
                    .map(|module| Term::binary(compiled.bytes(module.forms))),
            ),
        ),
        (
            "heap_words",
            number(workspace.options.eval_max_heap_mb * 1024 * 1024 / 8),
        ),
        ("output_bytes", number(limits::EVAL_OUTPUT as u64)),
        ("value_bytes", number(text_limit(width) as u64)),
    ];
    if let Some(width) = width {
        pairs.push(("width", number(width.min(MAX_WIDTH))));
    }
    if let Some(time) = time {
        pairs.push((
            "time_ms",
            number(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)),
        ));
    }
    if outcome.steps.is_empty() {
        pairs.extend(expression(compiled, outcome.expression.as_ref()));
    } else {
        let steps = outcome.steps.iter().map(|step| {
            let mut pairs = expression(compiled, Some(&step.expression));
            pairs.push(("src", Term::binary(&step.source)));
            map(pairs)
        });
        pairs.push(("steps", Term::list(steps)));
    }
    map(pairs)
}

/// Columns beyond these make no difference.
const MAX_WIDTH: u64 = 10_000;

/// Whoever asks for everything in one line gets more of it.
fn text_limit(width: Option<u64>) -> usize {
    if width == Some(0) {
        limits::EVAL_WHOLE_TEXT
    } else {
        limits::EVAL_TEXT
    }
}

fn expression(compiled: &Compiled, expression: Option<&Expression>) -> Vec<(&'static str, Term)> {
    let flag = |value: bool| Term::atom(if value { "true" } else { "false" });
    let Some(expression) = expression else {
        return vec![("expression", Term::atom("nil"))];
    };
    vec![
        ("expression", Term::binary(compiled.bytes(expression.forms))),
        ("is_cast", flag(expression.is_cast)),
        ("is_character", flag(expression.is_character)),
    ]
}

fn map(pairs: Vec<(&str, Term)>) -> Term {
    Term::Map(
        pairs
            .into_iter()
            .map(|(key, value)| (Term::binary(key), value))
            .collect(),
    )
}

pub(super) fn number(number: u64) -> Term {
    Term::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Run in the node, passing on output until the last answer.
async fn run(
    workspace: &Rc<Workspace>,
    session: &Rc<Session>,
    id: &str,
    (arguments, time): (Term, Option<Duration>),
    sink: &Sink,
) -> Result<serde_json::Map<String, Value>, ErrorBody> {
    let mut replies = workspace.image.request(&session.id, "eval", arguments)?;
    *session.running.borrow_mut() = Some((id.to_owned(), replies.id()));
    let _running = Running(session);
    // The node keeps the time itself; this is for a node that cannot.
    let overdue = async {
        match time {
            Some(time) => tokio::time::sleep(time + NODE_GRACE).await,
            None => std::future::pending().await,
        }
    };
    let mut overdue = std::pin::pin!(overdue);
    loop {
        let answer = tokio::select! {
            answer = replies.next() => answer,
            () = &mut overdue => {
                workspace.image.replace_session(&session.id);
                return Err(out_of_time(time.unwrap_or_default(), "the node did not answer"));
            }
        };
        match answer {
            Some(NodeAnswer::Out(bytes)) => {
                sink.output(&String::from_utf8_lossy(&bytes)).await;
                workspace.image.credit(replies.id(), bytes.len());
            }
            // There is nobody behind a handle who could type.
            Some(NodeAnswer::NeedInput(_)) if session.has_no_input.get() => {
                let nothing_more = terms::map([("eof", Term::atom("true"))]);
                workspace.image.call(&session.id, "stdin", nothing_more).await?;
            }
            Some(NodeAnswer::NeedInput(prompt)) => sink.needs_input(&prompt).await,
            Some(NodeAnswer::Done(answer)) => {
                let mut fields = terms::to_object(&answer);
                learn_names(session, &mut fields);
                return Ok(fields);
            }
            Some(NodeAnswer::Failed(error)) => {
                let mut fields = terms::to_object(&error);
                learn_names(session, &mut fields);
                return Err(error_body(fields));
            }
            Some(NodeAnswer::NodeGone(_)) | None => return Err(Image::gone()),
        }
    }
}

/// The node tells the variables of the session when they changed.
pub(super) fn learn_names(session: &Session, fields: &mut serde_json::Map<String, Value>) {
    if let Some(Value::Array(names)) = fields.remove("names") {
        session.set_names(
            names
                .into_iter()
                .filter_map(|name| name.as_str().map(str::to_owned))
                .collect(),
        );
    }
}

/// How much later than an evaluation's time limit the node may say that it is over.
const NODE_GRACE: Duration = Duration::from_secs(1);

struct Running<'a>(&'a Session);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.borrow_mut().take();
    }
}

/// A limit of time that came with the request is not one of the workspace.
fn of_request(mut error: ErrorBody) -> ErrorBody {
    let is_time = error.details.get("limit").is_some_and(|limit| limit == "time");
    if error.kind == ErrorKind::EvalLimit && is_time {
        error.hint = Some("raise its timeout_ms".to_owned());
        error = error.detail("of", "request");
    }
    error
}

/// The lower of what was asked for and what holds for this kind of client.
fn time_limit(workspace: &Workspace, session: &Session, asked: Option<Duration>) -> Option<Duration> {
    let general = match workspace.options.eval_timeout_s {
        // What an AI agent asks for may take longer, since it can be told how far it is.
        0 if session.client == ClientKind::Mcp && asked.is_some() => Some(limits::AGENT_EVAL_CEILING),
        0 if session.client.is_agent() => Some(limits::AGENT_EVAL_TIME),
        0 => None,
        seconds => Some(Duration::from_secs(seconds)),
    };
    match (general, asked) {
        (Some(general), Some(asked)) => Some(general.min(asked)),
        (general, asked) => general.or(asked),
    }
}
