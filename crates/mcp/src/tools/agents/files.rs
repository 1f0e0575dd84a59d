//! Files of the agents' tree. A write counts as the tool that does the same.

use std::time::Duration;

use super::image_files::{acts, perform};
use super::{Context, Failure, Text};
use crate::confirmation::Effect;
use crate::data::Data;
use crate::host::{Host, HostError, failure};
use crate::settings::LoopRight;
use crate::tools::parts::{input, output};

/// How long a file may take to be read.
const READ_TIME: Duration = Duration::from_secs(10);

input! {
    TreePath {
        /// A path in the tree, such as `agents/list`.
        #[cfg_attr(feature = "schema", schemars(length(max = 1024)))]
        path: String,
    }
}

output! {
    Names {
        names: Vec<Data>,
    }
}

/// A path in the tree: no way up, and none to tokens.
fn place(path: &str) -> Result<String, HostError> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let is_odd = |part: &&str| matches!(*part, "" | "." | "..") || part.contains('\0');
    let is_root = parts == [""];
    if (!is_root && parts.iter().any(is_odd)) || parts.contains(&"tokens") {
        return Err(denied(path));
    }
    Ok(parts.join("/"))
}

pub(super) fn denied(path: &str) -> HostError {
    let shown = beamtalk_wire::escape(&path.chars().take(200).collect::<String>());
    let error = failure("path_denied", format!("'{shown}' is not open to tools"));
    Box::new(error.hint("list_files shows the tree; some tool does what may be done, see their descriptions"))
}

pub(crate) async fn list_files<H: Host>(context: &Context<'_, H>, input: TreePath) -> Result<Names, Failure> {
    let names = context.names(place(&input.path)?).await?;
    Ok(Names {
        names: names.iter().map(Data::new).collect(),
    })
}

pub(crate) async fn read_file<H: Host>(context: &Context<'_, H>, input: TreePath) -> Result<Text, Failure> {
    let read = context.read(place(&input.path)?);
    let Ok(text) = tokio::time::timeout(READ_TIME, read).await else {
        let error = failure(
            "agents",
            "the file has no end: it tells what happens as it happens",
        );
        let error = error.hint("read the file without 'follow' or 'events', or read_output of a session");
        return Err(Failure::Error(Box::new(error)));
    };
    Ok(Text {
        text: Data::new(text?),
    })
}

input! {
    WriteFile {
        /// A path in the tree.
        #[cfg_attr(feature = "schema", schemars(length(max = 1024)))]
        path: String,
        /// What is written.
        #[cfg_attr(feature = "schema", schemars(length(max = 524_288)))]
        text: String,
    }
}

output! {
    Written {
        written: u64,
    }
}

/// What a write to the tree does: the tools that do the same, and whether something is lost by it.
pub(crate) struct Deed {
    pub(crate) tools: Vec<&'static str>,
    pub(crate) loses: bool,
}

/// What a write counts as; `None` for what is no tool's work.
pub(crate) fn deed(path: &str, text: &str, own: Option<&str>) -> Option<Deed> {
    let path = place(path).ok()?;
    let parts: Vec<&str> = path.split('/').collect();
    let all = |tool: &'static str| {
        Some(Deed {
            tools: vec![tool],
            loses: false,
        })
    };
    match parts.as_slice() {
        // What a session says of itself and to others is its own affair.
        ["agents", id, "state" | "out" | "mail"] if Some(*id) == own => Some(Deed {
            tools: Vec::new(),
            loses: false,
        }),
        ["agents", "user", "mail"] if own.is_none() => all("send_message"),
        ["agents", _, "in" | "prompt" | "queue"] => all("prompt_session"),
        ["agents", _, "alias" | "context" | "role"] => all("control_session"),
        ["agents", "ctl"] | ["agents", _, "ctl"] => Some(lines(text, |word| match word {
            "new" => ("create_session", false),
            "kill" => ("kill_agent", true),
            "discard" => ("control_session", true),
            _ => ("control_session", false),
        })),
        ["actors", _, "ctl"] => Some(lines(text, |_| ("kill_actor", true))),
        ["changes", "ctl"] => Some(lines(text, |word| match word {
            "revert" => ("revert_change", false),
            "clear" | "discard" => ("flush", true),
            "take" => ("resolve_conflict", true),
            _ => ("flush", false),
        })),
        ["classes", ".new"] | ["classes", _, ".source"] => all("save_class"),
        ["classes", ..] => all("save_method"),
        ["loop", "events", _] => all("post_event"),
        ["loop", "processes", _, "ctl"] => all("control_process"),
        ["loop", "workflows", _, "ctl"] => all("run_workflow"),
        _ => None,
    }
}

/// What the lines of a control file do, by their first words.
fn lines(text: &str, one: impl Fn(&str) -> (&'static str, bool)) -> Deed {
    let mut deed = Deed {
        tools: Vec::new(),
        loses: false,
    };
    for line in text.lines() {
        let (tool, loses) = one(line.split_whitespace().next().unwrap_or_default());
        deed.loses |= loses;
        if !deed.tools.contains(&tool) {
            deed.tools.push(tool);
        }
    }
    deed
}

/// The right on the loop that a tool needs.
fn right(tool: &str) -> Option<LoopRight> {
    match tool {
        "post_event" => Some(LoopRight::Post),
        "control_process" | "run_workflow" => Some(LoopRight::Control),
        _ => None,
    }
}

pub(crate) async fn write_file<H: Host>(
    context: &Context<'_, H>,
    input: WriteFile,
) -> Result<Written, Failure> {
    let path = place(&input.path)?;
    let own = context.host.own_session();
    let deed = deed(&path, &input.text, own.as_deref()).ok_or_else(|| denied(&path))?;
    for needed in deed.tools.iter().filter_map(|tool| right(tool)) {
        context.loop_right(needed)?;
    }
    if deed.loses {
        let asked = context.confirm(None, effect(&path, &input.text, &deed));
        asked.map_err(|failure| match failure {
            // There is no argument to confirm it with.
            Failure::Error(error) => Failure::Error(Box::new(
                error.hint("a client that can ask the person can do this, or they do it themselves"),
            )),
            other => other,
        })?;
    }
    if deed.tools.contains(&"create_session") {
        context.pace_sessions()?;
    }
    let written = input.text.len() as u64;
    match acts(&path, &input.text) {
        Some(acts) => {
            for act in acts? {
                perform(context, act).await?;
            }
        }
        None => context.write(path, input.text).await?,
    }
    Ok(Written { written })
}

fn effect(path: &str, text: &str, deed: &Deed) -> Effect {
    let shown: String = text.trim().chars().take(120).collect();
    Effect {
        summary: format!(
            "Write '{shown}' to {path}? It does what {} does.",
            deed.tools.join(", ")
        ),
        action: format!("Write to {path}"),
        ..Effect::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_stay_in_the_tree_and_away_from_tokens() {
        assert_eq!(place("/agents/list").ok().as_deref(), Some("agents/list"));
        assert_eq!(place("").ok().as_deref(), Some(""));
        for odd in ["agents/../tokens", "agents/tokens", "tokens", "a//b", "./a"] {
            assert_eq!(
                place(odd)
                    .err()
                    .map(|error| error.kind.name().to_owned())
                    .as_deref(),
                Some("path_denied"),
                "{odd}"
            );
        }
    }

    /// A write counts as the tool that does the same; what no tool does is nobody's to write.
    #[test]
    fn a_write_counts_as_the_tool_that_does_the_same() {
        for (path, text, tools, loses) in [
            ("agents/ctl", "new echo /tmp", vec!["create_session"], false),
            ("agents/a1/ctl", "stop", vec!["control_session"], false),
            ("agents/a1/ctl", "kill", vec!["kill_agent"], true),
            (
                "agents/a1/ctl",
                "stop\n kill",
                vec!["control_session", "kill_agent"],
                true,
            ),
            ("agents/a1/ctl", "discard topic", vec!["control_session"], true),
            ("agents/a1/prompt", "kill", vec!["prompt_session"], false),
            ("agents/me/out", "kill", vec![], false),
            ("actors/0.1.0/ctl", "stop", vec!["kill_actor"], true),
            ("changes/ctl", "flush Lamp", vec!["flush"], false),
            ("changes/ctl", "revert 3", vec!["revert_change"], false),
            ("changes/ctl", "clear", vec!["flush"], true),
            ("classes/Lamp/last", "last => 1", vec!["save_method"], false),
            ("classes/.new", "Object subclass: Cup", vec!["save_class"], false),
            ("loop/events/saved", "1", vec!["post_event"], false),
            ("loop/processes/web/ctl", "stop", vec!["control_process"], false),
            ("loop/workflows/all/ctl", "run", vec!["run_workflow"], false),
        ] {
            let deed = deed(path, text, Some("me")).expect(path);
            assert_eq!((deed.tools, deed.loses), (tools, loses), "{path} {text}");
        }
        for path in [
            "tokens",
            "agents/tokens",
            "agents/other/state",
            "agents/approvals/ap-1",
            "loop/ctl",
            "loop/state/x",
            "agents/../tokens",
            "",
        ] {
            assert!(deed(path, "x", Some("me")).is_none(), "{path}");
        }
    }
}
