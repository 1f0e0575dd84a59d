//! `loop/`: the loop that the workspace hosts. What is read and written is the workspace's business; here is what exists,
//! with which mode, and who may.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use beamtalk_client::{Answer as Answered, Reply};
use beamtalk_mcp::FileDeed;
use beamtalk_ninep::{Answer, Need, Node, OpenFile, OpenRequest, Qid, QidKind, Refusal, Stat};
use beamtalk_wire::ErrorKind;
use beamtalk_wire::answers::Nothing;
use beamtalk_wire::requests::{TreeFollow, TreeList, TreeRead, TreeWrite};
use tokio::task::JoinHandle;

use super::TreeNode;
use super::kinds::{
    Buffer, Commit, CtlFile, DirectoryFile, DocumentFile, Feed, RunLines, StreamFile, ValueFile,
};
use super::open::detached;
use super::place::Kind;
use crate::bytelog::{Signal, Taken};
use crate::error::refusal;
use crate::link::{Failure, Link};

/// What a follower may be behind.
const BEHIND: usize = 4 << 20;

/// What a caller may do here.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum LoopAccess {
    None,
    Observe,
    Post,
    Control,
}

impl LoopAccess {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Observe => "observe",
            Self::Post => "post",
            Self::Control => "control",
        }
    }
}

/// A file or directory: its kind, its mode, and what using it needs.
type Row = (Kind, u32, LoopAccess);

const DIRECTORY: Row = (Kind::Directory, 0o500, LoopAccess::Observe);
const VALUE: Row = (Kind::Value, 0o400, LoopAccess::Observe);
const STREAM: Row = (Kind::Stream, 0o600, LoopAccess::Observe);
const CTL: Row = (Kind::Ctl, 0o600, LoopAccess::Control);
const EVENT: Row = (Kind::Document, 0o200, LoopAccess::Post);

fn row(parts: &[&str]) -> Option<Row> {
    Some(match parts {
        [] | ["processes" | "workflows" | "state" | "events"] | ["processes" | "workflows", _] => DIRECTORY,
        ["status" | "runs" | "graph.json"]
        | ["processes", _, "state" | "pid" | "info" | "output"]
        | ["workflows", _, "last"]
        | ["state", _] => VALUE,
        ["follow"] | ["processes", _, "output.follow"] => STREAM,
        ["ctl"] | ["processes" | "workflows", _, "ctl"] => CTL,
        ["events", _] => EVENT,
        _ => return None,
    })
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn not_running() -> Refusal {
    refusal("loop not running")
}

fn refused(failure: Failure) -> Refusal {
    match failure {
        Failure::Told(error) if error.kind == ErrorKind::TreeError => refusal(error.message),
        Failure::Told(_) => failure.into(),
        // Without a workspace there is no loop either.
        Failure::Gone(gone) if gone.errno == not_running().errno => not_running(),
        Failure::Gone(gone) => gone,
    }
}

/// What a node was told of itself.
#[derive(Clone)]
enum Told {
    Nothing,
    /// The names in it, and the content of those that are values.
    Names(Arc<BTreeMap<String, Option<Arc<Vec<u8>>>>>),
    Content(Arc<Vec<u8>>),
}

#[derive(Clone)]
pub(super) struct LoopNode {
    /// Who asks, by which path.
    tree: Arc<TreeNode>,
    /// `None` at `loop` itself.
    parent: Option<Arc<LoopNode>>,
    link: Arc<Link>,
    access: LoopAccess,
    /// The path from `loop/` on.
    parts: Vec<String>,
    row: Row,
    told: Told,
}

/// The node of `loop` at the root.
pub(super) fn node(tree: Arc<TreeNode>, link: Arc<Link>, access: LoopAccess) -> Arc<dyn Node> {
    Arc::new(LoopNode {
        tree,
        parent: None,
        link,
        access,
        parts: Vec::new(),
        row: DIRECTORY,
        told: Told::Nothing,
    })
}

impl LoopNode {
    fn kind(&self) -> Kind {
        self.row.0
    }

    fn path(&self) -> String {
        std::iter::once("loop")
            .chain(self.parts.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join("/")
    }

    fn child(&self, name: &str, told: Told) -> Option<LoopNode> {
        let mut parts = self.parts.clone();
        parts.push(name.to_owned());
        let row = row(&parts.iter().map(String::as_str).collect::<Vec<_>>())?;
        Some(LoopNode {
            tree: self.tree.child(self.tree.place.clone(), name),
            parent: Some(Arc::new(LoopNode {
                told: Told::Nothing,
                ..self.clone()
            })),
            link: Arc::clone(&self.link),
            access: self.access,
            parts,
            row,
            told,
        })
    }

    async fn names(&self, path: String) -> Result<Vec<String>, Refusal> {
        let told = self.link.ask(&TreeList { path }).await.map_err(refused)?;
        Ok(told.names)
    }

    async fn read_all(&self, path: &str) -> Result<Arc<Vec<u8>>, Refusal> {
        let mut content = Vec::new();
        loop {
            let request = TreeRead {
                path: path.to_owned(),
                offset: Some(content.len() as u64),
                encoding: None,
            };
            let piece = self.link.ask(&request).await.map_err(refused)?;
            content.extend_from_slice(piece.data.as_bytes());
            if piece.end || piece.data.is_empty() {
                return Ok(Arc::new(content));
            }
        }
    }

    async fn ask(&self, need: Need) -> Result<Told, Refusal> {
        if self.access < LoopAccess::Observe {
            return Err(Refusal::PERMISSION_DENIED);
        }
        match self.kind() {
            Kind::Directory => {
                let mut names = BTreeMap::new();
                for name in self.names(self.path()).await? {
                    let child = self.child(&name, Told::Nothing);
                    let is_value = child.as_ref().is_some_and(|child| child.kind() == Kind::Value);
                    let content = match child {
                        Some(child) if is_value && need == Need::List => {
                            match child.read_all(&child.path()).await {
                                Ok(content) => Some(content),
                                // Gone meanwhile.
                                Err(_) => continue,
                            }
                        }
                        _ => None,
                    };
                    names.insert(name, content);
                }
                Ok(Told::Names(Arc::new(names)))
            }
            Kind::Value => Ok(Told::Content(self.read_all(&self.path()).await?)),
            _ => {
                let parent = self
                    .parent
                    .as_ref()
                    .map_or_else(String::new, |parent| parent.path());
                let name = self.parts.last().cloned().unwrap_or_default();
                if self.names(parent).await?.contains(&name) {
                    Ok(Told::Nothing)
                } else {
                    Err(Refusal::NOT_FOUND)
                }
            }
        }
    }

    fn content(&self) -> &[u8] {
        match &self.told {
            Told::Content(content) => content.as_slice(),
            _ => &[],
        }
    }

    fn version(&self) -> (u32, u32) {
        self.link.version(&self.tree.path, self.content())
    }

    fn check_open(&self, request: OpenRequest) -> Result<(), Refusal> {
        // The first line of a stream says where it starts and changes nothing.
        let may_write = !request.write || self.kind() != Kind::Value && self.kind() != Kind::Directory;
        if self.access >= self.row.2.max(LoopAccess::Observe) && may_write {
            Ok(())
        } else {
            Err(Refusal::PERMISSION_DENIED)
        }
    }

    async fn open_file(self: Arc<Self>, request: OpenRequest) -> Result<Box<dyn OpenFile>, Refusal> {
        let told = self.ask(Need::Step).await?;
        let limits = &self.tree.hub.config().limits;
        Ok(match self.kind() {
            Kind::Directory => Box::new(DirectoryFile),
            Kind::Ctl => {
                let node = Arc::clone(&self);
                let run: RunLines = Arc::new(move |text| {
                    let node = Arc::clone(&node);
                    Box::pin(async move {
                        node.permit("ctl", text.trim_end()).await?;
                        detached(node.run_lines(text)).await
                    })
                });
                Box::new(CtlFile {
                    run,
                    answer: Arc::new(Mutex::new(Vec::new())),
                    limit: limits.ctl_bytes,
                })
            }
            Kind::Stream => {
                let follower = Arc::new(Follower::default());
                let signal = follower.signal.subscribe();
                let mut feed = FollowFeed {
                    node: Arc::clone(&self),
                    follower,
                    task: None,
                };
                feed.start(None);
                Box::new(StreamFile::new(Box::new(feed), signal, request.fills_buffers))
            }
            Kind::Document => {
                let node = Arc::clone(&self);
                let commit: Commit = Arc::new(move |bytes| {
                    let node = Arc::clone(&node);
                    Box::pin(async move {
                        node.permit("commit", &String::from_utf8_lossy(&bytes)).await?;
                        detached(node.post(bytes)).await
                    })
                });
                Box::new(DocumentFile {
                    content: Arc::default(),
                    buffer: Buffer::new(
                        Vec::new(),
                        true,
                        limits.document_bytes,
                        request.largest_write,
                        commit,
                    ),
                })
            }
            _ => match told {
                Told::Content(content) => Box::new(ValueFile(content)),
                _ => Box::new(ValueFile(Arc::default())),
            },
        })
    }

    /// An error unless what is written may be done now: it counts as the tool that does the same.
    async fn permit(&self, op: &'static str, text: &str) -> Result<(), Refusal> {
        let tool = match self.parts.first().map(String::as_str) {
            Some("events") => "post_event",
            Some("workflows") => "run_workflow",
            _ => "control_process",
        };
        let path = self.path();
        let deed = FileDeed {
            tool,
            loses: false,
            path: &path,
            text: Some(text),
        };
        let outcome = self.link.permit(deed).await;
        if outcome.is_err() {
            let entry = self.tree.entry(op).with("tool", tool);
            let entry = entry.with("result", super::workspace::result(&outcome));
            self.tree.hub.audit.write(entry)?;
        }
        outcome
    }

    async fn write(&self, data: String) -> Result<String, Refusal> {
        let request = TreeWrite {
            path: self.path(),
            data,
        };
        Ok(self.link.ask(&request).await.map_err(refused)?.answer)
    }

    /// Run the lines of one write in order; the first failure ends them.
    async fn run_lines(self: Arc<Self>, text: String) -> Result<String, Refusal> {
        let mut answer = String::new();
        let mut lines: Vec<&str> = text.split('\n').collect();
        // An empty line asks for the usage.
        if lines.len() > 1 && lines.last() == Some(&"") {
            lines.pop();
        }
        for line in lines {
            self.tree.hub.audit.ready()?;
            let outcome = self.write(format!("{line}\n")).await;
            let verb = line.split_whitespace().next().unwrap_or_default();
            let entry = self.tree.entry("ctl").with("verb", verb);
            let result = super::workspace::result(&outcome);
            self.tree.hub.audit.write(entry.with("result", result))?;
            answer.push_str(&outcome?);
        }
        Ok(answer)
    }

    async fn post(self: Arc<Self>, bytes: Vec<u8>) -> Result<(), Refusal> {
        let posted = self.tree.recorded(bytes, |bytes| async {
            let text = String::from_utf8(bytes).map_err(|_| refusal("event rejected: not UTF-8"))?;
            self.write(text).await.map(drop)
        });
        posted.await
    }
}

#[derive(Default)]
struct Gained {
    text: VecDeque<u8>,
    ended: Option<Result<(), Refusal>>,
}

/// What came for one open file.
#[derive(Default)]
struct Follower {
    gained: Mutex<Gained>,
    signal: Signal,
}

impl Follower {
    /// Whether more is wanted.
    fn push(&self, text: &str) -> bool {
        let mut gained = lock(&self.gained);
        let fits = gained.text.len() + text.len() <= BEHIND;
        if fits {
            gained.text.extend(text.as_bytes());
        } else {
            gained.ended = Some(Err(refusal("output trimmed")));
        }
        drop(gained);
        self.signal.bump();
        fits
    }

    fn end(&self, ended: Result<(), Refusal>) {
        lock(&self.gained).ended.get_or_insert(ended);
        self.signal.bump();
    }
}

struct FollowFeed {
    node: Arc<LoopNode>,
    follower: Arc<Follower>,
    task: Option<JoinHandle<()>>,
}

impl FollowFeed {
    fn start(&mut self, command: Option<String>) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
        *lock(&self.follower.gained) = Gained::default();
        let (node, follower) = (Arc::clone(&self.node), Arc::clone(&self.follower));
        self.task = Some(tokio::spawn(async move {
            let ended = follow(&node, command, &follower).await;
            follower.end(ended);
        }));
    }
}

impl Drop for FollowFeed {
    fn drop(&mut self) {
        if let Some(task) = self.task.take() {
            task.abort();
        }
    }
}

/// Take in what a file gains until it ends, on a connection of its own.
async fn follow(node: &LoopNode, command: Option<String>, follower: &Follower) -> Result<(), Refusal> {
    let evaluation = node.link.evaluation().await?;
    let connection = evaluation.connection().ok_or_else(not_running)?;
    let request = TreeFollow {
        path: node.path(),
        command,
    };
    let mut pending = connection.send(&request).map_err(|error| refused(error.into()))?;
    loop {
        match pending.next().await {
            Ok(Reply::Output(text)) if follower.push(&text) => {}
            Ok(Reply::Output(_) | Reply::NeedsInput(_)) => return Ok(()),
            Ok(Reply::Done(message)) => {
                let ended = Answered::<Nothing>::read(message).body;
                return ended
                    .map(drop)
                    .map_err(|error| refused(Failure::Told(Box::new(error))));
            }
            // The workspace is gone, and the loop with it.
            Err(_) => return Ok(()),
        }
    }
}

impl Feed for FollowFeed {
    fn take(&mut self, count: usize) -> Taken {
        let mut gained = lock(&self.follower.gained);
        if gained.text.is_empty() {
            return match &gained.ended {
                Some(Err(refused)) => Taken::Failed(refused.clone()),
                Some(Ok(())) => Taken::End,
                None if self.node.tree.hub.is_stopping() => Taken::End,
                None => Taken::Nothing,
            };
        }
        // Whole lines, as many as fit; one that is too long is cut.
        let window = gained.text.len().min(count.max(1));
        let last = (0..window).rev().find(|at| gained.text.get(*at) == Some(&b'\n'));
        let end = match last {
            Some(at) => at + 1,
            None => gained
                .text
                .iter()
                .position(|byte| *byte == b'\n')
                .map_or(gained.text.len(), |at| at + 1),
        };
        Taken::Data(gained.text.drain(..end).collect())
    }

    fn command(&mut self, line: &str) -> Result<(), Refusal> {
        let is_known = self.node.parts == ["follow"]
            && line
                .strip_prefix("since ")
                .is_some_and(|number| number.trim().parse::<u64>().is_ok());
        if !is_known {
            return Err(refusal("unknown command"));
        }
        self.start(Some(line.to_owned()));
        Ok(())
    }
}

impl Node for LoopNode {
    fn ready(&self, need: Need) -> Option<Answer<Arc<dyn Node>>> {
        // `loop` is there whether or not a loop runs.
        if self.parts.is_empty() && need != Need::List {
            return None;
        }
        let node = self.clone();
        Some(Box::pin(async move {
            let told = match node.ask(need).await {
                // Whoever opens it is told so; a step that failed would say no more than that nothing is there.
                Err(refused) if need == Need::Step && refused == not_running() => Told::Nothing,
                told => told?,
            };
            Ok(Arc::new(LoopNode { told, ..node }) as Arc<dyn Node>)
        }))
    }

    fn stat(&self) -> Result<Stat, Refusal> {
        let qid = self.qid()?;
        let (_, changed) = self.version();
        let is_value = self.kind() == Kind::Value;
        Ok(Stat {
            kind: 0,
            device: 0,
            mode: u32::from(qid.kind) << 24 | self.row.1,
            qid,
            atime: changed,
            mtime: changed,
            length: if is_value { self.content().len() as u64 } else { 0 },
            name: self.tree.name.clone(),
            uid: self.tree.hub.owner.clone(),
            gid: self.tree.hub.owner.clone(),
            muid: self.tree.hub.owner.clone(),
        })
    }

    fn qid(&self) -> Result<Qid, Refusal> {
        let is_live = matches!(self.kind(), Kind::Ctl | Kind::Stream);
        Ok(Qid {
            kind: if self.kind() == Kind::Directory {
                QidKind::DIRECTORY
            } else {
                QidKind::FILE
            },
            version: if is_live { 0 } else { self.version().0 },
            path: self
                .tree
                .hub
                .qid_path(&format!("{}{}", self.link.key, self.tree.path)),
        })
    }

    fn walk(&self, name: &str) -> Result<Arc<dyn Node>, Refusal> {
        if name == ".." {
            return Ok(match (&self.parent, &self.tree.parent) {
                (Some(parent), _) => Arc::clone(parent) as Arc<dyn Node>,
                (None, Some(root)) => Arc::clone(root) as Arc<dyn Node>,
                (None, None) => Arc::new(self.clone()),
            });
        }
        let child = self.child(name, Told::Nothing).ok_or(Refusal::NOT_FOUND)?;
        Ok(Arc::new(child))
    }

    fn list(&self) -> Result<Vec<Stat>, Refusal> {
        let Told::Names(names) = &self.told else {
            return Ok(Vec::new());
        };
        let child = |(name, content): (&String, &Option<Arc<Vec<u8>>>)| {
            let told = content.clone().map_or(Told::Nothing, Told::Content);
            self.child(name, told)
        };
        names.iter().filter_map(child).map(|node| node.stat()).collect()
    }

    fn open(&self, request: OpenRequest) -> Answer<Box<dyn OpenFile>> {
        let node = Arc::new(self.clone());
        Box::pin(async move {
            node.tree.opened(request, node.check_open(request))?;
            node.open_file(request).await
        })
    }

    fn decided(&self, op: &'static str, refused: Option<&Refusal>) {
        self.tree.decided(op, refused);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What is below `loop/` has the kind, mode and need of the table, and nothing else is there; no state is writable.
    #[test]
    fn rows_are_those_of_the_table() {
        for (path, expected) in [
            (&[][..], Some(DIRECTORY)),
            (&["status"], Some(VALUE)),
            (&["ctl"], Some(CTL)),
            (&["processes", "p"], Some(DIRECTORY)),
            (&["processes", "p", "output.follow"], Some(STREAM)),
            (&["processes", "p", "ctl"], Some(CTL)),
            (&["workflows", "w", "last"], Some(VALUE)),
            (&["state", "k"], Some(VALUE)),
            (&["events", "e"], Some(EVENT)),
            (&["events", "e", "x"], None),
            (&["nothing"], None),
        ] {
            assert_eq!(row(path), expected, "{path:?}");
        }
        assert!(LoopAccess::Observe < LoopAccess::Post && LoopAccess::Post < LoopAccess::Control);
    }
}
