//! Classes as people read them: members with their signatures and documentation, from the texts in the class table.

use std::cell::RefCell;

use beamtalk_syntax::ast::{self, Item, SlotKeyword};
use ecow::{EcoString, eco_format};
use rustc_hash::{FxHashMap, FxHashSet};

use super::Binding;
use crate::class::{generated_selectors, setter_selector};
use crate::table::{ClassEntry, ClassTable, Origin};
use crate::types::{self, Form, Type, Types};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Side {
    Instance,
    Class,
}

/// What a value is known to be: an instance of a class, or the class itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Known {
    pub(super) class: EcoString,
    pub(super) side: Side,
}

impl Known {
    pub(super) fn instance(class: impl Into<EcoString>) -> Self {
        Self {
            class: class.into(),
            side: Side::Instance,
        }
    }

    pub(super) fn class(class: impl Into<EcoString>) -> Self {
        Self {
            class: class.into(),
            side: Side::Class,
        }
    }

    /// `Lamp`, or `Lamp class`.
    pub(super) fn text(&self) -> EcoString {
        match self.side {
            Side::Instance => self.class.clone(),
            Side::Class => eco_format!("{} class", self.class),
        }
    }

    pub(super) fn from_text(text: &str) -> Self {
        match text.strip_suffix(" class") {
            Some(class) => Self::class(class),
            None => Self::instance(text),
        }
    }
}

/// A method as a receiver has it.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub(super) selector: EcoString,
    pub(super) signature: EcoString,
    pub(super) doc: Option<EcoString>,
    pub(super) result: Result,
    pub(super) owner: EcoString,
    pub(super) origin: Origin,
    pub(super) is_internal: bool,
}

/// The declared type of an answer.
#[derive(Clone, Debug)]
pub(super) enum Result {
    Unknown,
    /// An instance of the receiver's class.
    Own,
    Declared(ast::Type),
}

pub(super) struct SlotText {
    pub(super) name: EcoString,
    pub(super) annotation: Option<EcoString>,
    pub(super) doc: Option<EcoString>,
    pub(super) owner: EcoString,
}

/// The class table with what was found out so far.
pub(super) struct Classes<'a> {
    pub(super) table: &'a ClassTable,
    /// The types of the expressions of the text that is looked at.
    types: RefCell<Types>,
    /// Members that were asked for.
    found: RefCell<FxHashMap<(EcoString, Side, EcoString), Option<Member>>>,
}

impl<'a> Classes<'a> {
    pub(super) fn new(table: &'a ClassTable) -> Self {
        Self {
            table,
            types: RefCell::default(),
            found: RefCell::default(),
        }
    }

    /// Looks at the types around an offset of a text in which these variables have values: those of the method there,
    /// or of the statements outside of methods.
    pub(super) fn learn(&self, unit: &ast::Unit, bindings: &[Binding], offset: usize) {
        let bindings: Vec<(EcoString, Type)> = bindings
            .iter()
            .filter_map(|binding| {
                let known = Known::from_text(binding.class.as_deref()?);
                let of = match known.side {
                    Side::Instance => Type::class(known.class),
                    Side::Class => Type::class_of(known.class),
                };
                Some((binding.name.clone(), of))
            })
            .collect();
        *self.types.borrow_mut() = types::around(unit, None, self.table, &bindings, offset);
    }

    /// The class that the inferred type of an expression has; for everyone who wants to send it something, nil is none.
    pub(super) fn inferred(&self, node: &ast::Expression) -> Option<Known> {
        let types = self.types.borrow();
        let of = types.of_span(node.span)?;
        let mut classes = of
            .members()
            .iter()
            .filter(|member| !member.is_nil())
            .map(|member| match member.form() {
                Form::ClassOf(name) => Some(Known::class(name.clone())),
                _ => member.class_name().map(Known::instance),
            });
        let first = classes.next()??;
        let known = self.table.class(&first.class).is_some();
        (known && classes.all(|other| other.as_ref() == Some(&first))).then_some(first)
    }

    /// Everything the receiver answers; what overrides comes instead of what is overridden.
    pub(super) fn members(&self, known: &Known) -> Vec<Member> {
        let mut seen: FxHashSet<EcoString> = FxHashSet::default();
        let mut members = Vec::new();
        for (entry, side) in self.behaviours(known) {
            for member in self.own_members(entry, side) {
                if seen.insert(member.selector.clone()) {
                    members.push(member);
                }
            }
        }
        members
    }

    pub(super) fn member(&self, known: &Known, selector: &str) -> Option<Member> {
        let key = (known.class.clone(), known.side, EcoString::from(selector));
        if let Some(found) = self.found.borrow().get(&key) {
            return found.clone();
        }
        let mut behaviours = self.behaviours(known).into_iter();
        let found = behaviours.find_map(|(entry, side)| self.own_member(entry, side, selector));
        self.found.borrow_mut().insert(key, found.clone());
        found
    }

    /// Where methods are looked up, nearest first: a class object has the class side of its chain and then what
    /// every class has.
    fn behaviours(&self, known: &Known) -> Vec<(&'a ClassEntry, Side)> {
        let own = self.table.chain(&known.class).into_iter();
        let own = own.map(|entry| (entry, known.side));
        match known.side {
            Side::Instance => own.collect(),
            Side::Class => {
                let shared = self.table.chain("Class").into_iter();
                own.chain(shared.map(|entry| (entry, Side::Instance))).collect()
            }
        }
    }

    /// The member of a class itself, or what an extension adds to it.
    fn own_member(&self, entry: &ClassEntry, side: Side, selector: &str) -> Option<Member> {
        let is_class = side == Side::Class;
        let methods = if is_class {
            &entry.class_methods
        } else {
            &entry.methods
        };
        if let Some((_, class)) = entry.declaration() {
            if let Some(method) = methods
                .get(selector)
                .and_then(|known| class.methods.get(known.index))
            {
                return Some(of_method(entry, method, &entry.text));
            }
            // Accessors and constructors come from slots.
            if !class.slots.is_empty() {
                let generated = self.generated_members(entry, class, side);
                let found = generated.into_iter().find(|member| member.selector == selector);
                if found.is_some() {
                    return found;
                }
            }
        }
        let (method, text) = self.extension(&entry.name, is_class, selector)?;
        Some(of_method(entry, method, text))
    }

    fn own_members(&self, entry: &ClassEntry, side: Side) -> Vec<Member> {
        let is_class = side == Side::Class;
        let mut members = Vec::new();
        if let Some((_, class)) = entry.declaration() {
            let methods = class.methods.iter().filter(|method| method.is_class == is_class);
            members.extend(methods.map(|method| of_method(entry, method, &entry.text)));
            members.extend(self.generated_members(entry, class, side));
        }
        for selector in self.table.extension_selectors(&entry.name, is_class) {
            let found = self.extension(&entry.name, is_class, selector);
            members.push(found.map_or_else(
                || Member::new(entry, selector, selector.clone(), Result::Unknown),
                |(method, text)| of_method(entry, method, text),
            ));
        }
        members
    }

    /// What the slots of a value bring.
    fn generated_members(&self, entry: &ClassEntry, class: &ast::Class, side: Side) -> Vec<Member> {
        let (accessors, constructor) = generated_selectors(self.table, class);
        if side == Side::Class {
            let constructor = constructor.map(|selector| {
                let signature = eco_format!("{selector} -> Self");
                Member::new(entry, &selector, signature, Result::Own)
            });
            return constructor.into_iter().collect();
        }
        let mut members = Vec::new();
        let fields = class
            .slots
            .iter()
            .filter(|slot| slot.keyword == SlotKeyword::Field);
        for (field, selector) in
            fields.flat_map(|f| [(f, f.name.text.clone()), (f, setter_selector(&f.name.text))])
        {
            if accessors.contains(&selector) {
                let is_getter = selector == field.name.text;
                members.push(accessor(field, is_getter, &entry.text, |signature, result| {
                    Member {
                        doc: field.doc.clone(),
                        ..Member::new(entry, &selector, signature, result)
                    }
                }));
            }
        }
        members
    }

    fn extension(&self, class: &str, is_class: bool, selector: &str) -> Option<(&'a ast::Method, &'a str)> {
        let entry = self.table.extensions(class, is_class, selector).last()?;
        match entry.source.unit.items.get(entry.item)? {
            Item::Extension(extension) => Some((&extension.method, &entry.source.text)),
            _ => None,
        }
    }

    /// The declaration of a field of an instance, or of a variable of a class.
    pub(super) fn slot(&self, known: &Known, name: &str) -> Option<&'a ast::Slot> {
        let is_class = known.side == Side::Class;
        self.table.chain(&known.class).into_iter().find_map(|entry| {
            let (_, class) = entry.declaration()?;
            class
                .slots
                .iter()
                .find(|slot| slot.name.text == name && (slot.keyword == SlotKeyword::ClassState) == is_class)
        })
    }

    /// The fields of an instance, or the variables of a class, own ones first.
    pub(super) fn slots(&self, known: &Known) -> Vec<SlotText> {
        let mut slots: Vec<SlotText> = Vec::new();
        for entry in self.table.chain(&known.class) {
            let Some((_, class)) = entry.declaration() else {
                continue;
            };
            for slot in &class.slots {
                let is_class_slot = slot.keyword == SlotKeyword::ClassState;
                if is_class_slot == (known.side == Side::Class)
                    && slots.iter().all(|known| known.name != slot.name.text)
                {
                    slots.push(SlotText {
                        name: slot.name.text.clone(),
                        annotation: slot.annotation.as_ref().map(|a| types::text(a, &entry.text)),
                        doc: slot.doc.clone(),
                        owner: entry.name.clone(),
                    });
                }
            }
        }
        slots
    }
}

impl Member {
    fn new(entry: &ClassEntry, selector: &EcoString, signature: EcoString, result: Result) -> Self {
        Self {
            selector: selector.clone(),
            signature,
            doc: None,
            result,
            owner: entry.name.clone(),
            origin: entry.origin,
            is_internal: false,
        }
    }
}

fn of_method(entry: &ClassEntry, method: &ast::Method, text: &str) -> Member {
    let result = method.result.clone().map_or(Result::Unknown, Result::Declared);
    Member {
        doc: method.doc.clone(),
        is_internal: method.is_internal,
        ..Member::new(
            entry,
            &method.head.selector,
            signature(&method.head, method.result.as_ref(), text),
            result,
        )
    }
}

fn accessor(
    field: &ast::Slot,
    is_getter: bool,
    text: &str,
    make: impl FnOnce(EcoString, Result) -> Member,
) -> Member {
    let annotation = field.annotation.as_ref().map(|a| types::text(a, text));
    let name = &field.name.text;
    if is_getter {
        let signature = annotation.map_or_else(|| name.clone(), |a| eco_format!("{name} -> {a}"));
        let result = field.annotation.clone().map_or(Result::Unknown, Result::Declared);
        make(signature, result)
    } else {
        let parameter = annotation.map_or_else(|| name.clone(), |a| eco_format!("{name} :: {a}"));
        make(
            eco_format!("{} {parameter} -> Self", setter_selector(name)),
            Result::Own,
        )
    }
}

/// `at: index :: Integer put: value -> Self`, on one line.
pub(super) fn signature(head: &ast::Head, result: Option<&ast::Type>, text: &str) -> EcoString {
    let mut words: Vec<EcoString> = Vec::new();
    for (part, parameter) in head.parts.iter().zip(&head.parameters) {
        words.push(part.text(text).into());
        words.push(parameter.name.text.clone());
        if let Some(annotation) = &parameter.annotation {
            words.push(eco_format!(":: {}", types::text(annotation, text)));
        }
    }
    if words.is_empty() {
        words.push(head.selector.clone());
    }
    if let Some(result) = result {
        words.push(eco_format!("-> {}", types::text(result, text)));
    }
    words.join(" ").into()
}
