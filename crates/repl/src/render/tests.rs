use beamtalk_client::Answer;
use serde_json::{Value, json};

use super::super::test_answers::entry;
use super::*;

fn read(answer: Value) -> Answer<EvalAnswer> {
    Answer::read(answer.as_object().cloned().expect("an object"))
}

fn evaluate(answer: Value, input: &str) -> Rendered {
    let answer = read(answer);
    match &answer.body {
        Err(error) => Rendered {
            err: failure(error, input, Palette::Plain),
            out: String::new(),
        },
        Ok(body) => warnings(&answer.head.warnings).and(&evaluation(body, Palette::Plain)),
    }
}

#[test]
fn values_print_as_their_text() {
    assert_eq!(
        evaluate(
            json!({"value": 42, "text": "42", "class": "Integer", "status": ["done"]}),
            "6 * 7"
        ),
        Rendered::out("42")
    );
    assert_eq!(
        evaluate(json!({"text": "#(1,\n  2)", "class": "List"}), "x").out,
        "#(1,\n  2)\n"
    );
    assert_eq!(
        evaluate(json!({"status": ["done"]}), "// nothing"),
        Rendered::default()
    );
}

#[test]
fn warnings_go_to_standard_error() {
    let shown = evaluate(
        json!({"text": "3", "class": "Integer", "warnings": [{"severity": "warning", "message": "x is not used"}]}),
        "x",
    );
    assert_eq!(shown.err, "⚠ x is not used\n");
    assert_eq!(shown.out, "3\n");
}

#[test]
fn an_error_has_message_hint_and_frames() {
    let answer = json!({"status": ["done", "error"], "error": {"kind": "does_not_understand",
        "message": "Lamp does not understand 'frobnicate'",
        "hint": "Check the spelling, or ask: Lamp respondsTo: #frobnicate",
        "location": {"file": "session", "line": 2},
        "stack": [{"class": "Lamp", "selector": "toggle", "file": "src/Lamp.bt", "line": 9}, {"selector": "eval"}]}});
    assert_eq!(
        evaluate(answer.clone(), "lamp frobnicate").err,
        "Error: Lamp does not understand 'frobnicate'\n\
         Hint: Check the spelling, or ask: Lamp respondsTo: #frobnicate\n  \
         at Lamp>>toggle (src/Lamp.bt:9)\n  at eval\n"
    );
    let shown = evaluate(answer, "x := 1.\nlamp frobnicate");
    assert!(shown.err.contains("frobnicate'\nLine: 2\nHint"), "{}", shown.err);
}

#[test]
fn at_most_ten_frames_are_shown_and_all_on_request() {
    let stack: Vec<Value> = (0..30)
        .map(|line| json!({"class": "A", "selector": "b", "file": "src/A.bt", "line": line}))
        .collect();
    let answer = json!({"error": {"kind": "k", "message": "m", "stack": stack}});
    assert_eq!(evaluate(answer.clone(), "x").err.matches("  at ").count(), 10);
    let error = read(answer).body.expect_err("has one");
    assert_eq!(full_failure(&error, Palette::Plain).matches("  at ").count(), 30);
}

#[test]
fn every_fault_of_a_compilation_is_named() {
    let answer = json!({"error": {"kind": "compile_failed", "message": "2 errors", "diagnostics": [
        {"severity": "error", "message": "no closing bracket", "line": 2, "hint": "Add ]"},
        {"severity": "warning", "message": "not shown", "line": 1},
        {"severity": "error", "message": "no such variable", "line": 3}]}});
    assert_eq!(
        evaluate(answer, "x := [\n1").err,
        "Error: no closing bracket\nLine: 2\nHint: Add ]\nError: no such variable\nLine: 3\n"
    );
}

#[test]
fn an_interrupted_evaluation_says_so() {
    let answer = json!({"status": ["done", "error", "interrupted"], "error": {"kind": "interrupted", "message": "stopped"}});
    assert_eq!(evaluate(answer, "x").err, "Interrupted\n");
}

#[test]
fn methods_say_what_becomes_of_them() {
    let shown = |of: Value| evaluate(json!({"text": "Lamp>>isOn", "entries": [entry(of)]}), "x").out;
    assert_eq!(
        shown(json!({"class": "Lamp", "selector": "isOn", "side": "instance",
            "source_file": "src/Lamp.bt", "flushable": true})),
        "Lamp>>isOn (pending, :flush writes src/Lamp.bt)\n"
    );
    assert_eq!(
        shown(json!({"class": "Lamp", "selector": "isOn", "side": "instance",
            "source_file": null, "flushable": false, "not_flushable_reason": "dynamic"})),
        "Lamp>>isOn (no source file, not flushable)\n"
    );
    assert_eq!(
        evaluate(
            json!({"text": "Integer class>>zero", "entries": [entry(json!({"class": "Integer",
                "selector": "zero", "side": "class", "flushable": false, "not_flushable_reason": "stdlib"}))]}),
            "x"
        )
        .out,
        "Integer class>>zero (standard library, not flushable)\n"
    );
    assert_eq!(
        evaluate(
            json!({"text": "7", "class": "Integer", "entries": [entry(json!({"selector": "isOn"}))]}),
            "x"
        )
        .out,
        "Lamp>>isOn (pending, :flush writes src/Lamp.bt)\n7\n"
    );
}

#[test]
fn an_error_in_full_has_everything() {
    let error = read(json!({"error": {"kind": "eval_limit", "message": "too big", "class": "List",
        "selector": "do:", "hint": "less", "location": {"file": "src/A.bt", "line": 3, "column": 4},
        "details": {"limit": "heap"},
        "diagnostics": [{"file": "src/A.bt", "line": 3, "column": 1, "severity": "warning", "code": "W0201", "message": "odd"}]}}))
    .body
    .expect_err("has one");
    insta::assert_snapshot!(full_failure(&error, Palette::Plain));
}

#[test]
fn colours_do_not_change_the_words() {
    let answer = read(json!({"text": "#(\"a\", 2.0, nil)", "class": "List"}));
    let colored = evaluation(&answer.body.expect("a value"), Palette::Colored);
    assert_eq!(
        colored.out,
        "#(\x1b[32m\"a\"\x1b[0m, \x1b[33m2.0\x1b[0m, \x1b[1;34mnil\x1b[0m)\n"
    );
}
