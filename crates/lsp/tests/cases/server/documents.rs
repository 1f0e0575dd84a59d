//! Documents of every kind, in projects and without one.

use serde_json::{Value, json};

use super::{LAMP, at, change, close, diagnostics, hover, lamp, open, started};
use crate::client::Client;
use crate::source::Case;

#[test]
fn columns_are_counted_as_client_and_server_agreed() {
    let text = "Object subclass: A\n  x: größe => \"😀\" ++ größe\n";
    for (encoding, column) in [("utf-8", 26), ("utf-16", 22), ("utf-32", 21)] {
        let case = Case::new(&format!("//! encoding: {encoding}\n//- src/A.bt\n{text}"));
        let mut client = Client::start(&case);
        assert_eq!(client.capabilities["positionEncoding"], encoding);
        let params = at(&client, "src/A.bt", 1, column);
        let answer = client.request("textDocument/hover", params).unwrap();
        assert_eq!(answer["range"]["start"]["character"], column, "{encoding}");
        assert!(answer["contents"]["value"].as_str().unwrap().contains("größe"));
        client.finish();
    }
}

#[test]
fn a_change_in_one_file_is_seen_from_another() {
    let (_, mut client) = started(&format!(
        "//- src/Lamp.bt\n{LAMP}//- src/Room.bt\nActor subclass: Room\n  state: n = 0\n  x => Lamp spawn\n"
    ));
    assert_eq!(diagnostics(&mut client, "src/Room.bt"), [""; 0]);
    open(&client, "src/Lamp.bt", LAMP);
    change(
        &client,
        "src/Lamp.bt",
        2,
        &LAMP.replace("subclass: Lamp", "subclass: Light"),
    );
    assert_eq!(diagnostics(&mut client, "src/Room.bt"), ["W0201"]);
    // Unsaved text counts only while it is open.
    close(&client, "src/Lamp.bt");
    assert_eq!(diagnostics(&mut client, "src/Room.bt"), [""; 0]);
    client.finish();
}

#[test]
fn files_that_change_on_disk_are_read_again() {
    let (_, mut client) = started("//- src/A.bt\nActor subclass: A\n  state: n = 0\n  x => Fan spawn\n");
    assert_eq!(diagnostics(&mut client, "src/A.bt"), ["W0201"]);
    let tell = |client: &Client, kind: u32| {
        let change = json!({"uri": client.uri("src/Fan.bt"), "type": kind});
        client.notify("workspace/didChangeWatchedFiles", json!({"changes": [change]}));
    };
    std::fs::write(
        client.path_of("src/Fan.bt"),
        "Actor subclass: Fan\n  state: n = 0\n",
    )
    .unwrap();
    tell(&client, 1);
    assert_eq!(diagnostics(&mut client, "src/A.bt"), [""; 0]);
    std::fs::remove_file(client.path_of("src/Fan.bt")).unwrap();
    tell(&client, 3);
    assert_eq!(diagnostics(&mut client, "src/A.bt"), ["W0201"]);
    client.finish();
}

#[test]
fn two_files_with_one_class_leave_the_other_when_one_goes() {
    let (_, mut client) = started(
        "//- src/A.bt\nActor subclass: A\n  state: n = 0\n  x => Fan spawn\n//- src/Fan.bt\nActor subclass: Fan\n  state: n = 0\n//- src/Other.bt\nActor subclass: Fan\n  state: n = 0\n//- src/Z.bt\nObject subclass: Z\n",
    );
    open(
        &client,
        "src/A.bt",
        "Actor subclass: A\n  state: n = 0\n  x => Fan spawn\n",
    );
    assert_eq!(diagnostics(&mut client, "src/A.bt"), [""; 0]);
    open(
        &client,
        "src/Other.bt",
        "Actor subclass: Ventilator\n  state: n = 0\n",
    );
    assert_eq!(diagnostics(&mut client, "src/A.bt"), [""; 0]);
    client.finish();
}

#[test]
fn a_manifest_that_changes_changes_the_findings() {
    let (_, mut client) = started("//- src/A.bt\nActor subclass: A\n  state: n = 0\n  x => Fan spawn\n");
    assert_eq!(diagnostics(&mut client, "src/A.bt"), ["W0201"]);
    let manifest =
        "[package]\nname = \"demo\"\nversion = \"0.1.0\"\n\n[diagnostics]\nunresolved-class = \"off\"\n";
    std::fs::write(client.path_of("beamtalk.toml"), manifest).unwrap();
    let change = json!({"uri": client.uri("beamtalk.toml"), "type": 2});
    client.notify("workspace/didChangeWatchedFiles", json!({"changes": [change]}));
    client.wait_for("workspace/diagnostic/refresh");
    assert_eq!(diagnostics(&mut client, "src/A.bt"), [""; 0]);
    client.finish();
}

#[test]
fn several_projects_are_apart() {
    let (_, mut client) = started(
        "//- one/beamtalk.toml\n[package]\nname = \"one\"\nversion = \"0.1.0\"\n//- one/src/A.bt\nActor subclass: A\n  state: n = 0\n  x => B spawn\n//- two/beamtalk.toml\n[package]\nname = \"two\"\nversion = \"0.1.0\"\n//- two/src/B.bt\nActor subclass: B\n  state: n = 0\n  x => A spawn\n",
    );
    client.wait_for("workspace/diagnostic/refresh");
    assert_eq!(diagnostics(&mut client, "two/src/B.bt"), ["W0201"]);
    open(
        &client,
        "one/src/A.bt",
        "Actor subclass: A\n  state: n = 0\n  x => B spawn\n",
    );
    client.wait_for("workspace/diagnostic/refresh");
    assert_eq!(diagnostics(&mut client, "one/src/A.bt"), ["W0201"]);
    client.finish();
}

#[test]
fn sources_of_the_library_are_documents() {
    let (_, mut client) = lamp();
    for method in ["beamtalk/fetchContent", "workspace/textDocumentContent"] {
        let answer = client
            .request(method, json!({"uri": "beamtalk-stdlib:/Timer.bt"}))
            .unwrap();
        assert!(answer["text"].as_str().unwrap().contains("subclass: Timer"));
    }
    let symbols = client
        .request(
            "textDocument/documentSymbol",
            json!({"textDocument": {"uri": "beamtalk-stdlib:/Timer.bt"}}),
        )
        .unwrap();
    assert_eq!(symbols[0]["name"], "Timer");
    open(&client, "beamtalk-stdlib:/Timer.bt", "zork");
    assert_eq!(diagnostics(&mut client, "beamtalk-stdlib:/Timer.bt"), [""; 0]);
    assert!(hover(&mut client, "src/Lamp.bt", 1, 2).unwrap().contains("Actor"));
    client.finish();
}

#[test]
fn tokens_come_as_what_changed() {
    let (_, mut client) = lamp();
    let document = json!({"textDocument": {"uri": client.uri("src/Lamp.bt")}});
    let full = client
        .request("textDocument/semanticTokens/full", document.clone())
        .unwrap();
    let before: Vec<Value> = full["data"].as_array().unwrap().clone();
    change(&client, "src/Lamp.bt", 2, &LAMP.replace("isOn ->", "isLit ->"));
    let mut params = document.clone();
    params["previousResultId"] = full["resultId"].clone();
    let delta = client
        .request("textDocument/semanticTokens/full/delta", params.clone())
        .unwrap();
    let mut data = before;
    for edit in delta["edits"].as_array().unwrap() {
        let start = usize::try_from(edit["start"].as_u64().unwrap()).unwrap();
        let count = usize::try_from(edit["deleteCount"].as_u64().unwrap()).unwrap();
        data.splice(start..start + count, edit["data"].as_array().unwrap().clone());
    }
    let again = client
        .request("textDocument/semanticTokens/full", document)
        .unwrap();
    assert_eq!(Value::Array(data), again["data"]);
    // Tokens that nobody remembers are sent whole.
    params["previousResultId"] = json!("zork");
    let whole = client
        .request("textDocument/semanticTokens/full/delta", params)
        .unwrap();
    assert!(whole["data"].is_array());
    client.finish();
}

#[test]
fn tests_are_found_in_files_alone() {
    let (_, mut client) = started(
        "//- src/A.bt\nObject subclass: A\n//- test/ATest.bt\nTestCase subclass: ATest\n  testOne => self assert: true\n  helper => 1\n",
    );
    let command = json!({"command": "beamtalk.tests", "arguments": [{}]});
    let answer = client.request("workspace/executeCommand", command).unwrap();
    let ids: Vec<&str> = answer["tests"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, ["ATest>>testOne"]);
    client.finish();
}

#[test]
fn without_a_workspace_commands_say_so() {
    let (_, mut client) = lamp();
    let status = client
        .request(
            "workspace/executeCommand",
            json!({"command": "beamtalk.status", "arguments": [{}]}),
        )
        .unwrap();
    assert_eq!(status, json!({"state": "none"}));
    for command in [
        "beamtalk.flush",
        "beamtalk.load",
        "beamtalk.runTest",
        "beamtalk.recheckImage",
    ] {
        let argument = json!({"uri": client.uri("src/Lamp.bt"), "class": "A"});
        let params = json!({"command": command, "arguments": [argument]});
        let answer = client.request("workspace/executeCommand", params);
        assert!(answer.unwrap_err().contains("no workspace runs"), "{command}");
    }
    client.finish();
}
