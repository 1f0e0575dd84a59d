//! How a node is started.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{Erlang, NodeOptions, Runtime};

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

/// How a node that may be asked to start distribution is booted. The flags start nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DistributionFlags {
    /// `inet` or `inet6`.
    pub family: &'static str,
    /// The options of TLS.
    pub options_file: PathBuf,
    /// Where other nodes of this user are looked up, and the port of those that are not found there.
    pub ports: PathBuf,
    pub first_port: u16,
    /// Nodes of other machines, as `NAME@HOST:PORT`.
    pub peers: Vec<String>,
}

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
#[expect(clippy::disallowed_methods, reason = "the program has the caller's streams")]
pub fn script_command(erlang: &Erlang, runtime: &Runtime, job: &Path) -> Command {
    let mut command = Command::new(erlang.program());
    // An interrupt ends the program, which may have a million actors.
    command.args(["+Bd", "+P", PROGRAM_PROCESSES]);
    add_flags(&mut command, runtime);
    command.args(["-s", "beamtalk_boot", "script", "-extra"]);
    command.arg(runtime.image()).arg(job);
    command
}

/// A worker: requests on descriptor 0, replies on descriptor 3. The shell moves the reply pipe away
/// from standard output, so that nothing a program prints can damage a frame.
#[expect(clippy::disallowed_methods, reason = "a node is held by its pipe")]
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

/// The node of a workspace: frames come on descriptor 3 and go to descriptor 4, so that nothing a program
/// prints can damage one; standard output and error are the log.
#[expect(clippy::disallowed_methods, reason = "a node is held by its pipe")]
pub(crate) fn workspace_command(erlang: &Erlang, runtime: &Runtime, options: &NodeOptions) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "umask 077; exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null 1>&2"])
        .arg(erlang.program())
        .current_dir(&options.directory);
    // An interrupt is the parent's business; its end closes the pipe.
    command
        .args(["+Bi", "+P"])
        .arg(processes(options.max_processes).to_string());
    add_flags(&mut command, runtime);
    let disabled = options.disabled_capabilities.join(",");
    command.args(["-noinput", "-beamtalk", "disabled_capabilities"]);
    command.arg(format!("[{disabled}]"));
    if let Some(distribution) = &options.distribution {
        // The secret comes over the pipe: none is read from the user's home, none is written there. On a busy machine
        // the handshake of two nodes takes longer than the seven seconds it usually may.
        command.args([
            "-nocookie",
            "-kernel",
            "net_setuptime",
            "60",
            "-proto_dist",
            "beamtalk_tls",
            "-beamtalk_family",
            distribution.family,
            "-epmd_module",
            "beamtalk_epmd",
            "-ssl_dist_optfile",
        ]);
        command.arg(&distribution.options_file);
        command.arg("-beamtalk_ports").arg(&distribution.ports);
        command.arg(distribution.first_port.to_string());
        if !distribution.peers.is_empty() {
            command.arg("-beamtalk_peers").args(&distribution.peers);
        }
    }
    command.args(["-s", "beamtalk_boot", "workspace", "-extra"]);
    command.arg(runtime.image());
    for (name, _) in std::env::vars_os() {
        if is_secret(&name.to_string_lossy()) {
            command.env_remove(&name);
        }
    }
    // A dump of a distributed node would hold the secret of distribution, so there is none.
    if options.distribution.is_none() {
        command.env("ERL_CRASH_DUMP", &options.crash_dump);
        command.env_remove("ERL_CRASH_DUMP_SECONDS");
        command.env("ERL_CRASH_DUMP_BYTES", CRASH_DUMP_LIMIT);
    }
    command
}

/// A printer: one request on descriptor 0, its answer on descriptor 3. It starts nothing of the runtime, and a heap that
/// grows too large ends it.
#[expect(clippy::disallowed_methods, reason = "a node is held by its pipe")]
pub(crate) fn printer_command(erlang: &Erlang, runtime: &Runtime, heap_words: u64) -> Command {
    let mut command = Command::new("/bin/sh");
    command
        .args(["-c", "exec \"$0\" \"$@\" 3>&1 1>&2"])
        .arg(erlang.program());
    command
        .args(["+Bi", "+hmaxel", "false", "+hmax"])
        .arg(heap_words.to_string());
    add_flags(&mut command, runtime);
    command.args(["-noinput", "-s", "beamtalk_boot", "printer"]);
    command
}

/// Processes the VM has room for in a workspace whose users may have so many. They get half of them at most, so that raw
/// processes of Erlang, which nobody is asked about, meet the guard before they meet the end of the table.
fn processes(most: u64) -> u64 {
    most.saturating_mul(2).clamp(524_288, VM_PROCESSES)
}

/// As many as any VM has room for.
const VM_PROCESSES: u64 = 134_217_727;

/// The same for a program of its own.
const PROGRAM_PROCESSES: &str = "2097152";

/// A crash dump is for reading, not for keeping a whole image.
const CRASH_DUMP_LIMIT: &str = "67108864";

/// Variables that hold our secrets never reach a node.
fn is_secret(name: &str) -> bool {
    name.starts_with("BEAMTALK_")
        && ["COOKIE", "TOKEN", "SECRET"]
            .iter()
            .any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vm_has_room_for_all_that_may_be_started() {
        assert_eq!(processes(3_000), 524_288);
        assert_eq!(processes(1_000_000), 2_000_000);
        assert_eq!(processes(u64::MAX), VM_PROCESSES);
    }
}
