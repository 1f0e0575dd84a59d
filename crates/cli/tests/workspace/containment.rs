//! A failure stays where it happens: whatever an evaluation, an actor or an observer does, the owner's next request is
//! answered, in time, with the truth.

use std::time::{Duration, Instant};

use beamtalk_client::{Connection, Events, Greeting, Pending};
use serde_json::{Map, Value, json};

use crate::faults::wait_for_node;
use crate::home::{Home, block_on, eval, fields, kind, request};
use crate::project::write;

/// The reason of the next exit of the node that everybody is told.
async fn exit_told(events: &mut Events) -> String {
    let told = async {
        loop {
            let event = events.recv().await.expect("the connection stays");
            if event["event"] == "node_exited" {
                return event["data"]["reason"].as_str().unwrap_or_default().to_owned();
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(30), told)
        .await
        .expect("the exit is told")
}

/// One way to damage the bridge: everybody is told, clients stay, and the next node answers.
fn bridge_is_replaced(name: &str, code: &str, reason: &str) {
    let home = Home::new(name);
    home.start(&[]);
    block_on(async {
        let (connection, mut events) = home.try_connect("repl").await.expect("the owner comes in");
        let attack = connection
            .request("eval", fields(json!({ "code": code })))
            .expect("sent");
        let told = exit_told(&mut events).await;
        assert!(told.contains(reason), "{told}");
        // Whether it was answered before the end or by the end.
        assert!(attack.done().await.is_ok());
        wait_for_node(&connection).await;
        assert!(!connection.is_lost());
    });
}

#[test]
fn a_killed_bridge() {
    bridge_is_replaced(
        "brkill",
        "Erlang erlang exit: (Erlang erlang whereis: #beamtalk_bridge) with: #kill",
        "exit status",
    );
}

#[test]
fn a_suspended_bridge() {
    bridge_is_replaced(
        "brsusp",
        "Erlang erlang suspend_process: (Erlang erlang whereis: #beamtalk_bridge). Timer sleep: 60000",
        "no sign of life",
    );
}

#[test]
fn an_unloaded_bridge() {
    bridge_is_replaced(
        "brunload",
        "Erlang code delete: #beamtalk_bridge. Erlang code purge: #beamtalk_bridge. Timer sleep: 60000",
        "",
    );
}

/// What a request needs beside the bridge does not answer to its name: the node is replaced. Each has a workspace of its
/// own, all at the same time.
fn needed_are_replaced(damage: &'static str, processes: [&'static str; 3]) {
    let attacks = processes.map(|process| {
        let name = format!("{}{}", &damage[..3], &process[process.len() - 5..]);
        let code = damage
            .split_once(' ')
            .expect("a word and code")
            .1
            .replace("NAME", process);
        std::thread::spawn(move || silent_process_is_replaced(&name, &code))
    });
    for attack in attacks {
        attack.join().expect("the node is replaced");
    }
}

fn silent_process_is_replaced(name: &str, code: &str) {
    let home = Home::new(name);
    home.start(&[]);
    block_on(async {
        let (connection, mut events) = home.try_connect("repl").await.expect("the owner comes in");
        let _attack = connection
            .request("eval", fields(json!({ "code": code })))
            .expect("sent");
        let told = exit_told(&mut events).await;
        assert!(told.contains("no sign of life"), "{code}: {told}");
        wait_for_node(&connection).await;
        let other = home.connect().await;
        assert_eq!(eval(&other, "1 + 1").await["value"], 2, "{code}");
    });
}

#[test]
fn a_suspended_process_of_the_runtime() {
    needed_are_replaced(
        "sys Erlang sys suspend: (Erlang erlang whereis: #NAME)",
        ["beamtalk_session_sup", "beamtalk_registry", "code_server"],
    );
}

#[test]
fn a_process_of_the_runtime_stopped_from_outside() {
    needed_are_replaced(
        "stp Erlang erlang suspend_process: (Erlang erlang whereis: #NAME). Timer sleep: 60000",
        ["beamtalk_workspace", "beamtalk_sup", "beamtalk_guard"],
    );
}

#[test]
fn an_unregistered_process_of_the_runtime() {
    needed_are_replaced(
        "unr Erlang erlang unregister: #NAME",
        ["beamtalk_workspace_sup", "beamtalk_registry", "beamtalk_bridge"],
    );
}

#[test]
fn status_and_time_limits_hold_while_the_bridge_is_silent() {
    let home = Home::new("silent");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        let attack =
            "Erlang erlang suspend_process: (Erlang erlang whereis: #beamtalk_bridge). Timer sleep: 60000";
        let _attack = connection
            .request("eval", fields(json!({ "code": attack })))
            .unwrap();
        let other = home.connect().await;
        // The bridge is silent once a question about the node has no answer.
        let deadline = Instant::now() + Duration::from_secs(5);
        while request(&other, "health", json!({})).await.contains_key("memory") {
            assert!(Instant::now() < deadline, "the bridge was not suspended");
        }
        // Neither waits for the node: a minute of that would be a minute here.
        let started = Instant::now();
        let late = request(&other, "eval", json!({"code": "1 + 1", "timeout_ms": 500})).await;
        let status = home.run(&["--json", "workspace", "status"]);
        assert!(status.status.success());
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{:?}",
            started.elapsed()
        );
        assert!(
            ["eval_limit", "node_down", "node_starting"].contains(&kind(&late)),
            "{late:?}"
        );
    });
}

#[test]
fn a_time_limit_counts_the_wait_for_another_evaluation() {
    let home = Home::new("queue");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        let endless = connection
            .request("eval", fields(json!({"code": "[true] whileTrue: []"})))
            .unwrap();
        let second = request(&connection, "eval", json!({"code": "1", "timeout_ms": 300})).await;
        assert_eq!(kind(&second), "eval_limit");
        assert_eq!(second["error"]["details"]["limit"], "time");
        request(&connection, "interrupt", json!({})).await;
        assert_eq!(kind(&endless.done().await.unwrap()), "interrupted");
        assert_eq!(eval(&connection, "1 + 1").await["value"], 2);
    });
}

/// A session whose own process does not answer gets another one, with its variables.
#[test]
fn a_session_that_suspends_its_keeper_is_interrupted() {
    let home = Home::new("keeper");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        eval(&connection, "kept := 7").await;
        let attack = "Erlang erlang suspend_process: (Erlang erlang group_leader). [true] whileTrue: []";
        let running = connection
            .request("eval", fields(json!({ "code": attack })))
            .unwrap();
        let other = home.connect().await;
        wait_until_busy(&other, &connection.session).await;
        let stopped = request(&other, "interrupt", json!({"session": connection.session})).await;
        assert_eq!(stopped["value"], true);
        let answer = tokio::time::timeout(Duration::from_secs(10), running.done()).await;
        assert_eq!(kind(&answer.expect("in time").unwrap()), "interrupted");
        assert_eq!(eval(&connection, "kept").await["value"], 7);
    });
}

async fn wait_until_busy(connection: &Connection, session: &str) {
    let deadline = Instant::now() + Duration::from_secs(10);
    loop {
        let answer = request(connection, "sessions", json!({})).await;
        let sessions = answer["sessions"].as_array().expect("a list").clone();
        if sessions
            .iter()
            .any(|row| row["id"] == session && row["busy"] == true)
        {
            return;
        }
        assert!(Instant::now() < deadline, "the evaluation does not run");
    }
}

const MITE: &str = "Actor subclass: Mite\n  work => Timer sleep: 60000";

#[test]
fn actors_meet_a_limit_of_their_own() {
    let home = Home::new("mites");
    home.start(&["--max-processes", "3000"]);
    block_on(async {
        let connection = home.connect().await;
        eval(&connection, MITE).await;
        let answer = eval(&connection, "1 to: 300000 do: [:i | Mite spawn]").await;
        assert_eq!(kind(&answer), "process_limit", "{answer:?}");
        assert_eq!(eval(&connection, "2 + 3").await["value"], 5);
        let blocks = eval(
            &connection,
            "Parallel all: ((1 to: 5000) collect: [:i | [Timer sleep: 60000]])",
        )
        .await;
        assert_eq!(kind(&blocks), "process_limit");
        assert_eq!(eval(&connection, "2 + 3").await["value"], 5);
    });
}

/// Processes that Erlang starts without asking: the evaluation that starts them is ended, and they with it.
#[test]
fn raw_processes_end_the_evaluation_that_starts_them() {
    let home = Home::new("raw");
    home.start(&["--max-processes", "3000"]);
    block_on(async {
        let connection = home.connect().await;
        eval(&connection, MITE).await;
        eval(&connection, "m := Mite spawn").await;
        let asked = eval(
            &connection,
            "1 to: 100000 do: [:i | Erlang erlang spawn: [Timer sleep: 60000]]",
        )
        .await;
        assert_eq!(kind(&asked), "process_limit", "{asked:?}");
        // Functions of Erlang that start processes behind the scenes.
        let hidden = eval(
            &connection,
            "Erlang lists foreach: [:i | Erlang timer apply_interval: 60000 with: #erlang with: #self with: #(). \
             Erlang erlang apply: #erlang with: #spawn with: #(#timer, #sleep, #(60000))] with: (Erlang lists seq: 1 with: 200000). \
             Timer sleep: 20000",
        )
        .await;
        assert_eq!(kind(&hidden), "process_limit", "{hidden:?}");
        assert_eq!(
            eval(&connection, "m isAlive").await["value"],
            true,
            "actors live on"
        );
        assert_eq!(eval(&connection, "2 + 3").await["value"], 5);
    });
}

/// Processes that start others, each as often as it is allowed.
#[test]
fn a_fork_bomb_is_ended() {
    let home = Home::new("bomb");
    home.start(&["--max-processes", "3000"]);
    block_on(async {
        let connection = home.connect().await;
        let bomb = "f := nil. f := [:n | 1 to: 1000 do: [:i | Erlang erlang spawn: [f value: n]. Timer sleep: 1]]. f value: 1. \
                    Timer sleep: 60000";
        let answer = request(&connection, "eval", json!({"code": bomb, "timeout_ms": 30000})).await;
        assert!(answer.contains_key("error"), "{answer:?}");
        let deadline = Instant::now() + Duration::from_secs(20);
        loop {
            let count = eval(&connection, "Erlang erlang system_info: #process_count").await;
            if count
                .get("value")
                .and_then(Value::as_u64)
                .is_some_and(|count| count < 1_000)
            {
                break;
            }
            assert!(Instant::now() < deadline, "{count:?}");
        }
    });
}

/// Code that no check of ours sees.
const BOMB: &str = "-module(orbit_bomb).
-export([grow/0, grown/0, split/0, halves/0, flat/0, later/0, busy/1, loop/1]).
grow() -> spawn(?MODULE, grown, []).
grown() -> grow(), grow(), timer:sleep(60000).
split() -> spawn(?MODULE, halves, []).
halves() -> split(), split().
flat() -> spawn(timer, sleep, [60000]), flat().
later() -> timer:apply_after(200, ?MODULE, grow, []).
busy(Count) -> [spawn(?MODULE, loop, [high]) || _ <- lists:seq(1, Count)], ok.
loop(Priority) -> process_flag(priority, Priority), loop().
loop() -> loop().
";

const FUSE: &str = "Actor subclass: Fuse
  state: lit = 0
  grow => Erlang orbit_bomb grow
  flat => Erlang orbit_bomb flat
  lit => self.lit
";

/// A workspace with the bomb, an owner with a variable, an actor and an evaluation under way, and somebody else.
async fn beside_a_bomb(home: &Home) -> (Connection, Pending, Connection) {
    write(
        home,
        "beamtalk.toml",
        "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n",
    );
    write(home, "native/orbit_bomb.erl", BOMB);
    write(home, "src/fuse.bt", FUSE);
    home.start(&["--max-processes", "3000"]);
    let owner = home.connect().await;
    eval(&owner, "kept := 7. actor := Fuse spawn").await;
    let code = "1 to: 40 do: [:i | Timer sleep: 100]. kept + 1";
    let waits = owner
        .request("eval", fields(json!({ "code": code })))
        .expect("sent");
    wait_until_busy(&owner, &owner.session).await;
    (owner, waits, home.connect().await)
}

/// Nobody else noticed: what ran beside it goes on to its end, in the same node.
async fn expect_unharmed(owner: &Connection, waits: Pending, other: &Connection) {
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        // While some of them are left, the next evaluation of the session that started them may go with them.
        let count = eval(other, "Erlang erlang system_info: #process_count").await;
        let count_now = count.get("value").and_then(Value::as_u64);
        if count_now.is_some_and(|count| count < 1_000) {
            break;
        }
        assert!(Instant::now() < deadline, "{count:?}");
    }
    let answer = waits.done().await.expect("an answer");
    assert_eq!(answer.get("value"), Some(&json!(8)), "{answer:?}");
    assert_eq!(eval(owner, "actor lit").await["value"], 0, "actors live on");
}

#[test]
fn processes_that_double_end_with_the_evaluation_that_started_them() {
    let home = Home::new("grow");
    block_on(async {
        let (owner, waits, other) = beside_a_bomb(&home).await;
        for bomb in ["grow", "split"] {
            let code = format!("Erlang orbit_bomb {bomb}. Timer sleep: 60000");
            let answer = request(&other, "eval", json!({"code": code, "timeout_ms": 10000})).await;
            assert_eq!(kind(&answer), "process_limit", "{bomb}: {answer:?}");
        }
        expect_unharmed(&owner, waits, &other).await;
    });
}

#[test]
fn processes_that_double_after_their_evaluation_are_ended() {
    let home = Home::new("growlate");
    block_on(async {
        let (owner, waits, other) = beside_a_bomb(&home).await;
        for bomb in [
            "Erlang orbit_bomb grow. 1",
            "Erlang orbit_bomb later. 1",
            "Fuse spawn grow. 1",
        ] {
            let answer = eval(&other, bomb).await;
            assert!(
                answer.get("value") == Some(&json!(1)) || kind(&answer) == "process_limit",
                "{bomb}: {answer:?}"
            );
        }
        expect_unharmed(&owner, waits, &other).await;
    });
}

#[test]
fn an_actor_that_starts_processes_without_end_goes_with_them() {
    let home = Home::new("growflat");
    block_on(async {
        let (owner, waits, other) = beside_a_bomb(&home).await;
        eval(&other, "fuse := Fuse spawn. fuse flat!").await;
        let deadline = Instant::now() + Duration::from_secs(8);
        while eval(&other, "fuse isAlive").await.get("value") != Some(&json!(false)) {
            assert!(Instant::now() < deadline, "the actor goes on");
        }
        expect_unharmed(&owner, waits, &other).await;
    });
}

#[test]
fn processes_of_a_high_priority_that_never_pause_are_ended() {
    let home = Home::new("hogs");
    block_on(async {
        let (owner, waits, other) = beside_a_bomb(&home).await;
        let count = eval(&other, "Erlang erlang system_info: #schedulers_online").await;
        let count = count["value"].as_u64().expect("a number") + 1;
        let started = Instant::now();
        eval(&other, &format!("Erlang orbit_bomb busy: {count}")).await;
        eval(&other, &format!("Erlang orbit_bomb busy: {count}")).await;
        assert_eq!(eval(&other, "2 + 3").await["value"], 5);
        expect_unharmed(&owner, waits, &other).await;
        assert!(
            started.elapsed() < Duration::from_secs(30),
            "{:?}",
            started.elapsed()
        );
    });
}

/// Many processes of the usual priority that never pause are slow, and that is all.
#[test]
fn a_busy_node_is_left_alone() {
    let home = Home::new("busy");
    block_on(async {
        let (owner, waits, other) = beside_a_bomb(&home).await;
        let code = "1 to: 200 do: [:i | Erlang erlang spawn: #orbit_bomb with: #loop with: #(#normal)]. Timer sleep: 9000. 1";
        assert_eq!(eval(&other, code).await["value"], 1);
        assert_eq!(
            waits.done().await.expect("an answer").get("value"),
            Some(&json!(8))
        );
        assert_eq!(eval(&owner, "actor lit").await["value"], 0);
    });
}

/// A text that doubles is stopped before it is larger than its evaluation may be, with no handler in between; the node
/// never has it.
#[test]
fn a_text_that_doubles_is_never_larger_than_the_limit() {
    let home = Home::new("doubling");
    home.start(&["--eval-max-heap-mb", "128"]);
    block_on(async {
        let (owner, other) = (home.connect().await, home.connect().await);
        let before = eval(&other, "Erlang os getpid").await["value"].clone();
        for code in [
            "x := \"12345678\". 1 to: 60 do: [:i | x := x ++ x]. x size",
            "x := \"12345678\". [1 to: 60 do: [:i | x := x ++ x]] on: Exception do: [:e | #caught]. x size",
            "x := \"12345678\". 1 to: 60 do: [:i | x := x perform: #++ withArguments: #(x)]. x size",
        ] {
            let answer = eval(&owner, code).await;
            assert_eq!(kind(&answer), "eval_limit", "{code}: {answer:?}");
            assert_eq!(eval(&other, "1 + 1").await["value"], 2);
        }
        assert_eq!(
            eval(&other, "Erlang os getpid").await["value"],
            before,
            "the same node"
        );
        // What ended processes had the VM frees in its own time.
        let deadline = Instant::now() + Duration::from_secs(30);
        let few = "(Erlang erlang memory: #binary) < 200000000";
        while eval(&other, few).await["value"] != true {
            assert!(Instant::now() < deadline, "what nobody uses is not freed");
        }
    });
}

#[test]
fn binaries_count_towards_the_heap_limit() {
    let home = Home::new("binaries");
    home.start(&["--eval-max-heap-mb", "64"]);
    block_on(async {
        let connection = home.connect().await;
        eval(&connection, "s := \"kept\"").await;
        let code = "s := \"0123456789abcdef\". 1 to: 26 do: [:i | s := s ++ s]. s size";
        let answer = eval(&connection, code).await;
        assert_eq!(kind(&answer), "eval_limit", "{answer:?}");
        assert_eq!(answer["error"]["details"]["limit"], "heap");
        assert_eq!(eval(&connection, "s").await["value"], "kept");
        // What fits, and what is garbage at once, is no trouble.
        let small = "t := \"0123456789abcdef\". 1 to: 20 do: [:i | t := t ++ t]. t size";
        assert_eq!(eval(&connection, small).await["value"], 16 << 20);
    });
}

#[test]
fn the_nodes_memory_has_a_ceiling_and_the_largest_evaluation_goes() {
    let home = Home::new("ceiling");
    home.start(&["--eval-max-heap-mb", "0", "--node-max-memory-mb", "400"]);
    block_on(async {
        let (small, large) = (home.connect().await, home.connect().await);
        let waits = small
            .request("eval", fields(json!({"code": "Timer sleep: 3000. 8"})))
            .unwrap();
        let answer = eval(&large, "big := (1 to: 500000000) collect: [:i | i * i]").await;
        assert_eq!(kind(&answer), "eval_limit", "{answer:?}");
        assert_eq!(answer["error"]["details"]["limit"], "memory");
        assert_eq!(waits.done().await.unwrap()["value"], 8, "the small one goes on");
        assert_eq!(eval(&large, "2 + 3").await["value"], 5);
    });
}

#[test]
fn a_node_that_actors_fill_is_restarted_and_everybody_told() {
    let home = Home::new("hoard");
    home.start(&["--node-max-memory-mb", "300"]);
    block_on(async {
        let (connection, mut events) = home.try_connect("repl").await.unwrap();
        let class = "Actor subclass: Hoard\n  state: all = #()\n\
                       fill => self.all := (1 to: 40000000) collect: [:i | i]. nil";
        eval(&connection, class).await;
        eval(&connection, "h := Hoard spawn. h fill!").await;
        let told = exit_told(&mut events).await;
        assert!(told.contains("memory limit"), "{told}");
        wait_for_node(&connection).await;
    });
}

#[test]
fn a_kill_is_called_a_kill() {
    let home = Home::new("selfkill");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        let answer = eval(
            &connection,
            "Erlang erlang exit: (Erlang erlang self) with: #kill",
        )
        .await;
        assert_ne!(kind(&answer), "eval_limit");
        assert!(
            answer["error"]["message"].as_str().unwrap().contains("kill"),
            "{answer:?}"
        );
        assert_eq!(eval(&connection, "2 + 3").await["value"], 5);
    });
}

#[test]
fn deep_values_are_printed_at_once() {
    let home = Home::new("deepprint");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        for grow in [
            "#(a)",
            "#{#x => a}",
            "#[a]",
            "Tuple withAll: #(a)",
            "Result ok: a",
        ] {
            let code = format!("a := 0. 1 to: 100000 do: [:i | a := {grow}]. a");
            let answer = request(&connection, "eval", json!({"code": code, "timeout_ms": 20000})).await;
            let text = answer["text"].as_str().unwrap_or_default();
            assert!(text.contains("...") && text.len() < 65_536, "{grow}: {answer:?}");
        }
    });
}

#[test]
fn an_interrupted_call_says_what_the_actor_is_doing() {
    let home = Home::new("doing");
    home.start(&[]);
    block_on(async {
        let connection = home.connect().await;
        eval(&connection, MITE).await;
        eval(&connection, "m := Mite spawn").await;
        let other = home.connect().await;
        let waits = connection
            .request(
                "eval",
                fields(json!({"code": "m perform: #work withArguments: #() timeout: 60000"})),
            )
            .unwrap();
        // The actor is at work once its message is being handled.
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            let stats = request(&other, "actors", json!({"class": "Mite"})).await;
            let pid = stats["actors"][0]["pid"].clone();
            let stats = request(&other, "pid-stats", json!({ "actor": pid })).await;
            let function = stats["current_function"].as_str().unwrap_or_default().to_owned();
            if !function.contains("beamtalk_actor_server") {
                break;
            }
            assert!(Instant::now() < deadline, "{stats:?}");
        }
        request(&other, "interrupt", json!({"session": connection.session})).await;
        let answer = waits.done().await.unwrap();
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(
            message.contains("Actor(Mite") && message.contains("Mite>>work"),
            "{message}"
        );
    });
}

async fn observer(home: &Home) -> Connection {
    let created = home.run(&["workspace", "token", "create", "viewer", "--role", "observer"]);
    let token = String::from_utf8_lossy(&created.stdout).trim().to_owned();
    let greeting = Greeting {
        client: "unknown",
        resume: None,
    };
    Connection::open(&home.endpoint(), "token", &token, greeting)
        .await
        .expect("an observer")
        .0
}

async fn atoms(connection: &Connection) -> u64 {
    let answer = eval(connection, "Erlang erlang system_info: #atom_count").await;
    answer["value"].as_u64().expect("a number")
}

#[test]
fn an_observer_makes_no_atoms() {
    let home = Home::new("atoms");
    home.start(&[]);
    block_on(async {
        let owner = home.connect().await;
        let observer = observer(&home).await;
        eval(&owner, MITE).await;
        // Whatever is loaded on first use is loaded now.
        let ask = async |round: usize| {
            let fresh: String = (0..2_000).map(|n| format!(" #fresh{round}x{n}.")).collect();
            let name = format!("unheard{round}");
            let questions: Vec<(&str, Value)> = vec![
                ("show-codegen", json!({ "code": fresh })),
                ("show-codegen", json!({"code": fresh, "form": "core"})),
                ("diagnostics", json!({ "code": fresh })),
                ("complete", json!({"code": format!("Erlang {name}Module ")})),
                ("hover", json!({ "code": name })),
                ("info", json!({ "symbol": name })),
                ("docs", json!({"class": name, "selector": name})),
                ("docs", json!({"erlang_module": name, "selector": name})),
                ("erlang-complete", json!({"module": name, "prefix": name})),
                ("list-classes", json!({ "filter": name })),
                ("methods", json!({ "class": name })),
                ("browse-protocols", json!({"class": name, "side": name})),
                (
                    "browse-method-source",
                    json!({"class": "Mite", "side": "instance", "selector": name}),
                ),
                ("browse-class-definition", json!({ "class": name })),
                ("browse-native-source", json!({ "class": name })),
                ("nav-query", json!({"kind": "senders", "selector": name})),
                ("nav-query", json!({"kind": "references", "class": name})),
                ("actors", json!({ "class": name })),
                ("inspect", json!({"binding": name, "path": [name]})),
                ("inspect", json!({ "actor": name })),
                ("pid-stats", json!({ "actor": name })),
                (
                    "precheck-method",
                    json!({"class": "Mite", "selector": name, "source": format!("{name} => #{name}b")}),
                ),
                (
                    "get-traces",
                    json!({"actor": name, "selector": name, "class": name, "outcome": name}),
                ),
                ("actor-stats", json!({ "actor": name })),
                ("subscribe", json!({"channels": ["object"], "actor": name})),
                ("changes", json!({})),
            ];
            for (op, fields) in questions {
                let answer = request(&observer, op, fields).await;
                assert!(answer.contains_key("status"), "{op}: {answer:?}");
            }
        };
        ask(0).await;
        let before = atoms(&owner).await;
        ask(1).await;
        ask(2).await;
        let grown = atoms(&owner).await - before;
        assert!(grown < 20, "{grown} atoms");
    });
}

#[test]
fn generated_code_is_shown_in_both_forms() {
    let home = Home::new("codegen");
    home.start(&[]);
    block_on(async {
        let observer = observer(&home).await;
        let erlang = request(&observer, "show-codegen", json!({"code": "40 + 2"})).await;
        assert!(erlang["erlang"].as_str().unwrap().contains("40"), "{erlang:?}");
        let core = request(
            &observer,
            "show-codegen",
            json!({"code": "40 + 2", "form": "core"}),
        )
        .await;
        assert!(
            core["core_erlang"].as_str().unwrap().contains("module 'session'"),
            "{core:?}"
        );
    });
}

/// Questions of an observer wait for each other, not the owner for them; what its client left is not worked on.
#[test]
fn an_observer_does_not_hold_up_the_owner() {
    let home = Home::new("hostile");
    home.start(&[]);
    block_on(async {
        let owner = home.connect().await;
        let observer = observer(&home).await;
        let large: String = (0..20_000)
            .map(|n| format!("x{n} := {n} + #s{n} size.\n"))
            .collect();
        let asked: Vec<_> = (0..40)
            .map(|_| {
                let fields = fields(json!({"code": large, "form": "core"}));
                observer.request("show-codegen", fields).unwrap()
            })
            .collect();
        let mut answered: Map<String, Value> = Map::new();
        for n in 0..20 {
            let answer = eval(&owner, &format!("{n} + 1")).await;
            answered.insert(n.to_string(), answer["value"].clone());
        }
        assert_eq!(answered.len(), 20);
        assert!(
            answered
                .iter()
                .all(|(n, value)| value.as_u64() == n.parse::<u64>().ok().map(|n| n + 1))
        );
        drop(asked);
        drop(observer);
        // The last of its work goes with it: nothing but daemon, node and compilers is left.
        let deadline = Instant::now() + Duration::from_secs(10);
        while home.processes().iter().any(|pid| is_printer(*pid)) {
            assert!(Instant::now() < deadline, "work for a client that left goes on");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert_eq!(eval(&owner, "2 + 3").await["value"], 5);
    });
}

fn is_printer(pid: u32) -> bool {
    let words = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    String::from_utf8_lossy(&words).contains("printer")
}
