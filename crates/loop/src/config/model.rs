//! The config as data, defaults filled in.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

/// A decoded `devloop.toml`.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file itself, absolute.
    pub file: PathBuf,
    pub root: PathBuf,
    pub debounce_ms: u64,
    pub debounce_mode: DebounceMode,
    /// Apply a valid config when the file is edited.
    pub reload_config: bool,
    pub state_file: PathBuf,
    pub startup_workflows: Vec<String>,
    pub ignore: Vec<String>,
    pub watcher: Watcher,
    pub watch: BTreeMap<String, WatchGroup>,
    pub process: BTreeMap<String, Process>,
    pub hook: BTreeMap<String, Hook>,
    pub event_server: EventServer,
    pub browser_reload_server: ReloadServer,
    pub event: BTreeMap<String, EventDeclaration>,
    pub workflow: BTreeMap<String, Workflow>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatcherKind {
    Native,
    Poll,
}

#[derive(Clone, Debug)]
pub struct Watcher {
    pub kind: WatcherKind,
    pub poll_interval_ms: u64,
}

/// When a window of changes closes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DebounceMode {
    /// A fixed time after its first change.
    #[default]
    Window,
    /// After a time without changes, or ten times that.
    Quiet,
}

/// What changes do to the very workflow that is running.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnBusy {
    Queue,
    Restart,
}

#[derive(Clone, Debug)]
pub struct WatchGroup {
    pub paths: Vec<String>,
    pub workflow: String,
    pub ignore: Vec<String>,
    /// Honour `.gitignore` and `.ignore`.
    pub ignore_files: bool,
    pub on_busy: OnBusy,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub command: Vec<String>,
    pub cwd: Option<PathBuf>,
    pub autostart: bool,
    pub restart: Restart,
    pub env: BTreeMap<String, String>,
    pub readiness: Option<Probe>,
    pub liveness: Option<Probe>,
    pub output: Output,
    /// The events the child may post; absent means all, by the token of the run.
    pub events: Option<Vec<String>>,
    pub stop_signal: StopSignal,
    pub stop_grace_ms: u64,
    pub backoff: Backoff,
    /// Started when these are ready, stopped before them.
    pub after: Vec<String>,
    /// Where its output is kept; relative to root.
    pub log: Option<PathBuf>,
    /// It outlives the loop.
    pub detached: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    Never,
    OnFailure,
    Always,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StopSignal {
    Term,
    Int,
    Quit,
    Hup,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    pub initial_ms: u64,
    pub max_ms: u64,
    pub reset_after_ms: u64,
}

impl Default for Backoff {
    fn default() -> Self {
        Self {
            initial_ms: 500,
            max_ms: 30_000,
            reset_after_ms: 10_000,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProbeTarget {
    Http(String),
    StateKey(String),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    pub target: ProbeTarget,
    pub interval_ms: u64,
    pub timeout_ms: u64,
    pub failures: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyStyle {
    Plain,
    Dim,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    pub inherit: bool,
    pub body_style: BodyStyle,
    pub rules: Vec<Rule>,
}

impl Output {
    pub(crate) fn new(body_style: BodyStyle) -> Self {
        Self {
            inherit: true,
            body_style,
            rules: Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extract {
    Regex,
    UrlToken,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    pub state_key: String,
    pub extract: Extract,
    pub pattern: Option<String>,
    pub capture_group: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capture {
    Ignore,
    Text,
    Json,
}

#[derive(Clone, Debug)]
pub struct Hook {
    pub command: Vec<String>,
    pub cwd: Option<PathBuf>,
    pub env: BTreeMap<String, String>,
    pub output: Output,
    pub capture: Capture,
    pub state_key: Option<String>,
    pub observe: Option<Observe>,
    pub events: Option<Vec<String>>,
    pub timeout_ms: Option<u64>,
    /// A poll that brings what the last one brought is not shown.
    pub quiet_polls: bool,
    /// What it leaves behind outlives it.
    pub detached: bool,
}

#[derive(Clone, Debug)]
pub struct Observe {
    pub workflow: String,
    pub interval_ms: u64,
}

#[derive(Clone, Debug)]
pub struct EventServer {
    pub bind: String,
    pub allow_origins: Vec<String>,
}

#[derive(Clone, Debug)]
pub struct ReloadServer {
    pub bind: String,
}

impl EventServer {
    /// The address to bind; none when the text is not `IP:PORT`.
    pub fn address(&self) -> Option<SocketAddr> {
        self.bind.parse().ok()
    }
}

impl ReloadServer {
    /// The address to bind; none when the text is not `IP:PORT`.
    pub fn address(&self) -> Option<SocketAddr> {
        self.bind.parse().ok()
    }
}

#[derive(Clone, Debug)]
pub struct EventDeclaration {
    pub state_key: String,
    pub workflow: String,
    pub pattern: Option<String>,
    pub max_per_second: u64,
}

#[derive(Clone, Debug)]
pub struct Workflow {
    pub steps: Vec<Step>,
    pub triggers: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStyle {
    Plain,
    Boxed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    StartProcess(String),
    StopProcess(String),
    RestartProcess(String),
    WaitForProcess(String),
    RunHook(String),
    RunWorkflow(String),
    SleepMs(u64),
    WriteState { key: String, value: String },
    Log { message: String, style: LogStyle },
    NotifyReload,
}

impl Step {
    /// The name of the action, as the config writes it.
    pub fn action(&self) -> &'static str {
        match self {
            Self::StartProcess(_) => "start_process",
            Self::StopProcess(_) => "stop_process",
            Self::RestartProcess(_) => "restart_process",
            Self::WaitForProcess(_) => "wait_for_process",
            Self::RunHook(_) => "run_hook",
            Self::RunWorkflow(_) => "run_workflow",
            Self::SleepMs(_) => "sleep_ms",
            Self::WriteState { .. } => "write_state",
            Self::Log { .. } => "log",
            Self::NotifyReload => "notify_reload",
        }
    }

    /// The process, hook, workflow or key the step is about.
    pub fn target(&self) -> Option<&str> {
        match self {
            Self::StartProcess(name)
            | Self::StopProcess(name)
            | Self::RestartProcess(name)
            | Self::WaitForProcess(name)
            | Self::RunHook(name)
            | Self::RunWorkflow(name) => Some(name),
            Self::WriteState { key, .. } => Some(key),
            Self::SleepMs(_) | Self::Log { .. } | Self::NotifyReload => None,
        }
    }
}

impl Config {
    /// Whether the reload server is needed: some workflow tells browsers to reload.
    pub fn uses_reload(&self) -> bool {
        self.workflow
            .values()
            .any(|workflow| workflow.steps.contains(&Step::NotifyReload))
    }
}

/// The environment variable that carries the address of an event.
pub fn event_variable(name: &str) -> String {
    let middle: String = name
        .chars()
        .map(|letter| {
            if letter.is_ascii_alphanumeric() {
                letter.to_ascii_uppercase()
            } else {
                '_'
            }
        })
        .collect();
    format!("DEVLOOP_EVENT_{middle}_URL")
}
