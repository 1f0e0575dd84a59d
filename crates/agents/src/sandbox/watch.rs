//! A process namespace of its own. The launcher stays as the pane's process; the first process
//! inside does nothing but live, and when it ends the kernel ends everything in the namespace.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;

use rustix::process::{
    DumpableBehavior, Pid, Signal, WaitOptions, WaitStatus, kill_process_group, set_dumpable_behavior,
    setpgid, waitpid,
};

use super::apply::drop_privileges;
use super::root::Root;
use super::{Started, tell_started};
use crate::sys::{self, Forked};

/// What this process is after the forks.
pub(super) enum Role {
    Backend,
    /// One of the two that watch, with the status to end with.
    Watched(u8),
}

/// The two ends of a pipe that no program started here inherits.
fn pipe() -> Result<(File, File), String> {
    let (from, to): (OwnedFd, OwnedFd) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)
        .map_err(|error| format!("pipe: {error}"))?;
    Ok((from.into(), to.into()))
}

fn fork() -> Result<Forked, String> {
    sys::fork().map_err(|error| format!("fork: {error}"))
}

/// Go on as three processes; namespaces for children have been asked for already. `directory` is
/// where the daemon is told; the first process must not keep a way to it.
pub(super) fn over_a_namespace(root: &Root, directory: &mut Option<OwnedFd>) -> Result<Role, String> {
    // Closed when the launcher ends, however it ends.
    let (life, living) = pipe()?;
    let (mut from_first, to_launcher) = pipe()?;
    let first = match fork()? {
        Forked::Child => {
            drop((directory.take(), living, from_first));
            be_first(root, life, to_launcher);
            return Ok(Role::Watched(0));
        }
        Forked::Parent { child } => child,
    };
    drop((life, to_launcher));
    let mut said = String::new();
    from_first
        .read_to_string(&mut said)
        .map_err(|error| error.to_string())?;
    if said != READY {
        return Err(format!("namespaces: {said}"));
    }
    root.enter().map_err(|error| format!("root: {error}"))?;
    drop_privileges()?;
    let (mut from_launcher, mut go) = pipe()?;
    let backend = match fork()? {
        Forked::Child => {
            drop((living, go));
            let mut word = [0];
            // Without a launcher there is nobody to show anything to.
            return Ok(match from_launcher.read_exact(&mut word) {
                Ok(()) => Role::Backend,
                Err(_) => Role::Watched(1),
            });
        }
        Forked::Parent { child } => child,
    };
    drop(from_launcher);
    // Whatever else ends the launcher, the loss of its terminal too, ends the namespace.
    sys::ignore_terminal();
    // The backend is a foreground job of its own, as a shell would start it. Without a terminal
    // there is nothing to hand over.
    setpgid(Some(backend), Some(backend)).ok();
    rustix::termios::tcsetpgrp(io::stdin(), backend).ok();
    let told = tell_started(
        directory.as_ref(),
        Started {
            pid: backend.as_raw_pid(),
        },
    );
    if let Err(error) = told.and_then(|()| go.write_all(b"g")) {
        return Err(format!("start: {error}"));
    }
    drop(go);
    let status = follow(backend);
    drop(living);
    // Gone only when everything in its namespace is.
    while matches!(
        waitpid(Some(first), WaitOptions::empty()),
        Err(rustix::io::Errno::INTR)
    ) {}
    Ok(Role::Watched(end_as(status)))
}

const READY: &str = "ready";

/// The first process of the namespace: orphans become its children and are collected by the kernel.
fn be_first(root: &Root, mut life: File, mut to_launcher: File) {
    let prepared = root
        .mount_processes()
        .map_err(|error| format!("/proc: {error}"))
        .and_then(|()| drop_privileges())
        .and_then(|()| {
            // The environment it was started with is nothing for the eyes of the backend.
            set_dumpable_behavior(DumpableBehavior::NotDumpable).map_err(|error| error.to_string())
        });
    sys::ignore_everything();
    let said = prepared.as_ref().map_or_else(String::as_str, |()| READY);
    let told = to_launcher.write_all(said.as_bytes());
    drop(to_launcher);
    if prepared.is_err() || told.is_err() {
        return;
    }
    // Nothing is ever written: this ends when the launcher lets go.
    let mut nothing = Vec::new();
    life.read_to_end(&mut nothing).ok();
}

/// Wait for the backend; a stopped one goes on, since nobody here could continue it.
fn follow(backend: Pid) -> Option<WaitStatus> {
    loop {
        match waitpid(Some(backend), WaitOptions::UNTRACED) {
            Ok(Some((_, status))) if status.stopped() => {
                kill_process_group(backend, Signal::CONT).ok();
            }
            Ok(Some((_, status))) => return Some(status),
            Ok(None) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// End as the backend did.
fn end_as(status: Option<WaitStatus>) -> u8 {
    let Some(status) = status else { return 1 };
    if let Some(signal) = status.terminating_signal() {
        sys::die_of(signal);
        return 128_u8.saturating_add(u8::try_from(signal).unwrap_or(0));
    }
    u8::try_from(status.exit_status().unwrap_or(1)).unwrap_or(1)
}
