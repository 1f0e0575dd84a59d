//! From the first request to the last.

use beamtalk_lsp::{Ended, Setup, serve};
use lsp_server::{Connection, Message, Notification, Request, RequestId, Response};
use serde_json::{Value, json};

use super::{LAMP, at, lamp};

fn code(message: Message) -> Option<i32> {
    match message {
        Message::Response(Response { response_result, .. }) => response_result.err().map(|error| error.code),
        other => panic!("{other:?}"),
    }
}

fn ask(connection: &Connection, id: i32, method: &str, params: Value) -> Message {
    let request = Request::new(RequestId::from(id), method.to_owned(), params);
    connection.sender.send(Message::Request(request)).unwrap();
    connection.receiver.recv().unwrap()
}

#[test]
fn requests_before_initialize_and_after_shutdown_are_refused() {
    let (ours, theirs) = Connection::memory();
    let server = std::thread::spawn(move || serve(&theirs, Setup::default()).unwrap());
    let hover = json!({"textDocument": {"uri": "file:///a.bt"}, "position": {"line": 0, "character": 0}});
    assert_eq!(
        code(ask(&ours, 1, "textDocument/hover", hover.clone())),
        Some(-32002)
    );
    assert_eq!(code(ask(&ours, 2, "shutdown", Value::Null)), Some(-32002));
    assert_eq!(code(ask(&ours, 3, "initialize", json!("x"))), Some(-32602));
    let params = json!({"processId": null, "rootUri": null, "capabilities": {}});
    assert_eq!(code(ask(&ours, 4, "initialize", params.clone())), None);
    assert_eq!(code(ask(&ours, 5, "initialize", params)), Some(-32600));
    assert_eq!(code(ask(&ours, 6, "shutdown", Value::Null)), None);
    assert_eq!(code(ask(&ours, 7, "textDocument/hover", hover)), Some(-32600));
    let exit = Notification::new("exit".to_owned(), Value::Null);
    ours.sender.send(Message::Notification(exit)).unwrap();
    assert_eq!(server.join().unwrap(), Ended::Properly);
}

#[test]
fn a_client_that_goes_without_a_word_ends_the_server() {
    let (ours, theirs) = Connection::memory();
    let server = std::thread::spawn(move || serve(&theirs, Setup::default()).unwrap());
    drop(ours);
    assert_eq!(server.join().unwrap(), Ended::Abruptly);
}

#[test]
fn two_clients_are_served_side_by_side() {
    let (case, mut one) = lamp();
    let mut other = crate::client::Client::start(&case);
    for client in [&mut one, &mut other] {
        let params = at(client, "src/Lamp.bt", 1, 17);
        assert!(client.request("textDocument/hover", params).unwrap().is_object());
    }
    one.finish();
    let params = at(&other, "src/Lamp.bt", 1, 17);
    assert!(other.request("textDocument/hover", params).unwrap().is_object());
    other.finish();
}

/// A request is answered once, whether it was done, cancelled or overtaken by a change.
#[test]
fn every_request_gets_one_answer() {
    let (_, mut client) = lamp();
    let uri = client.uri("src/Lamp.bt");
    let mut sent = Vec::new();
    for round in 0..50 {
        for method in [
            "textDocument/completion",
            "textDocument/references",
            "textDocument/hover",
        ] {
            let mut params = at(&client, "src/Lamp.bt", 4, 4);
            params["context"] = json!({"includeDeclaration": true, "triggerKind": 1});
            let id = client.send(method, params);
            if round % 5 == 0 {
                client.notify("$/cancelRequest", json!({"id": id}));
            }
            sent.push(id);
        }
        let document = json!({"uri": uri, "version": 2 + round});
        let changes = json!([{"text": format!("{LAMP}// {round}\n")}]);
        client.notify(
            "textDocument/didChange",
            json!({"textDocument": document, "contentChanges": changes}),
        );
    }
    let mut answered = Vec::new();
    while answered.len() < sent.len() {
        if let Message::Response(response) = client.receive() {
            if let Err(error) = &response.response_result {
                assert!([-32800, -32801].contains(&error.code), "{}", error.message);
            }
            answered.push(response.id.to_string());
        }
    }
    let mut expected: Vec<String> = sent.iter().map(ToString::to_string).collect();
    expected.sort();
    answered.sort();
    assert_eq!(answered, expected);
    client.notify("$/cancelRequest", json!({"id": 9_999}));
    client.finish();
}
