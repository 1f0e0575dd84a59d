//! The answer to an evaluation as the text of both streams.

use std::path::Path;

use beamtalk_wire::answers::{Diagnostic, EvalAnswer, LoadError, Severity, Warning};
use beamtalk_wire::{ChangeKind, Entry, EntryView, ErrorBody, ErrorKind, Frame, Intent, State};

use crate::paint::Palette;

mod excerpt;

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

    /// What comes after this.
    pub(crate) fn and(mut self, next: &Self) -> Self {
        self.out.push_str(&next.out);
        self.err.push_str(&next.err);
        self
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

/// The answer to an `eval` that went well.
pub(crate) fn evaluation(answer: &EvalAnswer, palette: Palette) -> Rendered {
    let mut rendered = Rendered::default();
    let mut last = String::new();
    let entries = answer.entries.iter().flatten().map(|new| &new.entry);
    for entry in entries.filter(|entry| entry.selector.is_some()) {
        last = entry.title();
        rendered.line(&format!(
            "{} {}",
            palette.code(&last),
            palette.aside(&note(entry))
        ));
    }
    if answer.text != last {
        let class = answer.class.as_deref().unwrap_or_default();
        rendered.line(&palette.value(&answer.text, class));
    }
    rendered
}

/// Warnings of an answer, `⚠ message` each.
pub(crate) fn warnings(warnings: &[Warning]) -> Rendered {
    let mut rendered = Rendered::default();
    for warning in warnings {
        rendered.complaint(&format!("⚠ {}", warning.message()));
    }
    rendered
}

/// What becomes of a change at the next flush.
pub(crate) fn note(entry: &Entry) -> String {
    note_of(entry, None)
}

/// The same for an entry with what is known about it.
pub(crate) fn view_note(view: &EntryView) -> String {
    note_of(&view.entry, view.deletes_file)
}

fn note_of(entry: &Entry, deletes_file: Option<bool>) -> String {
    match (entry.state, entry.settled) {
        (State::Settled, None) => return "(settled)".to_owned(),
        (State::Settled, Some(how)) => return format!("({})", how.name()),
        (State::Waiting, _) => return format!("(waiting, of {} at {})", entry.author, entry.ts),
        (State::Pending, _) => {}
    }
    if entry.intent == Intent::Ephemeral {
        return "(a try, not flushable)".to_owned();
    }
    if let Some(file) = entry.source_file.as_ref().filter(|_| entry.flushable) {
        if entry.kind == ChangeKind::RemoveClass {
            let deed = match deletes_file {
                Some(true) => ":flush-destructive deletes",
                Some(false) => ":flush cuts it out of",
                None => "a flush takes it out of",
            };
            return format!("(pending, {deed} {file})");
        }
        return format!("(pending, :flush writes {file})");
    }
    let reason = entry.not_flushable_reason.as_deref().unwrap_or_default();
    match reason.strip_prefix("dependency:") {
        _ if reason == "stdlib" => "(standard library, not flushable)".to_owned(),
        Some(path) => format!("(dependency {path}, not flushable)"),
        None => "(no source file, not flushable)".to_owned(),
    }
}

/// Stack lines that are shown at once; `:error` shows all.
const SHOWN_FRAMES: usize = 10;

/// A failure in short: message, line, hint, the nearest frames.
pub fn failure(error: &ErrorBody, input: &str, palette: Palette) -> String {
    if error.kind == ErrorKind::Interrupted {
        return "Interrupted\n".to_owned();
    }
    let mut shown = String::new();
    let has_lines = input.trim_end().contains('\n');
    let is_error = |found: &&Diagnostic| found.severity == Severity::Error;
    let faults: Vec<&Diagnostic> = error.diagnostics.iter().filter(is_error).collect();
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
        push_line(&mut shown, &palette.error(&format!("Error: {}", fault.message)));
        let is_typed = fault
            .file
            .as_deref()
            .is_none_or(|file| Path::new(file).extension().is_none());
        if let Some(line) = fault.line.filter(|_| has_lines) {
            push_line(&mut shown, &format!("Line: {line}"));
        }
        if let Some(excerpt) = excerpt::excerpt(input, fault).filter(|_| is_typed) {
            push_line(&mut shown, &excerpt);
        }
        if let Some(hint) = &fault.hint {
            push_line(&mut shown, &format!("Hint: {hint}"));
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
    for diagnostic in &error.diagnostics {
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
pub(crate) fn finding(found: &Diagnostic) -> String {
    let place = place(found.file.as_deref(), [found.line, found.column]);
    let code = found
        .code
        .as_ref()
        .map_or_else(String::new, |code| format!("{code} "));
    let severity = found.severity.name();
    with_hint(
        format!("{place}{severity} {code}{}", found.message),
        found.hint.as_deref(),
    )
}

/// A file that was not loaded, in one line.
pub(crate) fn load_error(error: &LoadError) -> String {
    let place = place(error.path.as_deref(), [error.line, None]);
    with_hint(format!("{place}{}", error.message), error.hint.as_deref())
}

fn place(file: Option<&str>, numbers: [Option<u32>; 2]) -> String {
    let Some(file) = file else {
        return String::new();
    };
    let numbers = numbers.into_iter().flatten();
    format!(
        "{file}{}: ",
        numbers.map(|number| format!(":{number}")).collect::<String>()
    )
}

pub(crate) fn with_hint(mut shown: String, hint: Option<&str>) -> String {
    if let Some(hint) = hint {
        shown.push_str(&format!("\n  Hint: {hint}"));
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
