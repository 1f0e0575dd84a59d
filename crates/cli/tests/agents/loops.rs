//! `loop/`: a loop that the workspace hosts, as files.

use std::io::{BufRead, BufReader};
use std::process::{Child, Stdio};

use crate::support::World;

const CONFIG: &str = concat!(
    include_str!("../shared/devloop.toml"),
    r#"
[workflow.boot]
steps = [{ action = "log", message = "booted" }, { action = "write_state", key = "a/b", value = "up" }]
"#
);

/// The command that a loop hosted by the workspace is attached to; it ends with this.
struct Attached(Child);

impl Drop for Attached {
    fn drop(&mut self) {
        // It may have ended by itself.
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

fn hosted(world: &World) -> Attached {
    std::fs::create_dir_all(world.path("work/css")).unwrap();
    std::fs::write(world.path("work/devloop.toml"), CONFIG).unwrap();
    let mut child = world
        .command("beamtalk")
        .args(["loop", "run", "--workspace", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let is_ready = lines.any(|line| line.unwrap().contains(r#""kind":"ready""#));
    assert!(is_ready, "the loop did not become ready");
    // What it says further is read, so that it never waits.
    std::thread::spawn(move || lines.for_each(drop));
    Attached(child)
}

/// Without a loop `loop` is there and everything in it is `loop not running`; with one every file reads as the loop
/// itself tells, and what is written to it is done.
#[test]
fn a_hosted_loop_is_files() {
    let world = World::with_workspace();
    world.check(
        "beamtalk 9p ls agent | grep -x loop; beamtalk 9p ls agent/loop; beamtalk 9p read agent/loop/status",
        "loop\nbeamtalk 9p: open agent/loop: loop not running\nbeamtalk 9p: open agent/loop/status: loop not running\n[1]\n",
    );
    let _attached = hosted(&world);
    world.check(
        "cd /; beamtalk 9p ls agent/loop | tr '\\n' ' '; beamtalk 9p ls agent/loop/processes | tr '\\n' ' '
         beamtalk 9p ls agent/loop/processes/server | tr '\\n' ' '; beamtalk 9p ls agent/loop/workflows | tr '\\n' ' '
         beamtalk 9p ls agent/loop/workflows/boot | tr '\\n' ' '; beamtalk 9p ls agent/loop/events",
        "ctl events follow graph.json processes runs state status workflows server twin \
         ctl info output output.follow pid state boot fail ctl last page\n",
    );
    // Modes are those of the kinds.
    world.check(
        "for f in loop loop/ctl loop/status loop/follow loop/state loop/events/page loop/processes/server/ctl; do
           beamtalk 9p ls -ld agent/$f | cut -d' ' -f1; done",
        "d-r-x------\n--rw-------\n--r--------\n--rw-------\nd-r-x------\n---w-------\n--rw-------\n",
    );
    world.check(
        "beamtalk 9p read agent/loop/processes/server/state; beamtalk 9p read agent/loop/processes/twin/state
         beamtalk 9p read agent/loop/processes/twin/pid; beamtalk 9p read agent/loop/processes/server/output
         kill -0 $(beamtalk 9p read agent/loop/processes/server/pid) && echo lives",
        "running\nstopped\nhello\nlives\n",
    );
    // What `status` says is what the command says, apart from what it counts.
    let schema = world.value(
        "beamtalk 9p read agent/loop/status | python3 -c 'import json,sys; s=json.load(sys.stdin)
print(s[\"schema\"], s[\"phase\"], [p[\"name\"] for p in s[\"processes\"]], [w[\"name\"] for w in s[\"workflows\"]])'",
    );
    assert_eq!(schema, "1 running ['server', 'twin'] ['boot', 'fail']");
    // Processes are steered.
    world.check(
        "beamtalk 9p write agent/loop/processes/twin/ctl start; beamtalk 9p read agent/loop/processes/twin/state
         beamtalk 9p write agent/loop/processes/twin/ctl stop; beamtalk 9p read agent/loop/processes/twin/state
         beamtalk 9p write agent/loop/processes/twin/ctl dance; beamtalk 9p write agent/loop/processes/twin/ctl ''
         beamtalk 9p ls agent/loop/processes/nobody",
        "running\nstopped\n\
         beamtalk 9p: write agent/loop/processes/twin/ctl: unknown command\n\
         beamtalk 9p: write agent/loop/processes/twin/ctl: usage: start | stop | restart\n\
         beamtalk 9p: stat agent/loop/processes/nobody: not found\n[1]\n",
    );
    // A workflow is queued, and its number is that of its run.
    let number = world.value("beamtalk 9p rpc agent/loop/workflows/fail/ctl run");
    world.until("beamtalk 9p read agent/loop/workflows/fail/last | grep -q '\"result\":\"failed\"' ");
    let run = world.value(&format!(
        "beamtalk 9p read agent/loop/runs | python3 -c '
import json,sys
run = [r for r in map(json.loads, sys.stdin) if r[\"number\"] == {number}][0]
print(run[\"workflow\"], run[\"ok\"], run[\"cause\"], [s[\"action\"] for s in run[\"steps\"]], run[\"error\"])'"
    ));
    assert_eq!(
        run,
        "fail False ['workspace', 'workflow fail'] ['run_hook'] fail step 1 run_hook: hook 'bad' failed with exit status: 1"
    );
    world.check(
        "beamtalk 9p read agent/loop/workflows/nope/last",
        "beamtalk 9p: open agent/loop/workflows/nope/last: not found\n[1]\n",
    );
    // State is read and never written; events are posted under the loop's own checks.
    world.check(
        "beamtalk 9p ls agent/loop/state | grep %; beamtalk 9p read agent/loop/state/a%2Fb
         beamtalk 9p write agent/loop/state/a%2Fb 1; beamtalk 9p write -c agent/loop/state/new 1
         beamtalk 9p write agent/loop/events/page NO; echo /about | beamtalk 9p write agent/loop/events/page
         beamtalk 9p read agent/loop/state/page; beamtalk 9p write agent/loop/events/nope /x; beamtalk 9p read agent/loop/events/page",
        "a%2Fb\n\"up\"\n\
         beamtalk 9p: open agent/loop/state/a%2Fb: permission denied\n\
         beamtalk 9p: create agent/loop/state/new: create not supported\n\
         beamtalk 9p: write agent/loop/events/page: event rejected: …\n\
         \"/about\"\n\
         beamtalk 9p: open agent/loop/events/nope: not found\n\
         beamtalk 9p: open agent/loop/events/page: permission denied\n[1]\n",
    );
    world.check(
        "beamtalk 9p read agent/loop/graph.json | python3 -c 'import json,sys; g=json.load(sys.stdin)
print(len(g[\"nodes\"]), {e[\"kind\"] for e in g[\"edges\"]} == {\"entry\", \"uses\"})'",
        "6 True\n",
    );
}

/// Streams give lines as they come, numbered objects from where one left off, and end with the loop.
#[test]
fn the_loop_is_followed() {
    let world = World::with_workspace();
    let _attached = hosted(&world);
    world.check(
        "beamtalk 9p read agent/loop/processes/twin/output.follow > $W/lines & l=$!
         echo 'since 0' | beamtalk 9p con agent/loop/follow > $W/objects & o=$!
         until grep -qs '\"kind\":\"ready\"' $W/objects; do :; done
         until grep -qs twin $W/lines; do beamtalk 9p write agent/loop/processes/twin/ctl restart; done
         until grep -qs '\"line\":\"twin\"' $W/objects; do :; done
         beamtalk 9p write agent/loop/ctl stop; wait $l; echo $?; wait $o; echo $?
         python3 -c 'import json
n=[json.loads(line)[\"n\"] for line in open(\"'$W'/objects\")]
print(n == list(range(1, len(n)+1)))'
         beamtalk 9p read agent/loop/status",
        "0\n0\nTrue\nbeamtalk 9p: open agent/loop/status: loop not running\n[1]\n",
    );
}

/// Who may read sees; who may post, posts; only who may control steers; a session has what its backend grants it.
#[test]
fn levels_decide_what_may_be_done_with_the_loop() {
    let world = World::with_workspace();
    let _attached = hosted(&world);
    for right in ["none", "observe", "post", "control"] {
        world.config(
            &format!("backends/b{right}.yaml"),
            &format!("command: [\"sh\", \"-c\", \"cat\"]\nloop: {right}\nstart: {{ready: immediate}}\nidle: {{mode: quiet, quiet_ms: 200}}\n"),
        );
    }
    world.value("beamtalk 9p write agent/ctl reload");
    let token = |level: &str, name: &str| {
        let line = world.value(&format!("beamtalk 9p rpc agent/tokens 'mint {name} {level}'"));
        std::fs::write(world.path(name), line).unwrap();
    };
    token("read", "reader");
    let attempt = |file: &str| {
        let script = format!(
            "export AGENT_TOKEN=$(cat $W/{file})
             try() {{ \"$@\" > /dev/null 2>&1 && printf y || printf n; }}
             try beamtalk 9p read agent/loop/status; try beamtalk 9p write agent/loop/events/page /a
             try beamtalk 9p write agent/loop/processes/twin/ctl start"
        );
        world.value(&script)
    };
    assert_eq!(attempt("reader"), "ynn");
    for (right, expected) in [
        ("none", "nnn"),
        ("observe", "ynn"),
        ("post", "yyn"),
        ("control", "yyy"),
    ] {
        let id = world.value(&format!("beamtalk agents new b{right} $W/work"));
        token(&format!("session {id}"), right);
        assert_eq!(attempt(right), expected, "{right}");
    }
}
