//! Live editing.

use super::field::request;
use crate::entry::Side;

request! {
    /// Install a method; it is pending until it is flushed.
    SaveMethod {
        class: String,
        selector: String,
        source: String,
        ;
        side: Side,
        /// Of the source that this one was made from.
        base_sha256: String,
    }
}

request! {
    /// Install a method that is never flushed.
    TryMethod {
        class: String,
        selector: String,
        source: String,
        ;
        side: Side,
        /// Of the source that this one was made from.
        base_sha256: String,
    }
}

request! {
    /// Define a class whose file is made by a flush.
    SaveClass {
        source: String,
        /// Of the file, in the project.
        path: String,
    }
}

request! {
    /// Take a method out.
    RemoveMethod {
        class: String,
        selector: String,
        ;
        side: Side,
    }
}

request! {
    /// Take a class out; a confirmed flush takes it out of its file.
    RemoveClass {
        class: String,
    }
}

request! {
    /// What a method, and those who call it, would be told if it were saved.
    PrecheckMethod {
        class: String,
        selector: String,
        source: String,
        ;
        side: Side,
    }
}

request! {
    /// Check all classes again.
    RecheckImage {}
}

request! {
    /// What the last checks found.
    ReloadFindings {}
}
