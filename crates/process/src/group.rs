//! A process group and the processes that left it: who is alive, and signals to all of them.
//!
//! On Linux the table of processes is read from `/proc`, which also finds descendants that made
//! a group or session of their own. Elsewhere only the group itself is reached.

use std::collections::{BTreeMap, BTreeSet};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process, kill_process_group, test_kill_process_group};

/// A process group, named by the process id of its leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Group(i32);

impl Group {
    /// The group led by process `id`; none for 0 and 1, which are never ours.
    pub fn of(id: u32) -> Option<Self> {
        i32::try_from(id).ok().filter(|&raw| raw > 1).map(Self)
    }

    /// The process id of the leader.
    pub fn id(self) -> u32 {
        self.0.unsigned_abs()
    }

    fn pid(self) -> Pid {
        Pid::from_raw(self.0).expect("a group is made only of ids above 1")
    }

    /// Whether no member of the group is alive; the dead that nobody has collected do not count.
    pub fn is_empty(self) -> bool {
        match test_kill_process_group(self.pid()) {
            Err(Errno::SRCH) => true,
            Ok(()) | Err(_) => !has_living_member(self.id()),
        }
    }

    /// Send `signal` to every member.
    pub fn signal(self, signal: Signal) {
        // A group that is gone already needs no signal.
        let _ = kill_process_group(self.pid(), signal);
    }

    /// The living processes that descend from the leader but left its group.
    pub fn strays(self) -> Vec<u32> {
        let table = process_table();
        let members: BTreeSet<u32> = table
            .iter()
            .filter(|(id, entry)| **id == self.id() || entry.group == self.id())
            .map(|(id, _)| *id)
            .collect();
        descendants(&table, members)
            .into_iter()
            .filter(|id| table.get(id).is_some_and(|entry| entry.group != self.id()))
            .collect()
    }
}

/// Send `signal` to single processes.
pub(crate) fn signal_each(ids: &[u32], signal: Signal) {
    for pid in ids.iter().filter_map(|&id| Group::of(id)) {
        let _ = kill_process(pid.pid(), signal);
    }
}

/// Whether one of the processes is alive.
pub(crate) fn any_alive(ids: &[u32]) -> bool {
    if ids.is_empty() {
        return false;
    }
    let table = process_table();
    ids.iter().any(|id| table.contains_key(id))
}

pub(crate) fn descendants(table: &BTreeMap<u32, Entry>, roots: BTreeSet<u32>) -> Vec<u32> {
    let mut children: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for (&id, entry) in table {
        children.entry(entry.parent).or_default().push(id);
    }
    let mut found = Vec::new();
    let mut seen = roots.clone();
    let mut open: Vec<u32> = roots.into_iter().collect();
    while let Some(id) = open.pop() {
        for &child in children.get(&id).into_iter().flatten() {
            if seen.insert(child) {
                found.push(child);
                open.push(child);
            }
        }
    }
    found
}

fn has_living_member(group: u32) -> bool {
    if cfg!(target_os = "linux") {
        process_table().values().any(|entry| entry.group == group)
    } else {
        true
    }
}

/// One line of the table of processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    pub parent: u32,
    group: u32,
    pub session: u32,
    /// When it started, in ticks since boot: with it a number names one process for ever.
    pub started: u64,
    /// A hash of its name, which is another when it became another program.
    pub(crate) name: u64,
    /// Ended and not yet collected. A process whose first thread has ended looks the same.
    pub is_zombie: bool,
}

/// The living processes of the machine; empty where there is no `/proc`.
fn process_table() -> BTreeMap<u32, Entry> {
    let mut table = whole_table();
    table.retain(|_, entry| !entry.is_zombie);
    table
}

/// All processes of the machine, the dead that wait to be collected included.
pub(crate) fn whole_table() -> BTreeMap<u32, Entry> {
    let Ok(entries) = std::fs::read_dir("/proc") else {
        return BTreeMap::new();
    };
    entries
        .filter_map(|entry| {
            let id: u32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            Some((id, entry_of(id)?))
        })
        .collect()
}

/// What the system says about one process; none when it is gone, and where there is no `/proc`.
pub fn entry_of(id: u32) -> Option<Entry> {
    parse_stat(&std::fs::read(format!("/proc/{id}/stat")).ok()?)
}

/// Parent, group and start from a line of `/proc/ID/stat`.
fn parse_stat(text: &[u8]) -> Option<Entry> {
    // The name in brackets may itself hold brackets and blanks.
    let after_name = text.iter().rposition(|&byte| byte == b')')? + 1;
    let name = hash(text.get(..after_name)?);
    let text = std::str::from_utf8(text.get(after_name..)?).ok()?;
    let mut fields = text.split_whitespace();
    let is_zombie = matches!(fields.next()?, "Z" | "X" | "x");
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    let session = fields.next()?.parse().ok()?;
    let started = fields.nth(15)?.parse().ok()?;
    Some(Entry {
        parent,
        group,
        session,
        started,
        name,
        is_zombie,
    })
}

/// FNV-1a: enough to tell two names apart.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn names_with_brackets_do_not_confuse_the_process_table() {
        let rest = "8 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 771 99";
        let entry = parse_stat(format!("42 (a ) Z (b) S 7 9 {rest}").as_bytes()).unwrap();
        let found = (entry.parent, entry.group, entry.session, entry.started);
        assert_eq!(found, (7, 9, 8, 771));
        assert!(!entry.is_zombie);
        let gone = parse_stat(format!("42 (gone) Z 7 9 {rest}").as_bytes()).unwrap();
        assert!(gone.is_zombie);
        assert!(parse_stat(b"42 (cut) S 7 9 9").is_none());
    }

    #[test]
    fn groups_that_can_never_be_ours_are_refused() {
        assert!(Group::of(0).is_none());
        assert!(Group::of(1).is_none());
        assert!(Group::of(u32::MAX).is_none());
    }

    proptest! {
        #[test]
        fn any_bytes_in_a_stat_file_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let entry = parse_stat(&bytes);
            prop_assert!(entry.is_none() || bytes.contains(&b')'));
        }
    }
}
