//! The sessions of a workspace: one client's layer of variables each, living a while longer than its connection.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use beamtalk_mcp::LoopRight;
use beamtalk_wire::answers::SessionInfo;
use beamtalk_wire::{Channel, ClientKind, ErrorBody, ErrorKind, Role, limits};
use tokio::sync::{Mutex, MutexGuard};

use crate::gate::Outgoing;
use crate::kept::Kept;

/// A number that no two connections of a daemon share.
pub(crate) type ConnectionId = u64;

pub(crate) struct Session {
    pub id: String,
    pub client: ClientKind,
    pub role: Role,
    /// `cookie`, `token:NAME`, `browser`.
    pub auth: RefCell<String>,
    pub peer: RefCell<String>,
    connected_at: u64,
    connection: Cell<Option<ConnectionId>>,
    /// Since when nobody is connected.
    left: Cell<Option<Instant>>,
    /// Held by the evaluation that runs.
    turn: Mutex<()>,
    waiting: Cell<usize>,
    /// The client's and the node's number of the evaluation that runs.
    pub running: RefCell<Option<(String, u64)>>,
    /// The connection that asked for it.
    pub runs_for: Cell<Option<ConnectionId>>,
    /// What its code may ask of the loop, where that is not everything.
    pub loop_right: Cell<Option<LoopRight>>,
    /// Variables the compiler has to know.
    names: RefCell<Vec<String>>,
    /// The start of the node in which the session exists.
    pub node_start: Cell<u64>,
    /// What asks for input gets its end.
    pub has_no_input: Cell<bool>,
    /// It is of one node and no other: whoever has it counts on its variables.
    pub ends_with_node: Cell<bool>,
    /// What its client may ask for again.
    pub kept: Option<RefCell<Kept>>,
    /// What its client last listened to.
    pub listened: RefCell<BTreeSet<Channel>>,
    /// The connection it has now.
    outgoing: RefCell<Option<Outgoing>>,
    /// Frames leave in the order of their numbers.
    delivery: Mutex<()>,
}

/// The close code of a connection whose session another one took.
const TAKEN_OVER: u16 = 4002;

impl Session {
    /// Keep a frame and send it, if somebody is there.
    pub(crate) async fn deliver(&self, request: &str, text: &str, is_last: bool) {
        let Some(kept) = &self.kept else { return };
        let _turn = self.delivery.lock().await;
        let text = kept.borrow_mut().keep(request, text, is_last);
        let outgoing = self.outgoing.borrow().clone();
        if let Some(outgoing) = outgoing {
            // Whoever is gone asks for it again.
            let _ = outgoing.send(text).await;
        }
    }

    /// From now on frames go to this connection.
    pub(crate) fn attach(&self, outgoing: &Outgoing) {
        *self.outgoing.borrow_mut() = Some(outgoing.clone());
    }

    /// Whether somebody may have it: of the same kind, role and secret.
    fn is_of(&self, newcomer: &Newcomer) -> bool {
        self.client == newcomer.client
            && self.role == newcomer.role
            && self.kept.is_some() == newcomer.keeps
            && *self.auth.borrow() == newcomer.auth
    }

    pub(crate) fn names(&self) -> Vec<String> {
        self.names.borrow().clone()
    }

    pub(crate) fn set_names(&self, names: Vec<String>) {
        *self.names.borrow_mut() = names;
    }

    /// A connection of the session ended; the session stays for the grace time.
    pub(crate) fn leave(&self, connection: ConnectionId) {
        if self.connection.get() == Some(connection) {
            self.connection.set(None);
            *self.outgoing.borrow_mut() = None;
            self.left.set(Some(Instant::now()));
        }
    }

    /// Whether a newer connection has it.
    pub(crate) fn is_of_another(&self, connection: ConnectionId) -> bool {
        self.connection.get().is_some_and(|own| own != connection)
    }

    /// Whether a client has it.
    pub(crate) fn is_attended(&self) -> bool {
        self.connection.get().is_some()
    }

    pub(crate) fn is_busy(&self) -> bool {
        self.turn.try_lock().is_err()
    }

    /// Wait until no other evaluation of this session runs or came before.
    pub(crate) async fn take_turn(&self) -> Result<MutexGuard<'_, ()>, ErrorBody> {
        if let Ok(turn) = self.turn.try_lock() {
            return Ok(turn);
        }
        if self.waiting.get() >= limits::WAITING_EVALUATIONS {
            return Err(ErrorBody::new(
                ErrorKind::Busy,
                format!(
                    "session {} has {} evaluations waiting",
                    self.id,
                    limits::WAITING_EVALUATIONS
                ),
            )
            .hint("wait for answers, or interrupt the one that runs"));
        }
        self.waiting.set(self.waiting.get() + 1);
        let _counted = Counted(&self.waiting);
        Ok(self.turn.lock().await)
    }
}

/// Counts down also when the one who waits is gone.
struct Counted<'a>(&'a Cell<usize>);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Who wants a session.
pub(crate) struct Newcomer {
    pub client: ClientKind,
    pub role: Role,
    pub auth: String,
    pub peer: String,
    pub connection: ConnectionId,
    /// Wants its frames to be kept.
    pub keeps: bool,
    /// Sessions of others, who may be about to come back to them.
    pub taken: Vec<String>,
}

/// Asks for whichever session of the same person is free.
const LATEST: &str = "latest";

#[derive(Default)]
pub(crate) struct Sessions {
    table: RefCell<Vec<Rc<Session>>>,
    /// Bytes of kept frames.
    kept: Rc<Cell<usize>>,
}

impl Sessions {
    /// The session to resume if it lives, is of the same role and has no other connection; else a new one. A client
    /// that keeps its frames may also ask for the latest that is free, and takes its own over from a connection that
    /// has not yet noticed its end.
    pub(crate) fn enter(
        &self,
        resume: Option<&str>,
        newcomer: Newcomer,
    ) -> Result<(Rc<Session>, bool), ErrorBody> {
        let wanted = match resume {
            Some(LATEST) if newcomer.keeps => self.latest(&newcomer),
            Some(id) => self.find(id),
            None => None,
        };
        if let Some(session) = wanted
            && session.role == newcomer.role
            && (session.connection.get().is_none() || newcomer.keeps && session.is_of(&newcomer))
        {
            let before = session.outgoing.borrow_mut().take();
            if let Some(before) = before {
                before.close(TAKEN_OVER, "taken over");
            }
            session.connection.set(Some(newcomer.connection));
            session.left.set(None);
            *session.peer.borrow_mut() = newcomer.peer;
            // The trail names who acts in it, not who once began it.
            *session.auth.borrow_mut() = newcomer.auth;
            return Ok((session, true));
        }
        let session = self.add(newcomer)?;
        Ok((session, false))
    }

    fn latest(&self, newcomer: &Newcomer) -> Option<Rc<Session>> {
        let table = self.table.borrow();
        let mut free = table
            .iter()
            .rev()
            .filter(|session| session.connection.get().is_none() && session.is_of(newcomer))
            .filter(|session| !newcomer.taken.contains(&session.id));
        free.next().cloned()
    }

    pub(crate) fn add(&self, newcomer: Newcomer) -> Result<Rc<Session>, ErrorBody> {
        let id = loop {
            let bytes = beamtalk_storage::random_bytes::<4>()
                .map_err(|cause| ErrorBody::new(ErrorKind::InternalError, cause.to_string()))?;
            let id = format!("s-{:08x}", u32::from_be_bytes(bytes));
            if self.find(&id).is_none() {
                break id;
            }
        };
        let session = Rc::new(Session {
            id,
            client: newcomer.client,
            role: newcomer.role,
            auth: RefCell::new(newcomer.auth),
            peer: RefCell::new(newcomer.peer),
            connected_at: now(),
            connection: Cell::new(Some(newcomer.connection)),
            left: Cell::new(None),
            turn: Mutex::new(()),
            waiting: Cell::new(0),
            running: RefCell::new(None),
            runs_for: Cell::new(None),
            loop_right: Cell::new(None),
            names: RefCell::new(Vec::new()),
            node_start: Cell::new(0),
            has_no_input: Cell::new(false),
            ends_with_node: Cell::new(false),
            kept: newcomer.keeps.then(|| RefCell::new(Kept::beside(&self.kept))),
            listened: RefCell::default(),
            outgoing: RefCell::new(None),
            delivery: Mutex::new(()),
        });
        self.table.borrow_mut().push(session.clone());
        Ok(session)
    }

    /// A session for code that belongs to none, such as an actor that asks for something.
    pub(crate) fn anonymous(&self) -> Result<Rc<Session>, ErrorBody> {
        let connection = ConnectionId::MAX;
        let session = self.add(Newcomer {
            client: ClientKind::Unknown,
            role: Role::Owner,
            auth: "image".to_owned(),
            peer: "image".to_owned(),
            connection,
            keeps: false,
            taken: Vec::new(),
        })?;
        session.leave(connection);
        Ok(session)
    }

    pub(crate) fn remove(&self, id: &str) -> Option<Rc<Session>> {
        let mut table = self.table.borrow_mut();
        let place = table.iter().position(|session| session.id == id)?;
        Some(table.remove(place))
    }

    /// Take out the sessions whose grace is over.
    pub(crate) fn expired(&self, grace: Duration) -> Vec<Rc<Session>> {
        let is_over = |session: &Session| session.left.get().is_some_and(|left| left.elapsed() >= grace);
        let mut table = self.table.borrow_mut();
        let (gone, kept): (Vec<_>, Vec<_>) = table.drain(..).partition(|session| is_over(session));
        *table = kept;
        gone
    }

    pub(crate) fn find(&self, id: &str) -> Option<Rc<Session>> {
        self.table
            .borrow()
            .iter()
            .find(|session| session.id == id)
            .cloned()
    }

    pub(crate) fn all(&self) -> Vec<Rc<Session>> {
        self.table.borrow().clone()
    }

    pub(crate) fn describe(&self) -> Vec<SessionInfo> {
        let about = |session: &Rc<Session>| SessionInfo {
            id: session.id.clone(),
            client: session.client.name().to_owned(),
            peer: session.peer.borrow().clone(),
            connected_at: session.connected_at,
            busy: session.is_busy(),
        };
        self.all().iter().map(about).collect()
    }
}

pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |time| time.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn newcomer(connection: ConnectionId) -> Newcomer {
        Newcomer {
            client: ClientKind::Repl,
            role: Role::Owner,
            auth: "cookie".to_owned(),
            peer: "127.0.0.1:1".to_owned(),
            connection,
            keeps: false,
            taken: Vec::new(),
        }
    }

    #[test]
    fn a_session_is_resumed_once_its_connection_is_gone() {
        let sessions = Sessions::default();
        let (first, resumed) = sessions.enter(None, newcomer(1)).expect("random");
        assert!(!resumed);
        let (other, resumed) = sessions.enter(Some(&first.id), newcomer(2)).expect("random");
        assert!(!resumed && other.id != first.id, "it is still in use");
        first.leave(1);
        let (again, resumed) = sessions.enter(Some(&first.id), newcomer(3)).expect("random");
        assert!(resumed && again.id == first.id);
        again.leave(1);
        assert_eq!(
            again.connection.get(),
            Some(3),
            "an older connection does not end a newer one"
        );
    }

    fn keeper(connection: ConnectionId) -> Newcomer {
        Newcomer {
            client: ClientKind::Browser,
            keeps: true,
            ..newcomer(connection)
        }
    }

    #[test]
    fn a_client_that_keeps_takes_its_session_over() {
        let sessions = Sessions::default();
        let (first, _) = sessions.enter(Some("latest"), keeper(1)).expect("random");
        let (other, resumed) = sessions.enter(Some("latest"), keeper(2)).expect("random");
        assert!(!resumed && other.id != first.id, "the first is in use");
        let (again, resumed) = sessions.enter(Some(&first.id), keeper(3)).expect("random");
        assert!(resumed && again.id == first.id);
        first.leave(1);
        assert_eq!(first.connection.get(), Some(3));
        other.leave(2);
        let (latest, resumed) = sessions.enter(Some("latest"), keeper(4)).expect("random");
        assert!(resumed && latest.id == other.id);
    }

    #[test]
    fn what_another_page_has_is_not_the_latest_that_is_free() {
        let sessions = Sessions::default();
        let (first, _) = sessions.enter(None, keeper(1)).expect("random");
        first.leave(1);
        let newcomer = Newcomer {
            taken: vec![first.id.clone()],
            ..keeper(2)
        };
        let (other, resumed) = sessions.enter(Some("latest"), newcomer).expect("random");
        assert!(!resumed && other.id != first.id, "its page comes back to it");
        let (again, resumed) = sessions.enter(Some(&first.id), keeper(3)).expect("random");
        assert!(resumed && again.id == first.id);
        assert!(first.is_of_another(1) && !first.is_of_another(3));
    }

    #[test]
    fn nobody_else_gets_a_kept_session() {
        let sessions = Sessions::default();
        let (first, _) = sessions.enter(None, keeper(1)).expect("random");
        let stranger = |connection| Newcomer {
            auth: "token:other".to_owned(),
            ..keeper(connection)
        };
        assert!(!sessions.enter(Some(&first.id), stranger(2)).expect("random").1);
        first.leave(1);
        assert!(!sessions.enter(Some("latest"), stranger(3)).expect("random").1);
        assert!(!sessions.enter(Some("latest"), newcomer(4)).expect("random").1);
    }

    #[test]
    fn an_observer_does_not_get_the_owners_session() {
        let sessions = Sessions::default();
        let (first, _) = sessions.enter(None, newcomer(1)).expect("random");
        first.leave(1);
        let observer = Newcomer {
            role: Role::Observer,
            ..newcomer(2)
        };
        assert!(!sessions.enter(Some(&first.id), observer).expect("random").1);
    }

    #[test]
    fn sessions_without_connection_expire() {
        let sessions = Sessions::default();
        let (first, _) = sessions.enter(None, newcomer(1)).expect("random");
        sessions.enter(None, newcomer(2)).expect("random");
        first.leave(1);
        assert_eq!(sessions.expired(Duration::from_mins(1)).len(), 0);
        assert_eq!(sessions.expired(Duration::ZERO).len(), 1);
        assert_eq!(sessions.all().len(), 1);
    }
}
