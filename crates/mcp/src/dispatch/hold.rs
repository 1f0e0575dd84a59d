//! Calls that are held until a person answers: in the terminal, the browser, wherever the workspace shows them.

use beamtalk_wire::escape;
use beamtalk_wire::requests;
use serde_json::{Map, Value};

use crate::confirmation::Effect;
use crate::host::{Host, HostError, failure};
use crate::progress::Progress;
use crate::session::Session;
use crate::settings::{Approval, Way};
use crate::tools::{Class, Tool};

/// What writes files or steers the loop.
const WRITING: [&str; 5] = [
    "flush",
    "write_file",
    "save_class",
    "control_process",
    "run_workflow",
];
/// The longest diff that is shown.
const DIFF_BYTES: usize = 64 * 1024;
/// What makes a durable change, which is a file at once where changes are flushed by themselves.
const DURABLE: [&str; 4] = ["save_method", "remove_method", "revert_change", "remove_class"];

/// Whether calls of a tool wait for a person.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Holds {
    No,
    Yes,
    /// Where changes are flushed by themselves.
    IfFlushed,
}

pub(crate) fn holds(approval: Approval, tool: &Tool, is_destructive: bool) -> Holds {
    let is_held = match approval {
        Approval::Off => false,
        // A question to a person always waits for one.
        Approval::Execute => tool.class != Class::Read && tool.name != "ask_person",
        Approval::Destructive => is_destructive,
        Approval::Write if DURABLE.contains(&tool.name) && !is_destructive => return Holds::IfFlushed,
        Approval::Write => is_destructive || WRITING.contains(&tool.name),
    };
    if is_held { Holds::Yes } else { Holds::No }
}

/// Whether the very same call may be approved always. What runs any code is asked for each time.
pub(crate) fn may_be_rule(tool: &Tool) -> bool {
    tool.class == Class::Execute && !matches!(tool.name, "evaluate" | "execute_code")
}

/// Files of the workspace at a session's door ask by themselves.
fn asks_itself<H: Host>(session: &Session<H>, tool: &Tool, given: &Map<String, Value>) -> bool {
    let path = given.get("path").and_then(Value::as_str).unwrap_or_default();
    let top = path.trim_start_matches('/').split('/').next().unwrap_or_default();
    tool.name == "write_file" && session.settings.way == Way::Door && matches!(top, "actors" | "loop")
}

/// Whether a call waits for a person.
pub(super) async fn is_held<H: Host>(
    session: &Session<H>,
    tool: &Tool,
    given: &Map<String, Value>,
    is_destructive: bool,
) -> bool {
    if asks_itself(session, tool, given) {
        return false;
    }
    match holds(session.settings.approval, tool, is_destructive) {
        Holds::No => false,
        Holds::Yes => true,
        Holds::IfFlushed => {
            let asked = session.host.ask(&requests::Autoflush { on: None }).await;
            // Where it cannot be known it counts as if it were.
            asked.is_ok_and(|asked| asked.answer.on) || !session.host.is_connected()
        }
    }
}

/// What a call would write, where that is known: all of it.
async fn diff<H: Host>(session: &Session<H>, tool: &Tool, given: &Map<String, Value>) -> Option<String> {
    let text = |name: &str| given.get(name).and_then(Value::as_str);
    let classes: Vec<String> = match tool.name {
        "flush" | "resolve_conflict" => text("class").map(str::to_owned).into_iter().collect(),
        "write_file" => crate::tools::flushed(text("path")?, text("text")?)?,
        _ => return None,
    };
    let is_meant = |entry: &beamtalk_wire::Entry| classes.is_empty() || classes.contains(&entry.class);
    let found = crate::tools::pending_diff(&*session.host, is_meant).await.ok()?;
    Some(found).filter(|diff| !diff.is_empty())
}

/// A diff as a person is shown it.
pub fn shown_diff(diff: &str) -> String {
    escape(
        diff.get(..diff.floor_char_boundary(DIFF_BYTES))
            .unwrap_or_default(),
    )
}

/// Say under which name the call waits, and until when.
async fn name_it<H: Host>(session: &Session<H>, request: &requests::ApprovalAsk, progress: &Progress) {
    let Ok(found) = session.host.ask(&requests::Approvals::default()).await else {
        return;
    };
    let waiting = found.answer.approvals.into_iter().rev();
    let own = waiting
        .into_iter()
        .find(|one| one.tool == request.tool && one.text == request.text);
    if let Some(own) = own {
        let (hour, minute) = (own.expires / 3_600 % 24, own.expires / 60 % 60);
        progress.wait(Some(format!(
            "waiting for approval {} until {hour:02}:{minute:02}",
            own.id
        )));
    }
}

/// Wait for the person; an error unless they say yes to exactly this. What it would write may change meanwhile: then they are
/// asked again.
pub(super) async fn hold<H: Host>(
    session: &Session<H>,
    tool: &Tool,
    given: &Map<String, Value>,
    effect: Option<&Effect>,
    progress: &Progress,
) -> Result<(), HostError> {
    let mut written = diff(session, tool, given).await;
    loop {
        ask(session, tool, given, (effect, written.as_deref()), progress).await?;
        let now = diff(session, tool, given).await;
        if now == written {
            return Ok(());
        }
        written = now;
    }
}

async fn ask<H: Host>(
    session: &Session<H>,
    tool: &Tool,
    given: &Map<String, Value>,
    (effect, written): (Option<&Effect>, Option<&str>),
    progress: &Progress,
) -> Result<(), HostError> {
    let text = escape(&serde_json::to_string_pretty(given).unwrap_or_default());
    let timeout = session.settings.approval_timeout;
    progress.wait(Some("waiting for approval".to_owned()));
    let request = requests::ApprovalAsk {
        tool: tool.name.to_owned(),
        summary: effect.map_or_else(|| tool.title.to_owned(), |effect| effect.summary.clone()),
        text,
        effect: effect.map(|effect| effect.to_json().to_string()),
        diff: written.map(shown_diff),
        timeout_s: Some(timeout.as_secs()),
        // What loses something is asked for each time, whatever the tool usually does.
        may_be_rule: Some(effect.is_none() && may_be_rule(tool)),
    };
    let asked = {
        let named = name_it(session, &request, progress);
        let asked = session.host.ask(&request);
        let (mut asked, mut named) = (std::pin::pin!(asked), std::pin::pin!(named));
        tokio::select! {
            biased;
            asked = &mut asked => asked,
            () = &mut named => asked.await,
        }
    };
    progress.wait(None);
    let answer = match asked {
        Ok(asked) => asked.answer,
        Err(error) if error.kind.name() == "no_workspace" => {
            let denied = failure("approval_denied", "nobody to ask: no workspace runs");
            return Err(Box::new(denied.detail("reason", "nobody to ask")));
        }
        Err(error) => return Err(error),
    };
    *progress.approval.borrow_mut() = Some(answer.approval.clone());
    if answer.answer == "approve" {
        return Ok(());
    }
    let reason = answer.text.unwrap_or(answer.answer);
    let denied = failure(
        "approval_denied",
        format!("the call was not approved: {}", escape(&reason)),
    )
    .hint("do something else, or ask the person")
    .detail("reason", escape(&reason))
    .detail("approval", answer.approval);
    Err(Box::new(denied))
}
