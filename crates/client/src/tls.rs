//! TLS to a workspace on another machine. The server is always verified.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::connection::{Endpoint, Error};

/// Whom to trust besides the system's roots, and as whom to appear.
#[derive(Clone, Debug, Default)]
pub struct TlsTrust {
    pub ca: Option<PathBuf>,
    pub certificate: Option<(PathBuf, PathBuf)>,
}

pub(crate) enum Stream {
    Plain(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

pub(crate) async fn wrap(tcp: TcpStream, endpoint: &Endpoint) -> Result<Stream, Error> {
    let Some(trust) = &endpoint.tls else {
        return Ok(Stream::Plain(tcp));
    };
    let config = config(trust)?;
    let name = ServerName::try_from(endpoint.host.clone())
        .map_err(|_| Error::Tls(format!("'{}' is no host name", endpoint.host)))?;
    let stream = TlsConnector::from(Arc::new(config))
        .connect(name, tcp)
        .await
        .map_err(|cause| Error::Tls(format!("the server's certificate was not accepted: {cause}")))?;
    Ok(Stream::Tls(Box::new(stream)))
}

fn config(trust: &TlsTrust) -> Result<rustls::ClientConfig, Error> {
    let failed = |what: &str, cause: &dyn std::fmt::Display| Error::Tls(format!("{what}: {cause}"));
    let mut roots = rustls::RootCertStore::empty();
    let system = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(system.certs);
    if let Some(file) = &trust.ca {
        for certificate in certificates(file)? {
            roots
                .add(certificate)
                .map_err(|cause| failed(&file.display().to_string(), &cause))?;
        }
    }
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|cause| failed("TLS", &cause))?
        .with_root_certificates(roots);
    match &trust.certificate {
        None => Ok(builder.with_no_client_auth()),
        Some((certificate, key)) => {
            let key_der = PrivateKeyDer::from_pem_file(key)
                .map_err(|cause| failed(&key.display().to_string(), &cause))?;
            builder
                .with_client_auth_cert(certificates(certificate)?, key_der)
                .map_err(|cause| failed(&certificate.display().to_string(), &cause))
        }
    }
}

fn certificates(file: &std::path::Path) -> Result<Vec<CertificateDer<'static>>, Error> {
    CertificateDer::pem_file_iter(file)
        .and_then(Iterator::collect)
        .map_err(|cause| Error::Tls(format!("{}: {cause}", file.display())))
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
