//! Kill -9 of the supervisor at any moment: nobody survives it.

use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{Place, wait_for};

#[test]
fn a_kill_while_children_are_started_leaves_nobody() {
    let mut config = String::from(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\n",
    );
    for index in 0..20 {
        let process = format!("process.p{index:02}.command = [\"sh\", \"-c\", \"sleep 1000 & wait\"]\n");
        config.push_str(&process);
    }
    let place = Place::new(&config);
    for round in 0..12u64 {
        let mut run = place.begin(&[]);
        run.wait_log("watching");
        // Spread over the few milliseconds in which the children come up.
        std::thread::sleep(Duration::from_micros(round * 2500));
        run.signal(Signal::KILL);
        let began = Instant::now();
        let _ = run.wait();
        wait_for("everybody to be gone", || {
            place.inhabitants().is_empty().then_some(())
        });
        assert!(
            began.elapsed() < Duration::from_secs(5),
            "round {round}: {:?}",
            began.elapsed()
        );
    }
}

#[test]
fn a_stubborn_group_is_gone_three_seconds_after_the_kill() {
    let place = Place::new(
        "watch.go.paths = [\"go\"]\nworkflow.go.steps = [{ action = \"log\", message = \"go\" }]\n\
         process.p.command = [\"sh\", \"-c\", \"trap '' TERM; echo up > up; while :; do sleep 1; done\"]\n",
    );
    let mut run = place.start();
    place.wait_lines("up", 1);
    run.signal(Signal::KILL);
    let began = Instant::now();
    let _ = run.wait();
    wait_for("the group to be gone", || {
        place.inhabitants().is_empty().then_some(())
    });
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
}
