//! The acceptance examples of the guide, against the real binary and real tmux.

use super::support::World;

#[test]
fn examples_1_to_3_start_stop_and_safe_places() {
    let world = World::new();
    world.transcript(
        r"
        $ beamtalk agents status
        anvilsrv is not running
        [1]
        $ beamtalk agents start
        anvilsrv started successfully
        $ stat -c '%a %F' $NAMESPACE $NAMESPACE/agent $NAMESPACE/anvilsrv.pid
        700 directory
        600 socket
        600 regular file
        $ beamtalk agents start
        beamtalk agents: anvilsrv already running (PID …)
        [7]
        $ beamtalk agents status
        anvilsrv is running (PID …)
        $ beamtalk agents stop
        Stopping anvilsrv (PID …)
        $ beamtalk agents stop
        anvilsrv is not running
        [1]
        $ beamtalk agents list
        beamtalk agents: cannot connect to …/ns/agent: No such file or directory
        [3]
        $ mkdir -m 755 $W/loose; NAMESPACE=$W/loose beamtalk agents start; stat -c %a $W/loose
        name space dir …/loose: mode was 0755, now 0700
        anvilsrv started successfully
        700
        $ NAMESPACE=$W/loose beamtalk agents stop --kill-sessions
        Stopping anvilsrv (PID …)
        $ ln -s $W/loose $W/link; NAMESPACE=$W/link beamtalk agents start
        beamtalk agents: bad name space dir …/link: is a symbolic link
        [1]
        $ echo 1 > $NAMESPACE/anvilsrv.pid; beamtalk agents status
        anvilsrv is not running (stale PID file)
        [1]
        $ beamtalk agents start
        anvilsrv started successfully
        $ beamtalk agents stop
        Stopping anvilsrv (PID …)
        ",
    );
}

#[test]
fn examples_4_to_12_turns_files_paths_aliases_context_states() {
    let world = World::started();
    world.check(
        "beamtalk agents new echo /tmp --alias demo --wait | grep -cE '^[0-9a-f]{8}$'",
        "1\n",
    );
    world.check(
        "beamtalk agents prompt demo 'good morning' --wait",
        "echo: good morning\n",
    );
    world.check("beamtalk 9p read agent/list", "…\techo\tidle\tdemo\t-\t/tmp\n");

    world.check("echo 'new echo /tmp' | beamtalk 9p write agent/ctl", "");
    let id = world.value("beamtalk 9p read agent/list | head -1 | cut -f1");
    world.check(&format!("beamtalk 9p read agent/{id}/wait"), "idle\n");
    world.check(
        &format!(
            "echo 'hello' | beamtalk 9p write agent/{id}/in; beamtalk 9p read agent/{id}/wait; \
             beamtalk 9p read agent/{id}/out"
        ),
        "idle\necho: hello\n",
    );
    world.check(
        &format!("beamtalk 9p read agent/{id}/log"),
        "USER:\nhello\n---\nASSISTANT:\necho: hello\n---\n",
    );

    world.check(
        "beamtalk 9p rpc agent/agents/ctl 'new echo /tmp alias=second' | grep -cE '^[0-9a-f]{8}$'",
        "1\n",
    );
    world.check("beamtalk 9p read agent/second/backend", "echo\n");

    for (argument, message) in [
        ("relative/dir", "path is not absolute: relative/dir"),
        ("/tmp/../no/such", "path does not exist: /no/such"),
        ("/etc/passwd", "path is not a directory: /etc/passwd"),
    ] {
        world.check(
            &format!("beamtalk 9p write agent/ctl 'new echo {argument}'"),
            &format!("beamtalk 9p: write agent/ctl: {message}\n[1]\n"),
        );
    }
    world.check(
        "cd / && beamtalk agents show $(beamtalk agents new echo tmp/./) | grep ^cwd",
        "cwd: /tmp\n",
    );

    for (alias, message) in [
        ("'no spaces'", "invalid alias: must match [A-Za-z0-9_-]+"),
        ("second", "alias in use: second"),
        ("deadbeef", "alias reserved: deadbeef"),
        ("events", "alias reserved: events"),
    ] {
        world.check(
            &format!("beamtalk agents alias demo {alias}"),
            &format!("beamtalk agents: {message}\n[1]\n"),
        );
    }

    world.check(
        "beamtalk agents context demo 'Answer briefly.'; beamtalk agents prompt demo 'why?' --wait",
        "echo: Answer briefly.\necho: \necho: why?\n",
    );
    world.transcript(
        r"
        $ beamtalk agents prompt demo '/help' --wait; beamtalk agents context demo --clear; beamtalk 9p read agent/demo/context
        echo: /help
        $ printf 'a $(id) `id`\n; C-c Enter\033[201~\003!\n' | beamtalk agents prompt demo - --wait
        echo: a $(id) `id`
        echo: ; C-c Enter[201~!
        $ beamtalk agents prompt demo '!sleep 2'; beamtalk agents prompt demo 'now' --now
        beamtalk agents: session busy
        [1]
        $ beamtalk agents prompt demo 'later' --wait
        echo: later
        $ beamtalk 9p write agent/demo/state starting
        beamtalk 9p: write agent/demo/state: invalid state transition: idle → starting
        [1]
        ",
    );
    world.check(
        "beamtalk 9p write agent/demo/state asleep",
        "beamtalk 9p: write agent/demo/state: invalid state: \"asleep\" \
         (must be one of: idle, running, stopped, starting, error, exited)\n[1]\n",
    );
    world.transcript(
        r#"
        $ beamtalk agents stop demo; beamtalk agents state demo; beamtalk agents prompt demo x
        stopped
        beamtalk agents: session stopped (use restart)
        [1]
        $ beamtalk agents restart demo && beamtalk agents wait demo
        idle
        $ beamtalk agents kill demo && beamtalk agents state demo
        beamtalk agents: session not found
        [4]
        $ beamtalk agents kill nobody --json
        {"error":{"code":4,"message":"session not found"}}
        [4]
        "#,
    );
}

#[test]
fn example_13_a_crash_restarts_and_a_clean_exit_does_not() {
    let world = World::started();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.transcript(
        r"
        $ beamtalk agents prompt demo '!exit 3'; beamtalk agents wait demo --for error
        error
        $ beamtalk agents wait demo --for idle --timeout 60; beamtalk agents show demo | grep ^crashes
        idle
        crashes: 1
        $ beamtalk agents prompt demo '!exit 0'; beamtalk agents wait demo --for stopped
        stopped
        ",
    );
    // Longer than the delay of a restart.
    world.check(
        "beamtalk agents wait demo --for starting,idle --timeout 7",
        "beamtalk agents: timed out\n[6]\n",
    );
    world.check("beamtalk agents state demo", "stopped\n");
}

#[test]
fn example_14_a_killed_daemon_loses_neither_session_nor_output() {
    let world = World::started();
    let id = world.value("beamtalk agents new shell /tmp --wait");
    world.check(
        &format!("beamtalk agents prompt {id} 'for i in 1 2 3 4; do echo tick $i; sleep 1; done'"),
        "",
    );
    world.check("kill -9 $(cat $NAMESPACE/anvilsrv.pid)", "");
    let captured = world.state().join(format!("sessions/{id}/output/000000.log"));
    world.until(&format!("grep -q 'tick 4' {}", captured.display()));
    world.until(&format!(
        "test -s {}",
        world
            .state()
            .join(format!("sessions/{id}/tmp/.hooks-pending"))
            .display()
    ));
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.check(
        &format!("beamtalk agents output {id} | grep -c '^tick'; beamtalk agents wait {id} --timeout 60"),
        "4\nidle\n",
    );
    world.check(
        &format!("beamtalk agents prompt {id} 'cd /usr && V=kept' --wait"),
        "",
    );
    world.check(
        &format!("beamtalk agents prompt {id} 'pwd; echo $V; false' --wait | tail -3"),
        "/usr\nkept\n[exit 1]\n",
    );
    world.check(
        &format!("beamtalk agents prompt {id} 'if then' --wait | tail -1"),
        "[exit 2]\n",
    );

    // 21: a session acts only for itself.
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.check(
        &format!("beamtalk agents prompt {id} 'beamtalk agents kill demo 2>&1; echo $?' --wait"),
        "beamtalk agents: permission denied\n5\n",
    );
    world.check(
        &format!(
            "beamtalk agents prompt {id} \
             'beamtalk agents mail send --to user --type QUERY_REQUEST --subject hi there' --wait"
        ),
        "",
    );
    world.check(
        "beamtalk agents mail inbox --json | grep -o '\"from\":\"[0-9a-f]*\"'",
        &format!("\"from\":\"{id}\"\n"),
    );
    // Without its token it is still known by its origin.
    world.check(
        &format!("beamtalk agents prompt {id} 'env -u AGENT_TOKEN beamtalk 9p write agent/demo/ctl stop; echo $?' --wait"),
        "beamtalk 9p: open agent/demo/ctl: permission denied\n1\n",
    );
}

#[test]
fn examples_15_and_16_followers_and_events() {
    let world = World::started();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.check(
        "beamtalk agents output demo --follow > $W/f1 & ONE=$!
         beamtalk agents output demo --follow > $W/f2 & TWO=$!
         until beamtalk agents audit | grep -c '\"path\":\"/agents/[0-9a-f]*/output.follow\"' | grep -q 2; do sleep 0.1; done
         beamtalk agents restart demo; beamtalk agents wait demo; beamtalk agents prompt demo x1 --wait
         for f in 1 2; do until grep -qs 'echo: x1' $W/f$f; do sleep 0.1; done; done
         kill $ONE $TWO; cmp $W/f1 $W/f2 && grep -c 'echo: x1' $W/f1",
        "idle\necho: x1\n1\n",
    );
    let seq = world.value("beamtalk agents events --no-follow | tail -1 | jq .seq");
    world.check(
        "beamtalk agents prompt demo 'secret words' --wait",
        "echo: secret words\n",
    );
    world.check(
        &format!("beamtalk agents events --since {seq} --no-follow | jq -r '.type + \" \" + (.data.state // \"-\")'"),
        "Prompt -\nStateChange running\nStateChange idle\nTurnEnd -\n",
    );
    world.check("cat $HOME/.beamtalk/agents/ns-*/audit.jsonl $HOME/.beamtalk/agents/ns-*/events.jsonl | grep -c 'secret words'", "0\n[1]\n");
}

#[test]
fn examples_17_and_18_mail_is_answered_and_survives_a_crash() {
    let world = World::started();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.check(
        "beamtalk agents mail send --to demo --type PROMPT_REQUEST --subject ping 'are you there'",
        "",
    );
    world.until("beamtalk agents mail inbox --json | grep -q PROMPT_RESPONSE");
    world.transcript(
        r#"
        $ beamtalk agents mail inbox --json | jq -r '.[-1] | .type + "/" + .subject + "/" + (.body | rtrimstr("\n"))'
        PROMPT_RESPONSE/Re: ping/echo: are you there
        $ beamtalk 9p write agent/user/mail '{"to":"demo","type":"GOSSIP","subject":"s","body":"b"}'
        beamtalk 9p: write agent/user/mail: invalid message type. valid types are: PROMPT_RESPONSE, …
        [1]
        $ beamtalk 9p write agent/user/mail '{"to":"00000000","type":"QUERY_REQUEST","subject":"s","body":"b"}'
        beamtalk 9p: write agent/user/mail: receiver 00000000 does not exist
        [1]
        $ beamtalk agents mail send --to demo --type QUERY_REQUEST --subject keep 'me'; kill -9 $(cat $NAMESPACE/anvilsrv.pid)
        $ beamtalk agents start; beamtalk 9p ls agent/demo/inbox | wc -l
        anvilsrv started successfully
        1
        "#,
    );
    let message = world.value("beamtalk 9p ls agent/demo/inbox");
    world.check(
        &format!("beamtalk 9p rm agent/demo/inbox/{message}; beamtalk 9p ls agent/demo/completed | wc -l"),
        "2\n",
    );
    world.check(
        "beamtalk 9p write agent/user/ctl 'complete nothing'",
        "beamtalk 9p: write agent/user/ctl: message not found in inbox\n[1]\n",
    );
}

#[test]
fn example_19_nothing_in_shared_places() {
    let world = World::started();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.transcript(
        r"
        $ find $NAMESPACE $HOME/.beamtalk -type p | wc -l
        0
        $ find $HOME/.beamtalk $NAMESPACE -not -type l -not -name tmux.sock -perm /077 | wc -l
        0
        $ beamtalk agents prompt demo '!env SSH_AUTH_SOCK' --wait | wc -c
        1
        $ tr '\0' '\n' < /proc/$(beamtalk 9p read agent/demo/pid)/cmdline | grep -c bt9_
        0
        [1]
        ",
    );
}

#[test]
fn example_22_secret_mode_and_tokens() {
    let world = World::new();
    world.check(
        "beamtalk agents start --auth secret",
        "anvilsrv started successfully\n",
    );
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.transcript(
        r"
        $ beamtalk 9p -n read agent/list
        beamtalk 9p: attach agent: authentication required
        [1]
        $ beamtalk 9p read agent/demo/state
        idle
        $ beamtalk agents prompt demo hello --wait
        echo: hello
        $ beamtalk agents token mint viewer read > $W/tok; beamtalk 9p -T $W/tok read agent/demo/state
        idle
        $ beamtalk 9p -T $W/tok write agent/demo/ctl stop
        beamtalk 9p: open agent/demo/ctl: permission denied
        [1]
        ",
    );
    world.check("beamtalk agents token list | cut -f1,2", "viewer\tread\n");
    world.check(
        "beamtalk agents token revoke viewer; beamtalk 9p -T $W/tok read agent/list",
        "beamtalk 9p: auth agent: authentication failed\n[1]\n",
    );
    world.check("grep -c bt9_ $HOME/.beamtalk/agents/ns-*/audit.jsonl $HOME/.beamtalk/agents/ns-*/tokens.json | cut -d: -f2", "0\n0\n");
}

#[test]
fn long_and_many_lined_prompts_arrive_whole() {
    let world = World::started();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    let line = "0123456789abcdef'\"$`\\ ";
    let text: String = (0..4600).map(|number| format!("{number} {line}\n")).collect();
    assert!(text.len() > 100_000);
    std::fs::write(world.path("prompt"), &text).unwrap();
    let expected: String = text.lines().map(|line| format!("echo: {line}\n")).collect();
    let (answer, status) = world.run("beamtalk agents prompt demo - --wait < $W/prompt");
    assert_eq!(status, 0, "{answer}");
    assert!(answer == expected, "{} bytes of {}", answer.len(), expected.len());
}

#[test]
fn files_of_chapter_9_say_what_is_missing() {
    let world = World::new();
    world.config("sandbox/wide.yaml", "filesystem: {ro: [\"/srv\"]}\n");
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.value("beamtalk agents new echo /tmp --sandbox wide --wait");
    world.transcript(
        r"
        $ beamtalk 9p read agent/eval
        beamtalk 9p: open agent/eval: no workspace
        [1]
        $ beamtalk 9p ls agent/loop
        beamtalk 9p: open agent/loop: loop not running
        [1]
        $ beamtalk 9p -A nothing ls agent
        beamtalk 9p: attach agent: unknown specifier in attach
        [1]
        $ beamtalk 9p -A classic ls agent | grep -cE '^(ctl|list|events|agents|eval)$'
        3
        $ beamtalk agents unit | grep -c KillMode=process
        1
        $ beamtalk agents doctor | grep -c '^fail'
        0
        [1]
        $ beamtalk agents helpers | sh -n
        $ beamtalk agents role x developer
        beamtalk agents: session not found
        [4]
        ",
    );
}
