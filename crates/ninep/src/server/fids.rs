//! The fids of a connection.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use super::directory::Listing;
use super::{AuthFile, Node, OpenFile};
use crate::error::Refusal;

/// What an open fid is.
pub(super) enum Opened {
    File(Box<dyn OpenFile>),
    Directory(Listing),
}

/// An open fid and what it may do.
pub(super) struct Open {
    pub(super) what: Opened,
    pub(super) read: bool,
    pub(super) write: bool,
    pub(super) append: bool,
    pub(super) remove_on_close: bool,
}

/// What a fid stands for.
#[derive(Clone)]
pub(super) enum Target {
    Node(Arc<dyn Node>),
    Auth(Arc<dyn AuthFile>),
}

pub(super) struct Fid {
    target: Mutex<Target>,
    is_open: AtomicBool,
    /// Held by the request that works on the open file, so that requests keep their order.
    pub(super) open: tokio::sync::Mutex<Option<Open>>,
}

impl Fid {
    pub(super) fn new(target: Target) -> Arc<Self> {
        Arc::new(Fid {
            target: Mutex::new(target),
            is_open: AtomicBool::new(false),
            open: tokio::sync::Mutex::new(None),
        })
    }

    pub(super) fn target(&self) -> Target {
        self.target
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
            .clone()
    }

    pub(super) fn move_to(&self, target: Target) {
        *self
            .target
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner) = target;
    }

    pub(super) fn node(&self) -> Result<Arc<dyn Node>, Refusal> {
        match self.target() {
            Target::Node(node) => Ok(node),
            Target::Auth(_) => Err(Refusal::PERMISSION_DENIED),
        }
    }

    pub(super) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Acquire)
    }

    /// Claim the right to open; false if somebody has it.
    pub(super) fn claim(&self) -> bool {
        !self.is_open.swap(true, Ordering::AcqRel)
    }

    pub(super) fn unclaim(&self) {
        self.is_open.store(false, Ordering::Release);
    }
}

#[derive(Default)]
pub(super) struct Fids {
    map: HashMap<u32, Arc<Fid>>,
}

impl Fids {
    pub(super) fn get(&self, number: u32) -> Result<Arc<Fid>, Refusal> {
        self.map.get(&number).cloned().ok_or(Refusal::BAD_FID)
    }

    /// Whether `number` may be given to a new fid.
    pub(super) fn check_free(&self, number: u32, limit: usize) -> Result<(), Refusal> {
        if number == crate::NOFID {
            return Err(Refusal::BAD_FID);
        }
        if self.map.contains_key(&number) {
            return Err(Refusal::DUPLICATE_FID);
        }
        if self.map.len() >= limit {
            Err(Refusal::TOO_MANY_FIDS)
        } else {
            Ok(())
        }
    }

    pub(super) fn insert(&mut self, number: u32, fid: Arc<Fid>) {
        self.map.insert(number, fid);
    }

    pub(super) fn remove(&mut self, number: u32) -> Result<Arc<Fid>, Refusal> {
        self.map.remove(&number).ok_or(Refusal::BAD_FID)
    }

    pub(super) fn clear(&mut self) {
        self.map.clear();
    }
}
