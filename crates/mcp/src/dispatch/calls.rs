//! `tools/call`: schema, rate, policy, confirmation, work; then a result within its size and without secrets.

use std::rc::Rc;
use std::time::{Duration, Instant};

use beamtalk_wire::{ErrorBody, ErrorKind, escape};
use serde_json::{Map, Value, json};

use super::tasks::Order;
use super::{hold, questions, tasks, text};
use crate::arguments::{self, nearest};
use crate::capabilities::Era;
use crate::confirmation::{Effect, KEY, Question, fingerprint, is_yes};
use crate::fit::{RESULT_BYTES, fit};
use crate::hints::advised;
use crate::host::{Host, HostError, failure};
use crate::message::Fault;
use crate::named_secrets::{masked, masked_value};
use crate::progress::Progress;
use crate::record::Recording;
use crate::session::{Call, Session};
use crate::settings::{NarrowedBy, Way};
use crate::tools::{self, Class, Context, Failure, TOOLS, Tool};

/// When and how often a client is told that a call still runs.
const FIRST_PROGRESS: Duration = Duration::from_secs(1);
const PROGRESS: Duration = Duration::from_millis(250);

pub(super) async fn call<H: Host>(session: &Rc<Session<H>>, call: &Call) -> Result<Value, Fault> {
    let name = text(&call.params, "name")?;
    let none = Map::new();
    let given = match call.params.get("arguments") {
        None | Some(Value::Null) => &none,
        Some(Value::Object(given)) => given,
        Some(_) => return Err(Fault::params("params.arguments must be an object")),
    };
    let Some(tool) = Tool::find(name) else {
        return Err(unknown(name));
    };
    let progress = Progress::default();
    let mut recording = Recording::begin(session, tool, call, given);
    // In its place once: what is handed on is otherwise copied with all the room it may need.
    let work = Box::pin(run(session, call, tool, given, &progress, Ordered::Now));
    let outcome = with_progress(call, &progress, work).await;
    recording.end(match &outcome {
        Ok(Outcome::Result(_) | Outcome::Question(_) | Outcome::Task(_)) => None,
        Ok(Outcome::Error(error)) => Some(error.kind.name()),
        Err(_) => Some("invalid_request"),
    });
    recording.approved_by(progress.approval.take());
    // What became a task is recorded where it is worked on.
    if matches!(outcome, Ok(Outcome::Task(_))) {
        recording.leave();
    }
    recording.write().await;
    Ok(match outcome? {
        Outcome::Result(result) => finished(tool, given, result),
        Outcome::Error(error) => failed(tool, &*told(session, error).await),
        Outcome::Question(value) | Outcome::Task(value) => value,
    })
}

/// The work of a task: the call as it was ordered, in the daemon that keeps the task.
pub(super) async fn work<H: Host>(
    session: &Rc<Session<H>>,
    call: &Call,
    order: Order,
    progress: &Progress,
) -> Value {
    let Some(tool) = Tool::find(&order.tool) else {
        return Value::Null;
    };
    progress.is_wanted.set(true);
    let given = order.arguments;
    let mut recording = Recording::begin(session, tool, call, &given);
    let outcome = run(
        session,
        call,
        tool,
        &given,
        progress,
        Ordered::Task(order.approved),
    )
    .await;
    recording.approved_by(progress.approval.take());
    recording.end(match &outcome {
        Ok(Outcome::Error(error)) => Some(error.kind.name()),
        Ok(_) => None,
        Err(_) => Some("invalid_request"),
    });
    recording.write().await;
    match outcome {
        Ok(Outcome::Result(result)) => finished(tool, &given, result),
        Ok(Outcome::Error(error)) => failed(tool, &*told(session, error).await),
        Ok(Outcome::Question(_) | Outcome::Task(_)) | Err(_) => failed(tool, &declined()),
    }
}

/// An error with what to do next, and where a path was refused with whose word that is.
async fn told<H: Host>(session: &Session<H>, mut error: HostError) -> HostError {
    if error.kind.name() == "path_denied" {
        let settings = &session.settings;
        let by = settings.narrowed_by.unwrap_or(NarrowedBy::User);
        error
            .details
            .insert("policy".to_owned(), settings.policy.name().into());
        error
            .details
            .entry("by".to_owned())
            .or_insert_with(|| by.name().into());
    }
    advised(&*session.host, error).await
}

fn unknown(name: &str) -> Fault {
    let shown = escape(&name.chars().take(64).collect::<String>());
    let fault = Fault::params(format!("Unknown tool: {shown}"));
    match nearest(name, TOOLS.iter().map(|tool| tool.name)) {
        Some(close) => fault.with(json!({"nearest": close})),
        None => fault.with(json!({"nearest": null})),
    }
}

pub(super) enum Outcome {
    Result(Map<String, Value>),
    Error(HostError),
    /// The person is asked first.
    Question(Value),
    /// It goes on without the client.
    Task(Value),
}

/// Wait for a call, telling the client that it runs if it wants to know.
async fn with_progress<T>(
    call: &Call,
    progress: &Progress,
    work: impl Future<Output = Result<T, Fault>>,
) -> Result<T, Fault> {
    let token = call
        .params
        .get("_meta")
        .and_then(|meta| meta.get("progressToken"));
    let Some(token) = token.filter(|token| token.is_string() || token.is_i64() || token.is_u64()) else {
        return work.await;
    };
    progress.is_wanted.set(true);
    let started = tokio::time::Instant::now();
    let mut work = std::pin::pin!(work);
    let mut ticks = tokio::time::interval_at(started + FIRST_PROGRESS, PROGRESS);
    let mut told = 0_u64;
    loop {
        tokio::select! {
            biased;
            result = &mut work => {
                // Who was told how far it is learns that it got there.
                if told > 0 && progress.is_counted() {
                    let mut params = progress.shown(0);
                    if params["progress"].as_u64().is_some_and(|now| now > told) {
                        params["progressToken"] = token.clone();
                        call.outgoing.notify("notifications/progress", params);
                    }
                }
                return result;
            }
            _ = ticks.tick() => {
                let mut params = progress.shown(started.elapsed().as_secs());
                // It only rises; what did not move is not told again.
                let now = params["progress"].as_u64().unwrap_or(0);
                if now > told {
                    told = now;
                    params["progressToken"] = token.clone();
                    call.outgoing.notify("notifications/progress", params);
                }
            }
        }
    }
}

/// Who waits for a call.
enum Ordered {
    /// The client.
    Now,
    /// Nobody: it is the work of a task, with what the person said yes to before.
    Task(Option<Effect>),
}

async fn run<H: Host>(
    session: &Rc<Session<H>>,
    call: &Call,
    tool: &'static Tool,
    given: &Map<String, Value>,
    progress: &Progress,
    ordered: Ordered,
) -> Result<Outcome, Fault> {
    let is_ordered = matches!(ordered, Ordered::Task(_));
    if !is_ordered && let Err(error) = guard(session, call, tool, given) {
        return Ok(Outcome::Error(error));
    }
    let mut approved = match ordered {
        Ordered::Task(effect) => effect,
        Ordered::Now => match answered(session, call, tool, given).await? {
            Answered::Nothing => None,
            Answered::Yes(effect) => Some(effect),
            Answered::No => return Ok(Outcome::Error(declined())),
            Answered::NotYet(effect) => {
                return Ok(Outcome::Question(ask_modern(session, tool, given, effect).await?));
            }
        },
    };
    let own = session.host.own_session();
    let is_destructive = tool.deeds(given, own.as_deref()).class == Class::Destroy;
    let is_held = hold::is_held(session, tool, given, is_destructive).await;
    // What loses something is held when it is known what that is.
    let is_held_first = is_held && !is_destructive;
    // Nobody is asked about what is denied whatever they say.
    if is_held_first {
        let context = Context::of(session, call.era, &call.client, progress);
        if let Err(error) = tools::check_paths(&context, tool.name, given).await {
            return Ok(Outcome::Error(error));
        }
    }
    // What needs no workspace is not handed to one that does not run.
    let may_be_task = !is_ordered
        && call.client.has_tasks
        && call.era.is_modern()
        && (tool.needs_workspace() || session.host.is_connected());
    if may_be_task && (tool.is_long() || is_held_first) {
        return tasks::order(session, call, tool, given, None).await;
    }
    let mut granted = None;
    if is_held_first && let Err(error) = hold::hold(session, tool, given, None, progress).await {
        return Ok(Outcome::Error(error));
    }
    // A yes may come too late for an effect that has changed; then the person is asked again.
    for _ in 0..6 {
        let context = Context {
            approved: approved.clone(),
            granted: granted.clone(),
            is_held,
            ..Context::of(session, call.era, &call.client, progress)
        };
        let effect = match tools::call(tool.name, &context, given).await {
            Ok(result) => {
                if tool.name == "test" {
                    session.common.own_changes.changed("beamtalk://tests/last");
                }
                return Ok(Outcome::Result(result));
            }
            Err(Failure::Error(error)) => return Ok(Outcome::Error(error)),
            Err(Failure::Hold(effect)) => {
                if may_be_task {
                    return tasks::order(session, call, tool, given, Some(effect)).await;
                }
                match hold::hold(session, tool, given, Some(&effect), progress).await {
                    Ok(()) => granted = Some(effect),
                    Err(error) => return Ok(Outcome::Error(error)),
                }
                continue;
            }
            Err(Failure::Ask(effect)) => effect,
        };
        approved = match call.era {
            Era::Modern if is_ordered => return Ok(Outcome::Error(declined())),
            Era::Modern => {
                return Ok(Outcome::Question(ask_modern(session, tool, given, effect).await?));
            }
            Era::Legacy(version) => {
                let form = effect.form(version == "2025-11-25");
                match session
                    .ask_client(&call.outgoing, "elicitation/create", form)
                    .await
                {
                    Some(answer) if is_yes(&answer) => Some(effect),
                    _ => return Ok(Outcome::Error(declined())),
                }
            }
        };
    }
    Ok(Outcome::Error(failure(
        "busy",
        "what this would do keeps changing",
    )))
}

fn declined() -> HostError {
    Box::new(failure("declined", "the person did not say yes").hint("do something else, or ask them why"))
}

/// Whether a call that loses something is counted as one. A person's yes belongs to the call that was counted when it
/// asked; and who cannot be asked and has not confirmed only learns what would be lost.
fn is_first(call: &Call, given: &Map<String, Value>) -> bool {
    let is_answer = call.params.get("requestState").is_some_and(Value::is_string);
    let is_confirmed = ["confirm", "confirm_destructive"]
        .iter()
        .any(|name| given.get(*name) == Some(&Value::Bool(true)));
    !is_answer && (call.client.can_be_asked || is_confirmed)
}

/// Everything that is decided before anything happens.
fn guard<H: Host>(
    session: &Session<H>,
    call: &Call,
    tool: &Tool,
    given: &Map<String, Value>,
) -> Result<(), HostError> {
    let settings = &session.settings;
    tools::with_input_schema(tool.name, |schema| arguments::check(schema, given)).map_err(Box::new)?;
    let deeds = tool.deeds(given, session.host.own_session().as_deref());
    let losses = if is_first(call, given) { deeds.losses } else { 0 };
    let rate = session.common.rate.borrow_mut().take(Instant::now(), losses);
    if let Err(wait) = rate {
        let error = failure("rate_limited", "too many calls").detail("retry_after_ms", wait);
        return Err(Box::new(error.hint(format!("try again in {wait} ms"))));
    }
    let denied = std::iter::once(tool)
        .chain(deeds.others.iter().copied())
        .find(|tool| tool.is_denied(settings));
    let message = match denied {
        Some(denied) => format!("the tool '{}' is denied by the configuration", denied.name),
        None if settings.policy >= deeds.class.policy() => return Ok(()),
        None if settings.way == Way::Door && deeds.is_own => return Ok(()),
        None if tool.is_allowed(settings) => format!(
            "the policy '{}' does not allow what '{}' would do with these arguments",
            settings.policy, tool.name
        ),
        None => format!("the policy '{}' does not allow '{}'", settings.policy, tool.name),
    };
    let by = match denied {
        Some(denied) => denied.denied_by(settings),
        None => settings.narrowed_by.unwrap_or(NarrowedBy::User),
    };
    let hint = match (denied, by) {
        (Some(_), _) => "the person can allow it: deny-tools in [mcp] of config.toml or beamtalk.toml",
        (None, NarrowedBy::User) => {
            "the person can allow it: --policy, and max-policy in [mcp] of the user's config.toml"
        }
        (None, NarrowedBy::Project) => {
            "the person can allow it: policy in [mcp] of the project's beamtalk.toml"
        }
        (None, NarrowedBy::Token) => {
            "the person can make a token that allows it: beamtalk workspace token create NAME --mcp POLICY"
        }
        (None, NarrowedBy::Role) => "the role allows no more: that of the token, or of the agent's session",
    };
    let error = failure("policy_denied", message)
        .hint(hint)
        .detail("policy", settings.policy.name())
        .detail("by", by.name());
    Err(Box::new(error))
}

/// What the client sent back of a question.
enum Answered {
    Nothing,
    Yes(Effect),
    No,
    /// It came back without the answer.
    NotYet(Effect),
}

async fn answered<H: Host>(
    session: &Session<H>,
    call: &Call,
    tool: &Tool,
    given: &Map<String, Value>,
) -> Result<Answered, Fault> {
    let Some(kept) = questions::take(session, call).await? else {
        return Ok(Answered::Nothing);
    };
    let question: Question = serde_json::from_str(&kept).map_err(|_| questions::unknown())?;
    if question.tool != tool.name || question.sha256 != fingerprint(given) {
        return Err(questions::unknown());
    }
    let answer = call
        .params
        .get("inputResponses")
        .and_then(|responses| responses.get(KEY));
    Ok(match answer {
        None => Answered::NotYet(question.effect),
        Some(answer) if is_yes(answer) => Answered::Yes(question.effect),
        Some(_) => Answered::No,
    })
}

/// The result that asks the person; the question is kept by the workspace.
async fn ask_modern<H: Host>(
    session: &Session<H>,
    tool: &Tool,
    given: &Map<String, Value>,
    effect: Effect,
) -> Result<Value, Fault> {
    let form = effect.form(true);
    let question = Question {
        tool: tool.name.to_owned(),
        sha256: fingerprint(given),
        effect,
    };
    let kept = serde_json::to_string(&question).unwrap_or_default();
    let asked = Map::from_iter([(
        KEY.to_owned(),
        json!({"method": "elicitation/create", "params": form}),
    )]);
    match questions::ask(session, kept, asked).await {
        Ok(result) => Ok(result),
        Err(error) => Ok(failed(tool, &error)),
    }
}

fn finished(tool: &Tool, given: &Map<String, Value>, mut result: Map<String, Value>) -> Value {
    // Some tools know better than this which part is left out.
    let is_cut = fit(&mut result, RESULT_BYTES) || result.contains_key("truncated");
    let structured = Value::Object(result);
    let text = serde_json::to_string(&structured).unwrap_or_default();
    let mut content = vec![json!({"type": "text", "text": text})];
    if let Some(uri) = crate::resources::whole(tool.name, given).filter(|_| is_cut) {
        let name = uri.trim_start_matches("beamtalk://").to_owned();
        content.push(json!({"type": "resource_link", "uri": uri, "name": name, "description": "The whole."}));
    }
    // The macro would copy them.
    Value::from_iter([
        ("content", Value::Array(content)),
        ("structuredContent", structured),
        ("isError", false.into()),
    ])
}

/// Kinds after which nobody knows what was done.
const UNKNOWN_EFFECTS: [&str; 2] = ["connection_lost", "node_down"];

pub(super) fn failed(tool: &Tool, error: &ErrorBody) -> Value {
    let kind = error.kind.name();
    // What the image raises may have any value in it.
    let is_of_value = matches!(error.kind, ErrorKind::Other(_));
    let message = if is_of_value {
        masked(&error.message)
    } else {
        error.message.clone()
    };
    let details = if is_of_value {
        masked_value(json!(error.details))
    } else {
        json!(error.details)
    };
    let mut shown = Map::new();
    shown.insert("kind".to_owned(), kind.into());
    shown.insert("message".to_owned(), escape(&message).into());
    if let Some(hint) = &error.hint {
        shown.insert("hint".to_owned(), escape(hint).into());
    }
    for (name, value) in [
        ("class", error.class.as_ref().map(|class| json!(class))),
        (
            "selector",
            error.selector.as_ref().map(|selector| json!(selector)),
        ),
        (
            "location",
            error.location.as_ref().map(|location| json!(location)),
        ),
        (
            "stack",
            Some(json!(error.stack)).filter(|_| !error.stack.is_empty()),
        ),
        (
            "diagnostics",
            Some(json!(error.diagnostics)).filter(|_| !error.diagnostics.is_empty()),
        ),
        ("details", Some(details).filter(|_| !error.details.is_empty())),
    ] {
        if let Some(value) = value {
            let value = serde_json::to_value(crate::data::AnyData::new(value)).unwrap_or_default();
            shown.insert(name.to_owned(), value);
        }
    }
    if tool.class != Class::Read && UNKNOWN_EFFECTS.contains(&kind) {
        shown.insert("effects".to_owned(), "unknown".into());
    }
    let mut whole = Map::new();
    whole.insert("error".to_owned(), Value::Object(shown));
    fit(&mut whole, RESULT_BYTES);
    let text = Value::Object(whole).to_string();
    json!({"content": [{"type": "text", "text": text}], "isError": true})
}
