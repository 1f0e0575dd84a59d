//! Requests: a type for each operation. Their comments are the text of `docs/protocol.md`.

mod actors;
mod browser;
mod changes;
mod classes;
mod editing;
mod evaluation;
mod field;
mod loading;
mod observation;
mod sessions;
mod tests;
mod views;

pub use actors::{
    ActorName, ActorOrder, Actors, Inspect, Kill, PidStats, Scope, Step, SupervisionTree, TopActors, TopOrder,
};
pub use browser::{
    AuditTrail, Autoflush, Cancel, DeskRead, DeskWrite, DocCells, DocList, DocRead, DocWrite, Format, Log,
    Replay, TextForm, Transcript, TreeEncoding, TreeFollow, TreeList, TreeRead, TreeWrite, Vitals,
};
pub use changes::{
    ChangeSides, Changes, ClearChanges, Diff, Dirty, Discard, Flush, From, Restore, Revert, Settle, Take,
    WantedKind,
};
pub use classes::{
    BrowseClass, BrowseClassDefinition, BrowseClasses, BrowseMethodSource, BrowseNativeSource,
    BrowseProtocols, ListClasses, Methods, NavKind, NavQuery, NavSymbols, SymbolScope,
};
pub use editing::{
    PrecheckMethod, RecheckImage, ReloadFindings, RemoveClass, RemoveMethod, SaveClass, SaveMethod, TryMethod,
};
pub use evaluation::{
    CheckMode, CodeForm, Complete, Diagnostics, Docs, ErlangComplete, Eval, Hover, Info, Interrupt, LoopRun,
    RunEntry, SelfTarget, ShowCodegen, Stdin,
};
pub use field::{Field, OneOrMore};
pub(crate) use field::{Fields, Wanted};
pub use loading::{LoadFile, LoadProject, LoadSource, LoadTests, Modules, Reload, Unload};
pub use observation::{
    ActorStats, ClearTraces, Describe, DisableTracing, EnableTracing, ExportTraces, GetTraces, Health,
    LogLevel, McpCall, Shutdown, Subscribe, Unsubscribe,
};
pub use sessions::{
    ApprovalAnswer, ApprovalAsk, Approvals, AuditSummary, BindingScope, Bindings, Clear, Clone, Close,
    HandleClose, HandleList, HandleOpen, JobCancel, JobGet, JobStart, QuestionKeep, QuestionTake, Sessions,
    Unbind, UnbindScope,
};
pub use tests::{LastResults, ListTests, Test, TestAll};
pub use views::{View, Views};
