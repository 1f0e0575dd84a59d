//! A loop that the workspace runs, from the prompt.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::House;

const CONFIG: &str = concat!(
    include_str!("../shared/devloop.toml"),
    r#"
[workflow.boot]
steps = [{ action = "log", message = "booted" }]

[workflow.states]
steps = [
  { action = "write_state", key = "first", value = "1" },
  { action = "run_hook", hook = "good" },
  { action = "notify_reload" },
  { action = "run_workflow", workflow = "boot" },
  { action = "write_state", key = "third", value = "3" },
]

[hook.good]
command = ["sh", "-c", "echo 2"]
capture = "text"
state_key = "second"

[workflow.slow]
steps = [{ action = "sleep_ms", duration_ms = 60000 }]
"#
);

/// A loop that runs in the workspace, once it is ready and its server has spoken.
fn hosted(house: &House) -> Child {
    std::fs::create_dir_all(house.0.path("work/css")).unwrap();
    std::fs::write(house.0.path("work/devloop.toml"), CONFIG).unwrap();
    let mut child = house
        .0
        .command("beamtalk")
        .args(["loop", "run", "--workspace", "--json"])
        .env("GREETED", "kim")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    // A process is there before its first words are.
    let mut awaited = vec![r#""kind":"ready""#, "hello kim"];
    while !awaited.is_empty() {
        let line = lines.next().expect("the loop becomes ready").unwrap();
        awaited.retain(|one| !line.contains(one));
    }
    // What it says further is read, so that it never waits.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

/// The exit code of a command that ends by itself.
fn ended(child: &mut Child) -> Option<i32> {
    let limit = Instant::now() + Duration::from_secs(30);
    while Instant::now() < limit {
        if let Some(status) = child.try_wait().unwrap() {
            return status.code();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    child.kill().unwrap();
    panic!("the command that ran the loop did not end");
}

#[test]
fn the_loop_is_an_object() {
    let house = House::new();
    house.check(
        "Loop isRunning
         (Loop run: #boot) error kind
         [Loop processes] on: Error do: [:e | e kind]",
        "false\n#loop_not_running\n#loop_not_running",
    );
    let mut attached = hosted(&house);
    house.check(
        r#"Loop isRunning
           (Loop process: #server) state
           Loop processes collect: [:p | p name]
           (Loop process: #server) tail: 5
           (Loop process: #server) restart
           (Loop process: #server) pid class
           (Loop process: #server) uptime class
           (Loop process: #twin) state
           (Loop process: #twin) start
           (Loop process: #twin) stop
           ((Loop process: #twin) lastExit) at: #signal
           Loop workflows
           (Loop run: #boot) unwrap await
           (Loop run: #boot changed: #("a.css")) unwrap workflow
           (Loop run: #fail) unwrap await error message
           (Loop run: #nope) error kind
           [Loop process: #nope] on: Error do: [:e | e kind]
           Loop state at: "absent"
           Loop state at: "absent" ifAbsent: [7]
           Loop post: "/about" to: #page
           Loop post: "/about" to: #page
           Loop state at: "page"
           (Loop post: "NO" to: #page) error kind
           (Loop post: "/x" to: #nope) error kind
           [Loop state at: "page" put: 3] on: Error do: [:e | e kind]
           Loop events
           (Loop status at: #processes) size"#,
        r#"true
            #running
            #(#server, #twin)
            #("hello kim")
            Result ok: #running
            Integer
            Duration
            #stopped
            Result ok: #running
            Result ok: #stopped
            15
            #(#boot, #fail, #slow, #states)
            Result ok: #ok
            #boot
            "fail step 1 run_hook: hook 'bad' failed with exit status: 1"
            #loop_unknown_workflow
            #loop_unknown_process
            nil
            7
            Result ok: true
            Result ok: false
            "/about"
            #loop_rejected
            #loop_unknown_event
            #does_not_understand
            #(#page)
            2"#,
    );
    // A second loop has no place; the one that runs is not disturbed.
    let (text, status) = house.0.run("beamtalk loop run --workspace");
    assert!(
        text.contains("runs a loop already") && status == 4,
        "{status}: {text}"
    );
    house.check("Loop stop\nLoop isRunning", "Result ok: nil\nfalse");
    assert_eq!(ended(&mut attached), Some(0));
}

#[test]
fn announcements_come_in_order_and_a_slow_subscriber_delays_nobody() {
    let house = House::new();
    let mut attached = hosted(&house);
    house.check(
        r#"count := AtomicCounter new: #seen. 1
           heard := Ets new: #heard type: #orderedSet. 2
           Loop when: LoopAnnouncement do: [:e | Timer sleep: 100000]. 3
           Loop when: LoopAnnouncement do: [:e | e frobnicate]. 4
           Loop when: LoopAnnouncement do: [:e | heard at: count increment put: e class name]. 5
           (Loop run: #boot) unwrap await
           (Loop process: #server) restart
           (Loop run: #fail) unwrap await isError
           failed := [:all | all includes: #LoopWorkflowFailed]. 6
           [failed value: (heard keys collect: [:k | heard at: k])] whileFalse: [Timer sleep: 5]
           named := [:text | (heard keys collect: [:k | heard at: k]) select: [:name | name asString startsWith: text]]. 7
           named value: "LoopWorkflow"
           named value: "LoopProcess""#,
        r"1
            2
            3
            4
            5
            Result ok: #ok
            Result ok: #running
            true
            6
            nil
            7
            #(#LoopWorkflowStarted, #LoopWorkflowFinished, #LoopWorkflowStarted, #LoopWorkflowFailed)
            #(#LoopProcessExited, #LoopProcessStarted)",
    );
    drop(attached.kill());
    assert!(ended(&mut attached).is_none(), "it was killed");
    // Nobody is attached any more: the loop ends, the workspace does not.
    house.ask("[Loop isRunning] whileTrue: [Timer sleep: 10]");
}

/// A change of the state is announced where it happened among the other things, not after them.
#[test]
fn changes_of_the_state_are_announced_in_order() {
    let house = House::new();
    let mut attached = hosted(&house);
    house.check(
        r#"count := AtomicCounter new: #ordered. 1
           heard := Ets new: #orderedHeard type: #orderedSet. 2
           Loop when: LoopAnnouncement do: [:e | heard at: count increment put: ((e respondsTo: #key) ifTrue: [e key] ifFalse: [e class name asString])]. 3
           (Loop run: #states) unwrap await
           all := [heard keys collect: [:k | heard at: k]]. 4
           [(all value) last =:= "LoopWorkflowFinished" and: [(all value select: [:each | each =:= "LoopWorkflowFinished"]) size =:= 2]] whileFalse: [Timer sleep: 5]
           (all value) reject: [:each | each startsWith: "last_"]"#,
        r#"1
            2
            3
            Result ok: #ok
            4
            nil
            #("LoopWorkflowStarted", "first", "second", "LoopReloadSent", "LoopWorkflowStarted", "LoopWorkflowFinished", "third", "LoopWorkflowFinished")"#,
    );
    house.0.value("beamtalk loop stop");
    ended(&mut attached);
}

#[test]
fn what_runs_ends_with_the_daemon() {
    let house = House::new();
    let mut attached = hosted(&house);
    let pid = house.ask("(Loop process: #server) pid");
    let pid: i32 = pid.trim().parse().unwrap();
    let (daemon, _) = house
        .0
        .run("beamtalk workspace status --json | tr ',' '\\n' | sed -n 's/^.*\"pid\": *//p' | head -1");
    let daemon: i32 = daemon.trim().parse().unwrap();
    let alive = |pid: i32| std::path::Path::new(&format!("/proc/{pid}")).exists();
    assert!(alive(pid) && alive(daemon));
    assert_eq!(house.0.run(&format!("kill -9 {daemon}")).1, 0);
    let limit = Instant::now() + Duration::from_secs(20);
    while alive(pid) {
        assert!(Instant::now() < limit, "the process outlived the daemon");
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(ended(&mut attached), Some(1));
}

/// A workflow of the loop that the workspace hosts is run by a tool, and its end is told; without the right to, it is
/// not run; what is not declared is refused.
#[test]
fn a_workflow_is_run_by_a_client() {
    let house = House::new();
    let mut child = hosted(&house);
    let call = |right: &str, tool: &str, arguments: &str| {
        let params = format!(
            r#"{{"name":"{tool}","arguments":{arguments},"_meta":{{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}"#
        );
        let line = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{params}}}"#);
        // The input stays open until the answer is there.
        let script = format!(
            "printf '[mcp]\\nloop = \"{right}\"\\n' > $HOME/.beamtalk/config.toml; chmod 600 $HOME/.beamtalk/config.toml\n\
             rm -f in; mkfifo in; beamtalk mcp --toolsets loop < in > out & exec 3> in; printf '%s\\n' '{line}' >&3\n\
             until [ -s out ]; do sleep 0.02; done; exec 3>&-; wait; cat out"
        );
        let (text, _) = house.0.run(&script);
        let answer: serde_json::Value =
            serde_json::from_str(text.trim()).unwrap_or_else(|_| panic!("{text}"));
        let text = answer["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|_| panic!("{answer}"))
    };
    let ran = call("control", "run_workflow", r#"{"workflow":"boot"}"#);
    assert_eq!(ran["result"], "ok", "{ran}");
    let failed = call("control", "run_workflow", r#"{"workflow":"fail"}"#);
    assert!(
        failed["result"] == "failed" && failed["error"].is_string(),
        "{failed}"
    );
    let queued = call(
        "control",
        "run_workflow",
        r#"{"workflow":"boot","wait":false,"changed":["css/a.css"]}"#,
    );
    assert_eq!(queued["result"], "queued");
    let unknown = call("control", "run_workflow", r#"{"workflow":"nope"}"#);
    assert_eq!(unknown["error"]["kind"], "loop_unknown_workflow", "{unknown}");
    for right in ["observe", "post"] {
        let denied = call(right, "run_workflow", r#"{"workflow":"boot"}"#);
        assert_eq!(denied["error"]["kind"], "loop_forbidden", "{denied}");
    }
    // The right goes with what is evaluated.
    for (right, code, is_allowed) in [
        ("observe", "Loop run: #boot", false),
        ("observe", "(Loop process: #twin) start", false),
        ("observe", "Loop post: #page to: #page", false),
        ("observe", "Loop stop", false),
        ("observe", "Loop workflows size", true),
        ("none", "Loop status", false),
        ("none", "Loop isRunning", true),
        ("post", "Loop run: #boot", false),
        ("control", "(Loop run: #boot) isOk", true),
    ] {
        let found = call(right, "evaluate", &format!(r#"{{"code":"{code}"}}"#));
        let kind = if is_allowed { "" } else { "loop_forbidden" };
        assert_eq!(
            found["error"]["kind"].as_str().unwrap_or_default(),
            kind,
            "{right} {code}: {found}"
        );
    }
    let status = call("observe", "loop_status", "{}");
    assert!(
        status["processes"].is_array() && status["runs"].to_string().contains("\"cause\""),
        "{status}"
    );
    let stopped = call(
        "control",
        "control_process",
        r#"{"process":"server","command":"stop"}"#,
    );
    assert_eq!(stopped["state"], "stopped", "{stopped}");
    house.0.value("beamtalk loop stop");
    ended(&mut child);
}
