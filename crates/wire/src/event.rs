//! What the workspace tells its clients without being asked.

use serde_json::{Value, json};

#[derive(Clone, Copy, Debug, Eq, PartialEq, Hash, Ord, PartialOrd)]
pub enum Channel {
    Transcript,
    Actors,
    Classes,
    Bindings,
    Supervision,
    Object,
    ReloadCheck,
    Workspace,
    Logs,
}

impl Channel {
    pub const ALL: [Self; 9] = [
        Self::Transcript,
        Self::Actors,
        Self::Classes,
        Self::Bindings,
        Self::Supervision,
        Self::Object,
        Self::ReloadCheck,
        Self::Workspace,
        Self::Logs,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::Transcript => "transcript",
            Self::Actors => "actors",
            Self::Classes => "classes",
            Self::Bindings => "bindings",
            Self::Supervision => "supervision",
            Self::Object => "object",
            Self::ReloadCheck => "reload_check",
            Self::Workspace => "workspace",
            Self::Logs => "logs",
        }
    }

    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|channel| channel.name() == name)
    }
}

/// Levels of the log, the gravest first.
pub const LOG_LEVELS: [&str; 8] = [
    "emergency",
    "alert",
    "critical",
    "error",
    "warning",
    "notice",
    "info",
    "debug",
];

pub fn push(channel: Channel, event: &str, data: Value) -> Value {
    json!({"type": "push", "channel": channel.name(), "event": event, "data": data})
}
