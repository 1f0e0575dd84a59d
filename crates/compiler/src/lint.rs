//! The linter: rules about code that compiles but says more, or less, than it means.
//!
//! Each rule is a function over the tree of one file and the class table, one file per group of rules. A rule
//! reports only what it can be sure of. The rules `shadowed-block-param` and `sync-send-in-timer-block` are warnings
//! of every compilation (W0203, W0217) and live with the checks.

mod blocks;
mod classes;
mod dead;
mod fix;
mod native;
mod redundant;
mod statements;
mod strings;

use beamtalk_syntax::ast;
use beamtalk_syntax::diagnostic::Diagnostic;

use crate::table::ClassTable;
use crate::{SourceFile, expect, told};
use beamtalk_syntax::walk;

pub use fix::fix;
pub use native::{Native, lint_native};

/// Everything there is to say about one file: what compiling it reports, and the findings of the linter. Its own
/// declarations must be in the table.
pub fn lint_file(file: &SourceFile, table: &ClassTable) -> Vec<Diagnostic> {
    let (file, mut diagnostics) = told(file, table);
    diagnostics.extend(lints(&file, table));
    expect::apply(&file, table, diagnostics, &expect::Unseen::Nothing)
}

/// The findings of the linter alone.
pub(crate) fn lints(file: &SourceFile, table: &ClassTable) -> Vec<Diagnostic> {
    let mut diagnostics = Vec::new();
    let linter = Linter { file, table };
    for method in methods(&file.unit) {
        linter.method(&method, &mut diagnostics);
    }
    for item in &file.unit.items {
        if let ast::Item::Class(class) = item {
            for default in class.slots.iter().filter_map(|slot| slot.default.as_ref()) {
                redundant::default(file, default, &mut diagnostics);
            }
            classes::class(&linter, class, &mut diagnostics);
        }
    }
    diagnostics
}

/// What rules look at.
struct Linter<'a> {
    file: &'a SourceFile,
    table: &'a ClassTable,
}

/// A method with the class it belongs to.
struct Method<'a> {
    class: &'a str,
    method: &'a ast::Method,
}

impl Linter<'_> {
    fn method(&self, method: &Method<'_>, out: &mut Vec<Diagnostic>) {
        redundant::method(self.file, method.method, out);
        statements::method(self, method, out);
        blocks::method(self, method, out);
        strings::method(self, method.method, out);
        dead::method(method.method, out);
    }
}

/// The methods and extensions of a file.
fn methods(unit: &ast::Unit) -> Vec<Method<'_>> {
    let mut found = Vec::new();
    for item in &unit.items {
        match item {
            ast::Item::Class(class) => found.extend(class.methods.iter().map(|method| Method {
                class: &class.name.text,
                method,
            })),
            ast::Item::Extension(extension) => found.push(Method {
                class: &extension.target.name.text,
                method: &extension.method,
            }),
            ast::Item::Protocol(_) | ast::Item::TypeAlias(_) | ast::Item::Statement(_) => {}
        }
    }
    found
}

/// Calls `visit` on every expression below the statements, outer ones first.
fn each_expression<'a>(body: &'a [ast::Statement], visit: &mut dyn FnMut(&'a ast::Expression)) {
    for statement in body {
        walk::all(&statement.expression, visit);
    }
}

/// Calls `visit` on the statements of a body and of every block in it.
fn each_body<'a>(body: &'a [ast::Statement], visit: &mut dyn FnMut(&'a [ast::Statement])) {
    visit(body);
    each_expression(body, &mut |node| {
        if let ast::ExpressionKind::Block(block) = &node.kind {
            visit(&block.body);
        }
    });
}
