//! The browser reload server: one address, one word.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use http_body_util::{Either, Full};
use hyper::body::{Body, Bytes, Frame, Incoming};
use hyper::{Method, Request, Response};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc};

use crate::events::gate::is_host_allowed;
use crate::http::{Limits, Pace, hosts, serve, short};

/// The path of the stream.
pub(crate) const PATH: &str = "/browser-events";
/// A listener further behind than this loses the oldest.
const BACKLOG: usize = 16;
const STREAMS: usize = 64;
const LIMITS: Limits = Limits {
    strangers: 32,
    admitted: STREAMS,
};
const SILENCE: Duration = Duration::from_secs(15);

/// Where to say that browsers should reload.
pub(crate) fn channel() -> broadcast::Sender<()> {
    broadcast::Sender::new(BACKLOG)
}

type Answer = Response<Either<Full<Bytes>, EventStream>>;

/// Serve streams until dropped.
pub(crate) async fn run(listener: TcpListener, local: SocketAddr, reloads: broadcast::Sender<()>) {
    let slots = Arc::new(Semaphore::new(STREAMS));
    serve(listener, LIMITS, move |request, pace| {
        let answer = answer(&request, &pace, local, &reloads, &slots);
        async move { answer }
    })
    .await;
}

fn answer(
    request: &Request<Incoming>,
    pace: &Pace,
    local: SocketAddr,
    reloads: &broadcast::Sender<()>,
    slots: &Arc<Semaphore>,
) -> Answer {
    let refuse =
        |status, headers: &[(&'static str, &str)]| short(status, headers, String::new()).map(Either::Left);
    if !is_host_allowed(&hosts(request), local) {
        return refuse(403, &[]);
    }
    if request.uri().path() != PATH {
        return refuse(404, &[]);
    }
    if request.method() != Method::GET {
        return refuse(405, &[("allow", "GET")]);
    }
    let Ok(slot) = Arc::clone(slots).try_acquire_owned() else {
        return refuse(503, &[]);
    };
    pace.received();
    pace.admit();
    let (frames, stream) = mpsc::channel(1);
    tokio::spawn(pump(reloads.subscribe(), frames));
    let headers = [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        ("access-control-allow-origin", "*"),
    ];
    short(200, &headers, String::new()).map(|_| {
        Either::Right(EventStream {
            frames: stream,
            _slot: slot,
        })
    })
}

/// Feed one stream until its reader or the server is gone.
async fn pump(mut reloads: broadcast::Receiver<()>, frames: mpsc::Sender<Bytes>) {
    loop {
        let text = tokio::select! {
            heard = reloads.recv() => match heard {
                Ok(()) => "data: reload\n\n",
                Err(broadcast::error::RecvError::Lagged(_)) => continue,
                Err(broadcast::error::RecvError::Closed) => return,
            },
            () = tokio::time::sleep(SILENCE) => ":\n\n",
            () = frames.closed() => return,
        };
        if frames.send(Bytes::from_static(text.as_bytes())).await.is_err() {
            return;
        }
    }
}

/// The body of a stream; dropping it gives its place free.
struct EventStream {
    frames: mpsc::Receiver<Bytes>,
    _slot: OwnedSemaphorePermit,
}

impl Body for EventStream {
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
