//! A directory held open, and the only ways to touch what is in it.
//!
//! Names are single components, resolved against the descriptor and never through a symbolic
//! link, so a path that changes underfoot cannot lead anywhere else.

use std::fs::{File, Metadata};
use std::io::{self, Read};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;
use zeroize::Zeroizing;

use crate::StorageError;
use crate::error::SecretFault;
use crate::replace::{Disk, through_draft};
use crate::secret::random_hex;
use crate::state::Notice;

/// Mode of a file that only the owner may read.
pub const PRIVATE_FILE: u32 = 0o600;
/// Mode of a file without secrets.
pub const PUBLIC_FILE: u32 = 0o644;
const PRIVATE_DIRECTORY: Mode = Mode::RWXU;
/// Files that are being written start with this; a killed writer may leave one.
const TEMPORARY: &str = ".tmp-";

/// An open directory; clones share the descriptor.
#[derive(Clone, Debug)]
pub struct Directory {
    descriptor: Arc<File>,
    path: PathBuf,
}

impl AsFd for Directory {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptor.as_fd()
    }
}

/// By what a state directory is known.
const HOME_NAMES: [&str; 6] = [
    "cache",
    "config.toml",
    "loops",
    "runtime",
    "sessions",
    "workspaces",
];

impl Directory {
    /// Open the root of a tree by its path, which may be a symbolic link and is resolved once, creating what is
    /// missing.
    pub(crate) fn open_root(path: &Path) -> Result<(Self, Option<Notice>), StorageError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let mut created = false;
        let resolved = match std::fs::canonicalize(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                created = create_levels(path)?;
                std::fs::canonicalize(path)
            }
            other => other,
        };
        // From here on there is no link in the path: one that is changed later leads nobody elsewhere.
        let resolved = resolved.map_err(StorageError::file("open", path))?;
        let path = resolved.as_path();
        let descriptor = fs::open(path, flags | OFlags::NOFOLLOW, Mode::empty());
        let descriptor = descriptor.map_err(|error| match error {
            Errno::NOTDIR => StorageError::NotAHome {
                path: path.to_owned(),
            },
            other => StorageError::file("open", path)(other),
        })?;
        let directory = Self {
            descriptor: Arc::new(File::from(descriptor)),
            path: path.to_owned(),
        };
        if !created {
            directory.expect_home()?;
        }
        let notice = directory.make_private(created)?;
        Ok((directory, notice))
    }

    /// Read a file of secrets the user named by its path, such as a key, under the rules for ours.
    pub(crate) fn read_secret_file(path: &Path) -> Result<Zeroizing<Vec<u8>>, StorageError> {
        let name = path.file_name().and_then(|name| name.to_str());
        let name = name.ok_or_else(|| StorageError::UnsafeName {
            name: path.display().to_string(),
        })?;
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let directory = Self::open_existing(parent)?;
        let missing = || StorageError::file("open", path)(Errno::NOENT);
        directory.read_secret(name)?.ok_or_else(missing)
    }

    /// A directory of the user's, as it is: nothing about it is changed.
    pub fn open_existing(path: &Path) -> Result<Self, StorageError> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let descriptor = fs::open(path, flags, Mode::empty()).map_err(StorageError::file("open", path))?;
        Ok(Self {
            descriptor: Arc::new(File::from(descriptor)),
            path: path.to_owned(),
        })
    }

    /// The path it was reached by: for messages and for programs that need a path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of something in it; nothing is checked or opened.
    pub fn path_of(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    /// A private directory in this one, created if it is missing.
    pub fn create_directory(&self, name: &str) -> Result<(Self, Option<Notice>), StorageError> {
        check_name(name)?;
        let created = match fs::mkdirat(self, name, PRIVATE_DIRECTORY) {
            Ok(()) => {
                // Only matters under a umask that takes rights from the owner.
                fs::chmodat(self, name, PRIVATE_DIRECTORY, AtFlags::empty())
                    .map_err(StorageError::file("protect", self.path_of(name)))?;
                true
            }
            Err(Errno::EXIST) => false,
            Err(error) => return Err(StorageError::file("create", self.path_of(name))(error)),
        };
        match self.open_child(name)? {
            Some(directory) => {
                let notice = directory.make_private(created)?;
                Ok((directory, notice))
            }
            None => Err(StorageError::file("open", self.path_of(name))(Errno::NOENT)),
        }
    }

    /// A private directory in this one, if there is one of that name.
    pub fn open_directory(&self, name: &str) -> Result<Option<(Self, Option<Notice>)>, StorageError> {
        let Some(directory) = self.open_child(name)? else {
            return Ok(None);
        };
        let notice = directory.make_private(false)?;
        Ok(Some((directory, notice)))
    }

    fn open_child(&self, name: &str) -> Result<Option<Self>, StorageError> {
        check_name(name)?;
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        match fs::openat(self, name, flags, Mode::empty()) {
            Ok(descriptor) => Ok(Some(Self {
                descriptor: Arc::new(File::from(descriptor)),
                path: self.path_of(name),
            })),
            Err(Errno::NOENT) => Ok(None),
            Err(error) => Err(self.refusal("open", name, error)),
        }
    }

    /// A directory that others can look into and that holds nothing of ours is somebody's for another purpose, such as
    /// `/etc`: closing it would do harm.
    fn expect_home(&self) -> Result<(), StorageError> {
        let metadata = self
            .descriptor
            .metadata()
            .map_err(StorageError::file("examine", &self.path))?;
        if !is_open_to_others(permissions(&metadata)) {
            return Ok(());
        }
        let names = self.all_names()?;
        if names.is_empty() || names.iter().any(|name| HOME_NAMES.contains(&name.as_str())) {
            return Ok(());
        }
        Err(StorageError::NotAHome {
            path: self.path.clone(),
        })
    }

    /// Refuse a directory of somebody else's or open for writing; close it for reading.
    fn make_private(&self, created: bool) -> Result<Option<Notice>, StorageError> {
        let metadata = self
            .descriptor
            .metadata()
            .map_err(StorageError::file("examine", &self.path))?;
        if metadata.uid() != own_uid() {
            return Err(StorageError::ForeignOwner {
                path: self.path.clone(),
            });
        }
        let mode = permissions(&metadata);
        if mode & 0o022 != 0 && !created {
            return Err(StorageError::WritableByOthers {
                path: self.path.clone(),
                mode,
            });
        }
        if !is_open_to_others(mode) {
            return Ok(None);
        }
        fs::fchmod(self, PRIVATE_DIRECTORY).map_err(StorageError::file("protect", &self.path))?;
        Ok((!created).then(|| Notice {
            path: self.path.clone(),
            mode,
        }))
    }

    /// What an open that failed met, told apart for the reader.
    fn refusal(&self, action: &'static str, name: &str, error: Errno) -> StorageError {
        let path = self.path_of(name);
        if let Errno::LOOP | Errno::NOTDIR | Errno::MLINK = error
            && let Ok(stat) = fs::statat(self, name, AtFlags::SYMLINK_NOFOLLOW)
        {
            return if FileType::from_raw_mode(stat.st_mode) == FileType::Symlink {
                StorageError::Symlink { path }
            } else {
                StorageError::NotADirectory { path }
            };
        }
        StorageError::file(action, path)(error)
    }

    /// Open a file of ours; `None` if there is none.
    fn open_file(&self, name: &str, flags: OFlags) -> Result<Option<(File, Metadata)>, StorageError> {
        check_name(name)?;
        // Without blocking, a pipe planted under the name cannot hold us up.
        let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let file = match fs::openat(self, name, flags, Mode::RUSR | Mode::WUSR) {
            Ok(descriptor) => File::from(descriptor),
            Err(Errno::NOENT) => return Ok(None),
            Err(error) => return Err(self.refusal("open", name, error)),
        };
        let metadata = file
            .metadata()
            .map_err(StorageError::file("examine", self.path_of(name)))?;
        if !metadata.is_file() {
            return Err(StorageError::NotRegular {
                path: self.path_of(name),
            });
        }
        Ok(Some((file, metadata)))
    }

    /// A regular file for reading; `None` if there is none.
    pub fn open(&self, name: &str) -> Result<Option<File>, StorageError> {
        Ok(self.open_file(name, OFlags::RDONLY)?.map(|(file, _)| file))
    }

    /// A regular file for reading and writing in place; `None` if there is none.
    pub fn open_for_update(&self, name: &str) -> Result<Option<File>, StorageError> {
        Ok(self.open_file(name, OFlags::RDWR)?.map(|(file, _)| file))
    }

    /// A file that only grows, readable by the owner alone, created if it is missing.
    pub fn append(&self, name: &str) -> Result<File, StorageError> {
        let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::CREATE;
        self.open_private(name, flags)
    }

    /// An empty file that only the owner can read, in the place of any older one.
    pub fn create(&self, name: &str) -> Result<File, StorageError> {
        self.remove(name)?;
        self.open_private(name, OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL)
    }

    fn open_private(&self, name: &str, flags: OFlags) -> Result<File, StorageError> {
        let missing = || StorageError::file("open", self.path_of(name))(Errno::NOENT);
        let (file, metadata) = self.open_file(name, flags)?.ok_or_else(missing)?;
        if metadata.uid() != own_uid() {
            return Err(StorageError::ForeignOwner {
                path: self.path_of(name),
            });
        }
        if permissions(&metadata) != PRIVATE_FILE {
            fs::fchmod(&file, Mode::RUSR | Mode::WUSR)
                .map_err(StorageError::file("protect", self.path_of(name)))?;
        }
        Ok(file)
    }

    /// The content of a regular file; `None` if there is none.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, StorageError> {
        let Some(mut file) = self.open(name)? else {
            return Ok(None);
        };
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)
            .map_err(StorageError::file("read", self.path_of(name)))?;
        Ok(Some(bytes))
    }

    /// Replace a file as a whole: readers see the old content or the new, with its final mode.
    pub fn write_atomically(&self, name: &str, bytes: &[u8], mode: u32) -> Result<(), StorageError> {
        check_name(name)?;
        self.with_temporary(name, bytes, mode, |temporary| {
            fs::renameat(self, temporary, self, name).map_err(io::Error::from)
        })
    }

    /// Write a secret: at no moment is a byte of it in a file others could read.
    pub fn write_secret(&self, name: &str, bytes: &[u8]) -> Result<(), StorageError> {
        self.write_atomically(name, bytes, PRIVATE_FILE)
    }

    /// Create a file with its whole content unless there is one of that name; says if it did.
    pub fn create_new(&self, name: &str, bytes: &[u8], mode: u32) -> Result<bool, StorageError> {
        check_name(name)?;
        let mut created = false;
        self.with_temporary(name, bytes, mode, |temporary| {
            match fs::linkat(self, temporary, self, name, AtFlags::empty()) {
                Ok(()) => created = true,
                Err(Errno::EXIST) => {}
                Err(error) => return Err(error.into()),
            }
            fs::unlinkat(self, temporary, AtFlags::empty()).map_err(io::Error::from)
        })?;
        Ok(created)
    }

    fn with_temporary(
        &self,
        name: &str,
        bytes: &[u8],
        mode: u32,
        publish: impl FnOnce(&str) -> io::Result<()>,
    ) -> Result<(), StorageError> {
        let temporary = format!("{TEMPORARY}{}", random_hex::<12>()?);
        let publish = || publish(&temporary);
        through_draft(
            self.as_fd(),
            temporary.as_ref(),
            bytes,
            Some(mode),
            Disk::Wait,
            publish,
        )
        .map_err(StorageError::file("write", self.path_of(name)))
    }

    /// Read a file that must be ours and ours alone; `None` if there is none.
    pub fn read_secret(&self, name: &str) -> Result<Option<Zeroizing<Vec<u8>>>, StorageError> {
        let fault = |fault| StorageError::Secret {
            path: self.path_of(name),
            fault,
        };
        let (mut file, metadata) = match self.open_file(name, OFlags::RDONLY) {
            Ok(Some(opened)) => opened,
            Ok(None) => return Ok(None),
            Err(StorageError::Symlink { .. }) => return Err(fault(SecretFault::Symlink)),
            Err(StorageError::NotRegular { .. }) => return Err(fault(SecretFault::NotRegular)),
            Err(other) => return Err(other),
        };
        if metadata.uid() != own_uid() {
            return Err(fault(SecretFault::ForeignOwner));
        }
        if metadata.nlink() != 1 {
            return Err(fault(SecretFault::Links(metadata.nlink())));
        }
        let mode = permissions(&metadata);
        if is_open_to_others(mode) {
            return Err(fault(SecretFault::Mode(mode)));
        }
        // Room for all of it at once: a buffer that grows leaves copies behind.
        let mut bytes = Zeroizing::new(Vec::with_capacity(metadata.len() as usize + 1));
        file.read_to_end(&mut bytes)
            .map_err(StorageError::file("read", self.path_of(name)))?;
        Ok(Some(bytes))
    }

    /// Remove a file; says if there was one.
    pub fn remove(&self, name: &str) -> Result<bool, StorageError> {
        check_name(name)?;
        match fs::unlinkat(self, name, AtFlags::empty()) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(StorageError::file("remove", self.path_of(name))(error)),
        }
    }

    /// Rename a file within the directory, over any older one; says if there was one to rename.
    pub fn rename(&self, from: &str, to: &str) -> Result<bool, StorageError> {
        check_name(from)?;
        check_name(to)?;
        match fs::renameat(self, from, self, to) {
            Ok(()) => Ok(true),
            Err(Errno::NOENT) => Ok(false),
            Err(error) => Err(StorageError::file("rename", self.path_of(from))(error)),
        }
    }

    /// Remove a directory with all that is in it, following no link.
    pub fn remove_tree(&self, name: &str) -> Result<bool, StorageError> {
        let Some(directory) = self.open_child(name)? else {
            return Ok(false);
        };
        for entry in directory.all_names()? {
            let stat = fs::statat(&directory, entry.as_str(), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(StorageError::file("examine", directory.path_of(&entry)))?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory {
                directory.remove_tree(&entry)?;
            } else {
                directory.remove(&entry)?;
            }
        }
        fs::unlinkat(self, name, AtFlags::REMOVEDIR)
            .map_err(StorageError::file("remove", self.path_of(name)))?;
        Ok(true)
    }

    /// What is in it, in the order of names, without files that are being written.
    pub fn names(&self) -> Result<Vec<String>, StorageError> {
        let mut names = self.all_names()?;
        names.retain(|name| !name.starts_with(TEMPORARY));
        Ok(names)
    }

    /// Remove what writers that were killed have left; only for one who knows that none is at work.
    pub fn remove_temporaries(&self) -> Result<(), StorageError> {
        for name in self.all_names()? {
            if name.starts_with(TEMPORARY) {
                self.remove(&name)?;
            }
        }
        Ok(())
    }

    /// The same here and in every directory below.
    pub(crate) fn remove_temporaries_below(&self) -> Result<(), StorageError> {
        self.remove_temporaries()?;
        for name in self.names()? {
            let stat = fs::statat(self, name.as_str(), AtFlags::SYMLINK_NOFOLLOW)
                .map_err(StorageError::file("examine", self.path_of(&name)))?;
            if FileType::from_raw_mode(stat.st_mode) == FileType::Directory
                && let Some(below) = self.open_child(&name)?
            {
                below.remove_temporaries_below()?;
            }
        }
        Ok(())
    }

    fn all_names(&self) -> Result<Vec<String>, StorageError> {
        let failed = || StorageError::file("list", &self.path);
        let mut names = Vec::new();
        for entry in fs::Dir::read_from(self).map_err(failed())? {
            let entry = entry.map_err(failed())?;
            // All names we give are text; another one is not ours to know about.
            if let Ok(name) = entry.file_name().to_str()
                && name != "."
                && name != ".."
            {
                names.push(name.to_owned());
            }
        }
        names.sort_unstable();
        Ok(names)
    }
}

/// Create a path level by level; says if the last one is new.
fn create_levels(path: &Path) -> Result<bool, StorageError> {
    if let Some(parent) = path.parent()
        && !parent.exists()
    {
        create_levels(parent)?;
    }
    match fs::mkdir(path, PRIVATE_DIRECTORY) {
        Ok(()) => {
            fs::chmod(path, PRIVATE_DIRECTORY).map_err(StorageError::file("protect", path))?;
            Ok(true)
        }
        Err(Errno::EXIST) => Ok(false),
        Err(error) => Err(StorageError::file("create", path)(error)),
    }
}

/// A name that stays in its directory.
fn check_name(name: &str) -> Result<(), StorageError> {
    let is_safe =
        !name.is_empty() && name != "." && !name.contains(['/', '\\', '\0']) && !name.contains("..");
    if is_safe {
        Ok(())
    } else {
        Err(StorageError::UnsafeName {
            name: name.to_owned(),
        })
    }
}

fn own_uid() -> u32 {
    rustix::process::geteuid().as_raw()
}

fn is_open_to_others(mode: u32) -> bool {
    mode & 0o077 != 0
}

fn permissions(metadata: &Metadata) -> u32 {
    metadata.mode() & 0o7777
}

#[cfg(test)]
mod tests;
