//! A team of agents: queues, questions, usage and budgets, worktrees.

use super::support::World;

#[test]
fn prompts_wait_in_a_queue_and_come_in_order() {
    let world = World::started();
    world.value("beamtalk agents new shell . --alias demo --wait");
    world.check(
        "beamtalk agents prompt demo 'until test -e go; do sleep 0.1; done'
         beamtalk agents prompt demo 'echo first'
         beamtalk agents prompt demo 'echo second'
         beamtalk agents prompt demo 'echo third' --now",
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
        (&11.into(), &"user".into(), &"waiting".into())
    );
    // One is taken out, another put in.
    let first = lines[0]["id"].as_str().unwrap();
    world.check(
        &format!(
            "beamtalk 9p write agent/demo/ctl 'unqueue {first}'
             printf 'echo third\\necho line' | beamtalk 9p write agent/demo/queue
             beamtalk 9p write agent/demo/ctl 'unqueue nonsense'"
        ),
        "…not found\n[1]\n",
    );
    world.value("touch go");
    world.until("beamtalk 9p read agent/demo/log | grep -qx line");
    world.check(
        "beamtalk 9p read agent/demo/queue; beamtalk 9p read agent/demo/log | grep -xE 'first|second|third|line'",
        "second\nthird\nline\n",
    );
}

#[test]
fn a_queue_survives_the_daemon_and_what_may_have_been_typed_is_not_typed_again() {
    let world = World::started();
    world.value("beamtalk agents new echo . --alias demo --wait");
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
    world.value("beamtalk agents new echo . --alias demo --wait");
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
approval: {pattern: 'Do you want to proceed\? \(y/n\)$', approve: ["yes", {key: Enter}], reject: ["no", {key: Enter}]}
usage: {pattern: 'tokens: (?<in>[0-9,k]+) in (?<out>[0-9,k]+) out cost \$(?<cost>[0-9.]+)'}
best_effort: true
"#;

/// A world with an idle session of that program.
pub(crate) fn asking() -> World {
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
    world.value("beamtalk agents new echo . --alias plain --wait; beamtalk agents prompt plain x --wait");
    let usage: serde_json::Value =
        serde_json::from_str(&world.value("beamtalk 9p read agent/plain/usage")).unwrap();
    assert_eq!(
        (&usage["turns"], &usage["cost"]),
        (&1.into(), &serde_json::Value::Null)
    );
}

/// A repository with one commit on `main`, and git that knows who commits.
fn repository(world: &World) {
    world.value(
        "git config --global user.name Kim; git config --global user.email kim@example.org
         git init -q -b main repo; cd repo; printf 'one\\ntwo\\nthree\\n' > a.txt; git add .; git commit -qm first",
    );
}

#[test]
fn a_session_works_in_a_copy_and_its_work_is_merged() {
    let world = World::started();
    repository(&world);
    world.value("beamtalk agents new shell repo --alias dev --worktree --wait");
    let told: serde_json::Value =
        serde_json::from_str(&world.value("beamtalk 9p read agent/dev/worktree")).unwrap();
    assert_eq!(
        (&told["branch"], &told["base"], &told["ahead"], &told["clean"]),
        (&"agents/dev".into(), &"main".into(), &0.into(), &true.into()),
        "{told}"
    );
    // It commits one thing and leaves another open; it sees nothing of the owner's checkout.
    world.check(
        "beamtalk agents prompt dev 'echo zero > a.txt; git commit -qam change; echo new > b.txt; git log --oneline | wc -l' --wait
         beamtalk agents prompt dev \"ls $W/work/repo\" --wait | tail -1
         beamtalk 9p read agent/dev/diff | grep '^[-+][a-z]'
         beamtalk 9p read agent/dev/diff.stat | tail -1
         cat repo/a.txt; ls repo",
        "2\n[exit 2]\n-one\n-two\n-three\n+zero\n+new\n 2 files changed, 2 insertions(+), 3 deletions(-)\n\
         one\ntwo\nthree\na.txt\n",
    );
    // A checkout with changes is left alone.
    world.check(
        "echo mine > repo/c.txt
         beamtalk agents ctl dev merge
         rm repo/c.txt
         beamtalk agents ctl dev merge && cat repo/a.txt repo/b.txt
         git -C repo log -1 --format='%an %s'
         git -C repo status --short
         beamtalk 9p read agent/dev/diff",
        "beamtalk agents: base is checked out with changes: …/repo\nzero\nnew\ndev Work of dev\n",
    );
    // More of both sides; then a conflict, which changes nothing.
    world.check(
        "cd repo; echo owner > o.txt; git add .; git commit -qm owner
         beamtalk agents prompt dev 'echo more >> b.txt' --wait
         beamtalk agents ctl dev merge && cat b.txt o.txt
         echo left > b.txt; git commit -qam left
         beamtalk agents prompt dev 'echo right > b.txt' --wait
         beamtalk agents ctl dev merge
         cat b.txt; git log -1 --format=%s; git fsck --no-dangling",
        "new\nmore\nowner\nbeamtalk agents: merge conflict: b.txt\nleft\nleft\n",
    );
    world.check(
        "beamtalk agents kill dev | sed 's/: .*/: PATH/'
         beamtalk agents prune | sed 's/ .*/ PATH/'",
        "worktree kept: PATH\nkept PATH\n",
    );
    world.check(
        "beamtalk agents new echo repo --alias idle --worktree=mine --wait | wc -l
         beamtalk agents kill idle; beamtalk agents prune | wc -l",
        "1\n1\n",
    );
}

#[test]
fn hostile_repositories_run_nothing() {
    let world = World::started();
    repository(&world);
    world.value(
        "cd repo; for h in post-checkout pre-commit post-merge reference-transaction post-commit; do
             printf '#!/bin/sh\\ntouch %s/owned\\n' $W > .git/hooks/$h; chmod +x .git/hooks/$h; done",
    );
    world.value("beamtalk agents new shell repo --alias evil --worktree --wait");
    // Everything in its copy that names a command.
    world.value(
        "beamtalk agents prompt evil 'git config core.fsmonitor \"touch '$W'/owned2\"
git config filter.x.clean \"touch '$W'/owned2\"; git config filter.x.smudge \"touch '$W'/owned2\"
git config diff.x.command \"touch '$W'/owned2\"; git config diff.x.textconv \"touch '$W'/owned2\"
git config core.hooksPath hooks; mkdir -p hooks; printf \"#!/bin/sh\\ntouch '$W'/owned2\" > hooks/post-commit; chmod +x hooks/*
echo \"* filter=x diff=x\" > .gitattributes; echo evil > a.txt; ln -s /etc/passwd link
git init -q sub; touch sub/x' --wait",
    );
    let told = world.value("beamtalk 9p read agent/evil/worktree");
    assert!(told.contains(r#""clean":false"#), "{told}");
    world.value("beamtalk 9p read agent/evil/diff; beamtalk agents ctl evil merge || true; ls -a $W");
    let (owned, _) = world.run("ls $W | grep owned");
    assert_eq!(owned, "", "something of a repository was run");
    // No commits, a detached head, no repository, a taken branch, a name that is none.
    world.check(
        "git init -q empty; mkdir plain
         beamtalk agents new echo empty --worktree
         beamtalk agents new echo plain --worktree
         git -C repo checkout -q --detach
         beamtalk agents new echo repo --alias loose --worktree --wait | wc -l
         beamtalk agents ctl loose merge
         beamtalk agents new echo repo --worktree=main
         beamtalk agents new echo repo --worktree='a b'
         beamtalk agents new echo repo --worktree=--upload-pack=x
         beamtalk agents new echo repo --worktree --base nonsense
         beamtalk agents list | wc -l",
        "beamtalk agents: invalid base: …\nbeamtalk agents: not a git repository\n1\n\
         beamtalk agents: invalid base: the copy was not made from a branch\n\
         beamtalk agents: branch exists: main\nbeamtalk agents: invalid branch: a b\n\
         beamtalk agents: invalid branch: --upload-pack=x\n\
         beamtalk agents: invalid base: nonsense is no commit\n3\n",
    );
    // Given up by name only.
    world.check(
        "beamtalk agents ctl evil discard
         beamtalk agents ctl evil discard agents/other
         beamtalk agents ctl evil discard agents/evil
         git -C repo for-each-ref refs/agents | wc -l; ls ~/.beamtalk/agents/*/worktrees | wc -l",
        "beamtalk agents: usage: …\nbeamtalk agents: invalid branch: agents/other is not that of the session\n1\n1\n",
    );
}

/// A program with conversations: it tells the id of the one it is in and takes one up again.
const TALKING: &str = r#"
command: ["/bin/sh", "{CWD}/talking.sh"]
resume_args: ["--resume", "{CONVERSATION}"]
start: {ready: regex, regex: '^ready> $'}
idle: {mode: regex, regex: '^ready> $'}
conversation: {pattern: 'conversation (\S+)'}
restart: {policy: never}
best_effort: true
"#;

#[test]
fn sessions_come_back_after_a_reboot_with_their_conversation() {
    let world = World::new();
    world.config("backends/talking.yaml", TALKING);
    std::fs::write(
        world.path("work/talking.sh"),
        "stty -echo; echo \"started $*\"; echo 'conversation c-42'\n\
         while printf 'ready> ' && read -r line; do sleep 1; echo \"did $line\"; done\n",
    )
    .unwrap();
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.value(
        "beamtalk agents new talking . --alias demo --context 'in short' --wait
         beamtalk agents new echo . --alias resting --wait; beamtalk agents stop resting",
    );
    world.check("beamtalk 9p read agent/demo/conversation", "c-42\n");
    world.check(
        "printf -- '--evil' | beamtalk 9p write agent/demo/conversation",
        "…invalid conversation: …\n[1]\n",
    );
    let id = world
        .value("beamtalk 9p read agent/demo/info | tr ',' '\\n' | sed -n 's/.*\"id\":\"\\(.*\\)\".*/\\1/p'");
    world.value("beamtalk agents prompt demo working; beamtalk agents prompt demo afterwards");
    // As after a power failure: the daemon, tmux and everything in it are gone at once.
    world.value("kill -9 $(cat $NAMESPACE/anvilsrv.pid); tmux -S $NAMESPACE/tmux.sock kill-server");
    world.value(
        "mv $NAMESPACE $NAMESPACE.old; cp -r ~/.beamtalk ~/copy; rm -rf ~/.beamtalk; mv ~/copy ~/.beamtalk",
    );
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.until("beamtalk 9p read agent/demo/output | grep -q 'did afterwards'");
    world.check(
        "beamtalk 9p read agent/demo/output | tr -d '\\r' | grep -o 'started --resume c-42'
         beamtalk 9p read agent/demo/context; echo
         beamtalk 9p read agent/resting/state
         beamtalk 9p read agent/demo/log | grep -c 'Go on with the interrupted work' || true",
        "started --resume c-42\nin short\nstopped\n0\n",
    );
    assert_eq!(
        world.value(
            "beamtalk 9p read agent/demo/info | tr ',' '\\n' | sed -n 's/.*\"id\":\"\\(.*\\)\".*/\\1/p'"
        ),
        id
    );
    world.value("kill -9 $(cat $NAMESPACE/anvilsrv.pid); tmux -S $NAMESPACE/tmux.sock kill-server");
    world.check(
        "beamtalk agents start --no-resume; beamtalk 9p read agent/demo/wait",
        "anvilsrv started successfully\nstopped\n",
    );
}

/// Scripts written for the server whose layout this is name it `anvillm`.
#[test]
fn scripts_of_the_classic_server_run_unedited() {
    let world = World::started();
    world.check(
        "set -e
         id=$(echo \"new echo $W/work\" | beamtalk 9p write anvillm/ctl; beamtalk 9p read anvillm/list | cut -f1)
         beamtalk 9p read anvillm/$id/wait
         echo hello | beamtalk 9p write anvillm/$id/in
         beamtalk 9p read anvillm/$id/wait
         beamtalk 9p read anvillm/$id/out
         echo kill | beamtalk 9p write anvillm/$id/ctl
         beamtalk 9p read anvillm/list
         stat -c '%a %F' $NAMESPACE/anvillm",
        "idle\nidle\necho: hello\n600 socket\n",
    );
}

/// Mail that asks, a program's own question and a session's are in one place; each is answered once, by whoever is
/// first, and reaches whoever asked.
#[test]
fn what_waits_for_a_person_is_in_one_place_and_answered_once() {
    let world = asking();
    let pending = "beamtalk agents approvals --json | python3 -c 'import json,sys
for r in json.load(sys.stdin): print(r[\"kind\"], r[\"summary\"], r[\"id\"][:3], len(r[\"id\"]))'";
    let id = "$(beamtalk agents approvals --json | sed 's/.*\"id\":\"\\(ap-[0-9a-f]*\\)\".*/\\1/')";
    world.check(pending, "");
    world.check(
        "beamtalk 9p ls agent/agents/approvals | tr '\\n' ' '; echo",
        "follow pending \n",
    );
    // A program's own question: the keys of its backend answer it.
    world.value("beamtalk agents prompt demo 'ask me'");
    world.until("beamtalk agents approvals | grep -q backend");
    world.check(pending, "backend Do you want to proceed? (y/n) ap- 11\n");
    world.check(
        &format!("id={id}; echo 'approve sha256=00' | beamtalk 9p write agent/agents/approvals/$id/answer
                  echo maybe | beamtalk 9p write agent/agents/approvals/$id/answer; beamtalk agents approvals approve $id > /dev/null
                  beamtalk agents approvals reject $id; beamtalk agents wait demo --for idle; beamtalk agents output demo | grep -c 'answered yes'"),
        "beamtalk 9p: write agent/agents/approvals/…/answer: request changed\n\
         beamtalk 9p: write agent/agents/approvals/…/answer: usage: …\n\
         beamtalk agents: already answered by owner\n\
         idle\n1\n",
    );
    world.check(pending, "");
    // Mail that asks is answered by mail.
    world.check(
        &format!("printf '{{\"to\":\"user\",\"type\":\"APPROVAL_REQUEST\",\"subject\":\"Deploy?\",\"body\":\"to the moon\"}}' | beamtalk 9p write agent/demo/mail
                  {pending}; beamtalk agents approvals reject {id} not today; {pending}; beamtalk agents mail inbox user
                  beamtalk agents mail history user | grep -c 'rejected: not today'"),
        "mail Deploy? ap- 11\n1\n",
    );
    // A session's question waits for its answer.
    world.check(
        &format!(
            "beamtalk 9p rpc agent/demo/ctl 'ask which colour' > $W/said & p=$!
                  until beamtalk agents approvals | grep -q question; do :; done
                  beamtalk agents approvals answer {id} deep blue; wait $p; cat $W/said
                  beamtalk 9p rpc agent/demo/ctl 'ask again' > $W/said 2>&1 & p=$!
                  until beamtalk agents approvals | grep -q question; do :; done
                  beamtalk agents approvals reject {id} because; wait $p; cat $W/said; {pending}"
        ),
        "deep blue\nbeamtalk 9p: write agent/demo/ctl: not approved: because\n",
    );
}

/// Every helper is on the PATH inside the sandbox, explains itself, and does with quotes and line ends what it says.
#[test]
fn sessions_have_helpers() {
    let world = World::started();
    world.value("beamtalk agents new shell $W/work --alias sh --wait; beamtalk agents new echo $W/work --alias other --wait");
    for name in [
        "inbox", "reply", "mail", "ask", "state", "note", "peers", "skills",
    ] {
        let said = world.value(&format!("beamtalk agents prompt sh '{name} --help' --wait"));
        assert!(said.contains(&format!("usage: {name}")), "{name}: {said}");
    }
    let said = world.value("beamtalk agents prompt sh 'evaluate --help' --wait");
    assert!(!said.contains("usage:"), "no workspace is granted: {said}");
    let peers = world.value("beamtalk agents prompt sh peers --wait");
    assert!(peers.contains("other") && peers.contains("sh"), "{peers}");
    let state = world.value("beamtalk agents prompt sh state --wait");
    assert!(state.contains("running"), "{state}");
    world.value("beamtalk agents prompt sh \"note \\\"it's \\\\\\\\ 'done'\\\"\" --wait");
    let notes = world.value("beamtalk 9p read agent/user/inbox/$(beamtalk 9p ls agent/user/inbox | head -1)");
    assert!(notes.contains("it's \\\\ 'done'"), "{notes}");
    // By hand, as the session would.
    world.check(
        "beamtalk agents mail send --to other --type QUERY_REQUEST --subject 'a \"b\"' hello > /dev/null
         export AGENT_ID=$(beamtalk 9p read agent/other/info | sed 's/.*\"id\":\"\\([0-9a-f]*\\)\".*/\\1/')
         export PATH=$(ls -d $W/home/.beamtalk/agents/*/sessions/$AGENT_ID/tmp/bin):$PATH
         inbox | cut -f2-; id=$(inbox | cut -f1); inbox $id | grep -c hello; reply $id 'two
lines'; inbox; beamtalk agents mail history user | grep -c 'two.nlines'",
        "user\tQUERY_REQUEST\ta \\\"b\\\"\n1\n1\n",
    );
}

/// Skills and roles are found in the user's configuration, where the user's tools keep them, and in the project; what the
/// user has a checkout cannot replace, and `.sources` says which it is.
#[test]
fn skills_are_found_and_a_checkout_replaces_none_of_the_users() {
    let world = World::new();
    let put = |path: &str, name: &str, text: &str| {
        let path = world.path(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("---\nname: {name}\ndescription: d\n---\n{text}\n")).unwrap();
    };
    put("home/.config/beamtalk/agents/skills/a/SKILL.md", "a", "user");
    put("work/.agents/skills/a/SKILL.md", "a", "project");
    put("work/.agents/skills/b/SKILL.md", "b", "project");
    put("work/.claude/skills/b/SKILL.md", "b", "claude");
    put("work/.claude/skills/c/SKILL.md", "c", "claude");
    put("home/.claude/skills/d/SKILL.md", "d", "home");
    put("work/.kiro/skills/e/SKILL.md", "e", "kiro");
    put("work/.claude/skills/f/SKILL.md", "../f", "bad");
    put("work/.agents/roles/tester.md", "tester", "project");
    put("work/.agents/roles/gardener.md", "gardener", "project");
    world.project("");
    world.value("beamtalk workspace start");
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.check(
        "beamtalk 9p ls agent/skills | tr '\\n' ' '; for s in a b c d e; do beamtalk 9p read agent/skills/$s.md | tail -1; done
         beamtalk 9p read agent/skills/.sources | sed \"s|$W||\"; beamtalk 9p read agent/roles/gardener.md | tail -1
         beamtalk 9p read agent/roles/tester.md | grep -c project",
        ".sources a.md b.md c.md d.md e.md user\nproject\nclaude\nhome\nkiro\n\
         a\t/home/.config/beamtalk/agents/skills/a/SKILL.md\nb\t/work/.agents/skills/b/SKILL.md\n\
         c\t/work/.claude/skills/c/SKILL.md\nd\t/home/.claude/skills/d/SKILL.md\ne\t/work/.kiro/skills/e/SKILL.md\n\
         project\n0\n[1]\n",
    );
}
