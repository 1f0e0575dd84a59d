//! One WebSocket connection to a workspace.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use beamtalk_storage::NodeInfo;
use beamtalk_wire::answers::Nothing;
use beamtalk_wire::{ErrorBody, ErrorKind, Head, Operation, PROTOCOL, limits};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize as _;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;
use tokio_tungstenite::tungstenite::{self, Message};

use crate::tls::{self, Stream, TlsTrust};

/// How long the network and the handshake may take.
const CONNECT_TIME: Duration = Duration::from_secs(10);
/// Bytes read at once: the room for them is cleared each time.
const READ: usize = 16 * 1024;

/// Where a workspace is reached.
#[derive(Clone, Debug)]
pub struct Endpoint {
    pub host: String,
    pub port: u16,
    /// `None` for plain WebSocket.
    pub tls: Option<TlsTrust>,
}

impl Endpoint {
    /// Where the daemon of this record is reached on this machine.
    pub fn here(info: &NodeInfo) -> Self {
        let address = info.local_address();
        Self {
            host: address.ip().to_string(),
            port: address.port(),
            tls: None,
        }
    }

    fn unreachable(&self, cause: String) -> Error {
        Error::Unreachable {
            host: self.host.clone(),
            port: self.port,
            cause,
        }
    }

    fn turned_away(&self, cause: &tungstenite::Error) -> Error {
        match cause {
            tungstenite::Error::Http(response) if response.status() == 403 => Error::UnknownHost {
                host: self.host.clone(),
                port: self.port,
            },
            cause => self.unreachable(cause.to_string()),
        }
    }
}

/// Who comes, and with which session.
#[derive(Clone, Copy, Debug, Default)]
pub struct Greeting<'a> {
    pub client: &'a str,
    pub resume: Option<&'a str>,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot reach {host}:{port}: {cause}")]
    Unreachable { host: String, port: u16, cause: String },
    /// What listens there is asked for by a name it does not have.
    #[error("the workspace at {host}:{port} does not go by the name '{host}'")]
    UnknownHost { host: String, port: u16 },
    #[error("{0}")]
    Tls(String),
    /// The workspace did not accept the secret.
    #[error("the workspace refused this client: {0}")]
    Refused(String),
    #[error("the workspace speaks another protocol: {0}")]
    Protocol(String),
    #[error("the connection to the workspace is lost")]
    Lost,
    #[error("the request is {0} bytes long; a workspace takes at most {max}", max = limits::INBOUND_FRAME)]
    TooLong(usize),
    #[error("{max} requests wait for their answers; send more when some have come", max = limits::OPEN_REQUESTS)]
    Busy,
    #[error("{}", .0.message)]
    Failed(Box<ErrorBody>),
}

/// A message that belongs to a request.
#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Output(String),
    NeedsInput(String),
    /// The last message, whole.
    Done(Map<String, Value>),
}

/// The last message of a request: as it came, and as what it is.
#[derive(Clone, Debug)]
pub struct Answer<A> {
    pub message: Map<String, Value>,
    pub head: Head,
    pub body: Result<A, ErrorBody>,
}

impl<A: DeserializeOwned> Answer<A> {
    pub fn read(message: Map<String, Value>) -> Self {
        let unreadable = |cause: serde_json::Error| {
            let text = format!("the workspace sent what cannot be read: {cause}");
            ErrorBody::new(ErrorKind::InternalError, text)
        };
        let head = Head::deserialize(&message).unwrap_or_else(|cause| Head {
            error: Some(unreadable(cause)),
            ..Head::default()
        });
        let body = match &head.error {
            Some(error) => Err(error.clone()),
            None => A::deserialize(&message).map_err(unreadable),
        };
        Self { message, head, body }
    }
}

/// Events that wait for a client that does not look, and their bytes; later ones are dropped.
const WAITING_EVENTS: usize = 4_096;
const EVENT_BYTES: usize = limits::QUEUE_BYTES;
/// Bytes of replies that wait for a client that does not look. Answers cannot be dropped, and reading no further would
/// hold up those that are looked for: beyond this the connection is given up.
const REPLY_BYTES: usize = 16 * limits::OUTBOUND_FRAME;
/// What a message weighs besides its text.
const MESSAGE_BYTES: usize = 256;

/// What the workspace says without being asked.
pub struct Events {
    received: mpsc::Receiver<(Value, usize)>,
    weight: Weight,
    dropped: Arc<AtomicU64>,
}

impl Events {
    /// How many came while there was no room for them, since this was asked last.
    pub fn take_dropped(&self) -> u64 {
        self.dropped.swap(0, Ordering::Relaxed)
    }

    /// The next event; `None` when the connection has ended.
    pub async fn recv(&mut self) -> Option<Value> {
        let (event, bytes) = self.received.recv().await?;
        self.weight.remove(bytes);
        Some(event)
    }

    /// The next event if it is there already.
    pub fn try_recv(&mut self) -> Result<Value, mpsc::error::TryRecvError> {
        let (event, bytes) = self.received.try_recv()?;
        self.weight.remove(bytes);
        Ok(event)
    }
}

/// How many bytes wait to be looked at.
#[derive(Clone, Debug, Default)]
struct Weight(Arc<AtomicUsize>);

impl Weight {
    /// Add bytes, if there is room for them.
    fn add(&self, bytes: usize, room: usize) -> bool {
        let add = |waiting: usize| Some(waiting + bytes).filter(|sum| *sum <= room);
        self.0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, add)
            .is_ok()
    }

    fn remove(&self, bytes: usize) {
        self.0.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The requests that are open, `None` once the connection is lost. A reply comes with its weight.
type Waiting = Arc<Mutex<Option<HashMap<String, mpsc::UnboundedSender<(Reply, usize)>>>>>;

/// An authenticated connection with its session. Requests may be in flight side by side.
pub struct Connection {
    pub session: String,
    pub resumed: bool,
    pub role: String,
    pub server: String,
    /// Where it is: host and port.
    pub address: String,
    outgoing: mpsc::Sender<String>,
    waiting: Waiting,
    weight: Weight,
    next: AtomicU64,
}

/// The replies to one request.
pub struct Pending {
    pub id: String,
    /// Bounded by their weight.
    replies: mpsc::UnboundedReceiver<(Reply, usize)>,
    weight: Weight,
}

impl Drop for Pending {
    fn drop(&mut self) {
        self.replies.close();
        while let Ok((_, bytes)) = self.replies.try_recv() {
            self.weight.remove(bytes);
        }
    }
}

impl Pending {
    /// The next reply; an error when the connection ended before the last one.
    pub async fn next(&mut self) -> Result<Reply, Error> {
        let (reply, bytes) = self.replies.recv().await.ok_or(Error::Lost)?;
        self.weight.remove(bytes);
        Ok(reply)
    }

    /// Wait for the last message, dropping output.
    pub async fn done(mut self) -> Result<Map<String, Value>, Error> {
        loop {
            if let Reply::Done(message) = self.next().await? {
                return Ok(message);
            }
        }
    }
}

impl Connection {
    /// Connect, authenticate with a cookie (`secret_field` = `cookie`) or a token, get a session.
    pub async fn open(
        endpoint: &Endpoint,
        secret_field: &str,
        secret: &str,
        greeting: Greeting<'_>,
    ) -> Result<(Self, Events), Error> {
        let opening = Self::handshake(endpoint, secret_field, secret, greeting);
        timeout(CONNECT_TIME, opening)
            .await
            .map_err(|_| endpoint.unreachable("no answer in time".to_owned()))?
    }

    async fn handshake(
        endpoint: &Endpoint,
        secret_field: &str,
        secret: &str,
        greeting: Greeting<'_>,
    ) -> Result<(Self, Events), Error> {
        let tcp = TcpStream::connect((endpoint.host.as_str(), endpoint.port))
            .await
            .map_err(|cause| endpoint.unreachable(cause.to_string()))?;
        // A request is one small frame; waiting to fill a packet would only delay it.
        drop(tcp.set_nodelay(true));
        let stream = tls::wrap(tcp, endpoint).await?;
        let scheme = if endpoint.tls.is_some() { "wss" } else { "ws" };
        let host = if endpoint.host.contains(':') {
            format!("[{}]", endpoint.host)
        } else {
            endpoint.host.clone()
        };
        // A port that goes without saying is left out of `Host`, as browsers and proxies do.
        let url = match (scheme, endpoint.port) {
            ("wss", 443) | ("ws", 80) => format!("{scheme}://{host}/ws"),
            (_, port) => format!("{scheme}://{host}:{port}/ws"),
        };
        let config = WebSocketConfig::default()
            .read_buffer_size(READ)
            .max_message_size(Some(limits::OUTBOUND_FRAME * 2))
            .max_frame_size(Some(limits::OUTBOUND_FRAME * 2));
        let (mut socket, _) = tokio_tungstenite::client_async_with_config(url, stream, Some(config))
            .await
            .map_err(|cause| endpoint.turned_away(&cause))?;
        let mut auth = json!({"type": "auth", "client": greeting.client, "protocol": PROTOCOL});
        auth[secret_field] = secret.into();
        if let Some(resume) = greeting.resume {
            auth["resume"] = resume.into();
        }
        expect(&mut socket, "op", "auth-required").await?;
        socket
            .send(Message::text(auth.to_string()))
            .await
            .map_err(|_| Error::Lost)?;
        let accepted = expect(&mut socket, "type", "auth_ok").await?;
        let started = expect(&mut socket, "op", "session-started").await?;
        let (sink, source) = socket.split();
        // One place for each request that may be open, and as many for answers to pings.
        let (outgoing, requests) = mpsc::channel(2 * limits::OPEN_REQUESTS);
        let (routes, received) = Routes::new();
        let (waiting, weight) = (routes.waiting.clone(), routes.replies.clone());
        tokio::spawn(send_all(sink, requests));
        tokio::spawn(receive_all(source, routes, outgoing.downgrade()));
        let text = |message: &Value, field: &str| message[field].as_str().unwrap_or_default().to_owned();
        let connection = Self {
            session: text(&started, "session"),
            resumed: started["resumed"] == true,
            role: text(&accepted, "role"),
            server: text(&accepted, "server"),
            address: format!("{}:{}", endpoint.host, endpoint.port),
            outgoing,
            waiting,
            weight,
            next: AtomicU64::new(1),
        };
        Ok((connection, received))
    }

    /// A connection without a network, for who is in the workspace's own process: where requests go, where frames come
    /// from.
    pub async fn inside(
        outgoing: mpsc::Sender<String>,
        mut frames: mpsc::Receiver<String>,
    ) -> Result<(Self, Events), Error> {
        let (routes, received) = Routes::new();
        let (waiting, weight) = (routes.waiting.clone(), routes.replies.clone());
        let session = loop {
            let text = frames.recv().await.ok_or(Error::Lost)?;
            let message: Value =
                serde_json::from_str(&text).map_err(|cause| Error::Protocol(cause.to_string()))?;
            if message["op"] == "session-started" {
                break message["session"].as_str().unwrap_or_default().to_owned();
            }
        };
        tokio::spawn(async move {
            while let Some(text) = frames.recv().await {
                if let Ok(Value::Object(message)) = serde_json::from_str(&text)
                    && routes.route(message, text.len() + MESSAGE_BYTES).is_err()
                {
                    break;
                }
            }
            let waiting = &routes.waiting;
            waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
        });
        let connection = Self {
            session,
            resumed: false,
            role: String::new(),
            server: String::new(),
            address: String::new(),
            outgoing,
            waiting,
            weight,
            next: AtomicU64::new(1),
        };
        Ok((connection, received))
    }

    /// Send a request; its replies arrive in the answer.
    pub fn request(&self, op: &str, mut fields: Map<String, Value>) -> Result<Pending, Error> {
        let id = format!("r{}", self.next.fetch_add(1, Ordering::Relaxed));
        fields.insert("op".to_owned(), op.into());
        fields.insert("id".to_owned(), id.as_str().into());
        let text = serde_json::to_string(&fields).unwrap_or_default();
        if text.len() > limits::INBOUND_FRAME {
            return Err(Error::TooLong(text.len()));
        }
        let (sender, replies) = mpsc::unbounded_channel();
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(open) = &mut *waiting else {
            return Err(Error::Lost);
        };
        // The workspace would refuse more than these.
        if open.len() >= limits::OPEN_REQUESTS {
            return Err(Error::Busy);
        }
        self.outgoing.try_send(text).map_err(|error| match error {
            mpsc::error::TrySendError::Full(_) => Error::Busy,
            mpsc::error::TrySendError::Closed(_) => Error::Lost,
        })?;
        open.insert(id.clone(), sender);
        Ok(Pending {
            id,
            replies,
            weight: self.weight.clone(),
        })
    }

    /// Send a request of the protocol; its replies arrive in the answer.
    pub fn send<O: Operation>(&self, request: &O) -> Result<Pending, Error> {
        self.request(O::OP.name(), beamtalk_wire::object(request))
    }

    /// Send a request of the protocol and wait for what it answers; a failed one is an error.
    pub async fn ask<O: Operation>(&self, request: &O) -> Result<O::Answer, Error> {
        let message = self.send(request)?.done().await?;
        let answer = Answer::<O::Answer>::read(message);
        answer.body.map_err(|error| Error::Failed(Box::new(error)))
    }

    /// Send whatever it is and wait for its last message; a failed one is an error.
    pub async fn call(&self, op: &str, fields: Map<String, Value>) -> Result<Map<String, Value>, Error> {
        let message = self.request(op, fields)?.done().await?;
        let answer = Answer::<Nothing>::read(message);
        match answer.head.error {
            None => Ok(answer.message),
            Some(error) => Err(Error::Failed(Box::new(error))),
        }
    }

    pub fn is_lost(&self) -> bool {
        self.waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_none()
    }
}

/// The next text message, which must have this field.
async fn expect(socket: &mut WebSocketStream<Stream>, field: &str, value: &str) -> Result<Value, Error> {
    loop {
        let Some(Ok(message)) = socket.next().await else {
            return Err(Error::Lost);
        };
        match message {
            Message::Text(text) => {
                let message: Value =
                    serde_json::from_str(&text).map_err(|cause| Error::Protocol(cause.to_string()))?;
                if message[field] == value {
                    return Ok(message);
                }
                if message["type"] == "auth_error" {
                    let reason = message["message"].as_str().unwrap_or("no reason given");
                    return Err(Error::Refused(reason.to_owned()));
                }
                return Err(Error::Protocol(format!("expected '{value}'")));
            }
            Message::Close(_) => return Err(Error::Lost),
            Message::Ping(_) | Message::Pong(_) | Message::Binary(_) | Message::Frame(_) => {}
        }
    }
}

async fn send_all(
    mut sink: SplitSink<WebSocketStream<Stream>, Message>,
    mut requests: mpsc::Receiver<String>,
) {
    while let Some(text) = requests.recv().await {
        // An empty text stands for "flush": the answer to a ping is written with it.
        let sent = if text.is_empty() {
            sink.flush().await
        } else {
            sink.send(Message::text(text)).await
        };
        if sent.is_err() {
            return;
        }
    }
    drop(sink.close().await);
}

async fn receive_all(
    mut source: SplitStream<WebSocketStream<Stream>>,
    routes: Routes,
    outgoing: mpsc::WeakSender<String>,
) {
    while let Some(Ok(message)) = source.next().await {
        match message {
            Message::Text(text) => {
                if let Ok(Value::Object(message)) = serde_json::from_str(&text)
                    && routes.route(message, text.len() + MESSAGE_BYTES).is_err()
                {
                    break;
                }
            }
            Message::Close(_) => break,
            Message::Ping(_) => {
                if let Some(outgoing) = outgoing.upgrade() {
                    // Where there is no place, what waits is written and flushed anyway.
                    drop(outgoing.try_send(String::new()));
                }
            }
            Message::Pong(_) | Message::Binary(_) | Message::Frame(_) => {}
        }
    }
    // Those who wait learn that no answer will come.
    let waiting = &routes.waiting;
    waiting.lock().unwrap_or_else(PoisonError::into_inner).take();
}

/// Where messages of the workspace go.
struct Routes {
    waiting: Waiting,
    replies: Weight,
    events: mpsc::Sender<(Value, usize)>,
    event_bytes: Weight,
    dropped: Arc<AtomicU64>,
}

impl Routes {
    fn new() -> (Self, Events) {
        let (events, received) = mpsc::channel(WAITING_EVENTS);
        let routes = Routes {
            waiting: Arc::new(Mutex::new(Some(HashMap::new()))),
            replies: Weight::default(),
            events,
            event_bytes: Weight::default(),
            dropped: Arc::default(),
        };
        let received = Events {
            received,
            weight: routes.event_bytes.clone(),
            dropped: routes.dropped.clone(),
        };
        (routes, received)
    }
}

/// More waits to be looked at than there is room for.
struct Overrun;

impl Routes {
    fn route(&self, message: Map<String, Value>, bytes: usize) -> Result<(), Overrun> {
        let Some(id) = message.get("id").and_then(Value::as_str).map(str::to_owned) else {
            // Answers must not wait behind events that nobody takes.
            if !self.event_bytes.add(bytes, EVENT_BYTES) {
                self.dropped.fetch_add(1, Ordering::Relaxed);
            } else if self.events.try_send((Value::Object(message), bytes)).is_err() {
                self.event_bytes.remove(bytes);
                self.dropped.fetch_add(1, Ordering::Relaxed);
            }
            return Ok(());
        };
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(waiting) = &mut *waiting else {
            return Ok(());
        };
        let has = |flag: &str| {
            message
                .get("status")
                .and_then(Value::as_array)
                .is_some_and(|status| status.iter().any(|found| found == flag))
        };
        let text = |field: &str| {
            let text = message.get(field).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        let (sender, reply) = if has("done") {
            (waiting.remove(&id), Reply::Done(message))
        } else if has("need-input") {
            (waiting.get(&id).cloned(), Reply::NeedsInput(text("prompt")))
        } else {
            (waiting.get(&id).cloned(), Reply::Output(text("out")))
        };
        // Nobody waits for it any more.
        let Some(sender) = sender.filter(|sender| !sender.is_closed()) else {
            return Ok(());
        };
        if !self.replies.add(bytes, REPLY_BYTES) {
            return Err(Overrun);
        }
        if sender.send((reply, bytes)).is_err() {
            self.replies.remove(bytes);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
