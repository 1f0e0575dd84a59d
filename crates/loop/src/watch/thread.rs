//! The thread that watches: builds the tree, then turns what the backend says into notices.

use std::io::PipeWriter;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::native::Native;
use super::tree::{NoWatch, Registrar, Tree};
use super::{Notice, Scope};
use crate::config::{Watcher, WatcherKind};
use crate::core::Change;
use crate::pattern::Target;

/// A second failure of the backend within this time is the end.
const FAILURE_APART: Duration = Duration::from_mins(1);
/// Directories without a watch are compared no more often than this.
const FALLBACK_POLL: u64 = 2000;

/// Where notices go; false when nobody listens any more.
pub(crate) type Teller = Box<dyn Fn(Notice) -> bool + Send>;

/// How much is watched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    pub(crate) directories: usize,
    pub(crate) files: usize,
}

/// A running watcher. Dropping it ends the thread, which first tells what has happened until then: the watcher that takes
/// its place may have found a change already made when it looked around, and then only this one knows that it is one.
pub(crate) struct Watching {
    pub(crate) targets: Vec<Target>,
    pub(crate) found: Found,
    _stop: PipeWriter,
}

/// Needs no registration: it looks for itself.
pub(super) struct Scanner;

impl Registrar for Scanner {
    fn add(&mut self, _: &Path) -> Result<Option<i32>, NoWatch> {
        Ok(None)
    }

    fn remove(&mut self, _: i32) {}
}

/// Start watching. Resolves when the file table is built; changes are queued from then on.
pub(crate) async fn start(scope: Scope, watcher: Watcher, notices: Teller) -> std::io::Result<Watching> {
    let (stop, stopper) = std::io::pipe()?;
    let (ready, built) = tokio::sync::oneshot::channel();
    std::thread::Builder::new()
        .name("watch".into())
        .stack_size(1024 * 1024)
        .spawn(move || match watcher.kind {
            WatcherKind::Native => match Native::new(scope, usize::MAX) {
                Ok(native) => {
                    let summary = (native.tree.targets().to_vec(), count(&native.tree));
                    warn_about_limit(&native, &notices);
                    if ready.send(Ok(summary)).is_ok() {
                        watch(native, watcher.poll_interval_ms, &stop, &notices);
                    }
                }
                Err(error) => drop(ready.send(Err(error))),
            },
            WatcherKind::Poll => {
                let mut tree = Tree::new(scope, Scanner, true);
                tree.build();
                let summary = (tree.targets().to_vec(), count(&tree));
                if ready.send(Ok(summary)).is_ok() {
                    scan(tree, watcher.poll_interval_ms, &stop, &notices);
                }
            }
        })?;
    let (targets, found) = built
        .await
        .map_err(|_| std::io::Error::other("the watching thread ended"))??;
    Ok(Watching {
        targets,
        found,
        _stop: stopper,
    })
}

fn count<R: Registrar>(tree: &Tree<R>) -> Found {
    Found {
        directories: tree.directory_count(),
        files: tree.file_count(),
    }
}

fn warn_about_limit(native: &Native, notices: &Teller) {
    let unwatched = native.tree.unwatched_count();
    if unwatched > 0 {
        let limit = Native::kernel_limit().map_or_else(|| "unknown".to_owned(), |limit| limit.to_string());
        let needed = native.tree.directory_count();
        notices(Notice::Warning(format!(
            "the limit of {limit} watches (fs.inotify.max_user_watches) is reached and {needed} are needed; \
             {unwatched} directories are polled instead"
        )));
    }
}

/// Sends notices and remembers the last counts.
struct Counter<'a> {
    notices: &'a Teller,
    counted: Found,
}

impl Counter<'_> {
    /// False when nobody listens any more.
    fn tell(&mut self, changes: Vec<Change>, found: Found) -> bool {
        if self.counted != found {
            self.counted = found;
            (self.notices)(Notice::Counted(found));
        }
        changes.is_empty() || (self.notices)(Notice::Changed(changes, Instant::now()))
    }
}

fn watch(mut native: Native, poll_interval: u64, stop: &std::io::PipeReader, notices: &Teller) {
    let interval = Duration::from_millis(poll_interval.max(FALLBACK_POLL));
    let mut teller = Counter {
        notices,
        counted: count(&native.tree),
    };
    let mut failed: Option<Instant> = None;
    let mut compared = Instant::now();
    loop {
        let fallback = native.tree.unwatched_count() > 0;
        let limit = fallback.then(|| interval.saturating_sub(compared.elapsed()));
        let is_last = wait(native.descriptor(), stop, limit);
        let mut changes = match native.read() {
            Ok(reading) => {
                let mut changes = reading.changes;
                if reading.config_changed {
                    notices(Notice::ConfigChanged);
                }
                if reading.overflow {
                    notices(Notice::Warning("file events were dropped; rescanning".into()));
                    native.tree.rescan(&mut changes);
                }
                changes
            }
            Err(error) => {
                let again = failed.is_some_and(|last| last.elapsed() < FAILURE_APART);
                failed = Some(Instant::now());
                match native.recreate() {
                    Ok(found) if !again => {
                        notices(Notice::Warning(format!(
                            "watching failed and was set up anew: {error}"
                        )));
                        found
                    }
                    Ok(_) | Err(_) => {
                        notices(Notice::Failed(format!("watching failed: {error}")));
                        return;
                    }
                }
            }
        };
        if fallback && (is_last || compared.elapsed() >= interval) {
            native.tree.rescan_unwatched(&mut changes);
            compared = Instant::now();
        }
        let found = count(&native.tree);
        if !teller.tell(changes, found) || is_last {
            return;
        }
    }
}

fn scan(mut tree: Tree<Scanner>, poll_interval: u64, stop: &std::io::PipeReader, notices: &Teller) {
    let mut teller = Counter {
        notices,
        counted: count(&tree),
    };
    let config = tree.scope.config_file.clone();
    let stamp = || std::fs::metadata(&config).and_then(|found| found.modified()).ok();
    let mut config_stamp = stamp();
    loop {
        let is_last = wait_for_stop(stop, Duration::from_millis(poll_interval));
        let mut changes = Vec::new();
        tree.rescan(&mut changes);
        let now = stamp();
        if now != config_stamp {
            config_stamp = now;
            notices(Notice::ConfigChanged);
        }
        let found = count(&tree);
        if !teller.tell(changes, found) || is_last {
            return;
        }
    }
}

/// Wait for events, or for the time; true when the watcher is to stop.
fn wait(events: std::os::fd::BorrowedFd<'_>, stop: &std::io::PipeReader, limit: Option<Duration>) -> bool {
    let timeout = limit.and_then(|limit| Timespec::try_from(limit).ok());
    let mut both = [
        PollFd::new(stop, PollFlags::IN),
        PollFd::from_borrowed_fd(events, PollFlags::IN),
    ];
    poll(&mut both, timeout.as_ref()).is_ok_and(|count| count > 0) && !both[0].revents().is_empty()
}

/// Whether the other end was closed within the time.
fn wait_for_stop(stop: &std::io::PipeReader, limit: Duration) -> bool {
    let timeout = Timespec::try_from(limit).ok();
    let mut one = [PollFd::new(stop, PollFlags::IN)];
    matches!(poll(&mut one, timeout.as_ref()), Ok(count) if count > 0)
}
