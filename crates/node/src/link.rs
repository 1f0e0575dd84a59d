//! The link to the live node of a workspace: requests, their answers, and what the node says by itself.
//!
//! One task owns the child. It reads the frames of the node, hands answers to whoever waits for them, and
//! when the node ends it fails every request still open. Frames come from a place where user code
//! runs, so they are decoded within limits and a damaged one is dropped.

mod frame;

use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use beamtalk_etf::Term;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, watch};

use crate::{DistributionFlags, Erlang, Error, Runtime, launch};
use frame::Incoming;

/// How long the rest of a pipe, or the end of a node that closed its pipe, is waited for.
const DRAIN: Duration = Duration::from_secs(1);

/// Bytes that may wait for a node that does not read; then requests are refused.
const WAITING_BYTES: usize = 64 * 1024 * 1024;
/// Bytes of output of one request that may wait to be taken. The node sends no more than it has credit for, which is far
/// less; code in it that writes to the pipe by itself loses the rest.
const OUTPUT_BYTES: usize = 4 * 1024 * 1024;
/// What the node says by itself and nobody has looked at yet; then the pipe fills, and its writers wait.
const MESSAGES: usize = 1_024;

/// How the node of a workspace is started.
#[derive(Debug)]
pub struct NodeOptions {
    /// Current directory of the node: the project root.
    pub directory: PathBuf,
    /// Where the node's standard output and error go.
    pub log: OwnedFd,
    pub crash_dump: PathBuf,
    /// Processes that code in the image may have.
    pub max_processes: u64,
    /// Capabilities that are switched off: `subprocess`, `ffi`, `http`, `fs`.
    pub disabled_capabilities: Vec<String>,
    /// Distribution may be asked for later.
    pub distribution: Option<DistributionFlags>,
}

/// What a node answers to one request. `Done` and `Failed` are the last.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Out(Vec<u8>),
    NeedInput(String),
    Done(Term),
    Failed(Term),
    /// The node ended before it answered.
    NodeGone(Option<ExitStatus>),
}

impl Answer {
    /// What an answer counts among those that wait. There is one outcome, which always has room.
    fn weight(&self) -> usize {
        match self {
            Self::Out(bytes) => bytes.len().max(64),
            Self::NeedInput(prompt) => prompt.len().max(64),
            Self::Done(_) | Self::Failed(_) | Self::NodeGone(_) => 0,
        }
    }
}

/// How a node ended; without a status where nobody could ask for it.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Ended {
    status: Option<ExitStatus>,
}

/// What a node says without being asked.
#[derive(Clone, Debug, PartialEq)]
pub enum NodeMessage {
    Event {
        channel: String,
        name: String,
        data: Term,
    },
    /// The image wants an op performed for a session (or for none); answer with [`NodeLink::answer`].
    Ask {
        number: i64,
        session: Option<String>,
        op: String,
        args: Term,
    },
    /// A frame over the limits, or no term at all, was dropped.
    DamagedFrame(String),
    /// The last message.
    Exited(Option<ExitStatus>),
}

/// The answers to one request, in order.
#[derive(Debug)]
pub struct Reply {
    id: u64,
    answers: mpsc::UnboundedReceiver<Answer>,
    /// Bytes of output in `answers`.
    waiting: Arc<AtomicUsize>,
    node: Weak<Shared>,
}

/// Nobody wants the answer any more: the node need not work on it.
impl Drop for Reply {
    fn drop(&mut self) {
        if let Some(node) = self.node.upgrade()
            && lock(&node.open).requests.remove(&self.id).is_some()
        {
            node.control(
                "cancel",
                Term::Map(vec![(Term::binary("id"), Term::Integer(self.id.cast_signed()))]),
            );
        }
    }
}

impl Reply {
    /// The number under which the node knows the request; credit and `interrupt` name it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The next answer; `None` after the last.
    pub async fn next(&mut self) -> Option<Answer> {
        let answer = self.answers.recv().await;
        if let Some(answer) = &answer {
            self.waiting.fetch_sub(answer.weight(), Ordering::Relaxed);
        }
        answer
    }

    /// Skip output and wait for the outcome.
    pub async fn outcome(mut self) -> Result<Term, Answer> {
        while let Some(answer) = self.next().await {
            match answer {
                Answer::Out(_) | Answer::NeedInput(_) => {}
                Answer::Done(term) => return Ok(term),
                failed @ (Answer::Failed(_) | Answer::NodeGone(_)) => return Err(failed),
            }
        }
        Err(Answer::NodeGone(None))
    }
}

/// A handle on the node; clones talk to the same one. The node ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub struct NodeLink {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    pid: u32,
    next_id: AtomicU64,
    frames: mpsc::UnboundedSender<Vec<u8>>,
    /// Bytes in `frames`.
    waiting: Arc<AtomicUsize>,
    commands: mpsc::Sender<Control>,
    open: Arc<Mutex<Open>>,
    exited: watch::Receiver<Option<Ended>>,
}

/// Requests that have not had their last answer.
#[derive(Debug, Default)]
struct Open {
    requests: BTreeMap<u64, Waiter>,
    /// Set once the node has ended: later requests fail at once.
    ended: Option<Ended>,
}

/// Who waits for the answers to a request.
#[derive(Debug)]
struct Waiter {
    answers: mpsc::UnboundedSender<Answer>,
    waiting: Arc<AtomicUsize>,
}

impl Shared {
    fn write(&self, frame: Vec<u8>) {
        self.waiting.fetch_add(frame.len(), Ordering::Relaxed);
        drop(self.frames.send(frame));
    }

    fn control(&self, name: &str, args: Term) {
        let frame = Term::tuple([Term::atom("ctl"), Term::atom(name), args]);
        if let Ok(bytes) = frame::encode(&frame) {
            self.write(bytes);
        }
    }
}

#[derive(Debug)]
enum Control {
    Kill,
    CloseAndWait(Duration),
}

impl NodeLink {
    /// Start a node. It boots while the caller goes on; requests wait in the pipe.
    pub fn start(
        erlang: &Erlang,
        runtime: &Runtime,
        options: NodeOptions,
    ) -> Result<(Self, mpsc::Receiver<NodeMessage>), Error> {
        let broken = |cause| Error::ErlangBroken {
            program: erlang.program().to_owned(),
            cause,
        };
        let mut command = Command::from(launch::workspace_command(erlang, runtime, &options));
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(options.log)
            .kill_on_drop(true)
            .spawn()
            .map_err(broken)?;
        let (Some(requests), Some(replies), Some(pid)) =
            (child.stdin.take(), child.stdout.take(), child.id())
        else {
            return Err(Error::NodeGone { status: None });
        };
        let (frames, outgoing) = mpsc::unbounded_channel();
        let (commands, controls) = mpsc::channel(1);
        let (messages, receiver) = mpsc::channel(MESSAGES);
        let waiting = Arc::new(AtomicUsize::new(0));
        let (exited_sender, exited) = watch::channel(None);
        let open = Arc::new(Mutex::new(Open::default()));
        let writer = tokio::spawn(write_frames(requests, outgoing, Arc::clone(&waiting)));
        let reader = Reader {
            open: Arc::clone(&open),
            messages,
        };
        tokio::spawn(own_node(child, replies, reader, writer, controls, exited_sender));
        let shared = Arc::new(Shared {
            pid,
            next_id: AtomicU64::new(1),
            frames,
            waiting,
            commands,
            open,
            exited,
        });
        Ok((Self { shared }, receiver))
    }

    /// Process id of the node.
    pub fn pid(&self) -> u32 {
        self.shared.pid
    }

    /// Ask the node something, for a session or for none.
    pub fn request(&self, session: Option<&str>, op: &str, args: Term) -> Reply {
        if self.shared.waiting.load(Ordering::Relaxed) > WAITING_BYTES {
            let (sender, reply) = self.reply();
            drop(sender.answers.send(Answer::Failed(frame::refusal(
                "busy",
                "the node does not read what was sent to it",
            ))));
            return reply;
        }
        self.send(session, op, args)
    }

    /// Ask for a sign of life, however much waits already.
    pub fn ping(&self) -> Reply {
        self.send(None, "ping", Term::Map(Vec::new()))
    }

    /// A new number, and both ends of its answers.
    fn reply(&self) -> (Waiter, Reply) {
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answers) = mpsc::unbounded_channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let waiter = Waiter {
            answers: sender,
            waiting: Arc::clone(&waiting),
        };
        let reply = Reply {
            id,
            answers,
            waiting,
            node: Arc::downgrade(&self.shared),
        };
        (waiter, reply)
    }

    fn send(&self, session: Option<&str>, op: &str, args: Term) -> Reply {
        let (waiter, reply) = self.reply();
        let id = reply.id;
        let frame = Term::tuple([
            Term::atom("req"),
            Term::Integer(id.cast_signed()),
            session.map_or_else(|| Term::atom("nil"), Term::binary),
            Term::binary(op),
            args,
        ]);
        match frame::encode(&frame) {
            Ok(bytes) => {
                let mut open = lock(&self.shared.open);
                if let Some(Ended { status }) = open.ended {
                    drop(waiter.answers.send(Answer::NodeGone(status)));
                } else {
                    open.requests.insert(id, waiter);
                    self.shared.write(bytes);
                }
            }
            Err(refusal) => drop(waiter.answers.send(Answer::Failed(refusal))),
        }
        reply
    }

    /// Tell the node something that has no answer.
    pub fn control(&self, name: &str, args: Term) {
        self.shared.control(name, args);
    }

    /// Allow an evaluation that many more bytes of output.
    pub fn credit(&self, request: u64, bytes: usize) {
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.control(
            "credit",
            Term::Map(vec![
                (Term::binary("id"), Term::Integer(request.cast_signed())),
                (Term::binary("bytes"), Term::Integer(bytes)),
            ]),
        );
    }

    /// Answer a [`NodeMessage::Ask`].
    pub fn answer(&self, number: i64, outcome: Result<Term, Term>) {
        let (key, value) = match outcome {
            Ok(answer) => ("ok", answer),
            Err(error) => ("error", error),
        };
        self.control(
            "answer",
            Term::Map(vec![
                (Term::binary("number"), Term::Integer(number)),
                (Term::binary(key), value),
            ]),
        );
    }

    /// End the node at once.
    pub fn kill(&self) {
        // One order is enough: whoever came first ends the node too.
        drop(self.shared.commands.try_send(Control::Kill));
    }

    /// Close the pipe, give the node time to end in order, then kill it. Answers when it is gone.
    pub async fn stop(&self, grace: Duration) -> Option<ExitStatus> {
        drop(self.shared.commands.try_send(Control::CloseAndWait(grace)));
        self.exited().await
    }

    /// Wait until the node has ended.
    pub async fn exited(&self) -> Option<ExitStatus> {
        let mut exited = self.shared.exited.clone();
        match exited.wait_for(Option::is_some).await {
            Ok(ended) => ended.and_then(|ended| ended.status),
            Err(_) => None,
        }
    }
}

fn lock(open: &Mutex<Open>) -> std::sync::MutexGuard<'_, Open> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Frames leave one after another; many small ones share a write.
async fn write_frames(
    mut pipe: ChildStdin,
    mut frames: mpsc::UnboundedReceiver<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
) {
    let mut batch = Vec::new();
    while let Some(frame) = frames.recv().await {
        batch.clear();
        batch.extend_from_slice(&frame);
        while batch.len() < (1 << 16)
            && let Ok(more) = frames.try_recv()
        {
            batch.extend_from_slice(&more);
        }
        // The reading side notices the end of the node; what cannot be written is answered there.
        if pipe.write_all(&batch).await.is_err() {
            return;
        }
        waiting.fetch_sub(batch.len(), Ordering::Relaxed);
    }
}

struct Reader {
    open: Arc<Mutex<Open>>,
    messages: mpsc::Sender<NodeMessage>,
}

impl Reader {
    /// Read until the node closes its side.
    async fn run(&self, pipe: ChildStdout) {
        let mut pipe = BufReader::with_capacity(1 << 16, pipe);
        let mut buffer = Vec::new();
        while let Some(incoming) = frame::read(&mut pipe, &mut buffer).await {
            match incoming {
                Incoming::Answer(id, answer) => self.deliver(id, answer),
                Incoming::Message(message) => drop(self.messages.send(message).await),
            }
        }
    }

    fn deliver(&self, id: u64, answer: Answer) {
        let mut open = lock(&self.open);
        let is_last = !matches!(answer, Answer::Out(_) | Answer::NeedInput(_));
        if let Some(waiter) = open.requests.get(&id) {
            let weight = answer.weight();
            if weight == 0 || waiter.waiting.load(Ordering::Relaxed) + weight <= OUTPUT_BYTES {
                waiter.waiting.fetch_add(weight, Ordering::Relaxed);
                drop(waiter.answers.send(answer));
            }
        }
        if is_last {
            open.requests.remove(&id);
        }
    }

    async fn finish(&self, status: Option<ExitStatus>) {
        let requests = {
            let mut open = lock(&self.open);
            open.ended = Some(Ended { status });
            std::mem::take(&mut open.requests)
        };
        for (_, waiter) in requests {
            drop(waiter.answers.send(Answer::NodeGone(status)));
        }
        drop(self.messages.send(NodeMessage::Exited(status)).await);
    }
}

/// The life of the child, from its start to the last answer.
async fn own_node(
    mut child: Child,
    replies: ChildStdout,
    reader: Reader,
    writer: tokio::task::JoinHandle<()>,
    mut controls: mpsc::Receiver<Control>,
    exited: watch::Sender<Option<Ended>>,
) {
    let mut reading = std::pin::pin!(reader.run(replies));
    let status = tokio::select! {
        status = child.wait() => {
            // What the node wrote before its end is still in the pipe; a process it started may hold it open.
            drop(tokio::time::timeout(DRAIN, &mut reading).await);
            status.ok()
        }
        grace = commanded(&mut controls, &writer) => {
            tokio::select! {
                status = end(&mut child, grace) => status,
                () = async { reading.as_mut().await; std::future::pending().await } => None,
            }
        }
        // A node that closed its pipe is of no use, even if it lives.
        () = &mut reading => end(&mut child, DRAIN).await,
    };
    writer.abort();
    exited.send_replace(Some(Ended { status }));
    reader.finish(status).await;
}

/// Waits for the order to end the node; answers how long it may take to end by itself.
async fn commanded(controls: &mut mpsc::Receiver<Control>, writer: &tokio::task::JoinHandle<()>) -> Duration {
    match controls.recv().await {
        Some(Control::Kill) => Duration::ZERO,
        Some(Control::CloseAndWait(grace)) => {
            // Dropping the writer closes the pipe, which the node takes as the order to stop.
            writer.abort();
            grace
        }
        // The last handle is gone.
        None => Duration::ZERO,
    }
}

async fn end(child: &mut Child, grace: Duration) -> Option<ExitStatus> {
    if !grace.is_zero()
        && let Ok(status) = tokio::time::timeout(grace, child.wait()).await
    {
        return status.ok();
    }
    drop(child.start_kill());
    child.wait().await.ok()
}
