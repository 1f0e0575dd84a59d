//! Evaluation and its variables; questions about code that run nothing.

use std::collections::BTreeMap;
use std::time::Instant;

use beamtalk_wire::ErrorBody;
use beamtalk_wire::requests::{self, CheckMode, CodeForm};

use super::parts::{FoundFault, faults, input, output, warnings};
use super::{Context, Failure};
use crate::capabilities::Era;
use crate::data::{AnyData, Data};
use crate::fit::RESULT_BYTES;
use crate::host::{Host, HostError, failure};
use crate::named_secrets;

/// Output that is kept of an evaluation.
const OUTPUT_BYTES: usize = 64 * 1024;
const USUAL_TIME_MS: u64 = 30_000;
/// The name by which variables are asked for that are forgotten afterwards.
const ONCE: &str = "once";

input! {
    Evaluate {
        /// Beamtalk code; several statements end in `.`.
        #[cfg_attr(feature = "schema", schemars(length(max = 262_144)))]
        code: String,
        ;
        /// A handle `ev_…`, or `new` to get one.
        session: String,
        /// Answer the value of each statement in `steps`.
        trace: bool,
        /// The longest it may take; 30000 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1)))]
        timeout_ms: u64,
    }
}

output! {
    Step {
        src: Data,
        text: Data,
    }
}

output! {
    Evaluated {
        /// As it is printed.
        text: Data,
        /// What it printed.
        output: Data,
        ms: u64,
        ;
        /// As JSON, where it has a form in JSON.
        value: AnyData,
        class: String,
        steps: Vec<Step>,
        /// What it defined.
        classes: Vec<String>,
        warnings: Vec<Data>,
        /// The handle whose variables were used; absent when nothing was kept.
        session: String,
    }
}

/// The handle to evaluate in: one's own, a new one, or none that stays.
async fn handle<H: Host>(context: &Context<'_, H>, session: Option<&str>) -> Result<String, HostError> {
    match (session, context.era) {
        (Some("new"), _) => open(context).await,
        (Some(ONCE), _) => Err(unknown_handle()),
        (Some(handle), _) => Ok(handle.to_owned()),
        (None, Era::Modern) => Ok(ONCE.to_owned()),
        (None, Era::Legacy(_)) => {
            let mut own = context.own_handle.lock().await;
            match &*own {
                Some(handle) => Ok(handle.clone()),
                None => {
                    let handle = open(context).await?;
                    *own = Some(handle.clone());
                    Ok(handle)
                }
            }
        }
    }
}

async fn open<H: Host>(context: &Context<'_, H>) -> Result<String, HostError> {
    Ok(context.ask(&requests::HandleOpen {}).await?.answer.handle)
}

fn unknown_handle() -> HostError {
    Box::new(
        failure("session_not_found", "there is no such session").hint("call evaluate with session \"new\""),
    )
}

pub(crate) async fn evaluate<H: Host>(
    context: &Context<'_, H>,
    input: Evaluate,
) -> Result<Evaluated, Failure> {
    let ceiling = u64::try_from(context.settings.eval_ceiling.as_millis()).unwrap_or(u64::MAX);
    let timeout = input.timeout_ms.unwrap_or(USUAL_TIME_MS.min(ceiling));
    if timeout > ceiling {
        let error = failure(
            "invalid_parameter",
            format!("the argument 'timeout_ms' must be at most {ceiling}"),
        )
        .detail("path", "/timeout_ms")
        .detail("expected", format!("integer of at most {ceiling}"))
        .detail("got", timeout);
        return Err(Failure::Error(Box::new(error)));
    }
    let used = handle(context, input.session.as_deref()).await?;
    let request = requests::Eval {
        code: input.code,
        trace: input.trace,
        timeout_ms: Some(timeout),
        handle: Some(used.clone()),
        loop_right: Some(context.settings.loop_right.name().to_owned()),
        ..requests::Eval::default()
    };
    let started = Instant::now();
    let asked = match (context.ask(&request).await, &input.session, context.era) {
        (Err(error), None, Era::Legacy(_)) => return Err(own_handle_ended(context, *error).await),
        (asked, _, _) => asked?,
    };
    let answer = asked.answer;
    let mut output = asked.output;
    output.truncate(output.floor_char_boundary(OUTPUT_BYTES));
    let step = |step: &beamtalk_wire::answers::TracedStep| Step {
        src: Data::new(&step.src),
        text: Data::new(named_secrets::masked_step(&step.src, &step.text)),
    };
    // A text that code made is no printed value.
    let is_text = answer.class.as_deref() == Some("String");
    Ok(Evaluated {
        text: if is_text {
            Data::new(&answer.text)
        } else {
            Data::named("", &answer.text)
        },
        ms: u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX),
        value: answer.value.map(|value| {
            AnyData::new(if is_text {
                value
            } else {
                named_secrets::masked_value(value)
            })
        }),
        class: answer.class,
        output: Data::output(&output),
        steps: answer.steps.map(|steps| steps.iter().map(step).collect()),
        classes: answer.classes,
        warnings: warnings(&asked.warnings),
        session: Some(used).filter(|used| used != ONCE),
    })
}

/// The connection's own handle may be gone: the next call opens another, and this one says that what it kept is lost.
async fn own_handle_ended<H: Host>(context: &Context<'_, H>, error: ErrorBody) -> Failure {
    let error = match error.kind.name() {
        "session_expired" => error,
        // A daemon that was started again knows nothing of it.
        "session_not_found" => failure("session_expired", "this session has ended: node restarted")
            .detail("reason", "node restarted"),
        _ => return Failure::Error(Box::new(error)),
    };
    context.own_handle.lock().await.take();
    let hint =
        "its variables are gone and this code was not evaluated; call evaluate again to begin a new session";
    Failure::Error(Box::new(error.hint(hint)))
}

input! {
    CloseSession {
        /// A handle `ev_…`.
        session: String,
    }
}

output! {
    Closed {
        closed: bool,
    }
}

pub(crate) async fn close_session<H: Host>(
    context: &Context<'_, H>,
    input: CloseSession,
) -> Result<Closed, Failure> {
    let request = requests::HandleClose {
        handle: input.session,
    };
    let closed = context.ask(&request).await?.answer.value;
    Ok(Closed { closed })
}

input! {
    Bindings {
        ;
        /// A handle `ev_…`.
        session: String,
    }
}

output! {
    BoundValue {
        ;
        text: Data,
        class: String,
    }
}

output! {
    Bound {
        /// By name.
        bindings: BTreeMap<String, BoundValue>,
    }
}

/// The handle of an old client's connection, if none is named.
async fn known_handle<H: Host>(context: &Context<'_, H>, session: Option<String>) -> Option<String> {
    match session {
        Some(session) => Some(session),
        None => context.own_handle.lock().await.clone(),
    }
}

pub(crate) async fn bindings<H: Host>(context: &Context<'_, H>, input: Bindings) -> Result<Bound, Failure> {
    let request = requests::Bindings {
        handle: known_handle(context, input.session).await,
        ..requests::Bindings::default()
    };
    let answer = context.ask(&request).await?.answer;
    let one = |(name, value): (String, beamtalk_wire::answers::BoundValue)| {
        let text = value.text.map(|text| Data::named(&name, text));
        let value = BoundValue {
            text,
            class: value.class,
        };
        (name, value)
    };
    Ok(Bound {
        bindings: answer.bindings.into_iter().map(one).collect(),
    })
}

input! {
    Interrupt {
        ;
        /// A handle `ev_…`; all of yours if absent.
        session: String,
    }
}

output! {
    Interrupted {
        /// How many evaluations were stopped.
        stopped: u64,
    }
}

pub(crate) async fn interrupt<H: Host>(
    context: &Context<'_, H>,
    input: Interrupt,
) -> Result<Interrupted, Failure> {
    let handles = match input.session {
        Some(session) => vec![session],
        None => {
            let all = context.ask(&requests::HandleList {}).await?.answer.handles;
            let busy = all.into_iter().filter(|handle| handle.busy);
            busy.map(|handle| handle.handle).collect()
        }
    };
    let mut stopped = 0;
    for handle in handles {
        let request = requests::Interrupt {
            r#for: None,
            handle: Some(handle),
        };
        stopped += u64::from(context.ask(&request).await?.answer.value);
    }
    Ok(Interrupted { stopped })
}

input! {
    Complete {
        /// The code up to and around the cursor.
        #[cfg_attr(feature = "schema", schemars(length(max = 262_144)))]
        code: String,
        ;
        /// Byte offset of the cursor; the end if absent.
        cursor: u64,
        /// A handle `ev_…` whose variables count.
        session: String,
    }
}

output! {
    Completion {
        text: String,
        kind: String,
        ;
        detail: Data,
        origin: String,
    }
}

output! {
    Completed {
        completions: Vec<Completion>,
        /// Byte offset of what they replace.
        start: u64,
    }
}

pub(crate) async fn complete<H: Host>(
    context: &Context<'_, H>,
    input: Complete,
) -> Result<Completed, Failure> {
    let request = requests::Complete {
        code: input.code,
        cursor: input.cursor,
        handle: known_handle(context, input.session).await,
    };
    let answer = context.ask(&request).await?.answer;
    let one = |found: beamtalk_wire::answers::Completion| Completion {
        text: found.text,
        kind: found.kind,
        detail: found.detail.map(Data::new),
        origin: found.origin,
    };
    Ok(Completed {
        completions: answer.completions.into_iter().map(one).collect(),
        start: answer.start,
    })
}

input! {
    CheckCode {
        /// The code to check.
        #[cfg_attr(feature = "schema", schemars(length(max = 262_144)))]
        code: String,
        ;
        /// What the code is: `expression` if absent.
        mode: CheckMode,
    }
}

output! {
    Checked {
        findings: Vec<FoundFault>,
    }
}

pub(crate) async fn check_code<H: Host>(
    context: &Context<'_, H>,
    input: CheckCode,
) -> Result<Checked, Failure> {
    let request = requests::Diagnostics {
        code: input.code,
        mode: input.mode,
        ..requests::Diagnostics::default()
    };
    let answer = context.ask(&request).await?.answer;
    Ok(Checked {
        findings: faults(&answer.diagnostics),
    })
}

input! {
    ShowCodegen {
        ;
        /// Code to compile; or give `class`.
        code: String,
        /// A class.
        class: String,
        /// One of its methods.
        selector: String,
        /// `erlang` if absent.
        form: CodeForm,
    }
}

output! {
    Code {
        text: Data,
    }
}

pub(crate) async fn show_codegen<H: Host>(
    context: &Context<'_, H>,
    input: ShowCodegen,
) -> Result<Code, Failure> {
    super::one_of(&[("code", input.code.is_some()), ("class", input.class.is_some())])?;
    let request = requests::ShowCodegen {
        code: input.code,
        class: input.class,
        selector: input.selector,
        form: input.form,
    };
    let answer = context.ask(&request).await?.answer;
    let text = answer.erlang.or(answer.core_erlang).unwrap_or_default();
    Ok(Code {
        text: Data::new(text),
    })
}

input! {
    ReadTranscript {
        ;
        /// How many of the last lines; 50 if absent.
        #[cfg_attr(feature = "schema", schemars(range(min = 1, max = 1000)))]
        lines: u64,
    }
}

output! {
    TranscriptText {
        text: Data,
        /// Entries that are kept no more.
        dropped: u64,
        ;
        truncated: bool,
    }
}

pub(crate) async fn read_transcript<H: Host>(
    context: &Context<'_, H>,
    input: ReadTranscript,
) -> Result<TranscriptText, Failure> {
    let count = input.lines.unwrap_or(50);
    let last = last_lines(context.host, count, TRANSCRIPT_BYTES).await?;
    Ok(TranscriptText {
        text: Data::new(last.text),
        dropped: last.dropped,
        truncated: last.is_cut.then_some(true),
    })
}

/// As many entries as the operation gives at once.
const TRANSCRIPT_ENTRIES: u64 = 1_000;
/// What is given of the Transcript, as it is written in a result that has more in it.
const TRANSCRIPT_BYTES: usize = RESULT_BYTES / 8 * 7;

/// The end of the Transcript.
pub(crate) struct LastLines {
    pub(crate) text: String,
    /// Entries that are kept no more.
    dropped: u64,
    /// Less than was asked for.
    pub(crate) is_cut: bool,
}

/// The last lines of what was written, as many as fit.
pub(crate) async fn last_lines<H: Host>(host: &H, count: u64, room: usize) -> Result<LastLines, HostError> {
    let mut text = String::new();
    let mut request = requests::Transcript {
        limit: Some(TRANSCRIPT_ENTRIES),
        ..requests::Transcript::default()
    };
    loop {
        let page = host.ask(&request).await?.answer;
        let older: String = page.entries.iter().map(|entry| entry.text.as_str()).collect();
        text.insert_str(0, &older);
        request.before = page.entries.first().map(|entry| entry.seq);
        let is_all = request.before.is_none_or(|seq| seq <= page.first);
        // An entry may be a piece of a line.
        let is_enough = text.split_inclusive('\n').count() as u64 > count || text.len() > room;
        if is_all || is_enough {
            let text = named_secrets::masked_output(&text);
            let (text, is_cut) = end_of(&text, count, room);
            return Ok(LastLines {
                text: text.to_owned(),
                dropped: page.first.saturating_sub(1),
                is_cut,
            });
        }
    }
}

/// The end of a Transcript that has room in a result.
pub(crate) fn newest(text: &str) -> &str {
    end_of(text, u64::MAX, TRANSCRIPT_BYTES).0
}

/// The last lines of a text that have room when they are shown, and whether there are more; of one that has none, its end.
fn end_of(text: &str, count: u64, room: usize) -> (&str, bool) {
    let shown = |text: &str| serde_json::to_string(&Data::new(text)).map_or(usize::MAX, |text| text.len());
    let (mut start, mut left) = (text.len(), room);
    for line in text
        .split_inclusive('\n')
        .rev()
        .take(usize::try_from(count).unwrap_or(usize::MAX))
    {
        match left.checked_sub(shown(line)) {
            Some(rest) => left = rest,
            None if start < text.len() => return (text.split_at(start).1, true),
            None => {
                let mut end = line;
                while shown(end) > room {
                    end = end.split_at(end.ceil_char_boundary(end.len() / 4 + 1)).1;
                }
                return (end, true);
            }
        }
        start -= line.len();
    }
    (text.split_at(start).1, false)
}
