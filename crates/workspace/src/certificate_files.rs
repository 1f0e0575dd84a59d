//! Where certificates are kept: `tls/` in the state directory.

use std::path::PathBuf;

use beamtalk_storage::{Directory, PUBLIC_FILE, StateDirectory, StorageError, WorkspaceId, time};
use zeroize::Zeroizing;

use crate::certificates::{self, CertificateError, Pair, Subject, Summary};

/// The names of a certificate and of its key.
pub type PairNames = (&'static str, &'static str);

pub const AUTHORITY: PairNames = ("ca.pem", "ca-key.pem");
pub const SERVER: PairNames = ("server.pem", "server-key.pem");
pub const CLIENT: PairNames = ("client.pem", "client-key.pem");
/// With which a node of a cluster connects to others.
pub const NODE: PairNames = ("node.pem", "node-key.pem");

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
        Subject::Node { .. } => NODE,
    };
    let pair = certificates::issue(&authority, subject, time::now_seconds())?;
    let own = of_workspace(state, id)?;
    write(&own, names, &pair)?;
    Ok((own, names))
}

/// The certificate and key with which a node connects to others; made if there is none that names its host.
pub(crate) fn node_pair(
    state: &StateDirectory,
    id: &WorkspaceId,
    name: &str,
    host: &str,
) -> Result<(PathBuf, PathBuf), IssueError> {
    let own = of_workspace(state, id)?;
    let names_host = |summary: Summary| {
        let host = host.to_ascii_lowercase();
        let bracketed = format!("[{host}]");
        let mut hosts = summary.hosts.iter().map(|name| name.to_ascii_lowercase());
        hosts.any(|name| name == host || name == bracketed)
    };
    let is_there = match own.read(NODE.0)? {
        Some(certificate) => certificates::read(&certificate).is_ok_and(names_host),
        None => false,
    };
    if !is_there || own.read_secret(NODE.1)?.is_none() {
        let name: String = name.chars().take(64).collect();
        let hosts = vec![host.to_owned()];
        issue(state, id, &Subject::Node { name, hosts })?;
    }
    Ok((own.path_of(NODE.0), own.path_of(NODE.1)))
}
