//! Hooks: a backend tells what it is doing, or leaves a note when no daemon runs.

use std::io::Write;
use std::path::Path;
use std::time::Duration;

use beamtalk_ninep::Attachment;
use beamtalk_storage::time::now_seconds;

use crate::door::{self, Door, Proof};
use crate::files;
use crate::places::variable;
use crate::session::State;

const PENDING: &str = ".hooks-pending";
const PENDING_BYTES: u64 = 64 << 10;
/// A hook does not hold up its caller for longer.
const PATIENCE: Duration = Duration::from_secs(10);

/// What a hook reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookEvent {
    Running,
    Idle,
    Spawned,
    Other,
}

impl HookEvent {
    /// Either spelling.
    pub fn parse(word: &str) -> Self {
        match word {
            "userPromptSubmit" | "UserPromptSubmit" => HookEvent::Running,
            "stop" | "Stop" => HookEvent::Idle,
            "agentSpawn" | "SessionStart" => HookEvent::Spawned,
            _ => HookEvent::Other,
        }
    }

    pub(crate) fn state(self) -> Option<State> {
        match self {
            HookEvent::Running => Some(State::Running),
            HookEvent::Idle => Some(State::Idle),
            HookEvent::Spawned | HookEvent::Other => None,
        }
    }
}

/// Connect as the session this process belongs to.
pub(crate) fn connect_session() -> Result<Attachment, Door> {
    let token = variable("AGENT_TOKEN").unwrap_or_default();
    let (stream, namespace) = door::connect(&crate::candidates(), "agent")?;
    let proof = Proof::Token(token);
    Door::enter(stream, Some(&namespace), &proof, "", false, Some(PATIENCE))
}

/// Report to the daemon; without one, leave a line for the next.
pub fn report_hook(event: HookEvent, word: &str) -> Result<Option<String>, Door> {
    let Some(id) = variable("AGENT_ID") else {
        return Ok(None);
    };
    let tree = match connect_session() {
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
