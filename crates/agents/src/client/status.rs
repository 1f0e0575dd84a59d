//! Whether the daemon runs, what it keeps, and its end.

use std::os::fd::OwnedFd;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use super::{Client, Ending, Failure};
use crate::{Instance, NAME, Places, probe_instance};

const STOP_LIMIT: Duration = Duration::from_secs(20);

/// The status for tools, and what it was made from.
pub fn status_value(client: &Client) -> (serde_json::Value, Instance) {
    let namespace = client.living_namespace();
    let instance = probe_instance(&namespace);
    let value = match &instance {
        Instance::Running { pid } => {
            let sessions = client
                .tree()
                .and_then(|tree| Ok(tree.read_text("list")?.lines().count()))
                .unwrap_or(0);
            let workspace = std::fs::read_to_string(Places::of(&namespace).workspace());
            let workspace = workspace.ok().filter(|name| !name.is_empty());
            let mut value = serde_json::json!({"running": true, "pid": pid.parse::<u64>().ok(),
                "namespace": namespace.display().to_string(), "sessions": sessions, "workspace": workspace});
            let kept = Kept::of(&Places::of(&namespace));
            if kept.worktrees > 0 {
                value["worktrees"] = serde_json::json!({"count": kept.worktrees, "bytes": kept.bytes});
            }
            if !kept.not_resumed.is_empty() {
                let one = |(id, reason): &(String, String)| serde_json::json!({"id": id, "reason": reason});
                value["not_resumed"] = kept.not_resumed.iter().map(one).collect();
            }
            value
        }
        _ => serde_json::json!({"running": false, "pid": null,
            "namespace": namespace.display().to_string(), "sessions": 0, "workspace": null}),
    };
    (value, instance)
}

/// What the daemon has on disk that a person should know of.
pub struct Kept {
    pub worktrees: usize,
    pub bytes: u64,
    /// Sessions that could not be started again, and why.
    pub not_resumed: Vec<(String, String)>,
}

impl Kept {
    pub fn of(places: &Places) -> Self {
        let copies = std::fs::read_dir(places.worktrees())
            .into_iter()
            .flatten()
            .flatten();
        let sizes: Vec<u64> = copies.map(|copy| size_of(&copy.path())).collect();
        let lines = std::fs::read_to_string(places.not_resumed()).unwrap_or_default();
        let one = |line: &str| {
            line.split_once('\t')
                .map(|(id, reason)| (id.to_owned(), reason.to_owned()))
        };
        Kept {
            worktrees: sizes.len(),
            bytes: sizes.iter().sum(),
            not_resumed: lines.lines().filter_map(one).collect(),
        }
    }
}

/// The disk that everything below a path takes; links are not followed.
fn size_of(path: &Path) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let Ok(about) = path.symlink_metadata() else {
        return 0;
    };
    let own = about.blocks() * 512;
    if !about.is_dir() {
        return own;
    }
    let below = std::fs::read_dir(path).into_iter().flatten().flatten();
    own + below.map(|entry| size_of(&entry.path())).sum::<u64>()
}

/// Ask a running daemon to end, tell, and wait until it is gone.
pub fn terminate(
    namespace: &Path,
    instance: &Instance,
    tell: impl FnOnce() -> Result<(), Failure>,
) -> Result<(), Failure> {
    let Instance::Running { pid } = instance else {
        return Ok(());
    };
    let Some(number) = pid.parse().ok().and_then(Pid::from_raw) else {
        return Err(Failure::plain(format!("damaged PID file: {pid}")));
    };
    // Its lock is free a moment before its programs and itself are gone.
    let process = pidfd_open(number, PidfdFlags::empty()).ok();
    kill_process(number, Signal::TERM).map_err(|error| Failure::plain(format!("PID {pid}: {error}")))?;
    tell()?;
    let limit = Instant::now() + STOP_LIMIT;
    while probe_instance(namespace) == *instance || process.as_ref().is_some_and(|one| !has_ended(one)) {
        if Instant::now() > limit {
            return Err(Failure::new(
                Ending::TimedOut,
                format!("{NAME} (PID {pid}) does not stop"),
            ));
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// Whether the process of a descriptor has ended.
fn has_ended(process: &OwnedFd) -> bool {
    let mut asked = [PollFd::new(process, PollFlags::IN)];
    let now = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    matches!(poll(&mut asked, Some(&now)), Ok(1))
}
