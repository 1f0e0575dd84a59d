//! Kills at random: whoever of the loop dies, whenever it does.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::{Loop, Place, Random, touch};

const BUSY: &str = "debounce_ms = 10\nstartup_workflows = [\"go\"]\nwatch.go.paths = [\"go\"]\n\
    process.a = { command = [\"./child\"], restart = \"always\", backoff = { initial_ms = 10, max_ms = 50 }, output = { inherit = false, rules = [{ state_key = \"seen\", pattern = \"n=(.*)\" }] } }\n\
    process.b = { command = [\"./child\"], restart = \"always\", backoff = { initial_ms = 10, max_ms = 50 }, after = [\"a\"] }\n\
    hook.h = { command = [\"sh\", \"-c\", \"(setsid sleep 1000 &); date +%N\"], capture = \"text\", state_key = \"time\", output = { inherit = false } }\n\
    hook.o = { command = [\"date\", \"+%N\"], capture = \"text\", state_key = \"poll\", output = { inherit = false }, observe = { workflow = \"seen\", interval_ms = 20 } }\n\
    workflow.go.steps = [{ action = \"run_hook\", hook = \"h\" }, { action = \"restart_process\", process = \"b\" }]\n\
    workflow.seen.steps = [{ action = \"write_state\", key = \"copy\", value = \"{{poll}}\" }]\n";

const CHILD: &str = "#!/bin/sh\n(setsid sh -c 'sleep 1000 & sleep 1000' &)\nn=0\nwhile :; do n=$((n+1)); echo n=$n; sleep 0.02; done\n";

fn children(of: u32) -> Vec<u32> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let all = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let parent = |id: u32| -> Option<u32> {
        let stat = std::fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
        stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()
    };
    all.filter(|&id| parent(id) == Some(of)).collect()
}

fn kill(id: u32) {
    if let Some(pid) = i32::try_from(id).ok().and_then(Pid::from_raw) {
        // Somebody may have been quicker.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// The state file is whole at every moment, whoever dies.
fn check_state(place: &Place) {
    let text = place.read(".devloop/state.json");
    if !text.is_empty() {
        assert!(
            serde_json::from_str::<Value>(&text).is_ok(),
            "a torn file: {text}"
        );
    }
}

/// Kill one of those who belong to the loop. Gives who it was, and true when the loop ends by it.
///
/// Any number of keepers and programs are killed, a moment after each other, and then one of the
/// three above them. That is the promise: nobody is lost as long as, of a keeper and its guard and
/// sentry, one lives long enough to act.
fn strike(run: &Loop, random: &mut Random) -> (String, bool) {
    let sentry = children(run.id()).first().copied();
    let guard = sentry.and_then(|sentry| children(sentry).first().copied());
    let keepers = guard.map(children).unwrap_or_default();
    let programs: Vec<u32> = keepers.iter().copied().flat_map(children).collect();
    let (who, victims, is_end) = match (random.below(5), sentry, guard) {
        (1, Some(sentry), _) => ("sentry", vec![sentry], true),
        (2, _, Some(guard)) => ("guard", vec![guard], true),
        (3, _, Some(_)) if !keepers.is_empty() => ("keeper", keepers, false),
        (3 | 4, _, Some(_)) => ("program", programs, false),
        _ => ("supervisor", vec![run.id()], true),
    };
    if victims.is_empty() {
        return (format!("no {who}"), is_end);
    }
    let victim = *random.pick(&victims);
    kill(victim);
    (format!("{who} {victim}"), is_end)
}

/// About twenty kills here, `BEAMTALK_KILLS` of them in a campaign: no orphan, no torn file, and
/// the next start is clean.
#[test]
fn random_kills_leave_nobody_and_nothing_torn() {
    let kills = Random::count("BEAMTALK_KILLS", 20);
    let mut random = Random::from_environment();
    let place = Place::new(BUSY);
    place.write_program("child", CHILD);
    let mut done = 0;
    while done < kills {
        let mut run = place.begin(&[]);
        run.wait_log("watching");
        let began = Instant::now();
        let mut history = Vec::new();
        loop {
            std::thread::sleep(Duration::from_millis(random.below(120)));
            if random.below(2) == 0 {
                touch(&place.path("go"));
            }
            check_state(&place);
            done += 1;
            let (who, is_end) = strike(&run, &mut random);
            history.push(format!("{:?}: {who}", began.elapsed()));
            if is_end {
                break;
            }
            assert!(run.is_running(), "kill {done}: {}", run.log());
        }
        let began = Instant::now();
        let _ = run.wait();
        check_state(&place);
        place.wait_empty(&history);
        assert!(
            began.elapsed() < Duration::from_secs(15),
            "kill {done}: {:?}",
            began.elapsed()
        );
    }
    let run = place.start();
    run.stop();
    let left: Vec<String> = std::fs::read_dir(place.path(".devloop"))
        .unwrap()
        .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
        .filter(|name| name.contains(".tmp-"))
        .collect();
    assert_eq!(left, [""; 0], "files that were being written");
}
