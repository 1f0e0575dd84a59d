//! `eval`, `eval.json` and `send`: a request is committed, its answer read. Each open file is a session of its own.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use beamtalk_client::{Answer as Whole, Connection, Reply};
use beamtalk_ninep::{OpenFile, OpenRequest, Payload, ReadAnswer, Refusal, WriteAnswer};
use beamtalk_wire::answers::EvalAnswer;
use beamtalk_wire::requests::{Eval, Interrupt};
use beamtalk_wire::{ErrorBody, ErrorKind};
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::super::kinds::{Buffer, Commit};
use super::super::open::detached;
use super::transcript::literal;
use super::{WorkspaceNode, text_of};
use crate::error::refusal;
use crate::link::{Evaluation, no_workspace};

/// How long an expression may take, unless its first line says otherwise.
const TIME_MS: u64 = 30_000;
const TIMEOUT_LINE: &str = "//timeout ";

/// What is asked.
#[derive(Clone)]
pub(super) enum Ask {
    Code { json: bool },
    Message { pid: String },
}

enum State {
    Nothing,
    Running(u64),
    Answer(Vec<u8>),
    Failed(Refusal),
}

struct Shared {
    node: Arc<WorkspaceNode>,
    ask: Ask,
    connection: Option<Arc<Connection>>,
    session: tokio::sync::Mutex<Evaluation>,
    state: Mutex<State>,
    changed: watch::Sender<u64>,
    /// The request that runs: its number and its id in the workspace.
    running: Mutex<Option<(u64, String)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// An answer of `eval.json`.
#[derive(Serialize)]
struct Said<'a> {
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<Value>,
    output: &'a str,
    ms: u64,
}

struct EvalFile {
    buffer: Buffer,
    shared: Arc<Shared>,
}

pub(super) async fn open(
    node: &Arc<WorkspaceNode>,
    ask: Ask,
    request: OpenRequest,
) -> Result<Box<dyn OpenFile>, Refusal> {
    let session = node.link.evaluation().await?;
    let shared = Arc::new(Shared {
        node: Arc::clone(node),
        ask,
        connection: session.connection(),
        session: tokio::sync::Mutex::new(session),
        state: Mutex::new(State::Nothing),
        changed: watch::Sender::new(0),
        running: Mutex::new(None),
    });
    let limit = node.tree.hub.config().limits.document_bytes;
    let asked = Arc::clone(&shared);
    let commit: Commit = Arc::new(move |bytes| {
        let asked = Arc::clone(&asked);
        Box::pin(async move {
            asked.node.permit_written("commit", &bytes).await?;
            detached(asked.begin(bytes)).await
        })
    });
    Ok(Box::new(EvalFile {
        buffer: Buffer::new(Vec::new(), true, limit, request.largest_write, commit),
        shared,
    }))
}

impl Shared {
    /// The request is taken; what it comes to is read.
    async fn begin(self: Arc<Self>, bytes: Vec<u8>) -> Result<(), Refusal> {
        let shared = Arc::clone(&self);
        let begun = self.node.tree.recorded(bytes, |bytes| async move {
            let text = text_of(bytes)?;
            let (time, code) = limited(&text)?;
            let code = match &shared.ask {
                Ask::Code { .. } => code.to_owned(),
                Ask::Message { pid } => {
                    format!("(Workspace actorAt: {}) {}", literal(pid), code.trim())
                }
            };
            let number = {
                let mut number = 0;
                shared.changed.send_modify(|count| {
                    *count += 1;
                    number = *count;
                });
                number
            };
            *lock(&shared.state) = State::Running(number);
            tokio::spawn(Arc::clone(&shared).run(number, code, time));
            Ok(())
        });
        begun.await
    }

    async fn run(self: Arc<Self>, number: u64, code: String, time: u64) {
        let began = Instant::now();
        let session = self.session.lock().await;
        let request = Eval {
            code,
            timeout_ms: Some(time),
            loop_right: Some(self.node.tree.loop_access().word().to_owned()),
            ..Eval::default()
        };
        let mut output = String::new();
        let outcome = self.evaluate(&session, number, &request, &mut output).await;
        let ms = began.elapsed().as_millis() as u64;
        let state = self.answered(outcome, &output, ms);
        *lock(&self.running) = None;
        let mut current = lock(&self.state);
        // Of an answer that is no longer wanted nothing is left.
        if matches!(*current, State::Running(wanted) if wanted == number) {
            *current = state;
        }
        drop(current);
        self.changed.send_modify(|_| {});
    }

    async fn evaluate(
        &self,
        session: &Evaluation,
        number: u64,
        request: &Eval,
        output: &mut String,
    ) -> Result<Result<EvalAnswer, ErrorBody>, Refusal> {
        let connection = session.connection().ok_or_else(no_workspace)?;
        let mut pending = connection.send(request).map_err(|_| no_workspace())?;
        let id = pending.id.clone();
        *lock(&self.running) = Some((number, id.clone()));
        let message = loop {
            match pending.next().await.map_err(|_| no_workspace())? {
                Reply::Output(text) => output.push_str(&text),
                Reply::NeedsInput(_) => {}
                Reply::Done(message) => break message,
            }
        };
        Ok(Whole::<EvalAnswer>::read(message).body)
    }

    fn answered(
        &self,
        outcome: Result<Result<EvalAnswer, ErrorBody>, Refusal>,
        output: &str,
        ms: u64,
    ) -> State {
        let is_json = matches!(self.ask, Ask::Code { json: true });
        let told = match outcome {
            Err(refused) => return State::Failed(refused),
            Ok(told) => told,
        };
        if let Err(error) = &told
            && (error.kind == ErrorKind::Timeout
                || (error.kind == ErrorKind::EvalLimit && error.message.contains("time limit")))
        {
            return State::Failed(refusal("eval timeout"));
        }
        let value = match (told, is_json) {
            (Ok(answer), true) => Said {
                ok: true,
                value: Some(answer.text),
                error: None,
                output,
                ms,
            },
            (Ok(answer), false) => return State::Answer(format!("{}\n", answer.text).into_bytes()),
            (Err(error), true) => {
                let line = error.location.as_ref().map(|location| location.line);
                let told = json!({"class": class_of(&error), "kind": error.kind.name(),
                    "message": error.message, "line": line});
                Said {
                    ok: false,
                    value: None,
                    error: Some(told),
                    output,
                    ms,
                }
            }
            (Err(error), false) => {
                let text = format!("eval: {}: {}", class_of(&error), error.message);
                return State::Failed(refusal(text));
            }
        };
        match serde_json::to_string(&value) {
            Ok(text) => State::Answer(format!("{text}\n").into_bytes()),
            Err(_) => State::Failed(Refusal::INTERNAL),
        }
    }

    /// Stop what runs; the session goes on.
    async fn interrupt(self: Arc<Self>, number: u64) {
        let id = lock(&self.running)
            .clone()
            .filter(|(running, _)| *running == number)
            .map(|(_, id)| id);
        {
            let mut state = lock(&self.state);
            if matches!(*state, State::Running(wanted) if wanted == number) {
                *state = State::Nothing;
            }
        }
        if let (Some(id), Some(connection)) = (id, &self.connection) {
            let request = Interrupt {
                r#for: Some(id),
                handle: None,
            };
            // One that is gone runs nothing any more.
            drop(connection.ask(&request).await);
        }
    }
}

/// Kinds whose errors are of `RuntimeError`.
const RUNTIME_ERRORS: &[&str] = &[
    "actor_dead",
    "argument_error",
    "arity_mismatch",
    "block_context",
    "callback_failed",
    "class_already_exists",
    "class_not_found",
    "dispatch_error",
    "does_not_understand",
    "empty_collection",
    "empty_queue",
    "future_not_awaited",
    "immutable_value",
    "index_out_of_bounds",
    "internal_error",
    "key_error",
    "no_match",
    "no_superclass",
    "not_found",
    "process_not_found",
    "resource_error",
    "runtime_error",
    "selector_not_found",
    "timeout_error",
];

/// The class of an error. What the workspace tells beside its kind is the class of the receiver, except where an error
/// was signalled on its own class.
fn class_of(error: &ErrorBody) -> &str {
    match error.kind.name() {
        _ if error.kind == ErrorKind::CompileFailed => "CompileError",
        "signal" => error.class.as_deref().unwrap_or("Error"),
        "type_error" => "TypeError",
        "instantiation_error" | "unknown_field" => "InstantiationError",
        "erlang_exit" => "ExitError",
        "erlang_throw" => "ThrowError",
        kind if RUNTIME_ERRORS.contains(&kind) => "RuntimeError",
        _ => "Error",
    }
}

/// The time of an expression and its text.
fn limited(text: &str) -> Result<(u64, &str), Refusal> {
    let Some(rest) = text.strip_prefix(TIMEOUT_LINE) else {
        return Ok((TIME_MS, text));
    };
    let (time, code) = rest.split_once('\n').unwrap_or((rest, ""));
    let time = time
        .trim()
        .parse()
        .map_err(|_| refusal("invalid timeout: must be milliseconds"))?;
    Ok((time, code))
}

/// A read that is given up stops what it waits for.
struct Waiting {
    shared: Arc<Shared>,
    number: Option<u64>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        if let (Some(number), Ok(runtime)) = (self.number, tokio::runtime::Handle::try_current()) {
            runtime.spawn(Arc::clone(&self.shared).interrupt(number));
        }
    }
}

impl OpenFile for EvalFile {
    fn read(&mut self, _: u64, count: u32) -> ReadAnswer {
        let shared = Arc::clone(&self.shared);
        let mut changed = shared.changed.subscribe();
        ReadAnswer::Later(Box::pin(async move {
            let mut waiting = Waiting {
                shared: Arc::clone(&shared),
                number: None,
            };
            loop {
                changed.borrow_and_update();
                {
                    let mut state = lock(&shared.state);
                    match &mut *state {
                        State::Nothing => {
                            waiting.number = None;
                            return Ok(Payload::default());
                        }
                        State::Running(number) => waiting.number = Some(*number),
                        State::Answer(bytes) => {
                            waiting.number = None;
                            let end = bytes.len().min(count as usize);
                            let given: Vec<u8> = bytes.drain(..end).collect();
                            if bytes.is_empty() {
                                *state = State::Nothing;
                            }
                            return Ok(Payload::from(given));
                        }
                        State::Failed(refused) => {
                            waiting.number = None;
                            let refused = refused.clone();
                            *state = State::Nothing;
                            return Err(refused);
                        }
                    }
                }
                if changed.changed().await.is_err() {
                    return Ok(Payload::default());
                }
            }
        }))
    }

    fn write(&mut self, offset: u64, data: Payload) -> WriteAnswer {
        self.buffer.write(offset, data.as_ref())
    }

    fn commit(&mut self) -> WriteAnswer {
        self.buffer.finish()
    }

    fn set_length(&mut self, _: u64) -> Result<(), Refusal> {
        Ok(())
    }
}
