//! The node, the daemon and the server killed in the middle of calls: every call that can be answered is, and the next
//! one works.

use std::time::Duration;

use rustix::process::Signal;
use serde_json::{Value, json};

use super::{Mcp, configure};
use crate::home::{Home, block_on, kill, wait_until};
use crate::project::{started, write, written};
use crate::waiting::{hold_build, send};

const LIMIT: Duration = Duration::from_mins(1);

fn error_of(answer: &Value) -> Value {
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    serde_json::from_str::<Value>(text).expect("JSON")["error"].clone()
}

/// Evaluations that run until somebody stops them; once this ends, they run.
fn run_for_ever(mcp: &mut Mcp, count: usize) -> Vec<u64> {
    let forever = json!({"code": "Lamp spawn. [true] whileTrue: []", "timeout_ms": 600_000});
    let ids = (0..count)
        .map(|_| mcp.send("tools/call", json!({"name": "evaluate", "arguments": forever})))
        .collect();
    // Each that has begun has made an actor.
    wait_until("all have begun", LIMIT, || {
        mcp.good("list_actors", json!({"class": "Lamp"}))["total"] == count
    });
    ids
}

/// The answers to these requests, in any order.
fn answers(mcp: &Mcp, ids: &[u64]) -> Vec<Value> {
    let answers: Vec<Value> = ids.iter().map(|_| mcp.message()).collect();
    let mut found: Vec<u64> = answers.iter().filter_map(|one| one["id"].as_u64()).collect();
    found.sort_unstable();
    assert_eq!(found, ids, "each is answered once");
    answers
}

/// The process of the node.
fn node_of(home: &Home) -> u32 {
    let status = home.run(&["--json", "workspace", "status"]);
    let status: Value = serde_json::from_slice(&status.stdout).expect("JSON");
    let pid = status["node_pid"].as_u64().expect("a pid");
    u32::try_from(pid).expect("a pid")
}

/// The node killed under calls: each answers that it is not known what was done, and later calls work.
#[test]
fn a_node_that_is_killed_loses_no_answer() {
    let home = started("mcp-nodekill", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    let ids = run_for_ever(&mut mcp, 3);
    kill(node_of(&home));
    for answer in answers(&mcp, &ids) {
        let error = error_of(&answer);
        assert_eq!(
            (&error["kind"], &error["effects"]),
            (&json!("node_down"), &json!("unknown")),
            "{answer}"
        );
    }
    wait_until("the node is up again", LIMIT, || {
        mcp.result("evaluate", json!({"code": "6 * 7"}))["structuredContent"]["value"] == 42
    });
}

/// The daemon killed under calls: each answers that the connection was lost, and the next call finds a workspace again.
#[test]
fn a_daemon_that_is_killed_loses_no_answer() {
    let home = started("mcp-killed", &[]);
    let mut mcp = Mcp::start(&home, &["--start"]);
    let ids = run_for_ever(&mut mcp, 3);
    let daemon = home.info()["pid"].as_u64().expect("a pid");
    kill(u32::try_from(daemon).expect("a pid"));
    for answer in answers(&mcp, &ids) {
        let error = error_of(&answer);
        assert_eq!(
            (&error["kind"], &error["effects"]),
            (&json!("connection_lost"), &json!("unknown")),
            "{answer}"
        );
    }
    assert_eq!(mcp.good("evaluate", json!({"code": "6 * 7"}))["value"], 42);
}

/// The server killed under calls: what it ran is stopped, so that its handle is free; what it had handed over as a task
/// goes on.
#[test]
fn a_server_that_is_killed_leaves_nothing_running_but_tasks() {
    let home = started("mcp-prockill", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    mcp.capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let long = json!({"name": "evaluate", "arguments": {"code": "(Timer sleep: 6000). 9"}});
    let task = mcp.ask("tools/call", long)["result"]["taskId"].clone();
    assert!(task.is_string());
    mcp.capabilities = json!({});
    let session = mcp.good("evaluate", json!({"code": "x := 1", "session": "new"}))["session"].clone();
    let forever = json!({"code": "[true] whileTrue: []", "timeout_ms": 600_000, "session": session});
    mcp.send("tools/call", json!({"name": "evaluate", "arguments": forever}));
    mcp.good("list_actors", json!({}));
    mcp.kill();
    let mut later = Mcp::start(&home, &[]);
    let next = later.good("evaluate", json!({"code": "x + 1", "session": session}));
    assert_eq!(next["value"], 2);
    later.capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut found = Value::Null;
    wait_until("the task ends", LIMIT, || {
        found = later.ask("tasks/get", json!({"taskId": task}))["result"].clone();
        found["status"] != "working"
    });
    assert_eq!(found["result"]["structuredContent"]["value"], 9, "{found}");
}

/// A handle is of one node: used at any moment after that was killed, it says that it is gone, and never that a variable of
/// its own is unknown. What changes code says that the node is on its way, and never that a class of the project is none.
#[test]
fn what_was_of_a_killed_node_is_never_called_unknown() {
    let home = started("mcp-between", &[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let handle = mcp.good("evaluate", json!({"code": "q := 7", "session": "new"}))["session"].clone();
    kill(node_of(&home));
    let calls = [
        json!({"name": "evaluate", "arguments": {"code": "q", "session": handle}}),
        json!({"name": "save_method", "arguments": {"class": "Lamp", "selector": "hue", "source": "hue => 5"}}),
        json!({"name": "precheck_method", "arguments": {"class": "Lamp", "selector": "hue", "source": "hue => 5"}}),
    ];
    let mut saved = false;
    wait_until("the node is up again", LIMIT, || {
        for call in &calls {
            let answer = mcp.ask("tools/call", call.clone());
            let is_error = answer["result"]["isError"] == true;
            let kind = is_error.then(|| error_of(&answer)["kind"].clone());
            let kind = kind.as_ref().and_then(Value::as_str);
            match call["name"].as_str() {
                // Sent before the daemon knew, it went down with the node.
                Some("evaluate") if kind == Some("node_down") => {}
                Some("evaluate") => {
                    assert_eq!(
                        error_of(&answer)["details"]["reason"],
                        "node restarted",
                        "{answer}"
                    );
                }
                name => {
                    let is_late = matches!(kind, Some("node_starting" | "node_down"));
                    assert!(kind.is_none() || is_late, "{answer}");
                    saved |= kind.is_none() && name == Some("save_method");
                }
            }
        }
        saved
    });
}

/// While the node starts, what needs all code says so: it finds no fault with classes that are not there yet, and asks nobody
/// about what cannot be done.
#[test]
fn what_needs_all_code_says_that_the_node_starts() {
    let home = written("mcp-half");
    configure(&home, "[mcp]\nmax-policy = \"full\"\n");
    write(&home, "src/cup.bt", "Value subclass: Cup\n  bar => 1\n");
    home.start(&[]);
    let mut mcp = Mcp::that_can_ask(&home, &["--toolsets", "all", "--policy", "full"]);
    mcp.good(
        "save_method",
        json!({"class": "Cup", "selector": "bar", "source": "bar => 100"}),
    );
    write(&home, "src/cup.bt", "Value subclass: Cup\n  bar => 50\n");
    // The next node has no code of the project as long as this stands still.
    let build = block_on(async {
        let (_connection, mut events) = home.try_connect("repl").await.expect("a connection");
        hold_build(&home, &mut events, &[]).await
    });
    for (tool, arguments) in [
        ("resolve_conflict", json!({"class": "Cup", "take": "disk"})),
        (
            "resolve_conflict",
            json!({"class": "Cup", "selector": "bar", "take": "disk"}),
        ),
        ("flush", json!({"confirm_destructive": true})),
        ("check_code", json!({"code": "Cup new bar"})),
        ("complete", json!({"code": "Cu"})),
        ("show_codegen", json!({"code": "Cup new bar"})),
        ("list_changes", json!({})),
        ("dirty_methods", json!({})),
        ("diff_change", json!({})),
        ("diff_change", json!({"class": "Cup"})),
        ("list_classes", json!({})),
        ("read_source", json!({"class": "Cup"})),
        ("find_code", json!({"kind": "implementors", "name": "bar"})),
    ] {
        let error = mcp.bad(tool, arguments);
        assert_eq!(error["kind"], "node_starting", "{tool}: {error}");
    }
    for uri in ["beamtalk://changes", "beamtalk://changes/pending"] {
        let read = mcp.ask("resources/read", json!({ "uri": uri }));
        assert!(read["error"].to_string().contains("node"), "{uri}: {read}");
    }
    send(build, Signal::CONT);
    let checked = |mcp: &mut Mcp| mcp.result("check_code", json!({"code": "Cup new bar"}));
    wait_until("the node is up again", LIMIT, || {
        checked(&mut mcp)["isError"] == false
    });
    assert_eq!(checked(&mut mcp)["structuredContent"]["findings"], json!([]));
    let asked = mcp.result("resolve_conflict", json!({"class": "Cup", "take": "disk"}));
    assert_eq!(asked["resultType"], "input_required", "{asked}");
}

/// The handle of an old client's connection is gone with the node or the daemon: it is told so once, nothing is evaluated
/// without the variables it counts on, and the next call works.
#[test]
fn an_old_client_is_told_once_that_its_variables_are_gone() {
    for victim in ["node_pid", "pid"] {
        let home = started("mcp-oldkill", &[]);
        let mut mcp = Mcp::start(&home, &["--start"]);
        mcp.initialize("2025-11-25");
        let mut evaluate = |code: &str| {
            let params = json!({"name": "evaluate", "arguments": {"code": code}});
            mcp.legacy("tools/call", params)
        };
        assert_eq!(evaluate("q := 7")["result"]["structuredContent"]["value"], 7);
        kill(u32::try_from(home.info()[victim].as_u64().expect("a pid")).expect("a pid"));
        let mut told = Vec::new();
        let mut last = Value::Null;
        wait_until("an evaluation", LIMIT, || {
            last = evaluate("r := 3");
            if last["result"]["isError"] == true {
                told.push(error_of(&last));
            }
            last["result"]["structuredContent"]["value"] == 3
        });
        let expired: Vec<&Value> = told
            .iter()
            .filter(|error| error["kind"] == "session_expired")
            .collect();
        assert_eq!(expired.len(), 1, "{told:?}");
        assert_eq!(expired[0]["details"]["reason"], "node restarted");
        assert_eq!(evaluate("r")["result"]["structuredContent"]["value"], 3);
    }
}

/// Clients that come and go take no handle away from one that works.
#[test]
fn clients_that_left_take_no_handle_from_one_that_works() {
    let home = started("mcp-many", &[]);
    let mut works = Mcp::start(&home, &[]);
    works.initialize("2025-11-25");
    let call = |mcp: &mut Mcp, arguments: Value| {
        let answer = mcp.legacy("tools/call", json!({"name": "evaluate", "arguments": arguments}));
        answer["result"]["structuredContent"].clone()
    };
    let handle = call(&mut works, json!({"code": "x := 5", "session": "new"}))["session"].clone();
    call(&mut works, json!({"code": "y := 6"}));
    for turn in 0..20 {
        let mut passes = Mcp::start(&home, &[]);
        passes.initialize("2025-06-18");
        assert_eq!(call(&mut passes, json!({"code": "3 + 4"}))["value"], 7);
        match turn % 2 {
            0 => drop(passes.end()),
            _ => passes.kill(),
        }
    }
    assert_eq!(
        call(&mut works, json!({"code": "x", "session": handle}))["value"],
        5
    );
    assert_eq!(call(&mut works, json!({"code": "y"}))["value"], 6);
}
