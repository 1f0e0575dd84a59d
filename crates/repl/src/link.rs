//! The connection of a session: requests, interrupts, and coming back after it was lost.
//!
//! A session at a terminal hands its connection to a keeper, which runs beside the prompt: it shows what the workspace
//! says unasked and connects again when the connection breaks. Without a terminal there is no keeper and no thread.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use beamtalk_client::{Answer, Connection, Error, Events, Fault, Pending, Reply};
use beamtalk_wire::requests::{Changes, Close, Subscribe};
use beamtalk_wire::{Channel, Operation};
use tokio::runtime::{Handle, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::{Notify, watch};
use tokio::time::{timeout, timeout_at};

use crate::error::Result;
use crate::greeting::{self, Arrival};
use crate::notices::{self, Notices, Prompt};

const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(500);
/// Tries during which a daemon that is stopping is waited for: evaluations and supervisors get their time.
const LONGEST_STOP: u32 = 40;
/// Between two attempts to wake the editor.
const WAKE_PAUSE: Duration = Duration::from_millis(100);

pub type Dialed<'a> = Pin<Box<dyn Future<Output = Result<(Connection, Events), Fault>> + Send + 'a>>;

/// What is known of a workspace that does not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Life {
    /// Nothing: it is another's, or may not be started from here.
    Unknown,
    /// Its daemon lives, perhaps about to stop.
    Held,
    /// It has no daemon, and can be started.
    Gone,
}

/// How the workspace is reached: where it is and the secret are read anew each time.
pub trait Dial: Send + Sync + 'static {
    fn dial<'a>(&'a self, resume: Option<&'a str>) -> Dialed<'a>;

    fn life(&self) -> Life {
        Life::Unknown
    }

    /// Start the workspace again; answers what the user should know of that, or why it is not started. Takes its time.
    fn revive(&self) -> Result<Vec<String>, String> {
        Err("the workspace is not started from here".to_owned())
    }
}

/// What happened while a request was open.
#[derive(Debug)]
pub(crate) enum Turn {
    Reply(Reply),
    /// Ctrl-C.
    Interrupt,
    Lost,
}

/// What waiting for a connection came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    Connected,
    /// The keeper gave up.
    Down,
    /// Ctrl-C.
    Interrupted,
}

#[derive(Clone)]
enum State {
    Up(Arc<Connection>),
    Retrying,
    Down,
}

/// Who drives the connection while the main thread does something else.
enum Executor {
    /// Nobody: it moves only while the main thread waits for it.
    Here(Runtime),
    Beside(Handle),
}

impl Executor {
    fn block_on<F: Future>(&self, future: F) -> F::Output {
        match self {
            Self::Here(runtime) => runtime.block_on(future),
            Self::Beside(handle) => handle.block_on(future),
        }
    }
}

struct Shared {
    state: watch::Sender<State>,
    /// Asks the keeper for a new connection.
    again: Notify,
    /// The session is a new one: there may be something to ask the user.
    is_new: AtomicBool,
    wants_transcript: AtomicBool,
    /// The end of the connection is wanted.
    is_leaving: AtomicBool,
}

/// The connection as the session uses it.
pub struct Link {
    executor: Executor,
    shared: Arc<Shared>,
    /// Taken by the keeper when there is one.
    kept: Option<(Box<dyn Dial>, Events)>,
    /// What the keeper says.
    notices: Option<Arc<Notices>>,
}

impl Link {
    /// Connect, without a keeper.
    pub fn open(dial: Box<dyn Dial>) -> Result<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let (connection, events) = runtime.block_on(dial.dial(None))?;
        let (state, _) = watch::channel(State::Up(Arc::new(connection)));
        Ok(Self {
            executor: Executor::Here(runtime),
            shared: Arc::new(Shared {
                state,
                again: Notify::new(),
                is_new: AtomicBool::new(true),
                wants_transcript: AtomicBool::new(false),
                is_leaving: AtomicBool::new(false),
            }),
            kept: Some((dial, events)),
            notices: None,
        })
    }

    /// Start the keeper in a thread of its own.
    pub(crate) fn keep(mut self, notices: Arc<Notices>) -> Result<Self> {
        let (Executor::Here(runtime), Some((dial, events))) = (self.executor, self.kept.take()) else {
            unreachable!("a session starts one keeper");
        };
        let handle = runtime.handle().clone();
        let shared = self.shared.clone();
        self.notices = Some(notices.clone());
        std::thread::Builder::new()
            .name("workspace".to_owned())
            .spawn(move || runtime.block_on(keep(&shared, &*dial, events, &notices)))?;
        Ok(Self {
            executor: Executor::Beside(handle),
            shared: self.shared,
            kept: None,
            notices: self.notices,
        })
    }

    /// A completer has its own way to the workspace, while the session waits in the editor.
    pub(crate) fn asker(&self) -> Option<Asker> {
        match &self.executor {
            Executor::Here(_) => None,
            Executor::Beside(handle) => Some(Asker {
                handle: handle.clone(),
                shared: self.shared.clone(),
            }),
        }
    }

    /// The session's name.
    pub(crate) fn session(&self) -> String {
        match &*self.shared.state.borrow() {
            State::Up(connection) => connection.session.clone(),
            State::Retrying | State::Down => String::new(),
        }
    }

    /// Where the workspace is.
    pub(crate) fn address(&self) -> String {
        match &*self.shared.state.borrow() {
            State::Up(connection) => connection.address.clone(),
            State::Retrying | State::Down => String::new(),
        }
    }

    /// Signals of the terminal from now on.
    pub(crate) fn interrupts(&self) -> std::io::Result<Signal> {
        self.executor.block_on(async { signal(SignalKind::interrupt()) })
    }

    pub(crate) fn send<O: Operation>(&self, request: &O) -> Result<Pending, Error> {
        // The connection's own tasks are reached through channels, so no runtime is needed to send.
        match &*self.shared.state.borrow() {
            State::Up(connection) => connection.send(request),
            State::Retrying | State::Down => Err(Error::Lost),
        }
    }

    /// The next thing that happens to a request; `None` when the deadline passes first.
    pub(crate) fn next(
        &self,
        pending: &mut Pending,
        interrupts: &mut Signal,
        deadline: Option<Instant>,
    ) -> Option<Turn> {
        self.executor.block_on(async {
            let turn = async {
                tokio::select! {
                    reply = pending.next() => reply.map_or(Turn::Lost, Turn::Reply),
                    _ = interrupts.recv() => Turn::Interrupt,
                }
            };
            match deadline {
                None => Some(turn.await),
                Some(deadline) => timeout_at(deadline.into(), turn).await.ok(),
            }
        })
    }

    /// One question before the session starts.
    pub(crate) fn ask<O: Operation>(&self, request: &O) -> Option<O::Answer> {
        let pending = self.send(request).ok()?;
        let message = self.executor.block_on(pending.done()).ok()?;
        Answer::read(message).body.ok()
    }

    /// Wait for the keeper to come back with a connection.
    pub(crate) fn wait_for_connection(&self, interrupts: &mut Signal) -> Wait {
        let mut state = self.shared.state.subscribe();
        self.executor.block_on(async {
            // The end of a connection is seen here a moment before the keeper sees it.
            let is_settled = |state: &State| match state {
                State::Up(connection) => !connection.is_lost(),
                State::Retrying => false,
                State::Down => true,
            };
            tokio::select! {
                settled = state.wait_for(is_settled) => match settled {
                    Ok(settled) if matches!(*settled, State::Up(_)) => Wait::Connected,
                    _ => Wait::Down,
                },
                _ = interrupts.recv() => Wait::Interrupted,
            }
        })
    }

    /// Whether the keeper came back with a new session since this was asked last.
    pub(crate) fn take_news(&self) -> bool {
        self.shared.is_new.swap(false, Ordering::SeqCst)
    }

    /// Has the keeper given up?
    pub(crate) fn is_down(&self) -> bool {
        matches!(*self.shared.state.borrow(), State::Down)
    }

    /// Give up the connection for a new one. Answers whether there is one, when what became of it is shown.
    pub(crate) fn reconnect(&self) -> bool {
        // Held weakly: the old connection ends when the keeper lets go of it.
        let old = match &*self.shared.state.borrow() {
            State::Up(connection) => Some(Arc::downgrade(connection)),
            State::Retrying | State::Down => None,
        };
        let mut state = self.shared.state.subscribe();
        self.shared.again.notify_one();
        let is_up = self.executor.block_on(async {
            let is_settled = |state: &State| match state {
                State::Up(connection) => old
                    .as_ref()
                    .is_none_or(|old| !Weak::ptr_eq(old, &Arc::downgrade(connection))),
                State::Retrying => false,
                State::Down => true,
            };
            match state.wait_for(is_settled).await {
                Ok(settled) => matches!(*settled, State::Up(_)),
                Err(_) => false,
            }
        });
        if let Some(notices) = &self.notices {
            notices.settle();
        }
        is_up
    }

    /// Remember for the next connection whether the Transcript is wanted.
    pub(crate) fn want_transcript(&self, wanted: bool) {
        self.shared.wants_transcript.store(wanted, Ordering::Relaxed);
    }

    /// End the session without grace, and let the farewell reach the workspace.
    pub(crate) fn close(self) {
        self.shared.is_leaving.store(true, Ordering::SeqCst);
        let Ok(pending) = self.send(&Close {}) else {
            return;
        };
        // Nothing depends on the answer.
        let farewell = async { timeout(Duration::from_millis(500), pending.done()).await };
        drop(self.executor.block_on(farewell));
    }
}

/// Questions with a time limit, from within the editor.
pub(crate) struct Asker {
    handle: Handle,
    shared: Arc<Shared>,
}

impl Asker {
    pub(crate) fn ask<O: Operation>(&self, request: &O, limit: Duration) -> Option<O::Answer> {
        let connection = match &*self.shared.state.borrow() {
            State::Up(connection) => connection.clone(),
            State::Retrying | State::Down => return None,
        };
        let question = async { timeout(limit, connection.ask(request)).await };
        self.handle.block_on(question).ok()?.ok()
    }
}

/// Show what the workspace says, and connect again when the connection ends.
async fn keep(shared: &Shared, dial: &dyn Dial, mut events: Events, notices: &Notices) {
    loop {
        let is_asked = loop {
            tokio::select! {
                event = events.recv() => match event {
                    Some(event) => notices::tell(notices, &event),
                    None => break false,
                },
                () = shared.again.notified() => break true,
                // Whoever is typing is asked when that is done.
                () = tokio::time::sleep(WAKE_PAUSE), if shared.is_new.load(Ordering::SeqCst) => {
                    // The question may just be asked, which is not to be interrupted.
                    notices.wake_prompt(|prompt| {
                        prompt == Prompt::Idle && shared.is_new.load(Ordering::SeqCst)
                    });
                }
            }
        };
        if shared.is_leaving.load(Ordering::SeqCst) {
            // The farewell is waited for with what would end here.
            std::future::pending::<()>().await;
        }
        if !is_asked {
            notices.say("Connection lost, reconnecting…");
        }
        let session = match shared.state.send_replace(State::Retrying) {
            State::Up(connection) => connection.session.clone(),
            State::Retrying | State::Down => String::new(),
        };
        let Some((connection, received, arrival)) = redial(dial, &session, notices).await else {
            shared.state.send_replace(State::Down);
            // Until the session has seen it: a signal that comes while the editor is being set up is lost.
            loop {
                notices.wake_prompt(|_| true);
                tokio::time::sleep(WAKE_PAUSE).await;
            }
        };
        let is_resumed = connection.resumed;
        notices.say(if is_resumed {
            "Reconnected (session resumed)."
        } else {
            "Reconnected (new session; bindings are gone)."
        });
        if shared.wants_transcript.load(Ordering::Relaxed) {
            drop(connection.send(&Subscribe {
                channels: vec![Channel::Transcript],
                ..Subscribe::default()
            }));
        }
        let state = connection.ask(&state()).await.ok();
        // A workspace that was started here has told it.
        if arrival == Arrival::Attached {
            greeting::state_lines(state.as_ref())
                .iter()
                .for_each(|line| notices.say(line));
        }
        events = received;
        shared.state.send_replace(State::Up(Arc::new(connection)));
        if !is_resumed && greeting::waits(state.as_ref()) {
            shared.is_new.store(true, Ordering::SeqCst);
        }
    }
}

type Redialed = (Connection, Events, Arrival);

/// Connect again. A workspace that has no daemon any more is started, if that is done from here; whoever is just
/// starting it again has the time of all tries for that.
async fn redial(dial: &dyn Dial, session: &str, notices: &Notices) -> Option<Redialed> {
    let mut is_gone = false;
    for attempt in 0..LONGEST_STOP {
        if attempt > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        if let Ok((connection, events)) = dial.dial(Some(session)).await {
            return Some((connection, events, Arrival::Attached));
        }
        let was_gone = is_gone;
        let life = dial.life();
        is_gone = life == Life::Gone;
        if attempt + 1 < TRIES {
            continue;
        }
        if life == Life::Unknown {
            return None;
        }
        // Between the end of one daemon and the start of the next, a restart has none for a moment.
        if is_gone && was_gone {
            return revive(dial, session, notices).await;
        }
    }
    None
}

async fn revive(dial: &dyn Dial, session: &str, notices: &Notices) -> Option<Redialed> {
    match dial.revive() {
        Ok(said) => {
            notices.say("The workspace had stopped; started again.");
            said.iter().for_each(|line| notices.say(line));
        }
        Err(error) => {
            notices.say(&format!(
                "Error: the workspace had stopped and does not start: {error}"
            ));
            return None;
        }
    }
    match dial.dial(Some(session)).await {
        Ok((connection, events)) => Some((connection, events, Arrival::Started)),
        Err(error) => {
            notices.say(&format!("Error: {error}"));
            None
        }
    }
}

/// What is asked by whoever comes in: what waits, and where the disk is ahead.
pub fn state() -> Changes {
    Changes {
        disk: Some(true),
        ..Changes::default()
    }
}
