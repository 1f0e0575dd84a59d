//! A class, an extension file or a protocol as one Erlang module.

use beamtalk_etf::Term;
use beamtalk_syntax::ast;
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::span::LineIndex;
use ecow::{EcoString, eco_format};
use rustc_hash::FxHashSet;

use crate::SourceFile;
use crate::erl::{self, Clause, Erl, ErlKind, Function};
use crate::lower::{self, Target};
use crate::meta;
use crate::names;
use crate::resolve::{ClassScope, Resolver};
use crate::table::{ClassTable, Kind, Origin};

/// A module on its way to forms.
pub(crate) struct Module<'a> {
    pub(crate) table: &'a ClassTable,
    pub(crate) file: &'a SourceFile,
    pub(crate) lines: &'a LineIndex,
    pub(crate) diagnostics: &'a mut Vec<Diagnostic>,
    functions: Vec<Function>,
    exports: Vec<(EcoString, usize)>,
}

/// `withX:` for slot `x`.
pub(crate) fn setter_selector(slot: &str) -> EcoString {
    let mut chars = slot.chars();
    match chars.next() {
        Some(first) => eco_format!("with{}{}:", first.to_uppercase(), chars.as_str()),
        None => "with:".into(),
    }
}

pub(crate) fn is_test_case(table: &ClassTable, class: &str) -> bool {
    table.inherits_from(class, "TestCase")
}

/// The ancestors are known up to the root.
pub(crate) fn is_closed(table: &ClassTable, class: &str) -> bool {
    table
        .chain(class)
        .last()
        .is_some_and(|root| root.superclass.is_none())
}

/// The fields a Value class declares itself, in order.
fn own_fields(class: &ast::Class) -> Vec<&ast::Slot> {
    class
        .slots
        .iter()
        .filter(|slot| slot.keyword != ast::SlotKeyword::ClassState)
        .collect()
}

/// Selectors generated for a Value class: getters and setters, and the keyword constructor.
pub(crate) fn generated_selectors(
    table: &ClassTable,
    class: &ast::Class,
) -> (Vec<EcoString>, Option<EcoString>) {
    let fields = own_fields(class);
    if table.kind(&class.name.text) != Kind::Value || fields.is_empty() {
        return (Vec::new(), None);
    }
    let defines = |is_class: bool, selector: &str| {
        class
            .methods
            .iter()
            .any(|method| method.is_class == is_class && method.head.selector == selector)
    };
    let accessors = fields
        .iter()
        .flat_map(|field| [field.name.text.clone(), setter_selector(&field.name.text)])
        .filter(|selector| !defines(false, selector))
        .collect();
    let constructor: EcoString = fields
        .iter()
        .map(|field| eco_format!("{}:", field.name.text))
        .collect();
    let constructor = (!defines(true, &constructor)).then_some(constructor);
    (accessors, constructor)
}

/// What the bodies of a file say wrong, without making code of them.
pub(crate) fn bodies(file: &SourceFile, table: &ClassTable, diagnostics: &mut Vec<Diagnostic>) {
    for item in &file.unit.items {
        match item {
            ast::Item::Class(class) => {
                let (name, is_native) = (&class.name.text, class.native.is_some());
                for method in &class.methods {
                    let scope = scope(table, name, is_native, method);
                    Resolver::new(table, file, Some(scope), diagnostics).method(method);
                }
                for default in class.slots.iter().filter_map(|slot| slot.default.as_ref()) {
                    Resolver::new(table, file, None, diagnostics).default(default);
                }
            }
            ast::Item::Extension(extension) => {
                let method = &extension.method;
                let scope = scope(table, &extension.target.name.text, false, method);
                Resolver::new(table, file, Some(scope), diagnostics).method(method);
            }
            ast::Item::Protocol(_) | ast::Item::TypeAlias(_) | ast::Item::Statement(_) => {}
        }
    }
}

fn scope(table: &ClassTable, class: &str, is_native: bool, method: &ast::Method) -> ClassScope {
    ClassScope {
        name: class.into(),
        kind: table.kind(class),
        is_class_side: method.is_class,
        selector: method.head.selector.clone(),
        is_test: is_test_case(table, class),
        is_closed: is_closed(table, class),
        is_native,
    }
}

impl<'a> Module<'a> {
    pub(crate) fn new(
        table: &'a ClassTable,
        file: &'a SourceFile,
        lines: &'a LineIndex,
        diagnostics: &'a mut Vec<Diagnostic>,
    ) -> Self {
        Self {
            table,
            file,
            lines,
            diagnostics,
            functions: Vec::new(),
            exports: Vec::new(),
        }
    }

    fn line(&self, offset: u32) -> u32 {
        self.lines.line(offset)
    }

    fn add(&mut self, functions: Vec<Function>) {
        if let Some(first) = functions.first() {
            self.exports.push((first.name.clone(), first.arity));
        }
        self.functions.extend(functions);
    }

    fn add_expression(&mut self, name: &str, parameters: Vec<Erl>, body: Vec<Erl>, line: u32) {
        let arity = parameters.len();
        let clause = Clause {
            patterns: parameters,
            guards: Vec::new(),
            body,
            line,
        };
        self.add(vec![Function {
            name: name.into(),
            arity,
            clauses: vec![clause],
            line,
        }]);
    }

    // ---- classes ----

    pub(crate) fn class(&mut self, class: &ast::Class, module: &EcoString) {
        let line = self.line(class.header.start);
        let (accessors, constructor) = generated_selectors(self.table, class);
        let side = |is_class: bool| {
            class
                .methods
                .iter()
                .filter(move |method| method.is_class == is_class)
        };
        // Not what is generated: a method that takes its place comes without a text that says who calls it directly.
        let selectors = |is_class: bool| -> FxHashSet<EcoString> {
            side(is_class)
                .map(|method| method.head.selector.clone())
                .collect()
        };
        let (instance_selectors, class_selectors) = (selectors(false), selectors(true));

        let mut locked = Vec::new();
        for method in &class.methods {
            let own = if method.is_class {
                &class_selectors
            } else {
                &instance_selectors
            };
            let function = if method.is_class {
                names::class_function(&method.head.selector)
            } else {
                names::instance_function(&method.head.selector)
            };
            if self.method(&class.name.text, class, method, function, own) {
                locked.push(method.head.selector.clone());
            }
        }
        for field in own_fields(class) {
            self.accessors(class, field, &accessors);
        }
        if let Some(constructor) = &constructor {
            self.constructor(class, constructor, line);
        }
        self.defaults(class, false, line);
        self.defaults(class, true, line);
        let meta = meta::class(self.table, self.file, self.lines, class, module, &locked);
        self.add_expression(
            "__beamtalk_meta",
            Vec::new(),
            vec![Erl::literal(line, meta)],
            line,
        );
    }

    /// Compile one method; answers whether it assigns class state.
    fn method(
        &mut self,
        class_name: &EcoString,
        class: &ast::Class,
        method: &ast::Method,
        function: EcoString,
        own_selectors: &FxHashSet<EcoString>,
    ) -> bool {
        let is_sealed = class.modifiers.is_sealed;
        let native = class.native.as_ref().map(|native| native.text.clone());
        self.any_method(class_name, native, is_sealed, method, function, own_selectors)
    }

    fn any_method(
        &mut self,
        class_name: &EcoString,
        native: Option<EcoString>,
        is_sealed: bool,
        method: &ast::Method,
        function: EcoString,
        own_selectors: &FxHashSet<EcoString>,
    ) -> bool {
        let selector = &method.head.selector;
        let scope = scope(self.table, class_name, native.is_some(), method);
        let (kind, is_test) = (scope.kind, scope.is_test);
        let body = Resolver::new(self.table, self.file, Some(scope), self.diagnostics).method(method);
        let target = Target {
            table: self.table,
            lines: self.lines,
            own_selectors,
            class: class_name.clone(),
            kind,
            is_class_side: method.is_class,
            is_test: is_test && !method.is_class,
            is_sealed,
            native,
            selector: selector.clone(),
            function,
            is_expression: false,
        };
        let line = self.line(method.head.span.start);
        let functions = lower::lower_method(&target, &body, line);
        self.add(functions);
        body.assigns_class_state
    }

    fn accessors(&mut self, class: &ast::Class, field: &ast::Slot, accessors: &[EcoString]) {
        let line = self.line(field.span.start);
        let name = &field.name.text;
        let own = || Erl::var(line, "Self");
        let key = || Erl::atom(line, name.clone());
        let is_test = is_test_case(self.table, &class.name.text);
        if accessors.contains(name) {
            let body = if is_test {
                Erl::call(line, "beamtalk_test", "get_field", vec![own(), key()])
            } else {
                let found = Erl::new(line, ErlKind::MapPattern(vec![(key(), Erl::var(line, "V"))]));
                let missing = Erl::call(line, "beamtalk_value", "missing_field", vec![own(), key()]);
                let clauses = vec![
                    Clause::new(line, found, vec![Erl::var(line, "V")]),
                    Clause::new(line, Erl::var(line, "_"), vec![missing]),
                ];
                Erl::case(line, own(), clauses)
            };
            self.add_expression(&names::instance_function(name), vec![own()], vec![body], line);
        }
        let setter = setter_selector(name);
        if accessors.contains(&setter) {
            let value = || Erl::var(line, "V");
            let body = if is_test {
                Erl::call(line, "beamtalk_test", "with_field", vec![own(), key(), value()])
            } else {
                Erl::new(line, ErlKind::MapUpdate(Box::new(own()), vec![(key(), value())]))
            };
            self.add_expression(&setter, vec![own(), value()], vec![body], line);
        }
    }

    /// `class f1:f2:`: a literal map for exactly this class, the general way for subclasses.
    fn constructor(&mut self, class: &ast::Class, selector: &EcoString, line: u32) {
        let name = &class.name.text;
        let fields = own_fields(class);
        let own = || Erl::var(line, "Self");
        let variables: Vec<Erl> = (1..=fields.len())
            .map(|index| Erl::var(line, eco_format!("A{index}")))
            .collect();
        let pairs: Vec<(Erl, Erl)> = fields
            .iter()
            .zip(&variables)
            .map(|(field, variable)| (Erl::atom(line, field.name.text.clone()), variable.clone()))
            .collect();
        let given = Erl::new(line, ErlKind::Map(pairs.clone()));
        let general = Erl::call(line, "beamtalk_value", "new_with", vec![own(), given]);
        let has_inherited = self.table.all_slots(name).len() != fields.len() || !is_closed(self.table, name);
        let body = if has_inherited || class.modifiers.is_abstract {
            general
        } else {
            let mut all = vec![(Erl::atom(line, "$beamtalk_class"), Erl::atom(line, name.clone()))];
            all.extend(pairs);
            let any = || Erl::var(line, "_");
            let exact = Erl::tuple(
                line,
                vec![
                    Erl::atom(line, "beamtalk_object"),
                    Erl::atom(line, eco_format!("{name} class")),
                    any(),
                    any(),
                ],
            );
            let clauses = vec![
                Clause::new(line, exact, vec![Erl::new(line, ErlKind::Map(all))]),
                Clause::new(line, any(), vec![general]),
            ];
            Erl::case(line, own(), clauses)
        };
        let mut parameters = vec![own()];
        parameters.extend(variables);
        let function = names::class_function(selector);
        self.add_expression(&function, parameters, vec![body], line);
    }

    /// `'__defaults'/1` with `'__default'/1`, or `'__class_defaults'/0`; `'__initial'/0` where nothing is evaluated for an actor.
    fn defaults(&mut self, class: &ast::Class, is_class_side: bool, line: u32) {
        let slots: Vec<&ast::Slot> = class
            .slots
            .iter()
            .filter(|slot| (slot.keyword == ast::SlotKeyword::ClassState) == is_class_side)
            .collect();
        if slots.is_empty() {
            return;
        }
        let mut statements = Vec::new();
        let mut lifted = Vec::new();
        let mut pairs = Vec::new();
        let mut single = Vec::new();
        for (index, slot) in slots.iter().enumerate() {
            let own_line = self.line(slot.span.start);
            let name = Erl::atom(line, slot.name.text.clone());
            let body = self.slot_default(class, slot, &mut lifted);
            let value = match body.as_slice() {
                [only] if only.is_trivial() => only.clone(),
                _ => {
                    let value = if is_class_side {
                        apart(body.clone(), own_line)
                    } else {
                        let function = "__default".into();
                        let arguments = vec![name.clone()];
                        Erl::new(own_line, ErlKind::LocalCall { function, arguments })
                    };
                    let variable = eco_format!("D{index}");
                    statements.push(Erl::bind(own_line, variable.clone(), value));
                    Erl::var(own_line, variable)
                }
            };
            single.push(Clause {
                patterns: vec![name.clone()],
                guards: Vec::new(),
                body,
                line: own_line,
            });
            pairs.push((name, value));
        }
        if statements.is_empty() && !is_class_side && self.table.kind(&class.name.text) == Kind::Actor {
            let own = (
                Erl::atom(line, "$beamtalk_class"),
                Erl::atom(line, class.name.text.clone()),
            );
            let slots = std::iter::once(own).chain(pairs.iter().cloned()).collect();
            self.add_expression(
                "__initial",
                Vec::new(),
                vec![Erl::new(line, ErlKind::Map(slots))],
                line,
            );
        }
        if is_class_side {
            statements.push(Erl::new(line, ErlKind::Map(pairs)));
            self.add_expression("__class_defaults", Vec::new(), statements, line);
        } else {
            let inherited = Erl::var(line, "Inherited");
            statements.push(Erl::new(
                line,
                ErlKind::MapUpdate(Box::new(inherited.clone()), pairs),
            ));
            self.add_expression("__defaults", vec![inherited], statements, line);
            self.add(vec![Function {
                name: "__default".into(),
                arity: 1,
                clauses: single,
                line,
            }]);
        }
        self.functions.extend(lifted);
    }

    fn slot_default(&mut self, class: &ast::Class, slot: &ast::Slot, lifted: &mut Vec<Function>) -> Vec<Erl> {
        let line = self.line(slot.span.start);
        let Some(default) = &slot.default else {
            return vec![Erl::atom(line, "nil")];
        };
        let body = Resolver::new(self.table, self.file, None, self.diagnostics).default(default);
        let none = FxHashSet::default();
        let target = Target {
            table: self.table,
            lines: self.lines,
            own_selectors: &none,
            class: class.name.text.clone(),
            kind: Kind::Object,
            is_class_side: true,
            is_test: false,
            is_sealed: false,
            native: None,
            selector: slot.name.text.clone(),
            function: eco_format!("default {}", slot.name.text),
            is_expression: false,
        };
        let (body, more) = lower::lower_default(&target, &body, line);
        lifted.extend(more);
        body
    }

    // ---- extensions and protocols ----

    pub(crate) fn extensions(&mut self, extensions: &[&ast::Extension]) {
        let none = FxHashSet::default();
        let mut entries = Vec::new();
        for extension in extensions {
            let target = &extension.target.name.text;
            let method = &extension.method;
            let selector = &method.head.selector;
            let function = names::extension_function(target, method.is_class, selector);
            self.any_method(target, None, false, method, function.clone(), &none);
            let is_patch = self.file.origin == Origin::Session;
            entries.push(meta::extension(
                self.file, self.lines, extension, &function, is_patch,
            ));
        }
        self.extension_entries(entries);
        if self.file.origin != Origin::Session {
            // Code may be loaded under another name: what a file no longer has is found by this one.
            let home = vec![Erl::literal(1, Term::Atom(self.file.module.clone()))];
            self.add_expression("__beamtalk_home", Vec::new(), home, 1);
        }
    }

    fn extension_entries(&mut self, entries: Vec<Term>) {
        if !entries.is_empty() {
            let body = vec![Erl::literal(1, Term::List(entries))];
            self.add_expression("__beamtalk_extensions", Vec::new(), body, 1);
        }
    }

    /// A method of a class body in a module of its own. It is compiled as in the class, except that of its own class
    /// it can call only itself directly.
    pub(crate) fn patch(&mut self, class: &ast::Class, extension: &ast::Extension) {
        let name = &class.name.text;
        let method = &extension.method;
        let selector = &method.head.selector;
        let function = names::extension_function(name, method.is_class, selector);
        let own = FxHashSet::from_iter([selector.clone()]);
        self.method(name, class, method, function.clone(), &own);
        let entry = meta::extension(self.file, self.lines, extension, &function, true);
        self.extension_entries(vec![entry]);
    }

    /// The class is compiled again because this method was replaced; other live changes of it stay.
    pub(crate) fn replaced(&mut self, is_class_side: bool, selector: &str) {
        let side = if is_class_side { "class" } else { "instance" };
        let replaced = Term::tuple([Term::atom(side), Term::atom(selector)]);
        self.add_expression(
            "__beamtalk_replaced",
            Vec::new(),
            vec![Erl::literal(1, replaced)],
            1,
        );
    }

    pub(crate) fn protocol(&mut self, protocol: &ast::Protocol, module: &EcoString) {
        let meta = meta::protocol(self.file, protocol, module);
        let line = self.line(protocol.span.start);
        self.add_expression(
            "__beamtalk_protocol",
            Vec::new(),
            vec![Erl::literal(line, meta)],
            line,
        );
    }

    /// The forms of the module.
    pub(crate) fn forms(self, module: &EcoString) -> Term {
        let exports = Term::list(
            self.exports
                .iter()
                .map(|(name, arity)| Term::tuple([Term::Atom(name.clone()), Term::Integer(*arity as i64)])),
        );
        let file = Term::tuple([Term::string(&self.file.path), Term::Integer(1)]);
        let mut forms = vec![
            erl::attribute(1, "file", file),
            erl::attribute(1, "module", Term::Atom(module.clone())),
            erl::attribute(1, "compile", Term::atom("no_auto_import")),
            erl::attribute(1, "export", exports),
        ];
        forms.extend(self.functions.iter().map(erl::function_term));
        forms.push(Term::tuple([Term::atom("eof"), Term::Integer(1)]));
        Term::List(forms)
    }
}

/// Statements of different defaults may use the same variable names: each in a fun of its own.
fn apart(body: Vec<Erl>, line: u32) -> Erl {
    match <[Erl; 1]>::try_from(body) {
        Ok([only]) => only,
        Err(several) => {
            let clause = Clause {
                patterns: Vec::new(),
                guards: Vec::new(),
                body: several,
                line,
            };
            let function = Box::new(Erl::new(line, ErlKind::Fun(vec![clause])));
            let arguments = Vec::new();
            Erl::new(line, ErlKind::Apply { function, arguments })
        }
    }
}
