//! What ends a session before its time.

use beamtalk_client::Fault;
use beamtalk_storage::StorageError;
use rustyline::error::ReadlineError;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A stream, or the terminal.
    #[error(transparent)]
    Stream(#[from] std::io::Error),
    /// The history.
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Editor(#[from] ReadlineError),
    /// The workspace cannot be reached, or no longer.
    #[error(transparent)]
    Workspace(#[from] Fault),
}

pub(crate) type Result<T, E = Error> = std::result::Result<T, E>;
