//! What a session says when it starts.

use beamtalk_wire::answers::ChangesAnswer;
use serde_json::Value;

use super::answers::changes::waiting_sentence;
use super::answers::count;

/// Actors that are listed when attaching.
pub(crate) const LISTED_ACTORS: usize = 20;

/// How a session came to its workspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// This command started it: the files were just loaded.
    Started,
    Attached,
}

/// What the greeting tells about the workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct About {
    pub(crate) workspace: String,
    /// Where the workspace was found, when no name was given.
    pub(crate) discovered_from: Option<String>,
    /// Name, version and number of classes.
    pub(crate) project: Option<Project>,
    /// Never started before.
    pub(crate) is_first: bool,
    pub(crate) port: u16,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Project {
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) classes: u64,
}

impl Project {
    /// As the daemon describes it.
    pub(crate) fn read(value: &Value) -> Option<Self> {
        let classes = &value["classes"];
        Some(Self {
            name: value["name"].as_str()?.to_owned(),
            version: value["version"].as_str().unwrap_or_default().to_owned(),
            classes: classes
                .as_array()
                .map(|classes| classes.len() as u64)
                .or_else(|| classes.as_u64())
                .unwrap_or(0),
        })
    }
}

/// Where image and disk are apart, from an answer of `changes`: one line each.
pub(crate) fn state_lines(state: Option<&ChangesAnswer>) -> Vec<String> {
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

pub(crate) fn text(about: &About, session: &str, actors: &[String]) -> String {
    let mut text = format!(
        "Beamtalk v{}\n`:help` lists the commands, `:exit` leaves.\n\n",
        env!("CARGO_PKG_VERSION")
    );
    let origin = about
        .discovered_from
        .as_ref()
        .map_or_else(String::new, |path| format!(" (auto-discovered from {path})"));
    text.push_str(&format!("  Workspace: {}{origin}\n", about.workspace));
    if let Some(project) = &about.project {
        let classes = count(project.classes, "class");
        text.push_str(&format!(
            "  Project:   {} v{}, {classes}\n",
            project.name, project.version
        ));
    }
    if about.is_first {
        text.push_str(
            "  Security:  code runs with your user's rights; keep the workspace cookie private \
             (beamtalk docs security)\n",
        );
    }
    text.push_str(&format!(
        "\nConnected to workspace on port {}.\n[beamtalk] session: {session}",
        about.port
    ));
    for line in actors {
        text.push('\n');
        text.push_str(line);
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_start_of_a_workspace_warns() {
        let about = About {
            workspace: "d0dc08b498b6".to_owned(),
            discovered_from: Some("/home/ada/orbit".to_owned()),
            project: Project::read(&json!({"name": "orbit", "version": "0.3.0", "classes": 7})),
            is_first: true,
            port: 41873,
        };
        insta::assert_snapshot!(text(&about, "s-7f2a", &[]));
    }

    #[test]
    fn later_starts_list_the_actors() {
        let about = About {
            workspace: "orbit".to_owned(),
            port: 41873,
            ..About::default()
        };
        insta::assert_snapshot!(text(&about, "s-7f2a", &["  - Lamp (<0.187.0>)".to_owned()]));
    }
}
