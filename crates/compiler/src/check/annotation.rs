//! Where annotations must and must not stand.

use beamtalk_syntax::ast::{self, ExpressionKind, SlotKeyword, TypeKind};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk::{self, Part};
use ecow::{EcoString, eco_format};

use super::Checker;
use crate::codes;

impl Checker<'_> {
    /// `Self` says what a method answers; a parameter of that type would promise what a subclass cannot keep.
    pub(super) fn self_as_parameter(&mut self, annotation: &ast::Type) {
        if matches!(annotation.kind, TypeKind::SelfType) {
            let message = "`Self` cannot be used as a parameter type";
            self.diagnostics.push(
                Diagnostic::error(codes::SELF_PARAMETER, annotation.span, message)
                    .with_hint("Name the class instead."),
            );
        }
        walk::inner_types(annotation, &mut |inner| self.self_as_parameter(inner));
    }

    /// The annotations of variables and of the parameters of blocks.
    pub(super) fn annotations_in(&mut self, statements: &[ast::Statement], parameters: &[&str]) {
        for statement in statements {
            walk::all(&statement.expression, &mut |node| {
                walk::parts(node, &mut |part| {
                    if let Part::Type(annotation) = part {
                        self.annotation(annotation, parameters);
                    }
                });
            });
        }
    }

    /// A method of a typed class says all its types, unless it is a primitive.
    pub(super) fn typed_method(&mut self, class: &str, method: &ast::Method) {
        if is_primitive(method) {
            return;
        }
        let selector = &method.head.selector;
        for parameter in &method.head.parameters {
            if parameter.annotation.is_none() {
                let name = &parameter.name;
                let what = eco_format!("parameter `{}`", name.text);
                self.missing_annotation(&what, name.span, class, selector);
            }
        }
        if method.result.is_none() {
            let what = eco_format!("return of `{selector}`");
            self.missing_annotation(&what, method.head.span, class, selector);
        }
    }

    pub(super) fn typed_slot(&mut self, class: &str, slot: &ast::Slot) {
        if slot.annotation.is_some() {
            return;
        }
        let keyword = match slot.keyword {
            SlotKeyword::Field => "field",
            SlotKeyword::State => "state",
            SlotKeyword::ClassState => "class state",
        };
        let what = eco_format!("{keyword} `{}`", slot.name.text);
        self.missing_annotation(&what, slot.name.span, class, &slot.name.text);
    }

    fn missing_annotation(&mut self, what: &str, span: Span, class: &str, member: &EcoString) {
        let message = eco_format!("Missing type annotation for {what} in typed class `{class}` ({member})");
        self.diagnostics.push(
            Diagnostic::warning(codes::MISSING_ANNOTATION, span, message)
                .with_category(Category::TypeAnnotation),
        );
    }

    /// `#(a | 3)`: the tail is known not to be a List.
    pub(super) fn improper_list(&mut self, expression: &ast::Expression) {
        let ExpressionKind::List { tail: Some(tail), .. } = &expression.kind else {
            return;
        };
        let kind = &crate::resolve::unparenthesized(tail).kind;
        let is_other = kind.is_scalar()
            || matches!(
                kind,
                ExpressionKind::String(_)
                    | ExpressionKind::Array(_)
                    | ExpressionKind::Dictionary(_)
                    | ExpressionKind::Block(_)
            );
        if is_other {
            let message = "improper list: what follows `|` must be a List";
            self.diagnostics.push(
                Diagnostic::warning(codes::IMPROPER_LIST, tail.span, message).with_category(Category::Type),
            );
        }
    }
}

pub(super) fn type_parameters(class: &ast::Class) -> Vec<&str> {
    class
        .type_parameters
        .iter()
        .map(|parameter| parameter.name.text.as_str())
        .collect()
}

pub(crate) fn is_primitive(method: &ast::Method) -> bool {
    method
        .body
        .first()
        .is_some_and(|statement| matches!(statement.expression.kind, ExpressionKind::Primitive { .. }))
}
