//! What the system says about processes.

use std::io;

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

/// When a process started, in clock ticks since boot: with the pid it names one process for ever.
#[cfg(target_os = "linux")]
pub fn process_start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    parse_start_time(&stat)
}

/// Unknown here: there the lock alone decides.
#[cfg(not(target_os = "linux"))]
pub fn process_start_time(_pid: u32) -> Option<u64> {
    None
}

/// Field 22. The second field is the program's name in parentheses and may hold anything, so
/// fields are counted from the last `)`, after which the third begins.
#[cfg(target_os = "linux")]
fn parse_start_time(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_ascii_whitespace().nth(22 - 3)?.parse().ok()
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
    fn the_start_time_is_found_behind_any_program_name() {
        let stat = "7 (a) b (c) S 1 7 7 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 8812345 1000 200";
        assert_eq!(parse_start_time(stat), Some(8_812_345));
        assert_eq!(parse_start_time("7 (cut"), None);
        assert!(process_start_time(std::process::id()).is_some_and(|time| time > 0));
    }

    #[test]
    fn this_process_is_alive_and_pid_zero_is_nobody() {
        assert_eq!(signal_probe(std::process::id()), SignalProbe::Delivered);
        assert_eq!(signal_probe(0), SignalProbe::NoProcess);
        assert_eq!(signal_probe(u32::MAX), SignalProbe::NoProcess);
    }
}
