//! The live image: the node that holds it, its restarts, and requests to it.

use std::cell::{Cell, RefCell};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::{Duration, Instant};

use beamtalk_etf::Term;
use beamtalk_node::{
    Answer, DistributionFlags, Erlang, NodeLink, NodeMessage, NodeOptions, PrintError, PrinterLimits, Reply,
    Runtime, print_forms,
};
use beamtalk_storage::RotatingLog;
use beamtalk_wire::{ErrorBody, ErrorKind, Operation};
use rustix::pipe::PipeFlags;
use serde_json::{Map, Value};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe::Receiver;
use tokio::sync::Notify;
use tokio::sync::mpsc::Receiver as Messages;

use crate::terms;

/// Waits before the first, second and third restart.
const PAUSES: [Duration; 3] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(4),
];
/// More exits than pauses within this time are a failure.
const WINDOW: Duration = Duration::from_mins(1);
/// What is left of a node.
const AFTER_A_NODE: &str = "bindings and actors are gone; classes are loaded again from their files, and changes that were not \
    flushed are installed again or wait: the list of changes says which";

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Phase {
    Starting,
    Up,
    Down,
    Failed,
}

impl Phase {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Up => "up",
            Self::Down => "down",
            Self::Failed => "failed",
        }
    }
}

/// What every start of the node needs.
pub(crate) struct NodeSetup {
    pub erlang: Erlang,
    pub runtime: Runtime,
    pub directory: PathBuf,
    pub log: Rc<RefCell<RotatingLog>>,
    pub crash_dump: PathBuf,
    pub disabled_capabilities: Vec<String>,
    pub distribution: Option<DistributionFlags>,
    pub log_level: String,
    pub transcript: u64,
    pub compiler_timeout_s: u64,
    pub compiler_memory_mb: u64,
    pub max_processes: u64,
    /// What the node may take as a whole; 0 is no limit.
    pub memory_mb: u64,
}

pub(crate) struct Image {
    setup: NodeSetup,
    link: RefCell<Option<NodeLink>>,
    phase: Cell<Phase>,
    /// The phase is another one.
    turned: Notify,
    starts: Cell<u64>,
    exits: RefCell<Vec<Instant>>,
    last_error: RefCell<Option<String>>,
    /// Names bound for all sessions, as the node told last.
    pub globals: RefCell<Vec<String>>,
}

impl Image {
    pub(crate) fn new(setup: NodeSetup) -> Self {
        Self {
            setup,
            link: RefCell::new(None),
            phase: Cell::new(Phase::Starting),
            turned: Notify::new(),
            starts: Cell::new(0),
            exits: RefCell::new(Vec::new()),
            last_error: RefCell::new(None),
            globals: RefCell::new(Vec::new()),
        }
    }

    /// Start the node; it boots while the caller goes on.
    pub(crate) fn start(&self) -> Result<Messages<NodeMessage>, ErrorBody> {
        let failed =
            |cause: String| ErrorBody::new(ErrorKind::NodeDown, format!("the node did not start: {cause}"));
        let log = self.log_pipe().map_err(|cause| failed(cause.to_string()))?;
        let options = NodeOptions {
            directory: self.setup.directory.clone(),
            log,
            crash_dump: self.setup.crash_dump.clone(),
            max_processes: self.setup.max_processes,
            disabled_capabilities: self.setup.disabled_capabilities.clone(),
            distribution: self.setup.distribution.clone(),
        };
        let (link, messages) = NodeLink::start(&self.setup.erlang, &self.setup.runtime, options)
            .map_err(|cause| failed(cause.to_string()))?;
        self.turn(Phase::Starting);
        self.starts.set(self.starts.get() + 1);
        let number = |value: u64| Term::Integer(i64::try_from(value).unwrap_or(i64::MAX));
        let settings = terms::map([
            ("log_level", Term::binary(&self.setup.log_level)),
            ("transcript", number(self.setup.transcript)),
            ("compiler_timeout", number(self.setup.compiler_timeout_s)),
            ("max_processes", number(self.setup.max_processes)),
            ("memory_mb", number(self.setup.memory_mb)),
        ]);
        link.control("boot", settings);
        *self.link.borrow_mut() = Some(link);
        self.globals.borrow_mut().clear();
        Ok(messages)
    }

    /// What the node prints goes through the daemon, which keeps the log within its size.
    fn log_pipe(&self) -> std::io::Result<OwnedFd> {
        let (output, input) = rustix::pipe::pipe_with(PipeFlags::CLOEXEC)?;
        let mut output = Receiver::from_owned_fd(output)?;
        let log = self.setup.log.clone();
        tokio::task::spawn_local(async move {
            let mut buffer = vec![0; 1 << 16];
            while let Ok(count @ 1..) = output.read(&mut buffer).await {
                let bytes = buffer.get(..count).unwrap_or_default();
                if let Err(error) = log.borrow_mut().write_whole(bytes) {
                    tracing::error!("workspace.log: {error}");
                }
            }
        });
        Ok(input)
    }

    /// Open the log again, after it was moved away.
    pub(crate) fn reopen_log(&self) -> Result<(), beamtalk_storage::StorageError> {
        self.setup.log.borrow_mut().reopen()
    }

    /// The project is loaded into the node of that start: requests are welcome, unless that one has ended and another is on its way.
    pub(crate) fn ready(&self, start: u64) {
        if self.phase.get() == Phase::Starting && self.starts.get() == start {
            self.turn(Phase::Up);
        }
    }

    /// Note an exit; how long to wait before the next start, or `None` to give up.
    pub(crate) fn ended(&self, reason: String) -> Option<Duration> {
        self.link.borrow_mut().take();
        *self.last_error.borrow_mut() = Some(reason);
        let mut exits = self.exits.borrow_mut();
        exits.retain(|exit| exit.elapsed() < WINDOW);
        exits.push(Instant::now());
        let pause = PAUSES.get(exits.len() - 1).copied();
        self.turn(if pause.is_some() {
            Phase::Down
        } else {
            Phase::Failed
        });
        pause
    }

    fn turn(&self, phase: Phase) {
        self.phase.set(phase);
        self.turned.notify_waiters();
    }

    /// Wait for a node that is being started. One that is not started any more is not waited for.
    pub(crate) async fn up(&self) -> Result<(), ErrorBody> {
        loop {
            match self.phase.get() {
                Phase::Up => return Ok(()),
                Phase::Failed => return Err(self.down()),
                Phase::Starting | Phase::Down => self.turned.notified().await,
            }
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Counts the starts of the node; a session exists in one of them.
    pub(crate) fn start_number(&self) -> u64 {
        self.starts.get()
    }

    pub(crate) fn last_error(&self) -> Option<String> {
        self.last_error.borrow().clone()
    }

    pub(crate) fn pid(&self) -> Option<u32> {
        self.link.borrow().as_ref().map(NodeLink::pid)
    }

    pub(crate) fn link(&self) -> Option<NodeLink> {
        self.link.borrow().clone()
    }

    /// Why nothing can be asked now.
    pub(crate) fn down(&self) -> ErrorBody {
        match self.phase.get() {
            Phase::Starting | Phase::Down => {
                ErrorBody::new(ErrorKind::NodeStarting, "the node is being started")
                    .hint("try again in a moment")
            }
            Phase::Up => ErrorBody::new(
                ErrorKind::NodeDown,
                "the node ended before it answered; it is being restarted",
            )
            .hint(AFTER_A_NODE),
            Phase::Failed => ErrorBody::new(
                ErrorKind::NodeDown,
                "the node ended too often and is not restarted",
            )
            .hint("read the reason with: beamtalk workspace logs; then: beamtalk workspace restart"),
        }
    }

    /// Ask the node; answers come one after another.
    pub(crate) fn request(&self, session: &str, op: &str, arguments: Term) -> Result<Reply, ErrorBody> {
        if self.phase.get() != Phase::Up {
            return Err(self.down());
        }
        self.request_early(session, op, arguments)
    }

    /// The same while the node is still being prepared.
    fn request_early(&self, session: &str, op: &str, arguments: Term) -> Result<Reply, ErrorBody> {
        let link = self.link().ok_or_else(|| self.down())?;
        let session = Some(session).filter(|session| !session.is_empty());
        Ok(link.request(session, op, arguments))
    }

    /// Ask the node and wait for its one answer.
    pub(crate) async fn call(
        &self,
        session: &str,
        op: &str,
        arguments: Term,
    ) -> Result<Map<String, Value>, ErrorBody> {
        if matches!(self.phase.get(), Phase::Down | Phase::Failed) {
            return Err(self.down());
        }
        let reply = self.request_early(session, op, arguments)?;
        match reply.outcome().await {
            Ok(answer) => Ok(terms::to_object(&answer)),
            Err(Answer::Failed(error)) => Err(error_body(terms::to_object(&error))),
            Err(_) => Err(Self::gone()),
        }
    }

    /// Ask the node for an operation that it performs as clients know it.
    pub(crate) async fn ask<O: Operation>(&self, session: &str, request: &O) -> Result<O::Answer, ErrorBody> {
        let arguments = terms::of(request)?;
        terms::typed(self.call(session, O::OP.name(), arguments).await?)
    }

    /// The same, for what the node answers at once or not at all.
    pub(crate) async fn call_within(
        &self,
        limit: Duration,
        session: &str,
        op: &str,
        arguments: Term,
    ) -> Result<Map<String, Value>, ErrorBody> {
        match tokio::time::timeout(limit, self.call(session, op, arguments)).await {
            Ok(answer) => answer,
            Err(_) => Err(
                ErrorBody::new(ErrorKind::Timeout, "the node did not answer in time").detail("limit", "time"),
            ),
        }
    }

    /// A session whose process in the node does not answer gets another, with the variables it had.
    pub(crate) fn replace_session(&self, session: &str) {
        if let Some(link) = self.link() {
            link.control("replace", terms::map([("session", Term::binary(session))]));
        }
    }

    /// Generated code as text, by a node of its own: it makes no atoms here, and is ended when it takes too much.
    pub(crate) async fn print(&self, request: &Term) -> Result<String, ErrorBody> {
        let limits = PrinterLimits {
            memory_mib: self.setup.compiler_memory_mb,
            time: Duration::from_secs(self.setup.compiler_timeout_s),
        };
        let printed = print_forms(&self.setup.erlang, &self.setup.runtime, request, limits).await;
        printed.map_err(|cause| {
            let limit = match &cause {
                PrintError::Time(_) => "time",
                PrintError::Memory(_) => "memory",
                PrintError::Node(_) => return ErrorBody::new(ErrorKind::InternalError, cause.to_string()),
            };
            ErrorBody::new(ErrorKind::CompilerLimit, cause.to_string())
                .hint("ask for one class or method at a time")
                .detail("limit", limit)
        })
    }

    /// What the node may take as a whole, in bytes.
    pub(crate) fn memory_limit(&self) -> Option<u64> {
        Some(self.setup.memory_mb * 1024 * 1024).filter(|limit| *limit > 0)
    }

    /// A request was open when the node ended.
    pub(crate) fn gone() -> ErrorBody {
        ErrorBody::new(
            ErrorKind::NodeDown,
            "the node ended before it answered; it is being restarted",
        )
        .hint(AFTER_A_NODE)
    }

    /// More output of a request may come.
    pub(crate) fn credit(&self, request: u64, bytes: usize) {
        if let Some(link) = self.link() {
            link.credit(request, bytes);
        }
    }
}

/// An error as the node sent it. The node runs user code, so nothing about it is taken for granted.
pub(crate) fn error_body(mut fields: Map<String, Value>) -> ErrorBody {
    fields.retain(|_, value| !value.is_null());
    let whole = Value::Object(fields.clone());
    serde_json::from_value(whole).unwrap_or_else(|_| {
        let text = |field: &str| fields.get(field).and_then(Value::as_str);
        let mut error = ErrorBody::new(
            text("kind").unwrap_or("internal_error"),
            text("message").unwrap_or("the node sent an error that cannot be read"),
        );
        error.hint = text("hint").map(str::to_owned);
        error
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn errors_of_the_node_are_read_as_far_as_possible() {
        let object = |value: Value| value.as_object().cloned().unwrap_or_default();
        let whole = error_body(object(
            json!({"kind": "type_error", "message": "no", "hint": null,
            "stack": [{"class": "Lamp", "selector": "toggle", "line": 9}]}),
        ));
        assert_eq!(
            (whole.kind.name(), whole.stack.len(), whole.hint),
            ("type_error", 1, None)
        );
        let odd = error_body(object(json!({"kind": "type_error", "message": "no", "stack": 7})));
        assert_eq!((odd.kind.name(), odd.message.as_str()), ("type_error", "no"));
        assert_eq!(error_body(Map::new()).kind, ErrorKind::InternalError);
    }
}
