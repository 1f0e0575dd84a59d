//! Hooks: a backend tells what it is doing, or leaves a note when no daemon runs.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use beamtalk_ninep::Attachment;
use beamtalk_storage::time::now_seconds;
use serde_json::{Value, json};

use crate::door::{self, Door, Proof};
use crate::files;
use crate::places::variable;
use crate::session::State;
use crate::session::usage::Amount;

const PENDING: &str = ".hooks-pending";
const USAGE: &str = ".hooks-usage";
const USAGE_BYTES: u64 = 4 << 10;
const PENDING_BYTES: u64 = 64 << 10;
/// A hook does not hold up its caller for longer.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);

/// What a hook reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    Running,
    Idle,
    Spawned,
    /// The program wants to do something that it may not do by itself.
    Permission,
    /// What the turn used.
    Usage,
    Other,
}

impl HookEvent {
    /// Either spelling.
    pub fn parse(word: &str) -> Self {
        match word {
            "userPromptSubmit" | "UserPromptSubmit" => HookEvent::Running,
            "stop" | "Stop" => HookEvent::Idle,
            "agentSpawn" | "SessionStart" => HookEvent::Spawned,
            "permissionRequest" | "PermissionRequest" => HookEvent::Permission,
            "usage" | "Usage" => HookEvent::Usage,
            _ => HookEvent::Other,
        }
    }

    pub(crate) fn state(self) -> Option<State> {
        match self {
            HookEvent::Running => Some(State::Running),
            HookEvent::Idle => Some(State::Idle),
            HookEvent::Spawned | HookEvent::Permission | HookEvent::Usage | HookEvent::Other => None,
        }
    }
}

/// Connect as the session this process belongs to.
pub(crate) fn connect_session(patience: Option<Duration>) -> Result<Attachment, Door> {
    let token = variable("AGENT_TOKEN").unwrap_or_default();
    let (stream, namespace) = door::connect(&crate::candidates(), "agent")?;
    let proof = Proof::Token(token);
    Door::enter(stream, Some(&namespace), &proof, "", false, patience)
}

/// Report to the daemon; without one, leave a line for the next. `told` is what the program says beside the event. The
/// answer is for the program to read.
pub fn report_hook(event: HookEvent, word: &str, told: &Value) -> Result<Option<String>, Door> {
    let Some(id) = variable("AGENT_ID") else {
        return Ok(None);
    };
    if event == HookEvent::Usage {
        leave_usage(told);
        return Ok(None);
    }
    // A person takes the time they need.
    let patience = (event != HookEvent::Permission).then_some(PATIENCE);
    let tree = match connect_session(patience) {
        Ok(tree) => tree,
        Err(Door::Unreachable { .. }) => {
            leave_note(word);
            return Ok(None);
        }
        Err(other) => return Err(other),
    };
    if let Some(state) = event.state() {
        tree.write(&format!("agents/{id}/state"), state.word().as_bytes())?;
    }
    // How the program calls its conversation; what is no plain name is not kept, which is no fault of the program.
    if let Some(conversation) = told.get("session_id").and_then(Value::as_str) {
        drop(tree.write(&format!("agents/{id}/conversation"), conversation.as_bytes()));
    }
    if event == HookEvent::Permission {
        return Ok(Some(ask(&tree, &id, told)));
    }
    if event != HookEvent::Spawned {
        return Ok(None);
    }
    let role = tree.read_text(&format!("agents/{id}/role")).unwrap_or_default();
    let mut text = String::new();
    let role = role.trim();
    if !role.is_empty() {
        text.push_str(
            &tree
                .read_text(&format!("agents/roles/{role}.md"))
                .unwrap_or_default(),
        );
    }
    for tool in tree.list("agents/tools")? {
        text.push_str(&format!("tool: {}\n", tool.name.trim_end_matches(".sh")));
    }
    Ok(Some(text))
}

/// Let a person decide what a program asks for; the decision as programs with such hooks read it.
fn ask(tree: &Attachment, id: &str, told: &Value) -> String {
    let text = |key: &str| match told.get(key) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let question = format!("{} {}", text("tool_name"), text("tool_input"));
    let quoted = format!("ask '{}'", question.trim().replace('\'', "''"));
    let decision = match tree.rpc(&format!("agents/{id}/ctl"), quoted.as_bytes()) {
        Ok(_) => json!({"behavior": "allow"}),
        Err(refused) => json!({"behavior": "deny", "message": refused.to_string()}),
    };
    let answer = json!({"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": decision}});
    format!("{answer}\n")
}

/// Keep what the turn used until it ends.
fn leave_usage(told: &Value) {
    if let Some(directory) = variable("TMPDIR") {
        // A hook never fails its caller.
        drop(files::replace_quickly(
            &Path::new(&directory).join(USAGE),
            told.to_string().as_bytes(),
        ));
    }
}

/// What a program told by the hook `usage` of the turn that ended; the note is removed. Nothing is estimated.
pub(crate) fn take_usage(tmp: &Path, mut amount: Amount) -> Amount {
    let path = tmp.join(USAGE);
    let Ok(bytes) = files::read_limited(&path, USAGE_BYTES) else {
        return amount;
    };
    // What cannot be removed would be counted twice.
    if std::fs::remove_file(&path).is_err() {
        return amount;
    }
    let told: Value = serde_json::from_slice(&bytes).unwrap_or_default();
    let cost = told.get("cost").and_then(Value::as_f64);
    amount.tokens_in = told.get("tokens_in").and_then(Value::as_u64).or(amount.tokens_in);
    amount.tokens_out = told
        .get("tokens_out")
        .and_then(Value::as_u64)
        .or(amount.tokens_out);
    amount.cost = cost
        .filter(|cost| cost.is_finite() && *cost >= 0.0)
        .or(amount.cost);
    amount
}

/// Append `<unix seconds> <event>` to the session's own notes.
pub(crate) fn leave_note(word: &str) {
    if let Some(directory) = variable("TMPDIR") {
        let line = format!("{} {word}\n", now_seconds());
        // A hook never fails its caller.
        drop(
            files::appender(&Path::new(&directory).join(PENDING))
                .and_then(|mut file| file.write_all(line.as_bytes())),
        );
    }
}

/// The states reported while no daemon ran, oldest first; the notes are removed.
pub(crate) fn take_notes(tmp: &Path) -> Vec<State> {
    let path = tmp.join(PENDING);
    let Ok(bytes) = files::read_limited(&path, PENDING_BYTES) else {
        return Vec::new();
    };
    // What cannot be removed is read again, which changes nothing.
    drop(std::fs::remove_file(&path));
    let text = String::from_utf8_lossy(&bytes);
    text.lines()
        .filter_map(|line| {
            let (seconds, word) = line.split_once(' ')?;
            seconds.parse::<u64>().ok()?;
            HookEvent::parse(word.trim()).state()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::take_notes;
    use crate::session::State;

    #[test]
    fn notes_are_taken_once_and_bad_lines_skipped() {
        let base = tempfile::tempdir().unwrap();
        let path = base.path().join(".hooks-pending");
        std::fs::write(
            &path,
            "17 userPromptSubmit\nnonsense\nx stop\n18 Stop\n19 preToolUse\n",
        )
        .unwrap();
        assert_eq!(take_notes(base.path()), [State::Running, State::Idle]);
        assert!(!path.exists());
        std::os::unix::fs::symlink("/etc/passwd", &path).unwrap();
        assert!(take_notes(base.path()).is_empty());
    }
}
