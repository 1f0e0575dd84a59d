//! Messages of both eras, their errors and limits.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Mcp;
use crate::home::{Home, wait_until};
use crate::project::started;

const LEAN: [&str; 20] = [
    "evaluate",
    "interrupt",
    "check_code",
    "docs",
    "search_docs",
    "list_classes",
    "read_source",
    "find_code",
    "list_actors",
    "inspect",
    "supervision_tree",
    "describe",
    "save_method",
    "save_class",
    "list_changes",
    "diff_change",
    "flush",
    "revert_change",
    "test",
    "loop_status",
];

/// Example 1: a list needs neither opening nor workspace, has the order of the specification, and is the same every time.
#[test]
fn the_list_is_the_first_answer_and_always_the_same() {
    let home = Home::new("mcp-list");
    let mut mcp = Mcp::start(&home, &[]);
    mcp.send("tools/list", json!({}));
    let first = mcp.raw();
    let list: Value = serde_json::from_str(&first).expect("JSON");
    let result = &list["result"];
    let tools = result["tools"].as_array().expect("tools");
    let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
    assert_eq!(names, LEAN);
    assert_eq!(
        (&result["ttlMs"], &result["cacheScope"]),
        (&json!(300_000), &json!("private"))
    );
    assert_eq!(result["resultType"], "complete");
    mcp.send("tools/list", json!({}));
    assert_eq!(first.replace("\"id\":1", "\"id\":2"), mcp.raw());
    assert!(!home.state().join("workspaces").exists(), "a list starts nothing");
    assert_eq!(mcp.end(), (Some(0), String::new()));
}

/// Examples 5, 11 (the last part) and 12: each request is answered in the shape of its own era, a method of the other era
/// does not exist, and who has not opened is told both ways to.
#[test]
fn both_eras_are_answered_in_their_own_shape_on_one_pipe() {
    let home = Home::new("mcp-eras");
    let mut mcp = Mcp::start(&home, &[]);
    let refused = mcp.legacy("tools/list", json!({}));
    assert_eq!(refused["error"]["code"], -32602);
    let text = refused["error"]["message"].as_str().expect("a text");
    assert!(
        text.contains("initialize") && text.contains("io.modelcontextprotocol/protocolVersion"),
        "{text}"
    );
    assert_eq!(mcp.ask("ping", json!({}))["error"]["code"], -32601);
    assert_eq!(mcp.legacy("ping", json!({}))["result"], json!({}));
    let opened = mcp.initialize("2025-06-18");
    assert_eq!(opened["protocolVersion"], "2025-06-18");
    assert_eq!(opened["serverInfo"]["name"], "beamtalk");
    mcp.line(r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let old = mcp.legacy("tools/list", json!({}))["result"].clone();
    assert!(old.get("resultType").is_none() && old.get("ttlMs").is_none() && old.get("_meta").is_none());
    let new = mcp.ask("tools/list", json!({}))["result"].clone();
    assert_eq!(new["resultType"], "complete");
    assert_eq!(
        new["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "beamtalk"
    );
    let again = mcp.legacy("tools/list", json!({}))["result"].clone();
    assert_eq!(again, old);
    // Methods of the other era are none of this one.
    for method in ["ping", "logging/setLevel", "resources/subscribe", "frob"] {
        let code = mcp.ask(method, json!({"uri": "beamtalk://status"}))["error"]["code"].clone();
        assert_eq!(code, -32601, "{method}");
    }
    for method in [
        "subscriptions/listen",
        "tasks/get",
        "server/discover",
        "logging/setLevel",
    ] {
        assert_eq!(mcp.legacy(method, json!({}))["error"]["code"], -32601, "{method}");
    }
    assert_eq!(mcp.initialize("2099-01-01")["protocolVersion"], "2025-11-25");
    assert_eq!(mcp.end().0, Some(0));
}

/// Example 11: versions that are not served, or not in this way, and a request without its capabilities are refused.
#[test]
fn versions_and_capabilities_are_checked() {
    let home = Home::new("mcp-versions");
    let mut mcp = Mcp::start(&home, &[]);
    let meta = |version: Value, capabilities: Value| {
        json!({"_meta": {
            "io.modelcontextprotocol/protocolVersion": version,
            "io.modelcontextprotocol/clientCapabilities": capabilities,
        }})
    };
    let unknown = mcp.legacy("tools/list", meta(json!("1900-01-01"), json!({})))["error"].clone();
    assert_eq!(unknown["code"], -32022);
    assert_eq!(
        unknown["data"]["supported"],
        json!(["2026-07-28", "2025-11-25", "2025-06-18"])
    );
    let old = mcp.legacy("tools/list", meta(json!("2025-11-25"), json!({})))["error"].clone();
    assert_eq!(old["code"], -32022);
    assert_eq!(old["data"]["requested"], "2025-11-25");
    assert!(old["message"].as_str().expect("text").contains("initialize"));
    let bare = mcp.legacy("tools/list", meta(json!("2026-07-28"), Value::Null))["error"].clone();
    assert_eq!(bare["code"], -32602);
    let discovered = mcp.ask("server/discover", json!({}))["result"].clone();
    assert_eq!(discovered["supportedVersions"][0], "2026-07-28");
    let instructions = discovered["instructions"].as_str().expect("text");
    assert!(instructions.chars().count() <= 1_500);
}

/// Examples 6, 8, 9 and 10: what is no message, or no call, is refused with its code and id, and the next line answered.
#[test]
fn what_is_no_message_is_refused_and_the_next_one_answered() {
    let home = Home::new("mcp-lines");
    let mut mcp = Mcp::start(&home, &[]);
    mcp.line(r#"{"jsonrpc":"2.0","method":"notifications/unknown"}"#);
    mcp.line("{nonsense");
    let answer = mcp.message();
    assert_eq!(
        (&answer["error"]["code"], answer.get("id")),
        (&json!(-32700), None)
    );
    let long = format!(
        r#"{{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{{"x":"{}"}}}}"#,
        "x".repeat(2 << 20)
    );
    // Some clients write it last.
    let late = format!(
        r#"{{"method":"tools/call","params":{{"id":1,"x":"{}"}},"jsonrpc":"2.0","id":6}}"#,
        "x".repeat(2 << 20)
    );
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"a","params":{{"a":{}{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    for (line, code, id) in [
        (long.as_str(), -32600, json!(4)),
        (late.as_str(), -32600, json!(6)),
        (deep.as_str(), -32700, json!(5)),
        ("[]", -32600, Value::Null),
        (
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            -32600,
            Value::Null,
        ),
        (r#"{"jsonrpc":"2.0","id":7}"#, -32600, json!(7)),
    ] {
        mcp.line(line);
        let answer = mcp.message();
        assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(code), &id));
    }
    // An answer nobody asked for, blank lines and carriage returns are nothing.
    mcp.line("{\"jsonrpc\":\"2.0\",\"id\":\"x\",\"result\":{}}\n\r\n  ");
    assert_eq!(
        mcp.ask("tools/list", json!({}))["result"]["resultType"],
        "complete"
    );
    for (params, words) in [
        (json!({"name": 5}), "params.name"),
        (json!({"name": "evaluate", "arguments": [1]}), "params.arguments"),
        (json!({"name": "frobnicate"}), "Unknown tool: frobnicate"),
    ] {
        let error = mcp.ask("tools/call", params)["error"].clone();
        assert_eq!(error["code"], -32602);
        assert!(
            error["message"].as_str().expect("text").contains(words),
            "{error}"
        );
    }
    let unknown = mcp.ask("tools/call", json!({"name": "frobnicate"}))["error"].clone();
    assert_eq!(unknown["message"], "Unknown tool: frobnicate");
    assert!(
        unknown["data"]
            .as_object()
            .is_some_and(|data| data.contains_key("nearest"))
    );
    let close = mcp.ask("tools/call", json!({"name": "evalute"}))["error"].clone();
    assert_eq!(close["data"]["nearest"], "evaluate");
    assert_eq!(
        mcp.ask("tools/list", json!({"cursor": "x"}))["error"]["code"],
        -32602
    );
    assert_eq!(mcp.end().0, Some(0));
}

/// Example 10, the last part: an id in use is refused, and the call that has it is answered all the same.
#[test]
fn an_id_in_use_is_refused_and_the_first_call_unharmed() {
    let home = started("mcp-twice", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    mcp.good("evaluate", json!({"code": "1"}));
    let arguments = json!({"code": "(Timer sleep: 700). 9"});
    let id = mcp.send("tools/call", json!({"name": "evaluate", "arguments": arguments}));
    let twice = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"_meta": mcp.meta()}});
    mcp.line(&twice.to_string());
    let refused = mcp.message();
    assert_eq!(
        (&refused["id"], &refused["error"]["code"]),
        (&json!(id), &json!(-32600))
    );
    let first = mcp.message();
    assert_eq!(
        (&first["id"], &first["result"]["structuredContent"]["value"]),
        (&json!(id), &json!(9)),
        "{first}"
    );
}

/// Example 14 over a pipe: a cancelled call is not answered, its evaluation ends, the trail says so, the next call works.
#[test]
fn a_call_that_is_cancelled_ends_its_evaluation() {
    let home = started("mcp-cancel", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    let session = mcp.good("evaluate", json!({"code": "x := 1", "session": "new"}))["session"].clone();
    let arguments = json!({"code": "[true] whileTrue: []", "timeout_ms": 60_000, "session": session});
    let progress = json!({"progressToken": "p"});
    let id = mcp.send(
        "tools/call",
        json!({"name": "evaluate", "arguments": arguments, "_meta": progress}),
    );
    // An id that is in use is refused, and the first call unharmed.
    let twice = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"_meta": mcp.meta()}});
    mcp.line(&twice.to_string());
    assert_eq!(mcp.message()["error"]["code"], -32600);
    let told = mcp.message();
    assert_eq!(told["method"], "notifications/progress");
    assert_eq!(
        (&told["params"]["progressToken"], &told["params"]["progress"]),
        (&json!("p"), &json!(1))
    );
    mcp.line(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            .to_string(),
    );
    let began = Instant::now();
    let next = mcp.good("evaluate", json!({"code": "x", "session": session}));
    assert_eq!(next["value"], 1, "the variables are as before");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(mcp.is_silent(Duration::from_millis(50)));
    assert_eq!(mcp.end().0, Some(0));
    let trail = home.run(&["--json", "workspace", "audit", "--type", "mcp"]);
    let trail = String::from_utf8_lossy(&trail.stdout).into_owned();
    assert!(trail.contains("\"outcome\":\"cancelled\""), "{trail}");
}

/// What was opened for a client goes with it: nothing of it is kept for one who may come back, except its handles.
#[test]
fn a_client_that_ends_leaves_no_session() {
    let home = started("mcp-leave", &[]);
    let sessions = || {
        let status = home.run(&["--json", "workspace", "status"]);
        serde_json::from_slice::<Value>(&status.stdout).unwrap()["sessions"].clone()
    };
    let before = sessions();
    for is_signal in [false, true] {
        let mut mcp = Mcp::start(&home, &[]);
        assert_eq!(mcp.good("evaluate", json!({"code": "1 + 2"}))["value"], 3);
        let code = if is_signal { mcp.terminate() } else { mcp.end().0 };
        assert_eq!(code, Some(0));
        assert_eq!(sessions(), before);
    }
}

/// The end of the input, or a signal to end, stops what runs: once the server has left, a handle in which it evaluated for
/// ever can be used by others.
#[test]
fn the_end_of_input_stops_what_runs() {
    let home = started("mcp-end", &[]);
    let mut other = Mcp::start(&home, &[]);
    for is_signal in [false, true] {
        let mut mcp = Mcp::start(&home, &[]);
        let session = mcp.good("evaluate", json!({"code": "x := 1", "session": "new"}))["session"].clone();
        let forever = json!({"code": "[true] whileTrue: []", "timeout_ms": 600_000, "session": session});
        mcp.send("tools/call", json!({"name": "evaluate", "arguments": forever}));
        // What is asked after it and answered says that it runs.
        mcp.good("list_actors", json!({}));
        let code = if is_signal { mcp.terminate() } else { mcp.end().0 };
        assert_eq!(code, Some(0));
        // Evaluations of a handle run one after the other: this one waits for the end of the other.
        let next = other.good("evaluate", json!({"code": "x + 1", "session": session}));
        assert_eq!(next["value"], 2);
    }
    let trail = home.run(&["--json", "workspace", "audit", "--type", "mcp"]);
    let trail = String::from_utf8_lossy(&trail.stdout).into_owned();
    assert_eq!(trail.matches("\"outcome\":\"cancelled\"").count(), 2, "{trail}");
}

#[test]
fn many_calls_at_once_are_all_answered() {
    let home = started("mcp-many", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    let mut wanted = std::collections::BTreeSet::new();
    for number in 0..200 {
        let params = if number % 3 == 0 {
            json!({"name": "evaluate", "arguments": {"code": format!("{number} + 1")}})
        } else {
            json!({"name": "find_code", "arguments": {"kind": "senders", "name": "spawn"}})
        };
        wanted.insert(mcp.send("tools/call", params));
    }
    for _ in 0..200 {
        let answer = mcp.message();
        let text = answer.to_string();
        assert!(wanted.remove(&answer["id"].as_u64().expect("an id")), "{text}");
        let error = answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default();
        assert!(answer["result"]["isError"] == false, "{error}");
    }
    assert!(wanted.is_empty());
}

#[test]
fn hostile_lines_leave_the_server_alive() {
    let home = Home::new("mcp-fuzz");
    let mut mcp = Mcp::start(&home, &[]);
    // A small generator of its own: the same lines every time.
    let mut state = 0x2545_f491_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 11).unwrap_or(0) % below
    };
    let seed = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_docs","arguments":{"query":"x"},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#;
    let letters: Vec<char> = r#"{}[]":,\n0123456789abcdefu-."#.chars().collect();
    for _ in 0..2_000 {
        let mut line: Vec<char> = seed.chars().collect();
        for _ in 0..=random(6) {
            let place = random(line.len());
            match random(3) {
                0 => line[place] = letters[random(letters.len())],
                1 => drop(line.remove(place)),
                _ => line.insert(place, letters[random(letters.len())]),
            }
        }
        let line: String = line.into_iter().filter(|letter| *letter != '\n').collect();
        mcp.line(&line);
    }
    let mut id = mcp.send("tools/list", json!({}));
    loop {
        let answer = mcp.message();
        if answer["id"] == id && answer["result"]["tools"].is_array() {
            break;
        }
        // A line before it may have the same id and be open still, which refuses this one.
        if answer["id"] == id && answer["error"].is_object() {
            id = mcp.send("tools/list", json!({}));
        }
    }
    assert_eq!(mcp.end().0, Some(0));
}

/// A server that waits gives back what only its start and its first calls needed.
#[test]
#[cfg(target_os = "linux")]
fn a_server_that_waits_needs_little() {
    let home = started("mcp-memory", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    mcp.ask("tools/list", json!({}));
    mcp.good("evaluate", json!({"code": "1 + 2"}));
    let status = format!("/proc/{}/status", mcp.child.id());
    let code = || -> u64 {
        let text = std::fs::read_to_string(&status).expect("a process");
        let line = text
            .lines()
            .find(|line| line.starts_with("RssFile"))
            .expect("a size");
        line.split_whitespace()
            .nth(1)
            .and_then(|size| size.parse().ok())
            .expect("a number")
    };
    let busy = code();
    wait_until("the code is given back", Duration::from_secs(30), || {
        code() < busy / 2
    });
    assert_eq!(mcp.good("evaluate", json!({"code": "1 + 2"}))["value"], 3);
}
