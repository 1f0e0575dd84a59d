//! Requests that can be stopped before they run in the node: who gives one up while it waits or is compiled is heard.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use beamtalk_wire::{ErrorBody, ErrorKind};
use tokio::sync::Notify;

use crate::sessions::ConnectionId;

type Key = (Option<ConnectionId>, String);

#[derive(Default)]
struct Stop {
    is_wanted: Cell<bool>,
    told: Notify,
}

#[derive(Clone, Default)]
pub(crate) struct Stops(Rc<RefCell<BTreeMap<Key, Rc<Stop>>>>);

impl Stops {
    pub(crate) fn enter(&self, connection: Option<ConnectionId>, id: &str) -> Stoppable {
        let key = (connection, id.to_owned());
        let stop = Rc::new(Stop::default());
        self.0.borrow_mut().insert(key.clone(), stop.clone());
        Stoppable {
            stops: self.clone(),
            key,
            stop,
        }
    }

    /// Stop a request that is open; says whether there is one.
    pub(crate) fn stop(&self, connection: Option<ConnectionId>, id: &str) -> bool {
        let found = self.0.borrow().get(&(connection, id.to_owned())).cloned();
        if let Some(stop) = &found {
            stop.is_wanted.set(true);
            stop.told.notify_one();
        }
        found.is_some()
    }

    /// An error if nobody wants it any more.
    pub(crate) fn check(&self, connection: Option<ConnectionId>, id: &str) -> Result<(), ErrorBody> {
        let stops = self.0.borrow();
        let is_stopped = stops
            .get(&(connection, id.to_owned()))
            .is_some_and(|stop| stop.is_wanted.get());
        if is_stopped { Err(interrupted()) } else { Ok(()) }
    }
}

pub(crate) fn interrupted() -> ErrorBody {
    ErrorBody::new(ErrorKind::Interrupted, "it was interrupted before it ran")
}

/// A request as long as it is open.
pub(crate) struct Stoppable {
    stops: Stops,
    key: Key,
    stop: Rc<Stop>,
}

impl Stoppable {
    /// Ends when somebody wants it stopped.
    pub(crate) async fn stopped(&self) {
        if !self.stop.is_wanted.get() {
            self.stop.told.notified().await;
        }
    }
}

impl Drop for Stoppable {
    fn drop(&mut self) {
        self.stops.0.borrow_mut().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn what_is_open_can_be_stopped_and_nothing_else() {
        let stops = Stops::default();
        let open = stops.enter(Some(1), "a");
        assert!(!stops.stop(Some(2), "a") && !stops.stop(Some(1), "b"));
        assert!(stops.check(Some(1), "a").is_ok());
        assert!(stops.stop(Some(1), "a"));
        open.stopped().await;
        assert!(stops.check(Some(1), "a").is_err());
        drop(open);
        assert!(!stops.stop(Some(1), "a"));
        assert!(stops.check(Some(1), "a").is_ok());
    }
}
