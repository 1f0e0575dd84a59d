//! Flags, variables, the user's file and the project's manifest: who wins, and what is refused.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use crate::desk::{Desk, done};

#[test]
fn the_configuration_is_read_strictly() {
    let desk = Desk::new("strict");
    desk.configure("[workspace]\nidle-timeout = 60\nidle_timeout = 60\n");
    let refused = desk.run(&["workspace", "start"]).expect(2);
    let place = format!(
        "{}/config.toml:3: unknown key 'idle_timeout'",
        desk.state().display()
    );
    assert!(refused.err.contains(&place), "{refused:?}");
    assert!(refused.err.contains("did you mean 'idle-timeout'?"));
    desk.configure("[workspace]\ncookie = \"x\"\n");
    desk.run(&["repl", "-e", "1"]).expect(2);
}

#[test]
fn a_flag_wins_over_a_variable_over_the_file_over_the_default() {
    let desk = Desk::new("order");
    desk.configure("[workspace]\nno-http = true\nidle-timeout = 100\n[limits]\neval-max-heap-mb = 64\n");
    let limits = |command: &mut std::process::Command| {
        done(command).expect(0);
        let status = desk.run(&["--json", "workspace", "status"]).expect(0).json();
        desk.run(&["workspace", "stop"]).expect(0);
        status
    };
    let status = limits(&mut desk.command(&["workspace", "start"]));
    assert_eq!(status["capabilities"]["http"], false);
    assert_eq!(status["limits"]["eval_max_heap_mb"], 64);
    assert_eq!(status["limits"]["idle_timeout_s"], 100);
    assert_eq!(status["limits"]["compiler_memory_mb"], 2048);
    let mut command = desk.command(&["workspace", "start", "--eval-max-heap-mb", "32"]);
    let status = limits(command.env("BEAMTALK_WORKSPACE_TIMEOUT", "200"));
    assert_eq!(status["limits"]["eval_max_heap_mb"], 32);
    assert_eq!(status["limits"]["idle_timeout_s"], 200);
    let mut command = desk.command(&["workspace", "start", "--idle-timeout", "300"]);
    let status = limits(command.env("BEAMTALK_WORKSPACE_TIMEOUT", "200"));
    assert_eq!(status["limits"]["idle_timeout_s"], 300);
}

#[test]
fn what_makes_no_sense_together_is_refused() {
    let desk = Desk::new("refused");
    for words in [
        &["--remote", "--bind", "127.0.0.1"][..],
        &["--cert", "c.pem"],
        &["--key", "k.pem"],
        &["--tls-client-auth"],
        &["--log-level", "loud"],
    ] {
        let mut all = vec!["workspace", "start"];
        all.extend(words);
        desk.run(&all).expect(2);
    }
    desk.run(&["repl", "--ephemeral", "--persistent", "-e", "1"])
        .expect(2);
    desk.run(&["workspace", "stop", "--all", "orbit"]).expect(2);
    desk.run(&["workspace", "attach", "--port", "1"]).expect(2);
}

#[test]
fn a_reachable_address_must_be_meant_encrypted_and_guarded_by_tokens() {
    let desk = Desk::new("bind");
    let start = |words: &[&str]| {
        let mut all = vec!["workspace", "start"];
        all.extend(words);
        desk.run(&all)
    };
    let refused = start(&["--bind", "0.0.0.0"]).expect(2);
    assert!(
        refused.err.contains(
            "0.0.0.0 is not a loopback address: the network could reach this workspace. \
             Add --confirm-network if that is meant, or use --bind tailscale."
        ),
        "{refused:?}"
    );
    start(&["--remote"]).expect(2);
    let refused = start(&["--remote", "--insecure-no-tls"]).expect(2);
    assert!(
        refused.err.contains("beamtalk workspace token create"),
        "{refused:?}"
    );
    desk.run(&["workspace", "token", "create", "laptop"]).expect(0);
    let started = start(&["--remote", "--insecure-no-tls"]).expect(0);
    assert!(
        started.err.contains("accepting remote connections."),
        "{started:?}"
    );
    desk.run(&["workspace", "stop"]).expect(0);
    // A project cannot widen what is reachable.
    desk.write(
        "beamtalk.toml",
        "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n[workspace]\nbind = \"0.0.0.0\"\n",
    );
    start(&[]).expect(0);
    assert_eq!(desk.info()["bind_addr"], "127.0.0.1");
    let refused = desk.run(&["build"]).expect(2);
    assert!(
        refused.err.contains("beamtalk.toml:5: unknown key 'bind'"),
        "{refused:?}"
    );
}

#[test]
fn a_project_narrows() {
    let desk = Desk::new("narrow");
    desk.write(
        "beamtalk.toml",
        "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n[workspace]\nno-subprocess = true\neval-max-heap-mb = 128\n",
    );
    desk.run(&["workspace", "start"]).expect(0);
    let status = desk.run(&["--json", "workspace", "status"]).expect(0).json();
    assert_eq!(status["capabilities"]["subprocess"], false);
    assert_eq!(status["limits"]["eval_max_heap_mb"], 128);
    // What the project narrowed is not taken for a flag of the user.
    desk.write(
        "beamtalk.toml",
        "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n",
    );
    desk.run(&["workspace", "restart"]).expect(0);
    assert_eq!(desk.info()["capabilities"]["subprocess"], true);
}

#[test]
fn variables_count_for_commands_without_flags() {
    let desk = Desk::new("vars");
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let refused = done(desk.command(&["eval", "1"]).env("BEAMTALK_REPL_PORT", "x")).expect(2);
    assert!(refused.err.contains("invalid value 'x'"), "{refused:?}");
    let taken = done(desk.command(&["eval", "1"]).env("BEAMTALK_REPL_PORT", &port)).expect(2);
    assert!(taken.err.contains("in use"), "{taken:?}");
    drop(listener);
    done(desk.command(&["eval", "1"]).env("BEAMTALK_REPL_PORT", &port)).expect(0);
    assert_eq!(desk.info()["port"].to_string(), port);
    let metadata = crate::desk::read_json(&desk.workspace().join("metadata.json"));
    assert_eq!(metadata["limits"]["eval_max_heap_mb"], 512);
}

#[test]
fn wrong_usage_is_an_object_where_one_is_asked_for() {
    let desk = Desk::new("usage");
    for words in [
        &["--json", "workspace", "bogus"][..],
        &["workspace", "start", "--port", "x", "--format", "json"],
        &["eval", "--json"],
    ] {
        let answer = desk.run(words).expect(2).json();
        assert_eq!(
            (&answer["error"]["kind"], &answer["exit"]),
            (&json!("usage"), &json!(2))
        );
        assert!(answer["error"]["message"].is_string());
    }
    assert_eq!(desk.run(&["workspace", "bogus"]).expect(2).out, "");
}

#[test]
fn directories_others_could_read_are_closed_with_a_word() {
    let desk = Desk::new("closed");
    desk.run(&["eval", "1"]).expect(0);
    desk.run(&["web", "--no-open"]).expect(0);
    desk.run(&["workspace", "stop"]).expect(0);
    let sessions: Vec<_> = fs::read_dir(desk.state().join("sessions"))
        .unwrap()
        .flatten()
        .collect();
    for session in sessions {
        for entry in fs::read_dir(session.path()).unwrap().flatten() {
            let name = entry.file_name().into_string().unwrap();
            assert!(!name.starts_with("login-"), "a page of a daemon that is gone");
        }
    }
    let opened = [
        desk.state().join("sessions"),
        desk.state().join("workspaces"),
        desk.workspace(),
    ];
    for path in &opened {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let done = desk.run(&["eval", "1"]).expect(0);
    for path in &opened {
        let word = format!(
            "{} was readable by others (mode 0755); it is 0700 now",
            path.display()
        );
        assert!(done.err.contains(&word), "{word}: {}", done.err);
        assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o700);
    }
}

#[test]
fn what_restricts_a_workspace_outlives_a_killed_daemon_and_ends_with_a_stop() {
    let desk = Desk::new("keeps");
    let status = || desk.run(&["--json", "workspace", "status"]).expect(0).json();
    let kill = || {
        let pid = desk.info()["pid"].as_i64().unwrap();
        let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
    };
    let flags = [
        "--read-only-fs",
        "--no-subprocess",
        "--eval-max-heap-mb",
        "64",
        "--audit-required",
    ];
    desk.run(&[&["workspace", "start"][..], &flags].concat())
        .expect(0);
    // Every command that starts it again: none says a word about flags.
    for again in [
        &["eval", "1 + 1"][..],
        &["repl", "-e", "1 + 1"],
        &["workspace", "start"],
    ] {
        kill();
        desk.run(again).expect(0);
        let status = status();
        assert_eq!(status["capabilities"]["fs"], "ro", "{again:?} {status}");
        assert_eq!(status["capabilities"]["subprocess"], false, "{again:?}");
        assert_eq!(status["limits"]["eval_max_heap_mb"], 64, "{again:?}");
    }
    // Given otherwise, and a stop on purpose.
    kill();
    desk.run(&["workspace", "start", "--eval-max-heap-mb", "128"])
        .expect(0);
    assert_eq!(status()["limits"]["eval_max_heap_mb"], 128);
    assert_eq!(status()["capabilities"]["fs"], "ro");
    desk.run(&["workspace", "stop"]).expect(0);
    desk.run(&["eval", "1 + 1"]).expect(0);
    assert_eq!(status()["capabilities"]["fs"], "rw");
    assert_eq!(status()["capabilities"]["subprocess"], true);
    assert_eq!(status()["limits"]["eval_max_heap_mb"], 512);
}

#[test]
fn what_a_workspace_was_created_with_holds_for_whoever_starts_it_first() {
    let desk = Desk::new("created");
    desk.run(&["workspace", "create", "lab", "--read-only-fs"])
        .expect(0);
    desk.run(&["--workspace", "lab", "eval", "1 + 1"]).expect(0);
    let status = desk
        .run(&["--json", "--workspace", "lab", "workspace", "status"])
        .expect(0)
        .json();
    assert_eq!(status["capabilities"]["fs"], "ro", "{status}");
    desk.run(&["workspace", "stop", "lab"]).expect(0);
}
