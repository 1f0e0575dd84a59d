//! One change, as it is stored and shown.

pub(crate) use beamtalk_wire::EntryView;
pub use beamtalk_wire::{AuthorKind, ChangeKind as Kind, Entry, Intent, Settled, Side, State};

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
    /// The text that the image loaded or last flushed for the definition.
    pub base: Option<String>,
    /// `source` is the text of a whole file.
    pub is_whole_file: bool,
    /// Absolute, or relative to the project.
    pub source_file: Option<String>,
    pub author: String,
    pub author_kind: AuthorKind,
    pub not_flushable_reason: Option<String>,
}
