//! Answers: a type for each operation. What belongs to every answer (`id`, `session`, `status`, `warnings`) is not in them.

mod actors;
mod browser;
mod changes;
mod classes;
mod code;
mod editing;
mod evaluation;
mod finding;
mod loading;
mod observation;
mod sessions;
mod tests;
mod views;

pub use actors::{
    Actor, ActorsAnswer, ClassCount, InspectAnswer, InspectedField, PidStatsAnswer, ProcessStats,
    SupervisedProcess, SupervisionTreeAnswer, TopActor, TopActorsAnswer, Understood,
};
pub use browser::{
    AuditTrailAnswer, AutoflushAnswer, DeskItem, DeskReadAnswer, DeskWriteAnswer, DocCell, DocCellsAnswer,
    DocListAnswer, DocReadAnswer, DocWriteAnswer, DocumentInfo, FormatAnswer, InputPlace, LogAnswer, LogLine,
    ReplayAnswer, TranscriptAnswer, TranscriptEntry, TreeListAnswer, TreeReadAnswer, TreeWriteAnswer,
    VitalsAnswer,
};
pub use changes::{
    ChangeSidesAnswer, ChangesAnswer, ClearChangesAnswer, Conflict, ConflictReason, DecideAnswer, DiffAnswer,
    DirtyAnswer, EntryAnswer, FileChange, FlushAnswer, FlushedFile, HeldBack, NotInstalled, Place,
    RestoreAnswer, Skip, TakeAnswer,
};
pub use classes::{
    BrowseClassAnswer, BrowseClassDefinitionAnswer, BrowseClassesAnswer, BrowseMethodSourceAnswer,
    BrowseNativeSourceAnswer, BrowseProtocolsAnswer, ClassRow, ClassSummary, ListClassesAnswer, MethodPlace,
    MethodText, MethodsAnswer, NativeClause, NavQueryAnswer, NavSymbolsAnswer, Protocol, ProtocolSelector,
    Site, StateField, Symbol,
};
pub use code::{
    ClassInfo, CompleteAnswer, Completion, DiagnosticsAnswer, DocsAnswer, ErlangCompleteAnswer, HoverAnswer,
    InfoAnswer, SelectorInfo, ShowCodegenAnswer, SymbolInfo,
};
pub use editing::{FindingsAnswer, PrecheckMethodAnswer, SaveClassAnswer, SaveMethodAnswer};
pub use evaluation::{EvalAnswer, LoopRunAnswer, TracedStep, ValueAnswer};
pub use finding::{
    ChangedUse, Diagnostic, Finding, FindingSite, Note, Severity, TextEdit, UseFinding, Warning,
};
pub use loading::{
    LoadAnswer, LoadError, LoadedModule, MigrationFailure, ModulesAnswer, ReloadAnswer, SourceAnswer,
};
pub use observation::{
    ActorStatsAnswer, AuditState, Capabilities, ChannelsAnswer, DescribeAnswer, ExportTracesAnswer,
    FileAccess, GetTracesAnswer, HealthAnswer, LimitsInForce, LoadedProject, LogLevelAnswer, NodeMemory,
    OpDescription, Trace, TraceStats, Versions,
};
pub use sessions::{
    Approval, ApprovalAskAnswer, ApprovalRule, ApprovalsAnswer, AuditSummaryAnswer, BindingsAnswer,
    BoundValue, CloneAnswer, HandleInfo, HandleListAnswer, HandleOpenAnswer, JobAnswer, QuestionKeepAnswer,
    QuestionTakeAnswer, SessionInfo, SessionsAnswer, ToolCount,
};
pub use tests::{
    LastOutcome, LastResultsAnswer, ListTestsAnswer, RunningTests, TestAnswer, TestClass, TestDocument,
    TestExample, TestFailure, TestOutcome, TestResults,
};
pub use views::{
    Opened, ShownView, ViewAnswer, ViewAxis, ViewCell, ViewColumn, ViewFigure, ViewName, ViewNode, ViewRow,
    ViewSeries, ViewsAnswer,
};

/// Declares a part of an answer: what it always has, then what it may have.
macro_rules! answer {
    (
        $(#[$about:meta])*
        $name:ident {
            $($(#[$field_about:meta])* $field:ident: $type:ty,)*
            $(; $($(#[$part_about:meta])* $part:ident: $part_type:ty,)*)?
        }
    ) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
        #[cfg_attr(feature = "schema", derive(schemars::JsonSchema, ts_rs::TS))]
        pub struct $name {
            $($(#[$field_about])* pub $field: $type,)*
            $($($(#[$part_about])*
            #[serde(default, skip_serializing_if = "Option::is_none")]
            #[cfg_attr(feature = "schema", ts(optional))]
            pub $part: Option<$part_type>,)*)?
        }
    };
}
pub(crate) use answer;

answer! {
    /// That it was done.
    #[derive(Default)]
    Nothing {}
}
