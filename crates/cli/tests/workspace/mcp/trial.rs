//! Small tasks solved with the tools alone: each transcript goes as somebody would who knows nothing but the
//! descriptions, results and hints, and needs at most eight calls.
//!
//! The first line of a transcript says the `task`, and with which `flags` and `files` it begins. Then come lines with a
//! `call` and its `arguments`; `gives` and `fails` are what must be found at places of the result or the error: a value, or
//! `~` and words that a text contains. `save` names values for later lines. `write` is somebody else changing a file,
//! `human` somebody at the terminal.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde_json::{Map, Value};

use super::{Mcp, configure};
use crate::home::{Home, block_on, request};
use crate::project::{FILES, write};

const CALLS: usize = 8;

macro_rules! trials {
    ($($name:ident),*) => {
        $(#[test]
        fn $name() {
            replay(stringify!($name));
        })*

        #[test]
        fn no_transcript_is_forgotten() {
            let mut found: Vec<String> = std::fs::read_dir(directory())
                .expect("transcripts")
                .map(|entry| entry.expect("a file").path().file_stem().expect("a name").to_string_lossy().into_owned())
                .collect();
            found.sort_unstable();
            let mut known = vec![$(stringify!($name).to_owned()),*];
            known.sort_unstable();
            assert_eq!(found, known);
            assert_eq!(known.len(), 12);
        }
    };
}

trials!(
    fix_a_failing_test,
    add_a_method_to_a_living_actor,
    find_the_sender,
    explain_a_crash,
    flush_only_own_changes,
    resolve_a_conflict,
    learn_the_language,
    make_a_class,
    stop_what_runs,
    undo_a_change,
    look_into_an_actor,
    mend_what_does_not_compile
);

fn directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/mcp/trial")
}

fn replay(name: &str) {
    let text = std::fs::read_to_string(directory().join(format!("{name}.jsonl"))).expect("a transcript");
    let mut lines = text
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("a line"));
    let first = lines.next().expect("a task");
    let home = Home::new(&format!("mt-{}", &name[..name.len().min(12)]));
    configure(&home, "[mcp]\nmax-policy = \"full\"\n");
    for (file, text) in FILES {
        write(&home, file, text);
    }
    for (file, text) in first["files"].as_object().into_iter().flatten() {
        write(&home, file, text.as_str().expect("a text"));
    }
    home.start(&[]);
    let flags: Vec<&str> = first["flags"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    let mut mcp = Mcp::start(&home, &flags);
    let mut saved: BTreeMap<String, String> = BTreeMap::new();
    let mut calls = 0;
    for (number, line) in lines.enumerate() {
        let at = format!("{name}.jsonl:{}", number + 2);
        for (file, text) in line["write"].as_object().into_iter().flatten() {
            write(&home, file, text.as_str().expect("a text"));
        }
        if let Some(human) = line["human"].as_object() {
            let op = human["op"].as_str().expect("an op").to_owned();
            let with = Value::Object(human.clone());
            let answer = block_on(async { request(&home.connect().await, &op, with).await });
            assert!(!answer.contains_key("error"), "{at}: {answer:?}");
        }
        let Some(tool) = line["call"].as_str() else {
            continue;
        };
        calls += 1;
        let mut arguments = line["arguments"].to_string();
        for (name, value) in &saved {
            arguments = arguments.replace(&format!("\"${name}\""), value);
        }
        let arguments = serde_json::from_str(&arguments).expect("arguments");
        let (result, wanted) = match line.get("fails") {
            Some(wanted) => (mcp.bad(tool, arguments), Some(wanted)),
            None => (mcp.good(tool, arguments), line.get("gives")),
        };
        check(&at, &result, wanted.and_then(Value::as_object));
        for (name, place) in line["save"].as_object().into_iter().flatten() {
            let value = result.pointer(place.as_str().expect("a place")).expect("a value");
            saved.insert(name.clone(), value.to_string());
        }
    }
    assert!(calls <= CALLS, "{name} takes {calls} calls");
}

fn check(at: &str, result: &Value, wanted: Option<&Map<String, Value>>) {
    for (place, wanted) in wanted.into_iter().flatten() {
        let found = result.pointer(place).unwrap_or(&Value::Null);
        match wanted.as_str().and_then(|wanted| wanted.strip_prefix('~')) {
            Some(words) => {
                let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
                assert!(
                    text.contains(words),
                    "{at}: {place} is {found}, without {words:?}\n{result}"
                );
            }
            None => assert_eq!(found, wanted, "{at}: {place}\n{result}"),
        }
    }
}
