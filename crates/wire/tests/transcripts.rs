//! The types against recorded conversations: what is read as its type and written again is the same.

#![expect(clippy::disallowed_methods, reason = "the transcripts are files")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use beamtalk_wire::schema::answer_again;
use beamtalk_wire::{Call, Head, Op, Push};
use serde_json::{Map, Value};

/// The lines of all transcripts, with the places where they are.
fn lines() -> Vec<(String, Map<String, Value>)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/protocol");
    let mut files: Vec<PathBuf> = std::fs::read_dir(directory)
        .expect("transcripts")
        .map(|entry| entry.expect("a file").path())
        .collect();
    files.sort_unstable();
    let mut lines = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("a transcript");
        for (number, line) in text.lines().enumerate() {
            let place = format!("{}:{}", file.display(), number + 1);
            lines.push((place, serde_json::from_str(line).expect("a line")));
        }
    }
    lines
}

#[test]
fn what_was_recorded_fits_the_types() {
    let mut asked: BTreeMap<String, Op> = BTreeMap::new();
    let mut answered = BTreeSet::new();
    for (place, line) in lines() {
        if let Some(sent) = line.get("send") {
            let text = sent.as_str().map_or_else(|| sent.to_string(), str::to_owned);
            let Ok(call) = Call::parse(&text) else { continue };
            asked.insert(call.id, call.op);
            if let Ok(request) = call.request {
                let again = beamtalk_wire::object(&request);
                // What is unknown or nothing is left out.
                let is_known = |(name, value): &(&String, &Value)| {
                    call.op.fields().iter().any(|field| field.name() == *name) && !value.is_null()
                };
                let sent: Map<String, Value> = sent
                    .as_object()
                    .into_iter()
                    .flatten()
                    .filter(is_known)
                    .map(|(name, value)| (name.clone(), value.clone()))
                    .collect();
                assert_eq!(again, sent, "{place}");
            }
        } else if let Some(event) = line.get("event") {
            let push: Push = serde_json::from_value(event.clone()).expect(&place);
            assert_eq!(&serde_json::to_value(&push).expect(&place), event, "{place}");
            let text: Value = serde_json::from_str(&push.event.text()).expect(&place);
            assert_eq!(&text, event, "{place}");
        } else if let Some(Value::Object(received)) = line.get("receive") {
            let Some(id) = received.get("id").and_then(Value::as_str) else {
                continue;
            };
            let head: Head = serde_json::from_value(received.clone().into()).expect(&place);
            let mut again = beamtalk_wire::object(&head);
            if head.is_done() && head.error.is_none() {
                let op = asked[id];
                answered.insert(op.name());
                let own = answer_again(op, received.clone().into()).expect(&place);
                again.extend(own.as_object().cloned().unwrap_or_default());
            }
            assert_eq!(&again, received, "{place}");
        }
    }
    // No class of the project is native, and no loop runs in it; that one is tried in the tests of the loop's objects.
    let all: BTreeSet<&str> = Op::ALL.iter().map(|op| op.name()).collect();
    let missing: Vec<&&str> = all.difference(&answered).collect();
    let elsewhere = [
        "browse-native-source",
        "loop-run",
        "tree-follow",
        "tree-list",
        "tree-read",
        "tree-write",
    ];
    assert_eq!(missing, elsewhere.iter().collect::<Vec<_>>());
}
