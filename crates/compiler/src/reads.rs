//! What findings rest on: everything a text may ask of the class table has a key, and each file adds to some of them.
//!
//! The findings of a file hold as long as its own text, and what all files together add to the keys it read, stay the
//! same. Keys are hashes: two things that share one cost a needless second look and never a missed one.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use beamtalk_syntax::ast::{Class, Item, Method, SlotKeyword};
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::span::Span;
use ecow::EcoString;
use rustc_hash::{FxHashSet, FxHasher};

use crate::table::{ClassTable, Origin};
use crate::{SourceFile, check_file, ffi};

/// Something that the class table can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(pub u64);

impl Key {
    fn new(what: u8, of: impl Hash) -> Self {
        let mut hasher = FxHasher::default();
        (what, of).hash(&mut hasher);
        Self(hasher.finish())
    }

    /// The shape of a class: its header, slots and selectors.
    pub(crate) fn class(name: &str) -> Self {
        Self::new(0, name)
    }

    /// What a method of a class promises; where it promises nothing, its body too.
    pub(crate) fn method(class: Self, is_class: bool, selector: &str) -> Self {
        Self::new(1, (class, is_class, selector))
    }

    /// The methods that files add to one of a class.
    pub(crate) fn extension(class: &str, is_class: bool, selector: &str) -> Self {
        Self::new(2, (class, is_class, selector))
    }

    /// The same of any class of the library: whoever sends something looks through several of them.
    pub(crate) fn library_extension(is_class: bool, selector: &str) -> Self {
        Self::new(11, (is_class, selector))
    }

    /// The selectors that files add to a side of a class.
    pub(crate) fn extended(class: &str, is_class: bool) -> Self {
        Self::new(3, (class, is_class))
    }

    pub(crate) fn protocol(name: &str) -> Self {
        Self::new(4, name)
    }

    pub(crate) fn alias(name: &str) -> Self {
        Self::new(5, name)
    }

    /// The classes directly below one.
    pub(crate) fn below(class: &str) -> Self {
        Self::new(6, class)
    }

    /// The names of all classes.
    pub(crate) fn class_names() -> Self {
        Self::new(7, ())
    }

    pub(crate) fn protocol_names() -> Self {
        Self::new(8, ())
    }

    /// Whether a class outside the library has this selector.
    pub(crate) fn user(selector: &str) -> Self {
        Self::new(9, selector)
    }

    /// The packages that have a name.
    pub(crate) fn name(name: &str) -> Self {
        Self::new(10, name)
    }
}

/// The keys that somebody asked for.
#[derive(Debug, Default)]
pub struct Reads(Mutex<FxHashSet<Key>>);

impl Reads {
    pub(crate) fn note(&self, key: Key) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
    }

    fn keys(&self) -> Vec<Key> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut keys: Vec<Key> = seen.iter().copied().collect();
        keys.sort_unstable();
        keys
    }
}

/// What was found in a file, and what that rests on.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    pub diagnostics: Vec<Diagnostic>,
    /// In ascending order.
    pub reads: Vec<Key>,
}

impl Checked {
    /// Whether it may be different after these changes. Both are in ascending order.
    pub fn rests_on(&self, changed: &[Key]) -> bool {
        changed.iter().any(|key| self.reads.binary_search(key).is_ok())
    }
}

/// [`check_file`], with what its answer rests on.
pub fn check_noting(file: &SourceFile, table: &ClassTable) -> Checked {
    noting(table, |table| check_file(file, table))
}

/// Some findings, with what they rest on.
pub fn noting(table: &ClassTable, find: impl FnOnce(&ClassTable) -> Vec<Diagnostic>) -> Checked {
    let reads = Arc::new(Reads::default());
    let diagnostics = find(&table.with_reads(Arc::clone(&reads)));
    Checked {
        diagnostics,
        reads: reads.keys(),
    }
}

/// What a file shows to others.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outline {
    /// All names it gives, and whether its package keeps them to itself.
    pub names: Vec<(EcoString, bool)>,
    /// Its classes, when it declares nothing else: then its tree can wait until somebody asks for one of them.
    pub classes: Option<Vec<ClassOutline>>,
    /// What it adds to keys, with a fingerprint, in ascending order.
    pub gives: Vec<(Key, u64)>,
    /// The selectors it defines on the instance side.
    pub selectors: Vec<Key>,
    /// The Erlang modules it calls.
    pub modules: Vec<EcoString>,
}

/// A class, as far as it is known without its tree.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassOutline {
    pub name: EcoString,
    pub superclass: Option<EcoString>,
    /// Which of the items of its file it is.
    pub item: usize,
}

impl Outline {
    pub fn of(file: &SourceFile) -> Self {
        let mut outline = Self {
            modules: ffi::modules(file).into_iter().collect(),
            ..Self::default()
        };
        let place = (&file.path, &file.package, file.origin as u8);
        let mut classes = Vec::new();
        for (index, item) in file.unit.items.iter().enumerate() {
            match item {
                Item::Class(class) => {
                    outline.class(file, class);
                    classes.push(ClassOutline {
                        name: class.name.text.clone(),
                        superclass: class.superclass.as_ref().map(|above| above.name.text.clone()),
                        item: index,
                    });
                }
                Item::Protocol(protocol) => {
                    let name = &protocol.name.text;
                    outline.name(file, name, false);
                    let print = fingerprint((place, protocol.span.text(&file.text)));
                    outline.gives.push((Key::protocol(name), print));
                    outline.gives.push((Key::protocol_names(), fingerprint(name)));
                }
                Item::TypeAlias(alias) => {
                    let name = &alias.name.text;
                    outline.name(file, name, alias.is_internal);
                    let print = fingerprint((place, alias.is_internal, alias.span.text(&file.text)));
                    outline.gives.push((Key::alias(name), print));
                }
                Item::Extension(extension) => {
                    let (class, method) = (&extension.target.name.text, &extension.method);
                    let selector = &method.head.selector;
                    let print = fingerprint((place, method.is_internal, method_print(file, method)));
                    let key = Key::extension(class, method.is_class, selector);
                    outline.gives.push((key, print));
                    // Whether the class is of the library is not known here.
                    let key = Key::library_extension(method.is_class, selector);
                    outline.gives.push((key, fingerprint((class, print))));
                    let key = Key::extended(class, method.is_class);
                    outline.gives.push((key, fingerprint(selector)));
                    if file.origin != Origin::Library && !method.is_class {
                        outline.selectors.push(Key::user(selector));
                    }
                }
                Item::Statement(_) => {}
            }
        }
        if classes.len() == file.unit.items.len() {
            outline.classes = Some(classes);
        }
        outline.gives.sort_unstable();
        outline.selectors.sort_unstable();
        outline.selectors.dedup();
        outline.modules.sort_unstable();
        outline
    }

    fn name(&mut self, file: &SourceFile, name: &EcoString, is_internal: bool) {
        self.names.push((name.clone(), is_internal));
        self.gives
            .push((Key::name(name), fingerprint((&file.package, is_internal))));
    }

    fn class(&mut self, file: &SourceFile, class: &Class) {
        let name = &class.name.text;
        self.name(file, name, class.modifiers.is_internal);
        let own = Key::class(name);
        let mut shape = DefaultHasher::new();
        (&file.path, &file.package, file.origin as u8, &file.module).hash(&mut shape);
        class.header.text(&file.text).hash(&mut shape);
        // Modifiers and the like may stand in front of the header or behind it.
        let modifiers = class.modifiers;
        let flags = [
            modifiers.is_abstract,
            modifiers.is_sealed,
            modifiers.is_typed,
            modifiers.is_internal,
        ];
        (flags, class.native.as_ref().map(|it| &it.text)).hash(&mut shape);
        class.handle_scope.as_ref().map(|it| &it.text).hash(&mut shape);
        for slot in &class.slots {
            let is_class = slot.keyword == SlotKeyword::ClassState;
            (is_class, slot.span.text(&file.text)).hash(&mut shape);
        }
        for method in &class.methods {
            let selector = &method.head.selector;
            let flags = [method.is_class, method.is_sealed, method.is_internal];
            (flags, selector).hash(&mut shape);
            let key = Key::method(own, method.is_class, selector);
            self.gives.push((key, method_print(file, method)));
            if file.origin != Origin::Library && !method.is_class {
                self.selectors.push(Key::user(selector));
            }
        }
        self.gives.push((own, shape.finish()));
        if let Some(above) = &class.superclass {
            self.gives.push((Key::below(&above.name.text), fingerprint(name)));
        }
        self.gives.push((Key::class_names(), fingerprint(name)));
    }

    /// The keys behind which something else is now, in ascending order.
    pub fn changed(&self, new: &Self) -> Vec<Key> {
        let mut keys: Vec<Key> = differing(&self.gives, &new.gives).map(|(key, _)| key).collect();
        keys.extend(differing(&self.selectors, &new.selectors));
        keys.sort_unstable();
        keys.dedup();
        keys
    }
}

/// What only one of two lists in ascending order has.
fn differing<'a, T: Ord + Copy>(one: &'a [T], other: &'a [T]) -> impl Iterator<Item = T> + 'a {
    let lacks = |list: &'a [T]| move |it: &T| list.binary_search(it).is_err();
    let gone = one.iter().copied().filter(lacks(other));
    gone.chain(other.iter().copied().filter(lacks(one)))
}

fn fingerprint(of: impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    of.hash(&mut hasher);
    hasher.finish()
}

/// The head of a method with what it promises; a body speaks where nothing is promised.
fn method_print(file: &SourceFile, method: &Method) -> u64 {
    let body = method.body.first().filter(|_| method.result.is_some());
    let end = body.map_or(method.span.end, |first| first.expression.span.start);
    fingerprint(Span::new(method.span.start, end.max(method.span.start)).text(&file.text))
}
