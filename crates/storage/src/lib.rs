//! What Beamtalk keeps on disk for a user: the state directory `$H`, workspaces, run directories.
//!
//! Everything below `$H` is reached through directory descriptors and never through a symbolic
//! link; secrets are never, not even for a moment, in a file others could read. This crate knows
//! files, names, locks and records. It starts nothing, listens on nothing and needs no runtime.
//!
//! Start at [`StateDirectory::open`], go on to [`WorkspaceDirectory`] and [`RunDirectory`].

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests set up what they look at")
)]

mod directory;
mod encoding;
mod error;
mod id;
mod liveness;
mod log;
mod process;
mod project;
mod records;
mod regular;
mod replace;
mod run;
mod secret;
mod state;
mod tail;
pub mod time;
mod workspace;

pub use directory::{Directory, PRIVATE_FILE, PUBLIC_FILE};
pub use encoding::{base64, base64url, hex, hmac_sha256, parse_hex, sha256_hex};
pub use error::{Class, SecretFault, StorageError, repair_of};
pub use id::{SessionName, WorkspaceId};
pub use liveness::{
    LockState, Observation, ProcessState, SignalProbe, SocketState, Verdict, process_state, verdict,
};
pub use log::RotatingLog;
pub use process::{disable_core_dumps, process_start_time};
pub use project::find_project_root;
pub use records::{
    Capabilities, FileAccess, LoadedClass, Metadata, NodeInfo, PidRecord, PortRecord, Settings,
};
pub use regular::{read_regular, read_written};
pub use replace::{Disk, mode_of, replace_file};
pub use run::RunDirectory;
pub use secret::{Secret, random_bytes, random_hex};
pub use state::{Notice, StateDirectory};
pub use tail::LogTail;
pub use workspace::{WorkspaceDirectory, WorkspaceLock};

/// Read a file of secrets outside the state directory: a key, a token. It must be a regular file of
/// the user's own, with one name, and closed to everybody else.
pub fn read_secret_file(path: &std::path::Path) -> Result<zeroize::Zeroizing<Vec<u8>>, StorageError> {
    Directory::read_secret_file(path)
}
