//! The directory of one workspace, and the lock that says whether a daemon lives.

use std::fs::{File, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde::de::DeserializeOwned;
use zeroize::Zeroizing;

use crate::directory::{Directory, PUBLIC_FILE};
use crate::error::SecretFault;
use crate::liveness::{LockState, Observation, ProcessState, SocketState, Verdict, verdict};
use crate::{
    Metadata, NodeInfo, PidRecord, PortRecord, RotatingLog, Secret, SessionName, StateDirectory,
    StorageError, WorkspaceId,
};

pub(crate) const COOKIE: &str = "cookie";
const DISTRIBUTION_COOKIE: &str = "dist.cookie";
const TOKENS: &str = "tokens.json";
const METADATA: &str = "metadata.json";
const NODE_INFO: &str = "node.info";
const PORT: &str = "port";
const LOG: &str = "workspace.log";
const STARTUP_LOG: &str = "startup.log";
const CRASH_DUMP: &str = "crash.dump";
const CHANGES: &str = "changes";
const DESK: &str = "desk";
const TRANSCRIPT: &str = "transcript";
const LOG_BYTES: u64 = 10 << 20;
const LOG_COUNT: u32 = 5;

/// The lock of a workspace, free again when this is dropped or its process ends.
#[derive(Debug)]
pub struct WorkspaceLock {
    id: WorkspaceId,
    file: File,
}

impl WorkspaceLock {
    pub(crate) fn take(workspaces: &Directory, id: &WorkspaceId) -> Result<Option<Self>, StorageError> {
        let name = lock_name(id);
        loop {
            let file = workspaces.append(&name)?;
            match file.try_lock() {
                Ok(()) => {}
                Err(TryLockError::WouldBlock) => return Ok(None),
                Err(TryLockError::Error(cause)) => {
                    return Err(StorageError::file("lock", workspaces.path_of(&name))(cause));
                }
            }
            // Between opening and locking the file may have been removed, with the workspace; then
            // the lock of it keeps nobody out.
            let current = workspaces.open(&name)?;
            if current.is_some_and(|current| is_same_file(&current, &file)) {
                return Ok(Some(Self { id: id.clone(), file }));
            }
        }
    }

    pub fn id(&self) -> &WorkspaceId {
        &self.id
    }

    /// Remove the lock file while it is still locked.
    pub(crate) fn remove_file(self, workspaces: &Directory) -> Result<(), StorageError> {
        workspaces.remove(&lock_name(&self.id))?;
        drop(self.file);
        Ok(())
    }
}

fn lock_name(id: &WorkspaceId) -> String {
    format!("{id}.lock")
}

fn is_same_file(one: &File, other: &File) -> bool {
    let identity = |file: &File| file.metadata().map(|found| (found.dev(), found.ino())).ok();
    identity(one).is_some() && identity(one) == identity(other)
}

/// `workspaces/<id>/`.
#[derive(Clone, Debug)]
pub struct WorkspaceDirectory {
    state: StateDirectory,
    id: WorkspaceId,
    directory: Directory,
}

impl WorkspaceDirectory {
    pub(crate) fn new(state: StateDirectory, id: WorkspaceId, directory: Directory) -> Self {
        Self { state, id, directory }
    }

    pub fn id(&self) -> &WorkspaceId {
        &self.id
    }

    pub fn state(&self) -> &StateDirectory {
        &self.state
    }

    pub fn path(&self) -> &Path {
        self.directory.path()
    }

    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Take the workspace's lock; `None` if another process has it.
    pub fn lock(&self) -> Result<Option<WorkspaceLock>, StorageError> {
        self.state.lock_workspace(&self.id)
    }

    // Secrets.

    /// The workspace cookie; `None` if there is none yet.
    pub fn cookie(&self) -> Result<Option<Secret>, StorageError> {
        self.read_cookie(COOKIE)
    }

    /// The workspace cookie, made if there is none yet.
    pub fn create_cookie(&self) -> Result<Secret, StorageError> {
        match self.cookie()? {
            Some(cookie) => Ok(cookie),
            None => self.rotate_cookie(),
        }
    }

    /// A new cookie in the place of whatever is there.
    pub fn rotate_cookie(&self) -> Result<Secret, StorageError> {
        self.write_cookie(COOKIE)
    }

    /// The secret of distribution, made if there is none yet.
    pub fn create_distribution_cookie(&self) -> Result<Secret, StorageError> {
        match self.read_cookie(DISTRIBUTION_COOKIE)? {
            Some(cookie) => Ok(cookie),
            None => self.write_cookie(DISTRIBUTION_COOKIE),
        }
    }

    /// Forget the secret of distribution.
    pub fn remove_distribution_cookie(&self) -> Result<(), StorageError> {
        self.directory.remove(DISTRIBUTION_COOKIE).map(drop)
    }

    fn read_cookie(&self, name: &str) -> Result<Option<Secret>, StorageError> {
        let Some(bytes) = self.directory.read_secret(name)? else {
            return Ok(None);
        };
        let secret = Secret::parse(&bytes).ok_or_else(|| StorageError::Secret {
            path: self.directory.path_of(name),
            fault: SecretFault::Malformed,
        })?;
        Ok(Some(secret))
    }

    fn write_cookie(&self, name: &str) -> Result<Secret, StorageError> {
        let secret = Secret::random()?;
        self.directory.write_secret(name, &secret.file_content())?;
        Ok(secret)
    }

    /// `tokens.json` as it is; `None` if there is none.
    pub fn tokens(&self) -> Result<Option<Zeroizing<Vec<u8>>>, StorageError> {
        self.directory.read_secret(TOKENS)
    }

    pub fn write_tokens(&self, bytes: &[u8]) -> Result<(), StorageError> {
        self.directory.write_secret(TOKENS, bytes)
    }

    // Records.

    /// `metadata.json`; `None` only if there is none, an error if it is empty or corrupt.
    pub fn metadata(&self) -> Result<Option<Metadata>, StorageError> {
        let Some(bytes) = self.directory.read(METADATA)? else {
            return Ok(None);
        };
        let metadata = serde_json::from_slice(&bytes).map_err(|_| StorageError::CorruptMetadata {
            path: self.directory.path_of(METADATA),
        })?;
        Ok(Some(metadata))
    }

    pub fn write_metadata(&self, metadata: &Metadata) -> Result<(), StorageError> {
        self.write_record(METADATA, metadata)
    }

    /// Where the workspace is reached while it runs; `None` if no file says so.
    pub fn node_info(&self) -> Result<Option<NodeInfo>, StorageError> {
        self.read_record(NODE_INFO)
    }

    pub fn write_node_info(&self, info: &NodeInfo) -> Result<(), StorageError> {
        self.write_record(NODE_INFO, info)
    }

    pub fn port(&self) -> Result<Option<PortRecord>, StorageError> {
        let bytes = self.directory.read(PORT)?;
        Ok(bytes.and_then(|bytes| PortRecord::parse(std::str::from_utf8(&bytes).ok()?)))
    }

    pub fn write_port(&self, record: &PortRecord) -> Result<(), StorageError> {
        self.directory
            .write_atomically(PORT, record.to_text().as_bytes(), PUBLIC_FILE)
    }

    /// Remove what is only there while the workspace runs.
    pub fn remove_running_records(&self) -> Result<(), StorageError> {
        self.directory.remove(NODE_INFO)?;
        self.directory.remove(PORT)?;
        Ok(())
    }

    fn read_record<Record: DeserializeOwned>(&self, name: &str) -> Result<Option<Record>, StorageError> {
        let Some(bytes) = self.directory.read(name)? else {
            return Ok(None);
        };
        let record = serde_json::from_slice(&bytes).map_err(|_| StorageError::CorruptRecord {
            path: self.directory.path_of(name),
        })?;
        Ok(Some(record))
    }

    fn write_record<Record: Serialize>(&self, name: &str, record: &Record) -> Result<(), StorageError> {
        let mut text = serde_json::to_vec(record).expect("records are plain data");
        text.push(b'\n');
        self.directory.write_atomically(name, &text, PUBLIC_FILE)
    }

    // Logs and other files.

    /// The log of the node.
    pub fn log(&self) -> Result<RotatingLog, StorageError> {
        self.log_of(LOG_BYTES, LOG_COUNT)
    }

    /// The log of the node, of another size.
    pub fn log_of(&self, bytes: u64, old_files: u32) -> Result<RotatingLog, StorageError> {
        RotatingLog::open(self.directory.clone(), LOG, bytes, old_files)
    }

    pub fn log_path(&self) -> PathBuf {
        self.directory.path_of(LOG)
    }

    /// An empty `startup.log` for the output of a start.
    pub fn create_startup_log(&self) -> Result<File, StorageError> {
        self.directory.create(STARTUP_LOG)
    }

    pub fn startup_log_path(&self) -> PathBuf {
        self.directory.path_of(STARTUP_LOG)
    }

    pub fn crash_dump_path(&self) -> PathBuf {
        self.directory.path_of(CRASH_DUMP)
    }

    pub fn remove_crash_dump(&self) -> Result<(), StorageError> {
        self.directory.remove(CRASH_DUMP).map(drop)
    }

    /// The directory of the change log.
    pub fn changes(&self) -> Result<Directory, StorageError> {
        self.state.create_in(&self.directory, CHANGES)
    }

    /// The directory of what clients keep with the workspace.
    pub fn desk(&self) -> Result<Directory, StorageError> {
        self.state.create_in(&self.directory, DESK)
    }

    /// The directory of what was written to the Transcript.
    pub fn transcript(&self) -> Result<Directory, StorageError> {
        self.state.create_in(&self.directory, TRANSCRIPT)
    }

    // Life.

    /// Remove what a daemon that is dead left behind; the lock proves that it is.
    pub fn clear_stale(&self, lock: &WorkspaceLock) -> Result<(), StorageError> {
        for session in self.state.sessions()? {
            let Some(run) = self.state.run_directory(&session)? else {
                continue;
            };
            let is_ours = run
                .pid_record()?
                .is_some_and(|record| record.workspace_id == self.id.as_str());
            if is_ours {
                run.clear_stale(lock)?;
            }
        }
        self.remove_running_records()?;
        self.directory.remove_temporaries()?;
        // What is there instead of a directory of ours is refused when it is used, not here.
        match self.directory.open_directory(CHANGES) {
            Ok(Some((changes, _))) => changes.remove_temporaries_below(),
            Ok(None) | Err(_) => Ok(()),
        }
    }

    /// Look whether a daemon lives.
    pub fn judge(&self) -> Result<Verdict, StorageError> {
        Ok(verdict(self.observe()?))
    }

    fn observe(&self) -> Result<Observation, StorageError> {
        // Damaged, it says no more than one that is missing.
        let info = self.node_info().unwrap_or_default();
        let run = match info.as_ref().map(|info| SessionName::parse(&info.session)) {
            Some(Ok(session)) => self.state.run_directory(&session)?,
            _ => None,
        };
        let record = run.map(|run| run.pid_record()).transpose()?.flatten();
        let record = record.filter(|record| record.workspace_id == self.id.as_str());
        let socket = info
            .as_ref()
            .map_or(SocketState::Absent, |info| probe_socket(Path::new(&info.socket)));
        // A daemon that answers has the lock; asking for it would only get in the way of others.
        let lock = if socket == SocketState::Answers || self.lock()?.is_none() {
            LockState::Held
        } else {
            LockState::Free
        };
        Ok(Observation {
            lock,
            process: record
                .as_ref()
                .map_or(ProcessState::Unrecorded, PidRecord::process_state),
            socket,
            leftovers: info.is_some() || record.is_some() || self.port()?.is_some(),
        })
    }
}

fn probe_socket(path: &Path) -> SocketState {
    match UnixStream::connect(path) {
        Ok(_) => SocketState::Answers,
        Err(error) => match error.kind() {
            io::ErrorKind::PermissionDenied => SocketState::Denied,
            io::ErrorKind::NotFound => SocketState::Absent,
            _ => SocketState::Refused,
        },
    }
}

#[cfg(test)]
mod tests;
