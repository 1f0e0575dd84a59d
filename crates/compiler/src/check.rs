//! Checks of declarations and sends that need the class table but no type inference.

mod annotation;
mod declaration;
mod habit;
mod instantiation;
mod visibility;

use beamtalk_syntax::ast;
use beamtalk_syntax::diagnostic::Diagnostic;

use crate::SourceFile;
use crate::table::ClassTable;

pub(crate) use annotation::is_primitive;
pub(crate) use declaration::is_computed_in_place;
pub(crate) use instantiation::{ERRORS_IN_FILES, makes_itself};

/// Everything that is checked before bodies are resolved.
pub(crate) fn file(file: &SourceFile, table: &ClassTable, diagnostics: &mut Vec<Diagnostic>) {
    let mut checker = Checker {
        file,
        table,
        diagnostics,
    };
    for item in &file.unit.items {
        checker.item(item);
    }
}

struct Checker<'a> {
    file: &'a SourceFile,
    table: &'a ClassTable,
    diagnostics: &'a mut Vec<Diagnostic>,
}

impl Checker<'_> {
    fn item(&mut self, item: &ast::Item) {
        self.exposed(item);
        match item {
            ast::Item::Class(class) => {
                self.class(class);
                for slot in &class.slots {
                    slot.default.iter().for_each(|default| self.sends(default));
                }
                for method in &class.methods {
                    self.habits(class, method);
                    self.bodies(&method.body);
                }
            }
            ast::Item::Extension(extension) => {
                self.extension(extension);
                self.bodies(&extension.method.body);
            }
            ast::Item::Protocol(protocol) => self.protocol(protocol),
            ast::Item::TypeAlias(alias) => self.alias(alias),
            ast::Item::Statement(statement) => {
                self.annotations_in(std::slice::from_ref(statement), &[]);
                self.sends(&statement.expression);
            }
        }
    }

    fn bodies(&mut self, statements: &[ast::Statement]) {
        for statement in statements {
            self.sends(&statement.expression);
        }
    }
}
