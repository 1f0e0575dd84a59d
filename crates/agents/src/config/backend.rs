//! A backend: the recipe for a command to run in a session.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use beamtalk_ninep::Refusal;
use beamtalk_process::is_executable;
use regex::Regex;
use serde::Deserialize;

use super::Templates;
use super::layers::{Advanced, Filesystem, General, Layer, Namespaces, Network};
use crate::error::refusal;
use crate::places::{Places, own_program};

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Ready {
    #[default]
    Quiet,
    Regex,
    Hook,
    Immediate,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum IdleMode {
    #[default]
    Quiet,
    Regex,
    Hook,
    Mail,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum RestartPolicy {
    #[default]
    OnFailure,
    Always,
    Never,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ContextRule {
    #[default]
    Every,
    First,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Deliver {
    #[default]
    Nudge,
    Body,
    Off,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
enum SlashKey {
    Word(String),
    List(Vec<String>),
    #[default]
    Absent,
}

/// What happens to prompts that start with `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Slash {
    Pass,
    Block,
    Only(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub(crate) enum KeyStep {
    Key { key: String },
    Wait { wait_ms: u64 },
    Text(String),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DialogKeys {
    #[serde(rename = "match")]
    pattern: String,
    keys: Vec<String>,
    #[serde(default = "yes")]
    once: bool,
}

fn yes() -> bool {
    true
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct StartKeys {
    ready: Ready,
    min_bytes: u64,
    quiet_ms: u64,
    regex: Option<String>,
    timeout_ms: u64,
    error_patterns: Vec<String>,
    dialogs: Vec<DialogKeys>,
}

impl Default for StartKeys {
    fn default() -> Self {
        StartKeys {
            ready: Ready::Quiet,
            min_bytes: 1,
            quiet_ms: 300,
            regex: None,
            timeout_ms: 30_000,
            error_patterns: Vec::new(),
            dialogs: Vec::new(),
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct IdleKeys {
    mode: IdleMode,
    min_bytes: u64,
    quiet_ms: u64,
    busy_children: bool,
    regex: Option<String>,
    max_running_ms: u64,
}

impl Default for IdleKeys {
    fn default() -> Self {
        IdleKeys {
            mode: IdleMode::Quiet,
            min_bytes: 1,
            quiet_ms: 300,
            busy_children: false,
            regex: None,
            max_running_ms: 0,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct PromptKeys {
    erase: Vec<String>,
    submit: Vec<String>,
    submit_delay_ms: u64,
    max_bytes: usize,
    context: ContextRule,
    slash: SlashKey,
}

impl Default for PromptKeys {
    fn default() -> Self {
        PromptKeys {
            erase: vec!["C-u".to_owned()],
            submit: vec!["Enter".to_owned()],
            submit_delay_ms: 200,
            max_bytes: 262_144,
            context: ContextRule::Every,
            slash: SlashKey::Absent,
        }
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct KeySequences {
    clear: Vec<KeyStep>,
    compact: Vec<KeyStep>,
    resume: Vec<KeyStep>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RestartKeys {
    pub(crate) policy: RestartPolicy,
    pub(crate) delay_ms: u64,
    pub(crate) max: u32,
    pub(crate) window_ms: u64,
    #[serde(rename = "continue")]
    pub(crate) continues: bool,
}

impl Default for RestartKeys {
    fn default() -> Self {
        RestartKeys {
            policy: RestartPolicy::OnFailure,
            delay_ms: 5000,
            max: 5,
            window_ms: 600_000,
            continues: true,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct MailRule {
    pub(crate) deliver: Deliver,
    pub(crate) idle_ms: u64,
}

impl Default for MailRule {
    fn default() -> Self {
        MailRule {
            deliver: Deliver::Nudge,
            idle_ms: 5000,
        }
    }
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Size {
    pub(crate) rows: u16,
    pub(crate) cols: u16,
}

impl Default for Size {
    fn default() -> Self {
        Size { rows: 40, cols: 120 }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum WorkspaceRight {
    None,
    #[default]
    Read,
    Write,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum LoopRight {
    None,
    #[default]
    Observe,
    Post,
    Control,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ApprovalKeys {
    pattern: String,
    #[serde(default)]
    approve: Vec<KeyStep>,
    #[serde(default)]
    reject: Vec<KeyStep>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UsageKeys {
    pattern: Option<String>,
    /// The program tells by the hook `usage`.
    #[serde(default)]
    hook: bool,
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ConversationKeys {
    pattern: Option<String>,
    file: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct BackendFile {
    name: Option<String>,
    #[serde(default)]
    description: String,
    command: Vec<String>,
    #[serde(default)]
    resume_args: Vec<String>,
    #[serde(default)]
    model_args: Vec<String>,
    #[serde(default)]
    models: BTreeMap<String, String>,
    default_model: Option<String>,
    #[serde(default)]
    environment: BTreeMap<String, String>,
    #[serde(default)]
    size: Size,
    #[serde(default)]
    start: StartKeys,
    #[serde(default)]
    idle: IdleKeys,
    #[serde(default)]
    prompt: PromptKeys,
    #[serde(default)]
    keys: KeySequences,
    #[serde(default)]
    restart: RestartKeys,
    #[serde(default)]
    mail: MailRule,
    #[serde(default)]
    workspace: WorkspaceRight,
    #[serde(default, rename = "loop")]
    loop_right: LoopRight,
    #[serde(default)]
    may_spawn: bool,
    sandbox: Option<String>,
    #[serde(default)]
    filesystem: Filesystem,
    #[serde(default)]
    network: Network,
    #[serde(default)]
    env: Vec<String>,
    #[serde(default)]
    namespaces: Namespaces,
    #[serde(default)]
    advanced: Advanced,
    best_effort: Option<bool>,
    approval: Option<ApprovalKeys>,
    usage: Option<UsageKeys>,
    #[serde(default)]
    conversation: ConversationKeys,
}

/// An answer to a question a program asks at startup.
#[derive(Clone, Debug)]
pub(crate) struct Dialog {
    pub(crate) pattern: Regex,
    pub(crate) keys: Vec<String>,
    pub(crate) once: bool,
}

/// A backend, checked.
#[derive(Clone, Debug)]
pub struct Backend {
    pub name: String,
    pub description: String,
    pub(crate) command: Vec<String>,
    pub(crate) resume_args: Vec<String>,
    pub(crate) model_args: Vec<String>,
    models: BTreeMap<String, String>,
    default_model: Option<String>,
    pub(crate) environment: BTreeMap<String, String>,
    pub(crate) size: Size,
    pub(crate) ready: Ready,
    pub(crate) ready_min_bytes: u64,
    pub(crate) ready_quiet_ms: u64,
    pub(crate) ready_regex: Option<Regex>,
    pub(crate) start_timeout_ms: u64,
    pub(crate) error_patterns: Vec<Regex>,
    pub(crate) dialogs: Vec<Dialog>,
    pub(crate) idle: IdleMode,
    pub(crate) idle_min_bytes: u64,
    pub(crate) idle_quiet_ms: u64,
    pub(crate) busy_children: bool,
    pub(crate) idle_regex: Option<Regex>,
    pub(crate) max_running_ms: u64,
    /// Keys that empty the line in which a prompt is typed.
    pub(crate) erase: Vec<String>,
    pub(crate) submit: Vec<String>,
    pub(crate) submit_delay_ms: u64,
    pub(crate) prompt_bytes: usize,
    pub(crate) context: ContextRule,
    pub(crate) slash: Slash,
    pub(crate) clear: Vec<KeyStep>,
    pub(crate) compact: Vec<KeyStep>,
    pub(crate) resume: Vec<KeyStep>,
    pub(crate) restart: RestartKeys,
    pub(crate) mail: MailRule,
    pub(crate) workspace: WorkspaceRight,
    pub(crate) loop_right: LoopRight,
    pub(crate) may_spawn: bool,
    pub(crate) sandbox: String,
    pub(crate) layer: Layer,
    pub(crate) best_effort: Option<bool>,
    /// How a question of the program looks.
    pub(crate) approval: Option<Regex>,
    /// The keys that answer it.
    pub(crate) approve: Vec<KeyStep>,
    pub(crate) reject: Vec<KeyStep>,
    /// How the program reports what a turn used.
    pub(crate) usage: Option<Regex>,
    pub(crate) usage_by_hook: bool,
    /// How the program tells the id of its conversation, and the file it writes it to.
    pub(crate) conversation: Option<Regex>,
    pub(crate) conversation_file: Option<String>,
}

pub(super) fn is_backend_name(name: &str) -> bool {
    name.len() <= 32
        && name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}

impl Backend {
    pub(super) fn parse(path: &Path, stem: &str, text: &str) -> Result<Self, String> {
        let file: BackendFile = super::parse(path, text)?;
        let fail = |reason: String| format!("{}: {reason}", path.display());
        if file.name.as_deref().is_some_and(|name| name != stem) {
            return Err(fail("name: must equal the file name".to_owned()));
        }
        if file.command.is_empty() {
            return Err(fail("command: must not be empty".to_owned()));
        }
        let regex = |key: &str, text: &str| {
            Regex::new(text).map_err(|error| {
                // After a picture of the expression, which the file shows too.
                let text = error.to_string();
                let reason = text.lines().last().unwrap_or_default();
                fail(format!(
                    "{key}: {}",
                    reason.strip_prefix("error: ").unwrap_or(reason)
                ))
            })
        };
        let optional =
            |key: &str, text: &Option<String>| text.as_deref().map(|text| regex(key, text)).transpose();
        let ready_regex = optional("start.regex", &file.start.regex)?;
        let idle_regex = optional("idle.regex", &file.idle.regex)?;
        if file.start.ready == Ready::Regex && ready_regex.is_none() {
            return Err(fail("start.regex: needed for ready: regex".to_owned()));
        }
        if file.idle.mode == IdleMode::Regex && idle_regex.is_none() {
            return Err(fail("idle.regex: needed for mode: regex".to_owned()));
        }
        let approval = match &file.approval {
            Some(keys) => Some(regex("approval.pattern", &keys.pattern)?),
            None => None,
        };
        let keys_of = |of: fn(&ApprovalKeys) -> &Vec<KeyStep>| {
            file.approval
                .as_ref()
                .map_or_else(Vec::new, |keys| of(keys).clone())
        };
        let usage = match &file.usage {
            Some(keys) => optional("usage.pattern", &keys.pattern)?,
            None => None,
        };
        let usage_by_hook = file.usage.as_ref().is_some_and(|keys| keys.hook);
        let conversation = optional("conversation.pattern", &file.conversation.pattern)?;
        let slash = match file.prompt.slash {
            SlashKey::Absent => Slash::Pass,
            SlashKey::Word(word) if word == "pass" => Slash::Pass,
            SlashKey::Word(word) if word == "block" => Slash::Block,
            SlashKey::Word(_) => return Err(fail("prompt.slash: pass, block or a list".to_owned())),
            SlashKey::List(list) => Slash::Only(list),
        };
        let dialogs = file.start.dialogs.iter().map(|dialog| {
            let pattern = regex("start.dialogs", &dialog.pattern)?;
            Ok(Dialog {
                pattern,
                keys: dialog.keys.clone(),
                once: dialog.once,
            })
        });
        Ok(Backend {
            name: stem.to_owned(),
            description: file.description,
            command: file.command,
            resume_args: file.resume_args,
            model_args: file.model_args,
            models: file.models,
            default_model: file.default_model,
            environment: file.environment,
            size: file.size,
            ready: file.start.ready,
            ready_min_bytes: file.start.min_bytes,
            ready_quiet_ms: file.start.quiet_ms,
            ready_regex,
            start_timeout_ms: file.start.timeout_ms,
            error_patterns: file
                .start
                .error_patterns
                .iter()
                .map(|text| regex("start.error_patterns", text))
                .collect::<Result<_, _>>()?,
            dialogs: dialogs.collect::<Result<_, String>>()?,
            idle: file.idle.mode,
            idle_min_bytes: file.idle.min_bytes,
            idle_quiet_ms: file.idle.quiet_ms,
            busy_children: file.idle.busy_children,
            idle_regex,
            max_running_ms: file.idle.max_running_ms,
            erase: file.prompt.erase,
            submit: file.prompt.submit,
            submit_delay_ms: file.prompt.submit_delay_ms,
            prompt_bytes: file.prompt.max_bytes,
            context: file.prompt.context,
            slash,
            clear: file.keys.clear,
            compact: file.keys.compact,
            resume: file.keys.resume,
            restart: file.restart,
            mail: file.mail,
            workspace: file.workspace,
            loop_right: file.loop_right,
            may_spawn: file.may_spawn,
            sandbox: file.sandbox.unwrap_or_else(|| "default".to_owned()),
            layer: Layer {
                general: General::default(),
                filesystem: file.filesystem,
                network: file.network,
                env: file.env,
                namespaces: file.namespaces,
                advanced: file.advanced,
            },
            best_effort: file.best_effort,
            approval,
            approve: keys_of(|keys| &keys.approve),
            reject: keys_of(|keys| &keys.reject),
            usage,
            usage_by_hook,
            conversation,
            conversation_file: file.conversation.file,
        })
    }

    /// Whether the command is our own driver.
    pub(crate) fn is_built_in(&self) -> bool {
        self.command.first().is_some_and(|word| word == "{SELF}")
    }

    pub(crate) fn is_ready(&self) -> bool {
        let nowhere = Places::of(Path::new("/"));
        self.program(&Templates::new(&nowhere, "", "/", Some(""))).is_ok()
    }

    /// The file the command names.
    pub(crate) fn program(&self, templates: &Templates) -> Result<PathBuf, Refusal> {
        if self.is_built_in() {
            return own_program().map_err(|_| refusal("backend command not found: beamtalk"));
        }
        let command = templates.require(self.command.first().map(String::as_str).unwrap_or_default())?;
        find_program(&command).ok_or_else(|| refusal(format!("backend command not found: {command}")))
    }

    /// The model for the arguments of `new`.
    pub(crate) fn model(&self, model: Option<&str>, level: Option<&str>) -> Result<Option<String>, Refusal> {
        const LEVELS: [&str; 3] = ["low", "standard", "high"];
        if let Some(word) = level
            && !LEVELS.contains(&word)
        {
            return Err(refusal(format!(
                "invalid level: {word} (must be one of: low, standard, high)"
            )));
        }
        if let Some(model) = model {
            return Ok(Some(model.to_owned()));
        }
        let Some(level) = level else {
            return Ok(self.default_model.clone());
        };
        let at = LEVELS.iter().position(|word| *word == level).unwrap_or(0);
        let lower = LEVELS.iter().take(at + 1).rev();
        let higher = LEVELS.iter().skip(at + 1);
        let found = lower
            .chain(higher)
            .find_map(|word| self.models.get(*word).cloned());
        Ok(found.or_else(|| self.default_model.clone()))
    }
}

/// A program by path or on `PATH`.
fn find_program(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH");
    let found = beamtalk_process::find_program(name, Path::new(""), path.as_deref()).ok()?;
    is_executable(&found).then_some(found)
}
