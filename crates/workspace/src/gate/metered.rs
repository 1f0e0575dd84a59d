//! A stream of which a stranger can have only so much read.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// Bytes read at once under a limit.
const CHUNK: usize = 1024;

/// How many bytes may still be read; shared between the stream and whoever lifts the limit.
#[derive(Clone, Debug)]
pub(crate) struct Allowance(Arc<AtomicUsize>);

impl Allowance {
    pub(crate) fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    pub(crate) fn lift(&self) {
        self.0.store(usize::MAX, Ordering::Relaxed);
    }

    pub(crate) fn is_used_up(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// Reads fail once the allowance is used up.
pub(crate) struct Metered<S> {
    stream: S,
    allowance: Allowance,
}

impl<S> Metered<S> {
    pub(crate) fn new(stream: S, allowance: Allowance) -> Self {
        Self { stream, allowance }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Metered<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        let left = self.allowance.0.load(Ordering::Relaxed);
        if left == usize::MAX {
            return Pin::new(&mut self.stream).poll_read(context, buffer);
        }
        if left == 0 {
            return Poll::Ready(Err(std::io::ErrorKind::FileTooLarge.into()));
        }
        let mut part = [0; CHUNK];
        let length = left.min(CHUNK).min(buffer.remaining());
        let mut part = ReadBuf::new(&mut part[..length]);
        let read = Pin::new(&mut self.stream).poll_read(context, &mut part);
        let count = part.filled().len();
        buffer.put_slice(part.filled());
        self.allowance.0.fetch_sub(count, Ordering::Relaxed);
        read
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Metered<S> {
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

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    #[tokio::test]
    async fn no_more_is_read_than_allowed() {
        let (mut client, server) = tokio::io::duplex(64 * 1024);
        client.write_all(&[7; 10_000]).await.unwrap();
        drop(client);
        let allowance = Allowance::new(3_000);
        let mut metered = Metered::new(server, allowance.clone());
        let mut bytes = Vec::new();
        assert!(metered.read_to_end(&mut bytes).await.is_err());
        assert_eq!(bytes, [7; 3_000]);
        assert!(allowance.is_used_up());
        allowance.lift();
        metered.read_to_end(&mut bytes).await.unwrap();
        assert_eq!(bytes, [7; 10_000]);
    }
}
