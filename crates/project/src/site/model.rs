//! What documentation says about the declarations of one source file.

use beamtalk_syntax::ast::{self, Item, SlotKeyword};
use beamtalk_syntax::span::LineIndex;

/// A class, a protocol, an alias, or extensions of a class declared elsewhere.
#[derive(Clone, Debug)]
pub struct Entry {
    pub name: String,
    /// The package it is of; empty for the standard library.
    pub package: String,
    pub kind: Kind,
    /// The declaration as written.
    pub header: String,
    pub doc: String,
    pub superclass: Option<String>,
    pub is_internal: bool,
    pub slots: Vec<Slot>,
    pub members: Vec<Member>,
    pub path: String,
    pub line: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Class,
    Protocol,
    Alias,
    Extensions,
}

#[derive(Clone, Debug)]
pub struct Slot {
    pub name: String,
    /// The declaration as written.
    pub text: String,
    pub doc: String,
}

#[derive(Clone, Debug)]
pub struct Member {
    pub selector: String,
    /// Selector, parameters and types as written.
    pub signature: String,
    pub doc: String,
    pub is_class: bool,
    pub is_internal: bool,
    pub path: String,
    pub line: u32,
}

/// The declarations of a file; extensions come as entries of their own.
pub fn entries(package: &str, path: &str, text: &str, unit: &ast::Unit) -> Vec<Entry> {
    let lines = LineIndex::new(text);
    let reader = Reader {
        package,
        path,
        text,
        lines,
    };
    unit.items.iter().filter_map(|item| reader.item(item)).collect()
}

struct Reader<'a> {
    package: &'a str,
    path: &'a str,
    text: &'a str,
    lines: LineIndex,
}

impl Reader<'_> {
    fn item(&self, item: &Item) -> Option<Entry> {
        match item {
            Item::Class(class) => Some(self.class(class)),
            Item::Protocol(protocol) => Some(Entry {
                header: format!("Protocol define: {}", protocol.name.text),
                superclass: protocol.extending.as_ref().map(|name| name.text.to_string()),
                members: protocol.signatures.iter().map(|it| self.signature(it)).collect(),
                ..self.entry(&protocol.name, Kind::Protocol, protocol.doc.as_deref())
            }),
            Item::TypeAlias(alias) => Some(Entry {
                header: flat(alias.span.text(self.text)),
                is_internal: alias.is_internal,
                ..self.entry(&alias.name, Kind::Alias, alias.doc.as_deref())
            }),
            Item::Extension(extension) => Some(Entry {
                members: vec![self.method(&extension.method)],
                ..self.entry(&extension.target.name, Kind::Extensions, None)
            }),
            Item::Statement(_) => None,
        }
    }

    fn entry(&self, name: &ast::Name, kind: Kind, doc: Option<&str>) -> Entry {
        Entry {
            name: name.text.to_string(),
            package: self.package.to_owned(),
            kind,
            header: String::new(),
            doc: doc.unwrap_or_default().to_owned(),
            superclass: None,
            is_internal: false,
            slots: Vec::new(),
            members: Vec::new(),
            path: self.path.to_owned(),
            line: self.lines.line(name.span.start),
        }
    }

    fn class(&self, class: &ast::Class) -> Entry {
        let superclass = class.superclass.as_ref();
        let slots = class.slots.iter().map(|slot| Slot {
            name: slot.name.text.to_string(),
            text: self.slot_text(slot),
            doc: slot.doc.as_deref().unwrap_or_default().to_owned(),
        });
        Entry {
            header: flat(class.header.text(self.text)),
            superclass: superclass.map(|superclass| superclass.name.text.to_string()),
            is_internal: class.modifiers.is_internal,
            slots: slots.collect(),
            members: class.methods.iter().map(|method| self.method(method)).collect(),
            ..self.entry(&class.name, Kind::Class, class.doc.as_deref())
        }
    }

    fn slot_text(&self, slot: &ast::Slot) -> String {
        let keyword = match slot.keyword {
            SlotKeyword::Field => "field:",
            SlotKeyword::State => "state:",
            SlotKeyword::ClassState => "classState:",
        };
        let annotation = slot
            .annotation
            .as_ref()
            .map_or_else(String::new, |it| format!(" :: {}", flat(it.span.text(self.text))));
        let default = slot
            .default
            .as_ref()
            .map_or_else(String::new, |it| format!(" = {}", flat(it.span.text(self.text))));
        format!("{keyword} {}{annotation}{default}", slot.name.text)
    }

    fn method(&self, method: &ast::Method) -> Member {
        let result = method.result.as_ref();
        let result = result.map_or_else(String::new, |it| format!(" -> {}", flat(it.span.text(self.text))));
        Member {
            selector: method.head.selector.to_string(),
            signature: format!("{}{result}", flat(method.head.span.text(self.text))),
            doc: method.doc.as_deref().unwrap_or_default().to_owned(),
            is_class: method.is_class,
            is_internal: method.is_internal,
            path: self.path.to_owned(),
            line: self.lines.line(method.span.start),
        }
    }

    fn signature(&self, signature: &ast::Signature) -> Member {
        let result = signature.result.as_ref();
        let result = result.map_or_else(String::new, |it| format!(" -> {}", flat(it.span.text(self.text))));
        Member {
            selector: signature.head.selector.to_string(),
            signature: format!("{}{result}", flat(signature.head.span.text(self.text))),
            doc: signature.doc.as_deref().unwrap_or_default().to_owned(),
            is_class: signature.is_class,
            is_internal: false,
            path: self.path.to_owned(),
            line: self.lines.line(signature.span.start),
        }
    }
}

/// On one line.
fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
