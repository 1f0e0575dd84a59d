//! A blocking client. Any thread may have requests under way; whoever waits reads the socket for
//! everybody, so a single caller pays no hand-over between threads.

mod file;

use std::collections::HashMap;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

pub use file::{Attachment, File};

use crate::codec::frame_size;
use crate::error::{Error, Refusal};
use crate::message::{Dialect, NumericUser, Reply, Request};

/// A connection to a 9P server.
#[derive(Clone)]
pub struct Client {
    inner: Arc<Inner>,
}

struct Inner {
    write: Mutex<UnixStream>,
    read: Mutex<Reader>,
    state: Mutex<Replies>,
    ready: Condvar,
    dialect: Dialect,
    msize: u32,
    next_fid: AtomicU32,
    trace: AtomicBool,
    /// How long an ordinary call waits for its answer; without end by default.
    patience: Option<Duration>,
}

/// How long a server may take to confirm that a request was given up.
const FLUSH_LIMIT: Duration = Duration::from_secs(2);

struct Reader {
    stream: UnixStream,
    buffer: Vec<u8>,
    start: usize,
    limit: Option<Duration>,
}

#[derive(Default)]
struct Replies {
    /// Tags under way, with the answer once it is there.
    waiting: HashMap<u16, Option<Result<Reply, ()>>>,
    next_tag: u16,
    somebody_reads: bool,
    closed: bool,
}

impl Replies {
    /// A tag nobody uses, from now on under way.
    fn take_tag(&mut self) -> u16 {
        loop {
            let tag = self.next_tag;
            self.next_tag = if tag == crate::NOTAG - 1 { 0 } else { tag + 1 };
            if let std::collections::hash_map::Entry::Vacant(free) = self.waiting.entry(tag) {
                free.insert(None);
                return tag;
            }
        }
    }
}

/// A request under way.
pub struct Pending {
    client: Client,
    tag: u16,
    asked: &'static str,
    done: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    /// Agree on a version over a connected socket.
    pub fn new(stream: UnixStream, dialect: Dialect, msize: u32, trace: bool) -> Result<Self, Error> {
        Client::with_patience(stream, dialect, msize, trace, None)
    }

    /// The same; every call fails with [`Error::TimedOut`] when its answer takes longer.
    pub fn with_patience(
        stream: UnixStream,
        dialect: Dialect,
        msize: u32,
        trace: bool,
        patience: Option<Duration>,
    ) -> Result<Self, Error> {
        let write = stream.try_clone()?;
        let mut client = Client {
            inner: Arc::new(Inner {
                write: Mutex::new(write),
                read: Mutex::new(Reader {
                    stream,
                    buffer: Vec::new(),
                    start: 0,
                    limit: None,
                }),
                state: Mutex::new(Replies::default()),
                ready: Condvar::new(),
                dialect,
                msize,
                next_fid: AtomicU32::new(1),
                trace: AtomicBool::new(trace),
                patience,
            }),
        };
        let version = dialect.name().to_owned();
        let reply = client
            .start_tagged(crate::NOTAG, &Request::Version { msize, version })?
            .wait(patience)?;
        let Reply::Version {
            msize: agreed,
            version,
        } = reply
        else {
            return Err(Error::Unexpected {
                asked: "Tversion",
                got: reply.name().to_owned(),
            });
        };
        if version != dialect.name() {
            return Err(Error::Version { version });
        }
        if let Some(inner) = Arc::get_mut(&mut client.inner) {
            inner.msize = agreed.min(msize);
        }
        Ok(client)
    }

    pub fn msize(&self) -> u32 {
        self.inner.msize
    }

    pub fn dialect(&self) -> Dialect {
        self.inner.dialect
    }

    fn patience(&self) -> Option<Duration> {
        self.inner.patience
    }

    /// A fid no other file of this client uses.
    pub fn new_fid(&self) -> u32 {
        self.inner.next_fid.fetch_add(1, Ordering::Relaxed)
    }

    /// Send a request and wait for its answer; an error reply is an error here.
    pub fn call(&self, request: &Request) -> Result<Reply, Error> {
        self.start(request)?.wait(self.inner.patience)
    }

    /// Send a request without waiting.
    pub fn start(&self, request: &Request) -> Result<Pending, Error> {
        let tag = lock(&self.inner.state).take_tag();
        self.start_tagged(tag, request)
    }

    /// Send several requests at once without waiting for any.
    pub fn start_all(&self, requests: &[Request]) -> Result<Vec<Pending>, Error> {
        let mut frames = Vec::new();
        let mut pending = Vec::with_capacity(requests.len());
        for request in requests {
            let tag = lock(&self.inner.state).take_tag();
            request.encode(tag, self.inner.dialect, &mut frames);
            self.trace("<-", &request.show(tag));
            pending.push(Pending {
                client: self.clone(),
                tag,
                asked: request.name(),
                done: false,
            });
        }
        if let Err(error) = lock(&self.inner.write).write_all(&frames) {
            lock(&self.inner.state).closed = true;
            return Err(error.into());
        }
        Ok(pending)
    }

    fn start_tagged(&self, tag: u16, request: &Request) -> Result<Pending, Error> {
        lock(&self.inner.state).waiting.insert(tag, None);
        let mut frame = Vec::new();
        request.encode(tag, self.inner.dialect, &mut frame);
        self.trace("<-", &request.show(tag));
        lock(&self.inner.write).write_all(&frame)?;
        Ok(Pending {
            client: self.clone(),
            tag,
            asked: request.name(),
            done: false,
        })
    }

    fn trace(&self, arrow: &str, line: &str) {
        if self.inner.trace.load(Ordering::Relaxed) {
            // A closed standard error leaves nobody to tell.
            drop(writeln!(std::io::stderr(), "{arrow} {line}"));
        }
    }

    /// Give up the request another thread waits for; it hears `interrupted` unless the answer came
    /// first.
    pub fn interrupt(&self, tag: u16) -> Result<(), Error> {
        self.call(&Request::Flush { oldtag: tag })?;
        if let Some(slot @ None) = lock(&self.inner.state).waiting.get_mut(&tag) {
            *slot = Some(Ok(Reply::Error {
                ename: "interrupted".to_owned(),
            }));
        }
        self.inner.ready.notify_all();
        Ok(())
    }

    /// Flush a request that took too long. A server that is silent even then is taken for dead, so
    /// that nothing else waits for it.
    fn give_up(&self, tag: u16) -> Result<(), Error> {
        if tag == crate::NOTAG || lock(&self.inner.state).closed {
            return Ok(());
        }
        let mut flush = self.start(&Request::Flush { oldtag: tag })?;
        flush.done = true;
        let outcome = self.wait(flush.tag, Some(Instant::now() + FLUSH_LIMIT));
        if outcome.is_err() {
            lock(&self.inner.state).closed = true;
        }
        outcome.map(drop).or(Err(Error::TimedOut))
    }

    /// Start the conversation of an auth fid.
    pub fn auth(&self, uname: &str, aname: &str) -> Result<File, Error> {
        let afid = self.new_fid();
        let request = Request::Auth {
            afid,
            uname: uname.to_owned(),
            aname: aname.to_owned(),
            n_uname: NumericUser::NONE,
        };
        self.call(&request)?;
        Ok(File::new(self.clone(), afid, 0))
    }

    /// Attach to a tree, with a validated auth file if one is needed.
    pub fn attach(&self, auth: Option<&File>, uname: &str, aname: &str) -> Result<Attachment, Error> {
        let fid = self.new_fid();
        self.call(&Request::Attach {
            fid,
            afid: auth.map_or(crate::NOFID, File::fid),
            uname: uname.to_owned(),
            aname: aname.to_owned(),
            n_uname: NumericUser::NONE,
        })?;
        Ok(Attachment::new(self.clone(), fid))
    }

    /// Wait for the answer of `tag`, reading the socket for everybody if nobody else does.
    fn wait(&self, tag: u16, limit: Option<Instant>) -> Result<Reply, Error> {
        let inner = &self.inner;
        let mut state = lock(&inner.state);
        loop {
            if let Some(slot) = state.waiting.get_mut(&tag)
                && let Some(answer) = slot.take()
            {
                state.waiting.remove(&tag);
                return answer.map_err(|()| Error::Malformed);
            }
            if state.closed {
                return Err(Error::Closed);
            }
            let left = match limit.map(|limit| limit.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => return Err(Error::TimedOut),
                left => left,
            };
            if state.somebody_reads {
                state = match left {
                    None => inner.ready.wait(state).unwrap_or_else(PoisonError::into_inner),
                    Some(left) => {
                        inner
                            .ready
                            .wait_timeout(state, left)
                            .unwrap_or_else(PoisonError::into_inner)
                            .0
                    }
                };
                continue;
            }
            state.somebody_reads = true;
            drop(state);
            let outcome = lock(&inner.read).next(left);
            state = lock(&inner.state);
            state.somebody_reads = false;
            match outcome {
                Ok(Some(frame)) => self.sort(&mut state, &frame),
                Ok(None) => {}
                Err(_) => state.closed = true,
            }
            inner.ready.notify_all();
        }
    }

    fn sort(&self, state: &mut Replies, frame: &[u8]) {
        let (Some(number), Some(tag)) = (frame.get(4), frame.get(5..7).and_then(<[u8]>::first_chunk::<2>))
        else {
            state.closed = true;
            return;
        };
        let tag = u16::from_le_bytes(*tag);
        let dialect = if tag == crate::NOTAG {
            Dialect::Plan9
        } else {
            self.inner.dialect
        };
        let reply = Reply::decode(*number, frame.get(7..).unwrap_or_default(), dialect).map_err(|_| ());
        match &reply {
            Ok(reply) => self.trace("->", &reply.show(tag)),
            Err(()) => self.trace("->", "malformed"),
        }
        if let Some(slot) = state.waiting.get_mut(&tag) {
            *slot = Some(reply);
        }
    }
}

impl Reader {
    /// The next frame; `None` if the time is over first.
    fn next(&mut self, limit: Option<Duration>) -> std::io::Result<Option<Vec<u8>>> {
        if self.limit != limit {
            self.stream.set_read_timeout(limit)?;
            self.limit = limit;
        }
        loop {
            let rest = self.buffer.get(self.start..).unwrap_or_default();
            if let Some(size) = frame_size(rest) {
                if !(7..=1 << 24).contains(&size) {
                    return Err(std::io::ErrorKind::InvalidData.into());
                }
                if let Some(frame) = rest.get(..size as usize) {
                    let frame = frame.to_vec();
                    self.start += size as usize;
                    if self.start == self.buffer.len() {
                        self.buffer.clear();
                        self.start = 0;
                    }
                    return Ok(Some(frame));
                }
            }
            if self.start > 0 {
                self.buffer.drain(..self.start);
                self.start = 0;
            }
            let filled = self.buffer.len();
            self.buffer.resize(filled + 65536, 0);
            let outcome = self
                .stream
                .read(self.buffer.get_mut(filled..).unwrap_or_default());
            let count = *outcome.as_ref().unwrap_or(&0);
            self.buffer.truncate(filled + count);
            match outcome {
                Ok(0) => return Err(std::io::ErrorKind::UnexpectedEof.into()),
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error)
                    if matches!(
                        error.kind(),
                        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut
                    ) =>
                {
                    return Ok(None);
                }
                Err(error) => return Err(error),
            }
        }
    }
}

impl Pending {
    /// Wait for the answer. On a time-out the request is flushed.
    pub fn wait(mut self, limit: Option<Duration>) -> Result<Reply, Error> {
        let mut outcome = self
            .client
            .wait(self.tag, limit.map(|limit| Instant::now() + limit));
        self.done = true;
        if matches!(outcome, Err(Error::TimedOut)) {
            let given_up = self.client.give_up(self.tag);
            // An answer that came before the flush took effect counts: the server will not repeat it.
            let late = lock(&self.client.inner.state).waiting.remove(&self.tag).flatten();
            outcome = match late {
                Some(late) => late.map_err(|()| Error::Malformed),
                None => given_up.and(Err(Error::TimedOut)),
            };
        }
        self.judged(outcome?)
    }

    /// Wait a while; the request itself when its answer has not come yet.
    pub fn wait_a_while(mut self, limit: Duration) -> Result<Result<Reply, Error>, Self> {
        match self.client.wait(self.tag, Some(Instant::now() + limit)) {
            Err(Error::TimedOut) => Err(self),
            outcome => {
                self.done = true;
                Ok(outcome.and_then(|reply| self.judged(reply)))
            }
        }
    }

    /// An error reply is an error, and so is the answer to something else.
    fn judged(&self, reply: Reply) -> Result<Reply, Error> {
        match reply {
            Reply::Error { ename } => Err(Error::Refused(Refusal::new(5, ename))),
            Reply::Lerror { ecode } => Err(Error::Refused(Refusal::new(ecode, format!("errno {ecode}")))),
            reply if reply.number() == 101 || expects(self.asked, &reply) => Ok(reply),
            reply => Err(Error::Unexpected {
                asked: self.asked,
                got: reply.name().to_owned(),
            }),
        }
    }

    pub fn tag(&self) -> u16 {
        self.tag
    }

    /// Give the request up: afterwards it will not be answered.
    pub fn flush(mut self) -> Result<(), Error> {
        self.done = true;
        let outcome = self.client.call(&Request::Flush { oldtag: self.tag });
        lock(&self.client.inner.state).waiting.remove(&self.tag);
        outcome.map(drop)
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        if !self.done {
            let client = self.client.clone();
            // A connection that is gone has given the request up already.
            drop(client.call(&Request::Flush { oldtag: self.tag }));
            lock(&client.inner.state).waiting.remove(&self.tag);
        }
    }
}

fn expects(asked: &str, reply: &Reply) -> bool {
    asked.get(1..) == reply.name().get(1..)
}
