//! The session record: `info` in the tree, `session.json` on disk.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::core::State;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct SandboxReport {
    pub(crate) landlock_abi: u32,
    pub(crate) namespaces: Vec<String>,
    pub(crate) missing: Vec<String>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct OutputExtent {
    pub(crate) base: u64,
    pub(crate) end: u64,
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
    /// Digest base: the token itself lives in `launch.json` only.
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
            unknown: Map::new(),
        }
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
