//! The server of an agent's session, outside of it: what its backend leaves it, and what its client asks to have less.

use serde_json::{Map, Value, json};

use crate::{LoopRight, NarrowedBy, Policy, Settings, Toolset, listing};

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

/// The line that asks for less, if something is given.
pub fn narrower(policy: Option<&str>, toolsets: Option<&str>, eval_ceiling_s: Option<u64>) -> Option<String> {
    let mut params = Map::new();
    for (name, value) in [
        ("policy", policy.map(|policy| json!(policy))),
        ("toolsets", toolsets.map(|sets| json!(sets))),
        ("evalCeilingS", eval_ceiling_s.map(|seconds| json!(seconds))),
    ] {
        if let Some(value) = value {
            params.insert(name.to_owned(), value);
        }
    }
    let line = json!({"jsonrpc": "2.0", "method": NARROW, "params": params});
    (!params.is_empty()).then(|| format!("{line}\n"))
}

/// The settings that a first line leaves, if it asks for less.
pub fn heard(settings: &Settings, line: &[u8]) -> Option<Settings> {
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
pub fn narrow(settings: &mut Settings, (workspace, on_loop): (Option<&str>, Option<&str>)) {
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
        let line = narrower(Some("read-only"), None, None).unwrap();
        assert_eq!(heard(&wide, line.as_bytes()).unwrap().policy, Policy::ReadOnly);
        assert!(heard(&wide, br#"{"jsonrpc":"2.0","method":"ping","id":1}"#).is_none());
        assert!(narrower(None, None, None).is_none());
    }
}
