//! Answers: short ones, and streams of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

use http_body_util::Full;
use hyper::body::{Body, Bytes, Frame};
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use tokio::sync::mpsc;

/// Headers of every answer a browser may show: nothing guessed, kept, framed into others or told to them.
pub const PROTECTION: [(&str, &str); 5] = [
    ("x-content-type-options", "nosniff"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("cache-control", "no-store"),
];

/// A short answer.
pub fn short(status: u16, headers: &[(&'static str, &str)], body: impl Into<Bytes>) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        set(&mut response, name, value);
    }
    response
}

/// Add a header; a value that cannot be one is left out.
pub fn set<B>(response: &mut Response<B>, name: &'static str, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response
            .headers_mut()
            .insert(HeaderName::from_static(name), value);
    }
}

/// The body of a stream. What is held for it is dropped when the reader is gone.
pub struct EventStream<H> {
    frames: mpsc::Receiver<Bytes>,
    _held: H,
}

impl<H> EventStream<H> {
    pub fn new(frames: mpsc::Receiver<Bytes>, held: H) -> Self {
        Self { frames, _held: held }
    }
}

impl<H: Unpin> Body for EventStream<H> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.frames
            .poll_recv(context)
            .map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
    }
}
