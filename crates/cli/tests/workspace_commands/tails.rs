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
