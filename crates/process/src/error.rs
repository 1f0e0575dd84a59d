//! What can go wrong when a program is started or guarded.

use std::io;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("no program '{name}' on the path")]
    NotOnPath { name: String },
    #[error("{program}: {cause}", program = program.display())]
    Start { program: PathBuf, cause: io::Error },
    #[error("the working directory {directory}: {cause}", directory = directory.display())]
    Directory { directory: PathBuf, cause: io::Error },
    #[error("the guard process did not start: {0}")]
    Guard(#[source] io::Error),
}
