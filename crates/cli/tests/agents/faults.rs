//! Faults and attacks against the daemon: other users, hostile files, kills at random, bad rights.

use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown, symlink};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::support::World;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// What another user hears on the socket: how many bytes before the end.
fn heard_as_nobody(world: &World) -> String {
    let script = format!(
        "setpriv --reuid=65534 --regid=65534 --clear-groups beamtalk 9p -n -a {} read agents/list",
        world.namespace().join("agent").display()
    );
    world.run(&script).0
}

#[test]
fn example_20_another_user_gets_nothing() {
    if !is_root() {
        println!("skipped: needs root to act as another user");
        return;
    }
    let world = World::started();
    let open = |mode: u32, path: &std::path::Path| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    open(0o755, &world.path(""));
    open(0o755, &world.namespace());
    open(0o666, &world.namespace().join("agent"));
    let heard = heard_as_nobody(&world);
    assert!(
        heard.contains("closed") || heard.contains("reset") || heard.contains("roken"),
        "{heard}"
    );
    world.check(
        "grep -c '\"op\":\"connect\".*\"result\":\"denied\"' $HOME/.beamtalk/agents/ns-*/audit.jsonl",
        "1\n",
    );
    // The owner goes on as before.
    world.check("beamtalk 9p read agent/list", "");
}

/// tmux stays for sessions that are there, and ends with the daemon when there is none.
#[test]
fn tmux_ends_with_a_daemon_that_has_no_sessions() {
    let world = World::started();
    let servers = "ps -eo args | grep -c \"[t]mux.* -S $NAMESPACE/tmux.sock\"";
    let id = world.value("beamtalk agents new echo $W/work --wait 2> /dev/null");
    world.check(&format!("beamtalk agents stop > /dev/null; {servers}"), "1\n");
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.check(
        &format!("beamtalk agents prompt {id} there --wait"),
        "echo: there\n",
    );
    world.value(&format!("beamtalk agents kill {id}"));
    world.check(
        &format!("beamtalk agents stop > /dev/null; {servers}; test -e $NAMESPACE/tmux.sock || echo gone"),
        "0\ngone\n",
    );
    // The next one makes a server of its own.
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    let id = world.value("beamtalk agents new echo $W/work --wait 2> /dev/null");
    world.check(
        &format!("beamtalk agents prompt {id} again --wait"),
        "echo: again\n",
    );
}

/// What a daemon had typed when it was killed is not a part of the next prompt, however many daemons come in between; nor is
/// it when the program erases by other keys.
#[test]
fn what_a_killed_daemon_typed_is_erased() {
    let world = World::new();
    let looks =
        "start: {ready: regex, regex: '^> $'}\nidle: {mode: regex, regex: '^> $'}\nbest_effort: true\n";
    for (name, setup, prompt) in [("plain", "", ""), ("other", "stty kill ^g; ", "erase: [C-g], ")] {
        let script = format!("{setup}while printf '> ' && read -r line; do echo got $line; done");
        world.config(
            &format!("backends/{name}.yaml"),
            &format!("command: [bash, -c, \"{script}\"]\n{looks}prompt: {{{prompt}submit_delay_ms: 1500}}\n"),
        );
    }
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    for backend in ["plain", "other"] {
        let id = world.value(&format!(
            "beamtalk agents new {backend} $W/work --wait 2> /dev/null"
        ));
        world.check(
            &format!(
                "beamtalk agents prompt {id} FIRST > /dev/null 2>&1 &
                 n=0; until beamtalk 9p read agent/{id}/screen | grep -q '> FIRST' || test $n = 300; do sleep 0.05; n=$((n+1)); done
                 for daemon in one two; do kill -9 $(cat $NAMESPACE/anvilsrv.pid); wait; beamtalk agents start > /dev/null; done
                 beamtalk agents prompt {id} second --wait | tail -1"
            ),
            "got second\n",
        );
    }
}

#[test]
fn a_server_of_another_user_is_not_trusted() {
    if !is_root() {
        println!("skipped: needs root to act as another user");
        return;
    }
    let world = World::new();
    let planted = world.path("planted");
    std::fs::create_dir(&planted).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(planted.join("agent")).unwrap();
    // The directory belongs to uid 1, the caller is uid 65534.
    chown(&planted, Some(1), Some(1)).unwrap();
    std::fs::set_permissions(world.path(""), std::fs::Permissions::from_mode(0o755)).unwrap();
    world.check(
        "NAMESPACE=$W/planted setpriv --reuid=65534 --regid=65534 --clear-groups beamtalk agents list",
        "beamtalk agents: server at …/planted/agent belongs to uid 1\n[5]\n",
    );
}

#[test]
fn unsafe_namespaces_are_refused() {
    let world = World::new();
    std::fs::write(world.path("file"), "x").unwrap();
    world.check(
        "NAMESPACE=$W/file beamtalk agents start",
        "beamtalk agents: bad name space dir …/file: not a directory\n[1]\n",
    );
    world.check(
        "NAMESPACE=relative beamtalk agents start",
        "beamtalk agents: bad name space dir relative: path not usable\n[1]\n",
    );
    std::fs::create_dir(world.path("open")).unwrap();
    std::fs::set_permissions(world.path("open"), std::fs::Permissions::from_mode(0o777)).unwrap();
    world.check(
        "NAMESPACE=$W/open/ns beamtalk agents start",
        "beamtalk agents: bad name space dir …/open/ns: parent is writable by others\n[1]\n",
    );
    if is_root() {
        std::fs::create_dir(world.path("other")).unwrap();
        chown(world.path("other"), Some(65534), Some(65534)).unwrap();
        world.check(
            "NAMESPACE=$W/other beamtalk agents start",
            "beamtalk agents: bad name space dir …/other: owned by uid 65534\n[1]\n",
        );
    }
}

#[test]
fn hostile_pid_files_are_no_obstacle() {
    let world = World::new();
    let namespace = world.namespace();
    std::fs::create_dir(&namespace).unwrap();
    std::fs::set_permissions(&namespace, std::fs::Permissions::from_mode(0o700)).unwrap();
    let pid_file = namespace.join("anvilsrv.pid");
    let victim = world.path("victim");
    std::fs::write(&victim, "precious").unwrap();
    symlink(&victim, &pid_file).unwrap();
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    world.check("beamtalk agents stop", "Stopping anvilsrv (PID …)\n");
    for hostile in ["1\n", "-1\n", "0\n", "99999999999999999999\n", "rm -rf\n", ""] {
        std::fs::write(&pid_file, hostile).unwrap();
        // Nothing is signalled: the lock is not held.
        world.check(
            "beamtalk agents stop",
            "anvilsrv is not running (stale PID file)\n[1]\n",
        );
        assert!(!pid_file.exists());
    }
}

/// A raw conversation: send frames, hear the answers until nothing more comes.
fn converse(world: &World, frames: &[u8]) -> Vec<u8> {
    let mut stream = UnixStream::connect(world.namespace().join("agent")).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(frames).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut heard = Vec::new();
    stream.read_to_end(&mut heard).unwrap();
    heard
}

/// Several that start at once, with the file of one that was killed: one of them is the daemon, the others say so, and
/// when it is stopped no process is left.
#[test]
fn many_starts_make_one_daemon() {
    let world = World::new();
    for _ in 0..5 {
        world.check(
            "for i in 1 2 3 4 5 6; do beamtalk agents start > $W/said.$i 2>&1 & done; wait
             cat $W/said.* | grep -c successfully; cat $W/said.* | grep -c 'already running'",
            "1\n5\n",
        );
        let daemons = |world: &World| {
            let all = world.processes();
            all.into_iter()
                .filter(|line| line.contains("agents serve"))
                .count()
        };
        assert_eq!(daemons(&world), 1);
        // Once by force, so that the next ones find what it left.
        world.value("kill -9 $(cat $NAMESPACE/anvilsrv.pid)");
        world.check("beamtalk agents start", "anvilsrv started successfully\n");
        world.value("beamtalk agents stop --kill-sessions");
        assert_eq!(world.processes(), Vec::<String>::new());
        std::fs::write(world.namespace().join("anvilsrv.pid"), "1\n").unwrap();
    }
}

#[test]
fn malformed_clients_affect_only_themselves() {
    let world = World::started();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    let version = b"\x13\0\0\0\x64\xff\xff\0\x20\0\0\x06\09P2000";
    for hostile in [
        &b"\xff\xff\xff\xff\x64\xff\xff"[..],
        b"\0\0\0\0",
        b"\x07\0\0\0\x6a\0\0",
        b"GET / HTTP/1.1\r\n\r\n",
        b"\x13\0\0\0\x64\xff\xff\0\x20\0\0\xff\xff9P2000",
    ] {
        converse(&world, hostile);
        converse(&world, &[version, hostile].concat());
    }
    // Cut off in the middle of a message.
    converse(&world, &version[..9]);
    world.check("beamtalk agents prompt demo fine --wait", "echo: fine\n");
    world.until("beamtalk agents audit | grep -q '\"op\":\"fault\".*\"result\":\"bad size\"'");
}

#[test]
fn a_blocked_event_reader_can_be_flushed_and_loses_nothing() {
    let world = World::started();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    let stream = UnixStream::connect(world.namespace().join("agent")).unwrap();
    let client = beamtalk_ninep::Client::new(stream, beamtalk_ninep::Dialect::Plan9, 8192, false).unwrap();
    let tree = client.attach(None, "tester", "").unwrap();
    let mut events = tree.open("events", 0).unwrap();
    let pending = events.start_read().unwrap();
    // Answered although the read above is blocked.
    assert!(tree.read_text("list").unwrap().contains("demo"));
    pending.flush().unwrap();
    tree.write("demo/alias", b"renamed").unwrap();
    let line = events.read_next(Some(Duration::from_secs(20))).unwrap();
    let text = String::from_utf8_lossy(line.as_ref()).into_owned();
    assert!(text.contains("AliasChange") && text.contains("renamed"), "{text}");
    // A document cut into pages is one prompt.
    let mut file = tree.open("renamed/in", 0x11).unwrap();
    file.write_document(&[b'x'; 8192]).unwrap();
    drop(file);
    world.check(
        "beamtalk agents wait renamed; beamtalk 9p read agent/renamed/out | wc -c",
        "idle\n8199\n",
    );
}

#[test]
fn a_client_none_of_us_wrote_drives_a_session() {
    let world = World::started();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    let client = ninep_client::sync::client::Client::new_unix_with_explicit_path(
        "tester",
        world.namespace().join("agent"),
        "",
    )
    .unwrap();
    client.write_str("demo/in", 0, "from afar").unwrap();
    assert_eq!(client.read_str("demo/wait").unwrap(), "idle\n");
    assert_eq!(client.read_str("demo/out").unwrap(), "echo: from afar\n");
    let names: Vec<String> = client
        .read_dir("agents")
        .unwrap()
        .iter()
        .map(|stat| stat.name.clone())
        .collect();
    assert!(
        names.contains(&"events".to_owned()) && names.contains(&"user".to_owned()),
        "{names:?}"
    );
}

/// A start cut short by a kill can leave two servers of one socket, of which one is reached.
#[test]
fn a_tmux_server_that_nobody_reaches_is_ended() {
    let lost = "rm $NAMESPACE/tmux.sock";
    let world = World::started();
    let servers = || {
        let all = world.processes();
        all.iter().filter(|line| line.starts_with("tmux ")).count()
    };
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    // The next server that is needed takes the place of the one that cannot be reached, and ends it.
    world.check(lost, "");
    world.value("beamtalk agents new echo /tmp --alias other --wait");
    assert_eq!(servers(), 1);
    // A stop ends both.
    world.check(
        &format!("{lost}; tmux -S $NAMESPACE/tmux.sock -f /dev/null new-session -d"),
        "",
    );
    assert_eq!(servers(), 2);
    world.run("beamtalk agents stop --kill-sessions");
    assert_eq!(world.processes(), Vec::<String>::new());
}

#[test]
fn kills_at_random_lose_nothing_that_was_answered() {
    let world = World::started();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.check("beamtalk agents context demo 'Be brief.'; beamtalk agents mail send --to demo --type QUERY_REQUEST --subject keep me", "");
    // The backend: it comes back with everything it had.
    world.check(
        "kill -9 $(beamtalk 9p read agent/demo/pid); beamtalk agents wait demo --for error",
        "error\n",
    );
    world.check("beamtalk agents wait demo --for idle --timeout 60", "idle\n");
    world.check(
        "beamtalk agents prompt demo again --wait",
        "echo: Be brief.\necho: \necho: again\n",
    );
    // The tmux server with everything in it.
    world.transcript(
        r"
        $ kill -9 $(tmux -S $NAMESPACE/tmux.sock display-message -p '#{pid}'); beamtalk agents wait demo --for error
        error
        $ beamtalk agents show demo | grep ^last_error
        last_error: window lost
        $ beamtalk agents wait demo --for idle --timeout 80
        idle
        $ beamtalk agents prompt demo back --wait | tail -1
        echo: back
        ",
    );
    // The daemon, amid a turn.
    world.transcript(
        r"
        $ beamtalk agents prompt demo '!sleep 1'; kill -9 $(cat $NAMESPACE/anvilsrv.pid)
        $ beamtalk agents start; beamtalk agents wait demo --timeout 60
        anvilsrv started successfully
        idle
        $ beamtalk 9p read agent/demo/context
        Be brief.
        $ beamtalk 9p ls agent/demo/inbox | wc -l
        1
        $ beamtalk agents list | tail -1
        … echo … demo …
        ",
    );
}

/// tmux expands formats in some of its arguments, and `#(…)` is a command.
#[test]
fn names_of_directories_are_never_commands() {
    let world = World::started();
    for name in [
        "#(touch $W/pwned)",
        "#{pid}",
        "##",
        "%H %%",
        "ends with;",
        "back\\;",
        "quo'te\"s $(id) `id`",
        "ünï-ç",
        "-x",
    ] {
        std::fs::create_dir_all(world.path("work").join(name.replace("$W/", ""))).unwrap();
    }
    let script = r#"
        cd "$W/work"
        for name in *; do
            id=$(beamtalk agents new shell "./$name" --wait) || exit 1
            test "$(beamtalk agents prompt $id pwd --wait)" = "$W/work/$name" || echo "not in $name"
            test "$(beamtalk 9p read agent/$id/cwd)" = "$W/work/$name" || echo "not said: $name"
            case "$name" in *touch*|*";") beamtalk agents restart $id; beamtalk agents wait $id >/dev/null;; esac
            beamtalk agents kill $id
        done
        find / "$W" -maxdepth 2 -name 'pwned*' 2>/dev/null || true # what others remove meanwhile is no fault"#;
    world.check(script, "");
    // The same for texts that a window carries: here one that a lost record is made from.
    world.value(
        "beamtalk agents new echo '$W/work/ends with;' --alias demo --model 'm;' --wait"
            .replace('\'', "\"")
            .as_str(),
    );
    let id = world.value("beamtalk 9p read agent/list | cut -f1");
    world.check("kill -9 $(cat $NAMESPACE/anvilsrv.pid)", "");
    std::fs::remove_file(world.state().join(format!("sessions/{id}/session.json"))).unwrap();
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.check(
        "beamtalk agents show demo | grep -E '^(cwd|model)'",
        "cwd: …/work/ends with;\nmodel: m;\n",
    );
}

#[test]
fn an_upgrade_under_a_running_daemon_keeps_it_usable() {
    let world = World::new();
    let copy = |name: &str| {
        let path = world.path(name);
        // A link would be the same file, which is never busy with itself.
        std::fs::copy(super::support::BINARY, &path).unwrap();
        path
    };
    let installed = copy("beamtalk");
    let command = installed.display();
    world.check(
        &format!("{command} agents start"),
        "anvilsrv started successfully\n",
    );
    world.value("beamtalk agents new echo $W/work --alias before --wait");
    std::fs::rename(copy("upgrade"), &installed).unwrap();
    world.value("beamtalk agents new shell $W/work --alias after --wait");
    world.transcript(
        r"
        $ beamtalk agents prompt after 'echo new' --wait
        new
        $ beamtalk agents prompt before old --wait
        echo: old
        $ beamtalk agents restart before && beamtalk agents wait before && beamtalk agents prompt before x --wait
        idle
        echo: x
        ",
    );
}

#[test]
fn a_window_without_a_record_is_adopted() {
    let world = World::started();
    let id = world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.check("kill -9 $(cat $NAMESPACE/anvilsrv.pid)", "");
    std::fs::remove_file(world.state().join(format!("sessions/{id}/session.json"))).unwrap();
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.check(
        "beamtalk 9p read agent/list",
        &format!("{id}\techo\tidle\tdemo\t-\t/tmp\n"),
    );
    world.check("beamtalk agents prompt demo hello --wait", "echo: hello\n");
    world.check("beamtalk agents recover", "");
}

#[test]
fn a_session_sees_only_its_own_part_of_the_daemon() {
    let world = World::started();
    let id = world.value("beamtalk agents new shell $W/work --wait");
    world.check(
        &format!("beamtalk agents prompt {id} 'ls -1A $NAMESPACE; ls -A $TMPDIR/../../.. 2>/dev/null | grep -c .' --wait"),
        "agent\nanvillm\n0\n[exit 1]\n",
    );
    world.check(
        &format!("beamtalk agents prompt {id} 'tmux -S $NAMESPACE/tmux.sock list-windows; echo $?' --wait | tail -1"),
        "1\n",
    );
    world.check(
        &format!(
            "beamtalk agents prompt {id} 'cat /etc/shadow; echo x > /etc/new; echo $?' --wait | tail -1"
        ),
        "2\n",
    );
    world.check(
        &format!(
            "beamtalk agents prompt {id} 'echo y > made; cat made; echo z > $TMPDIR/t; cat $TMPDIR/t' --wait"
        ),
        "y\nz\n",
    );
    assert!(!std::path::Path::new("/etc/new").exists());
    world.check(
        &format!("beamtalk agents prompt {id} 'beamtalk 9p read agent/audit' --wait"),
        "beamtalk 9p: open agent/audit: permission denied\n[exit 1]\n",
    );
}

/// What a session may write to never includes a door.
#[test]
fn a_session_around_the_namespace_cannot_replace_the_socket() {
    let world = World::started();
    if !world
        .value("beamtalk agents doctor")
        .contains("ok\tmount namespaces")
    {
        println!("skipped: this kernel has no mount namespaces");
        return;
    }
    let id = world.value("beamtalk agents new shell $W --wait");
    let prompt = |text: &str| format!("beamtalk agents prompt {id} '{text}' --wait");
    for attack in [
        "rm -f $NAMESPACE/agent",
        "mv $NAMESPACE/agent $NAMESPACE/old",
        "mkdir $NAMESPACE/new",
        "ln -s / $NAMESPACE/link",
        "mv $NAMESPACE $NAMESPACE.old",
    ] {
        world.check(
            &prompt(&format!("{attack} 2>/dev/null || echo refused")),
            "refused\n",
        );
    }
    // Nor does it start a daemon of its own by asking for a session.
    world.check(
        &prompt("beamtalk agents new echo; echo $?"),
        "beamtalk agents: permission denied\n5\n",
    );
    world.check(
        &prompt("beamtalk agents state $AGENT_ID; touch work/here && ls work/here"),
        "running\nwork/here\n",
    );
    world.check(&format!("ls -A $NAMESPACE/doors/{id}"), "agent\nanvillm\n");
}

#[test]
fn access_lists_decide_who_may_prompt() {
    let world = World::started();
    let id = world.value("beamtalk agents new shell /tmp --wait");
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.check(
        &format!("beamtalk agents prompt {id} 'beamtalk agents prompt demo hi --wait; echo $?' --wait"),
        "beamtalk agents: permission denied\n5\n",
    );
    std::fs::write(
        world.path("acl"),
        format!("allow owner rpcm\nallow session:{id} rp\n"),
    )
    .unwrap();
    world.check("beamtalk agents acl demo @$W/acl", "");
    world.check(
        &format!("beamtalk agents prompt {id} 'beamtalk agents prompt demo hi --wait; echo $?' --wait"),
        "echo: hi\n0\n",
    );
    std::fs::write(world.path("acl"), "allow everybody x\n").unwrap();
    world.check(
        "beamtalk agents acl demo @$W/acl",
        "beamtalk agents: acl: line 1: unknown principal\n[1]\n",
    );
}

#[test]
fn a_script_as_backend_is_driven_by_patterns() {
    let world = World::new();
    let script = world.path("review");
    std::fs::write(&script, "#!/bin/sh\nprintf 'review> '\nwhile read -r line; do echo \"seen: $line\"; printf 'review> '; done\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    world.config(
        "backends/review.yaml",
        &format!(
            "command: [\"{}\"]\nstart: {{ready: regex, regex: '^review> $'}}\nidle: {{mode: regex, regex: '^review> $'}}\n\
             restart: {{policy: never}}\nprompt: {{slash: block, context: first}}\nbest_effort: true\n",
            script.display()
        ),
    );
    world.config("backends/broken.yaml", "command: [x]\nstrat: 1\n");
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.value("beamtalk agents new review $W/work --alias r --wait");
    world.transcript(
        r#"
        $ beamtalk agents prompt r 'this line' --wait | grep -c 'seen: this line'
        1
        $ beamtalk agents prompt r /quit
        beamtalk agents: slash command not supported by review backend: /quit
        [1]
        $ beamtalk agents ctl r clear
        beamtalk agents: clear not implemented for this backend
        [1]
        $ beamtalk agents ctl r dance
        beamtalk agents: unknown command
        [1]
        $ beamtalk agents new broken
        beamtalk agents: invalid backend: …broken.yaml…strat…
        [1]
        $ beamtalk agents new nothing
        beamtalk agents: backend not found
        [1]
        $ beamtalk agents new review /tmp --sandbox none
        beamtalk agents: sandbox "none" not found
        [1]
        $ beamtalk agents doctor | grep -c '^fail'
        1
        "#,
    );
}

#[test]
fn the_kernel_client_works_where_it_can_mount() {
    let can = std::fs::read_to_string("/proc/filesystems")
        .unwrap_or_default()
        .contains("9p");
    if !is_root() || !can {
        println!("skipped: needs root and a kernel with 9p");
        return;
    }
    let world = World::started();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.transcript(
        r"
        $ mkdir $W/mnt && beamtalk agents mount $W/mnt
        $ echo 'via mount' > $W/mnt/agents/demo/in; cat $W/mnt/agents/demo/wait $W/mnt/agents/demo/out
        idle
        echo: via mount
        $ mkdir $W/mnt/x 2>&1 | grep -c 'not supported'; beamtalk agents umount $W/mnt
        1
        ",
    );
}
