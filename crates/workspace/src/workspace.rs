//! One workspace: what its parts share.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use beamtalk_etf::Term;
use beamtalk_storage::{NodeInfo, RunDirectory, WorkspaceDirectory};
use beamtalk_wire::answers::{Finding, HealthAnswer};
use beamtalk_wire::{
    Access, ApprovalsEvent, ChangesEvent, Channel, ClientKind, ErrorBody, ErrorKind, Event as Told,
    LOG_LEVELS, LogsEvent, ObjectEvent, Request, TranscriptEvent,
};
use rustc_hash::FxHashMap;
use serde_json::Value;
use tokio::sync::{Notify, Semaphore};

use crate::agents::AgentsLink;
use crate::approvals::Approvals;
use crate::audit::{Audit, AuditError, Entry, Event, Who};
use crate::broadcast::Broadcast;
use crate::changes::ChangeLog;
use crate::cluster::Cluster;
use crate::cluster::ports::Registration;
use crate::compile::CompilerPool;
use crate::desk::Desk;
use crate::disk::Disk;
use crate::gate::{Gate, Outgoing};
use crate::handles::{self, Handles, principal};
use crate::hosted_loop::LoopPlace;
use crate::image::{Image, Phase};
use crate::jobs::Jobs;
use crate::mcp::McpService;
use crate::news::News;
use crate::ops::{Caller, Reply};
use crate::options::StartOptions;
use crate::project::ProjectImage;
use crate::questions::Questions;
use crate::sessions::{ConnectionId, Session, Sessions};
use crate::stops::Stops;
use crate::test_log::TestLog;
use crate::told::Told as Written;
use crate::{record, terms};

/// What is written to the Transcript is in its file after so long.
const WRITE_AFTER: Duration = Duration::from_millis(200);

pub(crate) struct Workspace {
    pub info: RefCell<NodeInfo>,
    pub directory: WorkspaceDirectory,
    pub(crate) run: RunDirectory,
    /// How many invitations of browsers were made.
    pub(crate) login_pages: Cell<u64>,
    pub root: PathBuf,
    /// This binary.
    pub program: PathBuf,
    pub options: StartOptions,
    /// The node is distributed, and what was told of that.
    pub(crate) cluster: Option<Cluster>,
    pub(crate) cluster_status: RefCell<Value>,
    pub(crate) registration: RefCell<Option<Registration>>,
    pub audit: Arc<Audit>,
    pub compiler: CompilerPool,
    pub image: Image,
    pub sessions: Sessions,
    pub(crate) handles: Handles,
    pub(crate) questions: Questions,
    pub(crate) jobs: Jobs,
    pub(crate) stops: Stops,
    pub(crate) approvals: Rc<Approvals>,
    /// What answers AI clients.
    pub(crate) mcp: RefCell<Option<Rc<dyn McpService>>>,
    pub(crate) hosted_loop: LoopPlace,
    pub(crate) news: News,
    pub(crate) agents: AgentsLink,
    pub(crate) desk: RefCell<Desk>,
    /// What was written to the Transcript.
    pub(crate) told: RefCell<Written>,
    /// What was told on the other channels.
    pub(crate) broadcast: RefCell<Broadcast>,
    pub(crate) tests: RefCell<TestLog>,
    /// The pending changes that clients know of.
    pub(crate) pending_told: RefCell<BTreeMap<u64, PendingChange>>,
    pub changes: RefCell<ChangeLog>,
    pub gate: RefCell<Option<Gate>>,
    pub project: RefCell<Option<ProjectImage>>,
    /// Hashes of the compiled files that were loaded last.
    pub loaded: RefCell<FxHashMap<PathBuf, [u8; 32]>>,
    /// The files whose text the image has.
    pub(crate) disk: RefCell<Disk>,
    /// Pending changes that the node, started anew, did not take.
    pub(crate) not_installed: RefCell<BTreeMap<u64, ErrorBody>>,
    /// Changes that were pending when the node ended.
    pub(crate) missing: RefCell<BTreeSet<u64>>,
    /// When pending changes were last installed again.
    pub(crate) reinstalled: Cell<Option<Instant>>,
    /// Classes came or went since they were written down.
    pub(crate) classes_changed: Notify,
    /// Findings of the last checks, by class.
    pub findings: RefCell<FxHashMap<String, Vec<Finding>>>,
    pub autoflush: Cell<bool>,
    /// Places for the questions of observers: they share one worker, and the owner has the others.
    pub(crate) observing: Semaphore,
    pub(crate) connections: RefCell<BTreeMap<ConnectionId, Guest>>,
    pub(crate) next_connection: Cell<ConnectionId>,
    pub(crate) started: Instant,
    /// When something last happened in the workspace.
    pub(crate) last_use: Cell<Instant>,
    pub(crate) stopping: RefCell<Option<Stop>>,
    pub(crate) stop_wanted: Notify,
}

/// Why and how the workspace is to stop.
#[derive(Clone, Debug)]
pub(crate) struct Stop {
    pub(crate) is_forced: bool,
    pub(crate) reason: &'static str,
}

impl Stop {
    /// Whether a person ended the workspace, and not the system, a limit or a restart.
    pub(crate) fn is_on_purpose(&self) -> bool {
        matches!(self.reason, "stop" | "SIGINT")
    }
}

/// What is told of a change that came or went.
pub(crate) struct PendingChange {
    class: String,
    selector: Option<String>,
    file: Option<String>,
    author: String,
}

/// A connection, as far as events and its end concern it.
pub(crate) struct Guest {
    pub(crate) outgoing: Outgoing,
    pub(crate) session: Rc<Session>,
    pub(crate) watch: Watch,
}

/// What a connection listens to.
#[derive(Clone, Debug)]
pub(crate) struct Watch {
    pub channels: BTreeSet<Channel>,
    /// For `object`.
    pub actors: BTreeSet<String>,
    /// For `logs`.
    pub level: Option<String>,
    /// Channels of which it is being sent what it missed, and by which request: what is told now follows there.
    pub behind: BTreeMap<Channel, u64>,
    pub turns: u64,
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            channels: BTreeSet::from([Channel::Workspace]),
            actors: BTreeSet::new(),
            level: None,
            behind: BTreeMap::new(),
            turns: 0,
        }
    }
}

impl Watch {
    /// Whether events of a channel are sent as they are told.
    fn is_live(&self, channel: Channel) -> bool {
        self.channels.contains(&channel) && !self.behind.contains_key(&channel)
    }
}

impl Workspace {
    // Sessions.

    /// Make sure that a session exists in the node that runs now.
    pub(crate) async fn enter_node(&self, session: &Session) -> Result<(), ErrorBody> {
        self.last_use.set(Instant::now());
        if self.image.phase() != Phase::Up {
            return Err(self.image.down());
        }
        let now = self.image.start_number();
        if session.node_start.get() == now {
            return Ok(());
        }
        if session.ends_with_node.get() && session.node_start.get() != 0 {
            return Err(handles::node_restarted());
        }
        let arguments = terms::map([("kind", Term::binary(session.client.name()))]);
        self.image.call(&session.id, "session-start", arguments).await?;
        session.node_start.set(now);
        session.set_names(Vec::new());
        Ok(())
    }

    /// The names an input of a session may use: its own variables and those of the workspace.
    pub(crate) fn names(&self, session: &Session) -> Vec<String> {
        let mut names = session.names();
        for name in self.image.globals.borrow().iter() {
            if !names.contains(name) {
                names.push(name.clone());
            }
        }
        names
    }

    pub(crate) async fn end_session(&self, session: &Session) {
        self.sessions.remove(&session.id);
        if session.node_start.get() == self.image.start_number() {
            // A node that is gone took the session with it.
            let closing = self
                .image
                .call(&session.id, "session-close", Term::Map(Vec::new()));
            drop(closing.await);
        }
    }

    /// The credentials of a principal are gone, and what was opened with them goes too.
    pub(crate) fn end_handles(self: &Rc<Self>, principal: &str) {
        self.jobs.forget(principal);
        for session in self.handles.forget(|owner| owner == principal) {
            let workspace = self.clone();
            tokio::task::spawn_local(async move { workspace.end_session(&session).await });
        }
    }

    // Connections and events.

    /// Change what a connection listens to; answers the channels that are active then.
    pub(crate) fn change_watch(
        &self,
        connection: ConnectionId,
        change: impl FnOnce(&mut Watch),
    ) -> BTreeSet<Channel> {
        let mut active = BTreeSet::new();
        if let Some(guest) = self.connections.borrow_mut().get_mut(&connection) {
            change(&mut guest.watch);
            active.clone_from(&guest.watch.channels);
            guest.session.listened.borrow_mut().clone_from(&active);
        }
        self.tell_node_channels();
        active
    }

    /// The node sends only what somebody listens to.
    pub(crate) fn tell_node_channels(&self) {
        let connections = self.connections.borrow();
        // The daemon itself listens to these: it keeps a record of them.
        let mut channels = BTreeSet::from([Channel::Classes, Channel::Transcript, Channel::Logs]);
        let mut actors = BTreeSet::new();
        for guest in connections.values() {
            channels.extend(guest.watch.channels.iter().copied());
            actors.extend(guest.watch.actors.iter().cloned());
        }
        // Who comes back asks for what was told meanwhile.
        for session in self.sessions.all() {
            if session.kept.is_some() {
                channels.extend(session.listened.borrow().iter().copied());
            }
        }
        let names = channels.iter().map(|channel| Term::binary(channel.name()));
        let arguments = terms::map([
            ("channels", Term::list(names)),
            ("actors", Term::list(actors.iter().map(Term::binary))),
        ]);
        if let Some(link) = self.image.link() {
            link.control("subscribe", arguments);
        }
    }

    /// Send an event to everybody who listens.
    pub(crate) fn publish(&self, event: &Told) {
        self.publish_numbered(event, None, false);
    }

    /// Send an event to the owners among those who listen.
    pub(crate) fn publish_to_owners(&self, event: &Told) {
        self.publish_numbered(event, None, true);
    }

    /// Send an event that may have a number of its own.
    pub(crate) fn publish_numbered(&self, event: &Told, own: Option<u64>, is_for_owners: bool) {
        let (channel, text) = (event.channel(), event.text());
        let seq = self.broadcast.borrow_mut().keep(channel, &text, own);
        for guest in self.connections.borrow().values() {
            let is_meant = !is_for_owners || guest.session.role == beamtalk_wire::Role::Owner;
            if is_meant && guest.watch.is_live(channel) && guest.wants(event) {
                // Numbers are for those who can use them.
                let text = if guest.session.kept.is_some() {
                    event.numbered_text(seq)
                } else {
                    text.clone()
                };
                guest.outgoing.push_event(channel, text);
            }
        }
    }

    /// Tell which changes became pending and which are not any more.
    pub(crate) fn tell_changes(&self) {
        let Ok(log) = self.changes.try_borrow() else {
            return;
        };
        let mut told = self.pending_told.borrow_mut();
        let now: BTreeMap<u64, &crate::changes::Entry> = log
            .pending()
            .filter(|entry| entry.is_durable())
            .map(|entry| (entry.seq, entry))
            .collect();
        let gone: Vec<u64> = told
            .keys()
            .copied()
            .filter(|seq| !now.contains_key(seq))
            .collect();
        let mut events = Vec::new();
        for seq in gone {
            if let Some(change) = told.remove(&seq) {
                events.push(ChangesEvent::Retired {
                    seq,
                    class: change.class,
                    selector: change.selector,
                    file: change.file,
                });
            }
        }
        for (seq, entry) in now {
            told.entry(seq).or_insert_with(|| {
                let change = PendingChange {
                    class: entry.class.clone(),
                    selector: entry.selector.clone(),
                    file: entry.source_file.clone(),
                    author: entry.author.clone(),
                };
                events.push(ChangesEvent::Added {
                    seq,
                    class: change.class.clone(),
                    selector: change.selector.clone(),
                    file: change.file.clone(),
                    author: change.author.clone(),
                });
                change
            });
        }
        drop((told, log));
        for event in events {
            self.publish(&Told::Changes(event));
        }
    }

    /// Tell those who listen how many calls wait: all of them, or one's own.
    pub(crate) fn publish_approvals(&self) {
        for guest in self.connections.borrow().values() {
            if guest.watch.channels.contains(&Channel::Approvals) {
                let own = principal(&guest.session);
                let of = Some(own.as_str()).filter(|_| guest.session.client == ClientKind::Mcp);
                let count = self.approvals.list(of).len() as u64;
                let event = Told::Approvals(ApprovalsEvent::Changed { count });
                guest.outgoing.push_event(Channel::Approvals, event.text());
            }
        }
    }

    /// Send what was written to the Transcript. Who caused it is told by which of its evaluations.
    pub(crate) fn publish_text(self: &Rc<Self>, text: &str, request: Option<u64>, actor: Option<String>) {
        let by = request.and_then(|number| self.writer(number)).or(actor);
        for piece in crate::told::pieces(text) {
            self.publish_piece(piece, request, by.as_ref());
        }
    }

    fn publish_piece(self: &Rc<Self>, text: &str, request: Option<u64>, by: Option<&String>) {
        let seq = {
            let mut told = self.told.borrow_mut();
            let was_waiting = told.is_waiting();
            let seq = told.keep(text, by.cloned());
            if !was_waiting && told.is_waiting() {
                let workspace = Rc::downgrade(self);
                tokio::task::spawn_local(async move {
                    tokio::time::sleep(WRITE_AFTER).await;
                    if let Some(workspace) = workspace.upgrade() {
                        workspace.told.borrow_mut().write();
                    }
                });
            }
            seq
        };
        for guest in self.connections.borrow().values() {
            if guest.watch.is_live(Channel::Transcript) {
                let event = Told::Transcript(TranscriptEvent::Text {
                    text: text.to_owned(),
                    r#for: request.and_then(|number| guest.own_request(number)),
                    by: by.cloned().filter(|_| guest.session.kept.is_some()),
                });
                // Numbers are for those who can use them.
                let text = if guest.session.kept.is_some() {
                    event.numbered_text(seq)
                } else {
                    event.text()
                };
                guest.outgoing.push_event(Channel::Transcript, text);
            }
        }
    }

    /// Who an evaluation belongs to.
    fn writer(&self, number: u64) -> Option<String> {
        let runs = |session: &Rc<Session>| {
            let running = session.running.borrow();
            running.as_ref().is_some_and(|(_, running)| *running == number)
        };
        let session = self.sessions.all().into_iter().find(runs)?;
        let auth = session.auth.borrow();
        let name = auth.strip_prefix("token:").or(auth.strip_prefix("session:"));
        Some(if session.client.is_agent() {
            format!("agent {}", name.unwrap_or(&session.id))
        } else {
            session.id.clone()
        })
    }

    // Code.

    /// The compiler need not know the class any more.
    pub(crate) fn forget_class(&self, class: &str) {
        self.findings.borrow_mut().remove(class);
        self.compiler.known.borrow_mut().forget_class(class);
    }

    /// Files of the project that are not what was loaded: changed, new or gone. Relative to the project where they
    /// are in it.
    pub(crate) async fn files_changed_on_disk(&self) -> Vec<String> {
        let disk = self.disk.borrow().clone();
        let looked = tokio::task::spawn_blocking(move || {
            let look = disk.look();
            (disk, look)
        });
        let Ok((disk, look)) = looked.await else {
            return Vec::new();
        };
        self.disk.borrow_mut().learn(&disk, &look);
        let shown = |path: &PathBuf| {
            path.strip_prefix(&self.root)
                .unwrap_or(path)
                .display()
                .to_string()
        };
        look.changed.iter().map(shown).collect()
    }

    // Life.

    /// Ask the daemon to stop; it does so after the answer.
    pub(crate) fn stop(&self, is_forced: bool, reason: &'static str) {
        let mut stopping = self.stopping.borrow_mut();
        match stopping.as_mut() {
            Some(stop) => stop.is_forced |= is_forced,
            None => *stopping = Some(Stop { is_forced, reason }),
        }
        self.stop_wanted.notify_waiters();
        self.stop_wanted.notify_one();
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.borrow().is_some()
    }

    // Audit.

    /// With `--audit-required` nothing is done before it is recorded. Answers the number of that record.
    pub(crate) fn begin(&self, caller: &Caller, request: &Request) -> Result<Option<u64>, ErrorBody> {
        if request.op().access() == Access::Read {
            return Ok(None);
        }
        let entry = || record::begin(&self.audit, request).by(who(caller));
        self.audit.begin(entry).map_err(|cause| audit_failed(&cause))
    }

    /// Write a record about something a caller did; says if that was possible.
    pub(crate) fn record(&self, caller: &Caller, event: Event, begin: Option<u64>) -> bool {
        let entry = Entry {
            begin,
            ..event.by(who(caller))
        };
        let written = self.audit.record(entry);
        if let Err(cause) = &written {
            tracing::error!("{cause}");
        }
        written.is_ok()
    }

    /// Write a record about something that happened by itself.
    pub(crate) fn record_own(&self, event: Event) {
        if let Err(cause) = self.audit.record(event.by(Who::default())) {
            tracing::error!("{cause}");
        }
    }

    /// The records of an operation, before its answer is sent; says if they could be written.
    pub(crate) fn record_operation(
        &self,
        caller: &Caller,
        request: &Request,
        answer: &Result<Reply, ErrorBody>,
        started: Instant,
        begin: Option<u64>,
    ) -> bool {
        let who = principal(&caller.session);
        let events = record::of(&self.audit, &who, request, answer, started.elapsed());
        // All are tried: each that fails counts.
        let written: Vec<bool> = events
            .into_iter()
            .map(|event| self.record(caller, event, begin))
            .collect();
        written.iter().all(|is_written| *is_written)
    }

    /// What `health` and `status` both tell.
    pub(crate) fn health(&self) -> HealthAnswer {
        let info = self.info.borrow();
        let connections = self.connections.borrow();
        let dropped: u64 = connections.values().map(|guest| guest.outgoing.dropped()).sum();
        HealthAnswer {
            workspace_id: info.workspace_id.clone(),
            nonce: info.nonce.clone(),
            node: self.image.phase().name().to_owned(),
            uptime_s: self.started.elapsed().as_secs(),
            connections: connections.len() as u64,
            sessions: self.sessions.all().len() as u64,
            restarts: self.image.start_number().saturating_sub(1),
            queue_drops: dropped,
            compiler_kills: self.compiler.killed(),
            audit: self.audit.state(),
            last_error: self.image.last_error(),
            memory: None,
            processes: None,
            run_queue: None,
            project: None,
        }
    }
}

/// Nothing was done, because it could not be recorded.
pub(crate) fn audit_failed(cause: &AuditError) -> ErrorBody {
    tracing::error!("{cause}");
    let message = format!("nothing was done, because it cannot be recorded: {cause}");
    ErrorBody::new(ErrorKind::AuditFailed, message)
        .hint("this workspace was started with --audit-required; make room on the disk, then try again")
}

fn who(caller: &Caller) -> Who {
    let session = &caller.session;
    Who {
        peer: Some(session.peer.borrow().clone()),
        client: Some(session.client.name().to_owned()),
        session: Some(session.id.clone()),
        auth: Some(session.auth.borrow().clone()),
    }
}

impl Guest {
    /// Events about objects and log lines are chosen more finely than by channel.
    pub(crate) fn wants(&self, event: &Told) -> bool {
        match event {
            Told::Object(ObjectEvent::Changed { actor, .. }) => self.watch.actors.contains(actor),
            Told::Logs(LogsEvent::Entry { level: own, .. }) => {
                let wanted = self.watch.level.as_deref().map_or(6, level);
                level(own) <= wanted
            }
            _ => true,
        }
    }

    /// The client's own number of an evaluation.
    fn own_request(&self, number: u64) -> Option<String> {
        let running = self.session.running.borrow();
        let own = running.as_ref().filter(|(_, running)| *running == number);
        own.map(|(id, _)| id.clone())
    }
}

/// Levels as the node names them, the gravest first.
fn level(name: &str) -> usize {
    LOG_LEVELS.iter().position(|level| *level == name).unwrap_or(6)
}
