//! What can be recorded. There is no field a secret could go into, and none for unauthenticated
//! input.

use beamtalk_storage::Capabilities;
use serde::Serialize;

/// One record to be.
#[derive(Clone, Debug)]
pub struct Entry {
    pub who: Who,
    pub event: Event,
    /// The number of the record written before the same thing was done.
    pub begin: Option<u64>,
}

/// Who asked; what is not known is left out.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Who {
    /// `127.0.0.1:51022`, `unix:uid=1000`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// `cookie`, `token:NAME`, `browser`, `uid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auth: Option<String>,
}

/// What is kept of a source text; made by [`super::Audit::source`], which knows whether the text
/// itself may be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Source {
    pub(super) sha256: String,
    pub(super) bytes: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) text: Option<String>,
}

impl Source {
    pub fn sha256(&self) -> &str {
        &self.sha256
    }
}

/// How an evaluation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Ok,
    Error,
    Interrupted,
    Limit,
}

/// What happened, with the fields of its type.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Event {
    Start {
        version: String,
        bind: String,
        tls: bool,
        capabilities: Capabilities,
    },
    Stop {
        reason: String,
    },
    Connect {},
    Disconnect {
        code: u16,
        duration_ms: u64,
    },
    AuthOk {
        role: String,
    },
    AuthFail {
        reason: String,
        bytes: usize,
        /// How many failures the record stands for.
        count: u64,
    },
    /// Something is about to be done; what came of it has a record of its own.
    Begin {
        op: String,
        /// The class, file, actor or name it is about.
        #[serde(skip_serializing_if = "Option::is_none")]
        target: Option<String>,
        #[serde(flatten)]
        source: Option<Source>,
    },
    Eval {
        #[serde(flatten)]
        source: Source,
        ms: u64,
        outcome: Outcome,
        #[serde(skip_serializing_if = "Option::is_none")]
        error_kind: Option<String>,
    },
    Load {
        /// `file`, `source`, `project`, `reload`.
        what: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        classes: Vec<String>,
        #[serde(skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    Method {
        class: String,
        selector: String,
        side: String,
        intent: String,
        /// None where a change was undone.
        #[serde(skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    Remove {
        class: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        selector: Option<String>,
    },
    Flush {
        #[serde(skip_serializing_if = "Option::is_none")]
        class: Option<String>,
        files: Vec<String>,
        destructive: bool,
    },
    Kill {
        actor: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        class: Option<String>,
    },
    Test {
        target: String,
        outcome: String,
    },
    Run {
        target: String,
        outcome: String,
    },
    CapabilityDisabled {
        what: String,
        detail: String,
    },
    PolicyDenied {
        what: String,
        detail: String,
    },
    /// A tool was called by an AI client.
    /// A person answered a call that was held.
    Approval {
        id: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
        answer: String,
    },
    /// A document or source of the project was written.
    Doc {
        path: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    /// A file of the loop was written.
    Tree {
        path: String,
        #[serde(skip_serializing_if = "Option::is_none")]
        sha256: Option<String>,
    },
    Mcp {
        /// `owner`, `token:NAME` or `session:ID`.
        principal: String,
        #[serde(flatten)]
        call: Box<beamtalk_wire::requests::McpCall>,
    },
    Limit {
        what: String,
        detail: String,
        /// How many records of the trail were lost.
        #[serde(skip_serializing_if = "Option::is_none")]
        count: Option<u64>,
    },
    Rotate {
        action: String,
    },
    Token {
        action: String,
        name: String,
    },
    Login {
        action: String,
    },
    NodeExit {
        reason: String,
    },
    CompilerKilled {
        reason: String,
    },
}

/// Every type of record there is.
pub const KINDS: &[&str] = &[
    "start",
    "stop",
    "connect",
    "disconnect",
    "auth_ok",
    "auth_fail",
    "begin",
    "eval",
    "load",
    "method",
    "remove",
    "flush",
    "kill",
    "test",
    "run",
    "capability_disabled",
    "policy_denied",
    "doc",
    "tree",
    "mcp",
    "limit",
    "rotate",
    "token",
    "login",
    "node_exit",
    "compiler_killed",
];

impl Event {
    /// The record's `type`.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Start { .. } => "start",
            Self::Stop { .. } => "stop",
            Self::Connect {} => "connect",
            Self::Disconnect { .. } => "disconnect",
            Self::AuthOk { .. } => "auth_ok",
            Self::AuthFail { .. } => "auth_fail",
            Self::Begin { .. } => "begin",
            Self::Eval { .. } => "eval",
            Self::Load { .. } => "load",
            Self::Method { .. } => "method",
            Self::Remove { .. } => "remove",
            Self::Flush { .. } => "flush",
            Self::Kill { .. } => "kill",
            Self::Test { .. } => "test",
            Self::Run { .. } => "run",
            Self::CapabilityDisabled { .. } => "capability_disabled",
            Self::PolicyDenied { .. } => "policy_denied",
            Self::Doc { .. } => "doc",
            Self::Tree { .. } => "tree",
            Self::Mcp { .. } => "mcp",
            Self::Approval { .. } => "approval",
            Self::Limit { .. } => "limit",
            Self::Rotate { .. } => "rotate",
            Self::Token { .. } => "token",
            Self::Login { .. } => "login",
            Self::NodeExit { .. } => "node_exit",
            Self::CompilerKilled { .. } => "compiler_killed",
        }
    }

    /// The event as the doing of `who`.
    pub fn by(self, who: Who) -> Entry {
        Entry {
            who,
            event: self,
            begin: None,
        }
    }
}
