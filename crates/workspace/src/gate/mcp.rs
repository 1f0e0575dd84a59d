//! `/mcp`: requests of AI clients. Who they are is decided here; what they ask is answered elsewhere.

use std::sync::Arc;
use std::time::{Duration, Instant};

use beamtalk_http::{BodyFault, EventStream, bearer, read_body, set, values};
use beamtalk_mcp::{HttpAnswer, HttpRequest, LINE_LIMIT, admits};
use beamtalk_wire::Role;
use http_body_util::{BodyExt, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::AUTHORIZATION;
use hyper::{Request, StatusCode};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

use super::AuthKind;
use super::failures::Reason;
use super::opening::Offer;
use super::outgoing::Outgoing;
use super::pages::{self, Reply};
use super::secret::Credential;
use super::server::{Ends, Refusal, Shared};
use super::waiting::Place;

/// How long a body may take.
const BODY_TIME: Duration = Duration::from_secs(10);
/// Events that wait for a client that does not read; then its stream ends.
const EVENTS: usize = 64;
/// Headers that are passed on.
const HEADERS: [&str; 7] = [
    "content-type",
    "accept",
    "mcp-protocol-version",
    "mcp-method",
    "mcp-name",
    "mcp-session-id",
    "last-event-id",
];

/// Who asks, as the gate knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    pub role: Role,
    pub auth: AuthKind,
    /// The policy of a token for AI clients.
    pub policy: Option<String>,
}

impl Principal {
    /// `owner`, `token:NAME` or `session:ID`.
    pub fn name(&self) -> String {
        match &self.auth {
            AuthKind::Token(name) => format!("token:{name}"),
            AuthKind::Agent(id) => format!("session:{id}"),
            AuthKind::Cookie | AuthKind::Browser => "owner".to_owned(),
        }
    }
}

const STOPPING: &str = "the workspace is stopping";

/// A request that was let in. Whoever waits for the answer may leave.
pub struct McpVisit {
    pub principal: Principal,
    pub request: HttpRequest,
    pub answer: oneshot::Sender<HttpAnswer>,
}

/// A connection that counts as long as its answer is read.
struct Counted {
    shared: Arc<Shared>,
    number: u64,
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.shared.forget(self.number);
    }
}

/// A refusal of a stranger says nothing but its number.
fn refused(status: StatusCode) -> Reply {
    pages::empty(status)
}

/// A refusal in words, for whoever was let in.
fn told(status: StatusCode, words: &str, counted: Counted, outgoing: Outgoing) -> Reply {
    replied(HttpAnswer::refused(status.as_u16(), words), counted, outgoing)
}

pub(crate) async fn answer(
    request: Request<Incoming>,
    ends: &Ends,
    shared: &Arc<Shared>,
    waiting: &Place,
) -> Reply {
    let method = request.method().as_str().to_owned();
    let has_session = request.headers().contains_key("mcp-session-id");
    if method != "POST" && !(matches!(method.as_str(), "GET" | "DELETE") && has_session) {
        let mut reply = refused(StatusCode::METHOD_NOT_ALLOWED);
        set(&mut reply, "allow", "POST");
        return reply;
    }
    let outgoing = Outgoing::default();
    let secret = values(request.headers(), AUTHORIZATION);
    let offer = bearer(&secret).map(|secret| Offer::Either(Credential::new(secret)));
    let admitted = match &offer {
        Some(offer) => shared.admit_any(offer, ends.place(), &outgoing),
        None => Err(Refusal::Secret(Reason::NotAuth)),
    };
    let (pass, number) = match admitted {
        Ok(admitted) => admitted,
        Err(Refusal::TooMany) => return refused(StatusCode::SERVICE_UNAVAILABLE),
        Err(Refusal::Secret(reason)) => {
            shared.fail(ends.peer, reason, 0).await;
            let mut reply = refused(StatusCode::UNAUTHORIZED);
            set(&mut reply, "www-authenticate", "Bearer");
            set(&mut reply, "connection", "close");
            return reply;
        }
    };
    waiting.leave();
    let counted = Counted {
        shared: Arc::clone(shared),
        number,
    };
    let principal = Principal {
        role: pass.role,
        auth: pass.auth,
        policy: pass.mcp,
    };
    if let Err(wait) = shared.pace(&principal.name(), Instant::now()) {
        let words = format!("too many calls; try again in {wait} ms");
        let mut reply = told(StatusCode::TOO_MANY_REQUESTS, &words, counted, outgoing);
        set(
            &mut reply,
            "retry-after",
            &wait.div_ceil(1_000).max(1).to_string(),
        );
        return reply;
    }
    let mut passed = HttpRequest {
        method,
        headers: HEADERS
            .iter()
            .flat_map(|name| {
                let values = request.headers().get_all(*name).iter();
                values.map(|value| ((*name).to_owned(), value.as_bytes().to_vec()))
            })
            .collect(),
        body: Vec::new(),
    };
    if passed.method == "POST" {
        if let Err((status, words)) = admits(&passed) {
            let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
            return told(status, words, counted, outgoing);
        }
        let body = read_body(request.into_body(), LINE_LIMIT);
        passed.body = match timeout(BODY_TIME, body).await {
            Ok(Ok(body)) => body.to_vec(),
            Ok(Err(BodyFault::TooLarge)) => {
                let words = "a message has at most 1 MiB";
                return told(StatusCode::PAYLOAD_TOO_LARGE, words, counted, outgoing);
            }
            Ok(Err(BodyFault::Broken)) | Err(_) => {
                let words = "the body did not come whole within 10 s";
                return told(StatusCode::REQUEST_TIMEOUT, words, counted, outgoing);
            }
        };
    }
    let Some(service) = &shared.config.mcp else {
        return refused(StatusCode::NOT_FOUND);
    };
    let (sender, answered) = oneshot::channel();
    let visit = McpVisit {
        principal,
        request: passed,
        answer: sender,
    };
    if service.send(visit).await.is_err() {
        return told(StatusCode::SERVICE_UNAVAILABLE, STOPPING, counted, outgoing);
    }
    tokio::select! {
        answer = answered => match answer {
            Ok(answer) => replied(answer, counted, outgoing),
            Err(_) => told(StatusCode::SERVICE_UNAVAILABLE, STOPPING, counted, outgoing),
        },
        // The secret is accepted no more.
        () = outgoing.closing() => refused(StatusCode::UNAUTHORIZED),
    }
}

fn replied(answer: HttpAnswer, counted: Counted, outgoing: Outgoing) -> Reply {
    let (status, headers, body) = match answer {
        HttpAnswer::Whole {
            status,
            headers,
            body,
        } => (status, headers, Full::new(Bytes::from(body)).boxed_unsync()),
        HttpAnswer::Stream { headers, mut events } => {
            let (frames, received) = mpsc::channel(EVENTS);
            tokio::spawn(async move {
                loop {
                    let event = tokio::select! {
                        event = events.recv() => event,
                        () = outgoing.closing() => return,
                        () = frames.closed() => return,
                    };
                    let Some(event) = event else { return };
                    if frames.send(Bytes::from(event)).await.is_err() {
                        return;
                    }
                }
            });
            (200, headers, EventStream::new(received, counted).boxed_unsync())
        }
    };
    let mut reply = pages::with_body(status, body);
    for (name, value) in headers {
        set(&mut reply, name, &value);
    }
    reply
}
