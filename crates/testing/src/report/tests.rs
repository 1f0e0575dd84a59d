use std::time::Duration;

use super::Results;
use crate::units::{Outcome, Problem, Status, Unit, Work};

fn unit(name: &str) -> Unit {
    Unit {
        name: name.to_owned(),
        file: format!("test/{name}.bt"),
        line: 1,
        work: Work::Class {
            class: name.to_owned(),
            tests: Vec::new(),
        },
    }
}

fn outcome(name: &str, line: usize, status: Status, error: Option<Problem>) -> Outcome {
    Outcome {
        name: name.to_owned(),
        line,
        status,
        duration: Duration::from_millis(10),
        error,
        output: if status.is_failure() {
            "a line\n".to_owned()
        } else {
            String::new()
        },
    }
}

fn with_results(check: impl FnOnce(&Results<'_>)) {
    let lamp = unit("LampTest");
    let orbit = unit("OrbitTest");
    let failed = Problem {
        kind: "assertion_failed".to_owned(),
        message: "assert:equals: failed".to_owned(),
        expected: Some("5400".to_owned()),
        actual: Some("<5399> & \"more\"".to_owned()),
        ..Problem::default()
    };
    let raised = Problem {
        kind: "type_error".to_owned(),
        message: "bad\u{1}thing".to_owned(),
        hint: Some("do it right".to_owned()),
        frames: vec!["OrbitTest>>testBad (test/OrbitTest.bt:20)".to_owned()],
        ..Problem::default()
    };
    let skipped = Problem {
        message: "not today".to_owned(),
        ..Problem::default()
    };
    check(&Results {
        units: vec![
            (
                &lamp,
                vec![
                    outcome("testOn", 3, Status::Pass, None),
                    outcome("testOff", 5, Status::Pass, None),
                ],
            ),
            (
                &orbit,
                vec![
                    outcome("testPeriod", 14, Status::Fail, Some(failed)),
                    outcome("testBad", 19, Status::Error, Some(raised)),
                    outcome("testLater", 30, Status::Skip, Some(skipped)),
                ],
            ),
        ],
        files: 2,
        duration: Duration::from_millis(412),
        seed: 81,
    });
}

#[test]
fn text() {
    with_results(|results| insta::assert_snapshot!(results.text(false)));
}

#[test]
fn json() {
    with_results(|results| {
        insta::assert_snapshot!(serde_json::to_string_pretty(&results.json()).unwrap());
    });
}

#[test]
fn junit() {
    with_results(|results| insta::assert_snapshot!(results.junit()));
}
