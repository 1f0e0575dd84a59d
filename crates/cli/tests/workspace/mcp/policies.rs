//! Every tool under every policy.

use serde_json::{Map, Value, json};

use super::{Mcp, configure};
use crate::home::Home;

/// A value that fits a schema.
fn value(schema: &Value) -> Value {
    if let Some(word) = schema["enum"].get(0) {
        return word.clone();
    }
    match schema["type"].as_str() {
        Some("integer") => schema.get("minimum").cloned().unwrap_or_else(|| json!(1)),
        Some("boolean") => json!(false),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => {
            let least = schema["minLength"].as_u64().unwrap_or(1);
            json!("x".repeat(usize::try_from(least).unwrap_or(1)))
        }
    }
}

/// The fewest arguments that a tool takes.
fn arguments(tool: &Value) -> Value {
    let schema = &tool["inputSchema"];
    let needed = schema["required"].as_array().into_iter().flatten();
    let fields: Map<String, Value> = needed
        .filter_map(Value::as_str)
        .map(|name| (name.to_owned(), value(&schema["properties"][name])))
        .collect();
    Value::Object(fields)
}

fn kind(mcp: &mut Mcp, tool: &str, arguments: Value) -> (String, Value) {
    let result = mcp.result(tool, arguments);
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    let error = serde_json::from_str::<Value>(text).unwrap_or_default()["error"].clone();
    (error["kind"].as_str().unwrap_or_default().to_owned(), error)
}

/// Example 16 for every tool: `read-only` allows class R, `edit` R and X, `full` everything; what a policy does not allow is
/// neither listed nor done, whatever the arguments, and the refusal names the policy and who it is from.
#[test]
fn every_tool_is_allowed_by_the_policies_of_its_class() {
    let home = Home::new("mcp-matrix");
    configure(&home, "[mcp]\nmax-policy = \"full\"\nloop = \"control\"\n");
    let mut full = Mcp::start(&home, &["--policy", "full", "--toolsets", "all"]);
    let all = full.ask("tools/list", json!({}))["result"]["tools"].clone();
    let all = all.as_array().expect("tools");
    assert!(all.len() > 70, "{}", all.len());
    for (policy, classes) in [
        ("read-only", &["R"][..]),
        ("edit", &["R", "X"]),
        ("full", &["R", "X", "XD"]),
    ] {
        let mut mcp = Mcp::start(&home, &["--policy", policy, "--toolsets", "all"]);
        let listed = mcp.ask("tools/list", json!({}))["result"]["tools"].clone();
        let listed: Vec<&str> = listed
            .as_array()
            .expect("tools")
            .iter()
            .filter_map(|tool| tool["name"].as_str())
            .collect();
        for tool in all {
            let name = tool["name"].as_str().expect("a name");
            let class = tool["_meta"]["beamtalk/class"].as_str().expect("a class");
            let is_allowed = classes.contains(&class);
            assert_eq!(listed.contains(&name), is_allowed, "{policy} {name}");
            let (kind, error) = kind(&mut mcp, name, arguments(tool));
            assert_eq!(kind == "policy_denied", !is_allowed, "{policy} {name}: {error}");
            if !is_allowed {
                assert_eq!(error["details"]["policy"], policy, "{name}");
                assert_eq!(error["details"]["by"], "user", "{name}");
            }
        }
    }
}

/// A call is of the class of what it does: what its arguments lose needs `full` and a person's yes, and what is written to
/// the tree counts as the tool that does the same.
#[test]
fn arguments_that_lose_something_make_a_call_destructive() {
    let home = Home::new("mcp-deeds");
    configure(
        &home,
        "[mcp]\nmax-policy = \"full\"\ndeny-tools = [\"save_method\", \"prompt_session\"]\n",
    );
    let losing = [
        ("flush", json!({"confirm_destructive": true})),
        ("flush", json!({"confirm_destructive": true, "file": "../x.bt"})),
        ("write_file", json!({"path": "agents/a1/ctl", "text": "kill"})),
        (
            "write_file",
            json!({"path": "agents/a1/ctl", "text": "stop\ndiscard x"}),
        ),
        ("write_file", json!({"path": "changes/ctl", "text": "clear"})),
        ("write_file", json!({"path": "actors/0.1.0/ctl", "text": "stop"})),
    ];
    let harmless = [
        ("flush", json!({"confirm_destructive": false})),
        ("flush", json!({})),
        ("write_file", json!({"path": "agents/a1/ctl", "text": "stop"})),
        ("write_file", json!({"path": "changes/ctl", "text": "flush"})),
        ("revert_change", json!({"seq": 1})),
        ("remove_method", json!({"class": "Lamp", "selector": "last"})),
    ];
    let mut edit = Mcp::start(&home, &["--toolsets", "all"]);
    let mut full = Mcp::start(&home, &["--policy", "full", "--toolsets", "all"]);
    for (tool, arguments) in &losing {
        let (found, error) = kind(&mut edit, tool, arguments.clone());
        assert_eq!(found, "policy_denied", "{tool} {arguments}: {error}");
        let (found, _) = kind(&mut full, tool, arguments.clone());
        assert_ne!(found, "policy_denied", "{tool} {arguments}");
    }
    for (tool, arguments) in &harmless {
        let (found, error) = kind(&mut edit, tool, arguments.clone());
        assert_ne!(found, "policy_denied", "{tool} {arguments}: {error}");
    }
    // Nothing of it is done without a yes, for which this tool has no argument.
    let (found, error) = kind(
        &mut full,
        "write_file",
        json!({"path": "agents/a1/ctl", "text": "kill"}),
    );
    assert_eq!(found, "confirmation_needed", "{error}");
    for path in ["classes/Lamp/last", "agents/a1/prompt"] {
        let (found, error) = kind(
            &mut full,
            "write_file",
            json!({"path": path, "text": "last => 1"}),
        );
        assert_eq!(found, "policy_denied", "{path}: {error}");
    }
}

/// A project's toolsets narrow what is listed to what both name; a pattern that cannot be read is a fault, not nothing.
#[test]
fn settings_of_a_project_narrow_and_are_understood() {
    let home = Home::new("mcp-sets");
    let manifest = "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n";
    crate::project::write(
        &home,
        "beamtalk.toml",
        &format!("{manifest}\n[mcp]\ntoolsets = \"test\"\n"),
    );
    let mut mcp = Mcp::start(&home, &[]);
    let listed = mcp.ask("tools/list", json!({}))["result"]["tools"].clone();
    let names: Vec<&Value> = listed
        .as_array()
        .expect("tools")
        .iter()
        .map(|tool| &tool["name"])
        .collect();
    assert_eq!(names, [&json!("test")], "what is lean and a test");
    crate::project::write(
        &home,
        "beamtalk.toml",
        &format!("{manifest}\n[mcp]\ndeny-paths = [\"secrets/[\"]\n"),
    );
    let (code, errors) = Mcp::start(&home, &[]).end();
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("secrets/["), "{errors}");
}

/// What is closed to clients is not told by asking about the directory it is in, nor by a link.
#[test]
fn the_linter_tells_nothing_of_closed_files() {
    let home = Home::new("mcp-closed-files");
    let manifest =
        "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n[mcp]\ndeny-paths = [\"src/private/**\"]\n";
    let class = |name: &str| format!("Object subclass: {name}\n  class open => hidden{name}\n");
    for (file, text) in [
        ("beamtalk.toml", manifest.to_owned()),
        ("src/Open.bt", class("Open")),
        ("src/private/Vault.bt", class("Vault")),
        ("../elsewhere/Away.bt", class("Away")),
    ] {
        crate::project::write(&home, file, &text);
    }
    let away = home.project().join("../elsewhere/Away.bt");
    std::os::unix::fs::symlink(away, home.project().join("src/Away.bt")).expect("a link");
    let mut mcp = Mcp::start(&home, &["--policy", "read-only", "--toolsets", "all"]);
    for path in ["src/private/Vault.bt", "src/Away.bt"] {
        let (kind, _) = kind(&mut mcp, "lint", json!({ "path": path }));
        assert_eq!(kind, "path_denied", "{path}");
    }
    for arguments in [json!({}), json!({"path": "src"}), json!({"path": "."})] {
        let found = mcp.good("lint", arguments.clone()).to_string();
        assert!(found.contains("hiddenOpen"), "{arguments}: {found}");
        assert!(
            !found.contains("Vault") && !found.contains("Away"),
            "{arguments}: {found}"
        );
    }
}

/// The project may be loaded; why a closed file in it does not load is not told.
#[test]
fn loading_tells_nothing_of_closed_files() {
    let home = Home::new("mcp-closed-load");
    let manifest =
        "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n[mcp]\ndeny-paths = [\"src/private/**\"]\n";
    for (file, text) in [
        ("beamtalk.toml", manifest),
        ("src/Open.bt", "Object subclass: Open\n  class open => (\n"),
        (
            "src/private/Vault.bt",
            "Object subclass: Vault\n  class open => #treasure )\n",
        ),
    ] {
        crate::project::write(&home, file, text);
    }
    home.start(&[]);
    let mut mcp = Mcp::start(&home, &["--policy", "edit", "--toolsets", "all"]);
    let errors = mcp.good("load_project", json!({"force": true}))["errors"].clone();
    let of = |file: &str| {
        let mut all = errors.as_array().into_iter().flatten();
        let is_of = |error: &&Value| error["file"].as_str().is_some_and(|path| path.ends_with(file));
        all.find(is_of).cloned().unwrap_or_else(|| panic!("{errors}"))
    };
    assert!(of("src/Open.bt")["line"].is_u64(), "{errors}");
    let closed = of("src/private/Vault.bt");
    let message = closed["message"].as_str().unwrap_or_default();
    assert!(message.contains("closed to clients"), "{closed}");
    assert!(
        closed.get("line").is_none() && closed.get("hint").is_none(),
        "{closed}"
    );
}

/// A directory does not open what is closed in it, nor what lies outside the project behind a link.
#[test]
fn a_directory_opens_nothing_that_is_closed() {
    let home = Home::new("mcp-closed-directory");
    let manifest = "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n[mcp]\ndeny-paths = [\"secrets/**\"]\n";
    let class = |name: &str| format!("Object subclass: {name}\n  class size => 1\n");
    for (file, text) in [
        ("beamtalk.toml", manifest.to_owned()),
        ("src/Open.bt", class("Open")),
        ("secrets/Vault.bt", class("Vault")),
        ("more/Plain.bt", class("Plain")),
        ("../elsewhere/Away.bt", class("Away")),
    ] {
        crate::project::write(&home, file, &text);
    }
    for (target, link) in [
        (home.project().join("../elsewhere/Away.bt"), "more/Away.bt"),
        (home.project().join("secrets"), "ways"),
    ] {
        std::os::unix::fs::symlink(target, home.project().join(link)).expect("a link");
    }
    home.start(&[]);
    let mut mcp = Mcp::start(&home, &["--policy", "edit", "--toolsets", "all"]);
    for path in ["secrets", "secrets/", "ways", "./secrets/."] {
        let found = mcp.bad("load_file", json!({"path": path}));
        assert!(
            ["path_denied", "file_not_found"].contains(&found["kind"].as_str().unwrap_or_default()),
            "{path}: {found}"
        );
    }
    for path in ["more", "."] {
        let loaded = mcp.good("load_file", json!({"path": path}))["classes"].to_string();
        assert!(
            loaded.contains("Plain") && !loaded.contains("Vault") && !loaded.contains("Away"),
            "{loaded}"
        );
    }
    for name in ["Vault", "Away"] {
        assert_eq!(
            mcp.bad("read_source", json!({"class": name}))["kind"],
            "class_not_found"
        );
    }
}
