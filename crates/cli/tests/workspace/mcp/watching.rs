//! Watches: who watches hears of what others do, also before they have asked for anything else, and after a new start.

use std::time::Duration;

use serde_json::{Value, json};

use super::Mcp;
use crate::home::{Home, block_on, request, wait_until};
use crate::project::started;

const LIMIT: Duration = Duration::from_secs(30);

/// Somebody at the terminal changes a method.
fn changed_by_a_person(home: &Home, number: u64) {
    let save = json!({"class": "Lamp", "selector": "last", "source": format!("last => {number}")});
    let answer = block_on(async { request(&home.connect().await, "save-method", save).await });
    assert!(!answer.contains_key("error"), "{answer:?}");
}

fn watch(mcp: &mut Mcp, uri: &str) -> u64 {
    let filter = json!({"notifications": {"resourceSubscriptions": [uri]}});
    let id = mcp.send("subscriptions/listen", filter);
    let told = mcp.message();
    assert_eq!(
        told["method"], "notifications/subscriptions/acknowledged",
        "{told}"
    );
    id
}

fn assert_updated(told: &Value, uri: &str, id: u64) {
    assert_eq!(told["method"], "notifications/resources/updated", "{told}");
    assert_eq!(told["params"]["uri"], uri);
    assert_eq!(
        told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        id
    );
}

/// A watch as the first message of all: once it is acknowledged, a change by somebody else is told, once; when the server
/// ends, the watch is ended with a result and a cancellation.
#[test]
fn a_watch_needs_no_other_call() {
    let home = started("mcp-watch", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    let uri = "beamtalk://class/Lamp";
    let id = watch(&mut mcp, uri);
    changed_by_a_person(&home, 1);
    assert_updated(&mcp.message(), uri, id);
    assert!(mcp.is_silent(Duration::from_millis(300)), "once");
    drop(mcp.input.take());
    let ended = mcp.message();
    assert_eq!(
        (&ended["id"], &ended["result"]["resultType"]),
        (&json!(id), &json!("complete"))
    );
    assert_eq!(
        ended["result"]["_meta"]["io.modelcontextprotocol/subscriptionId"],
        id
    );
    let cancelled = mcp.message();
    assert_eq!(
        (&cancelled["method"], &cancelled["params"]["requestId"]),
        (&json!("notifications/cancelled"), &json!(id))
    );
}

/// An old client that has only subscribed hears of what others do.
#[test]
fn an_old_client_hears_of_what_it_subscribed_to() {
    let home = started("mcp-subscribe", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    mcp.initialize("2025-11-25");
    let uri = "beamtalk://class/Lamp";
    let subscribed = mcp.legacy("resources/subscribe", json!({"uri": uri}));
    assert_eq!(subscribed["result"], json!({}));
    changed_by_a_person(&home, 1);
    let mut told = mcp.message();
    while told["method"] == "notifications/resources/list_changed" {
        told = mcp.message();
    }
    assert_eq!(
        (&told["method"], &told["params"]),
        (&json!("notifications/resources/updated"), &json!({"uri": uri}))
    );
    assert_eq!(
        mcp.legacy("resources/unsubscribe", json!({"uri": uri}))["result"],
        json!({})
    );
    let missing = mcp.legacy("resources/subscribe", json!({"uri": "beamtalk://class/Nope"}));
    assert_eq!(missing["error"]["code"], -32002);
}

/// A watch outlives the workspace: when one runs again, what is watched counts as changed, and later changes are told.
#[test]
fn a_watch_goes_on_with_the_next_workspace() {
    let home = started("mcp-rewatch", &[]);
    let mut mcp = Mcp::start(&home, &[]);
    let uri = "beamtalk://class/Lamp";
    let id = watch(&mut mcp, uri);
    assert!(home.run(&["workspace", "stop", "--force"]).status.success());
    home.start(&[]);
    assert_updated(&mcp.message(), uri, id);
    // What a start changes may be told, too.
    while !mcp.is_silent(Duration::from_secs(1)) {}
    changed_by_a_person(&home, 2);
    assert_updated(&mcp.message(), uri, id);
    let mut number = 2;
    wait_until("every change is told", LIMIT, || {
        number += 1;
        changed_by_a_person(&home, number);
        !mcp.is_silent(Duration::from_secs(1))
    });
}

/// What a prompt is asked about is looked up; what is not there is an error that says so.
#[test]
fn prompts_know_what_they_are_asked_about() {
    let home = started("mcp-prompts", &[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    for (name, arguments) in [
        ("review_changes", json!({"scope": "NoSuchClass"})),
        ("review_changes", json!({"scope": "../x"})),
        ("fix_failing_test", json!({"test": "Nope>>x"})),
        ("fix_failing_test", json!({"test": "Lamp"})),
        ("find_slow", json!({"class": "Nope"})),
        ("explain_actor", json!({"actor": "nobody"})),
        ("loop_trouble", json!({"process": "nope"})),
    ] {
        let got = mcp.ask("prompts/get", json!({"name": name, "arguments": arguments}));
        assert_eq!(got["error"]["code"], -32602, "{name} {arguments}: {got}");
    }
    let got = mcp.ask(
        "prompts/get",
        json!({"name": "review_changes", "arguments": {"scope": "Lamp"}}),
    );
    assert!(got["result"]["messages"].is_array(), "{got}");
}

/// The prompt `review_changes` gives what its scope names: all pending changes, those of a class, or those of agents.
#[test]
fn a_review_has_the_scope_that_was_asked_for() {
    let home = started("mcp-review", &[]);
    let mut mcp = Mcp::start(&home, &["--toolsets", "all"]);
    changed_by_a_person(&home, 41);
    for (class, selector) in [("Lamp", "isOn"), ("Room", "door")] {
        let save = json!({"class": class, "selector": selector, "source": format!("{selector} => 42")});
        mcp.good("save_method", save);
    }
    for (scope, has, lacks) in [
        (None, vec!["last => 41", "isOn => 42", "door => 42"], vec![]),
        (
            Some("agent"),
            vec!["isOn => 42", "door => 42"],
            vec!["last => 41"],
        ),
        (Some("Lamp"), vec!["last => 41", "isOn => 42"], vec!["door => 42"]),
    ] {
        let arguments = scope.map_or_else(|| json!({}), |scope| json!({"scope": scope}));
        let got = mcp.ask(
            "prompts/get",
            json!({"name": "review_changes", "arguments": arguments}),
        );
        let messages = &got["result"]["messages"];
        assert_eq!(messages[0]["content"]["type"], "text");
        let diff = messages[1]["content"]["resource"]["text"]
            .as_str()
            .expect("a diff");
        for text in has {
            assert!(diff.contains(text), "{scope:?} lacks {text}: {diff}");
        }
        for text in lacks {
            assert!(!diff.contains(text), "{scope:?} has {text}: {diff}");
        }
        assert_eq!(messages[2]["content"]["resource"]["uri"], "beamtalk://findings");
    }
}
