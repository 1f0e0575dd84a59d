//! Methods into and out of a source text; every other byte stays as it was.

use std::ops::Range;

use beamtalk_syntax::ast::{Class, Item, Method, Unit};
use beamtalk_syntax::diagnostic::{Diagnostic, Severity};
use beamtalk_syntax::layout::{as_member, same_method};
use beamtalk_syntax::span::Span;

use super::entry::Side;

/// What the lines right above a class or method that belong to it start with.
const DOCUMENTATION: [&str; 2] = ["///", "@expect"];

#[derive(Clone, Copy, Debug)]
pub(crate) struct Edit<'a> {
    pub(crate) class: &'a str,
    pub(crate) side: Side,
    pub(crate) selector: &'a str,
    /// Where the method stood when the change was made; decides between two methods of one name.
    pub(crate) span: Option<&'a Range<usize>>,
    pub(crate) change: Change<'a>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Change<'a> {
    /// Replace the method, or add it where there is none.
    Put(&'a str),
    /// Take it out; nothing to do where there is none.
    Remove,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The text does not define the class.
    NoClass,
    /// The method was there when it was changed and is not any more.
    NoMethod,
    /// The text would not say what it should.
    Unplaceable,
}

/// A method where it stands.
struct Place<'a> {
    method: &'a Method,
    /// `Target >> method`, or the method alone in its class.
    whole: Span,
}

/// Apply all edits to the text. A fault comes with the index of its edit.
pub(crate) fn splice(text: &str, edits: &[Edit]) -> Result<String, (usize, Fault)> {
    let parse = beamtalk_syntax::parse_file(text);
    let mut pieces: Vec<(Range<usize>, String)> = Vec::new();
    for (index, edit) in edits.iter().enumerate() {
        let place = locate(&parse.unit, edit);
        match (edit.change, place) {
            (Change::Put(source), Some(place)) => pieces.push(replacement(text, edit, source, &place)),
            (Change::Remove, Some(place)) => pieces.push((removal(text, place.whole), String::new())),
            (Change::Remove, None) => {}
            (Change::Put(_), None) if edit.span.is_some() => return Err((index, Fault::NoMethod)),
            (Change::Put(source), None) => {
                let class = class_of(&parse.unit, edit.class).ok_or((index, Fault::NoClass))?;
                pieces.push(addition(text, class, edit, source, edits));
            }
        }
    }
    let new_text = apply(text, pieces);
    if new_text != text {
        check(&new_text, edits, error_count(&parse.diagnostics))?;
    }
    Ok(new_text)
}

/// The bytes of a method in a text.
pub(crate) fn find_method(text: &str, class: &str, side: Side, selector: &str) -> Option<Range<usize>> {
    let parse = beamtalk_syntax::parse_file(text);
    let edit = Edit {
        class,
        side,
        selector,
        span: None,
        change: Change::Remove,
    };
    locate(&parse.unit, &edit).map(|place| range(place.method.span))
}

/// The bytes of a class in a text, without its documentation.
pub(crate) fn find_class(text: &str, class: &str) -> Option<Range<usize>> {
    let parse = beamtalk_syntax::parse_file(text);
    class_of(&parse.unit, class).map(|class| range(class.span))
}

/// A class with the documentation right above it.
pub(crate) fn class_source<'a>(text: &'a str, class: &Class) -> &'a str {
    let whole = range(class.span);
    let start = doc_start(text, whole.start, &DOCUMENTATION);
    text.get(start..whole.end).unwrap_or_default()
}

/// The text with another definition of one of its classes; `None` when it has no such class. The documentation
/// stays unless the new definition comes with its own.
pub(crate) fn replace_class(text: &str, class: &str, source: &str) -> Option<String> {
    let whole = find_class(text, class)?;
    let source = source.trim();
    let start = if DOCUMENTATION.iter().any(|mark| source.starts_with(mark)) {
        doc_start(text, whole.start, &DOCUMENTATION)
    } else {
        whole.start
    };
    let new = in_newlines_of(text, &source.replace("\r\n", "\n"));
    Some(apply(text, vec![(start..whole.end, new)]))
}

/// Whether a text can be read well enough to change it.
pub(crate) fn is_readable(text: &str) -> bool {
    error_count(&beamtalk_syntax::parse_file(text).diagnostics) == 0
}

fn error_count(diagnostics: &[Diagnostic]) -> usize {
    diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .count()
}

fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

fn class_of<'a>(unit: &'a Unit, name: &str) -> Option<&'a Class> {
    unit.items.iter().find_map(|item| match item {
        Item::Class(class) if class.name.text == name => Some(class),
        _ => None,
    })
}

fn locate<'a>(unit: &'a Unit, edit: &Edit) -> Option<Place<'a>> {
    let is_meant = |method: &Method| {
        method.is_class == (edit.side == Side::Class) && method.head.selector == edit.selector
    };
    let mut places = unit.items.iter().flat_map(|item| match item {
        Item::Class(class) if class.name.text == edit.class => class
            .methods
            .iter()
            .filter(|method| is_meant(method))
            .map(|method| Place {
                method,
                whole: method.span,
            })
            .collect(),
        Item::Extension(extension)
            if extension.target.name.text == edit.class && is_meant(&extension.method) =>
        {
            vec![Place {
                method: &extension.method,
                whole: extension.span,
            }]
        }
        _ => Vec::new(),
    });
    let first = places.next()?;
    let is_recorded = |place: &Place| edit.span.is_some_and(|span| *span == range(place.method.span));
    if is_recorded(&first) {
        return Some(first);
    }
    Some(places.find(is_recorded).unwrap_or(first))
}

/// The parts of a method's new source.
struct Parts {
    /// Documentation and comments, up to the end of their last line.
    before: String,
    modifiers: String,
    has_doc: bool,
    /// From the head on.
    rest: String,
}

fn parts(source: &str, edit: &Edit) -> Parts {
    let source = source.trim().replace("\r\n", "\n");
    let (method, _) = beamtalk_syntax::parse_method(&source);
    let Some(method) = method else {
        // The bare body of a unary method.
        let body = source.replace('\n', "\n  ");
        return Parts {
            before: String::new(),
            modifiers: String::new(),
            has_doc: false,
            rest: format!("{} =>\n  {body}", edit.selector),
        };
    };
    let (start, head) = (method.span.start as usize, method.head.span.start as usize);
    let mut modifiers = source.get(start..head).unwrap_or_default().to_owned();
    if !modifiers.is_empty() && edit.side == Side::Class && !method.is_class {
        modifiers.push_str("class ");
    }
    Parts {
        before: source.get(..start).unwrap_or_default().to_owned(),
        modifiers,
        has_doc: method.doc.is_some(),
        rest: source.get(head..).unwrap_or_default().to_owned(),
    }
}

fn replacement(text: &str, edit: &Edit, source: &str, place: &Place) -> (Range<usize>, String) {
    let parts = parts(source, edit);
    let whole = range(place.whole);
    let start = if parts.has_doc {
        doc_start(text, whole.start, &["///"])
    } else {
        whole.start
    };
    let before = if parts.has_doc { parts.before.as_str() } else { "" };
    // What stands before the head: modifiers, or the target of an extension. It stays unless the source tells it.
    let is_extension = place.whole.start != place.method.span.start;
    let old_front = text
        .get(whole.start..place.method.head.span.start as usize)
        .unwrap_or_default();
    let front = if parts.modifiers.is_empty() || is_extension {
        old_front
    } else {
        &parts.modifiers
    };
    let composed = format!("{before}{front}{}", parts.rest);
    let old = text.get(start..whole.end).unwrap_or_default();
    let new = if same_method(old, &composed) {
        old.to_owned()
    } else {
        in_newlines_of(text, &as_member(&composed, line_prefix(text, start)))
    };
    (start..whole.end, new)
}

/// A method with its documentation, as whole lines where it has them for itself.
fn removal(text: &str, whole: Span) -> Range<usize> {
    let whole = range(whole);
    let start = doc_start(text, whole.start, &DOCUMENTATION);
    let line_start = line_start(text, start);
    let content_end = line_end(text, whole.end);
    let is_alone = text
        .get(line_start..start)
        .is_some_and(|blank| blank.trim().is_empty())
        && text
            .get(whole.end..content_end)
            .is_some_and(|blank| blank.trim().is_empty());
    if !is_alone {
        return start..whole.end;
    }
    let end = after_newline(text, content_end);
    // One of two blank lines that would meet goes too.
    let next = text.get(end..line_end(text, end)).unwrap_or_default();
    let previous_start = line_start
        .checked_sub(1)
        .map(|before| self::line_start(text, before));
    match previous_start {
        Some(previous)
            if next.trim().is_empty()
                && text
                    .get(previous..line_start)
                    .is_some_and(|line| line.trim().is_empty()) =>
        {
            previous..end
        }
        _ => line_start..end,
    }
}

/// After the last method of the class, in the indentation of the file.
fn addition(text: &str, class: &Class, edit: &Edit, source: &str, edits: &[Edit]) -> (Range<usize>, String) {
    let is_removed = |method: &Method| {
        edits.iter().any(|edit| {
            matches!(edit.change, Change::Remove)
                && edit.class == class.name.text
                && method.is_class == (edit.side == Side::Class)
                && method.head.selector == edit.selector
        })
    };
    let kept: Vec<&Method> = class
        .methods
        .iter()
        .filter(|method| !is_removed(method))
        .collect();
    let last_slot = class.slots.last().map(|slot| slot.span);
    let (anchor, indent) = match (kept.last(), last_slot) {
        (Some(last), _) => (last.span.end, line_prefix(text, last.span.start as usize)),
        (None, Some(slot)) => (slot.end, line_prefix(text, slot.start as usize)),
        (None, None) => (class.header.end, "  "),
    };
    let indent = if indent.is_empty() { "  " } else { indent };
    let is_dense = match kept.as_slice() {
        [.., one, two] => !text
            .get(one.span.end as usize..two.span.start as usize)
            .is_some_and(|between| between.split('\n').skip(1).any(|line| line.trim().is_empty())),
        _ => false,
    };
    let parts = parts(source, edit);
    let modifiers = if parts.modifiers.is_empty() && edit.side == Side::Class {
        "class "
    } else {
        &parts.modifiers
    };
    let member = as_member(&format!("{}{modifiers}{}", parts.before, parts.rest), indent);
    let gap = if is_dense { "\n" } else { "\n\n" };
    let at = line_end(text, anchor as usize);
    (at..at, in_newlines_of(text, &format!("{gap}{indent}{member}")))
}

/// Pieces do not overlap; those at one place come in their order.
fn apply(text: &str, mut pieces: Vec<(Range<usize>, String)>) -> String {
    pieces.sort_by_key(|(range, _)| (range.start, range.end));
    let mut out = String::with_capacity(text.len() + 256);
    let mut done = 0;
    for (range, new) in pieces {
        out.push_str(text.get(done..range.start).unwrap_or_default());
        out.push_str(&new);
        done = done.max(range.end);
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}

/// The new text must say what was asked for, and be as readable as before.
fn check(new_text: &str, edits: &[Edit], errors_before: usize) -> Result<(), (usize, Fault)> {
    let parse = beamtalk_syntax::parse_file(new_text);
    for (index, edit) in edits.iter().enumerate() {
        let found = locate(&parse.unit, &Edit { span: None, ..*edit });
        let is_right = match (edit.change, found) {
            (Change::Remove, found) => found.is_none(),
            (Change::Put(_), None) => false,
            (Change::Put(source), Some(place)) => {
                let method = place.method;
                let rest = new_text.get(method.head.span.start as usize..method.span.end as usize);
                rest.is_some_and(|rest| starts_same(rest, &parts(source, edit).rest))
            }
        };
        if !is_right || error_count(&parse.diagnostics) > errors_before {
            return Err((index, Fault::Unplaceable));
        }
    }
    Ok(())
}

/// The source may end in comments, which are not part of the method in the text.
fn starts_same(found: &str, source: &str) -> bool {
    let (method, _) = beamtalk_syntax::parse_method(source);
    let end = method.map_or(source.len(), |method| method.span.end as usize);
    same_method(found, source.get(..end).unwrap_or(source))
}

// ---- lines ----

fn line_start(text: &str, at: usize) -> usize {
    text.get(..at)
        .and_then(|before| before.rfind('\n'))
        .map_or(0, |newline| newline + 1)
}

/// The end of the line's content, before its line end.
fn line_end(text: &str, at: usize) -> usize {
    let rest = text.get(at..).unwrap_or_default();
    let length = rest.find('\n').unwrap_or(rest.len());
    let line = rest.get(..length).unwrap_or_default();
    at + line.strip_suffix('\r').unwrap_or(line).len()
}

fn after_newline(text: &str, line_end: usize) -> usize {
    let rest = text.get(line_end..).unwrap_or_default();
    line_end + rest.find('\n').map_or(rest.len(), |newline| newline + 1)
}

/// The blanks a line starts with.
fn line_prefix(text: &str, at: usize) -> &str {
    let line = text.get(line_start(text, at)..).unwrap_or_default();
    let content = line.trim_start_matches([' ', '\t']);
    line.get(..line.len() - content.len()).unwrap_or_default()
}

/// The start of the first of the lines right above that begin with one of the marks; `at` when there is none.
fn doc_start(text: &str, at: usize, marks: &[&str]) -> usize {
    let mut start = at;
    let mut line = line_start(text, at);
    if text.get(line..at).is_none_or(|prefix| !prefix.trim().is_empty()) {
        return at;
    }
    while let Some(before) = line.checked_sub(1) {
        let previous = line_start(text, before);
        let content = text.get(previous..before).unwrap_or_default();
        if !marks.iter().any(|mark| content.trim_start().starts_with(mark)) {
            break;
        }
        start = previous + (content.len() - content.trim_start().len());
        line = previous;
    }
    start
}

fn in_newlines_of(text: &str, new: &str) -> String {
    if text.contains("\r\n") {
        new.replace('\n', "\r\n")
    } else {
        new.to_owned()
    }
}

#[cfg(test)]
mod tests;
