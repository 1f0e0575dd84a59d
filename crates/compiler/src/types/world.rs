//! What classes promise: methods, slots and their types, read from the declarations in the class table.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use beamtalk_syntax::ast::{self, Item, SlotKeyword, TypeKind};
use ecow::EcoString;
use rustc_hash::{FxHashMap, FxHashSet};

use super::annotation::MAX_ALIASES;
use super::form::{Reason, Type};
use crate::class::{is_closed, setter_selector};
use crate::reads::Key;
use crate::table::{ClassEntry, ClassTable, Kind, Origin};

/// What type parameters stand for.
pub(crate) type Bindings = Vec<(EcoString, Type)>;

/// `T`: a type parameter, unless something has that name.
fn is_letter(name: &str) -> bool {
    let mut letters = name.chars();
    letters.next().is_some_and(char::is_uppercase) && letters.next().is_none()
}

pub(crate) fn bound(bindings: &Bindings, name: &EcoString) -> Option<Type> {
    bindings
        .iter()
        .find(|(known, _)| known == name)
        .map(|(_, of)| of.clone())
}

/// A method that a message reaches.
#[derive(Clone, Copy)]
pub(crate) struct Found<'a> {
    /// The class it belongs to.
    pub(crate) owner: &'a ClassEntry,
    pub(crate) is_class: bool,
    pub(crate) what: What<'a>,
    /// The package of the text it stands in.
    package: Option<&'a EcoString>,
}

impl<'a> Found<'a> {
    /// The package that keeps the method to itself.
    pub(crate) fn kept_by(&self) -> Option<&'a EcoString> {
        let is_internal = match self.what {
            What::Method(method) => method.is_internal,
            What::Getter(_) | What::Setter(_) | What::Constructor(_) => false,
        };
        self.package
            .filter(|_| is_internal || self.owner.modifiers.is_internal)
    }
}

#[derive(Clone, Copy)]
pub(crate) enum What<'a> {
    Method(&'a ast::Method),
    Getter(&'a ast::Slot),
    Setter(&'a ast::Slot),
    /// The keyword constructor of a Value.
    Constructor(&'a ast::Class),
}

/// What a method promises, with the type parameters it mentions.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    pub(crate) parameters: Vec<Option<Type>>,
    pub(crate) result: Option<Type>,
}

pub(crate) struct World<'a> {
    pub(crate) table: &'a ClassTable,
    /// The package of the text that is looked at.
    pub(crate) package: Option<EcoString>,
    aliases: RefCell<FxHashMap<EcoString, Type>>,
    signatures: RefCell<FxHashMap<(EcoString, bool, EcoString), Rc<Signature>>>,
    known: RefCell<FxHashMap<(EcoString, bool), bool>>,
    pub(super) answers: RefCell<FxHashMap<(EcoString, bool, EcoString), Answer>>,
    /// How many bodies are being looked at for what they answer.
    pub(super) depth: Cell<usize>,
}

/// What a body was found to answer.
#[derive(Clone)]
pub(super) enum Answer {
    /// Somebody is finding it out.
    Asked,
    Is(Type),
}

impl<'a> World<'a> {
    pub(crate) fn new(table: &'a ClassTable, package: Option<EcoString>) -> Self {
        Self {
            table,
            package,
            aliases: RefCell::default(),
            signatures: RefCell::default(),
            known: RefCell::default(),
            answers: RefCell::default(),
            depth: Cell::new(0),
        }
    }

    /// The type that an annotation in a class means. `Self` stays a parameter, to be replaced by the receiver.
    pub(crate) fn declared(&self, annotation: &ast::Type, class: Option<&ast::Class>) -> Type {
        self.meant(annotation, class, MAX_ALIASES)
    }

    fn meant(&self, annotation: &ast::Type, class: Option<&ast::Class>, aliases: usize) -> Type {
        let all = |parts: &[ast::Type]| -> Vec<Type> {
            parts
                .iter()
                .map(|part| self.meant(part, class, aliases))
                .collect()
        };
        match &annotation.kind {
            TypeKind::Named {
                class: named,
                arguments,
            } => self.named(&named.name.text, arguments, class, aliases),
            TypeKind::ClassOf(named) if self.table.class(&named.name.text).is_some() => {
                Type::class_of(named.name.text.clone())
            }
            TypeKind::ClassOf(_) | TypeKind::Error => Type::dynamic(Reason::Name),
            TypeKind::SelfType => Type::parameter("Self"),
            TypeKind::SelfClass => Type::parameter("Self class"),
            TypeKind::Symbol(name) => Type::symbol(name.clone()),
            TypeKind::Nil => Type::nil(),
            TypeKind::True => Type::class("True"),
            TypeKind::False => Type::class("False"),
            TypeKind::Union(parts) => Type::union(all(parts)),
            TypeKind::Intersection(parts) => self.meet(all(parts)),
            TypeKind::Difference(parts) => {
                let mut parts = all(parts);
                if parts.is_empty() {
                    return Type::dynamic(Reason::Name);
                }
                let base = parts.remove(0);
                parts
                    .into_iter()
                    .fold(base, |base, removed| self.subtract(&base, &removed))
            }
        }
    }

    fn named(
        &self,
        name: &EcoString,
        arguments: &[ast::Type],
        class: Option<&ast::Class>,
        aliases: usize,
    ) -> Type {
        let is_parameter = class.is_some_and(|class| {
            class
                .type_parameters
                .iter()
                .any(|parameter| parameter.name.text == *name)
        });
        if is_parameter {
            return Type::parameter(name.clone());
        }
        match name.as_str() {
            "Nil" => return Type::nil(),
            "Dynamic" => return Type::dynamic(Reason::Declared),
            "Never" => return Type::never(),
            _ => {}
        }
        let inner = || -> Vec<Type> {
            arguments
                .iter()
                .map(|argument| self.meant(argument, class, aliases))
                .collect()
        };
        if is_letter(name) && self.is_letter_of_another(name, class) {
            return Type::parameter(name.clone());
        }
        if let Some(entry) = self.table.class(name) {
            let mut inner = inner();
            return match name.as_str() {
                "Block" if !inner.is_empty() => {
                    let result = inner.pop().unwrap_or_else(Type::never);
                    Type::block(inner, result)
                }
                "Tuple" if !inner.is_empty() => Type::tuple(inner),
                _ => {
                    let count = entry
                        .declaration()
                        .map_or(0, |(_, class)| class.type_parameters.len());
                    let fits = inner.len() == count;
                    Type::generic(name.clone(), if fits { inner } else { Vec::new() }, fits)
                }
            };
        }
        if self.table.protocol(name).is_some() {
            return Type::protocol(name.clone());
        }
        if let Some(alias) = self.table.alias(name) {
            if let Some(known) = self.aliases.borrow().get(name) {
                return known.clone();
            }
            let Some(left) = aliases.checked_sub(1) else {
                return Type::dynamic(Reason::Name);
            };
            let meant = self.meant(&alias.definition, None, left);
            self.aliases.borrow_mut().insert(name.clone(), meant.clone());
            return meant;
        }
        if is_letter(name) {
            return Type::parameter(name.clone());
        }
        Type::dynamic(Reason::Name)
    }

    /// A class or protocol named `T` is none of the `T`s that the library and other packages have in their methods.
    fn is_letter_of_another(&self, name: &str, home: Option<&ast::Class>) -> bool {
        let Some(home) = home.and_then(|class| self.table.class(&class.name.text)) else {
            return false;
        };
        let named = self.table.class(name);
        match home.origin {
            Origin::Library => named.is_none_or(|named| named.origin != Origin::Library),
            _ => home.package != self.package && named.is_none_or(|named| named.package != home.package),
        }
    }

    /// The type of `self` in methods of a class.
    pub(crate) fn own_type(&self, class: &str, is_class: bool) -> Type {
        if is_class {
            return Type::class_of(class);
        }
        let parameters = self.type_parameters(class);
        let arguments = parameters.into_iter().map(Type::parameter).collect();
        Type::generic(class, arguments, true)
    }

    pub(crate) fn type_parameters(&self, class: &str) -> Vec<EcoString> {
        let declaration = self.table.class(class).and_then(ClassEntry::declaration);
        declaration.map_or_else(Vec::new, |(_, class)| {
            class
                .type_parameters
                .iter()
                .map(|parameter| parameter.name.text.clone())
                .collect()
        })
    }

    /// What the type parameters of `owner`, a class above that of the receiver or its own, stand for.
    pub(crate) fn bindings(&self, class: &str, arguments: &[Type], owner: &str) -> Bindings {
        let mut names = self.type_parameters(class);
        let mut current: Bindings = names
            .drain(..)
            .enumerate()
            .map(|(index, name)| {
                let argument = arguments.get(index).cloned();
                (name, argument.unwrap_or_else(|| Type::dynamic(Reason::Argument)))
            })
            .collect();
        for entry in self.table.chain(class) {
            if entry.name == owner {
                return current;
            }
            let above = entry
                .superclass
                .as_deref()
                .map(|above| self.type_parameters(above));
            let given = entry.declaration().map(|(_, class)| class);
            current = above
                .unwrap_or_default()
                .into_iter()
                .enumerate()
                .map(|(index, name)| {
                    let argument = given.and_then(|class| {
                        let argument = class.superclass_arguments.get(index)?;
                        Some(self.declared(argument, Some(class)))
                    });
                    let argument = argument.map(|it| it.replace(&|name| bound(&current, name), true));
                    (name, argument.unwrap_or_else(|| Type::dynamic(Reason::Argument)))
                })
                .collect();
        }
        Bindings::new()
    }

    /// The method that a message to an instance of a class, or to the class, reaches.
    pub(crate) fn find(&self, class: &str, is_class: bool, selector: &str) -> Option<Found<'a>> {
        let own = self.table.chain(class).into_iter();
        let own = own.map(|entry| (entry, is_class));
        let shared = is_class.then(|| self.table.chain("Class")).into_iter().flatten();
        own.chain(shared.map(|entry| (entry, false)))
            .find_map(|(entry, side)| self.own_method(entry, side, selector))
    }

    /// The same, starting above the class.
    pub(crate) fn find_above(&self, class: &str, is_class: bool, selector: &str) -> Option<Found<'a>> {
        let above = self.table.class(class)?.superclass.as_ref();
        match above {
            Some(above) => self.find(above, is_class, selector),
            None if is_class => self.find("Class", false, selector),
            None => None,
        }
    }

    fn own_method(&self, entry: &'a ClassEntry, is_class: bool, selector: &str) -> Option<Found<'a>> {
        let make = |what| Found {
            owner: entry,
            is_class,
            what,
            package: entry.package.as_ref(),
        };
        let methods = if is_class {
            &entry.class_methods
        } else {
            &entry.methods
        };
        if let Some((_, class)) = entry.declaration() {
            if let Some(known) = methods.get(selector) {
                let method = class.methods.get(known.index)?;
                if entry.origin != Origin::Library {
                    self.table.note(|| Key::method(entry.key, is_class, selector));
                }
                return Some(make(What::Method(method)));
            }
            if let Some(generated) = self.generated(entry, class, is_class, selector) {
                return Some(make(generated));
            }
        }
        let extension = self.table.extensions(&entry.name, is_class, selector).last()?;
        match extension.source.unit.items.get(extension.item)? {
            Item::Extension(item) => Some(Found {
                package: extension.source.package.as_ref(),
                ..make(What::Method(&item.method))
            }),
            _ => None,
        }
    }

    /// Accessors and constructor of a Value class.
    fn generated(
        &self,
        entry: &'a ClassEntry,
        class: &'a ast::Class,
        is_class: bool,
        selector: &str,
    ) -> Option<What<'a>> {
        let has_fields = class
            .slots
            .iter()
            .any(|slot| slot.keyword != SlotKeyword::ClassState);
        if !has_fields || self.table.kind(&entry.name) != Kind::Value {
            return None;
        }
        let mut fields = class
            .slots
            .iter()
            .filter(|slot| slot.keyword != SlotKeyword::ClassState);
        if is_class {
            let mut rest = selector;
            for field in fields {
                rest = rest.strip_prefix(field.name.text.as_str())?.strip_prefix(':')?;
            }
            return rest.is_empty().then_some(What::Constructor(class));
        }
        if let Some(argument) = selector.strip_suffix(':') {
            argument.strip_prefix("with")?;
            let field = fields.find(|field| setter_selector(&field.name.text) == selector)?;
            return Some(What::Setter(field));
        }
        let field = fields.find(|field| field.name.text == selector)?;
        Some(What::Getter(field))
    }

    /// What a found method promises.
    pub(crate) fn signature(&self, found: &Found<'a>, selector: &str) -> Rc<Signature> {
        let key = (
            found.owner.name.clone(),
            found.is_class,
            EcoString::from(selector),
        );
        if let Some(known) = self.signatures.borrow().get(&key) {
            return Rc::clone(known);
        }
        let class = found.owner.declaration().map(|(_, class)| class);
        let read = |annotation: &Option<ast::Type>| annotation.as_ref().map(|it| self.declared(it, class));
        let signature = match found.what {
            What::Method(method) => Signature {
                parameters: method
                    .head
                    .parameters
                    .iter()
                    .map(|it| read(&it.annotation))
                    .collect(),
                result: read(&method.result),
            },
            What::Getter(slot) => Signature {
                parameters: Vec::new(),
                result: Some(read(&slot.annotation).unwrap_or_else(|| Type::dynamic(Reason::Slot))),
            },
            What::Setter(slot) => Signature {
                parameters: vec![read(&slot.annotation)],
                result: Some(Type::parameter("Self")),
            },
            What::Constructor(class) => {
                let fields = class
                    .slots
                    .iter()
                    .filter(|slot| slot.keyword != SlotKeyword::ClassState);
                Signature {
                    parameters: fields.map(|slot| read(&slot.annotation)).collect(),
                    result: Some(Type::parameter("Self")),
                }
            }
        };
        let signature = Rc::new(signature);
        self.signatures.borrow_mut().insert(key, Rc::clone(&signature));
        signature
    }

    /// The nearest declaration of a slot, with the class that has it.
    pub(crate) fn slot(
        &self,
        class: &str,
        is_class: bool,
        name: &str,
    ) -> Option<(&'a ClassEntry, &'a ast::Slot)> {
        self.table.chain(class).into_iter().find_map(|entry| {
            let (_, class) = entry.declaration()?;
            let slot = class.slots.iter().find(|slot| {
                slot.name.text == name && (slot.keyword == SlotKeyword::ClassState) == is_class
            })?;
            Some((entry, slot))
        })
    }

    /// The declared type of a slot as an instance of `class` with these arguments has it.
    pub(crate) fn slot_type(
        &self,
        class: &str,
        arguments: &[Type],
        is_class: bool,
        name: &str,
    ) -> Option<Type> {
        let (entry, slot) = self.slot(class, is_class, name)?;
        let declaration = entry.declaration().map(|(_, class)| class);
        let declared = self.declared(slot.annotation.as_ref()?, declaration);
        let bindings = self.bindings(class, arguments, &entry.name);
        Some(declared.replace(&|name| bound(&bindings, name), true))
    }

    /// All methods of the class are written somewhere, and no method of its own answers the rest.
    pub(crate) fn is_known(&self, class: &str, is_class: bool) -> bool {
        let key = (EcoString::from(class), is_class);
        if let Some(known) = self.known.borrow().get(&key) {
            return *known;
        }
        let is_open = |is_class: bool| {
            self.find(class, is_class, "doesNotUnderstand:args:")
                .is_some_and(|found| !matches!(found.owner.name.as_str(), "Object" | "ProtoObject"))
        };
        let is_proxy = matches!(class, "Erlang" | "ErlangModule" | "TimeoutProxy" | "Metaclass");
        let is_written = self
            .table
            .chain(class)
            .iter()
            .all(|entry| entry.declared.is_some());
        let is_known = !is_proxy && is_closed(self.table, class) && is_written && !is_open(is_class);
        self.known.borrow_mut().insert(key, is_known);
        is_known
    }

    /// Whether instances of a class may be something that no text tells: an unknown superclass, or a stand-in.
    pub(crate) fn is_certain(&self, class: &str) -> bool {
        self.is_known(class, false)
    }

    /// The classes below one, itself not included.
    pub(crate) fn descendants(&self, class: &str) -> Vec<EcoString> {
        let mut found = Vec::new();
        let mut seen = FxHashSet::default();
        let mut next = vec![EcoString::from(class)];
        while let Some(name) = next.pop() {
            for below in self.table.subclasses(&name) {
                if seen.insert(below.clone()) {
                    found.push(below.clone());
                    next.push(below.clone());
                }
            }
        }
        found
    }

    /// Whether a class below one has a method of its own for a selector.
    pub(crate) fn overriders(&self, class: &str, is_class: bool, selector: &str) -> Vec<&'a ClassEntry> {
        let is_sealed = self
            .table
            .class(class)
            .is_some_and(|entry| entry.modifiers.is_sealed);
        if is_sealed && !self.table.is_library_class(class) {
            return Vec::new();
        }
        let below = self.descendants(class);
        let entries = below.iter().filter_map(|name| self.table.class(name));
        entries
            .filter(|entry| self.own_method(entry, is_class, selector).is_some())
            .collect()
    }

    /// What a class lacks of a protocol; none when too little is known about it.
    pub(crate) fn missing(
        &self,
        class: &str,
        is_class_object: bool,
        protocol: &str,
    ) -> Option<Vec<EcoString>> {
        if !self.is_known(class, is_class_object) {
            return None;
        }
        let required = self.table.required_by(protocol);
        let missing = required.into_iter().filter(|(is_class, selector)| {
            self.find(class, *is_class || is_class_object, selector).is_none()
        });
        Some(missing.map(|(_, selector)| selector.clone()).collect())
    }

    /// Everything the receiver has a method for, for proposals.
    pub(crate) fn selectors(&self, class: &str, is_class: bool) -> Vec<EcoString> {
        let own = self.table.chain(class).into_iter().map(|entry| (entry, is_class));
        let shared = is_class.then(|| self.table.chain("Class")).into_iter().flatten();
        let mut all = Vec::new();
        for (entry, side) in own.chain(shared.map(|entry| (entry, false))) {
            let methods = if side {
                &entry.class_methods
            } else {
                &entry.methods
            };
            all.extend(methods.keys().cloned());
            all.extend(self.table.extension_selectors(&entry.name, side).cloned());
            if let Some((_, class)) = entry.declaration() {
                let (accessors, constructor) = crate::class::generated_selectors(self.table, class);
                if side {
                    all.extend(constructor);
                } else {
                    all.extend(accessors);
                }
            }
        }
        all
    }
}
