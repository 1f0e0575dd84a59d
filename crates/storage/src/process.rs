//! What the system says about processes.

use std::io;

use beamtalk_process::entry_of;
use rustix::io::Errno;
use rustix::process::{Pid, Resource, Rlimit, setrlimit, test_kill_process};

use crate::liveness::SignalProbe;

/// Keep the memory of this process, and of those it starts, out of core files.
pub fn disable_core_dumps() -> io::Result<()> {
    let none = Rlimit {
        current: Some(0),
        maximum: Some(0),
    };
    Ok(setrlimit(Resource::Core, none)?)
}

/// When a process started, in clock ticks since boot: with the pid it names one process for ever. Unknown where there
/// is no `/proc`: there the lock alone decides.
pub fn process_start_time(pid: u32) -> Option<u64> {
    entry_of(pid).map(|entry| entry.started)
}

/// What `kill(pid, 0)` tells.
pub(crate) fn signal_probe(pid: u32) -> SignalProbe {
    let Some(pid) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
        return SignalProbe::NoProcess;
    };
    match test_kill_process(pid) {
        Ok(()) => SignalProbe::Delivered,
        Err(Errno::SRCH) => SignalProbe::NoProcess,
        // Whatever else keeps us from it, the process is there and not ours to touch.
        Err(_) => SignalProbe::NotPermitted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_living_process_has_a_start_time() {
        assert!(process_start_time(std::process::id()).is_some_and(|time| time > 0));
    }

    #[test]
    fn this_process_is_alive_and_pid_zero_is_nobody() {
        assert_eq!(signal_probe(std::process::id()), SignalProbe::Delivered);
        assert_eq!(signal_probe(0), SignalProbe::NoProcess);
        assert_eq!(signal_probe(u32::MAX), SignalProbe::NoProcess);
    }
}
