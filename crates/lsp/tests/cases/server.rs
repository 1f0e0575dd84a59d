//! The server as a whole: its life, its documents, and what it does with bad input. Nothing a client sends ends it.

mod bad_input;
mod documents;
mod life;
mod properties;

use serde_json::{Value, json};

use crate::client::Client;
use crate::source::Case;

const LAMP: &str = "/// A lamp.\nActor subclass: Lamp\n  state: on :: Boolean = false\n\n  toggle => self.on := self.on not\n\n  isOn -> Boolean => self.on\n";

fn started(text: &str) -> (Case, Client) {
    let case = Case::new(text);
    let client = Client::start(&case);
    (case, client)
}

fn lamp() -> (Case, Client) {
    started(&format!("//- src/Lamp.bt\n{LAMP}"))
}

fn at(client: &Client, path: &str, line: u64, character: u64) -> Value {
    json!({
        "textDocument": {"uri": client.uri(path)},
        "position": {"line": line, "character": character},
    })
}

fn hover(client: &mut Client, path: &str, line: u64, character: u64) -> Result<String, String> {
    let params = at(client, path, line, character);
    let answer = client.request("textDocument/hover", params)?;
    Ok(answer["contents"]["value"]
        .as_str()
        .unwrap_or_default()
        .to_owned())
}

fn diagnostics(client: &mut Client, path: &str) -> Vec<String> {
    let params = json!({"textDocument": {"uri": client.uri(path)}});
    let answer = client.request("textDocument/diagnostic", params).unwrap();
    let items = answer["items"].as_array().unwrap().iter();
    items
        .map(|item| item["code"].as_str().unwrap().to_owned())
        .collect()
}

fn change(client: &Client, path: &str, version: i32, text: &str) {
    let params = json!({
        "textDocument": {"uri": client.uri(path), "version": version},
        "contentChanges": [{"text": text}],
    });
    client.notify("textDocument/didChange", params);
}

fn open(client: &Client, path: &str, text: &str) {
    let item = json!({"uri": client.uri(path), "languageId": "beamtalk", "version": 1, "text": text});
    client.notify("textDocument/didOpen", json!({ "textDocument": item }));
}

fn close(client: &Client, path: &str) {
    let params = json!({"textDocument": {"uri": client.uri(path)}});
    client.notify("textDocument/didClose", params);
}
