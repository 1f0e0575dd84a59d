//! Changing one method of a class that is already there.
//!
//! A method of the class body is replaced in the class's text and the class is compiled again, so that its own sends
//! to `self` reach the new method. A method the body does not have becomes an extension.

use beamtalk_syntax::ast;
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::span::LineIndex;
use ecow::{EcoString, eco_format};

use crate::class::Module;
use crate::table::{ClassTable, Origin};
use crate::{CompiledModule, SourceFile, codes, compile_input, encode, has_errors, module_name};

/// The outcome of compiling one method. Without modules when there are errors.
#[derive(Clone, Debug, Default)]
pub struct CompiledMethod {
    pub modules: Vec<CompiledModule>,
    pub diagnostics: Vec<Diagnostic>,
    /// The class's text with the new method, to be declared once the modules are loaded.
    pub changed: Vec<SourceFile>,
}

/// Compile the source of one method: a whole definition, or the bare body of a unary method.
pub fn compile_method(
    table: &ClassTable,
    class: &str,
    is_class_side: bool,
    selector: &str,
    source: &str,
) -> CompiledMethod {
    let (definition, mut diagnostics) = match definition(selector, source) {
        Ok(definition) => definition,
        Err(diagnostics) => {
            return CompiledMethod {
                diagnostics,
                ..CompiledMethod::default()
            };
        }
    };
    let side = if is_class_side { " class" } else { "" };
    let text = eco_format!("{class}{side} >> {definition}");
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
    let input = compile_input(&file, table, &[]);
    diagnostics.extend(input.diagnostics);
    if has_errors(&diagnostics) {
        return CompiledMethod {
            diagnostics,
            ..CompiledMethod::default()
        };
    }
    CompiledMethod {
        modules: input.modules,
        diagnostics,
        changed: input.changed,
    }
}

/// Compile a class without one of its methods, so that its own sends to `self` no longer reach it. Nothing to do when the
/// body has no such method.
pub fn remove_method(table: &ClassTable, class: &str, is_class_side: bool, selector: &str) -> CompiledMethod {
    let mut out = CompiledMethod::default();
    let Some(file) = without_method(table, class, is_class_side, selector) else {
        return out;
    };
    let mut table = table.clone();
    table.declare(&file);
    out.modules.extend(recompile(
        &file,
        class,
        (is_class_side, selector),
        &table,
        &mut out.diagnostics,
    ));
    out.changed.push(file);
    out
}

fn without_method(
    table: &ClassTable,
    class: &str,
    is_class_side: bool,
    selector: &str,
) -> Option<SourceFile> {
    let file = table.class(class)?.source.clone()?;
    let method = class_of(&file, class)?
        .methods
        .iter()
        .find(|method| method.is_class == is_class_side && method.head.selector == selector)?;
    let before = file.text.get(..method.span.start as usize)?.trim_end();
    let after = file.text.get(method.span.end as usize..)?;
    with_text(&file, eco_format!("{before}\n{after}"))
}

/// The same file with another text; `None` when that does not parse.
fn with_text(file: &SourceFile, text: EcoString) -> Option<SourceFile> {
    let parse = if file.origin == Origin::Session {
        beamtalk_syntax::parse_input(&text)
    } else {
        beamtalk_syntax::parse_file(&text)
    };
    if has_errors(&parse.diagnostics) {
        return None;
    }
    Some(SourceFile {
        text,
        unit: parse.unit,
        ..file.clone()
    })
}

/// The definition with its head, checked against the selector.
fn definition(selector: &str, source: &str) -> Result<(EcoString, Vec<Diagnostic>), Vec<Diagnostic>> {
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
        return Ok((source.into(), Vec::new()));
    }
    let is_unary = selector.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    let (body, body_diagnostics) = beamtalk_syntax::parse_body(source);
    if is_unary && !body.is_empty() && !has_errors(&body_diagnostics) {
        let indented = source.replace('\n', "\n  ");
        return Ok((eco_format!("{selector} =>\n  {indented}"), Vec::new()));
    }
    Err(if is_unary && has_errors(&body_diagnostics) {
        body_diagnostics
    } else {
        diagnostics
    })
}

/// The text of the class with one of its methods replaced; `None` when the body has no such method or its text is
/// not known.
pub(crate) fn replace_method(
    table: &ClassTable,
    file: &SourceFile,
    extension: &ast::Extension,
) -> Option<SourceFile> {
    let target = &extension.target.name.text;
    let method = &extension.method;
    let old_file = table.class(target)?.source.clone()?;
    let class = class_of(&old_file, target)?;
    let old = class
        .methods
        .iter()
        .find(|old| old.is_class == method.is_class && old.head.selector == method.head.selector)?;
    let line_start = old_file
        .text
        .get(..old.span.start as usize)?
        .rfind('\n')
        .map_or(0, |at| at + 1);
    let indent = " ".repeat(old.span.start as usize - line_start);
    let modifier = if method.is_class { "class " } else { "" };
    let new = method
        .span
        .text(&file.text)
        .trim_end()
        .replace('\n', &format!("\n{indent}"));
    let before = old_file.text.get(..old.span.start as usize)?;
    let after = old_file.text.get(old.span.end as usize..)?;
    with_text(&old_file, eco_format!("{before}{modifier}{new}{after}"))
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
