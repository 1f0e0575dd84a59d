//! The files of classes as they were when their directory was read, so that a program that reads them all costs one
//! question for each file and not eight.
//!
//! Nothing here is believed by time. Before a snapshot is used it is looked up what the version of `classes` is, which
//! grows with everything the daemon hears of any class: the daemon is asked, or its file is read if it was asked just
//! now. If that has changed, the daemon is asked for the version of the class.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use beamtalk_ninep::{Attachment, Error, Qid, Reply, Request};

use super::aside::takes_asides;
use super::files::{Errno, Seen};
use super::lock;
use crate::ages::Ages;

/// Bytes of all of them together.
const ROOM: usize = 64 << 20;
/// What follows a question so soon belongs to the same piece of work: less than it takes the daemon to hear of a change.
const PIECE: Duration = Duration::from_millis(5);

/// The files of one directory, by name.
pub(super) struct Snapshot {
    pub(super) files: BTreeMap<String, Seen>,
    /// The class they are of, with its version.
    class: Qid,
    bytes: usize,
}

struct Kept {
    snapshot: Arc<Snapshot>,
    /// The version of all classes for which it was right.
    age: u64,
}

#[derive(Default)]
struct Shelf {
    by_directory: BTreeMap<String, Kept>,
    bytes: usize,
}

pub(super) struct Snapshots {
    kept: Mutex<Shelf>,
    /// The daemon's file of the version of all classes.
    ages: Option<Ages>,
    /// A fid of `classes`, by which the daemon is asked.
    classes: Mutex<Option<u32>>,
    /// When it was asked last.
    asked: Mutex<Option<Instant>>,
}

/// The directory of the class to which one of its two directories of methods belongs.
fn class_of(directory: &str) -> &str {
    directory.strip_suffix("/.class").unwrap_or(directory)
}

impl Snapshots {
    pub(super) fn new(ages: Option<Ages>) -> Self {
        Snapshots {
            kept: Mutex::default(),
            ages,
            classes: Mutex::default(),
            asked: Mutex::default(),
        }
    }

    /// The version of all classes together. The daemon is asked at the beginning of a piece of work, and so has taken in
    /// what it was told before; what grows while the work goes on is seen in its file.
    fn age(&self, tree: &Attachment) -> Result<u64, Error> {
        let written = || self.ages.as_ref().and_then(Ages::now);
        let mut asked = lock(&self.asked);
        if asked.is_some_and(|asked| asked.elapsed() < PIECE)
            && let Some(age) = written()
        {
            return Ok(age);
        }
        // Whoever comes meanwhile waits: it is asked once for all of them.
        let version = self.ask(tree)?;
        *asked = Some(Instant::now());
        drop(asked);
        // Never what the file says: the two count apart.
        Ok(written().unwrap_or(u64::from(version) | 1 << 63))
    }

    fn ask(&self, tree: &Attachment) -> Result<u32, Error> {
        let mut fid = lock(&self.classes);
        let number = match *fid {
            Some(number) => number,
            None => *fid.insert(tree.walk("classes")?),
        };
        drop(fid);
        match tree.client().call(&Request::Stat { fid: number })? {
            Reply::Stat { stat } => Ok(stat.qid.version),
            _ => Err(Error::Malformed),
        }
    }

    /// What is kept of a directory, if it is still so.
    pub(super) fn get(&self, tree: &Attachment, directory: &str) -> Option<Arc<Snapshot>> {
        if !takes_asides(directory) {
            return None;
        }
        let (snapshot, known) = {
            let kept = lock(&self.kept);
            let one = kept.by_directory.get(directory)?;
            (Arc::clone(&one.snapshot), one.age)
        };
        let age = self.age(tree).ok()?;
        if age == known {
            return Some(snapshot);
        }
        // Another class may have changed, or this one.
        let is_same = tree
            .stat(class_of(directory))
            .is_ok_and(|stat| stat.qid == snapshot.class);
        let mut kept = lock(&self.kept);
        if !is_same {
            kept.remove(directory);
            return None;
        }
        if let Some(one) = kept.by_directory.get_mut(directory) {
            one.age = age;
        }
        Some(snapshot)
    }

    /// Read a directory; with everything in it, where classes are.
    pub(super) fn read(&self, tree: &Attachment, directory: &str) -> Result<Listing, Errno> {
        if let Some(snapshot) = self.get(tree, directory) {
            return Ok(snapshot.listing());
        }
        if !takes_asides(directory) {
            let stats = tree.list(directory)?;
            return Ok(stats
                .iter()
                .map(|stat| (stat.name.clone(), Seen::of(stat)))
                .collect());
        }
        // Asked for before: what changes meanwhile makes what is read too old.
        let age = self.age(tree)?;
        let class = tree.stat(class_of(directory))?.qid;
        let stats = tree.list(directory)?;
        let readable = stats
            .iter()
            .filter(|stat| !stat.is_directory() && stat.mode & 0o400 != 0);
        let wanted: Vec<(&str, u64)> = readable.map(|stat| (stat.name.as_str(), stat.length)).collect();
        let mut contents: BTreeMap<&str, Vec<u8>> = BTreeMap::new();
        for ((name, length), content) in wanted.iter().zip(tree.read_all(directory, &wanted)?) {
            if let Ok(content) = content
                && content.len() as u64 == *length
            {
                contents.insert(name, content);
            }
        }
        let mut bytes = 0;
        let files: BTreeMap<String, Seen> = stats
            .iter()
            .map(|stat| {
                let content = contents.remove(stat.name.as_str()).map(Arc::new);
                bytes += stat.name.len() + content.as_ref().map_or(0, |content| content.len());
                (
                    stat.name.clone(),
                    Seen {
                        content,
                        ..Seen::of(stat)
                    },
                )
            })
            .collect();
        let snapshot = Arc::new(Snapshot { files, class, bytes });
        lock(&self.kept).put(
            directory,
            Kept {
                snapshot: Arc::clone(&snapshot),
                age,
            },
        );
        Ok(snapshot.listing())
    }
}

/// A directory as it was when it was opened.
pub(super) type Listing = Vec<(String, Seen)>;

impl Snapshot {
    fn listing(&self) -> Listing {
        let entry = |(name, seen): (&String, &Seen)| (name.clone(), seen.clone());
        self.files.iter().map(entry).collect()
    }
}

impl Shelf {
    fn remove(&mut self, directory: &str) {
        if let Some(gone) = self.by_directory.remove(directory) {
            self.bytes -= gone.snapshot.bytes;
        }
    }

    fn put(&mut self, directory: &str, kept: Kept) {
        self.remove(directory);
        if self.bytes + kept.snapshot.bytes > ROOM {
            // What is used will be there again soon.
            *self = Shelf::default();
        }
        self.bytes += kept.snapshot.bytes;
        self.by_directory.insert(directory.to_owned(), kept);
    }
}
