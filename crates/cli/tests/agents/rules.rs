//! Rules of authentication, audit and sandbox that need a daemon, and backends of vendors.

use std::io::Write;
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;

use super::support::World;
use serde_json::Value;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Whether strict sandboxes can be made here.
fn can_confine(world: &World) -> bool {
    let doctor = world.run("beamtalk agents doctor").0;
    let has = |what: &str| {
        doctor
            .lines()
            .any(|line| line.starts_with("ok") && line.contains(what))
    };
    has("Landlock") && has("mount namespaces")
}

fn record(world: &World, id: &str) -> Value {
    serde_json::from_str(&world.value(&format!("beamtalk agents show {id} --json"))).unwrap()
}

#[test]
fn a_token_in_the_specifier_works_only_where_it_is_allowed() {
    let world = World::started();
    let token = world.value("beamtalk agents token mint viewer read");
    world.check(
        &format!("beamtalk 9p -n -A token={token} read agent/list"),
        "beamtalk 9p: attach agent: unknown specifier in attach\n[1]\n",
    );
    world.config("global.yaml", "auth: {aname_token: true}\n");
    world.check("echo reload | beamtalk 9p write agent/ctl", "");
    world.check(&format!("beamtalk 9p -n -A token={token} read agent/list"), "");
    world.check(
        &format!("beamtalk 9p -n -A token={token} write agent/ctl recover"),
        "beamtalk 9p: open agent/ctl: permission denied\n[1]\n",
    );
    world.check(
        "beamtalk 9p -n -A token=bt9_wrong read agent/list",
        "beamtalk 9p: attach agent: authentication failed\n[1]\n",
    );
    // Neither token nor secret is ever recorded.
    world.check(&format!("beamtalk agents audit | grep -c {token}"), "0\n[1]\n");
}

#[test]
fn a_token_expires() {
    let world = World::started();
    world.value("beamtalk agents token mint brief read --ttl 2 > $W/token");
    world.check("beamtalk 9p -T $W/token read agent/list", "");
    world.until("beamtalk 9p -T $W/token read agent/list 2>&1 | grep -q 'authentication failed'");
    world.check("beamtalk agents token list | cut -f1,2", "brief\tread\n");
    // Its name is free again, and taken by one that lives.
    world.value("beamtalk agents token mint brief read > $W/token; beamtalk 9p -T $W/token read agent/list");
    world.check(
        "beamtalk agents token mint brief read",
        "beamtalk agents: invalid token name: brief exists\n[1]\n",
    );
}

#[test]
fn an_interrupted_read_is_flushed() {
    let world = World::started();
    world.check(
        ": > $W/trace; beamtalk 9p -D read agent/events 2>>$W/trace & reader=$!\n\
         until grep -qs Tread $W/trace; do sleep 0.05; done\n\
         kill -INT $reader; wait $reader; echo $?\n\
         grep -c -e '<- Tflush' -e '-> Rflush' -e '<- Tclunk' $W/trace | awk '{print ($1 >= 3)}'",
        "0\n1\n",
    );
}

#[test]
fn the_audit_log_tells_of_every_change_and_denial_without_texts() {
    let world = World::started();
    let id = world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.transcript(
        r"
        $ beamtalk agents prompt demo 'hidden words' --wait
        echo: hidden words
        $ beamtalk 9p write agent/list x
        beamtalk 9p: open agent/list: permission denied
        [1]
        $ beamtalk 9p create agent/x
        beamtalk 9p: create agent/x: create not supported
        [1]
        $ beamtalk 9p rm agent/list
        beamtalk 9p: remove agent/list: remove not supported for this file
        [1]
        ",
    );
    let audit = world.value("beamtalk agents audit");
    let entries: Vec<Value> = audit
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let count = |op: &str, path: &str, result: &str| {
        entries
            .iter()
            .filter(|entry| entry["op"] == op && entry["path"] == path && entry["result"] == result)
            .count()
    };
    let prompt = format!("/agents/{id}/prompt");
    assert_eq!(count("commit", &prompt, "ok"), 1, "{audit}");
    assert_eq!(count("open", &prompt, "ok"), 1);
    assert_eq!(count("open", "/list", "denied"), 1);
    assert_eq!(count("create", "", "create not supported"), 1);
    assert_eq!(count("remove", "/list", "remove not supported for this file"), 1);
    let commit = entries
        .iter()
        .find(|entry| entry["path"] == prompt && entry["op"] == "commit");
    let commit = commit.unwrap();
    assert_eq!(
        (commit["bytes"].as_u64(), commit["who"].as_str()),
        (Some(12), Some("owner"))
    );
    assert!(commit["sha256"].as_str().unwrap().len() == 64 && commit["ms"].is_u64());
    assert!(!audit.contains("hidden words"));
}

#[test]
fn a_reader_that_stalls_is_closed_and_recorded() {
    let world = World::new();
    world.config("global.yaml", "limits: {stall_ms: 300}\n");
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    let mut stream = UnixStream::connect(world.namespace().join("agent")).unwrap();
    stream
        .write_all(b"\x13\0\0\0\x64\xff\xff\0\x20\0\0\x06\09P2000")
        .unwrap();
    // Attach, then ask for more than a socket holds and read nothing of it.
    stream
        .write_all(b"\x13\0\0\0\x68\0\0\0\0\0\0\xff\xff\xff\xff\0\0\0\0")
        .unwrap();
    let stat = b"\x0b\0\0\0\x7c\x01\0\0\0\0\0";
    for _ in 0..50_000 {
        if stream.write_all(stat).is_err() {
            break;
        }
    }
    world.until("beamtalk agents audit | grep -q '\"op\":\"fault\".*\"result\":\"slow reader\"'");
    world.check("beamtalk agents prompt demo fine --wait", "echo: fine\n");
}

#[test]
fn a_process_namespace_hides_the_other_processes() {
    let world = World::new();
    world.config(
        "backends/apart.yaml",
        "command: [\"{SELF}\", \"agents\", \"drive\", \"shell\"]\nstart: {ready: hook, regex: '^agent> $'}\n\
         idle: {mode: hook}\nrestart: {policy: never}\nnamespaces: {pid: true}\nbest_effort: true\n",
    );
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    let id = world.value("beamtalk agents new apart /tmp --wait");
    let used = record(&world, &id)["sandbox_report"]["namespaces"].clone();
    if !used.as_array().unwrap().contains(&"pid".into()) {
        println!("skipped: no process namespaces here");
        return;
    }
    // The watcher, the driver and its shell; no signal reaches anybody else.
    world.check(
        &format!(
            "beamtalk agents prompt {id} 'test $$ -lt 20; kill -0 {} 2>/dev/null; echo $?' --wait",
            std::process::id()
        ),
        "1\n",
    );
    world.check(
        &format!("beamtalk agents prompt {id} 'ls /proc | grep -c \"^[0-9]\" | awk \"{{print (\\$1 < 10)}}\"' --wait"),
        "1\n",
    );
    // It knows itself as a session, and its end is the end of the session.
    world.check(
        &format!("beamtalk agents prompt {id} 'beamtalk agents kill {id}; echo $?' --wait"),
        "beamtalk agents: permission denied\n5\n",
    );
    world.check(
        &format!("beamtalk agents prompt {id} 'exit 3'; beamtalk agents wait {id} --for error"),
        "error\n",
    );
    assert_eq!(record(&world, &id)["last_exit"], 3);
    world.check(
        &format!("beamtalk agents restart {id} && beamtalk agents wait {id}"),
        "idle\n",
    );
    world.check(
        &format!("kill -9 $(beamtalk 9p read agent/{id}/pid); beamtalk agents wait {id} --for error"),
        "error\n",
    );
    assert_eq!(record(&world, &id)["last_exit"], 137);
    world.check(
        &format!("beamtalk agents restart {id} && beamtalk agents wait {id}"),
        "idle\n",
    );
    let pid = world.value(&format!("beamtalk 9p read agent/{id}/pid"));
    world.check(
        &format!("beamtalk agents stop {id}; beamtalk agents state {id}"),
        "stopped\n",
    );
    // tmux may not have collected it yet.
    world.until(&format!("! kill -0 {pid} 2>/dev/null"));
}

/// What a backend's program is really started with, from a stand-in that tells.
#[test]
fn presets_of_vendors_are_started_as_they_say() {
    let world = World::new();
    if !can_confine(&world) {
        println!("skipped: presets need a strict sandbox, which this kernel cannot make");
        return;
    }
    let bin = world.path("tools");
    std::fs::create_dir(&bin).unwrap();
    for name in ["claude", "kiro-cli", "codex", "ollama"] {
        let script = format!(
            "#!/bin/sh\necho \"started: {name} $*\"\nwhile read -r line; do echo \"got: $line\"; \
             test \"$line\" = die && exit 3; done\n"
        );
        let path = bin.join(name);
        std::fs::write(&path, script).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    world.check(
        "PATH=$W/tools:$PATH beamtalk agents start; beamtalk agents backends | grep -c ready",
        "anvilsrv started successfully\n6\n",
    );
    // The four start at once; each is looked at when it is ready.
    world.check(
        "beamtalk agents new claude $W/work --alias claude --level low >/dev/null\n\
         beamtalk agents new kiro-cli $W/work --alias kiro --model own >/dev/null\n\
         beamtalk agents new codex $W/work --alias codex --level high >/dev/null\n\
         beamtalk agents new ollama $W/work --alias ollama >/dev/null\n\
         for n in claude kiro codex ollama; do beamtalk agents wait $n; beamtalk agents output $n | head -1; done",
        "idle\nstarted: claude --dangerously-skip-permissions --model haiku\n\
         idle\nstarted: kiro-cli chat --trust-all-tools --model own\n\
         idle\nstarted: codex \n\
         idle\nstarted: ollama run qwen3:8b\n",
    );
    for name in ["claude", "kiro", "codex", "ollama"] {
        let report = record(&world, name)["sandbox_report"].clone();
        assert!(report["landlock_abi"].as_u64().unwrap() > 0, "{name}: {report}");
    }
    world.check(
        "beamtalk agents ctl claude clear; beamtalk agents ctl kiro clear; beamtalk agents ctl kiro resume\n\
         beamtalk agents ctl claude resume; beamtalk agents ctl ollama compact; beamtalk agents ctl codex clear",
        "beamtalk agents: resume not implemented for this backend\n\
         beamtalk agents: compact not implemented for this backend\n",
    );
    world.until("beamtalk agents output claude | grep -qx 'got: /clear'");
    world.until("beamtalk agents output codex | grep -qx 'got: /new'");
    world.until("test \"$(beamtalk agents output kiro | grep ^got: | tr '\\n' ' ')\" = 'got: /clear got: y got: /chat resume got:  '");
    // After a crash the program is asked to go on where it was.
    world.check(
        "beamtalk agents prompt codex die; beamtalk agents prompt claude die",
        "",
    );
    world.until("beamtalk agents output codex | grep -qx 'started: codex resume --last'");
    world.until("beamtalk agents output claude | grep -qx 'started: claude --dangerously-skip-permissions --model haiku -c'");
}

/// Everything again as a user without privileges: user namespaces instead of root's rights.
#[test]
fn a_user_without_privileges_gets_the_same_sandbox() {
    const UID: u32 = 54_321;
    if !is_root() {
        println!("skipped: needs root to become another user; the other tests run without privileges");
        return;
    }
    let world = World::new();
    world.config(
        "backends/strict.yaml",
        "command: [\"{SELF}\", \"agents\", \"drive\", \"shell\"]\nstart: {ready: hook, regex: '^agent> $'}\n\
         idle: {mode: hook}\nrestart: {policy: never}\nnamespaces: {pid: true}\n",
    );
    world.value(&format!("chmod 755 $W; chown -R {UID}:{UID} $W"));
    chown(world.path(""), Some(UID), Some(UID)).unwrap();
    let become_user =
        format!("setpriv --reuid={UID} --regid={UID} --clear-groups --inh-caps=-all --bounding-set=-all");
    let user = |script: &str| {
        format!(
            "{become_user} sh -c \"{}\"",
            script
                .replace('\\', "\\\\")
                .replace('"', "\\\"")
                .replace('$', "\\$")
        )
    };
    let (answer, status) = world.run(&user("beamtalk --version && beamtalk agents doctor"));
    if status != 0 || !answer.contains("ok\tmount namespaces") {
        println!("skipped: the binary or user namespaces are out of reach for another user: {answer}");
        return;
    }
    world.check(&user("beamtalk agents start"), "anvilsrv started successfully\n");
    let id = world.value(&user("beamtalk agents new strict $W/work --wait"));
    let report: Value =
        serde_json::from_str(&world.value(&user(&format!("beamtalk agents show {id} --json")))).unwrap();
    let report = &report["sandbox_report"];
    for namespace in ["mount", "ipc", "net", "pid"] {
        assert!(
            report["namespaces"]
                .as_array()
                .unwrap()
                .contains(&namespace.into()),
            "{report}"
        );
    }
    let prompt = |text: &str| user(&format!("beamtalk agents prompt {id} '{text}' --wait"));
    world.check(
        &prompt("id -u; ls -1A $NAMESPACE"),
        &format!("{UID}\nagent\nanvillm\n"),
    );
    world.check(
        &prompt("echo y > made; cat made; echo z > $TMPDIR/t; cat $TMPDIR/t"),
        "y\nz\n",
    );
    world.check(
        &prompt("cat $HOME/.beamtalk/agents/*/secret 2>/dev/null || echo hidden"),
        "hidden\n",
    );
    world.check(
        &prompt("(echo x > $HOME/escaped) 2>/dev/null || echo refused"),
        "refused\n",
    );
    world.check(
        &prompt("tmux -S $NAMESPACE/tmux.sock list-windows 2>/dev/null || echo unreachable"),
        "unreachable\n",
    );
    world.check(
        &prompt("beamtalk agents token list 2>&1; echo $?"),
        "beamtalk agents: permission denied\n5\n",
    );
    let around = world.value(&user("beamtalk agents new strict $W --wait"));
    world.check(
        &user(&format!(
            "beamtalk agents prompt {around} 'rm -f $NAMESPACE/agent 2>/dev/null || echo refused' --wait"
        )),
        "refused\n",
    );
    // A daemon that is killed finds its session again.
    world.check(
        &user("kill -9 $(cat $NAMESPACE/anvilsrv.pid); beamtalk agents start"),
        "anvilsrv started successfully\n",
    );
    world.check(&prompt("cat made"), "y\n");
    // Root may come in, and everything it does is recorded.
    world.value(&format!(
        "beamtalk 9p -n -a {} read agents/list",
        world.namespace().join("agent").display()
    ));
    world.check(
        &user("beamtalk agents audit | grep -c '\"op\":\"read\".*\"path\":\"/agents/list\".*\"root\":true'"),
        "1\n",
    );
    world.value(&user("beamtalk agents stop --kill-sessions"));
}
