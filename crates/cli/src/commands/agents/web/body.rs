//! What an answer carries: bytes that are there, or a stream of pieces to come.

use std::convert::Infallible;
use std::os::unix::net::UnixStream;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper::body::{Body, Bytes, Frame};
use tokio::sync::mpsc;

pub(super) enum Content {
    Bytes(Option<Bytes>),
    Stream(Following),
}

/// A followed file. Dropped with the connection of the browser, it ends the one to the daemon,
/// and with it the thread that waits there.
pub(super) struct Following {
    pub(super) pieces: mpsc::Receiver<Bytes>,
    pub(super) socket: UnixStream,
}

impl Drop for Following {
    fn drop(&mut self) {
        // A socket that is closed already needs no end.
        drop(self.socket.shutdown(std::net::Shutdown::Both));
    }
}

impl From<Vec<u8>> for Content {
    fn from(bytes: Vec<u8>) -> Self {
        Content::Bytes(Some(Bytes::from(bytes)))
    }
}

impl Body for Content {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match &mut *self {
            Content::Bytes(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Content::Stream(following) => following
                .pieces
                .poll_recv(context)
                .map(|piece| piece.map(|bytes| Ok(Frame::data(bytes)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Content::Bytes(None))
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        match self {
            Content::Bytes(bytes) => {
                hyper::body::SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Content::Stream(_) => hyper::body::SizeHint::default(),
        }
    }
}
