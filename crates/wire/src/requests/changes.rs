//! The change log: what is pending, and every way to decide about it.

use std::collections::BTreeMap;

use super::field::{OneOrMore, request, wanted, words};
use crate::entry::{AuthorKind, ChangeKind, Side};

request! {
    /// Pending changes, those that wait, and conflicts.
    Changes {
        ;
        /// Settled ones, too.
        all: bool,
        /// Also the files that changed on disk.
        disk: bool,
    }
}

request! {
    /// Pending selectors by class.
    Dirty {}
}

request! {
    /// What a change changes.
    Diff {
        seq: u64,
    }
}

request! {
    /// Undo a change, or bring back one that was undone.
    Revert {
        seq: u64,
    }
}

request! {
    /// Install changes of an earlier run: exactly one of the fields.
    Restore {
        ;
        seq: u64,
        class: String,
        all: bool,
    }
}

request! {
    /// Forget all pending changes; the image keeps the code.
    ClearChanges {}
}

words! {
    /// Which side counts.
    From: "image or disk" {
        #[default]
        Image "image",
        Disk "disk",
    }
}

request! {
    /// Decide for the image's or the disk's version: exactly one of `seq`, `class`, `file`, `all`.
    Take {
        from: From,
        ;
        seq: u64,
        class: String,
        file: String,
        all: bool,
        selector: String,
        side: Side,
        /// Of the file as it was shown.
        disk_sha256: String,
    }
}

request! {
    /// Write a text that was made of all sides, and load it.
    Settle {
        file: String,
        text: String,
        /// Of the file as it was shown; empty when there was none.
        disk_sha256: String,
        ;
        /// Hashes of pending changes as they were shown, by number.
        expect: BTreeMap<String, String>,
    }
}

request! {
    /// Set changes aside: exactly one of the fields.
    Discard {
        ;
        seq: u64,
        class: String,
        file: String,
        all: bool,
    }
}

request! {
    /// Base, image and disk: exactly one of `seq`, `file`, `class`.
    ChangeSides {
        ;
        seq: u64,
        file: String,
        class: String,
        selector: String,
        side: Side,
    }
}

words! {
    /// A kind of change that can be asked for.
    WantedKind: "a kind of change" {
        #[default]
        Instance "instance",
        Class "class",
        NewClass "new-class",
        RemoveMethod "remove-method",
        RemoveClass "remove-class",
    }
}

wanted! { OneOrMore<WantedKind>: "a kind of change, or a list of such"; }

impl WantedKind {
    pub fn kind(self) -> ChangeKind {
        match self {
            Self::Instance => ChangeKind::Instance,
            Self::Class => ChangeKind::Class,
            Self::NewClass => ChangeKind::NewClass,
            Self::RemoveMethod => ChangeKind::RemoveMethod,
            Self::RemoveClass => ChangeKind::RemoveClass,
        }
    }
}

request! {
    /// Write what is pending to its files.
    Flush {
        ;
        class: String,
        file: String,
        kind: OneOrMore<WantedKind>,
        author_kind: OneOrMore<AuthorKind>,
        /// Removals of classes, too: they are cut out of their files, and a file with nothing left is deleted.
        confirm_destructive: bool,
        /// The image's version of everything that is in conflict in this file.
        force_file: String,
        /// Only these changes; one that was replaced meanwhile is not written.
        seqs: Vec<u64>,
        /// Hashes of pending changes as they were shown, by number; nothing is written when one is another by now.
        expect: BTreeMap<String, String>,
    }
}
