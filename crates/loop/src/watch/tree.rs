//! The tree: directories worth watching, and the table of matching files in them.
//!
//! It starts at root and enters only directories that can hold a match or lead to a target, so a
//! target that does not exist yet is found when the directories above it appear. Paths are raw
//! bytes relative to root; they become text only to be matched and reported.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hasher};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::Scope;
use crate::core::Change;
use crate::pattern::{Target, is_below};

/// A file younger than this may change again without its times telling.
const YOUNG: Duration = Duration::from_secs(2);
const HASH_LIMIT: u64 = 1024 * 1024;

/// Registers directories with the kernel.
pub(super) trait Registrar {
    /// Watch the entries of a directory. `Ok(None)` when this backend needs no such thing.
    fn add(&mut self, directory: &Path) -> Result<Option<i32>, NoWatch>;
    fn remove(&mut self, watch: i32);
}

/// Why a directory could not be registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoWatch {
    /// The kernel's limit on watches is reached.
    Limit,
    /// The directory is gone, or not ours to read.
    Gone,
}

/// What is remembered of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Meta {
    modified: i64,
    size: u64,
    inode: u64,
}

#[derive(Debug, Default)]
struct Directory {
    watch: Option<i32>,
    identity: (u64, u64),
    files: BTreeMap<Box<[u8]>, Meta>,
}

type Relative = Vec<u8>;

pub(super) struct Tree<R> {
    pub(super) scope: Scope,
    pub(super) registrar: R,
    targets: Vec<Target>,
    directories: BTreeMap<Relative, Directory>,
    by_watch: BTreeMap<i32, Relative>,
    identities: BTreeSet<(u64, u64)>,
    /// Directories the kernel would not take.
    unwatched: BTreeSet<Relative>,
    /// Hashes of files too young to trust their times; only kept when `hashing`.
    hashes: BTreeMap<Relative, u64>,
    hashing: bool,
    files: usize,
}

impl<R: Registrar> Tree<R> {
    /// `hashing` compares the content of young files in a scan, for a backend that only scans.
    pub(super) fn new(scope: Scope, registrar: R, hashing: bool) -> Self {
        let targets = scope.groups.targets();
        Self {
            scope,
            registrar,
            targets,
            directories: BTreeMap::new(),
            by_watch: BTreeMap::new(),
            identities: BTreeSet::new(),
            unwatched: BTreeSet::new(),
            hashes: BTreeMap::new(),
            hashing,
            files: 0,
        }
    }

    pub(super) fn targets(&self) -> &[Target] {
        &self.targets
    }

    pub(super) fn directory_count(&self) -> usize {
        self.directories.len()
    }

    pub(super) fn file_count(&self) -> usize {
        self.files
    }

    pub(super) fn unwatched_count(&self) -> usize {
        self.unwatched.len()
    }

    /// The directory a kernel watch stands for.
    pub(super) fn watched(&self, watch: i32) -> Option<&Relative> {
        self.by_watch.get(&watch)
    }

    pub(super) fn absolute(&self, path: &[u8]) -> PathBuf {
        self.scope.root.join(OsStr::from_bytes(path))
    }

    /// Build the tree; what is there now is not a change.
    pub(super) fn build(&mut self) {
        self.enter(Vec::new(), &mut Vec::new());
    }

    fn is_wanted(&self, directory: &str) -> bool {
        self.scope.groups.can_match_below(directory)
            || self
                .targets
                .iter()
                .any(|target| is_below(&target.path, directory))
    }

    /// Register a directory, then report every match in it, and so on below.
    fn enter(&mut self, directory: Relative, changes: &mut Vec<Change>) {
        let mut open = vec![directory];
        // Links come last, so what they point to is reported under its own name where it has one.
        let mut links = Vec::new();
        while let Some(path) = open.pop().or_else(|| links.pop()) {
            if self.add(&path) {
                let (inner, linked) = self.look(&path, changes);
                open.extend(inner);
                links.extend(linked);
            }
        }
    }

    fn add(&mut self, path: &Relative) -> bool {
        let absolute = self.absolute(path);
        let Ok(found) = std::fs::metadata(&absolute) else {
            return false;
        };
        let identity = (found.dev(), found.ino());
        if !found.is_dir() || self.directories.contains_key(path) || !self.identities.insert(identity) {
            return false;
        }
        let watch = match self.registrar.add(&absolute) {
            Ok(watch) => watch,
            Err(NoWatch::Limit) => {
                self.unwatched.insert(path.clone());
                None
            }
            Err(NoWatch::Gone) => {
                self.identities.remove(&identity);
                return false;
            }
        };
        if let Some(watch) = watch {
            self.by_watch.insert(watch, path.clone());
        }
        self.directories.insert(
            path.clone(),
            Directory {
                watch,
                identity,
                files: BTreeMap::new(),
            },
        );
        true
    }

    /// Compare a known directory with what is in it now: reports files, gives directories that
    /// are to be entered, plain ones and linked ones.
    fn look(&mut self, path: &Relative, changes: &mut Vec<Change>) -> (Vec<Relative>, Vec<Relative>) {
        let (mut inner, mut linked) = (Vec::new(), Vec::new());
        let Ok(entries) = std::fs::read_dir(self.absolute(path)) else {
            if !path.is_empty() {
                self.lose(path, changes);
            }
            return (inner, linked);
        };
        let mut present = BTreeSet::new();
        for entry in entries.flatten() {
            let name = entry.file_name();
            let child = join(path, name.as_bytes());
            let Ok(kind) = entry.file_type() else { continue };
            let is_link = kind.is_symlink();
            let is_directory = kind.is_dir() || (is_link && self.absolute(&child).is_dir());
            if is_directory {
                if self.is_wanted(&text(&child)) {
                    present.insert(name.as_bytes().to_vec());
                    if self.is_still(&child) {
                        continue;
                    }
                    self.lose(&child, changes);
                    if is_link { &mut linked } else { &mut inner }.push(child);
                }
            } else if self.scope.is_match(&text(&child)) {
                present.insert(name.as_bytes().to_vec());
                self.compare(path, name.as_bytes(), changes);
            }
        }
        self.lose_absent(path, &present, changes);
        // Popped from the end: the first in name order is entered first.
        inner.sort_by(|left, right| right.cmp(left));
        linked.sort_by(|left, right| right.cmp(left));
        (inner, linked)
    }

    /// Whether a known directory is still the same one.
    fn is_still(&self, path: &Relative) -> bool {
        let Some(known) = self.directories.get(path) else {
            return false;
        };
        std::fs::metadata(self.absolute(path)).is_ok_and(|found| (found.dev(), found.ino()) == known.identity)
    }

    fn lose_absent(&mut self, path: &Relative, present: &BTreeSet<Vec<u8>>, changes: &mut Vec<Change>) {
        let gone: Vec<Box<[u8]>> = self
            .directories
            .get(path)
            .into_iter()
            .flat_map(|directory| directory.files.keys())
            .filter(|name| !present.contains(name.as_ref()))
            .cloned()
            .collect();
        for name in gone {
            self.gone(&join(path, &name), changes);
        }
        let lost: Vec<Relative> = self
            .below(path)
            .filter(|child| parent(child) == path.as_slice() && !present.contains(file_name(child)))
            .cloned()
            .collect();
        for child in lost {
            self.lose(&child, changes);
        }
    }

    /// The known directories below `path`, without itself.
    fn below(&self, path: &Relative) -> impl Iterator<Item = &Relative> {
        let mut prefix = path.clone();
        if !prefix.is_empty() {
            prefix.push(b'/');
        }
        self.directories
            .range(prefix.clone()..)
            .map(|(child, _)| child)
            .take_while(move |child| child.starts_with(&prefix))
            .filter(|child| !child.is_empty())
    }

    /// Compare one existing file with the table.
    fn compare(&mut self, path: &Relative, name: &[u8], changes: &mut Vec<Change>) {
        let child = join(path, name);
        let Some((meta, age)) = meta_of(&self.absolute(&child)) else {
            return;
        };
        let Some(directory) = self.directories.get_mut(path) else {
            return;
        };
        let before = directory.files.insert(name.into(), meta);
        if before.is_none() {
            self.files += 1;
        }
        let mut changed = before != Some(meta);
        if self.hashing {
            let young = age < YOUNG && meta.size <= HASH_LIMIT;
            let hash = if young {
                hash_of(&self.absolute(&child))
            } else {
                None
            };
            match hash {
                Some(hash) => {
                    changed |= self
                        .hashes
                        .insert(child.clone(), hash)
                        .is_some_and(|old| old != hash);
                }
                None => drop(self.hashes.remove(&child)),
            }
        }
        if changed {
            changes.push(Change {
                path: text(&child).into_owned(),
                known: before.is_some(),
            });
        }
    }

    /// Something happened to an entry that is there, or was a moment ago.
    pub(super) fn touched(&mut self, path: &Relative, changes: &mut Vec<Change>) {
        let absolute = self.absolute(path);
        let linked_directory =
            std::fs::symlink_metadata(&absolute).is_ok_and(|found| found.is_symlink()) && absolute.is_dir();
        if linked_directory {
            if !self.is_still(path) {
                self.appeared(path, changes);
            }
            return;
        }
        let (holder, name) = (parent(path).to_vec(), file_name(path));
        if !self.scope.is_match(&text(path)) {
            return;
        }
        let Some(directory) = self.directories.get_mut(&holder) else {
            return;
        };
        let known = match meta_of(&self.scope.root.join(OsStr::from_bytes(path))) {
            Some((meta, _)) => directory.files.insert(name.into(), meta).is_some(),
            None => directory.files.remove(name).is_some_and(|_| {
                // Counted again below.
                self.files -= 1;
                true
            }),
        };
        let exists = directory.files.contains_key(name);
        self.files += usize::from(exists && !known);
        changes.push(Change {
            path: text(path).into_owned(),
            known,
        });
    }

    /// An entry is gone: a file, or a directory with everything in it.
    pub(super) fn gone(&mut self, path: &Relative, changes: &mut Vec<Change>) {
        if self.directories.contains_key(path) {
            self.lose(path, changes);
            return;
        }
        if !self.scope.is_match(&text(path)) {
            return;
        }
        self.hashes.remove(path);
        let removed = self
            .directories
            .get_mut(parent(path))
            .and_then(|found| found.files.remove(file_name(path)));
        self.files -= usize::from(removed.is_some());
        changes.push(Change {
            path: text(path).into_owned(),
            known: removed.is_some(),
        });
    }

    /// A directory is there that was not before.
    pub(super) fn appeared(&mut self, path: &Relative, changes: &mut Vec<Change>) {
        if self.is_wanted(&text(path)) {
            self.lose(path, changes);
            self.enter(path.clone(), changes);
        }
    }

    /// A directory is gone: every file the table knows below it is reported.
    pub(super) fn lose(&mut self, path: &Relative, changes: &mut Vec<Change>) {
        let mut lost: Vec<Relative> = self.below(path).cloned().collect();
        if self.directories.contains_key(path) {
            lost.push(path.clone());
        }
        for path in lost {
            let Some(directory) = self.directories.remove(&path) else {
                continue;
            };
            self.identities.remove(&directory.identity);
            self.unwatched.remove(&path);
            if let Some(watch) = directory.watch {
                self.by_watch.remove(&watch);
                self.registrar.remove(watch);
            }
            self.files -= directory.files.len();
            for name in directory.files.keys() {
                let file = join(&path, name);
                self.hashes.remove(&file);
                changes.push(Change {
                    path: text(&file).into_owned(),
                    known: true,
                });
            }
        }
    }

    /// The kernel dropped a watch on its own.
    pub(super) fn dropped(&mut self, watch: i32, changes: &mut Vec<Change>) {
        if let Some(path) = self.by_watch.get(&watch).cloned()
            && !path.is_empty()
        {
            self.lose(&path, changes);
        }
    }

    /// Compare everything with the table; only differences are reported.
    pub(super) fn rescan(&mut self, changes: &mut Vec<Change>) {
        let known: Vec<Relative> = self.directories.keys().cloned().collect();
        self.rescan_these(known, changes);
    }

    /// Compare the directories the kernel does not watch.
    pub(super) fn rescan_unwatched(&mut self, changes: &mut Vec<Change>) {
        let known: Vec<Relative> = self.unwatched.iter().cloned().collect();
        self.rescan_these(known, changes);
    }

    fn rescan_these(&mut self, known: Vec<Relative>, changes: &mut Vec<Change>) {
        for path in known {
            if self.directories.contains_key(&path) {
                let (inner, linked) = self.look(&path, changes);
                for child in inner.into_iter().rev().chain(linked.into_iter().rev()) {
                    self.enter(child, changes);
                }
            }
        }
    }

    /// Forget every watch and ask the registrar anew, after the backend was replaced.
    pub(super) fn register_again(&mut self) {
        self.by_watch.clear();
        self.unwatched.clear();
        let paths: Vec<Relative> = self.directories.keys().cloned().collect();
        for path in paths {
            let watch = self.registrar.add(&self.absolute(&path));
            let Some(directory) = self.directories.get_mut(&path) else {
                continue;
            };
            directory.watch = watch.ok().flatten();
            match (watch, directory.watch) {
                (Err(_), _) => drop(self.unwatched.insert(path)),
                (Ok(_), Some(watch)) => drop(self.by_watch.insert(watch, path)),
                (Ok(_), None) => {}
            }
        }
    }
}

pub(super) fn join(directory: &[u8], name: &[u8]) -> Relative {
    if directory.is_empty() {
        return name.to_vec();
    }
    let mut path = Vec::with_capacity(directory.len() + 1 + name.len());
    path.extend_from_slice(directory);
    path.push(b'/');
    path.extend_from_slice(name);
    path
}

fn parent(path: &[u8]) -> &[u8] {
    path.iter()
        .rposition(|&byte| byte == b'/')
        .map_or(&[], |slash| &path[..slash])
}

fn file_name(path: &[u8]) -> &[u8] {
    path.iter()
        .rposition(|&byte| byte == b'/')
        .map_or(path, |slash| &path[slash + 1..])
}

fn text(path: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(path)
}

/// What is remembered of a file, and how old its last change is; none when it is no file.
fn meta_of(path: &Path) -> Option<(Meta, Duration)> {
    let found = std::fs::symlink_metadata(path)
        .ok()
        .filter(|found| !found.is_dir())?;
    let modified = found
        .mtime()
        .saturating_mul(1_000_000_000)
        .saturating_add(found.mtime_nsec());
    let age = found
        .modified()
        .ok()
        .and_then(|at| SystemTime::now().duration_since(at).ok());
    let meta = Meta {
        modified,
        size: found.size(),
        inode: found.ino(),
    };
    Some((meta, age.unwrap_or(Duration::ZERO)))
}

fn hash_of(path: &Path) -> Option<u64> {
    let found = std::fs::symlink_metadata(path).ok()?;
    if !found.is_file() {
        return None;
    }
    let mut hasher = DefaultHasher::new();
    let mut file = crate::files::open(path, std::fs::OpenOptions::new().read(true)).ok()?;
    let mut bytes = vec![0; 64 * 1024];
    loop {
        match file.read(&mut bytes).ok()? {
            0 => return Some(hasher.finish()),
            count => hasher.write(bytes.get(..count)?),
        }
    }
}
