//! Changing one method of a class that is already there.
//!
//! A method of the class body is replaced in the class's text and compiled alone, as a patch: a module whose function
//! takes the method's place in the dispatch tables. Sends to `self` inside the class are direct calls, which a patch
//! does not reach, so the methods that call it directly, and those that call them, become patches with it; where these
//! are many the class is compiled again. A method that a file adds to a class of another file is replaced in that file,
//! whose module is compiled again. A method that no text has joins the class body; only classes of the library and those
//! without a text get it as an extension.

use std::sync::Arc;

use beamtalk_syntax::ast::{self, ExpressionKind};
use beamtalk_syntax::definitions::{
    Change, Dialect, Edit, Key, MethodDefinition, as_extension, edit_tree, extension_source,
    method_definition,
};
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::span::{LineIndex, Span};
use beamtalk_syntax::walk;
use ecow::{EcoString, eco_format};

use crate::check::is_computed_in_place;
use crate::class::{Module, generated_selectors};
use crate::names;
use crate::table::{ClassTable, Origin};
use crate::{
    CompiledModule, SourceFile, codes, compile_input, definitions, encode, expect, has_errors, lint,
    module_name,
};

/// A module of its own costs about as much as this many methods of a class.
const METHODS_PER_PATCH: usize = 8;

/// The outcome of compiling one method. Without modules when there are errors.
#[derive(Clone, Debug, Default)]
pub struct CompiledMethod {
    pub modules: Vec<CompiledModule>,
    pub diagnostics: Vec<Diagnostic>,
    /// The class's text with the new method, to be declared once the modules are loaded.
    pub changed: Vec<Arc<SourceFile>>,
}

/// Compile the source of one method: a whole definition, or the bare body of a unary method.
pub fn compile_method(
    table: &ClassTable,
    class: &str,
    is_class_side: bool,
    selector: &str,
    source: &str,
) -> CompiledMethod {
    let input = match MethodInput::new(class, is_class_side, selector, source) {
        Ok(input) => input,
        Err(diagnostics) => {
            return CompiledMethod {
                diagnostics,
                ..CompiledMethod::default()
            };
        }
    };
    let compiled = compile_input(&input.file, table, &[]);
    let diagnostics = input.in_source(compiled.diagnostics, source);
    if has_errors(&diagnostics) {
        return CompiledMethod {
            diagnostics,
            ..CompiledMethod::default()
        };
    }
    CompiledMethod {
        modules: compiled.modules,
        diagnostics,
        changed: compiled.changed,
    }
}

/// Everything there is to say about the source of one method: what compiling it reports, and the findings of the linter.
pub fn lint_method(
    table: &ClassTable,
    class: &str,
    is_class_side: bool,
    selector: &str,
    source: &str,
) -> Vec<Diagnostic> {
    let input = match MethodInput::new(class, is_class_side, selector, source) {
        Ok(input) => input,
        Err(diagnostics) => return diagnostics,
    };
    let mut found = compile_input(&input.file, table, &[]).diagnostics;
    // What cannot be compiled is not worth a word about its style.
    if !has_errors(&found) && !has_errors(&input.diagnostics) {
        let lints = lint::lints(&input.file, table);
        let lints = expect::apply(&input.file, table, lints, &expect::Unseen::Nothing);
        // Compiling has said which directives are stale.
        found.extend(lints.into_iter().filter(|lint| lint.code != codes::STALE_EXPECT));
    }
    input.in_source(found, source)
}

/// The source of a method as the input of a session: an extension of its class.
struct MethodInput {
    definition: MethodDefinition,
    file: SourceFile,
    /// How much of the definition stands before the name of the class.
    front: usize,
    /// What was found while it was read.
    diagnostics: Vec<Diagnostic>,
}

impl MethodInput {
    fn new(class: &str, is_class_side: bool, selector: &str, source: &str) -> Result<Self, Vec<Diagnostic>> {
        let (definition, mut diagnostics) = definition(selector, source)?;
        let side = if is_class_side { " class" } else { "" };
        // Documentation stands above the whole definition.
        let front = comments(&definition.text);
        let (above, rest) = definition.text.split_at(front);
        let text = eco_format!("{above}{class}{side} >> {rest}");
        let parse = beamtalk_syntax::parse_input(&text);
        diagnostics.extend(parse.diagnostics);
        let file = SourceFile {
            path: "session".into(),
            text,
            unit: parse.unit,
            package: None,
            module: module_name(None, "session").into(),
            origin: Origin::Session,
        };
        Ok(Self {
            definition,
            file,
            front,
            diagnostics,
        })
    }

    /// All that was found, in the places of the source.
    fn in_source(self, found: Vec<Diagnostic>, source: &str) -> Vec<Diagnostic> {
        let prefix = self.file.text.len() - self.definition.text.len();
        let place = |span| span_in_source(span, &self.definition, (self.front, prefix), source);
        let mut diagnostics = self.diagnostics;
        diagnostics.extend(found);
        for diagnostic in &mut diagnostics {
            diagnostic.span = place(diagnostic.span);
            for (span, _) in &mut diagnostic.notes {
                *span = place(*span);
            }
            for edit in &mut diagnostic.edits {
                edit.span = place(edit.span);
            }
        }
        diagnostics
    }
}

/// How many bytes of comments and blank lines a text begins with.
fn comments(text: &str) -> usize {
    let lines = text.split_inclusive('\n').take_while(|line| {
        let line = line.trim_start();
        line.is_empty() || line.starts_with("//")
    });
    lines.map(str::len).sum()
}

/// Where a place of the definition is in the source it was made from. In the text that was compiled, `prefix` bytes were
/// put in after the first `front`.
fn span_in_source(
    span: Span,
    definition: &MethodDefinition,
    (front, prefix): (usize, usize),
    source: &str,
) -> Span {
    let leading = source.len() - source.trim_start().len();
    let place = |offset: u32| {
        let offset = offset as usize;
        let own = offset.saturating_sub(prefix).max(offset.min(front));
        let at = definition.place_in_source(own);
        (leading + at).min(source.len()) as u32
    };
    Span::new(place(span.start), place(span.end))
}

/// Take one of the methods out of the text it stands in. The class is compiled again when its own sends to `self` would
/// still reach the method, or when something is generated in its place. Nothing to do when no text has it.
pub fn remove_method(table: &ClassTable, class: &str, is_class_side: bool, selector: &str) -> CompiledMethod {
    let mut out = CompiledMethod::default();
    let elsewhere = table.extension_file(class, is_class_side, selector);
    if !is_class_side && elsewhere.is_none() && is_computed_in_place(class, selector) {
        let message =
            eco_format!("`{selector}` of {class} is computed where it is sent and cannot be removed");
        let nowhere = Span::new(0, 0);
        out.diagnostics
            .push(Diagnostic::error(codes::COMPUTED_IN_PLACE, nowhere, message));
        return out;
    }
    let Some((file, callers)) = without_method(table, class, is_class_side, selector) else {
        let key = Key::method(class, is_class_side, selector);
        let without = elsewhere.and_then(|file| with_change(table, file, &key, Change::Remove));
        out.changed.extend(without.map(Arc::new));
        return out;
    };
    let mut table = table.clone();
    let file = table.take(file);
    let is_generated =
        class_of(&file, class).is_some_and(|class| is_generated(&table, class, is_class_side, selector));
    let patches = if is_generated {
        None
    } else if callers.is_empty() {
        Some(Vec::new())
    } else {
        let findings = &mut out.diagnostics;
        caller_patches(&file, class, &callers, is_class_side, &table, findings)
    };
    out.modules = patches.unwrap_or_else(|| {
        let removed = (is_class_side, selector);
        Vec::from_iter(recompile(&file, class, removed, &table, &mut out.diagnostics))
    });
    out.changed.push(file);
    out
}

/// Whether a class has a method of that selector for its fields.
fn is_generated(table: &ClassTable, class: &ast::Class, is_class_side: bool, selector: &str) -> bool {
    let (accessors, constructor) = generated_selectors(table, class);
    if is_class_side {
        constructor.is_some_and(|constructor| constructor == selector)
    } else {
        accessors.iter().any(|accessor| accessor == selector)
    }
}

/// The text without the method, and the methods that reach it by direct calls.
fn without_method(
    table: &ClassTable,
    class: &str,
    is_class_side: bool,
    selector: &str,
) -> Option<(SourceFile, Vec<EcoString>)> {
    let file = table.source_of(class)?;
    let class = class_of(file, class)?;
    let method = method_of(class, is_class_side, selector)?;
    let key = Key::method(&class.name.text, is_class_side, selector);
    let new_file = with_change(table, file, &key, Change::Remove)?;
    Some((new_file, direct_callers(class, method)))
}

/// The same file with a definition changed; `None` when that cannot be done.
fn with_change(table: &ClassTable, file: &SourceFile, key: &Key, change: Change) -> Option<SourceFile> {
    let dialect = if file.origin == Origin::Session {
        Dialect::Input
    } else {
        Dialect::File
    };
    let edits = [Edit { key, change }];
    let (text, parse) = if table.has_names_of_texts() {
        edit_tree(&file.text, &file.unit, dialect, &edits).ok()?
    } else {
        let unit = dialect.parse(&file.text).unit;
        edit_tree(&file.text, &unit, dialect, &edits).ok()?
    };
    if has_errors(&parse.diagnostics) {
        return None;
    }
    // Not `..file.clone()`: its tree is large and not wanted.
    Some(SourceFile {
        text: text.into(),
        unit: parse.unit,
        path: file.path.clone(),
        package: file.package.clone(),
        module: file.module.clone(),
        origin: file.origin,
    })
}

/// The definition with its head, checked against the selector.
fn definition(selector: &str, source: &str) -> Result<(MethodDefinition, Vec<Diagnostic>), Vec<Diagnostic>> {
    let source = source.trim();
    let (method, diagnostics) = beamtalk_syntax::parse_method(source);
    if let Some(method) = method {
        if has_errors(&diagnostics) {
            return Err(diagnostics);
        }
        if method.head.selector != selector {
            let message = eco_format!("the source defines `{}`, not `{selector}`", method.head.selector);
            return Err(vec![Diagnostic::error(
                codes::WRONG_SELECTOR,
                method.head.span,
                message,
            )]);
        }
        return Ok((method_definition(selector, source), Vec::new()));
    }
    let is_unary = selector.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let (body, body_diagnostics) = beamtalk_syntax::parse_body(source);
    if is_unary && !body.is_empty() && !has_errors(&body_diagnostics) {
        return Ok((method_definition(selector, source), Vec::new()));
    }
    Err(if is_unary && has_errors(&body_diagnostics) {
        body_diagnostics
    } else {
        diagnostics
    })
}

/// What the methods of a session input that replace methods of class bodies come to.
#[derive(Default)]
pub(crate) struct Replacements {
    pub(crate) modules: Vec<CompiledModule>,
    /// The classes' new texts.
    pub(crate) changed: Vec<Arc<SourceFile>>,
    /// The spans of these methods in the input.
    pub(crate) replaced: Vec<Span>,
}

pub(crate) fn replacements(
    file: &SourceFile,
    table: &ClassTable,
    diagnostics: &mut Vec<Diagnostic>,
) -> Replacements {
    let mut out = Replacements::default();
    if file.origin != Origin::Session {
        return out;
    }
    let mut table = table.clone();
    for extension in file.unit.items.iter().filter_map(crate::as_extension) {
        if let Some((modules, new_file)) = replacement(file, &mut table, extension, diagnostics) {
            let is_again = |known: &CompiledModule| modules.iter().any(|module| module.name == known.name);
            out.modules.retain(|known| !is_again(known));
            out.modules.extend(modules);
            out.changed.push(new_file);
            out.replaced.push(extension.span);
        }
    }
    out
}

/// `None` when the class's text is not known, or has no such method and is the library's.
fn replacement(
    file: &SourceFile,
    table: &mut ClassTable,
    extension: &ast::Extension,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(Vec<CompiledModule>, Arc<SourceFile>)> {
    let name = &extension.target.name.text;
    let side_and_selector = (extension.method.is_class, &*extension.method.head.selector);
    let key = Key::method(name, side_and_selector.0, side_and_selector.1);
    let old_file = table.class(name).and_then(|entry| entry.source.clone());
    let class = old_file.as_deref().and_then(|file| class_of(file, name));
    let old = class.and_then(|class| method_of(class, side_and_selector.0, side_and_selector.1));
    if old.is_none()
        && let Some(elsewhere) = table
            .extension_file(name, side_and_selector.0, side_and_selector.1)
            .cloned()
    {
        return replacement_elsewhere(file, table, extension, &elsewhere, diagnostics);
    }
    let (old_file, class) = (old_file.as_deref()?, class?);
    if old.is_none() && old_file.origin == Origin::Library {
        return None;
    }
    let source = extension_source(&file.text, extension);
    let new_file = table.take(with_change(table, old_file, &key, Change::Put(&source))?);
    let callers = old.map_or_else(Vec::new, |old| direct_callers(class, old));
    let new_class = class_of(&new_file, name)?;
    let new = method_of(new_class, side_and_selector.0, side_and_selector.1)?;
    let modules = match caller_patches(&new_file, name, &callers, new.is_class, table, diagnostics) {
        Some(mut modules) => {
            modules.push(patch(
                file,
                extension,
                (&new_file, new_class, new),
                table,
                diagnostics,
            ));
            modules
        }
        None => vec![recompile(&new_file, name, side_and_selector, table, diagnostics)?],
    };
    Some((modules, new_file))
}

/// The method stands in a file that is not its class's: that file has it from now on.
fn replacement_elsewhere(
    file: &SourceFile,
    table: &mut ClassTable,
    extension: &ast::Extension,
    elsewhere: &SourceFile,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<(Vec<CompiledModule>, Arc<SourceFile>)> {
    let key = Key::method(
        &extension.target.name.text,
        extension.method.is_class,
        &extension.method.head.selector,
    );
    let source = as_extension(
        &key.class,
        extension.method.is_class,
        &extension.method.head.selector,
        &extension_source(&file.text, extension),
    );
    let new_file = table.take(with_change(table, elsewhere, &key, Change::Put(&source))?);
    // What is wrong with the method is told where it was typed.
    let typed = LineIndex::new(&file.text);
    Module::new(table, file, &typed, diagnostics).extensions(&[extension]);
    let lines = LineIndex::new(&new_file.text);
    let modules = definitions(&new_file, table, &lines, &[], &mut Vec::new());
    Some((modules, new_file))
}

/// The callers of a method as patches, whose sends to `self` go by the tables; `None` when the class as a whole is
/// compiled as fast.
fn caller_patches(
    file: &SourceFile,
    class: &str,
    callers: &[EcoString],
    is_class_side: bool,
    table: &ClassTable,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<Vec<CompiledModule>> {
    let class = class_of(file, class)?;
    if !callers.is_empty() && (callers.len() + 1) * METHODS_PER_PATCH > class.methods.len() {
        return None;
    }
    let patch_of = |selector: &EcoString| {
        let method = method_of(class, is_class_side, selector)?;
        let extension = ast::Extension {
            target: ast::ClassRef {
                package: None,
                name: class.name.clone(),
                span: class.name.span,
            },
            method: method.clone(),
            span: method.span,
        };
        Some(patch(file, &extension, (file, class, method), table, diagnostics))
    };
    callers.iter().map(patch_of).collect()
}

/// The method in a module of its own. Frames show it where it stands in the class's new text.
fn patch(
    file: &SourceFile,
    extension: &ast::Extension,
    (class_file, class, method): (&SourceFile, &ast::Class, &ast::Method),
    table: &ClassTable,
    diagnostics: &mut Vec<Diagnostic>,
) -> CompiledModule {
    let line = LineIndex::new(&class_file.text).line(method.span.start);
    let lines = LineIndex::new(&file.text).with_line_at(extension.method.span.start, line);
    let name = names::patch_module(extension);
    let place = SourceFile {
        path: class_file.path.clone(),
        text: file.text.clone(),
        unit: ast::Unit::default(),
        package: class_file.package.clone(),
        module: name.clone(),
        origin: class_file.origin,
    };
    let mut extension = extension.clone();
    extension.method.doc = extension.method.doc.or_else(|| method.doc.clone());
    extension.method.is_sealed = method.is_sealed;
    extension.method.is_internal = method.is_internal;
    let mut module = Module::new(table, &place, &lines, diagnostics);
    module.patch(class, &extension);
    CompiledModule {
        forms: encode(&module.forms(&name)),
        name,
        class: None,
        superclass: None,
    }
}

fn method_of<'a>(class: &'a ast::Class, is_class_side: bool, selector: &str) -> Option<&'a ast::Method> {
    class
        .methods
        .iter()
        .find(|method| method.is_class == is_class_side && method.head.selector == selector)
}

/// The methods of the class that send the method's selector to `self`, which is a direct call, and those that call them
/// in turn.
fn direct_callers(class: &ast::Class, method: &ast::Method) -> Vec<EcoString> {
    let mut reached = vec![method.head.selector.clone()];
    let mut at = 0;
    while let Some(selector) = reached.get(at).cloned() {
        let callers = class
            .methods
            .iter()
            .filter(|other| other.is_class == method.is_class)
            .filter(|other| statements_send_to_self(&other.body, &selector));
        for caller in callers {
            if !reached.contains(&caller.head.selector) {
                reached.push(caller.head.selector.clone());
            }
        }
        at += 1;
    }
    reached.split_off(1)
}

fn statements_send_to_self(statements: &[ast::Statement], selector: &str) -> bool {
    statements
        .iter()
        .any(|statement| sends_to_self(&statement.expression, selector))
}

fn sends_to_self(node: &ast::Expression, selector: &str) -> bool {
    let mut found = false;
    walk::all(node, &mut |node| {
        found |= match &node.kind {
            ExpressionKind::Send(send) => is_self(&send.receiver) && send.message.selector == selector,
            ExpressionKind::Cascade { receiver, messages } => {
                is_self(receiver) && messages.iter().any(|message| message.selector == selector)
            }
            _ => false,
        };
    });
    found
}

fn is_self(node: &ast::Expression) -> bool {
    match &node.kind {
        ExpressionKind::SelfReference => true,
        ExpressionKind::Parenthesized(inner) => is_self(inner),
        _ => false,
    }
}

pub(crate) fn class_of<'a>(file: &'a SourceFile, name: &str) -> Option<&'a ast::Class> {
    file.unit.items.iter().find_map(|item| match item {
        ast::Item::Class(class) if class.name.text == name => Some(class),
        _ => None,
    })
}

/// Compile a class of a text again after one of its methods was replaced or removed.
pub(crate) fn recompile(
    file: &SourceFile,
    class: &str,
    (is_class_side, selector): (bool, &str),
    table: &ClassTable,
    diagnostics: &mut Vec<Diagnostic>,
) -> Option<CompiledModule> {
    let class = class_of(file, class)?;
    let lines = LineIndex::new(&file.text);
    let module_name = file.module_of_class(class);
    let mut module = Module::new(table, file, &lines, diagnostics);
    module.class(class, &module_name);
    module.replaced(is_class_side, selector);
    let extensions: Vec<&ast::Extension> = if file.origin == Origin::Session {
        Vec::new()
    } else {
        file.unit.items.iter().filter_map(crate::as_extension).collect()
    };
    module.extensions(&extensions);
    Some(CompiledModule {
        forms: encode(&module.forms(&module_name)),
        name: module_name,
        class: Some(class.name.text.clone()),
        superclass: class
            .superclass
            .as_ref()
            .map(|superclass| superclass.name.text.clone()),
    })
}
