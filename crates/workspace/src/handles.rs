//! Handles: sessions that belong to a principal instead of a connection, so that variables of an AI client outlive the
//! process it speaks through. A handle's name says nothing, and to anybody but its owner it does not exist.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::{Rc, Weak};
use std::time::{Duration, Instant};

use beamtalk_wire::answers::HandleInfo;
use beamtalk_wire::{ErrorBody, ErrorKind, limits};

use crate::sessions::Session;

/// How soon whoever opened one works in it.
const FIRST_USE: Duration = Duration::from_secs(10);
const NODE_RESTARTED: &str = "node restarted";

struct Handle {
    name: String,
    principal: String,
    session: Rc<Session>,
    /// Who used it last.
    user: RefCell<Weak<Session>>,
    opened: Instant,
    used: Cell<Instant>,
    /// Nobody has worked in it yet.
    is_new: Cell<bool>,
    /// For one evaluation.
    is_passing: bool,
}

impl Handle {
    /// Whether the client that used it last is still there.
    fn is_attended(&self) -> bool {
        let user = self.user.borrow().upgrade();
        user.is_some_and(|user| user.is_attended())
    }

    /// Whether nothing runs in it, nor is about to.
    fn is_idle(&self) -> bool {
        let is_awaited = self.is_new.get() && self.opened.elapsed() < FIRST_USE;
        !is_awaited && !self.session.is_busy()
    }
}

/// One that is no more.
struct Ended {
    name: String,
    principal: String,
    reason: &'static str,
}

#[derive(Default)]
pub(crate) struct Handles {
    live: RefCell<Vec<Handle>>,
    ended: RefCell<VecDeque<Ended>>,
}

/// Who may use what a session opened.
pub(crate) fn principal(session: &Session) -> String {
    let auth = session.auth.borrow();
    if auth.starts_with("token:") || auth.starts_with("session:") {
        auth.clone()
    } else {
        "owner".to_owned()
    }
}

impl Handles {
    /// Keep a session under a new name, for the client that has the other one.
    pub(crate) fn keep(
        &self,
        user: &Rc<Session>,
        session: Rc<Session>,
        is_passing: bool,
    ) -> Result<String, ErrorBody> {
        let bytes = beamtalk_storage::random_bytes::<16>()
            .map_err(|cause| ErrorBody::new(ErrorKind::InternalError, cause.to_string()))?;
        let name = format!("ev_{}", beamtalk_storage::base64url(&bytes));
        let now = Instant::now();
        self.live.borrow_mut().push(Handle {
            name: name.clone(),
            principal: principal(user),
            session,
            user: RefCell::new(Rc::downgrade(user)),
            opened: now,
            used: Cell::new(now),
            is_new: Cell::new(true),
            is_passing,
        });
        Ok(name)
    }

    /// Room for one more of this principal: the handle that was idle longest goes, of those whose client has left if there
    /// are any, and never one that runs.
    pub(crate) fn make_room(&self, principal: &str) -> Result<Option<Rc<Session>>, ErrorBody> {
        let live = self.live.borrow();
        let kept = || live.iter().filter(|handle| !handle.is_passing);
        let own = kept().filter(|handle| handle.principal == principal).count();
        if own < limits::HANDLES && kept().count() < limits::ALL_HANDLES {
            return Ok(None);
        }
        // Others' handles go only where the workspace is full and one has none that could.
        let turn = |handle: &&Handle| (handle.is_attended(), handle.used.get());
        let oldest = kept()
            .filter(|handle| handle.principal == principal)
            .filter(|handle| handle.is_idle())
            .min_by_key(turn);
        let oldest = oldest.or_else(|| {
            kept()
                .filter(|_| own < limits::HANDLES)
                .filter(|handle| handle.is_idle())
                .min_by_key(turn)
        });
        let name = oldest.map(|handle| handle.name.clone());
        drop(live);
        match name {
            Some(name) => Ok(self.end(&name, "made room")),
            None => Err(ErrorBody::new(
                ErrorKind::Busy,
                format!("all {} handles are at work", limits::HANDLES),
            )
            .hint("interrupt or close one of them")),
        }
    }

    /// The session behind a name, for a client of its owner.
    pub(crate) fn find(
        &self,
        user: &Rc<Session>,
        name: &str,
        node_start: u64,
    ) -> Result<Rc<Session>, ErrorBody> {
        let principal = principal(user);
        let live = self.live.borrow();
        if let Some(handle) = live
            .iter()
            .find(|handle| handle.name == name && handle.principal == principal)
        {
            if handle.session.node_start.get() == node_start {
                handle.used.set(Instant::now());
                handle.is_new.set(false);
                *handle.user.borrow_mut() = Rc::downgrade(user);
                return Ok(handle.session.clone());
            }
            drop(live);
            self.end(name, NODE_RESTARTED);
            return Err(node_restarted());
        }
        let ended = self.ended.borrow();
        match ended
            .iter()
            .find(|ended| ended.name == name && ended.principal == principal)
        {
            Some(ended) => Err(expired(ended.reason)),
            None => Err(not_found()),
        }
    }

    /// Forget a handle; its session is left to the caller to end.
    pub(crate) fn end(&self, name: &str, reason: &'static str) -> Option<Rc<Session>> {
        let mut live = self.live.borrow_mut();
        let place = live.iter().position(|handle| handle.name == name)?;
        let handle = live.remove(place);
        if !handle.is_passing {
            let mut ended = self.ended.borrow_mut();
            if ended.len() >= limits::ENDED_HANDLES {
                ended.pop_front();
            }
            ended.push_back(Ended {
                name: handle.name,
                principal: handle.principal,
                reason,
            });
        }
        Some(handle.session)
    }

    /// The name of a session that was made for one evaluation.
    pub(crate) fn passing(&self, session: &Session) -> Option<String> {
        let live = self.live.borrow();
        let found = live
            .iter()
            .find(|handle| handle.is_passing && handle.session.id == session.id);
        found.map(|handle| handle.name.clone())
    }

    /// Take out those whose time is over.
    pub(crate) fn expired(&self, idle: Duration) -> Vec<Rc<Session>> {
        let is_over = |handle: &Handle| {
            let is_idle = handle.used.get().elapsed() >= idle && !handle.session.is_busy();
            is_idle || handle.opened.elapsed() >= limits::HANDLE_AGE
        };
        let over = |handle: &Handle| (!handle.is_passing && is_over(handle)).then(|| handle.name.clone());
        let names: Vec<String> = self.live.borrow().iter().filter_map(over).collect();
        names.iter().filter_map(|name| self.end(name, "idle")).collect()
    }

    /// Take out those of a principal whose credentials are gone.
    pub(crate) fn forget(&self, is_concerned: impl Fn(&str) -> bool) -> Vec<Rc<Session>> {
        let concerned = |handle: &Handle| is_concerned(&handle.principal).then(|| handle.name.clone());
        let names: Vec<String> = self.live.borrow().iter().filter_map(concerned).collect();
        names.iter().filter_map(|name| self.end(name, "closed")).collect()
    }

    pub(crate) fn describe(&self, principal: &str) -> Vec<HandleInfo> {
        let live = self.live.borrow();
        live.iter()
            .filter(|handle| handle.principal == principal)
            .map(|handle| HandleInfo {
                handle: handle.name.clone(),
                busy: handle.session.is_busy(),
                idle_s: handle.used.get().elapsed().as_secs(),
            })
            .collect()
    }
}

fn not_found() -> ErrorBody {
    ErrorBody::new(ErrorKind::SessionNotFound, "there is no such session")
        .hint("call evaluate with session \"new\"")
}

/// The node a handle was of is no more, and its variables with it.
pub(crate) fn node_restarted() -> ErrorBody {
    expired(NODE_RESTARTED)
}

fn expired(reason: &str) -> ErrorBody {
    ErrorBody::new(
        ErrorKind::SessionExpired,
        format!("this session has ended: {reason}"),
    )
    .hint("call evaluate with session \"new\"")
    .detail("reason", reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sessions::{Newcomer, Sessions};
    use beamtalk_wire::{ClientKind, Role};

    fn client(sessions: &Sessions, auth: &str) -> Rc<Session> {
        let session = sessions.add(Newcomer {
            client: ClientKind::Mcp,
            role: Role::Owner,
            auth: auth.to_owned(),
            peer: "127.0.0.1:1".to_owned(),
            connection: 1,
            keeps: false,
            taken: Vec::new(),
        });
        session.expect("random")
    }

    fn opened(handles: &Handles, sessions: &Sessions, user: &Rc<Session>) -> String {
        drop(handles.make_room(&principal(user)).expect("room"));
        let session = client(sessions, "cookie");
        let name = handles.keep(user, session, false).expect("random");
        assert!(handles.find(user, &name, 0).is_ok());
        name
    }

    #[test]
    fn a_handle_exists_for_its_owner_only() {
        let (handles, sessions) = (Handles::default(), Sessions::default());
        let (owner, other) = (client(&sessions, "cookie"), client(&sessions, "token:ci"));
        let name = opened(&handles, &sessions, &owner);
        assert_eq!(name.len(), 25);
        assert!(handles.find(&owner, &name, 0).is_ok());
        let others = handles.find(&other, &name, 0).err();
        let invented = handles.find(&other, "ev_0123456789012345678901", 0).err();
        assert_eq!(others, invented);
        assert_eq!(others.expect("an error").kind, ErrorKind::SessionNotFound);
    }

    #[test]
    fn the_one_idle_longest_makes_room_and_says_so() {
        let (handles, sessions) = (Handles::default(), Sessions::default());
        let owner = client(&sessions, "cookie");
        let first = opened(&handles, &sessions, &owner);
        for _ in 0..limits::HANDLES {
            opened(&handles, &sessions, &owner);
        }
        let error = handles.find(&owner, &first, 0).err().expect("gone");
        assert_eq!(error.kind, ErrorKind::SessionExpired);
        assert_eq!(error.details["reason"], "made room");
        assert_eq!(handles.describe("owner").len(), limits::HANDLES);
    }

    #[test]
    fn one_that_was_just_opened_makes_no_room() {
        let (handles, sessions) = (Handles::default(), Sessions::default());
        let owner = client(&sessions, "cookie");
        for _ in 0..limits::HANDLES {
            let session = client(&sessions, "cookie");
            handles.keep(&owner, session, false).expect("random");
        }
        let error = handles.make_room("owner").err().expect("no room");
        assert_eq!(error.kind, ErrorKind::Busy);
    }

    #[test]
    fn clients_that_left_make_room_for_those_that_work() {
        let (handles, sessions) = (Handles::default(), Sessions::default());
        let works = client(&sessions, "cookie");
        let first = opened(&handles, &sessions, &works);
        for turn in 0..3 * limits::HANDLES {
            let passes = client(&sessions, "cookie");
            opened(&handles, &sessions, &passes);
            // In order, or because the connection broke.
            match turn % 2 {
                0 => drop(sessions.remove(&passes.id)),
                _ => passes.leave(1),
            }
        }
        assert!(handles.find(&works, &first, 0).is_ok());
    }

    #[test]
    fn a_node_that_started_again_ends_handles() {
        let (handles, sessions) = (Handles::default(), Sessions::default());
        let owner = client(&sessions, "cookie");
        let name = opened(&handles, &sessions, &owner);
        for _ in 0..2 {
            let error = handles.find(&owner, &name, 2).err().expect("gone");
            assert_eq!(error.details["reason"], "node restarted");
        }
    }

    #[test]
    fn credentials_that_are_gone_take_their_handles_along() {
        let (handles, sessions) = (Handles::default(), Sessions::default());
        let (owner, other) = (client(&sessions, "cookie"), client(&sessions, "token:ci"));
        let own = opened(&handles, &sessions, &owner);
        let others = opened(&handles, &sessions, &other);
        assert_eq!(handles.forget(|principal| principal == "token:ci").len(), 1);
        assert!(handles.find(&owner, &own, 0).is_ok());
        assert!(handles.find(&other, &others, 0).is_err());
    }
}
