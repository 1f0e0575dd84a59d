//! The served file tree.
//!
//! ```text
//! /agents/{ctl,list,list.json,status,events,events.json,backends,user/,roles/,skills/,tools/,tokens,audit}
//! /agents/<id or alias>/{ctl,in,prompt,out,output,…}     /<everything of agents/ again>
//! /{loop,classes,actors,changes}/ /{transcript,transcript.follow,eval,eval.json}   by providers
//! ```
//!
//! `place` says what exists where and who may use it; `content` what is read; `commit` and
//! `commands` what is written; `kinds` and `streams` how open files behave.

mod commands;
mod commit;
mod content;
mod kinds;
mod loop_files;
mod open;
mod pipe;
mod place;
mod streams;
mod workspace;

pub(crate) use place::is_of_workspace;
pub(crate) use workspace::names;

use std::sync::Arc;

use beamtalk_ninep::{Answer, Node, OpenFile, OpenRequest, Peer, Qid, QidKind, Refusal, Stat, mode};

use crate::access::{Level, Who};
use crate::audit::Entry;
use crate::daemon::Hub;
use crate::error::refusal;
use place::{Kind, Place};

/// Whom a connection acts for.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    pub(crate) level: Level,
    pub(crate) who: Who,
    /// A session that showed a token for reading changes nothing.
    pub(crate) read_only: bool,
    pub(crate) connection: u64,
    pub(crate) peer: Peer,
    pub(crate) root: bool,
}

/// The root a specifier selects.
pub(crate) fn root(hub: &Arc<Hub>, caller: Caller, aname: &str) -> Result<Arc<dyn Node>, Refusal> {
    let caller = Arc::new(caller);
    let node = |place: Place, path: &str| {
        Arc::new(TreeNode {
            hub: Arc::clone(hub),
            caller: Arc::clone(&caller),
            place,
            path: path.to_owned(),
            name: "/".to_owned(),
            parent: None,
        })
    };
    let whole = node(Place::Root, "");
    Ok(match aname {
        "" | "/" => whole,
        "classic" => node(Place::Agents, "classic:"),
        "agents" => node(Place::Agents, "/agents"),
        "loop" | "classes" | "actors" | "changes" => return whole.walk(aname),
        _ => return Err(Refusal::UNKNOWN_ANAME),
    })
}

pub(crate) struct TreeNode {
    hub: Arc<Hub>,
    caller: Arc<Caller>,
    place: Place,
    path: String,
    name: String,
    parent: Option<Arc<TreeNode>>,
}

impl TreeNode {
    fn child(self: &Arc<Self>, place: Place, name: &str) -> Arc<TreeNode> {
        Arc::new(TreeNode {
            hub: Arc::clone(&self.hub),
            caller: Arc::clone(&self.caller),
            place,
            path: format!("{}/{name}", self.path),
            name: name.to_owned(),
            parent: Some(Arc::clone(self)),
        })
    }

    /// The same node, so that children can refer to it.
    fn same(&self) -> Arc<TreeNode> {
        Arc::new(TreeNode {
            hub: Arc::clone(&self.hub),
            caller: Arc::clone(&self.caller),
            place: self.place.clone(),
            path: self.path.clone(),
            name: self.name.clone(),
            parent: self.parent.clone(),
        })
    }

    fn entry(&self, op: &str) -> Entry {
        let caller = &self.caller;
        let path = self.path.strip_prefix("classic:").unwrap_or(&self.path);
        let entry = Entry::new(op)
            .with("conn", caller.connection)
            .with("pid", caller.peer.pid)
            .with("uid", caller.peer.uid)
            .with("who", caller.who.word())
            .with("level", caller.level.word())
            .with("path", path);
        let entry = if caller.root {
            entry.with("root", true)
        } else {
            entry
        };
        match self.place.session() {
            Some(id) => entry.with("session", id),
            None => entry,
        }
    }

    /// Record a denial and hand it on.
    fn denied(&self, op: &str, refused: Refusal) -> Refusal {
        // The denial stands whether or not it can be recorded.
        drop(self.hub.audit.write(self.entry(op).with("result", "denied")));
        refused
    }

    /// Record that a file of the workspace is opened, or that it was denied.
    fn opened(&self, request: OpenRequest, checked: Result<(), Refusal>) -> Result<(), Refusal> {
        if let Err(refused) = checked {
            return Err(self.denied("open", refused));
        }
        if request.write || self.caller.root || self.hub.config().audit.reads {
            let op = if request.write { "open" } else { "read" };
            self.hub.audit.write(self.entry(op).with("result", "ok"))?;
        }
        Ok(())
    }

    /// A part of the image, if there is a workspace to ask.
    fn image(&self, name: &str) -> Option<Arc<dyn Node>> {
        let place = self
            .step(name)
            .filter(|place| matches!(place, Place::Absent(_)))?;
        let (read, write) = match &self.caller.level {
            Level::Control => (true, true),
            Level::Read => (true, false),
            Level::Session(id) => self.workspace_rights(id),
        };
        let link = match &self.caller.level {
            Level::Control | Level::Read => self.hub.links.of_owner(),
            Level::Session(id) => self.hub.links.of_session(&self.hub, id),
        };
        if name == "loop" {
            return Some(loop_files::node(
                self.same().child(place, name),
                link?,
                self.loop_access(),
            ));
        }
        let rights = workspace::Rights {
            read,
            write: write && !self.caller.read_only,
        };
        workspace::node(self.same().child(place, name), link?, rights)
    }
}

impl Node for TreeNode {
    fn stat(&self) -> Result<Stat, Refusal> {
        let kind = self.kind();
        let is_directory = kind == Kind::Directory;
        let live = matches!(kind, Kind::Ctl | Kind::Stream | Kind::Rpc);
        let length = if is_directory || live { 0 } else { self.length()? };
        let (version, changed) = self.version();
        let version = if live { 0 } else { version };
        let kind_byte = if is_directory {
            QidKind::DIRECTORY
        } else {
            QidKind::FILE
        };
        let directory_bit = if is_directory { mode::DIRECTORY } else { 0 };
        self.check_exists()?;
        Ok(Stat {
            kind: 0,
            device: 0,
            qid: Qid {
                kind: kind_byte,
                version,
                path: self.hub.qid_path(&self.path),
            },
            mode: directory_bit | self.place.mode(),
            atime: changed,
            mtime: changed,
            length,
            name: self.name.clone(),
            uid: self.hub.owner.clone(),
            gid: self.hub.owner.clone(),
            muid: self.hub.owner.clone(),
        })
    }

    fn qid(&self) -> Result<Qid, Refusal> {
        self.check_exists()?;
        let kind = self.kind();
        let live = matches!(kind, Kind::Ctl | Kind::Stream | Kind::Rpc);
        let version = if live { 0 } else { self.version().0 };
        let kind = if kind == Kind::Directory {
            QidKind::DIRECTORY
        } else {
            QidKind::FILE
        };
        Ok(Qid {
            kind,
            version,
            path: self.hub.qid_path(&self.path),
        })
    }

    fn walk(&self, name: &str) -> Result<Arc<dyn Node>, Refusal> {
        if name == ".." {
            return Ok(self.parent.as_ref().map_or_else(|| self.same(), Arc::clone));
        }
        self.check_exists()?;
        if self.place == Place::Root
            && let Some(node) = self.image(name)
        {
            return Ok(node);
        }
        let place = self.step(name).ok_or(Refusal::NOT_FOUND)?;
        Ok(self.same().child(place, name))
    }

    fn list(&self) -> Result<Vec<Stat>, Refusal> {
        let own = self.same();
        let mut stats = Vec::new();
        for (name, place) in self.children() {
            // What vanished meanwhile is not listed.
            if let Ok(stat) = own.child(place, &name).stat() {
                stats.push(stat);
            }
        }
        if self.place == Place::Root {
            for stat in &mut stats {
                if let Some(node) = self.image(&stat.name) {
                    *stat = node.stat()?;
                }
            }
        }
        Ok(stats)
    }

    fn open(&self, request: OpenRequest) -> Answer<Box<dyn OpenFile>> {
        let node = self.same();
        Box::pin(async move {
            node.check_exists()?;
            if let Err(refused) = node.check_open(request) {
                return Err(node.denied("open", refused));
            }
            let recorded = request.write || node.caller.root || node.hub.config().audit.reads;
            if recorded {
                let op = if request.write { "open" } else { "read" };
                node.hub.audit.write(node.entry(op).with("result", "ok"))?;
            }
            node.open_file(request).await
        })
    }

    fn decided(&self, op: &'static str, refused: Option<&Refusal>) {
        let result = match refused {
            None => "ok",
            Some(refused) if refused.errno == 13 => "denied",
            Some(refused) => &refused.text,
        };
        // Nothing of ours was changed by it; the record is all there is to do.
        drop(self.hub.audit.write(self.entry(op).with("result", result)));
    }

    fn remove(&self) -> Answer<()> {
        let node = self.same();
        Box::pin(async move {
            let work = tokio::spawn(async move {
                node.hub.audit.ready()?;
                let outcome = node.remove_now().await;
                let result = match &outcome {
                    Ok(()) => "ok".to_owned(),
                    Err(refused) if refused.errno == 13 => "denied".to_owned(),
                    Err(refused) => refused.text.to_string(),
                };
                node.hub
                    .audit
                    .write(node.entry("remove").with("result", result))?;
                outcome
            });
            work.await.map_err(|_| Refusal::INTERNAL)?
        })
    }
}

impl TreeNode {
    /// The same node for a reader, if the caller is no more than that.
    fn as_reader(&self) -> Option<TreeNode> {
        self.caller.read_only.then(|| TreeNode {
            hub: Arc::clone(&self.hub),
            caller: Arc::new(Caller {
                level: Level::Read,
                read_only: false,
                ..Caller::clone(&self.caller)
            }),
            place: self.place.clone(),
            path: self.path.clone(),
            name: self.name.clone(),
            parent: self.parent.clone(),
        })
    }

    async fn remove_now(&self) -> Result<(), Refusal> {
        if self.caller.read_only {
            return Err(Refusal::PERMISSION_DENIED);
        }
        match &self.place {
            Place::Message(who, which, id) => {
                if let Err(refused) = self.check_mailbox(who, true) {
                    let own_only =
                        crate::mail::Box::Inbox == *which && matches!(self.caller.level, Level::Session(_));
                    return Err(if own_only {
                        refusal("permission denied: can only remove from own inbox")
                    } else {
                        refused
                    });
                }
                match which {
                    crate::mail::Box::Inbox => self.hub.complete_mail(who, id)?,
                    crate::mail::Box::Completed => self.hub.mail.delete_completed(who, id)?,
                    crate::mail::Box::Outbox => return Err(Refusal::REMOVE_NOT_SUPPORTED),
                }
                self.hub.forget_qids(&self.name);
                self.hub.touch();
                Ok(())
            }
            Place::Session(id) => {
                let session = self.hub.session(id)?;
                self.check_right(&session, crate::access::Right::Control)?;
                session.operate(crate::session::shared::Operation::Kill).await
            }
            _ => Err(Refusal::REMOVE_NOT_SUPPORTED),
        }
    }
}
