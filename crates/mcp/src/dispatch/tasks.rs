//! Long work: a call that is handed to the daemon and asked for later, by whichever process the client speaks through.

use std::rc::Rc;

use beamtalk_wire::answers::JobAnswer;
use beamtalk_wire::requests;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::calls::{self, Outcome};
use super::text;
use crate::capabilities::{Client, Era, TASKS};
use crate::confirmation::Effect;
use crate::host::{Host, HostError};
use crate::message::Fault;
use crate::progress::Progress;
use crate::session::{Call, Outgoing, Session};
use crate::settings::Settings;
use crate::tools::Tool;

/// How long an answer is waited for before a task is handed out.
const FIRST_WAIT_MS: u64 = 2_000;
/// How often a client should ask.
const POLL_MS: u64 = 1_000;

/// A call as it is handed to the daemon.
#[derive(Serialize, Deserialize)]
pub(crate) struct Order {
    pub(super) tool: String,
    pub(super) arguments: Map<String, Value>,
    settings: Settings,
    /// What the person said yes to before.
    pub(super) approved: Option<Effect>,
    client: String,
    trace: Option<String>,
}

/// Hand a call to the daemon; what is done soon is answered at once.
pub(super) async fn order<H: Host>(
    session: &Rc<Session<H>>,
    call: &Call,
    tool: &'static Tool,
    given: &Map<String, Value>,
    approved: Option<Effect>,
) -> Result<Outcome, Fault> {
    let trace = call
        .params
        .get("_meta")
        .and_then(|meta| meta["traceparent"].as_str());
    let order = Order {
        tool: tool.name.to_owned(),
        arguments: given.clone(),
        settings: (*session.settings).clone(),
        approved,
        client: call.client.name.clone(),
        trace: trace.map(str::to_owned),
    };
    let order = serde_json::to_string(&order).unwrap_or_default();
    let job = match start(session, order).await {
        Ok(job) => job,
        Err(error) => return Ok(Outcome::Error(error)),
    };
    Ok(match done(&job) {
        Some(result) => {
            if tool.name == "test" {
                keep_tests(session, &result);
            }
            Outcome::Task(result)
        }
        None => {
            if tool.name == "test" {
                session.common.test_tasks.borrow_mut().insert(job.job.clone());
            }
            Outcome::Task(handed_out(&job))
        }
    })
}

/// Hand work to the daemon, and wait a while for its end.
async fn start<H: Host>(session: &Rc<Session<H>>, order: String) -> Result<JobAnswer, HostError> {
    let started = session.host.ask(&requests::JobStart { order }).await?.answer;
    // Who gives the call up before it is a task gives up its work, too.
    let mut unwanted = Unwanted {
        session: session.clone(),
        job: Some(started.job.clone()),
    };
    let first = requests::JobGet {
        job: started.job,
        wait_ms: Some(FIRST_WAIT_MS),
    };
    let job = session.host.ask(&first).await?.answer;
    unwanted.job = None;
    Ok(job)
}

/// The result of work that is handed to the daemon as it is: what it gave, or the task that it is now.
pub(crate) async fn start_work<H: Host>(session: &Rc<Session<H>>, order: String) -> Result<Value, HostError> {
    let job = start(session, order).await?;
    Ok(done(&job).unwrap_or_else(|| handed_out(&job)))
}

fn handed_out(job: &JobAnswer) -> Value {
    let mut task = shown(job);
    task["resultType"] = "task".into();
    task
}

/// The tests of a task are the last ones, for who ordered them.
fn keep_tests<H: Host>(session: &Session<H>, result: &Value) {
    if let Some(tests) = result.get("structuredContent") {
        *session.common.last_tests.borrow_mut() = Some(tests.clone());
        session.common.own_changes.changed("beamtalk://tests/last");
    }
}

struct Unwanted<H: Host> {
    session: Rc<Session<H>>,
    job: Option<String>,
}

impl<H: Host> Drop for Unwanted<H> {
    fn drop(&mut self) {
        if let Some(job) = self.job.take() {
            let host = self.session.host.clone();
            tokio::task::spawn_local(async move { drop(host.ask(&requests::JobCancel { job }).await) });
        }
    }
}

fn done(job: &JobAnswer) -> Option<Value> {
    let result = job.result.as_deref().filter(|_| job.state == "completed")?;
    serde_json::from_str(result).ok()
}

/// A task as a client sees it.
fn shown(job: &JobAnswer) -> Value {
    let mut task = json!({
        "taskId": job.job,
        "status": job.state,
        "createdAt": job.created,
        "lastUpdatedAt": job.updated,
        "ttlMs": job.ttl_ms,
        "pollIntervalMs": POLL_MS,
    });
    if let Some(message) = &job.message {
        task["statusMessage"] = message.as_str().into();
    }
    task
}

/// The task that a request names, for who made it; to everybody else there is none.
fn named(call: &Call) -> Result<String, Fault> {
    if !call.client.has_tasks {
        let required = json!({"extensions": { TASKS: {} }});
        return Err(Fault::capability(
            format!("tasks need the extension \"{TASKS}\" in clientCapabilities"),
            required,
        ));
    }
    Ok(text(&call.params, "taskId")?.to_owned())
}

fn unknown() -> Fault {
    Fault::params("there is no such task; it is unknown, over, or another's")
}

pub(super) async fn get<H: Host>(session: &Session<H>, call: &Call) -> Result<Value, Fault> {
    let job = named(call)?;
    let request = requests::JobGet { job, wait_ms: None };
    let job = session.host.ask(&request).await.map_err(|_| unknown())?.answer;
    let mut task = shown(&job);
    match job.state.as_str() {
        "completed" => {
            let result = done(&job).unwrap_or_default();
            if session.common.test_tasks.borrow_mut().remove(&job.job) {
                keep_tests(session, &result);
            }
            task["result"] = result;
        }
        "failed" => {
            let message = job.result.as_deref().unwrap_or("the work was lost");
            task["error"] = json!({"code": -32603, "message": message});
        }
        // What the work asks the client stands where its result will.
        "input_required" => {
            let asked = job
                .result
                .as_deref()
                .and_then(|asked| serde_json::from_str(asked).ok());
            task["inputRequests"] = asked.unwrap_or_else(|| json!({}));
        }
        _ => {}
    }
    Ok(task)
}

pub(super) async fn update<H: Host>(session: &Session<H>, call: &Call) -> Result<Value, Fault> {
    let job = named(call)?;
    let Some(Value::Object(answers)) = call.params.get("inputResponses") else {
        return Err(Fault::params("params.inputResponses must be an object"));
    };
    session
        .host
        .answer_job(&job, answers)
        .await
        .map_err(|_| unknown())?;
    Ok(json!({}))
}

pub(super) async fn cancel<H: Host>(session: &Session<H>, call: &Call) -> Result<Value, Fault> {
    let job = named(call)?;
    let request = requests::JobCancel { job };
    session.host.ask(&request).await.map_err(|_| unknown())?;
    Ok(json!({}))
}

/// Do the work of a task in the daemon that keeps it: the result of the call, as JSON.
pub async fn work<H: Host>(
    host: Rc<H>,
    order: &str,
    task: &str,
    progress: &Progress,
) -> Result<String, String> {
    let order: Order = serde_json::from_str(order).map_err(|cause| cause.to_string())?;
    let (outgoing, _nobody) = Outgoing::new(host.secrets());
    let session = Session::new(host, Rc::new(order.settings.clone()), outgoing.clone());
    let call = Call {
        id: Value::Null,
        method: "tools/call".to_owned(),
        params: match &order.trace {
            Some(trace) => Map::from_iter([("_meta".to_owned(), json!({ "traceparent": trace }))]),
            None => Map::new(),
        },
        era: Era::Modern,
        // Who could be asked was asked before.
        client: Rc::new(Client {
            can_be_asked: true,
            has_tasks: false,
            name: order.client.clone(),
        }),
        outgoing,
        task: Some(task.to_owned()),
    };
    Ok(calls::work(&session, &call, order, progress).await.to_string())
}
