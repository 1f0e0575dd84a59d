//! The sentry: the process between supervisor and guard, which does nothing until the guard ends.
//!
//! What a dead keeper kept falls to the guard. A guard that dies before it has ended them would
//! lose them to the system, where nobody knows whose they are. So there is one more above it, a
//! subreaper too, to which everything below the guard falls: keepers, and orphans of keepers. The
//! guard in turn sees its own sentry die, and ends everything. To lose somebody, keeper, guard and
//! sentry have to be killed before one of them had a moment to act.

use std::collections::BTreeSet;
use std::time::Duration;

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus, getpgid, wait, waitpid};

use crate::members::{Ending, Member, members, pid_of};

/// How often those that are being ended are looked for.
const LOOK: Duration = Duration::from_millis(10);

/// Stand until the guard has ended, and then until the kernel says that nobody is left. What a
/// guard left that was killed gets `grace`; one that ended by itself has given it already.
pub(crate) fn stand(guard: Pid, grace: Duration) {
    name_sentry();
    let is_orderly = outwait(guard).is_some_and(|status| status.exit_status() == Some(0));
    let mut ending = Ending::new(Signal::TERM, if is_orderly { Duration::ZERO } else { grace });
    while has_children() {
        let left = members(&BTreeSet::new());
        let is_gentle = !ending.is_due();
        // Keepers see that the guard is gone and end their own; should this process die as well,
        // they still do. A program that hides in their group is killed with the rest.
        let spared = |member: &Member| is_gentle && is_of_own_group(*member);
        let told: Vec<Member> = left.iter().filter(|one| !spared(one)).copied().collect();
        ending.step(&told);
        if !ending.stuck(&left).is_empty() {
            return;
        }
        std::thread::sleep(LOOK);
    }
}

fn outwait(guard: Pid) -> Option<WaitStatus> {
    loop {
        match waitpid(Some(guard), WaitOptions::empty()) {
            Ok(Some((_, status))) => return Some(status),
            Ok(None) | Err(Errno::INTR) => {}
            Err(_) => return None,
        }
    }
}

/// Collect the dead; false when there is nobody to wait for. A subreaper without children has no
/// descendants.
fn has_children() -> bool {
    loop {
        match wait(WaitOptions::NOHANG) {
            Ok(Some(_)) | Err(Errno::INTR) => {}
            Ok(None) => return true,
            Err(_) => return false,
        }
    }
}

fn is_of_own_group(member: Member) -> bool {
    pid_of(member).is_some_and(|pid| getpgid(Some(pid)) == getpgid(None))
}

fn name_sentry() {
    #[cfg(target_os = "linux")]
    let _ = rustix::thread::set_name(c"beamtalk-sentry");
}
