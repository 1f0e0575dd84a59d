//! The running image as files: classes and methods, actors, the Transcript, evaluation, the change log.
//!
//! `rows` says what exists; this file how a node finds out what it is; `classes`, `actors`, `changes`, `transcript` and
//! `eval` what is read and what a write does. Everything is asked of the workspace by [`crate::link`].

mod actors;
mod changes;
mod classes;
mod eval;
pub(crate) mod names;
mod permit;
mod rows;
mod transcript;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use beamtalk_ninep::{Answer, Need, Node, OpenFile, OpenRequest, Qid, QidKind, Refusal, Stat, mode};
use beamtalk_wire::Side;
use beamtalk_wire::answers::Actor;

use super::TreeNode;
use super::kinds::{Buffer, Commit, CtlFile, DirectoryFile, DocumentFile, RunLines, ValueFile};
use super::open::detached;
use super::place::Kind;
use crate::error::refusal;
use crate::link::{ClassText, Link, Live, bare};
use rows::{ACTOR, CHANGES, CLASS, CLASSES, Row, TOP, row};

/// A place below one of the names of the workspace at the root.
#[derive(Clone, Debug, PartialEq)]
enum Spot {
    Top(&'static Row),
    Classes,
    NewClass(&'static Row),
    Class(String),
    /// `.class`: the methods of the class side.
    ClassSide(String),
    Method {
        class: String,
        side: Side,
        selector: String,
        /// Created on this fid and not yet committed.
        is_new: bool,
    },
    OfClass(String, &'static Row),
    Actors,
    Actor(String),
    OfActor(String, &'static Row),
    Changes,
    OfChanges(&'static Row),
}

/// What a node was told of itself.
#[derive(Clone)]
enum Told {
    Nothing,
    Names(Arc<Vec<String>>),
    Class(Arc<ClassText>),
    Actors(Arc<BTreeMap<String, Actor>>),
    /// It lives.
    Actor,
    /// The content of values, by name.
    Contents(BTreeMap<&'static str, Arc<Vec<u8>>>),
}

/// What a caller may do here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rights {
    pub(super) read: bool,
    pub(super) write: bool,
}

pub(super) struct WorkspaceNode {
    /// Who asks, by which path.
    tree: Arc<TreeNode>,
    /// `None` below the tree's root.
    parent: Option<Arc<WorkspaceNode>>,
    link: Arc<Link>,
    rights: Rights,
    spot: Spot,
    told: Told,
}

/// The node of one of the workspace's names at the root.
pub(super) fn node(tree: Arc<TreeNode>, link: Arc<Link>, rights: Rights) -> Option<Arc<dyn Node>> {
    let spot = match tree.name.as_str() {
        "classes" => Spot::Classes,
        "actors" => Spot::Actors,
        "changes" => Spot::Changes,
        name => Spot::Top(row(TOP, name)?),
    };
    Some(Arc::new(WorkspaceNode {
        tree,
        parent: None,
        link,
        rights,
        spot,
        told: Told::Nothing,
    }))
}

impl Spot {
    fn row(&self) -> Option<&'static Row> {
        match self {
            Spot::Top(row)
            | Spot::NewClass(row)
            | Spot::OfClass(_, row)
            | Spot::OfActor(_, row)
            | Spot::OfChanges(row) => Some(row),
            Spot::Method { .. } => Some(&rows::METHOD),
            Spot::Classes
            | Spot::Class(_)
            | Spot::ClassSide(_)
            | Spot::Actors
            | Spot::Actor(_)
            | Spot::Changes => None,
        }
    }

    fn kind(&self) -> Kind {
        self.row().map_or(Kind::Directory, |row| row.kind)
    }

    /// The class a place belongs to.
    fn class(&self) -> Option<&str> {
        match self {
            Spot::Class(class) | Spot::ClassSide(class) | Spot::OfClass(class, _) => Some(class),
            Spot::Method { class, .. } => Some(class),
            _ => None,
        }
    }
}

impl WorkspaceNode {
    fn with(&self, told: Told) -> Arc<WorkspaceNode> {
        Arc::new(WorkspaceNode {
            tree: Arc::clone(&self.tree),
            parent: self.parent.clone(),
            link: Arc::clone(&self.link),
            rights: self.rights,
            spot: self.spot.clone(),
            told,
        })
    }

    fn same(&self) -> Arc<WorkspaceNode> {
        self.with(self.told.clone())
    }

    fn child(self: &Arc<Self>, spot: Spot, name: &str, told: Told) -> Arc<WorkspaceNode> {
        let parent = match self.told {
            Told::Nothing => Arc::clone(self),
            _ => self.with(Told::Nothing),
        };
        Arc::new(WorkspaceNode {
            tree: self.tree.child(self.tree.place.clone(), name),
            parent: Some(parent),
            link: Arc::clone(&self.link),
            rights: self.rights,
            spot,
            told,
        })
    }

    fn path(&self) -> &str {
        &self.tree.path
    }

    /// Whether the answer must be asked for first.
    fn must_ask(&self, need: Need) -> bool {
        match &self.spot {
            Spot::Top(_) | Spot::NewClass(_) => false,
            Spot::Classes | Spot::Actors | Spot::Changes => need == Need::List,
            Spot::OfChanges(row) => need == Need::Stat && row.kind == Kind::Value,
            Spot::Class(_)
            | Spot::ClassSide(_)
            | Spot::Method { .. }
            | Spot::OfClass(..)
            | Spot::Actor(_)
            | Spot::OfActor(..) => true,
        }
    }

    async fn ask(&self, need: Need) -> Result<Told, Refusal> {
        if !self.rights.read {
            return Err(Refusal::PERMISSION_DENIED);
        }
        let live = self.link.live().await?;
        Ok(match &self.spot {
            Spot::Classes => Told::Names(live.class_names().await?),
            Spot::Class(class) | Spot::ClassSide(class) | Spot::OfClass(class, _) => {
                Told::Class(live.class(class).await?)
            }
            Spot::Method {
                class,
                side,
                selector,
                is_new,
            } => {
                let text = live.class(class).await?;
                if text.method(*side, selector).is_none() && !is_new {
                    return Err(Refusal::NOT_FOUND);
                }
                Told::Class(text)
            }
            Spot::Actors => Told::Actors(live.actors().await?),
            Spot::Actor(name) if need == Need::List => {
                Told::Contents(self.actor_contents(&live, name, None).await?)
            }
            Spot::Actor(name) => find_actor(&live, name).await.map(|_| Told::Actor)?,
            Spot::OfActor(name, row) if need == Need::Stat && row.kind == Kind::Value => {
                Told::Contents(self.actor_contents(&live, name, Some(row.name)).await?)
            }
            Spot::OfActor(name, _) => find_actor(&live, name).await.map(|_| Told::Actor)?,
            Spot::Changes => Told::Contents(self.change_contents(&live, None).await?),
            Spot::OfChanges(row) => Told::Contents(self.change_contents(&live, Some(row.name)).await?),
            Spot::Top(_) | Spot::NewClass(_) => Told::Nothing,
        })
    }

    /// The content of a value or document as far as it is known.
    fn content(&self) -> Option<Arc<Vec<u8>>> {
        match (&self.spot, &self.told) {
            (
                Spot::Method {
                    class: _,
                    side,
                    selector,
                    ..
                },
                Told::Class(text),
            ) => text
                .method(*side, selector)
                .map(|method| Arc::clone(&method.source)),
            (Spot::OfClass(class, row), Told::Class(text)) => {
                Some(Arc::new(self.class_content(class, row.name, text)))
            }
            (Spot::OfActor(_, row) | Spot::OfChanges(row), Told::Contents(contents)) => {
                contents.get(row.name).cloned()
            }
            _ => None,
        }
    }

    fn length(&self) -> u64 {
        if let Spot::Top(row) = &self.spot
            && row.name == "transcript"
        {
            return self.link.transcript_length();
        }
        self.content().map_or(0, |content| content.len() as u64)
    }

    /// Version and time of the last change. Those of a class grow with whatever its files have in them, that of all
    /// classes with whatever is heard of any.
    fn version(&self) -> (u32, u32) {
        let of = |content: &[u8]| self.link.version(self.path(), content);
        match (&self.spot, &self.told) {
            (Spot::Top(_), _) => of(&self.length().to_le_bytes()),
            (Spot::Classes, _) => {
                of(format!("{:?}", self.link.ages().map(|(live, age, _)| (live, age))).as_bytes())
            }
            (Spot::Actors, _) => {
                of(format!("{:?}", self.link.ages().map(|(live, _, age)| (live, age))).as_bytes())
            }
            (Spot::Class(class) | Spot::ClassSide(class), Told::Class(text)) => {
                of(format!("{} {}", text.hash, self.link.error(class)).as_bytes())
            }
            _ => match self.content() {
                Some(content) => of(&content),
                None => of(&[]),
            },
        }
    }

    /// The qid, but for its version.
    fn identity(&self) -> Qid {
        let is_appended = matches!(&self.spot, Spot::Top(row) if row.name == "transcript");
        Qid {
            kind: match self.spot.kind() {
                Kind::Directory => QidKind::DIRECTORY,
                _ if is_appended => QidKind::APPEND,
                _ => QidKind::FILE,
            },
            version: 0,
            path: self
                .tree
                .hub
                .qid_path(&format!("{}{}", self.link.key, self.path())),
        }
    }

    fn children(self: &Arc<Self>) -> Vec<Arc<WorkspaceNode>> {
        // What children lead back to, once for all of them.
        let parent = self.with(Told::Nothing);
        let fixed = |table: &'static [Row], spot: &dyn Fn(&'static Row) -> Spot| {
            table
                .iter()
                .map(|row| parent.child(spot(row), row.name, self.told.clone()))
                .collect::<Vec<_>>()
        };
        match (&self.spot, &self.told) {
            (Spot::Classes, Told::Names(names)) => {
                let mut found = fixed(CLASSES, &Spot::NewClass);
                found.extend(
                    names
                        .iter()
                        .map(|name| parent.child(Spot::Class(name.clone()), name, Told::Nothing)),
                );
                found
            }
            (Spot::Class(class), Told::Class(text)) => {
                let of_class = |row| Spot::OfClass(class.clone(), row);
                let mut found =
                    vec![parent.child(Spot::ClassSide(class.clone()), ".class", self.told.clone())];
                found.extend(fixed(CLASS, &of_class));
                found.extend(parent.methods(class, Side::Instance, text));
                found
            }
            (Spot::ClassSide(class), Told::Class(text)) => parent.methods(class, Side::Class, text),
            (Spot::Actors, Told::Actors(actors)) => actors
                .keys()
                .map(|pid| parent.child(Spot::Actor(pid.clone()), pid, Told::Nothing))
                .collect(),
            (Spot::Actor(name), _) => fixed(ACTOR, &|row| Spot::OfActor(name.clone(), row)),
            (Spot::Changes, _) => fixed(CHANGES, &Spot::OfChanges),
            _ => Vec::new(),
        }
    }

    fn methods(self: &Arc<Self>, class: &str, side: Side, text: &Arc<ClassText>) -> Vec<Arc<WorkspaceNode>> {
        let mut found: Vec<(String, Spot)> = text
            .selectors(side)
            .map(|method| {
                let spot = Spot::Method {
                    class: class.to_owned(),
                    side,
                    selector: method.selector.clone(),
                    is_new: false,
                };
                (names::encode(&method.selector), spot)
            })
            .collect();
        found.sort_by(|one, other| one.0.cmp(&other.0));
        found
            .into_iter()
            .map(|(name, spot)| self.child(spot, &name, Told::Class(Arc::clone(text))))
            .collect()
    }

    fn step(&self, name: &str) -> Option<Spot> {
        let method = |class: &str, side| {
            Some(Spot::Method {
                class: class.to_owned(),
                side,
                selector: names::decode(name)?,
                is_new: false,
            })
        };
        match &self.spot {
            Spot::Classes => match row(CLASSES, name) {
                Some(row) => Some(Spot::NewClass(row)),
                None => names::is_class(name).then(|| Spot::Class(name.to_owned())),
            },
            Spot::Class(class) => match row(CLASS, name) {
                Some(row) => Some(Spot::OfClass(class.clone(), row)),
                None if name == ".class" => Some(Spot::ClassSide(class.clone())),
                None => method(class, Side::Instance),
            },
            Spot::ClassSide(class) => method(class, Side::Class),
            Spot::Actors => Some(Spot::Actor(name.to_owned())),
            Spot::Actor(actor) => row(ACTOR, name).map(|row| Spot::OfActor(actor.clone(), row)),
            Spot::Changes => row(CHANGES, name).map(Spot::OfChanges),
            _ => None,
        }
    }

    fn check_open(&self, request: OpenRequest) -> Result<(), Refusal> {
        let changes = match self.spot.row() {
            None => false,
            Some(row) => row.always_changes() || (request.write && row.kind == Kind::Document),
        };
        if !self.rights.read || (changes && !self.rights.write) {
            return Err(Refusal::PERMISSION_DENIED);
        }
        Ok(())
    }

    async fn open_file(self: Arc<Self>, request: OpenRequest) -> Result<Box<dyn OpenFile>, Refusal> {
        let live = self.link.live().await?;
        let kind = self.spot.kind();
        Ok(match (&self.spot, kind) {
            (_, Kind::Directory) => Box::new(DirectoryFile),
            (Spot::Top(row), _) if row.name == "transcript" => self.open_transcript(&live),
            (Spot::Top(row), Kind::Rpc) => {
                let json = row.name == "eval.json";
                eval::open(&self, eval::Ask::Code { json }, request).await?
            }
            (Spot::OfActor(name, _), Kind::Rpc) => {
                let pid = bare(&find_actor(&live, name).await?.pid).to_owned();
                eval::open(&self, eval::Ask::Message { pid }, request).await?
            }
            (Spot::Top(_), Kind::Stream) => self.follow_transcript(live, request),
            (Spot::OfChanges(_), Kind::Stream) => self.follow_changes(live, request),
            (_, Kind::Ctl) => {
                let node = Arc::clone(&self);
                let run: RunLines = Arc::new(move |text| Arc::clone(&node).run_permitted(text));
                Box::new(CtlFile {
                    run,
                    answer: Arc::new(Mutex::new(Vec::new())),
                    limit: self.tree.hub.config().limits.ctl_bytes,
                })
            }
            (_, Kind::Value) => {
                let told = self.ask(Need::Stat).await?;
                let content = self.with(told).content().unwrap_or_default();
                Box::new(ValueFile(content))
            }
            _ => self.open_document(request).await?,
        })
    }

    async fn open_document(self: Arc<Self>, request: OpenRequest) -> Result<Box<dyn OpenFile>, Refusal> {
        let told = self.ask(Need::Stat).await?;
        let content = self.with(told).content().unwrap_or_default();
        let start = if request.truncate {
            Vec::new()
        } else {
            content.as_ref().clone()
        };
        let per_request = matches!(self.spot, Spot::NewClass(_));
        let limit = self.tree.hub.config().limits.document_bytes;
        let node = Arc::clone(&self);
        let commit: Commit = Arc::new(move |bytes| {
            let node = Arc::clone(&node);
            Box::pin(async move {
                node.permit_written("commit", &bytes).await?;
                detached(node.commit(bytes)).await
            })
        });
        Ok(Box::new(DocumentFile {
            content,
            buffer: Buffer::new(start, per_request, limit, request.largest_write, commit),
        }))
    }

    async fn commit(self: Arc<Self>, bytes: Vec<u8>) -> Result<(), Refusal> {
        if let Some(class) = self.spot.class() {
            self.link.forget_error(class);
        }
        let outcome = self.tree.recorded(bytes, |bytes| self.change_class(bytes)).await;
        // What was not even tried is told there too.
        if let (Err(refused), Some(class)) = (&outcome, self.spot.class()) {
            self.link.note_error(class, &refused.text);
        }
        outcome
    }

    /// Run the commands of one write in order; the first failure ends them.
    async fn run_commands(self: Arc<Self>, commands: Vec<Vec<String>>) -> Result<String, Refusal> {
        let mut answer = String::new();
        for words in commands {
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            self.tree.hub.audit.ready()?;
            let outcome = match &self.spot {
                Spot::OfActor(name, _) => self.stop_actor(name, &words).await,
                _ => self.run_change(&words).await,
            };
            let verb = words.first().copied().unwrap_or_default();
            let entry = self.tree.entry("ctl").with("verb", verb);
            self.tree
                .hub
                .audit
                .write(entry.with("result", result(&outcome)))?;
            answer.push_str(&outcome?);
        }
        Ok(answer)
    }

    async fn remove_now(&self) -> Result<(), Refusal> {
        if !self.rights.write {
            return Err(Refusal::PERMISSION_DENIED);
        }
        match &self.spot {
            Spot::Method { .. } | Spot::Class(_) => self.remove_definition().await,
            _ => Err(Refusal::REMOVE_NOT_SUPPORTED),
        }
    }
}

/// The word of an outcome for the audit log. Error texts may quote what was written.
pub(super) fn result<T>(outcome: &Result<T, Refusal>) -> String {
    match outcome {
        Ok(_) => "ok".to_owned(),
        Err(refused) if refused.errno == 13 => "denied".to_owned(),
        Err(refused) => refused.text.split(':').next().unwrap_or_default().to_owned(),
    }
}

/// A living actor by process id or registered name.
async fn find_actor(live: &Live, name: &str) -> Result<Actor, Refusal> {
    if let Some(actor) = live.actors().await?.get(name) {
        return Ok(actor.clone());
    }
    if name.starts_with(|first: char| first.is_ascii_digit()) {
        return Err(Refusal::NOT_FOUND);
    }
    // Names are given and taken without a word.
    live.known.forget_actors();
    let actors = live.actors().await?;
    let found = actors.values().find(|actor| actor.name.as_deref() == Some(name));
    found.cloned().ok_or(Refusal::NOT_FOUND)
}

impl Node for WorkspaceNode {
    fn ready(&self, need: Need) -> Option<Answer<Arc<dyn Node>>> {
        if !self.must_ask(need) {
            return None;
        }
        let node = self.same();
        Some(Box::pin(async move {
            let told = node.ask(need).await?;
            Ok(node.with(told) as Arc<dyn Node>)
        }))
    }

    fn stat(&self) -> Result<Stat, Refusal> {
        let kind = self.spot.kind();
        let live = matches!(kind, Kind::Ctl | Kind::Stream | Kind::Rpc);
        let (version, changed) = self.version();
        let qid = self.identity();
        let top_byte = u32::from(qid.kind) << 24;
        Ok(Stat {
            kind: 0,
            device: 0,
            qid: Qid {
                version: if live { 0 } else { version },
                ..qid
            },
            mode: top_byte | self.spot.row().map_or(0o700, |row| row.mode),
            atime: changed,
            mtime: changed,
            length: if live || kind == Kind::Directory {
                0
            } else {
                self.length()
            },
            name: self.tree.name.clone(),
            uid: self.tree.hub.owner.clone(),
            gid: self.tree.hub.owner.clone(),
            muid: self.tree.hub.owner.clone(),
        })
    }

    fn qid(&self) -> Result<Qid, Refusal> {
        let live = matches!(self.spot.kind(), Kind::Ctl | Kind::Stream | Kind::Rpc);
        Ok(Qid {
            version: if live { 0 } else { self.version().0 },
            ..self.identity()
        })
    }

    fn walk(&self, name: &str) -> Result<Arc<dyn Node>, Refusal> {
        if name == ".." {
            return Ok(match &self.parent {
                Some(parent) => Arc::clone(parent) as Arc<dyn Node>,
                None => match &self.tree.parent {
                    Some(root) => Arc::clone(root) as Arc<dyn Node>,
                    None => self.same(),
                },
            });
        }
        let spot = self.step(name).ok_or(Refusal::NOT_FOUND)?;
        Ok(self.same().child(spot, name, Told::Nothing))
    }

    fn list(&self) -> Result<Vec<Stat>, Refusal> {
        self.same().children().iter().map(|child| child.stat()).collect()
    }

    fn open(&self, request: OpenRequest) -> Answer<Box<dyn OpenFile>> {
        let node = self.same();
        Box::pin(async move {
            node.tree.opened(request, node.check_open(request))?;
            node.open_file(request).await
        })
    }

    fn create(
        &self,
        name: &str,
        perm: u32,
        request: OpenRequest,
    ) -> Answer<(Arc<dyn Node>, Box<dyn OpenFile>)> {
        let node = self.same();
        let name = name.to_owned();
        Box::pin(async move {
            let (class, side) = match &node.spot {
                Spot::Class(class) => (class.clone(), Side::Instance),
                Spot::ClassSide(class) => (class.clone(), Side::Class),
                _ => return Err(Refusal::CREATE_NOT_SUPPORTED),
            };
            if perm & mode::DIRECTORY != 0 {
                return Err(Refusal::CREATE_NOT_SUPPORTED);
            }
            if !node.rights.write {
                return Err(Refusal::PERMISSION_DENIED);
            }
            let selector = names::decode(&name).filter(|selector| names::is_selector(selector));
            let spot = Spot::Method {
                class,
                side,
                selector: selector.ok_or(Refusal::BAD_NAME)?,
                is_new: true,
            };
            let made = node.child(spot, &name, Told::Nothing);
            made.ask(Need::Step).await?;
            let file = Arc::clone(&made).open_document(request).await?;
            Ok((made as Arc<dyn Node>, file))
        })
    }

    fn remove(&self) -> Answer<()> {
        let node = self.same();
        Box::pin(async move {
            if node.rights.write {
                node.permit("remove", node.removal(), None).await?;
            }
            detached(async move {
                node.tree.hub.audit.ready()?;
                let outcome = node.remove_now().await;
                let entry = node.tree.entry("remove").with("result", result(&outcome));
                node.tree.hub.audit.write(entry)?;
                outcome
            })
            .await
        })
    }

    fn decided(&self, op: &'static str, refused: Option<&Refusal>) {
        self.tree.decided(op, refused);
    }
}

impl Link {
    fn transcript_length(&self) -> u64 {
        let (first, last) = self.transcript_extent();
        last - first
    }
}

/// The text of what was written.
fn text_of(bytes: Vec<u8>) -> Result<String, Refusal> {
    String::from_utf8(bytes).map_err(|_| refusal("invalid text: not UTF-8"))
}

/// Nobody answers any more.
fn is_over(live: &Live, hub: &crate::daemon::Hub) -> bool {
    live.is_lost() || hub.is_stopping()
}
