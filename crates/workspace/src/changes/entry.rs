//! One change, as it is stored and shown.

use std::ops::Range;

use serde::{Deserialize, Serialize};

/// What was changed. `Instance` and `Class` are methods that were added or replaced on that side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Instance,
    Class,
    NewClass,
    RemoveMethod,
    RemoveClass,
    /// Written by a version that knows more kinds.
    #[serde(other)]
    Unknown,
}

impl Kind {
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

    /// The kind with that name on the wire.
    pub fn named(name: &str) -> Option<Self> {
        [
            Self::Instance,
            Self::Class,
            Self::NewClass,
            Self::RemoveMethod,
            Self::RemoveClass,
        ]
        .into_iter()
        .find(|kind| kind.as_str() == name)
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    #[default]
    Instance,
    Class,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Intent {
    #[default]
    Durable,
    Ephemeral,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AuthorKind {
    #[default]
    Human,
    Agent,
}

/// What became of a change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    #[default]
    Pending,
    /// Left from an earlier run: neither in the image nor in its file.
    Waiting,
    /// It is in its file.
    Flushed,
    /// Forgotten on request.
    Cleared,
    /// An ephemeral change whose time is over.
    Pruned,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    pub seq: u64,
    /// UTC, ISO 8601.
    pub ts: String,
    /// Counts the starts of the workspace.
    pub epoch: u64,
    pub kind: Kind,
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
    /// Relative to the project.
    pub source_file: Option<String>,
    /// Where the method, or the class that is defined anew, stood in the file when the change was made; `None` when it was not there.
    pub span: Option<Range<usize>>,
    /// SHA-256 of the file at that time; `None` when there was no file.
    pub file_hash: Option<String>,
    /// The session.
    pub author: String,
    pub author_kind: AuthorKind,
    #[serde(default)]
    pub state: State,
}

impl Entry {
    pub fn is_pending(&self) -> bool {
        self.state == State::Pending
    }

    pub fn is_waiting(&self) -> bool {
        self.state == State::Waiting
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

    pub(crate) fn is_discarded(&self) -> bool {
        false
    }

    pub(crate) fn is_whole_file(&self) -> bool {
        self.kind == Kind::NewClass && self.span.is_none()
    }

    /// Whether both are about the same definition, or one about all of the other's class.
    pub(crate) fn overlaps(&self, other: &Entry) -> bool {
        let is_class = |entry: &Entry| entry.selector.is_none();
        self.class == other.class
            && (is_class(self)
                || is_class(other)
                || (self.selector == other.selector && self.side == other.side))
    }

    /// Another definition of a class that its file had already.
    pub(crate) fn is_redefinition(&self) -> bool {
        self.kind == Kind::NewClass && self.span.is_some()
    }

    /// Whether this entry, being later, makes the other one irrelevant.
    pub(crate) fn shadows(&self, earlier: &Entry) -> bool {
        if self.seq <= earlier.seq || self.class != earlier.class {
            return false;
        }
        match self.kind {
            Kind::NewClass | Kind::RemoveClass => self.source_file == earlier.source_file,
            Kind::Instance | Kind::Class | Kind::RemoveMethod => {
                earlier.selector.is_some() && self.selector == earlier.selector && self.side == earlier.side
            }
            Kind::Unknown => false,
        }
    }
}

/// An entry with what the log knows about it now.
#[derive(Clone, Debug, Serialize)]
pub struct EntryView {
    #[serde(flatten)]
    pub entry: Entry,
    /// Of an earlier start, and never written to its file.
    pub orphan: bool,
    pub prior_epoch: bool,
    /// Pending in this epoch.
    pub active: bool,
    pub shadowed: bool,
    /// Its file has the same already.
    pub clean: bool,
}

/// A change that was just made to the image.
#[derive(Clone, Debug)]
pub struct NewEntry {
    pub kind: Kind,
    pub class: String,
    pub selector: Option<String>,
    pub side: Option<Side>,
    pub intent: Intent,
    /// The method's or class's new text; `None` for a removal.
    pub source: Option<String>,
    /// The text before; `None` when there was none.
    pub prev_source: Option<String>,
    /// Absolute, or relative to the project.
    pub source_file: Option<String>,
    pub author: String,
    pub author_kind: AuthorKind,
    pub not_flushable_reason: Option<String>,
}
