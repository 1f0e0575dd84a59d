//! Answers to operations as text: classes, actors, sessions, tests. Changes are in `answers/changes.rs`.

pub(crate) mod browse;
pub(crate) mod changes;
pub(crate) mod status;

use beamtalk_wire::answers::{
    Actor, BindingsAnswer, Conflict, EvalAnswer, Finding, FindingsAnswer, LoadAnswer, ReloadAnswer,
    SessionsAnswer, TestOutcome, TestResults,
};

use crate::paint::Palette;
use crate::render::{self, Rendered};

/// `1 file`, `2 files`; `class` becomes `classes`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let ending = match number {
        1 => "",
        _ if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{} {noun}{ending}", grouped(number))
}

/// `99950` as `99,950`.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

pub(crate) fn bindings(answer: &BindingsAnswer, palette: Palette) -> Rendered {
    let mut rendered = Rendered::default();
    for (name, value) in &answer.bindings {
        let shown = value.text.as_deref().unwrap_or_default();
        let class = value.class.as_deref().unwrap_or_default();
        rendered.line(&format!("{name} = {}", palette.value(shown, class)));
    }
    if answer.bindings.is_empty() {
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

pub(crate) fn actors(actors: &[Actor]) -> Rendered {
    let line = |actor: &Actor| {
        let name = actor
            .name
            .as_ref()
            .map_or_else(String::new, |name| format!(" {name}"));
        format!("  - {} ({}){name}", actor.class, pid(&actor.pid))
    };
    let lines: Vec<String> = actors.iter().map(line).collect();
    if lines.is_empty() {
        return Rendered::out("No actors");
    }
    Rendered::out(lines.join("\n"))
}

pub(crate) fn sessions(answer: &SessionsAnswer, own: &str) -> Rendered {
    let mut rendered = Rendered::default();
    for session in &answer.sessions {
        let mark = if session.id == own { "▸" } else { " " };
        let busy = if session.busy { "  busy" } else { "" };
        rendered.line(&format!(
            "{mark} {}  {}  {}{busy}",
            session.id, session.client, session.peer
        ));
    }
    rendered
}

/// The answers of `load-file`, `load-project` and `load-tests`.
pub(crate) fn loaded(answer: &LoadAnswer) -> Rendered {
    let mut rendered = Rendered::default();
    let changed = answer.disk_changed.as_ref().map_or(0, Vec::len) as u64;
    if changed > 0 {
        rendered.complaint(&crate::greeting::disk_changed(changed));
    }
    match &answer.summary {
        Some(summary) => rendered.line(summary),
        None if answer.classes.is_empty() => rendered.line("Nothing loaded"),
        None => rendered.line(&format!("Loaded {}", answer.classes.join(", "))),
    }
    for error in &answer.errors {
        rendered.complaint(&format!("Error: {}", render::load_error(error)));
    }
    changes::conflict_lines(&mut rendered, conflicts(answer.conflicts.as_ref()));
    rendered
}

fn conflicts(conflicts: Option<&Vec<Conflict>>) -> &[Conflict] {
    conflicts.map_or(&[], Vec::as_slice)
}

pub(crate) fn reloaded(answer: &ReloadAnswer) -> Rendered {
    let mut rendered = Rendered::default();
    let actors = if answer.affected_actors > 0 {
        format!(
            " ({} now run the new code)",
            count(answer.affected_actors, "actor")
        )
    } else {
        String::new()
    };
    rendered.line(&format!("Reloaded {}{actors}", answer.classes.join(", ")));
    for failure in &answer.migration_failures {
        rendered.complaint(&format!(
            "⚠ {} keeps its old code: {}",
            pid(&failure.actor),
            failure.reason
        ));
    }
    changes::conflict_lines(&mut rendered, conflicts(answer.conflicts.as_ref()));
    findings(&mut rendered, &answer.findings);
    rendered
}

/// Findings of a check after a change.
pub(crate) fn findings(rendered: &mut Rendered, findings: &[Finding]) {
    for finding in findings {
        rendered.complaint(&format!("⚠ {}", render::finding(finding.diagnostic())));
    }
}

pub(crate) fn rechecked(answer: &FindingsAnswer) -> Rendered {
    let mut rendered = Rendered::default();
    rendered.line(&format!(
        "Checked {}, {}",
        count(answer.checked, "class"),
        count(answer.findings.len() as u64, "finding")
    ));
    findings(&mut rendered, &answer.findings);
    rendered
}

/// The value of each statement of `:trace`.
pub(crate) fn steps(answer: &EvalAnswer, palette: Palette) -> Rendered {
    let mut rendered = Rendered::default();
    for step in answer.steps.iter().flatten() {
        rendered.line(&format!("{} => {}", step.src, palette.value(&step.text, "")));
    }
    rendered
}

/// A run of tests, as `beamtalk test` shows it.
pub(crate) fn tests(results: &TestResults) -> Rendered {
    let mut rendered = Rendered::default();
    let mut classes: Vec<(&str, [u64; 3])> = Vec::new();
    let mut failures = String::new();
    for test in &results.tests {
        if classes.last().is_none_or(|(last, _)| *last != test.class) {
            classes.push((&test.class, [0; 3]));
        }
        let Some((_, [total, passed, skipped])) = classes.last_mut() else {
            continue;
        };
        *total += 1;
        match test.status.as_str() {
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
    let mut summary = format!("{}, {} passed", count(results.total, "test"), results.passed);
    if results.failed > 0 {
        summary.push_str(&format!(", {} failed", results.failed));
    }
    rendered.line(&format!("{summary} ({:.1}s)", results.duration));
    rendered
}

fn failed_test(test: &TestOutcome) -> String {
    let mut shown = format!("\nFAIL {} >> {}\n", test.class, test.name);
    if let Some(error) = &test.error {
        for line in error.message.lines() {
            shown.push_str(&format!("  {line}\n"));
        }
        for (label, value) in [("Expected:", &error.expected), ("Actual:  ", &error.actual)] {
            if let Some(value) = value {
                shown.push_str(&format!("  {label} {value}\n"));
            }
        }
    }
    if let Some(file) = &test.file {
        shown.push_str(&format!("  at {file}:{}\n", test.line.unwrap_or(0)));
    }
    for line in test.output.lines() {
        shown.push_str(&format!("  | {line}\n"));
    }
    shown
}

#[cfg(test)]
mod answer_tests;
