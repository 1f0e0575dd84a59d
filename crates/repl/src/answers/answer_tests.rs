use beamtalk_wire::requests::WantedKind;
use serde_json::{Value, json};

use super::super::test_answers::{answer, entry};
use super::changes::{Filter, dirty, entries, flushed};
use super::*;

#[test]
fn bindings_are_sorted() {
    let some = answer(
        json!({"bindings": {"lamp": {"text": "Actor(Lamp, 0.187.0)", "class": "Lamp"},
        "a": {"text": "1", "class": "Integer"}}}),
    );
    assert_eq!(
        bindings(&some, Palette::Plain).out,
        "a = 1\nlamp = Actor(Lamp, 0.187.0)\n"
    );
    assert_eq!(
        bindings(&BindingsAnswer::default(), Palette::Plain).out,
        "No bindings\n"
    );
}

#[test]
fn actors_are_listed() {
    let some: Vec<Actor> = answer(
        json!([{"pid": "0.9.0", "class": "Lamp", "name": null}, {"pid": "0.10.0", "class": "Fan", "name": "cooler"}]),
    );
    assert_eq!(
        actors(&some).out,
        "  - Lamp (<0.9.0>)\n  - Fan (<0.10.0>) cooler\n"
    );
    assert_eq!(actors(&[]).out, "No actors\n");
}

#[test]
fn large_numbers_are_grouped() {
    assert_eq!(
        [0, 999, 1000, 99_950, 1_234_567].map(grouped),
        ["0", "999", "1,000", "99,950", "1,234,567"]
    );
}

#[test]
fn own_session_is_marked() {
    let two = answer(json!({"sessions": [
        {"id": "s-1", "client": "repl", "peer": "127.0.0.1:1", "connected_at": 1, "busy": false},
        {"id": "s-2", "client": "mcp", "peer": "127.0.0.1:2", "connected_at": 2, "busy": true}]}));
    assert_eq!(
        sessions(&two, "s-1").out,
        "▸ s-1  repl  127.0.0.1:1\n  s-2  mcp  127.0.0.1:2  busy\n"
    );
}

#[test]
fn loading_tells_what_was_loaded_and_what_failed() {
    let partly = answer(json!({"classes": ["Lamp", "Fan"],
        "errors": [{"path": "src/Bad.bt", "line": 3, "message": "no", "hint": "do", "kind": "type"}]}));
    let shown = loaded(&partly);
    assert_eq!(shown.out, "Loaded Lamp, Fan\n");
    assert_eq!(shown.err, "Error: src/Bad.bt:3: no\n  Hint: do\n");
    let nothing =
        answer(json!({"classes": [], "errors": [], "summary": "Reloaded 0 of 5 files (5 unchanged)"}));
    assert_eq!(loaded(&nothing).out, "Reloaded 0 of 5 files (5 unchanged)\n");
}

#[test]
fn reload_tells_about_actors_and_callers() {
    let partly = answer(json!({"classes": ["Lamp"], "errors": [], "affected_actors": 2,
        "migration_failures": [{"actor": "0.9.0", "reason": "bad default"}],
        "findings": [{"file": "src/Fan.bt", "line": 2, "column": 1, "severity": "warning", "code": "W0401", "message": "odd"}]}));
    let shown = reloaded(&partly);
    assert_eq!(shown.out, "Reloaded Lamp (2 actors now run the new code)\n");
    assert_eq!(
        shown.err,
        "⚠ <0.9.0> keeps its old code: bad default\n⚠ src/Fan.bt:2:1: warning W0401 odd\n"
    );
}

#[test]
fn tests_are_shown_as_the_command_shows_them() {
    let test = |more: Value| {
        let mut test = json!({"duration": 0.1, "output": "", "file": null, "line": null});
        test.as_object_mut()
            .expect("one")
            .extend(more.as_object().cloned().expect("one"));
        test
    };
    let run = answer(
        json!({"total": 3, "passed": 1, "failed": 1, "skipped": 1, "duration": 0.42, "seed": 0, "tests": [
        test(json!({"class": "LampTest", "name": "testOn", "status": "pass"})),
        test(json!({"class": "LampTest", "name": "testOff", "status": "skip"})),
        test(json!({"class": "OrbitTest", "name": "testPeriod", "status": "fail", "file": "test/OrbitTest.bt", "line": 14,
         "error": {"kind": "assertion_failed", "message": "assert:equals: failed", "expected": "5400", "actual": "5399"},
         "output": "tick\n"}))]}),
    );
    insta::assert_snapshot!(tests(&run).out);
}

#[test]
fn flush_says_what_it_wrote_and_what_it_left() {
    let flush = |more: Value| {
        let mut flush = json!({"flushed": 0, "files": [], "merged": [], "new_classes": [], "removed_classes": [],
            "skipped": [], "conflicts": []});
        flush
            .as_object_mut()
            .expect("one")
            .extend(more.as_object().cloned().expect("one"));
        flushed(&answer(flush))
    };
    let file = |file: &str| json!({"file": file, "kind": "changed"});
    assert_eq!(
        flush(
            json!({"flushed": 2, "files": [file("src/Lamp.bt")], "skipped": [{"seq": 1, "class": "Lamp",
            "selector": null, "kind": "remove-class", "reason": "destructive"}]})
        )
        .out,
        "flushed 2 methods across 1 file\n\
         skipped: Lamp (remove-class) — destructive, use :flush-destructive\n"
    );
    assert_eq!(
        flush(json!({"conflicts": [{"file": "src/Lamp.bt", "reason": "external_edit", "detail": null, "seqs": [1]}]}))
            .err,
        "conflict: src/Lamp.bt changed on disk and in the image — :diff shows both, :take image or :take disk settles it\n"
    );
    assert_eq!(
        flush(json!({"flushed": 2, "files": [file("src/Lamp.bt"), file("src/Fan.bt")], "merged": ["src/Lamp.bt"],
            "removed_classes": ["Fan"]}))
        .out,
        "flushed 1 method across 2 files, merged with changes on disk (:sync loads them)\ndeleted Fan\n"
    );
    assert_eq!(flush(json!({})).out, "nothing to flush\n");
}

#[test]
fn changes_are_listed() {
    let view = |more: Value| {
        let mut view =
            json!({"orphan": false, "prior_epoch": false, "active": true, "shadowed": false, "clean": false});
        let entry = serde_json::to_value(entry(more)).expect("an entry");
        view.as_object_mut()
            .expect("one")
            .extend(entry.as_object().cloned().expect("one"));
        view
    };
    let removal = |seq: u64, deletes_file: bool| {
        let mut view = view(json!({"seq": seq, "kind": "remove-class"}));
        view["deletes_file"] = json!(deletes_file);
        view
    };
    let listed =
        |views: Vec<Value>| entries(&answer(json!({"entries": views, "waiting": [], "conflicts": []})));
    let views = vec![
        view(json!({"seq": 7, "selector": "isOn", "side": "instance"})),
        view(
            json!({"seq": 12, "kind": "remove-class", "class": "Fan", "flushable": false, "source_file": null,
            "not_flushable_reason": "dependency:fans"}),
        ),
        removal(13, true),
        removal(14, false),
        view(json!({"seq": 15, "kind": "remove-class"})),
    ];
    assert_eq!(
        listed(views).out,
        "   7  Lamp>>isOn (pending, :flush writes src/Lamp.bt)\n  12  Fan remove-class (dependency fans, not flushable)\n  13  Lamp remove-class (pending, :flush-destructive deletes src/Lamp.bt)\n  14  Lamp remove-class (pending, :flush cuts it out of src/Lamp.bt)\n  15  Lamp remove-class (pending, a flush takes it out of src/Lamp.bt)\n"
    );
    assert_eq!(listed(Vec::new()).out, "No changes\n");
    assert_eq!(
        dirty(&answer(json!({"dirty": {"Lamp": ["toggle", "isOn"]}}))).out,
        "Lamp: toggle, isOn\n"
    );
}

#[test]
fn filters_are_read() {
    assert_eq!(Filter::parse(""), Some(Filter::All));
    assert_eq!(Filter::parse("Lamp"), Some(Filter::Class("Lamp".to_owned())));
    assert_eq!(
        Filter::parse("#'new-class'"),
        Some(Filter::Kind(WantedKind::NewClass))
    );
    assert_eq!(
        Filter::parse("#instance"),
        Some(Filter::Kind(WantedKind::Instance))
    );
    assert_eq!(
        Filter::parse("#{#file => \"src/Lamp.bt\"}"),
        Some(Filter::File("src/Lamp.bt".to_owned()))
    );
    for bad in [
        "lamp",
        "#{#path => \"x\"}",
        "#'open",
        "Lamp toggle",
        "#{",
        "#",
        "#zork",
    ] {
        assert_eq!(Filter::parse(bad), None, "{bad}");
    }
}
