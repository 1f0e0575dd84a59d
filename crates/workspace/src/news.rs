//! News from outside the image that become announcements in it: of a hosted loop, of agents.
//!
//! Whoever has news never waits. When the node is slow the oldest are dropped, and that is said once.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use beamtalk_etf::Term;
use tokio::sync::Notify;

use crate::image::Phase;
use crate::workspace::Workspace;

/// How many may wait for the node.
const LIMIT: usize = 10_000;
/// How many go in one frame.
const BATCH: usize = 200;
/// The longest text that can be the name of an atom, in bytes to be safe.
const ATOM: usize = 255;

/// One announcement: its class and its fields.
#[derive(Clone, Debug)]
pub(crate) struct Item {
    class: &'static str,
    fields: Vec<(&'static str, Term)>,
}

impl Item {
    pub(crate) fn new<const N: usize>(class: &'static str, fields: [(&'static str, Term); N]) -> Self {
        Self {
            class,
            fields: fields.into(),
        }
    }

    fn term(self) -> Term {
        let fields = self
            .fields
            .into_iter()
            .map(|(name, value)| (Term::atom(name), value));
        Term::Tuple(vec![Term::atom(self.class), Term::Map(fields.collect())])
    }
}

/// A Symbol; what is too long to be one stays a String.
pub(crate) fn symbol(text: &str) -> Term {
    if text.len() > ATOM {
        return Term::binary(text);
    }
    Term::atom(text)
}

pub(crate) fn integer(number: Option<impl Into<i64>>) -> Term {
    number.map_or_else(|| Term::atom("nil"), |number| Term::Integer(number.into()))
}

#[derive(Default)]
struct Waiting {
    items: VecDeque<Item>,
    dropped: u64,
}

/// Where news are put, by any thread.
#[derive(Clone, Default)]
pub(crate) struct News {
    waiting: Arc<Mutex<Waiting>>,
    arrived: Arc<Notify>,
}

impl News {
    pub(crate) fn put(&self, item: Item) {
        let mut waiting = self.lock();
        if waiting.items.len() == LIMIT {
            waiting.items.pop_front();
            waiting.dropped += 1;
        }
        waiting.items.push_back(item);
        drop(waiting);
        self.arrived.notify_one();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn take(&self) -> (Vec<Item>, u64) {
        let mut waiting = self.lock();
        let count = waiting.items.len().min(BATCH);
        let items = waiting.items.drain(..count).collect();
        (items, std::mem::take(&mut waiting.dropped))
    }

    /// Hand everything to the node for as long as the workspace lives. What happens while there is no node is not
    /// announced in the next one: nobody has subscribed there yet.
    pub(crate) async fn deliver(self, workspace: Rc<Workspace>) {
        loop {
            let (items, dropped) = self.take();
            if dropped > 0 {
                tracing::warn!("{dropped} announcements were dropped: the node is slow");
            }
            if items.is_empty() {
                self.arrived.notified().await;
                continue;
            }
            if workspace.image.phase() == Phase::Up
                && let Some(link) = workspace.image.link()
            {
                let items = Term::list(items.into_iter().map(Item::term));
                link.control("announce", crate::terms::map([("items", items)]));
            }
            tokio::task::yield_now().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_dropped_and_counted() {
        let news = News::default();
        for number in 0..LIMIT + 3 {
            let number = i64::try_from(number).unwrap_or_default();
            news.put(Item::new("LoopReloadSent", [("number", Term::Integer(number))]));
        }
        let (items, dropped) = news.take();
        assert_eq!((items.len(), dropped), (BATCH, 3));
        assert_eq!(items[0].fields[0].1, Term::Integer(3));
        assert_eq!(news.take().1, 0, "said once");
    }

    #[test]
    fn a_text_too_long_for_a_symbol_stays_text() {
        assert_eq!(symbol("web"), Term::atom("web"));
        let long = "x".repeat(300);
        assert_eq!(symbol(&long), Term::binary(&long));
    }
}
