//! Whatever a program does to get away, it ends when the loop says so.
//!
//! Every program sleeps a number of seconds nobody else sleeps, which is how it is found
//! whatever it did to its group, session, parent, directory and environment.

use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::support::{Loop, Place, Random, describe, is_alive, touch, wait_for, wait_or_explain};

/// The ways to leave, each a line of shell that leaves a `sleep $S` behind.
const WAYS: [&str; 8] = [
    "setsid sleep $S &",
    "(setsid sh -c \"sleep $S & sleep $S\" &)",
    "set -m; sleep $S & set +m",
    "(sleep $S &)",
    "env -i /bin/sh -c \"cd /; sleep $S\" &",
    "(env -i setsid /bin/sh -c \"cd /; (sleep $S &); exit 0\" &)",
    "setsid nohup sh -c \"trap '' HUP INT; sleep $S & wait\" > /dev/null 2>&1 &",
    "for n in 1 2 3; do (setsid sh -c \"(setsid sleep $S &) & sleep $S\" &) & done",
];

/// How a start comes to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Crash,
    RestartStep,
    HookDone,
    StopStep,
    Shutdown,
    KillSupervisor,
    KillSentry,
    KillGuard,
    KillKeeper,
    /// The guard has no moment to act on the death of the keeper.
    KillKeeperAndGuard,
    KillKeeperAndSentry,
}

const ENDS: [End; 11] = [
    End::Crash,
    End::RestartStep,
    End::HookDone,
    End::StopStep,
    End::Shutdown,
    End::KillSupervisor,
    End::KillSentry,
    End::KillGuard,
    End::KillKeeper,
    End::KillKeeperAndGuard,
    End::KillKeeperAndSentry,
];

/// A number of seconds that no other process sleeps.
fn seconds() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    format!("90001.{:07}{number:05}", std::process::id())
}

fn words(id: u32) -> String {
    String::from_utf8_lossy(&std::fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default()).into_owned()
}

fn all() -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// The living that mention the number.
fn members(seconds: &str) -> Vec<u32> {
    all()
        .into_iter()
        .filter(|&id| words(id).contains(seconds) && is_alive(id))
        .collect()
}

fn parent(id: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
}

fn children(of: u32) -> Vec<u32> {
    all().into_iter().filter(|&id| parent(id) == Some(of)).collect()
}

fn kill(id: u32) {
    send(id, Signal::KILL);
}

fn send(id: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(id).unwrap()).unwrap();
    // Somebody may have been quicker.
    let _ = kill_process(pid, signal);
}

/// The sentry of a loop: its only child.
fn sentry(run: &Loop) -> u32 {
    wait_for("the sentry", || children(run.id()).first().copied())
}

/// The guard of a loop: the only child of its sentry.
fn guard(run: &Loop) -> u32 {
    let sentry = sentry(run);
    wait_for("the guard", || children(sentry).first().copied())
}

/// The keeper of the only start.
fn keeper(run: &Loop) -> u32 {
    let guard = guard(run);
    wait_for("the keeper", || children(guard).first().copied())
}

fn scenario(ways: &[&str], end: End) {
    let seconds = seconds();
    let place = Place::new(
        "debounce_ms = 20\n\
         watch.again = { paths = [\"again\"] }\nwatch.down = { paths = [\"down\"] }\nwatch.once = { paths = [\"once\"] }\n\
         process.p = { command = [\"./rascal\"], restart = \"on_failure\", autostart = false, stop_grace_ms = 1000, backoff = { initial_ms = 10, max_ms = 10 } }\n\
         hook.h.command = [\"./rascal\"]\n\
         workflow.again.steps = [{ action = \"restart_process\", process = \"p\" }]\n\
         workflow.down.steps = [{ action = \"stop_process\", process = \"p\" }, { action = \"log\", message = \"is down\" }]\n\
         workflow.once.steps = [{ action = \"run_hook\", hook = \"h\" }, { action = \"log\", message = \"hook is over\" }]\n",
    );
    // At its beginning it looks for what earlier starts left; then it lets go of its own.
    place.write_program(
        "rascal",
        &format!(
            "#!/bin/sh\nS={seconds}\ngrep -asl '{}' /proc/[0-9]*/cmdline >> leaks\n{}\n\
             while [ ! -e ok ]; do sleep 0.01; done\necho up >> starts\n[ -e brief ] && exit 0\n\
             while [ ! -e crash ]; do sleep 0.01; done; rm crash; exit 3\n",
            seconds.replace('.', "[.]"),
            ways.join("\n"),
        ),
    );
    let mut run = place.start();
    if end == End::HookDone {
        place.write("brief", "");
        touch(&place.path("once"));
    } else {
        touch(&place.path("again"));
    }
    wait_for("the rascal's company", || {
        (!members(&seconds).is_empty()).then_some(())
    });
    place.write("ok", "");
    place.wait_lines("starts", 1);
    let nobody = |limit: Duration| {
        let began = Instant::now();
        let gone = || members(&seconds).is_empty().then_some(());
        wait_or_explain("nobody to be left", gone, || {
            let left: Vec<String> = members(&seconds).into_iter().map(describe).collect();
            format!("{end:?}:\n{}", left.join("\n"))
        });
        assert!(
            began.elapsed() < limit,
            "{end:?} {ways:?}: took {:?}",
            began.elapsed()
        );
    };
    let mut expected_exit = Some(0);
    match end {
        End::Crash => {
            place.write("crash", "");
            place.wait_lines("starts", 2);
        }
        End::RestartStep => {
            touch(&place.path("again"));
            place.wait_lines("starts", 2);
        }
        End::HookDone => {
            run.wait_count("hook is over", 1);
            assert_eq!(members(&seconds), [0; 0], "{ways:?}");
        }
        End::StopStep => {
            touch(&place.path("down"));
            run.wait_count("is down", 1);
            assert_eq!(members(&seconds), [0; 0], "{ways:?}");
        }
        End::Shutdown => {}
        End::KillSupervisor => {
            run.signal(Signal::KILL);
            nobody(Duration::from_secs(5));
            expected_exit = None;
        }
        End::KillSentry => {
            kill(sentry(&run));
            nobody(Duration::from_secs(5));
            expected_exit = Some(1);
        }
        End::KillKeeperAndGuard | End::KillKeeperAndSentry => {
            let (sentry, guard, keeper) = (sentry(&run), guard(&run), keeper(&run));
            send(guard, Signal::STOP);
            kill(keeper);
            if end == End::KillKeeperAndGuard {
                kill(guard);
            } else {
                kill(sentry);
                send(guard, Signal::CONT);
            }
            nobody(Duration::from_secs(5));
            expected_exit = Some(1);
        }
        End::KillGuard => {
            kill(guard(&run));
            nobody(Duration::from_secs(5));
            expected_exit = Some(1);
        }
        End::KillKeeper => {
            kill(keeper(&run));
            // Its orphans are ended, the start counts as crashed, and comes back.
            place.wait_lines("starts", 2);
        }
    }
    assert_eq!(
        place.read("leaks"),
        "",
        "{end:?} {ways:?}: an earlier start was still there"
    );
    if expected_exit == Some(0) {
        run.signal(Signal::TERM);
    }
    assert_eq!(run.wait().code(), expected_exit, "{end:?}: {}", run.log());
    nobody(Duration::from_secs(5));
    // The next run finds the place free and clean.
    let next = place.cli(&["run", "--once", "--workflow", "down"]);
    assert_eq!(
        next.status.code(),
        Some(0),
        "{}",
        String::from_utf8_lossy(&next.stderr)
    );
}

#[test]
fn a_crashed_process_comes_back_alone() {
    scenario(&WAYS, End::Crash);
}

#[test]
fn a_restarted_process_comes_back_alone() {
    scenario(&WAYS, End::RestartStep);
}

#[test]
fn a_hook_leaves_nobody() {
    scenario(&WAYS, End::HookDone);
}

#[test]
fn a_stopped_process_leaves_nobody() {
    scenario(&WAYS, End::StopStep);
}

#[test]
fn a_loop_that_ends_leaves_nobody() {
    scenario(&WAYS, End::Shutdown);
}

#[test]
fn a_killed_supervisor_leaves_nobody() {
    scenario(&WAYS, End::KillSupervisor);
}

#[test]
fn a_killed_guard_leaves_nobody() {
    scenario(&WAYS, End::KillGuard);
}

#[test]
fn what_a_killed_keeper_kept_is_ended() {
    scenario(&WAYS, End::KillKeeper);
}

#[test]
fn a_killed_sentry_leaves_nobody() {
    scenario(&WAYS, End::KillSentry);
}

/// What the keeper kept fell to the guard, and what the guard had falls to the sentry.
#[test]
fn a_keeper_and_its_guard_killed_together_leave_nobody() {
    scenario(&WAYS, End::KillKeeperAndGuard);
}

#[test]
fn a_keeper_and_the_sentry_killed_together_leave_nobody() {
    scenario(&WAYS, End::KillKeeperAndSentry);
}

/// Any ways, any end: a few rounds here, `BEAMTALK_ROUNDS` of them in a campaign.
#[test]
fn random_rounds_leave_nobody() {
    let rounds = Random::count("BEAMTALK_ROUNDS", 3);
    let mut random = Random::from_environment();
    for round in 0..rounds {
        let mut ways = vec![*random.pick(&WAYS)];
        ways.extend(WAYS.into_iter().filter(|_| random.below(2) == 0));
        let end = *random.pick(&ENDS);
        println!("round {round} of {rounds}: {end:?} after {ways:?}");
        scenario(&ways, end);
    }
}

/// Those that ignore the gentle signal are killed when their time is over, wherever they are.
#[test]
fn those_who_ignore_the_gentle_signal_are_killed() {
    let seconds = seconds();
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"stop_process\", process = \"p\" }, { action = \"log\", message = \"is down\" }]\n\
         process.p = { command = [\"./stubborn\"], stop_grace_ms = 300 }\n",
    );
    place.write_program(
        "stubborn",
        &format!(
            "#!/bin/sh\ntrap '' TERM HUP INT\n(setsid sh -c 'while :; do sleep {seconds}; done' &)\necho up > up\nwhile :; do sleep 1; done\n"
        ),
    );
    let run = place.start();
    place.wait_lines("up", 1);
    wait_for("the stubborn one", || {
        (members(&seconds).len() >= 2).then_some(())
    });
    touch(&place.path("go"));
    run.wait_count("is down", 1);
    assert_eq!(members(&seconds), [0; 0]);
    run.stop();
}

/// A second signal ends everybody at once, and even those that left.
#[test]
fn a_forced_end_leaves_nobody() {
    let seconds = seconds();
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\nprocess.p.command = [\"./stubborn\"]\n",
    );
    place.write_program(
        "stubborn",
        &format!("#!/bin/sh\ntrap '' TERM\n(setsid sh -c 'while :; do sleep {seconds}; done' &)\necho up > up\nwhile :; do sleep 1; done\n"),
    );
    let mut run = place.start();
    place.wait_lines("up", 1);
    wait_for("the stubborn one", || {
        (members(&seconds).len() >= 2).then_some(())
    });
    run.signal(Signal::TERM);
    run.wait_log("received SIGTERM");
    run.signal(Signal::TERM);
    assert_eq!(run.wait().code(), Some(130));
    let began = Instant::now();
    wait_for("nobody to be left", || members(&seconds).is_empty().then_some(()));
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}

/// A signal that a program takes before it becomes another one is not lost: the other one is told
/// too, long before the grace is over.
#[test]
fn a_program_that_becomes_another_is_told_again() {
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\n\
         process.p = { command = [\"./changing\"], stop_grace_ms = 20000 }\n",
    );
    place.write_program(
        "changing",
        "#!/bin/sh\ntrap 'exec sleep 1000' TERM\necho up > up\nwhile :; do sleep 0.05; done\n",
    );
    let run = place.start();
    place.wait_lines("up", 1);
    let began = Instant::now();
    run.stop();
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
}
