//! The hosted loop as files: the ops `tree-…` here, and `loop/` of the agents' tree, which asks them.

use std::rc::Rc;

use beamtalk_loop::core::{Operation, Status};
use beamtalk_wire::answers::{Nothing, TreeListAnswer, TreeReadAnswer, TreeWriteAnswer};
use beamtalk_wire::file_name::{decode, encode};
use beamtalk_wire::requests::{TreeEncoding, TreeFollow, TreeList, TreeRead, TreeWrite};
use beamtalk_wire::{ErrorBody, ErrorKind};
use serde::Serialize;
use tokio::sync::broadcast::error::RecvError;

use super::Hosted;
use crate::ops::Sink;
use crate::workspace::Workspace;

/// As much of a file as one answer carries.
const PIECE: usize = 256 * 1024;
/// Lines of a process that its file shows.
const LINES: usize = 1_000;
/// The longest text a write may bring.
const WRITTEN: usize = 1 << 20;

const TOP: &[&str] = &[
    "ctl",
    "events",
    "follow",
    "graph.json",
    "processes",
    "runs",
    "state",
    "status",
    "workflows",
];
const PROCESS: &[&str] = &["ctl", "info", "output", "output.follow", "pid", "state"];
const WORKFLOW: &[&str] = &["ctl", "last"];

fn fault(text: impl Into<String>) -> ErrorBody {
    ErrorBody::new(ErrorKind::TreeError, text)
}

fn not_found() -> ErrorBody {
    fault("not found")
}

fn not_running<T>(_: T) -> ErrorBody {
    fault("loop not running")
}

/// A place below `loop/`.
#[derive(Debug, PartialEq, Eq)]
enum Place {
    Top,
    Of(&'static str),
    Process(String),
    OfProcess(String, &'static str),
    Workflow(String),
    OfWorkflow(String, &'static str),
    State(String),
    Event(String),
}

fn known(table: &'static [&'static str], name: &str) -> Option<&'static str> {
    table.iter().find(|known| **known == name).copied()
}

impl Place {
    fn parse(path: &str) -> Option<Self> {
        let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
        Some(match parts.as_slice() {
            ["loop"] => Self::Top,
            ["loop", name] => Self::Of(known(TOP, name)?),
            ["loop", "processes", process] => Self::Process(decode(process)?),
            ["loop", "processes", process, file] => Self::OfProcess(decode(process)?, known(PROCESS, file)?),
            ["loop", "workflows", workflow] => Self::Workflow(decode(workflow)?),
            ["loop", "workflows", workflow, file] => {
                Self::OfWorkflow(decode(workflow)?, known(WORKFLOW, file)?)
            }
            ["loop", "state", key] => Self::State(decode(key)?),
            ["loop", "events", event] => Self::Event(decode(event)?),
            _ => return None,
        })
    }
}

fn hosted(workspace: &Workspace, path: &str) -> Result<(Rc<Hosted>, Place), ErrorBody> {
    let place = Place::parse(path).ok_or_else(not_found)?;
    let hosted = workspace.hosted_loop.running().ok_or_else(|| not_running(()))?;
    let config = hosted.handle.config();
    let is_there = match &place {
        Place::Process(name) | Place::OfProcess(name, _) => config.process.contains_key(name),
        Place::Workflow(name) | Place::OfWorkflow(name, _) => config.workflow.contains_key(name),
        Place::Event(name) => config.event.contains_key(name),
        Place::Top | Place::Of(_) | Place::State(_) => true,
    };
    if is_there {
        Ok((hosted, place))
    } else {
        Err(not_found())
    }
}

pub(crate) async fn list(workspace: &Workspace, request: &TreeList) -> Result<TreeListAnswer, ErrorBody> {
    let (hosted, place) = hosted(workspace, &request.path)?;
    let config = hosted.handle.config();
    let fixed = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let mut names: Vec<String> = match &place {
        Place::Top => fixed(TOP),
        Place::Of("processes") => config.process.keys().map(|name| encode(name)).collect(),
        Place::Of("workflows") => config.workflow.keys().map(|name| encode(name)).collect(),
        Place::Of("events") => config.event.keys().map(|name| encode(name)).collect(),
        Place::Of("state") => {
            let state = hosted.handle.state(None).await.map_err(not_running)?;
            state.keys().map(|key| encode(key)).collect()
        }
        Place::Process(_) => fixed(PROCESS),
        Place::Workflow(_) => fixed(WORKFLOW),
        _ => return Err(fault("walk in non-directory")),
    };
    names.sort();
    Ok(TreeListAnswer { names })
}

fn json(value: &impl Serialize) -> Result<String, ErrorBody> {
    serde_json::to_string(value)
        .map(|text| text + "\n")
        .map_err(|cause| ErrorBody::new(ErrorKind::InternalError, cause.to_string()))
}

async fn content(hosted: &Hosted, place: &Place) -> Result<String, ErrorBody> {
    let handle = &hosted.handle;
    let status = async || -> Result<Status, ErrorBody> { handle.status().await.map_err(not_running) };
    match place {
        Place::Of("status") => json(&status().await?),
        Place::Of("runs") => Ok(hosted.told.runs()),
        Place::Of("graph.json") => json(&beamtalk_loop::graph(&handle.config())),
        Place::Of("ctl") | Place::OfProcess(_, "ctl") | Place::OfWorkflow(_, "ctl") => Ok(String::new()),
        Place::OfProcess(name, "output") => {
            let lines = handle.tail(name, LINES).ok_or_else(not_found)?;
            Ok(lines.into_iter().map(|said| said.line + "\n").collect())
        }
        Place::OfProcess(name, file @ ("state" | "pid" | "info")) => {
            let processes = status().await?.processes;
            let process = processes.into_iter().find(|process| process.name == *name);
            let process = process.ok_or_else(not_found)?;
            match *file {
                "state" => Ok(process.state + "\n"),
                "pid" => Ok(process.pid.map_or_else(String::new, |pid| format!("{pid}\n"))),
                _ => json(&process),
            }
        }
        Place::OfWorkflow(name, "last") => {
            let workflows = status().await?.workflows;
            let workflow = workflows.into_iter().find(|workflow| workflow.name == *name);
            json(&workflow.ok_or_else(not_found)?.last)
        }
        Place::State(key) => {
            let state = handle.state(Some(key.clone())).await.map_err(not_running)?;
            json(state.get(key).ok_or_else(not_found)?)
        }
        Place::Of("follow") | Place::OfProcess(_, "output.follow") => Err(fault("not supported")),
        Place::Event(_) => Err(fault("permission denied")),
        _ => Err(fault("is a directory")),
    }
}

pub(crate) async fn read(workspace: &Workspace, request: &TreeRead) -> Result<TreeReadAnswer, ErrorBody> {
    let (hosted, place) = hosted(workspace, &request.path)?;
    let content = content(&hosted, &place).await?;
    let is_text = request.encoding.unwrap_or_default() == TreeEncoding::Text;
    let start = usize::try_from(request.offset.unwrap_or(0)).unwrap_or(usize::MAX);
    let start = start.min(content.len());
    let mut end = content.len().min(start.saturating_add(PIECE));
    // A letter is not cut in two.
    while is_text && end > start && !content.is_char_boundary(end) {
        end -= 1;
    }
    let piece = content.as_bytes().get(start..end).unwrap_or_default();
    Ok(TreeReadAnswer {
        data: if is_text {
            String::from_utf8_lossy(piece).into_owned()
        } else {
            beamtalk_storage::base64(piece)
        },
        end: end == content.len(),
    })
}

/// Hand on what a file gains until the loop ends.
pub(crate) async fn follow(
    workspace: &Workspace,
    request: &TreeFollow,
    sink: &Sink,
) -> Result<Nothing, ErrorBody> {
    let (hosted, place) = hosted(workspace, &request.path)?;
    let command = request.command.as_deref().unwrap_or_default().trim();
    let mut ended = hosted.ended.clone();
    let following = async {
        match &place {
            Place::Of("follow") => follow_told(&hosted, command, sink).await,
            Place::OfProcess(name, "output.follow") => follow_lines(&hosted, name, command, sink).await,
            _ => Err(fault("not supported")),
        }
    };
    tokio::select! {
        biased;
        outcome = following => outcome,
        _ = ended.wait_for(|ended| *ended) => Ok(Nothing {}),
    }
}

async fn follow_told(hosted: &Hosted, command: &str, sink: &Sink) -> Result<Nothing, ErrorBody> {
    let mut last = match command.strip_prefix("since ") {
        Some(number) => number.trim().parse().map_err(|_| fault("unknown command"))?,
        None if command.is_empty() => hosted.told.last(),
        None => return Err(fault("unknown command")),
    };
    let mut grew = hosted.told.grew();
    loop {
        grew.borrow_and_update();
        // What is forgotten by now shows in the numbers.
        let (found, _) = hosted.told.after(last);
        for (number, line) in found {
            sink.output(&line).await;
            last = number;
        }
        if grew.changed().await.is_err() {
            return Ok(Nothing {});
        }
    }
}

async fn follow_lines(hosted: &Hosted, name: &str, command: &str, sink: &Sink) -> Result<Nothing, ErrorBody> {
    if !command.is_empty() {
        return Err(fault("unknown command"));
    }
    let (_, mut lines) = hosted.handle.follow(name, 0).ok_or_else(not_found)?;
    loop {
        match lines.recv().await {
            Ok(said) => sink.output(&(said.line + "\n")).await,
            Err(RecvError::Lagged(_)) => return Err(fault("output trimmed")),
            Err(RecvError::Closed) => return Ok(Nothing {}),
        }
    }
}

pub(crate) async fn write(workspace: &Workspace, request: &TreeWrite) -> Result<TreeWriteAnswer, ErrorBody> {
    if request.data.len() > WRITTEN {
        return Err(fault("too large"));
    }
    let (hosted, place) = hosted(workspace, &request.path)?;
    let usage = match &place {
        Place::Of("ctl") => "usage: stop",
        Place::OfProcess(_, "ctl") => "usage: start | stop | restart",
        Place::OfWorkflow(_, "ctl") => "usage: run",
        Place::Event(name) => return post(&hosted, name, &request.data).await,
        _ => return Err(fault("permission denied")),
    };
    let mut answer = String::new();
    for line in request.data.lines() {
        answer.push_str(&match (&place, line.trim()) {
            (_, "") => return Err(fault(usage)),
            (Place::OfProcess(name, _), "start") => operate(&hosted, name, Operation::Start).await?,
            (Place::OfProcess(name, _), "stop") => operate(&hosted, name, Operation::Stop).await?,
            (Place::OfProcess(name, _), "restart") => operate(&hosted, name, Operation::Restart).await?,
            (Place::OfWorkflow(name, _), "run") => {
                let queued = hosted.handle.request(name.clone(), Vec::new()).await;
                let (number, _) = queued.map_err(not_running)?;
                format!("{number}\n")
            }
            (Place::Of(_), "stop") => {
                let _ = hosted.stops.send("stop");
                let mut ended = hosted.ended.clone();
                drop(ended.wait_for(|ended| *ended).await);
                String::new()
            }
            _ => return Err(fault("unknown command")),
        });
    }
    if request.data.is_empty() {
        return Err(fault(usage));
    }
    Ok(TreeWriteAnswer { answer })
}

async fn operate(hosted: &Hosted, name: &str, operation: Operation) -> Result<String, ErrorBody> {
    let done = hosted.handle.operate(name.to_owned(), operation).await;
    done.map_err(|text| fault(format!("process failed: {text}")))?;
    Ok(String::new())
}

async fn post(hosted: &Hosted, event: &str, data: &str) -> Result<TreeWriteAnswer, ErrorBody> {
    // `echo` ends what it writes; the end of the line is no part of the value.
    let value = data.strip_suffix('\n').unwrap_or(data);
    match hosted.handle.post(event, value).await {
        Ok(_) => Ok(TreeWriteAnswer {
            answer: String::new(),
        }),
        Err(refused) => Err(fault(format!("event rejected: {}", refused.kind))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A path below `loop/` leads to one place or to none, whatever is written in it.
    #[test]
    fn paths_are_places() {
        assert_eq!(Place::parse("loop"), Some(Place::Top));
        assert_eq!(Place::parse("/loop/status"), Some(Place::Of("status")));
        assert_eq!(
            Place::parse("loop/state/a%2Fb"),
            Some(Place::State("a/b".to_owned()))
        );
        assert_eq!(
            Place::parse("loop/processes/web/pid"),
            Some(Place::OfProcess("web".to_owned(), "pid"))
        );
        for path in [
            "",
            "agents",
            "loop/nope",
            "loop/status/x",
            "loop/../agents",
            "loop/state/%zz",
            "loop/processes/web/pid/x",
        ] {
            assert_eq!(Place::parse(path), None, "{path}");
        }
    }
}
