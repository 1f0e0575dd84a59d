//! `new`: check everything first, then create.

use std::path::Path;
use std::sync::Arc;

use beamtalk_ninep::Refusal;
use beamtalk_storage::random_hex;
use beamtalk_storage::time::now_seconds;
use beamtalk_wire::is_directory_of_new;
use serde_json::json;

use super::Hub;
use crate::access::{Acl, DEFAULT_ACL};
use crate::config::{Access, Backend, Library};
use crate::error::refusal;
use crate::mail::{Draft, USER};
use crate::output::Output;
use crate::session::chat::Chat;
use crate::session::launch;
use crate::session::record::Record;
use crate::session::shared::SessionShared;
use crate::session::task::{Start, Task};
use crate::text::check_directory;
use crate::worktree::Worktree;
use crate::{files, places};

pub(crate) const NEW_USAGE: &str = "usage: new <backend> [<cwd>] [sandbox=<profile>] [model=<model>] [level=<level>] \
    [alias=<alias>] [role=<role>] [context=<text>] | recover | reload";

/// The arguments of `new`, read from a command line.
#[derive(Debug, Default)]
struct NewArguments {
    backend: String,
    cwd: Option<String>,
    sandbox: Option<String>,
    model: Option<String>,
    level: Option<String>,
    alias: Option<String>,
    role: Option<String>,
    context: Option<String>,
    /// An empty name is for one of our own making.
    worktree: Option<String>,
    base: Option<String>,
}

impl NewArguments {
    fn parse(words: &[String]) -> Result<Self, Refusal> {
        let mut arguments = NewArguments::default();
        let mut words = words.iter();
        arguments
            .backend
            .clone_from(words.next().ok_or_else(|| refusal(NEW_USAGE))?);
        for word in words {
            let slot = match word.split_once('=') {
                Some(("sandbox", value)) => (&mut arguments.sandbox, value),
                Some(("model", value)) => (&mut arguments.model, value),
                Some(("level", value)) => (&mut arguments.level, value),
                Some(("alias", value)) => (&mut arguments.alias, value),
                Some(("role", value)) => (&mut arguments.role, value),
                Some(("context", value)) => (&mut arguments.context, value),
                Some(("worktree", value)) => (&mut arguments.worktree, value),
                Some(("base", value)) => (&mut arguments.base, value),
                None if word == "worktree" => (&mut arguments.worktree, ""),
                _ if is_directory_of_new(word) && arguments.cwd.is_none() => {
                    (&mut arguments.cwd, word.as_str())
                }
                _ => return Err(refusal(format!("unexpected argument: {word}"))),
            };
            *slot.0 = Some(slot.1.to_owned());
        }
        Ok(arguments)
    }
}

impl Hub {
    /// Create a session from the words after `new`; its id.
    /// `maker` is the session that asks, which gets no more than it has.
    pub(crate) async fn create(
        self: &Arc<Self>,
        words: &[String],
        maker: Option<&SessionShared>,
    ) -> Result<String, Refusal> {
        let arguments = NewArguments::parse(words)?;
        let config = self.config();
        let backend = config.backend(&arguments.backend)?.clone();
        let cwd = arguments
            .cwd
            .unwrap_or_else(|| places::home().display().to_string());
        let cwd = check_directory(&cwd)?;
        let place =
            std::fs::canonicalize(&cwd).map_err(|_| refusal(format!("path does not exist: {cwd}")))?;
        let model = backend.model(arguments.model.as_deref(), arguments.level.as_deref())?;
        let alias = arguments.alias.filter(|alias| !alias.is_empty() && alias != "-");
        if let Some(alias) = &alias {
            self.check_alias(alias, None)?;
        }
        if let Some(role) = &arguments.role
            && !self.library_at(&place).roles.contains_key(role)
        {
            return Err(refusal("role not found"));
        }
        if arguments
            .context
            .as_ref()
            .is_some_and(|context| context.len() > config.limits.context_bytes)
        {
            return Err(refusal("too large"));
        }
        if self.session_count() >= config.limits.sessions {
            return Err(refusal("too many sessions"));
        }
        let broken = |error: std::io::Error| {
            tracing::error!(%error, "session cannot be created");
            Refusal::INTERNAL
        };
        let id = self.new_id().map_err(broken)?;
        let mut record = Record::new(&id, &backend.name, &cwd, now_seconds());
        record.alias.clone_from(&alias);
        record.model = model;
        record.level = arguments.level;
        record.sandbox = arguments.sandbox.unwrap_or_else(|| match maker {
            Some(maker) => maker.with_record(|record| record.sandbox.clone()),
            None => backend.sandbox.clone(),
        });
        record.place = Some(place.clone());
        if let Some(branch) = &arguments.worktree {
            // A session would have git run where it may write.
            if maker.is_some() {
                return Err(Refusal::PERMISSION_DENIED);
            }
            let root = self.places.worktrees().join(&id);
            let branch = Some(branch.as_str()).filter(|branch| !branch.is_empty());
            let name = alias.as_deref().unwrap_or(&id);
            let made = Worktree::create(&place, &root, &id, name, branch, arguments.base.as_deref()).await?;
            let has_it = |worktree: &Worktree| worktree.has_branch_of(&made);
            let is_taken = |session: &Arc<SessionShared>| {
                session.with_record(|record| record.worktree.as_ref().is_some_and(has_it))
            };
            if self.sessions().iter().any(is_taken) {
                drop(made.remove().await);
                return Err(refusal(format!("branch exists: {}", made.branch)));
            }
            let path = made.path();
            record.cwd = path.display().to_string();
            record.place = Some(std::fs::canonicalize(&path).unwrap_or(path));
            record.worktree = Some(made);
        } else if arguments.base.is_some() {
            return Err(refusal("unexpected argument: base without worktree"));
        }
        let made = record.worktree.clone();
        let outcome = self.add_session(record, backend, arguments.role, arguments.context, maker);
        if let (Err(_), Some(made)) = (&outcome, &made) {
            drop(made.remove().await);
        }
        outcome
    }

    /// Everything was checked: the record becomes a session.
    fn add_session(
        self: &Arc<Self>,
        mut record: Record,
        backend: Backend,
        role: Option<String>,
        context: Option<String>,
        maker: Option<&SessionShared>,
    ) -> Result<String, Refusal> {
        let config = self.config();
        let broken = |error: std::io::Error| {
            tracing::error!(%error, "session cannot be created");
            Refusal::INTERNAL
        };
        let (id, alias, cwd) = (record.id.clone(), record.alias.clone(), record.cwd.clone());
        // Time may have passed since it was checked.
        if let Some(alias) = &alias {
            self.check_alias(alias, None)?;
        }
        if let Some(maker) = maker {
            self.check_maker(&maker.record(), &record)?;
            record.parent = Some(maker.id.clone());
        }
        // A sandbox that cannot be made is an error of `new`; nothing exists yet.
        let (_, report) = launch::plan(&config, &self.places, self.kernel, &record, 0, "", false)?;
        record.sandbox_report = report;
        let acl = record
            .parent
            .as_ref()
            .map(|parent| format!("{DEFAULT_ACL}allow session:{parent} rp\n"));
        let shared = self.open_session(record).map_err(broken)?;
        if let Some(text) = acl {
            let acl = Acl::parse(&text, usize::MAX)?;
            files::replace(&shared.0.directory.join("acl"), text.as_bytes()).map_err(broken)?;
            shared.0.change_texts(|texts| texts.acl = acl);
        }
        if let Some(context) = &context {
            files::replace(&shared.0.directory.join("context"), context.as_bytes()).map_err(broken)?;
            shared.0.change_texts(|texts| texts.context.clone_from(context));
        }
        shared.0.save().map_err(broken)?;
        self.open_door(&id).map_err(broken)?;
        self.add(&shared.0);
        let data = json!({"backend": backend.name, "cwd": cwd, "alias": alias});
        self.events.emit(&id, "SessionCreated", data);
        if let Some(role) = &role {
            self.give_role(&shared.0, role)?;
        }
        Task::spawn(Arc::clone(self), shared.0, backend, shared.1, Start::New);
        Ok(id)
    }

    /// A session makes sessions like itself only: anything more would be a way out of its sandbox.
    fn check_maker(&self, maker: &Record, made: &Record) -> Result<(), Refusal> {
        if made.backend != maker.backend || made.sandbox != maker.sandbox {
            return Err(refusal(
                "permission denied: only sessions of the same backend and sandbox",
            ));
        }
        let config = self.config();
        let (launch, _) = launch::plan(&config, &self.places, self.kernel, maker, 0, "", false)?;
        let place = made.place();
        let writable = launch.paths.iter().any(|(path, access)| {
            *access >= Access::Rw
                && std::fs::canonicalize(path).is_ok_and(|granted| place.starts_with(granted))
        });
        if writable {
            Ok(())
        } else {
            Err(refusal(format!(
                "permission denied: {} is not writable for session {}",
                place.display(),
                maker.id
            )))
        }
    }

    fn new_id(&self) -> std::io::Result<String> {
        loop {
            let id = random_hex::<4>()?;
            let exited = self.places.exited();
            let known = self.places.session(&id).exists()
                || exited.join(&id).exists()
                || exited.join(format!("{id}.json")).exists();
            if !known {
                return Ok(id);
            }
        }
    }

    /// Open the files of a session.
    pub(crate) fn open_session(
        &self,
        record: Record,
    ) -> std::io::Result<(
        Arc<SessionShared>,
        tokio::sync::mpsc::UnboundedReceiver<crate::session::shared::Command>,
    )> {
        let config = self.config();
        let directory = self.places.session(&record.id);
        files::make_directory(&directory.join("tmp"))?;
        let output = Output::open(directory.join("output"), config.output.max_bytes)?;
        let chat = Chat::open(directory.join("chat.log"), config.limits.chat_bytes);
        SessionShared::new(directory, record, output, chat)
    }

    /// Remove the copies that ended sessions left without changes; a line for each copy.
    pub(crate) async fn prune_worktrees(&self) -> String {
        let base = self.places.worktrees();
        let mut lines = String::new();
        for id in files::names(&base) {
            if self.session(&id).is_ok() {
                continue;
            }
            let Some(worktree) = Worktree::read(&base.join(&id)) else {
                continue;
            };
            let path = worktree.path().display().to_string();
            let is_clean = worktree.is_clean(&id, &id).await.unwrap_or(false);
            let word = if is_clean && worktree.remove().await.is_ok() {
                "removed"
            } else {
                "kept"
            };
            lines.push_str(&format!("{word} {path}\n"));
        }
        lines
    }

    /// Roles, skills and tools as they are found from a directory.
    pub(crate) fn library_at(&self, directory: &Path) -> Library {
        let root = beamtalk_storage::find_project_root(directory, &self.places.base);
        let root = root.unwrap_or_else(|_| directory.to_owned());
        self.config().library.of_project(&root)
    }

    /// Store a role and mail its text to the session.
    pub(crate) fn give_role(&self, shared: &Arc<SessionShared>, role: &str) -> Result<(), Refusal> {
        let library = self.library_at(&shared.with_record(Record::place));
        let text = library
            .roles
            .get(role)
            .map(|item| item.text.clone())
            .ok_or_else(|| refusal("role not found"))?;
        let old = shared.change_record(|record| record.role.replace(role.to_owned()));
        shared.save().map_err(|_| Refusal::INTERNAL)?;
        self.events
            .emit(&shared.id, "RoleChange", json!({"old": old, "new": role}));
        let draft = Draft {
            to: shared.id.clone(),
            kind: "PROMPT_REQUEST".to_owned(),
            subject: format!("role: {role}"),
            body: text,
            metadata: serde_json::Map::new(),
        };
        self.post(USER, &shared.id, draft)?;
        Ok(())
    }
}
