//! How a workspace is started. The flags of the last start are kept for `restart`.

use std::path::PathBuf;

use beamtalk_storage::{Capabilities, FileAccess};
use beamtalk_wire::limits;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct StartOptions {
    pub port: u16,
    /// An address, or `tailscale`.
    pub bind: Option<String>,
    pub confirm_network: bool,
    pub tls: bool,
    pub tls_client_auth: bool,
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    pub insecure_no_tls: bool,
    pub allow_hosts: Vec<String>,
    pub allow_origins: Vec<String>,
    /// `NAME@HOST` of the node, which is distributed then.
    pub cluster: Option<String>,
    /// Nodes of other machines, as `NAME@HOST:PORT`.
    pub cluster_peers: Vec<String>,
    /// Observers may read the variables of other sessions.
    pub observers_see_bindings: bool,
    pub persistent: bool,
    pub idle_timeout_s: u64,
    pub no_load: bool,
    pub no_subprocess: bool,
    pub no_ffi: bool,
    pub no_http: bool,
    pub read_only_fs: bool,
    /// Serve AI clients at `/mcp`.
    pub mcp_http: bool,
    /// How long the variables of an AI client are kept without use.
    pub handle_idle_s: u64,
    /// 0 is no limit.
    pub eval_max_heap_mb: u64,
    /// What the node may take as a whole; 0 is no limit, none half of the machine.
    pub node_max_memory_mb: Option<u64>,
    /// Processes that code of users may have.
    pub max_processes: u64,
    /// Seconds; 0 is no limit.
    pub eval_timeout_s: u64,
    pub audit_text: bool,
    pub audit_required: bool,
    pub log_level: String,
    pub compiler_memory_mb: u64,
    pub compiler_timeout_s: u64,
    /// How many compiler workers at most; 0 chooses by the machine.
    pub compiler_pool: usize,
    pub session_grace_s: u64,
    pub transcript: u64,
    /// What is written to the Transcript goes into no file.
    pub transcript_in_memory: bool,
    /// Entries of the change log that stay in active storage.
    pub changes: usize,
    /// Size of a log file, and how many old ones are kept.
    pub log_max_mb: u64,
    pub log_files: u32,
    pub audit_max_mb: u64,
    pub audit_files: u32,
    /// How long whoever starts the workspace waits for it.
    pub start_timeout_s: u64,
}

impl Default for StartOptions {
    fn default() -> Self {
        Self {
            port: 0,
            bind: None,
            confirm_network: false,
            tls: false,
            tls_client_auth: false,
            certificate: None,
            key: None,
            insecure_no_tls: false,
            allow_hosts: Vec::new(),
            allow_origins: Vec::new(),
            cluster: None,
            cluster_peers: Vec::new(),
            observers_see_bindings: false,
            persistent: false,
            idle_timeout_s: limits::IDLE_STOP.as_secs(),
            no_load: false,
            no_subprocess: false,
            no_ffi: false,
            no_http: false,
            read_only_fs: false,
            mcp_http: false,
            handle_idle_s: limits::HANDLE_IDLE.as_secs(),
            eval_max_heap_mb: limits::EVAL_HEAP_MIB,
            node_max_memory_mb: None,
            max_processes: limits::MAX_PROCESSES,
            eval_timeout_s: 0,
            audit_text: false,
            audit_required: false,
            log_level: "info".to_owned(),
            compiler_memory_mb: limits::COMPILER_MEMORY_MIB,
            compiler_timeout_s: limits::COMPILER_TIME.as_secs(),
            session_grace_s: limits::SESSION_GRACE.as_secs(),
            compiler_pool: 0,
            transcript: 1_000,
            transcript_in_memory: false,
            changes: 1_000,
            log_max_mb: 10,
            log_files: 5,
            audit_max_mb: 10,
            audit_files: 10,
            start_timeout_s: 30,
        }
    }
}

impl StartOptions {
    /// These, restricted as those of the `last` start were.
    #[must_use]
    pub fn restricted_as(mut self, last: &Self) -> Self {
        crate::narrow::keep_restrictions(&mut self, last);
        self
    }

    /// What limits whom; `null` is no limit.
    pub fn limits(&self) -> Value {
        json!({
            "eval_max_heap_mb": self.eval_max_heap_mb,
            "eval_timeout_s": self.eval_timeout_s,
            "node_max_memory_mb": self.node_max_memory_mb,
            "max_processes": self.max_processes,
            "compiler_memory_mb": self.compiler_memory_mb,
            "compiler_timeout_s": self.compiler_timeout_s,
            "idle_timeout_s": if self.persistent { Value::Null } else { self.idle_timeout_s.into() },
        })
    }

    pub fn capabilities(&self) -> Capabilities {
        Capabilities {
            subprocess: !self.no_subprocess,
            ffi: !self.no_ffi,
            http: !self.no_http,
            fs: if self.read_only_fs {
                FileAccess::ReadOnly
            } else {
                FileAccess::ReadWrite
            },
        }
    }
}
