//! The files of the project against the image: which of them are not what was loaded.
//!
//! A file is compared by its content. One that was found to be as loaded is known again by its size and times, so that
//! looking at many files costs little more than asking for their names.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use sha2::{Digest, Sha256};

/// A file written so shortly ago may be written again without another time of change.
const FRESH: Duration = Duration::from_secs(1);

type Hash = [u8; 32];

/// What tells two states of a file apart without reading it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    size: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

#[derive(Clone, Debug)]
struct Seen {
    /// Of the text that was loaded.
    hash: Hash,
    /// The file had that text when it had this stamp.
    stamp: Option<Stamp>,
}

/// The files that were loaded, by their full paths.
#[derive(Clone, Debug, Default)]
pub(crate) struct Disk {
    files: BTreeMap<PathBuf, Seen>,
    /// Where new files would belong to the project.
    directories: Vec<PathBuf>,
}

/// What a look at the disk found.
#[derive(Debug, Default)]
pub(crate) struct Look {
    /// Changed, new and deleted files.
    pub(crate) changed: Vec<PathBuf>,
    same: Vec<(PathBuf, Stamp)>,
}

impl Disk {
    /// These files, and no others, are in the image.
    pub(crate) fn replace<'a>(
        &mut self,
        files: impl Iterator<Item = (PathBuf, &'a str)>,
        directories: Vec<PathBuf>,
    ) {
        self.files = files.map(|(path, text)| (path, seen(text.as_bytes()))).collect();
        self.directories = directories;
    }

    /// One file of the project is in the image with this content.
    pub(crate) fn loaded(&mut self, path: &Path, content: &[u8]) {
        let is_own = self
            .directories
            .iter()
            .any(|directory| path.starts_with(directory));
        if is_own || self.files.contains_key(path) {
            self.files.insert(path.to_owned(), seen(content));
        }
    }

    /// A file is gone, and so are its classes.
    pub(crate) fn removed(&mut self, path: &Path) {
        self.files.remove(path);
    }

    /// Look at the disk. This takes time, so it is done on a copy.
    pub(crate) fn look(&self) -> Look {
        let mut look = Look::default();
        for (path, seen) in &self.files {
            let stamp = Stamp::of(path);
            if stamp.is_some() && stamp == seen.stamp {
                continue;
            }
            let content = beamtalk_storage::read_written(path).ok();
            let is_same = content.is_some_and(|content| hash(&content) == seen.hash);
            match stamp {
                Some(stamp) if is_same => {
                    if !stamp.is_fresh() {
                        look.same.push((path.clone(), stamp));
                    }
                }
                _ => look.changed.push(path.clone()),
            }
        }
        for directory in &self.directories {
            let found = files_below(directory).into_iter();
            look.changed
                .extend(found.filter(|path| !self.files.contains_key(path)));
        }
        look.changed.sort_unstable();
        look.changed.dedup();
        look
    }

    /// Keep what a look learned, unless the file was loaded again meanwhile.
    pub(crate) fn learn(&mut self, earlier: &Self, look: &Look) {
        for (path, stamp) in &look.same {
            let before = earlier.files.get(path).map(|seen| seen.hash);
            if let Some(seen) = self.files.get_mut(path)
                && Some(seen.hash) == before
            {
                seen.stamp = Some(*stamp);
            }
        }
    }
}

impl Stamp {
    fn of(path: &Path) -> Option<Self> {
        let about = std::fs::metadata(path).ok()?;
        Some(Self {
            inode: about.ino(),
            size: about.len(),
            modified: (about.mtime(), about.mtime_nsec()),
            changed: (about.ctime(), about.ctime_nsec()),
        })
    }

    fn is_fresh(&self) -> bool {
        let latest = self.modified.0.max(self.changed.0);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let now = now.map_or(0, |now| i64::try_from(now.as_secs()).unwrap_or(i64::MAX));
        now.saturating_sub(latest) <= i64::try_from(FRESH.as_secs()).unwrap_or(1)
    }
}

fn seen(content: &[u8]) -> Seen {
    Seen {
        hash: hash(content),
        stamp: None,
    }
}

fn hash(content: &[u8]) -> Hash {
    Sha256::digest(content).into()
}

/// The `.bt` files below a directory that a build takes, as far as it can be read: none that is hidden.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        let Ok(entries) = std::fs::read_dir(&directory) else {
            continue;
        };
        for entry in entries.flatten() {
            let path = entry.path();
            let name = entry.file_name();
            if name.as_encoded_bytes().starts_with(b".") || name == "_build" {
                continue;
            }
            let is_source = path.extension().is_some_and(|extension| extension == "bt");
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => directories.push(path),
                Ok(_) if is_source && path.is_file() => found.push(path),
                Ok(_) | Err(_) => {}
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn names(look: &Look) -> Vec<String> {
        let names = look.changed.iter().filter_map(|path| path.file_name());
        names.map(|name| name.to_string_lossy().into_owned()).collect()
    }

    #[test]
    fn changed_new_and_deleted_files_are_found() {
        let root = tempfile::tempdir().expect("a directory");
        let source = root.path().join("src");
        fs::create_dir_all(source.join("deep")).expect("made");
        let write = |name: &str, text: &str| fs::write(source.join(name), text).expect("written");
        for name in ["A.bt", "B.bt", "deep/C.bt"] {
            write(name, "same");
        }
        let files: Vec<PathBuf> = ["A.bt", "B.bt", "deep/C.bt"].map(|name| source.join(name)).into();
        let mut disk = Disk::default();
        disk.replace(files.into_iter().map(|file| (file, "same")), vec![source.clone()]);
        assert_eq!(names(&disk.look()), Vec::<String>::new());
        // The same size, and the times set back.
        let before = fs::metadata(source.join("A.bt"))
            .and_then(|about| about.modified())
            .expect("a time");
        write("A.bt", "Same");
        let file = fs::File::options()
            .write(true)
            .open(source.join("A.bt"))
            .expect("open");
        file.set_modified(before).expect("set");
        assert_eq!(names(&disk.look()), ["A.bt"]);
        fs::remove_file(source.join("B.bt")).expect("removed");
        write("deep/D.bt", "new");
        write("deep/notes.txt", "no source");
        write("deep/.hidden.bt", "no source");
        std::os::unix::fs::symlink("nowhere", source.join("Lost.bt")).expect("linked");
        assert_eq!(names(&disk.look()), ["A.bt", "B.bt", "D.bt"]);
        disk.loaded(&source.join("A.bt"), b"Same");
        disk.loaded(&source.join("deep/D.bt"), b"new");
        disk.loaded(&root.path().join("elsewhere.bt"), b"x");
        disk.removed(&source.join("B.bt"));
        assert_eq!(names(&disk.look()), Vec::<String>::new());
    }

    #[test]
    fn a_file_is_read_again_only_when_its_stamp_is_another() {
        let root = tempfile::tempdir().expect("a directory");
        let file = root.path().join("A.bt");
        fs::write(&file, "text").expect("written");
        let mut disk = Disk::default();
        disk.replace([(file.clone(), "text")].into_iter(), Vec::new());
        let look = disk.look();
        assert!(look.same.is_empty(), "it was written just now");
        let old = Stamp::of(&file).map(|stamp| Stamp {
            modified: (1, 0),
            changed: (1, 0),
            ..stamp
        });
        let look = Look {
            changed: Vec::new(),
            same: vec![(file.clone(), old.expect("a file"))],
        };
        let earlier = disk.clone();
        disk.learn(&earlier, &look);
        assert_eq!(disk.files[&file].stamp, old);
        disk.loaded(&file, b"other");
        disk.learn(&earlier, &look);
        assert_eq!(disk.files[&file].stamp, None, "another text is loaded by now");
    }
}
