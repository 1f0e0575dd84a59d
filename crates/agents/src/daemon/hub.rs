//! What all parts of the daemon share.

use std::collections::{BTreeMap, HashMap};
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use beamtalk_ninep::{Hangup, Refusal};
use beamtalk_storage::time::now_seconds;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde_json::json;
use tokio::task::AbortHandle;

use super::listen::Entrance;
use crate::access::{Level, Right, Who};
use crate::approvals::Approvals;
use crate::audit::Audit;
use crate::config::{AuthMode, Config};
use crate::error::{Fatal, refusal};
use crate::events::Events;
use crate::files;
use crate::link::Links;
use crate::mail::{Draft, Mail, Message, USER};
use crate::namespace::Namespace;
use crate::places::{Places, own_program, user_name};
use crate::sandbox::Kernel;
use crate::sandbox::hidden::NAMESPACE;
use crate::secrets::Secrets;
use crate::session::core::State;
use crate::session::shared::{Command, SessionShared};
use crate::session::task::process::{is_alive, not_found};
use crate::tmux::Tmux;

/// A connection that can be ended from here.
pub(crate) struct Guest {
    pub(crate) hangup: Hangup,
    pub(crate) entrance: Entrance,
    pub(crate) who: Option<Who>,
    /// What it proved to be; at a session's door that is not what it became.
    pub(crate) proof: Option<Who>,
}

pub(crate) struct Hub {
    pub(crate) places: Places,
    pub(crate) namespace: OwnedFd,
    pub(super) doors: Mutex<BTreeMap<String, AbortHandle>>,
    /// How many files programs may have open; the daemon needs more.
    pub(crate) usual_files: Option<u64>,
    /// Neither mounts nor the kernel tell sessions from the owner: everybody proves who they are.
    asks_everybody: AtomicBool,
    pub(crate) owner: String,
    config: RwLock<Arc<Config>>,
    auth: Option<AuthMode>,
    pub(crate) kernel: Kernel,
    pub(crate) tmux: Tmux,
    pub(crate) events: Events,
    pub(crate) audit: Audit,
    pub(crate) mail: Mail,
    pub(crate) approvals: Approvals,
    pub(crate) secrets: Secrets,
    pub(crate) links: Links,
    sessions: Mutex<Vec<Arc<SessionShared>>>,
    pub(crate) guests: Mutex<HashMap<u64, Guest>>,
    next_guest: AtomicU64,
    qids: Mutex<BTreeMap<String, u64>>,
    next_qid: AtomicU64,
    version: AtomicU32,
    changed: AtomicU32,
    started: Instant,
    stopping: AtomicBool,
    /// New windows are made one after the other, so that a tmux session is made once.
    pub(crate) window_order: tokio::sync::Mutex<()>,
    pub(crate) watches: Mutex<Vec<Arc<SessionShared>>>,
    pub(crate) watch_more: tokio::sync::Notify,
    /// Failed authentications by process, for the pause after three.
    pub(crate) failures: Mutex<HashMap<i32, u32>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// All doors together need more descriptors than programs usually get; what they usually get.
fn raise_file_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    // With the usual limit fewer connections fit, which is no reason not to serve.
    setrlimit(Resource::Nofile, raised).ok();
    limit.current
}

impl Hub {
    pub(crate) fn new(
        namespace: &Namespace,
        places: Places,
        config: Config,
        auth: Option<AuthMode>,
        links: Links,
    ) -> Result<Arc<Self>, Fatal> {
        files::make_directory(&places.state.join("sessions"))?;
        files::make_directory(&places.exited())?;
        files::make_directory(&places.state.join("mail"))?;
        // A session that could make it would choose its own sandbox; where we cannot, it cannot either.
        if let Err(error) = files::make_directory(&places.config) {
            tracing::warn!(%error, path = %places.config.display(), "no place for configuration");
        }
        // Other daemons of this user keep their sessions out of ours by this.
        let path = places.namespace.as_os_str().as_encoded_bytes();
        files::replace(&places.state.join(NAMESPACE), path)?;
        // Told by `status`.
        files::replace(&places.workspace(), links.name().as_bytes())?;
        files::replace(&places.not_resumed(), b"")?;
        let program = own_program()?;
        let mut environment = vec![("NAMESPACE".to_owned(), places.namespace.display().to_string())];
        for name in ["BEAMTALK_HOME", "XDG_CONFIG_HOME", "HOME"] {
            if let Ok(value) = std::env::var(name) {
                environment.push((name.to_owned(), value));
            }
        }
        let limits = &config.limits;
        Ok(Arc::new(Hub {
            namespace: namespace.directory.try_clone()?,
            doors: Mutex::default(),
            usual_files: raise_file_limit(),
            asks_everybody: AtomicBool::new(false),
            owner: user_name(),
            auth,
            kernel: Kernel::probe(),
            tmux: Tmux::new(places.tmux_socket(), program, environment),
            events: Events::open(&places.state, limits.events_kept, limits.event_lag)?,
            audit: Audit::open(&places.state)?,
            mail: Mail::new(places.state.join("mail"), limits.inbox, limits.completed),
            approvals: Approvals::open(&places.state),
            secrets: Secrets::load(&places.state, limits.tokens)?,
            links,
            sessions: Mutex::new(Vec::new()),
            guests: Mutex::new(HashMap::new()),
            next_guest: AtomicU64::new(1),
            qids: Mutex::new(BTreeMap::new()),
            next_qid: AtomicU64::new(1),
            version: AtomicU32::new(1),
            changed: AtomicU32::new(now_seconds() as u32),
            started: Instant::now(),
            stopping: AtomicBool::new(false),
            window_order: tokio::sync::Mutex::new(()),
            watches: Mutex::new(Vec::new()),
            watch_more: tokio::sync::Notify::new(),
            failures: Mutex::new(HashMap::new()),
            config: RwLock::new(Arc::new(config)),
            places,
        }))
    }

    /// Milliseconds of the daemon's own clock.
    pub(crate) fn now(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        Arc::clone(&self.config.read().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn reload(&self) {
        match self.try_reload() {
            Ok(()) => tracing::info!("configuration read again"),
            Err(error) => tracing::error!(%error, "configuration kept as it was"),
        }
    }

    pub(crate) fn try_reload(&self) -> Result<(), Fatal> {
        let mut config = Config::load(&self.places.config)?;
        if let Some(mode) = self.auth {
            config.auth.mode = mode;
        }
        *self.config.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        self.touch();
        Ok(())
    }

    /// Something listed changed.
    pub(crate) fn touch(&self) {
        self.version.fetch_add(1, Ordering::Relaxed);
        self.changed.store(now_seconds() as u32, Ordering::Relaxed);
    }

    /// Version and time of the last change.
    pub(crate) fn version(&self) -> (u32, u32) {
        (
            self.version.load(Ordering::Relaxed),
            self.changed.load(Ordering::Relaxed),
        )
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::Acquire)
    }

    /// A number for what is found at `path`, the same until it is removed.
    pub(crate) fn qid_path(&self, path: &str) -> u64 {
        let mut qids = lock(&self.qids);
        if let Some(known) = qids.get(path) {
            return *known;
        }
        let number = self.next_qid.fetch_add(1, Ordering::Relaxed);
        qids.insert(path.to_owned(), number);
        number
    }

    /// Forget the numbers of what was removed, and of everything below it.
    pub(crate) fn forget_qids_below(&self, path: &str) {
        crate::link::forget_below(&mut lock(&self.qids), path);
    }

    /// Forget the numbers of what was removed: every path with this name in it.
    pub(crate) fn forget_qids(&self, name: &str) {
        lock(&self.qids).retain(|path, _| !path.split('/').any(|part| part == name));
    }

    pub(crate) fn guest_number(&self) -> u64 {
        self.next_guest.fetch_add(1, Ordering::Relaxed)
    }

    /// All sessions, newest first.
    pub(crate) fn sessions(&self) -> Vec<Arc<SessionShared>> {
        lock(&self.sessions).iter().rev().cloned().collect()
    }

    pub(crate) fn session_count(&self) -> usize {
        lock(&self.sessions).len()
    }

    pub(crate) fn add(&self, shared: &Arc<SessionShared>) {
        let mut sessions = lock(&self.sessions);
        sessions.push(Arc::clone(shared));
        sessions.sort_by_key(|session| session.with_record(|record| record.created));
        drop(sessions);
        lock(&self.watches).push(Arc::clone(shared));
        self.watch_more.notify_one();
        self.touch();
    }

    /// A session by id.
    pub(crate) fn session(&self, id: &str) -> Result<Arc<SessionShared>, Refusal> {
        lock(&self.sessions)
            .iter()
            .find(|session| session.id == id)
            .cloned()
            .ok_or_else(not_found)
    }

    /// A session by id or alias.
    pub(crate) fn find(&self, name: &str) -> Option<Arc<SessionShared>> {
        let sessions = lock(&self.sessions);
        let by_id = sessions.iter().find(|session| session.id == name);
        by_id
            .or_else(|| {
                sessions
                    .iter()
                    .find(|session| session.alias().as_deref() == Some(name))
            })
            .cloned()
    }

    /// The session is gone: out of the tree, its record kept aside.
    pub(crate) fn forget(&self, shared: &Arc<SessionShared>) {
        lock(&self.sessions).retain(|session| session.id != shared.id);
        self.approvals.session_gone(&shared.id);
        self.secrets.drop_session_token(&shared.id);
        self.close_door(&shared.id);
        self.drop_guests(|who| *who == Who::Session(shared.id.clone()));
        let record = shared.record();
        self.links.forget_session(&shared.id, record.cwd.as_ref());
        if let Err(error) = shared.save().and_then(|()| {
            let aside = self.places.exited().join(&shared.id);
            std::fs::rename(&shared.directory, &aside)?;
            // Only the record is kept.
            drop(std::fs::remove_file(aside.join("launch.json")));
            // How much there is to remove was up to the session: nobody waits for it.
            tokio::task::spawn_blocking(move || {
                for name in ["output", "tmp"] {
                    drop(files::remove_tree(&aside.join(name)));
                }
            });
            Ok(())
        }) {
            tracing::warn!(%error, session = %shared.id, "record cannot be kept");
        }
        self.forget_qids(&shared.id);
        if let Some(alias) = &record.alias {
            self.forget_qids(alias);
        }
        let data = json!({"backend": record.backend, "cwd": record.cwd, "alias": record.alias});
        self.events.emit(&shared.id, "SessionRemoved", data);
        shared.output.signal.bump();
        shared.chat.signal.bump();
        self.touch();
    }

    /// End the connections of somebody whose right is gone.
    pub(crate) fn drop_guests(&self, matches: impl Fn(&Who) -> bool) {
        let guests = lock(&self.guests);
        let mut numbers: Vec<&u64> = guests.keys().collect();
        numbers.sort();
        for guest in numbers.into_iter().filter_map(|number| guests.get(number)) {
            if guest.who.iter().chain(&guest.proof).any(&matches) {
                guest.hangup.now();
            }
        }
    }

    /// Send a message and tell everybody concerned.
    pub(crate) fn post(&self, from: &str, to: &str, draft: Draft) -> Result<Message, Refusal> {
        let message = self.mail.send(from, to, draft)?;
        let data = message.without_body();
        let (sent, received) = (
            if from == USER { "UserSend" } else { "BotSend" },
            if to == USER { "UserRecv" } else { "BotRecv" },
        );
        self.events.emit(from, sent, data.clone());
        self.events.emit(to, received, data);
        if to == USER
            && let Some(id) = self.approvals.add_mail(&message)
        {
            self.events
                .emit(from, "ApprovalAsked", json!({"kind": "mail", "id": id}));
        }
        if let Ok(receiver) = self.session(to) {
            receiver.tell(Command::NewMail);
        }
        if let Ok(sender) = self.session(from) {
            sender.tell(Command::MailSent);
        }
        Ok(message)
    }

    /// The participant a name stands for.
    pub(crate) fn participant(&self, name: &str) -> Option<String> {
        if name == USER {
            Some(USER.to_owned())
        } else {
            self.find(name).map(|session| session.id.clone())
        }
    }

    /// Whether a caller has a right on a session.
    pub(crate) fn has_right(&self, level: &Level, who: &Who, session: &SessionShared, right: Right) -> bool {
        if *level == Level::Control && matches!(who, Who::Token(_)) {
            return true;
        }
        let alias_of = |id: &str| self.session(id).ok().and_then(|session| session.alias());
        let granted = session.with_texts(|texts| texts.acl.grants(who, &session.id, right, alias_of));
        match level {
            Level::Control | Level::Session(_) => granted,
            Level::Read => granted && right == Right::Read,
        }
    }

    /// The safety net: notice processes that are gone, keep events on disk, forget old records.
    pub(crate) fn sweep(&self) {
        self.events.sync();
        for session in self.sessions() {
            let (processes, state) = session.with_record(|record| (record.processes(), record.state()));
            let should_live = matches!(
                state,
                State::Starting | State::Idle | State::Running | State::Waiting
            );
            if should_live && processes.iter().any(|process| !is_alive(*process)) {
                session.tell(Command::Tick);
            }
        }
    }

    /// End the streams, save, end the connections.
    pub(crate) async fn stop(&self) {
        self.stopping.store(true, Ordering::Release);
        self.stop_doors();
        self.events.signal.bump();
        for session in self.sessions() {
            session.output.signal.bump();
            session.chat.signal.bump();
            session.status.send_modify(|_| {});
            if let Err(error) = session.save() {
                tracing::error!(%error, session = %session.id, "record cannot be written");
            }
        }
        self.events.sync();
        // Streams have ended by now; give their last answers a moment to leave.
        tokio::time::sleep(Duration::from_millis(50)).await;
        let guests: Vec<Hangup> = lock(&self.guests)
            .values()
            .map(|guest| guest.hangup.clone())
            .collect();
        for hangup in guests {
            hangup.now();
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }

    /// Note for `status` that a session could not be started again.
    pub(crate) fn not_resumed(&self, id: &str, reason: &str) {
        let line = format!("{id}\t{}\n", reason.replace(['\n', '\t'], " "));
        let noted = files::appender(&self.places.not_resumed())
            .and_then(|mut file| std::io::Write::write_all(&mut file, line.as_bytes()));
        if let Err(error) = noted {
            tracing::error!(%error, session = id, reason, "not resumed, and that cannot be written down");
        }
    }

    pub(crate) fn mode(&self) -> AuthMode {
        if self.asks_everybody.load(Ordering::Acquire) {
            AuthMode::Secret
        } else {
            self.config().auth.mode
        }
    }

    /// From now on nobody comes in without a proof.
    pub(crate) fn ask_everybody(&self) {
        self.asks_everybody.store(true, Ordering::Release);
    }

    pub(crate) fn check_alias(&self, alias: &str, own: Option<&str>) -> Result<(), Refusal> {
        const RESERVED: [&str; 13] = [
            "approvals",
            "ctl",
            "list",
            "list.json",
            "status",
            "events",
            "events.json",
            "backends",
            "user",
            "roles",
            "skills",
            "tools",
            "tokens",
        ];
        let limit = self.config().limits.alias_bytes;
        let letters = alias
            .bytes()
            .all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
        if alias.is_empty() || alias.len() > limit || !letters {
            return Err(refusal("invalid alias: must match [A-Za-z0-9_-]+"));
        }
        let like_id = alias.len() == 8
            && alias
                .bytes()
                .all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        let rooted = [
            "agents",
            "loop",
            "classes",
            "actors",
            "transcript",
            "eval",
            "changes",
            "audit",
        ]
        .contains(&alias);
        if like_id || rooted || RESERVED.contains(&alias) {
            return Err(refusal(format!("alias reserved: {alias}")));
        }
        let taken = lock(&self.sessions)
            .iter()
            .any(|session| Some(session.id.as_str()) != own && session.alias().as_deref() == Some(alias));
        if taken {
            Err(refusal(format!("alias in use: {alias}")))
        } else {
            Ok(())
        }
    }
}
