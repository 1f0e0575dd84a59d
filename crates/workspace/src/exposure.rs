//! What the options of a start mean for the listener: its address, and the files of its TLS.

use std::net::IpAddr;
use std::path::PathBuf;

use beamtalk_storage::{StateDirectory, WorkspaceId};

use crate::certificate_files::{IssueError, node_pair};
use crate::cluster::{self, BadNodeName, Cluster};
use crate::gate::{ExposureFlags, ExposureRefusal, TlsFiles, Tokens, exposure, parse_bind};
use crate::options::StartOptions;

/// Where to listen, and how.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) address: IpAddr,
    pub(crate) tls: Option<TlsFiles>,
    /// The node is distributed.
    pub(crate) cluster: Option<Cluster>,
}

#[derive(Debug, thiserror::Error)]
pub enum Refusal {
    #[error(transparent)]
    Exposure(#[from] ExposureRefusal),
    #[error(
        "there is no certificate {}. Make one with: beamtalk tls init, then: beamtalk tls issue server --workspace {id} --host NAME",
        path.display()
    )]
    NoCertificate { path: PathBuf, id: String },
    #[error("{flag} needs the certificate authority {}. Make one with: beamtalk tls init", path.display())]
    NoAuthority { flag: &'static str, path: PathBuf },
    #[error(
        "the certificate with which the node connects to others cannot be made: {cause}. Where the authority is: beamtalk tls issue node --host {host}"
    )]
    Node {
        host: String,
        #[source]
        cause: IssueError,
    },
    #[error(transparent)]
    NodeName(#[from] BadNodeName),
    #[error("the host '{host}' of --cluster is not known: {reason}")]
    NoHost { host: String, reason: String },
}

/// Decide from the options and the live tokens; nothing is bound yet.
pub(crate) fn decide(
    options: &StartOptions,
    tokens: &Tokens,
    state: &StateDirectory,
    id: &WorkspaceId,
    now: u64,
) -> Result<Listener, Refusal> {
    let flags = ExposureFlags {
        bind: options.bind.as_deref().map(parse_bind).transpose()?,
        remote: false,
        confirm_network: options.confirm_network,
        tls: serves_tls(options),
        tls_client_auth: options.tls_client_auth,
        insecure_no_tls: options.insecure_no_tls,
        certificate: options.certificate.is_some(),
        key: options.key.is_some(),
    };
    let exposed = exposure(&flags, tokens.live(now).count())?;
    let tls = if exposed.tls {
        let client_auth = options.tls_client_auth.then_some("--tls-client-auth");
        Some(tls_files(options, state, id, client_auth)?)
    } else {
        None
    };
    let cluster = match cluster::address_of(options, exposed.address)? {
        Some((name, address)) => Some(Cluster {
            address,
            tls: tls_files(options, state, id, Some("--cluster"))?,
            client: node_pair(state, id, &name.to_string(), name.host()).map_err(|cause| Refusal::Node {
                host: name.host().to_owned(),
                cause,
            })?,
            peers: options.cluster_peers.clone(),
            name,
        }),
        None => None,
    };
    Ok(Listener {
        address: exposed.address,
        tls,
        cluster,
    })
}

/// A certificate is given to be used.
pub(crate) fn serves_tls(options: &StartOptions) -> bool {
    options.tls || options.certificate.is_some()
}

/// The files, and the authority of the other side's certificate where a flag asks for one.
fn tls_files(
    options: &StartOptions,
    state: &StateDirectory,
    id: &WorkspaceId,
    needs_authority: Option<&'static str>,
) -> Result<TlsFiles, Refusal> {
    let tls = state.path().join("tls");
    let own = tls.join("workspaces").join(id.as_str());
    let (certificate, key) = match (&options.certificate, &options.key) {
        (Some(certificate), Some(key)) => (certificate.clone(), key.clone()),
        _ => (own.join("server.pem"), own.join("server-key.pem")),
    };
    if !certificate.exists() {
        return Err(Refusal::NoCertificate {
            path: certificate,
            id: id.to_string(),
        });
    }
    let authority = tls.join("ca.pem");
    match needs_authority {
        Some(flag) if !authority.exists() => Err(Refusal::NoAuthority {
            flag,
            path: authority,
        }),
        flag => Ok(TlsFiles {
            certificate,
            key,
            client_ca: flag.map(|_| authority),
        }),
    }
}

#[cfg(test)]
mod tests {
    use beamtalk_wire::Role;

    use super::*;

    fn place() -> (tempfile::TempDir, StateDirectory, WorkspaceId) {
        let directory = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(Some(directory.path().join("home"))).unwrap();
        (directory, state, WorkspaceId::named("orbit").unwrap())
    }

    #[test]
    fn a_network_start_needs_everything() {
        let (_directory, state, id) = place();
        let mut tokens = Tokens::default();
        let mut options = StartOptions {
            bind: Some("10.0.0.7".into()),
            ..StartOptions::default()
        };
        let reason = |options: &StartOptions, tokens: &Tokens| {
            decide(options, tokens, &state, &id, 0).unwrap_err().to_string()
        };
        assert!(reason(&options, &tokens).contains("--confirm-network"));
        options.confirm_network = true;
        assert!(reason(&options, &tokens).contains("--insecure-no-tls"));
        options.tls = true;
        assert!(reason(&options, &tokens).contains("token create"));
        tokens.create("old", Role::Owner, Some(5), 0).unwrap();
        assert!(
            decide(&options, &tokens, &state, &id, 5).is_err(),
            "an expired token is none"
        );
        assert!(reason(&options, &tokens).contains("beamtalk tls issue server --workspace orbit"));
        let own = state.path().join("tls/workspaces/orbit");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::File::create(own.join("server.pem")).unwrap();
        let listener = decide(&options, &tokens, &state, &id, 0).unwrap();
        assert_eq!(listener.tls.unwrap().key, own.join("server-key.pem"));
        options.tls_client_auth = true;
        assert!(reason(&options, &tokens).contains("ca.pem"));
    }

    #[test]
    fn a_certificate_of_the_users_own_means_tls() {
        let (directory, state, id) = place();
        let (certificate, key) = (directory.path().join("c.pem"), directory.path().join("k.pem"));
        std::fs::File::create(&certificate).unwrap();
        let options = StartOptions {
            certificate: Some(certificate.clone()),
            key: Some(key.clone()),
            ..StartOptions::default()
        };
        let listener = decide(&options, &Tokens::default(), &state, &id, 0).unwrap();
        assert_eq!(
            listener.tls,
            Some(TlsFiles {
                certificate,
                key,
                client_ca: None
            })
        );
    }
}
