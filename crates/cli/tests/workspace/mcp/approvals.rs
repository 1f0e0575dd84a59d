//! Calls that are held until a person answers.

use std::time::{Duration, Instant};

use beamtalk_wire::requests::{ApprovalAnswer, Approvals};
use serde_json::{Value, json};

use super::{Mcp, configure};
use crate::home::Home;
use crate::project::written;

const LIMIT: Duration = Duration::from_secs(20);

fn held(name: &str, settings: &str) -> Home {
    let home = written(name);
    configure(&home, &format!("[mcp]\nmax-policy = \"full\"\n{settings}"));
    home.start(&[]);
    home
}

fn nothing_waits(home: &Home) {
    let since = Instant::now();
    let listing = ["--json", "workspace", "approvals"];
    while home.run(&listing).stdout.trim_ascii() != b"[]" {
        assert!(since.elapsed() < LIMIT, "it still waits");
    }
}

/// What waits, once something does.
fn waiting(home: &Home) -> Value {
    let since = Instant::now();
    loop {
        let shown = home.run(&["--json", "workspace", "approvals"]);
        let shown: Value = serde_json::from_slice(&shown.stdout).expect("JSON");
        if shown.as_array().is_some_and(|all| !all.is_empty()) {
            return shown[0].clone();
        }
        assert!(since.elapsed() < LIMIT, "nothing waits");
    }
}

fn answer(home: &Home, words: &[&str]) -> (bool, String) {
    let mut all = vec!["workspace", "approvals"];
    all.extend(words);
    let done = home.run(&all);
    (
        done.status.success(),
        String::from_utf8_lossy(&done.stderr).into_owned(),
    )
}

fn error_of(answer: &Value) -> Value {
    let text = answer["result"]["content"][0]["text"].as_str().expect("a text");
    serde_json::from_str::<Value>(text).expect("JSON")["error"].clone()
}

/// Example 20: nobody's answer is a no, a yes is recorded with the call, and a yes to an effect that has changed asks again.
#[test]
fn a_call_waits_for_a_person_and_their_answer_is_recorded() {
    let home = held("mcp-held", "approval = \"destructive\"\napproval-timeout = 2\n");
    let mut mcp = Mcp::start(&home, &["--policy", "full", "--toolsets", "all"]);
    let actor = mcp.good("evaluate", json!({"code": "Lamp spawn"}))["text"].clone();
    let pid = mcp.good("list_actors", json!({"class": "Lamp"}))["actors"][0]["pid"].clone();
    assert!(pid.is_string(), "{actor}");
    let kill = json!({"actor": pid, "confirm": true});
    let denied = mcp.bad("kill_actor", kill.clone());
    assert_eq!(
        (&denied["kind"], &denied["details"]["reason"]),
        (&json!("approval_denied"), &json!("no answer"))
    );
    // Settings are read once per start; a person on a busy machine needs more than two seconds.
    configure(
        &home,
        "[mcp]\nmax-policy = \"full\"\napproval = \"destructive\"\n",
    );
    let mut mcp = Mcp::start(&home, &["--policy", "full", "--toolsets", "all"]);
    let id = mcp.send("tools/call", json!({"name": "kill_actor", "arguments": kill}));
    let shown = waiting(&home);
    assert_eq!(
        (&shown["tool"], &shown["who"]),
        (&json!("kill_actor"), &json!("owner"))
    );
    assert!(
        shown["effect"]
            .as_str()
            .is_some_and(|effect| effect.contains("actors")),
        "{shown}"
    );
    let name = shown["id"].as_str().expect("a name").to_owned();
    assert!(answer(&home, &["approve", &name]).0);
    let done = mcp.message();
    assert_eq!(
        (&done["id"], &done["result"]["isError"]),
        (&json!(id), &json!(false)),
        "{done}"
    );
    let (is_done, said) = answer(&home, &["approve", &name]);
    assert!(!is_done && said.contains("already answered by"), "{said}");
    let trail = home.run(&["--json", "workspace", "audit"]);
    let trail = String::from_utf8_lossy(&trail.stdout);
    assert!(trail.contains(&format!("\"approval\":\"{name}\"")), "{trail}");
    assert!(trail.contains("\"type\":\"approval\""));
    // An actor that dies before the answer: the person is asked again, with the new effect.
    let made = mcp.good(
        "evaluate",
        json!({"code": "lamp := Lamp spawn", "session": "new"}),
    );
    let pid = mcp.good("list_actors", json!({"class": "Lamp"}))["actors"][0]["pid"].clone();
    let kill = json!({"actor": pid, "confirm": true});
    mcp.send("tools/call", json!({"name": "kill_actor", "arguments": kill}));
    let first = waiting(&home);
    let mut other = Mcp::start(&home, &[]);
    other.good(
        "evaluate",
        json!({"code": "lamp stop", "session": made["session"]}),
    );
    assert!(answer(&home, &["approve", first["id"].as_str().expect("a name")]).0);
    let again = waiting(&home);
    assert_ne!(again["sha256"], first["sha256"]);
    assert!(
        again["effect"]
            .as_str()
            .is_some_and(|effect| effect.contains("\"actors\":0")),
        "{again}"
    );
    assert!(answer(&home, &["reject", again["id"].as_str().expect("a name")]).0);
    assert_eq!(error_of(&mcp.message())["kind"], "approval_denied");
}

/// Who watches what waits is told of every change of it, with what waits and until when in the words of the task.
#[test]
fn what_waits_can_be_watched() {
    let home = held("mcp-watched", "approval = \"execute\"\n");
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let watch = mcp.send(
        "subscriptions/listen",
        json!({"notifications": {"resourceSubscriptions": ["beamtalk://approvals"]}}),
    );
    assert_eq!(
        mcp.message()["method"],
        "notifications/subscriptions/acknowledged"
    );
    // The first call opens the connection, which listens from then on.
    mcp.good("list_actors", json!({}));
    let id = mcp.send(
        "tools/call",
        json!({"name": "evaluate", "arguments": {"code": "6 * 7"}, "_meta": {"progressToken": "p"}}),
    );
    let mut told = mcp.message();
    let mut words = String::new();
    while told["method"] == "notifications/progress" {
        words = told["params"]["message"].to_string();
        told = mcp.message();
    }
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (
            &json!("notifications/resources/updated"),
            &json!("beamtalk://approvals")
        ),
        "{words}"
    );
    assert_eq!(
        told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        watch
    );
    let shown = waiting(&home);
    let name = shown["id"].as_str().expect("a name").to_owned();
    let read = mcp.send("resources/read", json!({"uri": "beamtalk://approvals"}));
    let (mut is_read, mut is_told) = (false, false);
    while !(is_read && is_told) {
        let message = mcp.message();
        if message["id"] == read {
            is_read = true;
            let text = message["result"]["contents"][0]["text"].to_string();
            assert!(text.contains(&name), "{text}");
        } else if message["method"] == "notifications/progress" {
            let words = message["params"]["message"].as_str().unwrap_or_default();
            is_told = words.starts_with(&format!("waiting for approval {name} until "));
        }
    }
    assert!(answer(&home, &["approve", &name]).0);
    let (mut is_done, mut is_updated) = (false, false);
    while !(is_done && is_updated) {
        let message = mcp.message();
        is_updated |= message["method"] == "notifications/resources/updated";
        if message["id"] == id {
            assert_eq!(message["result"]["structuredContent"]["value"], 42, "{message}");
            is_done = true;
        }
    }
}

/// A person is not asked about what is denied whatever they say.
#[test]
fn what_no_yes_would_open_is_denied_at_once() {
    let home = held("mcp-paths-first", "approval = \"execute\"\n");
    let mut mcp = Mcp::start(&home, &["--policy", "full", "--toolsets", "all"]);
    for (tool, arguments) in [
        ("load_file", json!({"path": "../x.bt"})),
        ("load_project", json!({"path": ".."})),
        (
            "save_class",
            json!({"path": ".git/X.bt", "source": "Object subclass: X"}),
        ),
        ("export_traces", json!({"path": "../traces.json"})),
        ("test", json!({"file": "/etc/passwd"})),
        ("flush", json!({"file": ".git/config"})),
        ("write_file", json!({"path": "tokens", "text": "x"})),
        (
            "write_file",
            json!({"path": "agents/approvals/ap-1", "text": "approve"}),
        ),
        (
            "write_file",
            json!({"path": "agents/ctl", "text": "new shell /etc"}),
        ),
        ("create_session", json!({"backend": "shell", "cwd": "/etc"})),
        (
            "spawn_agent",
            json!({"backend": "shell", "cwd": "..", "role": "reviewer"}),
        ),
    ] {
        let denied = mcp.bad(tool, arguments.clone());
        assert_eq!(denied["kind"], "path_denied", "{tool} {arguments}: {denied}");
    }
}

#[test]
fn everything_that_runs_can_be_held_and_nobody_but_a_person_answers() {
    let home = held("mcp-execute", "approval = \"execute\"\n");
    let mut mcp = Mcp::start(&home, &[]);
    mcp.good("list_classes", json!({"filter": "user"}));
    let id = mcp.send(
        "tools/call",
        json!({"name": "evaluate", "arguments": {"code": "6 * 7"}}),
    );
    let shown = waiting(&home);
    assert!(shown["text"].as_str().is_some_and(|text| text.contains("6 * 7")));
    // An AI client is no person, however it comes in.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let (client, _events) = home.try_connect("mcp").await.expect("a connection");
        let said = |sha256: Option<&str>| ApprovalAnswer {
            r#for: shown["id"].as_str().unwrap_or_default().to_owned(),
            answer: "approve".to_owned(),
            text: None,
            sha256: sha256.map(str::to_owned),
        };
        assert!(client.ask(&said(shown["sha256"].as_str())).await.is_err());
        // A yes to something else is none.
        let person = home.connect().await;
        assert!(person.ask(&said(Some("0000"))).await.is_err());
        assert!(person.ask(&said(None)).await.is_err());
        let listed = person.ask(&Approvals::default()).await.expect("a list");
        assert_eq!(listed.approvals.len(), 1);
    });
    let name = shown["id"].as_str().expect("a name").to_owned();
    assert!(answer(&home, &["reject", &name, "--reason", "not now"]).0);
    let refused = mcp.message();
    assert_eq!(refused["id"], id);
    let error = error_of(&refused);
    assert_eq!(
        (&error["kind"], &error["details"]["reason"]),
        (&json!("approval_denied"), &json!("not now"))
    );
    // A call that is cancelled waits for nobody.
    let id = mcp.send(
        "tools/call",
        json!({"name": "evaluate", "arguments": {"code": "1"}}),
    );
    waiting(&home);
    mcp.line(
        &json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}})
            .to_string(),
    );
    nothing_waits(&home);
    // Neither does one whose client is gone.
    mcp.send(
        "tools/call",
        json!({"name": "evaluate", "arguments": {"code": "1"}}),
    );
    waiting(&home);
    mcp.kill();
    nothing_waits(&home);
}

#[test]
fn the_same_call_can_be_approved_always_and_forgotten() {
    let home = held("mcp-always", "approval = \"write\"\n");
    let mut mcp = Mcp::start(&home, &[]);
    let save = json!({"class": "Lamp", "selector": "last", "source": "last => 1"});
    // Without autoflush a saved method is no file yet.
    mcp.good("save_method", save);
    let id = mcp.send(
        "tools/call",
        json!({"name": "flush", "arguments": {"class": "Lamp"}}),
    );
    let shown = waiting(&home);
    let name = shown["id"].as_str().expect("a name").to_owned();
    assert!(answer(&home, &["approve", &name, "--always"]).0);
    assert_eq!(mcp.message()["id"], id);
    mcp.good("flush", json!({"class": "Lamp"}));
    let rules = home.run(&["workspace", "approvals", "--rules"]);
    assert!(String::from_utf8_lossy(&rules.stdout).contains("flush"));
    assert!(home.workspace().join("approvals.toml").exists());
    assert!(answer(&home, &["forget", &name]).0);
    mcp.send(
        "tools/call",
        json!({"name": "flush", "arguments": {"class": "Lamp"}}),
    );
    waiting(&home);
}

/// A yes to a flush is for what was shown: what was added meanwhile is asked about, and written only after another yes.
#[test]
fn a_yes_is_for_what_was_shown() {
    a_yes_is_for_what_the_call_shows("mcp-shown", &json!({"name": "flush", "arguments": {}}));
}

/// A file of the agents' tree is no way around that.
#[test]
fn a_yes_to_a_file_is_for_what_was_shown() {
    let write = json!({"path": "changes/ctl", "text": "flush\n"});
    a_yes_is_for_what_the_call_shows(
        "mcp-shown-file",
        &json!({"name": "write_file", "arguments": write}),
    );
}

fn a_yes_is_for_what_the_call_shows(name: &str, call: &Value) {
    let home = held(name, "approval = \"write\"\n");
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    let save = |selector: &str| {
        let source = format!("{selector} => 1");
        json!({"class": "Lamp", "selector": selector, "source": source})
    };
    mcp.good("save_method", save("first"));
    let id = mcp.send("tools/call", call.clone());
    let shown = waiting(&home);
    assert!(
        shown["diff"]
            .as_str()
            .is_some_and(|diff| diff.contains("first => 1")),
        "{shown}"
    );
    Mcp::start(&home, &[]).good("save_method", save("second"));
    assert!(answer(&home, &["approve", shown["id"].as_str().expect("a name")]).0);
    let since = Instant::now();
    let again = loop {
        let again = waiting(&home);
        if again["id"] != shown["id"] {
            break again;
        }
        assert!(since.elapsed() < LIMIT, "nobody asks again");
    };
    assert!(
        again["diff"]
            .as_str()
            .is_some_and(|diff| diff.contains("second => 1")),
        "{again}"
    );
    let file = home.project().join("src/lamp.bt");
    assert!(
        !std::fs::read_to_string(&file)
            .expect("a file")
            .contains("first => 1")
    );
    assert!(answer(&home, &["approve", again["id"].as_str().expect("a name")]).0);
    assert_eq!(mcp.message()["id"], id);
    assert!(
        std::fs::read_to_string(&file)
            .expect("a file")
            .contains("second => 1")
    );
}
