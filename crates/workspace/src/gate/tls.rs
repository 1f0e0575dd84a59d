//! TLS of the listener: 1.3, and 1.2 with authenticated encryption only.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use beamtalk_storage::{StorageError, read_secret_file};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};

use crate::certificates::names_of;

/// The files TLS is served with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    pub certificate: PathBuf,
    pub key: PathBuf,
    /// Who must have signed the certificates of clients; `None` asks clients for none.
    pub client_ca: Option<PathBuf>,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot read {}", path.display())]
    File {
        path: PathBuf,
        #[source]
        cause: std::io::Error,
    },
    #[error("{} holds no certificate in PEM form", path.display())]
    NoCertificate { path: PathBuf },
    #[error("{} holds no private key in PEM form", path.display())]
    NoKey { path: PathBuf },
    #[error(transparent)]
    Key(#[from] StorageError),
    #[error("the certificate {} cannot be used", path.display())]
    Unusable {
        path: PathBuf,
        #[source]
        cause: rustls::Error,
    },
    #[error("clients cannot be verified against {}", path.display())]
    ClientAuthority {
        path: PathBuf,
        #[source]
        cause: rustls::server::VerifierBuilderError,
    },
}

/// What the listener needs of the files.
#[derive(Clone)]
pub(crate) struct Tls {
    pub(crate) config: Arc<ServerConfig>,
    /// The names in the certificate.
    pub(crate) names: Arc<[String]>,
}

impl Tls {
    pub(crate) fn load(files: &TlsFiles) -> Result<Self, TlsError> {
        let chain = certificates(&files.certificate)?;
        let names = chain.first().map(names_of).unwrap_or_default();
        // Others must not be able to read the key; the rules are those of our own secrets.
        let key = read_secret_file(&files.key)?;
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|_| TlsError::NoKey {
            path: files.key.clone(),
        })?;
        let unusable = |cause| TlsError::Unusable {
            path: files.certificate.clone(),
            cause,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(unusable)?;
        let builder = match &files.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                roots.add_parsable_certificates(certificates(path)?);
                let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider)
                    .build()
                    .map_err(|cause| TlsError::ClientAuthority {
                        path: path.clone(),
                        cause,
                    })?;
                builder.with_client_cert_verifier(verifier)
            }
        };
        let config = builder.with_single_cert(chain, key).map_err(unusable)?;
        Ok(Self {
            config: Arc::new(config),
            names: names.into(),
        })
    }
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    let text = std::fs::read(path).map_err(|cause| TlsError::File {
        path: path.to_owned(),
        cause,
    })?;
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match found {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) | Err(_) => Err(TlsError::NoCertificate {
            path: path.to_owned(),
        }),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_cipher_suite_authenticates_what_it_encrypts() {
        for suite in rustls::crypto::ring::default_provider().cipher_suites {
            let name = format!("{:?}", suite.suite());
            assert!(
                name.contains("GCM") || name.contains("CHACHA20_POLY1305"),
                "{name}"
            );
        }
    }
}
