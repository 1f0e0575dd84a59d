//! Telling the person, outside of all terminals, that something waits for them.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use beamtalk_process::{Spec, Stdin, Stop, find_program, spawn};
use serde_json::Value;

use super::Hub;

/// How long a notice may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Characters of a question that are shown.
const SHOWN: usize = 200;

/// Tell of every question as it comes, one after the other; of those that came meanwhile together.
pub(super) async fn run(hub: Arc<Hub>) {
    let mut signal = hub.approvals.signal.subscribe();
    let mut last = hub.approvals.last();
    while signal.changed().await.is_ok() {
        let lines = hub.approvals.after(last);
        last = lines.last().map_or(last, |(number, _)| *number);
        let asked: Vec<Value> = lines
            .iter()
            .filter_map(|(_, line)| serde_json::from_str(line).ok())
            .filter(|line: &Value| line["event"] == "asked")
            .collect();
        let Some(first) = asked.first() else { continue };
        let text = |key: &str| first[key].as_str().unwrap_or_default();
        let who = match hub.session(text("session")) {
            Ok(session) => session.alias().unwrap_or_else(|| session.id.clone()),
            Err(_) => "workspace".to_owned(),
        };
        let title = match asked.len() {
            1 => format!("Beamtalk: {who} asks"),
            count => format!("Beamtalk: {count} questions wait"),
        };
        tell(&hub.config().notify.words(), &title, &plain(text("summary"))).await;
    }
}

/// A text of a session as one line that is no option and has no markup.
fn plain(text: &str) -> String {
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .collect();
    let words: Vec<&str> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let line = words.join(" ").replace('<', "‹").replace('>', "›");
    let line: String = line.chars().take(SHOWN).collect();
    if line.starts_with('-') {
        format!(" {line}")
    } else {
        line
    }
}

async fn tell(words: &[String], title: &str, text: &str) {
    let Some((name, arguments)) = words.split_first() else {
        return;
    };
    let path = std::env::var_os("PATH");
    // Where there is no desktop there is no such program.
    let Ok(program) = find_program(name, Path::new("/"), path.as_deref()) else {
        return;
    };
    let arguments = arguments.iter().map(String::as_str).chain([title, text]);
    let spec = Spec {
        program,
        name: name.into(),
        arguments: arguments.map(OsString::from).collect(),
        directory: PathBuf::from("/"),
        environment: BTreeMap::new(),
        stdin: Stdin::Null,
    };
    match spawn(&spec) {
        Ok(mut child) => {
            // What it prints is nobody's concern.
            if tokio::time::timeout(PATIENCE, child.wait()).await.is_err() {
                child.stop(Stop::default()).await;
            }
        }
        Err(error) => tracing::warn!(%error, program = %name, "the person cannot be notified"),
    }
}

#[cfg(test)]
mod tests {
    use super::plain;

    /// What a session asks is shown as text, whatever it looks like.
    #[test]
    fn a_question_is_no_option_and_no_markup() {
        assert_eq!(plain("--help\n <b>x</b>\u{1b}[31m"), " --help ‹b›x‹/b› [31m");
        assert_eq!(plain(&"x".repeat(500)).len(), 200);
    }
}
