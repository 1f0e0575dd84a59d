//! What goes wrong around a loop, and how it stands it.

use std::time::{Duration, Instant};

use rustix::process::Signal;
use serde_json::json;

use crate::support::{Place, holds_for, is_alive, touch, wait_for};

const LOG: &str = "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\n";

#[test]
fn a_child_that_ignores_sigterm_is_killed_after_its_grace() {
    let place = Place::new(&format!(
        "{LOG}process.p = {{ command = [\"sh\", \"-c\", \"trap '' TERM; echo up > up; while :; do sleep 1; done\"], stop_grace_ms = 400 }}\n"
    ));
    let run = place.start();
    place.wait_lines("up", 1);
    let began = Instant::now();
    run.stop();
    let took = began.elapsed();
    assert!(took > Duration::from_millis(350), "{took:?}");
}

#[test]
fn descendants_in_other_sessions_are_found() {
    // One keeps its parent, one is orphaned; both made a session of their own.
    let place = Place::new(&format!(
        "{LOG}process.p.command = [\"sh\", \"-c\", \"setsid sh -c 'echo $$ > kept; exec sleep 1000' & (setsid sh -c 'echo $$ > orphan; exec sleep 1000' &) ; wait\"]\n"
    ));
    let run = place.start();
    let id = |file: &str| wait_for(file, || place.read(file).trim().parse::<u32>().ok());
    let (kept, orphan) = (id("kept"), id("orphan"));
    assert!(is_alive(kept) && is_alive(orphan));
    run.stop();
    assert!(!is_alive(kept) && !is_alive(orphan));
}

#[test]
fn a_thousand_crashes_in_a_row_do_no_harm() {
    let place = Place::new(&format!(
        "{LOG}process.p = {{ command = [\"false\"], restart = \"always\", backoff = {{ initial_ms = 0, max_ms = 0, reset_after_ms = 60000 }} }}\n"
    ));
    let run = place.begin(&["--quiet"]);
    let restarts = || {
        let output = place.cli(&["status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
        status["processes"][0]["restarts"].as_u64()
    };
    wait_for("a thousand restarts", || {
        restarts().filter(|count| *count >= 1000)
    });
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", run.id()))
        .unwrap()
        .count();
    assert!(descriptors < 60, "{descriptors} descriptors are open");
    touch(&place.path("go"));
    wait_for("a run", || run.log().contains(" go\n").then_some(()));
    run.stop();
}

#[test]
fn a_line_without_end_passes_through_in_little_memory() {
    let place = Place::new(&format!(
        "{LOG}process.p = {{ command = [\"sh\", \"-c\", \"head -c 268435456 /dev/zero | tr '\\\\0' x; echo; echo end=1\"], output = {{ inherit = false, rules = [{{ state_key = \"end\", pattern = \"end=(.)\" }}] }} }}\n"
    ));
    let run = place.start();
    place.wait_state("end", json!("1"));
    let status = std::fs::read_to_string(format!("/proc/{}/status", run.id())).unwrap();
    let peak: u64 = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .and_then(|line| line.split_whitespace().next()?.parse().ok())
        .unwrap();
    assert!(peak < 80_000, "{peak} kB were needed");
    run.stop();
}

#[test]
fn a_reader_that_does_not_read_stops_neither_loop_nor_end() {
    // Nobody reads standard output here until the loop has ended.
    let place = Place::new(&format!("{LOG}process.p.command = [\"yes\"]\n"));
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_beamtalk"))
        .args(["loop", "run"])
        .current_dir(place.path(""))
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::fs::File::create(place.path("log")).unwrap())
        .spawn()
        .unwrap();
    wait_for("ready", || place.read("log").contains("loop ready").then_some(()));
    touch(&place.path("go"));
    wait_for("a run", || place.read("log").contains(" go\n").then_some(()));
    let pid = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::TERM).unwrap();
    let status = wait_for("the end", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(0));
}

#[test]
fn a_closed_output_is_no_reason_to_stop() {
    let place = Place::new(&format!(
        "{LOG}process.p.command = [\"sh\", \"-c\", \"while :; do echo x; sleep 0.01; done\"]\n"
    ));
    let run = place.begin_in_shell("\"$@\" | head -n 1");
    run.wait_log("loop ready");
    touch(&place.path("go"));
    run.wait_count("go", 1);
    assert_eq!(place.cli(&["stop"]).status.code(), Some(0));
}

const WRITES: &str = "watch.go.paths = [\"go\"]\nevent.e = { state_key = \"k\", workflow = \"go\" }\n\
    workflow.go.steps = [{ action = \"write_state\", key = \"n\", value = \"{{k}} {{last_changed_files}}\" }, { action = \"log\", message = \"written\" }]\n";

#[test]
fn a_state_file_that_cannot_be_written_fails_the_step_and_not_the_run() {
    let place = Place::new(WRITES);
    let run = place.start();
    // A directory in its place cannot be replaced by a file, whoever tries.
    std::fs::remove_file(place.path(".devloop/state.json")).unwrap();
    place.write(".devloop/state.json/in-the-way", "");
    touch(&place.path("go"));
    run.wait_log("error=go step 1 write_state: failed to write state file");
    let output = place.cli(&["trigger", "e", "lost"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("rejected: state")
    );
    let state = String::from_utf8(place.cli(&["state"]).stdout).unwrap();
    assert!(!state.contains("lost"), "the value is rolled back: {state}");
    std::fs::remove_dir_all(place.path(".devloop/state.json")).unwrap();
    assert_eq!(
        place.cli(&["trigger", "e", "kept", "--wait"]).status.code(),
        Some(0)
    );
    assert_eq!(place.state()["k"], "kept");
    run.stop();
}

#[test]
fn a_full_disk_fails_the_step_and_keeps_the_old_file() {
    let place = Place::new(WRITES);
    // A limit on file size stands for a full disk: the write is refused in the middle.
    let run = place.begin_in_shell("trap '' XFSZ; ulimit -f 1; exec \"$@\"");
    run.wait_log("loop ready");
    assert_eq!(
        place.cli(&["trigger", "e", "small", "--wait"]).status.code(),
        Some(0)
    );
    let before = place.read(".devloop/state.json");
    let large = "x".repeat(4000);
    assert_eq!(place.cli(&["trigger", "e", &large]).status.code(), Some(1));
    assert_eq!(place.read(".devloop/state.json"), before);
    assert!(
        !std::fs::read_dir(place.path(".devloop"))
            .unwrap()
            .flatten()
            .any(|entry| { entry.file_name().to_string_lossy().contains(".tmp-") })
    );
    run.stop();
}

#[test]
fn a_corrupt_state_file_is_fatal_unless_fresh_state_is_asked_for() {
    let place = Place::new(LOG);
    place.write(".devloop/state.json", "{ \"half\": ");
    let output = place.cli(&["run"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains(&format!(
        "failed to parse state file {}",
        place.path(".devloop/state.json").display()
    )));
    assert_eq!(place.read(".devloop/state.json"), "{ \"half\": ");
    assert_eq!(
        place.cli(&["run", "--once", "--fresh-state"]).status.code(),
        Some(0)
    );
    assert!(place.state().is_object());
}

#[test]
fn a_hook_past_its_time_or_its_size_is_stopped() {
    let place = Place::new(
        "startup_workflows = [\"slow\", \"big\"]\nwatch.go = { paths = [\"go\"], workflow = \"slow\" }\n\
         hook.slow = { command = [\"sh\", \"-c\", \"sleep 1000 & wait\"], timeout_ms = 200 }\n\
         hook.big = { command = [\"sh\", \"-c\", \"head -c 9000000 /dev/zero; sleep 1000\"], capture = \"text\", state_key = \"k\", output.inherit = false }\n\
         workflow.slow.steps = [{ action = \"run_hook\", hook = \"slow\" }]\n\
         workflow.big.steps = [{ action = \"run_hook\", hook = \"big\" }]\n",
    );
    let run = place.start();
    assert!(
        run.log().contains("hook 'slow' timed out after 200 ms"),
        "{}",
        run.log()
    );
    assert!(
        run.log().contains("hook 'big' produced more than 8388608 bytes"),
        "{}",
        run.log()
    );
    assert!(place.state()["k"].is_null());
    run.stop();
}

#[test]
fn what_a_hook_leaves_behind_is_ended_with_it() {
    let place = Place::new(
        "startup_workflows = [\"go\"]\nwatch.go.paths = [\"go\"]\n\
         hook.h.command = [\"sh\", \"-c\", \"sleep 1000 & echo $! > kid\"]\n\
         workflow.go.steps = [{ action = \"run_hook\", hook = \"h\" }, { action = \"log\", message = \"after\" }]\n",
    );
    let run = place.start();
    assert_eq!(run.count("after"), 1);
    let kid: u32 = place.read("kid").trim().parse().unwrap();
    assert!(!is_alive(kid));
    run.stop();
}

#[test]
fn leftovers_of_a_crashed_process_are_gone_before_it_starts_again() {
    let place = Place::new(&format!(
        "{LOG}process.p = {{ command = [\"sh\", \"-c\", \"sleep 1000 & echo $! >> kids; exit 1\"], restart = \"on_failure\", backoff.initial_ms = 50 }}\n"
    ));
    let run = place.start();
    place.wait_lines("kids", 3);
    let kids: Vec<u32> = place
        .read("kids")
        .lines()
        .map(|line| line.parse().unwrap())
        .collect();
    assert!(!is_alive(kids[0]) && !is_alive(kids[1]));
    run.stop();
}

#[test]
fn an_end_is_orderly_in_every_phase() {
    let place = Place::new(
        r#"
startup_workflows = ["boot"]
watch.go = { paths = ["go"], workflow = "boot" }
process.a = { command = ["sh", "-c", "sleep 1000"], readiness = { kind = "state_key", key = "never" } }
process.b = { command = ["false"], restart = "always" }
hook.h.command = ["sleep", "0.05"]
workflow.boot.steps = [{ action = "run_hook", hook = "h" }, { action = "restart_process", process = "a" }, { action = "sleep_ms", duration_ms = 60 }, { action = "wait_for_process", process = "a" }]
"#,
    );
    for delay in (0..400).step_by(25) {
        let mut run = place.begin(&[]);
        std::thread::sleep(Duration::from_millis(delay));
        if run_catches_signals(run.id()) {
            run.signal(Signal::TERM);
            assert_eq!(run.wait().code(), Some(0), "after {delay} ms:\n{}", run.log());
        } else {
            // Too early: the program has not begun to be a loop.
            run.wait_log("running workflow boot");
            run.signal(Signal::TERM);
            assert_eq!(run.wait().code(), Some(0));
        }
        assert!(place.inhabitants().is_empty(), "after {delay} ms");
    }
}

/// Whether the process handles SIGTERM by now.
fn run_catches_signals(id: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .unwrap_or("0")
        .trim()
        .to_owned();
    u64::from_str_radix(&mask, 16).is_ok_and(|mask| mask & (1 << 14) != 0)
}

#[test]
fn a_dead_guard_ends_the_run() {
    let place = Place::new(&format!("{LOG}process.p.command = [\"sleep\", \"1000\"]\n"));
    let mut run = place.start();
    // Any thread of the loop may have started the guard.
    let children: String = std::fs::read_dir(format!("/proc/{}/task", run.id()))
        .unwrap()
        .filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("children")).ok())
        .collect();
    let guard = children
        .split_whitespace()
        .find(|id| {
            std::fs::read_to_string(format!("/proc/{id}/cmdline"))
                .is_ok_and(|line| line.contains("__keepers"))
        })
        .unwrap();
    let pid = rustix::process::Pid::from_raw(guard.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, Signal::KILL).unwrap();
    assert_eq!(run.wait().code(), Some(1));
    assert!(run.log().contains("the guard process ended"));
}

#[test]
fn held_changes_are_not_lost_when_many_come() {
    let place = Place::new(
        "debounce_ms = 30\nwatch.all = { paths = [\"d/\"], workflow = \"go\" }\n\
         hook.h.command = [\"sh\", \"-c\", 'echo \"$DEVLOOP_CHANGED_FILES_JSON\" >> seen']\n\
         workflow.go.steps = [{ action = \"run_hook\", hook = \"h\" }]\n",
    );
    let run = place.start();
    std::fs::create_dir(place.path("d")).unwrap();
    for index in 0..3000 {
        std::fs::write(place.path(&format!("d/{index}")), "").unwrap();
    }
    wait_for("every file", || {
        let mut seen = std::collections::BTreeSet::new();
        for line in place.read("seen").lines() {
            let list: Vec<String> = serde_json::from_str(line).ok()?;
            seen.extend(list);
        }
        (seen.len() == 3000).then_some(())
    });
    holds_for(Duration::from_millis(50), "alive", || is_alive(run.id()));
    run.stop();
}

/// Put a pipe that nobody serves in the place of a file.
fn plant_pipe(place: &Place, relative: &str) {
    let path = place.path(relative);
    drop(std::fs::remove_file(&path));
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
}

#[test]
fn pipes_in_the_place_of_files_hold_nobody_up() {
    let place = Place::new(
        "reload_config = true\nwatch.go = { paths = [\"src/\"], ignore_files = true }\n\
         event.e = { state_key = \"k\", workflow = \"go\" }\n\
         workflow.go.steps = [{ action = \"log\", message = \"went\" }]\n",
    );
    place.write("src/a", "");
    let run = place.start();
    plant_pipe(&place, ".devloop/events.log");
    assert_eq!(place.cli(&["trigger", "e", "1", "--wait"]).status.code(), Some(0));
    plant_pipe(&place, "src/.gitignore");
    touch(&place.path("src/a"));
    run.wait_count("went", 2);
    plant_pipe(&place, "devloop.toml");
    run.wait_log("not a regular file");
    run.wait_log("the one before stays in force");
    let output = place.cli(&["validate"]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("not a regular file"), "{text}");
    assert_eq!(place.cli(&["status"]).status.code(), Some(0));
    run.stop();
    plant_pipe(&place, ".devloop/state.json");
    assert_eq!(place.cli(&["run"]).status.code(), Some(1));
}
