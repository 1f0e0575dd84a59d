//! Answers to operations as text: classes, actors, sessions, tests. Changes are in `answers/changes.rs`.

pub(crate) mod changes;

use serde_json::{Map, Value};

use super::paint::Palette;
use super::render::{self, Rendered, list, objects, text};

type Object = Map<String, Value>;

pub(crate) fn number(object: &Object, field: &str) -> u64 {
    match object.get(field) {
        Some(Value::Array(elements)) => elements.len() as u64,
        Some(value) => value.as_u64().unwrap_or(0),
        None => 0,
    }
}

/// `1 file`, `2 files`; `class` becomes `classes`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let ending = match number {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{number} {noun}{ending}")
}

/// Names of a list whose elements are names or objects with one.
pub(crate) fn names(object: &Object, field: &str) -> Vec<String> {
    list(object, field)
        .iter()
        .filter_map(|element| {
            let name = element
                .as_str()
                .or_else(|| element["name"].as_str())
                .or_else(|| element["class"].as_str());
            name.map(str::to_owned)
        })
        .collect()
}

pub(crate) fn bindings(answer: &Object, palette: Palette) -> Rendered {
    let mut rendered = Rendered::default();
    let mut bound: Vec<(&String, &Value)> = answer
        .get("bindings")
        .and_then(Value::as_object)
        .map(|bindings| bindings.iter().collect())
        .unwrap_or_default();
    bound.sort_unstable_by_key(|(name, _)| name.as_str());
    for (name, value) in &bound {
        let shown = value["text"].as_str().unwrap_or_default();
        let class = value["class"].as_str().unwrap_or_default();
        rendered.line(&format!("{name} = {}", palette.value(shown, class)));
    }
    if bound.is_empty() {
        rendered.line("No bindings");
    }
    rendered
}

/// `<0.187.0>`, with or without its brackets as it came.
pub(crate) fn pid(text: &str) -> String {
    if text.starts_with('<') {
        text.to_owned()
    } else {
        format!("<{text}>")
    }
}

/// Actors as the greeting and `:actors` list them.
pub(crate) fn actor_lines(answer: &Object, limit: usize) -> Vec<String> {
    let actors: Vec<&Object> = objects(answer, "actors").collect();
    let mut lines: Vec<String> = actors
        .iter()
        .take(limit)
        .map(|actor| {
            let name = match text(actor, "name") {
                "" => String::new(),
                name => format!(" {name}"),
            };
            format!("  - {} ({}){name}", text(actor, "class"), pid(text(actor, "pid")))
        })
        .collect();
    if actors.len() > limit {
        lines.push(format!("  … {} more", actors.len() - limit));
    }
    lines
}

pub(crate) fn actors(answer: &Object) -> Rendered {
    let lines = actor_lines(answer, usize::MAX);
    if lines.is_empty() {
        return Rendered::out("No actors");
    }
    Rendered::out(lines.join("\n"))
}

pub(crate) fn sessions(answer: &Object, own: &str) -> Rendered {
    let mut rendered = Rendered::default();
    for session in objects(answer, "sessions") {
        let mark = if text(session, "id") == own { "▸" } else { " " };
        let busy = if session.get("busy") == Some(&Value::Bool(true)) {
            "  busy"
        } else {
            ""
        };
        rendered.line(&format!(
            "{mark} {}  {}  {}{busy}",
            text(session, "id"),
            text(session, "client"),
            text(session, "peer"),
        ));
    }
    rendered
}

/// The answers of `load-file`, `load-project` and `load-tests`.
pub(crate) fn loaded(answer: &Object) -> Rendered {
    let mut rendered = Rendered::default();
    render::warnings(&mut rendered, answer);
    let changed = list(answer, "disk_changed").len() as u64;
    if changed > 0 {
        rendered.complaint(&super::greeting::disk_changed(changed));
    }
    let classes = names(answer, "classes");
    match text(answer, "summary") {
        "" if classes.is_empty() => rendered.line("Nothing loaded"),
        "" => rendered.line(&format!("Loaded {}", classes.join(", "))),
        summary => rendered.line(summary),
    }
    for error in objects(answer, "errors") {
        rendered.complaint(&format!("Error: {}", render::finding(error)));
    }
    changes::conflict_lines(&mut rendered, answer);
    rendered
}

pub(crate) fn has_load_errors(answer: &Object) -> bool {
    !list(answer, "errors").is_empty()
}

pub(crate) fn reloaded(answer: &Object) -> Rendered {
    let mut rendered = Rendered::default();
    render::warnings(&mut rendered, answer);
    let affected = number(answer, "affected_actors");
    let actors = if affected > 0 {
        format!(" ({} now run the new code)", count(affected, "actor"))
    } else {
        String::new()
    };
    rendered.line(&format!(
        "Reloaded {}{actors}",
        names(answer, "classes").join(", ")
    ));
    for failure in objects(answer, "migration_failures") {
        rendered.complaint(&format!(
            "⚠ {} keeps its old code: {}",
            pid(text(failure, "actor")),
            text(failure, "reason")
        ));
    }
    changes::conflict_lines(&mut rendered, answer);
    findings(&mut rendered, answer);
    rendered
}

/// Findings of a check after a change.
pub(crate) fn findings(rendered: &mut Rendered, answer: &Object) {
    for finding in objects(answer, "findings") {
        rendered.complaint(&format!("⚠ {}", render::finding(finding)));
    }
}

pub(crate) fn rechecked(answer: &Object) -> Rendered {
    let mut rendered = Rendered::default();
    rendered.line(&format!(
        "Checked {}, {}",
        count(number(answer, "checked"), "class"),
        count(number(answer, "findings"), "finding")
    ));
    findings(&mut rendered, answer);
    rendered
}

/// The value of each statement of `:trace`.
pub(crate) fn steps(answer: &Object, palette: Palette) -> Rendered {
    let mut rendered = Rendered::default();
    for step in objects(answer, "steps") {
        rendered.line(&format!(
            "{} => {}",
            text(step, "src"),
            palette.value(text(step, "text"), text(step, "class"))
        ));
    }
    rendered
}

/// A run of tests, as `beamtalk test` shows it.
pub(crate) fn tests(answer: &Object) -> Rendered {
    let mut rendered = Rendered::default();
    let empty = Object::new();
    let results = answer.get("results").and_then(Value::as_object).unwrap_or(&empty);
    let mut classes: Vec<(&str, [u64; 3])> = Vec::new();
    let mut failures = String::new();
    for test in objects(results, "tests") {
        let class = text(test, "class");
        if classes.last().is_none_or(|(last, _)| *last != class) {
            classes.push((class, [0; 3]));
        }
        let Some((_, [total, passed, skipped])) = classes.last_mut() else {
            continue;
        };
        *total += 1;
        match text(test, "status") {
            "pass" => *passed += 1,
            "skip" => *skipped += 1,
            _ => failures.push_str(&failed_test(test)),
        }
    }
    for (class, [total, passed, skipped]) in classes {
        let failed = total - passed - skipped;
        let mut line = format!("  {class}: {}, {passed} passed", count(total, "test"));
        if failed > 0 {
            line.push_str(&format!(", {failed} failed"));
        }
        if skipped > 0 {
            line.push_str(&format!(", {skipped} skipped"));
        }
        line.push_str(if failed > 0 { " ✗" } else { " ✓" });
        rendered.line(&line);
    }
    rendered.line(&failures);
    let failed = number(results, "failed");
    let mut summary = format!(
        "{}, {} passed",
        count(number(results, "total"), "test"),
        number(results, "passed")
    );
    if failed > 0 {
        summary.push_str(&format!(", {failed} failed"));
    }
    let duration = results.get("duration").and_then(Value::as_f64).unwrap_or(0.0);
    rendered.line(&format!("{summary} ({duration:.1}s)"));
    rendered
}

fn failed_test(test: &Object) -> String {
    let mut shown = format!("\nFAIL {} >> {}\n", text(test, "class"), text(test, "name"));
    let error = &test.get("error").cloned().unwrap_or_default();
    for line in error["message"].as_str().unwrap_or_default().lines() {
        shown.push_str(&format!("  {line}\n"));
    }
    for (label, field) in [("Expected:", "expected"), ("Actual:  ", "actual")] {
        if let Some(value) = error[field].as_str() {
            shown.push_str(&format!("  {label} {value}\n"));
        }
    }
    if !text(test, "file").is_empty() {
        shown.push_str(&format!("  at {}:{}\n", text(test, "file"), number(test, "line")));
    }
    for line in text(test, "output").lines() {
        shown.push_str(&format!("  | {line}\n"));
    }
    shown
}

#[cfg(test)]
mod answer_tests;
