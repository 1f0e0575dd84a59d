//! Where things are declared.

use std::cell::OnceCell;

use beamtalk_compiler::complete::{Lookup, Receiver};
use beamtalk_compiler::types::{self, MethodRef, Types};
use beamtalk_syntax::ast::{
    Class, ExpressionKind, Item, Method, Parameter, Protocol, Signature, Slot, SlotKeyword, Target,
};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;
use ecow::EcoString;
use gen_lsp_types::Location;

use super::names::{Meaning, Occurrence, Owner, To};
use super::words::{self, Word};
use crate::state::View;
use crate::world::File;

/// The names of classes, protocols and aliases of a file that are this one.
pub(crate) fn named<'a>(file: &'a File, name: &'a str) -> impl Iterator<Item = Span> + 'a {
    file.source.unit.items.iter().filter_map(move |item| {
        let found = match item {
            Item::Class(class) => &class.name,
            Item::Protocol(protocol) => &protocol.name,
            Item::TypeAlias(alias) => &alias.name,
            Item::Extension(_) | Item::Statement(_) => return None,
        };
        (found.text == name).then_some(found.span)
    })
}

/// Where a class, protocol or alias is declared.
pub(crate) fn class(view: &View, name: &str) -> Vec<Location> {
    let word = Word::Class(words::plain(name));
    let files = view.all_files().filter(|file| file.words().has(word));
    files
        .flat_map(|file| named(file, name).map(|found| view.location(file, found)))
        .collect()
}

/// The class of this name in a file.
pub(crate) fn class_in<'a>(file: &'a File, name: &str) -> Option<&'a Class> {
    file.source.unit.items.iter().find_map(|item| match item {
        Item::Class(class) if class.name.text == name => Some(class),
        _ => None,
    })
}

/// The class with the file it stands in.
pub(crate) fn class_file<'a>(view: &'a View, name: &str) -> Option<(&'a File, &'a Class)> {
    let mut files = view.all_files();
    files.find_map(|file| class_in(file, name).map(|class| (file.as_ref(), class)))
}

/// A method with the class it is for.
pub(crate) struct Found<'a> {
    pub(crate) class: &'a EcoString,
    pub(crate) method: &'a Method,
    /// Outside of its class.
    pub(crate) is_extension: bool,
}

/// The methods and extensions of a file.
pub(crate) fn methods(file: &File) -> impl Iterator<Item = Found<'_>> {
    file.source.unit.items.iter().flat_map(|item| {
        let found: Vec<Found<'_>> = match item {
            Item::Class(class) => class
                .methods
                .iter()
                .map(|method| Found {
                    class: &class.name.text,
                    method,
                    is_extension: false,
                })
                .collect(),
            Item::Extension(extension) => vec![Found {
                class: &extension.target.name.text,
                method: &extension.method,
                is_extension: true,
            }],
            Item::Protocol(_) | Item::TypeAlias(_) | Item::Statement(_) => Vec::new(),
        };
        found
    })
}

/// What protocols of a file ask for.
pub(crate) fn signatures(file: &File) -> impl Iterator<Item = (&EcoString, &Signature)> {
    file.source.unit.items.iter().flat_map(|item| match item {
        Item::Protocol(protocol) => protocol
            .signatures
            .iter()
            .map(|signature| (&protocol.name.text, signature))
            .collect(),
        _ => Vec::new(),
    })
}

/// The span of a selector: from its first part to its last.
pub(crate) fn selector_span(parts: &[Span], whole: Span) -> Span {
    match (parts.first(), parts.last()) {
        (Some(first), Some(last)) if parts.len() == 1 => first.to(*last),
        (Some(first), Some(_)) => *first,
        _ => whole,
    }
}

/// The first word of a selector, by which files are sorted out before they are walked.
pub(crate) fn first_part(selector: &str) -> &str {
    selector.split_inclusive(':').next().unwrap_or(selector)
}

/// Every definition of a selector in classes, extensions and protocols.
pub(crate) fn implementors(view: &View, selector: &str) -> Vec<Location> {
    let word = Word::Selector(selector);
    let mut found = Vec::new();
    for file in view.all_files().filter(|file| file.words().has(word)) {
        for method in methods(file).filter(|found| found.method.head.selector == selector) {
            let head = &method.method.head;
            found.push(view.location(file, selector_span(&head.parts, head.span)));
        }
        for (_, signature) in signatures(file).filter(|(_, one)| one.head.selector == selector) {
            let head = &signature.head;
            found.push(view.location(file, selector_span(&head.parts, head.span)));
        }
    }
    found
}

/// The definition of a method of one class, in it or in an extension.
pub(crate) fn method(view: &View, class: &str, is_class: bool, selector: &str) -> Vec<Location> {
    let word = Word::Selector(selector);
    let mut found = Vec::new();
    for file in view.all_files().filter(|file| file.words().has(word)) {
        for one in methods(file) {
            let head = &one.method.head;
            if one.class == class && one.method.is_class == is_class && head.selector == selector {
                found.push(view.location(file, selector_span(&head.parts, head.span)));
            }
        }
    }
    found
}

/// The slot of a class or of the nearest ancestor that has it, with the class.
pub(crate) fn slot<'a>(view: &'a View, owner: &Owner, name: &str) -> Option<(&'a File, &'a Class, &'a Slot)> {
    let chain = view.world.table.chain(&owner.class);
    chain.iter().find_map(|entry| {
        let (file, class) = class_file(view, &entry.name)?;
        let is_meant = |slot: &&Slot| {
            let is_class = slot.keyword == SlotKeyword::ClassState;
            slot.name.text == name && is_class == owner.is_class
        };
        class.slots.iter().find(is_meant).map(|slot| (file, class, slot))
    })
}

/// What is known about the receivers of one file. Its types are worked out when the quick look does not tell.
pub(crate) struct Inference<'a> {
    pub(crate) lookup: &'a Lookup<'a>,
    types: OnceCell<Types>,
}

impl<'a> Inference<'a> {
    pub(crate) fn new(lookup: &'a Lookup<'a>) -> Self {
        Self {
            lookup,
            types: OnceCell::new(),
        }
    }

    pub(crate) fn types(&self, view: &View) -> &Types {
        let types = || types::of_resolved(&view.file.source, &view.world.table);
        self.types.get_or_init(types)
    }
}

/// Who gets the message at an occurrence, if that is known.
pub(crate) fn receiver(view: &View, inference: &Inference<'_>, name: &Occurrence) -> Option<Receiver> {
    quick_receiver(view, inference.lookup, name).or_else(|| typed_receiver(inference.types(view), name))
}

/// The same by the types of the text around it.
pub(crate) fn typed_receiver(types: &Types, name: &Occurrence) -> Option<Receiver> {
    let Meaning::Message {
        to: To::Other, first, ..
    } = &name.meaning
    else {
        return None;
    };
    match types.targets_of(*first) {
        [only] => Some(Receiver {
            class: only.class.clone(),
            is_class: only.is_class_side,
        }),
        _ => None,
    }
}

/// The same as far as a quick look tells.
pub(crate) fn quick_receiver(view: &View, lookup: &Lookup<'_>, name: &Occurrence) -> Option<Receiver> {
    let Meaning::Message { to, .. } = &name.meaning else {
        return None;
    };
    let own = |owner: &Owner| Receiver {
        class: owner.class.clone(),
        is_class: owner.is_class,
    };
    match to {
        To::Own => name.owner.as_ref().map(own),
        To::Super => {
            let owner = name.owner.as_ref()?;
            let superclass = view.world.table.class(&owner.class)?.superclass.clone()?;
            Some(Receiver {
                class: superclass,
                is_class: owner.is_class,
            })
        }
        To::Other => lookup.receiver(&view.file.source.unit, name.span.start),
    }
}

/// The methods that a message may reach, where its receiver may be of several classes.
pub(crate) fn targets(view: &View, inference: &Inference<'_>, name: &Occurrence) -> Vec<MethodRef> {
    match &name.meaning {
        Meaning::Message { first, .. } => inference.types(view).targets_of(*first).to_vec(),
        _ => Vec::new(),
    }
}

/// What is written behind `::` where a variable is declared.
pub(crate) fn annotation(file: &File, declared: Span) -> Option<Span> {
    let mut found = None;
    let mut parameters = |all: &[Parameter]| {
        let meant = all.iter().find(|one| one.name.span == declared);
        let annotation = meant.and_then(|one| one.annotation.as_ref());
        found = found.or(annotation.map(|annotation| annotation.span));
    };
    let mut assigned = None;
    for method in methods(file) {
        parameters(&method.method.head.parameters);
        for statement in &method.method.body {
            walk::all(&statement.expression, &mut |node| match &node.kind {
                ExpressionKind::Block(block) => parameters(&block.parameters),
                ExpressionKind::Assign {
                    target: Target::Variable(name),
                    annotation: Some(annotation),
                    ..
                } if name.span == declared => assigned = Some(annotation.span),
                _ => {}
            });
        }
    }
    found.or(assigned)
}

/// A protocol of this name, with its file.
pub(crate) fn protocol<'a>(view: &'a View, name: &str) -> Option<(&'a File, &'a Protocol)> {
    view.all_files().find_map(|file| {
        let mut items = file.source.unit.items.iter();
        items.find_map(|item| match item {
            Item::Protocol(protocol) if protocol.name.text == name => Some((file.as_ref(), protocol)),
            _ => None,
        })
    })
}
