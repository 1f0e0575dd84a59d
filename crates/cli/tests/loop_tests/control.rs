//! Steering a running loop: one process, its output, why things ran, a broken config.

use serde_json::Value;

use crate::support::{Place, is_alive, touch, wait_for};

const TWO: &str = "debounce_ms = 20\nwatch.go.paths = [\"go\"]\n\
    workflow.go = { steps = [{ action = \"run_workflow\", workflow = \"inner\" }], triggers = [\"then\"] }\n\
    workflow.inner.steps = [{ action = \"log\", message = \"inner\" }]\n\
    workflow.then.steps = [{ action = \"log\", message = \"then\" }]\n\
    process.web.command = [\"sh\", \"-c\", \"echo x >> web.starts; n=0; while [ $n -lt 5 ]; do n=$((n+1)); echo line-$n; done; sleep 1000\"]\n\
    process.db.command = [\"sleep\", \"1000\"]\n";

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn status(place: &Place) -> Value {
    serde_json::from_slice(&place.cli(&["status", "--json"]).stdout).unwrap()
}

fn process(place: &Place, name: &str) -> Value {
    let status = status(place);
    let all = status["processes"].as_array().unwrap();
    all.iter()
        .find(|process| process["name"] == name)
        .unwrap()
        .clone()
}

/// Until the last line that `web` writes by itself is kept.
fn wait_for_lines(place: &Place) {
    wait_for("the lines", || {
        text(&place.cli(&["logs", "web"]).stdout)
            .contains("line-5")
            .then_some(())
    });
}

#[test]
fn one_process_is_started_stopped_and_restarted() {
    let place = Place::new(TWO);
    let run = place.start();
    let db = process(&place, "db")["pid"].clone();
    let stopped = place.cli(&["stop", "web"]);
    assert_eq!(stopped.status.code(), Some(0), "{}", text(&stopped.stderr));
    assert_eq!(process(&place, "web")["state"], "stopped");
    assert_eq!(place.cli(&["start", "web"]).status.code(), Some(0));
    place.wait_lines("web.starts", 2);
    assert_eq!(place.cli(&["restart", "web"]).status.code(), Some(0));
    place.wait_lines("web.starts", 3);
    assert_eq!(process(&place, "db")["pid"], db, "the other one was left alone");
    // A wrong name never means the whole loop.
    for command in ["start", "stop", "restart"] {
        let output = place.cli(&[command, "nobody"]);
        assert_eq!(output.status.code(), Some(1), "{command}");
        assert_eq!(text(&output.stderr), "error: no process named 'nobody'\n");
    }
    assert!(is_alive(run.id()));
    run.stop();
    for command in [&["start", "web"][..], &["logs", "web"], &["why"]] {
        assert_eq!(place.cli(command).status.code(), Some(3), "{command:?}");
    }
}

#[test]
fn the_output_of_one_process_can_be_read_and_followed() {
    let place = Place::new(TWO);
    let run = place.start();
    wait_for_lines(&place);
    let output = place.cli(&["logs", "web", "--tail", "2"]);
    assert_eq!(text(&output.stdout), "line-4\nline-5\n");
    assert_eq!(place.cli(&["logs", "nobody"]).status.code(), Some(1));
    let mut follower = place.spawn_cli(&["logs", "web", "-f", "--tail", "1"]);
    let mut lines = std::io::BufRead::lines(std::io::BufReader::new(follower.stdout.take().unwrap()));
    assert_eq!(lines.next().unwrap().unwrap(), "line-5");
    assert_eq!(place.cli(&["restart", "web"]).status.code(), Some(0));
    assert_eq!(lines.next().unwrap().unwrap(), "line-1");
    run.stop();
    // It ends with the loop.
    assert!(follower.wait().unwrap().success());
}

#[test]
fn every_run_says_why_it_ran() {
    let place = Place::new(TWO);
    let run = place.begin(&["--json"]);
    run.wait_out("\"kind\":\"ready\"");
    touch(&place.path("go"));
    run.wait_out("\"text\":\"then\"");
    wait_for("the end", || {
        text(&place.cli(&["why", "go"]).stdout)
            .contains(" ok ")
            .then_some(())
    });
    let first = "file go (created) → watch go → workflow go";
    let output = text(&place.cli(&["why"]).stdout);
    for cause in [
        first,
        &format!("{first} → inline inner"),
        &format!("{first} → trigger then"),
    ] {
        assert!(
            output.lines().any(|line| line.ends_with(cause)),
            "{cause} in {output}"
        );
    }
    assert_eq!(text(&place.cli(&["why", "then"]).stdout).lines().count(), 1);
    assert_eq!(place.cli(&["why", "nothing"]).status.code(), Some(1));
    assert_eq!(status(&place)["runs"][0]["cause"][0], "file go (created)");
    assert!(
        run.out()
            .contains("\"cause\":\"file go (created) → watch go → workflow go\"")
    );
    let counts = status(&place)["workflows"].clone();
    assert!(
        counts
            .as_array()
            .unwrap()
            .iter()
            .all(|workflow| workflow["runs"] == 1),
        "{counts}"
    );
    run.stop();
}

/// A config that is being edited hides no loop, whatever it looks like at the moment.
#[test]
fn a_broken_config_disables_nothing() {
    let place = Place::new(&format!(
        "{TWO}event.e = {{ state_key = \"k\", workflow = \"go\" }}\n"
    ));
    let mut run = place.start();
    let graph = text(&place.cli(&["graph"]).stdout);
    for broken in ["watch = [[[ not toml", "", "state_file = 7\n", "\u{0}"] {
        place.write("devloop.toml", broken);
        assert_eq!(place.cli(&["status"]).status.code(), Some(0), "{broken:?}");
        assert_eq!(text(&place.cli(&["graph"]).stdout), graph);
        assert_eq!(place.cli(&["trigger", "e", "v", "--wait"]).status.code(), Some(0));
        assert_eq!(text(&place.cli(&["state", "k"]).stdout), "v\n");
        assert_eq!(place.cli(&["restart", "db"]).status.code(), Some(0));
        assert_eq!(place.cli(&["validate"]).status.code(), Some(1));
        assert_eq!(place.cli(&["run"]).status.code(), Some(1));
    }
    std::fs::remove_file(place.path("devloop.toml")).unwrap();
    assert_eq!(place.cli(&["stop"]).status.code(), Some(0));
    assert_eq!(run.wait().code(), Some(0));
    // Without a loop there is none, and what the config says is wrong again.
    place.write("devloop.toml", "[[[");
    for command in [&["status"][..], &["stop"], &["trigger", "e", "v"]] {
        assert_eq!(place.cli(command).status.code(), Some(3), "{command:?}");
    }
    assert_eq!(place.cli(&["graph"]).status.code(), Some(1));
    assert_eq!(place.cli(&["state"]).status.code(), Some(1));
}

/// What a killed loop left written down is not believed.
#[test]
fn the_word_of_a_dead_loop_is_not_believed() {
    let place = Place::new(TWO);
    let mut run = place.start();
    run.signal(rustix::process::Signal::KILL);
    let _ = run.wait();
    assert_eq!(place.cli(&["status"]).status.code(), Some(3));
    place.start().stop();
}

#[test]
fn output_is_kept_in_a_file_that_is_no_change() {
    let place = Place::new(
        "debounce_ms = 20\nwatch.all = { paths = [\"**\"], workflow = \"go\" }\n\
         process.p = { command = [\"sh\", \"-c\", \"echo one; echo two >&2; sleep 1000\"], log = \"logs/p.log\" }\n\
         workflow.go.steps = [{ action = \"log\", message = \"saw {{last_changed_files}}\" }]\n",
    );
    let run = place.start();
    place.wait_lines("logs/p.log", 2);
    let mut lines: Vec<String> = place.read("logs/p.log").lines().map(str::to_owned).collect();
    lines.sort();
    assert_eq!(lines, ["one", "two"]);
    let mode = std::os::unix::fs::PermissionsExt::mode(
        &std::fs::metadata(place.path("logs/p.log")).unwrap().permissions(),
    );
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(place.cli(&["restart", "p"]).status.code(), Some(0));
    place.wait_lines("logs/p.log", 4);
    touch(&place.path("real"));
    run.wait_count("saw [\"real\"]", 1);
    assert_eq!(run.count("running workflow go"), 1, "{}", run.log());
    run.stop();
}

#[test]
fn the_terminal_view_shows_and_steers() {
    let place = Place::new(TWO);
    let run = place.start();
    wait_for_lines(&place);
    let mut view = place.terminal(&["ui"]);
    view.wait_for("PROCESS");
    view.wait_for("web");
    view.wait_for("workflows");
    // The second process is `web`: choose it, see what it said, stop it.
    view.type_keys("j");
    view.wait_for("line-5");
    view.type_keys("x");
    wait_for("web to be stopped", || {
        (process(&place, "web")["state"] == "stopped").then_some(())
    });
    view.wait_for("stopped");
    view.type_keys("s");
    place.wait_lines("web.starts", 2);
    view.type_keys("q");
    assert!(view.ended());
    run.stop();
}

#[test]
fn idle_clients_keep_nobody_out() {
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\n\
         process.web.command = [\"sh\", \"-c\", \"echo up >> up; exec sleep 1000\"]\n",
    );
    let mut run = place.start();
    place.wait_lines("up", 1);
    let socket = place.path(".devloop/loop.sock");
    let idle: Vec<_> = (0..300)
        .map(|_| std::os::unix::net::UnixStream::connect(&socket).unwrap())
        .collect();
    for arguments in [
        &["status"][..],
        &["why"],
        &["state"],
        &["logs", "web"],
        &["graph"],
    ] {
        let output = place.cli(arguments);
        assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    }
    assert!(!place.cli(&["status"]).stdout.is_empty());
    assert_eq!(place.cli(&["restart", "web"]).status.code(), Some(0));
    place.wait_lines("up", 2);
    assert_eq!(place.cli(&["stop"]).status.code(), Some(0));
    assert_eq!(run.wait().code(), Some(0));
    drop(idle);
}

#[test]
fn a_connection_closed_without_an_answer_is_no_success() {
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\n\
         event.e = { state_key = \"k\", workflow = \"go\" }\nprocess.web.command = [\"sleep\", \"1000\"]\n",
    );
    let run = place.start();
    // Somebody else in the place of the socket, who takes every call and says nothing.
    let socket = place.path(".devloop/loop.sock");
    std::fs::remove_file(&socket).unwrap();
    let listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    for arguments in [
        &["status"][..],
        &["why"],
        &["state"],
        &["start", "web"],
        &["stop", "web"],
        &["restart", "web"],
        &["logs", "web"],
        &["trigger", "e", "1"],
        &["graph"],
        &["stop"],
    ] {
        let output = place.cli(arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments:?}: {output:?}");
        let text = String::from_utf8(output.stderr).unwrap();
        assert!(text.contains("without an answer"), "{arguments:?}: {text}");
    }
    run.stop();
}
