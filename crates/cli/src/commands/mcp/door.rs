//! The server of an agent's session: inside it bytes are copied to the file `mcp` of its door; what may be done is
//! decided outside.

use std::io::{Read, Write};

use beamtalk_mcp::{LoopRight, NarrowedBy, Policy, Settings, Toolset, listing};
use beamtalk_ninep::{Attachment, File};
use serde_json::{Map, Value, json};

use super::rules::Asked;
use crate::commands::daemon::agents_door;
use crate::exit::Exit;

/// What tells a server at a door that its client wants less; only as its first message.
const NARROW: &str = "notifications/beamtalk/narrow";
/// What needs no workspace.
const WITHOUT: [&str; 5] = [
    "docs",
    "search_docs",
    "search_examples",
    "search_classes",
    "describe",
];
/// Bytes that are copied at a time.
const PIECE: usize = 32 * 1024;

/// The file of the session that this process is in, if it is in one that has a door.
pub(super) fn find() -> Option<(Attachment, File)> {
    let id = std::env::var("AGENT_ID").ok().filter(|id| !id.is_empty())?;
    let tree = agents_door()().ok()?;
    let file = tree.open(&format!("agents/{id}/mcp"), 2).ok()?;
    Some((tree, file))
}

/// Copy bytes both ways until one side ends.
pub(super) fn copy((_tree, file): &(Attachment, File), asked: &Asked) -> anyhow::Result<Exit> {
    let to_server = file.writer();
    let first = narrower(asked);
    std::thread::spawn(move || {
        let mut input = std::io::stdin().lock();
        let mut piece = vec![0; PIECE];
        if let Some(line) = first
            && to_server.write_at(0, line.as_bytes()).is_err()
        {
            return;
        }
        loop {
            let count = input.read(&mut piece).unwrap_or(0);
            // A write of nothing is the end of the input.
            let read = piece.get(..count).unwrap_or_default();
            if to_server.write_at(0, read).is_err() || count == 0 {
                return;
            }
        }
    });
    let mut from_server = file.writer();
    let mut output = std::io::stdout().lock();
    loop {
        let piece = match from_server.read_next(None) {
            Ok(piece) if !piece.is_empty() => piece,
            Ok(_) => return Ok(Exit::Success),
            Err(_) => return Ok(Exit::Code(5)),
        };
        if output
            .write_all(piece.as_ref())
            .and_then(|()| output.flush())
            .is_err()
        {
            return Ok(Exit::Success);
        }
    }
}

/// The line that asks for less, if the flags do.
fn narrower(asked: &Asked) -> Option<String> {
    let mut params = Map::new();
    for (name, value) in [
        ("policy", asked.policy.as_ref().map(|policy| json!(policy))),
        ("toolsets", asked.toolsets.as_ref().map(|sets| json!(sets))),
        ("evalCeilingS", asked.eval_ceiling_s.map(|seconds| json!(seconds))),
    ] {
        if let Some(value) = value {
            params.insert(name.to_owned(), value);
        }
    }
    let line = json!({"jsonrpc": "2.0", "method": NARROW, "params": params});
    (!params.is_empty()).then(|| format!("{line}\n"))
}

/// The settings that a first line leaves, if it asks for less.
pub(super) fn heard(settings: &Settings, line: &[u8]) -> Option<Settings> {
    let message: Value = serde_json::from_slice(line).ok()?;
    if message["method"] != NARROW {
        return None;
    }
    let params = &message["params"];
    let mut settings = settings.clone();
    if let Some(policy) = params["policy"].as_str().and_then(|word| word.parse().ok()) {
        settings.narrow(policy, NarrowedBy::Role);
    }
    if let Some(Ok(sets)) = params["toolsets"].as_str().map(Settings::parse_toolsets) {
        settings.toolsets = sets;
    }
    if let Some(seconds) = params["evalCeilingS"].as_u64() {
        let asked = std::time::Duration::from_secs(seconds.max(1));
        settings.eval_ceiling = settings.eval_ceiling.min(asked);
    }
    Some(settings)
}

/// What the backend of a session leaves of the settings.
pub(super) fn narrow(settings: &mut Settings, (workspace, on_loop): (Option<&str>, Option<&str>)) {
    match workspace {
        Some("write") => settings.narrow(Policy::Edit, NarrowedBy::Role),
        Some("read") => settings.narrow(Policy::ReadOnly, NarrowedBy::Role),
        _ => {
            settings.narrow(Policy::Edit, NarrowedBy::Role);
            let everything = Settings {
                policy: Policy::Full,
                toolsets: vec![Toolset::Core, Toolset::Edit, Toolset::Test],
                ..Settings::default()
            };
            let tools = listing(&everything);
            let names = tools.iter().filter_map(|tool| tool["name"].as_str());
            let needs = names.filter(|name| !WITHOUT.contains(name));
            settings.deny_tools.extend(needs.map(str::to_owned));
        }
    }
    let most: LoopRight = on_loop
        .and_then(|word| word.parse().ok())
        .unwrap_or(LoopRight::None);
    settings.loop_right = settings.loop_right.min(most);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a session's backend does not give, no setting of the user gives; flags inside only narrow.
    #[test]
    fn a_door_only_narrows() {
        let wide = Settings {
            policy: Policy::Full,
            loop_right: LoopRight::Control,
            ..Settings::default()
        };
        for (workspace, policy) in [
            ("write", Policy::Edit),
            ("read", Policy::ReadOnly),
            ("none", Policy::Edit),
        ] {
            let mut settings = wide.clone();
            narrow(&mut settings, (Some(workspace), Some("post")));
            assert_eq!(
                (settings.policy, settings.loop_right),
                (policy, LoopRight::Post),
                "{workspace}"
            );
            let is_closed = settings.deny_tools.iter().any(|name| name == "evaluate");
            assert_eq!(is_closed, workspace == "none");
            let line =
                br#"{"jsonrpc":"2.0","method":"notifications/beamtalk/narrow","params":{"policy":"full"}}"#;
            assert_eq!(heard(&settings, line).map(|heard| heard.policy), Some(policy));
        }
        let asked = Asked {
            policy: Some("read-only".to_owned()),
            ..Asked::default()
        };
        let line = narrower(&asked).unwrap();
        assert_eq!(heard(&wide, line.as_bytes()).unwrap().policy, Policy::ReadOnly);
        assert!(heard(&wide, br#"{"jsonrpc":"2.0","method":"ping","id":1}"#).is_none());
        assert!(narrower(&Asked::default()).is_none());
    }
}
