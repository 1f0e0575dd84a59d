//! The one owner of all state: takes what the client and the threads say, in order, and hands out snapshots.

mod live;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use crossbeam_channel::{Receiver, Sender, after, never, select, unbounded};
use ecow::EcoString;
use gen_lsp_types as lsp;
use lsp_server::{Connection, ErrorCode, Message, Notification, Request, RequestId, Response, ResponseError};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::client::Client;
use crate::fault::Fault;
use crate::live::{News, Workspaces};
use crate::pool::{Pool, guarded};
use crate::position::Encoding;
use crate::requests::diagnostic;
use crate::state::{Snapshot, State, canonical, key};
use crate::sync::Todo;
use crate::world::World;
use crate::{capabilities, dispatch, uri};

/// Diagnostics follow the last change after this long.
const QUIET: Duration = Duration::from_millis(150);

/// How a client left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// After `shutdown`.
    Properly,
    /// Without it.
    Abruptly,
}

/// What the threads tell the owner.
enum Report {
    Answered(RequestId, Result<Value, Fault>),
    Loaded(Box<World>),
    Diagnosed {
        key: EcoString,
        version: i32,
        items: Vec<lsp::Diagnostic>,
    },
    Live(News),
    /// For a person to read.
    Told(String),
}

/// Where the server is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    New,
    Ready,
    ShutDown,
}

/// A request that is being worked on.
struct Open {
    is_cancelled: Arc<AtomicBool>,
    /// Its document: positions in it mean nothing once it has changed.
    document: Option<EcoString>,
    method: String,
}

struct Server {
    outgoing: Sender<Message>,
    reports: Sender<Report>,
    pool: Pool,
    phase: Phase,
    state: Arc<State>,
    open: HashMap<RequestId, Open>,
    /// Documents whose diagnostics are due, and when.
    due: BTreeMap<EcoString, Instant>,
    loading: Vec<PathBuf>,
    log: Box<dyn Fn(&str) + Send>,
    workspaces: Option<Arc<dyn Workspaces>>,
    requests_sent: i32,
}

/// What the server gets from the program around it.
pub struct Setup {
    /// Told to a person who looks at the server's log.
    pub log: Box<dyn Fn(&str) + Send>,
    /// Without it files are all there is.
    pub workspaces: Option<Arc<dyn Workspaces>>,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            log: Box::new(|_| {}),
            workspaces: None,
        }
    }
}

/// Serve one client until it leaves.
pub fn serve(connection: &Connection, setup: Setup) -> io::Result<Ended> {
    let (reports, reported) = unbounded();
    let mut server = Server {
        outgoing: connection.sender.clone(),
        reports,
        pool: Pool::start()?,
        phase: Phase::New,
        state: Arc::default(),
        open: HashMap::new(),
        due: BTreeMap::new(),
        loading: Vec::new(),
        log: setup.log,
        workspaces: setup.workspaces,
        requests_sent: 0,
    };
    // Texts are parsed here, and trees nest as deep as the parser allows.
    let thread = thread::Builder::new()
        .name("lsp-owner".to_owned())
        .stack_size(beamtalk_project::source::STACK);
    thread::scope(|scope| {
        let owner = thread.spawn_scoped(scope, || server.run(&connection.receiver, &reported))?;
        owner
            .join()
            .map_err(|_| io::Error::other("the owner of the state failed"))
    })
}

impl Server {
    fn run(&mut self, incoming: &Receiver<Message>, reported: &Receiver<Report>) -> Ended {
        loop {
            let quiet = match self.due.values().min() {
                Some(due) => after(due.saturating_duration_since(Instant::now())),
                None => never(),
            };
            select! {
                recv(incoming) -> message => match message {
                    Ok(Message::Request(request)) => self.request(request),
                    Ok(Message::Notification(notification)) if notification.method == "exit" => {
                        return self.ended();
                    }
                    Ok(Message::Notification(notification)) => self.notification(notification),
                    Ok(Message::Response(_)) => {}
                    Err(_) => return self.ended(),
                },
                recv(reported) -> report => if let Ok(report) = report { self.report(report) },
                recv(quiet) -> _ => self.diagnose(),
            }
        }
    }

    fn ended(&self) -> Ended {
        if self.phase == Phase::ShutDown {
            Ended::Properly
        } else {
            Ended::Abruptly
        }
    }

    fn send(&self, message: impl Into<Message>) {
        // A client that is gone is noticed where messages are read.
        drop(self.outgoing.send(message.into()));
    }

    fn refuse(&self, id: RequestId, code: ErrorCode, message: &str) {
        self.send(Response::new_err(id, code as i32, message.to_owned()));
    }

    fn request(&mut self, request: Request) {
        match (self.phase, request.method.as_str()) {
            (Phase::New, "initialize") => self.initialize(request),
            (Phase::New, _) => self.refuse(
                request.id,
                ErrorCode::ServerNotInitialized,
                "the first request is 'initialize'",
            ),
            (Phase::ShutDown, _) => {
                self.refuse(request.id, ErrorCode::InvalidRequest, "the server was shut down");
            }
            (Phase::Ready, "initialize") => {
                self.refuse(request.id, ErrorCode::InvalidRequest, "'initialize' comes once");
            }
            (Phase::Ready, "shutdown") => {
                self.phase = Phase::ShutDown;
                self.cancel_all();
                self.send(Response::new_ok(request.id, Value::Null));
            }
            (Phase::Ready, _) => self.start(request),
        }
    }

    fn initialize(&mut self, request: Request) {
        let params: lsp::InitializeParams = match serde_json::from_value(request.params) {
            Ok(params) => params,
            Err(cause) => {
                return self.refuse(request.id, ErrorCode::InvalidParams, &cause.to_string());
            }
        };
        let offered = params.capabilities.general.as_ref();
        let offered = offered.and_then(|general| general.position_encodings.as_deref());
        let encoding = Encoding::negotiate(offered);
        let state = Arc::make_mut(&mut self.state);
        state.encoding = encoding;
        state.client = Arc::new(Client::new(&params));
        state.folders = folders(&params);
        self.phase = Phase::Ready;
        let result = json!({
            "capabilities": capabilities::of_server(encoding),
            "serverInfo": {"name": "beamtalk", "version": env!("CARGO_PKG_VERSION")},
        });
        self.send(Response::new_ok(request.id, result));
    }

    /// Hand a request to a thread.
    fn start(&mut self, request: Request) {
        let Some(handle) = dispatch::handler(&request.method) else {
            let text = format!("there is no request '{}'", request.method);
            return self.refuse(request.id, ErrorCode::MethodNotFound, &text);
        };
        if self.open.contains_key(&request.id) {
            return self.refuse(
                request.id,
                ErrorCode::InvalidRequest,
                "a request with this id is open",
            );
        }
        let document = dispatch::document(&request.params).map(|uri| key(&uri.0));
        if request.method == "textDocument/completion" {
            self.supersede(&request.method, document.as_ref());
        }
        let snapshot = Snapshot::new(&self.state);
        let open = Open {
            is_cancelled: snapshot.is_cancelled.clone(),
            document,
            method: request.method,
        };
        let (id, params, reports) = (request.id, request.params, self.reports.clone());
        self.open.insert(id.clone(), open);
        self.pool.run(snapshot.is_cancelled.clone(), move || {
            let answer = guarded(|| handle(&snapshot, params));
            drop(reports.send(Report::Answered(id, answer)));
        });
    }

    /// Whoever asks again no longer waits for the first answer.
    fn supersede(&mut self, method: &str, document: Option<&EcoString>) {
        self.give_up(&Fault::Cancelled, |open| {
            open.method == method && open.document.as_ref() == document
        });
    }

    fn cancel_all(&mut self) {
        self.give_up(&Fault::Cancelled, |_| true);
    }

    /// Answer requests with a fault, whatever becomes of their work.
    fn give_up(&mut self, fault: &Fault, is_meant: impl Fn(&Open) -> bool) {
        let ids: Vec<RequestId> = self
            .open
            .iter()
            .filter(|(_, open)| is_meant(open))
            .map(|(id, _)| id.clone())
            .collect();
        for id in ids {
            if let Some(open) = self.open.remove(&id) {
                open.is_cancelled.store(true, Ordering::Relaxed);
                self.answer(id, Err(fault.clone()));
            }
        }
    }

    fn answer(&self, id: RequestId, answer: Result<Value, Fault>) {
        let response = match answer {
            Ok(value) => Response::new_ok(id, value),
            Err(fault) => {
                let error = ResponseError::from(fault);
                Response::new_err(id, error.code, error.message)
            }
        };
        self.send(response);
    }

    fn notification(&mut self, notification: Notification) {
        if self.phase != Phase::Ready {
            return;
        }
        let (method, params) = (notification.method, notification.params);
        let outcome = guarded(|| self.notified(&method, params));
        if let Err(fault) = outcome {
            self.tell(&format!("{method}: {fault}"));
        }
    }

    fn notified(&mut self, method: &str, params: Value) -> Result<(), Fault> {
        match method {
            "initialized" => {
                self.watch();
                self.begin();
            }
            "$/cancelRequest" => {
                let params: Cancelled = read(params)?;
                let id = params.id;
                if let Some(open) = self.open.remove(&id) {
                    open.is_cancelled.store(true, Ordering::Relaxed);
                    self.answer(id, Err(Fault::Cancelled));
                }
            }
            "textDocument/didOpen" => {
                let params: lsp::DidOpenTextDocumentParams = read(params)?;
                let item = params.text_document;
                if uri::scheme(&item.uri.0).is_none() {
                    return Err(Fault::InvalidParams(format!("'{}' is not a URI", item.uri)));
                }
                let todo = Arc::make_mut(&mut self.state).open(item.uri, item.version, item.text);
                self.todo(todo);
            }
            "textDocument/didChange" => {
                let params: lsp::DidChangeTextDocumentParams = read(params)?;
                let document = params.text_document;
                let changed = key(&document.text_document_identifier.uri.0);
                self.give_up(&Fault::Modified, |open| open.document.as_ref() == Some(&changed));
                let todo = Arc::make_mut(&mut self.state).change(
                    &document.text_document_identifier.uri,
                    document.version,
                    params.content_changes,
                )?;
                self.todo(todo);
            }
            "textDocument/didSave" => {
                let params: lsp::DidSaveTextDocumentParams = read(params)?;
                let uri = params.text_document.uri;
                Arc::make_mut(&mut self.state).saved(&uri);
                self.save(&uri);
            }
            "textDocument/didClose" => {
                let params: lsp::DidCloseTextDocumentParams = read(params)?;
                let uri = params.text_document.uri;
                let todo = Arc::make_mut(&mut self.state).close(&uri);
                self.due.remove(&key(&uri.0));
                self.state.tokens.forget(&key(&uri.0));
                self.publish(&uri, None, &[]);
                self.todo(todo);
            }
            "workspace/didChangeWatchedFiles" => {
                let params: lsp::DidChangeWatchedFilesParams = read(params)?;
                let uris: Vec<lsp::Uri> = params.changes.into_iter().map(|change| change.uri).collect();
                let todo = Arc::make_mut(&mut self.state).changed_on_disk(&uris);
                self.todo(todo);
            }
            "workspace/didChangeConfiguration" => {
                let state = Arc::make_mut(&mut self.state);
                let client = Arc::make_mut(&mut state.client);
                let settings = params["settings"].get("beamtalk").unwrap_or(&params["settings"]);
                client.settings = client.settings.clone().with(settings);
            }
            "workspace/didChangeWorkspaceFolders" => {
                let params: lsp::DidChangeWorkspaceFoldersParams = read(params)?;
                self.folders_changed(params.event);
            }
            _ => {}
        }
        Ok(())
    }

    fn folders_changed(&mut self, event: lsp::WorkspaceFoldersChangeEvent) {
        let path = |folder: lsp::WorkspaceFolder| uri::to_path(&folder.uri.0).map(|path| canonical(&path));
        let gone: Vec<PathBuf> = event.removed.into_iter().filter_map(path).collect();
        let come: Vec<PathBuf> = event.added.into_iter().filter_map(path).collect();
        let state = Arc::make_mut(&mut self.state);
        state.folders.retain(|folder| !gone.contains(folder));
        // What is open in a folder that went stays as it is.
        let used: Vec<PathBuf> = state.documents.values().map(|one| one.root.clone()).collect();
        state
            .worlds
            .retain(|root, _| !gone.contains(root) || used.contains(root));
        state.folders.extend(come);
        self.begin();
    }

    /// The client is ready: read its folders.
    fn begin(&mut self) {
        let folders = self.state.folders.clone();
        let has_manifest = |folder: &PathBuf| folder.join("beamtalk.toml").is_file();
        for folder in folders.into_iter().filter(has_manifest) {
            if !self.state.worlds.contains_key(&folder) {
                self.load(folder);
            }
        }
    }

    /// Have the client tell what changes on disk, if it must be asked.
    fn watch(&mut self) {
        if !self.state.client.registers_watchers {
            return;
        }
        let globs = ["**/*.bt", "**/beamtalk.toml", "**/beamtalk.lock"];
        let watchers: Vec<Value> = globs.iter().map(|glob| json!({ "globPattern": glob })).collect();
        let registration = json!({
            "id": "beamtalk-files",
            "method": "workspace/didChangeWatchedFiles",
            "registerOptions": {"watchers": watchers},
        });
        self.ask(
            "client/registerCapability",
            json!({"registrations": [registration]}),
        );
    }

    fn load(&mut self, root: PathBuf) {
        if self.loading.contains(&root) {
            return;
        }
        self.loading.push(root.clone());
        let reports = self.reports.clone();
        let limit = self.state.client.settings.max_files;
        let work = move || {
            let world = guarded(|| Ok(World::read(&root, limit)));
            let world = world.unwrap_or_else(|fault| World::failed(&root, fault.to_string()));
            drop(reports.send(Report::Loaded(Box::new(world))));
        };
        let thread = thread::Builder::new()
            .name("lsp-loader".to_owned())
            .stack_size(beamtalk_project::source::STACK);
        if let Err(cause) = thread.spawn(work) {
            self.tell(&format!("the project cannot be read: {cause}"));
        }
    }

    fn todo(&mut self, todo: Todo) {
        todo.load.into_iter().for_each(|root| self.load(root));
        let due = Instant::now() + QUIET;
        for key in todo.diagnose {
            self.due.insert(key, due);
        }
    }

    fn report(&mut self, report: Report) {
        match report {
            Report::Answered(id, answer) => {
                if let Err(Fault::Internal(text)) = &answer {
                    self.tell(text);
                }
                if self.open.remove(&id).is_some() {
                    let show = answer.as_ref().ok().and_then(|value| value.get("show")).cloned();
                    self.answer(id, answer);
                    if let Some(uri) = show.filter(|_| self.state.client.shows_documents) {
                        self.ask("window/showDocument", json!({"uri": uri, "takeFocus": true}));
                    }
                }
            }
            Report::Loaded(world) => {
                self.loading.retain(|root| *root != world.root);
                if let Some(problem) = &world.problem {
                    self.tell(&format!("{}: {problem}", world.root.display()));
                }
                self.follow(&world.root);
                let todo = Arc::make_mut(&mut self.state).loaded(*world);
                let now = Instant::now();
                self.due.extend(todo.diagnose.into_iter().map(|key| (key, now)));
                if self.state.client.pulls_diagnostics && self.state.client.refreshes_diagnostics {
                    self.ask("workspace/diagnostic/refresh", Value::Null);
                }
            }
            Report::Diagnosed { key, version, items } => {
                let document = self.state.documents.get(&key).cloned();
                if let Some(document) = document.filter(|document| document.version == version) {
                    self.publish(&document.uri, Some(version), &items);
                }
            }
            Report::Live(news) => self.live(news),
            Report::Told(text) => self.tell(&text),
        }
    }

    /// Look at the documents whose time has come.
    fn diagnose(&mut self) {
        let now = Instant::now();
        let ready: Vec<EcoString> = self
            .due
            .iter()
            .filter(|(_, due)| **due <= now)
            .map(|(key, _)| key.clone())
            .collect();
        for key in ready {
            self.due.remove(&key);
            if self.state.client.pulls_diagnostics {
                continue;
            }
            let Some(document) = self.state.documents.get(&key) else {
                continue;
            };
            let (version, reports) = (document.version, self.reports.clone());
            let snapshot = Snapshot::new(&self.state);
            self.pool.run(Arc::default(), move || {
                let report = match guarded(|| diagnostic::of(&snapshot, &key)) {
                    Ok(items) => Report::Diagnosed { key, version, items },
                    Err(fault) => Report::Told(format!("{key}: {fault}")),
                };
                drop(reports.send(report));
            });
        }
    }

    fn publish(&self, uri: &lsp::Uri, version: Option<i32>, items: &[lsp::Diagnostic]) {
        let mut params = json!({"uri": uri, "diagnostics": items});
        if let Some(version) = version {
            params["version"] = version.into();
        }
        self.send(Notification::new(
            "textDocument/publishDiagnostics".to_owned(),
            params,
        ));
    }

    /// A request of ours whose answer does not matter.
    fn ask(&mut self, method: &str, params: Value) {
        self.requests_sent += 1;
        let id = RequestId::from(format!("beamtalk-{}", self.requests_sent));
        self.send(Request {
            id,
            method: method.to_owned(),
            params,
        });
    }

    /// Something a person may want to know, in the log of the server and of the client.
    fn tell(&self, text: &str) {
        (self.log)(text);
        let params = json!({"type": 2, "message": text});
        self.send(Notification::new("window/logMessage".to_owned(), params));
    }
}

#[derive(serde::Deserialize)]
struct Cancelled {
    id: RequestId,
}

fn read<P: DeserializeOwned>(params: Value) -> Result<P, Fault> {
    serde_json::from_value(params).map_err(|cause| Fault::InvalidParams(cause.to_string()))
}

/// The directories the client works in.
fn folders(params: &lsp::InitializeParams) -> Vec<PathBuf> {
    let folders = &params.workspace_folders_initialize_params.workspace_folders;
    let mut uris: Vec<String> = match folders {
        Some(lsp::WorkspaceFolders::WorkspaceFolderList(folders)) => {
            folders.iter().map(|folder| folder.uri.0.clone()).collect()
        }
        Some(lsp::WorkspaceFolders::Null) | None => Vec::new(),
    };
    if uris.is_empty() {
        #[expect(deprecated, reason = "older clients know nothing else")]
        uris.extend(params.root_uri.iter().map(|uri| uri.0.clone()));
    }
    let paths = uris.iter().filter_map(|uri| uri::to_path(uri));
    paths.map(|path| canonical(&path)).collect()
}
