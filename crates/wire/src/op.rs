//! The operations: name, who may use it, how it is audited, its fields.

/// What an operation may do.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Access {
    /// Runs no user code, changes nothing.
    Read,
    /// May run code, change the image or the disk.
    Execute,
    /// Concerns the workspace as a whole.
    Administer,
}

impl Access {
    pub fn letter(self) -> &'static str {
        match self {
            Self::Read => "R",
            Self::Execute => "X",
            Self::Administer => "A",
        }
    }
}

/// Declares the operations. An operation without an audit type of its own either reads or belongs to another one
/// that is audited. A field that ends in `?` may be left out.
macro_rules! operations {
    ($($variant:ident $name:literal $access:ident $audit:literal [$($field:literal),*];)*) => {
        #[derive(Clone, Copy, Debug, Eq, PartialEq, Hash)]
        pub enum Op {
            $($variant,)*
        }

        impl Op {
            pub const ALL: &[Self] = &[$(Self::$variant,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$variant),)*
                    _ => None,
                }
            }

            pub fn access(self) -> Access {
                match self {
                    $(Self::$variant => Access::$access,)*
                }
            }

            fn audit_text(self) -> &'static str {
                match self {
                    $(Self::$variant => $audit,)*
                }
            }

            /// Names of the fields, those that may be left out with a `?`.
            pub fn fields(self) -> &'static [&'static str] {
                match self {
                    $(Self::$variant => &[$($field),*],)*
                }
            }
        }
    };
}

operations! {
    // Evaluation.
    Eval "eval" Execute "eval" ["code", "trace?", "timeout_ms?", "file?", "line?"];
    Stdin "stdin" Execute "-" ["for", "value?", "eof?"];
    Interrupt "interrupt" Execute "-" ["for?"];
    RunEntry "run-entry" Execute "run" ["class", "selector", "args?"];
    Complete "complete" Read "-" ["code", "cursor?"];
    ErlangComplete "erlang-complete" Read "-" ["prefix?", "module?"];
    Hover "hover" Read "-" ["code", "cursor?"];
    Info "info" Read "-" ["symbol"];
    Docs "docs" Read "-" ["class?", "erlang_module?", "selector?", "side?"];
    Diagnostics "diagnostics" Read "-" ["code", "mode?"];
    ShowCodegen "show-codegen" Read "-" ["code?", "class?", "selector?", "form?"];
    // Loading.
    LoadFile "load-file" Execute "load" ["path"];
    LoadSource "load-source" Execute "load" ["source", "name?"];
    LoadProject "load-project" Execute "load" ["path?", "include_tests?", "force?"];
    LoadTests "load-tests" Execute "load" [];
    Reload "reload" Execute "load" ["class"];
    Unload "unload" Execute "remove" ["class", "force?"];
    Modules "modules" Read "-" [];
    // Sessions.
    Sessions "sessions" Read "-" [];
    Bindings "bindings" Read "-" ["values?"];
    Clear "clear" Execute "-" [];
    Clone "clone" Execute "-" [];
    Close "close" Execute "-" [];
    // Classes and navigation.
    ListClasses "list-classes" Read "-" ["filter?"];
    Methods "methods" Read "-" ["class"];
    BrowseClasses "browse-classes" Read "-" [];
    BrowseProtocols "browse-protocols" Read "-" ["class", "side"];
    BrowseMethodSource "browse-method-source" Read "-" ["class", "side", "selector"];
    BrowseClassDefinition "browse-class-definition" Read "-" ["class"];
    BrowseNativeSource "browse-native-source" Read "-" ["class"];
    NavQuery "nav-query" Read "-" ["kind", "selector?", "class?"];
    NavSymbols "nav-symbols" Read "-" ["scope?"];
    // Actors.
    Actors "actors" Read "-" ["class?"];
    Inspect "inspect" Read "-" ["actor?", "binding?", "path?", "page?"];
    PidStats "pid-stats" Read "-" ["actor"];
    SupervisionTree "supervision-tree" Read "-" ["scope?"];
    Kill "kill" Execute "kill" ["actor", "graceful?"];
    // Tests.
    ListTests "list-tests" Read "-" [];
    Test "test" Execute "test" ["class?", "method?", "file?", "jobs?"];
    TestAll "test-all" Execute "test" ["jobs?"];
    // Live editing.
    SaveMethod "save-method" Execute "method" ["class", "selector", "source", "side?", "base_sha256?"];
    TryMethod "try-method" Execute "method" ["class", "selector", "source", "side?", "base_sha256?"];
    SaveClass "save-class" Execute "load" ["source", "path"];
    RemoveMethod "remove-method" Execute "remove" ["class", "selector", "side?"];
    RemoveClass "remove-class" Execute "remove" ["class"];
    PrecheckMethod "precheck-method" Read "-" ["class", "selector", "source"];
    Changes "changes" Read "-" ["all?", "disk?"];
    Dirty "dirty" Read "-" [];
    Diff "diff" Read "-" ["seq"];
    Revert "revert" Execute "method" ["seq"];
    Restore "restore" Execute "load" ["seq?", "class?", "all?"];
    ClearChanges "clear-changes" Execute "remove" [];
    Take "take" Execute "load" ["from", "class?", "file?", "selector?", "side?", "disk_sha256?"];
    Settle "settle" Execute "flush" ["file", "text", "disk_sha256", "expect?"];
    Discard "discard" Execute "load" ["seq?", "class?", "all?"];
    ChangeSides "change-sides" Read "-" ["seq?", "file?", "class?", "selector?", "side?"];
    Flush "flush" Execute "flush" ["class?", "file?", "kind?", "author_kind?", "confirm_destructive?", "force_file?"];
    RecheckImage "recheck-image" Read "-" [];
    ReloadFindings "reload-findings" Read "-" [];
    // Observation and server.
    Subscribe "subscribe" Read "-" ["channels", "actor?", "level?"];
    Unsubscribe "unsubscribe" Read "-" ["channels"];
    EnableTracing "enable-tracing" Execute "-" [];
    DisableTracing "disable-tracing" Execute "-" [];
    ClearTraces "clear-traces" Execute "-" [];
    GetTraces "get-traces" Read "-" ["actor?", "selector?", "class?", "outcome?", "min_duration_ns?", "limit?"];
    ActorStats "actor-stats" Read "-" ["actor?"];
    ExportTraces "export-traces" Execute "-" ["path?", "actor?", "selector?", "class?", "outcome?", "min_duration_ns?", "limit?"];
    LogLevel "log-level" Execute "-" ["level?"];
    Describe "describe" Read "-" [];
    Health "health" Read "-" [];
    Shutdown "shutdown" Administer "stop" ["force?"];
}

impl Op {
    /// The type of the audit record, if the operation has one.
    pub fn audit(self) -> Option<&'static str> {
        match self.audit_text() {
            "-" => None,
            kind => Some(kind),
        }
    }

    /// Reads, and others have to work for the answer: the node, a compiler. What the daemon knows itself is no question.
    pub fn is_question(self) -> bool {
        self.access() == Access::Read
            && !matches!(
                self,
                Self::Sessions
                    | Self::Changes
                    | Self::Dirty
                    | Self::Diff
                    | Self::ReloadFindings
                    | Self::Subscribe
                    | Self::Unsubscribe
                    | Self::Describe
                    | Self::Health
            )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back_to_their_operation() {
        for op in Op::ALL {
            assert_eq!(Op::from_name(op.name()), Some(*op));
        }
        assert_eq!(Op::from_name("Eval"), None);
    }

    #[test]
    fn what_changes_code_or_files_is_audited() {
        let quiet: Vec<&str> = Op::ALL
            .iter()
            .filter(|op| op.access() != Access::Read && op.audit().is_none())
            .map(|op| op.name())
            .collect();
        // These feed, stop or tidy something that has its own record, or touch observation only.
        assert_eq!(
            quiet,
            [
                "stdin",
                "interrupt",
                "clear",
                "clone",
                "close",
                "enable-tracing",
                "disable-tracing",
                "clear-traces",
                "export-traces",
                "log-level",
            ]
        );
    }
}
