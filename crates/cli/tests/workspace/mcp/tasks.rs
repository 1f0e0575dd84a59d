//! Long work: tasks that outlive the process that ordered them, and progress for those who ask.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::Mcp;
use super::http::Http;
use crate::home::Home;
use crate::project::{FILES, started, write, written};

const LIMIT: Duration = Duration::from_secs(90);

fn that_takes_tasks(home: &Home, flags: &[&str]) -> Mcp {
    let mut mcp = Mcp::start(home, flags);
    mcp.capabilities = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    mcp
}

/// The task once it has ended.
fn ended(mcp: &mut Mcp, task: &Value) -> Value {
    let since = Instant::now();
    loop {
        let found = mcp.ask("tasks/get", json!({"taskId": task}))["result"].clone();
        if found["status"] != "working" {
            return found;
        }
        assert!(since.elapsed() < LIMIT, "{found}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A project with 300 tests that take 20 ms each.
fn slow_tests(home: &Home) {
    for (file, text) in FILES {
        write(home, file, text);
    }
    let mut text = "TestCase subclass: SlowTest\n".to_owned();
    for number in 0..300 {
        text.push_str(&format!(
            "  test{number:03} => (Timer sleep: 20). self assert: true\n"
        ));
    }
    write(home, "test/slow_test.bt", &text);
}

/// Example 23: long work becomes a task that is found by a later process, by nobody else, and completes with the results.
#[test]
fn long_work_becomes_a_task_that_outlives_its_process() {
    let home = Home::new("mcp-tasks");
    slow_tests(&home);
    home.start(&["--mcp-http"]);
    let mut mcp = that_takes_tasks(&home, &["--toolsets", "all"]);
    let quick = mcp.ask(
        "tools/call",
        json!({"name": "evaluate", "arguments": {"code": "3 + 4"}}),
    );
    assert_eq!(quick["result"]["structuredContent"]["value"], 7, "{quick}");
    let since = Instant::now();
    let task = mcp.ask(
        "tools/call",
        json!({"name": "test", "arguments": {"class": "SlowTest"}}),
    )["result"]
        .clone();
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    assert_eq!(
        (&task["resultType"], &task["status"]),
        (&json!("task"), &json!("working"))
    );
    let id = task["taskId"].clone();
    assert!(
        id.as_str()
            .is_some_and(|id| id.starts_with("tk_") && id.len() == 25)
    );
    assert_eq!(task["ttlMs"], 3_600_000);
    let message = mcp.ask("tasks/get", json!({"taskId": id}))["result"]["statusMessage"].clone();
    assert!(
        message.as_str().is_some_and(|text| text.ends_with("of 300")),
        "{message}"
    );
    mcp.kill();
    let mut later = that_takes_tasks(&home, &[]);
    let found = ended(&mut later, &id);
    assert_eq!(found["status"], "completed", "{found}");
    assert_eq!(found["result"]["structuredContent"]["total"], 300);
    assert_eq!(found["result"]["isError"], false);
    // Anybody else has no such task, and who did not say that they take any is told so.
    let made = home.run(&["workspace", "token", "create", "ci", "--mcp", "edit"]);
    let other = Http::new(&home, String::from_utf8_lossy(&made.stdout).trim());
    let meta = json!({"io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}}});
    let refused = other
        .ask("tasks/get", json!({"taskId": id, "_meta": meta}))
        .json();
    let invented = later.ask("tasks/get", json!({"taskId": "tk_0123456789012345678901"}));
    assert_eq!(refused["error"]["code"], -32602);
    assert_eq!(refused["error"]["message"], invented["error"]["message"]);
    let mut plain = Mcp::start(&home, &[]);
    assert_eq!(
        plain.ask("tasks/get", json!({"taskId": id}))["error"]["code"],
        -32021
    );
    let trail = home.run(&["--json", "workspace", "audit", "--type", "mcp"]);
    assert!(String::from_utf8_lossy(&trail.stdout).contains(id.as_str().expect("a name")));
}

/// Example 23 for a client with a progress token: progress rises to all of the tests.
#[test]
fn progress_of_tests_rises_to_all_of_them() {
    let home = Home::new("mcp-progress");
    slow_tests(&home);
    home.start(&[]);
    let mut mcp = Mcp::start(&home, &[]);
    let params = json!({"name": "test", "arguments": {"class": "SlowTest"}, "_meta": {"progressToken": 5}});
    let id = mcp.send("tools/call", params);
    let mut told = Vec::new();
    let answer = loop {
        let message = mcp.message();
        if message["id"] == id {
            break message;
        }
        assert_eq!(message["params"]["progressToken"], 5);
        told.push((
            message["params"]["progress"].as_u64(),
            message["params"]["total"].as_u64(),
        ));
    };
    assert_eq!(answer["result"]["structuredContent"]["passed"], 300, "{answer}");
    assert!(told.is_sorted() && told.len() > 2, "{told:?}");
    assert_eq!(told.last(), Some(&(Some(300), Some(300))));
}

#[test]
fn a_task_is_cancelled_and_says_so() {
    let home = started("mcp-canceltask", &[]);
    let mut mcp = that_takes_tasks(&home, &[]);
    let session = mcp.good("evaluate", json!({"code": "x := 1", "session": "new"}))["session"].clone();
    let arguments = json!({"code": "[true] whileTrue: []", "timeout_ms": 60_000, "session": session});
    let task = mcp.ask("tools/call", json!({"name": "evaluate", "arguments": arguments}))["result"]["taskId"]
        .clone();
    assert!(task.is_string());
    for _ in 0..2 {
        // It can be said twice.
        let done = mcp.ask("tasks/cancel", json!({"taskId": task}))["result"].clone();
        assert_eq!(done["resultType"], "complete", "{done}");
    }
    assert_eq!(ended(&mut mcp, &task)["status"], "cancelled");
    assert_eq!(
        mcp.good("evaluate", json!({"code": "x", "session": session}))["value"],
        1
    );
}

/// What needs no workspace is done at once where none runs, also for a client that takes tasks, and starts none.
#[test]
fn what_needs_no_workspace_is_no_task_without_one() {
    let home = written("mcp-notask");
    let mut mcp = that_takes_tasks(&home, &["--toolsets", "all", "--start"]);
    assert!(mcp.good("lint", json!({"path": "src"}))["findings"].is_array());
    assert!(mcp.good("diagnostic_summary", json!({}))["total"].is_u64());
    assert_eq!(mcp.good("describe", json!({}))["workspace"]["running"], false);
    let mut plain = that_takes_tasks(&home, &[]);
    assert_eq!(
        plain.bad("evaluate", json!({"code": "1"}))["kind"],
        "no_workspace"
    );
}
