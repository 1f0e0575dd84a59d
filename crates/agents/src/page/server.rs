//! The HTTP around the routes: connections, limits, headers, the page itself.

use std::sync::Arc;
use std::time::Duration;

use beamtalk_http::{
    BodyFault, EventStream, Limits, PROTECTION, Pace, hosts, is_json, read_body, set, short, values,
};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, COOKIE, HeaderName, ORIGIN};
use hyper::{Method, Request, Response};
use serde_json::json;
use tokio::net::TcpListener;

use super::gate::{Gate, Head};
use super::routes::{self, Answer, Asked};
use super::streams::{self, Hangup};
use crate::Client;

/// The largest request: a context or a message with room for its quotes.
const BODY_LIMIT: usize = 1 << 20;
const LIMITS: Limits = Limits {
    strangers: 64,
    admitted: 64,
    head_bytes: 16 << 10,
    head_time: Duration::from_secs(10),
    send_time: Duration::from_secs(20),
    idle_time: Duration::from_secs(10),
};

/// Nothing from elsewhere, nothing in a frame, and no text that becomes markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; \
     base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const PAGE: &[(&str, &str, &str)] = &[
    ("/", "text/html; charset=utf-8", include_str!("index.html")),
    (
        "/app.js",
        "text/javascript; charset=utf-8",
        include_str!("app.js"),
    ),
    ("/icon.svg", "image/svg+xml", include_str!("icon.svg")),
    ("/style.css", "text/css; charset=utf-8", include_str!("style.css")),
];

type Content = Either<Full<Bytes>, EventStream<Hangup>>;

pub(super) async fn serve(listener: TcpListener, gate: Arc<Gate>, client: Arc<Client>) {
    beamtalk_http::serve(listener, LIMITS, move |request, pace| {
        let (gate, client) = (Arc::clone(&gate), Arc::clone(&client));
        async move { answer(request, &pace, &gate, client).await }
    })
    .await;
}

fn head_of(request: &Request<Incoming>) -> Head<'_> {
    let all = |name: HeaderName| values(request.headers(), name);
    Head {
        hosts: hosts(request),
        origins: all(ORIGIN),
        fetch_sites: all(HeaderName::from_static("sec-fetch-site")),
        authorizations: all(AUTHORIZATION),
        cookies: all(COOKIE),
    }
}

async fn answer(
    request: Request<Incoming>,
    pace: &Pace,
    gate: &Gate,
    client: Arc<Client>,
) -> Response<Content> {
    let head = head_of(&request);
    if !gate.is_for_us(&head) {
        return refuse(403, "permission denied");
    }
    let path = request.uri().path();
    if let Some((_, kind, text)) = PAGE.iter().find(|(known, _, _)| *known == path) {
        return if request.method() == Method::GET {
            respond(200, kind, *text)
        } else {
            refuse(405, "not supported")
        };
    }
    if path == "/api/login" && request.method() == Method::POST {
        let Some(cookie) = gate.exchange(&head) else {
            return refuse(403, "authentication failed");
        };
        let mut response = respond(204, "application/json", "");
        set(&mut response, "set-cookie", &cookie);
        return response;
    }
    if !gate.is_known(&head) {
        return refuse(403, "authentication required");
    }
    pace.admit();
    // A stream keeps its turn: each has a thread, and a connection to the daemon.
    let turn = pace.turn().await;
    let asked = match receive(request).await {
        Ok(asked) => asked,
        Err((status, text)) => return refuse(status, text),
    };
    pace.received();
    let done = tokio::task::spawn_blocking(move || {
        let stream = streams::wanted(&asked);
        match stream {
            Some(stream) => streams::follow(&client, &stream, turn).map(Reply::Stream),
            None => routes::perform(&client, &asked).map(Reply::Answer),
        }
    })
    .await;
    match done {
        Ok(Ok(Reply::Answer(Answer::Json(value)))) => respond(200, "application/json", value.to_string()),
        Ok(Ok(Reply::Answer(Answer::Text(bytes)))) => respond(
            200,
            "text/plain; charset=utf-8",
            String::from_utf8_lossy(&bytes).into_owned(),
        ),
        Ok(Ok(Reply::Stream(stream))) => {
            pace.streams();
            respond(200, "text/event-stream", "").map(|_| Either::Right(stream))
        }
        Ok(Err(failure)) => refuse(failure.status(), failure.message()),
        Err(_) => refuse(500, "internal error"),
    }
}

enum Reply {
    Answer(Answer),
    Stream(EventStream<Hangup>),
}

/// The rest of the request, within limits of size and time.
async fn receive(request: Request<Incoming>) -> Result<Asked, (u16, &'static str)> {
    let (parts, body) = request.into_parts();
    let body = match read_body(body, BODY_LIMIT).await {
        Ok(body) => body,
        Err(BodyFault::TooLarge) => return Err((400, "too large")),
        Err(BodyFault::Broken) => return Err((400, "malformed message")),
    };
    let is_json = is_json(&values(&parts.headers, CONTENT_TYPE));
    let body = parse(&body, is_json)?;
    Ok(Asked {
        method: parts.method,
        path: parts.uri.path().to_owned(),
        query: parts.uri.query().unwrap_or_default().to_owned(),
        last_event: parts
            .headers
            .get("last-event-id")
            .and_then(|id| id.to_str().ok()?.parse().ok()),
        body,
    })
}

/// A form of another page can send text, but not with this type.
fn parse(body: &Bytes, is_json: bool) -> Result<serde_json::Value, (u16, &'static str)> {
    if body.is_empty() {
        return Ok(json!({}));
    }
    if !is_json {
        return Err((400, "invalid content type: must be application/json"));
    }
    serde_json::from_slice(body).map_err(|_| (400, "invalid JSON"))
}

fn refuse(status: u16, text: &str) -> Response<Content> {
    respond(status, "application/json", json!({ "error": text }).to_string())
}

fn respond(status: u16, kind: &str, body: impl Into<Bytes>) -> Response<Content> {
    let mut headers = vec![
        ("content-type", kind),
        ("content-security-policy", POLICY),
        ("x-frame-options", "DENY"),
    ];
    headers.extend(PROTECTION);
    short(status, &headers, body).map(Either::Left)
}
