//! The audit records of operations, as data.

use std::time::Duration;

use beamtalk_wire::{ErrorBody, Op, Request};
use serde_json::Value;

use crate::audit::{Audit, Event, Outcome};
use crate::ops::Answer;

/// The record of an operation that is about to be performed.
pub(crate) fn begin(audit: &Audit, request: &Request) -> Event {
    let source = text(request, "code").or_else(|| text(request, "source"));
    let target = ["class", "path", "actor", "file", "name", "for"]
        .iter()
        .find_map(|field| text(request, field));
    Event::Begin {
        op: request.op.name().to_owned(),
        target: target.map(str::to_owned),
        source: source.map(|source| audit.source(source)),
    }
}

/// The records of one operation: its own type, and limits as a type of their own. What failed without an effect is
/// recorded for what runs code: evaluations, tests, programs.
pub(crate) fn of(
    audit: &Audit,
    request: &Request,
    answer: &Result<Answer, ErrorBody>,
    time: Duration,
) -> Vec<Event> {
    let mut records = Vec::new();
    match answer {
        Ok(answer) => records.extend(done(audit, request, answer, time)),
        Err(error) => {
            let outcome = match error.kind.as_str() {
                "interrupted" => Outcome::Interrupted,
                "eval_limit" => Outcome::Limit,
                _ => Outcome::Error,
            };
            if request.op == Op::Eval {
                records.push(evaluation(
                    audit,
                    request,
                    outcome,
                    Some(error.kind.clone()),
                    time,
                ));
            }
            records.extend(refusal(request, error));
            records.extend(ended(request, outcome));
            if matches!(error.kind.as_str(), "eval_limit" | "compiler_limit") {
                let detail = error.details.get("limit").and_then(Value::as_str);
                records.push(Event::Limit {
                    what: request.op.name().to_owned(),
                    detail: detail.unwrap_or("unknown").to_owned(),
                    count: None,
                });
            }
        }
    }
    records
}

/// What the daemon or the compiler refuses because a capability is switched off; the node tells its own refusals.
fn refusal(request: &Request, error: &ErrorBody) -> Option<Event> {
    let is_foreign_call = |found: &Value| found["code"] == "E0501";
    let what = if error.diagnostics.iter().any(is_foreign_call) {
        "ffi"
    } else if request.op == Op::Flush && error.kind == "capability_disabled" {
        "fs"
    } else {
        return None;
    };
    Some(Event::CapabilityDisabled {
        what: what.to_owned(),
        detail: request.op.name().to_owned(),
    })
}

fn evaluation(
    audit: &Audit,
    request: &Request,
    outcome: Outcome,
    error_kind: Option<String>,
    time: Duration,
) -> Event {
    Event::Eval {
        source: audit.source(text(request, "code").unwrap_or_default()),
        ms: u64::try_from(time.as_millis()).unwrap_or(u64::MAX),
        outcome,
        error_kind,
    }
}

fn done(audit: &Audit, request: &Request, answer: &Answer, time: Duration) -> Option<Event> {
    let own = |field: &str| text(request, field).map(str::to_owned);
    let named = |field: &str| own(field).unwrap_or_default();
    let hash = |field: &str| text(request, field).map(|source| audit.source(source).sha256().to_owned());
    let record = match request.op {
        Op::Eval => evaluation(audit, request, Outcome::Ok, None, time),
        Op::LoadFile | Op::LoadSource | Op::LoadProject | Op::LoadTests | Op::Reload | Op::SaveClass => {
            Event::Load {
                what: match request.op {
                    Op::LoadFile => "file",
                    Op::LoadSource | Op::SaveClass => "source",
                    Op::Reload => "reload",
                    _ => "project",
                }
                .to_owned(),
                path: own("path").or_else(|| own("name")),
                classes: strings(answer.fields.get("classes")),
                sha256: hash("source"),
            }
        }
        Op::SaveMethod | Op::TryMethod => Event::Method {
            class: named("class"),
            selector: named("selector"),
            side: own("side").unwrap_or_else(|| "instance".to_owned()),
            intent: if request.op == Op::TryMethod {
                "ephemeral"
            } else {
                "durable"
            }
            .to_owned(),
            sha256: hash("source"),
        },
        Op::Revert => Event::Method {
            class: entry_text(answer, "class"),
            selector: entry_text(answer, "selector"),
            side: entry_text(answer, "side"),
            intent: "durable".to_owned(),
            sha256: None,
        },
        Op::Restore => Event::Load {
            what: "restore".to_owned(),
            path: None,
            classes: classes_of(answer.fields.get("entries")),
            sha256: None,
        },
        Op::RemoveMethod | Op::RemoveClass | Op::Unload => Event::Remove {
            class: named("class"),
            selector: own("selector"),
        },
        Op::ClearChanges => Event::Remove {
            class: "(pending changes)".to_owned(),
            selector: None,
        },
        Op::Take | Op::Discard => Event::Load {
            what: request.op.name().to_owned(),
            path: own("file").or_else(|| own("class")),
            classes: strings(answer.fields.get("classes")),
            sha256: None,
        },
        Op::Settle => Event::Flush {
            class: None,
            files: vec![named("file")],
            destructive: false,
        },
        Op::Flush => Event::Flush {
            class: own("class"),
            files: strings(answer.fields.get("files")),
            destructive: request.fields.get("confirm_destructive") == Some(&Value::Bool(true)),
        },
        Op::Kill => Event::Kill {
            actor: named("actor"),
            class: None,
        },
        Op::Test | Op::TestAll => Event::Test {
            target: target(request),
            outcome: if answer.flags.contains(&"test-error") {
                "failed"
            } else {
                "passed"
            }
            .to_owned(),
        },
        Op::RunEntry => Event::Run {
            target: target(request),
            outcome: "ok".to_owned(),
        },
        // The stop itself is recorded when it happens; what is left reads, or only observes.
        _ => return None,
    };
    Some(record)
}

/// Tests and programs that did not come to their end.
fn ended(request: &Request, outcome: Outcome) -> Option<Event> {
    let outcome = match outcome {
        Outcome::Interrupted => "interrupted",
        Outcome::Limit => "limit",
        Outcome::Ok | Outcome::Error => "error",
    }
    .to_owned();
    let target = target(request);
    match request.op {
        Op::Test | Op::TestAll => Some(Event::Test { target, outcome }),
        Op::RunEntry => Some(Event::Run { target, outcome }),
        _ => None,
    }
}

/// What is tested, or run.
fn target(request: &Request) -> String {
    let named = |field: &str| text(request, field).unwrap_or_default();
    match request.op {
        Op::RunEntry => format!("{} {}", named("class"), named("selector")),
        _ => text(request, "class")
            .or_else(|| text(request, "file"))
            .unwrap_or("all")
            .to_owned(),
    }
}

fn text<'a>(request: &'a Request, field: &str) -> Option<&'a str> {
    request.fields.get(field).and_then(Value::as_str)
}

fn entry_text(answer: &Answer, field: &str) -> String {
    let entry = answer.fields.get("entry");
    let text = entry.and_then(|entry| entry.get(field)).and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

/// The classes of entries of the change log.
fn classes_of(entries: Option<&Value>) -> Vec<String> {
    let entries = entries.and_then(Value::as_array).into_iter().flatten();
    let mut classes: Vec<String> = entries
        .filter_map(|entry| entry["class"].as_str().map(str::to_owned))
        .collect();
    classes.dedup();
    classes
}

/// The texts of a list, and the `file` of its objects.
fn strings(value: Option<&Value>) -> Vec<String> {
    let elements = value.and_then(Value::as_array).into_iter().flatten();
    elements
        .filter_map(|element| element.as_str().or_else(|| element.get("file")?.as_str()))
        .map(str::to_owned)
        .collect()
}
