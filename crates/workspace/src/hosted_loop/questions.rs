//! What the image asks of the loop.

use std::rc::Rc;
use std::time::Duration;

use beamtalk_loop::core::Operation;
use beamtalk_mcp::LoopRight;
use beamtalk_wire::answers::LoopRunAnswer;
use beamtalk_wire::requests::LoopRun;
use beamtalk_wire::{ErrorBody, ErrorKind};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::Hosted;
use crate::workspace::Workspace;

/// How long a process may take to become ready for one who waits.
const READY: Duration = Duration::from_mins(5);

/// A question, as the image sends it.
#[derive(Debug, Deserialize)]
#[serde(tag = "verb", rename_all = "kebab-case")]
enum Question {
    IsRunning,
    Status,
    Process {
        name: String,
    },
    Operate {
        name: String,
        operation: Operation,
    },
    WaitReady {
        name: String,
    },
    Tail {
        name: String,
        count: usize,
    },
    Run {
        workflow: String,
        #[serde(default)]
        changed: Vec<String>,
    },
    Await {
        run: u64,
        ms: Option<u64>,
    },
    State {
        key: Option<String>,
    },
    Post {
        event: String,
        value: String,
    },
    Graph,
    Stop,
}

impl Question {
    /// The right that it needs.
    fn right(&self) -> LoopRight {
        match self {
            Self::IsRunning => LoopRight::None,
            Self::Status
            | Self::Process { .. }
            | Self::WaitReady { .. }
            | Self::Tail { .. }
            | Self::Await { .. }
            | Self::State { .. }
            | Self::Graph => LoopRight::Observe,
            Self::Post { .. } => LoopRight::Post,
            Self::Operate { .. } | Self::Run { .. } | Self::Stop => LoopRight::Control,
        }
    }
}

/// Answer a question of somebody with a right, or with all of them.
pub(crate) async fn answer(
    workspace: &Rc<Workspace>,
    question: Value,
    right: Option<LoopRight>,
) -> Result<Value, ErrorBody> {
    let question: Question = serde_json::from_value(question)
        .map_err(|cause| ErrorBody::new(ErrorKind::InvalidParameter, cause.to_string()))?;
    let needed = question.right();
    if let Some(right) = right.filter(|right| *right < needed) {
        let text = format!("this needs the right '{needed}' on the loop");
        let error = ErrorBody::new("loop_forbidden", text).detail("right", right.name());
        return Err(error.hint("the user gives it in config.toml: [mcp] loop"));
    }
    let place = &workspace.hosted_loop;
    let running = place.running();
    let hosted = match question {
        Question::IsRunning => return Ok(json!({"running": running.is_some()})),
        // A loop that has ended leaves the endings of its runs behind.
        Question::Await { run, ms } => return wait_for_run(workspace, run, ms).await,
        _ => running.ok_or_else(not_running)?,
    };
    let handle = &hosted.handle;
    match question {
        Question::Status => Ok(json!({"status": handle.status().await.map_err(|_| not_running())?})),
        Question::Process { name } => Ok(json!({"process": process(&hosted, &name).await?})),
        Question::Operate { name, operation } => {
            process(&hosted, &name).await?;
            let done = handle.operate(name.clone(), operation).await;
            done.map_err(|text| ErrorBody::new("loop_failed", text))?;
            if operation != Operation::Stop {
                return ready(&hosted, &name).await;
            }
            Ok(json!({"process": process(&hosted, &name).await?}))
        }
        Question::WaitReady { name } => ready(&hosted, &name).await,
        Question::Tail { name, count } => {
            let lines = handle.tail(&name, count).ok_or_else(|| unknown_process(&name))?;
            let lines: Vec<String> = lines.into_iter().map(|said| said.line).collect();
            Ok(json!({"lines": lines}))
        }
        Question::Run { workflow, changed } => {
            if !handle.config().workflow.contains_key(&workflow) {
                let text = format!("no workflow named '{workflow}'");
                return Err(ErrorBody::new("loop_unknown_workflow", text));
            }
            let (_, ended) = handle
                .request(workflow, changed)
                .await
                .map_err(|_| not_running())?;
            let (tell, ending) = watch::channel(None);
            tokio::task::spawn_local(async move {
                let ended = ended.await.unwrap_or_else(|_| Err("the loop ended".to_owned()));
                drop(tell.send(Some(ended)));
            });
            Ok(json!({"run": place.remember(ending)}))
        }
        Question::State { key } => Ok(json!({"state": handle.state(key).await.map_err(|_| not_running())?})),
        Question::Post { event, value } => match handle.post(&event, &value).await {
            Ok(changed) => Ok(json!({"changed": changed})),
            Err(refused) if refused.status == 404 => Err(ErrorBody::new(
                "loop_unknown_event",
                format!("no event named '{event}'"),
            )),
            Err(refused) => {
                let text = format!("the event '{event}' was rejected: {}", refused.kind);
                Err(ErrorBody::new("loop_rejected", text).detail("status", refused.status))
            }
        },
        Question::Graph => Ok(json!({"text": beamtalk_loop::graph_text(&handle.config())})),
        Question::Stop => {
            let _ = hosted.stops.send("stop");
            let mut ended = hosted.ended.clone();
            drop(ended.wait_for(|ended| *ended).await);
            Ok(json!({}))
        }
        Question::IsRunning | Question::Await { .. } => Ok(json!({})),
    }
}

/// Run a workflow for a client; its end is waited for if they want.
pub(crate) async fn run(workspace: &Rc<Workspace>, run: &LoopRun) -> Result<LoopRunAnswer, ErrorBody> {
    let changed = run.changed.clone().unwrap_or_default();
    let question = json!({"verb": "run", "workflow": run.workflow, "changed": changed});
    let number = answer(workspace, question, None).await?["run"]
        .as_u64()
        .unwrap_or(0);
    if run.wait != Some(true) {
        return Ok(LoopRunAnswer { failure: None });
    }
    let ended = wait_for_run(workspace, number, None).await?;
    Ok(LoopRunAnswer {
        failure: ended["error"].as_str().map(str::to_owned),
    })
}

/// The state of one process.
async fn process(hosted: &Hosted, name: &str) -> Result<Value, ErrorBody> {
    let status = hosted.handle.status().await.map_err(|_| not_running())?;
    let found = status.processes.into_iter().find(|process| process.name == name);
    found
        .map(|process| json!(process))
        .ok_or_else(|| unknown_process(name))
}

/// Wait until a process is ready, or will not be. Those without a probe need only run.
async fn ready(hosted: &Hosted, name: &str) -> Result<Value, ErrorBody> {
    let mut ended = hosted.ended.clone();
    let mut revision = hosted.handle.revision();
    let waiting = async {
        loop {
            revision.borrow_and_update();
            let process = process(hosted, name).await?;
            match process["state"].as_str().unwrap_or_default() {
                "ready" | "running" => return Ok(json!({"process": process})),
                state @ ("stopped" | "exited" | "unhealthy") => {
                    let text = format!("process '{name}' is {state}");
                    return Err(ErrorBody::new("loop_failed", text));
                }
                _ => {}
            }
            if revision.changed().await.is_err() {
                return Err(not_running());
            }
        }
    };
    tokio::select! {
        answer = waiting => answer,
        _ = ended.wait_for(|ended| *ended) => Err(not_running()),
        () = tokio::time::sleep(READY) => {
            let text = format!("process '{name}' did not become ready in {} s", READY.as_secs());
            Err(ErrorBody::new("loop_timeout", text))
        }
    }
}

async fn wait_for_run(workspace: &Rc<Workspace>, run: u64, ms: Option<u64>) -> Result<Value, ErrorBody> {
    let found = workspace.hosted_loop.runs.borrow().get(&run).cloned();
    let mut ending = found.ok_or_else(|| ErrorBody::new("loop_failed", "this run is not remembered"))?;
    let limit = Duration::from_millis(ms.unwrap_or(u64::MAX >> 20));
    match tokio::time::timeout(limit, ending.wait_for(Option::is_some)).await {
        Err(_) => Ok(json!({"done": false})),
        Ok(Err(_)) => Ok(json!({"done": true, "error": "the loop ended"})),
        Ok(Ok(ended)) => {
            let error = ended.as_ref().and_then(|ended| ended.as_ref().err());
            Ok(json!({"done": true, "error": error}))
        }
    }
}

fn not_running() -> ErrorBody {
    ErrorBody::new("loop_not_running", "no loop runs in this workspace")
        .hint("start one with: beamtalk loop run --workspace")
}

fn unknown_process(name: &str) -> ErrorBody {
    ErrorBody::new("loop_unknown_process", format!("no process named '{name}'"))
}
