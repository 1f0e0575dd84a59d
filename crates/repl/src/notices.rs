//! Lines that appear while the user types: above the prompt, without disturbing what is being typed.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, mpsc};

use beamtalk_wire::answers::NotInstalled;
use beamtalk_wire::{Event, TranscriptEvent, WorkspaceEvent};
use serde::Deserialize;
use serde_json::Value;

/// Prints above the prompt of the editor.
pub(crate) type Printer = Box<dyn FnMut(String) + Send>;

/// Who has the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Prompt {
    /// Not the editor.
    Away,
    /// The editor, in which something is typed.
    Typing,
    /// The editor, in which nothing is typed, or an answer to a question.
    Idle,
}

#[derive(Debug)]
enum Said {
    Lines(String),
    /// Somebody waits until everything before is shown.
    Mark(mpsc::Sender<()>),
}

/// Where lines for the user go. Sending never waits: the printer may have to, while the editor is busy.
#[derive(Debug)]
pub(crate) struct Notices {
    said: mpsc::Sender<Said>,
    prompt: Arc<Mutex<Prompt>>,
    /// The editor was made to return.
    called: AtomicBool,
    /// Something else has the terminal; lines wait.
    held: Arc<(Mutex<bool>, Condvar)>,
}

impl Notices {
    pub(crate) fn start(mut printer: Option<Printer>) -> std::io::Result<Self> {
        let (said, received) = mpsc::channel();
        let prompt = Arc::new(Mutex::new(Prompt::Away));
        let at_prompt = prompt.clone();
        let held = Arc::new((Mutex::new(false), Condvar::new()));
        let holding = held.clone();
        std::thread::Builder::new()
            .name("notices".to_owned())
            .spawn(move || {
                for said in received {
                    let line = match said {
                        Said::Lines(line) => line,
                        Said::Mark(waiting) => {
                            let _ = waiting.send(());
                            continue;
                        }
                    };
                    let (is_held, released) = &*holding;
                    let is_held = is_held.lock().unwrap_or_else(PoisonError::into_inner);
                    drop(released.wait_while(is_held, |is_held| *is_held));
                    match &mut printer {
                        Some(printer) if *lock(&at_prompt) != Prompt::Away => printer(line),
                        _ => drop(std::io::stderr().lock().write_all(line.as_bytes())),
                    }
                }
            })?;
        Ok(Self {
            said,
            prompt,
            called: AtomicBool::new(false),
            held,
        })
    }

    /// One or more lines.
    pub(crate) fn say(&self, text: &str) {
        drop(self.said.send(Said::Lines(format!("{text}\n"))));
    }

    /// Wait until what was said so far is shown. Not for whoever holds the terminal.
    pub(crate) fn settle(&self) {
        let (waiting, shown) = mpsc::channel();
        if self.said.send(Said::Mark(waiting)).is_ok() {
            // A printer that is gone shows nothing more.
            let _ = shown.recv();
        }
    }

    /// Tell who has the terminal.
    pub(crate) fn set_prompt(&self, prompt: Prompt) {
        *lock(&self.prompt) = prompt;
    }

    /// Let lines wait while something else has the terminal, or no longer.
    pub(crate) fn hold(&self, hold: bool) {
        let (is_held, released) = &*self.held;
        *is_held.lock().unwrap_or_else(PoisonError::into_inner) = hold;
        released.notify_all();
    }

    /// Whether the editor was made to return, and not by the user.
    pub(crate) fn take_call(&self) -> bool {
        self.called.swap(false, Ordering::SeqCst)
    }

    /// Make an editor return, as Ctrl-C does, if that is wanted. The session then looks what is the matter.
    pub(crate) fn wake_prompt(&self, is_wanted: impl Fn(Prompt) -> bool) {
        // Held until the signal is sent: one that comes when the line was just entered would stop its evaluation.
        let prompt = lock(&self.prompt);
        if *prompt != Prompt::Away && is_wanted(*prompt) {
            self.called.store(true, Ordering::SeqCst);
            let own = rustix::process::getpid();
            let _ = rustix::process::kill_process(own, rustix::process::Signal::INT);
        }
    }
}

fn lock(prompt: &Mutex<Prompt>) -> MutexGuard<'_, Prompt> {
    prompt.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Show an event of the workspace, if it is one for the user.
pub(crate) fn tell(notices: &Notices, event: &Value) {
    if let Some(text) = Event::deserialize(event).ok().and_then(words) {
        notices.say(&text);
    }
}

/// What an event is to the user; `None` for nothing.
fn words(event: Event) -> Option<String> {
    match event {
        // What an evaluation of this session shows came as its output.
        Event::Transcript(TranscriptEvent::Text {
            text, r#for: None, ..
        }) => {
            let lines = text.trim_end_matches('\n').lines();
            let lines: Vec<String> = lines.map(|line| format!("[transcript] {line}")).collect();
            (!lines.is_empty()).then(|| lines.join("\n"))
        }
        Event::Transcript(TranscriptEvent::Dropped { count }) => {
            Some(format!("[transcript] … {count} lines were dropped"))
        }
        Event::Workspace(WorkspaceEvent::NodeExited { reason }) => Some(format!(
            "[workspace] the node ended: {reason}; actors and bindings are gone"
        )),
        Event::Workspace(WorkspaceEvent::NodeStarted {
            reinstalled,
            failed,
            waiting,
        }) => Some(node_started(reinstalled, &failed, waiting)),
        Event::Workspace(WorkspaceEvent::Stopping { .. }) => {
            Some("[workspace] the workspace stops".to_owned())
        }
        Event::Workspace(WorkspaceEvent::ApprovalsWaiting { count: 0 }) => None,
        Event::Workspace(WorkspaceEvent::ApprovalsWaiting { count: 1 }) => {
            Some("[workspace] 1 call waits: :approvals".to_owned())
        }
        Event::Workspace(WorkspaceEvent::ApprovalsWaiting { count }) => {
            Some(format!("[workspace] {count} calls wait: :approvals"))
        }
        Event::Workspace(WorkspaceEvent::Rotated {}) => Some("[workspace] the cookie was rotated".to_owned()),
        _ => None,
    }
}

/// What became of pending changes is told with the node that came back.
fn node_started(reinstalled: u64, failed: &[NotInstalled], waiting: u64) -> String {
    let mut text = "[workspace] the node is up again".to_owned();
    match reinstalled {
        0 => {}
        1 => text.push_str("; 1 pending change was installed again"),
        count => text.push_str(&format!("; {count} pending changes were installed again")),
    }
    for NotInstalled { seq, error } in failed {
        text.push_str(&format!("\n[workspace] change {seq} was not: {}", error.message));
    }
    match waiting {
        0 => {}
        1 => text.push_str("\n[workspace] 1 change waits (:restore installs it, :discard forgets it)"),
        count => text.push_str(&format!(
            "\n[workspace] {count} changes wait (:restore installs them, :discard forgets them)"
        )),
    }
    text
}

#[cfg(test)]
mod tests {
    use beamtalk_wire::{Event, TranscriptEvent, WorkspaceEvent};

    use super::words;

    #[test]
    fn transcript_of_others_is_shown_and_our_own_is_not() {
        let written = |text: &str, own: Option<&str>| {
            words(Event::Transcript(TranscriptEvent::Text {
                text: text.to_owned(),
                r#for: own.map(str::to_owned),
                by: None,
            }))
        };
        assert_eq!(
            written("one\ntwo\n", None).as_deref(),
            Some("[transcript] one\n[transcript] two")
        );
        assert_eq!(written("x", Some("r3")), None);
    }

    #[test]
    fn the_fate_of_the_workspace_is_told() {
        let told = |event| words(Event::Workspace(event));
        let reason = "killed".to_owned();
        assert_eq!(
            told(WorkspaceEvent::NodeExited { reason }).as_deref(),
            Some("[workspace] the node ended: killed; actors and bindings are gone")
        );
        let started = WorkspaceEvent::NodeStarted {
            reinstalled: 0,
            failed: Vec::new(),
            waiting: 0,
        };
        assert_eq!(told(started).as_deref(), Some("[workspace] the node is up again"));
        assert_eq!(told(WorkspaceEvent::FlushCompleted { files: Vec::new() }), None);
    }
}
