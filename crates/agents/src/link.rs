//! The link to a workspace: one connection for the owner's files and one for each session that uses them, found
//! again when it was lost, with what is known of the image meanwhile.
//!
//! What is kept here is only what the workspace takes back by itself: it tells of every class that changes and of every
//! actor that comes or goes, on the same connection.

mod door;
mod known;
mod tell;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use beamtalk_client::{Connection, Error, Events, Greeting, reach};
use beamtalk_ninep::Refusal;
use beamtalk_storage::{StateDirectory, WorkspaceId, find_project_root};
use beamtalk_wire::requests::{Close, HandleClose, HandleList, Subscribe, Transcript};
use beamtalk_wire::{Channel, ErrorBody, Operation};
use tokio::sync::Semaphore;

use door::Door;
pub use door::{DoorRules, DoorSettings};
use known::TRANSCRIPT_BYTES;
pub(crate) use known::{ClassText, Known, bare};
pub(crate) use tell::entry_line;

use crate::ages::AgeWriter;
use crate::bytelog::Signal;
use crate::daemon::Hub;
use crate::error::refusal;

/// How soon a lost workspace is looked for again.
const RETRY: Duration = Duration::from_secs(2);
/// A file that is opened looks at once, but not more often than this.
const PAUSE: Duration = Duration::from_millis(200);
/// Requests under way at a time; the workspace takes 64 of a connection.
const REQUESTS: usize = 48;
/// Evaluation sessions of all files together, each with a connection of its own.
const EVALUATIONS: usize = 48;
/// Entries of the Transcript asked for at a time.
const PAGE: u64 = 1_000;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

pub(crate) fn no_workspace() -> Refusal {
    refusal("no workspace")
}

/// What went wrong with a request.
pub(crate) enum Failure {
    /// There is no workspace, or none any more.
    Gone(Refusal),
    /// It answered that.
    Told(Box<ErrorBody>),
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Gone(refused) => refused,
            Failure::Told(error) => refusal(format!("invalid request: {}", error.message)),
        }
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Failed(error) => Failure::Told(error),
            Error::TooLong(_) => Failure::Gone(Refusal::TOO_LARGE),
            Error::Busy => Failure::Gone(Refusal::TOO_MANY_REQUESTS),
            _ => Failure::Gone(no_workspace()),
        }
    }
}

/// A connection while it lasts.
pub(crate) struct Live {
    connection: Connection,
    requests: Semaphore,
    /// Tells one connection from the next.
    number: u64,
    pub(crate) known: Known,
    /// The Transcript and the change log grew, or the connection ended.
    pub(crate) signal: Signal,
}

impl Live {
    pub(crate) fn is_lost(&self) -> bool {
        self.connection.is_lost()
    }

    pub(crate) async fn ask<O: Operation>(&self, request: &O) -> Result<O::Answer, Failure> {
        let Ok(_place) = self.requests.acquire().await else {
            return Err(Failure::Gone(no_workspace()));
        };
        Ok(self.connection.ask(request).await?)
    }
}

/// A workspace as one participant sees it.
pub(crate) struct Link {
    state: StateDirectory,
    id: WorkspaceId,
    /// What the workspace is told that we are: who writes by this link is a person or an agent.
    client: String,
    /// The guardrails of whoever uses it, if it is a session.
    door: Option<Door>,
    /// Sets the files of one link apart from those of others.
    pub(crate) key: String,
    hub: Weak<Hub>,
    live: Mutex<Option<Arc<Live>>>,
    /// Held while somebody connects; when it was tried last.
    attempt: tokio::sync::Mutex<Option<Instant>>,
    evaluations: Arc<Semaphore>,
    /// Diagnostics of the last failed commit, by class.
    pub(crate) errors: Mutex<BTreeMap<String, String>>,
    /// Versions and times of files, by path.
    versions: Mutex<BTreeMap<String, Version>>,
    next_live: AtomicU64,
    /// The owner's mount looks there whether what it keeps is still so.
    ages: Option<Arc<AgeWriter>>,
}

struct Version {
    number: u32,
    changed: u32,
    sha: u64,
}

impl Link {
    /// The connection there is, or a new one.
    pub(crate) async fn live(self: &Arc<Self>) -> Result<Arc<Live>, Refusal> {
        if let Some(live) = self.now() {
            return Ok(live);
        }
        let mut attempt = self.attempt.lock().await;
        if let Some(live) = self.now() {
            return Ok(live);
        }
        if attempt.is_some_and(|at| at.elapsed() < PAUSE) {
            return Err(no_workspace());
        }
        let outcome = self.connect().await;
        *attempt = Some(Instant::now());
        outcome
    }

    /// The connection if there is one.
    pub(crate) fn now(&self) -> Option<Arc<Live>> {
        lock(&self.live).clone().filter(|live| !live.is_lost())
    }

    async fn connect(self: &Arc<Self>) -> Result<Arc<Live>, Refusal> {
        let (connection, events) = self.open().await?;
        let live = Arc::new(Live {
            connection,
            requests: Semaphore::new(REQUESTS),
            number: self.next_live.fetch_add(1, Ordering::Relaxed),
            known: Known::new(self.ages.clone()),
            signal: Signal::default(),
        });
        // What it cannot tell of before is no reason to do without the rest.
        let last = match self.read_transcript(&live).await {
            Ok(last) => Some(last),
            Err(Failure::Told(error)) => {
                tracing::warn!(message = error.message, "the Transcript of before is not known");
                None
            }
            Err(failure) => return Err(failure.into()),
        };
        let channels = vec![
            Channel::Transcript,
            Channel::Classes,
            Channel::Actors,
            Channel::Workspace,
        ];
        let since = last.map(|last| [(Channel::Transcript.name().to_owned(), last)].into());
        let request = Subscribe {
            channels,
            since,
            ..Subscribe::default()
        };
        live.ask(&request).await?;
        *lock(&self.live) = Some(Arc::clone(&live));
        self.grow();
        tokio::spawn(self.clone().listen(Arc::clone(&live), events));
        live.know_actors();
        self.look_at_held();
        tracing::info!(workspace = %self.id, client = %self.client, "linked to the workspace");
        Ok(live)
    }

    /// One more connection, for an evaluation session of its own.
    async fn open(&self) -> Result<(Connection, Events), Refusal> {
        let greeting = Greeting {
            client: &self.client,
            resume: None,
        };
        reach(&self.state, &self.id, greeting).await.map_err(|error| {
            tracing::debug!(%error, workspace = %self.id, "no workspace");
            no_workspace()
        })
    }

    /// What was written before we came, as much as is kept of it; the number of the last entry.
    async fn read_transcript(&self, live: &Live) -> Result<u64, Failure> {
        let mut pages = Vec::new();
        let mut bytes = 0;
        let mut before = None;
        loop {
            let request = Transcript {
                before,
                limit: Some(PAGE),
                ..Transcript::default()
            };
            let page = live.ask(&request).await?;
            before = page.entries.first().map(|entry| entry.seq);
            let is_last = before.is_none_or(|seq| seq <= page.first);
            bytes += page.entries.iter().map(|entry| entry.text.len()).sum::<usize>();
            pages.push(page.entries);
            if is_last || bytes >= TRANSCRIPT_BYTES {
                break;
            }
        }
        let last = pages
            .first()
            .and_then(|page| page.last())
            .map_or(0, |entry| entry.seq);
        for entry in pages.iter().rev().flatten() {
            live.known.transcript.push(entry.text.as_bytes());
        }
        Ok(last)
    }

    /// Take in what the workspace tells, until it is gone.
    async fn listen(self: Arc<Self>, live: Arc<Live>, mut events: Events) {
        while let Some(event) = events.recv().await {
            if let Ok(push) = serde_json::from_value(event) {
                self.told(&live, push);
            }
            // What went by unread may have taken back anything.
            if events.take_dropped() > 0 {
                live.known.forget_all();
            }
        }
        // Whoever follows sees the end.
        live.signal.bump();
        let mut current = lock(&self.live);
        if current.as_ref().is_some_and(|one| Arc::ptr_eq(one, &live)) {
            *current = None;
        }
        drop(current);
        self.grow();
        // What it held nobody can answer now.
        if let (true, Some(hub)) = (self.key.is_empty(), self.hub.upgrade()) {
            hub.approvals.sync_held(&[]);
        }
        tracing::info!(workspace = %self.id, "the link to the workspace is lost");
    }

    /// Other classes are there, or none.
    fn grow(&self) {
        if let Some(ages) = &self.ages {
            ages.grow();
        }
    }

    /// Ask on the connection there is.
    pub(crate) async fn ask<O: Operation>(self: &Arc<Self>, request: &O) -> Result<O::Answer, Failure> {
        let live = self.live().await.map_err(Failure::Gone)?;
        live.ask(request).await
    }

    /// A session for evaluations that nobody else uses.
    pub(crate) async fn evaluation(self: &Arc<Self>) -> Result<Evaluation, Refusal> {
        let place = Arc::clone(&self.evaluations).try_acquire_owned();
        let place = place.map_err(|_| Refusal::TOO_MANY_REQUESTS)?;
        let (connection, _) = self.open().await?;
        Ok(Evaluation {
            connection: Some(Arc::new(connection)),
            _place: place,
        })
    }

    /// Version and time of what is found at `path`, which grow when the content is another.
    pub(crate) fn version(&self, path: &str, content: &[u8]) -> (u32, u32) {
        let sha = hash(content);
        let now = beamtalk_storage::time::now_seconds() as u32;
        let mut versions = lock(&self.versions);
        if let Some(known) = versions.get_mut(path) {
            if known.sha != sha {
                *known = Version {
                    number: known.number + 1,
                    changed: now,
                    sha,
                };
            }
            return (known.number, known.changed);
        }
        let version = Version {
            number: 1,
            changed: now,
            sha,
        };
        versions.insert(path.to_owned(), version);
        (1, now)
    }

    /// What was at `path` is gone, with all below it: something new there is another file.
    pub(crate) fn forget(&self, path: &str) {
        forget_below(&mut lock(&self.versions), path);
        if let Some(hub) = self.hub.upgrade() {
            hub.forget_qids_below(&format!("{}{path}", self.key));
        }
    }

    /// What is another when anything was heard of a class, or of an actor.
    pub(crate) fn ages(&self) -> Option<(u64, u64, u64)> {
        let live = self.now()?;
        Some((live.number, live.known.class_age(), live.known.actor_age()))
    }

    /// Look for the workspace as long as there is none.
    async fn keep(self: Arc<Self>) {
        loop {
            if self.hub.strong_count() == 0 {
                return;
            }
            if self.now().is_none() {
                // Told when a file is opened.
                drop(self.live().await);
            }
            tokio::time::sleep(RETRY).await;
        }
    }
}

/// Take a path and everything below it out of a table.
pub(crate) fn forget_below<T>(table: &mut BTreeMap<String, T>, path: &str) {
    table.remove(path);
    let below = format!("{path}/");
    let gone: Vec<String> = table
        .range(below.clone()..)
        .map(|(known, _)| known)
        .take_while(|known| known.starts_with(&below))
        .cloned()
        .collect();
    for known in gone {
        table.remove(&known);
    }
}

fn hash(bytes: &[u8]) -> u64 {
    use std::hash::{DefaultHasher, Hasher};
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// A session of its own, which ends when it is dropped.
pub(crate) struct Evaluation {
    connection: Option<Arc<Connection>>,
    _place: tokio::sync::OwnedSemaphorePermit,
}

impl Evaluation {
    pub(crate) fn connection(&self) -> Option<Arc<Connection>> {
        self.connection.clone()
    }
}

impl Drop for Evaluation {
    fn drop(&mut self) {
        let Some(connection) = self.connection.take() else {
            return;
        };
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            // Left open, its variables would be kept for a while.
            runtime.spawn(async move { drop(connection.ask(&Close {}).await) });
        }
    }
}

/// Which workspace the owner's files show.
#[derive(Clone, Debug)]
pub struct LinkTarget {
    pub state: StateDirectory,
    pub id: WorkspaceId,
}

/// All links of a daemon.
pub(crate) struct Links {
    owner: Mutex<Option<Arc<Link>>>,
    sessions: Mutex<BTreeMap<String, Arc<Link>>>,
    target: Option<LinkTarget>,
    rules: DoorRules,
    evaluations: Arc<Semaphore>,
}

impl Links {
    pub(crate) fn new(target: Option<LinkTarget>, rules: DoorRules) -> Self {
        Links {
            owner: Mutex::new(None),
            sessions: Mutex::new(BTreeMap::new()),
            target,
            rules,
            evaluations: Arc::new(Semaphore::new(EVALUATIONS)),
        }
    }

    /// A link for the owner, or for a session whose directory lies in the project at `root`.
    fn link(
        &self,
        hub: &Arc<Hub>,
        target: LinkTarget,
        session: Option<(&str, PathBuf)>,
        ages: Option<AgeWriter>,
    ) -> Arc<Link> {
        let id = session.as_ref().map(|(id, _)| *id);
        Arc::new(Link {
            state: target.state,
            id: target.id,
            client: id.map_or_else(|| "files".to_owned(), |id| format!("agent/{id}")),
            key: id.map_or_else(String::new, |id| format!("{id}:")),
            door: session.map(|(_, root)| Door {
                root,
                rules: self.rules,
            }),
            hub: Arc::downgrade(hub),
            live: Mutex::new(None),
            attempt: tokio::sync::Mutex::new(None),
            evaluations: Arc::clone(&self.evaluations),
            errors: Mutex::new(BTreeMap::new()),
            versions: Mutex::new(BTreeMap::new()),
            next_live: AtomicU64::new(1),
            ages: ages.map(Arc::new),
        })
    }

    /// The name of the owner's workspace; empty without one.
    pub(crate) fn name(&self) -> String {
        let target = self.target.as_ref();
        target.map_or_else(String::new, |target| target.id.to_string())
    }

    /// Begin to look for the owner's workspace.
    pub(crate) fn start(&self, hub: &Arc<Hub>, ages: Option<AgeWriter>) {
        if let Some(target) = self.target.clone() {
            let link = self.link(hub, target, None, ages);
            tokio::spawn(Arc::clone(&link).keep());
            *lock(&self.owner) = Some(link);
        }
    }

    /// The project of the owner's workspace.
    pub(crate) fn project(&self) -> Option<PathBuf> {
        let target = self.target.as_ref()?;
        let directory = target.state.workspace(&target.id).ok().flatten()?;
        let metadata = directory.metadata().ok().flatten()?;
        Some(PathBuf::from(metadata.project_path))
    }

    /// The workspace of the owner's door.
    pub(crate) fn of_owner(&self) -> Option<Arc<Link>> {
        lock(&self.owner).clone()
    }

    /// The workspace of the project a session's directory lies in, by a connection of the session's own.
    pub(crate) fn of_session(&self, hub: &Arc<Hub>, id: &str) -> Option<Arc<Link>> {
        if let Some(link) = lock(&self.sessions).get(id) {
            return Some(Arc::clone(link));
        }
        let directory = hub.session(id).ok()?.with_record(|record| record.cwd.clone());
        let (target, root) = self.target_of(directory.as_ref())?;
        let link = self.link(hub, target, Some((id, root)), None);
        lock(&self.sessions).insert(id.to_owned(), Arc::clone(&link));
        Some(link)
    }

    /// The workspace of the project that a directory lies in, and the directory of the project.
    fn target_of(&self, directory: &Path) -> Option<(LinkTarget, PathBuf)> {
        let target = self.target.as_ref()?;
        let root = find_project_root(directory, target.state.path()).ok()?;
        // A workspace with a name of its own is that of its project all the same.
        let id = if is_of(&target.state, &target.id, &root) {
            target.id.clone()
        } else {
            WorkspaceId::for_root(&root).ok()?
        };
        let target = LinkTarget {
            state: target.state.clone(),
            id,
        };
        Some((target, root))
    }

    /// The session is gone, and what its client opened in the workspace goes with it.
    pub(crate) fn forget_session(&self, id: &str, directory: &Path) {
        lock(&self.sessions).remove(id);
        if let Some((target, _)) = self.target_of(directory) {
            tokio::spawn(close_handles(target, format!("mcp/{id}")));
        }
    }
}

/// Close the variables that a client of this name has in a workspace, if one runs.
async fn close_handles(target: LinkTarget, client: String) {
    let greeting = Greeting {
        client: &client,
        resume: None,
    };
    let Ok((connection, _)) = reach(&target.state, &target.id, greeting).await else {
        return;
    };
    let opened = connection.ask(&HandleList {}).await;
    for one in opened.map(|listed| listed.handles).unwrap_or_default() {
        let request = HandleClose { handle: one.handle };
        if let Err(error) = connection.ask(&request).await {
            tracing::debug!(%error, client, "a handle was not closed");
        }
    }
    drop(connection.ask(&Close {}).await);
}

fn is_of(state: &StateDirectory, id: &WorkspaceId, root: &Path) -> bool {
    let metadata = state
        .workspace(id)
        .ok()
        .flatten()
        .and_then(|directory| directory.metadata().ok().flatten());
    metadata.is_some_and(|metadata| Path::new(&metadata.project_path) == root)
}
