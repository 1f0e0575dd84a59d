//! The native backend on Linux: one inotify watch per directory.

use std::collections::BTreeMap;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, WatchFlags};
use rustix::io::Errno;

use super::Scope;
use super::tree::{NoWatch, Registrar, Tree, join};
use crate::core::Change;

/// What counts: nothing that only reads.
const MASK: WatchFlags = WatchFlags::CREATE
    .union(WatchFlags::MODIFY)
    .union(WatchFlags::ATTRIB)
    .union(WatchFlags::CLOSE_WRITE)
    .union(WatchFlags::MOVE)
    .union(WatchFlags::DELETE)
    .union(WatchFlags::DELETE_SELF)
    .union(WatchFlags::ONLYDIR)
    .union(WatchFlags::EXCL_UNLINK)
    .union(WatchFlags::MASK_ADD);

pub(super) struct Kernel {
    queue: OwnedFd,
    /// Watches that may still be added; only tests make it small.
    left: usize,
}

impl Kernel {
    fn new(limit: usize) -> std::io::Result<Self> {
        Ok(Self {
            queue: inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK)?,
            left: limit,
        })
    }
}

impl Registrar for Kernel {
    fn add(&mut self, directory: &Path) -> Result<Option<i32>, NoWatch> {
        if self.left == 0 {
            return Err(NoWatch::Limit);
        }
        match inotify::add_watch(&self.queue, directory, MASK) {
            Ok(watch) => {
                self.left -= 1;
                Ok(Some(watch))
            }
            Err(Errno::NOSPC | Errno::NOMEM) => Err(NoWatch::Limit),
            Err(_) => Err(NoWatch::Gone),
        }
    }

    fn remove(&mut self, watch: i32) {
        // Already gone when the directory is: the kernel removes such watches itself.
        if inotify::remove_watch(&self.queue, watch).is_ok() {
            self.left = self.left.saturating_add(1);
        }
    }
}

/// A file outside the tree that matters: the config, or what a literal link points to.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Beside {
    Config,
    Alias(Vec<u8>),
}

pub(super) struct Native {
    pub(super) tree: Tree<Kernel>,
    limit: usize,
    beside: BTreeMap<i32, Vec<(Vec<u8>, Beside)>>,
}

/// What one reading of the queue brought.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) changes: Vec<Change>,
    pub(super) config_changed: bool,
    pub(super) overflow: bool,
}

impl Native {
    pub(super) fn new(scope: Scope, limit: usize) -> std::io::Result<Self> {
        let mut tree = Tree::new(scope, Kernel::new(limit)?, false);
        tree.build();
        let mut native = Self {
            tree,
            limit,
            beside: BTreeMap::new(),
        };
        native.watch_beside();
        Ok(native)
    }

    /// What to wait on.
    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.tree.registrar.queue.as_fd()
    }

    /// A fresh queue and a full scan, after reading the old one failed.
    pub(super) fn recreate(&mut self) -> std::io::Result<Vec<Change>> {
        self.tree.registrar = Kernel::new(self.limit)?;
        self.tree.register_again();
        self.watch_beside();
        let mut changes = Vec::new();
        self.tree.rescan(&mut changes);
        Ok(changes)
    }

    /// The kernel's limit on watches for one user.
    pub(super) fn kernel_limit() -> Option<u64> {
        std::fs::read_to_string("/proc/sys/fs/inotify/max_user_watches")
            .ok()?
            .trim()
            .parse()
            .ok()
    }

    fn watch_beside(&mut self) {
        self.beside.clear();
        self.add_beside(&self.tree.scope.config_file.clone(), &Beside::Config);
        let links: Vec<(Vec<u8>, PathBuf)> = self
            .tree
            .targets()
            .iter()
            .filter(|target| target.file)
            .filter_map(|target| {
                let path = target.path.as_bytes().to_vec();
                let absolute = self.tree.absolute(&path);
                let is_link = absolute.symlink_metadata().is_ok_and(|found| found.is_symlink());
                is_link
                    .then(|| absolute.canonicalize().ok())
                    .flatten()
                    .map(|real| (path, real))
            })
            .collect();
        for (path, real) in links {
            self.add_beside(&real, &Beside::Alias(path));
        }
    }

    fn add_beside(&mut self, file: &Path, what: &Beside) {
        use std::os::unix::ffi::OsStrExt;
        let (Some(directory), Some(name)) = (file.parent(), file.file_name()) else {
            return;
        };
        // Without this watch only a hint or a resolved link is missed; the rest is not harmed.
        if let Ok(watch) = inotify::add_watch(&self.tree.registrar.queue, directory, MASK) {
            self.beside
                .entry(watch)
                .or_default()
                .push((name.as_bytes().to_vec(), what.clone()));
        }
    }

    /// Read everything the kernel has queued.
    pub(super) fn read(&mut self) -> std::io::Result<Reading> {
        let mut reading = Reading::default();
        let mut buffer = vec![MaybeUninit::uninit(); 32 * 1024];
        let queue = self.tree.registrar.queue.try_clone()?;
        let mut events = inotify::Reader::new(&queue, &mut buffer);
        loop {
            match events.next() {
                Ok(event) => {
                    let name = event.file_name().map(std::ffi::CStr::to_bytes);
                    self.apply(event.wd(), event.events(), name, &mut reading);
                }
                Err(Errno::AGAIN) => return Ok(reading),
                Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn apply(&mut self, watch: i32, flags: ReadFlags, name: Option<&[u8]>, reading: &mut Reading) {
        if flags.contains(ReadFlags::QUEUE_OVERFLOW) {
            reading.overflow = true;
            return;
        }
        if let Some(name) = name {
            self.apply_beside(watch, name, reading);
        }
        let changes = &mut reading.changes;
        let Some(directory) = self.tree.watched(watch) else {
            return;
        };
        let Some(name) = name else {
            if flags.intersects(ReadFlags::DELETE_SELF | ReadFlags::UNMOUNT | ReadFlags::IGNORED) {
                self.tree.dropped(watch, changes);
            }
            return;
        };
        let path = join(directory, name);
        let is_directory = flags.contains(ReadFlags::ISDIR);
        let left = flags.intersects(ReadFlags::DELETE | ReadFlags::MOVED_FROM);
        let came = flags.intersects(ReadFlags::CREATE | ReadFlags::MOVED_TO);
        match (is_directory, left, came) {
            (true, true, _) => self.tree.lose(&path, changes),
            (false, true, _) => self.tree.gone(&path, changes),
            (true, false, true) => self.tree.appeared(&path, changes),
            (true, false, false) => {}
            (false, false, _) => self.tree.touched(&path, changes),
        }
        let relinked = self
            .tree
            .targets()
            .iter()
            .any(|target| target.file && target.path.as_bytes() == path);
        if relinked && (left || came) {
            self.watch_beside();
        }
    }

    fn apply_beside(&mut self, watch: i32, name: &[u8], reading: &mut Reading) {
        let Some(files) = self.beside.get(&watch) else {
            return;
        };
        let matching: Vec<Beside> = files
            .iter()
            .filter(|(file, _)| file == name)
            .map(|(_, what)| what.clone())
            .collect();
        for what in matching {
            match what {
                Beside::Config => reading.config_changed = true,
                Beside::Alias(path) => self.tree.touched(&path, &mut reading.changes),
            }
        }
    }
}
