//! A session never has more than its own rights, whatever it does.

use std::io::{Read, Write};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use super::support::{BINARY, World};
use serde_json::Value;

/// The shell in a strict sandbox; `hostile` may also make sessions.
const HOSTILE: &str = "command: [\"{SELF}\", \"agents\", \"drive\", \"shell\"]\n\
    start: {ready: hook, regex: '^agent> $'}\nidle: {mode: hook}\nrestart: {policy: never}\nmay_spawn: true\n";

/// Who runs the daemon.
enum As {
    Root,
    User(u32),
}

/// A daemon with a victim and an attacker, both sandboxed, run by root or by somebody else.
struct Field {
    world: World,
    prefix: String,
    attacker: String,
    victim: String,
}

impl Field {
    /// `None`, with the reason printed, where such a field cannot be made.
    #[expect(clippy::print_stdout, reason = "a test that is skipped says why")]
    fn new(run_by: &As) -> Option<Self> {
        let world = World::new();
        world.config("backends/hostile.yaml", HOSTILE);
        let prefix = match run_by {
            As::Root => String::new(),
            As::User(uid) => {
                if !rustix::process::geteuid().is_root() {
                    println!("skipped: needs root to become another user");
                    return None;
                }
                world.value(&format!("chmod 755 $W; chown -R {uid}:{uid} $W"));
                chown(world.path(""), Some(*uid), Some(*uid)).unwrap();
                format!(
                    "setpriv --reuid={uid} --regid={uid} --clear-groups --inh-caps=-all --bounding-set=-all "
                )
            }
        };
        let (doctor, status) = world.run(&format!("{prefix}beamtalk agents doctor"));
        let has = |what: &str| doctor.contains(&format!("ok\t{what}"));
        if status != 0 || !has("Landlock") || !has("mount namespaces") || !has("process namespaces") {
            println!("skipped: no strict sandbox here: {doctor}");
            return None;
        }
        world.check(
            &format!("{prefix}beamtalk agents start"),
            "anvilsrv started successfully\n",
        );
        let new = |name: &str| {
            let directory = world.path(name);
            world.value(&format!(
                "{prefix}mkdir -p {0}; {prefix}beamtalk agents new hostile {0} --wait",
                directory.display()
            ))
        };
        let (victim, attacker) = (new("victim"), new("work"));
        Some(Field {
            world,
            prefix,
            attacker,
            victim,
        })
    }

    /// What the attacker's shell prints for a script.
    fn attack(&self, script: &str) -> String {
        let path = self.world.path("work/attack.sh");
        std::fs::write(&path, script).unwrap();
        self.world
            .value(&format!(
                "{}beamtalk agents prompt {} '. ./attack.sh' --wait",
                self.prefix, self.attacker
            ))
            .replace("\r\n", "\n")
    }

    /// The token in the environment of a session, which its owner can find.
    fn token(&self, id: &str) -> String {
        let launch = self.world.state().join(format!("sessions/{id}/launch.json"));
        let launch: Value = serde_json::from_slice(&std::fs::read(launch).unwrap()).unwrap();
        launch["environment"]["AGENT_TOKEN"].as_str().unwrap().to_owned()
    }
}

/// Prints a line for every attempt that got more than the rights of the session.
fn every_way(field: &Field) -> String {
    let world = &field.world;
    format!(
        r#"
B={BINARY}
NS=$NAMESPACE
# More than its own rights: what only control may read, and what only the victim may.
broken() {{ # NAME COMMAND...
    name=$1; shift
    for file in audit tokens {victim}/out {victim}/inbox; do
        if "$@" read agents/$file >/dev/null 2>&1; then echo "BROKEN $name reads $file"; fi
    done
    if "$@" write agents/{victim}/ctl stop >/dev/null 2>&1; then echo "BROKEN $name stops the victim"; fi
    if echo x | "$@" write agents/{victim}/in >/dev/null 2>&1; then echo "BROKEN $name prompts the victim"; fi
}}
broken plain $B 9p -n -a $NS/agent
broken cleared env -i $B 9p -n -a $NS/agent
broken apart setsid -w env -i $B 9p -n -a $NS/agent
broken stolen env AGENT_TOKEN={token} $B 9p -a $NS/agent
echo {token} > stolen; broken file $B 9p -T stolen -a $NS/agent
echo {control} > minted; broken minted $B 9p -T minted -a $NS/agent
# A daemonised child: two forks, its own session, no environment, its parent gone.
( setsid sh -c '(for f in audit tokens; do env -i '$B' 9p -n -a '$NS'/agent read agents/$f >/dev/null 2>&1 && echo "BROKEN orphan $f"; done; echo done) > orphan.log 2>&1 &' )
until grep -qs done orphan.log 2>/dev/null; do sleep 0.05; done
grep BROKEN orphan.log
# Every socket it can see, and every name a socket of ours has outside.
for socket in $(find / -xdev -type s 2>/dev/null; find / -type s 2>/dev/null) {ns}/agent {ns}/doors/*/agent {ns}/doors/{victim}/agent \
    /proc/1/root{ns}/agent /proc/1/cwd/../ns/agent ../ns/agent $PWD/../ns/doors/{victim}/agent; do
    test $socket = $NS/agent -o $socket = $NS/anvillm && continue
    broken $socket $B 9p -n -a $socket
done
tmux -S {ns}/tmux.sock list-windows >/dev/null 2>&1 && echo "BROKEN tmux"
ls -A {ns} | grep -v '^agent$' | grep -v '^anvillm$'
# Out of its namespaces.
nsenter --target 1 --all true 2>/dev/null && echo "BROKEN nsenter"
unshare -Urm sh -c 'umount {ns} && ls {ns}/tmux.sock' 2>/dev/null
unshare -Urm sh -c 'mount -t tmpfs none /usr && echo BROKEN mount' 2>/dev/null
mount -t tmpfs none $PWD 2>/dev/null && echo "BROKEN mount"
hostname broken 2>/dev/null && echo "BROKEN hostname"
test -e /proc/{outside} && echo "BROKEN sees process {outside}"
kill -0 {outside} 2>/dev/null && echo "BROKEN signal"
renice -n 5 -p {outside} >/dev/null 2>&1 && echo "BROKEN renice"
cat /proc/[0-9]*/environ 2>/dev/null | tr '\0' '\n' | grep -a SSH_AUTH_SOCK
grep -H -e 'Cap[A-Z][a-z]*:.*[1-9a-f]' -e 'NoNewPrivs:.*0' /proc/self/status
# Sessions it makes are no better than itself.
for words in 'shell {work}' 'hostile /' 'hostile {home}' 'hostile {work} sandbox=readonly' 'hostile {ns}'; do
    echo "new $words" | $B 9p -n write agent/ctl >/dev/null 2>&1 && echo "BROKEN new $words"
done
ln -sfn {home} door; echo "new hostile $PWD/door" | $B 9p -n write agent/ctl >/dev/null 2>&1 && echo "BROKEN new behind a link"
echo over
"#,
        victim = field.victim,
        token = field.token(&field.victim),
        control = world.value(&format!(
            "{}beamtalk agents token mint all{} control",
            field.prefix, field.attacker
        )),
        ns = world.namespace().display(),
        outside = std::process::id(),
        work = world.path("work").display(),
        home = world.path("home").display(),
    )
}

fn a_session_stays_itself(run_by: &As) {
    let Some(field) = Field::new(run_by) else { return };
    let script = every_way(&field);
    assert_eq!(field.attack(&script), "over");
    let report = field.world.value(&format!(
        "{}beamtalk agents show {} --json",
        field.prefix, field.attacker
    ));
    let report: Value = serde_json::from_str(&report).unwrap();
    assert_eq!(
        report["sandbox_report"]["open"],
        serde_json::json!([]),
        "{report}"
    );
    // The victim is as it was.
    field.world.check(
        &format!("{}beamtalk agents state {}", field.prefix, field.victim),
        "idle\n",
    );
}

#[test]
fn a_session_of_root_never_gets_more_than_its_own_rights() {
    a_session_stays_itself(&As::Root);
}

#[test]
fn a_session_of_another_user_never_gets_more_than_its_own_rights() {
    a_session_stays_itself(&As::User(54_322));
}

#[test]
fn a_session_that_races_its_own_end_gains_nothing_and_leaves_nothing() {
    let Some(field) = Field::new(&As::Root) else {
        return;
    };
    let world = &field.world;
    // It knocks on all doors it knows while the session around it is stopped, killed and made again.
    let knock = format!(
        "echo > race.log; setsid sh -c 'while :; do for s in {ns}/agent {ns}/doors/*/agent $NAMESPACE/agent; do \
         env -i {BINARY} 9p -n -a $s read agents/tokens >/dev/null 2>&1 && echo BROKEN $s >> race.log; \
         echo tried >> race.log; done; done' </dev/null >/dev/null 2>&1 & sleep 0.1",
        ns = world.namespace().display()
    );
    for end in ["stop", "restart", "kill"] {
        field.attack(&knock);
        let id = &field.attacker;
        world.until("test $(grep -c tried $W/work/race.log) -gt 5");
        world.value(&format!("beamtalk agents {end} {id}"));
        world.check("grep -c BROKEN $W/work/race.log", "0\n[1]\n");
        // Nothing of it runs on: the log rests.
        let size = || std::fs::metadata(world.path("work/race.log")).unwrap().len();
        let before = size();
        world.value("sleep 0.3");
        assert_eq!(size(), before, "a process outlived `{end}`");
        if end == "stop" {
            world.check(
                &format!("beamtalk agents restart {id} && beamtalk agents wait {id}"),
                "idle\n",
            );
        } else if end == "restart" {
            world.check(&format!("beamtalk agents wait {id}"), "idle\n");
        }
    }
    world.check(
        &format!("ls -A $NAMESPACE/doors | grep -v {}", field.victim),
        "[1]\n",
    );
}

#[test]
fn a_session_may_make_sessions_like_itself_and_prompt_them() {
    let Some(field) = Field::new(&As::Root) else {
        return;
    };
    std::fs::create_dir(field.world.path("work/sub")).unwrap();
    let said = field.attack(&format!(
        "made=$(echo \"new hostile $PWD/sub\" | {BINARY} 9p rpc agent/ctl 2>/dev/null || true)\n\
         echo \"new hostile $PWD/sub alias=made\" | {BINARY} 9p write agent/ctl; {BINARY} agents wait made; \
         {BINARY} agents prompt made 'pwd; echo \"new hostile $PWD\" | {BINARY} 9p write agent/ctl' --wait; \
         {BINARY} agents kill made 2>&1"
    ));
    let expected = format!(
        "idle\n{}\nbeamtalk 9p: open agent/ctl: permission denied\n[exit 1]\nbeamtalk agents: permission denied\n[exit 5]",
        field.world.path("work/sub").display()
    );
    assert_eq!(said, expected);
    // What it made stays where it was made, whatever is put there later.
    field.attack("rm -rf sub; ln -s / sub");
    field.world.value("beamtalk agents restart made");
    field.world.check(
        "beamtalk agents wait made --for error,idle; beamtalk agents show made | grep ^last_error",
        "error\nlast_error: sandbox: path …/work/sub leads out of the working directory …/work/sub\n",
    );
}

#[test]
fn a_session_at_home_sees_neither_state_nor_secrets() {
    let Some(field) = Field::new(&As::Root) else {
        return;
    };
    let world = &field.world;
    let secrets = [
        ".beamtalk/workspaces/w1/cookie",
        ".ssh/id_ed25519",
        ".gnupg/private-keys-v1.d/key",
        ".aws/credentials",
        ".config/gcloud/credentials.db",
        ".netrc",
        ".password-store/mail.gpg",
        ".local/share/keyrings/login.keyring",
        ".config/git/credentials",
    ];
    for name in secrets {
        let path = world.path("home").join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "SECRET").unwrap();
    }
    std::fs::write(world.path("home/notes"), "plain\n").unwrap();
    let id = world.value("beamtalk agents new hostile $HOME --wait");
    let ask = |id: &str, text: &str| {
        std::fs::write(world.path("home/ask.sh"), text).unwrap();
        world.value(&format!("beamtalk agents prompt {id} '. ~/ask.sh' --wait"))
    };
    // It reads nothing of it, and cannot move what hides it out of the way.
    let look = "grep -rl SECRET ~ 2>/dev/null | grep -v ask.sh; cat ~/notes; ls -A ~/.beamtalk/agents/*/; \
        mv ~/.config ~/c 2>/dev/null && echo moved; mv ~/.local ~/l 2>/dev/null && echo moved; \
        mv ~/.ssh ~/s 2>/dev/null && echo moved; rm -rf ~/.beamtalk 2>/dev/null; \
        mkdir -p ~/.config/beamtalk/agents/sandbox 2>/dev/null && echo widened";
    assert_eq!(ask(&id, look), "plain\nsessions\n[exit 1]");
    world.check(
        &format!("beamtalk agents restart {id}; beamtalk agents wait {id}"),
        "idle\n",
    );
    assert_eq!(ask(&id, look), "plain\nsessions\n[exit 1]");
    for name in secrets {
        assert!(world.path("home").join(name).exists(), "{name} was removed");
    }
    // A profile may name a secret store; state cannot be named.
    world.config(
        "sandbox/keys.yaml",
        "filesystem: {ro: [\"{HOME}/.ssh\"], rwx: [\"{CWD}\"]}\n",
    );
    let keys = world.value("beamtalk agents new hostile $HOME --sandbox keys --wait");
    let found = ask(&keys, "grep -rl SECRET ~ 2>/dev/null | grep -v ask.sh");
    assert_eq!(found, world.path("home/.ssh/id_ed25519").display().to_string());
    world.config(
        "sandbox/state.yaml",
        "filesystem: {ro: [\"{HOME}/.beamtalk/workspaces\"]}\n",
    );
    world.check(
        "beamtalk agents new hostile $W/work --sandbox state",
        "beamtalk agents: sandbox: path …/.beamtalk/workspaces is not shown to any session\n[1]\n",
    );
    world.check(
        "beamtalk agents new hostile $HOME/.ssh",
        "beamtalk agents: sandbox: path …/.ssh is not shown to any session\n[1]\n",
    );
    // Nor does a link lead anywhere else that was put there between two starts.
    let plant = "mv $HOME/.config/git $HOME/.config/was; ln -s / $HOME/.config/git";
    ask(&id, plant);
    assert!(world.path("home/.config/git").is_dir(), "moved from inside");
    world.value(plant);
    world.value(&format!("beamtalk agents restart {id}"));
    world.check(
        &format!("beamtalk agents wait {id} --for error,idle; beamtalk agents show {id} | grep ^last_error"),
        "error\nlast_error: sandbox: path …/.config/git leads out of the working directory …/home\n",
    );
}

/// Tries to put something where a protected place is, was or would be; prints what succeeded.
const PLANT: &str = r#"
planted() { echo "BROKEN $*"; }
for store in .ssh .gnupg .aws .kube .netrc .npmrc .git-credentials .mozilla .cargo .docker .config/gcloud .config/gh \
    .config/git/credentials .config/rclone .local/share/keyrings .config/beamtalk/agents .beamtalk/workspaces \
    work/../.azure ../home/.pgpass .devloop/state.json; do
    at=$HOME/$store
    test -s $at && continue
    mkdir $at 2>/dev/null && planted mkdir $store
    (echo x > $at) 2>/dev/null && planted write $store
    ln -s $HOME/work $at 2>/dev/null && planted symlink $store
    ln work/file $at 2>/dev/null && planted link $store
    mv work/file $at 2>/dev/null && planted file $store
    mv work/made $at 2>/dev/null && planted directory $store
    mkfifo $at 2>/dev/null && planted fifo $store
    (cd work && mv -T made ../$store) 2>/dev/null && planted relative $store
    /usr/bin/python3 -c "import os
f = os.open('$HOME', os.O_TMPFILE | os.O_RDWR)
os.link('/proc/self/fd/%d' % f, '$at', follow_symlinks=True)" 2>/dev/null && planted unnamed $store
done
for way in .config .config/git .local .local/share .beamtalk; do
    mv $HOME/$way $HOME/work/away 2>/dev/null && planted moved $way
    mv $HOME/$way $HOME/other 2>/dev/null && planted renamed $way
    /usr/bin/python3 -c "import ctypes
libc = ctypes.CDLL(None)
exit(libc.renameat2(-100, b'$HOME/$way', -100, b'$HOME/work/made', 2))" 2>/dev/null && planted exchanged $way
    rm -rf $HOME/$way 2>/dev/null
    test -d $HOME/$way || planted removed $way
done
# What is there to be worked with can be.
echo more >> ~/notes || echo "BROKEN notes"
mkdir work/new && mv work/file work/new/ && rm -r work/new work/made || echo "BROKEN work"
mkdir deep/er/new && echo x > deep/x && ln deep/x work/x || echo "BROKEN deep"
echo end
"#;

fn nothing_is_planted_where_a_store_would_be(run_by: &As) {
    let Some(field) = Field::new(run_by) else {
        return;
    };
    let (world, prefix) = (&field.world, &field.prefix);
    world.value(&format!(
        "{prefix}mkdir -p $HOME/work/made $HOME/deep/er $HOME/.config/git $HOME/.local/share/app; \
         {prefix}touch $HOME/.config/git/config; \
         {prefix}sh -c 'echo x > $HOME/work/file; echo plain > $HOME/notes'"
    ));
    std::fs::write(world.path("home/plant.sh"), PLANT).unwrap();
    let before = world.value(
        "cd $HOME; find . -not -path './.beamtalk/*' -not -path './work/*' -not -path './deep/*' | sort",
    );
    let id = world.value(&format!("{prefix}beamtalk agents new hostile $HOME --wait"));
    let said = world.value(&format!(
        "{prefix}beamtalk agents prompt {id} '. ~/plant.sh' --wait"
    ));
    assert_eq!(said, "end");
    // On the owner's disk is what was there, and the empty place of a loop, which is our own.
    let after = world.value(
        "cd $HOME; find . -not -path './.beamtalk/*' -not -path './work/*' -not -path './deep/*' | sort",
    );
    let added: Vec<&str> = after
        .lines()
        .filter(|line| !before.lines().any(|was| was == *line))
        .collect();
    assert_eq!(added, ["./.devloop"]);
    assert_eq!(
        after.lines().count(),
        before.lines().count() + 1,
        "{before}\n{after}"
    );
    // The same session does not see what the owner makes there later.
    world.value(&format!(
        "{prefix}sh -c 'echo SECRET > $HOME/.devloop/state.json'"
    ));
    let said = world.value(&format!(
        "{prefix}beamtalk agents prompt {id} 'cat ~/.devloop/state.json 2>/dev/null || echo hidden' --wait"
    ));
    assert_eq!(said, "hidden");
}

#[test]
fn a_session_of_root_plants_nothing_where_a_store_would_be() {
    nothing_is_planted_where_a_store_would_be(&As::Root);
}

#[test]
fn a_session_of_another_user_plants_nothing_where_a_store_would_be() {
    nothing_is_planted_where_a_store_would_be(&As::User(54_323));
}

fn a_linked_protected_place_stops_a_session_around_it(run_by: &As) {
    let Some(field) = Field::new(run_by) else {
        return;
    };
    let (world, prefix) = (&field.world, &field.prefix);
    let refused = |link: &str| {
        world.check(
            &format!("{prefix}beamtalk agents new hostile $HOME"),
            &format!(
                "beamtalk agents: sandbox: path …/home/{link} would expose a protected place: it is a symbolic \
                 link the session could replace; put the directory itself there, or start the session in \
                 another directory\n[1]\n"
            ),
        );
    };
    // As those who keep such directories elsewhere have it, and one that leads nowhere yet.
    world.value(&format!(
        "{prefix}mkdir -p $W/dots/ssh; {prefix}mv $HOME/.config $W/dots/config; \
         {prefix}ln -s ../dots/config $HOME/.config"
    ));
    refused(".config");
    world.value(&format!(
        "{prefix}rm $HOME/.config; {prefix}mv $W/dots/config $HOME/.config; {prefix}ln -s $W/dots/ssh $HOME/.ssh"
    ));
    refused(".ssh");
    world.value(&format!("{prefix}rmdir $W/dots/ssh"));
    refused(".ssh");
    world.value(&format!("{prefix}rm $HOME/.ssh"));
    // A link outside of what is granted is nobody's to replace.
    world.value(&format!("{prefix}mkdir $HOME/sub; {prefix}ln -s sub $HOME/.ssh"));
    world.value(&format!("{prefix}beamtalk agents new hostile $W/victim --wait"));
}

#[test]
fn a_linked_protected_place_stops_a_session_of_root_around_it() {
    a_linked_protected_place_stops_a_session_around_it(&As::Root);
}

#[test]
fn a_linked_protected_place_stops_a_session_of_another_user_around_it() {
    a_linked_protected_place_stops_a_session_around_it(&As::User(1234));
}

/// What is granted for reading keeps its modes and times, and keys of the owner stay unreachable.
fn neither_fixed_files_nor_keys(run_by: &As) {
    let Some(field) = Field::new(run_by) else {
        return;
    };
    let (world, prefix) = (&field.world, &field.prefix);
    world.value(&format!(
        "{prefix}mkdir -p $W/shared/open; {prefix}touch $W/shared/note"
    ));
    let shared = world.path("shared").display().to_string();
    world.config(
        "sandbox/fixed.yaml",
        &format!("filesystem: {{ro: [\"{shared}\"], rwx: [\"{{CWD}}\", \"{shared}/open\"]}}\n"),
    );
    let id = world.value(&format!(
        "{prefix}beamtalk agents new hostile $W/work --sandbox fixed --wait"
    ));
    let script = format!(
        r#"
for path in {shared} {shared}/note {BINARY} /usr /usr/bin/env /etc/passwd; do
    chmod --reference=$path $path 2>/dev/null && echo "BROKEN chmod $path"
    chown --reference=$path $path 2>/dev/null && echo "BROKEN chown $path"
    touch -c -d 2001-01-01 $path 2>/dev/null && echo "BROKEN touch $path"
    /usr/bin/python3 -c "import os; os.setxattr('$path', 'user.x', b'x')" 2>/dev/null && echo "BROKEN xattr $path"
done
touch {shared}/open/made && chmod 600 {shared}/open/made && echo x > {shared}/open/made || echo "BROKEN write"
touch made && chmod 600 made || echo "BROKEN work"
/usr/bin/python3 - <<'END'
import ctypes, os, platform
libc = ctypes.CDLL(None, use_errno=True)
calls = {{'x86_64': (248, 249, 250), 'aarch64': (217, 218, 219)}}[platform.machine()]
for call in calls:
    got = libc.syscall(call, 0, -4, 0, 0, 0)
    if got != -1 or ctypes.get_errno() != 1:
        print('BROKEN keys', call, got, ctypes.get_errno())
END
echo end
"#
    );
    std::fs::write(world.path("work/attack.sh"), script).unwrap();
    let said = world.value(&format!(
        "{prefix}beamtalk agents prompt {id} '. ./attack.sh' --wait"
    ));
    assert_eq!(said, "end");
}

#[test]
fn a_session_of_root_changes_no_fixed_file_and_reads_no_keys() {
    neither_fixed_files_nor_keys(&As::Root);
}

#[test]
fn a_session_of_another_user_changes_no_fixed_file_and_reads_no_keys() {
    neither_fixed_files_nor_keys(&As::User(1234));
}

#[test]
fn a_message_cannot_steer_the_terminal_of_its_reader() {
    let world = World::started();
    world.value("printf 'a\\033]0;owned\\007b' | beamtalk agents mail send --to user --type PROMPT_RESPONSE --subject \"$(printf 's\\033[2J')\"");
    let (seen, _) = world.run(
        "script -qec 'beamtalk agents mail inbox; beamtalk agents mail read $(beamtalk agents mail inbox | cut -d\" \" -f1)' /dev/null",
    );
    assert!(!seen.contains('\u{1b}') && !seen.contains('\u{7}'), "{seen:?}");
    assert!(
        seen.contains("s\\x1b[2J") && seen.contains("a\\x1b]0;owned\\x07b"),
        "{seen:?}"
    );
}

#[test]
fn nor_can_a_file_that_is_read_there() {
    let world = World::started();
    let id = world.value("beamtalk agents new echo $W/work --wait");
    let text = "a\\033]0;owned\\007\\033[2Jü";
    world.value(&format!("printf '{text}' | beamtalk 9p write agent/{id}/context"));
    let read = format!("beamtalk 9p read agent/{id}/context");
    for command in [
        read.clone(),
        format!("echo | beamtalk 9p rdwr agent/{id}/context"),
        format!("beamtalk 9p con agent/{id}/context </dev/null"),
    ] {
        let (seen, _) = world.run(&format!("script -qec '{command}' /dev/null"));
        assert!(!seen.contains('\u{1b}') && !seen.contains('\u{7}'), "{seen:?}");
        assert!(
            seen.contains("a\\x1b]0;owned\\x07\\x1b[2Jü"),
            "{command}: {seen:?}"
        );
    }
    // A program gets what the file holds.
    let (raw, _) = world.run(&read);
    assert_eq!(raw.trim_end(), "a\u{1b}]0;owned\u{7}\u{1b}[2Jü");
}

/// Whether the daemon keeps a connection open: it says nothing, but does not hang up.
fn stays(stream: &mut UnixStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    let mut byte = [0];
    !matches!(stream.read(&mut byte), Ok(0))
}

#[test]
fn connections_of_a_session_never_take_the_places_of_the_owner() {
    let world = World::started();
    let id = world.value("beamtalk agents new echo $W/work --wait");
    let door = world.namespace().join(format!("doors/{id}/agent"));
    let mut guests: Vec<UnixStream> = (0..256).filter_map(|_| UnixStream::connect(&door).ok()).collect();
    assert!(guests.len() > 16);
    // The owner comes in as ever, and the session itself goes on answering.
    world.check("beamtalk agents list | wc -l", "2\n");
    world.check(&format!("beamtalk agents state {id}"), "idle\n");
    world.until(&format!(
        "beamtalk agents audit | grep '\"op\":\"connect\"' | grep 'session:{id}' | grep -q 'too many connections'"
    ));
    let open = guests.iter_mut().map(stays).filter(|stays| *stays).count();
    // The driver of the session holds one of the sixteen.
    assert!((1..=16).contains(&open), "{open} connections are open");
    drop(guests);
    world.until(&format!(
        "beamtalk agents prompt {id} again --wait | grep -q again"
    ));
}

#[test]
fn requests_that_wait_at_a_door_are_bounded() {
    let world = World::started();
    let id = world.value("beamtalk agents new echo $W/work --wait");
    let mut stream = UnixStream::connect(world.namespace().join(format!("doors/{id}/agent"))).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut frame = |kind: u8, tag: u16, body: &[u8]| {
        let size = u32::try_from(7 + body.len()).unwrap();
        let head = [&size.to_le_bytes()[..], &[kind], &tag.to_le_bytes()].concat();
        stream.write_all(&[&head, body].concat()).unwrap();
    };
    let text = |text: &str| [&u16::try_from(text.len()).unwrap().to_le_bytes(), text.as_bytes()].concat();
    frame(
        100,
        0xffff,
        &[&8192_u32.to_le_bytes()[..], &text("9P2000")].concat(),
    );
    frame(
        104,
        1,
        &[
            &0_u32.to_le_bytes()[..],
            &u32::MAX.to_le_bytes(),
            &text("x"),
            &text("agents"),
        ]
        .concat(),
    );
    frame(
        110,
        2,
        &[
            &0_u32.to_le_bytes()[..],
            &1_u32.to_le_bytes(),
            &1_u16.to_le_bytes(),
            &text("events"),
        ]
        .concat(),
    );
    frame(112, 3, &[&1_u32.to_le_bytes()[..], &[2]].concat());
    for tag in 10..110 {
        frame(
            116,
            tag,
            &[
                &1_u32.to_le_bytes()[..],
                &0_u64.to_le_bytes(),
                &512_u32.to_le_bytes(),
            ]
            .concat(),
        );
    }
    // Four answers to the beginning, then one refusal for each read beyond those that wait.
    let mut refused = 0;
    while refused < 100 - 64 {
        let mut head = [0; 7];
        stream.read_exact(&mut head).unwrap();
        let size = u32::from_le_bytes([head[0], head[1], head[2], head[3]]) as usize;
        let mut body = vec![0; size - 7];
        stream.read_exact(&mut body).unwrap();
        refused += usize::from(head[4] == 107);
    }
    world.check(&format!("beamtalk agents state {id}"), "idle\n");
}

#[test]
fn a_process_that_looks_like_an_agent_needs_a_proof_at_the_owners_door() {
    let world = World::started();
    let confined = "setpriv --no-new-privs";
    world.check(
        &format!("{confined} beamtalk 9p -n read agent/list"),
        "beamtalk 9p: attach agent: refused: this process cannot gain privileges, like an agent's; use a token\n[1]\n",
    );
    // The owner, whose shell may be like that, has the secret and is not locked out.
    world.check(&format!("{confined} beamtalk 9p read agent/list"), "");
    world.check(
        &format!("{confined} beamtalk agents list"),
        "ID  BACKEND  STATE  ALIAS  ROLE  CWD\n",
    );
    world.value("beamtalk agents token mint viewer read > $W/token");
    world.check(&format!("{confined} beamtalk 9p -T $W/token read agent/list"), "");
}

/// Without a mount namespace doors can be seen by others: they ask for a token.
#[test]
fn a_door_that_others_can_see_asks_for_its_token() {
    let world = World::new();
    let open = HOSTILE.to_owned() + "best_effort: true\nnamespaces: {mount: false}\n";
    world.config("backends/open.yaml", &open);
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    let ids: Vec<String> = (0..2)
        .map(|_| world.value("beamtalk agents new open $W/work --wait"))
        .collect();
    let door = |id: &str| {
        world
            .namespace()
            .join(format!("doors/{id}/agent"))
            .display()
            .to_string()
    };
    let launch = std::fs::read(world.state().join(format!("sessions/{}/launch.json", ids[0]))).unwrap();
    let launch: Value = serde_json::from_slice(&launch).unwrap();
    let token = launch["environment"]["AGENT_TOKEN"].as_str().unwrap();
    std::fs::write(world.path("token"), token).unwrap();
    for id in &ids {
        world.check(
            &format!("beamtalk 9p -n -a {} read agents/list", door(id)),
            "beamtalk 9p: attach …: authentication required\n[1]\n",
        );
    }
    world.value(&format!(
        "beamtalk 9p -T $W/token -a {} read agents/list",
        door(&ids[0])
    ));
    world.check(
        &format!("beamtalk 9p -T $W/token -a {} read agents/list", door(&ids[1])),
        "beamtalk 9p: auth …: authentication failed\n[1]\n",
    );
    // It knows its door, and is itself there; at the owner's it is turned away.
    let record: Value =
        serde_json::from_str(&world.value(&format!("beamtalk agents show {} --json", ids[0]))).unwrap();
    let left = record["sandbox_report"]["open"].as_array().unwrap();
    assert!(
        left.contains(&"sockets".into()) && left.contains(&"processes".into()),
        "{record}"
    );
    std::fs::write(
        world.path("work/ask.sh"),
        format!(
            "echo $NAMESPACE; {BINARY} agents token list\nenv -i {BINARY} 9p -n -a {} read agents/list",
            world.namespace().join("agent").display()
        ),
    )
    .unwrap();
    world.check(
        &format!("beamtalk agents prompt {} '. ./ask.sh' --wait", ids[0]),
        "…/ns/doors/…\nbeamtalk agents: permission denied\n\
         beamtalk 9p: attach …: refused: this process cannot gain privileges, like an agent's; use a token\n[exit 1]\n",
    );
}

#[test]
fn the_state_follows_the_program_that_answers() {
    let world = World::new();
    world.config("backends/fragile.yaml", HOSTILE);
    world.config(
        "backends/outlived.yaml",
        "command: [\"/bin/sh\", \"-c\", \"sleep 300 & echo ready; read line; exit 4\"]\n\
         start: {ready: regex, regex: '^ready$'}\nidle: {mode: quiet}\nrestart: {policy: never}\n\
         best_effort: true\nnamespaces: {pid: false}\n",
    );
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    // The shell of a `shell` dies while nothing is asked of it.
    let id = world.value("beamtalk agents new fragile $W/work --wait --timeout 30");
    world.check(
        &format!(
            "kill -9 $(cat /proc/$(beamtalk 9p read agent/{id}/pid)/task/*/children); \
             beamtalk agents wait {id} --for error,stopped --timeout 20; beamtalk agents prompt {id} lost"
        ),
        "error\nbeamtalk agents: session failed: exited with status 137\n[1]\n",
    );
    // A program ends while something it started holds its terminal.
    let id = world.value("beamtalk agents new outlived $W/work --wait");
    let pid = world.value(&format!("beamtalk 9p read agent/{id}/pid"));
    world.check(
        &format!("beamtalk agents prompt {id} go; beamtalk agents wait {id} --for error --timeout 20"),
        "error\n",
    );
    world.check(
        &format!("beamtalk agents show {id} | grep ^last_exit"),
        "last_exit: 4\n",
    );
    world.check(
        &format!("ps -o stat=,args= --sid {pid} | grep -v ^Z; kill -0 {pid} 2>/dev/null; echo $?"),
        "1\n",
    );
}

#[test]
fn directories_of_ended_sessions_go_after_a_day() {
    let world = World::started();
    let id = world.value("beamtalk agents new echo $W/work --wait; beamtalk agents new echo $W/work --wait --alias two >/dev/null");
    world.check(
        &format!("beamtalk agents kill {id}; beamtalk agents kill two"),
        "",
    );
    world.check(
        "beamtalk agents doctor | grep -c '2 ended sessions have a directory left'",
        "1\n",
    );
    let exited = world.state().join("sessions/.exited");
    std::fs::create_dir(world.state().join("sessions/0badcafe")).unwrap();
    world.value(&format!(
        "touch -d '25 hours ago' {}/{id}; beamtalk agents stop",
        exited.display()
    ));
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    // The old one is gone, its record is kept; the new one and one that never was a session stay a day.
    world.until(&format!("test ! -e {}/{id}", exited.display()));
    world.check(&format!("ls {} | grep -c .", exited.display()), "3\n");
    assert!(exited.join(format!("{id}.json")).exists());
    assert!(exited.join("0badcafe").is_dir());
    world.value(&format!(
        "touch -d '8 days ago' {}/{id}.json; beamtalk agents stop",
        exited.display()
    ));
    world.check("beamtalk agents start", "anvilsrv started successfully\n");
    world.until(&format!("test ! -e {}/{id}.json", exited.display()));
    let mode = std::fs::metadata(&exited).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}
