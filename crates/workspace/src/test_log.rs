//! What came of each test when it last ran, and what runs now.

use std::collections::BTreeMap;

use beamtalk_wire::answers::{LastOutcome, LastResultsAnswer, RunningTests, TestOutcome};

use crate::told::milliseconds;

/// How many are remembered, and how much of the output of each.
const TESTS: usize = 20_000;
const OUTPUT: usize = 64 * 1024;

#[derive(Default)]
pub(crate) struct TestLog {
    results: BTreeMap<(String, String), LastOutcome>,
    running: BTreeMap<u64, RunningTests>,
    next: u64,
}

impl TestLog {
    /// Tests begin; the answer names the run.
    pub(crate) fn begin(&mut self, session: &str, class: Option<&str>) -> u64 {
        self.next += 1;
        let running = RunningTests {
            session: session.to_owned(),
            class: class.map(str::to_owned),
            since: milliseconds(),
            ended: 0,
        };
        self.running.insert(self.next, running);
        self.next
    }

    pub(crate) fn end(&mut self, run: u64) {
        self.running.remove(&run);
    }

    pub(crate) fn keep(&mut self, mut test: TestOutcome) -> TestOutcome {
        if test.output.len() > OUTPUT {
            let end = test.output.floor_char_boundary(OUTPUT);
            test.output.truncate(end);
        }
        let key = (test.class.clone(), test.name.clone());
        if self.results.len() < TESTS || self.results.contains_key(&key) {
            let outcome = LastOutcome {
                at: milliseconds(),
                test: test.clone(),
            };
            self.results.insert(key, outcome);
        }
        test
    }

    pub(crate) fn answer(&self) -> LastResultsAnswer {
        LastResultsAnswer {
            results: self.results.values().cloned().collect(),
            running: self.running.values().cloned().collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(name: &str, status: &str, output: &str) -> TestOutcome {
        TestOutcome {
            class: "LampTest".to_owned(),
            name: name.to_owned(),
            file: None,
            line: None,
            status: status.to_owned(),
            duration: 0.1,
            output: output.to_owned(),
            error: None,
            reason: None,
        }
    }

    /// The last outcome of a test counts, and a run is there until it ends.
    #[test]
    fn the_last_outcome_counts() {
        let mut log = TestLog::default();
        let run = log.begin("s-1", Some("LampTest"));
        assert_eq!(log.answer().running[0].session, "s-1");
        log.keep(outcome("testA", "fail", ""));
        log.keep(outcome("testA", "pass", &"é".repeat(OUTPUT)));
        log.keep(outcome("testB", "pass", ""));
        log.end(run);
        let answer = log.answer();
        assert!(answer.running.is_empty());
        let found: Vec<_> = answer
            .results
            .iter()
            .map(|one| (one.test.name.as_str(), one.test.status.as_str()))
            .collect();
        assert_eq!(found, [("testA", "pass"), ("testB", "pass")]);
        assert_eq!(answer.results[0].test.output.len(), OUTPUT);
    }
}
