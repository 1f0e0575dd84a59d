use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;

use crate::support::{Place, finish};

#[test]
fn nothing_is_help_and_wrong_usage() {
    let place = Place::new();
    place.run(&[]).expect_code(2);
    place.run(&["frobnicate"]).expect_code(2);
    let done = place.run(&["--version"]).expect_code(0);
    assert!(done.stdout.starts_with("beamtalk "), "{}", done.stdout);
}

#[test]
fn a_missing_erlang_is_one_line_with_the_repair() {
    let place = Place::with_project();
    let done = finish(
        place
            .command(&["build"])
            .env("BEAMTALK_ERL", "/nonexistent/erl")
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    assert_eq!(done.code, Some(5));
    assert_eq!(done.stderr.lines().count(), 1, "{}", done.stderr);
    assert!(done.stderr.contains("apt-get install"), "{}", done.stderr);
}

#[test]
fn an_old_erlang_is_refused() {
    let place = Place::with_project();
    place.write("old/releases/start_erl.data", "9.0 20\n");
    place.write("old/bin/erl", "#!/bin/sh\n");
    let erl = place.directory().join("old/bin/erl");
    std::fs::set_permissions(&erl, std::fs::Permissions::from_mode(0o755)).unwrap();
    let done = finish(
        place
            .command(&["build", "--json"])
            .env("BEAMTALK_ERL", &erl)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    assert_eq!(done.code, Some(5));
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    assert_eq!(json["error"]["kind"], "erlang_too_old");
    assert_eq!(json["exit"], 5);
}

#[test]
fn a_closed_standard_output_is_no_error() {
    let place = Place::new();
    let mut child = place
        .command(&["docs", "cli"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let done = finish(child);
    assert_eq!(done.code, Some(0));
    assert_eq!(done.stderr, "");
}

#[test]
fn concurrent_first_starts_share_one_runtime() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let mut command = place.command(&["repl", "-e", "6 * 7"]);
                command
                    .env_remove("BEAMTALK_RUNTIME_DIR")
                    .stdout(Stdio::piped())
                    .stderr(Stdio::piped());
                let done = finish(command.spawn().unwrap());
                assert_eq!(done.expect_code(0).stdout, "42\n");
            });
        }
    });
    let unpacked: Vec<_> = std::fs::read_dir(place.home().join("runtime")).unwrap().collect();
    assert_eq!(unpacked.len(), 1);
    let mode = std::fs::metadata(place.home()).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
    place.stop();
}

#[test]
fn a_home_others_can_write_is_refused() {
    let place = Place::new();
    std::fs::create_dir(place.home()).unwrap();
    std::fs::set_permissions(place.home(), std::fs::Permissions::from_mode(0o777)).unwrap();
    let done = place.run(&["repl", "-e", "1"]).expect_code(5);
    assert!(done.stderr.contains("chmod 700"), "{}", done.stderr);
    place.run(&["doctor", "--fix"]).expect_code(0);
}

/// Something else may be meant by the name: nobody is told to delete it.
#[test]
fn a_home_that_is_a_file_is_left_alone() {
    let place = Place::new();
    std::fs::write(place.home(), "mine").unwrap();
    let done = place.run(&["repl", "-e", "1"]).expect_code(5);
    assert!(
        done.stderr.contains("set BEAMTALK_HOME to a directory"),
        "{}",
        done.stderr
    );
    assert!(
        !done.stderr.contains("delete") && !done.stderr.contains("rm "),
        "{}",
        done.stderr
    );
    assert_eq!(std::fs::read_to_string(place.home()).unwrap(), "mine");
}

#[test]
fn the_doctor_finds_a_healthy_system() {
    let place = Place::new();
    let done = place.run(&["doctor", "--json"]).expect_code(0);
    let checks: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let isolation = checks
        .as_array()
        .unwrap()
        .iter()
        .find(|check| check["check"] == "isolation")
        .unwrap();
    assert_eq!(isolation["status"], "ok");
}

#[test]
fn documentation_is_inside_the_binary() {
    let place = Place::new();
    for topic in [
        "tour",
        "security",
        "Integer",
        "E0101",
        "classes",
        "Workspace",
        "Transcript",
        "Beamtalk",
        "Timeout",
        ":flush",
    ] {
        let done = place.run(&["docs", topic]).expect_code(0);
        assert!(done.stdout.starts_with("# "), "{topic}: {}", done.stdout);
    }
    place.run(&["docs", "Integer", "+"]).expect_code(0);
    let classes = place.run(&["docs", "classes"]).expect_code(0).stdout;
    assert!(classes.contains("## Numbers\n\n`Number`, `Integer`"), "{classes}");
    let found = place
        .run(&["docs", "--search", "conflict favour"])
        .expect_code(0)
        .stdout;
    assert!(found.contains(":take"), "{found}");
    let done = place.run(&["docs", "Integr"]).expect_code(1);
    assert!(done.stderr.contains("Integer"), "{}", done.stderr);
    for shell in ["bash", "zsh", "fish"] {
        let script = place.run(&["completions", shell]).expect_code(0).stdout;
        assert!(script.contains("beamtalk"), "{script}");
        // Those for fish have no place for the words of an argument.
        for topic in ["supervisors", "HTTPClient"] {
            assert!(shell == "fish" || script.contains(topic), "{shell}: {topic}");
        }
    }
}

#[test]
fn a_long_build_shows_a_bar_on_a_terminal_only() {
    let place = Place::with_project();
    for at in 0..150 {
        place.write(
            &format!("src/C{at}.bt"),
            &format!("Value subclass: C{at}\n  field: a = {at}\n\n  sum: x => x + self.a\n"),
        );
    }
    let on_terminal = |arguments: &[&str], is_ci: bool| {
        let mut command = place.command(arguments);
        command.env_remove("CI");
        if is_ci {
            command.env("CI", "1");
        }
        let mut session = rexpect::session::spawn_command(command, Some(60_000)).unwrap();
        session.exp_eof().unwrap()
    };
    let shown = on_terminal(&["build", "--jobs", "1"], false);
    assert!(shown.contains("\rCompiling [==="), "{shown}");
    assert!(shown.contains("/151 src/C"), "{shown}");
    // The bar is gone before the next line.
    assert!(shown.contains("\r\u{1b}[KDone in "), "{shown}");
    assert!(!shown.contains("Compiling 151 files"), "{shown}");
    for (arguments, is_ci) in [
        (&["build", "--force", "--quiet"][..], false),
        (&["build", "--force", "--json"], false),
        (&["build", "--force"], true),
    ] {
        let shown = on_terminal(arguments, is_ci);
        assert!(!shown.contains("Compiling ["), "{shown}");
        assert_eq!(shown.contains("Compiling 151 files"), is_ci, "{shown}");
    }
}
