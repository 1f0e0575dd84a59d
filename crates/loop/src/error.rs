//! What ends a run, or keeps it from beginning.

use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    #[error("another loop (pid {pid}) owns {path}", path = path.display())]
    Owned { pid: u32, path: PathBuf },
    #[error("failed to lock {path}: {cause}", path = path.display())]
    Lock { path: PathBuf, cause: std::io::Error },
    #[error("failed to read state file {path}: {cause}", path = path.display())]
    ReadState { path: PathBuf, cause: std::io::Error },
    #[error("failed to parse state file {path}: {reason}", path = path.display())]
    ParseState { path: PathBuf, reason: String },
    #[error("failed to write state file {path}: {cause}", path = path.display())]
    WriteState { path: PathBuf, cause: std::io::Error },
    #[error(transparent)]
    Process(#[from] beamtalk_process::Error),
    #[error("failed to watch {root}: {cause}", root = root.display())]
    Watch { root: PathBuf, cause: std::io::Error },
    #[error("failed to bind {server} at {address}: {cause}")]
    Bind {
        server: &'static str,
        address: String,
        cause: std::io::Error,
    },
    #[error("failed to open the control socket {path}: {cause}", path = path.display())]
    Socket { path: PathBuf, cause: std::io::Error },
    #[error("failed to make tokens: {0}")]
    Random(beamtalk_storage::StorageError),
    #[error("failed to set up the runtime: {0}")]
    Runtime(#[source] std::io::Error),
}
