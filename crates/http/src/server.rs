//! Connections at a pace: who holds a seat, and how long a client may take.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::body::{Body, Bytes, Incoming};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;
use tokio::time::{Instant, Sleep};

/// How much of what is still on its way is read after the last answer, and how long: a connection
/// that is closed before would take the answer with it.
const LINGER_BYTES: usize = 64 * 1024;
const LINGER_TIME: Duration = Duration::from_secs(1);

/// What a server allows.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Those nothing good is known of. When there are more, the oldest goes, so that newcomers
    /// never wait for strangers.
    pub strangers: usize,
    /// Those that were admitted. When there are more, the one that has been idle longest goes; as
    /// many requests of theirs are served at once, and more wait.
    pub admitted: usize,
    /// The largest request head, in bytes.
    pub head_bytes: usize,
    /// How long a client may take to send a head once it has begun.
    pub head_time: Duration,
    /// How long a client may take to send a request once it has begun.
    pub send_time: Duration,
    /// How long a connection may be silent between requests.
    pub idle_time: Duration,
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
    /// The answer is a stream, and nothing more is asked.
    Streaming,
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
pub struct Pace(Arc<Standing>);

impl Pace {
    fn stage(&self) -> Stage {
        *self.0.stage.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, stage: Stage) {
        *self.0.stage.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }

    /// The whole request is here; the time limits rest until the answer is given.
    pub fn received(&self) {
        self.set(Stage::Serving);
    }

    /// The answer is a stream, which lasts for as long as both sides want.
    pub fn streams(&self) {
        self.set(Stage::Streaming);
    }

    /// The client is none of the strangers: its connection is not given up for theirs.
    pub fn admit(&self) {
        self.0.seats.admit(self);
    }

    /// A turn among the admitted, for as long as the answer is held.
    pub async fn turn(&self) -> Option<OwnedSemaphorePermit> {
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

/// Bind an address, ready to accept.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where the servers of this crate listen"
)]
pub async fn bind(address: SocketAddr) -> std::io::Result<(TcpListener, SocketAddr)> {
    let listener = TcpListener::bind(address).await?;
    let local = listener.local_addr()?;
    Ok((listener, local))
}

/// Serve connections until dropped.
pub async fn serve<B, F, S>(listener: TcpListener, limits: Limits, answer: S)
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
    let limits = pace.0.seats.limits;
    let paced = Paced {
        stream,
        pace: pace.clone(),
        timed: Stage::Idle,
        began: Instant::now(),
        limit: Box::pin(tokio::time::sleep(limits.idle_time)),
        lingered: None,
    };
    let service = service_fn(move |request| {
        let (answer, pace) = (answer.clone(), pace.clone());
        pace.set(Stage::Body);
        async move {
            let response = answer(request, pace.clone()).await;
            if pace.stage() != Stage::Streaming {
                pace.set(Stage::Idle);
            }
            Ok::<_, Infallible>(response)
        }
    });
    // A client that breaks off or breaks the rules ends its own connection only.
    drop(
        hyper::server::conn::http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(None)
            .max_header_size(limits.head_bytes)
            .max_buf_size(limits.head_bytes * 2)
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
            let limits = self.pace.0.seats.limits;
            let due = match now {
                Stage::Head => self.began + limits.head_time,
                Stage::Body => self.began + limits.send_time,
                Stage::Idle | Stage::Serving | Stage::Streaming => Instant::now() + limits.idle_time,
            };
            self.limit.as_mut().reset(due);
        }
        let is_timed = !matches!(now, Stage::Serving | Stage::Streaming);
        if read.is_pending() && is_timed && self.limit.as_mut().poll(context).is_ready() {
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

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use hyper::body::Bytes;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpStream;
    use tokio::sync::{Mutex, mpsc};

    use super::{Limits, bind, serve};
    use crate::EventStream;

    const LIMITS: Limits = Limits {
        strangers: 2,
        admitted: 2,
        head_bytes: 8 << 10,
        head_time: Duration::from_secs(2),
        send_time: Duration::from_secs(5),
        idle_time: Duration::from_secs(15),
    };

    async fn read_until(client: &mut TcpStream, end: &str) -> String {
        let mut text = String::new();
        let mut bytes = [0; 512];
        while !text.contains(end) {
            let count = client.read(&mut bytes).await.unwrap();
            assert!(count > 0, "the connection ended after {text:?}");
            text.push_str(&String::from_utf8_lossy(&bytes[..count]));
        }
        text
    }

    /// The clock stands still unless everything waits, so that minutes take no time.
    #[tokio::test(start_paused = true)]
    async fn a_stream_outlives_every_limit_of_time() {
        let (listener, address) = bind(([127, 0, 0, 1], 0).into()).await.unwrap();
        let (sender, receiver) = mpsc::channel::<Bytes>(1);
        let receiver = Arc::new(Mutex::new(Some(receiver)));
        let server = tokio::spawn(serve(listener, LIMITS, move |_, pace| {
            let receiver = Arc::clone(&receiver);
            async move {
                pace.admit();
                pace.streams();
                let frames = receiver.lock().await.take().unwrap();
                hyper::Response::new(EventStream::new(frames, ()))
            }
        }));
        let mut client = TcpStream::connect(address).await.unwrap();
        client
            .write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n")
            .await
            .unwrap();
        for text in ["data: first\n\n", "data: second\n\n"] {
            sender.send(Bytes::from(text)).await.unwrap();
            read_until(&mut client, text).await;
            tokio::time::sleep(Duration::from_mins(2)).await;
        }
        server.abort();
    }
}
