//! Programs started by a Beamtalk program end with whoever owns them, whatever happens to that one.
//!
//! Every program here is a `sleep` with a number of its own, which is how it is found in `/proc`.

#![expect(
    clippy::disallowed_methods,
    reason = "tests start the binary and make its files"
)]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![expect(dead_code, reason = "the support module serves several test programs")]

#[path = "shared/runtime.rs"]
mod runtime;
#[path = "end_to_end/support.rs"]
mod support;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use support::Place;

/// A gentle signal, two seconds, and the other one; the rest is for a busy machine.
const LIMIT: Duration = Duration::from_secs(15);

/// A number of seconds that no other process sleeps.
fn seconds() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("90000.{:07}{number:03}", std::process::id())
}

/// A place whose `Main` has the given class methods; `SECONDS` stands for the number.
fn with_main(seconds: &str, text: &str) -> Place {
    let place = Place::with_project();
    place.write("src/Main.bt", &text.replace("SECONDS", seconds));
    place
}

/// Parent and state of a process.
fn status(id: u32) -> Option<(u32, char)> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    let mut fields = text.rsplit_once(") ")?.1.split(' ');
    let state = fields.next()?.chars().next()?;
    Some((fields.next()?.parse().ok()?, state))
}

fn all_processes() -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().filter_map(Result::ok);
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Those that run `sleep` with the number; a shell that only mentions it in its script counts too.
fn sleepers(seconds: &str) -> Vec<u32> {
    let mentions = |id: &u32| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains(seconds)
    };
    all_processes().into_iter().filter(mentions).collect()
}

/// Dead processes nobody has collected, with a parent in this place.
fn zombies(place: &Place) -> Vec<u32> {
    let living = place.processes();
    let is_zombie =
        |id: &u32| status(*id).is_some_and(|(parent, state)| state == 'Z' && living.contains(&parent));
    all_processes().into_iter().filter(is_zombie).collect()
}

#[track_caller]
fn wait_for(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !is_so() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Nothing runs on, and nobody is left uncollected.
#[track_caller]
fn wait_for_the_end(seconds: &str, place: &Place) {
    wait_for("the end of every sleeper", || sleepers(seconds).is_empty());
    wait_for("the collection of the dead", || zombies(place).is_empty());
}

/// A running `Main run` that prints lines and goes on when it reads one.
struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Program {
    fn start(place: &Place) -> Self {
        let mut child = place
            .command(&["run", "Main", "run"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        Self {
            input: child.stdin.take(),
            output: BufReader::new(child.stdout.take().unwrap()),
            child,
        }
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    #[track_caller]
    fn expect(&mut self, text: &str) {
        assert_eq!(self.line(), text);
    }

    /// Let the program go on to its end.
    fn finish(mut self) {
        let mut input = self.input.take().unwrap();
        input.write_all(b"go on\n").unwrap();
        drop(input);
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const PAIR: &str = "Subprocess open: \"sh\" args: #(\"-c\", \"sleep SECONDS & echo up; sleep SECONDS\")";

/// The program has two sleepers, then none, and the node goes on without a zombie.
#[track_caller]
fn expect_end_while_the_node_lives(seconds: &str, text: &str, answer: &str) {
    let place = with_main(seconds, text);
    let mut program = Program::start(&place);
    program.expect("up");
    program.expect(answer);
    wait_for_the_end(seconds, &place);
    assert!(program.child.try_wait().unwrap().is_none(), "the node has ended");
    program.finish();
}

/// A killed actor would take the program with it, to which it is linked; these are about the one actor.
#[test]
fn a_stopped_subprocess_takes_its_group_with_it() {
    for (message, answer) in [("close", "nil"), ("stop", "ok"), ("kill", "ok")] {
        let text = format!(
            "Object subclass: Main\n\n  class run =>\n    p := ({PAIR}) unwrap\n    Console printLine: p readLine\n    \
             Erlang erlang unlink: p pid\n    Console printLine: p {message} displayString\n    Console readLine\n"
        );
        expect_end_while_the_node_lives(&seconds(), &text, answer);
    }
}

#[test]
fn a_subprocess_ends_with_the_actor_that_owns_it() {
    for message in ["stop", "kill"] {
        let text = format!(
            "Actor subclass: Owner\n  state: process = nil\n\n  open =>\n    self.process := ({PAIR}) unwrap\n    \
             self.process readLine\n"
        );
        let main = format!(
            "Object subclass: Main\n\n  class run =>\n    owner := Owner spawn\n    Console printLine: owner open\n    \
             Erlang erlang unlink: owner pid\n    Console printLine: owner {message} displayString\n    Console readLine\n"
        );
        let seconds = seconds();
        let place = with_main(&seconds, &main);
        place.write("src/Owner.bt", &text.replace("SECONDS", &seconds));
        let mut program = Program::start(&place);
        program.expect("up");
        program.expect("ok");
        wait_for_the_end(&seconds, &place);
        program.finish();
    }
}

#[test]
fn a_command_over_its_time_limit_is_ended_with_its_group() {
    let script = "sleep SECONDS & sleep SECONDS";
    for call in [
        format!(
            "(System runCommand: \"sh\" args: #(\"-c\", \"{script}\") options: #{{#timeout => 300}}) error kind"
        ),
        format!("[OS run: \"{script}\" timeout: 300] on: Error do: [:e | e kind]"),
        format!(
            "(System runCommand: \"sh\" args: #(\"-c\", \"trap '' TERM; {script}\") options: #{{#timeout => 300}}) \
             error kind"
        ),
    ] {
        let text = format!(
            "Object subclass: Main\n\n  class run =>\n    Console printLine: \"up\"\n    \
             Console printLine: ({call}) displayString\n    Console readLine\n"
        );
        expect_end_while_the_node_lives(&seconds(), &text, "timeout");
    }
}

/// A program that has started a pair of sleepers and ones that do not hear a request to end.
fn with_a_deaf_one(seconds: &str, rest: &str) -> (Place, Program) {
    let text = format!(
        "Object subclass: Main\n\n  class run =>\n    p := ({PAIR}) unwrap\n    Console printLine: p readLine\n    \
         q := (Subprocess open: \"sh\" args: #(\"-c\", \"trap '' TERM; echo deaf; sleep SECONDS; sleep SECONDS\")) \
         unwrap\n    Console printLine: q readLine\n    {rest}"
    );
    let place = with_main(seconds, &text);
    let mut program = Program::start(&place);
    program.expect("up");
    program.expect("deaf");
    (place, program)
}

#[test]
fn nothing_outlives_a_killed_node() {
    let seconds = seconds();
    let rest = "Console printLine: System pid\n    Console readLine\n";
    let (place, mut program) = with_a_deaf_one(&seconds, rest);
    let node = program.line().parse().unwrap();
    assert!(sleepers(&seconds).len() >= 3, "{:?}", sleepers(&seconds));
    kill_process(Pid::from_raw(node).unwrap(), Signal::KILL).unwrap();
    wait_for("the end of every sleeper", || sleepers(&seconds).is_empty());
    program.child.wait().unwrap();
    wait_for("the end of the helper", || place.processes().is_empty());
}

#[test]
fn a_broken_pipe_harms_nobody() {
    let seconds = seconds();
    let text = "Object subclass: Main\n\n  class run =>\n    \
                p := (Subprocess open: \"true\" args: #()) unwrap\n    p readLine\n    \
                Console printLine: ([p writeLine: \"x\"] on: Error do: [:e | e kind])\n    \
                q := (Subprocess open: \"sh\" args: #(\"-c\", \"exec 0<&-; echo shut; exec sleep SECONDS\")) unwrap\n    \
                Console printLine: q readLine\n    1 to: 50 do: [:i | q writeLine: (\"x\" repeat: 10000)]\n    \
                q close\n    \
                r := System runCommand: \"true\" args: #() options: #{#input => (\"x\" repeat: 3000000)}\n    \
                Console printLine: r unwrap exitCode\n    Console readLine\n";
    let place = with_main(&seconds, text);
    let mut program = Program::start(&place);
    program.expect("port_closed");
    program.expect("shut");
    program.expect("0");
    assert_eq!(sleepers(&seconds), Vec::<u32>::new());
    program.finish();
}

/// The one process of this place that runs programs for the node.
fn helper(place: &Place) -> Pid {
    let is_helper = |id: &u32| {
        let words = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&words).contains("port-helper")
    };
    let id = place.processes().into_iter().find(is_helper).unwrap();
    Pid::from_raw(i32::try_from(id).unwrap()).unwrap()
}

#[test]
fn nothing_outlives_a_killed_helper_and_the_node_gets_another_one() {
    let seconds = seconds();
    let rest = "Console readLine\n    Console printLine: (System runCommand: \"true\") unwrap exitCode\n    Console readLine\n";
    let (place, mut program) = with_a_deaf_one(&seconds, rest);
    assert!(sleepers(&seconds).len() >= 3, "{:?}", sleepers(&seconds));
    kill_process(helper(&place), Signal::KILL).unwrap();
    wait_for("the end of every sleeper", || sleepers(&seconds).is_empty());
    program.input.as_mut().unwrap().write_all(b"next\n").unwrap();
    program.expect("0");
    program.finish();
    wait_for("the end of the guards", || place.processes().is_empty());
}

/// A shell, and a sleeper that leaves its group, its session and its parent.
const RUNAWAY: &str = "setsid sh -c 'setsid sleep SECONDS & exit 0' & sleep 0.2; echo up; sleep SECONDS";

/// The number of the sleeper whose parents are gone, once there is one.
fn runaways(seconds: &str) -> usize {
    let runs_sleep =
        |id: &u32| fs::read_to_string(format!("/proc/{id}/comm")).is_ok_and(|name| name.trim() == "sleep");
    sleepers(seconds).into_iter().filter(runs_sleep).count()
}

#[test]
fn what_leaves_its_session_ends_with_the_program_all_the_same() {
    for (call, answer) in [
        (
            format!("(Subprocess open: \"sh\" args: #(\"-c\", \"{RUNAWAY}\")) unwrap"),
            "p close",
        ),
        (
            format!(
                "(Subprocess open: \"sh\" args: #(\"-c\", \"{}\")) unwrap",
                RUNAWAY.replace("echo up; sleep SECONDS", "echo up; read line")
            ),
            "p writeLine: \"end\"",
        ),
    ] {
        let seconds = seconds();
        let text = format!(
            "Object subclass: Main\n\n  class run =>\n    p := {call}\n    Console printLine: p readLine\n    \
             Console readLine\n    {answer}\n    Console printLine: \"told\"\n    Console readLine\n"
        );
        let place = with_main(&seconds, &text);
        let mut program = Program::start(&place);
        program.expect("up");
        assert!(runaways(&seconds) >= 1, "nobody ran away");
        program.input.as_mut().unwrap().write_all(b"next\n").unwrap();
        program.expect("told");
        wait_for_the_end(&seconds, &place);
        program.finish();
    }
}

#[test]
fn what_leaves_its_session_ends_at_the_time_limit() {
    let script = RUNAWAY.replace("echo up; ", "");
    let text = format!(
        "Object subclass: Main\n\n  class run =>\n    Console printLine: \"up\"\n    Console printLine: (System runCommand: \
         \"sh\" args: #(\"-c\", \"{script}\") options: #{{#timeout => 1000}}) error kind displayString\n    \
         Console readLine\n"
    );
    expect_end_while_the_node_lives(&seconds(), &text, "timeout");
}

#[test]
fn what_leaves_its_session_ends_with_the_actor_the_node_or_the_helper() {
    for victim in ["actor", "node", "helper"] {
        let seconds = seconds();
        let owner = format!(
            "Actor subclass: Owner\n  state: process = nil\n\n  open =>\n    self.process := (Subprocess open: \"sh\" \
             args: #(\"-c\", \"{RUNAWAY}\")) unwrap\n    self.process readLine\n"
        );
        let main = "Object subclass: Main\n\n  class run =>\n    owner := Owner spawn\n    Console printLine: owner open\n    \
                    Erlang erlang unlink: owner pid\n    Console printLine: System pid\n    Console readLine\n    \
                    owner kill\n    Console readLine\n";
        let place = with_main(&seconds, main);
        place.write("src/Owner.bt", &owner.replace("SECONDS", &seconds));
        let mut program = Program::start(&place);
        program.expect("up");
        let node = Pid::from_raw(program.line().parse().unwrap()).unwrap();
        assert!(runaways(&seconds) >= 1, "nobody ran away");
        match victim {
            "actor" => program.input.as_mut().unwrap().write_all(b"next\n").unwrap(),
            "node" => kill_process(node, Signal::KILL).unwrap(),
            _ => kill_process(helper(&place), Signal::KILL).unwrap(),
        }
        wait_for(victim, || sleepers(&seconds).is_empty());
    }
}
