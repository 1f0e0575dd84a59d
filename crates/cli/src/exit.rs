//! Exit codes, the one place that names them.

use std::io::Write;
use std::process::ExitCode;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    Failure,
    /// Wrong usage.
    Usage,
    /// What was asked about is not running.
    NotRunning,
    /// Somebody else owns what was asked for.
    Owned,
    /// A second signal forced the end.
    Forced,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Usage => 2,
            Exit::NotRunning => 3,
            Exit::Owned => 4,
            Exit::Forced => 130,
        })
    }
}

/// Print an error and its causes on standard error.
pub(crate) fn report(error: &anyhow::Error) {
    // A closed standard error leaves nobody to tell.
    drop(writeln!(std::io::stderr(), "error: {error:#}"));
}
