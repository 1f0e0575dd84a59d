//! What both HTTP servers share: accepting with a limit, and the pace a client must keep.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep};

/// The largest request head, in bytes.
const HEAD_LIMIT: usize = 8 * 1024;
/// How long a client may take to send a request once it has begun.
const SEND_LIMIT: Duration = Duration::from_secs(5);
/// How long a connection may be silent between requests.
const IDLE_LIMIT: Duration = Duration::from_secs(15);

const IDLE: u8 = 0;
const RECEIVING: u8 = 1;
const SERVING: u8 = 2;

/// Where a connection stands, shared between its stream and its service.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pace(Arc<AtomicU8>);

impl Pace {
    /// The whole request is here; the time limits rest until the answer is given.
    pub(crate) fn received(&self) {
        self.0.store(SERVING, Ordering::Relaxed);
    }

    fn answered(&self) {
        self.0.store(IDLE, Ordering::Relaxed);
    }
}

/// Serve connections until dropped. At most `connections` at once; more wait to be accepted.
pub(crate) async fn serve<B, F, S>(listener: TcpListener, connections: usize, answer: S)
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    F: Future<Output = Response<B>> + Send + 'static,
    S: Fn(Request<Incoming>, Pace) -> F + Clone + Send + 'static,
{
    let slots = Arc::new(Semaphore::new(connections));
    // Dropped with this future, and all connections with it.
    let mut open = tokio::task::JoinSet::new();
    loop {
        let Ok(slot) = Arc::clone(&slots).acquire_owned().await else {
            return;
        };
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: give others time to close theirs.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        while open.try_join_next().is_some() {}
        let answer = answer.clone();
        open.spawn(async move {
            connection(stream, answer).await;
            drop(slot);
        });
    }
}

async fn connection<B, F, S>(stream: TcpStream, answer: S)
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    F: Future<Output = Response<B>> + Send + 'static,
    S: Fn(Request<Incoming>, Pace) -> F + Clone + Send + 'static,
{
    // Answers are short; waiting to fill a packet only delays them.
    drop(stream.set_nodelay(true));
    let pace = Pace::default();
    let paced = Paced {
        stream,
        pace: pace.clone(),
        timed: IDLE,
        limit: Box::pin(tokio::time::sleep(IDLE_LIMIT)),
    };
    let service = service_fn(move |request| {
        let (answer, pace) = (answer.clone(), pace.clone());
        async move {
            let response = answer(request, pace.clone()).await;
            pace.answered();
            Ok::<_, Infallible>(response)
        }
    });
    // A client that breaks off or breaks the rules ends its own connection only.
    drop(
        hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_header_size(HEAD_LIMIT)
            .max_buf_size(HEAD_LIMIT * 2)
            .serve_connection(TokioIo::new(paced), service)
            .await,
    );
}

/// A stream whose reads fail when the client is too slow.
struct Paced {
    stream: TcpStream,
    pace: Pace,
    /// What `limit` is set for.
    timed: u8,
    limit: Pin<Box<Sleep>>,
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        let now = self.pace.0.load(Ordering::Relaxed);
        if now == IDLE && read.is_ready() && buffer.filled().len() > before {
            self.pace.0.store(RECEIVING, Ordering::Relaxed);
        }
        let now = self.pace.0.load(Ordering::Relaxed);
        if now != self.timed {
            self.timed = now;
            let limit = if now == RECEIVING { SEND_LIMIT } else { IDLE_LIMIT };
            self.limit.as_mut().reset(Instant::now() + limit);
        }
        if read.is_pending() && now != SERVING && self.limit.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(std::io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

/// The hosts a request means: its `Host` headers, and an authority in its target.
pub(crate) fn hosts(request: &Request<Incoming>) -> Vec<&[u8]> {
    let named = request
        .headers()
        .get_all(hyper::header::HOST)
        .iter()
        .map(hyper::header::HeaderValue::as_bytes);
    named
        .chain(
            request
                .uri()
                .authority()
                .map(|authority| authority.as_str().as_bytes()),
        )
        .collect()
}

/// A short answer.
pub(crate) fn short(status: u16, headers: &[(&'static str, &str)], body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(Bytes::from(body)));
    *response.status_mut() =
        hyper::StatusCode::from_u16(status).unwrap_or(hyper::StatusCode::INTERNAL_SERVER_ERROR);
    for (name, value) in headers {
        if let Ok(value) = hyper::header::HeaderValue::from_str(value) {
            response.headers_mut().insert(*name, value);
        }
    }
    response
}

/// Bind an address, ready to accept.
pub(crate) async fn bind(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let local = listener.local_addr()?;
    Ok((listener, local))
}
