//! The commands beside `run`.

use serde_json::Value;

use crate::support::{Place, touch, wait_for};

const SMALL: &str = "watch.go.paths = [\"go\"]\n\
    workflow.go.steps = [{ action = \"log\", message = \"go\" }]\n\
    process.p.command = [\"sleep\", \"1000\"]\n\
    event.e = { state_key = \"k\", workflow = \"go\", pattern = \"^x+$\" }\n";

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap()
}

#[test]
fn validate_says_what_is_wrong_in_every_form() {
    let place = Place::new(SMALL);
    let output = place.cli(&["validate"]);
    assert_eq!(
        (output.status.code(), text(output.stdout).as_str()),
        (Some(0), "ok\n")
    );
    place.write("devloop.toml", &format!("colour = 1\n{SMALL}"));
    let output = place.cli(&["validate"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(output.stderr), "warning: unknown key 'colour'\n");
    let output = place.cli(&["validate", "--strict"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(text(output.stderr), "error: unknown key 'colour'\n");
    let output = place.cli(&["validate", "--json"]);
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["valid"], true);
    assert_eq!(json["warnings"][0]["path"], "colour");
    let output = place.cli(&["validate", "--config", "nope.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(output.stderr).starts_with("error: failed to read config at "));
    std::fs::remove_file(place.path("devloop.toml")).unwrap();
    let output = place.cli(&["validate"]);
    assert_eq!(
        text(output.stderr),
        "error: no config given, and no devloop.toml in this directory\n"
    );
}

#[test]
fn without_a_loop_the_commands_say_so() {
    let place = Place::new(SMALL);
    for command in [&["status"][..], &["stop"], &["trigger", "e", "x"]] {
        assert_eq!(place.cli(command).status.code(), Some(3), "{command:?}");
    }
    assert_eq!(place.cli(&["state", "nope"]).status.code(), Some(1));
    assert_eq!(place.cli(&["docs", "nope"]).status.code(), Some(2));
    assert_eq!(place.cli(&["run", "--change", "x"]).status.code(), Some(2));
    assert_eq!(
        place.cli(&["run", "--once", "--workflow", "nope"]).status.code(),
        Some(2)
    );
}

#[test]
fn status_state_trigger_and_stop_talk_to_the_loop() {
    let place = Place::new(SMALL);
    let mut run = place.start();
    let output = place.cli(&["status"]);
    let table = text(output.stdout);
    assert!(table.starts_with("loop running 00:00:0"), "{table}");
    assert!(table.contains("WATCH  native  1 directories  0 files"), "{table}");
    let output = place.cli(&["trigger", "e", "xx", "--wait", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let json: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(
        (&json["accepted"], &json["changed"]),
        (&Value::Bool(true), &Value::Bool(true))
    );
    let status: Value = serde_json::from_slice(&place.cli(&["status", "--json"]).stdout).unwrap();
    assert_eq!(status["schema"], 1);
    assert_eq!(status["phase"], "running");
    assert_eq!(status["processes"][0]["state"], "running");
    assert_eq!(status["workflows"][0]["runs"], 1);
    assert_eq!(status["workflows"][0]["last"]["result"], "ok");
    assert_eq!(status["events"][0]["accepted"], 1);
    assert_eq!(status["lane"]["running"], Value::Null);
    assert!(
        status["servers"]["events"]
            .as_str()
            .unwrap()
            .starts_with("http://127.0.0.1:")
    );
    assert_eq!(text(place.cli(&["state", "k"]).stdout), "xx\n");
    assert_eq!(text(place.cli(&["state", "k", "--json"]).stdout), "\"xx\"\n");
    assert!(text(place.cli(&["state"]).stdout).contains("last_workflow = \"go\"\n"));
    use std::os::unix::fs::PermissionsExt;
    for file in ["loop.sock", "events.log", "state.json", "state.json.lock"] {
        let mode = place
            .path(&format!(".devloop/{file}"))
            .metadata()
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{file}");
    }
    assert_eq!(place.cli(&["stop"]).status.code(), Some(0));
    assert_eq!(run.wait().code(), Some(0));
    // The state outlives the loop.
    assert_eq!(text(place.cli(&["state", "k"]).stdout), "xx\n");
}

#[test]
fn json_output_is_one_object_per_line() {
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nprocess.p.command = [\"sh\", \"-c\", \"echo hello; sleep 1000\"]\n\
         workflow.go.steps = [{ action = \"log\", message = \"said\" }]\n",
    );
    let mut run = place.begin(&["--json"]);
    run.wait_out("\"loop ready\"");
    touch(&place.path("go"));
    run.wait_out("\"said\"");
    run.wait_out("\"hello\"");
    run.signal(rustix::process::Signal::TERM);
    run.wait();
    assert_eq!(run.log(), "");
    let lines: Vec<Value> = run
        .out()
        .lines()
        .map(|line| serde_json::from_str(line).expect(line))
        .collect();
    let of = |kind: &str| {
        lines
            .iter()
            .filter(|line| line["kind"] == kind)
            .collect::<Vec<_>>()
    };
    assert!(lines.iter().all(|line| line["ts"].is_string()));
    assert_eq!(of("ready")[0]["events_url"], Value::Null);
    assert_eq!(of("output")[0]["source"], "process");
    assert_eq!(of("output")[0]["stream"], "stdout");
    assert!(
        of("process")
            .iter()
            .any(|line| line["state"] == "running" && line["pid"].is_u64())
    );
    let phases: Vec<&Value> = of("workflow").iter().map(|line| &line["phase"]).collect();
    assert_eq!(phases, ["start", "ok"]);
    assert_eq!(of("workflow")[0]["source"], "watch");
    assert_eq!(of("step")[0]["action"], "log");
    assert_eq!(of("stop")[0]["exit"], 0);
}

#[test]
fn follow_shows_changes_until_the_end() {
    let place = Place::new(SMALL);
    let run = place.start();
    let mut follower = std::process::Command::new(env!("CARGO_BIN_EXE_beamtalk"))
        .args(["loop", "status", "--follow", "--json"])
        .current_dir(place.path(""))
        .stdout(std::fs::File::create(place.path("followed")).unwrap())
        .spawn()
        .unwrap();
    place.wait_lines("followed", 1);
    touch(&place.path("go"));
    wait_for("the run to be followed", || {
        place.read("followed").contains("\"runs\":1").then_some(())
    });
    run.stop();
    assert!(wait_for("the end", || follower.try_wait().unwrap()).success());
}

#[test]
fn docs_are_plain_text() {
    let place = Place::new(SMALL);
    for topic in ["config", "behavior", "security", "development"] {
        let output = place.cli(&["docs", topic]);
        assert!(output.status.success());
        let text = text(output.stdout);
        assert!(text.contains("===") && !text.contains("```"), "{topic}");
    }
}

#[test]
fn colours_follow_the_flag() {
    let place = Place::new(
        "startup_workflows = [\"go\"]\nwatch.go.paths = [\"go\"]\nhook.h.command = [\"echo\", \"hi\"]\n\
         workflow.go.steps = [{ action = \"run_hook\", hook = \"h\" }]\n",
    );
    let plain = place.cli(&["run", "--once"]);
    assert!(!text(plain.stderr).contains('\u{1b}'));
    let coloured = place.cli(&["run", "--once", "--color", "always"]);
    assert!(text(coloured.stderr).contains("m[loop engine]\u{1b}[0m INFO "));
    let out = text(coloured.stdout);
    assert!(
        out.starts_with("\u{1b}[2;1;") && out.ends_with("m[echo h]\u{1b}[0m \u{1b}[2mhi\u{1b}[0m\n"),
        "{out:?}"
    );
    let quiet = place.cli(&["run", "--once", "--quiet"]);
    assert_eq!(text(quiet.stderr), "");
}
