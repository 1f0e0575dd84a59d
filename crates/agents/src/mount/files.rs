//! The mounted files: paths and handles above, 9P below. Nothing here knows FUSE.
//!
//! A document is collected in its handle and sent as a whole when it is closed or synchronised, so that each way of
//! saving commits once; streams, ctl and rpc files go through as they are.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use beamtalk_ninep::{Attachment, Error, File, Stat, mode};

use super::aside::{Shelf, is_temporary, takes_asides};
use super::snapshots::{Listing, Snapshots};
use crate::ages::Ages;
use crate::error::errno_of;
use crate::tree::names;

/// The largest document that is collected; the tree's own limit is smaller.
const LARGEST: usize = 16 << 20;

/// An error as a number of the system.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Errno(pub(super) i32);

/// The bytes of a file that is kept.
pub(super) type Content = Arc<Vec<u8>>;

const NOT_FOUND: Errno = Errno(libc::ENOENT);

impl From<Error> for Errno {
    fn from(error: Error) -> Self {
        match error {
            Error::Refused(refused) => Errno(i32::try_from(errno_of(&refused.text)).unwrap_or(libc::EIO)),
            Error::Closed => Errno(libc::ESHUTDOWN),
            Error::Io(_)
            | Error::TimedOut
            | Error::Malformed
            | Error::Unexpected { .. }
            | Error::Version { .. } => Errno(libc::EIO),
        }
    }
}

/// What is known of a file.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    pub(super) is_directory: bool,
    pub(super) mode: u16,
    pub(super) length: u64,
    pub(super) changed: SystemTime,
    /// Streams, ctl and rpc files: never kept, never collected.
    pub(super) is_live: bool,
    /// What is in it, where that is kept.
    pub(super) content: Option<Content>,
}

impl Seen {
    pub(super) fn directory() -> Self {
        Seen {
            is_directory: true,
            mode: 0o700,
            length: 0,
            changed: SystemTime::UNIX_EPOCH,
            is_live: false,
            content: None,
        }
    }

    pub(super) fn of(stat: &Stat) -> Self {
        Seen {
            is_directory: stat.is_directory(),
            mode: (stat.mode & 0o777) as u16,
            length: stat.length,
            changed: SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(stat.mtime.into()),
            is_live: stat.qid.version == 0 && !stat.is_directory(),
            content: None,
        }
    }
}

/// A file that is open.
enum Handle {
    /// Goes through as it is.
    Live(Arc<Mutex<File>>, Arc<File>),
    /// Is only read.
    Kept(Content),
    Document(Document),
}

struct Document {
    path: String,
    bytes: Vec<u8>,
    is_dirty: bool,
    appends: bool,
    /// Kept aside, whatever becomes of it.
    is_aside: bool,
    /// Each write is a change by itself.
    is_append_only: bool,
}

/// How a file is opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct Opening {
    pub(super) reads: bool,
    pub(super) writes: bool,
    pub(super) truncates: bool,
    pub(super) appends: bool,
}

pub(super) struct Files {
    tree: Attachment,
    /// By a connection of its own: whoever waits for an answer there reads the answers of all others too, and hands
    /// them over.
    live: Attachment,
    snapshots: Snapshots,
    handles: Mutex<(u64, BTreeMap<u64, Handle>)>,
    shelf: Mutex<Shelf>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn split(path: &str) -> (&str, &str) {
    path.rsplit_once('/').unwrap_or(("", path))
}

/// Whether a path can only be put aside: a name in a class's directory that no method has.
fn only_aside(path: &str) -> bool {
    let (directory, name) = split(path);
    let is_method = names::decode(name).is_some_and(|selector| names::is_selector(&selector));
    takes_asides(directory) && (!is_method || is_temporary(name))
}

impl Files {
    pub(super) fn new(tree: Attachment, live: Attachment, ages: Option<Ages>) -> Self {
        Files {
            tree,
            live,
            snapshots: Snapshots::new(ages),
            handles: Mutex::default(),
            shelf: Mutex::default(),
        }
    }

    /// The connection on which somebody may wait.
    pub(super) fn patient(&self) -> &Attachment {
        &self.live
    }

    pub(super) fn look(&self, path: &str) -> Result<Seen, Errno> {
        if let Some(aside) = lock(&self.shelf).get(path) {
            return Ok(Seen {
                is_directory: false,
                mode: aside.mode,
                length: aside.bytes.len() as u64,
                changed: aside.changed,
                is_live: false,
                content: None,
            });
        }
        let (directory, name) = split(path);
        if only_aside(path) && !name.starts_with('.') {
            return Err(NOT_FOUND);
        }
        if let Some(snapshot) = self.snapshots.get(&self.tree, directory) {
            let found = snapshot.files.get(name);
            return found.cloned().ok_or(NOT_FOUND);
        }
        Ok(Seen::of(&self.tree.stat(path)?))
    }

    pub(super) fn list(&self, path: &str) -> Result<Listing, Errno> {
        self.snapshots.read(&self.tree, path)
    }

    /// The content of a file that was read with its directory.
    fn kept(&self, path: &str) -> Option<Content> {
        let (directory, name) = split(path);
        let snapshot = self.snapshots.get(&self.tree, directory)?;
        snapshot.files.get(name)?.content.clone()
    }

    fn keep(&self, handle: Handle) -> u64 {
        let mut handles = lock(&self.handles);
        handles.0 += 1;
        let number = handles.0;
        handles.1.insert(number, handle);
        number
    }

    /// Open a file that exists. Answers its content too, where that is kept.
    pub(super) fn open(&self, path: &str, how: Opening) -> Result<(u64, Option<Content>), Errno> {
        let kept = lock(&self.shelf).get(path).map(|aside| aside.bytes.clone());
        if let Some(bytes) = kept {
            let bytes = if how.truncates { Vec::new() } else { bytes };
            let document = Document {
                path: path.to_owned(),
                is_dirty: how.truncates,
                bytes,
                appends: how.appends,
                is_aside: true,
                is_append_only: false,
            };
            return Ok((self.keep(Handle::Document(document)), None));
        }
        if !how.writes
            && let Some(content) = self.kept(path)
        {
            let handle = self.keep(Handle::Kept(Arc::clone(&content)));
            return Ok((handle, Some(content)));
        }
        let mode = match (how.reads, how.writes) {
            (true, true) => 2,
            (false, true) => 1,
            _ => 0,
        };
        let stat = self.tree.stat(path)?;
        if Seen::of(&stat).is_live {
            let file = self.live.open(path, mode)?;
            let writer = file.writer();
            let handle = Handle::Live(Arc::new(Mutex::new(file)), Arc::new(writer));
            return Ok((self.keep(handle), None));
        }
        // Opened once for what may be done with it, so that a refusal comes now.
        let mut file = self.tree.open(path, mode)?;
        let wants_content = how.reads || (how.writes && !how.truncates);
        let bytes = if !wants_content {
            Vec::new()
        } else if how.reads {
            file.read_to_end()?
        } else {
            self.tree.read(path).unwrap_or_default()
        };
        drop(file);
        let document = Document {
            path: path.to_owned(),
            bytes: if how.truncates { Vec::new() } else { bytes },
            is_dirty: false,
            appends: how.appends,
            is_aside: false,
            is_append_only: stat.mode & mode::APPEND != 0,
        };
        Ok((self.keep(Handle::Document(document)), None))
    }

    /// Make a file. It exists for others when it was written.
    pub(super) fn create(&self, path: &str, mode: u16, how: Opening) -> Result<u64, Errno> {
        let (directory, _) = split(path);
        if !takes_asides(directory) {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        // Not a directory that is gone.
        self.tree.stat(directory)?;
        let is_aside = only_aside(path);
        if !lock(&self.shelf).put(path, Vec::new(), mode) {
            return Err(Errno(libc::ENOSPC));
        }
        let document = Document {
            path: path.to_owned(),
            bytes: Vec::new(),
            is_dirty: false,
            appends: how.appends,
            is_aside,
            is_append_only: false,
        };
        Ok(self.keep(Handle::Document(document)))
    }

    /// What a live file is read by, outside of all locks.
    pub(super) fn live(&self, handle: u64) -> Option<Arc<Mutex<File>>> {
        match lock(&self.handles).1.get(&handle) {
            Some(Handle::Live(file, _)) => Some(Arc::clone(file)),
            _ => None,
        }
    }

    pub(super) fn read(&self, handle: u64, offset: u64, count: u32) -> Result<Vec<u8>, Errno> {
        let handles = lock(&self.handles);
        let bytes = match handles.1.get(&handle) {
            Some(Handle::Document(document)) => &document.bytes,
            Some(Handle::Kept(content)) => content.as_ref(),
            Some(Handle::Live(..)) | None => return Err(Errno(libc::EBADF)),
        };
        let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
        let end = start.saturating_add(count as usize).min(bytes.len());
        Ok(bytes.get(start..end).unwrap_or_default().to_vec())
    }

    pub(super) fn write(&self, handle: u64, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let live = {
            let mut handles = lock(&self.handles);
            match handles.1.get_mut(&handle) {
                None | Some(Handle::Kept(_)) => return Err(Errno(libc::EBADF)),
                Some(Handle::Live(_, writer)) => Some((Arc::clone(writer), offset)),
                Some(Handle::Document(document)) if document.is_append_only => None,
                Some(Handle::Document(document)) => return document.write(offset, data),
            }
        };
        match live {
            Some((writer, offset)) => Ok(writer.write_at(offset, data)?),
            None => {
                let path = self.path_of(handle)?;
                Ok(self.tree.write(&path, data)?)
            }
        }
    }

    fn path_of(&self, handle: u64) -> Result<String, Errno> {
        match lock(&self.handles).1.get(&handle) {
            Some(Handle::Document(document)) => Ok(document.path.clone()),
            _ => Err(Errno(libc::EBADF)),
        }
    }

    /// Cut or lengthen an open file; a closed one is left alone.
    pub(super) fn set_length(&self, path: &str, handle: Option<u64>, length: u64) -> Result<(), Errno> {
        let length = usize::try_from(length)
            .ok()
            .filter(|length| *length <= LARGEST)
            .ok_or(Errno(libc::EFBIG))?;
        if let Some(handle) = handle {
            if let Some(Handle::Document(document)) = lock(&self.handles).1.get_mut(&handle) {
                document.is_dirty |= document.bytes.len() != length && length > 0;
                document.bytes.resize(length, b' ');
            }
            return Ok(());
        }
        if let Some(aside) = lock(&self.shelf).get_mut(path) {
            aside.bytes.resize(length, 0);
        }
        Ok(())
    }

    /// Send what was written, if something was.
    pub(super) fn commit(&self, handle: u64) -> Result<(), Errno> {
        let (path, bytes, is_aside) = {
            let mut handles = lock(&self.handles);
            let Some(Handle::Document(document)) = handles.1.get_mut(&handle) else {
                return Ok(());
            };
            if !document.is_dirty {
                return Ok(());
            }
            document.is_dirty = false;
            (document.path.clone(), document.bytes.clone(), document.is_aside)
        };
        let mode = lock(&self.shelf).get(&path).map_or(0o600, |aside| aside.mode);
        let is_new = lock(&self.shelf).get(&path).is_some();
        if is_aside {
            return self.put_aside(&path, bytes, mode);
        }
        let outcome = self.store(&path, &bytes);
        if is_new {
            match outcome {
                Ok(()) => drop(lock(&self.shelf).take(&path)),
                // Nothing that was written is lost: it can still be renamed to what it is.
                Err(_) => self.put_aside(&path, bytes, mode)?,
            }
        }
        outcome
    }

    pub(super) fn is_dirty(&self, handle: u64) -> bool {
        matches!(lock(&self.handles).1.get(&handle), Some(Handle::Document(document)) if document.is_dirty)
    }

    /// What was written is not all there is: it does not take effect.
    pub(super) fn abandon(&self, handle: u64) {
        if let Some(Handle::Document(document)) = lock(&self.handles).1.get_mut(&handle) {
            document.is_dirty = false;
        }
    }

    fn put_aside(&self, path: &str, bytes: Vec<u8>, mode: u16) -> Result<(), Errno> {
        if lock(&self.shelf).put(path, bytes, mode) {
            Ok(())
        } else {
            Err(Errno(libc::ENOSPC))
        }
    }

    /// A whole document takes effect.
    fn store(&self, path: &str, bytes: &[u8]) -> Result<(), Errno> {
        let mut file = match self.tree.open(path, 0x11) {
            Err(Error::Refused(refused)) if refused.text == "not found" => {
                self.tree.create(path, 0o600, 1)?
            }
            outcome => outcome?,
        };
        file.write_document(bytes)?;
        Ok(file.close()?)
    }

    pub(super) fn release(&self, handle: u64) {
        let gone = lock(&self.handles).1.remove(&handle);
        // Clunked outside of the lock.
        drop(gone);
    }

    pub(super) fn remove(&self, path: &str) -> Result<(), Errno> {
        if lock(&self.shelf).take(path).is_some() {
            return Ok(());
        }
        Ok(self.tree.remove(path)?)
    }

    /// Give a file another name. A method stays what it is: its backup is a copy, and what is put in its place is a
    /// new text for it.
    pub(super) fn rename(&self, from: &str, to: &str, keeps: bool) -> Result<(), Errno> {
        let (directory, _) = split(to);
        if !takes_asides(directory) || !takes_asides(split(from).0) {
            return Err(Errno(libc::EOPNOTSUPP));
        }
        if keeps && self.look(to).is_ok() {
            return Err(Errno(libc::EEXIST));
        }
        let kept = lock(&self.shelf).get(from).cloned();
        match kept {
            Some(aside) if only_aside(to) => {
                lock(&self.shelf).take(from);
                self.put_aside(to, aside.bytes, aside.mode)
            }
            Some(aside) => {
                self.store(to, &aside.bytes)?;
                lock(&self.shelf).take(from);
                Ok(())
            }
            None if only_aside(to) => {
                let bytes = self.tree.read(from)?;
                self.put_aside(to, bytes, 0o600)
            }
            None if from == to => Ok(()),
            // A method is called what its text says. Not `EINVAL`, of which `mv` says that a directory was moved into itself.
            None => Err(Errno(libc::EPERM)),
        }
    }

    pub(super) fn change_mode(&self, path: &str, mode: u16) -> Result<(), Errno> {
        if let Some(aside) = lock(&self.shelf).get_mut(path) {
            aside.mode = mode;
            return Ok(());
        }
        // Programs that save give a file the mode it has; what others ask for has no meaning here.
        let seen = self.look(path)?;
        if seen.mode & 0o700 == mode & 0o700 {
            Ok(())
        } else {
            Err(Errno(libc::EPERM))
        }
    }
}

impl Document {
    fn write(&mut self, offset: u64, data: &[u8]) -> Result<(), Errno> {
        let start = if self.appends {
            self.bytes.len()
        } else {
            usize::try_from(offset).map_err(|_| Errno(libc::EFBIG))?
        };
        let end = start.checked_add(data.len()).filter(|end| *end <= LARGEST);
        let end = end.ok_or(Errno(libc::EFBIG))?;
        if self.bytes.len() < end {
            self.bytes.resize(end, b' ');
        }
        if let Some(slot) = self.bytes.get_mut(start..end) {
            slot.copy_from_slice(data);
        }
        self.is_dirty = true;
        Ok(())
    }
}
