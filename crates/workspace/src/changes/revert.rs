//! The change that undoes a change.

use super::entry::{Entry, Kind, Side, State};
use super::error::ChangeError;
use super::plan::FileState;

/// What to do to the image to undo an entry. The caller does it and records it as a new, durable entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InverseChange {
    SaveMethod {
        class: String,
        side: Side,
        selector: String,
        source: String,
    },
    RemoveMethod {
        class: String,
        side: Side,
        selector: String,
    },
    InstallClass {
        class: String,
        source: String,
        source_file: Option<String>,
    },
    RemoveClass {
        class: String,
    },
}

/// `file` is what the entry's file is now, `None` when it has none.
pub(crate) fn inverse(
    entry: &Entry,
    prev_source: Option<String>,
    epoch: u64,
    file: Option<&FileState>,
) -> Result<InverseChange, ChangeError> {
    let not_possible = |reason| ChangeError::RevertNotPossible {
        seq: entry.seq,
        reason,
    };
    match entry.state {
        State::Flushed => {
            return Err(not_possible("it is in its file; undo it with version control"));
        }
        State::Cleared | State::Pruned => return Err(not_possible("it was forgotten")),
        State::Pending => {}
        State::Waiting => return Err(not_possible("it was made before the last start")),
    }
    let _ = epoch;
    let class = entry.class.clone();
    let side = entry.side.unwrap_or_default();
    let selector = || {
        entry
            .selector
            .clone()
            .ok_or_else(|| not_possible("it names no method"))
    };
    match (entry.kind, prev_source) {
        (Kind::Instance | Kind::Class | Kind::RemoveMethod, Some(source)) => Ok(InverseChange::SaveMethod {
            class,
            side,
            selector: selector()?,
            source,
        }),
        (Kind::Instance | Kind::Class, None) => Ok(InverseChange::RemoveMethod {
            class,
            side,
            selector: selector()?,
        }),
        (Kind::RemoveMethod | Kind::RemoveClass, None) => Err(not_possible("its source is not known")),
        (Kind::NewClass, None) => Ok(InverseChange::RemoveClass { class }),
        (Kind::RemoveClass, Some(source)) => {
            let is_unchanged = match file {
                None => true,
                Some(FileState::Text { text, .. }) => *text == source,
                Some(_) => false,
            };
            if !is_unchanged {
                return Err(not_possible("its file is not what it was"));
            }
            Ok(InverseChange::InstallClass {
                class,
                source,
                source_file: entry.source_file.clone(),
            })
        }
        // The class itself knows its file.
        (Kind::NewClass, Some(source)) => Ok(InverseChange::InstallClass {
            class,
            source,
            source_file: None,
        }),
        (Kind::Unknown, _) => Err(ChangeError::UnsupportedRevertKind { seq: entry.seq }),
    }
}
