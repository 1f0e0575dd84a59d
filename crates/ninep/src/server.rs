//! The server side: protocol rules here, files behind the traits.
//!
//! [`serve`] drives one connection. A request is first tried at once on the connection's own
//! task; if it has to wait it moves to a task of its own, so a blocked read never holds up
//! another request. Requests of one fid take effect in arrival order, except that blocked reads
//! wait aside.

mod connection;
mod directory;
mod fids;
mod handle;
mod haste;
mod outbox;

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::watch;

use crate::error::Refusal;
use crate::message::Payload;
use crate::stat::{Qid, Stat};

/// A boxed future of an answer.
pub type Answer<T> = Pin<Box<dyn Future<Output = Result<T, Refusal>> + Send>>;

/// The answer to a read: at once, or later while other requests go on.
pub enum ReadAnswer {
    Now(Result<Payload, Refusal>),
    /// Dropping the future cancels the read; it must not have consumed anything by then.
    Later(Answer<Payload>),
}

/// The answer to a request that changes something.
pub enum WriteAnswer {
    Now(Result<(), Refusal>),
    Later(Answer<()>),
}

/// How a file is to be opened, the same for both dialects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenRequest {
    pub read: bool,
    pub write: bool,
    pub truncate: bool,
    pub append: bool,
    pub remove_on_close: bool,
    /// Opened by `Tlopen` without `O_NONBLOCK`: a client that reads until a buffer is full.
    pub fills_buffers: bool,
    /// The largest write the connection allows.
    pub largest_write: u32,
}

/// A change asked for by `Twstat` or `Tsetattr`, reduced to what differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    Nothing,
    Length(u64),
}

/// What a node is about to be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Its `qid`, a step to it or from it.
    Step,
    /// Its `stat`.
    Stat,
    /// Its `list`.
    List,
}

/// A file or directory of the tree.
pub trait Node: Send + Sync {
    /// A node that must ask somebody before it can answer: the same node with what it was told. Nodes that know
    /// everything themselves answer `None`.
    fn ready(&self, _need: Need) -> Option<Answer<Arc<dyn Node>>> {
        None
    }

    fn stat(&self) -> Result<Stat, Refusal>;

    fn qid(&self) -> Result<Qid, Refusal> {
        Ok(self.stat()?.qid)
    }

    /// One step down, or up for `..`; called on directories only.
    fn walk(&self, name: &str) -> Result<Arc<dyn Node>, Refusal>;

    /// What a directory read lists, in order.
    fn list(&self) -> Result<Vec<Stat>, Refusal> {
        Ok(Vec::new())
    }

    /// Called for directories too, so that access can be checked.
    fn open(&self, request: OpenRequest) -> Answer<Box<dyn OpenFile>>;

    fn create(
        &self,
        _name: &str,
        _perm: u32,
        _request: OpenRequest,
    ) -> Answer<(Arc<dyn Node>, Box<dyn OpenFile>)> {
        Box::pin(std::future::ready(Err(Refusal::CREATE_NOT_SUPPORTED)))
    }

    fn remove(&self) -> Answer<()> {
        Box::pin(std::future::ready(Err(Refusal::REMOVE_NOT_SUPPORTED)))
    }

    /// Told of what the server itself decides: `open` refused by the mode, `create`, `wstat`.
    fn decided(&self, _op: &'static str, _refused: Option<&Refusal>) {}
}

/// A file that was opened on one fid.
pub trait OpenFile: Send {
    fn read(&mut self, offset: u64, count: u32) -> ReadAnswer;

    fn write(&mut self, _offset: u64, _data: Payload) -> WriteAnswer {
        WriteAnswer::Now(Err(Refusal::PERMISSION_DENIED))
    }

    /// Commit what was written so far.
    fn commit(&mut self) -> WriteAnswer {
        WriteAnswer::Now(Ok(()))
    }

    fn set_length(&mut self, _length: u64) -> Result<(), Refusal> {
        Err(Refusal::WSTAT_PROHIBITED)
    }
}

/// The conversation on an auth fid.
pub trait AuthFile: Send + Sync {
    fn qid(&self) -> Qid;
    fn read(&self, offset: u64, count: u32) -> Result<Vec<u8>, Refusal>;
    fn write(&self, data: &[u8]) -> Answer<()>;
    /// So that the service recognises its own type at attach.
    fn as_any(&self) -> &dyn std::any::Any;
}

/// One connection as the service sees it.
pub trait Session: Send + Sync {
    fn auth(&self, uname: &str, aname: &str, n_uname: Option<u32>) -> Result<Arc<dyn AuthFile>, Refusal>;

    fn attach(
        &self,
        auth: Option<Arc<dyn AuthFile>>,
        uname: &str,
        aname: &str,
        n_uname: Option<u32>,
    ) -> Result<Arc<dyn Node>, Refusal>;

    /// The connection was reset by a new version: authentication is forgotten.
    fn reset(&self) {}

    /// The peer broke a rule of the protocol.
    fn fault(&self, _fault: Fault) {}
}

/// A breach that may end the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    BadSize(u32),
    NoVersion,
    SlowReader,
    Malformed,
}

impl Fault {
    /// The word for logs.
    pub fn word(self) -> &'static str {
        match self {
            Fault::BadSize(_) => "bad size",
            Fault::NoVersion => "version not negotiated",
            Fault::SlowReader => "slow reader",
            Fault::Malformed => "malformed message",
        }
    }
}

/// Who is on the other side, from the socket's credentials.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Peer {
    pub uid: u32,
    pub pid: Option<i32>,
}

/// The numeric owner of every file, for 9P2000.L.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Owner {
    pub uid: u32,
    pub gid: u32,
}

/// What one connection may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    pub msize: u32,
    pub fids: usize,
    pub requests: usize,
    /// Bytes of replies waiting for a peer that does not read.
    pub queue: usize,
    /// How long such a peer may make no progress at all.
    pub stall: Duration,
    /// How long a peer may take to send its version.
    pub version_wait: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            msize: crate::MSIZE,
            fids: 4096,
            requests: 1024,
            queue: 8 << 20,
            stall: Duration::from_secs(30),
            version_wait: Duration::from_secs(10),
        }
    }
}

/// Ends a connection from outside.
#[derive(Clone, Debug)]
pub struct Hangup {
    sender: Arc<watch::Sender<bool>>,
}

impl Default for Hangup {
    fn default() -> Self {
        Hangup {
            sender: Arc::new(watch::Sender::new(false)),
        }
    }
}

impl Hangup {
    pub fn now(&self) {
        self.sender.send_replace(true);
    }

    pub fn is_done(&self) -> bool {
        *self.sender.borrow()
    }

    async fn wait(&self) {
        let mut receiver = self.sender.subscribe();
        // The sender lives as long as `self`, so waiting cannot fail.
        drop(receiver.wait_for(|done| *done).await);
    }
}

/// Serve one connection until it ends, is hung up, or breaks a rule that ends it.
pub async fn serve(
    stream: UnixStream,
    session: Arc<dyn Session>,
    owner: Owner,
    limits: Limits,
    hangup: Hangup,
) {
    connection::run(stream, session, owner, limits, hangup).await;
}
