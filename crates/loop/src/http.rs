//! What both HTTP servers share: who is let in, and the pace a client must keep.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use http_body_util::Full;
use hyper::body::{Body, Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Instant, Sleep};

/// The largest request head, in bytes.
const HEAD_LIMIT: usize = 8 * 1024;
/// How long a client may take to send a head once it has begun.
const HEAD_TIME: Duration = Duration::from_secs(2);
/// How long a client may take to send a request once it has begun.
const SEND_TIME: Duration = Duration::from_secs(5);
/// How long a connection may be silent between requests.
const IDLE_TIME: Duration = Duration::from_secs(15);
/// How much of what is still on its way is read after the last answer, and how long: a connection
/// that is closed before would take the answer with it.
const LINGER_BYTES: usize = 64 * 1024;
const LINGER_TIME: Duration = Duration::from_secs(1);

/// How many connections a server holds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Those nothing good is known of. When there are more, the oldest goes, so that newcomers
    /// never wait for strangers.
    pub(crate) strangers: usize,
    /// Those that were admitted. When there are more, the one that has been idle longest goes; as
    /// many requests of theirs are served at once, and more wait.
    pub(crate) admitted: usize,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Idle,
    /// A head is arriving.
    Head,
    /// The head is here.
    Body,
    /// The whole request is here.
    Serving,
}

/// Where a connection stands, shared between its stream, its service and the server.
#[derive(Debug)]
struct Standing {
    stage: Mutex<Stage>,
    number: u64,
    seats: Arc<Seats>,
}

/// A handle to the standing of the connection a request came by.
#[derive(Clone, Debug)]
pub(crate) struct Pace(Arc<Standing>);

impl Pace {
    fn stage(&self) -> Stage {
        *self.0.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, stage: Stage) {
        *self.0.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }

    /// The whole request is here; the time limits rest until the answer is given.
    pub(crate) fn received(&self) {
        self.set(Stage::Serving);
    }

    /// The client is none of the strangers: its connection is not given up for theirs.
    pub(crate) fn admit(&self) {
        self.0.seats.admit(self);
    }

    /// A turn among the admitted, for as long as the answer is held.
    pub(crate) async fn turn(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.0.seats.turns).acquire_owned().await.ok()
    }
}

/// The open connections of a server.
#[derive(Debug)]
struct Seats {
    limits: Limits,
    taken: Mutex<Taken>,
    turns: Arc<Semaphore>,
}

/// By number, which grows: the first is the oldest.
#[derive(Debug, Default)]
struct Taken {
    strangers: BTreeMap<u64, AbortHandle>,
    admitted: BTreeMap<u64, (AbortHandle, Pace)>,
}

impl Seats {
    fn taken(&self) -> std::sync::MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn seat(&self, number: u64, end: AbortHandle) {
        let mut taken = self.taken();
        taken.strangers.insert(number, end);
        if taken.strangers.len() > self.limits.strangers
            && let Some((_, oldest)) = taken.strangers.pop_first()
        {
            oldest.abort();
        }
    }

    fn admit(&self, pace: &Pace) {
        let number = pace.0.number;
        let mut taken = self.taken();
        let Some(end) = taken.strangers.remove(&number) else {
            return;
        };
        taken.admitted.insert(number, (end, pace.clone()));
        if taken.admitted.len() > self.limits.admitted {
            let is_idle = |(&other, (_, pace)): (&u64, &(AbortHandle, Pace))| {
                (other != number && pace.stage() == Stage::Idle).then_some(other)
            };
            let idle = taken.admitted.iter().find_map(is_idle);
            if let Some((end, _)) = idle.and_then(|number| taken.admitted.remove(&number)) {
                end.abort();
            }
        }
    }

    fn leave(&self, number: u64) {
        let mut taken = self.taken();
        taken.strangers.remove(&number);
        taken.admitted.remove(&number);
    }
}

/// Serve connections until dropped.
pub(crate) async fn serve<B, F, S>(listener: TcpListener, limits: Limits, answer: S)
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    F: Future<Output = Response<B>> + Send + 'static,
    S: Fn(Request<Incoming>, Pace) -> F + Clone + Send + 'static,
{
    let seats = Arc::new(Seats {
        limits,
        taken: Mutex::default(),
        turns: Arc::new(Semaphore::new(limits.admitted)),
    });
    // Dropped with this future, and all connections with it.
    let mut open = tokio::task::JoinSet::new();
    let mut number = 0;
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, most likely: give others time to close theirs.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        while open.try_join_next().is_some() {}
        number += 1;
        let pace = Pace(Arc::new(Standing {
            stage: Mutex::default(),
            number,
            seats: Arc::clone(&seats),
        }));
        let (answer, leaving) = (answer.clone(), Leaving(Arc::clone(&seats), number));
        let end = open.spawn(async move {
            connection(stream, pace, answer).await;
            drop(leaving);
        });
        seats.seat(number, end);
    }
}

/// Gives the seat of a connection free, however it ends.
struct Leaving(Arc<Seats>, u64);

impl Drop for Leaving {
    fn drop(&mut self) {
        self.0.leave(self.1);
    }
}

async fn connection<B, F, S>(stream: TcpStream, pace: Pace, answer: S)
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    F: Future<Output = Response<B>> + Send + 'static,
    S: Fn(Request<Incoming>, Pace) -> F + Clone + Send + 'static,
{
    // Answers are short; waiting to fill a packet only delays them.
    drop(stream.set_nodelay(true));
    let paced = Paced {
        stream,
        pace: pace.clone(),
        timed: Stage::Idle,
        began: Instant::now(),
        limit: Box::pin(tokio::time::sleep(IDLE_TIME)),
        lingered: None,
    };
    let service = service_fn(move |request| {
        let (answer, pace) = (answer.clone(), pace.clone());
        pace.set(Stage::Body);
        async move {
            let response = answer(request, pace.clone()).await;
            pace.set(Stage::Idle);
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

/// A stream whose reads fail when the client is too slow, and which takes leave politely.
struct Paced {
    stream: TcpStream,
    pace: Pace,
    /// What `limit` is set for.
    timed: Stage,
    /// When the request under way began to arrive.
    began: Instant,
    limit: Pin<Box<Sleep>>,
    /// How much was read since the last answer, once there is one.
    lingered: Option<usize>,
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(context, buffer);
        if self.pace.stage() == Stage::Idle && read.is_ready() && buffer.filled().len() > before {
            self.pace.set(Stage::Head);
            self.began = Instant::now();
        }
        let now = self.pace.stage();
        if now != self.timed {
            self.timed = now;
            let due = match now {
                Stage::Head => self.began + HEAD_TIME,
                Stage::Body => self.began + SEND_TIME,
                Stage::Idle | Stage::Serving => Instant::now() + IDLE_TIME,
            };
            self.limit.as_mut().reset(due);
        }
        if read.is_pending() && now != Stage::Serving && self.limit.as_mut().poll(context).is_ready() {
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

    /// After the last answer: no more from here, but what the client is still sending is read for
    /// a while, since closing on it would make the system throw the answer away.
    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        if self.lingered.is_none() {
            ready!(Pin::new(&mut self.stream).poll_shutdown(context))?;
            self.lingered = Some(0);
            self.limit.as_mut().reset(Instant::now() + LINGER_TIME);
        }
        let mut bytes = [0; 8 * 1024];
        while self.lingered.is_some_and(|count| count < LINGER_BYTES)
            && self.limit.as_mut().poll(context).is_pending()
        {
            let mut buffer = ReadBuf::new(&mut bytes);
            let read = ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer));
            if read.is_err() || buffer.filled().is_empty() {
                break;
            }
            let count = buffer.filled().len();
            self.lingered = self.lingered.map(|before| before + count);
        }
        Poll::Ready(Ok(()))
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
#[expect(clippy::disallowed_methods, reason = "the events of the loop")]
pub(crate) async fn bind(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let local = listener.local_addr()?;
    Ok((listener, local))
}
