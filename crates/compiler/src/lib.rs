//! From parsed source to Erlang abstract forms: class table, names, checks, lowering.
//!
//! Takes text and tables, gives forms (as external term format) and diagnostics; never touches the world. The
//! functions the emitted code calls are in `docs/calling-convention.md`.

mod check;
mod class;
pub mod codes;
pub mod complete;
mod erl;
mod expect;
pub mod ffi;
mod ir;
pub mod lint;
mod live;
mod lower;
mod meta;
mod names;
mod packages;
pub mod reads;
mod resolve;
mod sites;
pub mod suggest;
mod table;
pub mod types;

use std::borrow::Cow;
use std::sync::Arc;

use beamtalk_etf::{Term, encode};
use beamtalk_syntax::ast;
use beamtalk_syntax::diagnostic::{Diagnostic, Severity};
use beamtalk_syntax::span::{LineIndex, Span};
use ecow::{EcoString, eco_format};
use rustc_hash::FxHashSet;

use crate::class::Module;
use crate::lower::Target;
use crate::resolve::Resolver;

pub use live::{CompiledMethod, compile_method, lint_method, remove_method};
pub use meta::is_delegate;
pub use names::{erlang_atom, is_erlang_reserved, module_name};
pub use packages::{Dependencies, Packages};
pub use table::{ClassEntry, ClassTable, Kind, Later, MethodEntry, Origin, SlotEntry};

/// One parsed source text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    /// As diagnostics and stack frames show it, relative to the project.
    pub path: EcoString,
    pub text: EcoString,
    pub unit: ast::Unit,
    pub package: Option<EcoString>,
    /// The BEAM module of the file's class or extensions.
    pub module: EcoString,
    pub origin: Origin,
}

impl SourceFile {
    /// A class of a package is named by its file, any other by its own name.
    pub(crate) fn module_of_class(&self, class: &ast::Class) -> EcoString {
        self.module_of(&class.name.text)
    }

    pub(crate) fn module_of_protocol(&self, protocol: &ast::Protocol) -> EcoString {
        self.module_of(&protocol.name.text)
    }

    fn module_of(&self, name: &str) -> EcoString {
        if self.package.is_some() {
            self.module.clone()
        } else {
            module_name(None, name).into()
        }
    }
}

/// The outcome of compiling a file. Without modules when there are errors.
#[derive(Clone, Debug, Default)]
pub struct Compiled {
    pub modules: Vec<CompiledModule>,
    pub diagnostics: Vec<Diagnostic>,
}

#[derive(Clone, Debug)]
pub struct CompiledModule {
    pub name: EcoString,
    /// The list of abstract forms, in external term format.
    pub forms: Vec<u8>,
    pub class: Option<EcoString>,
    pub superclass: Option<EcoString>,
}

/// The outcome of compiling a session or script input.
#[derive(Clone, Debug, Default)]
pub struct CompiledInput {
    /// Definitions, to be loaded before the expression is evaluated.
    pub modules: Vec<CompiledModule>,
    pub expression: Option<CompiledExpression>,
    /// What to print instead of a value: the names of the definitions.
    pub echo: Option<EcoString>,
    pub diagnostics: Vec<Diagnostic>,
    /// Session variables that the input assigns.
    pub assigns: Vec<EcoString>,
    /// Texts of classes whose methods the input replaced, to be declared once the modules are loaded.
    pub changed: Vec<Arc<SourceFile>>,
    /// The methods of the input that are in these texts.
    pub replaced: Vec<Span>,
    /// What the variables hold afterwards; none where a block may assign them at any time.
    pub types: Vec<(EcoString, Option<types::Type>)>,
}

#[derive(Clone, Debug)]
pub struct CompiledExpression {
    /// A list of abstract expressions, in external term format.
    pub forms: Vec<u8>,
    /// The last statement is a cast: print nothing.
    pub is_cast: bool,
    /// The value is statically a Character.
    pub is_character: bool,
}

fn has_errors(diagnostics: &[Diagnostic]) -> bool {
    diagnostics
        .iter()
        .any(|diagnostic| diagnostic.severity == Severity::Error)
}

/// Check and compile one file. Its own declarations must be in the table.
pub fn compile_file(file: &SourceFile, table: &ClassTable) -> Compiled {
    let lines = LineIndex::new(&file.text);
    let (file, mut diagnostics) = packages::resolve(file, table);
    let file = file.as_ref();
    check::file(file, table, &mut diagnostics);
    diagnostics.extend(types::of_resolved(file, table).into_diagnostics());
    let modules = definitions(file, table, &lines, &[], &mut diagnostics);
    let diagnostics = expected(file, table, diagnostics);
    let modules = if has_errors(&diagnostics) {
        Vec::new()
    } else {
        modules
    };
    Compiled { modules, diagnostics }
}

/// What compiling one file would say, without making code of it. Its own declarations must be in the table.
pub fn check_file(file: &SourceFile, table: &ClassTable) -> Vec<Diagnostic> {
    let (file, diagnostics) = told(file, table);
    expected(&file, table, diagnostics)
}

/// What is left of the findings of the compiler after `@expect`.
fn expected(file: &SourceFile, table: &ClassTable, diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let lints = || lint::lints(file, table);
    expect::apply(file, table, diagnostics, &expect::Unseen::Lints(&lints))
}

/// The file with its names resolved, and everything that is wrong with it, before `@expect` is looked at.
fn told<'a>(file: &'a SourceFile, table: &ClassTable) -> (Cow<'a, SourceFile>, Vec<Diagnostic>) {
    let (file, mut diagnostics) = packages::resolve(file, table);
    check::file(&file, table, &mut diagnostics);
    diagnostics.extend(types::of_resolved(&file, table).into_diagnostics());
    class::bodies(&file, table, &mut diagnostics);
    (file, diagnostics)
}

/// Compile one session or script input: definitions first, then the statements.
pub fn compile_input(file: &SourceFile, table: &ClassTable, bound: &[EcoString]) -> CompiledInput {
    compile_next_input(file, table, bound, &[])
}

/// The same where earlier inputs of the same text tell what variables hold.
pub fn compile_next_input(
    file: &SourceFile,
    table: &ClassTable,
    bound: &[EcoString],
    held: &[(EcoString, types::Type)],
) -> CompiledInput {
    let lines = LineIndex::new(&file.text);
    let (file, mut diagnostics) = packages::resolve(file, table);
    let file = file.as_ref();
    check::file(file, table, &mut diagnostics);
    let types = types::of_input(file, table, held);
    let after = types.variables().to_vec();
    diagnostics.extend(types.into_diagnostics());
    let replacements = live::replacements(file, table, &mut diagnostics);
    let mut modules = replacements.modules;
    modules.extend(definitions(
        file,
        table,
        &lines,
        &replacements.replaced,
        &mut diagnostics,
    ));
    let statements: Vec<ast::Statement> = file
        .unit
        .items
        .iter()
        .filter_map(|item| match item {
            ast::Item::Statement(statement) => Some(statement.clone()),
            _ => None,
        })
        .collect();
    let mut input = CompiledInput {
        echo: echo(&file.unit),
        types: after,
        ..CompiledInput::default()
    };
    if !statements.is_empty() {
        let (expression, assigns) = expression(file, table, &lines, &statements, bound, &mut diagnostics);
        input.assigns = assigns;
        input.expression = Some(expression);
    }
    refuse_as_files_do(file, table, &mut diagnostics);
    input.diagnostics = expected(file, table, diagnostics);
    if has_errors(&input.diagnostics) {
        input.expression = None;
    } else {
        input.modules = modules;
        input.changed = replacements.changed;
        input.replaced = replacements.replaced;
    }
    input
}

/// What a session only warns of is an error in a file, and a method of a class that stands in one will be written there.
fn refuse_as_files_do(file: &SourceFile, table: &ClassTable, diagnostics: &mut [Diagnostic]) {
    let is_of_file = |extension: &&ast::Extension| {
        let target = table.class(&extension.target.name.text);
        target.is_some_and(|entry| matches!(entry.origin, Origin::Package | Origin::Test))
    };
    let methods: Vec<Span> = file
        .unit
        .items
        .iter()
        .filter_map(as_extension)
        .filter(is_of_file)
        .map(|extension| extension.span)
        .collect();
    for found in diagnostics {
        let is_inside = |span: &Span| span.start <= found.span.start && found.span.end <= span.end;
        if check::ERRORS_IN_FILES.contains(&found.code) && methods.iter().any(is_inside) {
            found.severity = Severity::Error;
        }
    }
}

fn as_extension(item: &ast::Item) -> Option<&ast::Extension> {
    match item {
        ast::Item::Extension(extension) => Some(extension),
        ast::Item::Class(_) | ast::Item::Protocol(_) | ast::Item::TypeAlias(_) | ast::Item::Statement(_) => {
            None
        }
    }
}

fn expression(
    file: &SourceFile,
    table: &ClassTable,
    lines: &LineIndex,
    statements: &[ast::Statement],
    bound: &[EcoString],
    diagnostics: &mut Vec<Diagnostic>,
) -> (CompiledExpression, Vec<EcoString>) {
    let is_cast = statements.last().is_some_and(|statement| statement.is_cast);
    let (body, assigns) = Resolver::new(table, file, None, diagnostics).input(statements, bound);
    let none = FxHashSet::default();
    let target = Target {
        table,
        lines,
        own_selectors: &none,
        class: "UndefinedObject".into(),
        kind: Kind::Object,
        is_class_side: false,
        is_test: false,
        is_sealed: false,
        native: None,
        selector: "session".into(),
        function: "session".into(),
        is_expression: true,
    };
    let is_character = body
        .statements
        .last()
        .is_some_and(|last| resolve::is_static_character(last, &body.variables));
    let erl = lower::lower_expression(&target, &body, 1);
    let forms = encode(&Term::list(erl.iter().map(erl::to_term)));
    (
        CompiledExpression {
            forms,
            is_cast,
            is_character,
        },
        assigns,
    )
}

/// The classes, protocols and extensions of a text, each with its module. Extensions at the spans in `replaced` are
/// compiled already.
fn definitions(
    file: &SourceFile,
    table: &ClassTable,
    lines: &LineIndex,
    replaced: &[Span],
    diagnostics: &mut Vec<Diagnostic>,
) -> Vec<CompiledModule> {
    let mut modules = Vec::new();
    let mut extensions: Option<Vec<&ast::Extension>> = Some(
        file.unit
            .items
            .iter()
            .filter_map(as_extension)
            .filter(|extension| !replaced.contains(&extension.span))
            .collect(),
    );
    for item in &file.unit.items {
        match item {
            ast::Item::Class(class) => {
                let name = file.module_of_class(class);
                let mut module = Module::new(table, file, lines, diagnostics);
                module.class(class, &name);
                // Those of a file are in the module of its first class.
                if file.origin != Origin::Session
                    && let Some(extensions) = extensions.take()
                {
                    module.extensions(&extensions);
                }
                modules.push(CompiledModule {
                    forms: encode(&module.forms(&name)),
                    name,
                    class: Some(class.name.text.clone()),
                    superclass: class
                        .superclass
                        .as_ref()
                        .map(|superclass| superclass.name.text.clone()),
                });
            }
            ast::Item::Protocol(protocol) => {
                let name = file.module_of_protocol(protocol);
                let mut module = Module::new(table, file, lines, diagnostics);
                module.protocol(protocol, &name);
                let forms = encode(&module.forms(&name));
                modules.push(CompiledModule {
                    forms,
                    name,
                    class: None,
                    superclass: None,
                });
            }
            ast::Item::TypeAlias(_) | ast::Item::Extension(_) | ast::Item::Statement(_) => {}
        }
    }
    for (name, group) in extension_modules(file, &extensions.unwrap_or_default()) {
        modules.push(extension_module(file, table, lines, &name, &group, diagnostics));
    }
    modules
}

fn extension_module(
    file: &SourceFile,
    table: &ClassTable,
    lines: &LineIndex,
    name: &EcoString,
    extensions: &[&ast::Extension],
    diagnostics: &mut Vec<Diagnostic>,
) -> CompiledModule {
    let mut module = Module::new(table, file, lines, diagnostics);
    module.extensions(extensions);
    CompiledModule {
        forms: encode(&module.forms(name)),
        name: name.clone(),
        class: None,
        superclass: None,
    }
}

/// The module of a file that extended classes and does so no more: loading it takes the extensions out of the image.
pub fn without_extensions(file: &SourceFile, table: &ClassTable) -> CompiledModule {
    let lines = LineIndex::new(&file.text);
    extension_module(file, table, &lines, &file.module, &[], &mut Vec::new())
}

/// A file's extensions share its module. In a session each method has a module of its own, named after the method,
/// so that the next definition replaces it.
fn extension_modules<'a>(
    file: &SourceFile,
    extensions: &[&'a ast::Extension],
) -> Vec<(EcoString, Vec<&'a ast::Extension>)> {
    if extensions.is_empty() {
        return Vec::new();
    }
    if file.origin != Origin::Session {
        return vec![(file.module.clone(), extensions.to_vec())];
    }
    extensions
        .iter()
        .map(|extension| (names::patch_module(extension), vec![*extension]))
        .collect()
}

/// What a session prints for definitions (language reference 12.5).
fn echo(unit: &ast::Unit) -> Option<EcoString> {
    unit.items.iter().rev().find_map(|item| match item {
        ast::Item::Class(class) => Some(class.name.text.clone()),
        ast::Item::Protocol(protocol) => Some(eco_format!("Protocol {} defined", protocol.name.text)),
        ast::Item::TypeAlias(alias) => Some(alias.name.text.clone()),
        ast::Item::Extension(extension) => {
            let side = if extension.method.is_class { " class" } else { "" };
            Some(eco_format!(
                "{}{side}>>{}",
                extension.target.name.text,
                extension.method.head.selector
            ))
        }
        ast::Item::Statement(_) => None,
    })
}
