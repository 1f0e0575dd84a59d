//! The change log.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::answer;
use crate::ErrorBody;
use crate::entry::{ChangeKind, Entry, EntryView, LoggedEntry, Side};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "snake_case")]
pub enum ConflictReason {
    ExternalEdit,
    FileMissing,
    TargetExists,
    SpanOutOfRange,
    WriteFailed,
}

impl ConflictReason {
    pub fn name(self) -> &'static str {
        match self {
            Self::ExternalEdit => "external_edit",
            Self::FileMissing => "file_missing",
            Self::TargetExists => "target_exists",
            Self::SpanOutOfRange => "span_out_of_range",
            Self::WriteFailed => "write_failed",
        }
    }
}

answer! {
    /// A file that the image and the disk changed in the same place.
    #[derive(Eq)]
    Conflict {
        file: String,
        reason: ConflictReason,
        /// The definitions concerned, or what is wrong with the file.
        detail: Option<String>,
        /// The entries that stay pending.
        seqs: Vec<u64>,
    }
}

answer! {
    ChangesAnswer {
        entries: Vec<EntryView>,
        waiting: Vec<EntryView>,
        conflicts: Vec<Conflict>,
        ;
        /// Files that are not what was loaded; with `disk`.
        disk_changed: Vec<String>,
        /// Whether changes are written to their files at once.
        autoflush: bool,
    }
}

answer! {
    DirtyAnswer {
        dirty: BTreeMap<String, Vec<String>>,
    }
}

answer! {
    DiffAnswer {
        /// Unified.
        diff: String,
    }
}

answer! {
    EntryAnswer {
        entry: Option<LoggedEntry>,
    }
}

answer! {
    /// A change that the image did not take.
    NotInstalled {
        seq: u64,
        error: ErrorBody,
    }
}

answer! {
    /// A change that is left out because a newer one of the same definition is pending.
    HeldBack {
        seq: u64,
        class: String,
        selector: Option<String>,
        side: Option<Side>,
        file: Option<String>,
        reason: String,
        detail: String,
    }
}

impl HeldBack {
    /// `Lamp>>isOn`, or `Lamp`.
    pub fn subject(&self) -> String {
        let is_class = if self.side == Some(Side::Class) {
            " class"
        } else {
            ""
        };
        match &self.selector {
            Some(selector) => format!("{}{is_class}>>{selector}", self.class),
            None => self.class.clone(),
        }
    }
}

answer! {
    RestoreAnswer {
        entries: Vec<Entry>,
        failed: Vec<NotInstalled>,
        conflicts: Vec<HeldBack>,
    }
}

answer! {
    ClearChangesAnswer {
        cleared: u64,
    }
}

answer! {
    TakeAnswer {
        entries: Vec<Entry>,
        conflicts: Vec<Conflict>,
    }
}

answer! {
    /// What was decided about, and what was loaded for it.
    DecideAnswer {
        entries: Vec<Entry>,
        classes: Vec<String>,
    }
}

answer! {
    /// One definition three ways.
    Place {
        class: String,
        side: Option<Side>,
        selector: Option<String>,
        base: Option<String>,
        image: Option<String>,
        disk: Option<String>,
    }
}

answer! {
    ChangeSidesAnswer {
        file: Option<String>,
        base: Option<String>,
        image: Option<String>,
        disk: Option<String>,
        disk_sha256: Option<String>,
        places: Vec<Place>,
    }
}

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
#[serde(rename_all = "lowercase")]
pub enum FileChange {
    Changed,
    Created,
    Deleted,
}

answer! {
    #[derive(Eq)]
    FlushedFile {
        file: String,
        kind: FileChange,
    }
}

answer! {
    #[derive(Eq)]
    Skip {
        seq: u64,
        class: String,
        selector: Option<String>,
        kind: ChangeKind,
        /// `destructive`, `ephemeral`, or why the entry is not flushable.
        reason: String,
    }
}

impl Skip {
    /// `Lamp>>isOn`, or `Lamp`.
    pub fn subject(&self) -> String {
        match &self.selector {
            Some(selector) => format!("{}>>{selector}", self.class),
            None => self.class.clone(),
        }
    }
}

fn count(number: usize, thing: &str) -> String {
    format!("{number} {thing}{}", if number == 1 { "" } else { "s" })
}

impl FlushAnswer {
    /// What was done and what was not, a line each.
    pub fn summary(&self) -> String {
        let classes = self.new_classes.len() + self.removed_classes.len();
        let methods = usize::try_from(self.flushed).unwrap_or(usize::MAX);
        let mut lines = Vec::new();
        if methods > classes {
            let files = count(self.files.len(), "file");
            lines.push(format!(
                "flushed {} across {files}",
                count(methods - classes, "method")
            ));
        }
        for (verb, classes) in [("wrote", &self.new_classes), ("deleted", &self.removed_classes)] {
            if !classes.is_empty() {
                lines.push(format!("{verb} {}", classes.join(", ")));
            }
        }
        if lines.is_empty() && self.conflicts.is_empty() {
            lines.push("nothing to flush".to_owned());
        }
        let skipped = self.skipped.iter();
        lines.extend(skipped.map(|skip| {
            format!(
                "skipped: {} ({}) — {}",
                skip.subject(),
                skip.kind.as_str(),
                skip.reason
            )
        }));
        let conflicts = self.conflicts.iter();
        lines.extend(
            conflicts.map(|conflict| format!("conflict: {} ({})", conflict.file, conflict.reason.name())),
        );
        lines.iter().map(|line| format!("{line}\n")).collect()
    }
}

answer! {
    #[derive(Default, Eq)]
    FlushAnswer {
        /// How many definitions were written or taken out, and classes removed.
        flushed: u64,
        files: Vec<FlushedFile>,
        /// Files that had also changed on disk.
        merged: Vec<String>,
        new_classes: Vec<String>,
        removed_classes: Vec<String>,
        skipped: Vec<Skip>,
        conflicts: Vec<Conflict>,
    }
}
