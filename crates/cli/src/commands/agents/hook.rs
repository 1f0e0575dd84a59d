//! `hook`: agents report what they do; and the installation of such hooks.

use std::io::{IsTerminal, Read, Write};
use std::path::PathBuf;
use std::sync::mpsc;
use std::time::Duration;

use beamtalk_agents::{HookEvent, report_hook};
use beamtalk_storage::{Disk, mode_of, replace_file};
use serde_json::{Map, Value, json};

use super::context::{Client, Failure, emit, say};
use crate::exit::Exit;

pub(super) fn run(client: &Client, event: Option<String>, argument: Option<String>) -> Result<Exit, Failure> {
    if event.as_deref() == Some("install") {
        return install(client, argument.as_deref().unwrap_or_default());
    }
    let told = from_stdin().unwrap_or_default();
    let named = told.get("hook_event_name").and_then(Value::as_str);
    let word = event.unwrap_or_else(|| named.unwrap_or_default().to_owned());
    match report_hook(HookEvent::parse(&word), &word, &told) {
        Ok(Some(text)) => emit(text.as_bytes())?,
        Ok(None) => {}
        // A hook never fails its caller.
        Err(error) => {
            writeln!(std::io::stderr(), "beamtalk agents: hook: {error}").ok();
        }
    }
    Ok(Exit::Success)
}

/// How long a program may take to say more than the name of the event.
const SAID: Duration = Duration::from_secs(1);

/// The JSON object on standard input, if there is one. An input that is left open is not waited for.
fn from_stdin() -> Option<Value> {
    if std::io::stdin().is_terminal() {
        return None;
    }
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        let mut text = String::new();
        let read = std::io::stdin().take(1 << 20).read_to_string(&mut text);
        // Nobody may wait for it any more.
        tell.send(read.map(|_| text)).ok();
    });
    let text = told.recv_timeout(SAID).ok()?.ok()?;
    serde_json::from_str(&text).ok()
}

fn install(client: &Client, backend: &str) -> Result<Exit, Failure> {
    if backend != "claude" {
        return Err(Failure::plain(format!("no hooks known for backend {backend}")));
    }
    let home = || std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let directory =
        std::env::var_os("CLAUDE_CONFIG_DIR").map_or_else(|| home().join(".claude"), PathBuf::from);
    // A link to where the settings are kept stays one.
    let path = directory.join("settings.json");
    let path = std::fs::canonicalize(&path).unwrap_or(path);
    let mut settings: Value = match std::fs::read_to_string(&path) {
        Ok(text) => serde_json::from_str(&text)
            .map_err(|error| Failure::plain(format!("{}: {error}", path.display())))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => json!({}),
        Err(error) => return Err(error.into()),
    };
    let program = shell_word(&std::env::current_exe()?.display().to_string());
    let mut changed = false;
    for event in ["UserPromptSubmit", "Stop"] {
        changed |= add_hook(&mut settings, event, &format!("{program} agents hook {event}"))
            .ok_or_else(|| Failure::plain(format!("{}: unexpected shape", path.display())))?;
    }
    if changed {
        std::fs::create_dir_all(&directory)?;
        let text =
            serde_json::to_string_pretty(&settings).map_err(|error| Failure::plain(error.to_string()))?;
        let text = format!("{text}\n");
        replace_file(&path, text.as_bytes(), mode_of(&path), Disk::Wait).map_err(std::io::Error::from)?;
    }
    if client.json {
        return client.done();
    }
    say(&format!("hooks installed in {}", path.display()))?;
    Ok(Exit::Success)
}

/// A path as one word for the shell that runs the hook.
fn shell_word(text: &str) -> String {
    let plain = |letter: char| letter.is_alphanumeric() || "/._-+@:,".contains(letter);
    if text.chars().all(plain) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', "'\\''"))
    }
}

/// Add a hook unless it is there; `None` if the file has another shape than expected.
fn add_hook(settings: &mut Value, event: &str, command: &str) -> Option<bool> {
    let hooks = settings
        .as_object_mut()?
        .entry("hooks")
        .or_insert_with(|| Value::Object(Map::new()));
    let list = hooks
        .as_object_mut()?
        .entry(event)
        .or_insert_with(|| json!([]))
        .as_array_mut()?;
    let ours = |value: &Value| value.to_string().contains(&format!("agents hook {event}"));
    if list.iter().any(ours) {
        return Some(false);
    }
    list.push(json!({"hooks": [{"type": "command", "command": command}]}));
    Some(true)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::add_hook;

    #[test]
    fn hooks_are_added_once_and_everything_else_is_kept() {
        let mut settings = json!({"model": "opus", "hooks": {"Stop": [{"hooks": [{"command": "other"}]}]}});
        assert_eq!(add_hook(&mut settings, "Stop", "bt agents hook Stop"), Some(true));
        assert_eq!(
            add_hook(&mut settings, "Stop", "bt agents hook Stop"),
            Some(false)
        );
        assert_eq!(settings["model"], "opus");
        assert_eq!(settings["hooks"]["Stop"].as_array().unwrap().len(), 2);
        assert_eq!(add_hook(&mut json!([]), "Stop", "x"), None);
    }
}
