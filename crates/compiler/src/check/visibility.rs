//! What a package keeps to itself must not show in what it offers (language reference 14.3).

use beamtalk_syntax::ast::{self, TypeKind};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use ecow::{EcoString, eco_format};

use super::Checker;
use crate::codes;
use crate::table::Origin;

impl Checker<'_> {
    /// Internal classes and aliases in the public signatures, slots and aliases of a package.
    pub(super) fn exposed(&mut self, item: &ast::Item) {
        if self.file.origin != Origin::Package || self.file.package.is_none() {
            return;
        }
        match item {
            ast::Item::Class(class) if !class.modifiers.is_internal => {
                for slot in &class.slots {
                    let place = eco_format!("{} >> {}", class.name.text, slot.name.text);
                    slot.annotation
                        .iter()
                        .for_each(|annotation| self.exposed_in(annotation, &place));
                }
                for method in &class.methods {
                    self.exposed_by(&class.name.text, method);
                    self.hides(class, method);
                    self.withholds(&class.name.text, method);
                }
            }
            ast::Item::Extension(extension) if !self.is_hidden(&extension.target.name.text) => {
                self.exposed_by(&extension.target.name.text, &extension.method);
                self.withholds(&extension.target.name.text, &extension.method);
            }
            ast::Item::Protocol(protocol) => {
                for signature in &protocol.signatures {
                    let place = eco_format!("{} >> {}", protocol.name.text, signature.head.selector);
                    self.exposed_head(&signature.head, signature.result.as_ref(), &place);
                }
            }
            ast::Item::TypeAlias(alias) if !alias.is_internal => {
                self.exposed_in(&alias.definition, &alias.name.text);
            }
            ast::Item::Class(_)
            | ast::Item::Extension(_)
            | ast::Item::TypeAlias(_)
            | ast::Item::Statement(_) => {}
        }
    }

    fn exposed_by(&mut self, class: &str, method: &ast::Method) {
        if method.is_internal {
            return;
        }
        let side = if method.is_class { " class" } else { "" };
        let place = eco_format!("{class}{side} >> {}", method.head.selector);
        self.exposed_head(&method.head, method.result.as_ref(), &place);
    }

    fn exposed_head(&mut self, head: &ast::Head, result: Option<&ast::Type>, place: &EcoString) {
        let parameters = head.parameters.iter();
        for annotation in parameters
            .filter_map(|parameter| parameter.annotation.as_ref())
            .chain(result)
        {
            self.exposed_in(annotation, place);
        }
    }

    fn exposed_in(&mut self, annotation: &ast::Type, place: &EcoString) {
        let mut report = |name: &EcoString| {
            if self.is_hidden(name) {
                let message = eco_format!("Internal class '{name}' appears in public signature of '{place}'");
                self.diagnostics.push(
                    Diagnostic::error(codes::INTERNAL_IN_SIGNATURE, annotation.span, message)
                        .with_category(Category::Visibility)
                        .with_hint("Make it public, or the method, slot or alias that names it internal."),
                );
            }
        };
        match &annotation.kind {
            TypeKind::Named { class, arguments } => {
                report(&class.name.text);
                arguments
                    .iter()
                    .for_each(|argument| self.exposed_in(argument, place));
            }
            TypeKind::ClassOf(class) => report(&class.name.text),
            TypeKind::Union(members) | TypeKind::Intersection(members) | TypeKind::Difference(members) => {
                members.iter().for_each(|member| self.exposed_in(member, place));
            }
            TypeKind::SelfType
            | TypeKind::SelfClass
            | TypeKind::Symbol(_)
            | TypeKind::Nil
            | TypeKind::True
            | TypeKind::False
            | TypeKind::Error => {}
        }
    }

    /// A class or alias that this file's package keeps to itself; those of others cannot be named at all.
    fn is_hidden(&self, name: &str) -> bool {
        let package = &self.file.package;
        let class = self.table.class(name);
        let alias = self.table.alias(name);
        class.is_some_and(|class| class.modifiers.is_internal && class.package == *package)
            || alias.is_some_and(|alias| alias.is_internal && alias.package == *package)
    }

    /// An internal method with which a public class would conform to a protocol, which everybody may ask for.
    fn withholds(&mut self, class: &str, method: &ast::Method) {
        if !method.is_internal {
            return;
        }
        let selector = &method.head.selector;
        let table = self.table;
        let would_conform = |protocol: &&EcoString| {
            let required = table.required_by(protocol);
            required
                .iter()
                .any(|(is_class, wanted)| *is_class == method.is_class && wanted == selector)
                && required
                    .iter()
                    .all(|(is_class, wanted)| table.has_method(class, *is_class, wanted))
        };
        let mut protocols: Vec<&EcoString> = table.protocol_names().filter(would_conform).collect();
        protocols.sort_unstable();
        for protocol in protocols {
            let message = eco_format!("Internal method '{selector}' cannot satisfy protocol '{protocol}'");
            self.diagnostics.push(
                Diagnostic::warning(codes::INTERNAL_IN_PROTOCOL, method.head.span, message)
                    .with_category(Category::Visibility)
                    .with_hint("Make it public, or choose another selector."),
            );
        }
    }

    /// A method that a superclass of another package keeps to itself is replaced without being known.
    fn hides(&mut self, class: &ast::Class, method: &ast::Method) {
        let Some(superclass) = &class.superclass else {
            return;
        };
        let selector = &method.head.selector;
        let keeper = self
            .table
            .keeper_of_method(&superclass.name.text, method.is_class, selector);
        if let Some(keeper) = keeper.filter(|keeper| self.file.package.as_ref() != Some(*keeper)) {
            let message =
                eco_format!("Method '{selector}' shadows a method that is internal to package '{keeper}'");
            self.diagnostics.push(
                Diagnostic::warning(codes::HIDDEN_METHOD, method.head.span, message)
                    .with_category(Category::Visibility)
                    .with_hint("Choose another selector."),
            );
        }
    }
}
