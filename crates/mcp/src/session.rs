//! One client: its era, its open requests, what is written to it. A host feeds it lines and writes what it sends.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use beamtalk_wire::requests::McpCall;
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, Notify, Semaphore, mpsc, oneshot};
use tokio::task::JoinHandle;

use crate::capabilities::{self, Client, Era};
use crate::dispatch;
use crate::fixture::Fixture;
use crate::host::Host;
use crate::lines::Line;
use crate::message::{Bad, Fault, LINE_LIMIT, Message, VERSIONS};
use crate::record::Reads;
use crate::secrets::Secrets;
use crate::settings::Settings;
use crate::watch::{OwnChanges, Watches};

/// Requests that run at the same time; further ones wait.
const RUNNING: usize = 64;
/// The same of all connections of one principal together.
const RUNNING_OF_ALL: usize = 128;
/// Requests that wait; beyond these nothing is read.
const WAITING: usize = 1_024;
/// Bytes that wait to be written; beyond these nothing is read.
const UNWRITTEN: usize = 8 * 1024 * 1024;
/// How long a person may take to answer while a call waits.
const ANSWER_TIME: Duration = Duration::from_mins(2);
/// Questions that wait for a person.
const QUESTIONS: usize = 4;

/// What is to be written, line by line.
#[derive(Clone)]
pub struct Outgoing {
    lines: mpsc::UnboundedSender<String>,
    secrets: Secrets,
    waiting: Rc<Cell<usize>>,
    moved: Rc<Notify>,
}

impl Outgoing {
    pub fn new(secrets: Secrets) -> (Self, mpsc::UnboundedReceiver<String>) {
        let (lines, receiver) = mpsc::unbounded_channel();
        let outgoing = Self {
            lines,
            secrets,
            waiting: Rc::default(),
            moved: Rc::default(),
        };
        (outgoing, receiver)
    }

    /// The one way out.
    pub(crate) fn send(&self, text: String) {
        let text = self.secrets.leave_out(text);
        self.waiting.set(self.waiting.get() + text.len());
        // A client that left needs nothing more.
        drop(self.lines.send(text));
    }

    pub(crate) fn answer(&self, id: &Value, result: Value) {
        // The macro would copy the result.
        let answer = [("jsonrpc", "2.0".into()), ("id", id.clone()), ("result", result)];
        self.send(serde_json::to_string(&Value::from_iter(answer)).unwrap_or_default());
    }

    pub(crate) fn notify(&self, method: &str, params: Value) {
        self.send(json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string());
    }

    /// Whether something waits to be written.
    pub fn is_writing(&self) -> bool {
        self.waiting.get() > 0
    }

    /// A line was written.
    pub fn written(&self, bytes: usize) {
        self.waiting.set(self.waiting.get().saturating_sub(bytes));
        self.moved.notify_one();
    }
}

/// What all connections of one principal share.
pub(crate) struct Common {
    running: Semaphore,
    pub(crate) rate: RefCell<crate::dispatch::Rate>,
    pub(crate) reads: Reads,
    /// Records that are being written.
    late: RefCell<Vec<JoinHandle<()>>>,
    /// When sessions of agents were started.
    pub(crate) started: RefCell<Vec<std::time::Instant>>,
    /// The results of the last tests, whole.
    pub(crate) last_tests: RefCell<Option<Value>>,
    /// Tasks that run tests, as long as their end was not seen.
    pub(crate) test_tasks: RefCell<HashSet<String>>,
    pub(crate) own_changes: OwnChanges,
    pub(crate) open_watches: Rc<Cell<usize>>,
    pub(crate) fixture: Option<Rc<dyn Fixture>>,
}

impl Default for Common {
    fn default() -> Self {
        Self {
            running: Semaphore::new(RUNNING_OF_ALL),
            rate: RefCell::default(),
            reads: Reads::default(),
            late: RefCell::default(),
            started: RefCell::default(),
            last_tests: RefCell::default(),
            test_tasks: RefCell::default(),
            own_changes: OwnChanges::default(),
            open_watches: Rc::default(),
            fixture: None,
        }
    }
}

/// One client of the server.
pub struct Session<H> {
    pub(crate) host: Rc<H>,
    pub(crate) settings: Rc<Settings>,
    pub(crate) common: Rc<Common>,
    pub(crate) outgoing: Outgoing,
    /// The version that `initialize` agreed on.
    legacy: Cell<Option<&'static str>>,
    legacy_client: RefCell<Rc<Client>>,
    open: RefCell<HashMap<String, JoinHandle<()>>>,
    running: Semaphore,
    pub(crate) own_handle: Mutex<Option<String>>,
    /// What was asked of the client and not answered yet.
    asked: RefCell<HashMap<String, oneshot::Sender<Value>>>,
    next_question: Cell<u64>,
    pub(crate) watches: Watches,
}

/// A request with what is known about who sent it.
pub(crate) struct Call {
    pub(crate) id: Value,
    pub(crate) method: String,
    pub(crate) params: Map<String, Value>,
    pub(crate) era: Era,
    pub(crate) client: Rc<Client>,
    /// Where what belongs to it is written.
    pub(crate) outgoing: Outgoing,
    /// The task it is the work of.
    pub(crate) task: Option<String>,
}

impl<H> Session<H> {
    /// End all that runs of this connection.
    pub(crate) fn cancel_everything(&self) {
        self.open.borrow_mut().drain().for_each(|(_, task)| task.abort());
        self.watches.end();
    }
}

impl<H: Host> Session<H> {
    pub fn new(host: Rc<H>, settings: Rc<Settings>, outgoing: Outgoing) -> Rc<Self> {
        Self::with(host, settings, Rc::default(), outgoing)
    }

    /// One with what a fixture adds.
    #[doc(hidden)]
    pub fn with_fixture(host: Rc<H>, fixture: Rc<dyn Fixture>, outgoing: Outgoing) -> Rc<Self> {
        let common = Common {
            fixture: Some(fixture),
            ..Common::default()
        };
        Self::with(host, Rc::default(), Rc::new(common), outgoing)
    }

    /// Another connection of the same principal.
    pub(crate) fn another(&self, outgoing: Outgoing) -> Rc<Self> {
        let (host, settings) = (self.host.clone(), self.settings.clone());
        Self::with(host, settings, self.common.clone(), outgoing)
    }

    fn with(host: Rc<H>, settings: Rc<Settings>, common: Rc<Common>, outgoing: Outgoing) -> Rc<Self> {
        Rc::new(Self {
            host,
            settings,
            common,
            outgoing,
            legacy: Cell::new(None),
            legacy_client: RefCell::default(),
            open: RefCell::default(),
            running: Semaphore::new(RUNNING),
            own_handle: Mutex::new(None),
            asked: RefCell::default(),
            next_question: Cell::new(1),
            watches: Watches::default(),
        })
    }

    /// Wait until there is room for another line.
    pub async fn room(&self) {
        while self.outgoing.waiting.get() > UNWRITTEN || self.open.borrow().len() > WAITING {
            self.outgoing.moved.notified().await;
        }
    }

    /// Whether nothing runs.
    pub fn is_idle(&self) -> bool {
        self.open.borrow().is_empty()
    }

    /// End all that runs, and write down that it ended; evaluations are interrupted.
    pub async fn cancel_all(&self) {
        self.watches.finish();
        let ended: Vec<JoinHandle<()>> = self.open.borrow_mut().drain().map(|(_, task)| task).collect();
        ended.iter().for_each(JoinHandle::abort);
        self.watches.end();
        for task in ended {
            drop(task.await);
        }
        self.record_reads();
        let late = std::mem::take(&mut *self.common.late.borrow_mut());
        for record in late {
            drop(record.await);
        }
    }

    /// Write down the calls that were counted.
    pub(crate) fn record_reads(&self) {
        self.common
            .reads
            .take()
            .into_iter()
            .for_each(|call| self.record(call));
    }

    /// Write down a call that nobody waits for.
    pub(crate) fn record(&self, call: McpCall) {
        let host = self.host.clone();
        let record = tokio::task::spawn_local(async move { host.record(call).await });
        let mut late = self.common.late.borrow_mut();
        late.retain(|record| !record.is_finished());
        late.push(record);
    }

    /// Take a line.
    pub fn receive(self: &Rc<Self>, line: Line) {
        self.take(line, &self.outgoing);
    }

    /// Take a line; what belongs to it is written to `outgoing`.
    pub(crate) fn take(self: &Rc<Self>, line: Line, outgoing: &Outgoing) {
        let text = match line {
            Line::Text(text) => text,
            Line::TooLong(id) => {
                let fault = Fault::request(format!("the message is longer than {LINE_LIMIT} bytes"));
                outgoing.send(fault.text(id.as_ref()));
                return;
            }
        };
        match Message::parse(&text) {
            Ok(message) => self.hear(message, outgoing),
            Err(Bad { id, fault }) => outgoing.send(fault.text(id.as_ref())),
        }
    }

    pub(crate) fn hear(self: &Rc<Self>, message: Message, outgoing: &Outgoing) {
        match message {
            Message::Request { id, method, params } => self.request(id, method, params, outgoing),
            Message::Notification { method, params } => self.notification(&method, &params),
            Message::Response { id, result } => {
                let waiting = self.asked.borrow_mut().remove(&id.to_string());
                if let (Some(waiting), Ok(result)) = (waiting, result) {
                    drop(waiting.send(result));
                }
            }
        }
    }

    /// The version an old client agreed on.
    pub(crate) fn version(&self) -> Option<&'static str> {
        self.legacy.get()
    }

    fn notification(&self, method: &str, params: &Map<String, Value>) {
        if method == "notifications/cancelled"
            && let Some(id) = params.get("requestId")
            && let Some(task) = self.open.borrow_mut().remove(&id.to_string())
        {
            task.abort();
            self.outgoing.moved.notify_one();
        }
    }

    fn request(self: &Rc<Self>, id: Value, method: String, params: Map<String, Value>, outgoing: &Outgoing) {
        let refuse = |fault: Fault| outgoing.send(fault.text(Some(&id)));
        let (era, client) = match capabilities::modern(&params) {
            Err(fault) => return refuse(fault),
            Ok(Some(client)) => (Era::Modern, Rc::new(client)),
            Ok(None) if method == "initialize" => {
                return match self.initialize(&params) {
                    Ok(result) => {
                        crate::watch::begin(self);
                        outgoing.answer(&id, result);
                    }
                    Err(fault) => refuse(fault),
                };
            }
            Ok(None) if method == "ping" => return outgoing.answer(&id, json!({})),
            Ok(None) => match self.legacy.get() {
                Some(version) => (Era::Legacy(version), self.legacy_client.borrow().clone()),
                None => {
                    let message = format!(
                        "call 'initialize' first, or send params._meta with \"{}\" and \"{}\"",
                        capabilities::PROTOCOL_VERSION,
                        capabilities::CLIENT_CAPABILITIES
                    );
                    return refuse(Fault::params(message));
                }
            },
        };
        let key = id.to_string();
        if self.open.borrow().contains_key(&key) {
            return refuse(Fault::request("a request with this id is still open"));
        }
        let call = Call {
            id,
            method,
            params,
            era,
            client,
            outgoing: outgoing.clone(),
            task: None,
        };
        let session = self.clone();
        let name = key.clone();
        let task = tokio::task::spawn_local(async move {
            let (id, outgoing) = (call.id.clone(), call.outgoing.clone());
            let method = call.method.clone();
            let answer = {
                let _place = session.running.acquire().await;
                let _shared = session.common.running.acquire().await;
                let mut work = std::pin::pin!(dispatch::answer(&session, call));
                // A request is answered, whatever happens.
                std::future::poll_fn(|context| {
                    let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
                    polled.unwrap_or_else(|_| Poll::Ready(Err(Fault::internal(&method))))
                })
                .await
            };
            session.open.borrow_mut().remove(&name);
            session.outgoing.moved.notify_one();
            match answer {
                Ok(result) => outgoing.answer(&id, result),
                Err(fault) => outgoing.send(fault.text(Some(&id))),
            }
        });
        self.open.borrow_mut().insert(key, task);
    }

    fn initialize(&self, params: &Map<String, Value>) -> Result<Value, Fault> {
        let Some(wanted) = params.get("protocolVersion").and_then(Value::as_str) else {
            return Err(Fault::params(
                "'initialize' needs params.protocolVersion, a string",
            ));
        };
        let none = Value::Null;
        let capabilities = params.get("capabilities").unwrap_or(&none);
        let client = Client::read(capabilities, params.get("clientInfo"));
        let known = VERSIONS.into_iter().skip(1);
        let version = known
            .into_iter()
            .find(|version| *version == wanted)
            .unwrap_or(VERSIONS[1]);
        self.legacy.set(Some(version));
        *self.legacy_client.borrow_mut() = Rc::new(client);
        Ok(json!({
            "protocolVersion": version,
            "capabilities": crate::fixture::capabilities(&self.common, false),
            "serverInfo": capabilities::server_info(),
            "instructions": dispatch::instructions(&self.settings),
        }))
    }

    /// Ask an old client something while its call waits; `None` when no answer comes.
    pub(crate) async fn ask_client(&self, outgoing: &Outgoing, method: &str, params: Value) -> Option<Value> {
        if self.asked.borrow().len() >= QUESTIONS {
            return None;
        }
        let id = format!("bt-{}", self.next_question.get());
        self.next_question.set(self.next_question.get() + 1);
        let (sender, receiver) = oneshot::channel();
        let key = Value::from(id.as_str()).to_string();
        self.asked.borrow_mut().insert(key.clone(), sender);
        let _forgotten = Forget {
            asked: &self.asked,
            key,
        };
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        outgoing.send(request.to_string());
        tokio::time::timeout(ANSWER_TIME, receiver).await.ok()?.ok()
    }
}

/// A question of a call that was cancelled waits for nothing.
struct Forget<'a> {
    asked: &'a RefCell<HashMap<String, oneshot::Sender<Value>>>,
    key: String,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.asked.borrow_mut().remove(&self.key);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::strange::Nowhere;

    /// A client that does not read slows only itself: beyond 8 MiB nothing more of it is read, until it reads.
    #[tokio::test]
    async fn who_does_not_read_is_not_read() {
        let (outgoing, mut lines) = Outgoing::new(Secrets::default());
        let session = Session::new(Rc::new(Nowhere::new()), Rc::default(), outgoing.clone());
        let waits = async || {
            tokio::time::timeout(Duration::from_millis(5), session.room())
                .await
                .is_err()
        };
        outgoing.send("x".repeat(UNWRITTEN));
        assert!(!waits().await);
        outgoing.send("y".to_owned());
        assert!(waits().await);
        let written = lines.recv().await.expect("the first line");
        outgoing.written(written.len());
        assert!(!waits().await);
    }
}
