//! What commands show, at two widths, with and without colours.

use beamtalk_wire::answers::{Actor, BindingsAnswer, InspectAnswer, SessionsAnswer, Site, TopActorsAnswer};
use beamtalk_wire::requests::TopOrder;
use serde_json::json;

use super::answers::{self, browse};
use super::inspect::{Root, View};
use super::paint::Palette;
use super::test_answers::answer;
use super::{render, table, top};

fn screens(columns: usize, palette: Palette) -> String {
    let sites: Vec<Site> = answer(json!([
        {"class": "Room", "class_side": true, "method": "lit", "line": 2, "source_file": "src/Room.bt"},
        {"class": "Lamp", "class_side": false, "method": "at:put:", "line": 12, "source_file": "src/Lamp.bt"}]));
    let busiest: TopActorsAnswer = answer(
        json!({"total": 1, "classes": [{"class": "Lamp", "count": 1}], "actors": [
        {"pid": "0.187.0", "class": "Lamp", "name": "boiler", "queue_len": 3, "memory": 2688, "reductions": 42,
         "message": "toggle"}]}),
    );
    let inspected: InspectAnswer = answer(json!({"kind": "actor", "class": "Lamp", "total": 1,
        "text": "Actor(Lamp, 0.187.0)", "fields": [
            {"name": "on", "label": "on", "text": "false", "class": "False", "drillable": false}],
        "understands": [{"class": "Lamp", "selectors": ["isOn", "toggle"]},
                        {"class": "Object", "selectors": ["class", "printString"]}]}));
    let bindings: BindingsAnswer = answer(json!({"bindings": {
        "lamp": {"text": "Actor(Lamp, 0.187.0)", "class": "Lamp"}, "names": {"text": "#(\"a\", 2)", "class": "List"}}}));
    let actors: Vec<Actor> = answer(json!([{"pid": "0.187.0", "class": "Lamp", "name": "boiler"}]));
    let sessions: SessionsAnswer = answer(json!({"sessions": [
        {"id": "s-1", "client": "repl", "peer": "127.0.0.1:1", "connected_at": 1, "busy": false}]}));
    let value =
        answer(json!({"text": "#(\n  \"one\",\n  2,\n  … 99,950 more (_ inspect)\n)", "class": "List"}));
    let fault = answer(json!({"kind": "compile_failed", "message": "no", "diagnostics": [
        {"severity": "error", "message": "no such variable", "line": 1, "span_start": 5, "span_end": 8,
         "column": 6, "end_line": 1, "end_column": 9}]}));
    let source = "toggle =>\n    self.on := self.on not";
    let mut view = View::new(Root::Binding("lamp".to_owned()));
    let shown = [
        (
            ":senders at:put:",
            browse::sites("senders of at:put:", &sites, palette).out,
        ),
        (
            ":source Lamp toggle",
            browse::source("Lamp>>toggle", "src/Lamp.bt:6", source, palette).out,
        ),
        (
            ":top",
            top::table(&busiest, TopOrder::Queue, columns, palette).join("\n"),
        ),
        (":inspect lamp", view.show(&inspected, columns, palette).out),
        (":bindings", answers::bindings(&bindings, palette).out),
        (":actors", answers::actors(&actors).out),
        (":sessions", answers::sessions(&sessions, "s-1").out),
        ("names", render::evaluation(&value, palette).out),
        ("x := foo", render::failure(&fault, "x := foo", palette)),
        (":help", table::overview(columns)),
    ];
    let shown = shown.map(|(input, text)| format!("> {input}\n{}\n", text.trim_end()));
    shown.concat().replace('\x1b', "␛")
}

#[test]
fn every_screen_at_80_columns() {
    insta::assert_snapshot!("plain_80", screens(80, Palette::Plain));
    insta::assert_snapshot!("coloured_80", screens(80, Palette::Colored));
}

#[test]
fn every_screen_at_120_columns() {
    insta::assert_snapshot!("plain_120", screens(120, Palette::Plain));
    insta::assert_snapshot!("coloured_120", screens(120, Palette::Colored));
}
