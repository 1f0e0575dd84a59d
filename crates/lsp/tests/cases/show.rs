//! Answers as a person reads them.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::client::Client;
use crate::source::{Case, offset};

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn or_nothing(lines: Vec<String>) -> String {
    if lines.is_empty() {
        "nothing".to_owned()
    } else {
        lines.join("\n")
    }
}

/// `3:5 the text there`.
pub(crate) fn excerpt(case: &Case, path: &str, range: &Value) -> String {
    let source = case.text(path);
    let start = offset(source, &range["start"]);
    let end = offset(source, &range["end"]);
    let place = format!(
        "{}:{}",
        range["start"]["line"].as_u64().unwrap() + 1,
        range["start"]["character"].as_u64().unwrap() + 1
    );
    let found = source.get(start..end).unwrap_or("?").replace('\n', "⏎");
    format!("{place} {found}").trim_end().to_owned()
}

pub(crate) fn locations(case: &Case, client: &Client, answer: &Value) -> String {
    let places = list(answer).map(|place| {
        let path = client.path(text(&place["uri"]));
        // Lines of the library change.
        if path.contains(":/") {
            return path;
        }
        format!("{path}:{}", excerpt(case, &path, &place["range"]))
    });
    or_nothing(places.collect())
}

pub(crate) fn completions(case: &Case, answer: &Value) -> String {
    // Only some: what the library has changes.
    let wanted: Option<Vec<&str>> = case.option("show").map(|words| words.split(' ').collect());
    let mut lines = Vec::new();
    for item in list(&answer["items"]) {
        let label = text(&item["label"]);
        if wanted.as_ref().is_some_and(|wanted| !wanted.contains(&label)) {
            continue;
        }
        let mut line = format!("{label} ({})", item["kind"]);
        for detail in [&item["detail"], &item["labelDetails"]["description"]] {
            if let Some(detail) = detail.as_str() {
                line.push_str(&format!(" — {detail}"));
            }
        }
        lines.push(line);
    }
    or_nothing(lines)
}

pub(crate) fn signatures(answer: &Value) -> String {
    let active = answer["activeParameter"].as_u64().unwrap();
    let lines = list(&answer["signatures"]).map(|signature| {
        let parameters: Vec<&str> = list(&signature["parameters"])
            .map(|one| text(&one["label"]))
            .collect();
        let doc = text(&signature["documentation"]["value"])
            .lines()
            .next()
            .unwrap_or_default();
        let next = parameters.get(active as usize).copied().unwrap_or("none");
        format!("{} | next: {next} | {doc}", text(&signature["label"]))
    });
    or_nothing(lines.collect())
}

pub(crate) fn diagnostics(case: &Case, answer: &Value) -> String {
    let lines = list(&answer["items"]).map(|item| {
        let message = text(&item["message"]).replace('\n', " / ");
        let place = excerpt(case, &case.marked, &item["range"]);
        format!("{} {} {message} @ {place}", item["severity"], text(&item["code"]))
    });
    or_nothing(lines.collect())
}

pub(crate) fn symbols(answer: &Value, depth: usize) -> String {
    let mut lines = Vec::new();
    for symbol in list(answer) {
        let detail = symbol["detail"]
            .as_str()
            .map_or_else(String::new, |detail| format!(" — {detail}"));
        let indent = "  ".repeat(depth);
        lines.push(format!(
            "{indent}{} ({}){detail}",
            text(&symbol["name"]),
            symbol["kind"]
        ));
        if list(&symbol["children"]).next().is_some() {
            lines.push(symbols(&symbol["children"], depth + 1));
        }
    }
    or_nothing(lines)
}

pub(crate) fn found_symbols(case: &Case, client: &Client, answer: &Value) -> String {
    let lines = list(answer).filter_map(|symbol| {
        let path = client.path(text(&symbol["location"]["uri"]));
        let is_library = path.starts_with("beamtalk-stdlib:");
        if is_library && case.option("library") != Some("yes") {
            return None;
        }
        let container = symbol["containerName"]
            .as_str()
            .map_or_else(String::new, |name| format!(" in {name}"));
        Some(format!(
            "{}{container} ({}) {path}",
            text(&symbol["name"]),
            symbol["kind"]
        ))
    });
    or_nothing(lines.collect())
}

pub(crate) fn name(item: &Value) -> String {
    let detail = item["detail"]
        .as_str()
        .map_or_else(String::new, |detail| format!(" — {detail}"));
    format!("{}{detail}", text(&item["name"]))
}

pub(crate) fn names(items: &Value) -> String {
    let names: Vec<String> = list(items).map(name).collect();
    names.join(", ")
}

pub(crate) fn calls(calls: &Value, end: &str) -> String {
    let names: Vec<String> = list(calls)
        .map(|call| format!("{} ×{}", name(&call[end]), list(&call["fromRanges"]).count()))
        .collect();
    names.join(", ")
}

/// The changes of each file: what is there, what comes.
pub(crate) fn edit(case: &Case, client: &Client, answer: &Value) -> String {
    let mut files: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    let mut operations = Vec::new();
    for (uri, edits) in answer["changes"].as_object().into_iter().flatten() {
        files.insert(client.path(uri), list(edits).cloned().collect());
    }
    for change in list(&answer["documentChanges"]) {
        if let Some(kind) = change["kind"].as_str() {
            let (old, new) = (text(&change["oldUri"]), text(&change["newUri"]));
            operations.push(format!("{kind} {} -> {}", client.path(old), client.path(new)));
        } else {
            let uri = text(&change["textDocument"]["uri"]);
            files.insert(client.path(uri), list(&change["edits"]).cloned().collect());
        }
    }
    let mut out = Vec::new();
    for (path, edits) in files {
        out.push(format!("{path}:"));
        let before = if path == "beamtalk.toml" && case.text(&path).is_empty() {
            "[package]\nname = \"demo\"\nversion = \"0.1.0\"\n"
        } else {
            case.text(&path)
        };
        out.push(changed(before, &edits));
    }
    out.extend(operations);
    for annotation in answer["changeAnnotations"].as_object().into_iter().flatten() {
        out.push(format!("? {}", text(&annotation.1["label"])));
    }
    or_nothing(out)
}

/// The lines that differ; a change that asks ends in `?`.
fn changed(before: &str, edits: &[Value]) -> String {
    let after = apply(before, edits);
    let shown = beamtalk_syntax::diff::unified(["", ""], before, &after);
    let asks: Vec<u64> = edits
        .iter()
        .filter(|edit| edit.get("annotationId").is_some())
        .map(|edit| edit["range"]["start"]["line"].as_u64().unwrap() + 1)
        .collect();
    let mut lines: Vec<String> = shown
        .lines()
        .filter(|line| {
            let is_head = line.starts_with("---") || line.starts_with("+++") || line.starts_with("@@");
            !is_head && line.starts_with(['+', '-'])
        })
        .map(str::to_owned)
        .collect();
    if !asks.is_empty() {
        lines.push(format!("asks about lines {asks:?}"));
    }
    lines.join("\n")
}

pub(crate) fn apply(before: &str, edits: &[Value]) -> String {
    let mut places: Vec<(usize, usize, &str)> = edits
        .iter()
        .map(|edit| {
            let range = &edit["range"];
            let start = offset(before, &range["start"]);
            (start, offset(before, &range["end"]), text(&edit["newText"]))
        })
        .collect();
    places.sort_by_key(|(start, end, _)| (*start, *end));
    let mut out = String::new();
    let mut done = 0;
    for (start, end, new) in places {
        assert!(start >= done, "edits overlap");
        out.push_str(&before[done..start]);
        out.push_str(new);
        done = end;
    }
    out.push_str(&before[done..]);
    out
}

pub(crate) fn text_edits(case: &Case, answer: &Value) -> String {
    let edits: Vec<Value> = list(answer).cloned().collect();
    if edits.is_empty() {
        return "nothing".to_owned();
    }
    // White space at the end of a line is meant.
    let text = apply(case.text(&case.marked), &edits);
    let lines = text.lines().map(|line| {
        let kept = line.trim_end();
        format!(
            "{kept}{}",
            "·".repeat(line.chars().count() - kept.chars().count())
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

pub(crate) fn actions(case: &Case, client: &Client, answer: &Value) -> String {
    let lines = list(answer).map(|action| {
        let edit = edit(case, client, &action["edit"]);
        format!("# {} ({})\n{edit}", text(&action["title"]), text(&action["kind"]))
    });
    or_nothing(lines.collect())
}

pub(crate) fn tokens(case: &Case, answer: &Value) -> String {
    const TYPES: &[&str] = &[
        "namespace",
        "class",
        "typeParameter",
        "parameter",
        "variable",
        "property",
        "method",
        "keyword",
        "comment",
        "string",
        "number",
        "operator",
    ];
    const MODIFIERS: &[&str] = &["declaration", "modification", "static", "defaultLibrary"];
    let numbers: Vec<u64> = list(&answer["data"])
        .map(|number| number.as_u64().unwrap())
        .collect();
    let source = case.text(&case.marked);
    let (mut line, mut column) = (0, 0);
    let mut lines = Vec::new();
    for token in numbers.chunks(5) {
        if token[0] > 0 {
            column = 0;
        }
        line += token[0];
        column += token[1];
        let start = serde_json::json!({"line": line, "character": column});
        let end = serde_json::json!({"line": line, "character": column + token[2]});
        let piece = &source[offset(source, &start)..offset(source, &end)];
        let modifiers: Vec<&str> = MODIFIERS
            .iter()
            .enumerate()
            .filter(|(bit, _)| token[4] & (1 << bit) != 0)
            .map(|(_, name)| *name)
            .collect();
        let more = if modifiers.is_empty() {
            String::new()
        } else {
            format!(" {}", modifiers.join(" "))
        };
        lines.push(format!(
            "{}: {piece} {}{more}",
            line + 1,
            TYPES[token[3] as usize]
        ));
    }
    or_nothing(lines)
}

pub(crate) fn folds(case: &Case, answer: &Value) -> String {
    let source: Vec<&str> = case.text(&case.marked).lines().collect();
    let lines = list(answer).map(|fold| {
        let (start, end) = (
            fold["startLine"].as_u64().unwrap(),
            fold["endLine"].as_u64().unwrap(),
        );
        let kind = fold["kind"]
            .as_str()
            .map_or_else(String::new, |kind| format!(" {kind}"));
        format!(
            "{}-{}{kind} {}",
            start + 1,
            end + 1,
            source[start as usize].trim()
        )
    });
    or_nothing(lines.collect())
}

pub(crate) fn selections(case: &Case, innermost: &Value) -> String {
    let mut lines = Vec::new();
    let mut next = innermost;
    while next.is_object() {
        lines.push(excerpt(case, &case.marked, &next["range"]));
        next = &next["parent"];
    }
    or_nothing(lines)
}

pub(crate) fn highlights(case: &Case, answer: &Value) -> String {
    let lines = list(answer).map(|place| {
        let kind = match place["kind"].as_u64() {
            Some(2) => "read",
            Some(3) => "write",
            _ => "text",
        };
        format!("{} {kind}", excerpt(case, &case.marked, &place["range"]))
    });
    or_nothing(lines.collect())
}

pub(crate) fn hints(case: &Case, answer: &Value) -> String {
    let lines = list(answer).map(|hint| {
        let at = case.offset(&case.marked, &hint["position"]);
        let before = &case.text(&case.marked)[..at];
        let word = before
            .rsplit(|c: char| !c.is_alphanumeric())
            .next()
            .unwrap_or_default();
        let line = hint["position"]["line"].as_u64().unwrap() + 1;
        let after = case.text(&case.marked)[at..].chars().next().unwrap_or(' ');
        // A name of a parameter stands before its argument.
        if hint["kind"] == 2 {
            return format!("{line}: {} {after}", text(&hint["label"]));
        }
        format!("{line}: {word} {}", text(&hint["label"]))
    });
    or_nothing(lines.collect())
}

pub(crate) fn lenses(case: &Case, lenses: &[Value]) -> String {
    let lines = lenses.iter().map(|lens| {
        let place = excerpt(case, &case.marked, &lens["range"]);
        format!("{place} [{}]", text(&lens["command"]["title"]))
    });
    or_nothing(lines.collect())
}
