//! Exit codes, the one place that names them.

use std::io::Write;
use std::process::ExitCode;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    Success,
    Failure,
    /// A code of a command with a table of its own.
    Code(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(match exit {
            Exit::Success => 0,
            Exit::Failure => 1,
            Exit::Code(code) => code,
        })
    }
}

/// Print an error and its causes on standard error.
pub(crate) fn report(error: &anyhow::Error) {
    // A closed standard error leaves nobody to tell.
    drop(writeln!(std::io::stderr(), "error: {error:#}"));
}
