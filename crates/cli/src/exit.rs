//! How the program ends: exit codes, the one place that names them, and the errors that carry them.

use std::fmt;
use std::io;
use std::process::ExitCode;

use beamtalk_project::{Blame, Error as ProjectError};
use beamtalk_storage::{Class, StorageError};

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    /// The task failed: compile errors, failing tests, a raised error.
    Failure,
    /// Wrong usage, bad configuration, refused by a rule.
    Usage,
    /// What was asked about is not running.
    NotRunning,
    /// Somebody else owns what was asked for.
    Owned,
    /// Erlang missing or too old, storage not acceptable, permission.
    Environment,
    /// The time limit was reached.
    TimeLimit,
    /// A fault of Beamtalk itself.
    Internal,
    /// Ctrl-C, or a second signal, ended it.
    Forced,
    /// Status of the program that was run.
    Program(u8),
    /// A code of a command with a table of its own.
    Code(u8),
}

impl Exit {
    pub(crate) fn code(self) -> u8 {
        match self {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::NotRunning => 3,
            Exit::Owned => 4,
            Exit::Environment => 5,
            Exit::Internal => 70,
            Exit::TimeLimit => 124,
            Exit::Forced => 130,
            Exit::Program(status) | Exit::Code(status) => status,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit.code())
    }
}

/// An error that knows its exit code, its kind for tools, and what to do about it.
#[derive(Debug)]
pub(crate) struct Fault {
    pub(crate) exit: Exit,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Fault {
    pub(crate) fn usage(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Usage,
            kind,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn failure(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit: Exit::Failure,
            kind,
            message: message.into(),
            hint: None,
        }
    }

    pub(crate) fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Fault {}

impl From<beamtalk_project::Fault> for Fault {
    fn from(fault: beamtalk_project::Fault) -> Self {
        Self {
            exit: fault.blame.into(),
            kind: fault.kind,
            message: fault.message,
            hint: fault.hint,
        }
    }
}

impl From<Blame> for Exit {
    fn from(blame: Blame) -> Self {
        match blame {
            Blame::Task => Self::Failure,
            Blame::Usage => Self::Usage,
            Blame::Environment => Self::Environment,
            Blame::Internal => Self::Internal,
        }
    }
}

/// What is wrong with the arguments, in one line.
pub(crate) fn usage_line(error: &clap::Error) -> String {
    let message = error.to_string();
    let said: Vec<&str> = message
        .lines()
        .map(str::trim)
        .take_while(|line| !line.is_empty())
        .collect();
    let said = said.join(" ");
    said.strip_prefix("error: ").unwrap_or(&said).to_owned()
}

/// What the end of a command looks like to its caller.
pub(crate) struct Report {
    pub(crate) exit: Exit,
    pub(crate) kind: &'static str,
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
}

impl Report {
    /// `None` when standard output was closed by its reader, which is not an error.
    pub(crate) fn new(error: &anyhow::Error) -> Option<Self> {
        let is_closed = |cause: &io::Error| cause.kind() == io::ErrorKind::BrokenPipe;
        if error.chain().any(|cause| {
            cause.downcast_ref::<io::Error>().is_some_and(is_closed)
                || matches!(cause.downcast_ref::<ProjectError>(), Some(ProjectError::Output(cause)) if is_closed(cause))
        }) {
            return None;
        }
        if let Some(fault) = error.downcast_ref::<Fault>() {
            return Some(Self {
                exit: fault.exit,
                kind: fault.kind,
                message: fault.message.clone(),
                hint: fault.hint.clone(),
            });
        }
        let project = error
            .chain()
            .find_map(|cause| cause.downcast_ref::<ProjectError>());
        let fault = match project {
            Some(ProjectError::Fault(fault)) => Some(fault),
            _ => error.downcast_ref::<beamtalk_project::Fault>(),
        };
        if let Some(fault) = fault {
            return Some(Self {
                exit: fault.blame.into(),
                kind: fault.kind,
                message: fault.message.clone(),
                hint: fault.hint.clone(),
            });
        }
        let node = match project {
            Some(ProjectError::Node(cause)) => Some(cause),
            _ => error
                .chain()
                .find_map(|cause| cause.downcast_ref::<beamtalk_node::Error>()),
        };
        let storage = match (project, node) {
            (Some(ProjectError::Storage(cause)), _) | (_, Some(beamtalk_node::Error::Storage(cause))) => {
                Some(cause)
            }
            _ => error
                .chain()
                .find_map(|cause| cause.downcast_ref::<StorageError>()),
        };
        let (exit, kind) = match (node, storage) {
            (_, Some(cause)) => classify_storage(cause),
            (Some(cause), None) => classify(cause),
            (None, None) => (Exit::Failure, "failed"),
        };
        Some(Self {
            exit,
            kind,
            message: format!("{error:#}"),
            hint: storage.and_then(StorageError::repair),
        })
    }
}

fn classify_storage(error: &StorageError) -> (Exit, &'static str) {
    let exit = match error.class() {
        Class::Usage => Exit::Usage,
        Class::Environment => Exit::Environment,
    };
    (exit, error.kind())
}

fn classify(error: &beamtalk_node::Error) -> (Exit, &'static str) {
    use beamtalk_node::Error as E;
    match error {
        E::ErlangMissing { .. } => (Exit::Environment, "erlang_missing"),
        E::ErlangTooOld { .. } => (Exit::Environment, "erlang_too_old"),
        E::ErlangBroken { .. } | E::ErlangUnknown { .. } => (Exit::Environment, "erlang_broken"),
        E::Storage(cause) => classify_storage(cause),
        E::NotADirectory { .. } | E::File { .. } => (Exit::Environment, "storage"),
        E::NoRuntime { .. }
        | E::NodeGone { .. }
        | E::Pipe(_)
        | E::FrameTooLong { .. }
        | E::Frame(_)
        | E::Unexpected { .. } => (Exit::Internal, "node_down"),
    }
}
