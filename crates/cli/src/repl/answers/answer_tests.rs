use serde_json::{Value, json};

use super::changes::{Filter, dirty, entries, flushed};
use super::*;

fn object(value: Value) -> Object {
    match value {
        Value::Object(object) => object,
        other => panic!("{other} is no object"),
    }
}

#[test]
fn bindings_are_sorted() {
    let answer = object(
        json!({"bindings": {"lamp": {"text": "Actor(Lamp, 0.187.0)", "class": "Lamp"},
        "a": {"text": "1", "class": "Integer"}}}),
    );
    assert_eq!(
        bindings(&answer, Palette::Plain).out,
        "a = 1\nlamp = Actor(Lamp, 0.187.0)\n"
    );
    assert_eq!(bindings(&Object::new(), Palette::Plain).out, "No bindings\n");
}

#[test]
fn actors_are_cut_at_the_limit() {
    let some: Vec<Value> = (0..25)
        .map(|n| json!({"pid": format!("0.{n}.0"), "class": "Lamp", "name": null}))
        .collect();
    let answer = object(json!({"actors": some}));
    let lines = actor_lines(&answer, 20);
    assert_eq!(lines.len(), 21);
    assert_eq!(lines.first().map(String::as_str), Some("  - Lamp (<0.0.0>)"));
    assert_eq!(lines.last().map(String::as_str), Some("  … 5 more"));
    assert_eq!(actors(&Object::new()).out, "No actors\n");
}

#[test]
fn own_session_is_marked() {
    let answer = object(json!({"sessions": [
        {"id": "s-1", "client": "repl", "peer": "127.0.0.1:1", "busy": false},
        {"id": "s-2", "client": "mcp", "peer": "127.0.0.1:2", "busy": true}]}));
    assert_eq!(
        sessions(&answer, "s-1").out,
        "▸ s-1  repl  127.0.0.1:1\n  s-2  mcp  127.0.0.1:2  busy\n"
    );
}

#[test]
fn loading_tells_what_was_loaded_and_what_failed() {
    let answer = object(json!({"classes": ["Lamp", {"name": "Fan"}],
        "errors": [{"path": "src/Bad.bt", "line": 3, "message": "no", "hint": "do"}]}));
    let shown = loaded(&answer);
    assert_eq!(shown.out, "Loaded Lamp, Fan\n");
    assert_eq!(shown.err, "Error: src/Bad.bt:3: no\n  Hint: do\n");
    let answer = object(json!({"classes": [], "summary": "Reloaded 0 of 5 files (5 unchanged)"}));
    assert_eq!(loaded(&answer).out, "Reloaded 0 of 5 files (5 unchanged)\n");
}

#[test]
fn reload_tells_about_actors_and_callers() {
    let answer = object(json!({"classes": ["Lamp"], "affected_actors": 2,
        "migration_failures": [{"actor": "0.9.0", "reason": "bad default"}],
        "findings": [{"file": "src/Fan.bt", "line": 2, "column": 1, "severity": "warning", "code": "W0401", "message": "odd"}]}));
    let shown = reloaded(&answer);
    assert_eq!(shown.out, "Reloaded Lamp (2 actors now run the new code)\n");
    assert_eq!(
        shown.err,
        "⚠ <0.9.0> keeps its old code: bad default\n⚠ src/Fan.bt:2:1: warning W0401 odd\n"
    );
}

#[test]
fn tests_are_shown_as_the_command_shows_them() {
    let answer = object(
        json!({"results": {"total": 3, "passed": 1, "failed": 1, "skipped": 1, "duration": 0.42, "tests": [
        {"class": "LampTest", "name": "testOn", "status": "pass"},
        {"class": "LampTest", "name": "testOff", "status": "skip"},
        {"class": "OrbitTest", "name": "testPeriod", "status": "fail", "file": "test/OrbitTest.bt", "line": 14,
         "error": {"message": "assert:equals: failed", "expected": "5400", "actual": "5399"}, "output": "tick\n"}]}}),
    );
    insta::assert_snapshot!(tests(&answer).out);
}

#[test]
fn flush_says_what_it_wrote_and_what_it_left() {
    let answer = object(
        json!({"flushed": 2, "files": ["src/Lamp.bt"], "new_classes": [], "removed_classes": [],
        "skipped": [{"class": "Lamp", "kind": "remove-class", "reason": "destructive"}], "conflicts": []}),
    );
    assert_eq!(
        flushed(&answer).out,
        "flushed 2 methods across 1 file\n\
         skipped: Lamp (remove-class) — destructive, use :flush-destructive\n"
    );
    let answer = object(json!({"flushed": [], "files": [],
        "conflicts": [{"file": "src/Lamp.bt", "reason": "external_edit"}]}));
    assert_eq!(
        flushed(&answer).err,
        "conflict: src/Lamp.bt changed on disk and in the image — :diff shows both, :take image or :take disk settles it\n"
    );
    let answer = object(
        json!({"flushed": 2, "files": ["src/Lamp.bt", "src/Fan.bt"], "merged": ["src/Lamp.bt"],
        "removed_classes": ["Fan"]}),
    );
    assert_eq!(
        flushed(&answer).out,
        "flushed 1 method across 2 files, merged with changes on disk (:sync loads them)\ndeleted Fan\n"
    );
    assert_eq!(flushed(&Object::new()).out, "nothing to flush\n");
}

#[test]
fn changes_are_listed() {
    let answer = object(json!({"entries": [
        {"seq": 7, "kind": "instance", "class": "Lamp", "selector": "isOn", "side": "instance",
         "flushable": true, "source_file": "src/Lamp.bt"},
        {"seq": 12, "kind": "remove-class", "class": "Fan", "selector": null, "flushable": false,
         "not_flushable_reason": "dependency:fans"},
        {"seq": 13, "kind": "remove-class", "class": "Lamp", "flushable": true, "source_file": "src/Lamp.bt"}]}));
    assert_eq!(
        entries(&answer).out,
        "   7  Lamp>>isOn (pending, :flush writes src/Lamp.bt)\n  12  Fan remove-class (dependency fans, not flushable)\n  13  Lamp remove-class (pending, :flush-destructive deletes src/Lamp.bt)\n"
    );
    assert_eq!(entries(&Object::new()).out, "No changes\n");
    assert_eq!(
        dirty(&object(json!({"dirty": {"Lamp": ["toggle", "isOn"]}}))).out,
        "Lamp: toggle, isOn\n"
    );
}

#[test]
fn filters_are_read() {
    assert_eq!(Filter::parse(""), Some(Filter::All));
    assert_eq!(Filter::parse("Lamp"), Some(Filter::Class("Lamp".to_owned())));
    assert_eq!(
        Filter::parse("#'new-class'"),
        Some(Filter::Kind("new-class".to_owned()))
    );
    assert_eq!(
        Filter::parse("#instance"),
        Some(Filter::Kind("instance".to_owned()))
    );
    assert_eq!(
        Filter::parse("#{#file => \"src/Lamp.bt\"}"),
        Some(Filter::File("src/Lamp.bt".to_owned()))
    );
    for bad in ["lamp", "#{#path => \"x\"}", "#'open", "Lamp toggle", "#{", "#"] {
        assert_eq!(Filter::parse(bad), None, "{bad}");
    }
}
