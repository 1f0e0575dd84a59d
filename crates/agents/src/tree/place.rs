//! What exists where, with which mode, of which kind, and who may use it.

use std::sync::Arc;

use beamtalk_ninep::{OpenRequest, Refusal};

use super::TreeNode;
use crate::access::{Level, Right};
use crate::error::refusal;
use crate::mail::{Box as MailBox, USER};
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
    User,
    UserFile(&'static str),
    Session(String),
    File(String, &'static str),
    Mailbox(String, MailBox),
    Message(String, MailBox, String),
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

fn row(table: &'static [Row], name: &str) -> Option<&'static Row> {
    table.iter().find(|(known, ..)| *known == name)
}

impl Place {
    fn row(&self) -> Option<&'static Row> {
        match self {
            Place::Top(name) => row(TOP, name),
            Place::UserFile(name) => row(USER_FILES, name),
            Place::File(_, name) => row(SESSION_FILES, name),
            _ => None,
        }
    }

    pub(super) fn mode(&self) -> u32 {
        match self {
            Place::Item(..) | Place::Message(..) => 0o400,
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
            Place::Item(..) | Place::Message(..) => Kind::Value,
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
            Place::Shelf(shelf) => {
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
        let config = self.hub.config();
        let items = match shelf {
            Shelf::Roles => &config.library.roles,
            Shelf::Skills => &config.library.skills,
            Shelf::Tools => &config.library.tools,
        };
        items.keys().cloned().collect()
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
            Place::Root | Place::Agents | Place::Shelf(_) | Place::Item(..) | Place::Session(_) => Ok(()),
            Place::Top("ctl") => need(*level == Level::Control || self.may_spawn()),
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

    /// Reading and writing chapter 9 for a session, by its backend.
    pub(super) fn workspace_rights(&self, id: &str, is_loop: bool) -> (bool, bool) {
        use crate::config::{LoopRight, WorkspaceRight};
        let Ok(session) = self.hub.session(id) else {
            return (false, false);
        };
        let name = session.with_record(|record| record.backend.clone());
        let config = self.hub.config();
        let Ok(backend) = config.backend(&name) else {
            return (false, false);
        };
        if is_loop {
            (
                backend.loop_right != LoopRight::None,
                matches!(backend.loop_right, LoopRight::Post | LoopRight::Control),
            )
        } else {
            (
                backend.workspace != WorkspaceRight::None,
                backend.workspace == WorkspaceRight::Write,
            )
        }
    }
}

fn mailbox(who: &str, name: &str) -> Option<Place> {
    MailBox::ALL
        .into_iter()
        .find(|which| which.name() == name)
        .map(|which| Place::Mailbox(who.to_owned(), which))
}

impl Shelf {
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Shelf::Roles | Shelf::Skills => ".md",
            Shelf::Tools => ".sh",
        }
    }
}
