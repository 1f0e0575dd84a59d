//! What the end of a command looks like to its caller, whatever it ended with.

use std::io;

use beamtalk_project::{Blame, Error as ProjectError};
use beamtalk_storage::StorageError;

pub(crate) use beamtalk_client::{Exit, Fault};

fn exit_of(blame: Blame) -> Exit {
    match blame {
        Blame::Task => Exit::Failure,
        Blame::Usage => Exit::Usage,
        Blame::Environment => Exit::Environment,
        Blame::Internal => Exit::Internal,
    }
}

/// What ended a session, as the commands tell it.
pub(crate) fn ended(error: beamtalk_repl::Error) -> anyhow::Error {
    match error {
        beamtalk_repl::Error::Stream(cause) => cause.into(),
        beamtalk_repl::Error::Storage(cause) => cause.into(),
        beamtalk_repl::Error::Editor(cause) => cause.into(),
        beamtalk_repl::Error::Workspace(fault) => fault.into(),
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
                exit: exit_of(fault.blame),
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
    (error.class().into(), error.kind())
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
