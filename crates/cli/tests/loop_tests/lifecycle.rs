//! E21, E22: signals, second runs, single runs.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{Place, touch, wait_for};

const SLOW_BOOT: &str = r#"
startup_workflows = ["boot"]
watch.go.paths = ["go"]
process.p.command = ["sh", "-c", "trap 'echo term >> got; exit 0' TERM; sleep 1000 & wait"]
hook.slow.command = ["sleep", "1000"]
workflow.boot.steps = [{ action = "run_hook", hook = "slow" }]
workflow.go.steps = [{ action = "log", message = "go" }]
"#;

/// Wait until the process and the hook of [`SLOW_BOOT`] run.
fn wait_for_boot(place: &Place) {
    // The loop, the shell and its sleep, the hook.
    wait_for("everything to run", || {
        (place.inhabitants().len() >= 4).then_some(())
    });
}

#[test]
fn e21_signals_end_the_run_in_order() {
    for (signal, word) in [
        (Signal::INT, "ctrl-c"),
        (Signal::TERM, "SIGTERM"),
        (Signal::HUP, "SIGHUP"),
    ] {
        let place = Place::new(SLOW_BOOT);
        let mut run = place.begin(&[]);
        run.wait_log("running workflow boot");
        wait_for_boot(&place);
        let began = Instant::now();
        run.signal(signal);
        assert_eq!(run.wait().code(), Some(0), "{}", run.log());
        assert!(began.elapsed() < Duration::from_secs(5));
        assert!(run.log().contains(&format!("received {word}, shutting down")));
        assert_eq!(place.read("got"), "term\n");
        assert!(place.inhabitants().is_empty());
        assert!(!place.path(".devloop/loop.sock").exists());
    }
}

#[test]
fn e21_a_killed_loop_leaves_nobody_and_the_next_one_starts() {
    let place = Place::new(SLOW_BOOT);
    let mut run = place.begin(&[]);
    run.wait_log("running workflow boot");
    wait_for_boot(&place);
    run.signal(Signal::KILL);
    let began = Instant::now();
    let mut next = place.begin(&[]);
    wait_for("the old children to end", || {
        (place.lines("got") >= 1).then_some(())
    });
    assert!(began.elapsed() < Duration::from_secs(6));
    next.wait_log("running workflow boot");
    let _ = run.wait();
    next.signal(Signal::TERM);
    assert_eq!(next.wait().code(), Some(0));
}

#[test]
fn e21_a_second_run_is_refused() {
    let place = Place::new(SLOW_BOOT);
    let run = place.begin(&[]);
    run.wait_log("running workflow boot");
    let second = place.cli(&["run"]);
    assert_eq!(second.status.code(), Some(4));
    let text = String::from_utf8(second.stderr).unwrap();
    let expected = format!(
        "another loop (pid {}) owns {}",
        run.id(),
        place.path(".devloop/state.json").display()
    );
    assert!(text.contains(&expected), "{text}");
    assert!(run.log().contains("running workflow boot") && !run.log().contains("shutting down"));
    run.stop();
}

#[test]
fn a_second_signal_forces_the_end() {
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\n\
         process.p.command = [\"sh\", \"-c\", \"trap '' TERM; echo up > up; while :; do sleep 1; done\"]\n",
    );
    let mut run = place.start();
    place.wait_lines("up", 1);
    run.signal(Signal::INT);
    run.wait_log("received ctrl-c, shutting down");
    let began = Instant::now();
    run.signal(Signal::TERM);
    assert_eq!(run.wait().code(), Some(130));
    assert!(began.elapsed() < Duration::from_secs(3));
}

#[test]
fn an_ignored_hangup_stays_ignored() {
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\n",
    );
    let run = place.begin_in_shell("trap '' HUP; exec \"$@\"");
    run.wait_log("loop ready");
    run.signal(Signal::HUP);
    touch(&place.path("go"));
    run.wait_count("go", 1);
    run.stop();
}

const ONCE: &str = r#"
startup_workflows = ["ok"]
watch.go = { paths = ["go"], workflow = "ok" }
process.db.command = ["sleep", "1000"]
hook.bad.command = ["false"]
workflow.ok.steps = [{ action = "log", message = "ok {{last_changed_files}}" }]
workflow.bad.steps = [{ action = "run_hook", hook = "bad" }]
"#;

#[test]
fn e22_a_single_run_ends_by_itself() {
    let place = Place::new(ONCE);
    let output = place.cli(&["run", "--once"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("ok []"), "{text}");
    assert!(
        text.contains("stopped process db") && !text.contains("watching"),
        "{text}"
    );
    assert!(place.inhabitants().is_empty());

    let output = place.cli(&[
        "run",
        "--once",
        "--workflow",
        "bad",
        "--workflow",
        "ok",
        "--change",
        "go",
    ]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    let failed = text
        .find("workflow failed; continuing runtime workflow=bad")
        .unwrap();
    assert!(failed < text.find("ok [\"go\"]").unwrap());
}

#[test]
fn e22_a_dry_run_does_nothing() {
    let place = Place::new(ONCE);
    let output = place.cli(&["run", "--dry-run", "--change", "go"]);
    assert_eq!(output.status.code(), Some(0));
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("change go: group go -> workflow ok"), "{text}");
    assert!(text.contains("ok step 1 log"), "{text}");
    assert!(text.contains("command sleep 1000"), "{text}");
    assert!(!place.path(".devloop").exists());
}

#[test]
fn a_single_run_can_run_out_of_time() {
    let place = Place::new(
        "startup_workflows = [\"go\"]\nwatch.go.paths = [\"go\"]\n\
         workflow.go.steps = [{ action = \"sleep_ms\", duration_ms = 600000 }]\n",
    );
    let began = Instant::now();
    let output = place.cli(&["run", "--once", "--timeout-ms", "300"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(began.elapsed() < Duration::from_secs(10));
}

#[test]
fn a_process_that_cannot_start_ends_the_startup() {
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\n\
         process.a.command = [\"sleep\", \"1000\"]\nprocess.b.command = [\"no-such-program-here\"]\n",
    );
    let output = place.cli(&["run"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("failed to start process 'b': "), "{text}");
    assert!(text.contains("stopped process a"), "{text}");
    assert!(place.inhabitants().is_empty());
}
