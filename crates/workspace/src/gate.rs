//! The gate: every listener of the daemon and all authentication.
//!
//! Strangers end here. What comes out of the gate is an [`Admitted`] connection of somebody who
//! showed a secret, or a [`ControlCall`] of a process of the same user; nothing of what anybody else
//! sent is passed on, kept or written down. The rest of the daemon never sees a secret.
//!
//! [`Gate::open`] binds the listeners and serves the control socket; [`Gate::start`] begins to
//! accept WebSocket connections, which the daemon asks for last.
//!
//! Whatever address is asked for, and whether or not it speaks TLS, there is always a plain listener
//! on loopback: commands of this machine come in there, with the cookie.

mod administration;
mod admission;
mod connection;
mod control;
mod credentials;
mod doors;
mod exposure;
mod failures;
mod framing;
mod logins;
mod mcp;
mod metered;
mod opening;
mod outgoing;
mod pages;
mod secret;
mod server;
mod tls;
mod tokens;
mod waiting;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use beamtalk_storage::{StorageError, WorkspaceDirectory};
use beamtalk_wire::{ClientKind, Role, limits};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

pub use administration::Connections;
pub use control::{Answer, ControlCall};
pub(crate) use exposure::is_loopback;
pub use exposure::{Bind, Exposure, ExposureFlags, ExposureRefusal, exposure, exposure_warning, parse_bind};
pub use failures::{Delays, Failure, Peer, Reason};
pub use framing::{FrameFault, Frames, encode_frame};
pub use logins::LoginName;
pub use mcp::{McpVisit, Principal};
pub(crate) use outgoing::Next;
pub use outgoing::{Closed, Outgoing};
pub use pages::{Page, Pages, workspace_page};
pub use secret::Credential;
pub use tls::{TlsError, TlsFiles};
pub use tokens::{TokenError, TokenRecord, Tokens, parse_span};

use credentials::Keys;
use doors::{Doors, Scheme};
use server::{Entrance, Shared};
use tls::Tls;

/// Frames of one client that wait for the daemon; more wait in the client's socket.
const INCOMING: usize = 8;
/// Admitted connections and control calls that wait for the daemon.
const ADMITTED: usize = 16;

/// Directives every log filter of the daemon must end with: these crates write, at their finest
/// level, the frames they read, secrets and words of strangers among them.
pub const SILENCED: &str = "tungstenite=off,tokio_tungstenite=off,hyper=off,hyper_util=off,rustls=off";

/// Read bytes as every part of the gate that strangers reach reads them; for tests with random bytes.
#[doc(hidden)]
pub fn read_strange_bytes(bytes: &[u8]) {
    let mut frames = Frames::default();
    frames.push(bytes);
    while let Ok(Some(_)) = frames.next_request() {}
    let text = String::from_utf8_lossy(bytes);
    drop(opening::read_auth(&text));
    drop(opening::read_hello(&text));
    drop(opening::token_in_form(bytes));
    let headers = opening::strange_headers(bytes);
    drop(opening::read_headers(&headers, "login"));
    drop(opening::login_in(&headers, "login"));
    opening::offers_subprotocol(&headers);
}

/// How the listeners are set up.
#[derive(Clone, Debug)]
pub struct GateConfig {
    pub bind: IpAddr,
    /// 0 lets the system choose.
    pub port: u16,
    /// Serve TLS.
    pub tls: Option<TlsFiles>,
    pub allow_hosts: Vec<String>,
    pub allow_origins: Vec<String>,
    pub workspace_id: String,
    /// The version of the daemon, told after authentication.
    pub version: String,
    pub control_socket: PathBuf,
    pub pages: Pages,
    /// Where requests of AI clients go; none come in without it.
    pub mcp: Option<mpsc::Sender<McpVisit>>,
    pub pace: Pace,
}

/// How long the gate waits for what; the defaults are those of the protocol.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// A TLS handshake, a request head, a request body, and the first message.
    pub authentication: Duration,
    pub delays: Delays,
    /// For a client whose header carried the secret to say hello; a page has as long as for authentication.
    pub hello: Duration,
    pub ping: Duration,
    pub dead: Duration,
    pub stall: Duration,
    pub login_token: Duration,
    pub login: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            authentication: limits::AUTH_TIME,
            delays: Delays::default(),
            hello: Duration::from_millis(250),
            ping: limits::PING,
            dead: limits::DEAD,
            stall: limits::QUEUE_STALL,
            login_token: limits::LOGIN_TOKEN,
            login: limits::BROWSER_LOGIN,
        }
    }
}

/// The secrets the gate lets in.
pub struct Credentials {
    pub cookie: Credential,
    pub tokens: Tokens,
    pub store: Arc<dyn TokenStore>,
}

/// Where the hashes of tokens are kept.
pub trait TokenStore: Send + Sync {
    fn save(&self, tokens: &[u8]) -> Result<(), StorageError>;
}

impl TokenStore for WorkspaceDirectory {
    fn save(&self, tokens: &[u8]) -> Result<(), StorageError> {
        self.write_tokens(tokens)
    }
}

/// What the gate tells the audit trail.
pub trait AuditSink: Send + Sync {
    fn record(&self, event: GateEvent<'_>);
}

#[derive(Clone, Debug)]
pub enum GateEvent<'a> {
    AuthOk {
        peer: Peer,
        client: ClientKind,
        auth: &'a AuthKind,
        role: Role,
    },
    AuthFail(Failure),
    Connect {
        peer: Peer,
        client: ClientKind,
        auth: &'a AuthKind,
    },
    Disconnect {
        peer: Peer,
        client: ClientKind,
        auth: &'a AuthKind,
        code: u16,
        duration: Duration,
    },
    /// A browser logged in or out.
    Login {
        peer: Peer,
        action: &'static str,
    },
}

/// How a client proved who it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthKind {
    Cookie,
    Token(String),
    Browser,
    /// The owner, on behalf of an agent's session.
    Agent(String),
}

impl std::fmt::Display for AuthKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Cookie => formatter.write_str("cookie"),
            Self::Token(name) => write!(formatter, "token:{name}"),
            Self::Browser => formatter.write_str("browser"),
            Self::Agent(id) => write!(formatter, "session:{id}"),
        }
    }
}

/// An authenticated connection. The daemon greets it with `session-started`.
pub struct Admitted {
    pub peer: SocketAddr,
    pub role: Role,
    pub auth: AuthKind,
    pub client: ClientKind,
    pub protocol: String,
    /// The session it wants back.
    pub resume: Option<String>,
    /// Sessions that it knows others to have.
    pub taken: Vec<String>,
    /// Its frames are to be kept, so that it can ask for them again.
    pub keeps: bool,
    /// Text frames, at most [`limits::INBOUND_FRAME`] bytes each; ends with the connection.
    pub incoming: mpsc::Receiver<String>,
    pub outgoing: Outgoing,
}

#[derive(Debug, thiserror::Error)]
pub enum GateError {
    #[error("cannot listen on {address}")]
    Bind {
        address: SocketAddr,
        #[source]
        cause: std::io::Error,
    },
    #[error("cannot open the control socket {}", path.display())]
    Control {
        path: PathBuf,
        #[source]
        cause: std::io::Error,
    },
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error(transparent)]
    Storage(#[from] StorageError),
    #[error(transparent)]
    Token(#[from] TokenError),
}

/// How many are connected.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub waiting: usize,
    pub connected: usize,
}

/// The open gate.
pub struct Gate {
    /// What was asked for.
    pub address: SocketAddr,
    /// Where clients of this machine come in, without TLS, when `127.0.0.1` does not lead to the one above.
    pub local: Option<SocketAddr>,
    /// The host name of browser logins, without its port.
    pub login_host: String,
    /// Bound, and not yet accepting.
    listeners: Vec<(TcpListener, Arc<Entrance>)>,
    entrance: Arc<Entrance>,
    shared: Arc<Shared>,
    stop: watch::Sender<bool>,
    control: JoinHandle<()>,
    accepting: Vec<JoinHandle<()>>,
}

impl Gate {
    /// Bind the listeners and serve the control socket.
    #[expect(clippy::disallowed_methods, reason = "the gate listens")]
    pub async fn open(
        config: GateConfig,
        credentials: Credentials,
        audit: Arc<dyn AuditSink>,
    ) -> Result<(Self, mpsc::Receiver<Admitted>, mpsc::Receiver<ControlCall>), GateError> {
        let wanted = SocketAddr::new(config.bind, config.port);
        let bind = |cause| GateError::Bind {
            address: wanted,
            cause,
        };
        let listener = TcpListener::bind(wanted).await.map_err(bind)?;
        let address = listener.local_addr().map_err(bind)?;
        let tls = config.tls.as_ref().map(Tls::load).transpose()?;
        let beside = if is_local_entrance(address.ip(), tls.is_some()) {
            None
        } else {
            Some(bind_locally(address.port()).await?)
        };
        let control_listener = control::bind(&config.control_socket).map_err(|cause| GateError::Control {
            path: config.control_socket.clone(),
            cause,
        })?;
        let (admitted, admissions) = mpsc::channel(ADMITTED);
        let (calls, control_calls) = mpsc::channel(ADMITTED);
        let label = label()?;
        let doors = |address, scheme| Doors {
            address,
            scheme,
            label: label.clone(),
            allow_hosts: config.allow_hosts.clone(),
            allow_origins: config.allow_origins.clone(),
        };
        let scheme = if tls.is_some() {
            Scheme::Https
        } else {
            Scheme::Http
        };
        let entrance = Arc::new(Entrance::new(doors(address, scheme), tls));
        let mut listeners = vec![(listener, Arc::clone(&entrance))];
        let local = beside.as_ref().map(|(_, local)| *local);
        if let Some((listener, local)) = beside {
            listeners.push((
                listener,
                Arc::new(Entrance::new(doors(local, Scheme::Http), None)),
            ));
        }
        let keys = Keys::new(credentials)?;
        let shared = Arc::new(Shared::new(config, keys, audit, admitted));
        let control = tokio::spawn(control::serve(control_listener, Arc::clone(&shared), calls));
        let gate = Self {
            address,
            local,
            login_host: format!("{label}.localhost"),
            listeners,
            entrance,
            shared,
            stop: watch::Sender::new(false),
            control,
            accepting: Vec::new(),
        };
        Ok((gate, admissions, control_calls))
    }

    /// Begin to accept WebSocket connections.
    pub fn start(&mut self) {
        for (listener, entrance) in self.listeners.drain(..) {
            let served = server::serve(
                listener,
                entrance,
                Arc::clone(&self.shared),
                self.stop.subscribe(),
            );
            self.accepting.push(tokio::spawn(served));
        }
    }

    /// Accept no further WebSocket connections; those admitted stay.
    pub fn stop_accepting(&mut self) {
        self.listeners.clear();
        self.stop.send_replace(true);
    }

    /// Send what is queued to all clients, then close their connections.
    pub fn close_all(&self, code: u16, reason: &str) -> usize {
        self.shared
            .state()
            .connected
            .iter()
            .map(|connection| connection.outgoing.close(code, reason))
            .count()
    }

    /// Read the certificates again; on an error the old ones stay in use.
    pub fn reload_tls(&self) -> Result<(), TlsError> {
        match &self.shared.config.tls {
            Some(files) => {
                self.entrance.use_tls(Tls::load(files)?);
                Ok(())
            }
            None => Ok(()),
        }
    }

    pub fn counts(&self) -> Counts {
        let state = self.shared.state();
        Counts {
            waiting: state.waiting.len(),
            connected: state.connected.len(),
        }
    }
}

/// A name nobody can guess: no other server was ever visited under it, so no worker of an earlier server listens there
/// and no other port of this machine gets its cookies.
fn label() -> Result<String, StorageError> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bytes = beamtalk_storage::random_bytes::<20>()?;
    let letters = bytes
        .iter()
        .map(|byte| char::from(LETTERS[usize::from(byte % 32)]));
    Ok(std::iter::once('w').chain(letters).collect())
}

/// Whether a listener can be reached at `127.0.0.1` without TLS.
fn is_local_entrance(address: IpAddr, is_tls: bool) -> bool {
    !is_tls && (address == Ipv4Addr::LOCALHOST || address == Ipv4Addr::UNSPECIFIED)
}

/// A listener for this machine: under the same number where it is free, so that one is all there is to remember.
#[expect(clippy::disallowed_methods, reason = "the gate listens")]
async fn bind_locally(port: u16) -> Result<(TcpListener, SocketAddr), GateError> {
    let candidates = [
        SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
        SocketAddr::new(Ipv4Addr::LOCALHOST.into(), 0),
        SocketAddr::new(Ipv6Addr::LOCALHOST.into(), 0),
    ];
    let failed = |cause| GateError::Bind {
        address: candidates[1],
        cause,
    };
    let listener = TcpListener::bind(&candidates[..]).await.map_err(failed)?;
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.stop.send_replace(true);
        self.control.abort();
        for accepting in &self.accepting {
            accepting.abort();
        }
    }
}
