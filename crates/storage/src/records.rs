//! The records in a workspace's and a daemon's directory, as data. None of them holds a secret.

use std::net::{Ipv4Addr, SocketAddr};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::liveness::{ProcessState, process_state};
use crate::process::signal_probe;

/// `metadata.json`: what is kept of a workspace between starts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Metadata {
    pub workspace_id: String,
    pub project_path: String,
    /// Unix seconds.
    pub created_at: u64,
    /// What was loaded when the workspace last stopped.
    #[serde(default)]
    pub classes: Vec<LoadedClass>,
    #[serde(default)]
    pub settings: Settings,
    #[serde(default)]
    pub capabilities: Capabilities,
    #[serde(default)]
    pub limits: Map<String, Value>,
    /// The other start flags of the last start, for `restart`.
    #[serde(default)]
    pub start: Map<String, Value>,
    /// Somebody stopped it on purpose: what restricted it ended with that.
    #[serde(default)]
    pub stopped: bool,
    /// What another version wrote stays.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Metadata {
    /// The metadata of a workspace that is being created.
    pub fn new(workspace_id: &crate::WorkspaceId, project_path: &str, created_at: u64) -> Self {
        Self {
            workspace_id: workspace_id.to_string(),
            project_path: project_path.to_owned(),
            created_at,
            classes: Vec::new(),
            settings: Settings::default(),
            capabilities: Capabilities::default(),
            limits: Map::new(),
            start: Map::new(),
            stopped: false,
            other: Map::new(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadedClass {
    pub name: String,
    pub source_file: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    #[serde(default)]
    pub autoflush: bool,
}

/// What code in a workspace may reach by way of the standard library. No sandbox.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capabilities {
    pub subprocess: bool,
    pub ffi: bool,
    pub http: bool,
    pub fs: FileAccess,
}

impl Default for Capabilities {
    fn default() -> Self {
        Self {
            subprocess: true,
            ffi: true,
            http: true,
            fs: FileAccess::ReadWrite,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum FileAccess {
    #[serde(rename = "rw")]
    ReadWrite,
    #[serde(rename = "ro")]
    ReadOnly,
}

/// `node.info`: where a running workspace is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeInfo {
    pub workspace_id: String,
    pub pid: u32,
    pub start_time: u64,
    pub node_pid: Option<u32>,
    pub port: u16,
    pub bind_addr: String,
    /// Where clients of this machine come in, without TLS, if that is another listener than the above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub local: Option<SocketAddr>,
    pub tls: bool,
    /// Random for each start; `health` answers the same one.
    pub nonce: String,
    pub session: String,
    pub socket: String,
    /// Unix seconds.
    pub started_at: u64,
    pub protocol: String,
    pub version: String,
    pub capabilities: Capabilities,
}

impl NodeInfo {
    /// Where clients of this machine come in, without TLS.
    pub fn local_address(&self) -> SocketAddr {
        let own = SocketAddr::new(Ipv4Addr::LOCALHOST.into(), self.port);
        self.local.unwrap_or(own)
    }
}

/// `daemon.pid`: whose run directory it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PidRecord {
    pub pid: u32,
    /// When the process started, in the system's own unit; 0 where it cannot be known.
    pub start_time: u64,
    pub workspace_id: String,
}

impl PidRecord {
    /// The record of this very process.
    pub fn of_this_process(workspace_id: &crate::WorkspaceId) -> Self {
        let pid = std::process::id();
        Self {
            pid,
            start_time: crate::process_start_time(pid).unwrap_or(0),
            workspace_id: workspace_id.to_string(),
        }
    }

    /// What has become of the process that wrote the record. Ask before sending it a signal.
    pub fn process_state(&self) -> ProcessState {
        process_state(
            signal_probe(self.pid),
            self.start_time,
            crate::process_start_time(self.pid),
        )
    }
}

/// `port`: the number and the nonce, one line each, for scripts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PortRecord {
    pub port: u16,
    pub nonce: String,
}

impl PortRecord {
    pub(crate) fn to_text(&self) -> String {
        format!("{}\n{}\n", self.port, self.nonce)
    }

    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (port, nonce) = text.split_once('\n')?;
        Some(Self {
            port: port.parse().ok()?,
            nonce: nonce.trim_end_matches('\n').to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{Capabilities, Metadata, NodeInfo, PortRecord};

    #[test]
    fn node_info_reads_the_documented_form() {
        let text = r#"{"workspace_id":"d0dc08b498b6","pid":40211,"start_time":8812345,"node_pid":40219,"port":41873,
            "bind_addr":"127.0.0.1","tls":false,"nonce":"q3T0","session":"shell-39107",
            "socket":"/home/ada/.beamtalk/sessions/shell-39107/daemon.sock","started_at":1767225600,
            "protocol":"1.0","version":"0.1.0","capabilities":{"subprocess":true,"ffi":true,"http":true,"fs":"rw"}}"#;
        let info: NodeInfo = serde_json::from_str(text).unwrap();
        assert_eq!(info.capabilities, Capabilities::default());
        assert_eq!(info.local_address().to_string(), "127.0.0.1:41873");
        let written: serde_json::Value = serde_json::to_value(&info).unwrap();
        assert_eq!(written, serde_json::from_str::<serde_json::Value>(text).unwrap());
    }

    #[test]
    fn metadata_keeps_what_it_does_not_know() {
        let text = r#"{"workspace_id":"x","project_path":"/p","created_at":1,"later":{"a":1}}"#;
        let metadata: Metadata = serde_json::from_str(text).unwrap();
        assert!(
            serde_json::to_string(&metadata)
                .unwrap()
                .contains(r#""later":{"a":1}"#)
        );
    }

    #[test]
    fn a_port_record_is_two_lines() {
        let record = PortRecord {
            port: 41873,
            nonce: "q3T0".to_owned(),
        };
        assert_eq!(record.to_text(), "41873\nq3T0\n");
        assert_eq!(PortRecord::parse("41873\nq3T0\n"), Some(record));
        assert_eq!(PortRecord::parse("41873"), None);
    }
}
