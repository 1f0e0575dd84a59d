//! What a client may do here: policy, toolsets, paths, rights on the loop. Settings of others only narrow.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::confirmation::fingerprint;

/// Which tools may be used at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Policy {
    ReadOnly,
    #[default]
    Edit,
    Full,
}

/// Who made the policy narrower than it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NarrowedBy {
    User,
    Project,
    Token,
    Role,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum LoopRight {
    None,
    #[default]
    Observe,
    Post,
    Control,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Toolset {
    Lean,
    Core,
    Edit,
    Test,
    Loop,
    Agents,
}

/// What a person is asked before, however the client asks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Approval {
    #[default]
    Off,
    /// What loses something.
    Destructive,
    /// Also what writes files or steers the loop.
    Write,
    /// Everything that does not only read.
    Execute,
}

/// How a client comes in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    #[default]
    Stdio,
    Http,
    Door,
}

macro_rules! words {
    ($type:ident $what:literal: $($variant:ident $word:literal,)*) => {
        impl $type {
            pub const WORDS: &[&str] = &[$($word,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)*
                }
            }
        }

        impl FromStr for $type {
            type Err = String;

            fn from_str(word: &str) -> Result<Self, String> {
                match word {
                    $($word => Ok(Self::$variant),)*
                    _ => Err(format!("{} is one of {}", $what, Self::WORDS.join(", "))),
                }
            }
        }

        impl Serialize for $type {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.name())
            }
        }

        impl<'de> Deserialize<'de> for $type {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                let word = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
                word.parse().map_err(serde::de::Error::custom)
            }
        }

        impl fmt::Display for $type {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str(self.name())
            }
        }
    };
}

words! { Policy "a policy": ReadOnly "read-only", Edit "edit", Full "full", }
words! { NarrowedBy "who narrows": User "user", Project "project", Token "token", Role "role", }
words! { LoopRight "a right": None "none", Observe "observe", Post "post", Control "control", }
words! { Toolset "a toolset": Lean "lean", Core "core", Edit "edit", Test "test", Loop "loop", Agents "agents", }
words! { Approval "an approval": Off "off", Destructive "destructive", Write "write", Execute "execute", }
words! { Way "a way": Stdio "stdio", Http "http", Door "door", }

/// What holds for a server, decided when it starts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Settings {
    pub policy: Policy,
    pub narrowed_by: Option<NarrowedBy>,
    pub toolsets: Vec<Toolset>,
    /// The project lists no others.
    pub within: Option<Vec<Toolset>>,
    pub loop_right: LoopRight,
    pub deny_tools: Vec<String>,
    /// Those of them that the project alone denies.
    pub denied_by_project: Vec<String>,
    /// Globs of files that clients may not name.
    pub deny_paths: Vec<String>,
    /// Those of them that the project alone denies.
    pub paths_denied_by_project: Vec<String>,
    pub eval_ceiling: Duration,
    /// How long variables are kept that nobody uses.
    pub session_idle: Duration,
    /// Whether paths may lead out of the project.
    pub allow_outside: bool,
    /// What opens the workspace, for messages.
    pub starts_workspace: bool,
    pub approval: Approval,
    /// How long a person may take.
    pub approval_timeout: Duration,
    pub way: Way,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            policy: Policy::Edit,
            narrowed_by: None,
            toolsets: vec![Toolset::Lean],
            within: None,
            loop_right: LoopRight::Observe,
            deny_tools: Vec::new(),
            denied_by_project: Vec::new(),
            deny_paths: Vec::new(),
            paths_denied_by_project: Vec::new(),
            eval_ceiling: beamtalk_wire::limits::AGENT_EVAL_CEILING,
            session_idle: beamtalk_wire::limits::HANDLE_IDLE,
            allow_outside: false,
            starts_workspace: false,
            approval: Approval::Off,
            approval_timeout: Duration::from_mins(10),
            way: Way::Stdio,
        }
    }
}

impl Settings {
    /// Where the answer to `server/discover` says what holds.
    pub const KEY: &str = "beamtalk/settings";

    /// What holds: the policy, and a name for all of it. Settings that are the same have the same name.
    pub fn told(&self) -> Value {
        let all = serde_json::to_value(self).unwrap_or_default();
        let name = all.as_object().map(fingerprint).unwrap_or_default();
        json!({"policy": self.policy, "sha256": name})
    }

    /// Make the policy narrower, if it is wider.
    pub fn narrow(&mut self, most: Policy, by: NarrowedBy) {
        if most < self.policy {
            self.policy = most;
            self.narrowed_by = Some(by);
        }
    }

    /// Toolsets from a comma list; `all` stands for all of them.
    pub fn parse_toolsets(list: &str) -> Result<Vec<Toolset>, String> {
        let mut found = Vec::new();
        for word in list.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            if word == "all" {
                found.extend([
                    Toolset::Core,
                    Toolset::Edit,
                    Toolset::Test,
                    Toolset::Loop,
                    Toolset::Agents,
                ]);
            } else {
                found.push(word.parse().map_err(|_| {
                    format!(
                        "'{word}' is no toolset; there are {}, all",
                        Toolset::WORDS.join(", ")
                    )
                })?);
            }
        }
        found.sort_unstable();
        found.dedup();
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_policy_only_gets_narrower() {
        let mut settings = Settings {
            policy: Policy::Full,
            ..Settings::default()
        };
        settings.narrow(Policy::Full, NarrowedBy::User);
        assert_eq!(settings.narrowed_by, None);
        settings.narrow(Policy::Edit, NarrowedBy::User);
        settings.narrow(Policy::Full, NarrowedBy::Project);
        assert_eq!(
            (settings.policy, settings.narrowed_by),
            (Policy::Edit, Some(NarrowedBy::User))
        );
    }

    #[test]
    fn toolsets_are_named() {
        assert_eq!(
            Settings::parse_toolsets("test, core"),
            Ok(vec![Toolset::Core, Toolset::Test])
        );
        assert_eq!(Settings::parse_toolsets("all").map(|sets| sets.len()), Ok(5));
        assert!(Settings::parse_toolsets("cor").is_err());
    }
}
