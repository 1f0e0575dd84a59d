//! What everybody may see of a session, and the queue of its task.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beamtalk_ninep::Refusal;
use beamtalk_storage::time::now_seconds;
use tokio::sync::{mpsc, oneshot, watch};

use super::chat::Chat;
use super::core::State;
use super::prompt_queue::PromptQueue;
use super::record::{OutputExtent, Record};
use super::usage::Usage;
use crate::access::{Acl, DEFAULT_ACL};
use crate::error::refusal;
use crate::output::Output;
use crate::worktree::Worktree;

/// What waiting readers look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Status {
    pub(crate) state: State,
    /// Turns begun and finished in this life of the daemon.
    pub(crate) begun: u64,
    pub(crate) finished: u64,
}

/// An operation that changes the process; they exclude each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Stop,
    Restart,
    Kill,
    Clear,
    Compact,
    Resume,
}

pub(crate) type Done<T> = oneshot::Sender<Result<T, Refusal>>;

/// What the task of a session can be asked.
pub(crate) enum Command {
    Prompt {
        text: Vec<u8>,
        from: String,
        done: Done<u64>,
    },
    Operate {
        operation: Operation,
        done: Done<()>,
    },
    WriteState {
        to: State,
        control: bool,
        done: Done<()>,
    },
    Interrupt {
        done: Done<()>,
    },
    Refresh {
        done: Done<()>,
    },
    Screen {
        done: Done<String>,
    },
    /// Type the answer to the question of the program, if the screen still shows it.
    Answer {
        approve: bool,
        shown: String,
        done: Done<()>,
    },
    /// Something happened to the window.
    Tick,
    /// The launcher has started the backend.
    Started,
    OutputGrew {
        bytes: u64,
    },
    NewMail,
    MailSent,
    /// Make tmux and the record agree with changed names.
    Save,
    /// Whether a prompt could be delivered, whatever the state.
    CheckPrompt {
        text: Vec<u8>,
        done: Done<String>,
    },
    /// A prompt waits.
    Queued,
}

pub(crate) struct Texts {
    pub(crate) out: String,
    pub(crate) context: String,
    pub(crate) acl: Acl,
    pub(crate) budget: String,
    pub(crate) usage: Usage,
}

pub(crate) struct SessionShared {
    pub(crate) id: String,
    pub(crate) directory: PathBuf,
    record: Mutex<Record>,
    texts: Mutex<Texts>,
    pub(crate) output: Output,
    pub(crate) chat: Chat,
    pub(crate) prompts: PromptQueue,
    /// Git works on a copy once at a time.
    pub(crate) git: tokio::sync::Mutex<()>,
    pub(crate) status: watch::Sender<Status>,
    pub(crate) queue: mpsc::UnboundedSender<Command>,
    operating: AtomicBool,
    version: AtomicU32,
    changed: AtomicU32,
    pub(crate) context_due: AtomicBool,
    pub(crate) screen_length: AtomicU32,
    /// Places for servers that AI clients in it speak to.
    pub(crate) servers: Arc<tokio::sync::Semaphore>,
}

/// Servers that AI clients in a session speak to at the same time.
const SERVERS: usize = 8;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionShared {
    pub(crate) fn new(
        directory: PathBuf,
        record: Record,
        output: Output,
        chat: Chat,
    ) -> std::io::Result<(Arc<Self>, mpsc::UnboundedReceiver<Command>)> {
        let (queue, receiver) = mpsc::unbounded_channel();
        let text = |name: &str| std::fs::read_to_string(directory.join(name)).unwrap_or_default();
        let acl = std::fs::read_to_string(directory.join("acl")).unwrap_or_else(|_| DEFAULT_ACL.to_owned());
        let acl = Acl::parse(&acl, usize::MAX).or_else(|_| Acl::parse(DEFAULT_ACL, usize::MAX));
        let acl = acl.map_err(|refused| std::io::Error::other(refused.text.into_owned()))?;
        let status = Status {
            state: record.state(),
            begun: 0,
            finished: 0,
        };
        let shared = SessionShared {
            id: record.id.clone(),
            texts: Mutex::new(Texts {
                out: text("out"),
                context: text("context"),
                acl,
                budget: text("budget"),
                usage: Usage::read(&directory),
            }),
            git: tokio::sync::Mutex::default(),
            prompts: PromptQueue::open(&directory.join("queue")),
            directory,
            record: Mutex::new(record),
            output,
            chat,
            status: watch::Sender::new(status),
            queue,
            operating: AtomicBool::new(false),
            version: AtomicU32::new(1),
            changed: AtomicU32::new(now_seconds() as u32),
            context_due: AtomicBool::new(true),
            screen_length: AtomicU32::new(0),
            servers: Arc::new(tokio::sync::Semaphore::new(SERVERS)),
        };
        Ok((Arc::new(shared), receiver))
    }

    /// The record with what changes by itself filled in.
    pub(crate) fn record(&self) -> Record {
        let mut record = lock(&self.record).clone();
        let extent = self.output.extent();
        record.output = OutputExtent {
            base: extent.base,
            end: extent.end,
        };
        record
    }

    pub(crate) fn with_record<T>(&self, look: impl FnOnce(&Record) -> T) -> T {
        look(&lock(&self.record))
    }

    pub(crate) fn change_record<T>(&self, change: impl FnOnce(&mut Record) -> T) -> T {
        let outcome = change(&mut lock(&self.record));
        self.touch();
        outcome
    }

    pub(crate) fn with_texts<T>(&self, look: impl FnOnce(&Texts) -> T) -> T {
        look(&lock(&self.texts))
    }

    pub(crate) fn change_texts<T>(&self, change: impl FnOnce(&mut Texts) -> T) -> T {
        let outcome = change(&mut lock(&self.texts));
        self.touch();
        outcome
    }

    pub(crate) fn touch(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
        self.changed.store(now_seconds() as u32, Ordering::Relaxed);
    }

    pub(crate) fn version(&self) -> u32 {
        self.version.load(Ordering::Relaxed)
    }

    pub(crate) fn changed(&self) -> u32 {
        self.changed.load(Ordering::Relaxed)
    }

    pub(crate) fn state(&self) -> State {
        self.status.borrow().state
    }

    pub(crate) fn alias(&self) -> Option<String> {
        lock(&self.record).alias.clone()
    }

    /// Write the record; the disk is waited for.
    pub(crate) fn save(&self) -> std::io::Result<()> {
        let record = self.record();
        crate::files::replace(&self.directory.join("session.json"), record.to_json().as_bytes())
    }

    /// Ask the task and wait for its answer.
    pub(crate) async fn ask<T>(&self, make: impl FnOnce(Done<T>) -> Command) -> Result<T, Refusal> {
        let (done, answer) = oneshot::channel();
        let gone = || refusal("session not found");
        self.queue.send(make(done)).map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }

    pub(crate) fn tell(&self, command: Command) {
        // A session that is gone has nothing more to hear.
        drop(self.queue.send(command));
    }

    /// The copy of a repository the session works in, and the name its work is done under.
    pub(crate) fn worktree(&self) -> Result<(Worktree, String), Refusal> {
        let found = self.with_record(|record| {
            let name = record.alias.clone().unwrap_or_else(|| record.id.clone());
            record.worktree.clone().map(|worktree| (worktree, name))
        });
        found.ok_or_else(|| refusal("not found: the session has no worktree"))
    }

    /// Do an operation unless another one is under way.
    pub(crate) async fn operate(&self, operation: Operation) -> Result<(), Refusal> {
        if self.operating.swap(true, Ordering::AcqRel) {
            return Err(refusal("another operation in progress"));
        }
        let outcome = self.ask(|done| Command::Operate { operation, done }).await;
        self.operating.store(false, Ordering::Release);
        outcome
    }
}
