//! A gate on a free port, and clients for it.

use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use beamtalk_workspace::gate::{
    Admitted, AuditSink, ControlCall, Credential, Credentials, Gate, GateConfig, GateError, GateEvent, Pace,
    Page, TokenStore, Tokens,
};
use futures_util::{SinkExt, StreamExt};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::{self, Message};

pub(crate) const COOKIE: &str = "p3Zk1q8vTn0cXwRr5yLsJdHb2mGfQaUe7iOoKxVtWzE";
pub(crate) const ID: &str = "d0dc08b498b6";

pub(crate) fn pages(path: &str) -> Option<Page> {
    let (mime, bytes) = match path {
        "/" => (
            "text/html; charset=utf-8",
            &b"<!doctype html><title>Beamtalk</title>"[..],
        ),
        "/assets/main.js" => ("text/javascript", &b"export {};"[..]),
        _ => return None,
    };
    Some(Page {
        mime,
        bytes: bytes.into(),
        is_compressed: false,
    })
}

/// What was recorded, as text.
#[derive(Default)]
pub(crate) struct Trail(Mutex<Vec<String>>);

impl Trail {
    pub(crate) fn lines(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    pub(crate) fn has(&self, text: &str) -> bool {
        self.lines().iter().any(|line| line.contains(text))
    }
}

impl AuditSink for Trail {
    fn record(&self, event: GateEvent<'_>) {
        self.0.lock().unwrap().push(format!("{event:?}"));
    }
}

/// The token file.
#[derive(Default)]
pub(crate) struct File(Mutex<Vec<u8>>);

impl File {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl TokenStore for File {
    fn save(&self, tokens: &[u8]) -> Result<(), beamtalk_storage::StorageError> {
        *self.0.lock().unwrap() = tokens.to_vec();
        Ok(())
    }
}

pub(crate) struct House {
    pub(crate) gate: Gate,
    pub(crate) admitted: mpsc::Receiver<Admitted>,
    pub(crate) calls: mpsc::Receiver<ControlCall>,
    pub(crate) trail: Arc<Trail>,
    pub(crate) file: Arc<File>,
    pub(crate) directory: tempfile::TempDir,
}

/// Times short enough to wait for.
pub(crate) fn quick() -> Pace {
    Pace {
        authentication: Duration::from_millis(400),
        hello: Duration::from_millis(50),
        ..Pace::default()
    }
}

pub(crate) async fn house() -> House {
    house_with(Pace::default(), |_| {}).await
}

pub(crate) async fn house_with(pace: Pace, change: impl FnOnce(&mut GateConfig)) -> House {
    try_house(pace, change).await.unwrap()
}

pub(crate) async fn try_house(pace: Pace, change: impl FnOnce(&mut GateConfig)) -> Result<House, GateError> {
    let directory = tempfile::Builder::new()
        .permissions(std::fs::Permissions::from_mode(0o700))
        .tempdir()
        .unwrap();
    let mut config = GateConfig {
        bind: IpAddr::V4(Ipv4Addr::LOCALHOST),
        port: 0,
        tls: None,
        allow_hosts: Vec::new(),
        allow_origins: Vec::new(),
        workspace_id: ID.into(),
        version: "0.1.0".into(),
        control_socket: directory.path().join("daemon.sock"),
        pages,
        mcp: None,
        pace,
    };
    change(&mut config);
    let (trail, file) = (Arc::new(Trail::default()), Arc::new(File::default()));
    let credentials = Credentials {
        cookie: Credential::new(COOKIE),
        tokens: Tokens::default(),
        store: file.clone(),
    };
    let (mut gate, admitted, calls) = Gate::open(config, credentials, trail.clone()).await?;
    gate.start();
    Ok(House {
        gate,
        admitted,
        calls,
        trail,
        file,
        directory,
    })
}

impl House {
    pub(crate) fn port(&self) -> u16 {
        self.gate.address.port()
    }

    pub(crate) fn socket(&self) -> std::path::PathBuf {
        self.directory.path().join("daemon.sock")
    }

    pub(crate) async fn client(&self) -> Client {
        self.client_with(&[]).await.unwrap()
    }

    /// Open a WebSocket with more headers; `host` replaces the usual one.
    pub(crate) async fn client_with(&self, headers: &[(&str, &str)]) -> Result<Client, u16> {
        let stream = TcpStream::connect(self.gate.address).await.unwrap();
        open(stream, self.port(), headers).await
    }

    /// A client that authenticated with the cookie.
    pub(crate) async fn owner(&mut self) -> (Client, Admitted) {
        let mut client = self.client().await;
        client.expect("auth-required").await;
        client.cookie(COOKIE).await;
        client.expect("auth_ok").await;
        let admitted = self.next().await;
        (client, admitted)
    }

    pub(crate) async fn next(&mut self) -> Admitted {
        soon(self.admitted.recv()).await.unwrap()
    }

    /// Send raw bytes and read the whole answer.
    pub(crate) async fn raw(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.gate.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        drop(soon(stream.read_to_end(&mut answer)).await);
        String::from_utf8_lossy(&answer).into_owned()
    }

    /// One HTTP request on a connection of its own.
    pub(crate) async fn http(&self, line: &str, headers: &[(&str, &str)], body: &str) -> String {
        let mut text = format!("{line} HTTP/1.1\r\nconnection: close\r\n");
        if !headers.iter().any(|(name, _)| *name == "host") {
            text.push_str(&format!("host: localhost:{}\r\n", self.port()));
        }
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str(&format!("content-length: {}\r\n\r\n{body}", body.len()));
        self.raw(&text).await
    }
}

pub(crate) async fn open<S>(stream: S, port: u16, headers: &[(&str, &str)]) -> Result<Client<S>, u16>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let mut request = format!("ws://127.0.0.1:{port}/ws").into_client_request().unwrap();
    for (name, value) in headers {
        let name: tungstenite::http::HeaderName = name.parse().unwrap();
        request.headers_mut().insert(name, value.parse().unwrap());
    }
    match tokio_tungstenite::client_async(request, stream).await {
        Ok((socket, response)) => {
            let protocol = response.headers().get("sec-websocket-protocol");
            Ok(Client {
                protocol: protocol.map(|value| value.to_str().unwrap().to_owned()),
                set_cookie: response
                    .headers()
                    .get("set-cookie")
                    .map(|value| value.to_str().unwrap().to_owned()),
                socket,
            })
        }
        Err(tungstenite::Error::Http(response)) => {
            assert!(response.body().as_ref().is_none_or(Vec::is_empty));
            Err(response.status().as_u16())
        }
        Err(error) => panic!("{error}"),
    }
}

/// A client that speaks WebSocket and nothing more.
pub(crate) struct Client<S = TcpStream> {
    pub(crate) socket: WebSocketStream<S>,
    /// The selected subprotocol.
    pub(crate) protocol: Option<String>,
    pub(crate) set_cookie: Option<String>,
}

#[derive(Debug, PartialEq)]
pub(crate) enum Heard {
    Json(Value),
    Closed(u16),
    Gone,
}

impl<S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin> Client<S> {
    pub(crate) async fn say(&mut self, text: &str) {
        self.socket.send(Message::text(text)).await.unwrap();
    }

    pub(crate) async fn cookie(&mut self, cookie: &str) {
        let auth = serde_json::json!({"type": "auth", "cookie": cookie, "client": "repl", "protocol": "1.0"});
        self.say(&auth.to_string()).await;
    }

    pub(crate) async fn token(&mut self, token: &str) {
        let auth = serde_json::json!({"type": "auth", "token": token, "client": "attach"});
        self.say(&auth.to_string()).await;
    }

    pub(crate) async fn hear(&mut self) -> Heard {
        loop {
            match soon(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return Heard::Json(serde_json::from_str(&text).unwrap()),
                Some(Ok(Message::Close(frame))) => {
                    return Heard::Closed(frame.map_or(1005, |frame| frame.code.into()));
                }
                Some(Ok(_)) => {}
                Some(Err(_)) | None => return Heard::Gone,
            }
        }
    }

    pub(crate) async fn json(&mut self) -> Value {
        match self.hear().await {
            Heard::Json(value) => value,
            heard => panic!("{heard:?}"),
        }
    }

    /// The next message, which is of this type or op.
    pub(crate) async fn expect(&mut self, name: &str) -> Value {
        let message = self.json().await;
        assert!(message["type"] == name || message["op"] == name, "{message}");
        message
    }

    /// Everything said until the end, and its close code.
    pub(crate) async fn rest(&mut self) -> (Vec<Value>, Heard) {
        let mut messages = Vec::new();
        loop {
            match self.hear().await {
                Heard::Json(value) => messages.push(value),
                end => return (messages, end),
            }
        }
    }
}

/// What must happen soon.
pub(crate) async fn soon<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(Duration::from_secs(20), future)
        .await
        .expect("it happens in time")
}

/// Wait until something is so.
pub(crate) async fn until(is_so: impl Fn() -> bool) {
    soon(async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    })
    .await;
}
