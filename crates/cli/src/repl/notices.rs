//! Lines that appear while the user types: above the prompt, without disturbing what is being typed.

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use serde_json::Value;

/// Prints above the prompt of the editor.
pub(crate) type Printer = Box<dyn FnMut(String) + Send>;

/// Where lines for the user go. Sending never waits: the printer may have to, while the editor is busy.
#[derive(Debug)]
pub(crate) struct Notices {
    lines: mpsc::Sender<String>,
    at_prompt: std::sync::Arc<AtomicBool>,
    /// The editor was made to return.
    called: AtomicBool,
}

impl Notices {
    pub(crate) fn start(mut printer: Option<Printer>) -> std::io::Result<Self> {
        let (lines, received) = mpsc::channel::<String>();
        let at_prompt = std::sync::Arc::new(AtomicBool::new(false));
        let is_at_prompt = at_prompt.clone();
        std::thread::Builder::new()
            .name("notices".to_owned())
            .spawn(move || {
                for line in received {
                    match &mut printer {
                        Some(printer) if is_at_prompt.load(Ordering::SeqCst) => printer(line),
                        _ => drop(std::io::stderr().lock().write_all(line.as_bytes())),
                    }
                }
            })?;
        Ok(Self {
            lines,
            at_prompt,
            called: AtomicBool::new(false),
        })
    }

    /// One or more lines.
    pub(crate) fn say(&self, text: &str) {
        drop(self.lines.send(format!("{text}\n")));
    }

    /// Tell whether the editor has the terminal.
    pub(crate) fn set_at_prompt(&self, at_prompt: bool) {
        self.at_prompt.store(at_prompt, Ordering::SeqCst);
    }

    /// Whether the editor was made to return, and not by the user.
    pub(crate) fn take_call(&self) -> bool {
        self.called.swap(false, Ordering::SeqCst)
    }

    /// Make a waiting editor return, as Ctrl-C does. The session then looks what is the matter.
    pub(crate) fn wake_prompt(&self) {
        if self.at_prompt.load(Ordering::SeqCst) {
            self.called.store(true, Ordering::SeqCst);
            let own = rustix::process::getpid();
            let _ = rustix::process::kill_process(own, rustix::process::Signal::INT);
        }
    }
}

/// Show an event of the workspace, if it is one for the user.
pub(crate) fn tell(notices: &Notices, event: &Value) {
    if let Some(text) = words(event) {
        notices.say(&text);
    }
}

/// What an event is to the user; `None` for nothing.
fn words(event: &Value) -> Option<String> {
    let data = &event["data"];
    match (event["channel"].as_str()?, event["event"].as_str()?) {
        // What an evaluation of this session shows came as its output.
        ("transcript", "text") if data["for"].is_string() => None,
        ("transcript", "text") => {
            let text = data["text"].as_str()?.trim_end_matches('\n');
            let lines: Vec<String> = text.lines().map(|line| format!("[transcript] {line}")).collect();
            (!lines.is_empty()).then(|| lines.join("\n"))
        }
        ("transcript", "dropped") => Some(format!("[transcript] … {} lines were dropped", data["count"])),
        ("workspace", "node_exited") => {
            let reason = data["reason"].as_str().map(|reason| format!(": {reason}"));
            Some(format!(
                "[workspace] the node ended{}; actors and bindings are gone",
                reason.unwrap_or_default()
            ))
        }
        ("workspace", "node_started") => Some(node_started(data)),
        ("workspace", "stopping") => Some("[workspace] the workspace stops".to_owned()),
        ("workspace", "rotated") => Some("[workspace] the cookie was rotated".to_owned()),
        _ => None,
    }
}

/// What became of pending changes is told with the node that came back.
fn node_started(data: &Value) -> String {
    let mut text = "[workspace] the node is up again".to_owned();
    let number = |field: &str| data[field].as_u64().unwrap_or(0);
    match number("reinstalled") {
        0 => {}
        1 => text.push_str("; 1 pending change was installed again"),
        count => text.push_str(&format!("; {count} pending changes were installed again")),
    }
    for failure in data["failed"].as_array().into_iter().flatten() {
        let why = failure["error"]["message"].as_str().unwrap_or_default();
        text.push_str(&format!("\n[workspace] change {} was not: {why}", failure["seq"]));
    }
    match number("waiting") {
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
    use serde_json::json;

    use super::words;

    #[test]
    fn transcript_of_others_is_shown_and_our_own_is_not() {
        let event = json!({"type": "push", "channel": "transcript", "event": "text", "data": {"text": "one\ntwo\n", "for": null}});
        assert_eq!(
            words(&event).as_deref(),
            Some("[transcript] one\n[transcript] two")
        );
        let own = json!({"type": "push", "channel": "transcript", "event": "text", "data": {"text": "x", "for": "r3"}});
        assert_eq!(words(&own), None);
    }

    #[test]
    fn the_fate_of_the_workspace_is_told() {
        let event = |name: &str| json!({"channel": "workspace", "event": name, "data": {"reason": "killed"}});
        assert_eq!(
            words(&event("node_exited")).as_deref(),
            Some("[workspace] the node ended: killed; actors and bindings are gone")
        );
        assert_eq!(
            words(&event("node_started")).as_deref(),
            Some("[workspace] the node is up again")
        );
        assert_eq!(words(&event("flush_completed")), None);
        assert_eq!(words(&json!({"op": "x"})), None);
    }
}
