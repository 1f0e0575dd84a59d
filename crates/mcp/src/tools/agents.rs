//! Sessions of other agents, their mail, and questions to a person. All act through the agents' file tree with the
//! caller's own level; a refusal is the tree's own word.

use beamtalk_wire::requests;
use serde_json::{Value, json};

pub(crate) use super::parts::Nothing;
use super::parts::{input, output};
use super::{Context, Failure};
use crate::confirmation::Effect;
use crate::data::{AnyData, Data};
use crate::host::{Host, HostError, TreeAct, failure};
use crate::settings::{LoopRight, Policy};

/// How much of an output is shown if nobody says how much.
const TAIL: u64 = 8_192;
/// Messages that are looked through.
const MESSAGES: usize = 200;

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
            format!("'{}' is no session", crate::escape(id)),
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
        sessions: Vec<AnyData>,
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
        sessions: all.into_iter().filter(is_wanted).map(AnyData::new).collect(),
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
        /// The directory it works in.
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
    }
}

output! {
    Record {
        /// The session's record.
        session: AnyData,
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

async fn create<H: Host>(
    context: &Context<'_, H>,
    (backend, cwd): (&str, Option<&str>),
    named: &[(&str, Option<&String>)],
    text: Option<String>,
) -> Result<String, Failure> {
    let mut line = format!("new {}", quoted("backend", backend)?);
    if let Some(cwd) = cwd {
        line.push(' ');
        line.push_str(&quoted("cwd", cwd)?);
    }
    for (name, value) in named {
        if let Some(value) = value {
            quoted(name, value)?;
            line.push_str(&format!(" '{name}={value}'"));
        }
    }
    let act = TreeAct::Ask {
        path: "agents/ctl".to_owned(),
        text: line,
    };
    let id = context.host.tree(act).await?.trim().to_owned();
    if let Some(text) = text {
        context.write(format!("agents/{id}/context"), text).await?;
    }
    Ok(id)
}

async fn record<H: Host>(context: &Context<'_, H>, id: &str) -> Result<Record, Failure> {
    let info = context.read(format!("agents/{id}/info")).await?;
    Ok(Record {
        session: AnyData::new(serde_json::from_str(&info).unwrap_or_else(|_| json!({ "id": id }))),
    })
}

pub(crate) async fn create_session<H: Host>(
    context: &Context<'_, H>,
    input: CreateSession,
) -> Result<Record, Failure> {
    let named = [
        ("sandbox", input.sandbox.as_ref()),
        ("model", input.model.as_ref()),
        ("level", input.level.as_ref()),
        ("alias", input.alias.as_ref()),
    ];
    let id = create(context, (&input.backend, Some(&input.cwd)), &named, input.context).await?;
    record(context, &id).await
}

pub(crate) async fn spawn_agent<H: Host>(
    context: &Context<'_, H>,
    input: SpawnAgent,
) -> Result<Record, Failure> {
    let named = [
        ("sandbox", input.sandbox.as_ref()),
        ("model", input.model.as_ref()),
        ("level", input.level.as_ref()),
        ("alias", input.alias.as_ref()),
        ("role", Some(&input.role)),
    ];
    let id = create(
        context,
        (&input.backend, input.cwd.as_deref()),
        &named,
        input.context,
    )
    .await?;
    if let Some(prompt) = input.prompt {
        context.write(format!("agents/{id}/in"), prompt).await?;
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
        classes: Vec::new(),
        actors: 0,
        files: Vec::new(),
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
        /// The longest to wait, in seconds; 120 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 3600)))]
        timeout: u64,
    }
}

output! {
    Prompted {
        /// Whether it was handed over.
        delivered: bool,
        ;
        /// What it said, if that was waited for.
        output: Data,
    }
}

pub(crate) async fn prompt_session<H: Host>(
    context: &Context<'_, H>,
    input: PromptSession,
) -> Result<Prompted, Failure> {
    let place = session(&input.session_id)?;
    if input.wait != Some(true) {
        context.write(format!("{place}/in"), input.text).await?;
        return Ok(Prompted {
            delivered: true,
            output: None,
        });
    }
    let act = TreeAct::Ask {
        path: format!("{place}/prompt"),
        text: input.text,
    };
    let limit = std::time::Duration::from_secs(input.timeout.unwrap_or(120));
    match tokio::time::timeout(limit, context.host.tree(act)).await {
        Ok(said) => Ok(Prompted {
            delivered: true,
            output: Some(Data::new(said?)),
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

input! {
    SendMessage {
        /// Who gets it: a session, or `user`.
        to: String,
        /// Its kind, such as `PROMPT_REQUEST`.
        r#type: String,
        /// What it is about.
        #[cfg_attr(feature = "schema", schemars(length(max = 200)))]
        subject: String,
        /// Its text.
        #[cfg_attr(feature = "schema", schemars(length(max = 262_144)))]
        body: String,
    }
}

output! {
    Sent {
        sent: bool,
    }
}

pub(crate) async fn send_message<H: Host>(
    context: &Context<'_, H>,
    input: SendMessage,
) -> Result<Sent, Failure> {
    let message = json!({"to": input.to, "type": input.r#type, "subject": input.subject, "body": input.body});
    let place = format!("{}/mail", context.mailbox());
    context.write(place, message.to_string()).await?;
    Ok(Sent { sent: true })
}

input! {
    CheckInbox {
        ;
        /// Put the message aside as handled; so if absent.
        complete: bool,
    }
}

output! {
    Inbox {
        /// How many more there are.
        left: u64,
        ;
        message: AnyData,
    }
}

pub(crate) async fn check_inbox<H: Host>(
    context: &Context<'_, H>,
    input: CheckInbox,
) -> Result<Inbox, Failure> {
    let place = context.mailbox();
    let mut names = context.names(format!("{place}/inbox")).await?;
    names.sort_unstable();
    let Some(first) = names.first() else {
        return Ok(Inbox {
            left: 0,
            message: None,
        });
    };
    let text = context.read(format!("{place}/inbox/{first}")).await?;
    if input.complete != Some(false) {
        let id = first.trim_end_matches(".json");
        context
            .write(format!("{place}/ctl"), format!("complete {id}"))
            .await?;
    }
    Ok(Inbox {
        left: names.len() as u64 - 1,
        message: Some(AnyData::new(serde_json::from_str(&text).unwrap_or_default())),
    })
}

input! {
    MailHistory {
        /// Whose mail: a session, or `user`.
        agent_id: String,
        ;
        /// Only of this day, as 2026-01-31.
        date: String,
        /// Only with this text in it.
        #[cfg_attr(feature = "schema", schemars(length(max = 200)))]
        pattern: String,
    }
}

output! {
    Messages {
        messages: Vec<AnyData>,
    }
}

pub(crate) async fn mail_history<H: Host>(
    context: &Context<'_, H>,
    input: MailHistory,
) -> Result<Messages, Failure> {
    let place = match input.agent_id.as_str() {
        "user" => "agents/user".to_owned(),
        id => session(id)?,
    };
    let mut found = Vec::new();
    for held in ["inbox", "completed"] {
        let mut names = context.names(format!("{place}/{held}")).await?;
        names.sort_unstable();
        for name in names.into_iter().rev().take(MESSAGES) {
            let text = context.read(format!("{place}/{held}/{name}")).await?;
            let is_wanted = input
                .pattern
                .as_ref()
                .is_none_or(|pattern| text.contains(pattern))
                && input.date.as_ref().is_none_or(|date| text.contains(date));
            if is_wanted {
                found.push(AnyData::new(serde_json::from_str(&text).unwrap_or_default()));
            }
        }
    }
    Ok(Messages { messages: found })
}

input! {
    Keyword {
        /// A word of its name or description.
        #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 200)))]
        keyword: String,
    }
}

input! {
    SkillName {
        /// A skill; list_skills names them.
        name: String,
    }
}

output! {
    Item {
        name: String,
        description: Data,
    }
}

output! {
    Items {
        items: Vec<Item>,
    }
}

output! {
    Text {
        text: Data,
    }
}

/// What a page says about itself in its front matter.
fn description(text: &str) -> String {
    let line = text
        .lines()
        .take(30)
        .find_map(|line| line.strip_prefix("description:"));
    line.unwrap_or_default().trim().to_owned()
}

async fn items<H: Host>(context: &Context<'_, H>, place: &str, keyword: &str) -> Result<Items, Failure> {
    let mut found = Vec::new();
    for name in context.names(place).await? {
        let text = context.read(format!("{place}/{name}")).await?;
        let about = description(&text);
        let plain = name.trim_end_matches(".md").to_owned();
        let both = format!("{plain} {about}").to_lowercase();
        if both.contains(&keyword.to_lowercase()) {
            found.push(Item {
                name: plain,
                description: Data::new(about),
            });
        }
    }
    Ok(Items { items: found })
}

pub(crate) async fn list_roles<H: Host>(context: &Context<'_, H>, _: Nothing) -> Result<Items, Failure> {
    items(context, "agents/roles", "").await
}

pub(crate) async fn list_skills<H: Host>(context: &Context<'_, H>, _: Nothing) -> Result<Items, Failure> {
    items(context, "agents/skills", "").await
}

pub(crate) async fn discover_skill<H: Host>(
    context: &Context<'_, H>,
    input: Keyword,
) -> Result<Items, Failure> {
    items(context, "agents/skills", &input.keyword).await
}

pub(crate) async fn load_skill<H: Host>(context: &Context<'_, H>, input: SkillName) -> Result<Text, Failure> {
    if input.name.contains(['/', '\0']) || input.name.starts_with('.') {
        return Err(invalid("/name", "a skill has a plain name").into());
    }
    let text = context.read(format!("agents/skills/{}.md", input.name)).await?;
    Ok(Text {
        text: Data::new(text),
    })
}

input! {
    TreePath {
        /// A path in the tree, such as `agents/list`.
        #[cfg_attr(feature = "schema", schemars(length(max = 1024)))]
        path: String,
    }
}

output! {
    Names {
        names: Vec<Data>,
    }
}

/// A path in the tree: no way up, and none to tokens.
fn place(path: &str) -> Result<String, HostError> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let is_odd = |part: &&str| matches!(*part, "" | "." | "..") || part.contains('\0');
    let is_root = parts == [""];
    if (!is_root && parts.iter().any(is_odd)) || parts.contains(&"tokens") {
        return Err(denied(path));
    }
    Ok(parts.join("/"))
}

fn denied(path: &str) -> HostError {
    let shown = crate::escape(&path.chars().take(200).collect::<String>());
    failure("path_denied", format!("'{shown}' is not open to tools"))
}

pub(crate) async fn list_files<H: Host>(context: &Context<'_, H>, input: TreePath) -> Result<Names, Failure> {
    let names = context.names(place(&input.path)?).await?;
    Ok(Names {
        names: names.iter().map(Data::new).collect(),
    })
}

pub(crate) async fn read_file<H: Host>(context: &Context<'_, H>, input: TreePath) -> Result<Text, Failure> {
    Ok(Text {
        text: Data::new(context.read(place(&input.path)?).await?),
    })
}

input! {
    WriteFile {
        /// A path in the tree.
        #[cfg_attr(feature = "schema", schemars(length(max = 1024)))]
        path: String,
        /// What is written.
        #[cfg_attr(feature = "schema", schemars(length(max = 524_288)))]
        text: String,
    }
}

output! {
    Written {
        written: u64,
    }
}

/// What a write to the tree counts as; what counts as no tool is denied.
fn may_write<H: Host>(context: &Context<'_, H>, path: &str, text: &str) -> Result<(), HostError> {
    let own = context.host.own_session();
    let parts: Vec<&str> = path.split('/').collect();
    let loses = |words: &[&str]| {
        let lines = text
            .lines()
            .map(|line| line.split_whitespace().next().unwrap_or_default());
        lines.into_iter().any(|word| words.contains(&word))
    };
    match parts.as_slice() {
        ["agents", id, "state" | "out" | "mail"] if Some(*id) == own.as_deref() => Ok(()),
        ["agents", "user", "mail"] if own.is_none() => Ok(()),
        ["agents", "ctl"]
        | [
            "agents",
            _,
            "in" | "prompt" | "queue" | "alias" | "context" | "role",
        ] => Ok(()),
        ["agents", _, "ctl"] if loses(&["kill", "discard"]) => full(context, path),
        ["agents", _, "ctl"] => Ok(()),
        ["changes", "ctl"] if loses(&["discard", "clear", "take"]) => full(context, path),
        ["changes", "ctl"] | ["classes", ..] => Ok(()),
        ["loop", "events", _] => context.loop_right(LoopRight::Post),
        _ => Err(denied(path)),
    }
}

fn full<H: Host>(context: &Context<'_, H>, path: &str) -> Result<(), HostError> {
    if context.settings.policy == Policy::Full {
        return Ok(());
    }
    let message = format!(
        "the policy '{}' does not allow this line in '{path}'",
        context.settings.policy
    );
    Err(Box::new(
        failure("policy_denied", message).detail("policy", context.settings.policy.name()),
    ))
}

pub(crate) async fn write_file<H: Host>(
    context: &Context<'_, H>,
    input: WriteFile,
) -> Result<Written, Failure> {
    let path = place(&input.path)?;
    may_write(context, &path, &input.text)?;
    let written = input.text.len() as u64;
    context.write(path, input.text).await?;
    Ok(Written { written })
}

output! {
    HeldCall {
        id: String,
        tool: String,
        summary: Data,
        /// Unix seconds.
        asked: u64,
        expires: u64,
        state: String,
    }
}

output! {
    HeldCalls {
        approvals: Vec<HeldCall>,
    }
}

pub(crate) async fn list_approvals<H: Host>(
    context: &Context<'_, H>,
    _: Nothing,
) -> Result<HeldCalls, Failure> {
    let found = context
        .ask(&requests::Approvals::default())
        .await?
        .answer
        .approvals;
    let one = |held: beamtalk_wire::answers::Approval| HeldCall {
        id: held.id,
        tool: held.tool,
        summary: Data::new(held.summary),
        asked: held.asked,
        expires: held.expires,
        state: "waiting".to_owned(),
    };
    Ok(HeldCalls {
        approvals: found.into_iter().map(one).collect(),
    })
}

input! {
    AskPerson {
        /// What to ask.
        #[cfg_attr(feature = "schema", schemars(length(min = 1, max = 4096)))]
        question: String,
        ;
        /// Answers to choose from.
        #[cfg_attr(feature = "schema", schemars(length(max = 6)))]
        choices: Vec<String>,
        /// How long to wait, in seconds; 600 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 3600)))]
        timeout: u64,
    }
}

output! {
    PersonSaid {
        /// Nobody answered in time.
        no_answer: bool,
        ;
        /// `approve`, `reject`, or their words.
        answer: Data,
        note: Data,
    }
}

pub(crate) async fn ask_person<H: Host>(
    context: &Context<'_, H>,
    input: AskPerson,
) -> Result<PersonSaid, Failure> {
    let choices = input.choices.unwrap_or_default();
    let mut text = crate::escape(&input.question);
    for choice in &choices {
        text.push_str("\n- ");
        text.push_str(&crate::escape(choice));
    }
    context.progress.wait(Some("waiting for a person".to_owned()));
    let request = requests::ApprovalAsk {
        tool: "ask_person".to_owned(),
        summary: "A question to you".to_owned(),
        text,
        effect: None,
        diff: None,
        timeout_s: Some(input.timeout.unwrap_or(600)),
        may_be_rule: Some(false),
    };
    let said = context.ask(&request).await;
    context.progress.wait(None);
    let said = said?.answer;
    Ok(match said.answer.as_str() {
        "no answer" => PersonSaid {
            no_answer: true,
            answer: None,
            note: None,
        },
        "text" => PersonSaid {
            no_answer: false,
            answer: said.text.map(Data::new),
            note: None,
        },
        word => PersonSaid {
            no_answer: false,
            answer: Some(Data::new(word)),
            note: said.text.map(Data::new),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_tree_and_away_from_tokens() {
        assert_eq!(place("/agents/list").ok().as_deref(), Some("agents/list"));
        assert_eq!(place("").ok().as_deref(), Some(""));
        for odd in ["agents/../tokens", "agents/tokens", "tokens", "a//b", "./a"] {
            assert_eq!(
                place(odd)
                    .err()
                    .map(|error| error.kind.name().to_owned())
                    .as_deref(),
                Some("path_denied"),
                "{odd}"
            );
        }
    }

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
