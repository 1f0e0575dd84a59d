//! How much of the code has a type.

use beamtalk_syntax::ast::{self, Expression, ExpressionKind, Item};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;
use ecow::EcoString;

use crate::SourceFile;
use crate::table::ClassTable;
use crate::types::{self, Form, Types};

/// What is known about the expressions of one class, or of the extensions of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCoverage {
    pub class: EcoString,
    pub total: usize,
    /// Expressions whose type is Dynamic.
    pub dynamic: Vec<Dynamic>,
}

impl ClassCoverage {
    pub fn typed(&self) -> usize {
        self.total - self.dynamic.len()
    }
}

/// An expression without a type, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dynamic {
    pub span: Span,
    pub reason: &'static str,
}

/// The coverage of a file, class by class in the order of the text.
pub fn coverage(file: &SourceFile, table: &ClassTable) -> Vec<ClassCoverage> {
    let types = types::of_file(file, table);
    let mut found: Vec<ClassCoverage> = Vec::new();
    for item in &file.unit.items {
        let (class, methods, slots) = match item {
            Item::Class(class) => (&class.name.text, class.methods.as_slice(), class.slots.as_slice()),
            Item::Extension(extension) => (
                &extension.target.name.text,
                std::slice::from_ref(&extension.method),
                [].as_slice(),
            ),
            Item::Protocol(_) | Item::TypeAlias(_) | Item::Statement(_) => continue,
        };
        let at = found.iter().position(|known| known.class == *class);
        let at = at.unwrap_or_else(|| {
            found.push(ClassCoverage {
                class: class.clone(),
                total: 0,
                dynamic: Vec::new(),
            });
            found.len() - 1
        });
        let Some(into) = found.get_mut(at) else { continue };
        let mut count = Count { types: &types, into };
        slots
            .iter()
            .filter_map(|slot| slot.default.as_ref())
            .for_each(|default| count.expression(default));
        methods.iter().for_each(|method| count.method(method));
    }
    found
}

struct Count<'a> {
    types: &'a Types,
    into: &'a mut ClassCoverage,
}

impl Count<'_> {
    fn method(&mut self, method: &ast::Method) {
        if !crate::check::is_primitive(method) {
            method
                .body
                .iter()
                .for_each(|statement| self.expression(&statement.expression));
        }
    }

    fn expression(&mut self, node: &Expression) {
        walk::inner(node, &mut |inner| self.expression(inner));
        let is_counted = !matches!(
            node.kind,
            ExpressionKind::Parenthesized(_)
                | ExpressionKind::Return(_)
                | ExpressionKind::Primitive { .. }
                | ExpressionKind::Error
                | ExpressionKind::Super
        );
        if !is_counted {
            return;
        }
        self.into.total += 1;
        // What is not reached has no type to be missed.
        if let Some(Form::Dynamic(reason)) = self.types.of_span(node.span).map(types::Type::form) {
            self.into.dynamic.push(Dynamic {
                span: node.span,
                reason: reason.text(),
            });
        }
    }
}
