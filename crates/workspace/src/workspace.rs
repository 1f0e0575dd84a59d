//! One workspace: what its parts share.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use beamtalk_etf::Term;
use beamtalk_storage::{NodeInfo, RunDirectory, WorkspaceDirectory};
use beamtalk_wire::{Access, Channel, ErrorBody, LOG_LEVELS, Op, Request, push};
use rustc_hash::FxHashMap;
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, Semaphore};

use crate::audit::{Audit, AuditError, Event, Who};
use crate::changes::ChangeLog;
use crate::cluster::Cluster;
use crate::compile::CompilerPool;
use crate::gate::{Gate, Outgoing};
use crate::image::{Image, Phase};
use crate::ops::{Answer, Caller};
use crate::options::StartOptions;
use crate::project::ProjectImage;
use crate::sessions::{ConnectionId, Session, Sessions};
use crate::{record, terms};

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
    pub audit: Arc<Audit>,
    pub compiler: CompilerPool,
    pub image: Image,
    pub sessions: Sessions,
    pub changes: RefCell<ChangeLog>,
    pub gate: RefCell<Option<Gate>>,
    pub project: RefCell<Option<ProjectImage>>,
    /// Hashes of the compiled files that were loaded last.
    pub loaded: RefCell<FxHashMap<PathBuf, [u8; 32]>>,
    /// Findings of the last checks, by class.
    pub findings: RefCell<FxHashMap<String, Vec<Value>>>,
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
}

impl Default for Watch {
    fn default() -> Self {
        Self {
            channels: BTreeSet::from([Channel::Workspace]),
            actors: BTreeSet::new(),
            level: None,
        }
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
        }
        self.tell_node_channels();
        active
    }

    /// The node sends only what somebody listens to.
    pub(crate) fn tell_node_channels(&self) {
        let connections = self.connections.borrow();
        let mut channels = BTreeSet::new();
        let mut actors = BTreeSet::new();
        for guest in connections.values() {
            channels.extend(guest.watch.channels.iter().copied());
            actors.extend(guest.watch.actors.iter().cloned());
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
    pub(crate) fn publish(&self, channel: Channel, event: &str, data: &Value) {
        let plain = push(channel, event, data.clone()).to_string();
        for guest in self.connections.borrow().values() {
            if !guest.watch.channels.contains(&channel) || !guest.wants(channel, data) {
                continue;
            }
            let text = match channel {
                Channel::Transcript => push(channel, event, guest.with_request(data)).to_string(),
                _ => plain.clone(),
            };
            guest.outgoing.push_event(channel, text);
        }
    }

    // Code.

    /// The compiler need not know the class any more.
    pub(crate) fn forget_class(&self, class: &str) {
        self.findings.borrow_mut().remove(class);
        let header = format!("subclass: {class}");
        self.compiler.known.borrow_mut().forget(|text| {
            text.text.lines().any(|line| {
                let line = line.trim();
                line.ends_with(&header)
                    || line.contains(&format!("{header} "))
                    || line.starts_with(&format!("{class} >>"))
            })
        });
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

    /// With `--audit-required` nothing is done that cannot be recorded.
    pub(crate) fn check_audit(&self, op: Op) -> Result<(), ErrorBody> {
        if op.access() == Access::Read {
            return Ok(());
        }
        self.audit.permit().map_err(|cause| audit_failed(&cause))
    }

    /// Write a record about something a caller did. Fails only with `--audit-required`.
    pub(crate) fn record(&self, caller: &Caller, event: Event) -> Result<(), ErrorBody> {
        let session = &caller.session;
        let who = Who {
            peer: Some(session.peer.borrow().clone()),
            client: Some(session.client.name().to_owned()),
            session: Some(session.id.clone()),
            auth: Some(session.auth.clone()),
        };
        match self.audit.record(event.by(who)) {
            Ok(()) => Ok(()),
            Err(cause) if self.options.audit_required => Err(audit_failed(&cause)),
            Err(cause) => {
                tracing::error!("the audit log cannot be written: {cause}");
                Ok(())
            }
        }
    }

    /// Write a record about something that happened by itself.
    pub(crate) fn record_own(&self, event: Event) {
        if let Err(cause) = self.audit.record(event.by(Who::default())) {
            tracing::error!("the audit log cannot be written: {cause}");
        }
    }

    /// The record of an operation, before its answer is sent.
    pub(crate) fn record_operation(
        &self,
        caller: &Caller,
        request: &Request,
        answer: &Result<Answer, ErrorBody>,
        started: Instant,
    ) -> Result<(), ErrorBody> {
        for event in record::of(&self.audit, request, answer, started.elapsed()) {
            self.record(caller, event)?;
        }
        Ok(())
    }

    /// What `health` and `status` both tell.
    pub(crate) fn health(&self) -> Map<String, Value> {
        let info = self.info.borrow();
        let connections = self.connections.borrow();
        let dropped: u64 = connections.values().map(|guest| guest.outgoing.dropped()).sum();
        let fields = json!({
            "workspace_id": info.workspace_id,
            "nonce": info.nonce,
            "node": self.image.phase().name(),
            "uptime_s": self.started.elapsed().as_secs(),
            "connections": connections.len(),
            "sessions": self.sessions.all().len(),
            "restarts": self.image.start_number().saturating_sub(1),
            "queue_drops": dropped,
            "compiler_kills": self.compiler.killed(),
            "audit": self.audit.state(),
            "last_error": self.image.last_error(),
        });
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }
}

fn audit_failed(cause: &AuditError) -> ErrorBody {
    ErrorBody::new(
        "audit_failed",
        format!("refused, because it cannot be recorded: {cause}"),
    )
    .hint("this workspace was started with --audit-required")
}

impl Guest {
    /// Events about objects and log lines are chosen more finely than by channel.
    fn wants(&self, channel: Channel, data: &Value) -> bool {
        match channel {
            Channel::Object => data["actor"]
                .as_str()
                .is_some_and(|actor| self.watch.actors.contains(actor)),
            Channel::Logs => {
                let wanted = self.watch.level.as_deref().map_or(6, level);
                level(data["level"].as_str().unwrap_or("info")) <= wanted
            }
            _ => true,
        }
    }

    /// `for` of a transcript event is the client's own number of the evaluation that caused it.
    fn with_request(&self, data: &Value) -> Value {
        let mut data = data.clone();
        let running = self.session.running.borrow();
        let own = running
            .as_ref()
            .filter(|(_, number)| data["for"].as_u64() == Some(*number))
            .map(|(id, _)| id.clone());
        data["for"] = own.into();
        data
    }
}

/// Levels as the node names them, the gravest first.
fn level(name: &str) -> usize {
    LOG_LEVELS.iter().position(|level| *level == name).unwrap_or(6)
}
