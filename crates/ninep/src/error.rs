//! What can go wrong: a refusal travels to the other side as `Rerror` or `Rlerror`.

use std::borrow::Cow;

/// An error answer: the text of `Rerror` and the number of `Rlerror`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
pub struct Refusal {
    pub text: Cow<'static, str>,
    pub errno: u32,
}

macro_rules! refusals {
    ($($(#[$doc:meta])* $name:ident = $errno:literal $text:literal;)*) => {
        impl Refusal {
            $($(#[$doc])* pub const $name: Refusal = Refusal { text: Cow::Borrowed($text), errno: $errno };)*
        }
    };
}

refusals! {
    NOT_FOUND = 2 "not found";
    INTERNAL = 5 "internal error";
    BAD_FID = 9 "bad fid";
    PERMISSION_DENIED = 13 "permission denied";
    AUTHENTICATION_REQUIRED = 13 "authentication required";
    NO_AUTH_REQUIRED = 13 "no auth required";
    FILE_EXISTS = 17 "file exists";
    DUPLICATE_FID = 17 "duplicate fid";
    DUPLICATE_TAG = 17 "duplicate tag";
    WALK_IN_FILE = 20 "walk in non-directory";
    IS_DIRECTORY = 21 "is a directory";
    MALFORMED = 22 "malformed message";
    INVALID = 22 "invalid argument";
    BAD_NAME = 22 "bad name";
    BAD_OFFSET = 22 "bad offset";
    COUNT_TOO_SMALL = 22 "count too small";
    TOO_MANY_NAMES = 22 "too many names in walk";
    CLONE_OPEN = 22 "cannot clone open fid";
    ALREADY_OPEN = 22 "already open";
    MSIZE_TOO_SMALL = 22 "msize too small";
    NO_VERSION = 22 "version not negotiated";
    UNKNOWN_ANAME = 22 "unknown specifier in attach";
    TOO_LARGE = 27 "too large";
    TOO_MANY_FIDS = 28 "too many fids";
    TOO_MANY_REQUESTS = 28 "too many requests";
    WSTAT_PROHIBITED = 1 "wstat prohibited";
    REMOVE_NOT_SUPPORTED = 1 "remove not supported for this file";
    NOT_SUPPORTED = 95 "not supported";
    CREATE_NOT_SUPPORTED = 95 "create not supported";
}

impl Refusal {
    pub fn new(errno: u32, text: impl Into<Cow<'static, str>>) -> Self {
        Refusal {
            text: text.into(),
            errno,
        }
    }
}

/// What a client meets.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("{0}")]
    Refused(#[from] Refusal),
    #[error("{0}")]
    Io(#[from] std::io::Error),
    #[error("connection closed")]
    Closed,
    #[error("timed out")]
    TimedOut,
    #[error("the server sent a malformed message")]
    Malformed,
    #[error("the server answered {got} to {asked}")]
    Unexpected { asked: &'static str, got: String },
    #[error("the server speaks {version}")]
    Version { version: String },
}
