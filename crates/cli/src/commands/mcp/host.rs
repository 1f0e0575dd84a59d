//! The workspace as the server sees it: found or started when a call first needs it, reached again when it was lost.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::SystemTime;

use beamtalk_agents::tools::Tree;
use beamtalk_client::{Answer, Connection, Error, Events, Greeting, Pending, Place, Reply};
use beamtalk_loop::control::{Answer as LoopAnswer, Ask};
use beamtalk_loop::core::Operation as LoopOperation;
use beamtalk_mcp::{
    Asked, DocHit, Host, HostError, LoopCommand, PackageClass, PackageRow, Policy, Program, Secrets, TreeAct,
};
use beamtalk_project::Network;
use beamtalk_wire::answers::{Capabilities, Diagnostic};
use beamtalk_wire::requests::{Close, Describe, Interrupt, McpCall, Subscribe};
use beamtalk_wire::{Access, Channel, ErrorBody, ErrorKind, Event, Op, Operation, Push};
use beamtalk_workspace::gate::{AuthKind, Principal};
use beamtalk_workspace::{Link, StartOptions};
use serde_json::Value;
use tokio::sync::{Mutex, Notify, OwnedSemaphorePermit, Semaphore, broadcast};

use super::paths::Paths;
use super::rules::Rules;
use super::{docs, project};
use crate::commands::docs::{page, topics};
use crate::commands::loop_command::located;
use crate::commands::workspace::defaults;
use crate::commands::{lint, type_coverage};
use crate::exit::Report;
use crate::terminal::Terminal;
use crate::workspace_link::find_or_start;

/// Output of an evaluation that is kept.
const OUTPUT_BYTES: usize = 64 * 1024;
/// Events that wait for whoever follows.
const EVENTS: usize = 256;
/// Programs of tools that run at the same time.
const PROGRAMS: usize = 3;

/// How the workspace is reached.
#[expect(clippy::large_enum_variant, reason = "there is one of it in a process")]
pub(super) enum Reach {
    /// From a process of its own: found, and started where that is wanted.
    Outside { options: StartOptions, starts: bool },
    /// From within its daemon, as whoever asks.
    Inside { link: Link, principal: Principal },
}

pub(crate) struct Workspace {
    place: Arc<Place>,
    reach: Reach,
    network: Network,
    paths: Arc<Paths>,
    connection: Mutex<Option<Rc<Connection>>>,
    events: broadcast::Sender<Event>,
    channels: RefCell<BTreeSet<Channel>>,
    /// The actors whose state is followed.
    actors: RefCell<BTreeSet<String>>,
    keeper: Rc<Keeper>,
    /// Places on the connection, which takes 64 requests: for questions, for records; the rest is for interrupts.
    asks: Arc<Semaphore>,
    records: Semaphore,
    under_way: Rc<(Cell<usize>, Notify)>,
    agents: Tree,
    /// What code may use in the workspace of a connection.
    capabilities: RefCell<Option<(Weak<Connection>, Capabilities)>>,
    /// The session of an agent whose word this is.
    session: Option<String>,
    /// Programs that run at the same time.
    programs: Semaphore,
}

fn error(kind: &str, message: impl Into<String>) -> HostError {
    Box::new(ErrorBody::new(ErrorKind::from(kind), message))
}

fn of_fault(fault: &anyhow::Error, kind: &str) -> HostError {
    match Report::new(fault) {
        Some(report) => {
            let mut body = ErrorBody::new(ErrorKind::from(kind), report.message);
            body.hint = report.hint;
            Box::new(body)
        }
        None => error(kind, "a stream was closed"),
    }
}

fn of_client(cause: Error) -> HostError {
    let kind = match &cause {
        Error::Failed(body) => return body.clone(),
        Error::Lost => "connection_lost",
        Error::Busy => "busy",
        Error::TooLong(_) => "too_large",
        Error::Refused(_) => "forbidden",
        Error::Unreachable { .. } | Error::UnknownHost { .. } | Error::Tls(_) | Error::Protocol(_) => {
            "no_workspace"
        }
    };
    let body = ErrorBody::new(ErrorKind::from(kind), cause.to_string());
    Box::new(match kind {
        "connection_lost" => body.hint("the workspace went away; the next call looks for it again"),
        _ => body,
    })
}

impl Workspace {
    pub(super) fn new(place: Arc<Place>, reach: Reach, network: Network, rules: &Rules) -> Self {
        let paths = Paths::new(&place.root, place.state.path(), &rules.settings);
        let (events, _) = broadcast::channel(EVENTS);
        let id = place.id.to_string();
        // A token that only reads sees of the agents what everybody may.
        let is_narrow = matches!(&reach, Reach::Inside { principal, .. } if matches!(principal.auth, AuthKind::Token(_)))
            && rules.settings.policy == Policy::ReadOnly;
        let keeper = Rc::new(Keeper {
            file: place.state.cookie_path(&place.id),
            place: place.clone(),
            found: Cell::default(),
            secrets: Secrets::default(),
        });
        Self {
            place,
            reach,
            network,
            paths: Arc::new(paths),
            connection: Mutex::new(None),
            events,
            channels: RefCell::default(),
            actors: RefCell::default(),
            keeper,
            asks: Arc::new(Semaphore::new(44)),
            records: Semaphore::new(8),
            under_way: Rc::default(),
            agents: Tree::new(&id, is_narrow),
            capabilities: RefCell::default(),
            session: None,
            programs: Semaphore::new(PROGRAMS),
        }
    }

    /// The same, as the session of an agent.
    pub(super) fn speaking_for(mut self, session: Option<String>) -> Self {
        self.session = session;
        self
    }

    /// The connection there is, or a new one.
    async fn connection(&self) -> Result<Rc<Connection>, HostError> {
        let mut known = self.connection.lock().await;
        if let Some(connection) = known.as_ref().filter(|connection| !connection.is_lost()) {
            return Ok(connection.clone());
        }
        *known = None;
        let (connection, events) = match &self.reach {
            Reach::Outside { options, starts } => self.come_in(options, *starts).await?,
            Reach::Inside { link, principal } => {
                let (requests, frames) = link
                    .open(principal)
                    .ok_or_else(|| error("connection_lost", "the workspace is stopping"))?;
                Connection::inside(requests, frames).await.map_err(of_client)?
            }
        };
        let connection = Rc::new(connection);
        self.keeper.learn();
        tokio::task::spawn_local(pass_on(events, self.events.clone(), self.keeper.clone()));
        self.subscribe(&connection).await;
        *known = Some(connection.clone());
        Ok(connection)
    }

    async fn come_in(&self, options: &StartOptions, starts: bool) -> Result<(Connection, Events), HostError> {
        let running = self
            .place
            .running()
            .map_err(|fault| of_fault(&fault.into(), "no_workspace"))?;
        let info = match running {
            Some(info) => info,
            None if starts => self.start(options.clone()).await?,
            None => return Err(self.missing()),
        };
        let name = self.session.as_ref().map(|id| format!("mcp/{id}"));
        let greeting = Greeting {
            client: name.as_deref().unwrap_or("mcp"),
            resume: None,
        };
        match self.place.connect(&info, greeting).await {
            Ok(joined) => Ok(joined),
            // One that was killed leaves a record behind; whoever starts one looks closer.
            Err(_) if starts => {
                let info = self.start(options.clone()).await?;
                let joined = self.place.connect(&info, greeting).await;
                joined.map_err(|fault| of_fault(&fault.into(), "no_workspace"))
            }
            Err(fault) => Err(of_fault(&fault.into(), "no_workspace")),
        }
    }

    fn missing(&self) -> HostError {
        let body = ErrorBody::new(
            ErrorKind::NoWorkspace,
            format!("no workspace runs for {}", self.place.root.display()),
        );
        Box::new(body.hint(
            "start one with 'beamtalk repl' or 'beamtalk workspace start', or start this server with --start",
        ))
    }

    /// Start the workspace; that takes a while, and others are served meanwhile.
    async fn start(&self, options: StartOptions) -> Result<beamtalk_storage::NodeInfo, HostError> {
        let (place, network) = (self.place.clone(), self.network);
        let started = tokio::task::spawn_blocking(move || -> anyhow::Result<_> {
            let options = defaults(&place, options)?;
            let found = find_or_start(&place, &mut Terminal::silent(network), &options)?;
            Ok(found.info)
        });
        match started.await {
            Ok(Ok(info)) => Ok(info),
            Ok(Err(fault)) => Err(of_fault(&fault, "no_workspace")),
            Err(_) => Err(error("no_workspace", "the workspace could not be started")),
        }
    }

    /// Listen to all that is wanted; when this ends it is listened to.
    async fn subscribe(&self, connection: &Connection) {
        let channels: Vec<Channel> = self.channels.borrow().iter().copied().collect();
        let actors: Vec<String> = self.actors.borrow().iter().cloned().collect();
        if !channels.is_empty() {
            let request = Subscribe {
                channels,
                ..Subscribe::default()
            };
            drop(connection.ask(&request).await);
        }
        for actor in actors {
            let request = Subscribe {
                channels: vec![Channel::Object],
                actor: Some(actor),
                ..Subscribe::default()
            };
            drop(connection.ask(&request).await);
        }
    }

    /// Wait until everything that was asked is answered, also what nobody waits for any more.
    pub(super) async fn settle(&self) {
        loop {
            let moved = self.under_way.1.notified();
            if self.under_way.0.get() == 0 {
                return;
            }
            moved.await;
        }
    }

    /// End the session of the connection, which would otherwise be kept for one who comes back.
    pub(super) async fn leave(&self) {
        if let Some(connection) = self.connection.lock().await.take() {
            drop(connection.ask(&Close {}).await);
        }
    }

    /// Do something with the files of the project, in a thread that has room for the deepest tree.
    async fn apart<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Terminal) -> anyhow::Result<T> + Send + 'static,
    ) -> Result<T, HostError> {
        let network = self.network;
        let (sender, found) = tokio::sync::oneshot::channel();
        let worker = std::thread::Builder::new()
            .stack_size(beamtalk_project::source::STACK)
            .spawn(move || drop(sender.send(work(&mut Terminal::silent(network)))));
        worker.map_err(|cause| error("internal_error", cause.to_string()))?;
        match found.await {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(fault)) => Err(of_fault(&fault, "read_error")),
            Err(_) => Err(error("internal_error", "the files could not be read")),
        }
    }

    async fn try_ask<O: Operation>(&self, request: &O) -> Result<Asked<O::Answer>, HostError> {
        let place = self.asks.clone().acquire_owned().await.ok();
        let connection = self.connection().await?;
        let pending = connection.send(request).map_err(of_client)?;
        let mut running = Running {
            connection: connection.clone(),
            pending: Some(pending),
            runs_code: runs_code(O::OP),
            place,
            under_way: UnderWay::new(&self.under_way),
        };
        let mut output = String::new();
        let message = loop {
            match running.next().await {
                Ok(Reply::Output(text)) if output.len() < OUTPUT_BYTES => output.push_str(&text),
                Ok(Reply::Output(_) | Reply::NeedsInput(_)) => {}
                Ok(Reply::Done(message)) => break message,
                Err(cause) => return Err(of_client(cause)),
            }
        };
        self.keeper.learn();
        let answer = Answer::<O::Answer>::read(message);
        let is_truncated = answer.head.status.contains(&beamtalk_wire::Flag::Truncated);
        Ok(Asked {
            answer: answer.body.map_err(Box::new)?,
            output,
            warnings: answer.head.warnings,
            is_truncated,
        })
    }
}

/// A cookie is replaced with its file: which one it is, and when it was written.
type CookieFile = (u64, SystemTime);

/// Knows the cookie also after it was changed under connections that stay.
struct Keeper {
    place: Arc<Place>,
    file: PathBuf,
    found: Cell<Option<CookieFile>>,
    secrets: Secrets,
}

impl Keeper {
    /// Called before what may hold it is passed on.
    fn learn(&self) {
        let found = std::fs::metadata(&self.file).ok();
        let found = found.and_then(|about| Some((about.ino(), about.modified().ok()?)));
        if found == self.found.get() {
            return;
        }
        let directory = self.place.require_directory().ok();
        if let Some(cookie) = directory.and_then(|directory| directory.cookie().ok().flatten()) {
            self.secrets.learn([cookie.expose()]);
            self.found.set(found);
        }
    }
}

/// What the loop does not do, in words that can be acted on.
fn refused(kind: &str) -> HostError {
    let (message, hint) = match kind {
        "not_found" => (
            "the loop has no event of that name",
            "loop_graph names its events",
        ),
        "pattern" => (
            "the value does not fit the pattern of the event",
            "devloop.toml has the pattern, below [event.NAME]",
        ),
        _ => {
            let body = ErrorBody::new(ErrorKind::InvalidParameter, format!("the loop refuses: {kind}"));
            return Box::new(body.hint("loop_status names what the loop has"));
        }
    };
    Box::new(ErrorBody::new(ErrorKind::InvalidParameter, message).hint(hint))
}

/// Whether an operation can be interrupted.
fn runs_code(op: Op) -> bool {
    matches!(
        op,
        Op::Eval | Op::RunEntry | Op::LoopRun | Op::Test | Op::TestAll | Op::ApprovalAsk
    )
}

/// A request that somebody waits for. An evaluation that nobody waits for any more is stopped.
struct Running {
    connection: Rc<Connection>,
    /// Until its last answer.
    pending: Option<Pending>,
    runs_code: bool,
    /// It keeps its place on the connection until the workspace has answered it.
    place: Option<OwnedSemaphorePermit>,
    under_way: UnderWay,
}

impl Running {
    async fn next(&mut self) -> Result<Reply, Error> {
        let reply = match &mut self.pending {
            Some(pending) => pending.next().await,
            None => Err(Error::Lost),
        };
        if !matches!(reply, Ok(Reply::Output(_) | Reply::NeedsInput(_))) {
            self.pending = None;
        }
        reply
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let Some(mut pending) = self.pending.take().filter(|_| self.runs_code) else {
            return;
        };
        let stop = Interrupt {
            r#for: Some(pending.id.clone()),
            handle: None,
        };
        drop(self.connection.send(&stop));
        let kept = (self.place.take(), self.under_way.clone());
        // It is over when the workspace says so, and not when it was told to stop.
        tokio::task::spawn_local(async move {
            while let Ok(Reply::Output(_) | Reply::NeedsInput(_)) = pending.next().await {}
            drop(kept);
        });
    }
}

/// Counts what was asked and not answered; who waits for the last answer is woken.
struct UnderWay(Rc<(Cell<usize>, Notify)>);

impl UnderWay {
    fn new(count: &Rc<(Cell<usize>, Notify)>) -> Self {
        count.0.set(count.0.get() + 1);
        Self(count.clone())
    }
}

impl Clone for UnderWay {
    fn clone(&self) -> Self {
        Self::new(&self.0)
    }
}

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.0.set(self.0.0.get() - 1);
        self.0.1.notify_waiters();
    }
}

/// Pass events on to whoever follows.
async fn pass_on(mut events: Events, followers: broadcast::Sender<Event>, keeper: Rc<Keeper>) {
    while let Some(event) = events.recv().await {
        keeper.learn();
        if let Ok(push) = serde_json::from_value::<Push>(event) {
            drop(followers.send(push.event));
        }
    }
}

impl Host for Workspace {
    async fn ask<O: Operation>(&self, request: &O) -> Result<Asked<O::Answer>, HostError> {
        match self.try_ask(request).await {
            // A question can be asked twice; anything else might be done twice.
            Err(lost) if lost.kind.name() == "connection_lost" && O::OP.access() == Access::Read => {
                self.try_ask(request).await
            }
            other => other,
        }
    }

    async fn capabilities(&self) -> Option<Capabilities> {
        let connection = self.connection().await.ok()?;
        let known = self.capabilities.borrow().clone();
        if let Some((_, found)) = known.filter(|(of, _)| std::ptr::eq(of.as_ptr(), Rc::as_ptr(&connection))) {
            return Some(found);
        }
        let found = self.ask(&Describe {}).await.ok()?.answer.capabilities;
        *self.capabilities.borrow_mut() = Some((Rc::downgrade(&connection), found.clone()));
        Some(found)
    }

    fn is_connected(&self) -> bool {
        let known = self.connection.try_lock();
        if known.is_ok_and(|known| known.as_ref().is_some_and(|connection| !connection.is_lost())) {
            return true;
        }
        match &self.reach {
            Reach::Outside { .. } => self.place.running().is_ok_and(|running| running.is_some()),
            Reach::Inside { .. } => true,
        }
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    async fn watch(&self, channels: &[Channel], actors: &[String]) -> bool {
        let known = self.channels.borrow().len() + self.actors.borrow().len();
        self.channels.borrow_mut().extend(channels);
        self.actors.borrow_mut().extend(actors.iter().cloned());
        let is_more = self.channels.borrow().len() + self.actors.borrow().len() > known;
        if !self.is_connected() {
            return false;
        }
        let before = self.connection.lock().await.clone();
        let is_live = before.as_ref().is_some_and(|connection| !connection.is_lost());
        // A new one listens from its start.
        match self.connection().await {
            Ok(connection) if is_live && is_more => self.subscribe(&connection).await,
            Ok(_) | Err(_) => {}
        }
        before.is_some() && !is_live
    }

    async fn record(&self, call: McpCall) {
        if !self.is_connected() {
            return;
        }
        let _place = self.records.acquire().await;
        let _under_way = UnderWay::new(&self.under_way);
        if let Ok(connection) = self.connection().await {
            drop(connection.ask(&call).await);
        }
    }

    fn secrets(&self) -> Secrets {
        self.keeper.secrets.clone()
    }

    fn search_docs(&self, query: &str, kind: Option<&str>, limit: usize) -> Vec<DocHit> {
        docs::search(query, kind, limit)
    }

    fn doc(&self, topic: &str, selector: Option<&str>) -> Option<String> {
        page(topic, selector)
    }

    fn doc_topics(&self) -> Vec<(String, String)> {
        topics()
            .map(|(topic, about)| (topic.to_owned(), about.to_owned()))
            .collect()
    }

    async fn lint(&self, path: Option<&str>) -> Result<Vec<Diagnostic>, HostError> {
        let path = self.place.root.join(path.unwrap_or("."));
        let lines = self.apart(move |terminal| lint::lines(terminal, &path)).await?;
        Ok(lines
            .iter()
            .filter_map(|line| serde_json::from_str(line).ok())
            .collect())
    }

    async fn type_coverage(&self, path: Option<&str>) -> Result<(u64, u64), HostError> {
        let path = self.place.root.join(path.unwrap_or("."));
        let paths = self.paths.clone();
        let is_open = move |file: &Path| file.to_str().is_some_and(|file| paths.inside(file).is_ok());
        let counted = self.apart(move |terminal| type_coverage::count(terminal, &path, is_open));
        counted.await
    }

    async fn packages(&self) -> Result<Vec<PackageRow>, HostError> {
        let root = self.place.root.clone();
        self.apart(move |terminal| project::packages(terminal, &root))
            .await
    }

    async fn package_classes(&self, package: &str) -> Result<Option<Vec<PackageClass>>, HostError> {
        let (root, package) = (self.place.root.clone(), package.to_owned());
        self.apart(move |terminal| project::package_classes(terminal, &root, &package))
            .await
    }

    async fn execute(&self, program: Program) -> Result<(String, i64), HostError> {
        let _place = self.programs.acquire().await;
        beamtalk_agents::tools::execute(&self.agents, program).await
    }

    async fn loop_command(&self, command: LoopCommand) -> Result<Value, HostError> {
        let root = self.place.root.clone();
        let done = tokio::task::spawn_blocking(move || ask_loop(&root, command));
        match done.await {
            Ok(answer) => answer,
            Err(_) => Err(error("internal_error", "the loop could not be asked")),
        }
    }

    async fn tree(&self, act: TreeAct) -> Result<String, HostError> {
        self.agents.act(act).await
    }

    fn own_session(&self) -> Option<String> {
        match &self.reach {
            // A daemon that a session started speaks for whoever asks, not for that session.
            Reach::Inside { .. } => None,
            Reach::Outside { .. } => std::env::var("AGENT_ID").ok().filter(|id| !id.is_empty()),
        }
    }

    fn file_defining(&self, class: &str) -> Option<String> {
        self.paths.file_defining(class)
    }

    fn closed_below(&self, directory: &str) -> Vec<String> {
        self.paths.closed_below(directory)
    }

    fn inside(&self, path: &str) -> Result<String, HostError> {
        self.paths.inside(path)
    }

    fn source(&self, path: &str) -> Result<String, HostError> {
        self.paths.source(path)
    }

    fn directory(&self, path: &str) -> Result<String, HostError> {
        self.paths.directory(path)
    }
}

fn ask_loop(root: &Path, command: LoopCommand) -> Result<Value, HostError> {
    let none = || {
        let body = ErrorBody::new(
            ErrorKind::from("loop_not_running"),
            "no loop runs for this project",
        );
        Box::new(body.hint("the person starts it with 'beamtalk loop run'"))
    };
    let mut client = located(Some(&root.join("devloop.toml")))
        .ok()
        .and_then(|place| place.connect())
        .ok_or_else(none)?;
    let broken = |cause: std::io::Error| error("loop_not_running", cause.to_string());
    client
        .set_limit(Some(std::time::Duration::from_secs(30)))
        .map_err(broken)?;
    let ask = match &command {
        LoopCommand::Status => Ask::Status,
        LoopCommand::Graph => Ask::Graph { dot: false },
        LoopCommand::State { key } => Ask::State { key: key.clone() },
        LoopCommand::Output { process, lines } => Ask::Logs {
            process: process.clone(),
            tail: usize::try_from(*lines).unwrap_or(usize::MAX),
            follow: false,
        },
        LoopCommand::Post { event, value } => Ask::Trigger {
            event: event.clone(),
            value: value.clone(),
            wait: false,
        },
        LoopCommand::Control { process, command } => Ask::Process {
            process: process.clone(),
            operation: match command.as_str() {
                "start" => LoopOperation::Start,
                "stop" => LoopOperation::Stop,
                _ => LoopOperation::Restart,
            },
        },
    };
    let mut text = String::new();
    let mut answer = client.ask(&ask).map_err(broken)?;
    loop {
        return Ok(match answer {
            LoopAnswer::Status(status) => serde_json::to_value(status).unwrap_or_default(),
            LoopAnswer::State(values) => Value::Object(values),
            LoopAnswer::Text(text) => text.into(),
            LoopAnswer::Accepted { changed } => changed.into(),
            LoopAnswer::Log(said) => {
                text.push_str(&said.line);
                text.push('\n');
                answer = client.receive().map_err(broken)?.ok_or_else(none)?;
                continue;
            }
            LoopAnswer::Skipped(_) => {
                answer = client.receive().map_err(broken)?.ok_or_else(none)?;
                continue;
            }
            LoopAnswer::Lines => text.into(),
            LoopAnswer::Error(kind) => return Err(refused(&kind)),
            LoopAnswer::Done | LoopAnswer::Stopping | LoopAnswer::Finished { .. } | LoopAnswer::Runs(_) => {
                Value::Null
            }
        });
    }
}
