//! Who is at the other end.

use serde::{Deserialize, Serialize};

use crate::Access;

#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    Owner,
    /// May look, not touch.
    Observer,
}

impl Role {
    pub fn name(self) -> &'static str {
        match self {
            Self::Owner => "owner",
            Self::Observer => "observer",
        }
    }

    pub fn may(self, access: Access) -> bool {
        match self {
            Self::Owner => true,
            Self::Observer => access == Access::Read,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ClientKind {
    Repl,
    Mcp,
    Lsp,
    Browser,
    Ide,
    Attach,
    /// The files of the agents' daemon, opened by its owner.
    Files,
    /// The same, opened by one of its sessions.
    Agent,
    Unknown,
}

impl ClientKind {
    pub fn from_name(name: &str) -> Self {
        match name {
            "repl" => Self::Repl,
            "mcp" => Self::Mcp,
            "lsp" => Self::Lsp,
            "browser" => Self::Browser,
            "ide" => Self::Ide,
            "attach" => Self::Attach,
            "files" => Self::Files,
            "agent" => Self::Agent,
            _ => Self::Unknown,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Repl => "repl",
            Self::Mcp => "mcp",
            Self::Lsp => "lsp",
            Self::Browser => "browser",
            Self::Ide => "ide",
            Self::Attach => "attach",
            Self::Files => "files",
            Self::Agent => "agent",
            Self::Unknown => "unknown",
        }
    }

    /// Evaluations for these have a time limit from the start.
    pub fn is_agent(self) -> bool {
        matches!(self, Self::Mcp | Self::Lsp | Self::Agent)
    }
}
