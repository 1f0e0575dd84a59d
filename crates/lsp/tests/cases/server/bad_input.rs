//! What is wrong is answered with an error; the next request works.

use serde_json::{Value, json};

use super::{LAMP, at, change, close, diagnostics, hover, lamp, open, started};

/// The server still knows what it knew.
#[track_caller]
fn is_well(client: &mut crate::client::Client) {
    let text = hover(client, "src/Lamp.bt", 1, 17).unwrap();
    assert!(text.contains("A lamp."), "{text}");
}

#[test]
fn positions_past_the_end_are_refused_or_mean_the_end_of_the_line() {
    let (_, mut client) = lamp();
    for (line, character) in [(999, 0), (u64::from(u32::MAX), u64::from(u32::MAX))] {
        let answer = hover(&mut client, "src/Lamp.bt", line, character);
        assert!(answer.unwrap_err().starts_with("error -32602"));
    }
    assert_eq!(hover(&mut client, "src/Lamp.bt", 0, 9_999).unwrap(), "");
    let negative = client.request(
        "textDocument/hover",
        json!({
            "textDocument": {"uri": client.uri("src/Lamp.bt")},
            "position": {"line": -1, "character": 0},
        }),
    );
    assert!(negative.unwrap_err().starts_with("error -32602"));
    is_well(&mut client);
    client.finish();
}

#[test]
fn uris_that_name_nothing_are_refused() {
    let (_, mut client) = lamp();
    for uri in [
        "",
        "nonsense",
        "file:///no/such/file.bt",
        "file:///%zz",
        "http://example.org/x.bt",
        "beamtalk-stdlib:/Zork.bt",
        "beamtalk-stdlib:/../../etc/passwd",
        "file://\u{0}",
    ] {
        let params = json!({"textDocument": {"uri": uri}, "position": {"line": 0, "character": 0}});
        let answer = client.request("textDocument/hover", params);
        assert!(answer.unwrap_err().starts_with("error -32602"), "{uri}");
        let item = json!({"uri": uri, "languageId": "beamtalk", "version": 1, "text": "x"});
        client.notify("textDocument/didOpen", json!({ "textDocument": item }));
        let params = json!({"textDocument": {"uri": uri}});
        client.notify("textDocument/didClose", params);
    }
    is_well(&mut client);
    client.finish();
}

#[test]
fn edits_that_do_not_apply_change_nothing() {
    let (_, mut client) = lamp();
    let uri = client.uri("src/Lamp.bt");
    let edit = |line: u32, text: &str| {
        json!({
            "range": {"start": {"line": line, "character": 0}, "end": {"line": line, "character": 3}},
            "text": text,
        })
    };
    let document = json!({"uri": uri, "version": 2});
    client.notify(
        "textDocument/didChange",
        json!({"textDocument": document, "contentChanges": [edit(0, "zzz"), edit(500, "y")]}),
    );
    is_well(&mut client);
    // One that applies does.
    client.notify(
        "textDocument/didChange",
        json!({"textDocument": document, "contentChanges": [edit(0, "///")]}),
    );
    is_well(&mut client);
    // A document that nobody opened, and changes of a wrong form.
    change(&client, "src/Other.bt", 1, "x");
    client.notify("textDocument/didChange", json!({"textDocument": 3}));
    client.notify("textDocument/didChange", Value::Null);
    client.notify("no/such/notification", json!([1]));
    close(&client, "src/Other.bt");
    is_well(&mut client);
    client.finish();
}

#[test]
fn parameters_of_a_wrong_form_are_refused() {
    let (_, mut client) = lamp();
    for method in [
        "textDocument/hover",
        "textDocument/completion",
        "textDocument/rename",
        "textDocument/codeAction",
        "textDocument/semanticTokens/full",
        "callHierarchy/incomingCalls",
        "codeLens/resolve",
        "workspace/executeCommand",
        "workspace/willRenameFiles",
        "beamtalk/fetchContent",
    ] {
        for params in [json!(null), json!([]), json!({"textDocument": 1}), json!("x")] {
            let answer = client.request(method, params.clone());
            assert!(
                answer.unwrap_err().starts_with("error -32602"),
                "{method} {params}"
            );
        }
    }
    let unknown = client.request("textDocument/zork", json!({}));
    assert!(unknown.unwrap_err().starts_with("error -32601"));
    let command = client.request("workspace/executeCommand", json!({"command": "beamtalk.zork"}));
    assert!(command.unwrap_err().starts_with("error -32602"));
    is_well(&mut client);
    client.finish();
}

#[test]
fn a_file_that_is_deleted_while_open_stays_as_the_editor_has_it() {
    let (_, mut client) = lamp();
    std::fs::remove_file(client.path_of("src/Lamp.bt")).unwrap();
    let uri = client.uri("src/Lamp.bt");
    let changes = json!([{"uri": uri, "type": 3}]);
    client.notify("workspace/didChangeWatchedFiles", json!({ "changes": changes }));
    is_well(&mut client);
    close(&client, "src/Lamp.bt");
    let answer = hover(&mut client, "src/Lamp.bt", 1, 17);
    assert!(answer.unwrap_err().contains("there is no document"));
    client.finish();
}

/// A pipe in the place of a source is no document, whether it is asked for or told to have changed: nobody waits for it.
#[test]
fn a_pipe_is_no_document() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let (_, mut client) = lamp();
    let path = client.path_of("src/Pipe.bt");
    mknodat(CWD, &path, FileType::Fifo, Mode::from_raw_mode(0o600), 0).unwrap();
    let answer = hover(&mut client, "src/Pipe.bt", 0, 0);
    assert!(answer.unwrap_err().contains("there is no document"));
    let uri = client.uri("src/Pipe.bt");
    let changes = json!([{"uri": uri, "type": 1}]);
    client.notify("workspace/didChangeWatchedFiles", json!({ "changes": changes }));
    is_well(&mut client);
    client.finish();
}

#[test]
fn fifty_megabytes_are_kept_out_and_said_to_be() {
    let (_, mut client) = lamp();
    let huge = "x := 1\n".repeat(50 * 1024 * 1024 / 7);
    open(&client, "src/Huge.bt", &huge);
    assert_eq!(diagnostics(&mut client, "src/Huge.bt"), ["W0902"]);
    let answer = hover(&mut client, "src/Huge.bt", 0, 0);
    assert!(answer.unwrap_err().contains("too long"));
    is_well(&mut client);
    // It becomes shorter, and is a document like others.
    change(&client, "src/Huge.bt", 2, "Object subclass: Huge\n  x => 1\n");
    assert!(hover(&mut client, "src/Huge.bt", 0, 18).unwrap().contains("Huge"));
    client.finish();
}

#[test]
fn null_bytes_and_odd_characters_are_text_like_others() {
    let (_, mut client) = lamp();
    for text in [
        "\0\0\0",
        "Object subclass: A\n  x => \"\0\" \u{202e}\u{feff}\n",
        "\u{feff}Object subclass: A\r\r\n\r  x => 😀\n",
        "Object subclass: \u{1F600}\n",
    ] {
        open(&client, "src/Odd.bt", text);
        for method in [
            "textDocument/documentSymbol",
            "textDocument/semanticTokens/full",
            "textDocument/foldingRange",
            "textDocument/codeLens",
            "textDocument/diagnostic",
        ] {
            let params = json!({"textDocument": {"uri": client.uri("src/Odd.bt")}});
            client.request(method, params).unwrap();
        }
        close(&client, "src/Odd.bt");
    }
    is_well(&mut client);
    client.finish();
}

#[test]
fn nesting_without_end_is_answered() {
    let (_, mut client) = lamp();
    for (open_bracket, count) in [
        ("(", 20_000),
        ("[", 20_000),
        ("#{", 20_000),
        ("#(", 20_000),
        ("\"{", 20_000),
        ("a b: ", 2_000),
    ] {
        let text = format!("Object subclass: Deep\n  x => {}\n", open_bracket.repeat(count));
        open(&client, "src/Deep.bt", &text);
        assert!(
            !diagnostics(&mut client, "src/Deep.bt").is_empty(),
            "{open_bracket}"
        );
        let params = at(&client, "src/Deep.bt", 1, 100);
        client.request("textDocument/completion", params).unwrap();
        close(&client, "src/Deep.bt");
    }
    is_well(&mut client);
    client.finish();
}

/// Every prefix of a file is a file while it is typed: all requests answer, and what stands above the typing is kept.
#[test]
fn half_typed_code_keeps_the_rest_of_the_file() {
    let (_, mut client) = started(&format!("//- src/Lamp.bt\n{LAMP}"));
    let typed = "\n  dim: level for: seconds => [:x | x + (level max: \"a {seconds}\")] value: #{#a => 1}\n";
    for (end, _) in typed.char_indices() {
        let text = format!("{LAMP}{}", &typed[..end]);
        change(&client, "src/Lamp.bt", 2 + i32::try_from(end).unwrap(), &text);
        let params = json!({"textDocument": {"uri": client.uri("src/Lamp.bt")}});
        let symbols = client
            .request("textDocument/documentSymbol", params.clone())
            .unwrap();
        let members = symbols[0]["children"].as_array().unwrap();
        let names: Vec<&str> = members.iter().map(|one| one["name"].as_str().unwrap()).collect();
        assert!(
            names.starts_with(&["on", "toggle", "isOn"]),
            "{:?}: {names:?}",
            &typed[..end]
        );
        for method in [
            "textDocument/semanticTokens/full",
            "textDocument/codeLens",
            "textDocument/diagnostic",
        ] {
            client.request(method, params.clone()).unwrap();
        }
        assert!(
            hover(&mut client, "src/Lamp.bt", 6, 3)
                .unwrap()
                .contains("isOn -> Boolean")
        );
    }
    client.finish();
}
