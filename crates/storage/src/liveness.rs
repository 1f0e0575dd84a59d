//! Is there a daemon? The lock is the authority; everything else is evidence.

/// The exclusive lock of the workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    Free,
    Held,
}

/// What `kill(pid, 0)` answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalProbe {
    Delivered,
    /// `ESRCH`.
    NoProcess,
    /// `EPERM`.
    NotPermitted,
}

/// What has become of the process in `daemon.pid`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProcessState {
    /// There is no pid on record.
    Unrecorded,
    Missing,
    /// It exists and is another user's.
    Foreign,
    /// Another process of ours has got its pid.
    Reused,
    Alive,
}

/// What connecting to the recorded socket gave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SocketState {
    /// `ENOENT`, or no socket is on record.
    Absent,
    /// `ECONNREFUSED`: nobody listens.
    Refused,
    /// `EACCES`: not ours.
    Denied,
    Answers,
}

/// All that was seen of one workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Observation {
    pub lock: LockState,
    pub process: ProcessState,
    pub socket: SocketState,
    /// A socket, pid file, `node.info` or `port` is there.
    pub leftovers: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Running,
    /// A daemon holds the lock and does not answer: it starts or stops. Ask again, for up to 10 s.
    Unsettled,
    NotRunning,
    /// Whatever is left may be removed by one who holds the lock.
    Stale,
    /// The pid on record is another user's process: nothing is removed.
    ForeignProcess,
    /// The socket is another user's: nothing is removed.
    ForeignSocket,
}

/// Judge what was seen.
pub fn verdict(seen: Observation) -> Verdict {
    if seen.process == ProcessState::Foreign {
        return Verdict::ForeignProcess;
    }
    if seen.socket == SocketState::Denied {
        return Verdict::ForeignSocket;
    }
    match (seen.lock, seen.socket) {
        (LockState::Held, SocketState::Answers) => Verdict::Running,
        // A dead or reused pid on record is no contradiction: the daemon that has the lock has not
        // written its own yet.
        (LockState::Held, _) => Verdict::Unsettled,
        (LockState::Free, _) if seen.leftovers => Verdict::Stale,
        (LockState::Free, _) => Verdict::NotRunning,
    }
}

/// Judge the process of a record by its start time; one that is not known (0, or the system does
/// not tell) cannot show that a pid was reused.
pub fn process_state(probe: SignalProbe, recorded_start: u64, actual_start: Option<u64>) -> ProcessState {
    match probe {
        SignalProbe::NoProcess => ProcessState::Missing,
        SignalProbe::NotPermitted => ProcessState::Foreign,
        SignalProbe::Delivered => match actual_start {
            Some(actual) if recorded_start != 0 && actual != recorded_start => ProcessState::Reused,
            _ => ProcessState::Alive,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const QUIET: Observation = Observation {
        lock: LockState::Free,
        process: ProcessState::Unrecorded,
        socket: SocketState::Absent,
        leftovers: false,
    };

    #[test]
    fn pid_reuse_detected() {
        let alive = SignalProbe::Delivered;
        assert_eq!(process_state(alive, 7, Some(7)), ProcessState::Alive);
        assert_eq!(process_state(alive, 7, Some(8)), ProcessState::Reused);
        assert_eq!(process_state(alive, 0, Some(8)), ProcessState::Alive);
        assert_eq!(process_state(alive, 7, None), ProcessState::Alive);
        let seen = Observation {
            process: ProcessState::Reused,
            leftovers: true,
            ..QUIET
        };
        assert_eq!(verdict(seen), Verdict::Stale);
        let held = Observation {
            lock: LockState::Held,
            ..seen
        };
        assert_eq!(verdict(held), Verdict::Unsettled, "the lock decides");
    }

    #[test]
    fn eperm_is_never_stale() {
        assert_eq!(
            process_state(SignalProbe::NotPermitted, 7, Some(8)),
            ProcessState::Foreign
        );
        for lock in [LockState::Free, LockState::Held] {
            for socket in [SocketState::Absent, SocketState::Refused, SocketState::Answers] {
                let seen = Observation {
                    lock,
                    process: ProcessState::Foreign,
                    socket,
                    leftovers: true,
                };
                assert_eq!(verdict(seen), Verdict::ForeignProcess);
            }
        }
    }

    #[test]
    fn the_lock_decides_about_everything_else() {
        use {LockState as Lock, ProcessState as Process, SocketState as Socket};
        let table = [
            (
                Lock::Free,
                Process::Unrecorded,
                Socket::Absent,
                false,
                Verdict::NotRunning,
            ),
            (Lock::Free, Process::Missing, Socket::Absent, true, Verdict::Stale),
            (Lock::Free, Process::Alive, Socket::Refused, true, Verdict::Stale),
            (
                Lock::Free,
                Process::Alive,
                Socket::Denied,
                true,
                Verdict::ForeignSocket,
            ),
            (
                Lock::Held,
                Process::Alive,
                Socket::Answers,
                true,
                Verdict::Running,
            ),
            (
                Lock::Held,
                Process::Alive,
                Socket::Refused,
                true,
                Verdict::Unsettled,
            ),
            (
                Lock::Held,
                Process::Missing,
                Socket::Absent,
                false,
                Verdict::Unsettled,
            ),
            (
                Lock::Held,
                Process::Alive,
                Socket::Denied,
                true,
                Verdict::ForeignSocket,
            ),
        ];
        for (lock, process, socket, leftovers, expected) in table {
            let seen = Observation {
                lock,
                process,
                socket,
                leftovers,
            };
            assert_eq!(verdict(seen), expected, "{seen:?}");
        }
    }
}
