//! A team of agents: queues, questions, usage and budgets, worktrees.

use super::support::World;

#[test]
fn prompts_wait_in_a_queue_and_come_in_order() {
    let world = World::started();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.check(
        "beamtalk agents prompt demo '!sleep 2'
         beamtalk agents prompt demo first
         beamtalk agents prompt demo second
         beamtalk agents prompt demo third --now",
        "queued (0 before it)\nqueued (1 before it)\nbeamtalk agents: session busy\n[1]\n",
    );
    let lines = world.value("beamtalk 9p read agent/demo/queue");
    let lines: Vec<serde_json::Value> = lines
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines.len(), 2, "{lines:?}");
    assert_eq!(
        (&lines[1]["text_bytes"], &lines[1]["author"], &lines[1]["state"]),
        (&6.into(), &"user".into(), &"waiting".into())
    );
    // One is taken out, another put in.
    let first = lines[0]["id"].as_str().unwrap();
    world.check(
        &format!(
            "beamtalk 9p write agent/demo/ctl 'unqueue {first}'
             printf 'third\\nline' | beamtalk 9p write agent/demo/queue
             beamtalk 9p write agent/demo/ctl 'unqueue nonsense'"
        ),
        "…not found\n[1]\n",
    );
    world.until("beamtalk 9p read agent/demo/log | grep -qx 'echo: line'");
    world.check(
        "beamtalk 9p read agent/demo/queue; beamtalk 9p read agent/demo/log | grep '^echo'",
        "echo: !sleep 2\necho: second\necho: third\necho: line\n",
    );
}

#[test]
fn a_queue_survives_the_daemon_and_what_may_have_been_typed_is_not_typed_again() {
    let world = World::started();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.value(
        "beamtalk agents prompt demo '!sleep 3'
         beamtalk agents prompt demo lost
         beamtalk agents prompt demo kept",
    );
    world.value("kill -9 $(cat $NAMESPACE/anvilsrv.pid)");
    // As if it had died between the mark and the typing.
    world.value(
        "cd ~/.beamtalk/agents/*/sessions/*/queue && for f in *; do
            grep -q '\"lost\"' $f && sed -i 's/\"marked\":false/\"marked\":true/' $f; done; ls | wc -l",
    );
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.until("beamtalk 9p read agent/demo/log | grep -qx 'echo: kept'");
    world.check(
        "beamtalk 9p read agent/demo/log | grep -c 'echo: lost'
         beamtalk 9p read agent/demo/queue | grep -c unknown
         beamtalk 9p write agent/demo/ctl clear-queue
         beamtalk 9p read agent/demo/queue",
        "0\n1\n",
    );
}

#[test]
fn a_full_queue_and_bad_prompts_are_refused_at_once() {
    let world = World::started();
    world.value("beamtalk agents new echo /tmp --alias demo --wait");
    world.value("beamtalk agents prompt demo '!sleep 60'; for i in $(seq 100); do echo $i; done | while read i; do echo p$i | beamtalk 9p write agent/demo/queue; done");
    world.check(
        "echo more | beamtalk 9p write agent/demo/queue
         printf '' | beamtalk 9p write agent/demo/queue",
        "…queue full\n…empty prompt\n[1]\n",
    );
    world.value("beamtalk agents kill demo");
}

/// A program that asks before it does some things, and tells what it used.
const PROGRAM: &str = r#"
stty -echo
while printf 'ready> ' && read -r line; do
    case $line in
    ask*) printf 'Do you want to proceed? (y/n) '; read -r answer; echo "answered $answer";;
    *) echo "did $line"; echo 'tokens: 1,200 in 3k out cost $0.25';;
    esac
done
"#;

const ASKING: &str = r#"
command: ["/bin/sh", "{CWD}/asking.sh"]
start: {ready: regex, regex: '^ready> $'}
idle: {mode: regex, regex: '^ready> $'}
approval: {pattern: 'Do you want to proceed\? \(y/n\)$', approve: ["y", Enter], reject: ["n", Enter]}
usage: {pattern: 'tokens: (?<in>[0-9,k]+) in (?<out>[0-9,k]+) out cost \$(?<cost>[0-9.]+)'}
best_effort: true
"#;

/// A world with an idle session of that program.
fn asking() -> World {
    let world = World::new();
    world.config("backends/asking.yaml", ASKING);
    std::fs::write(world.path("work/asking.sh"), PROGRAM).unwrap();
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.value("beamtalk agents new asking . --alias demo --wait");
    world
}

#[test]
fn a_session_that_asks_waits_and_nothing_is_typed_meanwhile() {
    let world = asking();
    world.value("beamtalk agents prompt demo 'ask me'; beamtalk agents prompt demo 'afterwards'");
    world.until("beamtalk 9p read agent/demo/state | grep -qx waiting");
    world.check(
        "beamtalk 9p read agent/demo/queue | wc -l
         beamtalk agents prompt demo 'more' --now
         beamtalk 9p read agent/events.json | grep -c ApprovalAsked",
        "1\nbeamtalk agents: session busy\n1\n",
    );
    // A person at its keyboard.
    world.value("tmux -S $NAMESPACE/tmux.sock send-keys -t $(beamtalk 9p read agent/demo/tmux) y Enter");
    world.until("beamtalk 9p read agent/demo/log | grep -q 'did afterwards'");
    world.check(
        "beamtalk 9p read agent/demo/log | grep -o 'answered y'",
        "answered y\n",
    );
}

#[test]
fn usage_is_what_the_program_reports_and_a_budget_ends_it() {
    let world = asking();
    world.value("beamtalk agents prompt demo one --wait; beamtalk agents prompt demo two --wait");
    let usage: serde_json::Value =
        serde_json::from_str(&world.value("beamtalk 9p read agent/demo/usage")).unwrap();
    assert_eq!(
        (
            &usage["turns"],
            &usage["tokens_in"],
            &usage["tokens_out"],
            &usage["cost"]
        ),
        (&2.into(), &2400.into(), &6000.into(), &0.5.into()),
        "{usage}"
    );
    assert_eq!(usage["last"]["tokens_in"], 1200);
    world.check(
        "echo nonsense | beamtalk 9p write agent/demo/budget
         echo 'cost=0.5' | beamtalk 9p write agent/demo/budget
         beamtalk 9p read agent/demo/budget
         beamtalk agents prompt demo three --wait
         beamtalk agents prompt demo four
         beamtalk 9p read agent/events.json | grep -c BudgetReached
         echo 'cost=5' | beamtalk 9p write agent/demo/budget
         beamtalk agents prompt demo five --wait | head -1",
        "…invalid budget: cost=N, tokens=N or turns=N\ncost=0.5\nbeamtalk agents: budget reached\n\
         beamtalk agents: budget reached\n1\ndid five\n",
    );
    world.value("beamtalk agents new echo /tmp --alias plain --wait; beamtalk agents prompt plain x --wait");
    let usage: serde_json::Value =
        serde_json::from_str(&world.value("beamtalk 9p read agent/plain/usage")).unwrap();
    assert_eq!(
        (&usage["turns"], &usage["cost"]),
        (&1.into(), &serde_json::Value::Null)
    );
}
