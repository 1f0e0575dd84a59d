//! What stands at the cursor, in words.

use beamtalk_syntax::parse_input;
use ecow::{EcoString, eco_format};

use super::cursor::{self, Found, Scope, Site};
use super::describe::{Classes, Known, Member};
use super::{Binding, Kind, char_boundary};
use crate::table::ClassTable;

/// Of a message to an unknown receiver at most this many implementors are named.
const MAX_IMPLEMENTORS: usize = 10;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hover {
    /// Markdown.
    pub contents: String,
    pub signature: Option<EcoString>,
    pub kind: Kind,
}

/// What stands at the byte offset `cursor`, or directly before it.
pub fn hover(table: &ClassTable, bindings: &[Binding], code: &str, cursor: usize) -> Option<Hover> {
    let unit = parse_input(code).unit;
    let classes = Classes::new(table);
    let offset = char_boundary(code, cursor);
    classes.learn(&unit, bindings, offset);
    let found = cursor::find(&unit, offset, &classes, bindings)?;
    let Found { site, scope, .. } = &found;
    match site {
        Site::Class(name) | Site::Type(name) => class(&classes, name).or_else(|| alias(table, name)),
        Site::Variable(name) => Some(variable(name, scope)),
        Site::Field(name) => field(&classes, name, scope),
        Site::Message { receiver, message } => match classes.infer(receiver, scope) {
            Some(known) => classes
                .member(&known, &message.selector)
                .map(|member| method(&member)),
            None => implementors(table, &message.selector),
        },
    }
}

fn code_block(text: &str) -> String {
    format!("```beamtalk\n{text}\n```")
}

fn with_doc(mut contents: String, doc: Option<&EcoString>) -> String {
    if let Some(doc) = doc.filter(|doc| !doc.is_empty()) {
        contents.push_str("\n\n");
        contents.push_str(doc);
    }
    contents
}

pub(super) fn class(classes: &Classes, name: &str) -> Option<Hover> {
    let entry = classes.table.class(name)?;
    let declaration = entry.declaration().map(|(_, class)| class);
    let signature = match declaration {
        Some(class) => class.header.text(&entry.text).trim().into(),
        None => match &entry.superclass {
            Some(superclass) => eco_format!("{superclass} subclass: {name}"),
            None => name.into(),
        },
    };
    let doc = declaration.and_then(|class| class.doc.clone());
    Some(Hover {
        contents: with_doc(code_block(&signature), doc.as_ref()),
        signature: Some(signature),
        kind: Kind::Class,
    })
}

pub(super) fn alias(table: &ClassTable, name: &str) -> Option<Hover> {
    let alias = table.alias(name)?;
    Some(Hover {
        contents: with_doc(code_block(&alias.text), alias.doc.as_ref()),
        signature: Some(alias.text.clone()),
        kind: Kind::Alias,
    })
}

pub(super) fn method(member: &Member) -> Hover {
    let contents = format!("{}\n*{}*", code_block(&member.signature), member.owner);
    Hover {
        contents: with_doc(contents, member.doc.as_ref()),
        signature: Some(member.signature.clone()),
        kind: Kind::Method,
    }
}

pub(super) fn implementors(table: &ClassTable, selector: &str) -> Option<Hover> {
    let mut names: Vec<&str> = table
        .class_names()
        .filter(|name| {
            table
                .class(name)
                .is_some_and(|class| class.methods.contains_key(selector))
        })
        .map(EcoString::as_str)
        .collect();
    names.sort_unstable();
    if names.is_empty() {
        return None;
    }
    let more = names.len().saturating_sub(MAX_IMPLEMENTORS);
    names.truncate(MAX_IMPLEMENTORS);
    let mut contents = format!("{}\nImplemented by {}", code_block(selector), names.join(", "));
    if more > 0 {
        contents.push_str(&format!(" and {more} more"));
    }
    Some(Hover {
        contents,
        signature: None,
        kind: Kind::Method,
    })
}

fn variable(name: &str, scope: &Scope) -> Hover {
    let signature = match scope.local(name) {
        Some(known) => eco_format!("{name} :: {}", known.text()),
        None => name.into(),
    };
    Hover {
        contents: code_block(&signature),
        signature: Some(signature),
        kind: Kind::Variable,
    }
}

fn field(classes: &Classes, name: &str, scope: &Scope) -> Option<Hover> {
    field_of(classes, name, scope.own.as_ref()?)
}

pub(super) fn field_of(classes: &Classes, name: &str, own: &Known) -> Option<Hover> {
    let slot = classes.slots(own).into_iter().find(|slot| slot.name == name)?;
    let signature = match &slot.annotation {
        Some(annotation) => eco_format!("{name} :: {annotation}"),
        None => name.into(),
    };
    Some(Hover {
        contents: with_doc(
            format!("{}\n*{}*", code_block(&signature), slot.owner),
            slot.doc.as_ref(),
        ),
        signature: Some(signature),
        kind: Kind::Field,
    })
}
