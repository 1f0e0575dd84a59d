//! The guard: a second, tiny process that outlives a crash of this one just long enough to end
//! everything it started.
//!
//! The guard reads records from a pipe whose writing end only the supervisor holds. A new child
//! writes its own group into that pipe after `fork` and before `exec`, so no program ever runs
//! unknown to the guard: what is in the pipe is read even when the writer is killed. When the
//! pipe closes without a goodbye, the guard stops every group it still knows. It may also hold a
//! lock file, which thereby stays locked until the cleaning is done.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::process::{ExitCode, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::detached::DETACHED_ARGUMENT;
use crate::error::Error;
use crate::group::{Group, any_alive, signal_each};
use crate::keepers::KEEPERS_ARGUMENT;

/// The first argument that makes the binary a guard. See [`run_guard_if_asked`].
pub const GUARD_ARGUMENT: &str = "__guard";

/// How long the guard waits between the gentle signal and the other one.
const GRACE: Duration = Duration::from_secs(2);

const ADD: u8 = b'+';
const REMOVE: u8 = b'-';
const GOODBYE: u8 = b'.';

/// One record of the pipe: what, and which group.
pub(crate) type Record = [u8; 5];

/// The running guard. Dropping it without [`Guard::dismiss`] lets it clean up.
#[derive(Debug)]
pub struct Guard {
    link: GuardLink,
    process: tokio::process::Child,
}

/// The writing end of the guard's pipe: cheap to clone, handed to whoever starts programs.
#[derive(Clone, Debug)]
pub struct GuardLink {
    pipe: Arc<OwnedFd>,
}

impl Guard {
    /// Start the guard and wait until it is in a session of its own. It keeps `lock` open, and
    /// with it any lock on that file, until it ends.
    pub fn start(lock: Option<&File>) -> Result<Self, Error> {
        Self::try_start(lock).map_err(Error::Guard)
    }

    fn try_start(lock: Option<&File>) -> io::Result<Self> {
        let (records, pipe) = io::pipe()?;
        let (mut hello, ready) = io::pipe()?;
        let held = match lock {
            Some(file) => Stdio::from(file.try_clone()?),
            None => Stdio::null(),
        };
        let process = tokio::process::Command::new(std::env::current_exe()?)
            .arg(GUARD_ARGUMENT)
            .current_dir("/")
            .stdin(Stdio::from(records))
            .stdout(Stdio::from(ready))
            .stderr(held)
            .spawn()?;
        let mut byte = [0];
        hello.read_exact(&mut byte)?;
        Ok(Self {
            link: GuardLink {
                pipe: Arc::new(OwnedFd::from(pipe)),
            },
            process,
        })
    }

    pub fn link(&self) -> GuardLink {
        self.link.clone()
    }

    /// The process id of the guard.
    pub fn id(&self) -> Option<u32> {
        self.process.id()
    }

    /// Resolves when the guard has ended, which it should not do before it is dismissed.
    pub async fn ended(&mut self) {
        drop(self.process.wait().await);
    }

    /// Nothing is left to clean: let the guard go, and wait until it and its lock are gone.
    pub async fn dismiss(mut self) {
        self.link.send(record(GOODBYE, 0));
        drop(self.link);
        drop(self.process.wait().await);
    }
}

impl GuardLink {
    /// The group is empty; the guard may forget it.
    pub fn forget(&self, group: Group) {
        self.send(record(REMOVE, group.id()));
    }

    /// The descriptor a new child writes its own record to.
    pub(crate) fn pipe(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.pipe)
    }

    fn send(&self, record: Record) {
        // A guard that is gone is noticed by `ended`; there is nobody else to tell here.
        let _ = rustix::io::write(&*self.pipe, &record);
    }
}

/// The record by which the process `id` announces the group it leads.
pub(crate) fn announcement(id: u32) -> Record {
    record(ADD, id)
}

fn record(kind: u8, id: u32) -> Record {
    let [a, b, c, d] = id.to_le_bytes();
    [kind, a, b, c, d]
}

/// When this process was started as a guard, be one and give the exit code; else give nothing.
/// To be called first thing in `main`.
pub fn run_guard_if_asked() -> Option<ExitCode> {
    let mut arguments = std::env::args_os();
    let word = arguments.nth(1)?;
    if word == DETACHED_ARGUMENT {
        return Some(crate::detached::become_detached(arguments));
    }
    if arguments.next().is_some() || word != GUARD_ARGUMENT && word != KEEPERS_ARGUMENT {
        return None;
    }
    // A leader of a group cannot make a session; then it has no terminal to lose either.
    let _ = rustix::process::setsid();
    if word == KEEPERS_ARGUMENT {
        let Ok(socket) = rustix::io::fcntl_dupfd_cloexec(io::stdin(), 3) else {
            return Some(ExitCode::FAILURE);
        };
        return Some(crate::keeping::run(socket, io::stdout()));
    }
    let mut out = io::stdout();
    if out.write_all(b"\n").and_then(|()| out.flush()).is_err() {
        return Some(ExitCode::FAILURE);
    }
    if let Some(groups) = watch_over(io::stdin().lock()) {
        stop_all(&groups);
    }
    Some(ExitCode::SUCCESS)
}

/// Read records to the end; gives the groups to stop, or nothing after a goodbye.
fn watch_over(mut records: impl Read) -> Option<BTreeSet<Group>> {
    let mut groups = BTreeSet::new();
    let mut bytes: Record = [0; 5];
    while records.read_exact(&mut bytes).is_ok() {
        let [kind, a, b, c, d] = bytes;
        let group = Group::of(u32::from_le_bytes([a, b, c, d]));
        match (kind, group) {
            (ADD, Some(group)) => {
                groups.insert(group);
            }
            (REMOVE, Some(group)) => {
                groups.remove(&group);
            }
            (GOODBYE, _) => return None,
            _ => {}
        }
    }
    Some(groups)
}

fn stop_all(groups: &BTreeSet<Group>) {
    let strays: Vec<u32> = groups.iter().flat_map(|group| group.strays()).collect();
    let signal = |signal| {
        for group in groups {
            group.signal(signal);
        }
        signal_each(&strays, signal);
    };
    let quiet = || groups.iter().all(|group| group.is_empty()) && !any_alive(&strays);
    signal(Signal::TERM);
    let deadline = Instant::now() + GRACE;
    while !quiet() {
        if Instant::now() >= deadline {
            signal(Signal::KILL);
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ids(groups: Option<BTreeSet<Group>>) -> Option<Vec<u32>> {
        groups.map(|groups| groups.into_iter().map(Group::id).collect())
    }

    #[test]
    fn groups_reported_and_not_forgotten_are_stopped() {
        let bytes = [
            record(ADD, 70),
            record(ADD, 80),
            record(REMOVE, 70),
            record(ADD, 1),
        ]
        .concat();
        assert_eq!(ids(watch_over(&bytes[..])), Some(vec![80]));
        assert_eq!(ids(watch_over(&bytes[..7])), Some(vec![70]));
    }

    #[test]
    fn after_a_goodbye_nothing_is_stopped() {
        let bytes = [record(ADD, 70), record(GOODBYE, 0)].concat();
        assert_eq!(ids(watch_over(&bytes[..])), None);
    }

    proptest! {
        #[test]
        fn any_bytes_from_the_pipe_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Some(groups) = watch_over(&bytes[..]) {
                prop_assert!(groups.iter().all(|group| group.id() > 1));
            }
        }
    }
}
