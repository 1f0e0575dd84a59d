//! E13 to E17: hooks, captures, nesting, rejected graphs.

use std::time::Duration;

use serde_json::json;

use crate::support::{Place, holds_for, touch, wait_for};

#[test]
fn e13_hooks_capture_text_and_json() {
    let place = Place::new(
        r#"
startup_workflows = ["boot"]
watch.go.paths = ["go"]
hook.word = { command = ["printf", "  two words \n\n"], capture = "text", state_key = "word" }
hook.facts = { command = ["echo", '{"n": 3, "on": true, "word": "json", "list": [1, 2]}'], capture = "json" }
workflow.boot.steps = [{ action = "run_hook", hook = "word" }, { action = "log", message = "<{{word}}>" }, { action = "run_hook", hook = "facts" }, { action = "log", message = "{{word}} {{n}} {{on}} {{list}}" }]
workflow.go.steps = [{ action = "log", message = "go" }]
"#,
    );
    let run = place.begin(&[]);
    // The file is whole at every instant, from its first to its last version.
    wait_for("ready", || {
        let text = place.read(".devloop/state.json");
        if !text.is_empty() {
            let parsed: serde_json::Map<String, serde_json::Value> =
                serde_json::from_str(&text).expect(&text);
            let keys: Vec<&str> = text
                .lines()
                .filter_map(|line| line.strip_prefix("  \"")?.split('"').next())
                .collect();
            assert!(keys.is_sorted() && keys.len() == parsed.len(), "{text}");
        }
        run.log().contains("loop ready").then_some(())
    });
    let said = run.said();
    let first = said.iter().position(|line| line == "<two words>").unwrap();
    let second = said.iter().position(|line| line == "json 3 true [1,2]").unwrap();
    assert!(first < second);
    run.wait_out("[echo facts] ");
    run.wait_out("[printf word]   two words \n");
    run.stop();
}

#[test]
fn e14_a_failing_hook_ends_the_execution() {
    let place = Place::new(
        r#"
watch.go.paths = ["go"]
hook.env = { command = ["./bin/show", "a b"], cwd = "sub", env = { COLOR = "teal", DEVLOOP_WORKFLOW = "forged" } }
hook.fail.command = ["sh", "-c", "echo why >&2; exit 7"]
workflow.go.steps = [{ action = "run_workflow", workflow = "inner" }, { action = "run_hook", hook = "fail" }, { action = "log", message = "never" }]
workflow.go.triggers = ["later"]
workflow.inner.steps = [{ action = "run_hook", hook = "env" }]
workflow.later.steps = [{ action = "log", message = "never too" }]
"#,
    );
    place.write_program(
        "bin/show",
        "#!/bin/sh\necho \"$PWD|$1|$COLOR|$DEVLOOP_WORKFLOW|$DEVLOOP_CHANGED_FILES_JSON\"\n",
    );
    std::fs::create_dir(place.path("sub")).unwrap();
    let run = place.start();
    touch(&place.path("go"));
    run.wait_log("hook 'fail' failed with exit status: 7");
    let expected = format!(
        "[show env] {}|a b|teal|inner|[\"go\"]\n",
        place.path("sub").display()
    );
    run.wait_out(&expected);
    let log = run.log();
    let why = log.find("[sh fail] why\n").unwrap();
    let error = log
        .find("workflow failed; continuing runtime workflow=go error=go step 2 run_hook: ")
        .unwrap();
    assert!(why < error, "output comes before the failure");
    holds_for(
        Duration::from_millis(300),
        "nothing runs after the failure",
        || !run.log().contains("never"),
    );
    assert_eq!(place.state()["last_workflow"], "go");
    touch(&place.path("go"));
    run.wait_count("running workflow go", 2);
    run.stop();
}

#[test]
fn e15_an_observed_hook_fires_on_change_only() {
    let place = Place::new(
        r#"
watch.go.paths = ["go"]
hook.branch = { command = ["cat", "branch.txt"], capture = "text", state_key = "branch", output = { inherit = false }, observe = { workflow = "announce", interval_ms = 300 } }
workflow.announce.steps = [{ action = "log", message = "branch {{branch}}" }]
workflow.go.steps = [{ action = "write_state", key = "other", value = "{{last_workflow}}" }]
"#,
    );
    place.write("branch.txt", "main");
    let run = place.start();
    run.wait_count("branch main", 1);
    holds_for(Duration::from_secs(2), "no change, no run", || {
        run.count("branch main") == 1
    });
    place.write("branch.txt", "dev");
    run.wait_count("branch dev", 1);
    touch(&place.path("go"));
    place.wait_state("other", json!("go"));
    holds_for(
        Duration::from_millis(700),
        "changes by others do not count",
        || run.count("branch dev") == 1,
    );
    std::fs::remove_file(place.path("branch.txt")).unwrap();
    run.wait_log("hook 'branch' failed with exit status: 1");
    holds_for(Duration::from_secs(1), "the same warning is not repeated", || {
        run.log().matches("hook 'branch' failed").count() == 1
    });
    place.write("branch.txt", "dev");
    holds_for(
        Duration::from_millis(800),
        "the same value again is no change",
        || run.count("branch dev") == 1,
    );
    run.stop();
}

const NESTING: &str = r#"
watch.go = { paths = ["go"], workflow = "a" }
workflow.a = { steps = [{ action = "log", message = "a1" }, { action = "run_workflow", workflow = "x" }, { action = "log", message = "a2" }], triggers = ["b", "c"] }
workflow.b = { steps = [{ action = "log", message = "b" }], triggers = ["d"] }
workflow.c = { steps = [{ action = "log", message = "c" }], triggers = ["d"] }
workflow.d.steps = [{ action = "log", message = "d" }]
workflow.x = { steps = [{ action = "log", message = "x" }], triggers = ["y"] }
workflow.y.steps = [{ action = "log", message = "y" }]
"#;

#[test]
fn e16_nesting_and_triggers_run_depth_first() {
    let place = Place::new(NESTING);
    let run = place.start();
    touch(&place.path("go"));
    run.wait_count("c", 1);
    let said: Vec<String> = run.said().into_iter().filter(|line| line.len() <= 2).collect();
    assert_eq!(said, ["a1", "x", "y", "a2", "b", "d", "c"]);
    place.wait_state("last_workflow", json!("c"));
    assert_eq!(place.state()["last_changed_files"], json!(["go"]));
    let graph = place.cli(&["graph", "--format", "dot"]);
    assert!(graph.status.success());
    let dot = String::from_utf8(graph.stdout).unwrap();
    assert_eq!(dot.matches("shape=box").count(), 6, "{dot}");
    assert_eq!(dot.matches("style=solid").count(), 1);
    assert_eq!(dot.matches("style=dashed").count(), 5);
    assert_eq!(dot.matches("->").count(), 7);
    run.stop();
}

#[test]
fn e17_every_error_is_reported_and_nothing_is_touched() {
    let place = Place::new(
        r#"
root = "nowhere"
[watch.go]
paths = ["go", "bad[glob"]
workflow = "missing"
[event_server]
bind = "localhost:0"
[hook.h]
command = []
capture = "text"
[workflow.loop1]
steps = [{ action = "run_workflow", workflow = "loop2" }]
[workflow.loop2]
steps = [{ action = "log", message = "x" }]
triggers = ["loop1"]
[workflow.p]
steps = [{ action = "run_workflow", workflow = "q" }]
triggers = ["r"]
[workflow.q]
steps = [{ action = "log", message = "q" }]
triggers = ["r"]
[workflow.r]
steps = [{ action = "notify_reload" }]
"#,
    );
    let expected = [
        format!(
            "error: config root '{}' does not exist",
            place.path("nowhere").display()
        ),
        "error: watch group 'go' references missing workflow 'missing'".into(),
        "error: invalid glob 'bad[glob' in watch group 'go'".into(),
        "error: invalid hook 'h': hook command must not be empty".into(),
        "error: invalid hook 'h': text capture requires state_key".into(),
        "error: event_server bind 'localhost:0' is not a valid socket address".into(),
        "error: invalid workflow 'loop1': workflow recursion detected: loop1 -> loop2 -> loop1".into(),
        "error: invalid workflow 'p': workflow 'r' would run both inline and as a trigger in one execution"
            .into(),
    ];
    for command in ["validate", "run"] {
        let output = place.cli(&[command]);
        assert_eq!(output.status.code(), Some(1));
        let text = String::from_utf8(output.stderr).unwrap();
        let errors: Vec<&str> = text.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), expected.len(), "{text}");
        for (error, expected) in errors.iter().zip(&expected) {
            assert!(error.starts_with(expected.as_str()), "{error} is not {expected}");
        }
    }
    assert_eq!(
        std::fs::read_dir(place.path("")).unwrap().count(),
        1,
        "only the config is there"
    );
}
