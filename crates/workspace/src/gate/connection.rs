//! One WebSocket connection: its frames in both directions, and its end.

use std::future::Future;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use beamtalk_wire::{ClientKind, limits};
use futures_util::stream::{SplitSink, SplitStream};
use futures_util::{SinkExt, StreamExt};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role as End, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::AuthKind;
use super::administration::CREDENTIALS_GONE;
use super::admission::{Admission, Visit, admit, reject};
use super::credentials::Pass;
use super::failures::Peer;
use super::metered::{Allowance, Metered};
use super::outgoing::{Farewell, Next, Outgoing};
use super::server::Shared;
use super::waiting::Place;
use super::{Admitted, GateEvent, INCOMING};

/// All a stranger can have read: one first message, its framing, and a few pings.
pub(crate) const STRANGER_BYTES: usize = 2 * limits::AUTH_FRAME;
/// Bytes read at once.
const READ: usize = 16 * 1024;
/// How long the last words to a stranger, or to a client, may take.
pub(crate) const STRANGER_PARTING: Duration = Duration::from_secs(1);
const PARTING: Duration = Duration::from_secs(5);

pub(crate) type Socket<S> = WebSocketStream<Metered<S>>;

pub(crate) async fn run<S>(stream: S, visit: Visit, shared: Arc<Shared>, place: Arc<Place>)
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
        mut pass,
        greeting,
        protocol,
        request,
    } = admission;
    // The owner may be less than the owner: what an agent does is its own.
    if let (AuthKind::Cookie, Some(id)) = (&pass.auth, &greeting.agent) {
        pass.auth = AuthKind::Agent(id.clone());
    }
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
    if greeting.gathers {
        outgoing.gather();
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
        taken: greeting.taken,
        keeps: greeting.keeps,
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
    let heard = Heard::default();
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

/// How many pings the client left unanswered. Pings, not time: while a busy or stopped machine runs nothing, nobody is heard,
/// however alive.
#[derive(Default)]
struct Heard {
    pings: AtomicU32,
    /// What it said last waits to be taken, so that nothing further is read.
    is_full: AtomicBool,
}

impl Heard {
    fn now(&self) {
        self.pings.store(0, Ordering::Relaxed);
    }

    /// How many intervals of pings it was silent, with this one.
    fn pinged(&self) -> u32 {
        if self.is_full.load(Ordering::Relaxed) {
            return 0;
        }
        self.pings.fetch_add(1, Ordering::Relaxed).saturating_add(1)
    }

    async fn while_full<F: Future>(&self, taken: F) -> F::Output {
        self.is_full.store(true, Ordering::Relaxed);
        let output = taken.await;
        self.is_full.store(false, Ordering::Relaxed);
        self.now();
        output
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
    // Those that were missed are not made up for: between two of them there is time to hear an answer.
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping.reset();
    loop {
        let message = tokio::select! {
            next = outgoing.next() => match next {
                Next::Send(text) => Message::text(text),
                Next::Close(farewell) => return farewell,
            },
            _ = ping.tick() => {
                if pace.ping * heard.pinged() >= pace.dead {
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
                    let taken = requests.send(text.as_str().to_owned());
                    if heard.while_full(taken).await.is_ok() {
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
