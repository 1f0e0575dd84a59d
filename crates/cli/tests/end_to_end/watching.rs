use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use crate::support::Place;

const LIMIT: Duration = Duration::from_mins(1);

#[test]
fn a_change_runs_what_it_concerns_and_then_everything() {
    let place = Place::with_project();
    place.write("src/One.bt", "Value subclass: One\n\n  value => 1\n");
    place.write(
        "test/OneTest.bt",
        "TestCase subclass: OneTest\n\n  testOne => self assert: One new value equals: 1\n",
    );
    let mut child = place
        .command(&["test", "--watch", "--no-doc"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (lines, counts) = lines_of(child.stdout.take().unwrap(), " file");
    let (errors, refusals) = lines_of(child.stderr.take().unwrap(), "error");
    let next = || {
        let line = counts.recv_timeout(LIMIT).unwrap();
        line.split(" (").next().unwrap().to_owned()
    };
    assert_eq!(next(), "2 files, 2 tests, 2 passed");
    place.write("src/One.bt", "Value subclass: One\n\n  value => 1 + 1\n");
    assert_eq!(next(), "1 file, 1 test, 0 passed, 1 failed");
    assert_eq!(next(), "2 files, 2 tests, 1 passed, 1 failed");
    // Source that does not compile ends nothing.
    place.write("src/One.bt", "Value subclass: One\n\n  value => (1\n");
    refusals.recv_timeout(LIMIT).unwrap();
    place.write("src/One.bt", "Value subclass: One\n\n  value => 2 - 1\n");
    assert_eq!(next(), "1 file, 1 test, 1 passed");
    assert_eq!(next(), "2 files, 2 tests, 2 passed");
    child.kill().unwrap();
    child.wait().unwrap();
    lines.join().unwrap();
    errors.join().unwrap();
}

/// A reader of a pipe to its end, and the lines with `word` as they come.
fn lines_of(
    pipe: impl std::io::Read + Send + 'static,
    word: &'static str,
) -> (JoinHandle<()>, mpsc::Receiver<String>) {
    let (sender, lines) = mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in BufReader::new(pipe).lines().map_while(Result::ok) {
            if line.contains(word) {
                drop(sender.send(line));
            }
        }
    });
    (reader, lines)
}

#[test]
fn connected_tests_see_the_live_workspace() {
    let place = Place::with_project();
    place.write(
        "src/Lamp.bt",
        "Actor subclass: Lamp\n  state: on = false\n\n  on => self.on\n",
    );
    place.write(
        "test/LiveTest.bt",
        "TestCase subclass: LiveTest\n\n  testLive => self assert: (Lamp named: #desk) isOk\n\n  \
         testFailing => self assert: 1 equals: 2\n",
    );
    place.write(
        "test/live.btscript",
        "x := 20\n// => 20\nx + 1\n// => 21\n\"a\"\n// => a\nx foo\n// => ERROR: does_not_understand\n",
    );
    place.write("test/broken.btscript", "1 + 1\n// => 3\n");
    let alone = ["test", "--filter", "LiveTest>>testLive"];
    place.run(&alone).expect_code(1);
    place.run(&["eval", "(Lamp spawnAs: #desk) isOk"]).expect_code(0);
    place
        .run(&["test", "--connect", "--filter", "LiveTest>>testLive"])
        .expect_code(0);
    place.write(
        "test/BadTest.bt",
        "TestCase subclass: BadTest\n\n  testBad => (1\n",
    );
    let done = place.run(&["test", "--connect", "--json"]).expect_code(1);
    let json: serde_json::Value = serde_json::from_str(&done.stdout).unwrap();
    let mut statuses: Vec<String> = json["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|test| {
            format!(
                "{} {} {}",
                test["class"].as_str().unwrap(),
                test["name"].as_str().unwrap_or_default(),
                test["status"].as_str().unwrap()
            )
        })
        .collect();
    statuses.sort();
    insta::assert_snapshot!(statuses.join("\n"));
    place.stop();
}
