//! What people and programs do wrong, or do at the wrong moment: a clear error, nothing lost, the daemon lives on.

use crate::support::World;

/// A name that no selector has is refused; one with `/` or `%` in it is written encoded, and leads to the method.
#[test]
fn names_are_selectors_or_refused() {
    let world = World::with_workspace();
    let refused = |name: &str| {
        let said = world.run(&format!(
            "beamtalk 9p write -c \"agent/classes/Fan/{name}\" 'x => 1'"
        ));
        assert_ne!(said.1, 0, "{name}: {}", said.0);
        said.0
    };
    for name in ["is on", "%zz", "%2f", "a%", "4711", "a:b"] {
        let said = refused(name);
        assert!(
            said.contains("bad name") || said.contains("not found"),
            "{name}: {said}"
        );
    }
    refused(&"x".repeat(300));
    refused("a/b");
    world.check(
        "beamtalk 9p write -c agent/classes/Fan/%2F '/ n => n + 100'; beamtalk 9p write -c agent/classes/Fan/%25 '% n => n + 200'
         beamtalk 9p ls agent/classes/Fan | grep %; beamtalk 9p rpc agent/eval 'Fan spawn / 2'; beamtalk 9p rpc agent/eval 'Fan spawn % 2'
         beamtalk 9p ls 'agent/classes/is on'; beamtalk 9p ls agent/actors/nobody%2F; beamtalk 9p read agent/changes/pending",
        "%25\n%2F\n102\n202\nbeamtalk 9p: stat agent/classes/is on: not found\n\
         beamtalk 9p: stat agent/actors/nobody%2F: not found\nFan>>/\nFan>>%\n",
    );
}

/// Two who write the same method both succeed: the last one wins, both are in the log, the text is whole.
#[test]
fn two_writers_of_one_method_leave_one_of_their_texts_and_both_in_the_log() {
    let world = World::with_workspace();
    world.check(
        "for w in 1 2; do (for i in 1 2 3 4 5; do beamtalk 9p write agent/classes/Fan/speed \"speed => $w$i\" || echo failed; done) & done; wait
         beamtalk 9p read agent/changes/log | grep -c speed; beamtalk 9p read agent/classes/Fan/speed | grep -cE '^speed => (15|25)$'
         test \"$(beamtalk 9p rpc agent/eval 'Fan spawn speed')\" = \"$(beamtalk 9p read agent/classes/Fan/speed | tail -1 | sed 's/.* //')\" && echo same",
        "10\n1\nsame\n",
    );
}

/// A class that goes while somebody looks at it: what is opened then is not there, and the rest is.
#[test]
fn a_class_may_go_while_it_is_open() {
    let world = World::with_workspace();
    world.check(
        "printf 'Object subclass: Gone\\n  one => 1\\n\\n  two => 2\\n' | beamtalk 9p write agent/classes/.new
         mkfifo $W/hold; (cat $W/hold > /dev/null; printf 'two => 3') | beamtalk 9p write agent/classes/Gone/two & p=$!
         beamtalk 9p rm agent/classes/Gone; : > $W/hold; wait $p; echo $?
         beamtalk 9p ls agent/classes/Gone; beamtalk 9p read agent/classes/Gone/one; beamtalk 9p read agent/classes/Fan/speed | tail -1; echo",
        "beamtalk 9p: …: not found\n1\nbeamtalk 9p: stat agent/classes/Gone: not found\n\
         beamtalk 9p: open agent/classes/Gone/one: not found\nspeed => self.speed\n",
    );
}

/// A session that floods, dies in a turn or speaks to the terminal is text like any other.
#[test]
fn wild_sessions_harm_nobody() {
    let world = World::started();
    world.value("beamtalk agents new shell $W/work --alias wild --wait; beamtalk agents new echo $W/work --alias calm --wait");
    world.check(
        "beamtalk agents prompt wild 'head -c 20000000 /dev/zero | tr \"\\\\0\" x | fold -w 100' & p=$!
         beamtalk agents prompt calm hello --wait; wait $p; beamtalk agents wait wild --for idle",
        "echo: hello\nidle\n",
    );
    let said = world.value(
        "beamtalk agents prompt wild \"printf '\\033]0;evil\\007\\033[31mred\\033[0m\\033[2Jdone'\" --wait",
    );
    assert!(said.contains("red") && said.contains("done"), "{said:?}");
    assert!(!said.chars().any(|c| c.is_control() && c != '\n'), "{said:?}");
    world.run("beamtalk agents prompt wild 'kill -9 $PPID; kill -9 $$' --wait");
    world.until("beamtalk agents state wild | grep -qE 'idle|error|stopped|starting'");
    world.check("beamtalk agents prompt calm again --wait", "echo: again\n");
}

/// A repository without commits is refused with the reason; a detached head and submodules are worked with, hooks are not
/// run, and what has no branch to go back to says so.
#[test]
fn odd_repositories_are_worked_with_or_refused() {
    let world = World::started();
    world.value(
        "export GIT_CONFIG_COUNT=2 GIT_CONFIG_KEY_0=user.name GIT_CONFIG_VALUE_0=a GIT_CONFIG_KEY_1=user.email GIT_CONFIG_VALUE_1=a@b
         git init -q -b main $W/empty; git init -q -b main $W/one; git -C $W/one commit -q --allow-empty -m one
         cp -r $W/one $W/det; git -C $W/det checkout -q --detach
         cp -r $W/one $W/sup; git -C $W/sup -c protocol.file.allow=always submodule --quiet add $W/one sub; git -C $W/sup commit -qm sub
         printf '#!/bin/sh\\ntouch %s/hooked\\n' $W > $W/sup/.git/hooks/post-checkout; cp $W/sup/.git/hooks/post-checkout $W/sup/.git/hooks/post-commit
         chmod +x $W/sup/.git/hooks/*",
    );
    world.check(
        "beamtalk agents new echo $W/empty --worktree",
        "beamtalk agents: invalid base: main is no commit\n[1]\n",
    );
    world.value("beamtalk agents new echo $W/det --worktree --alias det --wait; beamtalk agents new echo $W/sup --worktree --alias sup --wait");
    world.check(
        "beamtalk 9p read agent/det/worktree | grep -c '\"base\":null'; beamtalk agents ctl det merge > /dev/null 2>&1; echo $?
         echo x > $(ls -d $W/home/.beamtalk/agents/*/worktrees/$(beamtalk 9p read agent/sup/tmux | sed 's/.*://')/tree)/new
         beamtalk agents ctl sup merge && git -C $W/sup show main:new; ls $W/hooked 2>/dev/null; beamtalk agents list | wc -l",
        "1\n1\nx\n3\n",
    );
}
