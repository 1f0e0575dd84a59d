//! An error as clients get it.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::answers::Diagnostic;

/// Declares the kinds of errors that tools know.
macro_rules! kinds {
    ($($kind:ident $name:literal,)*) => {
        /// What went wrong: stable and machine-readable.
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
        pub enum ErrorKind {
            $(#[serde(rename = $name)] $kind,)*
            /// Errors of the language, and those that programs define.
            #[serde(untagged)]
            Other(String),
        }

        impl ErrorKind {
            pub fn name(&self) -> &str {
                match self {
                    $(Self::$kind => $name,)*
                    Self::Other(name) => name,
                }
            }

            /// All that tools know.
            pub const KNOWN: &[Self] = &[$(Self::$kind,)*];
        }

        impl From<&str> for ErrorKind {
            fn from(name: &str) -> Self {
                match name {
                    $($name => Self::$kind,)*
                    name => Self::Other(name.to_owned()),
                }
            }
        }
    };
}

kinds! {
    // Protocol misuse.
    InvalidRequest "invalid_request",
    UnknownOp "unknown_op",
    MissingParameter "missing_parameter",
    InvalidParameter "invalid_parameter",
    DuplicateId "duplicate_id",
    MessageTooLarge "message_too_large",
    // Roles, capabilities, limits.
    Forbidden "forbidden",
    PolicyDenied "policy_denied",
    CapabilityDisabled "capability_disabled",
    EvalLimit "eval_limit",
    ReadLimit "read_limit",
    RefGone "ref_gone",
    CompilerLimit "compiler_limit",
    CompilerCrash "compiler_crash",
    Busy "busy",
    Timeout "timeout",
    // Evaluation.
    Interrupted "interrupted",
    NoInputPending "no_input_pending",
    // The workspace.
    NodeDown "node_down",
    NodeStarting "node_starting",
    ShuttingDown "shutting_down",
    AuditFailed "audit_failed",
    SessionNotFound "session_not_found",
    SessionExpired "session_expired",
    CrossSessionMutationUnsupported "cross_session_mutation_unsupported",
    // The loop and the agents as files.
    TreeError "tree_error",
    // Code.
    CompileFailed "compile_failed",
    ParseError "parse_error",
    UndefinedVariable "undefined_variable",
    ClassNotFound "class_not_found",
    SelectorNotFound "selector_not_found",
    NoSourceFile "no_source_file",
    ModuleNotLoaded "module_not_loaded",
    ActorsExist "actors_exist",
    IncompatibleReload "incompatible_reload",
    NativeCompileFailed "native_compile_failed",
    // Actors.
    InvalidActor "invalid_actor",
    ActorNotAlive "actor_not_alive",
    InspectFailed "inspect_failed",
    // Files.
    FileNotFound "file_not_found",
    ReadError "read_error",
    WriteFailed "write_failed",
    LockMismatch "lock_mismatch",
    LoadFailed "load_failed",
    NotFound "not_found",
    // Live editing.
    FlushIoError "flush_io_error",
    NameConflict "name_conflict",
    VersionConflict "version_conflict",
    FileChanged "file_changed",
    PendingChanges "pending_changes",
    NoSource "no_source",
    NoClassDeclared "no_class_declared",
    MultipleClassesDeclared "multiple_classes_declared",
    ClassNameMismatch "class_name_mismatch",
    ClassAlreadyLoaded "class_already_loaded",
    TargetExists "target_exists",
    TargetOutsideProject "target_outside_project",
    RevertNotPossible "revert_not_possible",
    RevertInstallFailed "revert_install_failed",
    UnsupportedRevertKind "unsupported_revert_kind",
    ReloadFailed "reload_failed",
    NoWorkspace "no_workspace",
    // A fault of ours.
    InternalError "internal_error",
}

impl std::fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.name())
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct ErrorBody {
    pub kind: ErrorKind,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub selector: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub hint: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub location: Option<Location>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stack: Vec<Frame>,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    #[cfg_attr(feature = "schema", ts(type = "Record<string, unknown>"))]
    pub details: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub diagnostics: Vec<Diagnostic>,
    /// A reference to the exception.
    #[serde(default, rename = "ref", skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub reference: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Location {
    pub file: String,
    pub line: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub column: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub end_line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub end_column: Option<u32>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub struct Frame {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub class: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub selector: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub file: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub line: Option<u32>,
    /// References to what the message that failed was sent to, and with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "schema", ts(optional))]
    pub receiver: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[cfg_attr(feature = "schema", ts(optional, as = "Option<Vec<String>>"))]
    pub arguments: Vec<String>,
}

impl ErrorBody {
    pub fn new(kind: impl Into<ErrorKind>, message: impl Into<String>) -> Self {
        Self {
            kind: kind.into(),
            message: message.into(),
            class: None,
            selector: None,
            hint: None,
            location: None,
            stack: Vec::new(),
            details: Map::new(),
            diagnostics: Vec::new(),
            reference: None,
        }
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn detail(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.details.insert(key.to_owned(), value.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_written_by_their_names_and_read_again() {
        let programs = [ErrorKind::Other("lamp_broken".to_owned())];
        for kind in ErrorKind::KNOWN.iter().chain(&programs) {
            let text = serde_json::to_string(kind).expect("text");
            assert_eq!(text, format!("{:?}", kind.name()));
            assert_eq!(serde_json::from_str::<ErrorKind>(&text).expect("a kind"), *kind);
            assert_eq!(ErrorKind::from(kind.name()), *kind);
        }
    }
}
