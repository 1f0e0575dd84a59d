//! Connections that have not authenticated: few, and the oldest makes room.

use std::collections::VecDeque;
use std::sync::Arc;

use tokio::sync::Notify;

use super::server::Shared;

/// The queue of strangers.
#[derive(Default)]
pub(crate) struct Waiting {
    queue: VecDeque<(u64, Arc<Notify>)>,
    next: u64,
}

impl Waiting {
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Let one more wait; the oldest is turned out if there are more than `most`.
    fn enter(&mut self, most: usize) -> (u64, Arc<Notify>) {
        self.next += 1;
        let turned_out = Arc::new(Notify::new());
        self.queue.push_back((self.next, Arc::clone(&turned_out)));
        while self.queue.len() > most {
            if let Some((_, oldest)) = self.queue.pop_front() {
                oldest.notify_one();
            }
        }
        (self.next, turned_out)
    }

    fn leave(&mut self, number: u64) {
        self.queue.retain(|(waiting, _)| *waiting != number);
    }
}

/// The place of one connection; leaves the queue when dropped.
pub(crate) struct Place {
    shared: Arc<Shared>,
    number: u64,
    turned_out: Arc<Notify>,
}

impl Place {
    pub(crate) fn take(shared: &Arc<Shared>, most: usize) -> Self {
        let (number, turned_out) = shared.state().waiting.enter(most);
        Self {
            shared: Arc::clone(shared),
            number,
            turned_out,
        }
    }

    /// Resolves when the connection must make room.
    pub(crate) fn turned_out(&self) -> impl Future<Output = ()> + use<> {
        let turned_out = Arc::clone(&self.turned_out);
        async move { turned_out.notified().await }
    }

    /// The connection authenticated: it waits no longer and cannot be turned out.
    pub(crate) fn leave(&self) {
        self.shared.state().waiting.leave(self.number);
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_oldest_makes_room() {
        let mut waiting = Waiting::default();
        let places: Vec<_> = (0..3).map(|_| waiting.enter(2)).collect();
        places[0].1.notified().await;
        assert_eq!(waiting.len(), 2);
        waiting.leave(places[0].0);
        waiting.leave(places[2].0);
        assert_eq!(waiting.len(), 1);
    }
}
