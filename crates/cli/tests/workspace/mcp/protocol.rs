//! Messages of both eras, their errors and limits.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Mcp;
use crate::home::Home;
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

#[test]
fn both_eras_are_answered_in_their_own_shape_on_one_pipe() {
    let home = Home::new("mcp-eras");
    let mut mcp = Mcp::start(&home, &[]);
    let refused = mcp.legacy("tools/list", json!({}));
    assert_eq!(refused["error"]["code"], -32602);
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
        // A ping needs no era.
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
    assert!(old["message"].as_str().expect("text").contains("initialize"));
    let bare = mcp.legacy("tools/list", meta(json!("2026-07-28"), Value::Null))["error"].clone();
    assert_eq!(bare["code"], -32602);
    let discovered = mcp.ask("server/discover", json!({}))["result"].clone();
    assert_eq!(discovered["supportedVersions"][0], "2026-07-28");
    let instructions = discovered["instructions"].as_str().expect("text");
    assert!(instructions.chars().count() <= 1_500);
}

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
    let deep = format!(
        r#"{{"jsonrpc":"2.0","id":5,"method":"a","params":{{"a":{}{}}}}}"#,
        "[".repeat(200),
        "]".repeat(200)
    );
    for (line, code, id) in [
        (long.as_str(), -32600, json!(4)),
        (deep.as_str(), -32700, Value::Null),
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
    let close = mcp.ask("tools/call", json!({"name": "evalute"}))["error"].clone();
    assert_eq!(close["data"]["nearest"], "evaluate");
    assert_eq!(
        mcp.ask("tools/list", json!({"cursor": "x"}))["error"]["code"],
        -32602
    );
    assert_eq!(mcp.end().0, Some(0));
}

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

#[test]
fn the_end_of_input_stops_what_runs() {
    let home = started("mcp-end", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    mcp.good("evaluate", json!({"code": "1"}));
    mcp.send(
        "tools/call",
        json!({"name": "evaluate", "arguments": {"code": "[true] whileTrue: []", "timeout_ms": 60_000}}),
    );
    let mut other = Mcp::start(&home, &[]);
    let began = Instant::now();
    assert_eq!(mcp.end().0, Some(0));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    assert_eq!(
        other.good("interrupt", json!({}))["stopped"],
        0,
        "nothing runs any more"
    );
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
