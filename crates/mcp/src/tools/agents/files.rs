//! Files of the agents' tree. A write counts as the tool that does the same.

use std::time::Duration;

use beamtalk_wire::{commands, is_directory_of_new};

use super::image_files::{acts, perform};
use super::{Context, Failure, Text, invalid, working_directory};
use crate::confirmation::Effect;
use crate::data::Data;
use crate::host::{Host, HostError, failure};
use crate::named_secrets;
use crate::settings::LoopRight;
use crate::tools::newest;
use crate::tools::parts::{input, output};

/// What `control_session` does.
const SESSION_COMMANDS: [&str; 7] = [
    "stop",
    "restart",
    "interrupt",
    "refresh",
    "clear",
    "compact",
    "resume",
];
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

/// A path in the tree: no way up, and none to tokens and what was recorded.
fn place(path: &str) -> Result<String, HostError> {
    let parts: Vec<&str> = path.trim_matches('/').split('/').collect();
    let is_odd = |part: &&str| matches!(*part, "" | "." | "..") || part.contains('\0');
    let is_root = parts == [""];
    let is_closed = matches!(
        parts.as_slice(),
        ["tokens" | "audit", ..] | ["agents", "tokens" | "audit", ..]
    );
    if (!is_root && parts.iter().any(is_odd)) || is_closed {
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
    let path = place(&input.path)?;
    let read = context.read(&*path);
    let Ok(text) = tokio::time::timeout(READ_TIME, read).await else {
        let error = failure(
            "agents",
            "the file has no end: it tells what happens as it happens",
        );
        let error = error.hint("read the file without 'follow' or 'events', or read_output of a session");
        return Err(Failure::Error(Box::new(error)));
    };
    Ok(Text {
        text: shown(&path, &text?),
    })
}

/// What a file has in it; of values not what their names say is secret.
fn shown(path: &str, text: &str) -> Data {
    match path.split('/').collect::<Vec<_>>().as_slice() {
        ["actors", _, "state.json"] => Data::new(named_secrets::masked_json(text)),
        ["actors", _, "state"] => Data::new(named_secrets::masked_lines(text)),
        ["actors", ..] => Data::named("", text),
        ["loop", "state", key] => Data::named(key, text),
        ["transcript"] => Data::output(newest(text)),
        _ => Data::new(text),
    }
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

/// What a write to the tree does.
#[derive(Debug, Default)]
pub(crate) struct Deed {
    /// The tools that do the same.
    pub(crate) tools: Vec<&'static str>,
    /// How many of its commands lose something.
    pub(crate) losses: usize,
    /// It is the affair of the session that writes.
    pub(crate) is_own: bool,
    /// Where each session works that it starts.
    directories: Vec<Option<String>>,
}

impl Deed {
    fn of(tool: &'static str) -> Self {
        Self {
            tools: vec![tool],
            ..Self::default()
        }
    }

    /// What the commands of a control file do; an error for what no tool does, and for what is no command.
    fn of_commands(
        path: &str,
        text: &str,
        one: impl Fn(&str) -> Option<(&'static str, bool)>,
    ) -> Result<Self, HostError> {
        let mut deed = Self::default();
        let commands = commands(text).ok_or_else(|| invalid("/text", "a quote stays open"))?;
        for words in &commands {
            // One without words is told how the file is used.
            let Some(word) = words.first() else { continue };
            let (mut tool, loses) = one(word).ok_or_else(|| denied(path))?;
            deed.losses += usize::from(loses);
            if tool == "create_session" {
                if words.iter().any(|word| word.starts_with("role=")) {
                    tool = "spawn_agent";
                }
                let mut others = words.iter().skip(2);
                deed.directories
                    .push(others.find(|word| is_directory_of_new(word)).cloned());
            }
            if !deed.tools.contains(&tool) {
                deed.tools.push(tool);
            }
        }
        Ok(deed)
    }
}

/// What a write counts as; an error for what is no tool's work.
pub(crate) fn deed(path: &str, text: &str, own: Option<&str>) -> Result<Deed, HostError> {
    let path = place(path)?;
    let parts: Vec<&str> = path.split('/').collect();
    let of_commands = |one: fn(&str) -> Option<(&'static str, bool)>| Deed::of_commands(&path, text, one);
    let tool = match parts.as_slice() {
        // What a session says of itself and to others is its own affair.
        ["agents", id, "state" | "out" | "mail"] if Some(*id) == own => {
            return Ok(Deed {
                is_own: true,
                ..Deed::default()
            });
        }
        ["agents", "user", "mail"] if own.is_none() => "send_message",
        ["agents", _, "in" | "prompt" | "queue"] => "prompt_session",
        ["agents", _, "alias" | "context" | "role"] => "control_session",
        ["agents", "ctl"] => {
            return of_commands(|word| (word == "new").then_some(("create_session", false)));
        }
        ["agents", "user", "ctl"] => {
            return of_commands(|word| (word == "complete").then_some(("check_inbox", false)));
        }
        ["agents", _, "ctl"] => {
            return of_commands(|word| {
                Some(match word {
                    "kill" => ("kill_agent", true),
                    "complete" => ("check_inbox", false),
                    "ask" => ("ask_person", false),
                    // Prompts that wait are somebody's words, and the branches of a repository its owner's.
                    "clear-queue" | "unqueue" | "discard" | "merge" => ("control_session", true),
                    _ if SESSION_COMMANDS.contains(&word) => ("control_session", false),
                    _ => return None,
                })
            });
        }
        ["actors", _, "ctl"] => return of_commands(|_| Some(("kill_actor", true))),
        ["changes", "ctl"] => {
            return of_commands(|word| {
                Some(match word {
                    "revert" => ("revert_change", false),
                    "clear" | "discard" => ("flush", true),
                    "take" => ("resolve_conflict", true),
                    _ => ("flush", false),
                })
            });
        }
        ["classes", ".new"] | ["classes", _, ".source"] => "save_class",
        ["classes", ..] => "save_method",
        ["loop", "events", _] => "post_event",
        ["loop", "processes", _, "ctl"] => "control_process",
        ["loop", "workflows", _, "ctl"] => "run_workflow",
        _ => return Err(denied(&path)),
    };
    Ok(Deed::of(tool))
}

/// The right on the loop that a tool needs.
fn right(tool: &str) -> Option<LoopRight> {
    match tool {
        "post_event" => Some(LoopRight::Post),
        "control_process" | "run_workflow" => Some(LoopRight::Control),
        _ => None,
    }
}

/// Whether a tool may write there, and what it does.
pub(crate) async fn checked_deed<H: Host>(
    context: &Context<'_, H>,
    path: &str,
    text: &str,
) -> Result<Deed, HostError> {
    let deed = deed(path, text, context.host.own_session().as_deref())?;
    for directory in &deed.directories {
        let directory = directory
            .as_deref()
            .ok_or_else(|| invalid("/text", "the directory is missing: new <backend> <directory> …"))?;
        working_directory(context, directory).await?;
    }
    Ok(deed)
}

pub(crate) async fn write_file<H: Host>(
    context: &Context<'_, H>,
    input: WriteFile,
) -> Result<Written, Failure> {
    let path = place(&input.path)?;
    let deed = checked_deed(context, &path, &input.text).await?;
    for needed in deed.tools.iter().filter_map(|tool| right(tool)) {
        context.loop_right(needed)?;
    }
    if deed.losses > 0 {
        let asked = context.confirm(None, effect(&path, &input.text, &deed));
        asked.map_err(|failure| match failure {
            // There is no argument to confirm it with.
            Failure::Error(error) => Failure::Error(Box::new(
                error.hint("a client that can ask the person can do this, or they do it themselves"),
            )),
            other => other,
        })?;
    }
    context.pace_sessions(deed.directories.len())?;
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
        assert!(place("classes/Lexer/tokens").is_ok());
        for odd in [
            "agents/../tokens",
            "agents/tokens",
            "tokens",
            "audit",
            "/agents/audit",
            "a//b",
            "./a",
        ] {
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
            ("agents/a1/ctl", "merge", vec!["control_session"], true),
            ("agents/a1/ctl", "clear-queue", vec!["control_session"], true),
            (
                "agents/a1/ctl",
                "clear\nunqueue q1",
                vec!["control_session"],
                true,
            ),
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
            assert_eq!((deed.tools, deed.losses > 0), (tools, loses), "{path} {text}");
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
            assert!(deed(path, "x", Some("me")).is_err(), "{path}");
        }
    }

    /// A command is judged by what it is to whoever runs it, not by how it is written; every one of a write counts.
    #[test]
    fn quotes_hide_no_command() {
        for text in [
            "\"kill\"",
            "'kill'",
            "k\"ill\"",
            " 'k'ill ",
            "stop\n\"ki\"ll",
            "ask 'a\nb'\nkill",
        ] {
            let deed = deed("agents/a1/ctl", text, None).expect(text);
            assert!(deed.tools.contains(&"kill_agent") && deed.losses == 1, "{text}");
        }
        for (path, text, losses) in [
            ("agents/a1/ctl", "\"discard\" agents/x", 1),
            ("agents/a1/ctl", "ask 'kill\nkill'", 0),
            ("changes/ctl", "\"clear\"\n'clear'", 2),
            ("changes/ctl", "dis'card'", 1),
        ] {
            assert_eq!(
                deed(path, text, None).expect(text).losses,
                losses,
                "{path} {text}"
            );
        }
        assert!(deed("agents/a1/ctl", "stop\n\"kill", None).is_err());
        let many = deed(
            "agents/ctl",
            "new echo /tmp\n\"new\" echo alias=x 'a b'\nnew echo\n",
            None,
        );
        let directories = many.expect("sessions").directories;
        assert_eq!(
            directories,
            [Some("/tmp".to_owned()), Some("a b".to_owned()), None]
        );
        for text in ["reload", "recover", "prune", "new echo /tmp\n\"reload\""] {
            assert!(deed("agents/ctl", text, None).is_err(), "{text}");
        }
        assert!(deed("agents/user/ctl", "delete m1", None).is_err());
        // Whatever commands are added to a session's file, none is a tool's work by itself.
        for text in ["answer", "clear-everything", "stop\nrename x"] {
            assert!(deed("agents/a1/ctl", text, None).is_err(), "{text}");
        }
    }

    #[test]
    fn values_of_files_are_not_shown_where_their_names_are_secret() {
        for (path, text, wanted) in [
            (
                "actors/0.1.0/state",
                "password: \"a, b\"\ncfg: Cfg(apiToken: \"x\", port: 1)\n",
                "password: ***\ncfg: Cfg(apiToken: ***, port: 1)\n",
            ),
            (
                "actors/0.1.0/state.json",
                "{\"password\":\"\\\"x\\\"\",\"cfg\":\"Cfg(apiToken: 1, port: 2)\"}\n",
                "{\"cfg\":\"Cfg(apiToken: ***, port: 2)\",\"password\":\"***\"}\n",
            ),
            ("loop/state/apiToken", "1\n", "***"),
            ("classes/A/b", "b => #{#token => 1}", "b => #{#token => 1}"),
        ] {
            assert_eq!(shown(path, text), Data::new(wanted), "{path}");
        }
    }
}
