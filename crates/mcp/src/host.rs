//! What a host answers for: the workspace behind its protocol, and what needs none.

use std::future::Future;

use beamtalk_wire::answers::{Capabilities, Diagnostic, Warning};
use beamtalk_wire::requests::{Describe, JobGet, McpCall};
use beamtalk_wire::{Channel, ErrorBody, ErrorKind, Event, Operation};
use serde_json::{Map, Value};
use tokio::sync::broadcast;

use crate::secrets::Secrets;

/// The answer to an operation with what came before and beside it.
#[derive(Clone, Debug)]
pub struct Asked<A> {
    pub answer: A,
    pub output: String,
    pub warnings: Vec<Warning>,
    pub is_truncated: bool,
}

/// Why the host could not do it.
pub type HostError = Box<ErrorBody>;

/// A place in the built-in documentation.
#[derive(Clone, Debug, PartialEq)]
pub struct DocHit {
    pub title: String,
    /// `topic`, `class`, `method`, `example` or `error`.
    pub kind: String,
    pub uri: String,
    pub excerpt: String,
    pub score: u64,
}

/// What may be done to the loop of the project.
#[derive(Clone, Debug, PartialEq)]
pub enum LoopCommand {
    Status,
    Graph,
    State { key: Option<String> },
    Output { process: String, lines: u64 },
    Post { event: String, value: String },
    Control { process: String, command: String },
}

/// What may be done in the agents' file tree.
#[derive(Clone, Debug, PartialEq)]
pub enum TreeAct {
    /// Names, one in a line.
    List(String),
    Read(String),
    Write {
        path: String,
        text: String,
    },
    /// Write, then read the answer from the same file.
    Ask {
        path: String,
        text: String,
    },
}

impl TreeAct {
    pub fn path(&self) -> &str {
        match self {
            TreeAct::List(path) | TreeAct::Read(path) => path,
            TreeAct::Write { path, .. } | TreeAct::Ask { path, .. } => path,
        }
    }
}

/// A package of the project.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PackageRow {
    pub name: String,
    pub version: String,
    /// Where it comes from: `project`, `built in`, a path or a repository.
    pub source: String,
    pub dependencies: Vec<String>,
}

/// A class of a package: name, superclass, documentation.
pub type PackageClass = (String, Option<String>, Option<String>);

/// A program that is run in a sandbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Program {
    /// The program that reads it.
    pub interpreter: &'static str,
    pub code: String,
    /// A profile.
    pub sandbox: String,
    /// The longest it may take.
    pub seconds: u64,
}

/// The world as the server sees it. Dropping a future that waits for an evaluation interrupts it.
///
/// A host that says nothing else has no documentation, no project, no loop and no agents. What keeps a promise (what is
/// secret, what was done) has no answer by default: nobody forgets it.
pub trait Host: 'static {
    /// Perform an operation in the workspace. One that reads is tried again when the connection was lost.
    fn ask<O: Operation>(&self, request: &O) -> impl Future<Output = Result<Asked<O::Answer>, HostError>>;

    /// Whether a workspace can be asked without starting one.
    fn is_connected(&self) -> bool;

    /// Events of the workspace, while there is one.
    fn events(&self) -> broadcast::Receiver<Event>;

    /// Listen to these channels and to the state of these actors too, from now on: when this ends what happens there
    /// is told, if a workspace runs. Says whether one was found again, so that anything may have changed meanwhile.
    fn watch(&self, _channels: &[Channel], _actors: &[String]) -> impl Future<Output = bool> {
        async { false }
    }

    /// Write down that a tool was called, if there is a workspace.
    fn record(&self, call: McpCall) -> impl Future<Output = ()>;

    /// Hand a client's answers to work that asked it; an error where there is no such work. None of the workspace's asks.
    fn answer_job(&self, job: &str, _: &Map<String, Value>) -> impl Future<Output = Result<(), HostError>> {
        let request = JobGet {
            job: job.to_owned(),
            wait_ms: None,
        };
        async move { self.ask(&request).await.map(drop) }
    }

    /// What code may use in the workspace, which does not change as long as it runs.
    fn capabilities(&self) -> impl Future<Output = Option<Capabilities>> {
        async { Some(self.ask(&Describe {}).await.ok()?.answer.capabilities) }
    }

    /// What must never be sent.
    fn secrets(&self) -> Secrets {
        Secrets::default()
    }

    /// The built-in documentation.
    fn search_docs(&self, _query: &str, _kind: Option<&str>, _limit: usize) -> Vec<DocHit> {
        Vec::new()
    }
    /// A page, or a class of the library, as Markdown.
    fn doc(&self, _topic: &str, _selector: Option<&str>) -> Option<String> {
        None
    }
    /// The names of the pages.
    fn doc_topics(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    /// Check the files of the project, or one of them.
    fn lint(&self, _path: Option<&str>) -> impl Future<Output = Result<Vec<Diagnostic>, HostError>> {
        async { Ok(Vec::new()) }
    }

    /// How many expressions of these files have a type, and how many there are.
    fn type_coverage(&self, _path: Option<&str>) -> impl Future<Output = Result<(u64, u64), HostError>> {
        async { Ok((0, 0)) }
    }

    /// The packages of the project: itself, what it depends on, the library.
    fn packages(&self) -> impl Future<Output = Result<Vec<PackageRow>, HostError>> {
        async { Ok(Vec::new()) }
    }

    /// The classes of a package; `None` where there is no such package.
    fn package_classes(
        &self,
        _package: &str,
    ) -> impl Future<Output = Result<Option<Vec<PackageClass>>, HostError>> {
        async { Ok(None) }
    }

    /// Run a program in a sandbox: what it said, and how it ended.
    fn execute(&self, _program: Program) -> impl Future<Output = Result<(String, i64), HostError>> {
        async { Err(failure("agents_unavailable", "there are no agents here")) }
    }

    /// Ask the loop of the project.
    fn loop_command(&self, _command: LoopCommand) -> impl Future<Output = Result<Value, HostError>> {
        async { Err(failure("loop_not_running", "there is no loop here")) }
    }

    /// Do something in the agents' file tree, with the caller's level.
    fn tree(&self, _act: TreeAct) -> impl Future<Output = Result<String, HostError>> {
        async { Err(failure("agents_unavailable", "there are no agents here")) }
    }

    /// The agent session that the client is, if it is one.
    fn own_session(&self) -> Option<String> {
        None
    }

    /// The file of the project that defines a class, if it may be named.
    fn file_defining(&self, _class: &str) -> Option<String> {
        None
    }

    /// The sources below a directory that may not be named, relative to the project.
    fn closed_below(&self, _directory: &str) -> Vec<String> {
        Vec::new()
    }

    /// A file with source or a directory that may be named.
    fn source(&self, path: &str) -> Result<String, HostError> {
        self.inside(path)
    }

    /// A directory that may be named, by its whole real path.
    fn directory(&self, path: &str) -> Result<String, HostError> {
        self.inside(path)
    }

    /// A path of the project, resolved; an error where it leads out of it or to what is refused.
    fn inside(&self, path: &str) -> Result<String, HostError> {
        Err(failure(
            "path_denied",
            format!("'{path}' leads nowhere: there is no project here"),
        ))
    }
}

/// An error of ours with the kind that tools know.
pub(crate) fn failure(kind: &str, message: impl Into<String>) -> HostError {
    Box::new(ErrorBody::new(ErrorKind::from(kind), message))
}
