//! What a session says when it starts.

use beamtalk_wire::answers::{ChangesAnswer, LoadedProject, TopActorsAnswer};

use crate::answers::changes::waiting_sentence;
use crate::answers::{count, grouped};

/// Classes of actors that are named when attaching.
const NAMED_CLASSES: usize = 5;

/// How a session came to its workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// This command started it: the files were just loaded.
    Started,
    Attached,
}

/// What the greeting tells about the workspace.
#[derive(Clone, Debug, Default)]
pub struct About {
    pub workspace: String,
    /// Where the workspace was found, when no name was given.
    pub discovered_from: Option<String>,
    /// Never started before.
    pub is_first: bool,
}

/// Where image and disk are apart, from an answer of `changes`: one line each.
pub fn state_lines(state: Option<&ChangesAnswer>) -> Vec<String> {
    let mut lines = Vec::new();
    let Some(state) = state else {
        return lines;
    };
    let files = state.disk_changed.as_ref().map_or(0, Vec::len) as u64;
    if files > 0 {
        let them = if files == 1 { "it" } else { "them" };
        lines.push(format!("{} (:sync loads {them})", disk_changed(files)));
    }
    let waiting = state.waiting.len() as u64;
    if waiting > 0 {
        lines.push(waiting_sentence(waiting));
    }
    lines
}

/// How many files the image does not have as they are.
pub(crate) fn disk_changed(files: u64) -> String {
    let they = if files == 1 { "it was" } else { "they were" };
    format!("{} changed on disk since {they} loaded", count(files, "file"))
}

/// Whether changes of an earlier run wait for somebody to decide about them.
pub(crate) fn waits(state: Option<&ChangesAnswer>) -> bool {
    state.is_some_and(|state| !state.waiting.is_empty())
}

/// `project` and `running` are what the workspace says of itself when the session begins.
pub(crate) fn text(
    about: &About,
    project: Option<&LoadedProject>,
    running: Option<&TopActorsAnswer>,
) -> String {
    let mut text = format!(
        "Beamtalk v{}\n`:help` lists the commands, `:exit` leaves.\n\n",
        env!("CARGO_PKG_VERSION")
    );
    let origin = about
        .discovered_from
        .as_ref()
        .map_or_else(String::new, |path| format!(" (auto-discovered from {path})"));
    text.push_str(&format!("  Workspace: {}{origin}\n", about.workspace));
    if let Some(LoadedProject {
        name,
        version,
        classes,
    }) = project
    {
        text.push_str(&format!(
            "  Project:   {name} v{version}, {}\n",
            count(*classes, "class")
        ));
    }
    if let Some(running) = running.filter(|running| running.total > 0) {
        text.push_str(&format!("  Running:   {}\n", running_words(running)));
    }
    if about.is_first {
        text.push_str(
            "  Security:  code runs with your user's rights; keep the workspace cookie private \
             (beamtalk docs security)\n",
        );
    }
    text
}

/// `3 actors (Lamp 2, Kettle 1)`
fn running_words(running: &TopActorsAnswer) -> String {
    let named = running.classes.iter().take(NAMED_CLASSES);
    let mut classes: Vec<String> = named
        .map(|found| format!("{} {}", found.class, grouped(found.count)))
        .collect();
    let others = running.classes.len().saturating_sub(NAMED_CLASSES) as u64;
    if others > 0 {
        classes.push(format!("… {} more", count(others, "class")));
    }
    format!("{} ({})", count(running.total, "actor"), classes.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::test_answers::answer;
    use super::*;

    #[test]
    fn the_first_start_of_a_workspace_warns() {
        let about = About {
            workspace: "d0dc08b498b6".to_owned(),
            discovered_from: Some("/home/ada/orbit".to_owned()),
            is_first: true,
        };
        let project = answer(json!({"name": "orbit", "version": "0.3.0", "classes": 7}));
        insta::assert_snapshot!(text(&about, Some(&project), None));
    }

    #[test]
    fn later_starts_count_the_actors() {
        let about = About {
            workspace: "orbit".to_owned(),
            ..About::default()
        };
        let running = answer(json!({"actors": [], "total": 3, "classes": [
            {"class": "Lamp", "count": 2}, {"class": "Kettle", "count": 1}]}));
        insta::assert_snapshot!(text(&about, None, Some(&running)));
        let names = ["A", "B", "C", "D", "E", "F", "G"];
        let classes: Vec<_> = names
            .iter()
            .map(|name| json!({"class": name, "count": 20_000}))
            .collect();
        let many: TopActorsAnswer = answer(json!({"actors": [], "total": 140_000, "classes": classes}));
        assert_eq!(
            running_words(&many),
            "140,000 actors (A 20,000, B 20,000, C 20,000, D 20,000, E 20,000, … 2 classes more)"
        );
    }
}
