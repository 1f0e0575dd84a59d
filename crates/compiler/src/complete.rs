//! What could stand at the cursor, and what stands there: completion and hover from source texts alone. Nothing is
//! evaluated: a receiver is known by its literal, its class name, its variable or the types that methods declare.

mod coverage;
mod cursor;
mod describe;
mod hover;
mod infer;
mod lookup;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use beamtalk_syntax::ast::{Expression, ExpressionKind};
use beamtalk_syntax::{Parse, parse_input};
use ecow::{EcoString, eco_format};

use crate::table::{ClassTable, Origin};
use cursor::{Found, Site};
use describe::{Classes, Known};

pub use coverage::{ClassCoverage, Dynamic, coverage};
pub use hover::{Hover, hover};
pub use lookup::{Answerer, Lookup, Receiver};

/// A variable of the session: its name, and the name of its value's class when that is known. The value of a
/// variable that holds a class has a class such as `Lamp class`.
#[derive(Clone, Debug)]
pub struct Binding {
    pub name: EcoString,
    pub class: Option<EcoString>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Method,
    Class,
    Protocol,
    /// A name for a type.
    Alias,
    Variable,
    Field,
    /// A reserved word, or a part of the language that looks like a message.
    Keyword,
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Method => "method",
            Self::Class => "class",
            Self::Protocol => "protocol",
            Self::Alias => "alias",
            Self::Variable => "variable",
            Self::Field => "field",
            Self::Keyword => "keyword",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What replaces the text from `start` to the cursor.
    pub text: EcoString,
    pub kind: Kind,
    /// The signature of a method, the class of a variable, the superclass of a class.
    pub detail: Option<EcoString>,
    /// The class a method is defined in, the package of a class.
    pub origin: Option<EcoString>,
}

/// Names of Erlang that only the running node knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Erlang {
    /// After `Erlang`: modules.
    Modules,
    /// After `Erlang lists`: functions of the module.
    Functions(EcoString),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Completions {
    /// Byte offset of the word that is completed.
    pub start: usize,
    /// The word as far as it is typed.
    pub prefix: EcoString,
    /// In alphabetical order.
    pub items: Vec<Completion>,
    pub erlang: Option<Erlang>,
}

/// More than this many completions help nobody.
const MAX_ITEMS: usize = 500;
const MARKER: &str = "zzCompletionMarker";
const RESERVED: &[&str] = &["self", "super", "nil", "true", "false"];

/// What could complete the word that ends at the byte offset `cursor`.
pub fn complete(table: &ClassTable, bindings: &[Binding], code: &str, cursor: usize) -> Completions {
    let cursor = char_boundary(code, cursor);
    let start = word_start(code, cursor);
    let (before, prefix) = (
        code.get(..start).unwrap_or(""),
        code.get(start..cursor).unwrap_or(""),
    );
    let classes = Classes::new(table);
    let mut completer = Completer {
        table,
        bindings,
        classes: &classes,
        prefix,
        items: BTreeMap::new(),
        erlang: None,
    };
    if !prefix.starts_with(|c: char| c.is_ascii_digit() || c == '@') {
        completer.at(before, code.get(cursor..).unwrap_or(""), start);
    }
    let mut items: Vec<Completion> = completer.items.into_values().collect();
    items.truncate(MAX_ITEMS);
    Completions {
        start,
        prefix: prefix.into(),
        items,
        erlang: completer.erlang,
    }
}

fn char_boundary(code: &str, offset: usize) -> usize {
    let mut offset = offset.min(code.len());
    while !code.is_char_boundary(offset) {
        offset -= 1;
    }
    offset
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | ':' | '@')
}

/// Where the word that ends at `cursor` starts. The colon of a block parameter and of `::` is not part of it.
fn word_start(code: &str, cursor: usize) -> usize {
    let before = code.get(..cursor).unwrap_or("");
    let word = before.trim_end_matches(is_word);
    let mut start = word.len();
    let text = before.get(start..).unwrap_or("");
    if let Some(at) = text.rfind("::") {
        start += at + 2;
    }
    let text = before.get(start..).unwrap_or("");
    start + (text.len() - text.trim_start_matches(':').len())
}

struct Completer<'a> {
    table: &'a ClassTable,
    bindings: &'a [Binding],
    classes: &'a Classes<'a>,
    prefix: &'a str,
    items: BTreeMap<EcoString, Completion>,
    erlang: Option<Erlang>,
}

impl Completer<'_> {
    /// The text is parsed with a name in the place of the word, so that the parser tells what the word is: a
    /// variable, a message, a field, or nothing that could be completed. What follows the cursor may be half a
    /// word or disturb the parser, so it is tried without as well.
    fn at(&mut self, before: &str, after: &str, start: usize) {
        let rest = after.trim_start_matches(is_word);
        for rest in [rest, ""] {
            let Parse { unit, .. } = parse_input(&format!("{before}{MARKER}{rest}"));
            self.classes.learn(&unit, self.bindings, start);
            if let Some(found) = cursor::find(&unit, start, self.classes, self.bindings)
                && found.span.start as usize == start
            {
                self.found(&found);
                return;
            }
        }
        let before = before.trim_end();
        if before.ends_with("::") || before.ends_with("->") {
            self.class_names();
        }
    }

    fn found(&mut self, found: &Found) {
        match &found.site {
            Site::Variable(_) => {
                self.variables(found);
                self.class_names();
            }
            Site::Message { receiver, .. } => {
                self.messages(receiver, found);
                self.keyword_parts(found);
            }
            Site::Field(_) => self.fields(found),
            Site::Class(_) | Site::Type(_) => {}
        }
    }

    fn add(
        &mut self,
        text: impl Into<EcoString>,
        kind: Kind,
        detail: Option<EcoString>,
        origin: Option<EcoString>,
    ) {
        let text = text.into();
        if text.starts_with(self.prefix) {
            self.items.entry(text.clone()).or_insert(Completion {
                text,
                kind,
                detail,
                origin,
            });
        }
    }

    fn variables(&mut self, found: &Found) {
        for (name, known) in found.scope.locals.iter().rev() {
            if name != MARKER {
                self.add(
                    name.clone(),
                    Kind::Variable,
                    known.as_ref().map(Known::text),
                    None,
                );
            }
        }
        for binding in self.bindings {
            self.add(
                binding.name.clone(),
                Kind::Variable,
                binding.class.clone(),
                Some("session".into()),
            );
        }
        for word in RESERVED {
            self.add(*word, Kind::Keyword, None, None);
        }
    }

    /// Class names, also as `package@Name` once a package is typed.
    fn class_names(&mut self) {
        let is_qualified = self.prefix.contains('@');
        let table = self.table;
        let is_possible = |name: &&EcoString| is_qualified || name.starts_with(self.prefix);
        let names: Vec<&EcoString> = table.class_names().filter(is_possible).collect();
        for name in names {
            let Some(class) = table.class(name) else { continue };
            let text = match &class.package {
                // A name that several packages have carries its package already.
                Some(package) if is_qualified && !name.contains('@') => eco_format!("{package}@{name}"),
                _ => name.clone(),
            };
            self.add(text, Kind::Class, class.superclass.clone(), class.package.clone());
        }
        for name in table.protocol_names() {
            self.add(name.clone(), Kind::Protocol, None, None);
        }
    }

    fn fields(&mut self, found: &Found) {
        let Some(own) = &found.scope.own else { return };
        for slot in self.classes.slots(own) {
            self.add(slot.name, Kind::Field, slot.annotation, Some(slot.owner));
        }
    }

    fn messages(&mut self, receiver: &Expression, found: &Found) {
        self.erlang = erlang(receiver);
        if self.erlang.is_some() {
            return;
        }
        if matches!(receiver.kind, ExpressionKind::ClassName(_)) {
            self.add("subclass:", Kind::Keyword, None, None);
        }
        match self.classes.infer(receiver, &found.scope) {
            Some(known) => {
                for member in self.classes.members(&known) {
                    // What is internal to a package is no business of a session.
                    let is_hidden = member.is_internal && member.origin == Origin::Library;
                    if is_name(&member.selector) && !is_hidden {
                        self.add(
                            member.selector,
                            Kind::Method,
                            Some(member.signature),
                            Some(member.owner),
                        );
                    }
                }
            }
            None => self.any_message(),
        }
    }

    /// Nothing is known about the receiver: every selector that starts in this way.
    fn any_message(&mut self) {
        if self.prefix.is_empty() {
            return;
        }
        let table = self.table;
        let mut names: Vec<&EcoString> = table.class_names().collect();
        names.sort_unstable();
        for name in names {
            let Some(class) = table.class(name) else { continue };
            let possible = class.methods.keys().filter(|one| one.starts_with(self.prefix));
            let mut selectors: Vec<&EcoString> = possible.filter(|one| is_name(one)).collect();
            selectors.sort_unstable();
            for selector in selectors {
                self.add(selector.clone(), Kind::Method, None, Some(name.clone()));
            }
        }
    }

    /// `map at: 1 p`: the next part of a keyword message that is under way.
    fn keyword_parts(&mut self, found: &Found) {
        for (receiver, selector) in &found.keywords {
            let Some(known) = self.classes.infer(receiver, &found.scope) else {
                continue;
            };
            for member in self.classes.members(&known) {
                let next = member
                    .selector
                    .strip_prefix(selector.as_str())
                    .and_then(|rest| rest.split_inclusive(':').next());
                if let Some(part) = next {
                    let part = EcoString::from(part);
                    self.add(part, Kind::Method, Some(member.signature), Some(member.owner));
                }
            }
        }
    }
}

/// Operators are typed faster than completed.
fn is_name(selector: &str) -> bool {
    selector.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn erlang(receiver: &Expression) -> Option<Erlang> {
    let is_gateway = |node: &Expression| matches!(&node.kind, ExpressionKind::ClassName(class) if class.name.text == "Erlang");
    if is_gateway(receiver) {
        return Some(Erlang::Modules);
    }
    match &receiver.kind {
        ExpressionKind::Send(send) if is_gateway(&send.receiver) && send.message.arguments.is_empty() => {
            Some(Erlang::Functions(send.message.selector.clone()))
        }
        ExpressionKind::Parenthesized(inner) => erlang(inner).filter(|found| *found != Erlang::Modules),
        _ => None,
    }
}
