//! Names, starting, stopping, restarting, removing; what is left after a crash.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sha2::{Digest, Sha256};

use crate::desk::{Desk, done, kill};

const CAPABILITY_LINE: &str = "Capability flags reduce accidents. They are not a sandbox: code running in the workspace has your user's rights.";

#[test]
fn the_id_is_the_hash_of_the_root() {
    let desk = Desk::new("id");
    let hash = Sha256::digest(desk.project().to_str().unwrap().as_bytes());
    let id: String = hash.iter().take(6).map(|byte| format!("{byte:02x}")).collect();
    let deep = desk.project().join("src");
    let mut command = desk.command(&["--json", "workspace", "status"]);
    let answer = done(command.current_dir(deep)).expect(3);
    assert_eq!(
        answer.json()["error"]["message"],
        format!("workspace '{id}' is not running")
    );
    assert_eq!(answer.json()["exit"], 3);
}

#[test]
fn names_are_checked_in_the_flag_and_in_the_variable() {
    let desk = Desk::new("names");
    let refused = desk.run(&["--workspace", "a/b", "workspace", "status"]).expect(2);
    assert!(
        refused
            .err
            .contains("Workspace name must contain only letters, numbers, '-' or '_'")
    );
    for name in ["shell-12", "..", &"x".repeat(65)] {
        desk.run(&["workspace", "start", name]).expect(2);
    }
    for name in ["a/b", "my app", "ä", "shell-12", &"x".repeat(65)] {
        for words in [
            &["workspace", "start"][..],
            &["eval", "1"],
            &["workspace", "stop"],
        ] {
            let mut command = desk.command(words);
            let refused = done(command.env("BEAMTALK_WORKSPACE", name)).expect(2);
            let told = format!("BEAMTALK_WORKSPACE is '{name}'. Workspace name must ");
            assert!(refused.err.contains(&told), "{refused:?}");
        }
    }
    let mut command = desk.command(&["workspace", "stop"]);
    let named = done(command.env("BEAMTALK_WORKSPACE", "my-app_1")).expect(0);
    assert!(named.err.contains("my-app_1"), "{named:?}");
}

#[test]
fn a_workspace_lives_from_start_to_rm() {
    let desk = Desk::new("life");
    assert!(desk.run(&["workspace", "list"]).expect(0).out.is_empty());
    let stopped = desk.run(&["workspace", "stop"]).expect(0);
    assert!(stopped.err.contains("is not running"));

    desk.run(&["workspace", "start", "--no-http"]).expect(0);
    let info = desk.info();
    let id = info["workspace_id"].as_str().unwrap().to_owned();
    let list = desk.run(&["workspace", "list"]).expect(0).out;
    assert!(list.starts_with(&format!("▸ {id}")), "{list}");
    assert!(list.contains("running") && list.contains(&info["port"].to_string()));
    let rows = desk.run(&["--json", "workspace", "list"]).expect(0).json();
    assert_eq!(rows[0]["workspace_id"], id);
    assert_eq!(rows[0]["status"], "running");
    assert_eq!(rows[0]["pid"], info["pid"]);
    assert_eq!(rows[0]["project_path"], desk.project().to_str().unwrap());
    assert!(rows[0]["created_at"].as_u64().unwrap() > 0);

    let status = desk.run(&["workspace", "status"]).expect(0).out;
    assert!(
        status.contains("http off") && status.contains(CAPABILITY_LINE),
        "{status}"
    );
    let status = desk.run(&["--json", "workspace", "status"]).expect(0).json();
    assert_eq!(status["capabilities"]["http"], false);
    assert_eq!(status["bind"], "127.0.0.1");

    // Other flags have no effect on what runs, and that is said; the same ones are no reason to warn.
    let again = desk.run(&["workspace", "start", "--no-ffi"]).expect(0);
    assert!(again.err.contains("no effect"), "{again:?}");
    assert!(
        desk.run(&["workspace", "start", "--no-http"])
            .expect(0)
            .err
            .is_empty()
    );
    assert!(desk.run(&["workspace", "start"]).expect(0).err.is_empty());
    let joined = desk.run(&["repl", "--no-ffi", "-e", "1"]).expect(0);
    assert!(joined.err.contains("no effect"), "{joined:?}");
    assert_eq!(desk.info()["pid"], info["pid"]);

    // A restart keeps the flags.
    desk.run(&["workspace", "restart"]).expect(0);
    assert_ne!(desk.info()["pid"], info["pid"]);
    assert_eq!(desk.info()["capabilities"]["http"], false);

    let refused = desk.run(&["workspace", "rm", &id, "--yes"]).expect(2);
    assert!(refused.err.contains("is running"));
    desk.run(&["workspace", "stop"]).expect(0);
    assert_eq!(
        desk.run(&["--json", "workspace", "list"]).expect(0).json()[0]["status"],
        "stopped"
    );
    desk.run(&["workspace", "rm", &id]).expect(2);
    assert!(desk.workspace().is_dir());
    desk.run(&["workspace", "rm", &id, "--yes"]).expect(0);
    assert!(desk.run(&["workspace", "list"]).expect(0).out.is_empty());
    assert!(desk.project().join("src/Lamp.bt").is_file());
    desk.run(&["workspace", "rm", &id, "--yes"]).expect(2);
}

#[test]
fn a_named_workspace_belongs_to_the_root_it_was_made_in() {
    let desk = Desk::new("named");
    desk.run(&["workspace", "create", "tools", "--no-subprocess"])
        .expect(0);
    desk.run(&["workspace", "create", "tools"]).expect(2);
    // The flags it was created with are those of its first start.
    desk.run(&["workspace", "start", "tools"]).expect(0);
    assert_eq!(desk.info()["capabilities"]["subprocess"], false);
    assert_eq!(desk.info()["session"], "tools");
    let elsewhere = desk.state();
    let mut command = desk.command(&["--workspace", "tools", "--json", "workspace", "status"]);
    let status = done(command.current_dir(&elsewhere)).expect(0);
    let warning = format!(
        "warning: workspace 'tools' belongs to {}",
        desk.project().display()
    );
    assert!(status.err.contains(&warning), "{status:?}");
    assert_eq!(status.json()["project_path"], desk.project().to_str().unwrap());
}

#[test]
fn two_terminals_share_one_workspace() {
    let desk = Desk::new("share");
    desk.run(&["eval", "Workspace bind: 42 as: #Answer"]).expect(0);
    // A shell in between gives the second command another parent, as another terminal would.
    let binary = env!("CARGO_BIN_EXE_beamtalk");
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("'{binary}' eval Answer; exit $?")])
        .current_dir(desk.project().join("src"))
        .env("BEAMTALK_HOME", desk.state())
        .stdin(Stdio::null());
    assert_eq!(done(&mut shell).expect(0).out, "42\n");
    desk.workspace();
}

#[test]
fn what_a_killed_daemon_left_is_stale_and_goes() {
    let desk = Desk::new("stale");
    desk.run(&["workspace", "start"]).expect(0);
    let info = desk.info();
    kill(info["pid"].as_u64().unwrap());
    let deadline = Instant::now() + Duration::from_secs(10);
    let status = || desk.run(&["--json", "workspace", "list"]).expect(0).json()[0]["status"].clone();
    while status() != "stale" {
        assert!(Instant::now() < deadline, "{}", status());
        std::thread::sleep(Duration::from_millis(20));
    }
    desk.run(&["workspace", "status"]).expect(3);
    let checks = desk.run(&["--json", "doctor"]).expect(0).json();
    let stale = |checks: &serde_json::Value| {
        let rows = checks.as_array().unwrap().iter();
        rows.filter(|row| row["check"] == "stale files").count()
    };
    assert_eq!(stale(&checks), 1, "{checks}");
    assert_eq!(
        stale(&desk.run(&["--json", "doctor", "--fix"]).expect(0).json()),
        0
    );
    assert!(!desk.workspace().join("node.info").exists());
    assert!(!fs::exists(info["socket"].as_str().unwrap()).unwrap());
    desk.run(&["workspace", "start"]).expect(0);
    assert_ne!(desk.info()["nonce"], info["nonce"]);
}

#[test]
fn in_the_foreground_the_command_is_the_daemon() {
    let desk = Desk::new("front");
    let mut child = desk
        .command(&["workspace", "start", "--foreground"])
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(30);
    while desk.run(&["workspace", "status"]).code != 0 {
        assert!(Instant::now() < deadline, "it does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(desk.info()["pid"], child.id());
    desk.run(&["workspace", "stop"]).expect(0);
    assert!(child.wait().unwrap().success());
}

#[test]
fn rotation_keeps_patch_and_says_so() {
    let desk = Desk::new("keeps");
    desk.run(&["eval", "Lamp class >> color => \"patched\""])
        .expect(0);
    let said = desk.run(&["workspace", "rotate-cookie"]).expect(0).out;
    assert!(said.contains("Code already loaded into the workspace keeps running."));
    assert!(said.contains("beamtalk workspace restart --clean"), "{said}");
    assert_eq!(desk.run(&["eval", "Lamp color"]).expect(0).out, "\"patched\"\n");
}

#[test]
fn clean_restart_evicts_patch() {
    let desk = Desk::new("clean");
    let git = |words: &[&str]| done(Command::new("git").args(words).current_dir(desk.project()));
    git(&["init", "-q"]).expect(0);
    desk.run(&["workspace", "start", "--no-http"]).expect(0);
    let token = desk.run(&["workspace", "token", "create", "laptop"]).expect(0);
    assert!(token.out.starts_with("btk_"));
    desk.run(&["eval", "Lamp class >> color => \"patched\""])
        .expect(0);
    assert_eq!(desk.run(&["eval", "Lamp color"]).expect(0).out, "\"patched\"\n");
    let cookie = desk.cookie();
    let planted = desk.project().join("_build/dev/ebin/planted.beam");
    fs::write(&planted, "x").unwrap();

    let said = desk.run(&["workspace", "restart", "--clean"]).expect(0).out;
    assert!(
        said.contains(
            "Whoever ran code in the workspace ran it as the user and may have changed files anywhere."
        ),
        "{said}"
    );
    assert!(said.contains("?? src/"), "the output of git status: {said}");
    assert_eq!(desk.run(&["eval", "Lamp color"]).expect(0).out, "\"red\"\n");
    assert_ne!(desk.cookie(), cookie);
    assert!(!planted.exists());
    assert_eq!(
        desk.run(&["--json", "workspace", "token", "list"])
            .expect(0)
            .json(),
        serde_json::json!([])
    );
    assert_eq!(desk.info()["capabilities"]["http"], false, "flags are kept");
    let pending = desk.run(&["eval", "Workspace changes size"]);
    if pending.code == 0 {
        assert_eq!(pending.out, "0\n");
    }
    assert!(desk.project().join("src/Lamp.bt").is_file());
}

#[test]
fn an_application_is_started_in_the_workspace() {
    let desk = Desk::new("app");
    let refused = desk.run(&["run", "."]).expect(2);
    assert!(refused.err.contains("[application]"), "{refused:?}");
    desk.write(
        "beamtalk.toml",
        "[package]\nname = \"orbit\"\nversion = \"0.1.0\"\n[application]\nsupervisor = \"OrbitSup\"\n",
    );
    desk.write(
        "src/OrbitSup.bt",
        "Supervisor subclass: OrbitSup\n  class children => #()\n",
    );
    desk.write(
        "src/Main.bt",
        "Object subclass: Main\n  class run => Program exit: 7\n  class greet: names => names size\n",
    );
    let started = desk.run(&["run", "."]).expect(0);
    assert!(started.err.contains("OrbitSup started."), "{started:?}");
    assert!(started.out.is_empty(), "{started:?}");
    let again = desk.run(&["run", "."]).expect(0);
    assert!(again.err.contains("running already"), "{again:?}");
    desk.run(&["run", "--connect", "Main", "run"]).expect(7);
    desk.run(&["run", "--connect", "Main", "greet:", "a", "b"])
        .expect(0);
    desk.run(&["run", "--connect", "Main", "nothing"]).expect(1);
}

#[test]
fn a_node_that_does_not_start_is_told_with_where_to_look() {
    let desk = Desk::new("dead");
    let program = desk.project().join("erl");
    let script =
        "#!/bin/sh\ncase \"$*\" in\n*otp_release*) printf 25 ;;\n*) echo no such luck >&2; exit 3 ;;\nesac\n";
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = desk.command(&["workspace", "start", "--no-load"]);
    let failed = done(command.env("BEAMTALK_ERL", &program)).expect(5);
    assert!(
        failed.err.contains("the node did not start: exit status: 3"),
        "{failed:?}"
    );
    assert!(failed.err.contains("beamtalk workspace logs"), "{failed:?}");
    let said = desk.run(&["workspace", "logs"]).expect(0).out;
    assert!(said.contains("no such luck"), "{said}");
    assert_eq!(desk.run(&["workspace", "status"]).code, 3);
}

/// Actors that work on their own keep a workspace up that nobody is connected to; when they rest, it stops.
#[test]
fn a_workspace_is_idle_only_when_its_actors_are() {
    let desk = Desk::new("idle");
    desk.run(&["workspace", "start", "--idle-timeout", "2"]).expect(0);
    let ticking = "Actor subclass: Clock\n  state: count = 0\n  tick => self.count := self.count + 1\n\n\
                   clock := Clock spawn. ticks := Timer every: 100 do: [clock tick!]. 1\n";
    desk.run_with_input(&["repl"], ticking).expect(0);
    // Thrice the time, and then some: the daemon looks every two seconds.
    std::thread::sleep(Duration::from_secs(8));
    desk.run(&["workspace", "status"]).expect(0);
    desk.run(&["eval", "Workspace actors do: [:each | each stop]"])
        .expect(0);
    let deadline = Instant::now() + Duration::from_mins(1);
    while desk
        .state()
        .join("workspaces")
        .read_dir()
        .unwrap()
        .flatten()
        .any(|workspace| workspace.path().join("node.info").exists())
    {
        assert!(Instant::now() < deadline, "it does not stop");
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// A daemon that hangs hides no other workspace, and can be ended like any other.
#[test]
fn a_daemon_that_does_not_answer_is_listed_and_ended_by_force() {
    let desk = Desk::new("silent");
    desk.run(&["workspace", "start"]).expect(0);
    let info = desk.info();
    desk.run(&["workspace", "start", "other"]).expect(0);
    let (pid, node) = (info["pid"].to_string(), info["node_pid"].to_string());
    assert!(
        Command::new("kill")
            .args(["-STOP", &pid])
            .status()
            .unwrap()
            .success()
    );
    let rows = desk.run(&["--json", "workspace", "list"]).expect(0).json();
    let status_of = |id: &serde_json::Value| {
        let rows = rows.as_array().unwrap();
        rows.iter().find(|row| row["workspace_id"] == *id).unwrap()["status"].clone()
    };
    assert_eq!(status_of(&info["workspace_id"]), "silent");
    assert_eq!(status_of(&"other".into()), "running");
    desk.run(&["workspace", "stop", "--force"]).expect(0);
    // Who is dead and not yet buried has no memory any more.
    let is_alive = |pid: &str| {
        fs::read_to_string(format!("/proc/{pid}/statm")).is_ok_and(|text| !text.starts_with("0 "))
    };
    let deadline = Instant::now() + Duration::from_secs(20);
    while is_alive(&pid) || is_alive(&node) {
        assert!(
            Instant::now() < deadline,
            "the daemon has ended, and its node with it"
        );
        std::thread::sleep(Duration::from_millis(50));
    }
    desk.run(&["eval", "1 + 1"]).expect(0);
    desk.run(&["workspace", "stop", "--all"]).expect(0);
}

/// Whatever stands in the place of a source, looking at it ends.
#[test]
fn a_pipe_or_a_device_in_the_place_of_a_source_holds_up_nobody() {
    let desk = Desk::new("odd-source");
    let source = desk.project().join("src/Lamp.bt");
    fs::create_dir_all(source.parent().unwrap()).unwrap();
    fs::write(
        desk.project().join("beamtalk.toml"),
        "[package]\nname = \"odd\"\nversion = \"0.1.0\"\n",
    )
    .unwrap();
    fs::write(&source, "Object subclass: Lamp\n  class watt => 4\n").unwrap();
    desk.run(&["eval", "Lamp class >> watt => 5"]).expect(0);
    for odd in [&["mkfifo"][..], &["ln", "-s", "/dev/zero"]] {
        fs::remove_file(&source).unwrap();
        let mut command = Command::new(odd[0]);
        assert!(command.args(&odd[1..]).arg(&source).status().unwrap().success());
        assert_eq!(desk.run(&["eval", "Lamp watt"]).expect(0).out.trim(), "5");
        let kept = desk.run(&["--json", "workspace", "status"]).expect(0).json();
        assert_eq!(kept["restarts"], 0, "{kept}");
    }
    fs::remove_file(&source).unwrap();
    fs::write(&source, "Object subclass: Lamp\n  class watt => 4\n").unwrap();
    assert_eq!(desk.run(&["eval", "Lamp watt"]).expect(0).out.trim(), "5");
    desk.run(&["workspace", "stop"]).expect(0);
}
