//! One change of the change log, as it is stored and shown.

use serde::{Deserialize, Serialize};

use crate::ErrorBody;

/// What was changed. `Instance` and `Class` are methods that were added or replaced on that side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "kebab-case")]
pub enum ChangeKind {
    Instance,
    Class,
    NewClass,
    RemoveMethod,
    RemoveClass,
    /// Written by a version that knows more kinds.
    #[serde(other)]
    Unknown,
}

impl ChangeKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Class => "class",
            Self::NewClass => "new-class",
            Self::RemoveMethod => "remove-method",
            Self::RemoveClass => "remove-class",
            Self::Unknown => "unknown",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Side {
    #[default]
    Instance,
    Class,
}

impl Side {
    pub fn name(self) -> &'static str {
        match self {
            Self::Instance => "instance",
            Self::Class => "class",
        }
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Intent {
    #[default]
    Durable,
    Ephemeral,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum AuthorKind {
    #[default]
    Human,
    Agent,
}

impl AuthorKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Human => "human",
            Self::Agent => "agent",
        }
    }
}

/// Where a change stands.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// In the image, and not in its file.
    #[default]
    Pending,
    /// Left from an earlier run: neither in the image nor in its file.
    Waiting,
    /// Done with; it stays readable. Logs of earlier versions name the reason here.
    #[serde(alias = "flushed", alias = "cleared", alias = "pruned")]
    Settled,
}

/// How a change was settled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum Settled {
    /// It is in its file.
    Flushed,
    /// Another change took it back.
    Reverted,
    /// Set aside; it can come back.
    Discarded,
    /// Forgotten on request; the image keeps the code.
    Cleared,
    /// The disk's version took its place.
    Replaced,
    /// An ephemeral change whose time is over.
    Pruned,
    /// Of a reason that a later version knows.
    #[serde(other)]
    Unknown,
}

impl Settled {
    pub fn name(self) -> &'static str {
        match self {
            Self::Flushed => "flushed",
            Self::Reverted => "reverted",
            Self::Discarded => "discarded",
            Self::Cleared => "cleared",
            Self::Replaced => "replaced",
            Self::Pruned => "pruned",
            Self::Unknown => "unknown",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Entry {
    pub seq: u64,
    /// UTC, ISO 8601.
    pub ts: String,
    /// Counts the starts of the workspace.
    pub epoch: u64,
    pub kind: ChangeKind,
    pub class: String,
    pub selector: Option<String>,
    pub side: Option<Side>,
    pub intent: Intent,
    pub flushable: bool,
    /// `stdlib`, `dynamic` or `dependency:<path>`.
    pub not_flushable_reason: Option<String>,
    /// Names of files below the log's directory.
    pub source_ref: Option<String>,
    pub prev_source_ref: Option<String>,
    /// The text the image loaded or last flushed for the definition: what the file is compared with. `None`: it had none.
    #[serde(default)]
    pub base_ref: Option<String>,
    /// Relative to the project.
    pub source_file: Option<String>,
    /// The session.
    pub author: String,
    pub author_kind: AuthorKind,
    #[serde(default)]
    pub state: State,
    /// Only of a settled one.
    #[serde(default)]
    pub settled: Option<Settled>,
    /// The source is the text of a whole file, not of one definition.
    #[serde(default)]
    pub is_whole_file: bool,
    /// The method stands beside its class, as `Target >> method`: a new definition of the class is none of it.
    #[serde(default)]
    pub is_extension: bool,
}

impl Entry {
    pub fn is_pending(&self) -> bool {
        self.state == State::Pending
    }

    pub fn is_waiting(&self) -> bool {
        self.state == State::Waiting
    }

    /// Neither in its file nor given up.
    pub fn is_open(&self) -> bool {
        self.is_pending() || self.is_waiting()
    }

    /// Nobody waits for it any more.
    pub fn settle(&mut self, how: Settled) {
        self.state = State::Settled;
        self.settled = Some(how);
    }

    pub fn is_durable(&self) -> bool {
        self.intent == Intent::Durable
    }

    /// `Lamp>>toggle`, `Lamp class>>make`, `Lamp (remove-class)`.
    pub fn title(&self) -> String {
        match (&self.selector, self.side) {
            (Some(selector), Some(Side::Class)) => format!("{} class>>{selector}", self.class),
            (Some(selector), _) => format!("{}>>{selector}", self.class),
            (None, _) => format!("{} ({})", self.class, self.kind.as_str()),
        }
    }

    /// Whether both are about the same definition, or one about a class in whose text the other is.
    pub fn overlaps(&self, other: &Entry) -> bool {
        let is_of_class = self.selector.is_none() || other.selector.is_none();
        self.class == other.class
            && if is_of_class {
                self.source_file == other.source_file && !self.is_extension && !other.is_extension
            } else {
                self.selector == other.selector && self.side == other.side
            }
    }

    /// Another definition of a class that its file had already.
    pub fn is_redefinition(&self) -> bool {
        self.kind == ChangeKind::NewClass && !self.is_whole_file
    }

    /// Whether this entry, being later, makes the other one irrelevant.
    pub fn shadows(&self, earlier: &Entry) -> bool {
        if self.seq <= earlier.seq || self.class != earlier.class {
            return false;
        }
        match self.kind {
            ChangeKind::NewClass if self.is_redefinition() && earlier.is_extension => false,
            ChangeKind::NewClass | ChangeKind::RemoveClass => self.source_file == earlier.source_file,
            ChangeKind::Instance | ChangeKind::Class | ChangeKind::RemoveMethod => {
                earlier.selector.is_some() && self.selector == earlier.selector && self.side == earlier.side
            }
            ChangeKind::Unknown => false,
        }
    }
}

/// An entry with what the log knows about it now.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct EntryView {
    #[serde(flatten)]
    pub entry: Entry,
    /// Waits since an earlier start.
    pub orphan: bool,
    pub prior_epoch: bool,
    /// Pending: in the image and not in its file.
    pub active: bool,
    pub shadowed: bool,
    /// Its file has the same already.
    pub clean: bool,
    /// Of its source, for `expect`; the one of the empty text when it has none.
    #[serde(default)]
    pub sha256: String,
    /// Why the node, started anew, did not take it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub not_installed: Option<ErrorBody>,
    /// Of a class that is to go out of its file: whether nothing would be left, so that the file goes too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub deletes_file: Option<bool>,
}

/// An entry that was just made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct LoggedEntry {
    #[serde(flatten)]
    pub entry: Entry,
    /// Why the image is ahead of the disk, although it should not be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub warning: Option<String>,
}
