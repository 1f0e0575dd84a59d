//! What can go wrong with the change log itself. What goes wrong with single files of a flush is a conflict.

use std::path::PathBuf;

use beamtalk_storage::StorageError;

#[derive(Debug, thiserror::Error)]
pub enum ChangeError {
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error("cannot write the change log: {cause}")]
    Write {
        #[source]
        cause: std::io::Error,
    },
    #[error("{path}: {cause}")]
    Flush {
        path: PathBuf,
        #[source]
        cause: std::io::Error,
    },
    #[error("there is no change {seq}")]
    NoEntry { seq: u64 },
    #[error("change {seq} cannot be reverted: {reason}")]
    RevertNotPossible { seq: u64, reason: &'static str },
    #[error("change {seq} is of a kind this version cannot revert")]
    UnsupportedRevertKind { seq: u64 },
}

impl ChangeError {
    /// The error kind on the wire.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Storage(_) | Self::Write { .. } | Self::Flush { .. } => "flush_io_error",
            Self::NoEntry { .. } => "invalid_parameter",
            Self::RevertNotPossible { .. } => "revert_not_possible",
            Self::UnsupportedRevertKind { .. } => "unsupported_revert_kind",
        }
    }
}
