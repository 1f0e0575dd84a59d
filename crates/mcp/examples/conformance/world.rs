//! A world without a workspace, but with its questions and jobs.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use beamtalk_mcp::{Asked, Host, HostError};
use beamtalk_wire::answers::JobAnswer;
use beamtalk_wire::requests::McpCall;
use beamtalk_wire::{ErrorBody, ErrorKind, Event, Op, Operation};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, broadcast};
use tokio::task::AbortHandle;

use crate::work;

/// How long a job is kept.
const KEPT_MS: u64 = 3_600_000;
const MOMENT: &str = "2026-01-05T09:14:07Z";

/// Work that goes on without its client.
#[derive(Default)]
pub(crate) struct Job {
    name: String,
    state: RefCell<&'static str>,
    result: RefCell<Option<String>>,
    /// What it asks the client, by key.
    asked: RefCell<Map<String, Value>>,
    answered: RefCell<Map<String, Value>>,
    moved: Notify,
    task: RefCell<Option<AbortHandle>>,
}

impl Job {
    /// Ask the client, and wait until everything is answered.
    pub(crate) async fn ask(&self, asked: Map<String, Value>) -> Map<String, Value> {
        *self.asked.borrow_mut() = asked;
        *self.state.borrow_mut() = "input_required";
        while !self.asked.borrow().is_empty() {
            self.moved.notified().await;
        }
        *self.state.borrow_mut() = "working";
        self.answered.borrow().clone()
    }

    fn end(&self, state: &'static str, result: Option<String>) {
        if matches!(*self.state.borrow(), "working" | "input_required") {
            *self.state.borrow_mut() = state;
            *self.result.borrow_mut() = result;
        }
    }

    fn answer(&self) -> JobAnswer {
        let state = *self.state.borrow();
        JobAnswer {
            job: self.name.clone(),
            state: state.to_owned(),
            created: MOMENT.to_owned(),
            updated: MOMENT.to_owned(),
            ttl_ms: KEPT_MS,
            message: None,
            result: match state {
                "input_required" => Some(json!(*self.asked.borrow()).to_string()),
                _ => self.result.borrow().clone(),
            },
        }
    }
}

pub(crate) struct World {
    events: broadcast::Sender<Event>,
    questions: RefCell<HashMap<String, String>>,
    jobs: RefCell<HashMap<String, Rc<Job>>>,
    next: Cell<u64>,
}

impl Default for World {
    fn default() -> Self {
        Self {
            events: broadcast::channel(1).0,
            questions: RefCell::default(),
            jobs: RefCell::default(),
            next: Cell::new(0),
        }
    }
}

fn missing(what: &str) -> HostError {
    Box::new(ErrorBody::new(
        ErrorKind::NotFound,
        format!("there is no such {what}"),
    ))
}

fn no_workspace() -> HostError {
    Box::new(ErrorBody::new(ErrorKind::NoWorkspace, "none runs"))
}

impl World {
    fn name(&self, prefix: &str) -> String {
        self.next.set(self.next.get() + 1);
        format!("{prefix}_{:022}", self.next.get())
    }

    fn job(&self, name: &Value) -> Result<Rc<Job>, HostError> {
        let name = name.as_str().unwrap_or_default();
        self.jobs
            .borrow()
            .get(name)
            .cloned()
            .ok_or_else(|| missing("job"))
    }

    fn perform(&self, op: Op, request: &Value) -> Result<Value, HostError> {
        let text = |name: &str| request[name].as_str().unwrap_or_default().to_owned();
        match op {
            Op::QuestionKeep => {
                let state = self.name("rq");
                self.questions.borrow_mut().insert(state.clone(), text("text"));
                Ok(json!({ "state": state }))
            }
            Op::QuestionTake => {
                let kept = self.questions.borrow_mut().remove(&text("state"));
                Ok(json!({"text": kept.ok_or_else(|| missing("question"))?}))
            }
            Op::JobStart => {
                let job = Rc::new(Job {
                    name: self.name("tk"),
                    state: RefCell::new("working"),
                    ..Job::default()
                });
                self.jobs.borrow_mut().insert(job.name.clone(), job.clone());
                let (worker, order) = (job.clone(), text("order"));
                let task = tokio::task::spawn_local(async move {
                    match work::work(&worker, &order).await {
                        Ok(result) => worker.end("completed", Some(result.to_string())),
                        Err(reason) => worker.end("failed", Some(reason)),
                    }
                });
                *job.task.borrow_mut() = Some(task.abort_handle());
                Ok(json!(job.answer()))
            }
            Op::JobGet => Ok(json!(self.job(&request["job"])?.answer())),
            Op::JobCancel => {
                let job = self.job(&request["job"])?;
                job.end("cancelled", None);
                if let Some(task) = job.task.borrow_mut().take() {
                    task.abort();
                }
                Ok(json!(job.answer()))
            }
            _ => Err(no_workspace()),
        }
    }
}

impl Host for World {
    async fn ask<O: Operation>(&self, request: &O) -> Result<Asked<O::Answer>, HostError> {
        let request = serde_json::to_value(request).unwrap_or_default();
        let answer = serde_json::from_value(self.perform(O::OP, &request)?);
        Ok(Asked {
            answer: answer.map_err(|_| no_workspace())?,
            output: String::new(),
            warnings: Vec::new(),
            is_truncated: false,
        })
    }

    async fn answer_job(&self, job: &str, answers: &Map<String, Value>) -> Result<(), HostError> {
        let job = self.job(&json!(job))?;
        for (key, answer) in answers {
            if job.asked.borrow_mut().remove(key).is_some() {
                job.answered.borrow_mut().insert(key.clone(), answer.clone());
            }
        }
        job.moved.notify_one();
        Ok(())
    }

    fn is_connected(&self) -> bool {
        true
    }

    async fn record(&self, _: McpCall) {}

    fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }
}
