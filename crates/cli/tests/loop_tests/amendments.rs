//! What the config can say beyond the first version: order, quiet windows, ignore files, busy
//! workflows, edited configs, silent polls, programs that stay.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Place, holds_for, is_alive, touch, wait_for};

#[test]
fn processes_start_after_those_they_need_and_stop_before_them() {
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\n\
         process.app = { command = [\"sh\", \"-c\", \"trap 'sleep 0.3; echo app down >> order; exit 0' TERM; echo app up >> order; while :; do sleep 0.1; done\"], after = [\"db\"] }\n\
         process.db = { command = [\"sh\", \"-c\", \"trap 'echo db down >> order; exit 0' TERM; sleep 0.5; echo db up >> order; echo ready=yes; while :; do sleep 0.1; done\"], output = { rules = [{ state_key = \"db\", pattern = \"ready=(.*)\" }] }, readiness = { kind = \"state_key\", key = \"db\", interval_ms = 50 } }\n",
    );
    let run = place.start();
    place.wait_lines("order", 2);
    run.stop();
    assert_eq!(place.read("order"), "db up\napp up\napp down\ndb down\n");
    place.write(
        "devloop.toml",
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\n\
         process.a = { command = [\"x\"], after = [\"b\", \"zz\"] }\nprocess.b = { command = [\"x\"], after = [\"a\"] }\n",
    );
    let output = place.cli(&["validate"]);
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        errors.contains("error: invalid process 'a': after references missing process 'zz'\n"),
        "{errors}"
    );
    assert!(
        errors.contains("error: invalid process 'a': after recursion detected: a -> b -> a\n"),
        "{errors}"
    );
}

#[test]
fn a_dependency_that_fails_fails_the_start_and_nothing_else() {
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"still here\" }]\n\
         process.late = { command = [\"touch\", \"started\"], after = [\"slow\"] }\n\
         process.slow = { command = [\"sleep\", \"1000\"], readiness = { kind = \"state_key\", key = \"never\", interval_ms = 50, timeout_ms = 300 } }\n",
    );
    let run = place.start();
    run.wait_log("failed to start process 'late': 'slow' did not become ready in time");
    touch(&place.path("go"));
    run.wait_count("still here", 1);
    assert!(!place.path("started").exists());
    run.stop();
}

#[test]
fn a_quiet_window_waits_until_the_writing_is_over() {
    let place = Place::new(
        "debounce_ms = 300\ndebounce_mode = \"quiet\"\nwatch.src.paths = [\"src/\"]\n\
         workflow.src.steps = [{ action = \"log\", message = \"saw {{last_changed_files}}\" }]\n",
    );
    std::fs::create_dir(place.path("src")).unwrap();
    let run = place.start();
    // Longer than one window, with pauses shorter than one.
    for name in ["a", "b", "c", "d", "e", "f"] {
        touch(&place.path(&format!("src/{name}")));
        std::thread::sleep(Duration::from_millis(100));
    }
    run.wait_log("saw [");
    assert_eq!(run.count("running workflow src"), 1, "{}", run.log());
    run.stop();
}

#[test]
fn ignore_files_are_honoured_where_a_group_says_so() {
    let place = Place::new(
        "debounce_ms = 30\nwatch.clean = { paths = [\"**\"], ignore_files = true }\nwatch.all = { paths = [\"**/*.tmp\"] }\n\
         workflow.clean.steps = [{ action = \"log\", message = \"clean {{last_changed_files}}\" }]\n\
         workflow.all.steps = [{ action = \"log\", message = \"all {{last_changed_files}}\" }]\n",
    );
    place.write(".gitignore", "*.tmp\nbuild/\n");
    place.write("sub/.ignore", "!keep.tmp\n");
    std::fs::create_dir(place.path("build")).unwrap();
    let run = place.start();
    touch(&place.path("build/x"));
    touch(&place.path("a.tmp"));
    run.wait_count("all [\"a.tmp\"]", 1);
    touch(&place.path("sub/keep.tmp"));
    run.wait_count("clean [\"sub/keep.tmp\"]", 1);
    touch(&place.path("real"));
    run.wait_count("clean [\"real\"]", 1);
    assert_eq!(
        run.said()
            .iter()
            .filter(|line| line.starts_with("clean "))
            .count(),
        2
    );
    run.stop();
}

#[test]
fn a_busy_workflow_begins_anew_when_its_group_says_so() {
    let place = Place::new(
        "debounce_ms = 30\nwatch.go = { paths = [\"in/*\"], on_busy = \"restart\" }\n\
         hook.slow.command = [\"sh\", \"-c\", 'echo \"$DEVLOOP_CHANGED_FILES_JSON\" >> begun; while [ ! -e free ]; do sleep 0.02; done; echo done >> ended']\n\
         workflow.go = { steps = [{ action = \"run_hook\", hook = \"slow\" }], triggers = [\"after\"] }\n\
         workflow.after.steps = [{ action = \"log\", message = \"after\" }]\n",
    );
    std::fs::create_dir(place.path("in")).unwrap();
    let run = place.start();
    touch(&place.path("in/a"));
    place.wait_lines("begun", 1);
    touch(&place.path("in/b"));
    place.wait_lines("begun", 2);
    touch(&place.path("free"));
    run.wait_count("after", 1);
    assert_eq!(place.read("begun"), "[\"in/a\"]\n[\"in/a\",\"in/b\"]\n");
    assert_eq!(place.lines("ended"), 1);
    assert_eq!(run.count("after"), 1);
    run.stop();
}

#[test]
fn an_edited_config_is_applied_and_a_broken_one_is_not() {
    let config = |message: &str, extra: &str| {
        format!(
            "debounce_ms = 30\nreload_config = true\nwatch.go.paths = [\"go\"]\n\
             workflow.go.steps = [{{ action = \"log\", message = \"{message}\" }}]\n\
             process.same.command = [\"sh\", \"-c\", \"echo x >> same; sleep 1000\"]\n{extra}"
        )
    };
    let place = Place::new(&config(
        "one",
        "process.old.command = [\"sh\", \"-c\", \"echo $$ > old; sleep 1000\"]\n",
    ));
    let run = place.start();
    place.wait_lines("old", 1);
    place.wait_lines("same", 1);
    let old: u32 = place.read("old").trim().parse().unwrap();
    place.write("devloop.toml", "not [[ toml");
    run.wait_log("the edited config is not valid");
    touch(&place.path("go"));
    run.wait_count("one", 1);
    assert!(is_alive(old));
    let new = "process.new.command = [\"sh\", \"-c\", \"echo x >> new; sleep 1000\"]\n";
    place.write("devloop.toml", &config("two", new));
    run.wait_log("the edited config is in force");
    place.wait_lines("new", 1);
    wait_for("the old one to be gone", || (!is_alive(old)).then_some(()));
    touch(&place.path("go"));
    run.wait_count("two", 1);
    assert_eq!(place.lines("same"), 1, "what is unchanged keeps running");
    place.write(
        "devloop.toml",
        &format!("state_file = \"elsewhere.json\"\n{}", config("three", "")),
    );
    run.wait_log("state_file changed; restart the loop to apply that");
    run.wait_count("the edited config is in force", 2);
    touch(&place.path("go"));
    run.wait_count("three", 1);
    assert!(!place.path("elsewhere.json").exists());
    run.stop();
}

#[test]
fn a_poll_that_brings_nothing_new_can_be_silent() {
    let place = Place::new(
        "watch.go.paths = [\"go\"]\n\
         hook.quiet = { command = [\"sh\", \"-c\", \"echo x >> polls; cat value\"], capture = \"text\", state_key = \"v\", output = \"change\", observe = { workflow = \"go\", interval_ms = 50 } }\n\
         workflow.go.steps = [{ action = \"log\", message = \"value {{v}}\" }]\n",
    );
    place.write("value", "one\n");
    let run = place.start();
    place.wait_lines("polls", 5);
    assert_eq!(run.out(), "[sh quiet] one\n");
    place.write("value", "two\n");
    run.wait_count("value two", 1);
    run.wait_out("[sh quiet] two\n");
    let polls = place.lines("polls");
    place.wait_lines("polls", polls + 3);
    assert_eq!(run.out(), "[sh quiet] one\n[sh quiet] two\n");
    run.stop();
}

/// A poll that hangs costs the files that are saved no time.
#[test]
fn a_slow_poll_delays_no_save() {
    let place = Place::new(
        "debounce_ms = 30\nwatch.go.paths = [\"go\"]\n\
         hook.stuck = { command = [\"sh\", \"-c\", \"echo up > polling; sleep 1000\"], capture = \"text\", state_key = \"v\", observe = { workflow = \"go\" } }\n\
         workflow.go.steps = [{ action = \"log\", message = \"saved\" }]\n",
    );
    let run = place.start();
    place.wait_lines("polling", 1);
    let began = Instant::now();
    touch(&place.path("go"));
    run.wait_count("saved", 1);
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    run.stop();
}

#[test]
fn detached_programs_outlive_the_loop_and_are_found_again() {
    let place = Place::new(
        "debounce_ms = 20\nwatch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"run_hook\", hook = \"warm\" }, { action = \"log\", message = \"warmed\" }]\n\
         process.stay = { command = [\"sh\", \"-c\", \"echo $$ >> stay; while :; do sleep 0.1; done\"], detached = true }\n\
         hook.warm = { command = [\"sh\", \"-c\", \"(setsid sh -c 'echo $$ > warm; while :; do sleep 0.1; done' > /dev/null 2>&1 &); while [ ! -e warm ]; do sleep 0.01; done\"], detached = true }\n",
    );
    let run = place.start();
    place.wait_lines("stay", 1);
    touch(&place.path("go"));
    run.wait_count("warmed", 1);
    let pid = |name: &str| -> u32 { place.read(name).lines().next().unwrap().parse().unwrap() };
    let (stay, warm) = (pid("stay"), pid("warm"));
    let status = String::from_utf8_lossy(&place.cli(&["status"]).stdout).into_owned();
    assert!(status.contains("DETACHED"), "{status}");
    run.stop();
    assert!(is_alive(stay) && is_alive(warm));
    // The next run finds it instead of starting another one, and can stop it.
    let run = place.start();
    holds_for(Duration::from_millis(300), "one is enough", || {
        place.lines("stay") == 1
    });
    let status: serde_json::Value = serde_json::from_slice(&place.cli(&["status", "--json"]).stdout).unwrap();
    assert_eq!(status["processes"][0]["pid"], stay);
    assert_eq!(place.cli(&["stop", "stay"]).status.code(), Some(0));
    assert!(!is_alive(stay));
    run.stop();
    kill_process(Pid::from_raw(i32::try_from(warm).unwrap()).unwrap(), Signal::KILL).unwrap();
}
