//! The event server: HTTP around the gate.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use beamtalk_http::{BodyFault, Pace, hosts, read_body, serve, short, values};
use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HeaderName, ORIGIN};
use hyper::{Request, Response};
use tokio::net::TcpListener;
use tokio::sync::{mpsc, oneshot};

use super::audit::{AuditLog, fingerprint};
use super::gate::{BODY_LIMIT, Caller, Failures, Gate, Head, LIMITS, Rejection, value_in};
use crate::config::Config;
use crate::core::Verdict;
use crate::output::Output;
use crate::report::{Audit, Level, Part, Report};
use crate::shell::{Inbound, Tails};

/// What posting needs, from the network or from the control socket.
#[derive(Clone)]
pub(crate) struct Desk {
    /// The config in force.
    pub(crate) config: Arc<Mutex<Arc<Config>>>,
    pub(crate) tails: Tails,
    pub(crate) gate: Arc<Mutex<Gate>>,
    pub(crate) inbox: mpsc::Sender<Inbound>,
    pub(crate) audit: Arc<AuditLog>,
    pub(crate) output: Output,
    pub(crate) failures: Arc<Mutex<Failures>>,
}

/// What became of a post, and how to hear of the end of its workflow.
pub(crate) struct Posted {
    pub(crate) changed: bool,
    pub(crate) finished: Option<oneshot::Receiver<Result<(), String>>>,
}

/// Whether the sender wants to hear how the workflow ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waits {
    No,
    Yes,
}

impl Desk {
    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn gate(&self) -> std::sync::MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hand a value to the core; checks 12 to 15.
    pub(crate) async fn post(&self, event: &str, value: &str, waits: Waits) -> Result<Posted, Rejection> {
        let (verdict, judged) = oneshot::channel();
        let (done, finished) = oneshot::channel();
        let finished = (waits == Waits::Yes).then_some(finished);
        let sent = self.inbox.send(Inbound::Post {
            event: event.to_owned(),
            value: value.to_owned(),
            verdict,
            done: finished.is_some().then_some(done),
        });
        if sent.await.is_err() {
            return Err(Rejection::Stopping);
        }
        match judged.await {
            Ok(Verdict::Accepted { changed }) => Ok(Posted { changed, finished }),
            Ok(Verdict::Unknown) => Err(Rejection::NotFound),
            Ok(Verdict::Pattern) => Err(Rejection::Pattern),
            Ok(Verdict::State) => Err(Rejection::State),
            Ok(Verdict::Stopping) | Err(_) => Err(Rejection::Stopping),
        }
    }

    /// Write the audit line of a request that names an event or bore a wrong token.
    pub(crate) fn record(
        &self,
        caller: &Caller,
        via: &'static str,
        value: Option<&str>,
        outcome: Result<bool, Rejection>,
    ) {
        if caller.event.is_none() && outcome != Err(Rejection::Token) {
            return;
        }
        let config = self.config();
        let declared = caller.event.as_ref().and_then(|event| config.event.get(event));
        let audit = Audit {
            event: caller.event.clone().unwrap_or_else(|| "-".into()),
            via,
            by: caller.by.clone(),
            status: outcome.map_or_else(Rejection::status, |_| 204),
            changed: outcome.ok(),
            bytes: value.map(str::len),
            sha256: value.map(fingerprint),
            workflow: outcome
                .is_ok()
                .then(|| declared.map(|event| event.workflow.clone()))
                .flatten(),
        };
        if let Err(error) = self.audit.append(&audit) {
            let text = format!("failed to write the event log: {error}");
            self.output.report(&Report::log(Level::Warn, Part::Events, text));
        }
        self.output.report(&Report::Event(audit));
    }

    /// Count a post that came no further than the gate, and warn about wrong tokens now and then.
    pub(crate) async fn refuse(&self, caller: &Caller, rejection: Rejection) {
        if let Some(event) = &caller.event {
            drop(self.inbox.send(Inbound::Rejected { event: event.clone() }).await);
        }
        let is_first = || {
            self.failures
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .note(Instant::now())
        };
        if rejection == Rejection::Token && is_first() {
            let desk = self.clone();
            tokio::spawn(async move {
                tokio::time::sleep(Failures::WINDOW).await;
                let count = desk
                    .failures
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .take();
                let text = format!("{count} event requests failed authentication in the last 10 s");
                desk.output.report(&Report::log(Level::Warn, Part::Events, text));
            });
        }
    }
}

/// Serve events until dropped.
pub(crate) async fn run(listener: TcpListener, local: SocketAddr, desk: Desk) {
    serve(listener, LIMITS, move |request, pace| {
        let desk = desk.clone();
        async move { answer(request, pace, local, &desk).await }
    })
    .await;
}

async fn answer(
    request: Request<Incoming>,
    pace: Pace,
    local: SocketAddr,
    desk: &Desk,
) -> Response<Full<Bytes>> {
    let admitted = {
        let head = head_of(&request);
        desk.gate().admit(&head, local, Instant::now())
    };
    let caller = match admitted {
        Ok(caller) => caller,
        Err((rejection, caller)) => {
            desk.record(&caller, "http", None, Err(rejection));
            desk.refuse(&caller, rejection).await;
            let is_read = request.body().is_end_stream();
            return refusal(rejection, if is_read { Rest::None } else { Rest::OnItsWay });
        }
    };
    pace.admit();
    let _turn = pace.turn().await;
    let value = match read_value(request).await {
        Ok(value) => value,
        Err((rejection, rest)) => {
            desk.record(&caller, "http", None, Err(rejection));
            desk.refuse(&caller, rejection).await;
            return refusal(rejection, rest);
        }
    };
    pace.received();
    let event = caller.event.clone().unwrap_or_default();
    let outcome = desk.post(&event, &value, Waits::No).await;
    let changed = outcome
        .as_ref()
        .map(|posted| posted.changed)
        .map_err(|rejection| *rejection);
    desk.record(&caller, "http", Some(&value), changed);
    match changed {
        Ok(changed) => short(
            204,
            &[("loop-changed", if changed { "true" } else { "false" })],
            String::new(),
        ),
        Err(rejection) => refusal(rejection, Rest::None),
    }
}

/// Whether more of a refused request is coming, after which nobody could find the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    None,
    OnItsWay,
}

async fn read_value(request: Request<Incoming>) -> Result<String, (Rejection, Rest)> {
    // A body that breaks off is no JSON; one that runs on is too large.
    match read_body(request.into_body(), BODY_LIMIT).await {
        Ok(body) => value_in(&body).map_err(|rejection| (rejection, Rest::None)),
        Err(BodyFault::TooLarge) => Err((Rejection::TooLarge, Rest::OnItsWay)),
        Err(BodyFault::Broken) => Err((Rejection::Json, Rest::OnItsWay)),
    }
}

fn head_of(request: &Request<Incoming>) -> Head<'_> {
    let all = |name: HeaderName| values(request.headers(), name);
    let length = request.headers().get(hyper::header::CONTENT_LENGTH);
    Head {
        method: request.method().as_str(),
        path: request.uri().path(),
        hosts: hosts(request),
        origins: all(ORIGIN),
        fetch_sites: all(HeaderName::from_static("sec-fetch-site")),
        authorizations: all(AUTHORIZATION),
        content_types: all(CONTENT_TYPE),
        content_length: length.and_then(|length| length.to_str().ok()?.parse().ok()),
    }
}

fn refusal(rejection: Rejection, rest: Rest) -> Response<Full<Bytes>> {
    let extra: &[(&'static str, &str)] = match rejection {
        Rejection::Method => &[("allow", "POST")],
        Rejection::Token => &[("www-authenticate", "Bearer")],
        Rejection::Rate => &[("retry-after", "1")],
        Rejection::Origin
        | Rejection::NotFound
        | Rejection::Scope
        | Rejection::MediaType
        | Rejection::TooLarge
        | Rejection::Json
        | Rejection::Shape
        | Rejection::Pattern
        | Rejection::Stopping
        | Rejection::State => &[],
    };
    let mut headers = vec![("content-type", "application/json")];
    headers.extend_from_slice(extra);
    if rest == Rest::OnItsWay {
        headers.push(("connection", "close"));
    }
    short(
        rejection.status(),
        &headers,
        format!("{{\"error\":\"{}\"}}", rejection.kind()),
    )
}
