//! The wire protocol, through the real binary: every op, every event, and what is refused.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::home::{Home, block_on, eval, fields, kind, request, wait_until};
use crate::project::{Client, exists, started, write};
use crate::raw::{Frame, Raw};
use crate::table::{Row, table};
use beamtalk_client::{Events, Reply};
use beamtalk_wire::Op;
use serde_json::{Value, json};

const TESTS: &str = "TestCase subclass: LampTest
  testGood => self assert: true
  testBad => self assert: 1 equals: 2
";

#[test]
fn every_op_answers_its_fields_and_refuses_what_is_wrong() {
    let home = started("ops", &[]);
    write(&home, "test/lamp_test.bt", TESTS);
    block_on(async {
        let client = Client::of(&home).await;
        client.text("lamp := Lamp spawn").await;
        let actors = client.good("actors", json!({})).await;
        let pid = actors["actors"][0]["pid"].as_str().expect("a pid").to_owned();
        let opened = client.good("handle-open", json!({})).await;
        let handle = opened["handle"].as_str().expect("a handle").to_owned();
        let kept = client.good("question-keep", json!({"text": "{}"})).await;
        let question = kept["state"].as_str().expect("a name").to_owned();
        let mut seen = BTreeSet::new();
        for Row {
            op,
            good,
            answered,
            bad,
            refusal,
        } in table(&pid, &handle, &question)
        {
            seen.insert(op);
            if let Some(bad) = bad {
                assert_eq!(client.refused(op, bad.clone()).await, refusal, "{op} {bad}");
            }
            // Nothing reads, no class is native, nothing is kept for this client, and the last two end what is needed.
            // Jobs and approvals need somebody who works or answers meanwhile: see the tests of MCP.
            // No loop is hosted here: see the tests of the agents' tree and of the loop's objects.
            let is_elsewhere = ["job-", "approval-", "tree-", "loop-run"]
                .iter()
                .any(|start| op.starts_with(start));
            if is_elsewhere || ["stdin", "browse-native-source", "replay", "close", "shutdown"].contains(&op)
            {
                continue;
            }
            let answer = client.good(op, good).await;
            for field in answered {
                assert!(
                    answer.contains_key(field),
                    "{op} answers no '{field}': {answer:?}"
                );
            }
        }
        let known: BTreeSet<&str> = Op::ALL.iter().map(|op| op.name()).collect();
        assert_eq!(seen, known);
        client.good("close", json!({})).await;
        let client = Client::of(&home).await;
        client.good("shutdown", json!({})).await;
        wait_until("the workspace stops", Duration::from_secs(20), || {
            !home.workspace().join("node.info").exists()
        });
    });
}

#[test]
fn frames_that_are_no_requests_are_refused() {
    let home = Home::new("frames");
    home.start(&[]);
    let mut raw = Raw::open(&home);
    let long = format!("{{\"op\":\"eval\",\"id\":\"{}\",\"code\":\"1\"}}", "x".repeat(65));
    for (frame, expected) in [
        ("[]", "invalid_request"),
        ("not JSON", "invalid_request"),
        ("{\"op\":3,\"id\":\"a\"}", "invalid_request"),
        ("{\"op\":\"eval\",\"code\":\"1\"}", "invalid_request"),
        (long.as_str(), "invalid_request"),
        ("{\"op\":\"zork\",\"id\":\"a\"}", "unknown_op"),
    ] {
        raw.send(frame);
        let answer = raw.message();
        assert_eq!(answer["error"]["kind"], expected, "{frame}");
        assert_eq!(answer["status"], json!(["done", "error"]));
    }
    // One id, twice.
    raw.send("{\"op\":\"eval\",\"id\":\"d\",\"code\":\"Timer sleep: 300. 1\"}");
    raw.send("{\"op\":\"eval\",\"id\":\"d\",\"code\":\"2\"}");
    assert_eq!(raw.message()["error"]["kind"], "duplicate_id");
    assert_eq!(raw.message()["value"], 1);
    raw.send("{\"op\":\"eval\",\"id\":\"d\",\"code\":\"2\"}");
    assert_eq!(raw.message()["value"], 2, "an answered id is free");
    // One runs and sixteen wait.
    for number in 0..18 {
        let code = if number == 0 { "Timer sleep: 500. 1" } else { "1" };
        raw.send(&json!({"op": "eval", "id": format!("w{number}"), "code": code}).to_string());
    }
    let first = raw.message();
    assert_eq!(
        (&first["id"], &first["error"]["kind"]),
        (&json!("w17"), &json!("busy"))
    );
    for _ in 0..17 {
        assert_eq!(raw.message()["value"], 1);
    }
    raw.send(&format!(
        "{{\"op\":\"eval\",\"id\":\"big\",\"code\":\"{}\"}}",
        " ".repeat(1024 * 1024)
    ));
    assert_eq!(raw.next(), Frame::Closed(1009));
}

#[test]
fn a_time_that_is_asked_for_is_kept_for_every_op() {
    let home = started("times", &[]);
    write(
        &home,
        "test/slow_test.bt",
        "TestCase subclass: SlowTest\n  testSlow => Timer sleep: 60000\n",
    );
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-tests", json!({})).await;
        for (op, fields) in [
            ("test", json!({"class": "SlowTest", "timeout_ms": 300})),
            ("test-all", json!({"timeout_ms": 300})),
            ("load-project", json!({"force": true, "timeout_ms": 1})),
            (
                "load-source",
                json!({"source": "Value subclass: Late\n  a => 1\n", "timeout_ms": 1}),
            ),
        ] {
            let asked = std::time::Instant::now();
            let answer = client.ask(op, fields).await;
            assert!(asked.elapsed() < Duration::from_secs(5), "{op}");
            assert_eq!(kind(&answer), "timeout", "{op} {answer:?}");
            assert_eq!(answer["error"]["details"]["limit"], "time", "{op}");
        }
        assert_eq!(
            client.refused("flush", json!({"timeout_ms": "soon"})).await,
            "invalid_parameter"
        );
        // What could not be stopped halfway was done: the class is there in the end.
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        loop {
            let answer = client.ask("eval", json!({"code": "Late new a"})).await;
            if kind(&answer) == "none" {
                break;
            }
            assert!(std::time::Instant::now() < deadline, "{answer:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        // What ran is stopped: a test that goes on would hold the next one up.
        client
            .good(
                "load-source",
                json!({"source": "Value subclass: Next\n  a => 1\n", "timeout_ms": 20000}),
            )
            .await;
    });
}

#[test]
fn more_open_requests_than_allowed_are_busy() {
    let home = started("frames", &[]);
    let mut raw = Raw::open(&home);
    write(
        &home,
        "test/slow_test.bt",
        "TestCase subclass: SlowTest\n  testSlow => Timer sleep: 1500\n",
    );
    raw.send("{\"op\":\"load-tests\",\"id\":\"l\"}");
    assert_eq!(raw.message()["id"], "l");
    for number in 0..64 {
        raw.send(&json!({"op": "test", "id": format!("t{number}"), "class": "SlowTest"}).to_string());
    }
    raw.send("{\"op\":\"health\",\"id\":\"h\"}");
    let first = raw.message();
    assert_eq!(
        (&first["id"], &first["error"]["kind"]),
        (&json!("h"), &json!("busy"))
    );
}

#[test]
fn a_client_sends_no_more_than_is_taken() {
    let home = started("open", &[]);
    write(
        &home,
        "test/slow_test.bt",
        "TestCase subclass: SlowTest\n  testSlow => Timer sleep: 1500\n",
    );
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-tests", json!({})).await;
        let mut pending = Vec::new();
        for _ in 0..64 {
            let slow = fields(json!({"class": "SlowTest"}));
            pending.push(client.0.request("test", slow).expect("sent"));
        }
        // The client knows without asking; a frame that is sent all the same is refused.
        let more = client.0.request("health", fields(json!({})));
        assert!(matches!(more, Err(beamtalk_client::Error::Busy)));
        let long = fields(json!({"code": " ".repeat(1024 * 1024)}));
        let other = Client::of(&home).await;
        assert!(matches!(
            other.0.request("eval", long),
            Err(beamtalk_client::Error::TooLong(_))
        ));
        assert_eq!(other.value("1 + 2").await, 3, "and nothing is lost by it");
        for one in pending {
            one.done().await.expect("an answer");
        }
        assert_eq!(client.value("1 + 2").await, 3);
    });
}

/// Every reply to an evaluation.
async fn replies(client: &Client, with: Value) -> Vec<Reply> {
    let mut pending = client.0.request("eval", fields(with)).expect("sent");
    let mut all = Vec::new();
    loop {
        let reply = pending.next().await.expect("a reply");
        let is_last = matches!(reply, Reply::Done(_));
        all.push(reply);
        if is_last {
            return all;
        }
    }
}

#[test]
fn output_streams_and_input_is_asked_for() {
    let home = started("stream", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let code = "1 to: 3 do: [:i | Transcript show: i printString; cr. Timer sleep: 80]. 42";
        let all = replies(&client, json!({"code": code})).await;
        let output: Vec<&str> = all
            .iter()
            .filter_map(|reply| match reply {
                Reply::Output(text) => Some(text.as_str()),
                _ => None,
            })
            .collect();
        assert_eq!(output.concat(), "1\n2\n3\n");
        assert!(output.len() > 1, "as it is produced: {output:?}");
        assert!(matches!(all.last(), Some(Reply::Done(answer)) if answer["value"] == 42));
        // Input.
        for (input, expected) in [
            (json!({"value": "Ada\n"}), json!("Ada")),
            (json!({"eof": true}), json!(null)),
        ] {
            let reading = fields(json!({"code": "Console readLine: \"Name: \""}));
            let mut pending = client.0.request("eval", reading).expect("sent");
            assert_eq!(
                pending.next().await.expect("a reply"),
                Reply::NeedsInput("Name: ".to_owned())
            );
            let mut with = fields(input);
            with.insert("for".to_owned(), pending.id.clone().into());
            client.good("stdin", Value::Object(with)).await;
            let answer = pending.done().await.expect("an answer");
            assert_eq!(answer["value"], expected);
        }
        // Steps, long values, limits.
        let traced = client
            .good("eval", json!({"code": "x := 3. y := 4. x + y", "trace": true}))
            .await;
        assert_eq!(
            traced["steps"],
            json!([{"src": "x := 3", "text": "3"}, {"src": "y := 4", "text": "4"}, {"src": "x + y", "text": "7"}])
        );
        let long = client
            .good("eval", json!({"code": "\"abcdefghij\" repeat: 20000"}))
            .await;
        assert_eq!(long["status"], json!(["done", "truncated"]));
        let endless = json!({"code": "[true] whileTrue: []", "timeout_ms": 100});
        let answer = client.ask("eval", endless).await;
        assert_eq!(answer["error"]["details"]["limit"], "time");
        // An interrupt by the request's own id, from another connection.
        let other = Client::of(&home).await;
        let running = fields(json!({"code": "[true] whileTrue: []"}));
        let running = client.0.request("eval", running).expect("sent");
        tokio::time::sleep(Duration::from_millis(200)).await;
        let stopped = other.good("interrupt", json!({"for": running.id})).await;
        assert_eq!(stopped["value"], true);
        let answer = running.done().await.expect("an answer");
        assert_eq!(answer["status"], json!(["done", "error", "interrupted"]));
        let nothing = other.good("interrupt", json!({"for": "none"})).await;
        assert_eq!(nothing["value"], false);
        // Programs.
        let entry = json!({"class": "Main", "selector": "run:", "args": ["a", "{b}\\\""]});
        let answer = client.good("run-entry", entry).await;
        assert_eq!((&answer["value"], &answer["exit_code"]), (&json!(2), &json!(0)));
        let answer = client
            .good("run-entry", json!({"class": "Main", "selector": "leave"}))
            .await;
        assert_eq!(answer["exit_code"], 4);
        assert_eq!(eval(&client.0, "Program exit: 5").await["exit_code"], 5);
    });
}

/// What does not fit into a message is cut where something useful is left, and else refused; no answer lacks its fields.
#[test]
fn an_answer_that_is_too_long_is_cut_or_refused() {
    let home = started("too-long", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let lines = "1 to: 20 do: [:n | Transcript show: (\"x\" repeat: 40000)]";
        for _ in 0..7 {
            client.text(lines).await;
        }
        let some = client.good("transcript", json!({"limit": 1000})).await;
        assert_eq!(some["status"], json!(["done", "truncated"]));
        let entries = some["entries"].as_array().expect("entries");
        assert!(
            entries.len() > 50 && entries[entries.len() - 1]["seq"] == 140,
            "{}",
            entries.len()
        );
        let rest = client
            .good("transcript", json!({"limit": 1000, "before": entries[0]["seq"]}))
            .await;
        assert_eq!(rest["status"], json!(["done"]));
        assert_eq!(
            (&rest["entries"][0]["seq"], &rest["first"]),
            (&json!(1), &json!(1))
        );
        // Who listens is not lost by a text longer than all that may wait, and gets others as pieces.
        let (listener, mut events) = home.try_connect("repl").await.expect("a connection");
        let channels = fields(json!({"channels": ["transcript"]}));
        listener.call("subscribe", channels).await.expect("subscribed");
        client.text("Transcript show: (\"ä\" repeat: 6000000)").await;
        client.text("Transcript show: \"then\"").await;
        while next_event(&mut events, "transcript", "text").await["text"] != "then" {}
        client.text("Transcript show: (\"ä\" repeat: 1000000)").await;
        let mut heard = 0;
        while heard < 2_000_000 {
            let text = next_event(&mut events, "transcript", "text").await;
            heard += text["text"].as_str().expect("a text").len();
        }
        assert_eq!((heard, listener.is_lost()), (2_000_000, false));
        // Six sources of 900 KB each.
        for n in 0..6 {
            let source = format!("long{n} => \"{}\"", "x".repeat(900_000));
            let method = json!({"class": "Lamp", "selector": format!("long{n}"), "source": source});
            client.good("save-method", method).await;
        }
        let refused = client.ask("browse-class", json!({"class": "Lamp"})).await;
        assert_eq!(refused["error"]["kind"], "message_too_large", "{refused:?}");
        assert_eq!(refused["error"]["hint"], "ask for less at a time");
        lives(&client).await;
    });
}

/// The next answers are as usual.
async fn lives(client: &Client) {
    assert_eq!(client.good("eval", json!({"code": "3 + 4"})).await["value"], 7);
}

#[test]
fn limits_of_agents_and_refusals_of_capabilities() {
    let home = started("limits", &["--eval-timeout", "1", "--no-subprocess", "--no-ffi"]);
    block_on(async {
        let (agent, _) = home.try_connect("mcp").await.expect("a connection");
        // Whose limit it was is what can be raised.
        for (asked, hint) in [
            (100, "raise its timeout_ms"),
            (9_000, "raise it with --eval-timeout"),
        ] {
            let request = fields(json!({"code": "[true] whileTrue: []", "timeout_ms": asked}));
            let answer = agent.request("eval", request).expect("sent").done().await;
            assert_eq!(answer.expect("an answer")["error"]["hint"], hint);
        }
        let answer = eval(&agent, "[true] whileTrue: []").await;
        assert_eq!(
            (kind(&answer), &answer["error"]["details"]["limit"]),
            ("eval_limit", &json!("time"))
        );
        assert_eq!(kind(&eval(&agent, "OS run: \"ls\"").await), "capability_disabled");
        let audit = || std::fs::read_to_string(home.workspace().join("audit.log")).unwrap_or_default();
        wait_until("the refusal is audited", Duration::from_secs(5), || {
            audit().contains("capability_disabled\",") && audit().contains("OS>>run:")
        });
        let answer = eval(&agent, "Erlang os getpid").await;
        assert_eq!(answer["error"]["diagnostics"][0]["code"], "E0501");
        assert!(audit().contains("\"what\":\"ffi\""), "{}", audit());
        let save = json!({"class": "Lamp", "selector": "isOn", "source": "isOn => 3"});
        let entry = request(&agent, "save-method", save).await;
        assert_eq!(entry["entry"]["author_kind"], "agent");
    });
}

#[test]
fn sessions_share_what_is_bound_for_all_and_nothing_else() {
    let home = started("bind", &[]);
    block_on(async {
        let client = Client::of(&home).await;
        let other = Client::of(&home).await;
        assert_eq!(client.value("x := 7").await, 7);
        assert_eq!(client.value("Session current bindings at: #x put: 8").await, 8);
        assert_eq!(client.value("x").await, 8);
        assert_eq!(
            client.value("Session current bindings at: #noSuchName").await,
            json!(null)
        );
        client.text("Session current bindings at: #fresh put: 1").await;
        assert_eq!(client.value("fresh").await, 1);
        client.text("Session current bindings removeKey: #fresh").await;
        assert_eq!(client.error("fresh").await, "undefined_variable");
        assert_eq!(other.error("x").await, "undefined_variable");
        let theirs = format!("(Session withId: \"{}\") bindings", client.0.session);
        assert_eq!(other.value(&format!("{theirs} at: #x")).await, 8, "read");
        assert_eq!(
            other.error(&format!("{theirs} at: #x put: 9")).await,
            "cross_session_mutation_unsupported"
        );
        let cleared = json!({"session": client.0.session});
        assert_eq!(
            other.refused("clear", cleared).await,
            "cross_session_mutation_unsupported"
        );
        client.text("Workspace bind: 12 as: #shared").await;
        assert_eq!(other.value("shared + 1").await, 13);
        other.text("Workspace globals at: #shared put: 20").await;
        assert_eq!(client.value("shared").await, 20);
        assert_eq!(
            client.value("Workspace globals includesKey: #Transcript").await,
            true
        );
        for name in ["Lamp", "Transcript", "Workspace", "Beamtalk"] {
            assert_eq!(
                client.error(&format!("Workspace bind: 1 as: #{name}")).await,
                "name_conflict"
            );
        }
        client.text("Workspace unbind: #shared").await;
        assert_eq!(other.error("shared").await, "undefined_variable");
        // A copy goes its own way.
        let copy = client.good("clone", json!({})).await;
        assert_ne!(copy["session"], client.0.session.as_str());
        let copied = other.good("bindings", json!({"session": copy["session"]})).await;
        assert_eq!(copied["bindings"]["x"]["text"], "8");
    });
}

/// The next event of this kind.
async fn next_event(events: &mut Events, channel: &str, name: &str) -> Value {
    let waiting = async {
        loop {
            let event = events.recv().await.expect("connected");
            if event["channel"] == channel && event["event"] == name {
                return event["data"].clone();
            }
        }
    };
    let event = tokio::time::timeout(Duration::from_secs(10), waiting).await;
    event.unwrap_or_else(|_| panic!("no event {channel}/{name}"))
}

#[test]
fn those_who_listen_hear_what_happens() {
    let home = started("events", &[]);
    write(
        &home,
        "src/boss.bt",
        "Supervisor subclass: Boss\n  class children => #(Lamp)\n",
    );
    block_on(async {
        let client = Client::of(&home).await;
        client.good("load-project", json!({})).await;
        let (listener, mut events) = home.try_connect("browser").await.expect("a connection");
        let channels = json!([
            "transcript",
            "actors",
            "classes",
            "bindings",
            "supervision",
            "logs",
            "reload_check"
        ]);
        let active = request(&listener, "subscribe", json!({"channels": channels})).await;
        assert_eq!(
            active["channels"].as_array().map(Vec::len),
            Some(8),
            "with 'workspace'"
        );
        let missing = request(&listener, "subscribe", json!({"channels": ["object"]})).await;
        assert_eq!(kind(&missing), "missing_parameter");
        client.text("lamp := Lamp spawn").await;
        let spawned = next_event(&mut events, "actors", "spawned").await;
        assert_eq!(spawned["class"], "Lamp");
        let changed = next_event(&mut events, "bindings", "changed").await;
        assert_eq!(changed["session"], client.0.session.as_str());
        client.text("Transcript show: \"other\"").await;
        let text = next_event(&mut events, "transcript", "text").await;
        assert_eq!((&text["text"], &text["for"]), (&json!("other"), &json!(null)));
        let own = fields(json!({"code": "Transcript show: \"own\""}));
        let own = listener.request("eval", own).expect("sent");
        let id = own.id.clone();
        own.done().await.expect("an answer");
        let text = next_event(&mut events, "transcript", "text").await;
        assert_eq!((&text["text"], &text["for"]), (&json!("own"), &json!(id)));
        // One object.
        let watched = json!({"channels": ["object"], "actor": spawned["pid"]});
        request(&listener, "subscribe", watched).await;
        wait_for_observation(&client, &mut events, &spawned["pid"]).await;
        // Classes, each change once.
        client.text("Lamp >> isOn -> Integer => 7").await;
        let checked = next_event(&mut events, "reload_check", "completed").await;
        assert_eq!(
            (&checked["changed_selector"], &checked["checked_owners"]),
            (&json!("isOn"), &json!(["Boss", "Lamp", "Room"]))
        );
        client.text("Lamp >> isOn => 8").await;
        let changed = next_event(&mut events, "classes", "changed").await;
        assert_eq!(changed, json!({"class": "Lamp", "source_file": "src/lamp.bt"}));
        client.text("Object subclass: Pad\n  class a => 1").await;
        let loaded = next_event(&mut events, "classes", "loaded").await;
        assert_eq!(loaded["class"], "Pad");
        client.good("remove-class", json!({"class": "Room"})).await;
        let removed = next_event(&mut events, "classes", "removed").await;
        assert_eq!(removed, json!({"class": "Room", "source_file": "src/room.bt"}));
        client.good("reload", json!({"class": "Lamp"})).await;
        let checked = next_event(&mut events, "reload_check", "completed").await;
        assert_eq!(checked["changed_class"], "Lamp");
        client.save("Lamp", "isOn", "isOn => 9").await;
        client.good("flush", json!({})).await;
        let flushed = next_event(&mut events, "workspace", "flush_completed").await;
        assert_eq!(
            flushed["files"],
            json!([{"file": "src/lamp.bt", "kind": "changed"}])
        );
        client.text("Logger warn: \"careful\"").await;
        let entry = next_event(&mut events, "logs", "entry").await;
        assert_eq!(
            (&entry["level"], &entry["msg"]),
            (&json!("warning"), &json!("careful"))
        );
        // Supervision.
        client.text("boss := Boss supervise value").await;
        let added = next_event(&mut events, "supervision", "child_added").await;
        assert_eq!(
            (&added["supervisor"], &added["child"]),
            (&json!("Boss"), &json!("Lamp"))
        );
        client.text("(boss which: Lamp) value kill").await;
        let crashed = next_event(&mut events, "supervision", "child_crashed").await;
        assert_eq!(crashed["pid"], added["pid"]);
        client.text("lamp stop").await;
        let stopped = next_event(&mut events, "actors", "stopped").await;
        assert_eq!(stopped["class"], "Lamp");
        assert!(exists(&home, "src/room.bt"));
    });
}

/// The node begins to observe a moment after the answer.
async fn wait_for_observation(client: &Client, events: &mut Events, pid: &Value) {
    for _ in 0..50 {
        client.text("lamp toggle").await;
        tokio::time::sleep(Duration::from_millis(50)).await;
        while let Ok(event) = events.try_recv() {
            if event["channel"] == "object" {
                assert_eq!(event["data"], json!({"actor": pid, "fields": ["count", "on"]}));
                return;
            }
        }
    }
    panic!("the object is not observed");
}

#[test]
fn code_is_looked_at_without_running_it() {
    let home = started("looked", &[]);
    write(&home, "test/lamp_test.bt", TESTS);
    block_on(async {
        let client = Client::of(&home).await;
        client
            .text("lamp := Lamp spawn. big := #(1, #(2, 3), #{#a => 4})")
            .await;
        let offered = async |code: &str| -> Vec<String> {
            let answer = client.good("complete", json!({ "code": code })).await;
            let all = answer["completions"].as_array().cloned().unwrap_or_default();
            let text = |one: &Value| one["text"].as_str().unwrap_or_default().to_owned();
            all.iter().map(text).collect()
        };
        assert_eq!(offered("Lam").await, ["Lamp"]);
        assert_eq!(offered("lamp tog").await, ["toggle"]);
        assert_eq!(offered("Erlang lists rev").await, ["reverse:", "reverse:with:"]);
        assert!(offered("Erlang li").await.contains(&"lists".to_owned()));
        assert!(offered("\"abc\" size isE").await.contains(&"isEven".to_owned()));
        let hover = client
            .good("hover", json!({"code": "lamp isOn", "cursor": 6}))
            .await;
        assert!(
            hover["contents"]
                .as_str()
                .is_some_and(|text| text.contains("Is it on?"))
        );
        let unknown = client.good("info", json!({"symbol": "Lmap"})).await;
        assert_eq!(unknown["info"], json!({"found": false, "symbol": "Lmap"}));
        let core = client
            .good("show-codegen", json!({"code": "3 + 4", "form": "core"}))
            .await;
        assert!(
            core["core_erlang"]
                .as_str()
                .is_some_and(|text| text.contains("'run'/0"))
        );
        // Into a value.
        let evaluated = client.text("(5 inspect evaluate: \"self + 1\") unwrap").await;
        assert_eq!(evaluated, "6");
        let inner = client
            .good("inspect", json!({"binding": "big", "path": ["2"]}))
            .await;
        assert_eq!(
            (&inner["total"], &inner["fields"][1]["text"]),
            (&json!(2), &json!("3"))
        );
        client.text("many := (1 to: 200) asList").await;
        let page = client
            .good("inspect", json!({"binding": "many", "page": 2}))
            .await;
        assert_eq!(
            (&page["total"], &page["fields"][0]["text"]),
            (&json!(200), &json!("51"))
        );
        // Tests that fail say so.
        client.good("load-tests", json!({})).await;
        let tests = client.good("list-tests", json!({})).await;
        assert_eq!(tests["tests"][0]["methods"], json!(["testBad", "testGood"]));
        let run = client.good("test", json!({})).await;
        assert_eq!(run["status"], json!(["done", "test-error"]));
        assert_eq!(
            (&run["results"]["failed"], &run["results"]["passed"]),
            (&json!(1), &json!(1))
        );
        // An actor that is killed is gone.
        let actors = client.good("actors", json!({})).await;
        let pid = actors["actors"][0]["pid"].clone();
        client.good("kill", json!({"actor": pid})).await;
        assert_eq!(
            client.refused("kill", json!({"actor": pid})).await,
            "actor_not_alive"
        );
        let stats = client.good("pid-stats", json!({"actor": pid})).await;
        assert_eq!(stats["stats"], json!({"status": "dead"}));
        assert_eq!(client.error("lamp isOn").await, "actor_dead");
    });
}
