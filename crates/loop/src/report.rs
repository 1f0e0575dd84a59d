//! What the loop tells about itself: the one stream of facts that becomes text, JSON lines, or
//! the announcements of a hosting workspace.

use serde::Serialize;

/// How loud a line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

impl Level {
    /// The level a word names.
    pub fn named(word: &str) -> Option<Self> {
        match word.to_ascii_lowercase().as_str() {
            "error" => Some(Self::Error),
            "warn" => Some(Self::Warn),
            "info" => Some(Self::Info),
            "debug" => Some(Self::Debug),
            "trace" => Some(Self::Trace),
            _ => None,
        }
    }

    pub fn label(self) -> &'static str {
        match self {
            Self::Error => "ERROR",
            Self::Warn => "WARN",
            Self::Info => "INFO",
            Self::Debug => "DEBUG",
            Self::Trace => "TRACE",
        }
    }
}

/// The part of the loop a line comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Part {
    Engine,
    Process,
    Watch,
    Events,
    Browser,
    State,
}

impl Part {
    pub fn label(self) -> &'static str {
        match self {
            Self::Engine => "engine",
            Self::Process => "process",
            Self::Watch => "watch",
            Self::Events => "events",
            Self::Browser => "browser",
            Self::State => "state",
        }
    }
}

/// How a program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Code(i32),
    Signal(i32),
}

impl Exit {
    pub fn is_success(self) -> bool {
        self == Self::Code(0)
    }
}

impl From<std::process::ExitStatus> for Exit {
    fn from(status: std::process::ExitStatus) -> Self {
        use std::os::unix::process::ExitStatusExt;
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Code(code),
            (None, Some(signal)) => Self::Signal(signal),
            (None, None) => Self::Code(-1),
        }
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match *self {
            Self::Code(code) => write!(out, "exit status: {code}"),
            Self::Signal(signal) => write!(out, "signal: {signal} ({})", signal_name(signal)),
        }
    }
}

/// The name of a signal, by the numbers Linux gives them on all common machines.
fn signal_name(signal: i32) -> String {
    const NAMES: [&str; 31] = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE",
        "ALRM", "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ",
        "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ];
    let name = usize::try_from(signal)
        .ok()
        .and_then(|number| NAMES.get(number.checked_sub(1)?));
    name.map_or_else(|| "unknown".to_owned(), |name| format!("SIG{name}"))
}

/// Process ids as a list in a sentence.
pub(crate) fn numbers(ids: &[u32]) -> String {
    let texts: Vec<String> = ids.iter().map(u32::to_string).collect();
    texts.join(", ")
}

/// Whether a line comes from a process or a hook.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ChildKind {
    Process,
    Hook,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stream {
    Stdout,
    Stderr,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum WorkflowPhase {
    Start,
    Ok,
    Failed,
}

/// Who asked for a workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    Startup,
    Watch,
    Event,
    Observe,
    Workspace,
    /// Another workflow, when it ended.
    Trigger,
    /// A step of another workflow.
    Inline,
}

/// The record of one request to an event. It never holds the value or a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Audit {
    pub event: String,
    pub via: &'static str,
    pub by: String,
    pub status: u16,
    pub changed: Option<bool>,
    pub bytes: Option<usize>,
    pub sha256: Option<String>,
    pub workflow: Option<String>,
}

/// One fact.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    Ready {
        config: String,
        root: String,
        events_url: Option<String>,
        browser_url: Option<String>,
    },
    Process {
        name: String,
        state: &'static str,
        pid: Option<u32>,
        exit: Option<Exit>,
    },
    Workflow {
        name: String,
        /// Of the run.
        number: u64,
        phase: WorkflowPhase,
        source: Source,
        changed: Vec<String>,
        /// What led to it, as one line.
        cause: String,
        error: Option<String>,
        ms: Option<u64>,
    },
    Step {
        workflow: String,
        index: usize,
        action: &'static str,
        ms: u64,
        ok: bool,
    },
    Event(Audit),
    Log {
        level: Level,
        part: Part,
        text: String,
    },
    /// A line of a `log` step, shown whatever the level.
    Said {
        text: String,
    },
    Stop {
        reason: String,
        exit: u8,
    },
}

impl Report {
    pub(crate) fn log(level: Level, part: Part, text: impl Into<String>) -> Self {
        Self::Log {
            level,
            part,
            text: text.into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_read_as_documented() {
        assert_eq!(Exit::Code(3).to_string(), "exit status: 3");
        assert_eq!(Exit::Signal(9).to_string(), "signal: 9 (SIGKILL)");
        assert_eq!(Exit::Signal(64).to_string(), "signal: 64 (unknown)");
    }
}
