//! The session record: `info` in the tree, `session.json` on disk.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::core::State;
use crate::worktree::Worktree;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SandboxReport {
    pub(crate) landlock_abi: u32,
    pub(crate) namespaces: Vec<String>,
    pub(crate) missing: Vec<String>,
    /// What is not closed.
    #[serde(default)]
    pub(crate) open: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OutputExtent {
    pub(crate) base: u64,
    pub(crate) end: u64,
}

/// A process, and when it started: numbers are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Process {
    pub(crate) pid: i32,
    pub(crate) start: Option<u64>,
}

/// Everything known about a session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub(crate) id: String,
    pub(crate) backend: String,
    #[serde(default)]
    pub(crate) alias: Option<String>,
    pub(crate) state: String,
    #[serde(default)]
    pub(crate) role: Option<String>,
    #[serde(default)]
    pub(crate) model: Option<String>,
    #[serde(default)]
    pub(crate) level: Option<String>,
    pub(crate) sandbox: String,
    pub(crate) cwd: String,
    #[serde(default)]
    pub(crate) pid: Option<i32>,
    #[serde(default)]
    pub(crate) pid_start: Option<u64>,
    #[serde(default)]
    pub(crate) tmux: String,
    #[serde(default)]
    pub(crate) window: Option<String>,
    pub(crate) created: u64,
    #[serde(default)]
    pub(crate) idle_since: Option<u64>,
    #[serde(default)]
    pub(crate) turns: u64,
    #[serde(default)]
    pub(crate) crashes: u32,
    #[serde(default)]
    pub(crate) last_exit: Option<i32>,
    #[serde(default)]
    pub(crate) last_error: Option<String>,
    #[serde(default)]
    pub(crate) sandbox_report: SandboxReport,
    #[serde(default)]
    pub(crate) output: OutputExtent,
    #[serde(default)]
    pub(crate) inbox: usize,
    /// Where the output of the running turn starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) turn_start: Option<u64>,
    /// Something was typed, and it is not known that it was submitted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_typing: bool,
    /// The working directory without links, as it was when the session was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) place: Option<PathBuf>,
    /// The process in the pane, which watches over the backend or is it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) pane: Option<Process>,
    /// The tmux server the window is in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) server: Option<i32>,
    /// The session that made this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) parent: Option<String>,
    /// What its program calls the conversation, to go on with it later.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) conversation: Option<String>,
    /// The copy of a repository it works in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) worktree: Option<Worktree>,
    #[serde(flatten)]
    pub(crate) unknown: Map<String, Value>,
}

impl Record {
    pub(crate) fn new(id: &str, backend: &str, cwd: &str, created: u64) -> Self {
        Record {
            id: id.to_owned(),
            backend: backend.to_owned(),
            alias: None,
            state: State::Starting.word().to_owned(),
            role: None,
            model: None,
            level: None,
            sandbox: "default".to_owned(),
            cwd: cwd.to_owned(),
            pid: None,
            pid_start: None,
            tmux: format!("agent-{backend}:{id}"),
            window: None,
            created,
            idle_since: None,
            turns: 0,
            crashes: 0,
            last_exit: None,
            last_error: None,
            sandbox_report: SandboxReport::default(),
            output: OutputExtent::default(),
            inbox: 0,
            turn_start: None,
            is_typing: false,
            place: None,
            pane: None,
            server: None,
            parent: None,
            conversation: None,
            worktree: None,
            unknown: Map::new(),
        }
    }

    /// The working directory without links.
    pub(crate) fn place(&self) -> PathBuf {
        let real = || std::fs::canonicalize(&self.cwd).unwrap_or_else(|_| PathBuf::from(&self.cwd));
        self.place.clone().unwrap_or_else(real)
    }

    /// Whether its door can be seen by others, since nothing is mounted for it alone.
    pub(crate) fn lacks_mounts(&self) -> bool {
        !self.sandbox_report.namespaces.iter().any(|name| name == "mount")
    }

    /// The backend and the process in the pane, as far as they are known.
    pub(crate) fn processes(&self) -> Vec<Process> {
        let start = self.pid_start;
        let backend = self.pid.map(|pid| Process { pid, start });
        backend.into_iter().chain(self.pane).collect()
    }

    pub(crate) fn forget_processes(&mut self) {
        self.pid = None;
        self.pid_start = None;
        self.pane = None;
    }

    pub(crate) fn state(&self) -> State {
        State::parse(&self.state).unwrap_or(State::Error)
    }

    pub(crate) fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::Record;

    #[test]
    fn unknown_keys_are_kept() {
        let text = r#"{"id":"5e1fa0c2","backend":"shell","state":"idle","sandbox":"default","cwd":"/srv",
            "created":1,"note":{"by":"ana"}}"#;
        let record: Record = serde_json::from_str(text).unwrap();
        assert!(
            record.to_json().contains(r#""note":{"by":"ana"}"#),
            "{}",
            record.to_json()
        );
    }
}
