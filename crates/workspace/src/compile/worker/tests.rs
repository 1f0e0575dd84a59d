use super::*;

const LAMP: &str =
    "Actor subclass: Lamp\n  state: lit = false\n  first => self second\n  second => 2\n  third => 3\n";

fn order(declare: Vec<SourceText>, code: &str) -> Vec<u8> {
    let order = Order {
        knowledge: Knowledge {
            declare,
            ..Knowledge::default()
        },
        job: Job::Input {
            code: code.to_owned(),
            bound: Vec::new(),
            file: None,
            trace: false,
        },
        cpu_seconds: 3_600,
    };
    let json = serde_json::to_vec(&order).unwrap();
    frame::encode(&json, &[]).unwrap()
}

/// What a worker answers to these orders, one after the other.
fn answers(orders: &[Vec<u8>]) -> Vec<(Outcome, Vec<Vec<u8>>)> {
    let mut output = Vec::new();
    run(orders.concat().as_slice(), &mut output).unwrap();
    let mut output = output.as_slice();
    let mut answers = Vec::new();
    while let Some(frame) = frame::read(&mut output).unwrap() {
        let (json, blobs) = frame::decode(&frame).unwrap();
        answers.push((serde_json::from_slice(json).unwrap(), blobs));
    }
    answers
}

/// The text that a change made comes back as a declaration, and is not read again: what is compiled then is what a worker
/// compiles that reads it.
#[test]
fn a_worker_goes_on_with_the_tree_it_made() {
    let lamp = vec![session_text(LAMP, None)];
    let first = order(lamp, "Lamp >> third => 33");
    let changed = answers(std::slice::from_ref(&first))[0].0.declares.clone();
    assert!(
        changed.len() == 1 && changed[0].text.contains("third => 33"),
        "{changed:?}"
    );
    for code in [
        "Lamp >> second => 22",
        "Lamp >> third => 4",
        "Lamp >> fourth => 4",
        "Lamp spawn",
    ] {
        let second = order(changed.clone(), code);
        let went_on = answers(&[first.clone(), second]).pop().unwrap();
        let fresh = answers(&[order(changed.clone(), code)]).pop().unwrap();
        assert_eq!(went_on, fresh, "{code}");
    }
}

/// A text that is not the one it made is read.
#[test]
fn a_worker_reads_what_it_did_not_make() {
    let first = order(vec![session_text(LAMP, None)], "Lamp >> third => 33");
    let other = vec![session_text(&LAMP.replace("third", "fourth"), None)];
    let second = order(other.clone(), "Lamp >> fourth => 4");
    let went_on = answers(&[first, second]).pop().unwrap();
    assert_eq!(went_on.0.declares.len(), 1);
    assert!(!went_on.0.declares[0].text.contains("third"));
    assert_eq!(
        went_on,
        answers(&[order(other, "Lamp >> fourth => 4")]).pop().unwrap()
    );
}
