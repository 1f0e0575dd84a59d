//! The commands of `agents` and `9p` as a script meets them: JSON, wrong arguments, silent daemons.

use super::support::World;
use serde_json::Value;

fn json(world: &World, command: &str) -> Value {
    let (text, _) = world.run(&format!("beamtalk agents --json {command}"));
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{command}: {error}\n{text}"))
}

#[test]
fn every_command_answers_json_when_asked() {
    let world = World::new();
    for (command, code) in [
        ("list", 3),
        ("show x", 3),
        ("new echo --no-start", 3),
        ("bogus", 2),
    ] {
        assert_eq!(json(&world, command)["error"]["code"], code, "{command}");
    }
    world.check(
        "beamtalk agents --json stop",
        "{\"error\":{\"code\":1,\"message\":\"anvilsrv is not running\"}}\n[1]\n",
    );
    world.check(
        "beamtalk agents new --json",
        "{\"error\":{\"code\":2,\"message\":\"the following required arguments were not provided: <BACKEND>\"}}\n[2]\n",
    );
    assert_eq!(json(&world, "status")["running"], false);
    assert_eq!(json(&world, "start")["ok"], true);
    assert_eq!(
        json(&world, "new echo $W/work --alias demo --wait")["state"],
        "idle"
    );
    let turn = json(&world, "prompt demo '- one' --wait");
    assert_eq!(
        (&turn["output"], &turn["turn"]),
        (&"echo: - one\n".into(), &1.into())
    );
    for (command, field, expected) in [
        ("state demo", "state", "idle"),
        ("wait demo", "state", "idle"),
        (
            "log demo",
            "log",
            "USER:\n- one\n---\nASSISTANT:\necho: - one\n---\n",
        ),
        ("output demo", "output", "echo: - one\nagent> "),
        ("screen demo", "screen", "echo: - one\nagent>\n"),
        ("context demo", "context", ""),
    ] {
        assert_eq!(json(&world, command)[field], expected, "{command}");
    }
    for command in [
        "context demo x",
        "role demo tester",
        "state demo idle",
        "interrupt demo",
        "ctl demo refresh",
        "acl demo 'allow owner rpcm'",
        "mail send --to demo --type QUERY_REQUEST --subject s body",
        "hook install claude",
        "unit --install",
        "stop demo",
        "restart demo",
        "alias demo other",
        "kill other",
    ] {
        assert_eq!(json(&world, command)["ok"], true, "{command}");
    }
    for command in [
        "list",
        "backends",
        "roles",
        "skills",
        "tools",
        "recover",
        "token list",
        "doctor",
        "mail inbox",
    ] {
        assert!(json(&world, command).is_array(), "{command}");
    }
    assert!(json(&world, "token mint a read")["token"].is_string());
    assert!(
        json(&world, "unit")["unit"]
            .as_str()
            .unwrap()
            .contains("KillMode=process")
    );
    assert!(json(&world, "helpers")["helpers"].is_string());
    assert_eq!(json(&world, "show nobody")["error"]["code"], 4);
}

#[test]
fn wrong_arguments_are_named() {
    let world = World::started();
    let id = world.value("beamtalk agents new echo $W/work --alias demo --wait");
    for (command, expected) in [
        (
            "agents list --timeout nan",
            "error: invalid value 'nan' for '--timeout <SECONDS>': not a number of seconds\n\nFor more information, try '--help'.\n[2]\n",
        ),
        ("agents list --timeout 1e18 | head -1 | cut -c1-2", "ID\n"),
        (
            "agents list --token-file /nosuch",
            "beamtalk agents: token file /nosuch: No such file or directory (os error 2)\n[1]\n",
        ),
        (
            "agents new echo --context @/nosuch",
            "beamtalk agents: /nosuch: No such file or directory (os error 2)\n[1]\n",
        ),
        (
            "agents new echo \"$(printf '/tmp/a\\nb')\"",
            "beamtalk agents: invalid path\n[1]\n",
        ),
        (
            "agents mail history user --date 2026-01",
            "error: invalid value '2026-01' for '--date <YYYYMMDD>': expected eight digits, as 20260131\n\nFor more information, try '--help'.\n[2]\n",
        ),
        (
            "agents mail read zz",
            "beamtalk agents: message not found in inbox\n[1]\n",
        ),
        (
            "9p ls ../x",
            "beamtalk 9p: bad path '../x': must begin with a service, as in agent/list\n[2]\n",
        ),
        (
            "9p -a tcp!host!564 ls /",
            "beamtalk 9p: bad address tcp!host!564: must be unix!/path or an absolute path\n[2]\n",
        ),
        (
            "9p -a /nosuch ls /",
            "beamtalk 9p: cannot connect to /nosuch: No such file or directory\n[3]\n",
        ),
        (
            "9p write agent/user/ctl 'delete 01'",
            "beamtalk 9p: write agent/user/ctl: message not found in inbox\n[1]\n",
        ),
    ] {
        world.check(&format!("beamtalk {command}"), expected);
    }
    for file in ["in", "prompt"] {
        world.check(
            &format!("head -c 300000 /dev/zero | tr '\\0' x | beamtalk 9p write agent/demo/{file}"),
            &format!("beamtalk 9p: write agent/demo/{file}: prompt too large\n[1]\n"),
        );
    }
    // A prefix names a message or a receiver only if it is the only one.
    let send = "beamtalk agents mail send --type QUERY_REQUEST --subject s --to";
    world.check(&format!("{send} {} one; {send} demo two", &id[..5]), "");
    world.check(
        &format!("AGENT_ID={id} beamtalk agents mail complete 0"),
        "beamtalk agents: 2 messages begin with 0\n[1]\n",
    );
    // All that can be killed is killed; what its mail says outlives a session.
    world.check(
        "beamtalk agents kill nobody demo",
        "beamtalk agents: session not found\n[4]\n",
    );
    world.check("beamtalk agents list", "ID  BACKEND  STATE  ALIAS  ROLE  CWD\n");
    world.check(&format!("beamtalk agents mail search {id} two | wc -l"), "1\n");
}

#[test]
fn a_console_sends_lines_and_shows_answers() {
    let world = World::started();
    world.value("beamtalk agents new echo $W/work --alias demo --wait");
    world.check(
        "(echo one; beamtalk 9p read agent/demo/wait >/dev/null; sleep 1; echo two; sleep 1) | beamtalk 9p con agent/demo/prompt",
        "echo: one\necho: two\n",
    );
    world.check(
        "(echo 'tail 12'; sleep 1) | timeout 2 beamtalk 9p con agent/demo/output.follow; echo",
        "two\nagent> \n",
    );
    world.check(
        "echo bogus | beamtalk 9p con agent/demo/ctl",
        "beamtalk 9p: write agent/demo/ctl: unknown command\n",
    );
}

#[test]
fn nobody_waits_for_ever() {
    let world = World::started();
    world.value("beamtalk agents new echo $W/work --alias demo --wait");
    // A daemon that does not answer: the limit holds for every request. Its threads stop one by one.
    world.check(
        "kill -STOP $(cat $NAMESPACE/anvilsrv.pid)\n\
         while cat /proc/$(cat $NAMESPACE/anvilsrv.pid)/task/*/stat | grep -qv ') T '; do sleep 0.01; done\n\
         beamtalk agents list --timeout 0.5; echo $?\n\
         beamtalk agents wait demo --for error --timeout 0.5; echo $?\n\
         kill -CONT $(cat $NAMESPACE/anvilsrv.pid)",
        "beamtalk agents: timed out\n6\nbeamtalk agents: timed out\n6\n",
    );
    // One that ends: what was waited for will not come.
    world.check(
        "beamtalk agents wait demo --for error & sleep 1; beamtalk agents stop >/dev/null; wait $!",
        "beamtalk agents: the daemon stopped\n[3]\n",
    );
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    // One that loses the session.
    world.check(
        "beamtalk agents prompt demo '!sleep 60' --wait & sleep 1; beamtalk agents kill demo; wait $!",
        "beamtalk agents: session not found\n[4]\n",
    );
    world.check(
        "beamtalk agents stop --kill-sessions >/dev/null; ls $NAMESPACE",
        "",
    );
}

#[test]
fn what_a_session_is_stays_known_to_its_owner_whatever_the_list_says() {
    let world = World::started();
    world.value("beamtalk agents new echo $W/work --alias demo --wait");
    world.check("beamtalk 9p write agent/demo/acl 'deny owner rp'", "");
    for (file, expected) in [
        ("acl", "deny owner rp"),
        ("state", "idle\n"),
        ("alias", "demo\n"),
        (
            "out",
            "beamtalk 9p: open agent/demo/out: permission denied\n[1]\n",
        ),
        (
            "screen",
            "beamtalk 9p: open agent/demo/screen: permission denied\n[1]\n",
        ),
    ] {
        world.check(&format!("beamtalk 9p read agent/demo/{file}"), expected);
    }
    world.check(
        "beamtalk 9p write agent/demo/acl 'allow owner rpcm'; beamtalk agents prompt demo x --wait",
        "echo: x\n",
    );
}

#[test]
fn files_are_as_old_as_their_last_change() {
    let world = World::started();
    world.value("beamtalk agents new echo $W/work --alias demo --wait");
    let stat = |file: &str| world.value(&format!("beamtalk 9p stat agent/{file}"));
    let files = ["list", "backends", "roles", "user", "demo/output"];
    let before: Vec<String> = files.iter().map(|file| stat(file)).collect();
    world.value("sleep 1.1");
    for (file, before) in files.iter().zip(&before) {
        assert_eq!(&stat(file), before);
    }
    world.value("beamtalk agents prompt demo x --wait");
    for (file, before) in files.iter().zip(&before).filter(|(file, _)| **file != "roles") {
        assert_ne!(&stat(file), before, "{file}");
    }
}

#[test]
fn a_workspace_that_is_not_there_is_not_served() {
    let world = World::new();
    std::fs::create_dir_all(world.path("work/orbit")).unwrap();
    std::fs::write(world.path("work/orbit/beamtalk.toml"), "").unwrap();
    for command in ["start", "serve"] {
        for name in [
            "no-such-thing",
            "a/b",
            "../nowhere",
            "/nowhere",
            ".",
            "orbit",
            "ä",
        ] {
            let (text, code) = world.run(&format!("beamtalk agents {command} --workspace {name}"));
            assert_eq!(code, 1, "{command} {name}: {text}");
            assert!(
                text.contains(&format!("there is no workspace '{name}'")),
                "{command} {name}: {text}"
            );
        }
        let (text, code) = world.run(&format!("beamtalk agents {command} --workspace x --no-workspace"));
        assert_eq!(code, 2, "{text}");
    }
    assert_eq!(json(&world, "status")["running"], false);
    // A project may get its workspace later.
    world.check(
        "beamtalk agents start --workspace ./orbit",
        "anvilsrv started successfully\n",
    );
    world.check("beamtalk agents stop >/dev/null", "");
}

/// What one does with files by hand is done with the tree: copied, edited, listed, found, searched and followed. What
/// fails is told, and a text that could not be written is not lost.
#[test]
fn people_work_with_the_tree_as_with_files() {
    let world = World::with_workspace();
    world.check(
        "cd $W; printf 'whirl => 9' > whirl.txt; beamtalk 9p cp ./whirl.txt agent/classes/Fan/whirl
         beamtalk 9p cp agent/classes/Fan/whirl ./back.txt; cat back.txt; echo; beamtalk 9p cp agent/classes/Fan/whirl -; echo
         beamtalk 9p rpc agent/eval 'Fan spawn whirl'; beamtalk 9p cp ./none agent/classes/Fan/none",
        "whirl => 9\nwhirl => 9\n9\nbeamtalk 9p: read ./none: No such file or directory (os error 2)\n[1]\n",
    );
    world.check(
        "beamtalk 9p find agent/classes/Fan 'wh*'; beamtalk 9p tree agent/classes/Fan | grep -cx '  whirl'
         beamtalk 9p grep '=> [0-9]$' agent/classes/Fan/whirl; beamtalk 9p grep nowhere agent/classes/Fan/whirl",
        "agent/classes/Fan/whirl\n1\nagent/classes/Fan/whirl:1:whirl => 9\nbeamtalk 9p: no line matches 'nowhere'\n[1]\n",
    );
    let (said, status) = world.run("beamtalk 9p grep '(' agent/classes/Fan; exit $?");
    assert!(status == 2 && said.contains("unclosed group"), "{status} {said}");
    world.check(
        "EDITOR='sed -i s/9/10/' beamtalk 9p edit agent/classes/Fan/whirl; beamtalk 9p read agent/classes/Fan/whirl; echo
         EDITOR=true beamtalk 9p edit agent/classes/Fan/whirl; ls $TMPDIR/beamtalk-*-whirl.bt 2>/dev/null
         EDITOR=false beamtalk 9p edit agent/classes/Fan/whirl",
        "whirl => 10\nbeamtalk 9p: edit agent/classes/Fan/whirl: the editor failed (exit status: 1), nothing was written\n[1]\n",
    );
    // Neither a text that does not compile nor one whose editor died is lost.
    world.run("echo 'echo // more >> $1; exit 1' > $W/dying");
    for editor in ["sed -i s/10/10:=/", "sh $W/dying"] {
        let (said, status) = world.run(&format!(
            "EDITOR=\"{editor}\" beamtalk 9p edit agent/classes/Fan/whirl"
        ));
        let kept = said
            .lines()
            .last()
            .and_then(|line| line.strip_prefix("your text is in "));
        let text = std::fs::read_to_string(kept.unwrap_or_else(|| panic!("{said}"))).unwrap();
        assert!(
            status == 1 && (text.contains("10:=") || text.contains("// more")),
            "{text}"
        );
        std::fs::remove_file(kept.unwrap_or_default()).unwrap();
    }
    world.check("beamtalk 9p read agent/classes/Fan/whirl", "whirl => 10\n");
    // Paths of the tree are completed in the shell, directories with their slash; other words as ever.
    std::fs::write(
        world.path("complete"),
        "eval \"$(beamtalk completions bash)\"\nsay() { COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); \
         _beamtalk_or_path beamtalk \"${COMP_WORDS[COMP_CWORD]}\" \"${COMP_WORDS[COMP_CWORD-1]}\"; echo \"${COMPREPLY[*]}\" | tr '\\n' ' '; echo; }\n\
         say beamtalk 9p read agent/classes/Fan; say beamtalk 9p read agent/classes/Fan/w; say beamtalk 9p read agent/nothing; say beamtalk 9p gr\n",
    )
    .unwrap();
    world.check(
        "bash $W/complete | sed 's/ *$//'",
        "agent/classes/Fan/\nagent/classes/Fan/whirl\n\ngrep\n",
    );
    world.check(
        "beamtalk 9p cat -f agent/transcript.follow > $W/told & p=$!
         until grep -qs seven $W/told; do beamtalk 9p write agent/transcript seven; done; kill $p; grep -o seven $W/told | head -n 1",
        "seven\n",
    );
}
