//! What an operation answers, whichever it is.

use beamtalk_wire::answers::{
    ApprovalAskAnswer, ApprovalsAnswer, AuditSummaryAnswer, AuditTrailAnswer, AutoflushAnswer,
    BrowseClassAnswer, ChangeSidesAnswer, ChangesAnswer, ChannelsAnswer, ClearChangesAnswer, CloneAnswer,
    CompleteAnswer, DecideAnswer, DescribeAnswer, DeskReadAnswer, DeskWriteAnswer, DiagnosticsAnswer,
    DiffAnswer, DirtyAnswer, DocCellsAnswer, DocListAnswer, DocReadAnswer, DocWriteAnswer, DocsAnswer,
    EntryAnswer, EvalAnswer, FindingsAnswer, FlushAnswer, FormatAnswer, HandleListAnswer, HandleOpenAnswer,
    HealthAnswer, HoverAnswer, JobAnswer, LastResultsAnswer, LoadAnswer, LogAnswer, LoopRunAnswer, Nothing,
    PrecheckMethodAnswer, QuestionKeepAnswer, QuestionTakeAnswer, ReloadAnswer, ReplayAnswer, RestoreAnswer,
    SaveClassAnswer, SaveMethodAnswer, SessionsAnswer, ShowCodegenAnswer, SourceAnswer, TakeAnswer,
    TestAnswer, TranscriptAnswer, TreeListAnswer, TreeReadAnswer, TreeWriteAnswer, ValueAnswer, Warning,
};
use beamtalk_wire::{Flag, Head, LoggedEntry};
use serde::Serialize;
use serde_json::{Map, Value};

use super::eval::Evaluated;
use crate::record::{Touched, Touches};

/// An answer with what belongs to every one.
pub(crate) struct Reply {
    answer: Box<dyn Body>,
    pub(crate) flags: Vec<Flag>,
    pub(crate) warnings: Vec<Warning>,
    pub(crate) touched: Touched,
}

/// What the node answered, as it is.
#[derive(Serialize)]
pub(crate) struct Passed(pub(crate) Map<String, Value>);

/// An answer of some type.
trait Body {
    fn text(&self, head: &Head) -> Result<String, serde_json::Error>;
    fn object(&self) -> Map<String, Value>;
}

impl<T: Serialize> Body for T {
    fn text(&self, head: &Head) -> Result<String, serde_json::Error> {
        head.with(self)
    }

    fn object(&self) -> Map<String, Value> {
        beamtalk_wire::object(self)
    }
}

impl Reply {
    pub(crate) fn new(answer: impl Answered + 'static) -> Self {
        let warning = |new: &LoggedEntry| new.warning.clone().map(Warning::said);
        Self {
            warnings: answer.new_entries().iter().filter_map(warning).collect(),
            touched: answer.touched(),
            flags: Vec::new(),
            answer: Box::new(answer),
        }
    }

    /// The last message of the request.
    pub(crate) fn text(self, id: &str, session: Option<&str>) -> String {
        let head = Head::done(id, session, &self.flags, self.warnings);
        self.answer.text(&head).unwrap_or_else(|cause| {
            tracing::error!("an answer cannot be written: {cause}");
            text_of(&head)
        })
    }

    /// For code in the image.
    pub(crate) fn object(self) -> Map<String, Value> {
        let mut fields = self.answer.object();
        if !self.warnings.is_empty() {
            fields.insert("warnings".to_owned(), serde_json::json!(self.warnings));
        }
        fields
    }
}

impl From<Evaluated> for Reply {
    fn from(evaluated: Evaluated) -> Self {
        let mut reply = Self::new(evaluated.answer);
        let of_entries = std::mem::replace(&mut reply.warnings, evaluated.warnings);
        reply.warnings.extend(of_entries);
        reply.flags.extend(evaluated.is_cut.then_some(Flag::Truncated));
        reply
    }
}

/// A message without an operation's own fields.
pub(crate) fn text_of(head: &Head) -> String {
    // Everything in it has a form in JSON.
    serde_json::to_string(head).unwrap_or_default()
}

/// An answer that the daemon can send.
pub(crate) trait Answered: Serialize + Touches {
    /// Entries that were just made: what they warn of, the answer does.
    fn new_entries(&self) -> &[LoggedEntry] {
        &[]
    }
}

macro_rules! answers {
    ($($answer:ident),*) => {
        $(
            impl Touches for $answer {}
            impl Answered for $answer {}
        )*
    };
}

answers!(
    ChangeSidesAnswer,
    ChangesAnswer,
    ChannelsAnswer,
    ClearChangesAnswer,
    CloneAnswer,
    CompleteAnswer,
    AuditTrailAnswer,
    AutoflushAnswer,
    BrowseClassAnswer,
    FormatAnswer,
    DescribeAnswer,
    DeskReadAnswer,
    DeskWriteAnswer,
    DocCellsAnswer,
    DocListAnswer,
    DocReadAnswer,
    ReplayAnswer,
    TranscriptAnswer,
    LastResultsAnswer,
    LogAnswer,
    DiagnosticsAnswer,
    DiffAnswer,
    DirtyAnswer,
    DocsAnswer,
    FindingsAnswer,
    HandleListAnswer,
    HandleOpenAnswer,
    ApprovalAskAnswer,
    ApprovalsAnswer,
    AuditSummaryAnswer,
    JobAnswer,
    LoopRunAnswer,
    HealthAnswer,
    HoverAnswer,
    Nothing,
    Passed,
    PrecheckMethodAnswer,
    QuestionKeepAnswer,
    QuestionTakeAnswer,
    SessionsAnswer,
    ShowCodegenAnswer,
    TakeAnswer,
    TestAnswer,
    TreeListAnswer,
    TreeReadAnswer,
    TreeWriteAnswer,
    ValueAnswer
);

impl Answered for DecideAnswer {}
impl Answered for DocWriteAnswer {}
impl Answered for FlushAnswer {}
impl Answered for LoadAnswer {}
impl Answered for ReloadAnswer {}
impl Answered for RestoreAnswer {}

impl Touches for EvalAnswer {}
impl Answered for EvalAnswer {
    fn new_entries(&self) -> &[LoggedEntry] {
        self.entries.as_deref().unwrap_or_default()
    }
}

impl Answered for SourceAnswer {
    fn new_entries(&self) -> &[LoggedEntry] {
        self.entries.as_deref().unwrap_or_default()
    }
}

impl Touches for SaveMethodAnswer {}
impl Answered for SaveMethodAnswer {
    fn new_entries(&self) -> &[LoggedEntry] {
        self.entry.as_slice()
    }
}

impl Answered for SaveClassAnswer {
    fn new_entries(&self) -> &[LoggedEntry] {
        std::slice::from_ref(&self.entry)
    }
}

impl Answered for EntryAnswer {
    fn new_entries(&self) -> &[LoggedEntry] {
        self.entry.as_slice()
    }
}
