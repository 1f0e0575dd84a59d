//! How a node is started.

use std::path::Path;
use std::process::Command;

use crate::{Erlang, Runtime};

/// Flags of every node: no distribution, no user start-up file, no busy waiting, and no logger writing
/// raw terms to the terminal.
const FLAGS: &[&str] = &[
    "+sbwt",
    "none",
    "+sbwtdcpu",
    "none",
    "+sbwtdio",
    "none",
    "-noshell",
    "-boot",
    "no_dot_erlang",
    "-start_epmd",
    "false",
    "-kernel",
    "logger",
    "[{handler,default,undefined}]",
];

fn add_flags(command: &mut Command, runtime: &Runtime) {
    command.args(FLAGS);
    command.arg("-pa").arg(runtime.ebin());
    for name in ["ERL_FLAGS", "ERL_AFLAGS", "ERL_ZFLAGS", "ERL_LIBS", "ERL_INETRC"] {
        command.env_remove(name);
    }
    command.env("ERL_CRASH_DUMP_SECONDS", "0");
    // The program that runs operating-system processes for the node is this one.
    if let Ok(program) = std::env::current_exe() {
        command.env("BEAMTALK_PORT_HELPER", program);
    }
}

/// The program of `beamtalk run`: standard streams are the caller's, the job is in a file the node
/// removes once it has read it.
pub fn script_command(erlang: &Erlang, runtime: &Runtime, job: &Path) -> Command {
    let mut command = Command::new(erlang.program());
    // An interrupt ends the program.
    command.arg("+Bd");
    add_flags(&mut command, runtime);
    command.args(["-s", "beamtalk_boot", "script", "-extra"]);
    command.arg(runtime.image()).arg(job);
    command
}

/// A worker: requests on descriptor 0, replies on descriptor 3. The shell moves the reply pipe away
/// from standard output, so that nothing a program prints can damage a frame.
pub(crate) fn worker_command(erlang: &Erlang, runtime: &Runtime) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "exec \"$0\" \"$@\" 3>&1 1>&2"])
        .arg(erlang.program());
    // An interrupt is the parent's business; its end closes the pipe.
    command.arg("+Bi");
    add_flags(&mut command, runtime);
    command.args(["-noinput", "-s", "beamtalk_boot", "worker", "-extra"]);
    command.arg(runtime.image());
    command
}
