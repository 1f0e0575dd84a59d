//! Facts of a loop as announcements of the image.

use beamtalk_etf::Term;
use beamtalk_loop::host::Fact;
use beamtalk_loop::report::{Exit, Report, Source, WorkflowPhase};

use crate::news::{Item, News, integer, symbol};

/// How many changed paths an announcement carries.
const PATHS: usize = 1_000;

/// Put into the queue of announcements what the image hears of.
pub(super) fn tell(news: &News, fact: &Fact<'_>) {
    for item in items(fact) {
        news.put(item);
    }
}

fn items(fact: &Fact<'_>) -> Vec<Item> {
    match fact {
        Fact::StateChanged { key } => vec![Item::new("LoopStateChanged", [("key", Term::binary(*key))])],
        Fact::ReloadSent => vec![Item::new("LoopReloadSent", [])],
        Fact::Started { process, pid } => {
            let fields = [("name", symbol(process)), ("pid", integer(Some(*pid)))];
            vec![Item::new("LoopProcessStarted", fields)]
        }
        Fact::Exited { process, pid, exit } => {
            let (code, signal) = match exit {
                Exit::Code(code) => (Some(*code), None),
                Exit::Signal(signal) => (None, Some(*signal)),
            };
            let fields = [
                ("name", symbol(process)),
                ("pid", integer(*pid)),
                ("code", integer(code)),
                ("signal", integer(signal)),
            ];
            vec![Item::new("LoopProcessExited", fields)]
        }
        Fact::Report(Report::Process {
            name,
            state: "ready",
            pid,
            ..
        }) => {
            let fields = [("name", symbol(name)), ("pid", integer(*pid))];
            vec![Item::new("LoopProcessReady", fields)]
        }
        Fact::Report(Report::Workflow {
            name,
            phase,
            source,
            changed,
            error,
            ms,
            ..
        }) => {
            let millis = ("millis", integer(ms.map(u64::cast_signed)));
            let own = ("name", symbol(name));
            match phase {
                WorkflowPhase::Start => {
                    let started = Item::new("LoopWorkflowStarted", [own]);
                    files(name, *source, changed)
                        .into_iter()
                        .chain([started])
                        .collect()
                }
                WorkflowPhase::Ok => vec![Item::new("LoopWorkflowFinished", [own, millis])],
                WorkflowPhase::Failed => {
                    let message = error.as_deref().unwrap_or("it failed");
                    vec![Item::new(
                        "LoopWorkflowFailed",
                        [own, ("message", Term::binary(message))],
                    )]
                }
            }
        }
        Fact::Report(Report::Event(audit)) => {
            let name = ("name", symbol(&audit.event));
            vec![if audit.changed.is_some() {
                Item::new("LoopEventAccepted", [name])
            } else {
                let status = Term::Integer(i64::from(audit.status));
                Item::new("LoopEventRejected", [name, ("status", status)])
            }]
        }
        Fact::Report(_) | Fact::Output { .. } => Vec::new(),
    }
}

fn files(workflow: &str, source: Source, changed: &[String]) -> Option<Item> {
    if source != Source::Watch || changed.is_empty() {
        return None;
    }
    let paths = changed.iter().take(PATHS).map(Term::binary);
    let fields = [("workflow", symbol(workflow)), ("paths", Term::list(paths))];
    Some(Item::new("LoopFilesChanged", fields))
}
