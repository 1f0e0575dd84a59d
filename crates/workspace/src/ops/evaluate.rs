//! Evaluation: compile in a worker, run in the node, stream what it prints.

use std::rc::Rc;
use std::time::Duration;

use beamtalk_etf::Term;
use beamtalk_node::Answer as NodeAnswer;
use beamtalk_wire::{ErrorBody, Request, limits};
use serde_json::{Value, json};

use super::deadline::{Deadline, out_of_time};
use super::{Answer, Caller, Sink, edit, session_of};
use crate::compile::Compiled;
use crate::compile::job::{Expression, Job};
use crate::image::{Image, error_body};
use crate::workspace::Workspace;
use crate::{sessions::Session, terms};

pub(super) async fn eval(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
    sink: &Sink,
) -> Result<Answer, ErrorBody> {
    let code = request.text("code")?.to_owned();
    let trace = request.flag("trace")?;
    let deadline = Deadline::of(request)?;
    let file = request.optional_text("file")?.map(str::to_owned);
    let session = caller.session.clone();
    let _turn = deadline
        .keep(
            session.take_turn(),
            "it waited for another evaluation of its session",
        )
        .await?;
    let enter = async {
        // What the image itself asks for while it is being started cannot wait for that.
        if caller.connection.is_some() {
            workspace.image.up().await?;
        }
        workspace.enter_node(&session).await
    };
    deadline.keep(enter, "it waited for the node").await?;
    let job = Job::Input {
        code,
        bound: workspace.names(&session),
        file,
        trace,
    };
    let compiled = deadline
        .keep(workspace.compiler.run(job), "it was being compiled")
        .await?;
    refuse_errors(&compiled)?;
    let time = time_limit(workspace, &session, deadline.left());
    let arguments = arguments(workspace, &compiled, time);
    let mut fields = run(workspace, &session, request, (arguments, time), sink).await?;
    let outcome = &compiled.outcome;
    if let Some(echo) = &outcome.echo
        && outcome.expression.is_none()
        && outcome.steps.is_empty()
    {
        fields.insert("value".to_owned(), echo.as_str().into());
        fields.insert("text".to_owned(), echo.as_str().into());
        fields.insert("class".to_owned(), "Symbol".into());
    }
    edit::defined(workspace, caller, &compiled, &mut fields)?;
    let mut warnings = outcome.diagnostics.clone();
    warnings.extend(unable_to_follow(&mut fields));
    if !warnings.is_empty() {
        fields.insert("warnings".to_owned(), json!(warnings));
    }
    let is_cut = fields.remove("truncated") == Some(Value::Bool(true));
    Ok(Answer {
        fields,
        flags: if is_cut { vec!["truncated"] } else { Vec::new() },
    })
}

/// A warning for each actor that keeps the code and state it had before an input changed its class.
fn unable_to_follow(fields: &mut serde_json::Map<String, Value>) -> Vec<Value> {
    let failures = match fields.get("migration_failures") {
        Some(Value::Array(failures)) => failures.clone(),
        _ => Vec::new(),
    };
    if failures.is_empty() {
        fields.remove("migration_failures");
    }
    let text = |failure: &Value, field: &str| failure[field].as_str().unwrap_or_default().to_owned();
    failures
        .iter()
        .map(|failure| {
            let (actor, reason) = (text(failure, "actor"), text(failure, "reason"));
            json!({"severity": "warning", "message": format!("{actor} keeps its old code and state: {reason}")})
        })
        .collect()
}

/// Errors of the compiler as one error of the request.
pub(super) fn refuse_errors(compiled: &Compiled) -> Result<(), ErrorBody> {
    let outcome = &compiled.outcome;
    if !outcome.has_errors {
        return Ok(());
    }
    let is_error = |found: &&Value| found["severity"] == "error";
    let first = outcome.diagnostics.iter().find(is_error);
    let text = |field: &str| first.and_then(|found| found[field].as_str()).map(str::to_owned);
    let mut error = ErrorBody::new(
        "compile_failed",
        text("message").unwrap_or_else(|| "the code does not compile".to_owned()),
    );
    error.hint = text("hint");
    error.location = first.and_then(|found| serde_json::from_value(found.clone()).ok());
    error.diagnostics.clone_from(&outcome.diagnostics);
    Err(error)
}

/// What the node needs to load and run an input.
pub(super) fn arguments(workspace: &Workspace, compiled: &Compiled, time: Option<Duration>) -> Term {
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
        ("value_bytes", number(limits::EVAL_TEXT as u64)),
    ];
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

fn expression(compiled: &Compiled, expression: Option<&Expression>) -> Vec<(&'static str, Term)> {
    let flag = |value: bool| Term::atom(if value { "true" } else { "false" });
    let Some(expression) = expression else {
        return vec![("expression", Term::atom("nil"))];
    };
    vec![
        ("expression", Term::binary(compiled.bytes(expression.forms))),
        ("is_cast", flag(expression.is_cast)),
        ("is_character", flag(expression.is_character)),
        ("has_loop", flag(expression.has_loop)),
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

fn number(number: u64) -> Term {
    Term::Integer(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Run in the node, passing on output until the last answer.
async fn run(
    workspace: &Rc<Workspace>,
    session: &Rc<Session>,
    request: &Request,
    (arguments, time): (Term, Option<Duration>),
    sink: &Sink,
) -> Result<serde_json::Map<String, Value>, ErrorBody> {
    let mut replies = workspace.image.request(&session.id, "eval", arguments)?;
    *session.running.borrow_mut() = Some((request.id.clone(), replies.id()));
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
fn learn_names(session: &Session, fields: &mut serde_json::Map<String, Value>) {
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
/// How long an interrupted session may take to say so.
const INTERRUPT: Duration = Duration::from_secs(2);

struct Running<'a>(&'a Session);

impl Drop for Running<'_> {
    fn drop(&mut self) {
        self.0.running.borrow_mut().take();
    }
}

/// The lower of what was asked for and what holds for this kind of client.
fn time_limit(workspace: &Workspace, session: &Session, asked: Option<Duration>) -> Option<Duration> {
    let general = match workspace.options.eval_timeout_s {
        0 if session.client.is_agent() => Some(limits::AGENT_EVAL_TIME),
        0 => None,
        seconds => Some(Duration::from_secs(seconds)),
    };
    match (general, asked) {
        (Some(general), Some(asked)) => Some(general.min(asked)),
        (general, asked) => general.or(asked),
    }
}

pub(super) async fn stdin(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let wanted = request.text("for")?;
    let is_running = caller
        .session
        .running
        .borrow()
        .as_ref()
        .is_some_and(|(id, _)| id == wanted);
    if !is_running {
        return Err(ErrorBody::new(
            "no_input_pending",
            format!("request '{wanted}' does not wait for input"),
        ));
    }
    let arguments = if request.flag("eof")? {
        terms::map([("eof", Term::atom("true"))])
    } else {
        terms::map([("value", Term::binary(request.text("value")?))])
    };
    let answer = workspace
        .image
        .call(&caller.session.id, "stdin", arguments)
        .await?;
    Ok(answer.into())
}

pub(super) async fn interrupt(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
) -> Result<Answer, ErrorBody> {
    let session = match request.optional_text("for")? {
        None => session_of(workspace, caller, request)?,
        Some(wanted) => {
            let runs = |session: &Rc<Session>| {
                let running = session.running.borrow();
                running.as_ref().is_some_and(|(id, _)| id == wanted)
            };
            let mut sessions = vec![session_of(workspace, caller, request)?];
            sessions.extend(workspace.sessions.all());
            match sessions.into_iter().find(runs) {
                Some(session) => session,
                None => return Ok(json!({"value": false}).into()),
            }
        }
    };
    let running = session.running.borrow().as_ref().map(|(_, number)| *number);
    let Some(running) = running else {
        return Ok(json!({"value": false}).into());
    };
    let arguments = terms::map([("for", number(running))]);
    let answer = workspace
        .image
        .call_within(INTERRUPT, &session.id, "interrupt", arguments)
        .await;
    match answer {
        Err(error) if error.kind == "timeout" => {
            workspace.image.replace_session(&session.id);
            Ok(json!({"value": true}).into())
        }
        answer => Ok(answer?.into()),
    }
}

/// A class method run as a program, with its output.
pub(super) async fn run_entry(
    workspace: &Rc<Workspace>,
    caller: &Caller,
    request: &Request,
    sink: &Sink,
) -> Result<Answer, ErrorBody> {
    let class = request.text("class")?;
    let selector = request.text("selector")?;
    let arguments: Vec<String> = request
        .texts("args")?
        .iter()
        .map(|argument| {
            format!(
                "\"{}\"",
                argument
                    .replace('\\', "\\\\")
                    .replace('"', "\\\"")
                    .replace('{', "\\{")
            )
        })
        .collect();
    let is_name =
        |name: &str| !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '@');
    let is_selector = selector
        .chars()
        .all(|c| c.is_alphanumeric() || c == '_' || c == ':');
    if !is_name(class) {
        return Err(request.invalid("class", "the name of a class"));
    }
    if !is_selector || selector.is_empty() {
        return Err(request.invalid("selector", "a selector"));
    }
    let code = if selector.ends_with(':') {
        format!("{class} {selector} #({})", arguments.join(", "))
    } else {
        format!("{class} {selector}")
    };
    let mut evaluation = request.clone();
    evaluation.fields.insert("code".to_owned(), code.into());
    let mut answer = Box::pin(eval(workspace, caller, &evaluation, sink)).await?;
    answer
        .fields
        .entry("exit_code".to_owned())
        .or_insert_with(|| 0.into());
    Ok(answer)
}
