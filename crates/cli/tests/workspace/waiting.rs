//! Changes that are not in their files when the node or the daemon goes: installed again, or kept waiting.

use std::time::Duration;

use beamtalk_client::{Connection, Events};
use rustix::process::Signal;
use serde_json::{Map, Value, json};

use crate::home::{Home, block_on, eval, kill, kind, request};
use crate::project::write;

fn orbit(home: &Home) {
    write(
        home,
        "beamtalk.toml",
        "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n",
    );
    write(
        home,
        "src/lamp.bt",
        "Object subclass: Lamp\n  class watt => 4\n\n  class color => \"red\"\n",
    );
    write(home, "src/fan.bt", "Object subclass: Fan\n  class speed => 1\n");
}

fn pid(home: &Home, field: &str) -> u32 {
    u32::try_from(home.info()[field].as_u64().expect("a pid")).expect("a pid")
}

/// Kill the node and wait for the next; answers what is told of it.
async fn kill_node(home: &Home, events: &mut Events) -> Value {
    kill(pid(home, "node_pid"));
    wait_for(events, "node_started").await
}

/// Wait for an event; answers what is told with it.
async fn wait_for(events: &mut Events, name: &str) -> Value {
    loop {
        let event = tokio::time::timeout(Duration::from_secs(40), events.recv()).await;
        let event = event.expect("in time").expect("an event");
        if event["event"] == name {
            return event["data"].clone();
        }
    }
}

fn subjects(answer: &Map<String, Value>, field: &str) -> Vec<String> {
    let entries = answer[field].as_array().expect("a list").iter();
    let name = |entry: &Value| {
        let class = entry["class"].as_str().unwrap_or_default();
        match entry["selector"].as_str() {
            Some(selector) => format!("{class}>>{selector}"),
            None => class.to_owned(),
        }
    };
    entries.map(name).collect()
}

async fn changes(connection: &Connection) -> Map<String, Value> {
    request(connection, "changes", json!({})).await
}

async fn value(connection: &Connection, code: &str) -> Value {
    let answer = eval(connection, code).await;
    answer
        .get("value")
        .cloned()
        .unwrap_or_else(|| json!(kind(&answer)))
}

#[test]
fn after_the_node_died_changes_are_installed_again_and_if_it_dies_again_they_wait() {
    let home = Home::new("reinstall");
    orbit(&home);
    home.start(&[]);
    block_on(async {
        let (connection, mut events) = home.try_connect("repl").await.expect("a connection");
        // A class at the prompt before the superclass it has in the end.
        for code in [
            "Object subclass: Top\n  class x => 1",
            "Top subclass: Kept\n  class y => self x + 1",
            "Object subclass: Top\n  class x => 10",
            "Lamp class >> watt => 40",
            "Lamp class >> volt => 12",
            "Object subclass: Fan\n  class speed => 5\n\n  class noise => 7\n",
            "Integer >> tripled => self * 3",
        ] {
            assert_eq!(kind(&eval(&connection, code).await), "none", "{code}");
        }
        request(
            &connection,
            "remove-method",
            json!({"class": "Lamp", "selector": "color", "side": "class"}),
        )
        .await;
        request(
            &connection,
            "try-method",
            json!({"class": "Fan", "selector": "speed", "side": "class", "source": "speed => 99"}),
        )
        .await;
        assert_eq!(value(&connection, "Fan speed").await, 99);
        let before = changes(&connection).await;
        // Somebody adds a method to the file meanwhile.
        write(
            &home,
            "src/fan.bt",
            "Object subclass: Fan\n  class speed => 1\n\n  class blades => 3\n",
        );
        let told = kill_node(&home, &mut events).await;
        assert_eq!(
            (&told["failed"], &told["waiting"]),
            (&json!([]), &json!(0)),
            "{told}"
        );
        assert_eq!(told["reinstalled"], 7, "{told}");
        let image = "#(Kept y, Lamp watt, Lamp volt, Fan speed, Fan noise, Fan blades, 5 tripled)";
        assert_eq!(
            eval(&connection, image).await["text"],
            "#(11, 40, 12, 5, 7, 3, 15)"
        );
        assert_eq!(value(&connection, "Lamp color").await, "does_not_understand");
        let after = changes(&connection).await;
        assert_eq!(
            subjects(&after, "entries").len(),
            subjects(&before, "entries").len() - 1,
            "the tried one is gone"
        );
        assert_eq!(subjects(&after, "waiting"), Vec::<String>::new());

        let told = kill_node(&home, &mut events).await;
        assert_eq!(told["reinstalled"], 0, "{told}");
        assert_eq!(told["waiting"], 7, "{told}");
        let waiting = changes(&connection).await;
        assert_eq!(subjects(&waiting, "entries"), Vec::<String>::new());
        assert_eq!(value(&connection, "Lamp watt").await, 4);
        assert_eq!(value(&connection, "Kept y").await, "class_not_found");
        assert_eq!(request(&connection, "flush", json!({})).await["files"], json!([]));

        let restored = request(&connection, "restore", json!({"all": true})).await;
        assert_eq!(restored["failed"], json!([]), "{restored:?}");
        assert_eq!(
            eval(&connection, image).await["text"],
            "#(11, 40, 12, 5, 7, 3, 15)"
        );
        let flushed = request(&connection, "flush", json!({})).await;
        assert_eq!(flushed["conflicts"], json!([]), "{flushed:?}");
    });
    let fan = std::fs::read_to_string(home.project().join("src/fan.bt")).expect("a file");
    for method in ["class speed => 5", "class noise => 7", "class blades => 3"] {
        assert!(fan.contains(method), "{fan}");
    }
}

#[test]
fn what_no_longer_compiles_after_the_node_died_is_listed_and_stays_pending() {
    let home = Home::new("nolonger");
    orbit(&home);
    home.start(&[]);
    block_on(async {
        let (connection, mut events) = home.try_connect("repl").await.expect("a connection");
        eval(&connection, "Lamp class >> watt => 40").await;
        eval(&connection, "Fan class >> speed => 50").await;
        std::fs::remove_file(home.project().join("src/fan.bt")).expect("removed");
        let told = kill_node(&home, &mut events).await;
        assert_eq!(told["reinstalled"], 1, "{told}");
        assert_eq!(told["failed"].as_array().map(Vec::len), Some(1), "{told}");
        assert_eq!(value(&connection, "Lamp watt").await, 40);
        let listed = changes(&connection).await;
        assert_eq!(subjects(&listed, "entries"), ["Lamp>>watt", "Fan>>speed"]);
        assert!(
            listed["entries"][1]["not_installed"]["message"].is_string(),
            "{listed:?}"
        );
        // With the file back it can be had.
        write(&home, "src/fan.bt", "Object subclass: Fan\n  class speed => 1\n");
        request(&connection, "load-project", json!({})).await;
        let seq = listed["entries"][1]["seq"].clone();
        let restored = request(&connection, "restore", json!({"seq": seq})).await;
        assert_eq!(restored["failed"], json!([]), "{restored:?}");
        assert_eq!(value(&connection, "Fan speed").await, 50);
        assert!(
            changes(&connection).await["entries"][1]
                .get("not_installed")
                .is_none()
        );
    });
}

#[test]
fn after_a_restart_of_the_daemon_changes_wait_until_somebody_decides() {
    let home = Home::new("waiting");
    orbit(&home);
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        for code in [
            "Lamp class >> watt => 40",
            "Lamp class >> volt => 12",
            "Fan class >> speed => 50",
            "Object subclass: Kept\n  class x => 7",
        ] {
            eval(&connection, code).await;
        }
        kill(pid(&home, "pid"));
    });
    let started = home.run(&["workspace", "start"]);
    let told = String::from_utf8_lossy(&started.stderr).into_owned();
    let sentence =
        "4 changes of the last run were not flushed (:restore installs them, :discard forgets them)";
    assert!(told.contains(sentence), "{told}");
    let said = home.run(&["eval", "Lamp watt"]);
    assert_eq!(String::from_utf8_lossy(&said.stdout).trim(), "4");
    assert_eq!(String::from_utf8_lossy(&said.stderr).trim(), sentence);
    block_on(async {
        let (connection, mut events) = home.try_connect("mcp").await.expect("a connection");
        let event = tokio::time::timeout(Duration::from_secs(10), events.recv()).await;
        let event = event.expect("in time").expect("an event");
        assert_eq!(
            (&event["event"], &event["data"]["count"]),
            (&json!("changes_waiting"), &json!(4))
        );
        let listed = changes(&connection).await;
        assert_eq!(subjects(&listed, "entries"), Vec::<String>::new());
        assert_eq!(
            subjects(&listed, "waiting"),
            ["Lamp>>watt", "Lamp>>volt", "Fan>>speed", "Kept"]
        );
        let seq = |at: usize| listed["waiting"][at]["seq"].clone();

        // Neither a flush nor an autoflush writes them.
        assert_eq!(request(&connection, "flush", json!({})).await["files"], json!([]));
        eval(&connection, "Workspace autoflush: true").await;
        assert_eq!(
            kind(&eval(&connection, "Lamp class >> color => \"blue\"").await),
            "none"
        );
        eval(&connection, "Workspace autoflush: false").await;
        let lamp = std::fs::read_to_string(home.project().join("src/lamp.bt")).expect("a file");
        assert!(
            lamp.contains("\"blue\"") && lamp.contains("watt => 4\n") && !lamp.contains("volt"),
            "{lamp}"
        );

        // What is pending for the same definition is not replaced unless that is said.
        eval(&connection, "Lamp class >> watt => 41").await;
        let restored = request(&connection, "restore", json!({"class": "Lamp"})).await;
        assert_eq!(subjects(&restored, "entries"), ["Lamp>>volt"], "{restored:?}");
        assert_eq!(restored["conflicts"][0]["reason"], "pending");
        assert_eq!(value(&connection, "Lamp watt").await, 41);
        let restored = request(&connection, "restore", json!({"seq": seq(0)})).await;
        assert_eq!(subjects(&restored, "entries"), ["Lamp>>watt"]);
        assert_eq!(value(&connection, "Lamp watt").await, 40);
        assert_eq!(
            subjects(&changes(&connection).await, "entries"),
            ["Lamp>>watt", "Lamp>>volt"]
        );

        // Set aside, and brought back by its number.
        request(&connection, "discard", json!({"seq": seq(2)})).await;
        assert_eq!(subjects(&changes(&connection).await, "waiting"), ["Kept"]);
        let restored = request(&connection, "restore", json!({"seq": seq(2)})).await;
        assert_eq!(subjects(&restored, "entries"), ["Fan>>speed"], "{restored:?}");
        assert_eq!(value(&connection, "Fan speed").await, 50);

        assert_eq!(
            value(&connection, "(Workspace changes restore: #all) size").await,
            json!(1)
        );
        assert_eq!(value(&connection, "Kept x").await, 7);
        assert_eq!(
            subjects(&changes(&connection).await, "waiting"),
            Vec::<String>::new()
        );
        for wrong in [
            json!({}),
            json!({"all": true, "class": "Lamp"}),
            json!({"seq": seq(0)}),
        ] {
            assert_eq!(
                kind(&request(&connection, "restore", wrong).await),
                "invalid_parameter"
            );
        }
        // A conflict with the disk is one as ever.
        write(&home, "src/fan.bt", "Object subclass: Fan\n  class speed => 2\n");
        let flushed = request(&connection, "flush", json!({})).await;
        assert_eq!(flushed["conflicts"][0]["reason"], "external_edit", "{flushed:?}");
    });
}

#[test]
fn discarding_a_waiting_change_brings_no_older_one_back() {
    let home = Home::new("waitingolder");
    orbit(&home);
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        eval(&connection, "Lamp class >> watt => 40").await;
        eval(&connection, "Lamp class >> watt => 41").await;
        kill(pid(&home, "pid"));
    });
    home.run(&["workspace", "start"]);
    block_on(async {
        let connection = home.connect().await;
        let listed = changes(&connection).await;
        assert_eq!(subjects(&listed, "waiting"), ["Lamp>>watt"]);
        let seq = listed["waiting"][0]["seq"].clone();
        request(&connection, "discard", json!({"seq": seq})).await;
        assert_eq!(changes(&connection).await["waiting"], json!([]));
        let restored = request(&connection, "restore", json!({"all": true})).await;
        assert_eq!(restored["entries"], json!([]), "{restored:?}");
        assert_eq!(value(&connection, "Lamp watt").await, 4);
    });
}

#[test]
fn nothing_is_decided_about_changes_while_the_node_starts() {
    let home = Home::new("whilestarting");
    orbit(&home);
    home.start(&[]);
    block_on(async {
        let (connection, mut events) = home.try_connect("repl").await.expect("a connection");
        eval(&connection, "Lamp class >> watt => 40").await;
        kill(pid(&home, "node_pid"));
        wait_for(&mut events, "node_exited").await;
        let seq = json!({"seq": 1});
        for (op, fields) in [
            ("discard", seq.clone()),
            ("take", json!({"from": "disk", "seq": 1})),
            (
                "settle",
                json!({"file": "src/lamp.bt", "text": "", "disk_sha256": ""}),
            ),
            ("revert", seq.clone()),
            ("restore", seq),
            ("flush", json!({})),
            ("load-project", json!({})),
            ("reload", json!({"class": "Lamp"})),
        ] {
            assert_eq!(
                kind(&request(&connection, op, fields).await),
                "node_starting",
                "{op}"
            );
        }
        let told = wait_for(&mut events, "node_started").await;
        assert_eq!(told["reinstalled"], 1, "{told}");
        request(&connection, "discard", json!({"seq": 1})).await;
        assert_eq!(value(&connection, "Lamp watt").await, 4);
    });
}

#[test]
fn a_node_that_ends_again_before_it_is_up_starts_without_the_changes() {
    let home = Home::new("startingdeath");
    orbit(&home);
    home.start(&[]);
    block_on(async {
        let (connection, mut events) = home.try_connect("repl").await.expect("a connection");
        eval(&connection, "Lamp class >> watt => 40").await;
        let first = pid(&home, "node_pid");
        kill(first);
        wait_for(&mut events, "node_exited").await;
        let deadline = std::time::Instant::now() + Duration::from_secs(20);
        while pid(&home, "node_pid") == first {
            assert!(std::time::Instant::now() < deadline, "no other node");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        kill(pid(&home, "node_pid"));
        let told = wait_for(&mut events, "node_started").await;
        assert_eq!((&told["reinstalled"], &told["waiting"]), (&json!(0), &json!(1)));
        assert_eq!(value(&connection, "Lamp watt").await, 4);
        assert_eq!(subjects(&changes(&connection).await, "waiting"), ["Lamp>>watt"]);
    });
}

/// Kill the node, and stop the process that builds the project for the next one. One that is over before it is seen is no
/// use: then the next node goes the same way.
pub(crate) async fn hold_build(home: &Home, events: &mut Events, known: &[u32]) -> u32 {
    for attempt in 0..4 {
        // Something to compile: a build that has nothing to do is over in a moment.
        let name = format!("Hold{}x{attempt}", known.len());
        write(
            home,
            &format!("src/{name}.bt"),
            &format!("Object subclass: {name}\n"),
        );
        kill(pid(home, "node_pid"));
        wait_for(events, "node_exited").await;
        if let Some(build) = stopped_build(home, known).await {
            return build;
        }
    }
    panic!("nobody builds");
}

async fn stopped_build(home: &Home, known: &[u32]) -> Option<u32> {
    let is_build = |pid: &u32| {
        let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        line.contains("project-image") && !known.contains(pid)
    };
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while std::time::Instant::now() < deadline {
        if let Some(found) = home.processes().into_iter().find(is_build) {
            send(found, Signal::STOP);
            let state = || std::fs::read_to_string(format!("/proc/{found}/stat")).unwrap_or_default();
            // Stopped, or over: as a zombie it is read by nobody any more.
            let ended = |state: &str| state.is_empty() || state.contains(") Z ");
            while !ended(&state()) {
                if state().contains(") T ") {
                    return Some(found);
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    None
}

pub(crate) fn send(pid: u32, signal: Signal) {
    let pid = rustix::process::Pid::from_raw(pid.cast_signed()).expect("a pid");
    // One that has ended is not there to get it.
    let _ = rustix::process::kill_process(pid, signal);
}

/// What was on its way into a node that is lost does not come into the next one: requests are welcome when that one is ready, and
/// what is written meanwhile is nobody's conflict.
#[test]
fn a_node_lost_while_its_project_is_built_leaves_nothing_to_the_next() {
    let home = Home::new("lostbuild");
    orbit(&home);
    home.start(&[]);
    block_on(async {
        let (connection, mut events) = home.try_connect("repl").await.expect("a connection");
        let first = hold_build(&home, &mut events, &[]).await;
        let second = hold_build(&home, &mut events, &[first]).await;
        send(first, Signal::CONT);
        let later = std::time::Instant::now() + Duration::from_secs(1);
        while std::time::Instant::now() < later {
            let flushed = request(&connection, "flush", json!({})).await;
            assert_eq!(kind(&flushed), "node_starting", "{flushed:?}");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let limited = json!({"code": "1 + 1", "handle": "once", "timeout_ms": 300});
        assert_eq!(kind(&request(&connection, "eval", limited).await), "eval_limit");
        let source = json!({"path": "src/new.bt", "text": "Object subclass: New\n"});
        assert_eq!(
            kind(&request(&connection, "doc-write", source).await),
            "node_starting"
        );
        send(second, Signal::CONT);
        wait_for(&mut events, "node_started").await;
        eval(&connection, "Lamp class >> watt => 41").await;
        let flushed = request(&connection, "flush", json!({})).await;
        assert_eq!(flushed["conflicts"], json!([]), "{flushed:?}");
        eval(&connection, "Lamp class >> watt => 42").await;
        let flushed = request(&connection, "flush", json!({})).await;
        assert_eq!(flushed["conflicts"], json!([]), "{flushed:?}");
        assert_eq!(value(&connection, "Lamp watt").await, 42);
    });
}

/// A change that waits is not in the image, so it says nothing about the base of a later one: what a person wrote
/// meanwhile is a conflict, and what nobody touched is written as often as one likes.
#[test]
fn what_waits_is_no_base_for_what_is_changed_now() {
    let home = Home::new("waitingbase");
    orbit(&home);
    home.start(&[]);
    block_on(async { eval(&home.connect().await, "Lamp class >> watt => 40").await });
    home.run(&["workspace", "stop"]);
    let with_watt =
        |watt: u32| format!("Object subclass: Lamp\n  class watt => {watt}\n\n  class color => \"red\"\n");
    write(&home, "src/lamp.bt", &with_watt(7));
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        assert_eq!(subjects(&changes(&connection).await, "waiting"), ["Lamp>>watt"]);
        assert_eq!(value(&connection, "Lamp watt").await, 7);
        eval(&connection, "Lamp class >> watt => 41").await;
        // A person brings back the text from before the change that waits.
        write(&home, "src/lamp.bt", &with_watt(4));
        let report = request(&connection, "flush", json!({})).await;
        assert_eq!(
            report["conflicts"].as_array().map(Vec::len),
            Some(1),
            "{report:?}"
        );
        assert_eq!(
            std::fs::read_to_string(home.project().join("src/lamp.bt")).unwrap(),
            with_watt(4)
        );
        request(
            &connection,
            "take",
            json!({"from": "disk", "file": "src/lamp.bt"}),
        )
        .await;
        for watt in [50, 51, 52] {
            eval(&connection, &format!("Lamp class >> watt => {watt}")).await;
            let report = request(&connection, "flush", json!({})).await;
            assert_eq!(report["flushed"], 1, "{report:?}");
            assert_eq!(
                std::fs::read_to_string(home.project().join("src/lamp.bt")).unwrap(),
                with_watt(watt)
            );
        }
        assert_eq!(subjects(&changes(&connection).await, "waiting"), ["Lamp>>watt"]);
    });
}
