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
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use beamtalk_etf::Term;
use tokio::io::{AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};
use tokio::sync::{mpsc, watch};

use crate::{DistributionFlags, Erlang, Error, Runtime, launch};
use frame::Incoming;

/// How long the rest of a pipe, or the end of a node that closed its pipe, is waited for.
const DRAIN: Duration = Duration::from_secs(1);

/// How the node of a workspace is started.
#[derive(Debug)]
pub struct NodeOptions {
    /// Current directory of the node: the project root.
    pub directory: PathBuf,
    /// Where the node's standard output and error go.
    pub log: OwnedFd,
    pub crash_dump: PathBuf,
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
}

impl Reply {
    /// The number under which the node knows the request; credit and `interrupt` name it.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The next answer; `None` after the last.
    pub async fn next(&mut self) -> Option<Answer> {
        self.answers.recv().await
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
    commands: mpsc::UnboundedSender<Control>,
    open: Arc<Mutex<Open>>,
    exited: watch::Receiver<Option<Ended>>,
}

/// Requests that have not had their last answer.
#[derive(Debug, Default)]
struct Open {
    requests: BTreeMap<u64, mpsc::UnboundedSender<Answer>>,
    /// Set once the node has ended: later requests fail at once.
    ended: Option<Ended>,
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
    ) -> Result<(Self, mpsc::UnboundedReceiver<NodeMessage>), Error> {
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
        let (commands, controls) = mpsc::unbounded_channel();
        let (messages, receiver) = mpsc::unbounded_channel();
        let (exited_sender, exited) = watch::channel(None);
        let open = Arc::new(Mutex::new(Open::default()));
        let writer = tokio::spawn(write_frames(requests, outgoing));
        let reader = Reader {
            open: Arc::clone(&open),
            messages,
        };
        tokio::spawn(own_node(child, replies, reader, writer, controls, exited_sender));
        let shared = Arc::new(Shared {
            pid,
            next_id: AtomicU64::new(1),
            frames,
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
        let id = self.shared.next_id.fetch_add(1, Ordering::Relaxed);
        let (sender, answers) = mpsc::unbounded_channel();
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
                    drop(sender.send(Answer::NodeGone(status)));
                } else {
                    open.requests.insert(id, sender);
                    drop(self.shared.frames.send(bytes));
                }
            }
            Err(refusal) => drop(sender.send(Answer::Failed(refusal))),
        }
        Reply { id, answers }
    }

    /// Tell the node something that has no answer.
    pub fn control(&self, name: &str, args: Term) {
        let frame = Term::tuple([Term::atom("ctl"), Term::atom(name), args]);
        if let Ok(bytes) = frame::encode(&frame) {
            drop(self.shared.frames.send(bytes));
        }
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
        drop(self.shared.commands.send(Control::Kill));
    }

    /// Close the pipe, give the node time to end in order, then kill it. Answers when it is gone.
    pub async fn stop(&self, grace: Duration) -> Option<ExitStatus> {
        drop(self.shared.commands.send(Control::CloseAndWait(grace)));
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
async fn write_frames(mut pipe: ChildStdin, mut frames: mpsc::UnboundedReceiver<Vec<u8>>) {
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
    }
}

struct Reader {
    open: Arc<Mutex<Open>>,
    messages: mpsc::UnboundedSender<NodeMessage>,
}

impl Reader {
    /// Read until the node closes its side.
    async fn run(&self, pipe: ChildStdout) {
        let mut pipe = BufReader::with_capacity(1 << 16, pipe);
        let mut buffer = Vec::new();
        while let Some(incoming) = frame::read(&mut pipe, &mut buffer).await {
            match incoming {
                Incoming::Answer(id, answer) => self.deliver(id, answer),
                Incoming::Message(message) => drop(self.messages.send(message)),
            }
        }
    }

    fn deliver(&self, id: u64, answer: Answer) {
        let mut open = lock(&self.open);
        let is_last = !matches!(answer, Answer::Out(_) | Answer::NeedInput(_));
        if let Some(waiting) = open.requests.get(&id) {
            drop(waiting.send(answer));
        }
        if is_last {
            open.requests.remove(&id);
        }
    }

    fn finish(&self, status: Option<ExitStatus>) {
        let mut open = lock(&self.open);
        open.ended = Some(Ended { status });
        for (_, waiting) in std::mem::take(&mut open.requests) {
            drop(waiting.send(Answer::NodeGone(status)));
        }
        drop(self.messages.send(NodeMessage::Exited(status)));
    }
}

/// The life of the child, from its start to the last answer.
async fn own_node(
    mut child: Child,
    replies: ChildStdout,
    reader: Reader,
    writer: tokio::task::JoinHandle<()>,
    mut controls: mpsc::UnboundedReceiver<Control>,
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
    reader.finish(status);
    exited.send_replace(Some(Ended { status }));
}

/// Waits for the order to end the node; answers how long it may take to end by itself.
async fn commanded(
    controls: &mut mpsc::UnboundedReceiver<Control>,
    writer: &tokio::task::JoinHandle<()>,
) -> Duration {
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
