//! Definitions in a source text: where they stand, and the text with some of them put in, replaced or cut.
//!
//! A definition is the header of a class (with its slots) or one method, each with the documentation right above it. Texts
//! are cut and joined here and nowhere else: the compiler's live changes, the change log, flush and merge all come to this
//! module. Definitions are found by parsing; every byte that belongs to none of those asked for stays as it was.

mod edit;
mod lines;
mod source;

use std::borrow::Cow;
use std::ops::Range;

use ecow::EcoString;

use crate::Parse;
use crate::ast::{Class, Extension, Item, Method, Unit};
use crate::diagnostic::{Diagnostic, Severity};
use crate::layout;
use crate::span::Span;
use lines::{doc_start, line_start};

pub use edit::{Change, Edit, Fault, edit, edit_tree};
pub use source::{Definition as MethodDefinition, as_extension, method_definition, method_source, signature};

/// What a definition is known by.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub class: EcoString,
    pub member: Member,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Member {
    /// The class itself with its slots.
    Header,
    Method {
        is_class: bool,
        selector: EcoString,
    },
}

impl Key {
    pub fn header(class: &str) -> Self {
        Self {
            class: class.into(),
            member: Member::Header,
        }
    }

    pub fn method(class: &str, is_class: bool, selector: &str) -> Self {
        Self {
            class: class.into(),
            member: Member::Method {
                is_class,
                selector: selector.into(),
            },
        }
    }

    /// `Lamp`, `Lamp>>toggle`, `Lamp class>>make`.
    pub fn title(&self) -> String {
        match &self.member {
            Member::Header => self.class.to_string(),
            Member::Method { is_class, selector } => {
                let side = if *is_class { " class" } else { "" };
                format!("{}{side}>>{selector}", self.class)
            }
        }
    }

    fn of_method(class: &str, method: &Method) -> Self {
        Self::method(class, method.is_class, &method.head.selector)
    }
}

/// How a text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// A file of a package.
    File,
    /// The input of a session.
    Input,
}

impl Dialect {
    pub fn parse(self, text: &str) -> Parse {
        match self {
            Self::File => crate::parse_file(text),
            Self::Input => crate::parse_input(text),
        }
    }
}

/// A part of a text: of a definition, or of what stands between definitions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    pub key: Option<Key>,
    pub text: &'a str,
}

/// A text with its definitions.
#[derive(Clone, Debug)]
pub struct Outline<'a> {
    text: &'a str,
    unit: Cow<'a, Unit>,
    diagnostics: Vec<Diagnostic>,
    /// In the order of the text. The slots of a class that follow a method are further places of its header.
    places: Vec<(Key, Range<usize>)>,
}

impl<'a> Outline<'a> {
    pub fn new(text: &'a str, dialect: Dialect) -> Self {
        let Parse { unit, diagnostics } = dialect.parse(text);
        Self::with(text, Cow::Owned(unit), diagnostics)
    }

    /// The same for a text whose tree is there. What is wrong with the text is not known.
    pub fn of_tree(text: &'a str, unit: &'a Unit) -> Self {
        Self::with(text, Cow::Borrowed(unit), Vec::new())
    }

    fn with(text: &'a str, unit: Cow<'a, Unit>, diagnostics: Vec<Diagnostic>) -> Self {
        let mut places = Vec::new();
        for item in &unit.items {
            match item {
                Item::Class(class) => class_places(text, class, &mut places),
                Item::Extension(extension) => places.push((
                    Key::of_method(&extension.target.name.text, &extension.method),
                    documented(text, extension.span),
                )),
                Item::Protocol(_) | Item::TypeAlias(_) | Item::Statement(_) => {}
            }
        }
        places.sort_by_key(|(_, range)| range.start);
        Self {
            text,
            unit,
            diagnostics,
            places,
        }
    }

    pub fn of_file(text: &'a str) -> Self {
        Self::new(text, Dialect::File)
    }

    /// The first thing that is wrong with the text.
    pub fn error(&self) -> Option<&Diagnostic> {
        let mut found = self.diagnostics.iter();
        found.find(|diagnostic| diagnostic.severity == Severity::Error)
    }

    pub fn keys(&self) -> impl Iterator<Item = &Key> {
        self.places.iter().map(|(key, _)| key)
    }

    pub fn classes(&self) -> impl Iterator<Item = &Class> {
        self.unit.items.iter().filter_map(|item| match item {
            Item::Class(class) => Some(class),
            _ => None,
        })
    }

    pub fn class(&self, name: &str) -> Option<&Class> {
        self.classes().find(|class| class.name.text == name)
    }

    /// The text of a definition with its documentation, as it stands there.
    pub fn text_of(&self, key: &Key) -> Option<String> {
        let mut found = self.places.iter().filter(|(one, _)| one == key);
        let (_, first) = found.next()?;
        let mut text = slice(self.text, first).to_owned();
        for (_, more) in found {
            text.push('\n');
            text.push_str(slice(self.text, more));
        }
        Some(text)
    }

    /// The same, as it would be written at the margin.
    pub fn source_of(&self, key: &Key) -> Option<String> {
        let (_, place) = self.places.iter().find(|(one, _)| one == key)?;
        Some(layout::at_margin(
            &self.text_of(key)?,
            column(self.text, place.start),
        ))
    }

    /// The same, with the comments right above a method.
    fn commented_source_of(&self, key: &Key) -> Option<String> {
        let (_, place) = self.places.iter().find(|(one, _)| one == key)?;
        let start = doc_start(self.text, place.start, &lines::COMMENTS);
        if key.member == Member::Header || start == place.start {
            return self.source_of(key);
        }
        let text = slice(self.text, &(start..place.end));
        Some(layout::at_margin(text, column(self.text, start)))
    }

    /// The text in parts; together they are the text.
    pub fn cut(&self) -> Vec<Piece<'a>> {
        let mut pieces = Vec::new();
        let mut done = 0;
        for (key, range) in &self.places {
            if range.start > done {
                let text = slice(self.text, &(done..range.start));
                pieces.push(Piece { key: None, text });
            }
            let text = slice(self.text, &(range.start.max(done)..range.end));
            pieces.push(Piece {
                key: Some(key.clone()),
                text,
            });
            done = done.max(range.end);
        }
        if done < self.text.len() {
            let text = slice(self.text, &(done..self.text.len()));
            pieces.push(Piece { key: None, text });
        }
        pieces
    }

    /// Whether it has a definition already: putting it in would change nothing.
    fn says(&self, key: &Key, source: &str) -> bool {
        let wanted = Edit {
            key,
            change: Change::Put(source),
        };
        self.keys().any(|one| one == key) && self.with_edits(&[wanted]).is_ok_and(|new| new == self.text)
    }

    /// Whether it defines or does anything.
    pub fn has_definitions(&self) -> bool {
        !self.unit.items.is_empty()
    }

    /// Whether there is something beside a class and its methods.
    pub fn has_more_than(&self, class: &str) -> bool {
        self.unit.items.iter().any(|item| match item {
            Item::Class(found) => found.name.text != class,
            Item::Extension(extension) => extension.target.name.text != class,
            Item::Protocol(_) | Item::TypeAlias(_) | Item::Statement(_) => true,
        })
    }
}

/// The definitions of a text that is no file, each by itself: classes, methods, protocols and type names, with their
/// documentation. `is_wanted` is asked for the span of each.
pub fn split(text: &str, is_wanted: impl Fn(Span) -> bool) -> Vec<String> {
    let items = crate::parse_input(text).unit.items;
    let spans = items.iter().filter_map(|item| match item {
        Item::Class(class) => Some(class.span),
        Item::Extension(extension) => Some(extension.span),
        Item::Protocol(protocol) => Some(protocol.span),
        Item::TypeAlias(alias) => Some(alias.span),
        Item::Statement(_) => None,
    });
    let wanted = spans.filter(|span| is_wanted(*span));
    wanted
        .map(|span| slice(text, &documented(text, span)).to_owned())
        .collect()
}

/// What a text defines first: a class as a whole has the key of its header.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Subject {
    Definition(Key),
    Protocol(EcoString),
    TypeName(EcoString),
}

/// What the one definition of a text that [`split`] made is about.
pub fn subject(text: &str) -> Option<Subject> {
    // The first line of a class names it: its methods need not be read.
    let mut lines = text.lines();
    let first = lines.find(|line| !line.trim().is_empty() && !line.trim_start().starts_with("//"))?;
    match first_subject(first) {
        Some(
            class @ Subject::Definition(Key {
                member: Member::Header,
                ..
            }),
        ) => Some(class),
        _ => first_subject(text),
    }
}

fn first_subject(text: &str) -> Option<Subject> {
    crate::parse_input(text)
        .unit
        .items
        .iter()
        .find_map(|item| match item {
            Item::Class(class) => Some(Subject::Definition(Key::header(&class.name.text))),
            Item::Extension(extension) => Some(Subject::Definition(Key::of_method(
                &extension.target.name.text,
                &extension.method,
            ))),
            Item::Protocol(protocol) => Some(Subject::Protocol(protocol.name.text.clone())),
            Item::TypeAlias(alias) => Some(Subject::TypeName(alias.name.text.clone())),
            Item::Statement(_) => None,
        })
}

/// The parts of a text in one.
pub fn join(pieces: &[Piece]) -> String {
    pieces.iter().map(|piece| piece.text).collect()
}

/// A class with the documentation right above it.
pub fn class_source<'a>(text: &'a str, class: &Class) -> &'a str {
    slice(text, &documented(text, class.span))
}

/// The source of the method that `Target >> method` defines, with its documentation and the comments around it.
pub fn extension_source(text: &str, extension: &Extension) -> String {
    let whole = documented(text, extension.span);
    let start = doc_start(text, whole.start, &lines::COMMENTS);
    let above = slice(text, &(start..extension.span.start as usize));
    let end = lines::comments_below(text, whole.end);
    let code = slice(text, &(extension.method.head.span.start as usize..end));
    format!("{above}{code}")
}

/// The text with another definition of one of its classes, as somebody wrote it; `None` when it has no such class. The
/// documentation stays unless the new definition comes with its own.
pub fn replace_class(text: &str, dialect: Dialect, class: &str, source: &str) -> Option<String> {
    let outline = Outline::new(text, dialect);
    let span = outline.class(class)?.span;
    let source = source.trim();
    let mut whole = documented(text, span);
    if !lines::DOCUMENTATION.iter().any(|mark| source.starts_with(mark)) {
        whole.start = span.start as usize;
    }
    let new = lines::in_newlines_of(text, &source.replace("\r\n", "\n"));
    Some(lines::apply(text, vec![(whole, new)]))
}

/// The text without a class and without methods of it that stand elsewhere.
pub fn remove_class(text: &str, class: &str) -> String {
    let outline = Outline::of_file(text);
    let pieces = class_ranges(&outline, class)
        .into_iter()
        .map(|range| (lines::removal(text, range), String::new()));
    lines::apply(text, pieces.collect())
}

/// What [`remove_class`] takes out of a text: the class as a whole and methods of it that stand elsewhere.
pub fn class_texts<'a>(text: &'a str, class: &str) -> Vec<&'a str> {
    let ranges = class_ranges(&Outline::of_file(text), class);
    ranges.into_iter().map(|range| slice(text, &range)).collect()
}

/// The text with what [`remove_class`] took out of another one.
pub fn restore_class(text: &str, from: &str, class: &str) -> String {
    if remove_class(from, class) == text
        || (text.trim().is_empty() && !Outline::of_file(from).has_more_than(class))
    {
        return from.to_owned();
    }
    let mut parts: Vec<&str> = vec![text.trim_end()];
    parts.extend(class_texts(from, class));
    parts.retain(|part| !part.is_empty());
    let joined = parts.join("\n\n") + "\n";
    lines::in_newlines_of(from, &joined.replace("\r\n", "\n"))
}

fn class_ranges(outline: &Outline, class: &str) -> Vec<Range<usize>> {
    let text = outline.text;
    let of_item = |item: &Item| match item {
        Item::Class(found) if found.name.text == class => {
            let whole = documented(text, found.span);
            Some(whole.start..lines::body_end(text, whole.end))
        }
        Item::Extension(extension) if extension.target.name.text == class => {
            Some(documented(text, extension.span))
        }
        _ => None,
    };
    outline.unit.items.iter().filter_map(of_item).collect()
}

/// What a new definition of a class comes to, against the one before: definitions with their new sources, `None` for those
/// that are gone. Methods that stand beside the class extend it and are no part of its definition.
pub fn class_changes(class: &str, base: &str, new: &str) -> Vec<(Key, Option<String>)> {
    let (before, after) = (Outline::of_file(base), Outline::of_file(new));
    let of_class = |outline: &Outline| -> Vec<Key> {
        let mut keys: Vec<Key> = outline.keys().filter(|key| key.class == class).cloned().collect();
        keys.dedup();
        keys
    };
    let mut changes = Vec::new();
    for key in of_class(&after) {
        let Some(source) = after.commented_source_of(&key) else {
            continue;
        };
        if !before.says(&key, &source) {
            changes.push((key, Some(source)));
        }
    }
    let body = before.class(class).map(|found| found.methods.iter());
    let body: Vec<Key> = body
        .into_iter()
        .flatten()
        .map(|method| Key::of_method(class, method))
        .collect();
    for key in of_class(&before) {
        let is_part = key.member == Member::Header || body.contains(&key);
        if is_part && after.text_of(&key).is_none() {
            changes.push((key, None));
        }
    }
    changes
}

/// Whether a text has a definition already: putting it in would change nothing.
pub fn says(text: &str, key: &Key, source: &str) -> bool {
    Outline::of_file(text).says(key, source)
}

fn class_places(text: &str, class: &Class, places: &mut Vec<(Key, Range<usize>)>) {
    let name = &class.name.text;
    let first_method = class.methods.iter().map(|method| method.span.start).min();
    let is_leading = |start: u32| first_method.is_none_or(|first| start < first);
    let leading = class.slots.iter().filter(|slot| is_leading(slot.span.start));
    let end = leading
        .map(|slot| slot.span.end)
        .max()
        .unwrap_or(class.header.end);
    let start = documented(text, class.span).start;
    let end = lines::comment_end(text, end.max(class.header.end) as usize);
    places.push((Key::header(name), start..end));
    for slot in class.slots.iter().filter(|slot| !is_leading(slot.span.start)) {
        places.push((Key::header(name), documented(text, slot.span)));
    }
    for method in &class.methods {
        places.push((Key::of_method(name, method), documented(text, method.span)));
    }
}

/// A definition with the documentation right above it and the comment that ends its last line.
fn documented(text: &str, span: Span) -> Range<usize> {
    let whole = range(span);
    doc_start(text, whole.start, &lines::DOCUMENTATION)..lines::comment_end(text, whole.end)
}

/// How many characters stand before a place in its line.
fn column(text: &str, at: usize) -> usize {
    let before = text.get(line_start(text, at)..at);
    before.unwrap_or_default().chars().count()
}

fn range(span: Span) -> Range<usize> {
    span.start as usize..span.end as usize
}

fn slice<'a>(text: &'a str, range: &Range<usize>) -> &'a str {
    text.get(range.clone()).unwrap_or_default()
}

#[cfg(test)]
mod tests;
