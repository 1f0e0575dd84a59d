//! What can go wrong with the environment or the node.

use std::io;
use std::path::PathBuf;

use crate::erlang::{INSTALL_COMMAND, OLDEST_RELEASE};

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(
        "Erlang/OTP {OLDEST_RELEASE} or newer is needed, but {looked} was not found; install it: {INSTALL_COMMAND}"
    )]
    ErlangMissing { looked: String },
    #[error(
        "Erlang/OTP {OLDEST_RELEASE} or newer is needed, but {} is release {found}; install a newer one: {INSTALL_COMMAND}",
        program.display()
    )]
    ErlangTooOld { program: PathBuf, found: u32 },
    #[error("cannot run {}", program.display())]
    ErlangBroken {
        program: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("{} does not say which Erlang release it is", program.display())]
    ErlangUnknown { program: PathBuf },
    #[error(transparent)]
    Storage(#[from] beamtalk_storage::StorageError),
    #[error("{} is not a directory", path.display())]
    NotADirectory { path: PathBuf },
    #[error("cannot {action} {}", path.display())]
    File {
        action: &'static str,
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("this binary carries no runtime: {reason}")]
    NoRuntime { reason: &'static str },
    #[error("the node stopped{}", status.map_or_else(String::new, |status| format!(" ({status})")))]
    NodeGone {
        status: Option<std::process::ExitStatus>,
    },
    #[error("cannot talk to the node")]
    Pipe(#[source] io::Error),
    #[error("the node sent a frame of {length} bytes, over the limit of {limit}")]
    FrameTooLong { length: usize, limit: usize },
    #[error("the node sent a damaged frame")]
    Frame(#[from] beamtalk_etf::DecodeError),
    #[error("the node sent something unexpected: {shown}")]
    Unexpected { shown: String },
}

impl Error {
    /// An answer nobody asked for, the beginning of it shown.
    pub fn unexpected(term: &beamtalk_etf::Term) -> Self {
        let shown = format!("{term:?}").chars().take(200).collect();
        Self::Unexpected { shown }
    }

    /// Wraps an I/O error with what was being done to which path.
    pub(crate) fn file(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |cause| Error::File { action, path, cause }
    }
}
