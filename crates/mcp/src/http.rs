//! Streamable HTTP without the network: what a request is answered with, for one principal.
//!
//! A host has looked at who asks, at `Host`, `Origin`, types and sizes before. What comes here is a method, the headers
//! that matter, and a body; what goes out is one answer or a stream of events.

mod headers;
mod streams;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;
use std::time::{Duration, Instant};

use serde::Deserialize;
use serde_json::{Map, Value};
use tokio::sync::mpsc;

use crate::capabilities;
use crate::dispatch;
use crate::host::Host;
use crate::message::{Bad, Fault, Message};
use crate::session::{Outgoing, Session};
use crate::settings::Settings;
pub use headers::{HttpRequest, admits};
use streams::{Stream, frame};

/// Sessions of old clients, how long one may be idle, and how long a broken stream is kept.
const SESSIONS: usize = 32;
const IDLE: Duration = Duration::from_mins(30);
/// A comment keeps what stands between from giving up.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// After so long an old client gets a stream that it can come back to.
const PATIENCE: Duration = Duration::from_secs(1);

/// What is answered.
pub enum HttpAnswer {
    Whole {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
    /// Events as they come; the other end is told when nobody reads them.
    Stream {
        headers: Vec<(&'static str, String)>,
        events: mpsc::UnboundedReceiver<String>,
    },
}

impl HttpAnswer {
    pub fn status(status: u16) -> Self {
        Self::Whole {
            status,
            headers: Vec::new(),
            body: String::new(),
        }
    }

    /// A refusal in words, for whoever was let in.
    pub fn refused(status: u16, words: &str) -> Self {
        let code = if status < 500 { -32600 } else { -32603 };
        Self::fault(status, &Fault::new(code, words), None)
    }

    fn json(status: u16, body: String) -> Self {
        Self::Whole {
            status,
            headers: vec![("content-type", "application/json".to_owned())],
            body,
        }
    }

    fn fault(status: u16, fault: &Fault, id: Option<&Value>) -> Self {
        Self::json(status, fault.text(id))
    }

    fn stream(events: mpsc::UnboundedReceiver<String>) -> Self {
        Self::Stream {
            headers: vec![
                ("content-type", "text/event-stream".to_owned()),
                ("x-accel-buffering", "no".to_owned()),
            ],
            events,
        }
    }
}

const NO_SESSION: &str =
    "the session of this Mcp-Session-Id is over or another's; call 'initialize' for a new one";
const BAD_PLACE: &str = "Last-Event-ID is none that this server gave; leave it out";

/// An old client's session.
struct Legacy<H> {
    session: Rc<Session<H>>,
    used: Cell<Instant>,
    /// What it is told without having asked, then one for each call that takes longer.
    streams: RefCell<BTreeMap<u64, Rc<Stream>>>,
    next: Cell<u64>,
}

impl<H> Drop for Legacy<H> {
    fn drop(&mut self) {
        self.session.cancel_everything();
    }
}

/// The endpoint as one principal has it.
pub struct Endpoint<H> {
    /// What all requests share; it has no client of its own.
    base: Rc<Session<H>>,
    sessions: RefCell<BTreeMap<String, Rc<Legacy<H>>>>,
    new_id: Box<dyn Fn() -> Option<String>>,
}

/// What an answer says about itself.
#[derive(Deserialize)]
struct Probe {
    method: Option<serde::de::IgnoredAny>,
    error: Option<ProbedError>,
}

#[derive(Deserialize)]
struct ProbedError {
    code: i64,
}

impl Probe {
    /// The status of a last message; `None` if more follows.
    fn status(text: &str) -> Option<u16> {
        let probe: Self = serde_json::from_str(text).ok()?;
        if probe.method.is_some() {
            return None;
        }
        Some(match probe.error.map(|error| error.code) {
            Some(-32601) => 404,
            Some(-32700 | -32600 | -32022..=-32020) => 400,
            _ => 200,
        })
    }
}

impl<H: Host> Endpoint<H> {
    pub fn new(
        host: Rc<H>,
        settings: Rc<Settings>,
        new_id: impl Fn() -> Option<String> + 'static,
    ) -> Rc<Self> {
        let (outgoing, _) = Outgoing::new(host.secrets());
        Self::of(Session::new(host, settings, outgoing), new_id)
    }

    /// One with what a fixture adds.
    #[doc(hidden)]
    pub fn with_fixture(
        host: Rc<H>,
        fixture: Rc<dyn crate::Fixture>,
        new_id: impl Fn() -> Option<String> + 'static,
    ) -> Rc<Self> {
        let (outgoing, _) = Outgoing::new(host.secrets());
        Self::of(Session::with_fixture(host, fixture, outgoing), new_id)
    }

    fn of(base: Rc<Session<H>>, new_id: impl Fn() -> Option<String> + 'static) -> Rc<Self> {
        Rc::new(Self {
            base,
            sessions: RefCell::default(),
            new_id: Box::new(new_id),
        })
    }

    /// Answer a request. `gone` ends when nobody waits for it any more.
    pub async fn answer(self: &Rc<Self>, request: HttpRequest, gone: impl Future<Output = ()>) -> HttpAnswer {
        self.sweep();
        let mut answer = self.dispatch(request, gone).await;
        // Refusals repeat what they refuse.
        if let HttpAnswer::Whole { body, .. } = &mut answer {
            *body = self.base.host.secrets().leave_out(std::mem::take(body));
        }
        answer
    }

    async fn dispatch(self: &Rc<Self>, request: HttpRequest, gone: impl Future<Output = ()>) -> HttpAnswer {
        match request.method.as_str() {
            "POST" => self.post(request, gone).await,
            "GET" => self.follow(&request),
            "DELETE" => match self.legacy(&request) {
                Ok((id, _)) => {
                    self.sessions.borrow_mut().remove(&id);
                    HttpAnswer::status(204)
                }
                Err(refusal) => refusal,
            },
            _ => HttpAnswer::status(405),
        }
    }

    async fn post(self: &Rc<Self>, request: HttpRequest, gone: impl Future<Output = ()>) -> HttpAnswer {
        let message = match Message::parse(&request.body) {
            Ok(message) => message,
            Err(Bad { id, fault }) => return HttpAnswer::fault(400, &fault, id.as_ref()),
        };
        let Message::Request { id, method, params } = &message else {
            // Only old clients have something to tell: modern ones close what they do not want.
            if let Some(legacy) = request.header("mcp-session-id").and_then(|id| self.find(id)) {
                let outgoing = legacy.session.outgoing.clone();
                legacy.session.hear(message, &outgoing);
            } else if request.header("mcp-session-id").is_some() {
                return HttpAnswer::refused(404, NO_SESSION);
            }
            return HttpAnswer::status(202);
        };
        let is_modern = params
            .get("_meta")
            .is_some_and(|meta| meta.get(capabilities::PROTOCOL_VERSION).is_some())
            || request.header("mcp-protocol-version") == Some(crate::message::MODERN);
        if is_modern {
            if let Some(refusal) = refuse_modern(&request, id, method, params) {
                return refusal;
            }
            let (outgoing, lines) = Outgoing::new(self.base.host.secrets());
            let session = self.base.another(outgoing.clone());
            session.hear(message, &outgoing);
            return modern(session, lines, gone).await;
        }
        if method == "initialize" {
            return self.open(message).await;
        }
        let (_, legacy) = match self.legacy(&request) {
            Ok(found) => found,
            Err(refusal) => return refusal,
        };
        let wanted = request.header("mcp-protocol-version");
        if wanted.is_some() && wanted != legacy.session.version() {
            let fault = Fault::version("the session speaks another version", &wanted.into());
            return HttpAnswer::fault(400, &fault, Some(id));
        }
        let (outgoing, lines) = Outgoing::new(self.base.host.secrets());
        legacy.session.hear(message, &outgoing);
        legacy.answer(lines).await
    }

    /// `initialize` opens a session.
    async fn open(&self, message: Message) -> HttpAnswer {
        let Some(id) = (self.new_id)() else {
            return HttpAnswer::status(500);
        };
        let (unasked, told) = Outgoing::new(self.base.host.secrets());
        let session = self.base.another(unasked);
        let (outgoing, mut lines) = Outgoing::new(self.base.host.secrets());
        session.hear(message, &outgoing);
        let Some(text) = lines.recv().await else {
            return HttpAnswer::status(500);
        };
        let mut answer = HttpAnswer::json(Probe::status(&text).unwrap_or(200), text);
        if session.version().is_some()
            && let HttpAnswer::Whole { headers, .. } = &mut answer
        {
            headers.push(("mcp-session-id", id.clone()));
            let stream = Stream::new(0);
            stream.clone().pump(told);
            let legacy = Legacy {
                session,
                used: Cell::new(Instant::now()),
                streams: RefCell::new(BTreeMap::from([(0, stream)])),
                next: Cell::new(1),
            };
            let mut sessions = self.sessions.borrow_mut();
            let oldest = sessions
                .iter()
                .min_by_key(|(_, legacy)| legacy.used.get())
                .map(|(id, _)| id.clone())
                .filter(|_| sessions.len() >= SESSIONS);
            if let Some(oldest) = oldest {
                sessions.remove(&oldest);
            }
            sessions.insert(id, Rc::new(legacy));
        }
        answer
    }

    /// The session that a request names: 400 without a name, 404 for one that is not this principal's.
    fn legacy(&self, request: &HttpRequest) -> Result<(String, Rc<Legacy<H>>), HttpAnswer> {
        let Some(id) = request.header("mcp-session-id") else {
            let fault = Fault::request(
                "call 'initialize' first and send Mcp-Session-Id, or send params._meta of a modern request",
            );
            return Err(HttpAnswer::fault(400, &fault, None));
        };
        match self.find(id) {
            Some(legacy) => Ok((id.to_owned(), legacy)),
            None => Err(HttpAnswer::refused(404, NO_SESSION)),
        }
    }

    fn find(&self, id: &str) -> Option<Rc<Legacy<H>>> {
        let legacy = self.sessions.borrow().get(id).cloned()?;
        legacy.used.set(Instant::now());
        Some(legacy)
    }

    /// `GET`: what an old client is told unasked, or the rest of a stream that broke.
    fn follow(&self, request: &HttpRequest) -> HttpAnswer {
        let (_, legacy) = match self.legacy(request) {
            Ok(found) => found,
            Err(refusal) => return refusal,
        };
        let (number, last) = match request.header("last-event-id") {
            None => (0, None),
            Some(last) => match last.split_once('-') {
                Some((stream, event)) => match (stream.parse(), event.parse()) {
                    (Ok(stream), Ok(event)) => (stream, Some(event)),
                    _ => return HttpAnswer::refused(400, BAD_PLACE),
                },
                None => return HttpAnswer::refused(400, BAD_PLACE),
            },
        };
        let stream = legacy.streams.borrow().get(&number).cloned();
        match stream {
            Some(stream) => HttpAnswer::stream(stream.attach(last)),
            None => HttpAnswer::refused(
                404,
                "that stream is over and not kept any more; send the call again",
            ),
        }
    }

    /// Forget what nobody came back to.
    fn sweep(&self) {
        let mut sessions = self.sessions.borrow_mut();
        sessions.retain(|_, legacy| legacy.used.get().elapsed() < IDLE || !legacy.session.is_idle());
        for legacy in sessions.values() {
            legacy
                .streams
                .borrow_mut()
                .retain(|number, stream| *number == 0 || !stream.is_over());
        }
    }
}

impl<H: Host> Legacy<H> {
    /// One answer, or a stream that the client can come back to. A lost connection cancels nothing.
    async fn answer(self: &Rc<Self>, mut lines: mpsc::UnboundedReceiver<String>) -> HttpAnswer {
        let first = tokio::time::timeout(PATIENCE, lines.recv()).await;
        let first = match first {
            Ok(Some(text)) => match Probe::status(&text) {
                // To an old client 404 means that its session is gone.
                Some(404) => return HttpAnswer::json(200, text),
                Some(status) => return HttpAnswer::json(status, text),
                None => Some(text),
            },
            Ok(None) => return HttpAnswer::status(500),
            Err(_) => None,
        };
        let number = self.next.get();
        self.next.set(number + 1);
        let stream = Stream::new(number);
        self.streams.borrow_mut().insert(number, stream.clone());
        let events = stream.attach(None);
        // A name to come back to before anything is said.
        stream.prime();
        if let Some(text) = first {
            stream.tell(&text);
        }
        stream.pump(lines);
        HttpAnswer::stream(events)
    }
}

/// The checks of a modern request that need no work.
fn refuse_modern(
    request: &HttpRequest,
    id: &Value,
    method: &str,
    params: &Map<String, Value>,
) -> Option<HttpAnswer> {
    if let Err(fault) = headers::check(request, method, params) {
        return Some(HttpAnswer::fault(400, &fault, Some(id)));
    }
    match capabilities::modern(params) {
        Err(fault) => return Some(HttpAnswer::fault(400, &fault, Some(id))),
        Ok(None) => {
            let fault = Fault::params(format!(
                "params._meta needs \"{}\"",
                capabilities::PROTOCOL_VERSION
            ));
            return Some(HttpAnswer::fault(400, &fault, Some(id)));
        }
        Ok(Some(_)) => {}
    }
    if !dispatch::is_known(method, true) {
        let shown = beamtalk_wire::escape(&method.chars().take(64).collect::<String>());
        return Some(HttpAnswer::fault(404, &Fault::method(&shown), Some(id)));
    }
    None
}

/// A modern request lives as long as its connection.
async fn modern<H: Host>(
    session: Rc<Session<H>>,
    mut lines: mpsc::UnboundedReceiver<String>,
    gone: impl Future<Output = ()>,
) -> HttpAnswer {
    let guard = Ended(session);
    let first = tokio::select! {
        first = lines.recv() => first,
        () = gone => return HttpAnswer::status(499),
    };
    let Some(text) = first else {
        return HttpAnswer::status(500);
    };
    if let Some(status) = Probe::status(&text) {
        return HttpAnswer::json(status, text);
    }
    let (events, received) = mpsc::unbounded_channel();
    drop(events.send(frame(None, &text)));
    tokio::task::spawn_local(async move {
        let _guard = guard;
        loop {
            let line = tokio::select! {
                line = lines.recv() => line,
                () = events.closed() => return,
                () = tokio::time::sleep(KEEP_ALIVE) => {
                    drop(events.send(":\n\n".to_owned()));
                    continue;
                }
            };
            let Some(text) = line else { return };
            let is_last = Probe::status(&text).is_some();
            if events.send(frame(None, &text)).is_err() || is_last {
                return;
            }
        }
    });
    HttpAnswer::stream(received)
}

/// What runs for a client that left is cancelled.
struct Ended<H: Host>(Rc<Session<H>>);

impl<H: Host> Drop for Ended<H> {
    fn drop(&mut self) {
        self.0.cancel_everything();
    }
}
