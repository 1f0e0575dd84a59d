//! One connection: frames in, tags, flush, frames out.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::task::AbortHandle;

use super::fids::Fids;
use super::handle::Started;
use super::haste::Haste;
use super::outbox::{Flushed, Outbox};
use super::{Fault, Hangup, Limits, Owner, Session, handle};
use crate::codec::{DecodeFault, cut, frame_size};
use crate::error::Refusal;
use crate::message::{Dialect, Reply, Request};

/// The largest message before a version is agreed.
const FIRST_MESSAGE: u32 = 8192;
/// Replies are written once this much waits, even amid a batch of requests.
const BATCH: usize = 256 << 10;

pub(super) type ReplyFuture = Pin<Box<dyn Future<Output = Result<Reply, Refusal>> + Send>>;

/// A request that was not answered yet.
struct Outstanding {
    id: u64,
    /// Set for requests that can be given up without a trace.
    abort: Option<AbortHandle>,
    /// Every task, to end it with the connection.
    task: Option<AbortHandle>,
    /// Flushes to be answered when this request is over.
    flushes: Vec<u16>,
}

pub(super) struct State {
    pub(super) dialect: Option<Dialect>,
    pub(super) msize: u32,
    pub(super) fids: Fids,
    tags: HashMap<u16, Outstanding>,
    next_id: u64,
}

/// What the tasks of one connection share.
pub(super) struct Shared {
    stream: OwnedWriteHalf,
    pub(super) session: Arc<dyn Session>,
    pub(super) owner: Owner,
    pub(super) limits: Limits,
    outbox: Outbox,
    state: Mutex<State>,
    hangup: Hangup,
}

#[derive(PartialEq, Eq)]
enum Flow {
    Continue,
    Close,
}

pub(super) async fn run(
    stream: UnixStream,
    session: Arc<dyn Session>,
    owner: Owner,
    limits: Limits,
    hangup: Hangup,
) {
    let (read, write) = stream.into_split();
    let shared = Arc::new(Shared {
        stream: write,
        session,
        owner,
        limits,
        outbox: Outbox::new(limits.queue),
        state: Mutex::new(State {
            dialect: None,
            msize: FIRST_MESSAGE,
            fids: Fids::default(),
            tags: HashMap::new(),
            next_id: 0,
        }),
        hangup: hangup.clone(),
    });
    let writer = tokio::spawn(drain(Arc::clone(&shared)));
    tokio::select! {
        () = hangup.wait() => {}
        () = receive(&shared, read) => {}
    }
    writer.abort();
    shared.flush();
    shared.drop_everything();
}

/// Read frames and answer them until the connection is over.
async fn receive(shared: &Arc<Shared>, mut read: OwnedReadHalf) {
    let mut buffer: Vec<u8> = Vec::with_capacity(8192);
    let mut haste = Haste::default();
    let version_limit = tokio::time::Instant::now() + shared.limits.version_wait;
    loop {
        let negotiated = shared.lock().dialect.is_some();
        let outcome = if negotiated {
            match haste.catch(read.as_ref(), &mut buffer).await {
                Some(count) => Ok(count),
                None => read.read_buf(&mut buffer).await,
            }
        } else if let Ok(outcome) = tokio::time::timeout_at(version_limit, read.read_buf(&mut buffer)).await {
            outcome
        } else {
            shared.session.fault(Fault::NoVersion);
            shared.push(crate::NOTAG, Err(Refusal::NO_VERSION));
            shared.flush();
            return;
        };
        if !matches!(outcome, Ok(count) if count > 0) {
            return;
        }
        haste.arrived();
        let mut start = 0;
        while let Some(rest) = buffer.get(start..) {
            let Some(size) = frame_size(rest) else { break };
            let limit = shared.lock().msize;
            if !(7..=limit).contains(&size) {
                shared.session.fault(Fault::BadSize(size));
                shared.flush();
                return;
            }
            let Some(frame) = rest.get(..size as usize) else {
                break;
            };
            if process(shared, frame) == Flow::Close {
                shared.flush();
                return;
            }
            start += size as usize;
            if shared.outbox.waiting() > BATCH {
                shared.flush();
            }
        }
        buffer.drain(..start);
        // Room for the rest of a message that has begun, and for a batch of small ones.
        let wanted = buffer
            .first_chunk::<4>()
            .map_or(0, |size| u32::from_le_bytes(*size) as usize);
        buffer.reserve(wanted.max(8192));
        shared.flush();
        haste.answered();
        if shared.hangup.is_done() {
            return;
        }
    }
}

fn process(shared: &Arc<Shared>, frame: &[u8]) -> Flow {
    let (Some(number), Some(tag)) = (frame.get(4).copied(), frame.get(5..7)) else {
        return Flow::Close;
    };
    let tag = tag
        .first_chunk::<2>()
        .map_or(0, |bytes| u16::from_le_bytes(*bytes));
    let body = frame.get(7..).unwrap_or_default();
    let Some(dialect) = shared
        .lock()
        .dialect
        .or((number == 100).then_some(Dialect::Plan9))
    else {
        shared.session.fault(Fault::NoVersion);
        shared.push(tag, Err(Refusal::NO_VERSION));
        return Flow::Close;
    };
    let request = match Request::decode(number, body, dialect) {
        Ok(request) => request,
        Err(fault) => {
            shared.push(
                tag,
                Err(match fault {
                    DecodeFault::Malformed => {
                        shared.session.fault(Fault::Malformed);
                        Refusal::MALFORMED
                    }
                    DecodeFault::Unknown => Refusal::NOT_SUPPORTED,
                }),
            );
            return Flow::Continue;
        }
    };
    if let Request::Version { msize, version } = request {
        shared.negotiate(tag, msize, &version);
        return Flow::Continue;
    }
    if tag == crate::NOTAG {
        shared.session.fault(Fault::Malformed);
        shared.push(tag, Err(Refusal::MALFORMED));
        return Flow::Continue;
    }
    {
        let state = shared.lock();
        let refusal = if state.tags.contains_key(&tag) {
            Some(Refusal::DUPLICATE_TAG)
        } else if state.tags.len() >= shared.limits.requests && !matches!(request, Request::Flush { .. }) {
            Some(Refusal::TOO_MANY_REQUESTS)
        } else {
            None
        };
        if let Some(refusal) = refusal {
            drop(state);
            shared.push(tag, Err(refusal));
            return Flow::Continue;
        }
    }
    if let Request::Flush { oldtag } = request {
        shared.give_up(tag, oldtag);
        return Flow::Continue;
    }
    let can_be_dropped = handle::is_harmless(&request);
    let mut future = match start(shared, request) {
        Started::Done(outcome) => {
            shared.push(tag, outcome);
            return Flow::Continue;
        }
        Started::Waiting(future) => future,
    };
    match poll_now(&mut future) {
        Poll::Ready(outcome) => shared.push(tag, outcome),
        Poll::Pending => shared.set_aside(tag, can_be_dropped, future),
    }
    Flow::Continue
}

fn start(shared: &Arc<Shared>, request: Request) -> Started {
    if let Request::Read { fid, offset, count } = request {
        let begun = catch_unwind(AssertUnwindSafe(|| {
            handle::read_at_once(shared, fid, offset, count)
        }));
        match begun {
            Ok(Some(started)) => return started,
            Ok(None) => {}
            Err(_) => return Started::Done(Err(Refusal::INTERNAL)),
        }
    }
    Started::Waiting(Box::pin(handle::answer(Arc::clone(shared), request)))
}

/// Try a request on the spot; a panic in it is its own problem only.
fn poll_now(future: &mut ReplyFuture) -> Poll<Result<Reply, Refusal>> {
    let mut context = Context::from_waker(std::task::Waker::noop());
    match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut context))) {
        Ok(poll) => poll,
        Err(_) => Poll::Ready(Err(Refusal::INTERNAL)),
    }
}

/// Writes what the socket would not take at first, and notices a peer that does not read.
async fn drain(shared: Arc<Shared>) {
    loop {
        shared.outbox.stuck.notified().await;
        loop {
            let before = shared.outbox.written();
            let ready = tokio::time::timeout(shared.limits.stall, shared.stream.writable()).await;
            if !matches!(ready, Ok(Ok(()))) {
                shared.session.fault(Fault::SlowReader);
                shared.hangup.now();
                return;
            }
            if shared.flush() != Flushed::Waiting {
                break;
            }
            if shared.outbox.written() == before {
                tokio::task::yield_now().await;
            }
        }
    }
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn flush(&self) -> Flushed {
        let flushed = self.outbox.flush(self.stream.as_ref());
        match flushed {
            Flushed::Overflow => {
                self.session.fault(Fault::SlowReader);
                self.hangup.now();
            }
            Flushed::Broken => self.hangup.now(),
            Flushed::All | Flushed::Waiting => {}
        }
        flushed
    }

    fn push(&self, tag: u16, outcome: Result<Reply, Refusal>) {
        let (dialect, msize) = {
            let state = self.lock();
            (state.dialect.unwrap_or(Dialect::Plan9), state.msize)
        };
        self.outbox.push(
            tag,
            outcome.unwrap_or_else(|refusal| error_reply(&refusal, dialect, msize)),
            dialect,
        );
    }

    fn negotiate(&self, tag: u16, msize: u32, version: &str) {
        self.drop_everything();
        self.session.reset();
        let dialect = if version == "9P2000.L" {
            Some(Dialect::Linux)
        } else if version == "9P2000" || version.starts_with("9P2000.") {
            Some(Dialect::Plan9)
        } else {
            None
        };
        if msize < crate::MSIZE_MIN {
            self.push(tag, Err(Refusal::MSIZE_TOO_SMALL));
            return;
        }
        let msize = msize.min(self.limits.msize);
        {
            let mut state = self.lock();
            state.dialect = dialect;
            state.msize = if dialect.is_some() { msize } else { FIRST_MESSAGE };
        }
        let version = dialect.map_or("unknown", Dialect::name).to_owned();
        self.push(tag, Ok(Reply::Version { msize, version }));
    }

    /// Answer `oldtag` and then this flush, or only this flush.
    fn give_up(self: &Arc<Self>, tag: u16, oldtag: u16) {
        let mut state = self.lock();
        match state.tags.get_mut(&oldtag) {
            Some(outstanding) if oldtag != tag => {
                outstanding.flushes.push(tag);
                let abort = outstanding.abort.clone();
                let id = state.take_id();
                state.tags.insert(
                    tag,
                    Outstanding {
                        id,
                        abort: None,
                        task: None,
                        flushes: Vec::new(),
                    },
                );
                drop(state);
                if let Some(abort) = abort {
                    abort.abort();
                }
            }
            _ => {
                drop(state);
                self.push(tag, Ok(Reply::Flush {}));
            }
        }
    }

    /// Let a request that has to wait go on by itself.
    fn set_aside(self: &Arc<Self>, tag: u16, can_be_dropped: bool, future: ReplyFuture) {
        let mut state = self.lock();
        let id = state.take_id();
        let mut completion = Completion {
            shared: Arc::clone(self),
            tag,
            id,
            outcome: None,
        };
        let task = tokio::spawn(async move {
            completion.outcome = Some(CatchUnwind(future).await);
            drop(completion);
        })
        .abort_handle();
        let abort = can_be_dropped.then(|| task.clone());
        state.tags.insert(
            tag,
            Outstanding {
                id,
                abort,
                task: Some(task),
                flushes: Vec::new(),
            },
        );
    }

    fn drop_everything(&self) {
        let mut state = self.lock();
        let tasks: Vec<AbortHandle> = state
            .tags
            .drain()
            .filter_map(|(_, outstanding)| outstanding.task)
            .collect();
        state.fids.clear();
        drop(state);
        for task in tasks {
            task.abort();
        }
    }
}

impl State {
    fn take_id(&mut self) -> u64 {
        self.next_id += 1;
        self.next_id
    }

    /// The flushes to answer now that `tag` is over, in order.
    fn finish(&mut self, tag: u16, answered: &mut Vec<u16>) {
        if let Some(outstanding) = self.tags.remove(&tag) {
            for flush in outstanding.flushes {
                answered.push(flush);
                self.finish(flush, answered);
            }
        }
    }
}

/// Runs at the end of a request that was set aside, however it ends.
struct Completion {
    shared: Arc<Shared>,
    tag: u16,
    id: u64,
    outcome: Option<Result<Reply, Refusal>>,
}

impl Drop for Completion {
    fn drop(&mut self) {
        let mut answered = Vec::new();
        {
            let mut state = self.shared.lock();
            if state
                .tags
                .get(&self.tag)
                .is_none_or(|outstanding| outstanding.id != self.id)
            {
                return;
            }
            state.finish(self.tag, &mut answered);
        }
        if let Some(outcome) = self.outcome.take() {
            self.shared.push(self.tag, outcome);
        }
        for flush in answered {
            self.shared.push(flush, Ok(Reply::Flush {}));
        }
        self.shared.flush();
    }
}

/// A future whose panics become `internal error`.
struct CatchUnwind(ReplyFuture);

impl Future for CatchUnwind {
    type Output = Result<Reply, Refusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let inner = self.0.as_mut();
        match catch_unwind(AssertUnwindSafe(|| inner.poll(context))) {
            Ok(poll) => poll,
            Err(_) => Poll::Ready(Err(Refusal::INTERNAL)),
        }
    }
}

fn error_reply(refusal: &Refusal, dialect: Dialect, msize: u32) -> Reply {
    match dialect {
        Dialect::Plan9 => Reply::Error {
            ename: cut(&refusal.text, (msize as usize).saturating_sub(9)).to_owned(),
        },
        Dialect::Linux => Reply::Lerror { ecode: refusal.errno },
    }
}
