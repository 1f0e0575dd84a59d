//! The terminal client, driven by keys on a real terminal, which is tmux.

use super::support::World;
use serde_json::Value;

const TMUX: &str = "tmux -S $W/terminal.sock -f /dev/null";

struct Screen<'a>(&'a World);

impl<'a> Screen<'a> {
    fn start(world: &'a World) -> Self {
        world.value(&format!(
            "{TMUX} new-session -d -s a -x 80 -y 24 'beamtalk agents assist; echo ended $?; sleep 100'"
        ));
        let screen = Screen(world);
        screen.shows("q quit");
        screen
    }

    /// Words of `send-keys`.
    fn press(&self, keys: &str) {
        self.0.value(&format!("{TMUX} send-keys -t a {keys}"));
    }

    fn type_text(&self, text: &str) {
        self.press(&format!("-l '{text}'"));
    }

    fn shows(&self, text: &str) {
        self.0
            .until(&format!("{TMUX} capture-pane -t a -p | grep -F -e '{text}'"));
    }

    /// Keys, then what the screen shows because of them: the keys after it find it there.
    fn see(&self, keys: &str, shown: &str) {
        self.press(keys);
        self.shows(shown);
    }
}

impl Drop for Screen<'_> {
    fn drop(&mut self) {
        self.0.run(&format!("{TMUX} kill-server"));
    }
}

#[test]
fn a_session_is_started_prompted_edited_and_killed_by_keys() {
    let world = World::started();
    let screen = Screen::start(&world);
    // The path is checked before the daemon is asked, and what was typed stays.
    screen.see("s", "ready");
    screen.see("j j Enter", "own choice");
    screen.see("Enter", "directory");
    screen.type_text("/nosuch");
    screen.see("Enter", "path does not exist");
    world.check("beamtalk 9p read agent/list", "");
    screen.press("C-u");
    screen.type_text("/tmp");
    screen.see("Enter", "started");
    world.until("beamtalk 9p read agent/list | grep -q 'echo.idle'");
    screen.see("Space", "prompt for");
    screen.type_text("one");
    screen.press("Enter");
    screen.type_text("two");
    screen.see("C-d", "prompt written");
    screen.shows("echo: two");
    screen.see("A", "alias of");
    screen.type_text("demo");
    screen.see("Enter", "alias written");
    world.check("beamtalk agents context demo 'Be brief'", "");
    screen.see("c", "context of");
    screen.type_text("ly");
    screen.see("C-d", "context written");
    world.check("beamtalk 9p read agent/demo/context", "Be briefly");
    screen.see("l", "ASSISTANT:");
    screen.press("Escape");
    // A prompt that cannot be taken is not lost.
    world.check("beamtalk agents stop demo", "");
    screen.see("Space", "prompt for");
    screen.type_text("precious");
    screen.see("C-d", "session stopped (use restart)");
    screen.shows("precious");
    screen.press("Escape");
    // Inside the session and back.
    world.check(
        "beamtalk agents restart demo; beamtalk agents wait demo",
        "idle\n",
    );
    screen.see("t", "0:keep");
    screen.see("C-b d", "q quit");
    screen.see("K", "y/n");
    screen.press("y");
    world.until("test -z \"$(beamtalk 9p read agent/list)\"");
    screen.see("q", "ended 0");
}

#[test]
fn requests_are_answered_and_the_daemon_may_come_and_go() {
    let world = World::started();
    let id = world.value("beamtalk agents new echo $W/work --wait");
    for kind in ["APPROVAL", "REVIEW"] {
        world.check(
            &format!(
                "beamtalk agents mail send --from {id} --to user --type {kind}_REQUEST --subject may-{kind} text"
            ),
            "",
        );
    }
    let screen = Screen::start(&world);
    screen.see("i", "may-REVIEW");
    screen.see("a", "approved");
    screen.see("x", "reason");
    screen.type_text("too big");
    screen.see("Enter", "rejected");
    screen.shows("no messages");
    let inbox: Value =
        serde_json::from_str(&world.value(&format!("beamtalk agents mail inbox {id} --json"))).unwrap();
    for (index, (kind, body)) in [("APPROVAL", "approved"), ("REVIEW", "rejected: too big")]
        .into_iter()
        .enumerate()
    {
        assert_eq!(inbox[index]["type"], format!("{kind}_RESPONSE"));
        assert_eq!(inbox[index]["subject"], format!("Re: may-{kind}"));
        assert_eq!(inbox[index]["body"], body);
    }
    screen.press("Escape");
    // The last view stays while nobody serves it.
    world.value("beamtalk agents stop");
    screen.shows("disconnected");
    screen.shows(&id);
    screen.see("d", "does not run");
    screen.see("s", "PID");
    world.check(&format!("beamtalk agents state {id}"), "idle\n");
    // One that is started elsewhere is found again.
    world.value("beamtalk agents stop && beamtalk agents start");
    screen.press("Escape");
    screen.see("r", "q quit");
    world.until(&format!("! {TMUX} capture-pane -t a -p | grep -q disconnected"));
    screen.see("q", "ended 0");
}

/// What waits for a person, and what a session has queued, changed and used, by keys.
#[test]
fn the_work_of_a_team_is_seen_and_answered_by_keys() {
    let world = crate::team::asking();
    world.value(
        "git config --global user.name Kim; git config --global user.email kim@example.org
         git init -q -b main repo; cd repo; echo one > a.txt; git add .; git commit -qm first
         beamtalk agents new shell . --alias dev --worktree --wait
         beamtalk agents prompt dev 'echo two > a.txt' --wait
         beamtalk agents prompt demo one --wait; beamtalk agents prompt demo 'ask me'; beamtalk agents prompt demo later",
    );
    world.until("beamtalk agents approvals | grep -q backend");
    let screen = Screen::start(&world);
    // The newest session comes first.
    screen.see("W", "worktree of");
    screen.shows("ahead");
    screen.press("Escape");
    screen.see("D", "+two");
    screen.press("Escape");
    screen.see("j Q", "\"text_bytes\":5");
    screen.press("Escape");
    screen.see("U", "\"tokens_in\":1200");
    screen.press("Escape");
    // A program's question is read and approved; one that comes while the list is open appears in it.
    screen.see("w", "Do you want to proceed?");
    world.value("(beamtalk agents ctl dev ask 'which colour' > $W/said 2>&1 &)");
    screen.shows("which colour");
    screen.see("Enter", "ready> did one");
    screen.press("Escape");
    screen.see("a", "approved");
    world.until("beamtalk 9p read agent/demo/log | grep -q 'answered yes'");
    // A question is answered with words, another rejected with a reason.
    screen.see("a", "answer");
    screen.type_text("deep blue");
    screen.press("Enter");
    world.until("grep -qx 'deep blue' $W/said");
    world.value("(beamtalk agents ctl dev ask 'which size' > $W/said 2>&1 &)");
    screen.shows("which size");
    screen.see("x", "reason");
    screen.type_text("too many questions");
    screen.press("Enter");
    world.until("grep -q 'not approved: too many questions' $W/said");
    screen.press("Escape");
    screen.see("q", "ended 0");
}

#[test]
fn without_a_terminal_it_says_so() {
    let world = World::started();
    world.check(
        "beamtalk agents assist",
        "beamtalk agents: assist needs a terminal\n[1]\n",
    );
}
