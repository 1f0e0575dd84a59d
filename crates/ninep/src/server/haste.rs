//! A client that asks one thing after the other sends its next request microseconds after an
//! answer. Looking for it a moment longer costs less than going to sleep and being woken.

use std::cell::Cell;
use std::time::{Duration, Instant};

use tokio::net::UnixStream;

/// How soon after an answer a request counts as quick, and how long one is looked for.
const SOON: Duration = Duration::from_micros(20);
/// So many quick requests in a row, and the next is expected to be quick too.
const HABIT: u8 = 8;
/// After so many requests without sleep all others get their turn.
const TURNS: u8 = 32;

thread_local! {
    /// The connection served last; looking makes sense only while it is the only one.
    static LAST: Cell<usize> = const { Cell::new(0) };
    static NEXT: Cell<usize> = const { Cell::new(1) };
}

/// What one connection has learned about its client.
pub(super) struct Haste {
    number: usize,
    quick: u8,
    turns: u8,
    answered: Option<Instant>,
}

impl Default for Haste {
    fn default() -> Self {
        Haste {
            number: NEXT.replace(NEXT.get() + 1),
            quick: 0,
            turns: 0,
            answered: None,
        }
    }
}

impl Haste {
    /// Something was received.
    pub(super) fn arrived(&mut self) {
        let alone = LAST.replace(self.number) == self.number;
        let soon = self.answered.is_some_and(|at| at.elapsed() < SOON * 4);
        self.quick = if alone && soon {
            self.quick.saturating_add(1)
        } else {
            0
        };
    }

    /// Everything received was answered.
    pub(super) fn answered(&mut self) {
        self.answered = Some(Instant::now());
    }

    /// Bytes of the next request, if it is expected soon and does come.
    pub(super) async fn catch(&mut self, stream: &UnixStream, buffer: &mut Vec<u8>) -> Option<usize> {
        if self.quick < HABIT || LAST.get() != self.number {
            return None;
        }
        if self.turns == TURNS {
            self.turns = 0;
            tokio::task::yield_now().await;
            if LAST.get() != self.number {
                return None;
            }
        }
        let began = self.answered?;
        loop {
            let spare = rustix::buffer::spare_capacity(buffer);
            match rustix::net::recv(stream, spare, rustix::net::RecvFlags::DONTWAIT) {
                // The end and every fault are for the ordinary way to find.
                Ok((0, _)) => return None,
                Ok((count, _)) => {
                    self.turns += 1;
                    return Some(count);
                }
                Err(rustix::io::Errno::AGAIN) if began.elapsed() < SOON => std::thread::yield_now(),
                Err(_) => {
                    self.quick = 0;
                    return None;
                }
            }
        }
    }
}
