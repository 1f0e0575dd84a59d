//! The answer to an evaluation as the text of both streams.

use std::path::Path;

use beamtalk_wire::{ErrorBody, Frame};
use serde_json::{Map, Value};

use super::paint::Palette;

/// Lines for standard output and standard error, each ending in a line end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rendered {
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Rendered {
    pub(crate) fn out(text: impl Into<String>) -> Self {
        let mut rendered = Self::default();
        rendered.line(&text.into());
        rendered
    }

    /// Add a line to standard output; nothing for an empty text.
    pub(crate) fn line(&mut self, text: &str) {
        push_line(&mut self.out, text);
    }

    /// Add a line to standard error.
    pub(crate) fn complaint(&mut self, text: &str) {
        push_line(&mut self.err, text);
    }
}

fn push_line(stream: &mut String, text: &str) {
    if !text.is_empty() {
        stream.push_str(text);
        if !text.ends_with('\n') {
            stream.push('\n');
        }
    }
}

pub(crate) fn text<'a>(object: &'a Map<String, Value>, field: &str) -> &'a str {
    object.get(field).and_then(Value::as_str).unwrap_or_default()
}

pub(crate) fn list<'a>(object: &'a Map<String, Value>, field: &str) -> &'a [Value] {
    object
        .get(field)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// The elements of a list that are objects.
pub(crate) fn objects<'a>(
    object: &'a Map<String, Value>,
    field: &str,
) -> impl Iterator<Item = &'a Map<String, Value>> {
    list(object, field).iter().filter_map(Value::as_object)
}

/// The error of an answer, if it has one.
pub(crate) fn error_of(message: &Map<String, Value>) -> Option<ErrorBody> {
    let error = message.get("error").filter(|error| !error.is_null())?;
    Some(serde_json::from_value(error.clone()).unwrap_or_else(|_| {
        let message = error["message"].as_str();
        ErrorBody::new(
            error["kind"].as_str().unwrap_or("internal_error"),
            message.unwrap_or("the workspace sent an error that cannot be read"),
        )
    }))
}

/// The answer to an `eval` that went well.
pub(crate) fn evaluation(message: &Map<String, Value>, palette: Palette) -> Rendered {
    let mut rendered = Rendered::default();
    warnings(&mut rendered, message);
    let printed = text(message, "text");
    let mut last = String::new();
    for entry in objects(message, "entries").filter(|entry| !text(entry, "selector").is_empty()) {
        last = method_name(entry);
        rendered.line(&format!(
            "{} {}",
            palette.code(&last),
            palette.aside(&note(entry))
        ));
    }
    if printed != last {
        rendered.line(&palette.value(printed, text(message, "class")));
    }
    rendered
}

/// Warnings of an answer, `⚠ message` each.
pub(crate) fn warnings(rendered: &mut Rendered, message: &Map<String, Value>) {
    for warning in list(message, "warnings") {
        let words = warning.as_str().or_else(|| warning["message"].as_str());
        if let Some(words) = words {
            rendered.complaint(&format!("⚠ {words}"));
        }
    }
}

/// `Lamp>>isOn`, `Lamp class>>make`.
pub(crate) fn method_name(entry: &Map<String, Value>) -> String {
    let side = if text(entry, "side") == "class" {
        " class"
    } else {
        ""
    };
    format!("{}{side}>>{}", text(entry, "class"), text(entry, "selector"))
}

/// What becomes of a change at the next flush.
pub(crate) fn note(entry: &Map<String, Value>) -> String {
    let file = text(entry, "source_file");
    match (text(entry, "state"), text(entry, "settled")) {
        ("settled", "") => return "(settled)".to_owned(),
        ("settled", how) => return format!("({how})"),
        ("waiting", _) => {
            return format!("(waiting, of {} at {})", text(entry, "author"), text(entry, "ts"));
        }
        _ => {}
    }
    if entry.get("flushable") == Some(&Value::Bool(true)) && !file.is_empty() {
        if text(entry, "kind") == "remove-class" {
            return format!("(pending, :flush-destructive deletes {file})");
        }
        return format!("(pending, :flush writes {file})");
    }
    match text(entry, "not_flushable_reason") {
        "stdlib" => "(standard library, not flushable)".to_owned(),
        reason => match reason.strip_prefix("dependency:") {
            Some(path) => format!("(dependency {path}, not flushable)"),
            None if text(entry, "intent") == "ephemeral" => "(a try, not flushable)".to_owned(),
            None => "(no source file, not flushable)".to_owned(),
        },
    }
}

/// Stack lines that are shown at once; `:error` shows all.
const SHOWN_FRAMES: usize = 10;

/// A failure in short: message, line, hint, the nearest frames.
pub(crate) fn failure(error: &ErrorBody, input: &str, palette: Palette) -> String {
    if error.kind == "interrupted" {
        return "Interrupted\n".to_owned();
    }
    let mut shown = String::new();
    let has_lines = input.trim_end().contains('\n');
    let faults: Vec<&Map<String, Value>> = error
        .diagnostics
        .iter()
        .filter_map(Value::as_object)
        .filter(|diagnostic| text(diagnostic, "severity") == "error")
        .collect();
    if faults.is_empty() {
        push_line(&mut shown, &palette.error(&format!("Error: {}", error.message)));
        if let Some(location) = &error.location
            && has_lines
            // A file of the project has lines of its own.
            && Path::new(&location.file).extension().is_none()
        {
            push_line(&mut shown, &format!("Line: {}", location.line));
        }
        if let Some(hint) = &error.hint {
            push_line(&mut shown, &format!("Hint: {hint}"));
        }
    }
    for fault in faults {
        push_line(
            &mut shown,
            &palette.error(&format!("Error: {}", text(fault, "message"))),
        );
        if let Some(line) = fault.get("line").and_then(Value::as_u64).filter(|_| has_lines) {
            push_line(&mut shown, &format!("Line: {line}"));
        }
        if !text(fault, "hint").is_empty() {
            push_line(&mut shown, &format!("Hint: {}", text(fault, "hint")));
        }
    }
    for frame in error.stack.iter().take(SHOWN_FRAMES) {
        push_line(&mut shown, &stack_line(frame));
    }
    shown
}

/// Everything that is known about a failure.
pub(crate) fn full_failure(error: &ErrorBody, palette: Palette) -> String {
    let mut shown = String::new();
    push_line(&mut shown, &palette.error(&format!("Error: {}", error.message)));
    push_line(&mut shown, &format!("Kind: {}", error.kind));
    if let Some(class) = &error.class {
        let selector = error.selector.as_deref().map(|selector| format!(">>{selector}"));
        push_line(
            &mut shown,
            &format!("Where: {class}{}", selector.unwrap_or_default()),
        );
    }
    if let Some(location) = &error.location {
        let column = location.column.map(|column| format!(":{column}"));
        push_line(
            &mut shown,
            &format!(
                "Place: {}:{}{}",
                location.file,
                location.line,
                column.unwrap_or_default()
            ),
        );
    }
    if let Some(hint) = &error.hint {
        push_line(&mut shown, &format!("Hint: {hint}"));
    }
    for diagnostic in error.diagnostics.iter().filter_map(Value::as_object) {
        push_line(&mut shown, &finding(diagnostic));
    }
    for frame in &error.stack {
        push_line(&mut shown, &stack_line(frame));
    }
    for (key, value) in &error.details {
        let value = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        push_line(&mut shown, &format!("{key}: {value}"));
    }
    shown
}

/// A diagnostic in one line, with its place and hint.
pub(crate) fn finding(diagnostic: &Map<String, Value>) -> String {
    let file = match text(diagnostic, "file") {
        "" => text(diagnostic, "path"),
        file => file,
    };
    let line = diagnostic.get("line").and_then(Value::as_u64);
    let column = diagnostic.get("column").and_then(Value::as_u64);
    let mut shown = String::new();
    if !file.is_empty() {
        shown.push_str(file);
        for number in [line, column].into_iter().flatten() {
            shown.push_str(&format!(":{number}"));
        }
        shown.push_str(": ");
    }
    for field in ["severity", "code"] {
        let word = text(diagnostic, field);
        if !word.is_empty() {
            shown.push_str(word);
            shown.push(' ');
        }
    }
    shown.push_str(text(diagnostic, "message"));
    if !text(diagnostic, "hint").is_empty() {
        shown.push_str(&format!("\n  Hint: {}", text(diagnostic, "hint")));
    }
    shown
}

fn stack_line(frame: &Frame) -> String {
    let class = frame.class.as_deref().unwrap_or("?");
    let selector = frame.selector.as_deref().unwrap_or("?");
    let place = match (&frame.file, frame.line) {
        (Some(file), Some(line)) => format!(" ({file}:{line})"),
        (Some(file), None) => format!(" ({file})"),
        (None, _) => String::new(),
    };
    match &frame.class {
        Some(_) => format!("  at {class}>>{selector}{place}"),
        None => format!("  at {selector}{place}"),
    }
}

#[cfg(test)]
mod tests;
