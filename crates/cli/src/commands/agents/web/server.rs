//! The HTTP around the routes: connections, limits, headers, the page itself.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{AUTHORIZATION, COOKIE, HOST, HeaderName, HeaderValue, ORIGIN};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::{TokioIo, TokioTimer};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use super::super::context::Client;
use super::body::Content;
use super::gate::{Gate, Head};
use super::routes::{self, Answer, Asked};
use super::streams;

/// More connections than this wait.
const CONNECTIONS: usize = 64;
/// The largest request: a context or a message with room for its quotes.
const BODY_LIMIT: usize = 1 << 20;
const HEAD_LIMIT: usize = 16 << 10;
/// How long a client may take to send a request.
const SEND_LIMIT: Duration = Duration::from_secs(10);

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

pub(super) async fn serve(listener: TcpListener, gate: Arc<Gate>, client: Arc<Client>) {
    let slots = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: give others time to close theirs.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let (gate, client) = (Arc::clone(&gate), Arc::clone(&client));
        tokio::spawn(async move {
            connection(stream, gate, client).await;
            drop(slot);
        });
    }
}

async fn connection(stream: TcpStream, gate: Arc<Gate>, client: Arc<Client>) {
    // Answers are short; waiting to fill a packet only delays them.
    drop(stream.set_nodelay(true));
    let service = service_fn(move |request| {
        let (gate, client) = (Arc::clone(&gate), Arc::clone(&client));
        async move { Ok::<_, Infallible>(answer(request, &gate, client).await) }
    });
    // A client that breaks off or breaks the rules ends its own connection only.
    drop(
        hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(SEND_LIMIT)
            .max_header_size(HEAD_LIMIT)
            .max_buf_size(HEAD_LIMIT * 4)
            .serve_connection(TokioIo::new(stream), service)
            .await,
    );
}

fn head_of(request: &Request<Incoming>) -> Head<'_> {
    let all = |name: HeaderName| -> Vec<&[u8]> {
        request
            .headers()
            .get_all(name)
            .iter()
            .map(HeaderValue::as_bytes)
            .collect()
    };
    let mut hosts = all(HOST);
    hosts.extend(
        request
            .uri()
            .authority()
            .map(|authority| authority.as_str().as_bytes()),
    );
    Head {
        hosts,
        origins: all(ORIGIN),
        fetch_sites: all(HeaderName::from_static("sec-fetch-site")),
        authorizations: all(AUTHORIZATION),
        cookies: all(COOKIE),
    }
}

async fn answer(request: Request<Incoming>, gate: &Gate, client: Arc<Client>) -> Response<Content> {
    let head = head_of(&request);
    if !gate.is_for_us(&head) {
        return refuse(403, "permission denied");
    }
    let path = request.uri().path();
    if let Some((_, kind, text)) = PAGE.iter().find(|(known, _, _)| *known == path) {
        return if request.method() == Method::GET {
            respond(200, kind, (*text).to_owned().into_bytes().into())
        } else {
            refuse(405, "not supported")
        };
    }
    if path == "/api/login" && request.method() == Method::POST {
        let Some(cookie) = gate.exchange(&head) else {
            return refuse(403, "authentication failed");
        };
        let mut response = respond(204, "application/json", Vec::new().into());
        if let Ok(cookie) = HeaderValue::from_str(&cookie) {
            response.headers_mut().insert(hyper::header::SET_COOKIE, cookie);
        }
        return response;
    }
    if !gate.is_known(&head) {
        return refuse(403, "authentication required");
    }
    let asked = match receive(request).await {
        Ok(asked) => asked,
        Err((status, text)) => return refuse(status, text),
    };
    let done = tokio::task::spawn_blocking(move || {
        let stream = streams::wanted(&asked);
        match stream {
            Some(stream) => streams::follow(&client, &stream).map(Reply::Stream),
            None => routes::perform(&client, &asked).map(Reply::Answer),
        }
    })
    .await;
    match done {
        Ok(Ok(Reply::Answer(Answer::Json(value)))) => {
            respond(200, "application/json", value.to_string().into_bytes().into())
        }
        Ok(Ok(Reply::Answer(Answer::Text(bytes)))) => respond(
            200,
            "text/plain; charset=utf-8",
            String::from_utf8_lossy(&bytes).into_owned().into_bytes().into(),
        ),
        Ok(Ok(Reply::Stream(following))) => respond(200, "text/event-stream", Content::Stream(following)),
        Ok(Err(failure)) => refuse(failure.status(), failure.message()),
        Err(_) => refuse(500, "internal error"),
    }
}

enum Reply {
    Answer(Answer),
    Stream(super::body::Following),
}

/// The rest of the request, within limits of size and time.
async fn receive(request: Request<Incoming>) -> Result<Asked, (u16, &'static str)> {
    let (parts, body) = request.into_parts();
    let body = match tokio::time::timeout(SEND_LIMIT, Limited::new(body, BODY_LIMIT).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => return Err((400, "too large")),
        Ok(Err(_)) | Err(_) => return Err((400, "malformed message")),
    };
    let is_json = parts
        .headers
        .get(hyper::header::CONTENT_TYPE)
        .and_then(|kind| kind.to_str().ok())
        .is_some_and(|kind| kind.split(';').next().unwrap_or_default().trim() == "application/json");
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
    let body = json!({ "error": text }).to_string().into_bytes();
    respond(status, "application/json", body.into())
}

fn respond(status: u16, kind: &str, content: Content) -> Response<Content> {
    let mut response = Response::new(content);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in [
        ("content-type", kind),
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("x-frame-options", "DENY"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("cache-control", "no-store"),
    ] {
        if let Ok(value) = HeaderValue::from_str(value) {
            response.headers_mut().insert(name, value);
        }
    }
    response
}
