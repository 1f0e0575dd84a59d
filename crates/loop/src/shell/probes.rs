//! HTTP probes: one question, one answer.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http_body_util::Empty;
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{ACCEPT, HOST, LOCATION};
use hyper::{Request, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_rustls::TlsConnector;

use super::Inbound;
use crate::core::{Event, Ms};

const REDIRECTS: usize = 10;

/// Asks; what it trusts is loaded from the system when the first https probe needs it.
#[derive(Clone, Default)]
pub(crate) struct Prober {
    tls: Arc<OnceLock<Arc<rustls::ClientConfig>>>,
}

impl Prober {
    /// Ask an address; the answer comes to `inbox` under `id`.
    pub(crate) fn ask(&self, id: u64, url: String, limit: Ms, inbox: mpsc::Sender<Inbound>) {
        let prober = self.clone();
        tokio::spawn(async move {
            let answer = tokio::time::timeout(Duration::from_millis(limit), prober.get(&url))
                .await
                .unwrap_or_else(|_| Err("timed out".to_owned()));
            drop(inbox.send(Inbound::Event(Event::Probed { id, answer })).await);
        });
    }

    async fn get(&self, url: &str) -> Result<(), String> {
        let mut address: Uri = url.parse().map_err(|cause| format!("{url}: {cause}"))?;
        for _ in 0..=REDIRECTS {
            let (status, location) = self.look(&address).await?;
            match location {
                Some(location) if is_redirect(status) => address = resolve(&address, &location)?,
                _ if status.is_success() => return Ok(()),
                _ => return Err(format!("status {}", status.as_u16())),
            }
        }
        Err("too many redirects".to_owned())
    }

    /// The status of one address, and where it sends us.
    async fn look(&self, address: &Uri) -> Result<(StatusCode, Option<String>), String> {
        let is_tls = match address.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(format!("{address} is neither http nor https")),
        };
        let host = address.host().ok_or_else(|| format!("{address} names no host"))?;
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let port = address.port_u16().unwrap_or(if is_tls { 443 } else { 80 });
        let tcp = TcpStream::connect((host, port)).await.map_err(innermost)?;
        if !is_tls {
            return exchange(tcp, address).await;
        }
        let name = ServerName::try_from(host.to_owned()).map_err(|_| format!("{host} is no host name"))?;
        let config = self.tls.get_or_init(trust_of_the_system).clone();
        let stream = TlsConnector::from(config)
            .connect(name, tcp)
            .await
            .map_err(innermost)?;
        exchange(stream, address).await
    }
}

fn trust_of_the_system() -> Arc<rustls::ClientConfig> {
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("the provider speaks the default versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    Arc::new(config)
}

/// One request on a connection of its own; the body of the answer is not read.
async fn exchange(
    stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
    address: &Uri,
) -> Result<(StatusCode, Option<String>), String> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await.map_err(innermost)?;
    let driver = tokio::spawn(connection);
    let authority = address.authority().map_or("", |authority| authority.as_str());
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let target = address.path_and_query().map_or("/", |target| target.as_str());
    let request = Request::get(target)
        .header(HOST, host)
        .header(ACCEPT, "*/*")
        .body(Empty::<Bytes>::new())
        .map_err(innermost)?;
    let answer = sender.send_request(request).await.map_err(innermost);
    driver.abort();
    let answer = answer?;
    let location = answer.headers().get(LOCATION);
    let location = location.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    Ok((answer.status(), location))
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Where a `Location` leads, seen from the address that gave it.
fn resolve(from: &Uri, location: &str) -> Result<Uri, String> {
    let (scheme, authority) = match (from.scheme_str(), from.authority()) {
        (Some(scheme), Some(authority)) => (scheme, authority.as_str()),
        _ => return Err(format!("{from} names no host")),
    };
    let location = location.split('#').next().unwrap_or_default();
    let whole = if location.contains("://") {
        location.to_owned()
    } else if location.starts_with("//") {
        format!("{scheme}:{location}")
    } else if location.starts_with('/') {
        format!("{scheme}://{authority}{location}")
    } else if location.is_empty() || location.starts_with('?') {
        format!("{scheme}://{authority}{}{location}", from.path())
    } else {
        let directory = from.path().rsplit_once('/').map_or("", |(above, _)| above);
        format!(
            "{scheme}://{authority}{}",
            without_dots(&format!("{directory}/{location}"))
        )
    };
    whole
        .parse()
        .map_err(|cause| format!("redirected to {location}: {cause}"))
}

/// A path without `.` and `..`.
fn without_dots(target: &str) -> String {
    let (path, query) = target.split_at(target.find('?').unwrap_or(target.len()));
    let mut kept: Vec<&str> = Vec::new();
    for part in path.split('/').skip(1) {
        match part {
            "." => {}
            ".." => drop(kept.pop()),
            part => kept.push(part),
        }
    }
    format!("/{}{query}", kept.join("/"))
}

/// The innermost cause, which says most.
fn innermost(error: impl std::error::Error) -> String {
    let mut cause: &dyn std::error::Error = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

#[cfg(test)]
mod tests;
