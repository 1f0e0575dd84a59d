//! Definitions put into a text, replaced in it and cut out of it.

use std::ops::Range;

use super::lines::{apply, comment_end, doc_start, in_newlines_of, line_end, line_prefix, removal};
use super::source::{Parts, parts};
use super::{Dialect, Key, Member, Outline, documented, range, slice};
use crate::Parse;
use crate::ast::{Class, Item, Method, Slot, Unit};
use crate::diagnostic::{Diagnostic, Severity};
use crate::layout::{as_member, same_method};
use crate::span::Span;

#[derive(Clone, Copy, Debug)]
pub struct Edit<'a> {
    pub key: &'a Key,
    pub change: Change<'a>,
}

#[derive(Clone, Copy, Debug)]
pub enum Change<'a> {
    /// Replace the definition, or add it where there is none.
    Put(&'a str),
    /// Take it out; nothing to do where there is none.
    Remove,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The text does not define the class.
    NoClass,
    /// The text would not say what it should.
    Unplaceable,
}

type Pieces = Vec<(Range<usize>, String)>;

/// A method where it stands.
struct Place<'a> {
    method: &'a Method,
    /// `Target >> method`, or the method alone in its class.
    whole: Span,
}

/// Apply all edits to the text. A fault comes with the index of its edit.
pub fn edit(text: &str, dialect: Dialect, edits: &[Edit]) -> Result<String, (usize, Fault)> {
    let outline = Outline::new(text, dialect);
    let new_text = outline.with_edits(edits)?;
    if new_text != text {
        check(&outline, &new_text, dialect, edits)?;
    }
    Ok(new_text)
}

/// The same for a text whose tree is there, with what the new text reads as.
pub fn edit_tree(
    text: &str,
    unit: &Unit,
    dialect: Dialect,
    edits: &[Edit],
) -> Result<(String, Parse), (usize, Fault)> {
    let outline = Outline::of_tree(text, unit);
    let new_text = outline.with_edits(edits)?;
    let parse = check(&outline, &new_text, dialect, edits)?;
    Ok((new_text, parse))
}

impl Outline<'_> {
    /// The text with all edits applied, whatever it says then.
    pub(super) fn with_edits(&self, edits: &[Edit]) -> Result<String, (usize, Fault)> {
        let text = self.text;
        let mut pieces: Pieces = Vec::new();
        // What belongs to a header comes before what is added behind it.
        let is_header = |edit: &Edit| edit.key.member == Member::Header;
        let mut order: Vec<usize> = (0..edits.len()).collect();
        order.sort_by_key(|index| !edits.get(*index).is_some_and(is_header));
        for index in order {
            let Some(edit) = edits.get(index) else { continue };
            let class = self.class(&edit.key.class);
            match (&edit.key.member, edit.change) {
                (Member::Header, Change::Put(source)) => {
                    let class = class.ok_or((index, Fault::NoClass))?;
                    header(text, class, source, &mut pieces).ok_or((index, Fault::Unplaceable))?;
                }
                (Member::Header, Change::Remove) => return Err((index, Fault::Unplaceable)),
                (Member::Method { is_class, selector }, change) => match (change, locate(self, edit.key)) {
                    (Change::Put(source), Some(place)) => {
                        pieces.push(replacement(text, &parts(selector, *is_class, source), &place));
                    }
                    (Change::Remove, Some(place)) => {
                        pieces.push((removal(text, documented(text, place.whole)), String::new()));
                    }
                    (Change::Remove, None) => {}
                    (Change::Put(source), None) => {
                        let parts = parts(selector, *is_class, source);
                        pieces.push(match (class, &parts.target) {
                            (Some(class), _) => addition(text, class, *is_class, &parts, edits),
                            (None, Some(target)) => added_extension(text, target, &parts),
                            (None, None) => return Err((index, Fault::NoClass)),
                        });
                    }
                },
            }
        }
        Ok(apply(text, pieces))
    }
}

fn locate<'a>(outline: &'a Outline, key: &Key) -> Option<Place<'a>> {
    outline.unit.items.iter().find_map(|item| match item {
        Item::Class(class) if class.name.text == key.class => {
            let method = class
                .methods
                .iter()
                .find(|method| Key::of_method(&key.class, method) == *key)?;
            Some(Place {
                method,
                whole: method.span,
            })
        }
        Item::Extension(extension)
            if extension.target.name.text == key.class
                && Key::of_method(&key.class, &extension.method) == *key =>
        {
            Some(Place {
                method: &extension.method,
                whole: extension.span,
            })
        }
        _ => None,
    })
}

fn replacement(text: &str, parts: &Parts, place: &Place) -> (Range<usize>, String) {
    let whole = range(place.whole);
    let start = if parts.doc.is_empty() {
        whole.start
    } else {
        doc_start(text, whole.start, &["///"])
    };
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
    let comments = new_comments(text, documented(text, place.whole).start, &parts.comments);
    // A comment behind the old method stays, unless the new one brings its own.
    let (code, tail) = parts
        .rest
        .split_at_checked(parts.length)
        .unwrap_or((&parts.rest, ""));
    let (rest, end) = if tail.trim().is_empty() || follows(text, whole.end, tail) {
        (code, whole.end)
    } else {
        (parts.rest.as_str(), comment_end(text, whole.end))
    };
    let composed = format!("{}{front}{rest}", parts.doc);
    let old = slice(text, &(start..end));
    let new = if comments.is_empty() && same_method(old, &composed) {
        old.to_owned()
    } else {
        in_newlines_of(
            text,
            &as_member(&format!("{comments}{composed}"), line_prefix(text, start)),
        )
    };
    (start..end, new)
}

/// Whether these comments stand behind a place already.
fn follows(text: &str, at: usize, comments: &str) -> bool {
    let behind = text.get(at..).unwrap_or_default();
    let comments = comments.trim_end();
    let lines = |text: &str| -> Vec<String> {
        let lines = text.split('\n').take(comments.split('\n').count());
        lines.map(|line| line.trim().to_owned()).collect()
    };
    lines(behind) == lines(comments)
}

/// At the end of a text that does not have the class.
fn added_extension(text: &str, target: &str, parts: &Parts) -> (Range<usize>, String) {
    let at = text.trim_end().len();
    let source = format!("{}{}{target}{}", parts.comments, parts.doc, parts.rest.trim_end());
    let new = if at == 0 {
        format!("{source}\n")
    } else {
        format!("\n\n{source}")
    };
    (at..at, in_newlines_of(text, &new))
}

/// Comments above a method that the text does not have right there.
fn new_comments<'a>(text: &str, at: usize, comments: &'a str) -> &'a str {
    if comments.is_empty() {
        return comments;
    }
    let above: Vec<&str> = text
        .get(..at)
        .unwrap_or_default()
        .lines()
        .map(str::trim)
        .collect();
    let above = above.strip_suffix(&[""]).unwrap_or(&above);
    let wanted: Vec<&str> = comments.lines().map(str::trim).collect();
    if above.ends_with(&wanted) { "" } else { comments }
}

/// After the last method of the class, in the indentation of the file.
fn addition(
    text: &str,
    class: &Class,
    is_class: bool,
    parts: &Parts,
    edits: &[Edit],
) -> (Range<usize>, String) {
    let is_removed = |method: &Method| {
        let key = Key::of_method(&class.name.text, method);
        edits
            .iter()
            .any(|edit| matches!(edit.change, Change::Remove) && *edit.key == key)
    };
    let kept: Vec<&Method> = class
        .methods
        .iter()
        .filter(|method| !is_removed(method))
        .collect();
    let last_slot = class.slots.last().map(|slot| slot.span);
    let indent_of = |start: u32| {
        let before = text.get(..start as usize).unwrap_or_default();
        let prefix = line_prefix(text, start as usize);
        // Where members begin at the margin an indented one would belong to the body before it.
        if prefix.is_empty() && !before.ends_with('\n') {
            "  "
        } else {
            prefix
        }
    };
    let (anchor, indent) = match (kept.last(), last_slot) {
        (Some(last), Some(slot)) if slot.end > last.span.end => (slot.end, indent_of(last.span.start)),
        (Some(last), _) => (last.span.end, indent_of(last.span.start)),
        (None, Some(slot)) => (slot.end, indent_of(slot.start)),
        (None, None) => (class.header.end, "  "),
    };
    let is_dense = match kept.as_slice() {
        [.., one, two] => !text
            .get(one.span.end as usize..two.span.start as usize)
            .is_some_and(|between| between.split('\n').skip(1).any(|line| line.trim().is_empty())),
        _ => false,
    };
    let modifiers = if parts.modifiers.is_empty() && is_class {
        "class "
    } else {
        &parts.modifiers
    };
    let source = format!("{}{}{modifiers}{}", parts.comments, parts.doc, parts.rest);
    let member = as_member(&source, indent);
    let gap = if is_dense { "\n" } else { "\n\n" };
    let at = line_end(text, anchor as usize);
    (at..at, in_newlines_of(text, &format!("{gap}{indent}{member}")))
}

/// A class's header and slots become those of the source, each where it stands; what is between them stays.
fn header(text: &str, class: &Class, source: &str, pieces: &mut Pieces) -> Option<()> {
    let source = source.trim().replace("\r\n", "\n");
    let new = Outline::of_file(&source);
    let wanted = new.class(&class.name.text)?;
    let (start, wanted_start) = (class.span.start as usize, wanted.span.start as usize);
    let (end, wanted_end) = (class.header.end as usize, wanted.header.end as usize);
    let wanted_line = slice(&source, &(wanted_start..comment_end(&source, wanted_end)));
    // A comment behind the old line stays, unless the new one brings its own.
    let line = start..kept_comment(text, end, comment_end(&source, wanted_end) > wanted_end);
    let doc = slice(
        &source,
        &(documented(&source, wanted.span).start..wanted.span.start as usize),
    );
    if !doc.is_empty() {
        let place = documented(text, class.span).start..line.start;
        if !same_method(slice(text, &place), doc) {
            pieces.push((place, in_newlines_of(text, doc)));
        }
    }
    if !same_method(slice(text, &line), wanted_line) {
        pieces.push((line.clone(), in_newlines_of(text, wanted_line)));
    }
    let name = |slot: &Slot| slot.name.text.clone();
    let old_names: Vec<_> = class.slots.iter().map(name).collect();
    let new_names: Vec<_> = wanted.slots.iter().map(name).collect();
    let common: Vec<_> = old_names.iter().filter(|name| new_names.contains(name)).collect();
    let same_order = new_names
        .iter()
        .filter(|name| old_names.contains(name))
        .eq(common.iter().copied());
    let mut anchor = line.end;
    let mut indent = "  ";
    let text_of = |slot: &Slot| slice(&source, &documented(&source, slot.span)).to_owned();
    for slot in &class.slots {
        let place = documented(text, slot.span);
        let kept = wanted.slots.iter().find(|one| one.name.text == slot.name.text);
        match kept.filter(|_| same_order) {
            None => pieces.push((removal(text, place), String::new())),
            Some(kept) => {
                let new_text = text_of(kept);
                let new_place = documented(&source, kept.span);
                let start = if new_place.start == kept.span.start as usize {
                    slot.span.start as usize
                } else {
                    place.start
                };
                let has_comment = new_place.end > kept.span.end as usize;
                let place = start..kept_comment(text, slot.span.end as usize, has_comment);
                if !same_method(slice(text, &place), &new_text) {
                    let new_text = as_member(&new_text, line_prefix(text, place.start));
                    pieces.push((place, in_newlines_of(text, &new_text)));
                }
                anchor = slot.span.end as usize;
                indent = line_prefix(text, slot.span.start as usize);
            }
        }
    }
    let added: String = wanted
        .slots
        .iter()
        .filter(|slot| !same_order || !old_names.contains(&slot.name.text))
        .map(|slot| format!("\n{indent}{}", as_member(&text_of(slot), indent)))
        .collect();
    if !added.is_empty() {
        let at = line_end(text, anchor);
        pieces.push((at..at, in_newlines_of(text, &added)));
    }
    Some(())
}

/// The end of what is replaced: with the comment behind it if another one comes in its place.
fn kept_comment(text: &str, end: usize, is_replaced: bool) -> usize {
    if is_replaced { comment_end(text, end) } else { end }
}

/// The new text must say what was asked for, be as readable as before, and have every other definition as it was.
/// Answers what it reads as.
fn check(old: &Outline, new_text: &str, dialect: Dialect, edits: &[Edit]) -> Result<Parse, (usize, Fault)> {
    let new = Outline::new(new_text, dialect);
    let errors = |found: &[Diagnostic]| {
        let errors = found.iter().filter(|found| found.severity == Severity::Error);
        errors.count()
    };
    let now = errors(&new.diagnostics);
    let is_worse = now > 0 && now > errors(&dialect.parse(old.text).diagnostics);
    for (index, edit) in edits.iter().enumerate() {
        let is_right = match (&edit.key.member, edit.change) {
            (Member::Header, Change::Put(source)) => has_header(&new, &edit.key.class, source),
            (Member::Header, Change::Remove) => false,
            (Member::Method { .. }, Change::Remove) => locate(&new, edit.key).is_none(),
            (Member::Method { is_class, selector }, Change::Put(source)) => locate(&new, edit.key)
                .is_some_and(|place| {
                    let method = place.method;
                    let found = slice(
                        new_text,
                        &(method.head.span.start as usize..method.span.end as usize),
                    );
                    let parts = parts(selector, *is_class, source);
                    same_method(found, parts.rest.get(..parts.length).unwrap_or(&parts.rest))
                }),
        };
        if !is_right || is_worse {
            return Err((index, Fault::Unplaceable));
        }
    }
    let is_edited = |key: &Key| edits.iter().any(|edit| edit.key == key);
    let is_same = others(old, is_edited).eq(others(&new, is_edited));
    if is_same {
        Ok(Parse {
            unit: new.unit.into_owned(),
            diagnostics: new.diagnostics,
        })
    } else {
        Err((0, Fault::Unplaceable))
    }
}

/// The definitions that no edit is about, in the order of the text.
fn others<'a>(
    outline: &'a Outline,
    is_edited: impl Fn(&Key) -> bool,
) -> impl Iterator<Item = (&'a Key, &'a str)> {
    let places = outline.places.iter().filter(move |(key, _)| !is_edited(key));
    places.map(|(key, place)| (key, slice(outline.text, place)))
}

/// Whether a class has the header line and the slots of a source.
fn has_header(outline: &Outline, name: &str, source: &str) -> bool {
    let source = source.trim().replace("\r\n", "\n");
    let wanted = Outline::of_file(&source);
    let described = |outline: &Outline| -> Option<Vec<String>> {
        let class = outline.class(name)?;
        let line = Span::new(class.span.start, class.header.end);
        let mut all = vec![
            line.text(outline.text)
                .split_whitespace()
                .collect::<Vec<_>>()
                .join(" "),
        ];
        let mut slots: Vec<String> = class
            .slots
            .iter()
            .map(|slot| slot.span.text(outline.text).replace("\r\n", "\n"))
            .collect();
        slots.sort();
        all.append(&mut slots);
        Some(all)
    };
    let (Some(found), Some(wanted)) = (described(outline), described(&wanted)) else {
        return false;
    };
    found.len() == wanted.len() && found.iter().zip(&wanted).all(|(a, b)| same_method(a, b))
}
