//! Tools, handles, resources, prompts: what they give, and what they say when they cannot.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Mcp;
use crate::home::{Home, wait_until};
use crate::project::{started, write, written};

/// Example 7: arguments that do not fit the schema are named, with the nearest known name, and nothing is evaluated.
#[test]
fn arguments_that_do_not_fit_are_named_and_nothing_runs() {
    let home = started("mcp-args", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    let spawning = mcp.bad("evaluate", json!({"code": "Lamp spawn", "timeout_ms": "9"}));
    assert_eq!(spawning["kind"], "invalid_parameter");
    let spawning = mcp.bad("evaluate", json!({"code": "Lamp spawn", "cod": "1"}));
    assert_eq!(spawning["details"]["path"], "/cod");
    assert_eq!(mcp.good("list_actors", json!({"class": "Lamp"}))["total"], 0);
    for (arguments, path, nearest) in [
        (json!({"code": 5}), "/code", Value::Null),
        (json!({"cod": "1"}), "/cod", json!("code")),
        (
            json!({"code": "1", "timeout_ms": "9"}),
            "/timeout_ms",
            Value::Null,
        ),
        (
            json!({"code": "1", "timeout_ms": 700_000}),
            "/timeout_ms",
            Value::Null,
        ),
        (json!({}), "/code", Value::Null),
    ] {
        let error = mcp.bad("evaluate", arguments.clone());
        assert_eq!(error["kind"], "invalid_parameter", "{arguments}");
        assert_eq!(error["details"]["path"], path, "{arguments}");
        assert_eq!(error["details"]["nearest"], nearest, "{arguments}");
    }
}

/// An error says what to do next: the name that was meant, or the tool that knows.
#[test]
fn errors_lead_on() {
    let home = started("mcp-hints", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    let hint = |error: &Value| error["hint"].as_str().unwrap_or_default().to_owned();
    for tool in ["read_source", "docs"] {
        let error = mcp.bad(tool, json!({"class": "Lmap"}));
        assert_eq!(error["kind"], "class_not_found", "{error}");
        assert!(
            hint(&error).contains("'Lamp'") && hint(&error).contains("list_classes"),
            "{error}"
        );
    }
    for (tool, given, kind, word) in [
        (
            "read_source",
            json!({"class": "Lamp", "selector": "frob"}),
            "selector_not_found",
            "read_source",
        ),
        ("evaluate", json!({"code": "1 +"}), "compile_failed", "check_code"),
        (
            "inspect",
            json!({"actor": "<0.1.0>"}),
            "invalid_actor",
            "list_actors",
        ),
        (
            "save_class",
            json!({"path": "src/lamp.bt", "source": "Object subclass: Lamp\n"}),
            "target_exists",
            "save_method",
        ),
    ] {
        let error = mcp.bad(tool, given);
        assert_eq!(error["kind"], kind, "{error}");
        assert!(hint(&error).contains(word), "{error}");
    }
    // What excludes each other is not taken together.
    for (tool, given) in [
        ("show_codegen", json!({"code": "1", "class": "Lamp"})),
        ("show_codegen", json!({})),
        ("diff_change", json!({"seq": 1, "class": "Lamp"})),
        ("docs", json!({"class": "Lamp", "erlang_module": "lists"})),
        ("inspect", json!({"actor": "<0.1.0>", "binding": "x"})),
    ] {
        let error = mcp.bad(tool, given);
        assert_eq!(error["kind"], "invalid_parameter", "{tool} {error}");
        assert!(
            error["message"]
                .as_str()
                .is_some_and(|text| text.contains("give either")),
            "{error}"
        );
    }
    let odd = mcp.bad("test", json!({"jobs": 0}));
    assert_eq!(odd["details"]["expected"], "an integer of 1 to 64");
}

/// Example 21: without a workspace what needs none answers and the rest says how to get one; with `--start` the first call
/// that needs one starts it, once.
#[test]
fn without_a_workspace_documentation_and_lint_answer() {
    let home = Home::new("mcp-none");
    write(
        &home,
        "beamtalk.toml",
        "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n",
    );
    write(
        &home,
        "src/Lamp.bt",
        "Object subclass: Lamp\n  on => Tnak spawn\n",
    );
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let missing = mcp.bad("evaluate", json!({"code": "1"}));
    assert_eq!(missing["kind"], "no_workspace");
    assert!(missing["hint"].as_str().expect("a hint").contains("--start"));
    let hits = mcp.good("search_docs", json!({"query": "supervisor"}));
    assert!(
        hits["hits"][0]["uri"]
            .as_str()
            .expect("a name")
            .starts_with("beamtalk://doc/")
    );
    let found = mcp.good("lint", json!({"path": "src"}));
    assert_eq!(found["findings"][0]["file"], "src/Lamp.bt", "{found}");
    assert!(mcp.good("diagnostic_summary", json!({}))["total"].as_u64() >= Some(1));
    assert!(mcp.good("docs", json!({"class": "Integer"}))["markdown"].is_string());
    assert_eq!(mcp.good("describe", json!({}))["workspace"]["running"], false);
    assert!(!home.state().join("workspaces").join("orbit").exists());
    // With --start the first call that needs it starts it, once.
    let mut starting = Mcp::start(&home, &["--start"]);
    starting.ask("tools/list", json!({}));
    starting.ask("resources/list", json!({}));
    assert_eq!(
        starting.good("describe", json!({}))["workspace"]["running"],
        false
    );
    let ids = [1, 2, 3].map(|number| {
        let arguments = json!({"code": format!("{number} + 0")});
        starting.send("tools/call", json!({"name": "evaluate", "arguments": arguments}))
    });
    for _ in ids {
        let answer = starting.message();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
    }
    assert_eq!(
        mcp.good("evaluate", json!({"code": "4"}))["value"],
        4,
        "others find it"
    );
    let trail = home.run(&["--json", "workspace", "audit", "--type", "start"]);
    let trail = String::from_utf8_lossy(&trail.stdout).into_owned();
    assert_eq!(trail.lines().count(), 1, "it was started once: {trail}");
}

/// Example 3: a handle is found by a later process, and variables without a handle are forgotten.
#[test]
fn a_handle_outlives_the_process_that_made_it() {
    let home = started("mcp-handles", &[]);
    let mut first = Mcp::start(&home, &[]);
    let made = first.good("evaluate", json!({"code": "x := 7", "session": "new"}));
    let handle = made["session"].as_str().expect("a handle").to_owned();
    assert!(handle.starts_with("ev_") && handle.len() == 25);
    first.kill();
    let mut second = Mcp::start(&home, &["--toolsets", "core"]);
    let kept = second.good("evaluate", json!({"code": "x + 1", "session": handle}));
    assert_eq!((&kept["value"], &kept["session"]), (&json!(8), &json!(handle)));
    let fresh = second.bad("evaluate", json!({"code": "x"}));
    assert_eq!(fresh["kind"], "undefined_variable");
    assert!(
        second
            .good("evaluate", json!({"code": "1"}))
            .get("session")
            .is_none()
    );
    assert_eq!(
        second.good("bindings", json!({"session": handle}))["bindings"]["x"]["text"],
        "7"
    );
    let seen = second.good("inspect", json!({"binding": "x", "session": handle}));
    assert_eq!(seen["class"], "Integer");
    let invented = second.bad(
        "evaluate",
        json!({"code": "1", "session": "ev_0123456789012345678901"}),
    );
    assert_eq!(invented["kind"], "session_not_found");
    assert_eq!(
        second.bad("evaluate", json!({"code": "1", "session": "once"}))["kind"],
        "session_not_found"
    );
    assert_eq!(
        second.good("close_session", json!({"session": handle}))["closed"],
        true
    );
    let ended = second.bad("evaluate", json!({"code": "x", "session": handle}));
    assert_eq!(
        (&ended["kind"], &ended["details"]["reason"]),
        (&json!("session_expired"), &json!("closed"))
    );
    // Reading gets the end of the input at once.
    let read = second.good("evaluate", json!({"code": "Console readLine"}));
    assert_eq!(read["text"], "nil", "{read}");
}

/// Example 2: an old client's evaluations share the variables of its connection, and say in which handle.
#[test]
fn an_old_client_has_variables_of_its_own() {
    let home = started("mcp-legacy", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    mcp.initialize("2025-06-18");
    let mut evaluate = |code: &str| {
        let params = json!({"name": "evaluate", "arguments": {"code": code}});
        mcp.legacy("tools/call", params)["result"].clone()
    };
    let first = evaluate("x := 7");
    assert!(first.get("resultType").is_none());
    let second = evaluate("x + 1");
    assert_eq!(second["structuredContent"]["value"], 8);
    assert!(second.get("resultType").is_none());
    let session = first["structuredContent"]["session"].as_str().expect("a handle");
    assert!(session.starts_with("ev_"), "{session}");
    assert_eq!(second["structuredContent"]["session"], session);
}

/// Example 22: a node that dies under a call is told within two seconds, its handles say why they are gone, new ones work.
#[test]
fn a_node_that_dies_is_told_apart_from_an_answer() {
    let home = started("mcp-node", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    let handle = mcp.good("evaluate", json!({"code": "x := 7", "session": "new"}))["session"].clone();
    let began = Instant::now();
    let dead = mcp.bad(
        "evaluate",
        json!({"code": "Erlang erlang halt: 0", "session": handle}),
    );
    assert_eq!(
        (&dead["kind"], &dead["effects"]),
        (&json!("node_down"), &json!("unknown")),
        "{dead}"
    );
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    let mut last = Value::Null;
    wait_until("the node is up again", Duration::from_secs(20), || {
        let result = mcp.result("evaluate", json!({"code": "1", "session": "new"}));
        last = result.clone();
        result["isError"] == false
    });
    let ended = mcp.bad("evaluate", json!({"code": "x", "session": handle}));
    assert_eq!(ended["kind"], "session_expired");
    assert_eq!(ended["details"]["reason"], "node restarted");
}

/// A handle that is closed while calls are on their way was closed: to none of them it is one that never was.
#[test]
fn a_handle_that_is_closed_under_its_calls_says_so() {
    let home = started("mcp-closed", &[]);
    let mut one = Mcp::start(&home, &["--toolsets", "all"]);
    let mut other = Mcp::start(&home, &["--toolsets", "all"]);
    for _ in 0..10 {
        let made = one.good("evaluate", json!({"code": "x := 1", "session": "new"}));
        let given = json!({"code": "x", "session": made["session"]});
        for _ in 0..8 {
            one.send("tools/call", json!({"name": "evaluate", "arguments": given}));
        }
        other.good("close_session", json!({"session": made["session"]}));
        for _ in 0..8 {
            let result = one.message()["result"].clone();
            let text = result["content"][0]["text"].as_str().expect("text");
            let told: Value = serde_json::from_str(text).expect("JSON");
            let kind = told["error"]["kind"].as_str();
            let is_known = matches!(kind, None | Some("session_expired" | "interrupted"));
            assert!(is_known, "{told}");
        }
        let after = one.bad("evaluate", given.clone());
        assert_eq!(after["details"]["reason"], "closed", "{after}");
    }
}

#[test]
fn every_tool_that_reads_answers_what_its_schema_says() {
    let home = started("mcp-reads", &[]);
    write(
        &home,
        "test/lamp_test.bt",
        "TestCase subclass: LampTest\n  testGood => self assert: true\n",
    );
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let list = mcp.ask("tools/list", json!({}))["result"]["tools"].clone();
    mcp.good(
        "evaluate",
        json!({"code": "lamp := Lamp spawn. Transcript showLine: \"lit\""}),
    );
    let pid = mcp.good("list_actors", json!({"class": "Lamp"}))["actors"][0]["pid"].clone();
    let given = |name: &str| match name {
        "complete" => json!({"code": "Lamp spa"}),
        "check_code" => json!({"code": "3 +"}),
        "docs" => json!({"class": "Lamp"}),
        "search_docs" | "search_examples" | "search_classes" => json!({"query": "actor"}),
        "read_source" => json!({"class": "Lamp"}),
        "find_code" => json!({"kind": "implementors", "name": "toggle"}),
        "inspect" => json!({"actor": pid}),
        "show_codegen" => json!({"class": "Lamp"}),
        "precheck_method" => json!({"class": "Lamp", "selector": "last", "source": "last => 1"}),
        "loop_output" => json!({"process": "web"}),
        "package_classes" => json!({"package": "stdlib"}),
        _ => json!({}),
    };
    for tool in list.as_array().expect("tools") {
        let name = tool["name"].as_str().expect("a name");
        if tool["annotations"]["readOnlyHint"] != true {
            continue;
        }
        if name.starts_with("loop_") {
            assert_eq!(mcp.bad(name, given(name))["kind"], "loop_not_running");
            continue;
        }
        // These need the agents' daemon, which has tests of its own.
        let of_agents = [
            "list_sessions",
            "read_output",
            "session_diff",
            "mail_history",
            "mail_search",
            "list_roles",
            "list_skills",
            "discover_skill",
            "load_skill",
            "list_files",
            "read_file",
        ];
        if of_agents.contains(&name) {
            continue;
        }
        let result = mcp.good(name, given(name));
        fits(&tool["outputSchema"], &result, name);
    }
    let source = mcp.good("read_source", json!({"class": "Lamp", "selector": "isOn"}));
    let text = source["source"].as_str().expect("a source");
    assert!(text.contains("self.on") && !text.contains("///"), "{text}");
    assert_eq!(source["doc"], "Is it on?");
    let sites = mcp.good("find_code", json!({"kind": "references", "name": "Lamp"}));
    assert_eq!(sites["sites"][1]["class"], "Room", "{sites}");
    let said = mcp.good("read_transcript", json!({"lines": 1}));
    assert_eq!(said["text"], "lit\n");
}

/// What a client checks: every property is known, and those that are needed are there.
fn fits(schema: &Value, value: &Value, path: &str) {
    if let (Some(properties), Some(fields)) = (schema["properties"].as_object(), value.as_object()) {
        for (name, value) in fields {
            let schema = properties
                .get(name)
                .unwrap_or_else(|| panic!("{path}.{name} is not in the schema"));
            fits(schema, value, &format!("{path}.{name}"));
        }
        for needed in schema["required"].as_array().into_iter().flatten() {
            let needed = needed.as_str().expect("a name");
            assert!(fields.contains_key(needed), "{path}.{needed} is missing");
        }
    }
    for item in value.as_array().into_iter().flatten() {
        fits(&schema["items"], item, &format!("{path}[]"));
    }
    let is_of_type = match schema["type"].as_str() {
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("boolean") => value.is_boolean(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        _ => true,
    };
    assert!(is_of_type, "{path}: {value} is not {}", schema["type"]);
}

#[test]
fn code_is_changed_live_and_written_to_its_file() {
    let home = started("mcp-edit", &[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let handle = mcp.good(
        "evaluate",
        json!({"code": "lamp := Lamp spawn. lamp toggle", "session": "new"}),
    )["session"]
        .clone();
    let saved = mcp.good(
        "save_method",
        json!({"class": "Lamp", "selector": "last", "source": "last => 100"}),
    );
    assert_eq!(saved["entry"]["author_kind"], "agent");
    let live = mcp.good("evaluate", json!({"code": "lamp last", "session": handle}));
    assert_eq!(live["value"], 100, "the living actor has it");
    let diff = mcp.good("diff_change", json!({}))["diff"]
        .as_str()
        .expect("a diff")
        .to_owned();
    assert!(diff.contains('+') && diff.contains("last => 100"), "{diff}");
    // A class that is not there is a mistake, not a flush of nothing.
    let mistaken = mcp.bad("flush", json!({"class": "Lmap"}));
    assert_eq!(mistaken["kind"], "class_not_found");
    assert_eq!(mistaken["message"], "there is no class 'Lmap'");
    let other = mcp.bad("diff_change", json!({"class": "Lmap"}));
    assert_eq!(
        (&other["message"], &other["hint"]),
        (&mistaken["message"], &mistaken["hint"])
    );
    let odd = mcp.bad("test", json!({"class": "Lamp", "method": "none"}));
    assert!(
        odd["hint"].as_str().expect("a hint").contains("list_tests"),
        "{odd}"
    );
    let unknown = mcp.bad("diff_change", json!({"seq": 999}));
    assert!(
        unknown["hint"].as_str().expect("a hint").contains("list_changes"),
        "{unknown}"
    );
    assert!(
        mistaken["hint"].as_str().expect("a hint").contains("'Lamp'"),
        "{mistaken}"
    );
    let flushed = mcp.good("flush", json!({"author_kind": "agent"}));
    assert_eq!(flushed["files"][0]["file"], "src/lamp.bt");
    assert_eq!(mcp.good("flush", json!({"class": "Lamp"}))["flushed"], 0);
    assert!(crate::project::read(&home, "src/lamp.bt").contains("last => 100"));
    let made = mcp.good(
        "save_class",
        json!({"source": "Object subclass: Pad\n  class size => 3\n", "path": "src/Pad.bt"}),
    );
    assert_eq!(made["classes"], json!(["Pad"]));
    assert_eq!(
        mcp.bad(
            "save_class",
            json!({"source": "Object subclass: Pot\n", "path": "src/lamp.bt"})
        )["kind"],
        "target_exists"
    );
    let seq = made["entry"]["seq"].clone();
    mcp.good("revert_change", json!({"seq": seq}));
    let broken = mcp.bad(
        "save_method",
        json!({"class": "Lamp", "selector": "last", "source": "last => ("}),
    );
    assert_eq!(broken["kind"], "compile_failed");
    assert!(broken["diagnostics"][0]["line"].is_u64(), "{broken}");
}

#[test]
fn results_have_a_size() {
    let home = started("mcp-size", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    let long = mcp.result("evaluate", json!({"code": "(1 to: 60000) asList"}));
    let text = long["content"][0]["text"].as_str().expect("a text");
    assert!(
        text.len() <= 64 * 1024 && long["structuredContent"]["truncated"] == true,
        "{}",
        text.len()
    );
    let loud = mcp.good(
        "evaluate",
        json!({"code": "1 to: 9000 do: [:n | Transcript showLine: \"ä ä ä ä ä ä ä ä\"]"}),
    );
    assert!(loud.to_string().len() <= 64 * 1024);
}

/// Of a Transcript that is longer than a message the last lines are given that fit, and it is said that they are not all.
#[test]
fn the_last_lines_of_a_long_transcript_are_read() {
    let home = started("mcp-long", &[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    for _ in 0..3 {
        mcp.good(
            "evaluate",
            json!({"code": "1 to: 40 do: [:n | Transcript showLine: (\"x\" repeat: 40000)]"}),
        );
    }
    mcp.good("evaluate", json!({"code": "Transcript showLine: \"end\""}));
    let last = mcp.good("read_transcript", json!({"lines": 1}));
    assert_eq!(
        (&last["text"], &last["truncated"]),
        (&json!("end\n"), &Value::Null)
    );
    let result = mcp.result("read_transcript", json!({"lines": 50}));
    let some = &result["structuredContent"];
    let text = some["text"].as_str().expect("a text");
    assert!(
        text.ends_with("x\nend\n") && text.lines().count() == 2,
        "{}",
        text.len()
    );
    assert_eq!(some["truncated"], true);
    assert_eq!(result["content"][1]["uri"], "beamtalk://transcript");
    let whole = mcp.ask("resources/read", json!({"uri": "beamtalk://transcript"}))["result"].clone();
    let whole = whole["contents"][0]["text"].as_str().expect("a text");
    assert!(whole.starts_with("[earlier lines were left out]\nx") && whole.ends_with("end\n"));
    // One line that is longer than a message.
    mcp.good(
        "evaluate",
        json!({"code": "Transcript showLine: (\"y\" repeat: 9000000)"}),
    );
    let long = mcp.good("read_transcript", json!({"lines": 1}));
    let text = long["text"].as_str().expect("a text");
    assert!(long["truncated"] == true && text.len() > 10_000 && text.ends_with("yy\n"));
}

/// Packages are known from the project's files: itself, what it depends on, the library; so are their classes.
#[test]
fn packages_and_their_classes_are_listed() {
    let home = written("mcp-packages");
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let packages = mcp.good("list_packages", json!({}))["packages"].clone();
    let names: Vec<&str> = packages
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["name"].as_str())
        .collect();
    assert!(names.len() >= 2 && names.last() == Some(&"stdlib"), "{packages}");
    let own = mcp.good("package_classes", json!({"package": names[0]}))["classes"].clone();
    let lamp = own
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["name"] == "Lamp");
    assert_eq!(lamp.expect("Lamp")["superclass"], "Actor");
    let library = mcp
        .good("package_classes", json!({"package": "stdlib"}))
        .to_string();
    assert!(library.contains("\"OrderedCollection\"") || library.contains("\"Integer\""));
    let unknown = mcp.bad("package_classes", json!({"package": "nope"}));
    assert_eq!(unknown["kind"], "not_found");
    let summary = mcp.good("diagnostic_summary", json!({}));
    let coverage = &summary["type_coverage"];
    assert!(coverage["total"].as_u64() >= coverage["typed"].as_u64() && coverage["percent"].is_number());
}

/// A run of tests is told in the form of `beamtalk test --format json`, failing ones only; the last run is there as a
/// whole, and its failures can be run again alone.
#[test]
fn tests_that_failed_can_be_run_again_alone() {
    let home = written("mcp-failed");
    write(
        &home,
        "test/odd_test.bt",
        "TestCase subclass: OddTest\n  testGood => self assert: true\n  testBad => self assert: 1 equals: 2\n  testLong => Timer sleep: 60000\n",
    );
    home.start(&[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let ran = mcp.good("test", json!({"class": "OddTest", "timeout_s": 1}));
    assert_eq!(
        (&ran["total"], &ran["passed"], &ran["failed"]),
        (&json!(3), &json!(1), &json!(2)),
        "{ran}"
    );
    let bad = ran["tests"]
        .as_array()
        .expect("a list")
        .iter()
        .find(|one| one["name"] == "testBad");
    let bad = bad.expect("it failed");
    assert_eq!(
        (&bad["class"], &bad["status"]),
        (&json!("OddTest"), &json!("fail"))
    );
    assert!(
        bad["error"]["message"].is_string() && bad["error"]["expected"] == "2",
        "{bad}"
    );
    let whole = mcp.ask("resources/read", json!({"uri": "beamtalk://tests/last"}))["result"].clone();
    let whole: Value =
        serde_json::from_str(whole["contents"][0]["text"].as_str().expect("a text")).expect("JSON");
    assert_eq!(whole["tests"].as_array().map(Vec::len), Some(3), "{whole}");
    write(
        &home,
        "test/odd_test.bt",
        "TestCase subclass: OddTest\n  testGood => self assert: true\n  testBad => self assert: 2 equals: 2\n  testLong => self assert: true\n",
    );
    let again = mcp.good("test", json!({"failed_only": true}));
    assert_eq!(
        (&again["total"], &again["failed"]),
        (&json!(2), &json!(0)),
        "{again}"
    );
    let none = mcp.good("test", json!({"failed_only": true}));
    assert_eq!(none["total"], 0);
}

/// A result that had to be cut names the resource that has the whole.
#[test]
fn a_result_that_was_cut_links_to_the_whole() {
    let home = started("mcp-links", &[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let source = format!(
        "Object subclass: Wide\n  class text => \"{}\"\n",
        "x".repeat(90_000)
    );
    mcp.good("save_class", json!({"source": source, "path": "src/Wide.bt"}));
    let result = mcp.result("read_source", json!({"class": "Wide"}));
    assert_eq!(result["structuredContent"]["truncated"], true);
    let link = &result["content"][1];
    assert_eq!(
        (&link["type"], &link["uri"]),
        (&json!("resource_link"), &json!("beamtalk://class/Wide"))
    );
    let whole = mcp.ask("resources/read", json!({"uri": link["uri"]}))["result"].clone();
    assert!(whole["contents"][0]["text"].as_str().expect("a text").len() > 90_000);
}

/// Example 25, the second part, and all of the resources, prompts and completions: what is read, and what is refused.
#[test]
fn resources_and_prompts_are_read_and_watched() {
    let home = started("mcp-resources", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    let listed = mcp.ask("resources/list", json!({}))["result"].clone();
    let uris: Vec<&str> = listed["resources"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|one| one["uri"].as_str())
        .collect();
    for wanted in [
        "beamtalk://status",
        "beamtalk://doc/language",
        "beamtalk://class/Lamp",
    ] {
        assert!(uris.contains(&wanted), "{wanted}");
    }
    mcp.good("evaluate", json!({"code": "Lamp spawn"}));
    let pid = mcp.good("list_actors", json!({"class": "Lamp"}))["actors"][0]["pid"]
        .as_str()
        .expect("a pid")
        .trim_matches(['<', '>'])
        .to_owned();
    for (uri, kind, words) in [
        ("beamtalk://class/Lamp", "text/x-beamtalk", "Actor subclass: Lamp"),
        ("beamtalk://class/Lamp/definition", "text/x-beamtalk", "state: on"),
        (
            "beamtalk://method/Lamp/instance/isOn",
            "text/x-beamtalk",
            "self.on",
        ),
        ("beamtalk://doc/class/Lamp", "text/markdown", "Gives light"),
        ("beamtalk://doc/language", "text/markdown", "#"),
        ("beamtalk://classes", "application/json", "src/lamp.bt"),
        ("beamtalk://actors", "application/json", "Lamp"),
        (&format!("beamtalk://actor/{pid}"), "application/json", "count"),
        ("beamtalk://changes", "application/json", "[]"),
        ("beamtalk://changes/pending", "text/x-diff", ""),
        ("beamtalk://status", "application/json", "\"policy\":\"edit\""),
    ] {
        let read = mcp.ask("resources/read", json!({"uri": uri}))["result"].clone();
        assert_eq!(read["contents"][0]["mimeType"], kind, "{uri}: {read}");
        assert!(
            read["contents"][0]["text"]
                .as_str()
                .expect("text")
                .contains(words),
            "{uri}: {read}"
        );
        assert!(read["ttlMs"].is_u64());
    }
    for uri in [
        "beamtalk://class/Nope",
        "beamtalk://nope",
        "file:///etc/passwd",
        "beamtalk://changes/x",
        "beamtalk://class/%zz",
    ] {
        let error = mcp.ask("resources/read", json!({"uri": uri}))["error"].clone();
        assert_eq!(
            (&error["code"], &error["data"]["uri"]),
            (&json!(-32602), &json!(uri))
        );
    }
    let templates = mcp.ask("resources/templates/list", json!({}))["result"].clone();
    assert!(templates["resourceTemplates"].as_array().expect("a list").len() >= 6);
    let prompts = mcp.ask("prompts/list", json!({}))["result"]["prompts"].clone();
    assert_eq!(prompts.as_array().expect("a list").len(), 5);
    let got = mcp.ask(
        "prompts/get",
        json!({"name": "explain_actor", "arguments": {"actor": pid}}),
    )["result"]
        .clone();
    assert_eq!(got["messages"].as_array().expect("messages").len(), 4, "{got}");
    for params in [
        json!({"name": "nope"}),
        json!({"name": "explain_actor"}),
        json!({"name": "find_slow", "arguments": {"x": "y"}}),
    ] {
        assert_eq!(mcp.ask("prompts/get", params)["error"]["code"], -32602);
    }
    let complete = |argument: &str, value: &str| json!({"ref": {"type": "ref/resource", "uri": "beamtalk://class/{class}"}, "argument": {"name": argument, "value": value}, "context": {"arguments": {"class": "Lamp"}}});
    for (argument, value, wanted) in [
        ("class", "La", "Lamp"),
        ("class", "Lmap", "Lamp"),
        ("selector", "tog", "toggle"),
        ("topic", "lang", "language"),
    ] {
        let done = mcp.ask("completion/complete", complete(argument, value))["result"].clone();
        assert_eq!(done["completion"]["values"][0], wanted, "{argument} {value}");
    }
    // A watch is acknowledged first; then comes one word for each change.
    let id = mcp.send("subscriptions/listen", json!({"notifications": {"resourceSubscriptions": ["beamtalk://class/Lamp"], "toolsListChanged": true}}));
    let told = mcp.message();
    assert_eq!(told["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(
        told["params"]["notifications"],
        json!({"resourceSubscriptions": ["beamtalk://class/Lamp"]})
    );
    mcp.send("tools/call", json!({"name": "save_method", "arguments": {"class": "Lamp", "selector": "last", "source": "last => 7"}}));
    let (one, other) = (mcp.message(), mcp.message());
    let update = if one["method"].is_string() { one } else { other };
    assert_eq!(update["method"], "notifications/resources/updated", "{update}");
    assert_eq!(update["params"]["uri"], "beamtalk://class/Lamp");
    assert_eq!(
        update["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        id
    );
    mcp.line(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            .to_string(),
    );
    mcp.good(
        "save_method",
        json!({"class": "Lamp", "selector": "last", "source": "last => 8"}),
    );
    assert!(
        mcp.is_silent(Duration::from_millis(300)),
        "nobody watches any more"
    );
}

/// Clients edit files with tools of their own: tests of an image that has not seen that say so.
#[test]
fn tests_tell_which_files_they_did_not_see() {
    let home = started("mcp-unseen", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    assert!(mcp.good("test", json!({})).get("disk_changed").is_none());
    let lamp = std::fs::read_to_string(home.project().join("src/lamp.bt")).expect("the lamp");
    write(
        &home,
        "src/lamp.bt",
        &format!("// By hand.\n{lamp}\n  later => 7\n"),
    );
    assert_eq!(
        mcp.good("test", json!({}))["disk_changed"],
        json!(["src/lamp.bt"])
    );
    mcp.good("evaluate", json!({"code": "Workspace sync"}));
    assert!(mcp.good("test", json!({})).get("disk_changed").is_none());
    assert_eq!(
        mcp.good("evaluate", json!({"code": "Lamp spawn later"}))["value"],
        7
    );
}
