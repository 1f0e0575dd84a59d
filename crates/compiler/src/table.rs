//! What is known about classes: the declarations of the library, dependencies, package and session.

mod later;
mod withdraw;

use std::sync::{Arc, OnceLock};

use beamtalk_syntax::ast;
use beamtalk_syntax::span::Span;
use ecow::EcoString;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::SourceFile;
use crate::ffi::SpecTable;
use crate::packages::Packages;
use crate::reads::{Key, Reads};

pub use later::Later;
use later::Slot;

/// Where a source text comes from; it decides which rules apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    Library,
    Package,
    /// Tests and fixtures.
    Test,
    /// Scripts and sessions.
    Session,
}

/// The three kinds of classes, with the test library's variant of a Value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Value,
    Actor,
    Object,
}

#[derive(Clone, Debug)]
pub struct ClassEntry {
    pub name: EcoString,
    /// `None` for the root class only.
    pub superclass: Option<EcoString>,
    pub module: EcoString,
    pub package: Option<EcoString>,
    pub origin: Origin,
    pub modifiers: ast::ClassModifiers,
    pub native: Option<EcoString>,
    pub slots: Vec<SlotEntry>,
    pub class_slots: Vec<EcoString>,
    pub methods: FxHashMap<EcoString, MethodEntry>,
    pub class_methods: FxHashMap<EcoString, MethodEntry>,
    pub path: EcoString,
    pub span: Span,
    /// The text it was declared in; not kept for the library.
    pub(crate) source: Option<Arc<SourceFile>>,
    /// The same as plain text, for the library too: completion reads signatures and documentation from it.
    pub(crate) text: EcoString,
    /// The declaration, for the library too: its file and the number of the item. None for a class that only the
    /// image knows.
    pub(crate) declared: Option<(Arc<SourceFile>, usize)>,
    pub(crate) key: Key,
}

impl ClassEntry {
    /// The declaration with its file.
    pub(crate) fn declaration(&self) -> Option<(&SourceFile, &ast::Class)> {
        let (file, item) = self.declared.as_ref()?;
        match file.unit.items.get(*item)? {
            ast::Item::Class(class) => Some((file, class)),
            _ => None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct SlotEntry {
    pub name: EcoString,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct MethodEntry {
    pub is_sealed: bool,
    pub is_internal: bool,
    /// Which of the methods of the declaration it is.
    pub(crate) index: usize,
}

#[derive(Clone, Debug)]
pub(crate) struct ExtensionEntry {
    pub(crate) span: Span,
    /// Which of the items of the text it is.
    pub(crate) item: usize,
    pub(crate) is_internal: bool,
    /// The text it was declared in.
    pub(crate) source: Arc<SourceFile>,
}

/// The classes directly below each class.
pub(crate) type Subclasses = FxHashMap<EcoString, Vec<EcoString>>;

#[derive(Clone, Debug, Default)]
struct Tables {
    classes: FxHashMap<EcoString, Slot>,
    /// The classes directly below each class, once somebody asked.
    subclasses: OnceLock<Subclasses>,
    protocols: FxHashMap<EcoString, ProtocolEntry>,
    aliases: FxHashMap<EcoString, AliasEntry>,
    extensions: FxHashMap<(EcoString, bool, EcoString), Vec<ExtensionEntry>>,
    /// The files that extend classes or did, by package and path.
    extending: FxHashSet<(Option<EcoString>, EcoString)>,
    /// Files to which methods belong that nothing declares now.
    homes: FxHashMap<(EcoString, bool, EcoString), Arc<SourceFile>>,
    /// Selectors that classes outside the library define on the instance side, and how often.
    user_selectors: FxHashMap<Key, usize>,
    /// Code outside the library may not call Erlang.
    is_ffi_disabled: bool,
    /// A primitive outside the library is a warning, not an error.
    are_primitives_allowed: bool,
    /// The packages of the program; without them names mean what they say.
    packages: Option<Arc<Packages>>,
    /// The Erlang modules that somebody looked for.
    specs: Arc<SpecTable>,
}

#[derive(Clone, Debug)]
pub(crate) struct ProtocolEntry {
    pub(crate) module: EcoString,
    pub(crate) path: EcoString,
    pub(crate) span: Span,
    extending: Option<EcoString>,
    /// Its file and the number of the item.
    declared: (Arc<SourceFile>, usize),
    /// What a class has to understand, and whether on the class side.
    required: Vec<(bool, EcoString)>,
}

#[derive(Clone, Debug)]
pub(crate) struct AliasEntry {
    pub(crate) path: EcoString,
    pub(crate) span: Span,
    pub(crate) definition: ast::Type,
    /// Where it comes from, and the package it belongs to.
    pub(crate) origin: Origin,
    pub(crate) package: Option<EcoString>,
    pub(crate) is_internal: bool,
    /// `type Timeout = Integer | #infinity`
    pub(crate) text: EcoString,
    pub(crate) doc: Option<EcoString>,
}

/// All classes known to a compilation. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct ClassTable {
    tables: Arc<Tables>,
    /// Who wants to know what is asked for.
    reads: Option<Arc<Reads>>,
}

impl ProtocolEntry {
    pub(crate) fn declaration(&self) -> Option<(&SourceFile, &ast::Protocol)> {
        let (file, item) = &self.declared;
        match file.unit.items.get(*item)? {
            ast::Item::Protocol(protocol) => Some((file, protocol)),
            _ => None,
        }
    }
}

impl ClassTable {
    pub fn empty() -> Self {
        Self::default()
    }

    /// From now on names of files are resolved among these packages.
    pub fn set_packages(&mut self, packages: Packages) {
        Arc::make_mut(&mut self.tables).packages = Some(Arc::new(packages));
    }

    /// From now on calls of Erlang are checked against these.
    pub fn set_specs(&mut self, specs: SpecTable) {
        Arc::make_mut(&mut self.tables).specs = Arc::new(specs);
    }

    pub(crate) fn specs(&self) -> &SpecTable {
        &self.tables.specs
    }

    pub(crate) fn packages(&self) -> Option<&Packages> {
        self.tables.packages.as_deref()
    }

    /// The same table; what is asked of it from now on is noted.
    pub(crate) fn with_reads(&self, reads: Arc<Reads>) -> Self {
        Self {
            tables: Arc::clone(&self.tables),
            reads: Some(reads),
        }
    }

    pub(crate) fn note(&self, key: impl FnOnce() -> Key) {
        if let Some(reads) = &self.reads {
            reads.note(key());
        }
    }

    fn slot(&self, name: &str) -> Option<&Slot> {
        let slot = self.tables.classes.get(name);
        // A class of the library cannot be declared again: it is the same as long as the program is.
        if slot.is_none_or(|slot| slot.origin != Origin::Library) {
            self.note(|| slot.map_or_else(|| Key::class(name), |slot| slot.key));
        }
        slot
    }

    pub(crate) fn is_library_class(&self, name: &str) -> bool {
        self.slot(name).is_some_and(|slot| slot.origin == Origin::Library)
    }

    pub(crate) fn is_session_class(&self, name: &str) -> bool {
        self.slot(name).is_some_and(|slot| slot.package.is_none())
    }

    /// Add the classes, protocols, aliases and extensions of a file.
    pub fn declare(&mut self, file: &SourceFile) {
        self.keep(file);
    }

    /// The same; the answer is the file with its names resolved, as the table keeps it.
    pub fn keep(&mut self, file: &SourceFile) -> Arc<SourceFile> {
        self.take(file.clone())
    }

    /// The same for a file that nobody else needs.
    pub fn take(&mut self, file: SourceFile) -> Arc<SourceFile> {
        // What is wrong with its names is told when the file is compiled.
        let (file, _) = crate::packages::resolve_own(file, self);
        let source = Arc::new(file);
        self.put(&source);
        source
    }

    /// The same for a file whose names are resolved, as the table kept it before.
    pub fn put(&mut self, source: &Arc<SourceFile>) {
        let file = source.as_ref();
        let tables = Arc::make_mut(&mut self.tables);
        tables.subclasses = OnceLock::new();
        let place = (file.package.clone(), file.path.clone());
        if file.origin != Origin::Session && tables.extending.contains(&place) {
            // A file that is declared again stands for all it had.
            let is_same = |entry: &ExtensionEntry| is_same_file(&entry.source, file);
            tables.extensions.retain(|_, entries| {
                entries.retain(|entry| !is_same(entry));
                !entries.is_empty()
            });
        }
        for (index, item) in file.unit.items.iter().enumerate() {
            match item {
                ast::Item::Class(class) => declare_class(tables, source, index, class),
                ast::Item::Protocol(protocol) if is_taken(tables, file, protocol) => {}
                ast::Item::Protocol(protocol) => {
                    let module = file.module_of_protocol(protocol);
                    tables.protocols.insert(
                        protocol.name.text.clone(),
                        ProtocolEntry {
                            module,
                            path: file.path.clone(),
                            span: protocol.name.span,
                            extending: protocol.extending.as_ref().map(|name| name.text.clone()),
                            declared: (Arc::clone(source), index),
                            required: protocol
                                .signatures
                                .iter()
                                .map(|signature| (signature.is_class, signature.head.selector.clone()))
                                .collect(),
                        },
                    );
                }
                ast::Item::TypeAlias(alias) => declare_alias(tables, file, alias),
                ast::Item::Extension(extension) => {
                    let method = &extension.method;
                    let key = (
                        extension.target.name.text.clone(),
                        method.is_class,
                        method.head.selector.clone(),
                    );
                    tables.extending.insert(place.clone());
                    let entries = tables.extensions.entry(key).or_default();
                    entries.retain(|entry| entry.source.path != file.path || entry.span != extension.span);
                    entries.push(ExtensionEntry {
                        span: extension.span,
                        item: index,
                        is_internal: method.is_internal,
                        source: Arc::clone(source),
                    });
                    if file.origin != Origin::Library && !method.is_class {
                        let key = Key::user(&method.head.selector);
                        *tables.user_selectors.entry(key).or_default() += 1;
                    }
                }
                ast::Item::Statement(_) => {}
            }
        }
    }

    /// Add a class that the running image has but no source text declares.
    pub fn declare_shape(
        &mut self,
        name: &str,
        superclass: Option<&str>,
        slots: &[EcoString],
        class_slots: &[EcoString],
    ) {
        let entry = ClassEntry {
            name: name.into(),
            superclass: superclass.map(EcoString::from),
            module: crate::module_name(None, name).into(),
            package: None,
            origin: Origin::Session,
            modifiers: ast::ClassModifiers::default(),
            native: None,
            slots: slots
                .iter()
                .map(|slot| SlotEntry { name: slot.clone() })
                .collect(),
            class_slots: class_slots.to_vec(),
            methods: FxHashMap::default(),
            class_methods: FxHashMap::default(),
            path: EcoString::new(),
            span: Span::default(),
            source: None,
            text: EcoString::new(),
            declared: None,
            key: Key::class(name),
        };
        let tables = Arc::make_mut(&mut self.tables);
        tables.subclasses = OnceLock::new();
        tables.classes.insert(entry.name.clone(), Slot::ready(entry));
    }

    /// The classes directly below one, by name.
    pub(crate) fn subclasses(&self, class: &str) -> &[EcoString] {
        self.note(|| Key::below(class));
        let all = self.tables.subclasses.get_or_init(|| {
            let mut below = Subclasses::default();
            let mut classes: Vec<(&EcoString, &Slot)> = self.tables.classes.iter().collect();
            classes.sort_by_key(|(name, _)| *name);
            for (name, slot) in classes {
                if let Some(above) = &slot.superclass {
                    below.entry(above.clone()).or_default().push(name.clone());
                }
            }
            below
        });
        all.get(class).map_or(&[], Vec::as_slice)
    }

    /// From now on code outside the library that calls Erlang does not compile (E0501): the workspace was started
    /// with `--no-ffi`.
    pub fn disable_ffi(&mut self) {
        Arc::make_mut(&mut self.tables).is_ffi_disabled = true;
    }

    /// From now on a primitive outside the library is a warning.
    pub fn allow_primitives(&mut self) {
        Arc::make_mut(&mut self.tables).are_primitives_allowed = true;
    }

    pub(crate) fn allows_primitives(&self) -> bool {
        self.tables.are_primitives_allowed
    }

    pub(crate) fn allows_ffi(&self, origin: Origin) -> bool {
        !self.tables.is_ffi_disabled || origin == Origin::Library
    }

    pub fn class(&self, name: &str) -> Option<&ClassEntry> {
        self.slot(name)?.entry(self)
    }

    /// The text a class was declared in; none for the library.
    pub fn source_of(&self, class: &str) -> Option<&SourceFile> {
        self.class(class)?.source.as_deref()
    }

    /// Whether the trees of the table have the names that stand in their texts.
    pub fn has_names_of_texts(&self) -> bool {
        let mut packages = self.packages().into_iter();
        packages.all(|packages| packages.shared_names().next().is_none())
    }

    /// The names of all classes, in no order.
    pub fn class_names(&self) -> impl Iterator<Item = &EcoString> {
        self.note(Key::class_names);
        self.tables.classes.keys()
    }

    /// The names of all protocols, in no order.
    pub(crate) fn protocol_names(&self) -> impl Iterator<Item = &EcoString> {
        self.note(Key::protocol_names);
        self.tables.protocols.keys()
    }

    pub(crate) fn protocol(&self, name: &str) -> Option<&ProtocolEntry> {
        self.note(|| Key::protocol(name));
        self.tables.protocols.get(name)
    }

    /// What a class has to understand to conform to a protocol, with what the protocols it extends ask for.
    pub(crate) fn required_by(&self, protocol: &str) -> Vec<&(bool, EcoString)> {
        let mut required = Vec::new();
        let mut seen = FxHashSet::default();
        let mut next = Some(protocol);
        // A circle is told where it is declared.
        while let Some(name) = next.filter(|name| seen.insert(*name)) {
            let Some(entry) = self.protocol(name) else { break };
            required.extend(&entry.required);
            next = entry.extending.as_deref();
        }
        required
    }

    /// Whether instances of a class, or the class itself, have a method for a selector, whoever may send it.
    pub(crate) fn has_method(&self, name: &str, is_class: bool, selector: &str) -> bool {
        let own = |class: &&ClassEntry| {
            let methods = if is_class {
                &class.class_methods
            } else {
                &class.methods
            };
            methods.contains_key(selector) || !self.extensions(&class.name, is_class, selector).is_empty()
        };
        let is_getter = || {
            !is_class
                && self.kind(name) == Kind::Value
                && self.all_slots(name).iter().any(|slot| slot.name == selector)
        };
        self.chain(name).iter().any(own)
            || is_getter()
            || (is_class && self.has_method("Class", false, selector))
    }

    pub(crate) fn alias(&self, name: &str) -> Option<&AliasEntry> {
        self.note(|| Key::alias(name));
        self.tables.aliases.get(name)
    }

    pub(crate) fn extensions(&self, class: &str, is_class: bool, selector: &str) -> &[ExtensionEntry] {
        self.note(|| {
            let known = self.tables.classes.get(class);
            if known.is_some_and(|slot| slot.origin == Origin::Library) {
                Key::library_extension(is_class, selector)
            } else {
                Key::extension(class, is_class, selector)
            }
        });
        if self.tables.extensions.is_empty() {
            return &[];
        }
        let key = (EcoString::from(class), is_class, EcoString::from(selector));
        self.tables.extensions.get(&key).map_or(&[], Vec::as_slice)
    }

    /// The file in which a method stands that extends a class, or to which it belongs; none for one that a session made.
    pub fn extension_file(&self, class: &str, is_class: bool, selector: &str) -> Option<&Arc<SourceFile>> {
        let entries = self.extensions(class, is_class, selector).iter().rev();
        let mut sources = entries.map(|entry| &entry.source);
        let key = || (EcoString::from(class), is_class, EcoString::from(selector));
        sources
            .find(|source| source.origin != Origin::Session)
            .or_else(|| self.tables.homes.get(&key()))
    }

    /// Methods that were taken out of files which extended classes with them belong there if they come back. These are
    /// all there are.
    pub fn set_homes(&mut self, homes: impl IntoIterator<Item = (EcoString, bool, EcoString, SourceFile)>) {
        let homes = homes.into_iter();
        let homes =
            homes.map(|(class, is_class, selector, file)| ((class, is_class, selector), Arc::new(file)));
        Arc::make_mut(&mut self.tables).homes = homes.collect();
    }

    /// Whether a file, as it was declared, extends classes.
    pub fn has_extensions(&self, file: &SourceFile) -> bool {
        let mut all = self.tables.extensions.values().flatten();
        all.any(|entry| is_same_file(&entry.source, file))
    }

    /// The selectors that extensions add to one side of a class, in no order.
    pub(crate) fn extension_selectors(
        &self,
        class: &str,
        is_class: bool,
    ) -> impl Iterator<Item = &EcoString> {
        self.note(|| Key::extended(class, is_class));
        self.tables
            .extensions
            .keys()
            .filter(move |(target, side, _)| target == class && *side == is_class)
            .map(|(_, _, selector)| selector)
    }

    /// Whether a class outside the library defines this instance selector; such a selector is not inlined on
    /// receivers of unknown class.
    pub(crate) fn is_user_selector(&self, selector: &str) -> bool {
        let key = Key::user(selector);
        self.note(|| key);
        self.tables.user_selectors.contains_key(&key)
    }

    /// The class and its ancestors as far as they are known, nearest first. Ends at a cycle.
    pub fn chain<'a>(&'a self, name: &str) -> Vec<&'a ClassEntry> {
        let mut chain: Vec<&ClassEntry> = Vec::new();
        let mut next = self.class(name);
        while let Some(class) = next {
            if chain.iter().any(|seen| seen.name == class.name) {
                break;
            }
            chain.push(class);
            next = class.superclass.as_deref().and_then(|name| self.class(name));
        }
        chain
    }

    pub fn inherits_from(&self, name: &str, ancestor: &str) -> bool {
        name == ancestor || self.chain(name).iter().any(|class| class.name == ancestor)
    }

    /// Decided by the ancestors; an unknown superclass counts as Object.
    pub fn kind(&self, name: &str) -> Kind {
        for class in self.chain(name) {
            match class.name.as_str() {
                "Value" => return Kind::Value,
                "Actor" => return Kind::Actor,
                _ => {}
            }
        }
        match name {
            "Value" => Kind::Value,
            "Actor" => Kind::Actor,
            _ => Kind::Object,
        }
    }

    /// Instance slots with the inherited ones, ancestors first.
    pub(crate) fn all_slots(&self, name: &str) -> Vec<&SlotEntry> {
        let mut slots: Vec<&SlotEntry> = Vec::new();
        for class in self.chain(name).into_iter().rev() {
            for slot in &class.slots {
                match slots.iter_mut().find(|known| known.name == slot.name) {
                    Some(known) => *known = slot,
                    None => slots.push(slot),
                }
            }
        }
        slots
    }

    pub(crate) fn has_class_slot(&self, name: &str, slot: &str) -> bool {
        self.chain(name)
            .iter()
            .any(|class| class.class_slots.iter().any(|known| known == slot))
    }

    /// The package that keeps the method to itself which `name` or an ancestor has under this selector.
    pub(crate) fn keeper_of_method(&self, name: &str, is_class: bool, selector: &str) -> Option<&EcoString> {
        let (package, is_internal) = self.chain(name).into_iter().find_map(|class| {
            let methods = if is_class {
                &class.class_methods
            } else {
                &class.methods
            };
            let own = methods
                .get(selector)
                .map(|method| (&class.package, method.is_internal || class.modifiers.is_internal));
            own.or_else(|| {
                let extension = self.extensions(&class.name, is_class, selector).last()?;
                Some((&extension.source.package, extension.is_internal))
            })
        })?;
        package.as_ref().filter(|_| is_internal)
    }

    /// The nearest definition of a method, walking up from `name`: the defining class and the method.
    pub(crate) fn find_method(
        &self,
        name: &str,
        is_class: bool,
        selector: &str,
    ) -> Option<(&ClassEntry, MethodEntry)> {
        self.chain(name).into_iter().find_map(|class| {
            let methods = if is_class {
                &class.class_methods
            } else {
                &class.methods
            };
            methods.get(selector).map(|method| (class, *method))
        })
    }
}

/// Whether another file, or an earlier place of this one, defines a protocol of the name: the second is told so.
fn is_taken(tables: &Tables, file: &SourceFile, protocol: &ast::Protocol) -> bool {
    let known = tables.protocols.get(&protocol.name.text);
    let is_other = known.is_some_and(|known| {
        let source = &known.declared.0;
        matches!(source.origin, Origin::Package | Origin::Test) && !is_same_file(source, file)
    });
    let mut own = file.unit.items.iter().filter_map(|item| match item {
        ast::Item::Protocol(other) if other.name.text == protocol.name.text => Some(other.span),
        _ => None,
    });
    file.origin != Origin::Session && (is_other || own.next() != Some(protocol.span))
}

/// A session may define an alias again, a file may be read again, and the library's aliases may be shadowed; of two files
/// that define the same one, the second is told so.
fn is_same_file(one: &SourceFile, other: &SourceFile) -> bool {
    one.origin != Origin::Session && one.path == other.path && one.package == other.package
}

fn declare_alias(tables: &mut Tables, file: &SourceFile, alias: &ast::TypeAlias) {
    let name = &alias.name.text;
    let is_taken = tables.aliases.get(name).is_some_and(|known| {
        let is_kept = matches!(known.origin, Origin::Package | Origin::Test);
        let is_same_file = known.path == file.path && known.package == file.package;
        is_kept && !is_same_file && file.origin != Origin::Session
    });
    // The same name twice in one text is told at the second.
    let mut aliases = file.unit.items.iter().filter_map(|item| match item {
        ast::Item::TypeAlias(alias) => Some(alias),
        _ => None,
    });
    let is_first = aliases
        .find(|other| other.name.text == *name)
        .is_none_or(|first| first.span == alias.span);
    if is_taken || !is_first {
        return;
    }
    let entry = AliasEntry {
        path: file.path.clone(),
        span: alias.name.span,
        definition: alias.definition.clone(),
        origin: file.origin,
        package: file.package.clone(),
        is_internal: alias.is_internal,
        text: alias.span.text(&file.text).trim().into(),
        doc: alias.doc.clone(),
    };
    tables.aliases.insert(name.clone(), entry);
}

/// A library class cannot be redefined: loading the other one is refused.
fn is_protected(tables: &Tables, origin: Origin, name: &str) -> bool {
    let known = tables.classes.get(name);
    origin != Origin::Library && known.is_some_and(|known| known.origin == Origin::Library)
}

fn declare_class(tables: &mut Tables, source: &Arc<SourceFile>, item: usize, class: &ast::Class) {
    let file = source.as_ref();
    if is_protected(tables, file.origin, &class.name.text) {
        return;
    }
    if file.origin != Origin::Library {
        for method in class.methods.iter().filter(|method| !method.is_class) {
            let key = Key::user(&method.head.selector);
            *tables.user_selectors.entry(key).or_default() += 1;
        }
    }
    let entry = class_entry(source, item, class);
    tables.classes.insert(entry.name.clone(), Slot::ready(entry));
}

fn class_entry(source: &Arc<SourceFile>, item: usize, class: &ast::Class) -> ClassEntry {
    let file = source.as_ref();
    let is_instance_slot = |slot: &&ast::Slot| slot.keyword != ast::SlotKeyword::ClassState;
    let slots: Vec<SlotEntry> = class
        .slots
        .iter()
        .filter(is_instance_slot)
        .map(|slot| SlotEntry {
            name: slot.name.text.clone(),
        })
        .collect();
    let class_slots = class
        .slots
        .iter()
        .filter(|slot| !is_instance_slot(slot))
        .map(|slot| slot.name.text.clone())
        .collect();
    let mut methods = FxHashMap::default();
    let mut class_methods = FxHashMap::default();
    for (index, method) in class.methods.iter().enumerate() {
        let side = if method.is_class {
            &mut class_methods
        } else {
            &mut methods
        };
        let entry = MethodEntry {
            is_sealed: method.is_sealed,
            is_internal: method.is_internal,
            index,
        };
        side.insert(method.head.selector.clone(), entry);
    }
    ClassEntry {
        name: class.name.text.clone(),
        superclass: class
            .superclass
            .as_ref()
            .map(|superclass| superclass.name.text.clone()),
        module: file.module_of_class(class),
        package: file.package.clone(),
        origin: file.origin,
        modifiers: class.modifiers,
        native: class.native.as_ref().map(|native| native.text.clone()),
        slots,
        class_slots,
        methods,
        class_methods,
        path: file.path.clone(),
        span: class.name.span,
        source: (file.origin != Origin::Library).then(|| source.clone()),
        text: file.text.clone(),
        declared: Some((Arc::clone(source), item)),
        key: Key::class(&class.name.text),
    }
}
