//! Files of the workspace at a session's door are no way around the tools: what a tool may not do is refused, and what a
//! person is asked about is held until they answer.

use crate::support::World;

const LOOP: &str = "startup_workflows = [\"boot\"]\n[process.server]\ncommand = [\"sleep\", \"1000\"]\n\
    [workflow.boot]\nsteps = [{ action = \"log\", message = \"booted\" }]\n\
    [watch.css]\npaths = [\"css/**\"]\nworkflow = \"boot\"\n";

/// A world with a session that may write; `AGENT_TOKEN` in `$W/token` is the session's.
fn with_writer() -> World {
    let world = World::new();
    world.project("");
    std::fs::write(world.path("work/devloop.toml"), LOOP).unwrap();
    world.config(
        "backends/writes.yaml",
        "command: [sh]\nworkspace: write\nloop: control\n",
    );
    world.value("beamtalk workspace start; beamtalk agents start");
    // Whoever makes such a session is told what that means.
    world.check(
        "beamtalk agents new writes $PWD --alias writer --wait; beamtalk agents doctor | grep writes
         beamtalk agents new echo $PWD --alias other --wait | wc -l",
        "beamtalk agents: note: sessions of writes run code in the workspace with your rights, outside of their sandbox (workspace: write)\n\
         …\nwarn\tsessions of writes run code …\n1\n",
    );
    let id = world.value("beamtalk agents show writer | sed -n 's/^id: //p'");
    world.value(&format!(
        "beamtalk agents token mint writes session {id} > $W/token"
    ));
    world
}

/// The user's settings of tools.
fn settings(world: &World, text: &str) {
    let path = world.path("home/.beamtalk/config.toml");
    std::fs::write(&path, format!("[mcp]\n{text}\n")).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
}

#[test]
fn what_a_tool_may_not_do_a_file_may_not_do() {
    let world = with_writer();
    // The usual policy is `edit`: what loses something is refused.
    world.check(
        "beamtalk 9p -T $W/token write agent/classes/Fan/faster 'faster => 1'
         beamtalk 9p -T $W/token rpc agent/eval '(Fan spawn) registerAs: #cooler. (Fan spawn) faster'
         beamtalk 9p -T $W/token rm agent/classes/Fan
         beamtalk 9p -T $W/token write agent/actors/cooler/ctl kill
         beamtalk 9p -T $W/token write agent/changes/ctl clear
         beamtalk 9p -T $W/token rm agent/classes/Fan/faster
         beamtalk 9p -T $W/token write agent/changes/ctl nonsense
         beamtalk 9p ls agent/classes | grep -x Fan",
        "1\n\
         beamtalk 9p: remove agent/classes/Fan: permission denied: the policy 'edit' does not allow what 'remove_class' does\n\
         beamtalk 9p: write agent/actors/cooler/ctl: permission denied: the policy 'edit' does not allow what 'kill_actor' does\n\
         beamtalk 9p: write agent/changes/ctl: permission denied: the policy 'edit' does not allow what 'flush' does\n\
         beamtalk 9p: write agent/changes/ctl: unknown command\nFan\n",
    );
    // The owner is no session.
    world.check(
        "beamtalk 9p write agent/actors/cooler/ctl stop; beamtalk 9p read agent/actors/cooler/class",
        "beamtalk 9p: open agent/actors/cooler/class: not found\n[1]\n",
    );
    // A tool that is denied is denied by every way; it is told, kept beside the class, and recorded.
    settings(&world, "deny-tools = [\"evaluate\", \"save_method\"]");
    world.check(
        "beamtalk 9p -T $W/token rpc agent/eval '1'; beamtalk 9p -T $W/token write agent/transcript hello
         beamtalk 9p -T $W/token write agent/classes/Fan/speed 'speed => 1'; beamtalk 9p -T $W/token read agent/classes/Fan/.error
         beamtalk 9p read agent/classes/Fan/speed; echo
         beamtalk 9p read agent/audit | grep -c '\"tool\":\"save_method\"'; beamtalk 9p rpc agent/eval '2'",
        "beamtalk 9p: write agent/eval: permission denied: the tool 'evaluate' is denied by the configuration\n\
         beamtalk 9p: write agent/transcript: permission denied: the tool 'evaluate' is denied by the configuration\n\
         beamtalk 9p: write agent/classes/Fan/speed: permission denied: the tool 'save_method' is denied by the configuration\n\
         permission denied: the tool 'save_method' is denied by the configuration\n\
         /// How fast.\nspeed => self.speed\n1\n2\n",
    );
    // A project narrows, and only that; settings that cannot be read allow nothing.
    settings(&world, "");
    world.value("printf '\\n[mcp]\\npolicy = \"read-only\"\\n' >> beamtalk.toml");
    world.check(
        "beamtalk 9p -T $W/token write agent/classes/Fan/speed 'speed => 1'; beamtalk 9p -T $W/token read agent/classes/Fan/.info | grep -c Fan",
        "beamtalk 9p: write agent/classes/Fan/speed: permission denied: the policy 'read-only' does not allow what 'save_method' does\n1\n",
    );
    settings(&world, "deny-tools = 7");
    world.check(
        "beamtalk 9p -T $W/token write agent/classes/Fan/speed 'speed => 1'",
        "beamtalk 9p: write agent/classes/Fan/speed: permission denied: …\n[1]\n",
    );
}

/// The line of what waits, as the one list shows it.
fn held(world: &World, tool: &str) -> String {
    world.until(&format!("beamtalk agents approvals | grep -q {tool}"));
    world.value(&format!(
        "beamtalk agents approvals --json | tr '{{' '\\n' | grep '\"kind\":\"tool\"' | grep {tool} | grep -o 'ap-[0-9a-f]*'"
    ))
}

#[test]
fn what_a_person_is_asked_about_waits_for_the_person() {
    let world = with_writer();
    settings(&world, "approval = \"execute\"");
    let write = "(beamtalk 9p -T $W/token write agent/classes/Fan/faster 'faster => 1' > $W/said 2>&1; echo $? >> $W/said) > /dev/null 2>&1 & echo $! > $W/pid";
    // Approved: done, once, as an agent's.
    world.value(write);
    let id = held(&world, "save_method");
    let asked: serde_json::Value =
        serde_json::from_str(&world.value(&format!("beamtalk 9p read agent/agents/approvals/{id}/request")))
            .unwrap();
    assert!(
        asked["command"]
            .as_str()
            .is_some_and(|text| text.contains("classes/Fan/faster") && text.contains("faster => 1")),
        "{asked}"
    );
    let session = world.value("beamtalk agents show writer | sed -n 's/^id: //p'");
    assert_eq!(asked["session"], session, "{asked}");
    world.check(
        "beamtalk 9p read agent/classes/Fan/faster; echo; cat $W/said; beamtalk workspace approvals | grep -c save_method",
        "faster => self.speed := self.speed + 1\n1\n",
    );
    // A session sees what it asked and answers nothing.
    world.check(
        &format!("beamtalk 9p -T $W/token read agent/agents/approvals/pending | grep -c {id}; echo approve | beamtalk 9p -T $W/token write agent/agents/approvals/{id}/answer"),
        "1\nbeamtalk 9p: open agent/agents/approvals/…/answer: permission denied\n[1]\n",
    );
    world.value(&format!(
        "beamtalk agents approvals approve {id}; until grep -qs '^0$' $W/said; do :; done"
    ));
    world.check(
        "beamtalk 9p read agent/classes/Fan/faster; echo; beamtalk 9p read agent/changes/log | jq -r .author
         beamtalk agents approvals | grep -c tool",
        "faster => 1\nagent\n0\n[1]\n",
    );
    // Rejected, at the workspace this time: the reason is the error, and nothing was done.
    world.value("(beamtalk 9p -T $W/token rpc agent/eval 'Fan removeSelector: #faster' > $W/said 2>&1; echo $? >> $W/said) > /dev/null 2>&1 &");
    let id = held(&world, "evaluate");
    world.value(&format!(
        "beamtalk workspace approvals reject {id} --reason 'not today'"
    ));
    world.value("until grep -qs '^1$' $W/said; do :; done");
    world.check(
        "cat $W/said; beamtalk 9p read agent/classes/Fan/faster; echo
         beamtalk agents approvals | grep -c tool",
        "beamtalk 9p: write agent/eval: not approved: not today\n1\nfaster => 1\n0\n[1]\n",
    );
    // Whoever gives up withdraws the question, and nothing is done.
    world.value(
        "(exec beamtalk 9p -T $W/token rm agent/classes/Fan/faster) > /dev/null 2>&1 & echo $! > $W/pid",
    );
    held(&world, "remove_method");
    world.value("kill -9 $(cat $W/pid)");
    world.until("! beamtalk agents approvals | grep -q remove_method");
    world.until("! beamtalk workspace approvals | grep -q remove_method");
    world.check("beamtalk 9p read agent/classes/Fan/faster", "faster => 1");
    // The owner is not asked.
    world.check("beamtalk 9p rpc agent/eval '3 + 4'", "7\n");
    // Only what writes files: a method in memory is not held, a flush is.
    settings(&world, "approval = \"write\"\napproval-timeout = 1");
    world.check(
        "beamtalk 9p -T $W/token write agent/classes/Fan/faster 'faster => 2'; beamtalk 9p rpc agent/eval '(Fan spawn) faster'
         beamtalk 9p -T $W/token write agent/changes/ctl flush; grep -c 'faster => 2' src/Fan.bt",
        "2\nbeamtalk 9p: write agent/changes/ctl: not approved: no answer\n0\n[1]\n",
    );
    // What is closed to the tool is closed here.
    world.check(
        "printf '//file .git/Cup.bt\\nObject subclass: Cup\\n' | beamtalk 9p -T $W/token write agent/classes/.new",
        "beamtalk 9p: write agent/classes/.new: permission denied: '.git/Cup.bt' is closed to clients\n[1]\n",
    );
    // A yes to a flush is for what was shown.
    settings(&world, "approval = \"write\"");
    world.value("(beamtalk 9p -T $W/token write agent/changes/ctl flush > $W/said 2>&1; echo $? >> $W/said) > /dev/null 2>&1 &");
    let id = held(&world, "flush");
    let diff = |id: &str| {
        world.value(&format!(
            "beamtalk --json workspace approvals | jq -r '.[] | select(.id == \"{id}\") | .diff'"
        ))
    };
    assert!(diff(&id).contains("+  faster => 2"), "{}", diff(&id));
    world.value("beamtalk 9p rpc agent/eval 'Fan >> slower => 7' > /dev/null");
    world.value(&format!("beamtalk workspace approvals approve {id}"));
    world.until(&format!(
        "beamtalk --json workspace approvals | jq -e 'length == 1 and .[0].id != \"{id}\"' > /dev/null"
    ));
    let again = held(&world, "flush");
    assert!(diff(&again).contains("slower => 7"), "{}", diff(&again));
    world.check("grep -c 'faster => 2' src/Fan.bt", "0\n[1]\n");
    world.value(&format!(
        "beamtalk workspace approvals approve {again}; until grep -qs '^0$' $W/said; do :; done"
    ));
    world.check("grep -c 'faster => 2\\|slower => 7' src/Fan.bt", "2\n");
    settings(&world, "approval = \"write\"\napproval-timeout = 1");
    // Where changes are flushed by themselves a method is a file at once.
    world.check(
        "beamtalk 9p rpc agent/eval 'Workspace autoflush: true' > /dev/null
         beamtalk 9p -T $W/token write agent/classes/Fan/faster 'faster => 3'; grep -c 'faster => 3' src/Fan.bt",
        "beamtalk 9p: write agent/classes/Fan/faster: not approved: no answer\n0\n[1]\n",
    );
}
