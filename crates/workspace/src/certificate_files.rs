//! Where certificates are kept: `tls/` in the state directory.

use std::path::PathBuf;

use beamtalk_storage::{Directory, PUBLIC_FILE, StateDirectory, StorageError, WorkspaceId, time};
use zeroize::Zeroizing;

use crate::certificates::{self, CertificateError, Pair, Subject};

/// The names of a certificate and of its key.
pub type PairNames = (&'static str, &'static str);

pub const AUTHORITY: PairNames = ("ca.pem", "ca-key.pem");
pub const SERVER: PairNames = ("server.pem", "server-key.pem");
pub const CLIENT: PairNames = ("client.pem", "client-key.pem");

#[derive(Debug, thiserror::Error)]
pub enum IssueError {
    #[error("there is no certificate authority")]
    NoAuthority,
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}

/// `tls/`.
pub fn directory(state: &StateDirectory) -> Result<Directory, StorageError> {
    state.directory("tls")
}

/// `tls/workspaces/`.
pub fn all_workspaces(state: &StateDirectory) -> Result<Directory, StorageError> {
    state.create_in(&directory(state)?, "workspaces")
}

/// `tls/workspaces/<id>/`.
pub fn of_workspace(state: &StateDirectory, id: &WorkspaceId) -> Result<Directory, StorageError> {
    state.create_in(&all_workspaces(state)?, id.as_str())
}

pub fn write(directory: &Directory, (certificate, key): PairNames, pair: &Pair) -> Result<(), StorageError> {
    // The key first: a certificate without its key is of no use, a key without one does no harm.
    directory.write_secret(key, pair.key.as_bytes())?;
    directory.write_atomically(certificate, pair.certificate.as_bytes(), PUBLIC_FILE)
}

/// Have the user's authority sign a certificate for a workspace, and keep it.
pub fn issue(
    state: &StateDirectory,
    id: &WorkspaceId,
    subject: &Subject,
) -> Result<(Directory, PairNames), IssueError> {
    let tls = directory(state)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let authority = Pair {
        certificate: text(&tls.read(AUTHORITY.0)?.ok_or(IssueError::NoAuthority)?),
        key: Zeroizing::new(text(
            &tls.read_secret(AUTHORITY.1)?.ok_or(IssueError::NoAuthority)?,
        )),
    };
    let names = match subject {
        Subject::Server { .. } => SERVER,
        Subject::Client { .. } => CLIENT,
    };
    let pair = certificates::issue(&authority, subject, time::now_seconds())?;
    let own = of_workspace(state, id)?;
    write(&own, names, &pair)?;
    Ok((own, names))
}

/// The certificate and key with which a workspace is the client of others; made if there are none.
pub(crate) fn client_pair(
    state: &StateDirectory,
    id: &WorkspaceId,
    name: &str,
) -> Result<(PathBuf, PathBuf), IssueError> {
    let own = of_workspace(state, id)?;
    if own.open(CLIENT.0)?.is_none() || own.read_secret(CLIENT.1)?.is_none() {
        let name: String = name.chars().take(64).collect();
        issue(state, id, &Subject::Client { name })?;
    }
    Ok((own.path_of(CLIENT.0), own.path_of(CLIENT.1)))
}
