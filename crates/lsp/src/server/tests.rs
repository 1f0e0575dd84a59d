//! A request that panics.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use lsp_server::{Connection, Message, Notification, Request, RequestId};
use serde_json::{Value, json};

use super::{Ended, Setup, serve};

/// The next message that a request is answered with, and what was told before.
fn answer(connection: &Connection, told: &mut Vec<String>) -> Result<Value, i32> {
    loop {
        match connection.receiver.recv_timeout(Duration::from_mins(1)).unwrap() {
            Message::Response(response) => {
                return response.response_result.map_err(|error| error.code);
            }
            Message::Notification(notification) => told.push(notification.params["message"].to_string()),
            Message::Request(_) => {}
        }
    }
}

#[test]
fn a_panic_answers_its_request_with_an_error_and_is_logged() {
    let (ours, theirs) = Connection::memory();
    let logged = Arc::new(Mutex::new(Vec::new()));
    let log = logged.clone();
    let server = std::thread::spawn(move || {
        let setup = Setup {
            log: Box::new(move |text| log.lock().unwrap().push(text.to_owned())),
            workspaces: None,
        };
        serve(&theirs, setup).unwrap()
    });
    let mut told = Vec::new();
    let mut ask = |id: i32, method: &str, params: Value| {
        let request = Request::new(RequestId::from(id), method.to_owned(), params);
        ours.sender.send(Message::Request(request)).unwrap();
        answer(&ours, &mut told)
    };
    let params = json!({"processId": null, "rootUri": null, "capabilities": {}});
    ask(1, "initialize", params).unwrap();
    assert_eq!(ask(2, "test/panic", json!({})), Err(-32603));
    let content = json!({"uri": "beamtalk-stdlib:/Timer.bt"});
    assert!(ask(3, "beamtalk/fetchContent", content).is_ok());
    ask(4, "shutdown", Value::Null).unwrap();
    assert!(told.iter().any(|text| text.contains("on purpose")), "{told:?}");
    assert!(
        logged
            .lock()
            .unwrap()
            .iter()
            .any(|text| text.contains("on purpose"))
    );
    let exit = Notification::new("exit".to_owned(), Value::Null);
    ours.sender.send(Message::Notification(exit)).unwrap();
    assert_eq!(server.join().unwrap(), Ended::Properly);
}
