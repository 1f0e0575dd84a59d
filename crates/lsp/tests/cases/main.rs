//! Every request against small sources with markers: `cases/<request>/<case>.bt`, one file per case.
//!
//! `‸` marks a place, `«…»` a selection. A line `//- src/Lamp.bt` begins another file; a line `//! key: value` at the top
//! sets something for the case. The answers are snapshots, written the way a person reads them: places as
//! `file:line:column` with the text there, edits as the changed lines.

#![expect(clippy::disallowed_methods, reason = "tests write the files they look at")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod client;
mod server;
mod show;
mod source;

use std::path::Path;

use serde_json::{Value, json};

use client::Client;
use source::Case;

/// Run a request on every case of its folder.
fn each(folder: &str, run: impl Fn(&Case, &mut Client) -> String) {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/cases")
        .join(folder);
    let mut paths: Vec<_> = std::fs::read_dir(&cases)
        .unwrap_or_else(|cause| panic!("{}: {cause}", cases.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "bt"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{folder} has no cases");
    for path in paths {
        let text = std::fs::read_to_string(&path).unwrap();
        let case = Case::new(&text);
        let mut client = Client::start(&case);
        let answer = run(&case, &mut client);
        client.finish();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        insta::with_settings!({
            snapshot_path => folder,
            prepend_module_to_snapshot => false,
            omit_expression => true,
            description => text,
        }, {
            insta::assert_snapshot!(name, answer);
        });
    }
}

/// A request at the marker of the case.
fn at(case: &Case, client: &mut Client, method: &str, more: &Value) -> Result<Value, String> {
    let mut params = json!({
        "textDocument": {"uri": client.uri(&case.marked)},
        "position": case.position(),
    });
    for (key, value) in more.as_object().unwrap() {
        params[key] = value.clone();
    }
    client.request(method, params)
}

/// A request about the document with the marker.
fn about(case: &Case, client: &mut Client, method: &str, more: &Value) -> Result<Value, String> {
    let mut params = json!({"textDocument": {"uri": client.uri(&case.marked)}});
    for (key, value) in more.as_object().unwrap() {
        params[key] = value.clone();
    }
    client.request(method, params)
}

fn shown(answer: Result<Value, String>, show: impl FnOnce(&Value) -> String) -> String {
    match answer {
        Ok(Value::Null) => "nothing".to_owned(),
        Ok(value) => show(&value),
        Err(error) => error,
    }
}

#[test]
fn hover() {
    each("hover", |case, client| {
        shown(at(case, client, "textDocument/hover", &json!({})), |answer| {
            let place = show::excerpt(case, &case.marked, &answer["range"]);
            format!("{place}\n---\n{}", answer["contents"]["value"].as_str().unwrap())
        })
    });
}

#[test]
fn definition() {
    each("definition", |case, client| {
        let answer = at(case, client, "textDocument/definition", &json!({}));
        shown(answer, |answer| show::locations(case, client, answer))
    });
}

#[test]
fn references() {
    each("references", |case, client| {
        let with = case.option("declaration") != Some("no");
        let more = json!({"context": {"includeDeclaration": with}});
        let answer = at(case, client, "textDocument/references", &more);
        shown(answer, |answer| show::locations(case, client, answer))
    });
}

#[test]
fn implementation() {
    each("implementation", |case, client| {
        let answer = at(case, client, "textDocument/implementation", &json!({}));
        shown(answer, |answer| show::locations(case, client, answer))
    });
}

#[test]
fn completion() {
    each("completion", |case, client| {
        let answer = at(case, client, "textDocument/completion", &json!({}));
        shown(answer, |answer| show::completions(case, answer))
    });
}

#[test]
fn signature_help() {
    each("signature_help", |case, client| {
        shown(
            at(case, client, "textDocument/signatureHelp", &json!({})),
            show::signatures,
        )
    });
}

#[test]
fn diagnostics() {
    each("diagnostics", |case, client| {
        shown(
            about(case, client, "textDocument/diagnostic", &json!({})),
            |answer| show::diagnostics(case, answer),
        )
    });
}

#[test]
fn document_symbol() {
    each("document_symbol", |case, client| {
        let answer = about(case, client, "textDocument/documentSymbol", &json!({}));
        shown(answer, |answer| show::symbols(answer, 0))
    });
}

#[test]
fn workspace_symbol() {
    each("workspace_symbol", |case, client| {
        let query = json!({"query": case.option("query").unwrap_or_default()});
        shown(client.request("workspace/symbol", query), |answer| {
            show::found_symbols(case, client, answer)
        })
    });
}

#[test]
fn type_hierarchy() {
    each("type_hierarchy", |case, client| {
        let items = at(case, client, "textDocument/prepareTypeHierarchy", &json!({}));
        shown(items, |items| {
            let item = &items[0];
            let above = client
                .request("typeHierarchy/supertypes", json!({ "item": item }))
                .unwrap();
            let below = client
                .request("typeHierarchy/subtypes", json!({ "item": item }))
                .unwrap();
            format!(
                "{}\nabove: {}\nbelow: {}",
                show::name(item),
                show::names(&above),
                show::names(&below)
            )
        })
    });
}

#[test]
fn call_hierarchy() {
    each("call_hierarchy", |case, client| {
        let items = at(case, client, "textDocument/prepareCallHierarchy", &json!({}));
        shown(items, |items| {
            let mut out = Vec::new();
            for item in items.as_array().unwrap() {
                let incoming = client.request("callHierarchy/incomingCalls", json!({ "item": item }));
                let outgoing = client.request("callHierarchy/outgoingCalls", json!({ "item": item }));
                out.push(show::name(item));
                out.push(format!("from: {}", show::calls(&incoming.unwrap(), "from")));
                out.push(format!("to: {}", show::calls(&outgoing.unwrap(), "to")));
            }
            out.join("\n")
        })
    });
}

#[test]
fn rename() {
    each("rename", |case, client| {
        let prepared = at(case, client, "textDocument/prepareRename", &json!({}));
        let prepared = shown(prepared, |answer| answer["placeholder"].to_string());
        let new = json!({"newName": case.option("to").unwrap()});
        let answer = at(case, client, "textDocument/rename", &new);
        let renamed = shown(answer, |answer| show::edit(case, client, answer));
        format!("{prepared}\n---\n{renamed}")
    });
}

#[test]
fn semantic_tokens() {
    each("semantic_tokens", |case, client| {
        let answer = match case.selection() {
            Some(range) => {
                let more = json!({ "range": range });
                about(case, client, "textDocument/semanticTokens/range", &more)
            }
            None => about(case, client, "textDocument/semanticTokens/full", &json!({})),
        };
        shown(answer, |answer| show::tokens(case, answer))
    });
}

#[test]
fn folding_range() {
    each("folding_range", |case, client| {
        let answer = about(case, client, "textDocument/foldingRange", &json!({}));
        shown(answer, |answer| show::folds(case, answer))
    });
}

#[test]
fn selection_range() {
    each("selection_range", |case, client| {
        let more = json!({"positions": [case.position()]});
        let answer = about(case, client, "textDocument/selectionRange", &more);
        shown(answer, |answer| show::selections(case, &answer[0]))
    });
}

#[test]
fn document_highlight() {
    each("document_highlight", |case, client| {
        let answer = at(case, client, "textDocument/documentHighlight", &json!({}));
        shown(answer, |answer| show::highlights(case, answer))
    });
}

#[test]
fn inlay_hint() {
    each("inlay_hint", |case, client| {
        let more = json!({"range": case.selection().unwrap_or_else(|| case.everything())});
        let answer = about(case, client, "textDocument/inlayHint", &more);
        shown(answer, |answer| show::hints(case, answer))
    });
}

#[test]
fn code_lens() {
    each("code_lens", |case, client| {
        let answer = about(case, client, "textDocument/codeLens", &json!({}));
        shown(answer, |answer| {
            let lenses = answer.as_array().unwrap().iter();
            let resolved = lenses.map(|lens| match lens.get("command") {
                Some(_) => lens.clone(),
                None => client.request("codeLens/resolve", lens.clone()).unwrap(),
            });
            show::lenses(case, &resolved.collect::<Vec<_>>())
        })
    });
}

#[test]
fn code_action() {
    each("code_action", |case, client| {
        let range = case.selection().unwrap_or_else(|| {
            let position = case.position();
            json!({"start": position, "end": position})
        });
        let mut context = json!({"diagnostics": []});
        if let Some(only) = case.option("only") {
            context["only"] = json!([only]);
        }
        let more = json!({"range": range, "context": context});
        let answer = about(case, client, "textDocument/codeAction", &more);
        shown(answer, |answer| show::actions(case, client, answer))
    });
}

#[test]
fn formatting() {
    each("formatting", |case, client| {
        let options = json!({"tabSize": 2, "insertSpaces": true});
        let answer = match (case.option("type"), case.selection()) {
            (Some(_), _) => {
                let more = json!({"ch": "\n", "options": options});
                at(case, client, "textDocument/onTypeFormatting", &more)
            }
            (None, Some(range)) => {
                let more = json!({"range": range, "options": options});
                about(case, client, "textDocument/rangeFormatting", &more)
            }
            (None, None) => {
                let more = json!({ "options": options });
                about(case, client, "textDocument/formatting", &more)
            }
        };
        shown(answer, |answer| show::text_edits(case, answer))
    });
}

#[test]
fn will_rename_files() {
    each("will_rename_files", |case, client| {
        let (old, new) = case.option("file").unwrap().split_once(" -> ").unwrap();
        let files = json!([{"oldUri": client.uri(old), "newUri": client.uri(new)}]);
        let answer = client.request("workspace/willRenameFiles", json!({ "files": files }));
        shown(answer, |answer| show::edit(case, client, answer))
    });
}

#[test]
fn there_are_many_cases() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let count: usize = std::fs::read_dir(cases)
        .unwrap()
        .map(|folder| folder.unwrap().path())
        .filter(|folder| folder.is_dir())
        .map(|folder| {
            let files = std::fs::read_dir(folder).unwrap();
            files
                .filter(|file| {
                    file.as_ref()
                        .unwrap()
                        .path()
                        .extension()
                        .is_some_and(|kind| kind == "bt")
                })
                .count()
        })
        .sum();
    assert!(count >= 250, "{count}");
}
