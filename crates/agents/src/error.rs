//! Error strings of the tree with their numbers, and what keeps the daemon from starting.

use std::path::PathBuf;

use beamtalk_ninep::Refusal;

/// Why the daemon does not run.
#[derive(Debug, thiserror::Error)]
pub enum Fatal {
    #[error("bad name space dir {path}: {reason}")]
    Namespace { path: String, reason: String },
    #[error("anvilsrv already running (PID {pid})")]
    AlreadyRunning { pid: String },
    #[error("tmux not found (version {minimum} or later is needed)")]
    NoTmux { minimum: &'static str },
    #[error("tmux {found} is too old (version {minimum} or later is needed)")]
    OldTmux { found: String, minimum: &'static str },
    #[error("{file}: {reason}")]
    Config { file: String, reason: String },
    #[error("{}: {source}", path.display())]
    File {
        path: PathBuf,
        #[source]
        source: std::io::Error,
    },
    #[error("{0}")]
    Io(#[from] std::io::Error),
}

/// Error texts by number; `…` at the end stands for a variable part.
const ERRNOS: &[(u32, &[&str])] = &[
    (
        2,
        &[
            "not found",
            "session not found",
            "message not found in inbox",
            "role not found",
            "backend not found",
            "receiver …",
            "path does not exist: …",
            "sandbox \"…",
        ],
    ),
    (
        5,
        &[
            "internal error",
            "delivery failed: …",
            "session failed: …",
            "eval: …",
            "output trimmed",
            "audit unavailable",
            "process failed: …",
        ],
    ),
    (
        13,
        &[
            "permission denied…",
            "authentication required",
            "authentication failed",
            "auth mismatch",
            "no auth required",
            "not approved: …",
        ],
    ),
    (
        16,
        &[
            "session busy",
            "another operation in progress",
            "session still starting",
            "request changed",
            "base is checked out with changes: …",
            "merge conflict: …",
            "budget reached",
        ],
    ),
    (
        17,
        &[
            "file exists",
            "branch exists: …",
            "already answered by …",
            "alias in use: …",
            "duplicate fid",
            "duplicate tag",
        ],
    ),
    (20, &["walk in non-directory", "path is not a directory: …"]),
    (21, &["is a directory"]),
    (27, &["too large", "prompt too large"]),
    (
        28,
        &[
            "mailbox full",
            "queue full",
            "too many sessions",
            "too many tokens",
            "too many fids",
            "too many requests",
        ],
    ),
    (
        1,
        &[
            "wstat prohibited",
            "remove not supported for this file",
            "class has subclasses",
        ],
    ),
    (9, &["bad fid"]),
    (
        108,
        &[
            "session stopped (use restart)",
            "no workspace",
            "loop not running",
        ],
    ),
    (110, &["eval timeout"]),
    (8, &["backend command not found: …", "sandbox: …"]),
    (
        95,
        &[
            "not supported",
            "create not supported",
            "clear not implemented for this backend",
            "compact not implemented for this backend",
            "resume not implemented for this backend",
            "approve not implemented for this backend",
            "reject not implemented for this backend",
        ],
    ),
];

/// The Linux error number of an error string; everything not listed is `EINVAL`.
pub fn errno_of(text: &str) -> u32 {
    for (errno, patterns) in ERRNOS {
        for pattern in *patterns {
            let matches = match pattern.strip_suffix('…') {
                Some(start) => text.starts_with(start),
                None => text == *pattern,
            };
            if matches {
                return *errno;
            }
        }
    }
    22
}

/// A refusal with the number that belongs to its text.
pub fn refusal(text: impl Into<String>) -> Refusal {
    let text = text.into();
    Refusal::new(errno_of(&text), text)
}

#[cfg(test)]
mod tests {
    use super::errno_of;

    #[test]
    fn every_kind_of_error_string_has_its_number() {
        for (text, errno) in [
            ("session not found", 2),
            ("receiver 00000000 does not exist", 2),
            ("sandbox \"x\" not found", 2),
            ("sandbox: kernel has no Landlock", 8),
            ("session failed: crash loop", 5),
            ("permission denied: can only remove from own inbox", 13),
            ("session busy", 16),
            ("alias in use: x", 17),
            ("alias reserved: x", 22),
            ("path is not a directory: /etc/passwd", 20),
            ("prompt too large", 27),
            ("mailbox full", 28),
            ("queue full", 28),
            ("not approved: no", 13),
            ("merge conflict: a.txt", 16),
            ("already answered by user", 17),
            ("wstat prohibited", 1),
            ("session stopped (use restart)", 108),
            ("clear not implemented for this backend", 95),
            ("invalid state: \"x\"", 22),
        ] {
            assert_eq!(errno_of(text), errno, "{text}");
        }
    }
}
