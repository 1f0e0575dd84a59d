//! The TCP listener: TLS, HTTP, and the upgrade to WebSocket.

use std::collections::HashMap;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hyper::body::Incoming;
use hyper::header::{ACCEPT_ENCODING, CONNECTION, HeaderName, ORIGIN, SEC_WEBSOCKET_ACCEPT, UPGRADE};
use hyper::service::service_fn;
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request, StatusCode, Version};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, watch};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use beamtalk_http::{BodyFault, hosts, read_body, set, values};
use beamtalk_wire::limits;

use super::administration::CREDENTIALS_GONE;
use super::admission::Visit;
use super::connection;
use super::credentials::{self, Keys, Pass};
use super::doors::{Arrival, Doors, Foreign, NullOrigin, Origin};
use super::failures::{Failure, Failures, MERGE, Peer, Reason, Record};
use super::logins::LoginName;
use super::mcp;
use super::opening::{self, Ambiguous, Offer, SUBPROTOCOL};
use super::outgoing::Outgoing;
use super::pages::{self, Page, Reply, Wish};
use super::tls::Tls;
use super::waiting::{Place, Waiting};
use super::{Admitted, AuditSink, AuthKind, GateConfig, GateEvent};

/// The largest request head and body, in bytes.
const HEAD_LIMIT: usize = 16 * 1024;
const BODY_LIMIT: usize = 4 * 1024;

/// What all connections of a gate share.
pub(crate) struct Shared {
    pub(crate) config: GateConfig,
    state: Mutex<State>,
    audit: Arc<dyn AuditSink>,
    pub(crate) admitted: mpsc::Sender<Admitted>,
}

/// One listener's way in: the names it goes by, and its TLS.
pub(crate) struct Entrance {
    doors: Doors,
    tls: Option<Mutex<Tls>>,
}

impl Entrance {
    pub(crate) fn new(doors: Doors, tls: Option<Tls>) -> Self {
        Self {
            doors,
            tls: tls.map(Mutex::new),
        }
    }

    fn tls(&self) -> Option<Tls> {
        let tls = self.tls.as_ref()?;
        Some(tls.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    pub(crate) fn use_tls(&self, renewed: Tls) {
        if let Some(tls) = &self.tls {
            *tls.lock().unwrap_or_else(PoisonError::into_inner) = renewed;
        }
    }
}

/// Everything that changes, behind one lock, so that judging a secret and counting its connection
/// are one step and no rotation falls between.
pub(crate) struct State {
    pub(crate) keys: Keys,
    failures: Failures,
    pub(crate) waiting: Waiting,
    pub(crate) connected: Vec<Connected>,
    /// How fast AI clients call.
    rates: HashMap<String, beamtalk_mcp::Rate>,
    next: u64,
}

/// An authenticated connection.
pub(crate) struct Connected {
    number: u64,
    pub(crate) pass: Pass,
    pub(crate) outgoing: Outgoing,
}

/// Of the connections that are let in, those of tokens and sessions of agents together, and of one of them.
const GUESTS: usize = 96;
const ONE_GUEST: usize = 64;

/// Why a right secret does not open a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Secret(Reason),
    TooMany,
}

impl Shared {
    pub(crate) fn new(
        config: GateConfig,
        keys: Keys,
        audit: Arc<dyn AuditSink>,
        admitted: mpsc::Sender<Admitted>,
    ) -> Self {
        let state = State {
            keys,
            failures: Failures::default(),
            waiting: Waiting::default(),
            connected: Vec::new(),
            rates: HashMap::new(),
            next: 0,
        };
        Self {
            config,
            state: Mutex::new(state),
            audit,
            admitted,
        }
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn record(&self, event: GateEvent<'_>) {
        self.audit.record(event);
    }

    /// Record a failed attempt; the answer must not be sent before the returned delay has passed.
    fn note_failure(self: &Arc<Self>, failure: Failure) -> Duration {
        let response = self
            .state()
            .failures
            .note(failure, self.config.pace.delays, Instant::now());
        match response.record {
            Record::Now(failure) => self.record(GateEvent::AuthFail(failure)),
            Record::Merged => {}
            Record::Later => {
                let shared = Arc::clone(self);
                tokio::spawn(async move {
                    tokio::time::sleep(MERGE).await;
                    let merged = shared.state().failures.take();
                    if let Some(merged) = merged {
                        shared.record(GateEvent::AuthFail(merged));
                    }
                });
            }
        }
        response.delay
    }

    /// Record a failed attempt of somebody who gets no answer.
    pub(crate) fn record_failure(self: &Arc<Self>, failure: Failure) {
        self.note_failure(failure);
    }

    /// Record a failed attempt and wait as long as its answer must wait.
    pub(crate) async fn fail(self: &Arc<Self>, peer: SocketAddr, reason: Reason, bytes: usize) {
        let delay = self.note_failure(Failure {
            peer: Peer::Tcp(peer),
            reason,
            bytes,
            count: 1,
        });
        tokio::time::sleep(delay).await;
    }

    /// Judge a secret and, if it is right, count the connection among the authenticated.
    pub(crate) fn admit(
        &self,
        offer: &Offer,
        place: credentials::Place,
        outgoing: &Outgoing,
    ) -> Result<(Pass, u64), Refusal> {
        self.admit_with(|keys| keys.judge(offer, place), outgoing)
    }

    /// The same for a secret that may be one for AI clients.
    pub(crate) fn admit_any(
        &self,
        offer: &Offer,
        place: credentials::Place,
        outgoing: &Outgoing,
    ) -> Result<(Pass, u64), Refusal> {
        self.admit_with(|keys| keys.judge_any(offer, place), outgoing)
    }

    /// Take a place for a call of a principal; if there is none, how many milliseconds until there is.
    pub(crate) fn pace(&self, principal: &str, now: Instant) -> Result<(), u64> {
        let mut state = self.state();
        let rate = state.rates.entry(principal.to_owned()).or_default();
        rate.take(now, 0)
    }

    fn admit_with(
        &self,
        judge: impl FnOnce(&mut Keys) -> Result<Pass, Reason>,
        outgoing: &Outgoing,
    ) -> Result<(Pass, u64), Refusal> {
        let mut state = self.state();
        let pass = judge(&mut state.keys).map_err(Refusal::Secret)?;
        if !has_seat(state.connected.iter().map(|one| &one.pass.auth), &pass.auth) {
            return Err(Refusal::TooMany);
        }
        state.next += 1;
        let number = state.next;
        state.connected.push(Connected {
            number,
            pass: pass.clone(),
            outgoing: outgoing.clone(),
        });
        Ok((pass, number))
    }

    pub(crate) fn forget(&self, number: u64) {
        self.state()
            .connected
            .retain(|connection| connection.number != number);
    }

    /// The system refused a connection, most likely for want of descriptors: let others close theirs.
    pub(crate) async fn breathe(&self) {
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    /// Makes a browser forget its login.
    fn ended_login(&self, doors: &Doors) -> String {
        let secure = doors.cookie_suffix();
        format!(
            "{}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0{secure}",
            self.login_cookie()
        )
    }

    fn login_cookie(&self) -> String {
        format!("bt_{}", self.config.workspace_id)
    }
}

/// Whether one more may come in: whoever was given a token, or a session, keeps neither the owner out nor all the others.
fn has_seat<'a>(connected: impl Iterator<Item = &'a AuthKind>, new: &AuthKind) -> bool {
    let is_guest = |auth: &AuthKind| matches!(auth, AuthKind::Token(_) | AuthKind::Agent(_));
    let (mut all, mut guests, mut alike) = (0, 0, 0);
    for one in connected {
        all += 1;
        guests += usize::from(is_guest(one));
        alike += usize::from(one == new);
    }
    let is_free = all < limits::AUTHENTICATED_CONNECTIONS;
    is_free && (!is_guest(new) || (guests < GUESTS && alike < ONE_GUEST))
}

/// Accept connections until told to stop.
pub(crate) async fn serve(
    listener: TcpListener,
    entrance: Arc<Entrance>,
    shared: Arc<Shared>,
    mut stop: watch::Receiver<bool>,
) {
    loop {
        let accepted = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return,
            accepted = listener.accept() => accepted,
        };
        let Ok((stream, peer)) = accepted else {
            shared.breathe().await;
            continue;
        };
        let place = Place::take(&shared, limits::UNAUTHENTICATED_CONNECTIONS);
        let (shared, entrance) = (Arc::clone(&shared), Arc::clone(&entrance));
        tokio::spawn(async move {
            let turned_out = place.turned_out();
            tokio::select! {
                () = turned_out => {}
                () = welcome(stream, peer, entrance, shared, place) => {}
            }
        });
    }
}

async fn welcome(
    stream: TcpStream,
    peer: SocketAddr,
    entrance: Arc<Entrance>,
    shared: Arc<Shared>,
    place: Place,
) {
    // Frames are small; waiting to fill a packet only delays them.
    drop(stream.set_nodelay(true));
    let Ok(local) = stream.local_addr() else { return };
    let Some(tls) = entrance.tls() else {
        let ends = Ends {
            entrance,
            peer,
            local,
            certificate_names: Arc::default(),
        };
        return converse(stream, ends, shared, place).await;
    };
    let ends = Ends {
        entrance,
        peer,
        local,
        certificate_names: tls.names,
    };
    // A client that does not speak TLS, or shows no certificate where one is asked for, ends here.
    let handshake = TlsAcceptor::from(tls.config).accept(stream);
    if let Ok(Ok(stream)) = timeout(shared.config.pace.authentication, handshake).await {
        converse(stream, ends, shared, place).await;
    }
}

/// The two ends of a connection.
#[derive(Clone)]
pub(crate) struct Ends {
    /// Which listener it came by.
    entrance: Arc<Entrance>,
    pub(crate) peer: SocketAddr,
    local: SocketAddr,
    /// Names in the certificate that was shown.
    certificate_names: Arc<[String]>,
}

impl Ends {
    pub(crate) fn place(&self) -> credentials::Place {
        credentials::Place::of(self.peer, self.local)
    }
}

/// What is left of an upgrade request.
struct Upgrade {
    stream: OnUpgrade,
    offer: Result<Option<Offer>, Ambiguous>,
}

async fn converse<S>(stream: S, ends: Ends, shared: Arc<Shared>, place: Place)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let place = Arc::new(place);
    let upgrade = Arc::new(Mutex::new(None));
    let service = service_fn(|request| {
        let (shared, upgrade, ends) = (Arc::clone(&shared), Arc::clone(&upgrade), ends.clone());
        let place = Arc::clone(&place);
        async move {
            let reply = answer(request, &ends, &shared, &upgrade, &place).await;
            Ok::<_, Infallible>(reply)
        }
    });
    // A client that breaks off or breaks the rules ends its own connection only.
    let served = hyper::server::conn::http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(shared.config.pace.authentication)
        .max_header_size(HEAD_LIMIT)
        .max_buf_size(HEAD_LIMIT * 2)
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades()
        .await;
    let upgrade = upgrade.lock().unwrap_or_else(PoisonError::into_inner).take();
    if let (Ok(()), Some(Upgrade { stream, offer })) = (served, upgrade)
        && let Ok(stream) = stream.await
    {
        let visit = Visit {
            peer: ends.peer,
            place: ends.place(),
            offer,
        };
        connection::run(TokioIo::new(stream), visit, shared, place).await;
    }
}

async fn answer(
    request: Request<Incoming>,
    ends: &Ends,
    shared: &Arc<Shared>,
    upgrade: &Mutex<Option<Upgrade>>,
    waiting: &Place,
) -> Reply {
    let doors = &ends.entrance.doors;
    let is_login = request.method() == Method::POST && request.uri().path() == "/login";
    let null = if is_login {
        NullOrigin::Accepted
    } else {
        NullOrigin::Refused
    };
    let judged = doors.judge(
        Arrival {
            local: ends.local.ip(),
            certificate_names: &ends.certificate_names,
        },
        &hosts(&request),
        &values(request.headers(), ORIGIN),
        null,
    );
    let origin = match judged {
        Ok(origin) => origin,
        Err(foreign) => {
            let reason = match foreign {
                Foreign::Host => Reason::Host,
                Foreign::Origin => Reason::Origin,
            };
            shared.fail(ends.peer, reason, 0).await;
            return pages::empty(StatusCode::FORBIDDEN);
        }
    };
    let path = request.uri().path();
    match (request.method().as_str(), path) {
        ("GET", "/ws") => accept_upgrade(request, origin, ends, shared, upgrade),
        (_, "/mcp") if shared.config.mcp.is_some() => mcp::answer(request, ends, shared, waiting).await,
        ("POST", "/login") => log_in(request, ends, shared).await,
        ("POST", "/logout") => log_out(&request, ends, shared),
        ("GET", _) => match (shared.config.pages)(path) {
            Some(page) => serve_page(page, &request, doors),
            None => pages::empty(StatusCode::NOT_FOUND),
        },
        _ => pages::empty(StatusCode::NOT_FOUND),
    }
}

fn serve_page(page: Page, request: &Request<Incoming>, doors: &Doors) -> Reply {
    let Ok(nonce) = beamtalk_storage::random_bytes::<16>() else {
        return pages::empty(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let nonce = format!("{:032x}", u128::from_be_bytes(nonce));
    let takes_compressed = values(request.headers(), ACCEPT_ENCODING)
        .iter()
        .flat_map(|value| value.split(|byte| *byte == b','))
        .any(|value| value.trim_ascii().eq_ignore_ascii_case(b"gzip"));
    let wish = Wish {
        socket_origin: &doors.socket_origin(&host(request)),
        takes_compressed,
        nonce: &nonce,
    };
    pages::page(page, &wish)
}

/// The accepted host of a request, as text.
fn host(request: &Request<Incoming>) -> String {
    let first = hosts(request).first().copied().unwrap_or_default();
    String::from_utf8_lossy(first).into_owned()
}

fn accept_upgrade(
    mut request: Request<Incoming>,
    origin: Origin,
    ends: &Ends,
    shared: &Shared,
    upgrade: &Mutex<Option<Upgrade>>,
) -> Reply {
    let headers = request.headers();
    let has = |name: HeaderName, wanted: &str| {
        values(headers, name)
            .iter()
            .flat_map(|value| value.split(|byte| *byte == b','))
            .any(|value| value.trim_ascii().eq_ignore_ascii_case(wanted.as_bytes()))
    };
    let key = headers.get(hyper::header::SEC_WEBSOCKET_KEY);
    let Some(accept) = key
        .map(|key| derive_accept_key(key.as_bytes()))
        .filter(|_| request.version() == Version::HTTP_11)
        .filter(|_| has(CONNECTION, "upgrade") && has(UPGRADE, "websocket"))
        .filter(|_| has(hyper::header::SEC_WEBSOCKET_VERSION, "13"))
    else {
        return pages::empty(StatusCode::NOT_FOUND);
    };
    let offer = opening::read_headers(headers, &shared.login_cookie()).map(|offer| {
        // A login cookie counts only from a page of ours; browsers always name the origin.
        offer.filter(|offer| !matches!(offer, Offer::Login(_)) || origin == Origin::Own)
    });
    let mut reply = pages::empty(StatusCode::SWITCHING_PROTOCOLS);
    for (name, value) in [("connection", "Upgrade"), ("upgrade", "websocket")] {
        set(&mut reply, name, value);
    }
    if let Ok(accept) = accept.parse() {
        reply.headers_mut().insert(SEC_WEBSOCKET_ACCEPT, accept);
    }
    if opening::offers_subprotocol(headers) {
        set(&mut reply, "sec-websocket-protocol", SUBPROTOCOL);
    }
    // A browser keeps sending a login that has ended; without it, its page is asked for a secret.
    if let Ok(Some(login @ Offer::Login(_))) = &offer
        && shared.state().keys.judge(login, ends.place()).is_err()
    {
        set(
            &mut reply,
            "set-cookie",
            &shared.ended_login(&ends.entrance.doors),
        );
    }
    let stream = hyper::upgrade::on(&mut request);
    *upgrade.lock().unwrap_or_else(PoisonError::into_inner) = Some(Upgrade { stream, offer });
    reply
}

async fn log_in(request: Request<Incoming>, ends: &Ends, shared: &Arc<Shared>) -> Reply {
    let name = if ends.entrance.doors.is_login_host(host(&request).as_bytes()) {
        LoginName::Own
    } else {
        LoginName::Plain
    };
    let body = read_body(request.into_body(), BODY_LIMIT);
    let body = match timeout(shared.config.pace.authentication, body).await {
        Ok(Ok(body)) => body,
        Ok(Err(BodyFault::TooLarge)) => {
            shared.fail(ends.peer, Reason::TooLarge, BODY_LIMIT).await;
            return pages::empty(StatusCode::PAYLOAD_TOO_LARGE);
        }
        Ok(Err(BodyFault::Broken)) | Err(_) => {
            shared.fail(ends.peer, Reason::Timeout, 0).await;
            return pages::empty(StatusCode::FORBIDDEN);
        }
    };
    let cookie = opening::token_in_form(&body).and_then(|token| {
        let lifetime = shared.config.pace.login;
        shared.state().keys.log_in(&token, ends.place(), name, lifetime)
    });
    let Some(cookie) = cookie else {
        shared.fail(ends.peer, Reason::Invalid, body.len()).await;
        return pages::empty(StatusCode::FORBIDDEN);
    };
    shared.record(GateEvent::Login {
        peer: Peer::Tcp(ends.peer),
        action: "login",
    });
    let mut reply = pages::empty(StatusCode::SEE_OTHER);
    set(&mut reply, "location", "/");
    let (name, age) = (shared.login_cookie(), shared.config.pace.login.as_secs());
    let secure = ends.entrance.doors.cookie_suffix();
    set(
        &mut reply,
        "set-cookie",
        &format!(
            "{name}={}; HttpOnly; SameSite=Strict; Path=/; Max-Age={age}{secure}",
            cookie.expose()
        ),
    );
    reply
}

fn log_out(request: &Request<Incoming>, ends: &Ends, shared: &Shared) -> Reply {
    let mut ended = false;
    if let Some(cookie) = opening::login_in(request.headers(), &shared.login_cookie()) {
        let State { keys, connected, .. } = &mut *shared.state();
        if let Some((login, _, _)) = keys.logins.find(&cookie, &keys.comparer, Instant::now()) {
            keys.logins.end(login);
            ended = true;
            for connection in connected.iter().filter(|one| one.pass.login == Some(login)) {
                connection.outgoing.sever(CREDENTIALS_GONE, "logged out");
            }
        }
    }
    // A stranger who logs nobody out leaves no line in the trail.
    if ended {
        shared.record(GateEvent::Login {
            peer: Peer::Tcp(ends.peer),
            action: "logout",
        });
    }
    let mut reply = pages::empty(StatusCode::SEE_OTHER);
    set(&mut reply, "location", "/");
    set(
        &mut reply,
        "set-cookie",
        &shared.ended_login(&ends.entrance.doors),
    );
    reply
}
