//! What a client that shows everything needs beside the rest: output it missed, its desk, places in a text.

use super::field::{request, words};

request! {
    /// Send what was kept for the session again, then the answer.
    Replay {
        ;
        /// Only what has a greater number.
        after: u64,
    }
}

request! {
    /// Texts that clients keep with the workspace: layouts, scratch texts, settings.
    DeskRead {
        ;
        /// All if absent.
        names: Vec<String>,
    }
}

request! {
    /// Keep a text, or remove it.
    DeskWrite {
        /// Of `a`–`z`, digits, `/`, `_`, `.` and `-`.
        name: String,
        /// Of the text that was read; 0 when there was none.
        version: u64,
        ;
        /// Absent removes it.
        text: String,
    }
}

words! {
    /// How a text is made of inputs.
    TextForm: "script" {
        #[default]
        Script "script",
    }
}

request! {
    /// Where the inputs of a text are, by the rule of scripts.
    DocCells {
        text: String,
        ;
        form: TextForm,
    }
}

request! {
    /// Documents and sources of the project, by path.
    DocList {
        ;
        /// Only those with this text in their path or title.
        find: String,
        /// At most 1,000; 200 if absent.
        limit: u64,
    }
}

request! {
    /// The text of a document or source of the project: `.md`, `.bt`, `.btscript`, for owners also `.erl`, `.toml`.
    DocRead {
        /// Relative to the project; or `beamtalk:tour`.
        path: String,
    }
}

request! {
    /// Write a document or source of the project as a whole; a source is loaded too.
    DocWrite {
        /// A `.md`, `.bt` or `.btscript` below the project.
        path: String,
        text: String,
        ;
        /// Of the text that was read; absent when there was none.
        base_sha256: String,
    }
}

request! {
    /// What was written to the Transcript, the newest last.
    Transcript {
        ;
        /// Only what has a smaller number.
        before: u64,
        /// At most 1,000; 200 if absent.
        limit: u64,
        /// Only entries with this text in them.
        find: String,
    }
}

request! {
    /// End a question of this connection that is not answered yet. It is answered with `interrupted`.
    Cancel {
        /// Its `id`.
        r#for: String,
    }
}

request! {
    /// How the image did in the last 15 minutes.
    Vitals {
        ;
        /// Only samples after this time, in milliseconds since 1970.
        since: u64,
    }
}

request! {
    /// Lines of the log of the image, the newest last.
    Log {
        ;
        /// Only lines with a smaller number.
        before: u64,
        /// At most 1,000; 200 if absent.
        limit: u64,
        /// This one and graver.
        level: String,
        /// Only lines with this text in them.
        find: String,
    }
}

request! {
    /// Records of the audit trail, the newest last.
    AuditTrail {
        ;
        /// Only records with a smaller number.
        before: u64,
        /// At most 1,000; 200 if absent.
        limit: u64,
        /// Only of these types.
        r#type: Vec<String>,
        /// Only of this session.
        of_session: String,
    }
}

request! {
    /// Whether changes are written to their files at once.
    Autoflush {
        ;
        /// Switches it.
        on: bool,
    }
}

request! {
    /// Code as the formatter writes it.
    Format {
        code: String,
    }
}

words! {
    /// How the bytes of a file are written.
    TreeEncoding: "text or base64" {
        #[default]
        Text "text",
        Base64 "base64",
    }
}

request! {
    /// The names in a directory below `loop/`.
    TreeList {
        /// Names in it are percent-encoded as in the agents' tree.
        path: String,
    }
}

request! {
    /// A piece of a file below `loop/`.
    TreeRead {
        path: String,
        ;
        offset: u64,
        encoding: TreeEncoding,
    }
}

request! {
    /// A file below `loop/` as it grows: `out` until it ends or is interrupted.
    TreeFollow {
        path: String,
        ;
        /// Where to begin, such as `since 88`.
        command: String,
    }
}

request! {
    /// Write to a file below `loop/`: commands, or the value of an event.
    TreeWrite {
        path: String,
        data: String,
    }
}
