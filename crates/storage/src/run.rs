//! The run directory of one daemon: its socket, pid file, log, and the files of its terminal.

use std::path::PathBuf;

use crate::directory::{Directory, PRIVATE_FILE};
use crate::liveness::ProcessState;
use crate::secret::random_hex;
use crate::workspace::WorkspaceLock;
use crate::{PidRecord, RotatingLog, SessionName, StateDirectory, StorageError, WorkspaceId};

const SOCKET: &str = "daemon.sock";
const PID: &str = "daemon.pid";
const LOG: &str = "daemon.log";
const HISTORY: &str = "repl_history";
const LOG_BYTES: u64 = 10 << 20;
const LOG_COUNT: u32 = 5;

/// The longest path of a socket the system takes, without the final NUL.
#[cfg(target_os = "linux")]
const SOCKET_LIMIT: usize = 107;
#[cfg(not(target_os = "linux"))]
const SOCKET_LIMIT: usize = 103;

/// `sessions/<session>/`.
#[derive(Clone, Debug)]
pub struct RunDirectory {
    session: SessionName,
    directory: Directory,
}

impl RunDirectory {
    pub(crate) fn new(session: SessionName, directory: Directory) -> Self {
        Self { session, directory }
    }

    /// Make a run directory this daemon's own, and write its pid file.
    ///
    /// What a dead daemon left there is removed; where one of another workspace lives, the
    /// directory beside it, `<session>-<id>`, is taken.
    pub fn claim(
        state: &StateDirectory,
        session: &SessionName,
        lock: &WorkspaceLock,
        record: &PidRecord,
    ) -> Result<Self, StorageError> {
        let run = state.create_run_directory(session)?;
        if run.take(state, lock, record)? {
            return Ok(run);
        }
        let run = state.create_run_directory(&session.beside(lock.id()))?;
        if run.take(state, lock, record)? {
            return Ok(run);
        }
        // Only a record that somebody made up leads here.
        Err(StorageError::CorruptRecord {
            path: run.directory.path_of(PID),
        })
    }

    fn take(
        &self,
        state: &StateDirectory,
        lock: &WorkspaceLock,
        record: &PidRecord,
    ) -> Result<bool, StorageError> {
        let text = serde_json::to_vec(record).expect("a pid record is plain data");
        // Once for each that dies while we look; the bound is only against a file that comes back.
        for _ in 0..8 {
            if self.directory.create_new(PID, &text, PRIVATE_FILE)? {
                self.directory.remove(SOCKET)?;
                return Ok(true);
            }
            let owner = self.pid_record()?.map(|found| found.workspace_id);
            match owner.as_deref().map(WorkspaceId::named) {
                Some(Ok(other)) if &other != lock.id() => match state.lock_workspace(&other)? {
                    Some(other_lock) => self.clear_stale(&other_lock)?,
                    None => return Ok(false),
                },
                // Ours, and we hold the lock, or nobody's.
                _ => self.clear_stale(lock)?,
            }
        }
        Ok(false)
    }

    /// Remove what a dead daemon left here. The lock is the proof that it is dead.
    pub(crate) fn clear_stale(&self, _lock: &WorkspaceLock) -> Result<(), StorageError> {
        if let Some(record) = self.pid_record().unwrap_or_default()
            && record.process_state() == ProcessState::Foreign
        {
            return Err(StorageError::ForeignProcess {
                pid: record.pid,
                path: self.directory.path_of(PID),
            });
        }
        self.directory.remove(SOCKET)?;
        self.directory.remove(PID)?;
        self.remove_login_pages()?;
        self.directory.remove_temporaries()
    }

    /// Remove what only a daemon that lives has: socket, pid file, pages that log a browser in.
    pub fn release(&self) -> Result<(), StorageError> {
        self.remove_login_pages()?;
        self.directory.remove(SOCKET)?;
        self.directory.remove(PID)?;
        Ok(())
    }

    pub fn session(&self) -> &SessionName {
        &self.session
    }

    pub fn directory(&self) -> &Directory {
        &self.directory
    }

    /// Where the control socket is; an error if the system could not bind so long a path.
    pub fn socket_path(&self) -> Result<PathBuf, StorageError> {
        let path = self.directory.path_of(SOCKET);
        let length = path.as_os_str().len();
        if length > SOCKET_LIMIT {
            return Err(StorageError::SocketPathTooLong {
                path,
                length,
                limit: SOCKET_LIMIT,
            });
        }
        Ok(path)
    }

    /// The content of `daemon.pid`; `None` without one, and for one that cannot be understood.
    pub fn pid_record(&self) -> Result<Option<PidRecord>, StorageError> {
        let bytes = self.directory.read(PID)?;
        Ok(bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()))
    }

    /// The daemon's own log.
    pub fn log(&self) -> Result<RotatingLog, StorageError> {
        RotatingLog::open(self.directory.clone(), LOG, LOG_BYTES, LOG_COUNT)
    }

    pub fn log_path(&self) -> PathBuf {
        self.directory.path_of(LOG)
    }

    /// The terminal's history, made sure to be readable by the owner alone.
    pub fn history_path(&self) -> Result<PathBuf, StorageError> {
        self.directory.append(HISTORY)?;
        Ok(self.directory.path_of(HISTORY))
    }

    /// Write a page that logs a browser in, under a name nobody can guess.
    pub fn write_login_page(&self, page: &[u8]) -> Result<PathBuf, StorageError> {
        let name = format!("login-{}.html", random_hex::<16>()?);
        self.directory.write_secret(&name, page)?;
        Ok(self.directory.path_of(&name))
    }

    /// Remove login pages, all of them: used, too old, or of a daemon that is gone.
    pub fn remove_login_pages(&self) -> Result<(), StorageError> {
        for name in self.directory.names()? {
            if name.starts_with("login-") {
                self.directory.remove(&name)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
