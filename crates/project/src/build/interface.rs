//! What one file shows to others, and what it takes from them: the ground for deciding which files a
//! change reaches.

use std::collections::{BTreeMap, BTreeSet};

use beamtalk_compiler::SourceFile;
use beamtalk_syntax::ast::{Class, Item, Method, Slot};
use beamtalk_syntax::span::Span;

use crate::files;

/// The visible parts of all files of a package, by declared name.
#[derive(Clone, Debug, Default)]
pub struct Interfaces {
    /// Own declaration of a class, protocol or alias, as text.
    own: BTreeMap<String, String>,
    superclasses: BTreeMap<String, String>,
    /// Extensions, by the class they extend.
    extensions: BTreeMap<String, BTreeSet<String>>,
    selectors: BTreeSet<String>,
}

impl Interfaces {
    pub fn add(&mut self, file: &SourceFile) {
        for item in &file.unit.items {
            match item {
                Item::Class(class) => {
                    self.own
                        .insert(class.name.text.to_string(), class_text(file, class));
                    if let Some(superclass) = &class.superclass {
                        self.superclasses
                            .insert(class.name.text.to_string(), superclass.name.text.to_string());
                    }
                    self.selectors.extend(
                        class
                            .methods
                            .iter()
                            .map(|method| method.head.selector.to_string()),
                    );
                }
                Item::Protocol(protocol) => {
                    self.own.insert(
                        protocol.name.text.to_string(),
                        text(file, protocol.span).to_owned(),
                    );
                }
                Item::TypeAlias(alias) => {
                    self.own
                        .insert(alias.name.text.to_string(), text(file, alias.span).to_owned());
                }
                Item::Extension(extension) => {
                    self.selectors.insert(extension.method.head.selector.to_string());
                    self.extensions
                        .entry(extension.target.name.text.to_string())
                        .or_default()
                        .insert(method_text(file, &extension.method));
                }
                Item::Statement(_) => {}
            }
        }
    }

    /// The hash of a name with everything it inherits; the empty text for a name of someone else.
    pub fn hash(&self, name: &str) -> String {
        let mut seen = BTreeSet::new();
        let mut content = String::new();
        let mut next = Some(name);
        while let Some(current) = next {
            if !seen.insert(current) {
                break;
            }
            content.push_str(self.own.get(current).map_or("", String::as_str));
            for extension in self.extensions.get(current).into_iter().flatten() {
                content.push_str(extension);
            }
            next = self.superclasses.get(current).map(String::as_str);
        }
        if content.is_empty() {
            String::new()
        } else {
            files::hash(content.as_bytes())
        }
    }

    /// The hash of what reaches every file: extensions of classes from outside, and selectors of the
    /// library that the package defines as well (they are not inlined).
    pub fn global_hash(&self, library_selectors: &BTreeSet<String>) -> String {
        let outside = self
            .extensions
            .iter()
            .filter(|(class, _)| !self.own.contains_key(*class));
        let content: Vec<&str> = outside
            .flat_map(|(_, extensions)| extensions.iter().map(String::as_str))
            .chain(self.selectors.intersection(library_selectors).map(String::as_str))
            .collect();
        files::hash(content.join("\n").as_bytes())
    }

    /// The names a file declares, with their hashes.
    pub fn declared(&self, file: &SourceFile) -> BTreeMap<String, String> {
        let names = file.unit.items.iter().filter_map(|item| match item {
            Item::Class(class) => Some(&class.name.text),
            Item::Protocol(protocol) => Some(&protocol.name.text),
            Item::TypeAlias(alias) => Some(&alias.name.text),
            Item::Extension(_) | Item::Statement(_) => None,
        });
        names.map(|name| (name.to_string(), self.hash(name))).collect()
    }

    /// The names a file mentions, with their hashes.
    pub fn used(&self, source: &str) -> BTreeMap<String, String> {
        mentioned(source)
            .into_iter()
            .map(|name| (name.to_owned(), self.hash(name)))
            .collect()
    }
}

/// Every capitalised word of a text. Comments and strings count too: a superset is harmless.
fn mentioned(source: &str) -> BTreeSet<&str> {
    source
        .split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|word| word.starts_with(char::is_uppercase))
        .collect()
}

fn text(file: &SourceFile, span: Span) -> &str {
    span.text(&file.text)
}

fn class_text(file: &SourceFile, class: &Class) -> String {
    let mut content = String::from(text(file, class.header));
    for slot in &class.slots {
        content.push('\n');
        content.push_str(slot_text(file, slot));
    }
    for method in &class.methods {
        content.push('\n');
        content.push_str(&method_text(file, method));
    }
    content
}

fn slot_text<'a>(file: &'a SourceFile, slot: &Slot) -> &'a str {
    text(file, slot.span)
}

/// A method without its body.
fn method_text(file: &SourceFile, method: &Method) -> String {
    format!(
        "{}{}{}{}{}",
        if method.is_class { "class " } else { "" },
        if method.is_sealed { "sealed " } else { "" },
        if method.is_internal { "internal " } else { "" },
        text(file, method.head.span),
        method
            .result
            .as_ref()
            .map_or("", |result| text(file, result.span)),
    )
}
