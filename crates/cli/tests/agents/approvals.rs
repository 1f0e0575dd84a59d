//! Questions that wait for a person: what becomes of them when who asked, or the daemon, goes; and how the person hears
//! of them.

use crate::support::World;

/// The id of the question of a kind.
fn id_of(world: &World, kind: &str) -> String {
    world.until(&format!("beamtalk agents approvals | grep -q {kind}"));
    world.value(&format!(
        "beamtalk agents approvals --json | tr '{{' '\\n' | grep '\"kind\":\"{kind}\"' | grep -o 'ap-[0-9a-f]*'"
    ))
}

/// What waits is kept with mode 0600 through a crash of the daemon, under the same id: mail, a program's question, a
/// session's. Who answered before is still known, and who asks the same again gets the answer that came meanwhile.
#[test]
fn questions_survive_the_daemon() {
    let world = crate::team::asking();
    world.value(
        "beamtalk agents new echo . --alias other --wait; beamtalk agents prompt demo 'ask me'
         beamtalk 9p write agent/demo/mail '{\"to\":\"user\",\"type\":\"APPROVAL_REQUEST\",\"subject\":\"Deploy?\",\"body\":\"b\"}'
         beamtalk 9p write agent/other/mail '{\"to\":\"user\",\"type\":\"APPROVAL_REQUEST\",\"subject\":\"Again?\",\"body\":\"b\"}'",
    );
    let kinds = ["backend", "question"];
    world.value("(beamtalk 9p rpc agent/other/ctl 'ask which colour' > /dev/null 2>&1 &)");
    let before: Vec<String> = kinds.iter().map(|kind| id_of(&world, kind)).collect();
    world.until("test $(beamtalk agents approvals | grep -c mail) = 2");
    let mails = world.value("beamtalk agents approvals | grep mail | sort");
    let first = world.value("beamtalk agents approvals | grep Again | grep -o 'ap-[0-9a-f]*'");
    world.value(&format!("beamtalk agents approvals approve {first}"));
    world.check("stat -c %a $W/home/.beamtalk/agents/*/approvals.json", "600\n");
    world.value("kill -9 $(cat $NAMESPACE/anvilsrv.pid)");
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    for (kind, id) in kinds.iter().zip(&before) {
        assert_eq!(id_of(&world, kind), *id, "{kind}");
    }
    let mail = world.value("beamtalk agents approvals | grep mail");
    assert!(mails.contains(&mail) && !mail.contains(&first), "{mail}\n{mails}");
    world.check(
        &format!("beamtalk agents approvals reject {first}"),
        "beamtalk agents: already answered by …\n[1]\n",
    );
    let [screen, question] = [before.first().unwrap(), before.last().unwrap()];
    world.until("beamtalk agents state demo | grep -q waiting");
    world.check(
        &format!(
            "beamtalk agents approvals answer {question} deep blue; beamtalk 9p rpc agent/other/ctl 'ask which colour'
             beamtalk agents approvals approve {screen} > /dev/null; beamtalk agents wait demo --for idle
             beamtalk agents output demo | grep -c 'answered yes'"
        ),
        "deep blue\nidle\n1\n",
    );
}

/// A question goes with the one who waits for its answer, and with the session; the daemon going and coming is no
/// reason to forget it as long as somebody asks on.
#[test]
fn a_question_goes_with_who_asked() {
    let world = World::started();
    world.value("beamtalk agents new echo $W/work --alias demo --wait; beamtalk agents new echo $W/work --alias other --wait");
    world.value("beamtalk 9p rpc agent/demo/ctl 'ask one' > /dev/null 2>&1 & echo $! > $W/pid; true");
    let id = id_of(&world, "question");
    world.value("kill -9 $(cat $W/pid)");
    world.until("test -z \"$(beamtalk 9p read agent/agents/approvals/pending)\"");
    world.check(
        &format!("beamtalk agents approvals answer {id} late"),
        "beamtalk agents: not found\n[1]\n",
    );
    world.value(
        "(beamtalk 9p rpc agent/other/ctl 'ask two' > $W/said 2>&1; echo done >> $W/said) > /dev/null 2>&1 &",
    );
    id_of(&world, "question");
    world.value("beamtalk agents kill other");
    world.until("grep -q done $W/said && test -z \"$(beamtalk 9p read agent/agents/approvals/pending)\"");
}

/// Who asks more than a person could answer is told so, others are not kept from asking, and where there are too many
/// connections the next one is told that.
#[test]
fn a_flood_of_questions_is_refused_clearly() {
    let world = World::new();
    world.config("global.yaml", "limits: {connections: 40}\n");
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.value("beamtalk agents new echo $W/work --alias demo --wait; beamtalk agents new echo $W/work --alias other --wait");
    world.value(
        "for i in $(seq 20); do (beamtalk 9p rpc agent/demo/ctl \"ask $i\" > $W/said.$i 2>&1 &) ; done",
    );
    world.until("test $(cat $W/said.* | wc -l) = 4");
    world.check(
        "cat $W/said.* | sort -u; beamtalk agents approvals | grep -c question",
        "beamtalk 9p: write agent/demo/ctl: too many requests\n16\n",
    );
    world.value("(beamtalk 9p rpc agent/other/ctl 'ask too' > /dev/null 2>&1 &)");
    world.until("test $(beamtalk agents approvals | grep -c question) = 17");
    world.value("for i in $(seq 40); do (beamtalk 9p cat -f agent/events > /dev/null 2>&1 &) ; done");
    // A follower that met somebody who only looked was refused, and its place is free again: another takes it.
    world.until(
        "full() { beamtalk agents list 2>&1 | grep -q 'too many requests'; }
         (beamtalk 9p cat -f agent/events > /dev/null 2>&1 &); full && sleep 0.2 && full",
    );
    world.check(
        "beamtalk 9p read agent/list",
        "beamtalk 9p: too many requests\n[3]\n",
    );
}

/// What nobody answers in time is rejected: a session's question with the reason, a program's own by its keys; mail waits.
#[test]
fn what_nobody_answers_is_rejected() {
    let world = crate::team::asking();
    world.config("global.yaml", "limits: {approval_seconds: 1}\n");
    world.value(
        "beamtalk 9p write agent/ctl reload; beamtalk agents new echo . --alias other --wait
         beamtalk 9p write agent/other/mail '{\"to\":\"user\",\"type\":\"APPROVAL_REQUEST\",\"subject\":\"Deploy?\",\"body\":\"b\"}'",
    );
    world.check(
        "beamtalk agents ctl other ask 'which colour'",
        "beamtalk agents: not approved: no answer\n[1]\n",
    );
    world.value("beamtalk agents prompt demo 'ask me'");
    world.until("beamtalk 9p read agent/demo/log | grep -q 'answered no'");
    world.check("beamtalk agents approvals | tail -n +2 | grep -c mail", "1\n");
}

/// A question keeps its lines and its quotes on every way, and its answer is printed.
#[test]
fn questions_keep_their_lines() {
    let world = World::started();
    world.value("beamtalk agents new echo $W/work --alias demo --wait");
    let ways = [
        "beamtalk agents ctl demo ask \"it's\none  \\\"two\\\"\"",
        "export AGENT_ID=$(beamtalk 9p read agent/demo/info | sed 's/.*\"id\":\"\\([0-9a-f]*\\)\".*/\\1/')
         PATH=$(ls -d $W/home/.beamtalk/agents/*/sessions/$AGENT_ID/tmp/bin):$PATH; ask \"it's\none  \\\"two\\\"\"",
        "beamtalk 9p rpc agent/demo/ctl \"ask 'it''s\none  \\\"two\\\"'\"",
    ];
    for way in ways {
        world.value(&format!(
            "({way} > $W/said 2>&1; echo done >> $W/said) > /dev/null 2>&1 &"
        ));
        let id = id_of(&world, "question");
        let asked = world.value(&format!("beamtalk 9p read agent/agents/approvals/{id}/request"));
        assert!(
            asked.contains(r#""summary":"it's\none  \"two\"""#),
            "{way}: {asked}"
        );
        world.value(&format!(
            "beamtalk agents approvals answer {id} blue; until grep -qs done $W/said; do :; done"
        ));
        world.check("cat $W/said", "blue\ndone\n");
    }
}

/// When something waits, the program of `notify.command` is told what, as text; an empty one switches it off.
#[test]
fn the_person_is_notified() {
    let world = World::new();
    let told = world.path("told");
    std::fs::write(
        world.path("notice"),
        format!(
            "#!/bin/sh\nprintf '%s|%s|%s\\n' \"$1\" \"$2\" \"$3\" >> {}\n",
            told.display()
        ),
    )
    .unwrap();
    world.value("chmod +x $W/notice");
    let notice = world.path("notice").display().to_string();
    world.config(
        "global.yaml",
        &format!("notify: {{command: [{notice}, first]}}\n"),
    );
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.value("beamtalk agents new echo $W/work --alias demo --wait");
    world.value("(beamtalk 9p rpc agent/demo/ctl 'ask --which <b>colour</b>' > /dev/null 2>&1 &)");
    world.until("test -s $W/told");
    world.value("beamtalk 9p write agent/demo/mail '{\"to\":\"user\",\"type\":\"APPROVAL_REQUEST\",\"subject\":\"Deploy?\",\"body\":\"b\"}'");
    world.until("test $(wc -l < $W/told) = 2");
    world.check(
        "cat $W/told",
        "first|Beamtalk: demo asks| --which ‹b›colour‹/b›\nfirst|Beamtalk: demo asks|Deploy?\n",
    );
    world.config(
        "global.yaml",
        &format!("notify: {{command: \"{notice} 'by line'\"}}\n"),
    );
    world
        .value("beamtalk 9p write agent/ctl reload; (beamtalk agents ctl demo ask again > /dev/null 2>&1 &)");
    world.until("grep -qx 'by line|Beamtalk: demo asks|again' $W/told");
    world.config("global.yaml", "notify: {command: []}\n");
    world.value(
        "beamtalk 9p write agent/ctl reload; (beamtalk agents ctl demo ask silent > /dev/null 2>&1 &)",
    );
    id_of(&world, "question");
    world.until("beamtalk agents approvals | grep -q silent");
    world.check("grep -c silent $W/told", "0\n[1]\n");
}
