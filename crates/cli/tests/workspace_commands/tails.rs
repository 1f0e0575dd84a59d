//! The logs over the control socket: what is there, and what comes.

use std::path::Path;

use beamtalk_client::Control;
use serde_json::{Value, json};

use crate::desk::Desk;

fn control(desk: &Desk) -> Control {
    Control::connect(Path::new(desk.info()["socket"].as_str().unwrap())).unwrap()
}

fn lines(frame: &Value) -> Vec<String> {
    let lines = frame["lines"]
        .as_array()
        .unwrap_or_else(|| panic!("no lines: {frame}"));
    lines
        .iter()
        .map(|line| line.as_str().unwrap().to_owned())
        .collect()
}

/// Frames until one holds such a line.
fn wait_for(control: &mut Control, text: &str) -> String {
    loop {
        let frame = control.receive().unwrap().expect("the daemon goes on");
        if let Some(line) = lines(&frame).into_iter().find(|line| line.contains(text)) {
            return line;
        }
    }
}

#[test]
fn the_trail_is_read_from_a_record_on_and_followed() {
    let desk = Desk::new("trail");
    desk.run(&["workspace", "start"]).expect(0);
    desk.run(&["eval", "1 + 2"]).expect(0);
    let mut control = control(&desk);
    let whole = control.call(&json!({"op": "audit-tail"})).unwrap();
    assert_eq!(whole["done"], true);
    let records: Vec<Value> = lines(&whole)
        .iter()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(records[0]["seq"], 1);
    assert!(records.iter().any(|record| record["type"] == "eval"));
    // The same connection answers further calls.
    let rest = control.call(&json!({"op": "audit-tail", "from": 3})).unwrap();
    assert!(lines(&rest)[0].contains("\"seq\":3,"), "{rest}");
    assert_eq!(lines(&rest).len(), lines(&whole).len() - 2);
    let refused = control.call(&json!({"op": "audit-tail", "from": "x"})).unwrap();
    assert_eq!(refused["error"]["kind"], "invalid_parameter");

    control
        .send(&json!({"op": "audit-tail", "from": records.len() + 1, "follow": true}))
        .unwrap();
    desk.run(&["eval", "3 + 4"]).expect(0);
    let line = wait_for(&mut control, "\"type\":\"eval\"");
    let record: Value = serde_json::from_str(&line).unwrap();
    assert!(record["seq"].as_u64().unwrap() > records.len() as u64);
}

#[test]
fn the_log_is_read_and_followed() {
    let desk = Desk::new("tail");
    desk.run(&["workspace", "start"]).expect(0);
    for text in ["first", "second"] {
        desk.run(&["eval", &format!("Logger error: \"{text} words\"")])
            .expect(0);
    }
    let mut reader = control(&desk);
    reader.send(&json!({"op": "log-tail", "follow": true})).unwrap();
    wait_for(&mut reader, "second words");
    desk.run(&["eval", "Logger error: \"third words\""]).expect(0);
    wait_for(&mut reader, "third words");
    drop(reader);

    let mut reader = control(&desk);
    let whole = lines(&reader.call(&json!({"op": "log-tail"})).unwrap());
    let at = whole
        .iter()
        .position(|line| line.contains("second words"))
        .unwrap();
    let rest = lines(&reader.call(&json!({"op": "log-tail", "from": at})).unwrap());
    assert!(rest[0].contains("second words"), "{rest:?}");
    assert_eq!(rest[..], whole[at..]);
}

#[test]
fn what_is_taken_from_the_trail_is_told() {
    let desk = Desk::new("taken");
    let (log, state) = ("audit.log", "audit.state");
    for _ in 0..3 {
        desk.run(&["eval", "1 + 1"]).expect(0);
    }
    desk.run(&["workspace", "stop"]).expect(0);
    let place = desk.workspace();
    let read = |name: &str| std::fs::read_to_string(place.join(name)).unwrap();
    let (whole, mark) = (read(log), read(state));
    let count = whole.lines().count();
    let verify = |code: i32, text: &str| {
        let found = desk.run(&["workspace", "audit", "verify"]).expect(code);
        let said = format!("{}{}", found.err, found.out);
        assert!(said.contains(text), "{text}: {said}");
        assert_eq!(said.contains("none missing"), code == 0, "{said}");
    };
    verify(0, "none missing");
    let without = |from: usize, to: usize| {
        let kept = whole.split_inclusive('\n').enumerate();
        let kept = kept.filter(|(number, _)| !(from..to).contains(number));
        std::fs::write(place.join(log), kept.map(|(_, line)| line).collect::<String>()).unwrap();
    };
    without(0, 2);
    verify(1, "2 records from number 1 on are not there any more");
    without(count - 2, count);
    verify(1, "2 records up to number");
    without(1, 2);
    verify(1, "record 3 comes where 2 should");
    std::fs::remove_file(place.join(log)).unwrap();
    verify(1, "are not there any more");
    std::fs::write(place.join(log), &whole).unwrap();
    std::fs::remove_file(place.join(state)).unwrap();
    verify(1, "audit.state is not there");
    // Nor does the next start make it good.
    without(count - 2, count);
    desk.run(&["eval", "1 + 1"]).expect(0);
    desk.run(&["workspace", "stop"]).expect(0);
    verify(1, "audit.state was not there when this was written");
    std::fs::write(place.join(log), &whole).unwrap();
    std::fs::write(place.join(state), &mark).unwrap();
    verify(0, "none missing");
}
