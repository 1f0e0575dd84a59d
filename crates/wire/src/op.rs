//! The operations: name, who may use it, how it is audited, what is asked and what is answered.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::answers::{
    ActorStatsAnswer, ActorsAnswer, ApprovalAskAnswer, ApprovalsAnswer, AuditSummaryAnswer, AuditTrailAnswer,
    AutoflushAnswer, BindingsAnswer, BrowseClassAnswer, BrowseClassDefinitionAnswer, BrowseClassesAnswer,
    BrowseMethodSourceAnswer, BrowseNativeSourceAnswer, BrowseProtocolsAnswer, ChangeSidesAnswer,
    ChangesAnswer, ChannelsAnswer, ClearChangesAnswer, CloneAnswer, CompleteAnswer, DecideAnswer,
    DescribeAnswer, DeskReadAnswer, DeskWriteAnswer, DiagnosticsAnswer, DiffAnswer, DirtyAnswer,
    DocCellsAnswer, DocListAnswer, DocReadAnswer, DocWriteAnswer, DocsAnswer, EntryAnswer,
    ErlangCompleteAnswer, EvalAnswer, ExportTracesAnswer, FindingsAnswer, FlushAnswer, FormatAnswer,
    GetTracesAnswer, HandleListAnswer, HandleOpenAnswer, HealthAnswer, HoverAnswer, InfoAnswer,
    InspectAnswer, JobAnswer, LastResultsAnswer, ListClassesAnswer, ListTestsAnswer, LoadAnswer, LogAnswer,
    LogLevelAnswer, LoopRunAnswer, MethodsAnswer, ModulesAnswer, NavQueryAnswer, NavSymbolsAnswer, Nothing,
    PidStatsAnswer, PrecheckMethodAnswer, QuestionKeepAnswer, QuestionTakeAnswer, ReloadAnswer, ReplayAnswer,
    RestoreAnswer, SaveClassAnswer, SaveMethodAnswer, SessionsAnswer, ShowCodegenAnswer, SourceAnswer,
    SupervisionTreeAnswer, TakeAnswer, TestAnswer, TopActorsAnswer, TranscriptAnswer, TreeListAnswer,
    TreeReadAnswer, TreeWriteAnswer, ValueAnswer, ViewAnswer, ViewsAnswer, VitalsAnswer,
};
use crate::requests::Field;
use crate::requests::{
    ActorStats, Actors, ApprovalAnswer, ApprovalAsk, Approvals, AuditSummary, AuditTrail, Autoflush,
    Bindings, BrowseClass, BrowseClassDefinition, BrowseClasses, BrowseMethodSource, BrowseNativeSource,
    BrowseProtocols, Cancel, ChangeSides, Changes, Clear, ClearChanges, ClearTraces, Clone, Close, Complete,
    Describe, DeskRead, DeskWrite, Diagnostics, Diff, Dirty, DisableTracing, Discard, DocCells, DocList,
    DocRead, DocWrite, Docs, EnableTracing, ErlangComplete, Eval, ExportTraces, Fields, Flush, Format,
    GetTraces, HandleClose, HandleList, HandleOpen, Health, Hover, Info, Inspect, Interrupt, JobCancel,
    JobGet, JobStart, Kill, LastResults, ListClasses, ListTests, LoadFile, LoadProject, LoadSource,
    LoadTests, Log, LogLevel, LoopRun, McpCall, Methods, Modules, NavQuery, NavSymbols, PidStats,
    PrecheckMethod, QuestionKeep, QuestionTake, RecheckImage, Reload, ReloadFindings, RemoveClass,
    RemoveMethod, Replay, Restore, Revert, RunEntry, SaveClass, SaveMethod, Sessions, Settle, ShowCodegen,
    Shutdown, Stdin, Subscribe, SupervisionTree, Take, Test, TestAll, TopActors, Transcript, TreeFollow,
    TreeList, TreeRead, TreeWrite, TryMethod, Unbind, Unload, Unsubscribe, View, Views, Vitals,
};

/// What an operation may do.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
pub enum Access {
    /// Runs no user code, changes nothing.
    #[serde(rename = "R")]
    Read,
    /// May run code, change the image or the disk.
    #[serde(rename = "X")]
    Execute,
    /// Concerns the workspace as a whole.
    #[serde(rename = "A")]
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

/// A request, by its own type.
pub trait Operation: Serialize + DeserializeOwned {
    const OP: Op;
    type Answer: Serialize + DeserializeOwned;
}

/// Declares the operations. One without an audit type of its own either reads or belongs to another one that is audited.
macro_rules! operations {
    ($($request:ident $name:literal $access:ident $audit:literal $answer:ident;)*) => {
        #[derive(std::clone::Clone, Copy, Debug, Eq, PartialEq, Hash)]
        pub enum Op {
            $($request,)*
        }

        impl Op {
            pub const ALL: &[Self] = &[$(Self::$request,)*];

            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$request => $name,)*
                }
            }

            pub fn from_name(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$request),)*
                    _ => None,
                }
            }

            pub fn access(self) -> Access {
                match self {
                    $(Self::$request => Access::$access,)*
                }
            }

            fn audit_text(self) -> &'static str {
                match self {
                    $(Self::$request => $audit,)*
                }
            }

            pub fn fields(self) -> &'static [Field] {
                match self {
                    $(Self::$request => $request::FIELDS,)*
                }
            }

            /// Whether an object has every field that an answer to this operation must have.
            pub fn is_answer(self, object: &serde_json::Map<String, serde_json::Value>) -> bool {
                let object = serde_json::Value::Object(object.clone());
                match self {
                    $(Self::$request => serde_json::from_value::<$answer>(object).is_ok(),)*
                }
            }
        }

        /// Any request.
        #[derive(std::clone::Clone, Debug, PartialEq, Serialize)]
        #[serde(untagged)]
        pub enum Request {
            $($request($request),)*
        }

        impl Request {
            pub fn op(&self) -> Op {
                match self {
                    $(Self::$request(_) => Op::$request,)*
                }
            }

            /// The fields of a message whose operation is known.
            pub(crate) fn read(op: Op, text: &str) -> Result<Self, serde_json::Error> {
                match op {
                    $(Op::$request => serde_json::from_str(text).map(Self::$request),)*
                }
            }
        }

        $(
            impl Operation for $request {
                const OP: Op = Op::$request;
                type Answer = $answer;
            }

            impl From<$request> for Request {
                fn from(request: $request) -> Self {
                    Self::$request(request)
                }
            }
        )*

        /// Do something for the types of every operation.
        #[cfg(feature = "schema")]
        pub fn each_operation(visitor: &mut impl crate::schema::Visitor) {
            $(visitor.operation::<$request, $answer>();)*
        }

        /// The answer to an operation, read as its type and written again.
        #[cfg(feature = "schema")]
        pub fn answer_again(op: Op, answer: serde_json::Value) -> Result<serde_json::Value, serde_json::Error> {
            match op {
                $(Op::$request => serde_json::to_value(serde_json::from_value::<$answer>(answer)?),)*
            }
        }
    };
}

operations! {
    // Evaluation.
    Eval "eval" Execute "eval" EvalAnswer;
    Stdin "stdin" Execute "-" Nothing;
    Interrupt "interrupt" Execute "-" ValueAnswer;
    LoopRun "loop-run" Execute "run" LoopRunAnswer;
    RunEntry "run-entry" Execute "run" EvalAnswer;
    Complete "complete" Read "-" CompleteAnswer;
    ErlangComplete "erlang-complete" Read "-" ErlangCompleteAnswer;
    Hover "hover" Read "-" HoverAnswer;
    Info "info" Read "-" InfoAnswer;
    Docs "docs" Read "-" DocsAnswer;
    Diagnostics "diagnostics" Read "-" DiagnosticsAnswer;
    ShowCodegen "show-codegen" Read "-" ShowCodegenAnswer;
    Format "format" Read "-" FormatAnswer;
    DocCells "doc-cells" Read "-" DocCellsAnswer;
    // Loading.
    LoadFile "load-file" Execute "load" LoadAnswer;
    LoadSource "load-source" Execute "load" SourceAnswer;
    LoadProject "load-project" Execute "load" LoadAnswer;
    LoadTests "load-tests" Execute "load" LoadAnswer;
    Reload "reload" Execute "load" ReloadAnswer;
    Unload "unload" Execute "remove" Nothing;
    Modules "modules" Read "-" ModulesAnswer;
    // Sessions.
    Sessions "sessions" Read "-" SessionsAnswer;
    Bindings "bindings" Read "-" BindingsAnswer;
    Clear "clear" Execute "-" Nothing;
    Unbind "unbind" Execute "-" Nothing;
    Clone "clone" Execute "-" CloneAnswer;
    Close "close" Execute "-" Nothing;
    HandleOpen "handle-open" Execute "-" HandleOpenAnswer;
    HandleClose "handle-close" Execute "-" ValueAnswer;
    HandleList "handle-list" Read "-" HandleListAnswer;
    QuestionKeep "question-keep" Execute "-" QuestionKeepAnswer;
    QuestionTake "question-take" Execute "-" QuestionTakeAnswer;
    JobStart "job-start" Execute "-" JobAnswer;
    JobGet "job-get" Read "-" JobAnswer;
    JobCancel "job-cancel" Execute "-" Nothing;
    ApprovalAsk "approval-ask" Execute "-" ApprovalAskAnswer;
    Approvals "approvals" Read "-" ApprovalsAnswer;
    ApprovalAnswer "approval-answer" Administer "approval" Nothing;
    AuditSummary "audit-summary" Read "-" AuditSummaryAnswer;
    Cancel "cancel" Read "-" ValueAnswer;
    Replay "replay" Read "-" ReplayAnswer;
    DeskRead "desk-read" Read "-" DeskReadAnswer;
    DocList "doc-list" Read "-" DocListAnswer;
    DocRead "doc-read" Read "-" DocReadAnswer;
    DocWrite "doc-write" Execute "doc" DocWriteAnswer;
    DeskWrite "desk-write" Execute "-" DeskWriteAnswer;
    // Classes and navigation.
    ListClasses "list-classes" Read "-" ListClassesAnswer;
    Methods "methods" Read "-" MethodsAnswer;
    BrowseClasses "browse-classes" Read "-" BrowseClassesAnswer;
    BrowseProtocols "browse-protocols" Read "-" BrowseProtocolsAnswer;
    BrowseMethodSource "browse-method-source" Read "-" BrowseMethodSourceAnswer;
    BrowseClassDefinition "browse-class-definition" Read "-" BrowseClassDefinitionAnswer;
    BrowseClass "browse-class" Read "-" BrowseClassAnswer;
    BrowseNativeSource "browse-native-source" Read "-" BrowseNativeSourceAnswer;
    NavQuery "nav-query" Read "-" NavQueryAnswer;
    NavSymbols "nav-symbols" Read "-" NavSymbolsAnswer;
    // Actors.
    Actors "actors" Read "-" ActorsAnswer;
    Inspect "inspect" Read "-" InspectAnswer;
    Views "views" Read "-" ViewsAnswer;
    View "view" Read "-" ViewAnswer;
    PidStats "pid-stats" Read "-" PidStatsAnswer;
    TopActors "top-actors" Read "-" TopActorsAnswer;
    SupervisionTree "supervision-tree" Read "-" SupervisionTreeAnswer;
    Kill "kill" Execute "kill" ValueAnswer;
    // Tests.
    ListTests "list-tests" Read "-" ListTestsAnswer;
    Test "test" Execute "test" TestAnswer;
    TestAll "test-all" Execute "test" TestAnswer;
    LastResults "test-results" Read "-" LastResultsAnswer;
    // Live editing.
    SaveMethod "save-method" Execute "method" SaveMethodAnswer;
    TryMethod "try-method" Execute "method" SaveMethodAnswer;
    SaveClass "save-class" Execute "load" SaveClassAnswer;
    RemoveMethod "remove-method" Execute "remove" EntryAnswer;
    RemoveClass "remove-class" Execute "remove" EntryAnswer;
    PrecheckMethod "precheck-method" Read "-" PrecheckMethodAnswer;
    Changes "changes" Read "-" ChangesAnswer;
    Dirty "dirty" Read "-" DirtyAnswer;
    Diff "diff" Read "-" DiffAnswer;
    Revert "revert" Execute "method" EntryAnswer;
    Restore "restore" Execute "load" RestoreAnswer;
    ClearChanges "clear-changes" Execute "remove" ClearChangesAnswer;
    Take "take" Execute "load" TakeAnswer;
    Settle "settle" Execute "flush" DecideAnswer;
    Discard "discard" Execute "load" DecideAnswer;
    ChangeSides "change-sides" Read "-" ChangeSidesAnswer;
    Flush "flush" Execute "flush" FlushAnswer;
    Autoflush "autoflush" Execute "flush" AutoflushAnswer;
    RecheckImage "recheck-image" Read "-" FindingsAnswer;
    ReloadFindings "reload-findings" Read "-" FindingsAnswer;
    // Observation and server.
    Subscribe "subscribe" Read "-" ChannelsAnswer;
    Unsubscribe "unsubscribe" Read "-" ChannelsAnswer;
    EnableTracing "enable-tracing" Execute "-" Nothing;
    DisableTracing "disable-tracing" Execute "-" Nothing;
    ClearTraces "clear-traces" Execute "-" Nothing;
    GetTraces "get-traces" Read "-" GetTracesAnswer;
    ActorStats "actor-stats" Read "-" ActorStatsAnswer;
    ExportTraces "export-traces" Execute "-" ExportTracesAnswer;
    Transcript "transcript" Read "-" TranscriptAnswer;
    Vitals "vitals" Read "-" VitalsAnswer;
    Log "log" Read "-" LogAnswer;
    TreeList "tree-list" Read "-" TreeListAnswer;
    TreeRead "tree-read" Read "-" TreeReadAnswer;
    TreeFollow "tree-follow" Read "-" Nothing;
    TreeWrite "tree-write" Execute "tree" TreeWriteAnswer;
    McpCall "mcp-call" Execute "mcp" Nothing;
    LogLevel "log-level" Execute "-" LogLevelAnswer;
    Describe "describe" Read "-" DescribeAnswer;
    Health "health" Read "-" HealthAnswer;
    AuditTrail "audit" Administer "-" AuditTrailAnswer;
    Shutdown "shutdown" Administer "stop" Nothing;
}

impl Op {
    /// The type of the audit record, if the operation has one.
    pub fn audit(self) -> Option<&'static str> {
        match self.audit_text() {
            "-" => None,
            kind => Some(kind),
        }
    }

    /// Reads what only the owner may see.
    pub fn is_owners(self) -> bool {
        matches!(self, Self::DeskRead | Self::Log)
    }

    /// Reads, and others have to work for the answer: the node, a compiler. What the daemon knows itself is no question.
    pub fn is_question(self) -> bool {
        self.access() == Access::Read
            && !matches!(
                self,
                Self::Sessions
                    | Self::HandleList
                    | Self::JobGet
                    | Self::Approvals
                    | Self::AuditSummary
                    | Self::Changes
                    | Self::Dirty
                    | Self::Diff
                    | Self::ReloadFindings
                    | Self::Cancel
                    | Self::LastResults
                    | Self::Replay
                    | Self::DeskRead
                    | Self::DocCells
                    | Self::Transcript
                    | Self::Log
                    | Self::TreeList
                    | Self::TreeRead
                    | Self::TreeFollow
                    | Self::Format
                    | Self::Subscribe
                    | Self::Unsubscribe
                    | Self::Describe
                    | Self::Health
            )
    }
}

impl Request {
    /// The code that a request brings, if it does.
    pub fn source(&self) -> Option<&str> {
        match self {
            Self::Eval(request) => Some(&request.code),
            Self::LoadSource(request) => Some(&request.source),
            Self::SaveMethod(request) => Some(&request.source),
            Self::TryMethod(request) => Some(&request.source),
            Self::SaveClass(request) => Some(&request.source),
            _ => None,
        }
    }

    /// The handle whose variables a request uses, if it names one.
    pub fn handle(&self) -> Option<&str> {
        match self {
            Self::Eval(request) => request.handle.as_deref(),
            Self::Interrupt(request) => request.handle.as_deref(),
            Self::Complete(request) => request.handle.as_deref(),
            Self::Bindings(request) => request.handle.as_deref(),
            Self::Inspect(request) => request.handle.as_deref(),
            Self::Views(request) => request.handle.as_deref(),
            Self::View(request) => request.handle.as_deref(),
            _ => None,
        }
    }

    /// What a request that does something is about, in a word.
    pub fn target(&self) -> Option<&str> {
        match self {
            Self::Eval(request) => request.file.as_deref(),
            Self::Stdin(request) => Some(&request.r#for),
            Self::Interrupt(request) => request.r#for.as_deref(),
            Self::RunEntry(request) => Some(&request.class),
            Self::LoadFile(request) => Some(&request.path),
            Self::LoadSource(request) => request.name.as_deref(),
            Self::LoadProject(request) => request.path.as_deref(),
            Self::Reload(request) => Some(&request.class),
            Self::Unload(request) => Some(&request.class),
            Self::Kill(request) => Some(&request.actor),
            Self::Test(request) => request
                .class
                .as_deref()
                .or(request.file.as_deref())
                .or(request.document.as_deref()),
            Self::SaveMethod(request) => Some(&request.class),
            Self::TryMethod(request) => Some(&request.class),
            Self::SaveClass(request) => Some(&request.path),
            Self::RemoveMethod(request) => Some(&request.class),
            Self::RemoveClass(request) => Some(&request.class),
            Self::Restore(request) => request.class.as_deref(),
            Self::Take(request) => request.class.as_deref().or(request.file.as_deref()),
            Self::Settle(request) => Some(&request.file),
            Self::Discard(request) => request.class.as_deref(),
            Self::Flush(request) => request.class.as_deref().or(request.file.as_deref()),
            Self::DocWrite(request) => Some(&request.path),
            Self::TreeWrite(request) => Some(&request.path),
            Self::ExportTraces(request) => {
                let path = request.path.as_deref().or(request.actor.as_deref());
                request.class.as_deref().or(path)
            }
            _ => None,
        }
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
                "unbind",
                "clone",
                "close",
                "handle-open",
                "handle-close",
                "question-keep",
                "question-take",
                "job-start",
                "job-cancel",
                "approval-ask",
                "desk-write",
                "enable-tracing",
                "disable-tracing",
                "clear-traces",
                "export-traces",
                "log-level",
                "audit",
            ]
        );
    }
}
