//! The acceptance examples of chapter 19, in the order of its sections; with built-in backends only.

use crate::support::World;

/// A repository of one commit, in `repo`.
const REPOSITORY: &str = "git config --global user.name Kim; git config --global user.email kim@example.org
    git init -q -b main repo; cd repo; echo one > a.txt; git add .; git commit -qm first";

#[test]
fn example_27_a_busy_session_takes_prompts_in_its_queue() {
    let world = World::started();
    world.value("beamtalk agents new shell . --alias demo --wait");
    world.check(
        "beamtalk agents prompt demo 'until test -e go; do sleep 0.1; done'
         for word in one two three; do beamtalk agents prompt demo \"echo $word\"; done
         beamtalk agents prompt demo now --now
         echo direct | beamtalk 9p write agent/demo/in
         echo 'echo four' | beamtalk 9p write agent/demo/queue
         beamtalk 9p read agent/demo/queue | jq -r '[.text_bytes, .author, .state] | @tsv'",
        "queued (0 before it)\nqueued (1 before it)\nqueued (2 before it)\n\
         beamtalk agents: session busy\nbeamtalk 9p: write agent/demo/in: session busy\n\
         8\tuser\twaiting\n8\tuser\twaiting\n10\tuser\twaiting\n9\tuser\twaiting\n",
    );
    world.check(
        "beamtalk 9p write agent/demo/ctl \"unqueue $(beamtalk 9p read agent/demo/queue | jq -r .id | sed -n 2p)\"
         test $(beamtalk 9p read agent/demo/queue | jq -r .sha256 | head -1) = $(printf 'echo one' | sha256sum | cut -d' ' -f1) && echo same
         touch go; until beamtalk 9p read agent/demo/log | grep -qx four; do sleep 0.1; done
         beamtalk 9p read agent/demo/log | grep -xE 'one|two|three|four'; beamtalk 9p read agent/demo/queue",
        "same\none\nthree\nfour\n",
    );
}

#[test]
fn example_28_work_in_a_copy_is_reviewed_and_merged_or_given_up() {
    let world = World::started();
    world.value(REPOSITORY);
    world.check(
        "cd repo; for a in dev other; do beamtalk agents new shell . --alias $a --worktree --wait > /dev/null; done
         beamtalk agents new shell . --worktree=agents/dev; mkdir $W/plain; beamtalk agents new shell $W/plain --worktree
         beamtalk agents prompt dev 'echo two >> a.txt; git commit -qam more; echo new > b.txt' --wait
         beamtalk 9p read agent/dev/worktree | jq -c '[.branch, .base, .ahead, .behind, .clean]'
         beamtalk 9p read agent/dev/diff | grep '^[+-][a-z]'; beamtalk 9p read agent/dev/diff.stat | tail -1
         beamtalk agents ctl dev merge; cat a.txt b.txt; git log --format=%an -1
         beamtalk agents prompt other 'echo three > a.txt' --wait; beamtalk agents ctl other merge; git status --short
         beamtalk agents status | tail -n +2 | sed 's/[0-9.]* MB/N MB/'
         beamtalk agents ctl other discard; beamtalk agents ctl other discard agents/other
         beamtalk agents kill dev; beamtalk agents kill other; beamtalk agents prune; git for-each-ref refs/agents
         beamtalk agents status | wc -l",
        "beamtalk agents: branch exists: agents/dev\nbeamtalk agents: not a git repository\n\
         [\"agents/dev\",\"main\",1,0,false]\n+two\n+new\n 2 files changed, 2 insertions(+)\n\
         one\ntwo\nnew\ndev\nbeamtalk agents: merge conflict: a.txt\nworktrees: 2, N MB\nbeamtalk agents: usage: …\n1\n",
    );
}

#[test]
fn example_29_what_waits_for_a_person_is_answered_once() {
    let world = World::started();
    world.value("beamtalk agents new echo . --alias demo --wait");
    world.value(
        "beamtalk agents mail send --from demo --to user --type APPROVAL_REQUEST --subject 'Deploy?' now > /dev/null",
    );
    world.check(
        "id=$(beamtalk 9p read agent/agents/approvals/pending | jq -r .id); echo $id | grep -cE '^ap-[0-9a-f]{8}$'
         beamtalk 9p read agent/agents/approvals/$id/request | jq -c '[.kind, .summary, .command, .expires]'
         echo 'approve sha256=00' | beamtalk 9p write agent/agents/approvals/$id/answer
         echo 'approve always' | beamtalk 9p write agent/agents/approvals/$id/answer
         sha=$(beamtalk 9p read agent/agents/approvals/$id/request | jq -r .sha256)
         echo \"approve sha256=$sha\" | beamtalk 9p write agent/agents/approvals/$id/answer
         beamtalk agents approvals reject $id too late; beamtalk agents approvals
         beamtalk agents mail inbox demo --json | jq -r '.[] | [.type, .body] | @tsv'",
        "1\n[\"mail\",\"Deploy?\",\"now\",null]\n\
         beamtalk 9p: write agent/agents/approvals/…/answer: request changed\n\
         beamtalk 9p: write agent/agents/approvals/…/answer: …\n\
         beamtalk agents: already answered by …\nAPPROVAL_RESPONSE\tapproved\n",
    );
    // Everybody who follows hears of it at once; a first question, asked until it is heard, tells that somebody does.
    world.check(
        "beamtalk 9p cat -f agent/agents/approvals/follow > $W/told & f=$!
         until grep -qs asked $W/told; do
           beamtalk agents mail send --from demo --to user --type APPROVAL_REQUEST --subject 'Heard?' now > /dev/null; done
         beamtalk agents ctl demo ask 'which colour' > $W/said & a=$!
         until grep -q 'which colour' $W/told; do :; done
         beamtalk agents approvals answer $(jq -r 'select(.event==\"asked\" and .kind==\"question\").id' $W/told) blue; wait $a; cat $W/said
         until grep -q '\"event\":\"answered\"' $W/told; do :; done; kill $f",
        "blue\n",
    );
}

#[test]
fn example_30_what_could_not_be_resumed_is_told() {
    let world = World::new();
    world.config(
        "backends/short.yaml",
        "command: [\"{SELF}\", \"agents\", \"drive\", \"echo\"]\nstart: {ready: hook, regex: '^agent> $'}\nidle: {mode: hook}\nbest_effort: true\n",
    );
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.value(
        "beamtalk agents new short . --alias lost --wait; beamtalk agents new echo . --alias kept --wait
         beamtalk 9p write agent/kept/queue '!sleep 60'; beamtalk 9p write agent/kept/queue later",
    );
    let id = world.value("beamtalk agents show lost | sed -n 's/^id: //p'");
    world.value(
        "kill -9 $(cat $NAMESPACE/anvilsrv.pid); tmux -S $NAMESPACE/tmux.sock kill-server
         rm ~/.config/beamtalk/agents/backends/short.yaml; beamtalk agents start; beamtalk agents wait kept",
    );
    world.check(
        "beamtalk agents status | tail -n +2; beamtalk agents status --json | jq -c '.not_resumed[0].reason'
         beamtalk agents list | grep -c kept",
        &format!("not resumed: {id}: backend not found…\n\"backend not found…\"\n1\n"),
    );
}

#[test]
fn example_31_a_budget_ends_prompts() {
    let world = World::started();
    world.value("beamtalk agents new echo . --alias demo --wait");
    world.check(
        "echo 'turns=2' | beamtalk 9p write agent/demo/budget
         beamtalk agents prompt demo one --wait; beamtalk agents prompt demo two --wait; beamtalk agents prompt demo three
         echo three | beamtalk 9p write agent/demo/in
         beamtalk 9p read agent/demo/usage | jq -c '[.turns, .tokens_in, .tokens_out, .cost]'
         beamtalk 9p read agent/events.json | jq -r .type | grep -c BudgetReached
         echo | beamtalk 9p write agent/demo/budget; beamtalk agents prompt demo four --wait",
        "echo: one\necho: two\nbeamtalk agents: budget reached\nbeamtalk 9p: write agent/demo/in: budget reached\n\
         [2,null,null,null]\n1\necho: four\n",
    );
}

#[test]
fn example_32_a_session_helps_itself() {
    let world = World::started();
    world.value(
        "beamtalk agents new shell . --alias sh --wait; beamtalk agents new echo . --alias other --wait",
    );
    world.check(
        "beamtalk agents prompt sh 'mail --help | head -1; peers | cut -f4 | sort | tr \"\\n\" \" \"; state' --wait
         beamtalk agents prompt sh 'mail -t QUERY_REQUEST other greeting hello' --wait > /dev/null
         beamtalk agents mail inbox other --json | jq -r '.[] | [.type, .subject, .body] | @tsv'",
        "usage: mail …\nother sh running\nQUERY_REQUEST\tgreeting\thello\n",
    );
}
