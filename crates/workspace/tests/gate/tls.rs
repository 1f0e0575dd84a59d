//! TLS of the listener.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;

use beamtalk_wire::Role;
use beamtalk_workspace::certificates::{Pair, Subject, issue, make_authority};
use beamtalk_workspace::gate::{GateError, Pace, TlsFiles};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::support::{COOKIE, Client, House, house_with, open, quick, soon, try_house};

struct Authority {
    directory: tempfile::TempDir,
    pair: Pair,
}

impl Authority {
    fn new() -> Self {
        let pair = make_authority(now()).unwrap();
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("ca.pem"), &pair.certificate).unwrap();
        Self { directory, pair }
    }

    fn issue(&self, subject: &Subject) -> Pair {
        issue(&self.pair, subject, now()).unwrap()
    }

    fn server(&self, host: &str) -> Pair {
        self.issue(&Subject::Server {
            workspace: "orbit".into(),
            hosts: vec![host.into(), "127.0.0.1".into()],
        })
    }

    fn write(&self, server: &Pair) {
        let path = self.directory.path();
        std::fs::write(path.join("server.pem"), &server.certificate).unwrap();
        std::fs::write(path.join("server-key.pem"), server.key.as_bytes()).unwrap();
        set_mode(&path.join("server-key.pem"), 0o600);
    }

    fn files(&self, client_auth: bool) -> TlsFiles {
        let path = self.directory.path();
        TlsFiles {
            certificate: path.join("server.pem"),
            key: path.join("server-key.pem"),
            client_ca: client_auth.then(|| path.join("ca.pem")),
        }
    }

    async fn house(&self, client_auth: bool) -> House {
        self.write(&self.server("dev.example"));
        house_with(Pace::default(), |config| {
            config.tls = Some(self.files(client_auth));
        })
        .await
    }

    async fn connect(&self, house: &House, client: Option<&Pair>) -> std::io::Result<TlsStream<TcpStream>> {
        self.connect_as(house, client, rustls::DEFAULT_VERSIONS).await
    }

    async fn connect_as(
        &self,
        house: &House,
        client: Option<&Pair>,
        versions: &[&'static rustls::SupportedProtocolVersion],
    ) -> std::io::Result<TlsStream<TcpStream>> {
        let mut roots = rustls::RootCertStore::empty();
        roots.add(der(&self.pair.certificate)).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(versions)
            .unwrap()
            .with_root_certificates(roots);
        let config = match client {
            None => builder.with_no_client_auth(),
            Some(pair) => builder
                .with_client_auth_cert(
                    vec![der(&pair.certificate)],
                    PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap(),
                )
                .unwrap(),
        };
        let stream = TcpStream::connect(house.gate.address).await?;
        TlsConnector::from(Arc::new(config))
            .connect(ServerName::try_from("127.0.0.1").unwrap(), stream)
            .await
    }

    async fn client(&self, house: &House, client: Option<&Pair>) -> Client<TlsStream<TcpStream>> {
        let stream = self.connect(house, client).await.unwrap();
        open(stream, house.port(), &[]).await.unwrap()
    }
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

fn now() -> u64 {
    beamtalk_storage::time::now_seconds()
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[tokio::test]
async fn clients_authenticate_over_tls() {
    let authority = Authority::new();
    let mut house = authority.house(false).await;
    for versions in [&[&rustls::version::TLS13], &[&rustls::version::TLS12]] {
        let stream = authority.connect_as(&house, None, versions).await.unwrap();
        let mut client = open(stream, house.port(), &[]).await.unwrap();
        client.expect("auth-required").await;
        client.cookie(COOKIE).await;
        client.expect("auth_ok").await;
        let mut admitted = house.next().await;
        client.say("{}").await;
        assert_eq!(soon(admitted.incoming.recv()).await.unwrap(), "{}");
    }
}

#[tokio::test]
async fn plaintext_refused_on_tls_port() {
    let authority = Authority::new();
    let house = authority.house(false).await;
    let answer = house.http("GET /", &[], "").await;
    assert!(!answer.contains("HTTP/1.1"), "{answer}");
    assert_eq!(house.gate.counts().connected, 0);
    // A page of the same name without TLS is another origin.
    let stream = authority.connect(&house, None).await.unwrap();
    let plain = format!("http://127.0.0.1:{}", house.port());
    assert_eq!(
        open(stream, house.port(), &[("origin", &plain)]).await.err(),
        Some(403)
    );
    let stream = authority.connect(&house, None).await.unwrap();
    let own = format!("https://127.0.0.1:{}", house.port());
    assert!(open(stream, house.port(), &[("origin", &own)]).await.is_ok());
}

#[tokio::test]
async fn client_cert_required() {
    let authority = Authority::new();
    let mut house = authority.house(true).await;
    let ada = authority.issue(&Subject::Client { name: "ada".into() });
    let stranger = Authority::new().issue(&Subject::Client { name: "ada".into() });
    // In TLS 1.3 the client finishes first and hears of the refusal when it reads.
    let refused = |stream: std::io::Result<TlsStream<TcpStream>>| async {
        match stream {
            Err(_) => true,
            Ok(mut stream) => {
                drop(stream.write_all(b"GET / HTTP/1.1\r\n\r\n").await);
                let mut answer = Vec::new();
                let read = soon(stream.read_to_end(&mut answer)).await;
                read.is_err() && answer.is_empty()
            }
        }
    };
    assert!(refused(authority.connect(&house, None).await).await);
    assert!(refused(authority.connect(&house, Some(&stranger)).await).await);
    // A certificate of the authority for a server does not make a client.
    let server = authority.server("dev.example");
    assert!(refused(authority.connect(&house, Some(&server)).await).await);
    // With one, the secret is still asked for.
    let mut client = authority.client(&house, Some(&ada)).await;
    client.expect("auth-required").await;
    client.cookie("wrong").await;
    client.expect("auth_error").await;
    let mut client = authority.client(&house, Some(&ada)).await;
    client.expect("auth-required").await;
    client.cookie(COOKIE).await;
    client.expect("auth_ok").await;
    house.next().await;
}

#[tokio::test]
async fn a_key_that_others_can_read_is_refused() {
    let authority = Authority::new();
    authority.write(&authority.server("dev.example"));
    let files = authority.files(false);
    let opened = |files: TlsFiles| try_house(quick(), |config| config.tls = Some(files));
    set_mode(&files.key, 0o640);
    assert!(matches!(opened(files.clone()).await, Err(GateError::Tls(_))));
    set_mode(&files.key, 0o600);
    let link = authority.directory.path().join("link.pem");
    std::os::unix::fs::symlink(&files.key, &link).unwrap();
    let linked = TlsFiles {
        key: link,
        ..files.clone()
    };
    assert!(matches!(opened(linked).await, Err(GateError::Tls(_))));
    assert!(opened(files).await.is_ok());
}

#[tokio::test]
async fn certificates_are_read_again() {
    let authority = Authority::new();
    let house = authority.house(false).await;
    let shown = async |house: &House| {
        let stream = authority.connect(house, None).await.unwrap();
        let (_, session) = stream.get_ref();
        session.peer_certificates().unwrap()[0].clone()
    };
    let before = shown(&house).await;
    let renewed = authority.server("dev.example");
    authority.write(&renewed);
    assert_eq!(shown(&house).await, before);
    house.gate.reload_tls().unwrap();
    assert_eq!(shown(&house).await, der(&renewed.certificate));
    // What cannot be used changes nothing.
    std::fs::write(authority.files(false).certificate, "nonsense").unwrap();
    assert!(house.gate.reload_tls().is_err());
    assert_eq!(shown(&house).await, der(&renewed.certificate));
}

#[tokio::test]
async fn from_the_network_only_tokens_count() {
    let authority = Authority::new();
    authority.write(&authority.server("dev.example"));
    let Some(own) = network_address() else { return };
    let mut house = house_with(Pace::default(), |config| {
        config.bind = "0.0.0.0".parse().unwrap();
        config.tls = Some(authority.files(false));
    })
    .await;
    let token = house
        .gate
        .create_token("laptop", (Role::Owner, None), None)
        .unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(der(&authority.pair.certificate)).unwrap();
    let config =
        rustls::ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let connect = async |host: &str| {
        let stream = TcpStream::connect((own, house.port())).await.unwrap();
        let name = ServerName::try_from("dev.example").unwrap();
        let stream = connector.connect(name, stream).await.unwrap();
        open(stream, house.port(), &[("host", host)]).await
    };
    // The interface's own address and the names of the certificate are its hosts.
    let by_address = format!("{own}:{}", house.port());
    let by_name = format!("dev.example:{}", house.port());
    assert_eq!(connect("evil.example").await.err(), Some(403));
    let mut client = connect(&by_address).await.unwrap();
    client.expect("auth-required").await;
    client.cookie(COOKIE).await;
    assert_eq!(client.json().await["message"], "Invalid cookie");
    assert!(house.trail.has("Role"));
    let mut client = connect(&by_name).await.unwrap();
    client.expect("auth-required").await;
    client.token(token.expose()).await;
    client.expect("auth_ok").await;
    house.next().await;
    // Over loopback the same listener accepts the cookie.
    let mut client = authority.client(&house, None).await;
    client.expect("auth-required").await;
    client.cookie(COOKIE).await;
    client.expect("auth_ok").await;
}

/// An address of this machine that is not loopback, if it has one.
fn network_address() -> Option<std::net::IpAddr> {
    let socket = std::net::UdpSocket::bind("0.0.0.0:0").ok()?;
    // Nothing is sent: this only asks the system which address it would send from.
    socket.connect("192.0.2.1:9").ok()?;
    let address = socket.local_addr().ok()?.ip();
    (!address.is_loopback() && !address.is_unspecified()).then_some(address)
}

#[tokio::test]
async fn commands_of_this_machine_need_neither_tls_nor_a_certificate() {
    let authority = Authority::new();
    let mut house = authority.house(true).await;
    let local = house.gate.local.unwrap();
    assert!(local.ip().is_loopback() && local != house.gate.address);
    let stream = TcpStream::connect(local).await.unwrap();
    let mut client = open(stream, local.port(), &[]).await.unwrap();
    client.expect("auth-required").await;
    client.cookie(COOKIE).await;
    client.expect("auth_ok").await;
    house.next().await;
    // The same checks hold there.
    for headers in [
        &[("host", "evil.example")][..],
        &[("origin", "https://evil.example")],
        // Of the listener with TLS, which this one is not.
        &[("origin", "https://localhost")],
    ] {
        let stream = TcpStream::connect(local).await.unwrap();
        assert_eq!(
            open(stream, local.port(), headers).await.err(),
            Some(403),
            "{headers:?}"
        );
    }
    let stream = TcpStream::connect(local).await.unwrap();
    let mut stranger = open(stream, local.port(), &[]).await.unwrap();
    stranger.expect("auth-required").await;
    stranger.cookie("wrong").await;
    assert_eq!(stranger.json().await["message"], "Invalid cookie");
}

#[tokio::test]
async fn there_is_always_a_plain_listener_on_loopback() {
    for (bind, is_beside) in [
        ("127.0.0.1", false),
        ("0.0.0.0", false),
        ("127.0.0.2", true),
        ("::1", true),
        ("::", true),
    ] {
        let house = house_with(quick(), |config| config.bind = bind.parse().unwrap()).await;
        assert_eq!(house.gate.local.is_some(), is_beside, "{bind}");
        let own = std::net::SocketAddr::from(([127, 0, 0, 1], house.port()));
        let local = house.gate.local.unwrap_or(own);
        assert!(local.ip().is_loopback());
        let stream = TcpStream::connect(local).await.unwrap();
        let mut client = open(stream, local.port(), &[]).await.unwrap();
        client.expect("auth-required").await;
        client.cookie(COOKIE).await;
        client.expect("auth_ok").await;
    }
}
