//! The native backend elsewhere: the system's own recursive notifications say where to look, the
//! tree says what changed.

use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};

use notify::{EventKind, RecommendedWatcher, RecursiveMode, Watcher};

use super::Scope;
use super::tree::{NoWatch, Registrar, Tree};
use crate::core::Change;

/// Needs no registration: root is watched as a whole.
pub(super) struct Whole;

impl Registrar for Whole {
    fn add(&mut self, _: &Path) -> Result<Option<i32>, NoWatch> {
        Ok(None)
    }

    fn remove(&mut self, _: i32) {}
}

pub(super) struct Native {
    pub(super) tree: Tree<Whole>,
    events: Receiver<notify::Result<notify::Event>>,
    sender: Sender<notify::Result<notify::Event>>,
    /// Readable while events wait.
    bell: std::io::PipeReader,
    ringer: std::io::PipeWriter,
    real_root: PathBuf,
    watcher: RecommendedWatcher,
}

/// What one reading of the queue brought.
#[derive(Debug, Default)]
pub(super) struct Reading {
    pub(super) changes: Vec<Change>,
    pub(super) config_changed: bool,
    pub(super) overflow: bool,
}

fn start(
    scope: &Scope,
    sender: &Sender<notify::Result<notify::Event>>,
    ringer: &std::io::PipeWriter,
) -> std::io::Result<RecommendedWatcher> {
    let (sender, mut ringer) = (sender.clone(), ringer.try_clone()?);
    let mut watcher = notify::recommended_watcher(move |event| {
        use std::io::Write;
        if sender.send(event).is_ok() {
            // A full pipe has rung already.
            drop(ringer.write_all(b"!"));
        }
    })
    .map_err(std::io::Error::other)?;
    watcher
        .watch(&scope.root, RecursiveMode::Recursive)
        .map_err(std::io::Error::other)?;
    if let Some(directory) = scope
        .config_file
        .parent()
        .filter(|directory| !directory.starts_with(&scope.root))
    {
        // Without it only the hint about a changed config is missed.
        drop(watcher.watch(directory, RecursiveMode::NonRecursive));
    }
    Ok(watcher)
}

impl Native {
    pub(super) fn new(scope: Scope, _: usize) -> std::io::Result<Self> {
        let (sender, events) = channel();
        let (bell, ringer) = std::io::pipe()?;
        let watcher = start(&scope, &sender, &ringer)?;
        let real_root = scope.root.canonicalize()?;
        let mut tree = Tree::new(scope, Whole, false);
        tree.build();
        Ok(Self {
            tree,
            events,
            sender,
            bell,
            ringer,
            real_root,
            watcher,
        })
    }

    pub(super) fn descriptor(&self) -> BorrowedFd<'_> {
        self.bell.as_fd()
    }

    pub(super) fn recreate(&mut self) -> std::io::Result<Vec<Change>> {
        self.watcher = start(&self.tree.scope, &self.sender, &self.ringer)?;
        let mut changes = Vec::new();
        self.tree.rescan(&mut changes);
        Ok(changes)
    }

    pub(super) fn kernel_limit() -> Option<u64> {
        None
    }

    pub(super) fn read(&mut self) -> std::io::Result<Reading> {
        let mut rings = [0; 4096];
        std::io::Read::read(&mut &self.bell, &mut rings)?;
        let mut reading = Reading::default();
        while let Ok(event) = self.events.try_recv() {
            let event = event.map_err(std::io::Error::other)?;
            reading.overflow |= event.need_rescan();
            if matches!(event.kind, EventKind::Access(_)) {
                continue;
            }
            for path in &event.paths {
                self.apply(path, &mut reading);
            }
        }
        Ok(reading)
    }

    fn apply(&mut self, path: &Path, reading: &mut Reading) {
        reading.config_changed |= path == self.tree.scope.config_file;
        let inside = path
            .strip_prefix(&self.tree.scope.root)
            .or_else(|_| path.strip_prefix(&self.real_root));
        let Ok(inside) = inside else { return };
        let relative = inside.as_os_str().as_bytes().to_vec();
        match path.symlink_metadata() {
            Ok(found) if found.is_dir() => self.tree.appeared(&relative, &mut reading.changes),
            Ok(_) => self.tree.touched(&relative, &mut reading.changes),
            Err(_) => self.tree.gone(&relative, &mut reading.changes),
        }
    }
}
