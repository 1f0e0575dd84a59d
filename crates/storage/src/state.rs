//! The state directory `$H`: `BEAMTALK_HOME`, or `.beamtalk` in the user's home.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::directory::Directory;
use crate::workspace::WorkspaceLock;
use crate::{RunDirectory, SessionName, StorageError, WorkspaceDirectory, WorkspaceId};

const WORKSPACES: &str = "workspaces";
const SESSIONS: &str = "sessions";

/// A directory that others could read and that was closed to them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    pub path: PathBuf,
    /// The mode it had.
    pub mode: u32,
}

impl fmt::Display for Notice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        write!(
            formatter,
            "{path} was readable by others (mode {:04o}); it is 0700 now",
            self.mode
        )
    }
}

/// The state directory, held open; clones are the same one.
#[derive(Clone, Debug)]
pub struct StateDirectory {
    root: Directory,
    notices: Arc<Mutex<Vec<Notice>>>,
}

impl StateDirectory {
    /// Where the state directory is; it need not exist.
    pub fn location() -> Result<PathBuf, StorageError> {
        if let Some(path) = std::env::var_os("BEAMTALK_HOME").filter(|value| !value.is_empty()) {
            return absolute(PathBuf::from(path));
        }
        let home = std::env::var_os("HOME")
            .filter(|value| !value.is_empty())
            .ok_or(StorageError::NoHome)?;
        Ok(PathBuf::from(home).join(".beamtalk"))
    }

    /// Open the state directory at `path`, or where the environment says, creating what is missing.
    pub fn open(path: Option<PathBuf>) -> Result<Self, StorageError> {
        let path = path.map_or_else(Self::location, absolute)?;
        let (root, notice) = Directory::open_root(&path)?;
        Ok(Self {
            root,
            notices: Arc::new(Mutex::new(notice.into_iter().collect())),
        })
    }

    pub fn path(&self) -> &Path {
        self.root.path()
    }

    /// The state directory itself, for the files right in it such as `config.toml`.
    pub fn root(&self) -> &Directory {
        &self.root
    }

    /// What had to be tightened since the last call, to be shown to the user.
    pub fn take_notices(&self) -> Vec<Notice> {
        std::mem::take(&mut self.notices.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// A private directory right below, such as `cache` or `tls`, created if it is missing.
    pub fn directory(&self, name: &str) -> Result<Directory, StorageError> {
        self.create_in(&self.root, name)
    }

    /// A private directory in one of ours, created if it is missing.
    pub fn create_in(&self, parent: &Directory, name: &str) -> Result<Directory, StorageError> {
        let (directory, notice) = parent.create_directory(name)?;
        self.note(notice);
        Ok(directory)
    }

    fn open_in(&self, parent: &Directory, name: &str) -> Result<Option<Directory>, StorageError> {
        let Some((directory, notice)) = parent.open_directory(name)? else {
            return Ok(None);
        };
        self.note(notice);
        Ok(Some(directory))
    }

    /// Whether nothing can be written there: the user may not, or the disk is only for reading.
    pub fn is_read_only(path: &Path) -> bool {
        let may_write = rustix::fs::access(path, rustix::fs::Access::WRITE_OK);
        matches!(
            may_write,
            Err(rustix::io::Errno::ACCESS | rustix::io::Errno::ROFS)
        )
    }

    /// Where what is built of a project goes that cannot be written; it need not exist.
    pub fn build_of(&self, project: &Path) -> PathBuf {
        let name = crate::sha256_hex(project.as_os_str().as_encoded_bytes());
        let name: String = name.chars().take(16).collect();
        self.path().join("builds").join(name)
    }

    fn note(&self, notice: Option<Notice>) {
        let mut notices = self.notices.lock().unwrap_or_else(PoisonError::into_inner);
        notices.extend(notice);
    }

    /// Every workspace there is, running or not.
    pub fn workspaces(&self) -> Result<Vec<WorkspaceId>, StorageError> {
        let Some(workspaces) = self.open_in(&self.root, WORKSPACES)? else {
            return Ok(Vec::new());
        };
        let names = workspaces.names()?;
        // Lock files have a dot in their name, which no workspace has.
        Ok(names
            .iter()
            .filter_map(|name| WorkspaceId::named(name).ok())
            .collect())
    }

    /// Where the cookie of a workspace is, or would be.
    pub fn cookie_path(&self, id: &WorkspaceId) -> PathBuf {
        let workspace = self.path().join(WORKSPACES).join(id.as_str());
        workspace.join(crate::workspace::COOKIE)
    }

    /// The directory of a workspace, if there is one.
    pub fn workspace(&self, id: &WorkspaceId) -> Result<Option<WorkspaceDirectory>, StorageError> {
        let Some(workspaces) = self.open_in(&self.root, WORKSPACES)? else {
            return Ok(None);
        };
        let directory = self.open_in(&workspaces, id.as_str())?;
        Ok(directory.map(|directory| WorkspaceDirectory::new(self.clone(), id.clone(), directory)))
    }

    /// The directory of a workspace, created if it is missing.
    pub fn create_workspace(&self, id: &WorkspaceId) -> Result<WorkspaceDirectory, StorageError> {
        let directory = self.create_in(&self.directory(WORKSPACES)?, id.as_str())?;
        Ok(WorkspaceDirectory::new(self.clone(), id.clone(), directory))
    }

    /// Take the lock of a workspace; `None` if another process has it.
    ///
    /// One who only wants to know takes it for a moment too, so a daemon that did not get it is to
    /// be started again as long as nobody else answers.
    pub fn lock_workspace(&self, id: &WorkspaceId) -> Result<Option<WorkspaceLock>, StorageError> {
        WorkspaceLock::take(&self.directory(WORKSPACES)?, id)
    }

    /// Delete a stopped workspace, never a file of the project.
    pub fn remove_workspace(&self, lock: WorkspaceLock) -> Result<(), StorageError> {
        let workspaces = self.directory(WORKSPACES)?;
        if let Some(workspace) = self.workspace(lock.id())? {
            workspace.clear_stale(&lock)?;
        }
        workspaces.remove_tree(lock.id().as_str())?;
        lock.remove_file(&workspaces)
    }

    /// Every run directory there is.
    pub fn sessions(&self) -> Result<Vec<SessionName>, StorageError> {
        let Some(sessions) = self.open_in(&self.root, SESSIONS)? else {
            return Ok(Vec::new());
        };
        let names = sessions.names()?;
        Ok(names
            .iter()
            .filter_map(|name| SessionName::parse(name).ok())
            .collect())
    }

    /// The run directory of a session, if there is one.
    pub fn run_directory(&self, session: &SessionName) -> Result<Option<RunDirectory>, StorageError> {
        let Some(sessions) = self.open_in(&self.root, SESSIONS)? else {
            return Ok(None);
        };
        let directory = self.open_in(&sessions, session.as_str())?;
        Ok(directory.map(|directory| RunDirectory::new(session.clone(), directory)))
    }

    /// The run directory of a session, created if it is missing.
    pub fn create_run_directory(&self, session: &SessionName) -> Result<RunDirectory, StorageError> {
        let directory = self.create_in(&self.directory(SESSIONS)?, session.as_str())?;
        Ok(RunDirectory::new(session.clone(), directory))
    }
}

fn absolute(path: PathBuf) -> Result<PathBuf, StorageError> {
    if path.is_absolute() {
        Ok(path)
    } else {
        Err(StorageError::RelativeHome { path })
    }
}
