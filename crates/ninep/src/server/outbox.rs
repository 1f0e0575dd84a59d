//! Replies on their way to the peer.
//!
//! Whoever has a reply writes it to the socket at once if the socket takes it; what is left over
//! waits here for the writer. Small replies share one buffer, large payloads are not copied.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::sync::Mutex;

use tokio::net::UnixStream;
use tokio::sync::Notify;

use crate::message::{Dialect, Payload, Reply};

/// Payloads from this size on travel without being copied.
const WHOLE: usize = 4096;
/// A buffer up to this size is used again.
const KEPT: usize = 4096;
/// How many pieces one system call takes.
const PIECES: usize = 32;

enum Piece {
    Bytes(Vec<u8>, usize),
    Shared(Payload),
}

impl Piece {
    fn rest(&self) -> &[u8] {
        match self {
            Piece::Bytes(bytes, done) => bytes.get(*done..).unwrap_or_default(),
            Piece::Shared(payload) => payload.as_ref(),
        }
    }
}

#[derive(Default)]
struct Queue {
    pieces: VecDeque<Piece>,
    bytes: usize,
    written: u64,
    broken: bool,
}

/// The replies of one connection that the socket has not taken yet.
pub(super) struct Outbox {
    queue: Mutex<Queue>,
    limit: usize,
    pub(super) stuck: Notify,
}

/// What became of the queue after a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Flushed {
    All,
    Waiting,
    Overflow,
    Broken,
}

impl Outbox {
    pub(super) fn new(limit: usize) -> Self {
        Outbox {
            queue: Mutex::new(Queue::default()),
            limit,
            stuck: Notify::new(),
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Queue> {
        self.queue
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    pub(super) fn push(&self, tag: u16, reply: Reply, dialect: Dialect) {
        let mut queue = self.lock();
        let large = match &reply {
            Reply::Read { data } if data.len() >= WHOLE => Some(data.clone()),
            _ => None,
        };
        if !matches!(queue.pieces.back(), Some(Piece::Bytes(bytes, _)) if bytes.len() < 65536) {
            queue.pieces.push_back(Piece::Bytes(Vec::with_capacity(256), 0));
        }
        let Some(Piece::Bytes(buffer, _)) = queue.pieces.back_mut() else {
            return;
        };
        let before = buffer.len();
        let mut shared = 0;
        match &large {
            None => reply.encode(tag, dialect, buffer),
            Some(data) => {
                shared = data.len();
                let size = 11 + data.len() as u32;
                buffer.extend_from_slice(&size.to_le_bytes());
                buffer.push(reply.number());
                buffer.extend_from_slice(&tag.to_le_bytes());
                buffer.extend_from_slice(&(data.len() as u32).to_le_bytes());
            }
        }
        let added = buffer.len() - before;
        if let Some(data) = large {
            queue.pieces.push_back(Piece::Shared(data));
        }
        queue.bytes += added + shared;
    }

    pub(super) fn waiting(&self) -> usize {
        self.lock().bytes
    }

    /// Bytes written in all, to see progress.
    pub(super) fn written(&self) -> u64 {
        self.lock().written
    }

    /// Write what the socket takes without waiting.
    pub(super) fn flush(&self, stream: &UnixStream) -> Flushed {
        let mut queue = self.lock();
        loop {
            if queue.broken {
                return Flushed::Broken;
            }
            if queue.bytes == 0 {
                queue.rest();
                return Flushed::All;
            }
            let outcome = match (queue.pieces.len(), queue.pieces.front()) {
                (1, Some(only)) => stream.try_write(only.rest()),
                _ => {
                    let slices: Vec<IoSlice<'_>> = queue
                        .pieces
                        .iter()
                        .take(PIECES)
                        .map(|piece| IoSlice::new(piece.rest()))
                        .collect();
                    stream.try_write_vectored(&slices)
                }
            };
            match outcome {
                Ok(0) => queue.broken = true,
                Ok(count) => queue.advance(count),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    if queue.bytes > self.limit {
                        return Flushed::Overflow;
                    }
                    self.stuck.notify_one();
                    return Flushed::Waiting;
                }
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => queue.broken = true,
            }
        }
    }
}

impl Queue {
    /// Everything was written: keep one small buffer for the next reply.
    fn rest(&mut self) {
        self.pieces.truncate(1);
        match self.pieces.front_mut() {
            Some(Piece::Bytes(buffer, done)) if buffer.capacity() <= KEPT => {
                buffer.clear();
                *done = 0;
            }
            _ => self.pieces.clear(),
        }
    }

    fn advance(&mut self, mut count: usize) {
        self.bytes -= count.min(self.bytes);
        self.written += count as u64;
        while count > 0 {
            let Some(piece) = self.pieces.front_mut() else {
                return;
            };
            let here = piece.rest().len();
            if count >= here && self.bytes > 0 {
                count -= here;
                self.pieces.pop_front();
                continue;
            }
            if count >= here {
                // The last of all: its buffer may serve again.
                return;
            }
            match piece {
                Piece::Bytes(_, done) => *done += count,
                Piece::Shared(payload) => *payload = std::mem::take(payload).skip(count),
            }
            return;
        }
    }
}
