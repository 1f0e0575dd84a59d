//! Ops of a client that shows everything: views, windows, names, news that were missed, and what is stopped.

use serde_json::{Value, json};

use crate::home::{Home, block_on};
use crate::project::{Client, read, started, write};
use crate::raw::Raw;

/// A connection whose frames are kept, with the session it has.
pub(crate) fn kept(home: &Home, resume: &str) -> (Raw, String) {
    let mut raw = Raw::stranger(home);
    raw.message();
    let hello = json!({"type": "auth", "cookie": home.cookie(), "client": "browser", "protocol": "1.1",
        "keep": true, "resume": resume});
    raw.send(&hello.to_string());
    raw.message();
    let session = raw.message()["session"].as_str().expect("a session").to_owned();
    (raw, session)
}

/// The answer to a request, and the events that came before it.
pub(crate) fn ask(raw: &mut Raw, request: &Value) -> (Value, Vec<Value>) {
    raw.send(&request.to_string());
    let mut events = Vec::new();
    loop {
        let message = raw.message();
        if message["type"] == "push" {
            events.push(message);
        } else if message["id"] == request["id"] && message["status"][0] == "done" {
            return (message, events);
        }
    }
}

/// Every value has at least one view, the first is shown without a name, and whatever a row opens can be opened.
#[test]
fn rows_of_views_lead_further_in() {
    let home = started("views", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        for code in [
            "#(#{#a => #(1, 2)}, #{#a => 3})",
            "#{#x => #{#y => #(9)}}",
            "Array withAll: #(1, 2.5)",
            "\"two\\nlines\"",
            "1 to: 100000",
            "Lamp spawn",
            "Lamp",
            "nil",
            "3.25",
            "[:a | a]",
            "Result ok: #(1)",
            "DateTime now",
            "[1 frobnicate] on: Error do: [:e | e]",
        ] {
            let held = client.good("eval", json!({"code": code, "hold": true})).await;
            let reference = held["ref"].as_str().expect("a reference");
            let views = client.good("views", json!({"ref": reference})).await;
            let views = views["views"].as_array().expect("views").clone();
            assert!(!views.is_empty(), "{code}");
            let first = client.good("view", json!({"ref": reference})).await;
            assert_eq!(first["view"]["title"], views[0]["title"], "{code}");
            for view in &views {
                let shown = client
                    .good("view", json!({"ref": reference, "name": view["name"]}))
                    .await;
                let shown = &shown["view"];
                assert_eq!(shown["computed"], false, "{code}");
                let again = client.good("view", json!({"view": shown["id"]})).await;
                assert_eq!(again["view"]["id"], shown["id"], "{code}");
                for row in shown["rows"].as_array().into_iter().flatten().take(3) {
                    if !row["open"].is_null() {
                        client.good("views", row["open"].clone()).await;
                    }
                }
            }
        }
        client.text("big := (1 to: 3000000) asList. nil").await;
        let last = client
            .good("view", json!({"binding": "big", "from": 2_999_999}))
            .await;
        assert_eq!(last["view"]["rows"][0]["cells"][1]["text"], "3000000");
        assert_eq!(last["view"]["total"], 3_000_000);
    });
}

/// `self` is the value wherever it is held; an actor gets one message and nothing else.
#[test]
fn code_runs_with_a_self_of_its_own() {
    let home = started("own-self", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client
            .text("Value subclass: Point\n  field: x = 3\n  sum => self.x + 1")
            .await;
        client.text("points := #(Point x: 30). lamp := Lamp spawn").await;
        let eval = |code: &str, target: Value| json!({"code": code, "self": target});
        let inner = json!({"binding": "points", "path": [1]});
        let value = client
            .good("eval", eval("self sum + self.x", inner.clone()))
            .await;
        assert_eq!(value["value"], 61);
        let value = client
            .good("eval", eval("self size", json!({"class": "Room"})))
            .await;
        assert_eq!(value["value"], 4);
        let pid = client.text("lamp").await;
        let pid = pid.trim_start_matches("Actor(Lamp, ").trim_end_matches(')');
        let value = client.good("eval", eval("toggle", json!({"actor": pid}))).await;
        assert_eq!(value["value"], true);
        for code in ["toggle. lamp toggle", "", "toggle; )"] {
            let refused = client
                .refused("eval", eval(code, json!({"binding": "lamp"})))
                .await;
            assert_eq!(refused, "invalid_parameter", "{code}");
        }
        assert_eq!(client.value("lamp isOn").await, true);
        assert_eq!(
            client.refused("eval", eval("1", json!({}))).await,
            "invalid_parameter"
        );
        let gone = client.refused("eval", eval("1", json!({"ref": "v-999"}))).await;
        assert_eq!(gone, "ref_gone");
        let raised = client.refused("eval", eval("self frobnicate", inner)).await;
        assert_eq!(raised, "does_not_understand");
        // Nothing of it stays.
        let bound = client.good("bindings", json!({})).await;
        let names: Vec<&String> = bound["bindings"].as_object().expect("names").keys().collect();
        assert_eq!(names, ["lamp", "points"]);
        assert_eq!(client.pending().await, ["new-class Point"]);
    });
}

/// A name that was removed is gone for the evaluator, for the compiler and for every listing.
#[test]
fn a_name_is_removed_everywhere() {
    let home = started("unbound", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("a := 1. b := a + 1").await;
        client.text("Workspace bind: 7 as: #shared").await;
        let all = client.good("bindings", json!({"scope": "all"})).await;
        let scope = |name: &str| all["bindings"][name]["scope"].clone();
        assert_eq!(
            [scope("a"), scope("shared"), scope("Transcript")],
            [json!("session"), json!("workspace"), json!("global")]
        );
        client.good("unbind", json!({"name": "a"})).await;
        assert_eq!(client.value("b").await, 2);
        assert_eq!(client.error("a").await, "undefined_variable");
        assert_eq!(
            client.refused("unbind", json!({"name": "a"})).await,
            "undefined_variable"
        );
        client
            .good("unbind", json!({"name": "shared", "scope": "workspace"}))
            .await;
        let left = client.good("bindings", json!({"scope": "workspace"})).await;
        assert_eq!(left["bindings"], json!({}));
        let refused = json!({"name": "Transcript", "scope": "workspace"});
        assert_eq!(client.refused("unbind", refused).await, "undefined_variable");
    });
}

/// A window of the actors is the window of the whole order.
#[test]
fn windows_of_actors_fit_together() {
    let home = started("windows", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("1 to: 30 do: [:i | Lamp spawn]").await;
        let order = |offset: u64| json!({"sort": "age", "offset": offset, "limit": 10, "stats": true});
        let mut pids = std::collections::BTreeSet::new();
        for offset in [0, 10, 20, 30] {
            let window = client.good("actors", order(offset)).await;
            assert_eq!(window["total"], 30);
            for actor in window["actors"].as_array().expect("actors") {
                assert!(actor["memory"].as_u64().is_some_and(|bytes| bytes > 0));
                assert!(pids.insert(actor["pid"].as_str().expect("a pid").to_owned()));
            }
        }
        assert_eq!(pids.len(), 30);
        let first = pids.first().expect("one").clone();
        let found = client.good("actors", json!({"find": first})).await;
        assert_eq!(found["actors"][0]["pid"], json!(first));
    });
}

/// What somebody looked at is written, or nothing.
#[test]
fn a_flush_writes_what_was_shown() {
    let home = started("expected", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let before = read(&home, "src/lamp.bt");
        client.save("Lamp", "isOn", "isOn => true").await;
        let shown = client.good("changes", json!({})).await;
        let entry = &shown["entries"][0];
        let expect = json!({entry["seq"].to_string(): entry["sha256"]});
        client.save("Lamp", "isOn", "isOn => false").await;
        let refused = client.ask("flush", json!({"expect": expect})).await;
        assert_eq!(refused["error"]["kind"], "version_conflict");
        assert_eq!(refused["error"]["message"], "Lamp>>isOn changed since you looked");
        assert_eq!(read(&home, "src/lamp.bt"), before);
        let shown = client.good("changes", json!({})).await;
        let entries = shown["entries"].as_array().expect("entries").iter();
        let now: serde_json::Map<String, Value> = entries
            .filter(|entry| entry["shadowed"] == false)
            .map(|entry| (entry["seq"].to_string(), entry["sha256"].clone()))
            .collect();
        let written = client.good("flush", json!({"expect": now})).await;
        assert_eq!(written["flushed"], 1);
        assert!(read(&home, "src/lamp.bt").contains("isOn => false"));
    });
}

/// Whoever was away hears on every channel what was told meanwhile, in order and once.
#[test]
fn what_was_missed_is_told_again() {
    let home = started("missed", &[]);
    let (mut raw, session) = kept(&home, "new");
    let channels = json!(["actors", "changes", "desk", "tests", "audit"]);
    ask(
        &mut raw,
        &json!({"op": "subscribe", "id": "s", "channels": channels}),
    );
    let (_, events) = ask(
        &mut raw,
        &json!({"op": "desk-write", "id": "d", "name": "a", "text": "1", "version": 0}),
    );
    let desk = events
        .iter()
        .find(|event| event["channel"] == "desk")
        .expect("an event");
    assert_eq!(desk["seq"], 1);
    drop(raw);
    write(
        &home,
        "test/lamp_test.bt",
        "TestCase subclass: LampTest\n  testGood => self assert: true\n",
    );
    block_on(async {
        let client = Client::of(&home).await;
        client.text("lamp := Lamp spawn").await;
        client.save("Lamp", "isOn", "isOn => true").await;
        client.good("load-tests", json!({})).await;
        client.good("test-all", json!({})).await;
        client
            .good("desk-write", json!({"name": "a", "text": "2", "version": 1}))
            .await;
    });
    let (mut raw, again) = kept(&home, &session);
    assert_eq!(again, session);
    let since = json!({"actors": 0, "changes": 0, "desk": 1, "tests": 0, "audit": 1});
    let subscribe = json!({"op": "subscribe", "id": "s", "channels": channels, "since": since});
    let (_, mut events) = ask(&mut raw, &subscribe);
    let (_, later) = ask(&mut raw, &json!({"op": "sessions", "id": "x"}));
    events.extend(later);
    let of = |channel: &str| -> Vec<(String, u64)> {
        let own = events.iter().filter(|event| event["channel"] == channel);
        own.map(|event| {
            let name = event["event"].as_str().unwrap_or_default().to_owned();
            (name, event["seq"].as_u64().unwrap_or_default())
        })
        .collect()
    };
    assert_eq!(of("actors").first(), Some(&("spawned".to_owned(), 1)));
    assert_eq!(of("changes"), [("added".to_owned(), 1)]);
    assert_eq!(of("desk"), [("changed".to_owned(), 2)]);
    let tests: Vec<String> = of("tests").into_iter().map(|(name, _)| name).collect();
    assert_eq!(tests, ["started", "result", "finished"]);
    let numbers: Vec<u64> = of("audit").into_iter().map(|(_, seq)| seq).collect();
    assert!(
        numbers.windows(2).all(|pair| pair[1] == pair[0] + 1),
        "{numbers:?}"
    );
    assert!(numbers.len() > 3 && numbers[0] == 2, "{numbers:?}");
    let (results, _) = ask(&mut raw, &json!({"op": "test-results", "id": "t"}));
    assert_eq!(results["results"][0]["test"]["status"], "pass");
    assert_eq!(results["running"], json!([]));
}

/// A question that nobody wants any more is answered at once, and only to whoever asked it.
#[test]
fn a_question_is_cancelled_by_whoever_asked() {
    let home = started("cancelled", &[]);
    let mut raw = Raw::open(&home);
    ask(
        &mut raw,
        &json!({"op": "eval", "id": "e", "code": "Actor subclass: Sloth\n  rest => Timer sleep: 60000"}),
    );
    // An actor that does not answer holds up whoever looks at it.
    ask(
        &mut raw,
        &json!({"op": "eval", "id": "f", "code": "sloth := Sloth spawn. sloth rest!"}),
    );
    let mut other = Raw::open(&home);
    // They are answered one after another, a second each.
    for number in 1..=30 {
        raw.send(&json!({"op": "inspect", "id": format!("q{number}"), "binding": "sloth"}).to_string());
    }
    let (answer, _) = ask(&mut other, &json!({"op": "cancel", "id": "c", "for": "q30"}));
    assert_eq!(answer["value"], false);
    raw.send(&json!({"op": "cancel", "id": "c", "for": "q30"}).to_string());
    let mut seen = std::collections::BTreeMap::new();
    while !(seen.contains_key("c") && seen.contains_key("q30")) {
        let message = raw.message();
        if message["status"][0] == "done" {
            seen.insert(message["id"].as_str().unwrap_or_default().to_owned(), message);
        }
    }
    assert_eq!(seen["c"]["value"], true);
    assert_eq!(seen["q30"]["error"]["kind"], "interrupted");
    assert!(seen.len() < 30, "it did not wait for the others");
}

/// The log is read as it stands in its files, the gravest only if that is asked for, and never by observers.
#[test]
fn the_log_is_read_in_pages() {
    let home = started("pages", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        client
            .text("1 to: 5 do: [:i | Logger info: \"entry \" ++ i printString]. Logger error: \"a grave entry\"")
            .await;
        let mut found = Vec::new();
        for _ in 0..100 {
            let answer = client.good("log", json!({"find": "entry"})).await;
            found = answer["entries"].as_array().expect("entries").clone();
            if found.len() == 6 {
                break;
            }
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        let texts: Vec<&str> = found.iter().filter_map(|line| line["msg"].as_str()).collect();
        assert_eq!(texts.len(), 6, "{texts:?}");
        let numbers: Vec<u64> = found.iter().filter_map(|line| line["seq"].as_u64()).collect();
        assert!(numbers.is_sorted(), "{numbers:?}");
        let page = json!({"find": "entry", "before": numbers[3], "limit": 2});
        let page = client.good("log", page).await;
        let page = page["entries"].as_array().expect("entries").clone();
        assert_eq!(page, found[1..3]);
        let grave = client
            .good("log", json!({"find": "entry", "level": "error"}))
            .await;
        assert_eq!(grave["entries"].as_array().expect("entries").len(), 1);
    });
}
