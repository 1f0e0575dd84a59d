//! A process namespace of its own: its first process watches over the backend, and the process
//! in the pane watches over both and ends as the backend did.

use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use rustix::process::{Pid, Signal, WaitOptions, set_parent_process_death_signal, wait, waitpid};

use crate::session::launch::Launch;
use crate::sys::{self, Forked};

/// What this process is after the forks.
pub(super) enum Role {
    Backend,
    /// One of the two that watch, with the status to end with.
    Watched(u8),
}

/// Go on as three processes; namespaces for children have been asked for already.
pub(super) fn over_a_namespace(launch: &Launch) -> std::io::Result<Role> {
    let (from, to) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC)?;
    if let Forked::Parent { child } = sys::fork()? {
        drop(to);
        return Ok(Role::Watched(follow(child, from.into())));
    }
    drop(from);
    // Without the pane there is nobody to show anything to.
    set_parent_process_death_signal(Some(Signal::KILL)).ok();
    if launch.mount {
        // Where it cannot be mounted the old one shows processes that cannot be reached.
        rustix::mount::mount(
            "proc",
            "/proc",
            "proc",
            rustix::mount::MountFlags::NOSUID
                | rustix::mount::MountFlags::NODEV
                | rustix::mount::MountFlags::NOEXEC,
            None::<&std::ffi::CStr>,
        )
        .ok();
    }
    match sys::fork()? {
        Forked::Child => Ok(Role::Backend),
        Forked::Parent { child } => {
            sys::ignore_signals();
            let status = reap(child);
            let mut to = std::fs::File::from(to);
            to.write_all(&status.to_le_bytes()).ok();
            Ok(Role::Watched(0))
        }
    }
}

/// The first process of a namespace inherits its orphans; wait for all, until ours ends.
fn reap(backend: Pid) -> i32 {
    loop {
        match wait(WaitOptions::empty()) {
            Ok(Some((pid, status))) if pid == backend => return status.as_raw(),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(_) => return libc::SIGKILL,
        }
    }
}

/// Wait for the first process of the namespace and end as the backend did.
fn follow(first: Pid, mut from: std::fs::File) -> u8 {
    sys::ignore_signals();
    let mut raw = [0; 4];
    let told = from.read_exact(&mut raw).is_ok();
    while matches!(
        waitpid(Some(first), WaitOptions::empty()),
        Err(rustix::io::Errno::INTR)
    ) {}
    // A first process that says nothing was killed, and the backend with it.
    let status = ExitStatus::from_raw(if told {
        i32::from_le_bytes(raw)
    } else {
        libc::SIGKILL
    });
    if let Some(signal) = status.signal() {
        sys::die_of(signal);
        return 128_u8.saturating_add(u8::try_from(signal).unwrap_or(0));
    }
    u8::try_from(status.code().unwrap_or(1)).unwrap_or(1)
}
