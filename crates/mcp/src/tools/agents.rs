//! Sessions of other agents, their mail, and questions to a person. All act through the agents' file tree with the
//! caller's own level; a refusal is the tree's own word.

mod code;
mod files;
mod image_files;
mod library;
mod mail;
mod people;

use serde_json::Value;

pub(crate) use super::parts::Nothing;
use super::parts::{input, output, passed_on};
use super::{Context, Failure};
use crate::confirmation::Effect;
use crate::data::{Data, Fields};
use crate::host::{Host, HostError, TreeAct, failure};
pub(crate) use code::*;
pub(crate) use files::*;
pub(crate) use image_files::flushed;
pub(crate) use library::*;
pub(crate) use mail::*;
pub(crate) use people::*;

/// How much of an output is shown if nobody says how much.
const TAIL: u64 = 8_192;

impl<H: Host> Context<'_, H> {
    async fn read(&self, path: impl Into<String>) -> Result<String, HostError> {
        self.host.tree(TreeAct::Read(path.into())).await
    }

    async fn write(&self, path: impl Into<String>, text: impl Into<String>) -> Result<(), HostError> {
        let act = TreeAct::Write {
            path: path.into(),
            text: text.into(),
        };
        self.host.tree(act).await.map(drop)
    }

    async fn names(&self, path: impl Into<String>) -> Result<Vec<String>, HostError> {
        let names = self.host.tree(TreeAct::List(path.into())).await?;
        Ok(names.lines().map(str::to_owned).collect())
    }

    /// Who speaks: a session of its own, or the user.
    fn mailbox(&self) -> String {
        let own = self.host.own_session();
        format!("agents/{}", own.as_deref().unwrap_or("user"))
    }
}

fn invalid(path: &str, message: impl Into<String>) -> HostError {
    Box::new(failure("invalid_parameter", message).detail("path", path))
}

/// The name of a session in a path: one element, and none of the fixed ones.
fn session(id: &str) -> Result<String, HostError> {
    let is_plain = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.');
    let is_name = !id.is_empty() && id.len() <= 128 && id.chars().all(is_plain) && !id.starts_with('.');
    if !is_name || matches!(id, "user" | "tokens" | "approvals" | "audit" | "ctl") {
        return Err(invalid(
            "/session_id",
            format!("'{}' is no session", beamtalk_wire::escape(id)),
        ));
    }
    Ok(format!("agents/{id}"))
}

input! {
    ListSessions {
        ;
        /// Only those in this state.
        state: String,
    }
}

output! {
    Sessions {
        sessions: Vec<Fields>,
    }
}

pub(crate) async fn list_sessions<H: Host>(
    context: &Context<'_, H>,
    input: ListSessions,
) -> Result<Sessions, Failure> {
    let listed = context.read("agents/list.json").await?;
    let all: Vec<Value> = serde_json::from_str(&listed).unwrap_or_default();
    let is_wanted = |one: &Value| {
        input
            .state
            .as_ref()
            .is_none_or(|state| one["state"] == state.as_str())
    };
    Ok(Sessions {
        sessions: all.into_iter().filter(is_wanted).map(Fields::new).collect(),
    })
}

input! {
    CreateSession {
        /// A backend of the configuration.
        backend: String,
        /// The directory it works in.
        cwd: String,
        ;
        /// A profile of the sandbox.
        sandbox: String,
        /// The model it uses.
        model: String,
        /// What it may do in the tree.
        level: String,
        /// A second name.
        alias: String,
        /// Text it is given.
        #[cfg_attr(feature = "schema", schemars(length(max = 262_144)))]
        context: String,
        /// Work in a copy of the repository, on a branch of its own.
        worktree: bool,
    }
}

input! {
    SpawnAgent {
        /// A backend of the configuration.
        backend: String,
        /// A role; list_roles names them.
        role: String,
        ;
        /// What it is asked first.
        #[cfg_attr(feature = "schema", schemars(length(max = 262_144)))]
        prompt: String,
        /// The directory it works in; that of the project if absent.
        cwd: String,
        /// A profile of the sandbox.
        sandbox: String,
        /// The model it uses.
        model: String,
        /// What it may do in the tree.
        level: String,
        /// A second name.
        alias: String,
        /// Text it is given.
        #[cfg_attr(feature = "schema", schemars(length(max = 262_144)))]
        context: String,
        /// Work in a copy of the repository, on a branch of its own.
        worktree: bool,
    }
}

passed_on! {
    /// The record of a session.
    Record {
        id: "string",
        backend: "string",
        alias: "string",
        state: "string",
        role: "string",
        model: "string",
        level: "string",
        sandbox: "string",
        sandbox_report: "object",
        cwd: "string",
        place: "string",
        pid: "integer",
        pid_start: "integer",
        tmux: "string",
        window: "string",
        pane: "object",
        server: "integer",
        parent: "string",
        conversation: "string",
        created: "integer",
        idle_since: "integer",
        turn_start: "integer",
        turns: "integer",
        crashes: "integer",
        last_exit: "integer",
        last_error: "string",
        output: "object",
        inbox: "integer",
        worktree: "object",
    }
}

output! {
    Text {
        text: Data,
    }
}

/// A word of a command that cannot end itself.
fn quoted(field: &str, word: &str) -> Result<String, HostError> {
    if word.contains(['\'', '\n', '\r', '\0']) {
        return Err(invalid(
            &format!("/{field}"),
            format!("'{field}' has a letter that cannot be in it"),
        ));
    }
    Ok(format!("'{word}'"))
}

/// The real path of a directory in which a session may work: of the project, as any other path, or where the session works
/// that asks.
async fn working_directory<H: Host>(context: &Context<'_, H>, path: &str) -> Result<String, HostError> {
    let denied = match context.host.directory(path) {
        Ok(directory) => return Ok(directory),
        Err(denied) => denied,
    };
    if let Some(own) = context.host.own_session()
        && let Ok(own) = context.read(format!("agents/{own}/cwd")).await
        && own.trim_end() == path
    {
        return Ok(path.to_owned());
    }
    Err(denied)
}

/// Where a new session works.
pub(crate) async fn directory_of_new<H: Host>(
    context: &Context<'_, H>,
    cwd: Option<&str>,
) -> Result<String, HostError> {
    match (cwd, context.host.own_session()) {
        (None, Some(own)) => {
            let cwd = context.read(format!("agents/{own}/cwd")).await?;
            Ok(cwd.trim_end().to_owned())
        }
        (cwd, _) => working_directory(context, cwd.unwrap_or(".")).await,
    }
}

/// Start what is wanted in a directory that is open to the client.
async fn create<H: Host>(
    context: &Context<'_, H>,
    new: CreateSession,
    role: Option<String>,
) -> Result<String, Failure> {
    let mut line = format!(
        "new {} {}",
        quoted("backend", &new.backend)?,
        quoted("cwd", &new.cwd)?
    );
    for (name, value) in [
        ("sandbox", new.sandbox),
        ("model", new.model),
        ("level", new.level),
        ("alias", new.alias),
        ("role", role),
    ] {
        if let Some(value) = value {
            quoted(name, &value)?;
            line.push_str(&format!(" '{name}={value}'"));
        }
    }
    if new.worktree == Some(true) {
        line.push_str(" worktree");
    }
    context.pace_sessions(1)?;
    let act = TreeAct::Ask {
        path: "agents/ctl".to_owned(),
        text: line,
    };
    let id = context.host.tree(act).await?.trim().to_owned();
    if let Some(text) = new.context {
        context.write(format!("agents/{id}/context"), text).await?;
    }
    Ok(id)
}

async fn record<H: Host>(context: &Context<'_, H>, id: &str) -> Result<Record, Failure> {
    let info = context.read(format!("agents/{id}/info")).await?;
    Ok(Fields::read(&info).into())
}

pub(crate) async fn create_session<H: Host>(
    context: &Context<'_, H>,
    input: CreateSession,
) -> Result<Record, Failure> {
    let cwd = directory_of_new(context, Some(&input.cwd)).await?;
    let id = create(context, CreateSession { cwd, ..input }, None).await?;
    record(context, &id).await
}

pub(crate) async fn spawn_agent<H: Host>(
    context: &Context<'_, H>,
    input: SpawnAgent,
) -> Result<Record, Failure> {
    let new = CreateSession {
        backend: input.backend,
        cwd: directory_of_new(context, input.cwd.as_deref()).await?,
        sandbox: input.sandbox,
        model: input.model,
        level: input.level,
        alias: input.alias,
        context: input.context,
        worktree: input.worktree,
    };
    let id = create(context, new, Some(input.role)).await?;
    if let Some(prompt) = input.prompt {
        hand_over(context, &format!("agents/{id}"), prompt, true).await?;
    }
    record(context, &id).await
}

/// What is done to a session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize, serde::Serialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum SessionCommand {
    #[default]
    Stop,
    Restart,
    Interrupt,
    Refresh,
    Clear,
    Compact,
    Resume,
}

input! {
    ControlSession {
        /// A session's id or alias.
        session_id: String,
        /// What to do.
        command: SessionCommand,
    }
}

output! {
    SessionState {
        state: Data,
    }
}

async fn state<H: Host>(context: &Context<'_, H>, session: &str) -> Result<Data, HostError> {
    Ok(Data::new(context.read(format!("{session}/state")).await?.trim()))
}

pub(crate) async fn control_session<H: Host>(
    context: &Context<'_, H>,
    input: ControlSession,
) -> Result<SessionState, Failure> {
    let place = session(&input.session_id)?;
    let word = serde_json::to_value(input.command).unwrap_or_default();
    context
        .write(format!("{place}/ctl"), word.as_str().unwrap_or_default())
        .await?;
    Ok(SessionState {
        state: state(context, &place).await?,
    })
}

input! {
    KillAgent {
        /// A session's id or alias.
        session_id: String,
        ;
        /// Only `true`, after a person said yes.
        confirm: bool,
    }
}

output! {
    KilledAgent {
        killed: bool,
    }
}

pub(crate) async fn kill_agent<H: Host>(
    context: &Context<'_, H>,
    input: KillAgent,
) -> Result<KilledAgent, Failure> {
    let place = session(&input.session_id)?;
    let now = context.read(format!("{place}/state")).await?;
    let effect = Effect {
        summary: format!(
            "End the agent session {} ({})? Its conversation is over; a worktree with changes stays.",
            input.session_id,
            now.trim()
        ),
        action: format!("End {}", input.session_id),
        ..Effect::default()
    };
    context.confirm(input.confirm, effect)?;
    context.write(format!("{place}/ctl"), "kill").await?;
    Ok(KilledAgent { killed: true })
}

input! {
    PromptSession {
        /// A session's id or alias.
        session_id: String,
        /// What it is asked.
        #[cfg_attr(feature = "schema", schemars(length(max = 262_144)))]
        text: String,
        ;
        /// Wait for the end of its turn and answer what it said.
        wait: bool,
        /// Let it wait for its turn if the session is busy; so if absent.
        queue: bool,
        /// The longest to wait, in seconds; 120 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 3600)))]
        timeout: u64,
    }
}

output! {
    Prompted {
        ;
        /// What it said, if that was waited for.
        output: Data,
        /// The number of the turn that it said it in, or was given it for.
        turn: u64,
        /// How many wait before it, if it waits.
        queued: u64,
    }
}

/// The number of turns a session had.
async fn turns<H: Host>(context: &Context<'_, H>, place: &str) -> Option<u64> {
    let info = context.read(format!("{place}/info")).await.ok()?;
    serde_json::from_str::<Value>(&info).ok()?["turns"].as_u64()
}

/// Whether a session can be prompted, only not now.
fn is_later(refused: &HostError) -> bool {
    matches!(
        refused.message.as_str(),
        "session busy" | "session still starting"
    )
}

/// Hand a prompt over, or let it wait: how many wait before it.
async fn hand_over<H: Host>(
    context: &Context<'_, H>,
    place: &str,
    text: String,
    may_wait: bool,
) -> Result<Option<u64>, HostError> {
    match context.write(format!("{place}/in"), text.clone()).await {
        Err(busy) if may_wait && is_later(&busy) => {
            let waiting = context.read(format!("{place}/queue")).await?;
            context.write(format!("{place}/queue"), text).await?;
            Ok(Some(waiting.lines().count() as u64))
        }
        other => other.map(|()| None),
    }
}

pub(crate) async fn prompt_session<H: Host>(
    context: &Context<'_, H>,
    input: PromptSession,
) -> Result<Prompted, Failure> {
    let place = session(&input.session_id)?;
    let may_wait = input.queue != Some(false);
    if input.wait != Some(true) {
        let queued = hand_over(context, &place, input.text, may_wait).await?;
        let turn = match queued {
            Some(_) => None,
            None => turns(context, &place).await,
        };
        return Ok(Prompted {
            output: None,
            turn,
            queued,
        });
    }
    let act = TreeAct::Ask {
        path: format!("{place}/prompt"),
        text: input.text,
    };
    let limit = std::time::Duration::from_secs(input.timeout.unwrap_or(120));
    let answer = async {
        loop {
            match context.host.tree(act.clone()).await {
                // Its turn comes when the one before has ended.
                Err(busy) if may_wait && is_later(&busy) => {
                    context.read(format!("{place}/wait")).await?;
                }
                other => return other,
            }
        }
    };
    match tokio::time::timeout(limit, answer).await {
        Ok(said) => Ok(Prompted {
            output: Some(Data::new(said?)),
            turn: turns(context, &place).await,
            queued: None,
        }),
        Err(_) => {
            let error = failure(
                "eval_limit",
                format!("its turn did not end within {} s", limit.as_secs()),
            );
            Err(Failure::Error(Box::new(
                error.hint("it goes on; read_output shows what it says"),
            )))
        }
    }
}

input! {
    ReadOutput {
        /// A session's id or alias.
        session_id: String,
        ;
        /// How many of the last bytes; 8192 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 60_000)))]
        tail: u64,
    }
}

output! {
    SessionOutput {
        text: Data,
        state: Data,
    }
}

pub(crate) async fn read_output<H: Host>(
    context: &Context<'_, H>,
    input: ReadOutput,
) -> Result<SessionOutput, Failure> {
    let place = session(&input.session_id)?;
    let text = context.read(format!("{place}/output")).await?;
    let wanted = usize::try_from(input.tail.unwrap_or(TAIL)).unwrap_or(usize::MAX);
    let start = text.ceil_char_boundary(text.len().saturating_sub(wanted));
    Ok(SessionOutput {
        text: Data::new(text.get(start..).unwrap_or_default()),
        state: state(context, &place).await?,
    })
}

input! {
    OfSession {
        /// A session's id or alias.
        session_id: String,
    }
}

output! {
    SessionDiff {
        diff: Data,
        stat: Data,
    }
}

pub(crate) async fn session_diff<H: Host>(
    context: &Context<'_, H>,
    input: OfSession,
) -> Result<SessionDiff, Failure> {
    let place = session(&input.session_id)?;
    Ok(SessionDiff {
        diff: Data::new(context.read(format!("{place}/diff")).await?),
        stat: Data::new(context.read(format!("{place}/diff.stat")).await?),
    })
}

/// What a session says of itself.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub(crate) enum OwnState {
    #[default]
    Running,
    Idle,
}

input! {
    SetState {
        /// The state of the own session.
        state: OwnState,
    }
}

pub(crate) async fn set_state<H: Host>(
    context: &Context<'_, H>,
    input: SetState,
) -> Result<SessionState, Failure> {
    let Some(own) = context.host.own_session() else {
        return Err(failure("agents", "this client is no agent session").into());
    };
    let place = session(&own)?;
    let word = match input.state {
        OwnState::Running => "running",
        OwnState::Idle => "idle",
    };
    context.write(format!("{place}/state"), word).await?;
    Ok(SessionState {
        state: state(context, &place).await?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_are_named_by_one_plain_word() {
        assert!(session("4f2a").is_ok());
        for odd in ["", "a/b", "..", "user", "tokens", "a b", "a\n"] {
            assert!(session(odd).is_err(), "{odd}");
        }
        assert!(quoted("cwd", "/a b").is_ok());
        assert!(quoted("cwd", "a' 'role=x").is_err());
        assert!(quoted("cwd", "a\nnew b").is_err());
    }
}
