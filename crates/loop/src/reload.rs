//! The browser reload server: one address, one word.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use beamtalk_http::{EventStream, Limits, Pace, hosts, is_host_allowed, serve, short};
use http_body_util::{Either, Full};
use hyper::body::{Bytes, Incoming};
use hyper::{Method, Request, Response};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, broadcast, mpsc};

use crate::events::gate;

/// The path of the stream.
pub(crate) const PATH: &str = "/browser-events";
/// A listener further behind than this loses the oldest.
const BACKLOG: usize = 16;
const STREAMS: usize = 64;
const LIMITS: Limits = Limits {
    strangers: 32,
    admitted: STREAMS,
    ..gate::LIMITS
};
const SILENCE: Duration = Duration::from_secs(15);

/// Where to say that browsers should reload.
pub(crate) fn channel() -> broadcast::Sender<()> {
    broadcast::Sender::new(BACKLOG)
}

type Answer = Response<Either<Full<Bytes>, EventStream<OwnedSemaphorePermit>>>;

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
    pace.streams();
    pace.admit();
    let (frames, stream) = mpsc::channel(1);
    tokio::spawn(pump(reloads.subscribe(), frames));
    let headers = [
        ("content-type", "text/event-stream"),
        ("cache-control", "no-cache"),
        ("access-control-allow-origin", "*"),
    ];
    short(200, &headers, String::new()).map(|_| Either::Right(EventStream::new(stream, slot)))
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
