//! The audit records of operations: what the audit sees of a request and of its answer.

use std::time::Duration;

use beamtalk_wire::answers::{
    DecideAnswer, DocWriteAnswer, EntryAnswer, FlushAnswer, LoadAnswer, ReloadAnswer, RestoreAnswer,
    SaveClassAnswer, SourceAnswer,
};
use beamtalk_wire::{Entry, ErrorBody, ErrorKind, Flag, Op, Request, Side};
use serde_json::Value;

use crate::audit::{Audit, Event, Outcome};
use crate::ops::Reply;

/// What an answer says was touched.
#[derive(Debug, Default)]
pub(crate) struct Touched {
    pub(crate) classes: Vec<String>,
    pub(crate) files: Vec<String>,
    pub(crate) method: Option<(String, String, Side)>,
}

impl Touched {
    fn classes(classes: &[String]) -> Self {
        Self {
            classes: classes.to_vec(),
            ..Self::default()
        }
    }
}

/// An answer, as far as the audit is concerned.
pub(crate) trait Touches {
    fn touched(&self) -> Touched {
        Touched::default()
    }
}

macro_rules! touches_classes {
    ($($answer:ident),*) => {
        $(impl Touches for $answer {
            fn touched(&self) -> Touched {
                Touched::classes(&self.classes)
            }
        })*
    };
}

touches_classes!(
    LoadAnswer,
    SourceAnswer,
    ReloadAnswer,
    SaveClassAnswer,
    DecideAnswer,
    DocWriteAnswer
);

impl Touches for RestoreAnswer {
    fn touched(&self) -> Touched {
        let mut classes: Vec<String> = self.entries.iter().map(|entry| entry.class.clone()).collect();
        classes.dedup();
        Touched::classes(&classes)
    }
}

impl Touches for FlushAnswer {
    fn touched(&self) -> Touched {
        Touched {
            files: self.files.iter().map(|file| file.file.clone()).collect(),
            ..Touched::default()
        }
    }
}

impl Touches for EntryAnswer {
    fn touched(&self) -> Touched {
        let method = |entry: &Entry| {
            let selector = entry.selector.clone().unwrap_or_default();
            (entry.class.clone(), selector, entry.side.unwrap_or_default())
        };
        Touched {
            method: self.entry.as_ref().map(|new| method(&new.entry)),
            ..Touched::default()
        }
    }
}

/// The record of an operation that is about to be performed.
pub(crate) fn begin(audit: &Audit, request: &Request) -> Event {
    Event::Begin {
        op: request.op().name().to_owned(),
        target: request.target().map(str::to_owned),
        source: request.source().map(|source| audit.source(source)),
    }
}

/// The records of one operation: its own type, and limits as a type of their own. What failed without an effect is
/// recorded for what runs code: evaluations, tests, programs.
pub(crate) fn of(
    audit: &Audit,
    principal: &str,
    request: &Request,
    reply: &Result<Reply, ErrorBody>,
    time: Duration,
) -> Vec<Event> {
    let error = match reply {
        Ok(reply) => {
            let denied = match request {
                Request::McpCall(call) if call.outcome == "denied" => Some(Event::PolicyDenied {
                    what: call.tool.clone(),
                    detail: call.error_kind.clone().unwrap_or_default(),
                }),
                _ => None,
            };
            let own = match request {
                Request::McpCall(call) => Some(Event::Mcp {
                    principal: principal.to_owned(),
                    call: Box::new(call.clone()),
                }),
                _ => done(audit, request, reply, time),
            };
            return own.into_iter().chain(denied).collect();
        }
        Err(error) => error,
    };
    let mut records = Vec::new();
    let outcome = match error.kind {
        ErrorKind::Interrupted => Outcome::Interrupted,
        ErrorKind::EvalLimit => Outcome::Limit,
        _ => Outcome::Error,
    };
    records.extend(ended(audit, request, outcome, error, time));
    records.extend(refusal(request.op(), error));
    if matches!(error.kind, ErrorKind::EvalLimit | ErrorKind::CompilerLimit) {
        let detail = error.details.get("limit").and_then(Value::as_str);
        records.push(Event::Limit {
            what: request.op().name().to_owned(),
            detail: detail.unwrap_or("unknown").to_owned(),
            count: None,
        });
    }
    records
}

/// What the daemon or the compiler refuses because a capability is switched off; the node tells its own refusals.
fn refusal(op: Op, error: &ErrorBody) -> Option<Event> {
    let mut found = error.diagnostics.iter();
    let what = if found.any(|found| found.code.as_deref() == Some("E0501")) {
        "ffi"
    } else if matches!(op, Op::Flush | Op::DocWrite) && error.kind == ErrorKind::CapabilityDisabled {
        "fs"
    } else {
        return None;
    };
    Some(Event::CapabilityDisabled {
        what: what.to_owned(),
        detail: op.name().to_owned(),
    })
}

fn evaluation(
    audit: &Audit,
    code: &str,
    outcome: Outcome,
    error: Option<&ErrorBody>,
    time: Duration,
) -> Event {
    Event::Eval {
        source: audit.source(code),
        ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        outcome,
        error_kind: error.map(|error| error.kind.to_string()),
    }
}

fn done(audit: &Audit, request: &Request, reply: &Reply, time: Duration) -> Option<Event> {
    let hash = |source: &str| Some(audit.source(source).sha256().to_owned());
    let load = |what: &str, path: Option<&String>, sha256: Option<String>| Event::Load {
        what: what.to_owned(),
        path: path.cloned(),
        classes: reply.touched.classes.clone(),
        sha256,
    };
    let method =
        |class: &str, selector: &str, side: Side, intent: &str, sha256: Option<String>| Event::Method {
            class: class.to_owned(),
            selector: selector.to_owned(),
            side: side.name().to_owned(),
            intent: intent.to_owned(),
            sha256,
        };
    let removed = |class: &str, selector: Option<&String>| Event::Remove {
        class: class.to_owned(),
        selector: selector.cloned(),
    };
    let record = match request {
        Request::Eval(eval) => evaluation(audit, &eval.code, Outcome::Ok, None, time),
        Request::LoadFile(file) => load("file", Some(&file.path), None),
        Request::LoadSource(source) => load("source", source.name.as_ref(), hash(&source.source)),
        Request::SaveClass(class) => load("source", Some(&class.path), hash(&class.source)),
        Request::LoadProject(project) => load("project", project.path.as_ref(), None),
        Request::LoadTests(_) => load("project", None, None),
        Request::Reload(_) => load("reload", None, None),
        Request::Restore(_) => load("restore", None, None),
        Request::Take(take) => load("take", take.file.as_ref().or(take.class.as_ref()), None),
        Request::Discard(discard) => load("discard", discard.class.as_ref(), None),
        Request::SaveMethod(save) => {
            let side = save.side.unwrap_or_default();
            method(&save.class, &save.selector, side, "durable", hash(&save.source))
        }
        Request::TryMethod(tried) => {
            let side = tried.side.unwrap_or_default();
            method(
                &tried.class,
                &tried.selector,
                side,
                "ephemeral",
                hash(&tried.source),
            )
        }
        Request::Revert(_) => {
            let (class, selector, side) = reply.touched.method.as_ref()?;
            method(class, selector, *side, "durable", None)
        }
        Request::RemoveMethod(remove) => removed(&remove.class, Some(&remove.selector)),
        Request::RemoveClass(remove) => removed(&remove.class, None),
        Request::Unload(unload) => removed(&unload.class, None),
        Request::ClearChanges(_) => removed("(pending changes)", None),
        Request::Settle(settle) => Event::Flush {
            class: None,
            files: vec![settle.file.clone()],
            destructive: false,
        },
        Request::Flush(flush) => Event::Flush {
            class: flush.class.clone(),
            files: reply.touched.files.clone(),
            destructive: flush.confirm_destructive == Some(true),
        },
        Request::Kill(kill) => Event::Kill {
            actor: kill.actor.clone(),
            class: None,
        },
        Request::Test(_) | Request::TestAll(_) => Event::Test {
            target: tested(request),
            outcome: if reply.flags.contains(&Flag::TestError) {
                "failed"
            } else {
                "passed"
            }
            .to_owned(),
        },
        Request::ApprovalAnswer(said) => Event::Approval {
            id: said.r#for.clone(),
            sha256: said.sha256.clone(),
            answer: said.answer.clone(),
        },
        Request::DocWrite(write) => Event::Doc {
            path: write.path.clone(),
            sha256: hash(&write.text),
        },
        Request::TreeWrite(write) => Event::Tree {
            path: write.path.clone(),
            sha256: hash(&write.data),
        },
        Request::LoopRun(run) => Event::Run {
            target: format!("workflow {}", run.workflow),
            outcome: "ok".to_owned(),
        },
        Request::RunEntry(entry) => Event::Run {
            target: format!("{} {}", entry.class, entry.selector),
            outcome: "ok".to_owned(),
        },
        // The stop itself is recorded when it happens; what is left reads, or only observes.
        _ => return None,
    };
    Some(record)
}

/// Evaluations, tests and programs that did not come to their end.
fn ended(
    audit: &Audit,
    request: &Request,
    outcome: Outcome,
    error: &ErrorBody,
    time: Duration,
) -> Option<Event> {
    let told = match outcome {
        Outcome::Interrupted => "interrupted",
        Outcome::Limit => "limit",
        Outcome::Ok | Outcome::Error => "error",
    }
    .to_owned();
    match request {
        Request::Eval(eval) => Some(evaluation(audit, &eval.code, outcome, Some(error), time)),
        Request::Test(_) | Request::TestAll(_) => Some(Event::Test {
            target: tested(request),
            outcome: told,
        }),
        Request::LoopRun(run) => Some(Event::Run {
            target: format!("workflow {}", run.workflow),
            outcome: told,
        }),
        Request::RunEntry(entry) => Some(Event::Run {
            target: format!("{} {}", entry.class, entry.selector),
            outcome: told,
        }),
        _ => None,
    }
}

fn tested(request: &Request) -> String {
    let target = match request {
        Request::Test(test) => test
            .class
            .as_ref()
            .or(test.file.as_ref())
            .or(test.document.as_ref()),
        _ => None,
    };
    target.map_or_else(|| "all".to_owned(), Clone::clone)
}
