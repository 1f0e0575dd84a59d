//! The workspace when things go wrong: killed processes, runaway code, bombs. Each is followed by a good evaluation.

use std::time::{Duration, Instant};

use crate::home::{Home, block_on, eval, fields, is_alive, kill, kind, request, wait_until};
use crate::raw::Raw;
use beamtalk_client::Reply;
use serde_json::json;

async fn lives_on(connection: &beamtalk_client::Connection) {
    assert_eq!(eval(connection, "2 + 3").await["value"], 5);
}

/// Evaluate until the node is back.
pub(crate) async fn wait_for_node(connection: &beamtalk_client::Connection) {
    let deadline = Instant::now() + Duration::from_secs(20);
    while eval(connection, "2 + 3").await.get("value") != Some(&json!(5)) {
        assert!(Instant::now() < deadline, "the node did not come back");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[test]
fn heap_limit() {
    let home = Home::new("heap");
    home.start(&["--eval-max-heap-mb", "64"]);
    block_on(async {
        let connection = home.connect().await;
        eval(&connection, "x := 7").await;
        let answer = eval(
            &connection,
            "x := 8. big := (1 to: 50000000) collect: [:i | i * i]",
        )
        .await;
        assert_eq!(kind(&answer), "eval_limit");
        assert_eq!(answer["error"]["details"]["limit"], "heap");
        assert_eq!(eval(&connection, "x").await["value"], 7, "bindings are as before");
        lives_on(&connection).await;
    });
}

#[test]
fn time_limit() {
    let home = Home::new("time");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        let answer = request(
            &connection,
            "eval",
            json!({"code": "[true] whileTrue: []", "timeout_ms": 200}),
        )
        .await;
        assert_eq!(
            (kind(&answer), &answer["error"]["details"]["limit"]),
            ("eval_limit", &json!("time"))
        );
        lives_on(&connection).await;
    });
}

#[test]
fn an_endless_loop_is_interrupted() {
    let home = Home::new("loop");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        let other = home.connect().await;
        eval(&connection, "kept := 1").await;
        let endless = connection
            .request("eval", fields(json!({"code": "[true] whileTrue: []"})))
            .unwrap();
        tokio::time::sleep(Duration::from_millis(300)).await;
        lives_on(&other).await;
        let stopped = request(&other, "interrupt", json!({"session": connection.session})).await;
        assert_eq!(stopped["value"], true);
        let answer = endless.done().await.unwrap();
        assert_eq!(kind(&answer), "interrupted");
        assert!(
            answer["status"]
                .as_array()
                .unwrap()
                .contains(&json!("interrupted"))
        );
        assert_eq!(eval(&connection, "kept").await["value"], 1);
    });
}

#[test]
fn output_cap() {
    let home = Home::new("flood");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        let code = "1 to: 40000 do: [:i | Transcript show: \"0123456789012345678901234567890123456789012345678901234567890123456789\"; cr]. 42";
        let mut flood = connection
            .request("eval", fields(json!({ "code": code })))
            .unwrap();
        let mut output = String::new();
        let value = loop {
            match flood.next().await.unwrap() {
                Reply::Output(text) => output.push_str(&text),
                Reply::NeedsInput(_) => panic!("nothing reads"),
                Reply::Done(answer) => break answer["value"].clone(),
            }
        };
        assert_eq!(value, 42, "the evaluation went on");
        assert!(output.len() <= 1024 * 1024 + 200, "{} bytes", output.len());
        assert!(
            output.ends_with("… output truncated (1048576 bytes)")
                || output.trim_end().ends_with("… output truncated (1048576 bytes)")
        );
        lives_on(&connection).await;
    });
}

#[test]
fn a_halted_node_comes_back_and_clients_stay() {
    let home = Home::new("halt");
    home.start(&[]);
    block_on(async {
        let (connection, mut events) = home.try_connect("repl").await.unwrap();
        let answer = eval(&connection, "Erlang erlang halt: 0").await;
        assert_eq!(kind(&answer), "node_down");
        let exited = events.recv().await.unwrap();
        assert_eq!(
            (&exited["channel"], &exited["event"]),
            (&json!("workspace"), &json!("node_exited"))
        );
        wait_for_node(&connection).await;
        assert!(!connection.is_lost());
    });
}

#[test]
fn a_killed_node_answers_what_was_open() {
    let home = Home::new("nodekill");
    let info = home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        let open = connection
            .request("eval", fields(json!({"code": "[true] whileTrue: []"})))
            .unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        kill(u32::try_from(info["node_pid"].as_u64().unwrap()).unwrap());
        assert_eq!(kind(&open.done().await.unwrap()), "node_down");
        wait_for_node(&connection).await;
    });
}

/// Whoever evaluates next waits for the next node, as long as the request says, and is answered by it.
#[test]
fn an_evaluation_waits_for_a_node_that_is_being_started() {
    let home = Home::new("evalwaits");
    let info = home.start(&[]);
    block_on(async {
        let (connection, mut events) = home.try_connect("repl").await.unwrap();
        kill(u32::try_from(info["node_pid"].as_u64().unwrap()).unwrap());
        let exited = events.recv().await.unwrap();
        assert_eq!(exited["event"], "node_exited");
        let late = request(&connection, "eval", json!({"code": "2 + 3", "timeout_ms": 100})).await;
        assert_eq!(kind(&late), "eval_limit", "{late:?}");
        assert_eq!(eval(&connection, "2 + 3").await["value"], 5);
    });
}

#[test]
fn a_node_that_ends_again_and_again_is_given_up_and_says_why() {
    let home = Home::new("giveup");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        for _ in 0..3 {
            eval(&connection, "Erlang erlang halt: 3").await;
            wait_for_node(&connection).await;
        }
        eval(&connection, "Erlang erlang halt: 3").await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        let health = request(&connection, "health", json!({})).await;
        assert_eq!(health["node"], "failed");
        assert!(health["last_error"].as_str().unwrap().contains('3'));
        assert_eq!(kind(&eval(&connection, "1").await), "node_down");
    });
}

#[test]
fn deep_nesting_workspace_lives() {
    let home = Home::new("deep");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        for code in [
            format!("{}1{}", "(".repeat(200_000), ")".repeat(200_000)),
            "[".repeat(300_000),
            format!("#{}", "(#".repeat(100_000)),
            format!("1{}", " + 1".repeat(100_000)),
            "{".repeat(100_000),
            format!("\"{}", "{\"".repeat(100_000)),
        ] {
            let answer = eval(&connection, &code).await;
            assert!(answer.contains_key("error"), "{}", code.get(..20).unwrap());
            lives_on(&connection).await;
        }
    });
}

#[test]
fn huge_source_workspace_lives() {
    let home = Home::new("huge");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        // Just below what a frame may hold: many methods, many statements, one long text.
        let class: String = (0..3_000)
            .map(|n| format!("  m{n} => {n} + self m{n}\n"))
            .collect();
        eval(&connection, &format!("Object subclass: Huge\n{class}")).await;
        lives_on(&connection).await;
        eval(&connection, &"x := 1. ".repeat(5_000)).await;
        lives_on(&connection).await;
        let text = "a".repeat(900_000);
        assert_eq!(
            eval(&connection, &format!("\"{text}\" size")).await["value"],
            900_000
        );
        lives_on(&connection).await;
    });
}

#[test]
fn compiling_stops_at_its_time_limit() {
    let home = Home::new("ctime");
    let mut command = home.command(&["workspace", "start"]);
    assert!(
        command
            .env("BEAMTALK_COMPILER_TIMEOUT", "0")
            .output()
            .unwrap()
            .status
            .success()
    );
    block_on(async {
        let connection = home.connect().await;
        let class: String = (0..3_000)
            .map(|n| format!("  m{n} => {n} + self m{n}\n"))
            .collect();
        let answer = eval(&connection, &format!("Object subclass: Huge\n{class}")).await;
        assert_eq!(
            (kind(&answer), &answer["error"]["details"]["limit"]),
            ("compiler_limit", &json!("time"))
        );
        assert_eq!(
            kind(&request(&connection, "list-classes", json!({})).await),
            "none"
        );
    });
}

/// A source that is read in no time, and for which Erlang's compiler needs very long.
#[test]
fn core_bomb_workspace_lives() {
    let home = Home::new("cbomb");
    let mut command = home.command(&["workspace", "start"]);
    let started = command.env("BEAMTALK_COMPILER_TIMEOUT", "5").output().unwrap();
    assert!(started.status.success());
    let branches: String = (0..2_000)
        .map(|n| format!("    x > {n} ifTrue: [a := a + x] ifFalse: [a := a - {n}]\n"))
        .collect();
    let bomb = format!("Object subclass: Bomb\n  go: x =>\n    a := 0\n{branches}    a\n");
    block_on(async {
        let connection = home.connect().await;
        let other = home.connect().await;
        let pending = connection.request("load-source", crate::home::fields(json!({"source": bomb})));
        let pending = pending.expect("connected");
        // Others work while it is compiled.
        lives_on(&other).await;
        let answer = pending.done().await.expect("an answer");
        assert_eq!(
            (kind(&answer), &answer["error"]["details"]["limit"]),
            ("compiler_limit", &json!("time"))
        );
        lives_on(&connection).await;
        assert_eq!(kind(&eval(&connection, "Bomb new").await), "class_not_found");
    });
}

#[test]
fn a_killed_compiler_is_replaced() {
    let home = Home::new("ckill");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        lives_on(&connection).await;
        let workers: Vec<u32> = home
            .processes()
            .into_iter()
            .filter(|pid| {
                let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
                line.contains("compiler-worker")
            })
            .collect();
        assert!(!workers.is_empty());
        for worker in workers {
            kill(worker);
        }
        // The job that finds the worker gone is done by another one.
        let first = eval(&connection, "2 + 3").await;
        assert_eq!(first.get("value"), Some(&json!(5)), "{first:?}");
        lives_on(&connection).await;
    });
}

#[test]
fn a_killed_daemon_takes_its_node_along_and_the_next_start_is_clean() {
    let home = Home::new("dkill");
    let info = home.start(&[]);
    let pid = |field: &str| u32::try_from(info[field].as_u64().unwrap()).unwrap();
    block_on(async {
        let connection = home.connect().await;
        eval(&connection, "Object subclass: Kept\n  x => 1").await;
        kill(pid("pid"));
        let lost = connection.request("eval", fields(json!({"code": "1"})));
        assert!(lost.is_err() || lost.unwrap().done().await.is_err());
    });
    wait_until("the node ends", Duration::from_secs(6), || {
        !is_alive(pid("node_pid"))
    });
    let again = home.start(&[]);
    assert_ne!(again["nonce"], info["nonce"]);
    block_on(async {
        let connection = home.connect().await;
        lives_on(&connection).await;
        let changes = request(&connection, "changes", json!({"all": true})).await;
        let entries = changes["entries"].as_array().unwrap();
        assert!(
            entries.iter().any(|entry| entry["class"] == "Kept"),
            "acknowledged, so not lost: {entries:?}"
        );
    });
    let verified = home.run(&["workspace", "audit", "verify"]);
    assert!(
        verified.status.success(),
        "{}",
        String::from_utf8_lossy(&verified.stdout)
    );
}

#[test]
fn actor_crash_leaves_others() {
    let home = Home::new("crash");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        eval(&connection, "Actor subclass: Lamp\n  state: on = false\n  toggle => self.on := self.on not\n  burn => Erlang erlang exit: #kill").await;
        eval(&connection, "a := Lamp spawn. b := Lamp spawn. b toggle").await;
        assert!(eval(&connection, "a burn").await.contains_key("error"));
        assert_eq!(
            eval(&connection, "b toggle").await["value"],
            false,
            "the other kept its state"
        );
        lives_on(&connection).await;
    });
}

#[test]
fn slow_reader_does_not_block() {
    let home = Home::new("slow");
    home.start(&[]);
    block_on(async {
        // This one asks for much and never reads again: its socket fills.
        let mut slow = Raw::open(&home);
        slow.send(&json!({"op": "subscribe", "id": "s", "channels": ["transcript"]}).to_string());
        for n in 0..60 {
            slow.send(&json!({"op": "list-classes", "id": format!("r{n}")}).to_string());
        }
        let connection = home.connect().await;
        for n in 0..200 {
            let started = Instant::now();
            let answer = eval(&connection, &format!("Transcript show: \"{n}\"; cr. {n}")).await;
            assert_eq!(answer["value"], n);
            assert!(started.elapsed() < Duration::from_secs(10));
        }
        drop(slow);
        lives_on(&connection).await;
    });
}
