//! Gradual types (language reference 11): one inference that all tools share.
//!
//! Ask for a file once and read the answer as often as needed:
//!
//! - [`of_file`] looks at every body of a file and answers [`Types`]; [`of_method`] looks at one.
//! - [`Types::of_span`] is the type of the expression at exactly this span; [`Types::at`] that of the innermost one
//!   around an offset; both answer a [`Type`], which prints as it would be written in source (`to_string`).
//! - [`Types::bindings`] has each name where it is bound (locals at their assignments, parameters), for inlay hints.
//! - [`Types::targets_of`] has the methods that a message may reach, by the span of the first part of its selector.
//! - [`Types::diagnostics`] are the findings; `compile_file` has them too, after `@expect`.
//!
//! Nothing here stops compilation or changes code. Where something is not known the type is [`Form::Dynamic`] with a
//! [`Reason`], and nothing is told about it.

mod annotation;
mod checks;
mod form;
mod infer;
mod print;
mod relate;
mod world;

use beamtalk_syntax::ast::{self, Item};
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::span::Span;
use ecow::EcoString;
use rustc_hash::FxHashMap;

use crate::SourceFile;
use crate::table::{ClassTable, Origin};

pub(crate) use annotation::{MAX_ALIASES, includes_nil, is_character, text};
use checks::declarations;
pub use form::{Form, Reason, Type};
pub use infer::MethodRef;
use infer::{Infer, Output, Own};
use world::World;

/// What is known about the expressions of a text.
#[derive(Debug, Default)]
pub struct Types {
    expressions: FxHashMap<Span, Type>,
    bindings: Vec<(Span, Type)>,
    targets: FxHashMap<Span, Vec<MethodRef>>,
    diagnostics: Vec<Diagnostic>,
    variables: Vec<(EcoString, Option<Type>)>,
}

impl Types {
    /// The type of the expression with exactly this span.
    pub fn of_span(&self, span: Span) -> Option<&Type> {
        self.expressions.get(&span)
    }

    /// The innermost expression around an offset, with its type.
    pub fn at(&self, offset: u32) -> Option<(Span, &Type)> {
        let around = self
            .expressions
            .iter()
            .filter(|(span, _)| span.start <= offset && offset <= span.end);
        around
            .min_by_key(|(span, _)| span.end - span.start)
            .map(|(span, of)| (*span, of))
    }

    /// Every expression with its type, in no order.
    pub fn expressions(&self) -> impl Iterator<Item = (Span, &Type)> {
        self.expressions.iter().map(|(span, of)| (*span, of))
    }

    /// Names where they are bound, in the order of the text.
    pub fn bindings(&self) -> &[(Span, Type)] {
        &self.bindings
    }

    /// The methods that a message may reach, by the span of the first part of its selector.
    pub fn targets_of(&self, part: Span) -> &[MethodRef] {
        self.targets.get(&part).map_or(&[], Vec::as_slice)
    }

    /// What the variables of an input hold after it, in no order; none where a block may assign them at any time.
    pub fn variables(&self) -> &[(EcoString, Option<Type>)] {
        &self.variables
    }

    pub fn diagnostics(&self) -> &[Diagnostic] {
        &self.diagnostics
    }

    pub(crate) fn into_diagnostics(self) -> Vec<Diagnostic> {
        self.diagnostics
    }
}

impl From<Output> for Types {
    fn from(out: Output) -> Self {
        let mut bindings = out.bindings;
        bindings.sort_by_key(|(span, _)| *span);
        let mut diagnostics = out.diagnostics;
        diagnostics.sort_by_key(|diagnostic| diagnostic.span);
        diagnostics.dedup();
        Self {
            expressions: out.types.into_iter().collect(),
            bindings,
            targets: out.targets.into_iter().collect(),
            diagnostics,
            variables: out.variables,
        }
    }
}

/// Everything about the bodies of a file. Its own declarations must be in the table.
pub fn of_file(file: &SourceFile, table: &ClassTable) -> Types {
    let (file, _) = crate::packages::resolve(file, table);
    of_resolved(&file, table)
}

/// The same for a file whose names are resolved, as [`ClassTable::keep`] answers it.
pub fn of_resolved(file: &SourceFile, table: &ClassTable) -> Types {
    let package = file.package.clone().filter(|_| file.origin != Origin::Library);
    of_unit(&file.unit, package, table, &[])
}

/// The same for the input of a script, in which these variables hold something already.
pub(crate) fn of_input(file: &SourceFile, table: &ClassTable, held: &[(EcoString, Type)]) -> Types {
    let package = file.package.clone().filter(|_| file.origin != Origin::Library);
    of_unit(&file.unit, package, table, held)
}

/// The same for the method around an offset alone, or for what stands outside of methods when the offset does.
pub fn of_method(file: &SourceFile, table: &ClassTable, offset: u32) -> Types {
    let package = file.package.clone().filter(|_| file.origin != Origin::Library);
    around(&file.unit, package, table, &[], offset as usize)
}

/// The same for a text in which these variables have values already.
pub(crate) fn around(
    unit: &ast::Unit,
    package: Option<EcoString>,
    table: &ClassTable,
    bindings: &[(EcoString, Type)],
    offset: usize,
) -> Types {
    let has = |span: Span| span.start as usize <= offset && offset <= span.end as usize;
    let mut items = unit.items.iter();
    let item = items.find(|item| match item {
        Item::Class(class) => has(class.span),
        Item::Extension(extension) => has(extension.span),
        Item::Protocol(_) | Item::TypeAlias(_) | Item::Statement(_) => false,
    });
    let world = World::new(table, package);
    let mut out = Output::default();
    match item {
        Some(Item::Class(class)) => match class.methods.iter().rfind(|method| has(method.span)) {
            Some(method) => self::method(&world, &mut out, &class.name.text, Some(class), method),
            None => slots(&world, &mut out, class),
        },
        Some(Item::Extension(extension)) => self::extension(&world, &mut out, extension),
        _ => statements(&world, &mut out, unit, bindings),
    }
    out.into()
}

/// Everything about a text in which these variables have values already.
pub(crate) fn of_unit(
    unit: &ast::Unit,
    package: Option<EcoString>,
    table: &ClassTable,
    bindings: &[(EcoString, Type)],
) -> Types {
    let world = World::new(table, package);
    let mut out = Output::default();
    for item in &unit.items {
        match item {
            Item::Class(class) => self::class(&world, &mut out, class),
            Item::Extension(extension) => {
                self::extension(&world, &mut out, extension);
            }
            Item::Protocol(_) | Item::TypeAlias(_) | Item::Statement(_) => {}
        }
    }
    statements(&world, &mut out, unit, bindings);
    out.into()
}

/// What stands outside of classes.
fn statements(world: &World<'_>, out: &mut Output, unit: &ast::Unit, bindings: &[(EcoString, Type)]) {
    let statements = unit.items.iter().filter_map(|item| match item {
        Item::Statement(statement) => Some(statement),
        _ => None,
    });
    Infer::new(world, out, None).input(bindings, statements);
}

fn extension(world: &World<'_>, out: &mut Output, extension: &ast::Extension) {
    let target = &extension.target.name.text;
    let declaration = world.table.class(target).and_then(|entry| entry.declaration());
    let class = declaration.map(|(_, class)| class);
    method(world, out, target, class, &extension.method);
}

fn method(
    world: &World<'_>,
    out: &mut Output,
    name: &EcoString,
    class: Option<&ast::Class>,
    method: &ast::Method,
) {
    let own = Own::new(world, name, method.is_class);
    Infer::new(world, out, Some(own)).method(method, class);
    annotations(world, out, method, class);
}

fn class(world: &World<'_>, out: &mut Output, class: &ast::Class) {
    for argument in &class.superclass_arguments {
        declarations::bounds(world, out, argument, Some(class));
    }
    slots(world, out, class);
    for method in &class.methods {
        self::method(world, out, &class.name.text, Some(class), method);
        declarations::overriding(world, out, class, method);
    }
}

fn slots(world: &World<'_>, out: &mut Output, class: &ast::Class) {
    let name = &class.name.text;
    for slot in &class.slots {
        if let Some(annotation) = &slot.annotation {
            declarations::bounds(world, out, annotation, Some(class));
        }
        let Some(default) = &slot.default else { continue };
        let is_class = slot.keyword == ast::SlotKeyword::ClassState;
        let mut infer = Infer::new(world, out, Some(Own::new(world, name, is_class)));
        let of = infer.default(default);
        if let Some(declared) = infer.declared_slot(&slot.name.text) {
            infer.check_slot(&slot.name.text, default, &of, &declared);
        }
    }
}

fn annotations(world: &World<'_>, out: &mut Output, method: &ast::Method, class: Option<&ast::Class>) {
    let parameters = method
        .head
        .parameters
        .iter()
        .filter_map(|it| it.annotation.as_ref());
    for annotation in parameters.chain(&method.result) {
        declarations::bounds(world, out, annotation, class);
    }
}
