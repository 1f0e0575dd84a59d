//! The tiny processes that this binary becomes besides its own work.

use std::io;
use std::process::ExitCode;

use crate::detached::DETACHED_ARGUMENT;
use crate::keepers::KEEPERS_ARGUMENT;

/// When this process was started as a guard of keepers, or to let go of a program, be that and give the exit code; else give
/// nothing. To be called first thing in `main`.
pub fn run_guard_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let word = arguments.nth(1)?;
    if word == DETACHED_ARGUMENT {
        return Some(crate::detached::become_detached(arguments));
    }
    if arguments.next().is_some() || word != KEEPERS_ARGUMENT {
        return None;
    }
    // A leader of a group cannot make a session; then it has no terminal to lose either.
    let _ = rustix::process::setsid();
    let Ok(socket) = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3) else {
        return Some(ExitCode::FAILURE);
    };
    Some(crate::keeping::run(socket, io::stdout()))
}
