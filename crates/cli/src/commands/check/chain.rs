//! How the types behind a finding came about: the expressions it is made of, and where their variables got their values.

use std::collections::BTreeMap;

use beamtalk_compiler::types::{self, Form, Type, Types};
use beamtalk_project::findings::FileFindings;
use beamtalk_syntax::span::{LineIndex, Span};

use super::Sources;
use crate::terminal::Terminal;

/// Categories of findings that rest on types.
const TYPED: &[&str] = &["dnu", "type", "sendability", "unresolved-ffi", "arity-mismatch"];
/// So many steps are shown for one finding.
const STEPS: usize = 20;
/// A longer expression is cut.
const WIDTH: usize = 48;

/// The chain of each finding of a file that rests on types.
pub(super) fn print(terminal: &mut Terminal, sources: &Sources, file: &FileFindings) -> anyhow::Result<()> {
    let is_typed = |category: &Option<String>| category.as_deref().is_some_and(|it| TYPED.contains(&it));
    let mut found = file
        .findings
        .iter()
        .filter(|it| is_typed(&it.category))
        .peekable();
    let parsed = sources.files.iter().find(|it| it.file.path == file.path.as_str());
    let Some(parsed) = parsed.filter(|_| found.peek().is_some()) else {
        return Ok(());
    };
    let types = types::of_file(&parsed.file, &sources.table);
    let lines = LineIndex::new(&file.text);
    for finding in found {
        let span = Span::new(finding.span.0, finding.span.1);
        let at = lines.position(&file.text, span.start);
        terminal.print(format_args!(
            "{}:{}:{}: how {} came about",
            file.path, at.line, at.column, finding.code
        ))?;
        for (span, of) in steps(&types, &file.text, span) {
            let at = lines.position(&file.text, span.start);
            let shown = shortened(span.text(&file.text));
            terminal.print(format_args!(
                "  {}:{} `{shown}` is {}",
                at.line,
                at.column,
                with_reason(&of)
            ))?;
        }
    }
    Ok(())
}

/// A type as it is written; of something unknown, why it is so.
fn with_reason(of: &Type) -> String {
    match of.form() {
        Form::Dynamic(reason) => format!("Dynamic ({})", reason.text()),
        _ => of.to_string(),
    }
}

/// The expressions around and in a place, and the values of the variables among them, in the order of the text.
fn steps(types: &Types, text: &str, place: Span) -> Vec<(Span, Type)> {
    let mut steps: BTreeMap<Span, Type> = BTreeMap::new();
    let around = types
        .expressions()
        .filter(|(span, _)| span.start <= place.start && place.end <= span.end)
        .min_by_key(|(span, _)| span.end - span.start);
    let mut due: Vec<Span> = vec![around.map_or(place, |(span, _)| span)];
    while let Some(place) = due.pop() {
        let inner = types
            .expressions()
            .filter(|(span, _)| place.start <= span.start && span.end <= place.end);
        for (span, of) in inner {
            if steps.len() >= STEPS {
                return steps.into_iter().collect();
            }
            if steps.insert(span, of.clone()).is_none() {
                due.extend(value(types, text, span));
            }
        }
    }
    steps.into_iter().collect()
}

/// The value that a variable got last above a place where it is read.
fn value(types: &Types, text: &str, read: Span) -> Option<Span> {
    let name = read.text(text);
    let bound = types.bindings().iter().map(|(span, _)| *span);
    let bound = bound
        .filter(|span| span.end <= read.start && span.text(text) == name)
        .max_by_key(|span| span.start)?;
    let assigned = text.get(bound.end as usize..)?.trim_start().starts_with(":=");
    let behind = types.expressions().map(|(span, _)| span);
    behind
        .filter(|span| assigned && span.start > bound.end)
        .min_by_key(|span| (span.start, std::cmp::Reverse(span.end)))
}

fn shortened(text: &str) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match line.char_indices().nth(WIDTH) {
        Some((at, _)) => format!("{}…", line.get(..at).unwrap_or_default()),
        None => line,
    }
}
