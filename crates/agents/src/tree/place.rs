//! What exists where, with which mode, of which kind, and who may use it.

use std::collections::BTreeMap;
use std::sync::Arc;

use beamtalk_ninep::{OpenRequest, Refusal};

use super::TreeNode;
use super::loop_files::LoopAccess;
use crate::access::{Level, Right};
use crate::config::{Item, Library};
use crate::error::refusal;
use crate::mail::{Box as MailBox, USER};
use crate::session::record::Record;
use crate::session::shared::SessionShared;

/// How an open file behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Directory,
    Value,
    Document,
    Ctl,
    Stream,
    Rpc,
    /// Bytes both ways, to a process of this open alone.
    Pipe,
    /// A file of chapter 9 without anybody serving it.
    Absent,
}

/// A shelf of the library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shelf {
    Roles,
    Skills,
    Tools,
}

/// A place in the tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Place {
    Root,
    Agents,
    /// A fixed file of `agents/`.
    Top(&'static str),
    Shelf(Shelf),
    Item(Shelf, String),
    /// Where the skills were found.
    Sources,
    User,
    UserFile(&'static str),
    Session(String),
    File(String, &'static str),
    Mailbox(String, MailBox),
    Message(String, MailBox, String),
    /// Questions for a person, a file there, one of them, and a file of one.
    Approvals,
    OfApprovals(&'static str),
    Approval(String),
    OfApproval(String, &'static str),
    /// Chapter 9 without a workspace or loop.
    Absent(&'static str),
}

type Row = (&'static str, u32, Kind);

const TOP: &[Row] = &[
    ("audit", 0o400, Kind::Value),
    ("backends", 0o400, Kind::Value),
    ("ctl", 0o600, Kind::Ctl),
    ("events", 0o600, Kind::Stream),
    ("events.json", 0o400, Kind::Value),
    ("list", 0o400, Kind::Value),
    ("list.json", 0o400, Kind::Value),
    ("status", 0o400, Kind::Value),
    ("tokens", 0o600, Kind::Ctl),
];

const APPROVALS: &[Row] = &[("follow", 0o600, Kind::Stream), ("pending", 0o400, Kind::Value)];

const APPROVAL: &[Row] = &[("answer", 0o200, Kind::Document), ("request", 0o400, Kind::Value)];

const USER_FILES: &[Row] = &[("ctl", 0o600, Kind::Ctl), ("mail", 0o200, Kind::Document)];

const SESSION_FILES: &[Row] = &[
    ("acl", 0o600, Kind::Document),
    ("alias", 0o600, Kind::Document),
    ("backend", 0o400, Kind::Value),
    ("budget", 0o600, Kind::Document),
    ("context", 0o600, Kind::Document),
    ("conversation", 0o600, Kind::Document),
    ("ctl", 0o600, Kind::Ctl),
    ("cwd", 0o400, Kind::Value),
    ("diff", 0o400, Kind::Value),
    ("diff.stat", 0o400, Kind::Value),
    ("in", 0o200, Kind::Document),
    ("info", 0o400, Kind::Value),
    ("level", 0o400, Kind::Value),
    ("log", 0o400, Kind::Value),
    ("log.follow", 0o600, Kind::Stream),
    ("mail", 0o200, Kind::Document),
    ("mcp", 0o600, Kind::Pipe),
    ("model", 0o400, Kind::Value),
    ("out", 0o600, Kind::Document),
    ("output", 0o400, Kind::Value),
    ("output.follow", 0o600, Kind::Stream),
    ("pid", 0o400, Kind::Value),
    ("prompt", 0o600, Kind::Rpc),
    ("queue", 0o600, Kind::Document),
    ("role", 0o600, Kind::Document),
    ("sandbox", 0o400, Kind::Value),
    ("screen", 0o400, Kind::Value),
    ("state", 0o600, Kind::Document),
    ("tmux", 0o400, Kind::Value),
    ("usage", 0o400, Kind::Value),
    ("wait", 0o600, Kind::Rpc),
    ("worktree", 0o400, Kind::Value),
];

/// Chapter 9 at the root: name and whether it is a directory.
const CHAPTER_9: &[(&str, bool)] = &[
    ("actors", true),
    ("changes", true),
    ("classes", true),
    ("eval", false),
    ("eval.json", false),
    ("loop", true),
    ("transcript", false),
    ("transcript.follow", false),
];

/// Whether what is at a path belongs to the workspace that the tree shows.
pub(crate) fn is_of_workspace(path: &str) -> bool {
    let top = path.split('/').find(|part| !part.is_empty());
    top.is_some_and(|top| CHAPTER_9.iter().any(|(name, _)| *name == top))
}

fn row(table: &'static [Row], name: &str) -> Option<&'static Row> {
    table.iter().find(|(known, ..)| *known == name)
}

impl Place {
    fn row(&self) -> Option<&'static Row> {
        match self {
            Place::Top(name) => row(TOP, name),
            Place::UserFile(name) => row(USER_FILES, name),
            Place::File(_, name) => row(SESSION_FILES, name),
            Place::OfApprovals(name) => row(APPROVALS, name),
            Place::OfApproval(_, name) => row(APPROVAL, name),
            _ => None,
        }
    }

    pub(super) fn mode(&self) -> u32 {
        match self {
            Place::Item(..) | Place::Message(..) | Place::Sources => 0o400,
            Place::Absent("eval" | "eval.json" | "transcript" | "transcript.follow") => 0o600,
            Place::Absent(_) => 0o700,
            _ => self.row().map_or(0o500, |(_, mode, _)| *mode),
        }
    }

    /// The session a place belongs to.
    pub(super) fn session(&self) -> Option<&str> {
        match self {
            Place::Session(id) | Place::File(id, _) => Some(id),
            Place::Mailbox(who, _) | Place::Message(who, ..) if who != USER => Some(who),
            _ => None,
        }
    }
}

impl TreeNode {
    pub(super) fn kind(&self) -> Kind {
        match &self.place {
            Place::Absent(name) if !CHAPTER_9.contains(&(name, true)) => Kind::Absent,
            Place::Item(..) | Place::Message(..) | Place::Sources => Kind::Value,
            place => place.row().map_or(Kind::Directory, |(_, _, kind)| *kind),
        }
    }

    /// The place one step down.
    pub(super) fn step(&self, name: &str) -> Option<Place> {
        match &self.place {
            Place::Root if name == "agents" => Some(Place::Agents),
            Place::Root => self.step_in_agents(name).or_else(|| {
                CHAPTER_9
                    .iter()
                    .find(|(known, _)| *known == name)
                    .map(|(known, _)| Place::Absent(known))
            }),
            Place::Agents => self.step_in_agents(name),
            Place::Shelf(Shelf::Skills) if name == SOURCES => Some(Place::Sources),
            Place::Shelf(shelf) => {
                let stem = name.strip_suffix(shelf.suffix())?;
                self.shelf_names(*shelf)
                    .iter()
                    .any(|known| known == stem)
                    .then(|| Place::Item(*shelf, stem.to_owned()))
            }
            Place::User => row(USER_FILES, name)
                .map(|(known, ..)| Place::UserFile(known))
                .or_else(|| mailbox(USER, name)),
            Place::Session(id) => row(SESSION_FILES, name)
                .map(|(known, ..)| Place::File(id.clone(), known))
                .or_else(|| mailbox(id, name)),
            Place::Approvals => match row(APPROVALS, name) {
                Some((known, ..)) => Some(Place::OfApprovals(known)),
                None => self.sees_approval(name).then(|| Place::Approval(name.to_owned())),
            },
            Place::Approval(id) => {
                row(APPROVAL, name).map(|(known, ..)| Place::OfApproval(id.clone(), known))
            }
            Place::Mailbox(who, which) => {
                let id = name.strip_suffix(".json")?;
                self.hub.mail.read(who, *which, id)?;
                Some(Place::Message(who.clone(), *which, id.to_owned()))
            }
            _ => None,
        }
    }

    fn step_in_agents(&self, name: &str) -> Option<Place> {
        match name {
            "user" => Some(Place::User),
            "approvals" => Some(Place::Approvals),
            "roles" => Some(Place::Shelf(Shelf::Roles)),
            "skills" => Some(Place::Shelf(Shelf::Skills)),
            "tools" => Some(Place::Shelf(Shelf::Tools)),
            _ => match row(TOP, name) {
                Some((known, ..)) => Some(Place::Top(known)),
                None => self
                    .hub
                    .find(name)
                    .map(|session| Place::Session(session.id.clone())),
            },
        }
    }

    /// What a directory lists, sorted, sessions newest first at the end.
    pub(super) fn children(&self) -> Vec<(String, Place)> {
        let mut found: Vec<(String, Place)> = Vec::new();
        match &self.place {
            Place::Root | Place::Agents => {
                found.extend(
                    TOP.iter()
                        .map(|(name, ..)| ((*name).to_owned(), Place::Top(name))),
                );
                for (name, place) in [
                    ("user", Place::User),
                    ("approvals", Place::Approvals),
                    ("roles", Place::Shelf(Shelf::Roles)),
                    ("skills", Place::Shelf(Shelf::Skills)),
                    ("tools", Place::Shelf(Shelf::Tools)),
                ] {
                    found.push((name.to_owned(), place));
                }
                if self.place == Place::Root {
                    found.push(("agents".to_owned(), Place::Agents));
                    found.extend(
                        CHAPTER_9
                            .iter()
                            .map(|(name, _)| ((*name).to_owned(), Place::Absent(name))),
                    );
                }
                found.sort_by(|one, other| one.0.cmp(&other.0));
                let sessions = self.hub.sessions();
                found.extend(
                    sessions
                        .iter()
                        .map(|session| (session.id.clone(), Place::Session(session.id.clone()))),
                );
            }
            Place::Approvals => {
                found.extend(
                    APPROVALS
                        .iter()
                        .map(|(name, ..)| ((*name).to_owned(), Place::OfApprovals(name))),
                );
                let waiting = self.hub.approvals.list(self.own_id());
                found.extend(
                    waiting
                        .into_iter()
                        .map(|request| (request.id.clone(), Place::Approval(request.id))),
                );
                found.sort_by(|one, other| one.0.cmp(&other.0));
            }
            Place::Approval(id) => {
                found.extend(
                    APPROVAL
                        .iter()
                        .map(|(name, ..)| ((*name).to_owned(), Place::OfApproval(id.clone(), name))),
                );
            }
            Place::Shelf(shelf) => {
                if *shelf == Shelf::Skills {
                    found.push((SOURCES.to_owned(), Place::Sources));
                }
                for name in self.shelf_names(*shelf) {
                    found.push((format!("{name}{}", shelf.suffix()), Place::Item(*shelf, name)));
                }
            }
            Place::User => {
                found.extend(
                    USER_FILES
                        .iter()
                        .map(|(name, ..)| ((*name).to_owned(), Place::UserFile(name))),
                );
                found.extend(
                    MailBox::ALL
                        .map(|which| (which.name().to_owned(), Place::Mailbox(USER.to_owned(), which))),
                );
                found.sort_by(|one, other| one.0.cmp(&other.0));
            }
            Place::Session(id) => {
                found.extend(
                    SESSION_FILES
                        .iter()
                        .map(|(name, ..)| ((*name).to_owned(), Place::File(id.clone(), name))),
                );
                found.extend(
                    MailBox::ALL.map(|which| (which.name().to_owned(), Place::Mailbox(id.clone(), which))),
                );
                found.sort_by(|one, other| one.0.cmp(&other.0));
            }
            Place::Mailbox(who, which) => {
                for id in self.hub.mail.list(who, *which) {
                    found.push((format!("{id}.json"), Place::Message(who.clone(), *which, id)));
                }
            }
            _ => {}
        }
        found
    }

    fn shelf_names(&self, shelf: Shelf) -> Vec<String> {
        self.library().on(shelf).keys().cloned().collect()
    }

    /// The library of whoever looks: a session's is that of its project, the owner's that of the workspace's.
    pub(super) fn library(&self) -> Library {
        let own = self.own_id().and_then(|id| self.hub.session(id).ok());
        match own {
            Some(session) => self.hub.library_at(&session.with_record(Record::place)),
            None => match self.hub.links.project() {
                Some(root) => self.hub.config().library.of_project(&root),
                None => self.hub.config().library.clone(),
            },
        }
    }

    pub(super) fn check_exists(&self) -> Result<(), Refusal> {
        match &self.place {
            Place::Session(id) | Place::File(id, _) => self.hub.session(id).map(drop),
            Place::Mailbox(who, _) if who != USER => self.hub.session(who).map(drop),
            Place::Message(who, which, id) => self
                .hub
                .mail
                .read(who, *which, id)
                .map(drop)
                .ok_or(Refusal::NOT_FOUND),
            Place::Approval(id) | Place::OfApproval(id, _) if !self.sees_approval(id) => {
                Err(Refusal::NOT_FOUND)
            }
            _ => Ok(()),
        }
    }

    pub(super) fn check_right(&self, session: &SessionShared, right: Right) -> Result<(), Refusal> {
        if self
            .hub
            .has_right(&self.caller.level, &self.caller.who, session, right)
        {
            Ok(())
        } else {
            Err(Refusal::PERMISSION_DENIED)
        }
    }

    /// The session that asks, if it is one.
    pub(super) fn own_id(&self) -> Option<&str> {
        match &self.caller.level {
            Level::Session(id) => Some(id),
            Level::Read | Level::Control => None,
        }
    }

    /// A session knows of its own questions only. One that was answered is still there for whoever comes second.
    fn sees_approval(&self, id: &str) -> bool {
        match (self.hub.approvals.find(id), self.own_id()) {
            (Some(request), Some(own)) => request.session.as_deref() == Some(own),
            (Some(_), None) => true,
            (None, own) => own.is_none() && self.hub.approvals.was_answered(id),
        }
    }

    fn is_own(&self, id: &str) -> bool {
        matches!(&self.caller.level, Level::Session(own) if own == id)
    }

    /// Mailboxes: the participant itself and control; `user`'s may be read by level `read`.
    pub(super) fn check_mailbox(&self, who: &str, change: bool) -> Result<(), Refusal> {
        let allowed = match &self.caller.level {
            Level::Control => true,
            Level::Session(own) => own == who,
            Level::Read => who == USER && !change,
        };
        if allowed {
            Ok(())
        } else {
            Err(Refusal::PERMISSION_DENIED)
        }
    }

    /// Whether the caller may open this place as asked.
    pub(super) fn check_open(&self, request: OpenRequest) -> Result<(), Refusal> {
        if let Some(reader) = self.as_reader() {
            reader.check_open(request)?;
        }
        let level = &self.caller.level;
        let need = |yes: bool| {
            if yes {
                Ok(())
            } else {
                Err(Refusal::PERMISSION_DENIED)
            }
        };
        match &self.place {
            Place::Root
            | Place::Agents
            | Place::Shelf(_)
            | Place::Item(..)
            | Place::Sources
            | Place::Session(_) => Ok(()),
            Place::Top("ctl") => need(*level == Level::Control || self.may_spawn()),
            Place::OfApproval(_, "answer") => need(*level == Level::Control),
            Place::Approvals | Place::OfApprovals(_) | Place::Approval(_) | Place::OfApproval(..) => {
                need(*level != Level::Read)
            }
            Place::Top("tokens" | "audit") => need(*level == Level::Control),
            Place::Top("events.json") => need(!matches!(level, Level::Session(_))),
            Place::Top(_) => Ok(()),
            Place::User => need(!matches!(level, Level::Session(_))),
            Place::UserFile(_) => need(*level == Level::Control),
            Place::Mailbox(who, _) | Place::Message(who, ..) => self.check_mailbox(who, false),
            Place::File(id, name) => {
                let session = self.hub.session(id)?;
                self.check_session_file(&session, name, request)
            }
            Place::Absent("loop") => Err(refusal("loop not running")),
            Place::Absent(_) => Err(refusal("no workspace")),
        }
    }

    fn check_session_file(
        &self,
        session: &Arc<SessionShared>,
        name: &str,
        request: OpenRequest,
    ) -> Result<(), Refusal> {
        let own = self.is_own(&session.id);
        let control = |own_too: bool| {
            if own_too && own {
                Ok(())
            } else {
                self.check_right(session, Right::Control)
            }
        };
        match name {
            "in" | "prompt" => self.check_right(session, Right::Prompt),
            "queue" if request.write => self.check_right(session, Right::Prompt),
            "mail" => {
                if own || self.caller.level == Level::Control {
                    Ok(())
                } else {
                    Err(Refusal::PERMISSION_DENIED)
                }
            }
            "ctl" => control(true),
            // Who has all rights has a server of their own.
            "mcp" if own => Ok(()),
            "mcp" => Err(Refusal::PERMISSION_DENIED),
            _ => {
                let changes = match name {
                    "state" | "out" | "conversation" if request.write => Some(true),
                    "alias" | "context" | "role" | "acl" | "budget" if request.write => Some(false),
                    // First-line commands and requests to wait change nothing.
                    _ => None,
                };
                // The list guards what the session says; what it is stays known to itself and to
                // whoever may change the list.
                let says = matches!(
                    name,
                    "out"
                        | "output"
                        | "output.follow"
                        | "log"
                        | "log.follow"
                        | "screen"
                        | "diff"
                        | "diff.stat"
                );
                let known = !says && (own || self.caller.level == Level::Control);
                if (request.read || changes.is_none()) && !known {
                    self.check_right(session, Right::Read)?;
                }
                changes.map_or(Ok(()), control)
            }
        }
    }

    /// Whether a session may create sessions.
    pub(super) fn may_spawn(&self) -> bool {
        let Level::Session(id) = &self.caller.level else {
            return false;
        };
        let Ok(session) = self.hub.session(id) else {
            return false;
        };
        let (backend, made) = session.with_record(|record| (record.backend.clone(), record.parent.is_some()));
        // One that was made by a session makes none.
        if made {
            return false;
        }
        self.hub
            .config()
            .backend(&backend)
            .is_ok_and(|backend| backend.may_spawn)
    }

    /// What a session's backend lets it do with the workspace: read, change.
    pub(super) fn workspace_rights(&self, id: &str) -> (bool, bool) {
        use crate::config::WorkspaceRight;
        self.of_backend(id, |backend| {
            (
                backend.workspace != WorkspaceRight::None,
                backend.workspace == WorkspaceRight::Write,
            )
        })
        .unwrap_or_default()
    }

    /// What the caller may do with the loop.
    pub(super) fn loop_access(&self) -> LoopAccess {
        use crate::config::LoopRight;
        let access = match &self.caller.level {
            Level::Control => LoopAccess::Control,
            Level::Read => LoopAccess::Observe,
            Level::Session(id) => {
                let right = self.of_backend(id, |backend| backend.loop_right);
                right.map_or(LoopAccess::None, |right| match right {
                    LoopRight::None => LoopAccess::None,
                    LoopRight::Observe => LoopAccess::Observe,
                    LoopRight::Post => LoopAccess::Post,
                    LoopRight::Control => LoopAccess::Control,
                })
            }
        };
        if self.caller.read_only {
            access.min(LoopAccess::Observe)
        } else {
            access
        }
    }

    fn of_backend<T>(&self, id: &str, answer: impl Fn(&crate::config::Backend) -> T) -> Option<T> {
        let session = self.hub.session(id).ok()?;
        let name = session.with_record(|record| record.backend.clone());
        let config = self.hub.config();
        config.backend(&name).ok().map(answer)
    }
}

fn mailbox(who: &str, name: &str) -> Option<Place> {
    MailBox::ALL
        .into_iter()
        .find(|which| which.name() == name)
        .map(|which| Place::Mailbox(who.to_owned(), which))
}

/// Beside the skills.
const SOURCES: &str = ".sources";

impl Library {
    pub(super) fn on(&self, shelf: Shelf) -> &BTreeMap<String, Item> {
        match shelf {
            Shelf::Roles => &self.roles,
            Shelf::Skills => &self.skills,
            Shelf::Tools => &self.tools,
        }
    }
}

impl Shelf {
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Shelf::Roles | Shelf::Skills => ".md",
            Shelf::Tools => ".sh",
        }
    }
}
