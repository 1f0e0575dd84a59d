//! The results of a run as text, JSON and JUnit XML.

use std::fmt::Write as _;
use std::time::Duration;

use serde_json::json;

use super::units::{Outcome, Problem, Status, Unit};

/// A unit with what came of its tests, in file order.
pub struct Results<'a> {
    pub units: Vec<(&'a Unit, Vec<Outcome>)>,
    pub files: usize,
    pub duration: Duration,
    pub seed: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub total: usize,
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Totals {
    fn of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Self {
        outcomes.into_iter().fold(Self::default(), |mut totals, outcome| {
            totals.total += 1;
            match outcome.status {
                Status::Pass => totals.passed += 1,
                Status::Fail | Status::Error => totals.failed += 1,
                Status::Skip => totals.skipped += 1,
            }
            totals
        })
    }

    /// `5 tests, 4 passed, 1 failed`.
    fn line(self) -> String {
        let plural = if self.total == 1 { "" } else { "s" };
        let mut line = format!("{} test{plural}, {} passed", self.total, self.passed);
        // Writing to a String cannot fail.
        if self.skipped > 0 {
            let _ = write!(line, ", {} skipped", self.skipped);
        }
        if self.failed > 0 {
            let _ = write!(line, ", {} failed", self.failed);
        }
        line
    }
}

impl Results<'_> {
    pub fn totals(&self) -> Totals {
        Totals::of(self.units.iter().flat_map(|(_, outcomes)| outcomes))
    }

    /// What people read. Quiet runs show only failures and the last line.
    pub fn text(&self, is_quiet: bool) -> String {
        let mut out = String::new();
        let mut failures = String::new();
        for (unit, outcomes) in &self.units {
            let totals = Totals::of(outcomes);
            if totals.total == 0 {
                continue;
            }
            if !is_quiet {
                let mark = if totals.failed == 0 { "✓" } else { "✗" };
                let _ = writeln!(out, "  {}: {} {mark}", unit.name, totals.line());
            }
            for outcome in outcomes.iter().filter(|outcome| outcome.status.is_failure()) {
                failures.push('\n');
                failures.push_str(&failure(unit, outcome));
            }
        }
        out.push_str(&failures);
        let plural = if self.files == 1 { "" } else { "s" };
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = write!(
            out,
            "{} file{plural}, {} ({:.1}s)",
            self.files,
            self.totals().line(),
            self.duration.as_secs_f64()
        );
        out
    }

    pub fn json(&self) -> serde_json::Value {
        let totals = self.totals();
        let tests: Vec<serde_json::Value> = self
            .units
            .iter()
            .flat_map(|(unit, outcomes)| outcomes.iter().map(move |outcome| test_json(unit, outcome)))
            .collect();
        json!({
            "total": totals.total,
            "passed": totals.passed,
            "failed": totals.failed,
            "skipped": totals.skipped,
            "duration": seconds(self.duration),
            "seed": self.seed,
            "tests": tests,
        })
    }

    pub fn junit(&self) -> String {
        let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
        for (unit, outcomes) in &self.units {
            if outcomes.is_empty() {
                continue;
            }
            let count = |status| outcomes.iter().filter(|outcome| outcome.status == status).count();
            let time: f64 = outcomes.iter().map(|outcome| seconds(outcome.duration)).sum();
            let _ = writeln!(
                xml,
                "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{time:.3}\">",
                escape(&unit.name),
                outcomes.len(),
                count(Status::Fail),
                count(Status::Error),
                count(Status::Skip),
            );
            for outcome in outcomes {
                xml.push_str(&junit_case(unit, outcome));
            }
            xml.push_str("  </testsuite>\n");
        }
        xml.push_str("</testsuites>\n");
        xml
    }
}

fn failure(unit: &Unit, outcome: &Outcome) -> String {
    let mut text = String::new();
    let name = if outcome.name.is_empty() {
        String::new()
    } else {
        format!(" >> {}", outcome.name)
    };
    let _ = writeln!(text, "FAIL {}{name}", unit.name);
    if let Some(problem) = &outcome.error {
        for line in headline(problem).lines() {
            let _ = writeln!(text, "  {line}");
        }
        for (label, value) in [("Expected", &problem.expected), ("Actual", &problem.actual)] {
            if let Some(value) = value {
                let value = value.replace('\n', "\n            ");
                let _ = writeln!(text, "  {:<9} {value}", format!("{label}:"));
            }
        }
        if let Some(hint) = &problem.hint {
            let _ = writeln!(text, "  Hint: {hint}");
        }
        // A single frame is the place itself.
        if problem.frames.len() > 1 {
            for frame in problem.frames.iter().take(10) {
                let _ = writeln!(text, "  at {frame}");
            }
        }
        let _ = writeln!(text, "  at {}:{}", unit.file, outcome.line);
    }
    if !outcome.output.is_empty() {
        let _ = writeln!(text, "  Output:");
        for line in outcome.output.lines() {
            let _ = writeln!(text, "    {line}");
        }
    }
    text
}

/// What failed; expectation and value have lines of their own.
fn headline(problem: &Problem) -> String {
    match (&problem.assertion, &problem.expected, &problem.actual) {
        (Some(assertion), Some(expected), Some(actual)) => {
            let told = format!("Expected {expected}, got {actual}");
            let rest = problem.message.strip_prefix(&told).unwrap_or(&problem.message);
            format!("{assertion} failed\n{}", rest.trim_start_matches('\n'))
        }
        _ => problem.message.clone(),
    }
}

fn test_json(unit: &Unit, outcome: &Outcome) -> serde_json::Value {
    let error = outcome.error.as_ref().map(|problem: &Problem| {
        json!({
            "kind": problem.kind,
            "message": problem.message,
            "expected": problem.expected,
            "actual": problem.actual,
            "hint": problem.hint,
            "stack": problem.frames,
        })
    });
    json!({
        "class": unit.name,
        "name": outcome.name,
        "status": outcome.status.name(),
        "duration": seconds(outcome.duration),
        "file": unit.file,
        "line": outcome.line,
        "error": error,
        "output": outcome.output,
    })
}

fn junit_case(unit: &Unit, outcome: &Outcome) -> String {
    let name = if outcome.name.is_empty() {
        &unit.name
    } else {
        &outcome.name
    };
    let mut xml = format!(
        "    <testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\" file=\"{}\" line=\"{}\"",
        escape(&unit.name),
        escape(name),
        seconds(outcome.duration),
        escape(&unit.file),
        outcome.line,
    );
    let problem = outcome.error.clone().unwrap_or_default();
    let element = match outcome.status {
        Status::Pass => {
            xml.push_str("/>\n");
            return xml;
        }
        Status::Skip => format!("<skipped message=\"{}\"/>", escape(&problem.message)),
        Status::Fail => problem_element("failure", &problem),
        Status::Error => problem_element("error", &problem),
    };
    let _ = writeln!(xml, ">\n      {element}");
    if !outcome.output.is_empty() {
        let _ = writeln!(xml, "      <system-out>{}</system-out>", escape(&outcome.output));
    }
    xml.push_str("    </testcase>\n");
    xml
}

fn problem_element(element: &str, problem: &Problem) -> String {
    format!(
        "<{element} type=\"{}\" message=\"{}\">{}</{element}>",
        escape(&problem.kind),
        escape(&problem.message),
        escape(&problem.frames.join("\n")),
    )
}

/// Text for XML; characters XML cannot hold become a replacement character.
fn escape(text: &str) -> String {
    text.chars()
        .fold(String::with_capacity(text.len()), |mut out, c| {
            match c {
                '<' => out.push_str("&lt;"),
                '>' => out.push_str("&gt;"),
                '&' => out.push_str("&amp;"),
                '"' => out.push_str("&quot;"),
                '\n' => out.push_str("&#10;"),
                '\t' | '\r' => out.push(' '),
                c if c < ' ' || c == '\u{fffe}' || c == '\u{ffff}' => out.push('\u{fffd}'),
                c => out.push(c),
            }
            out
        })
}

/// Seconds with millisecond digits.
fn seconds(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1_000.0).round() / 1_000.0
}

#[cfg(test)]
mod tests;
