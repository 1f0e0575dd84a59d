//! The members of a start: the descendants of its keeper, and how they are ended.
//!
//! Who is a member follows from who made it. A keeper is a subreaper: whatever a program forks,
//! however it changes its group, session or environment, stays below the keeper. A member is
//! signalled through a descriptor for that very process, taken before its ancestry is looked at a
//! second time, so that a number that was given to somebody else meanwhile is never hit.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal};

use crate::group::{Entry, descendants, entry_of, whole_table};

/// How long after `SIGKILL` a member may linger before it is given up.
pub(crate) const KILL_LIMIT: Duration = Duration::from_secs(10);

/// A process, named for ever by its number and its start, and the program it runs: one that
/// became another program since it was signalled may have taken the signal with it, as a shell
/// does that has just forked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Member {
    pub(crate) id: u32,
    started: u64,
    program: u64,
}

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sent {
    Yes,
    /// It ended, or is no member: nothing to do.
    Gone,
    /// It belongs to somebody else by now.
    Refused,
}

/// The descendants of this process, the dead among them included, without those in `besides` and
/// what descends from them.
pub(crate) fn members(besides: &BTreeSet<u32>) -> Vec<Member> {
    let table: BTreeMap<u32, Entry> = whole_table()
        .into_iter()
        .filter(|(id, _)| !besides.contains(id))
        .collect();
    descendants(&table, BTreeSet::from([std::process::id()]))
        .into_iter()
        .filter_map(|id| {
            table.get(&id).map(|entry| Member {
                id,
                started: entry.started,
                program: entry.name,
            })
        })
        .collect()
}

/// Those that have not ended.
pub(crate) fn alive(members: &[Member]) -> Vec<Member> {
    let lives = |member: &&Member| {
        entry_of(member.id).is_some_and(|entry| entry.started == member.started && !entry.is_zombie)
    };
    members.iter().filter(lives).copied().collect()
}

fn is_below(member: Member, ancestor: u32) -> bool {
    let mut id = member.id;
    let mut first = true;
    // Nothing is nested deeper than there are processes.
    for _ in 0..100_000 {
        let Some(entry) = entry_of(id) else { return false };
        if std::mem::take(&mut first) && entry.started != member.started {
            return false;
        }
        if entry.parent == ancestor {
            return true;
        }
        if entry.parent <= 1 {
            return false;
        }
        id = entry.parent;
    }
    false
}

#[cfg(target_os = "linux")]
fn signal(member: Member, signal: Signal) -> Sent {
    use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
    let Some(pid) = pid_of(member) else {
        return Sent::Gone;
    };
    let handle = match pidfd_open(pid, PidfdFlags::empty()) {
        Ok(handle) => Some(handle),
        // A kernel without them: the start was compared, which is as sure as it can be.
        Err(Errno::NOSYS) => None,
        Err(_) => return Sent::Gone,
    };
    if !is_below(member, std::process::id()) {
        return Sent::Gone;
    }
    let sent = match handle {
        Some(handle) => pidfd_send_signal(handle, signal),
        None => rustix::process::kill_process(pid, signal),
    };
    match sent {
        Ok(()) => Sent::Yes,
        Err(Errno::PERM) => Sent::Refused,
        Err(_) => Sent::Gone,
    }
}

#[cfg(not(target_os = "linux"))]
fn signal(member: Member, signal: Signal) -> Sent {
    match pid_of(member).map(|pid| rustix::process::kill_process(pid, signal)) {
        Some(Ok(())) => Sent::Yes,
        Some(Err(Errno::PERM)) => Sent::Refused,
        Some(Err(_)) | None => Sent::Gone,
    }
}

pub(crate) fn pid_of(member: Member) -> Option<Pid> {
    i32::try_from(member.id)
        .ok()
        .filter(|&id| id > 1)
        .and_then(Pid::from_raw)
}

/// An ending under way: the gentle signal once for each member, the other one after the grace.
#[derive(Debug)]
pub(crate) struct Ending {
    signal: Signal,
    deadline: Instant,
    told: BTreeSet<Member>,
    refused: BTreeSet<Member>,
}

impl Ending {
    pub(crate) fn new(signal: Signal, grace: Duration) -> Self {
        Self {
            signal,
            deadline: Instant::now() + grace,
            told: BTreeSet::new(),
            refused: BTreeSet::new(),
        }
    }

    /// Wait no longer than this for the gentle signal to work.
    pub(crate) fn hurry(&mut self, grace: Duration) {
        self.deadline = self.deadline.min(Instant::now() + grace);
    }

    /// Whether the time for the gentle signal is over.
    pub(crate) fn is_due(&self) -> bool {
        Instant::now() >= self.deadline
    }

    /// Signal whoever has to be signalled now.
    pub(crate) fn step(&mut self, members: &[Member]) {
        let kill = self.is_due();
        for &member in members {
            let sent = if kill {
                signal(member, Signal::KILL)
            } else if self.told.insert(member) {
                signal(member, self.signal)
            } else {
                continue;
            };
            if sent == Sent::Refused {
                self.refused.insert(member);
            }
        }
    }

    /// Whoever does not end: the time after `SIGKILL` is over, or they may not be signalled.
    pub(crate) fn stuck(&self, members: &[Member]) -> Vec<u32> {
        let now = Instant::now();
        let late = now >= self.deadline + KILL_LIMIT;
        // Not even the last signal reaches those of another user.
        let foreign = now >= self.deadline && members.iter().all(|member| self.refused.contains(member));
        if late || foreign {
            members.iter().map(|member| member.id).collect()
        } else {
            Vec::new()
        }
    }
}
