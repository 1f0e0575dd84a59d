//! Why something asked for by a person did not come about: how the command ends, a kind for tools, words, a hint.
//!
//! Finding a workspace, a session in it and the commands all fail with these, so the table of exit codes stands here
//! and nowhere else.

use std::fmt;
use std::process::ExitCode;

use beamtalk_storage::{Class, StorageError};

use crate::{ControlError, Error};

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
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
    pub fn code(self) -> u8 {
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

impl From<Class> for Exit {
    fn from(class: Class) -> Self {
        match class {
            Class::Usage => Self::Usage,
            Class::Environment => Self::Environment,
        }
    }
}

/// An error that knows its exit code, its kind for tools, and what to do about it.
#[derive(Debug)]
pub struct Fault {
    pub exit: Exit,
    pub kind: &'static str,
    pub message: String,
    pub hint: Option<String>,
}

impl Fault {
    pub fn new(exit: Exit, kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            exit,
            kind,
            message: message.into(),
            hint: None,
        }
    }

    pub fn usage(kind: &'static str, message: impl Into<String>) -> Self {
        Self::new(Exit::Usage, kind, message)
    }

    pub fn failure(kind: &'static str, message: impl Into<String>) -> Self {
        Self::new(Exit::Failure, kind, message)
    }

    pub fn not_running(message: impl Into<String>) -> Self {
        Self::new(Exit::NotRunning, "not_running", message)
    }

    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Self {
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

/// The state directory is not as it must be.
impl From<StorageError> for Fault {
    fn from(error: StorageError) -> Self {
        Self {
            hint: error.repair(),
            ..Self::new(error.class().into(), "storage", error.to_string())
        }
    }
}

impl From<ControlError> for Fault {
    fn from(error: ControlError) -> Self {
        Self::failure("failed", error.to_string())
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        let (exit, kind) = match &error {
            Error::Refused(_) => (Exit::Owned, "auth_failed"),
            Error::Failed(_) => (Exit::Failure, "failed"),
            Error::TooLong(_) => (Exit::Failure, "too_large"),
            Error::Busy => (Exit::Failure, "busy"),
            _ => (Exit::NotRunning, "not_reachable"),
        };
        let hint = match &error {
            Error::UnknownHost { host, .. } => Some(format!(
                "start it with --allow-host {host}, or use the address it is bound to"
            )),
            Error::Unreachable { cause, .. } if cause.contains("CertificateRequired") => {
                Some("this workspace asks clients for a certificate: --cert FILE --key FILE".to_owned())
            }
            _ => None,
        };
        Self {
            hint,
            ..Self::new(exit, kind, error.to_string())
        }
    }
}
