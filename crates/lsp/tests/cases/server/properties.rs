//! Whatever is typed and wherever one asks: every request is answered, and none fails inside.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::{LAMP, change, lamp};

/// Pieces of programs, whole and broken.
const PIECES: &[&str] = &[
    "Object subclass: A\n",
    "  state: n = 0\n",
    "  x => ",
    "  class y: z => ",
    "self",
    "super",
    ".n",
    " := ",
    "[:e | ",
    "]",
    "(",
    ")",
    "#{",
    "}",
    "#(",
    "\"a {",
    "}\"",
    "\"",
    "// c\n",
    "/* ",
    "*/",
    "\n",
    "  ",
    "Lamp",
    "toggle",
    "at: 1 put: ",
    "^",
    ";",
    "!",
    "match: [",
    "-> ",
    ":: Integer",
    "| Nil",
    "Lamp >> ",
    "type T = ",
    "Protocol define: P\n",
    "😀",
    "\u{0}",
    "\r",
    "pkg@A ",
    "@expect dnu\n",
    "Erlang lists ",
    "$",
    "1.5e",
    "<<a:8>>",
];

const REQUESTS: &[&str] = &[
    "textDocument/hover",
    "textDocument/definition",
    "textDocument/references",
    "textDocument/implementation",
    "textDocument/completion",
    "textDocument/signatureHelp",
    "textDocument/documentSymbol",
    "textDocument/prepareRename",
    "textDocument/rename",
    "textDocument/semanticTokens/full",
    "textDocument/foldingRange",
    "textDocument/selectionRange",
    "textDocument/documentHighlight",
    "textDocument/inlayHint",
    "textDocument/codeLens",
    "textDocument/codeAction",
    "textDocument/diagnostic",
    "textDocument/formatting",
    "textDocument/onTypeFormatting",
    "textDocument/prepareTypeHierarchy",
    "textDocument/prepareCallHierarchy",
];

fn text() -> impl Strategy<Value = String> {
    let pieces = prop::collection::vec(prop::sample::select(PIECES), 0..40);
    let typed = pieces.prop_map(|pieces| pieces.concat());
    // A file in which something is cut, or something is put.
    let edited =
        (0..LAMP.len(), 0..20_usize, prop::sample::select(PIECES)).prop_map(|(at, length, piece)| {
            let end = (at + length).min(LAMP.len());
            format!("{}{piece}{}", &LAMP[..at], &LAMP[end..])
        });
    prop_oneof![typed, edited]
}

#[test]
fn no_text_and_no_position_makes_a_request_fail() {
    let (_, client) = lamp();
    let client = std::cell::RefCell::new(client);
    let version = std::cell::Cell::new(1);
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..ProptestConfig::default()
    });
    let strategy = (text(), 0..12_u32, 0..40_u32);
    let outcome = runner.run(&strategy, |(text, line, character)| {
        let mut client = client.borrow_mut();
        version.set(version.get() + 1);
        change(&client, "src/Lamp.bt", version.get(), &text);
        let position = json!({"line": line, "character": character});
        let params = json!({
            "textDocument": {"uri": client.uri("src/Lamp.bt")},
            "position": position,
            "positions": [position],
            "range": {"start": {"line": 0, "character": 0}, "end": position},
            "context": {"includeDeclaration": true, "diagnostics": [], "triggerKind": 1},
            "newName": "other",
            "options": {"tabSize": 2, "insertSpaces": true},
            "ch": "\n",
        });
        for method in REQUESTS {
            if let Err(error) = client.request(method, params.clone()) {
                // A position past the end, and what cannot be done, are said so.
                let is_said = error.starts_with("error -32602") || error.starts_with("error -32803");
                prop_assert!(is_said, "{method}: {error}\n{text}");
            }
        }
        Ok(())
    });
    let alive = client
        .borrow_mut()
        .request("workspace/symbol", json!({"query": ""}));
    assert!(matches!(alive, Ok(Value::Array(_))));
    outcome.unwrap();
    client.into_inner().finish();
}
