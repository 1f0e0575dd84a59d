//! What can go wrong with a project.

use std::io;
use std::path::{Path, PathBuf};

use beamtalk_storage::StorageError;

use crate::fault::Fault;

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error(transparent)]
    Fault(#[from] Fault),
    #[error("{doing} {}: {cause}", path.display())]
    File {
        doing: &'static str,
        path: PathBuf,
        cause: io::Error,
    },
    #[error("{} is not UTF-8", path.display())]
    NotText { path: PathBuf },
    /// A report could not be written where it was wanted.
    #[error(transparent)]
    Output(#[from] io::Error),
    #[error(transparent)]
    Node(#[from] beamtalk_node::Error),
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Says what was done where when a file fails.
pub trait At<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T>;
}

impl<T> At<T> for io::Result<T> {
    fn at(self, doing: &'static str, path: &Path) -> Result<T> {
        self.map_err(|cause| Error::File {
            doing,
            path: path.to_owned(),
            cause,
        })
    }
}
