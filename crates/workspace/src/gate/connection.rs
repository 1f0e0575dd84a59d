//! One WebSocket connection: its authentication, then its frames in both directions.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use beamtalk_wire::{ClientKind, PROTOCOL, limits, negotiate};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role as End, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::administration::CREDENTIALS_GONE;
use super::credentials::{self, Pass};
use super::failures::{Peer, Reason};
use super::metered::{Allowance, Metered};
use super::opening::{self, Ambiguous, Greeting, Offer};
use super::outgoing::{Farewell, Next, Outgoing};
use super::server::{Refusal, Shared};
use super::waiting::Place;
use super::{Admitted, GateEvent, INCOMING};

/// All a stranger can have read: one first message, its framing, and a few pings.
const STRANGER_BYTES: usize = 2 * limits::AUTH_FRAME;
/// Bytes read at once.
const READ: usize = 16 * 1024;
/// How long the last words to a stranger, or to a client, may take.
const STRANGER_PARTING: Duration = Duration::from_secs(1);
const PARTING: Duration = Duration::from_secs(5);

type Socket<S> = WebSocketStream<Metered<S>>;

/// What is known of a connection when it becomes a WebSocket.
pub(crate) struct Visit {
    pub(crate) peer: SocketAddr,
    pub(crate) place: credentials::Place,
    /// The secret in its headers.
    pub(crate) offer: Result<Option<Offer>, Ambiguous>,
}

/// A secret with who presents it.
struct Introduction {
    offer: Offer,
    greeting: Greeting,
    /// How many bytes were presented.
    bytes: usize,
    /// A first message that was no hello but already a request.
    request: Option<String>,
}

/// Why a connection ends before it is authenticated.
enum Rejected {
    Failed {
        reason: Reason,
        bytes: usize,
    },
    Protocol,
    TooMany,
    /// Nobody is there any more.
    Gone,
}

pub(crate) async fn run<S>(stream: S, visit: Visit, shared: Arc<Shared>, place: Place)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let allowance = Allowance::new(STRANGER_BYTES);
    let config = WebSocketConfig::default()
        .read_buffer_size(READ)
        .max_message_size(Some(limits::INBOUND_FRAME))
        .max_frame_size(Some(limits::INBOUND_FRAME));
    let metered = Metered::new(stream, allowance.clone());
    let mut socket = WebSocketStream::from_raw_socket(metered, End::Server, Some(config)).await;
    let peer = visit.peer;
    let outgoing = Outgoing::default();
    match admit(&mut socket, visit, &shared, &allowance, &outgoing).await {
        Ok(admission) => {
            place.leave();
            allowance.lift();
            attend(socket, admission, peer, &shared, outgoing).await;
        }
        Err(rejected) => {
            let farewell = reject(&mut socket, rejected, peer, &shared).await;
            allowance.lift();
            if let Some(farewell) = farewell {
                part(&mut socket, farewell, STRANGER_PARTING).await;
            }
        }
    }
}

/// An accepted client.
struct Admission {
    number: u64,
    pass: Pass,
    greeting: Greeting,
    protocol: String,
    request: Option<String>,
}

async fn admit<S>(
    socket: &mut Socket<S>,
    visit: Visit,
    shared: &Shared,
    allowance: &Allowance,
    outgoing: &Outgoing,
) -> Result<Admission, Rejected>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let Introduction {
        offer,
        greeting,
        bytes,
        request,
    } = match visit.offer {
        Ok(Some(offer)) => wait_for_hello(socket, offer, shared, allowance).await?,
        Ok(None) => wait_for_auth(socket, shared, allowance).await?,
        Err(Ambiguous) => {
            return Err(Rejected::Failed {
                reason: Reason::NotAuth,
                bytes: 0,
            });
        }
    };
    let (pass, number) = shared
        .admit(&offer, visit.place, outgoing)
        .map_err(|refusal| match refusal {
            Refusal::Secret(reason) => Rejected::Failed { reason, bytes },
            Refusal::TooMany => Rejected::TooMany,
        })?;
    let Some(protocol) = negotiate(greeting.protocol.as_deref().unwrap_or(PROTOCOL)) else {
        shared.forget(number);
        return Err(Rejected::Protocol);
    };
    Ok(Admission {
        number,
        pass,
        greeting,
        protocol,
        request,
    })
}

/// Ask for a secret and wait for the first message.
async fn wait_for_auth<S>(
    socket: &mut Socket<S>,
    shared: &Shared,
    allowance: &Allowance,
) -> Result<Introduction, Rejected>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let asked = async {
        let question = json!({"op": "auth-required"}).to_string();
        socket
            .send(Message::text(question))
            .await
            .map_err(|_| Rejected::Gone)?;
        first_text(socket, allowance).await
    };
    let Ok(text) = timeout(shared.config.pace.authentication, asked).await else {
        return Err(Rejected::Failed {
            reason: Reason::Timeout,
            bytes: 0,
        });
    };
    let text = text?;
    let bytes = text.len();
    match opening::read_auth(&text) {
        Some((offer, greeting)) => Ok(Introduction {
            offer,
            greeting,
            bytes,
            request: None,
        }),
        None => Err(Rejected::Failed {
            reason: Reason::NotAuth,
            bytes,
        }),
    }
}

/// The secret came in a header; a moment for the client to say who it is.
async fn wait_for_hello<S>(
    socket: &mut Socket<S>,
    offer: Offer,
    shared: &Shared,
    allowance: &Allowance,
) -> Result<Introduction, Rejected>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (bytes, client) = match &offer {
        Offer::Login(secret) => (secret.bytes().len(), ClientKind::Browser),
        Offer::Cookie(secret) | Offer::Token(secret) | Offer::Either(secret) => {
            (secret.bytes().len(), ClientKind::Unknown)
        }
    };
    let (greeting, request) = match timeout(shared.config.pace.hello, first_text(socket, allowance)).await {
        Ok(Err(rejected)) => return Err(rejected),
        Ok(Ok(text)) => match opening::read_hello(&text) {
            Some(greeting) => (greeting, None),
            None => (Greeting::of(client), Some(text)),
        },
        Err(_) => (Greeting::of(client), None),
    };
    Ok(Introduction {
        offer,
        greeting,
        bytes,
        request,
    })
}

/// The first message, as text of at most [`limits::AUTH_FRAME`] bytes.
async fn first_text<S>(socket: &mut Socket<S>, allowance: &Allowance) -> Result<String, Rejected>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let too_large = |bytes| Rejected::Failed {
        reason: Reason::TooLarge,
        bytes,
    };
    loop {
        return match socket.next().await {
            Some(Ok(Message::Text(text))) if text.len() <= limits::AUTH_FRAME => Ok(text.as_str().to_owned()),
            Some(Ok(Message::Text(text))) => Err(too_large(text.len())),
            Some(Ok(Message::Binary(bytes))) => Err(too_large(bytes.len())),
            Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
            Some(Err(Error::Capacity(_))) => Err(too_large(limits::AUTH_FRAME)),
            Some(Err(Error::Io(_))) if allowance.is_used_up() => Err(too_large(STRANGER_BYTES)),
            Some(Err(Error::Utf8(_) | Error::Protocol(_))) => Err(Rejected::Failed {
                reason: Reason::NotAuth,
                bytes: 0,
            }),
            Some(Ok(Message::Close(_)) | Err(_)) | None => Err(Rejected::Gone),
        };
    }
}

/// Record and delay a rejection, say why, and answer how to part.
async fn reject<S>(
    socket: &mut Socket<S>,
    rejected: Rejected,
    peer: SocketAddr,
    shared: &Arc<Shared>,
) -> Option<Farewell>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let (message, code) = match rejected {
        Rejected::Gone => return None,
        Rejected::Failed { reason, bytes } => {
            shared.fail(peer, reason, bytes).await;
            match reason {
                Reason::TooLarge => (None, 1009),
                Reason::Timeout => (Some("Authentication timeout"), 1008),
                Reason::NotAuth => (Some("First message must be auth"), 1008),
                Reason::Invalid | Reason::Role | Reason::Host | Reason::Origin | Reason::PeerUid => {
                    (Some("Invalid cookie"), 1008)
                }
            }
        }
        Rejected::Protocol => (Some("Protocol not supported"), 1002),
        Rejected::TooMany => (Some("Too many connections"), 1013),
    };
    if let Some(message) = message {
        let mut error = json!({"type": "auth_error", "message": message});
        if code == 1002 {
            error["supported"] = json!([PROTOCOL]);
        }
        let said = socket.send(Message::text(error.to_string()));
        drop(timeout(STRANGER_PARTING, said).await);
    }
    Some(Farewell {
        code,
        reason: String::new(),
    })
}

/// Serve an authenticated client until it or the daemon ends the connection.
async fn attend<S>(
    mut socket: Socket<S>,
    admission: Admission,
    peer: SocketAddr,
    shared: &Shared,
    outgoing: Outgoing,
) where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let began = Instant::now();
    let Admission {
        number,
        pass,
        greeting,
        protocol,
        request,
    } = admission;
    let _leave = Leave {
        shared,
        number,
        outgoing: &outgoing,
        peer,
        client: greeting.client,
        pass: &pass,
        began,
    };
    shared.record(GateEvent::AuthOk {
        peer: Peer::Tcp(peer),
        client: greeting.client,
        auth: &pass.auth,
        role: pass.role,
    });
    shared.record(GateEvent::Connect {
        peer: Peer::Tcp(peer),
        client: greeting.client,
        auth: &pass.auth,
    });
    let welcome = json!({
        "type": "auth_ok",
        "protocol": protocol,
        "server": format!("beamtalk/{}", shared.config.version),
        "role": pass.role.name(),
    });
    let welcomed = timeout(PARTING, socket.send(Message::text(welcome.to_string()))).await;
    if !matches!(welcomed, Ok(Ok(()))) {
        return;
    }
    let (requests, incoming) = mpsc::channel(INCOMING);
    if let Some(request) = request {
        drop(requests.try_send(request));
    }
    let admitted = Admitted {
        peer,
        role: pass.role,
        auth: pass.auth.clone(),
        client: greeting.client,
        protocol,
        resume: greeting.resume,
        incoming,
        outgoing: outgoing.clone(),
    };
    if shared.admitted.send(admitted).await.is_err() {
        outgoing.close(1001, "stopping");
    }
    let farewell = exchange(&mut socket, requests, &outgoing, &pass, shared).await;
    outgoing.close(farewell.code, &farewell.reason);
    part(&mut socket, farewell, PARTING).await;
}

/// Ends what is kept of a connection, however its task ends.
struct Leave<'a> {
    shared: &'a Shared,
    number: u64,
    outgoing: &'a Outgoing,
    peer: SocketAddr,
    client: ClientKind,
    pass: &'a Pass,
    began: Instant,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        self.shared.forget(self.number);
        let code = self.outgoing.end(1006);
        self.shared.record(GateEvent::Disconnect {
            peer: Peer::Tcp(self.peer),
            client: self.client,
            auth: &self.pass.auth,
            code,
            duration: self.began.elapsed(),
        });
    }
}

/// Pass frames both ways; the answer is how the connection ends.
async fn exchange<S>(
    socket: &mut Socket<S>,
    requests: mpsc::Sender<String>,
    outgoing: &Outgoing,
    pass: &Pass,
    shared: &Shared,
) -> Farewell
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let heard = Heard::new();
    let (sink, source) = socket.split();
    let expiry = async {
        match pass.until {
            Some(until) => tokio::time::sleep_until(until.into()).await,
            None => std::future::pending().await,
        }
    };
    tokio::select! {
        farewell = write(sink, outgoing, shared, &heard) => farewell,
        farewell = read(source, requests, outgoing, &heard) => farewell,
        () = expiry => farewell(CREDENTIALS_GONE, "credentials expired"),
    }
}

fn farewell(code: u16, reason: &str) -> Farewell {
    Farewell {
        code,
        reason: reason.to_owned(),
    }
}

/// When the client was last heard.
struct Heard {
    start: Instant,
    millis: AtomicU64,
}

impl Heard {
    fn new() -> Self {
        Self {
            start: Instant::now(),
            millis: AtomicU64::new(0),
        }
    }

    fn now(&self) {
        let millis = u64::try_from(self.start.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.millis.store(millis, Ordering::Relaxed);
    }

    fn silence(&self) -> Duration {
        self.start
            .elapsed()
            .saturating_sub(Duration::from_millis(self.millis.load(Ordering::Relaxed)))
    }
}

async fn write<S>(
    mut sink: SplitSink<&mut Socket<S>, Message>,
    outgoing: &Outgoing,
    shared: &Shared,
    heard: &Heard,
) -> Farewell
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let pace = shared.config.pace;
    let mut ping = tokio::time::interval(pace.ping);
    ping.reset();
    loop {
        let message = tokio::select! {
            next = outgoing.next() => match next {
                Next::Send(text) => Message::text(text),
                Next::Close(farewell) => return farewell,
            },
            _ = ping.tick() => {
                if heard.silence() >= pace.dead {
                    return farewell(1001, "no answer to pings");
                }
                Message::Ping(Vec::new().into())
            }
        };
        match timeout(pace.stall, sink.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return farewell(1006, ""),
            Err(_) => return farewell(1013, "too slow"),
        }
    }
}

async fn read<S>(
    mut source: SplitStream<&mut Socket<S>>,
    requests: mpsc::Sender<String>,
    outgoing: &Outgoing,
    heard: &Heard,
) -> Farewell
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let reading = async {
        loop {
            let message = source.next().await;
            heard.now();
            let end = match message {
                Some(Ok(Message::Text(text))) => {
                    if requests.send(text.as_str().to_owned()).await.is_ok() {
                        continue;
                    }
                    farewell(1000, "")
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => continue,
                Some(Ok(Message::Binary(_))) => farewell(1003, "text frames only"),
                Some(Ok(Message::Close(frame))) => {
                    farewell(frame.map_or(1005, |frame| frame.code.into()), "")
                }
                Some(Err(Error::Capacity(_))) => farewell(1009, "frame too large"),
                Some(Err(Error::Utf8(_))) => farewell(1007, "not UTF-8"),
                Some(Err(Error::Protocol(_))) => farewell(1002, "protocol error"),
                Some(Err(_)) | None => farewell(1006, ""),
            };
            return end;
        }
    };
    tokio::select! {
        biased;
        () = outgoing.closing() => {}
        end = reading => return end,
    }
    // The daemon ends the connection: it hears no more requests, and the writer says goodbye.
    drop(requests);
    std::future::pending().await
}

/// Say goodbye and let the client read it: closing a socket with unread input would take back what
/// was just sent.
async fn part<S>(socket: &mut Socket<S>, farewell: Farewell, limit: Duration)
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let parting = async {
        // Codes below 1000 and these two are for what was not said.
        if !matches!(farewell.code, 1005 | 1006) {
            let frame = CloseFrame {
                code: CloseCode::from(farewell.code),
                reason: farewell.reason.into(),
            };
            drop(socket.close(Some(frame)).await);
        }
        drop(socket.flush().await);
        let stream = socket.get_mut();
        drop(stream.shutdown().await);
        let mut rest = [0; 1024];
        while !matches!(stream.read(&mut rest).await, Ok(0) | Err(_)) {}
    };
    drop(timeout(limit, parting).await);
}
