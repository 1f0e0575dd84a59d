//! Whole classes: `value-like-object`, `supervision-policy`.

use beamtalk_syntax::ast::{self, Expression, ExpressionKind, SlotKeyword};
use beamtalk_syntax::diagnostic::Diagnostic;
use ecow::eco_format;

use super::{Linter, each_expression};
use crate::check::is_primitive;
use crate::codes;
use crate::table::{Kind, Origin};

pub(super) fn class(linter: &Linter<'_>, class: &ast::Class, out: &mut Vec<Diagnostic>) {
    if linter.file.origin == Origin::Library {
        return;
    }
    if is_value_like(linter, class) {
        out.push(
            Diagnostic::lint(
                codes::VALUE_LIKE_OBJECT,
                class.name.span,
                eco_format!("`{}` could be a Value (value-like-object)", class.name.text),
            )
            .with_hint(eco_format!(
                "An Object class has no instances of its own; write `Value subclass: {}`.",
                class.name.text
            )),
        );
    }
    if linter.table.inherits_from(&class.name.text, "Supervisor") {
        supervised(linter, class, out);
    }
}

/// It has what instances need and nothing that makes it a namespace, a base or a handle.
fn is_value_like(linter: &Linter<'_>, class: &ast::Class) -> bool {
    let is_plain = class
        .superclass
        .as_ref()
        .is_some_and(|superclass| superclass.name.text == "Object")
        && class.native.is_none()
        && class.handle_scope.is_none()
        && !class.modifiers.is_abstract
        && !class.methods.iter().any(is_primitive);
    if !is_plain {
        return false;
    }
    let name = &class.name.text;
    let is_base = linter
        .table
        .class_names()
        .any(|other| other != name && linter.table.inherits_from(other, name));
    let has_state = class.slots.iter().any(|slot| slot.keyword != SlotKeyword::Field);
    let makes_itself = class
        .methods
        .iter()
        .any(|method| method.is_class && matches!(method.head.selector.as_str(), "new" | "new:"));
    if is_base || has_state || makes_itself {
        return false;
    }
    let has_fields = !class.slots.is_empty();
    let has_instance_methods = class.methods.iter().any(|method| !method.is_class);
    let mut class_methods = class.methods.iter().filter(|method| method.is_class).peekable();
    let instantiates = class_methods.peek().is_none() || class_methods.any(|method| sends_new(&method.body));
    has_fields || (has_instance_methods && instantiates)
}

/// `self new`, `self new: …`.
fn sends_new(body: &[ast::Statement]) -> bool {
    let mut found = false;
    each_expression(body, &mut |node| {
        if let ExpressionKind::Send(send) = &node.kind {
            found |= matches!(send.receiver.kind, ExpressionKind::SelfReference)
                && matches!(send.message.selector.as_str(), "new" | "new:");
        }
    });
    found
}

/// Actor classes named in the list that `class children` answers.
fn supervised(linter: &Linter<'_>, class: &ast::Class, out: &mut Vec<Diagnostic>) {
    let children = class
        .methods
        .iter()
        .filter(|method| method.is_class && method.head.selector == "children");
    for method in children {
        each_expression(&method.body, &mut |node| {
            if let ExpressionKind::List { elements, .. } | ExpressionKind::Array(elements) = &node.kind {
                elements.iter().for_each(|element| child(linter, element, out));
            }
        });
    }
}

fn child(linter: &Linter<'_>, element: &Expression, out: &mut Vec<Diagnostic>) {
    let ExpressionKind::ClassName(class) = &element.kind else {
        return;
    };
    let name = &class.name.text;
    let is_actor = linter.table.class(name).is_some() && linter.table.kind(name) == Kind::Actor;
    let says = linter
        .table
        .find_method(name, true, "supervisionPolicy")
        .is_some_and(|(definer, _)| definer.origin != Origin::Library);
    let is_library = linter
        .table
        .class(name)
        .is_some_and(|entry| entry.origin == Origin::Library);
    if is_actor && !says && !is_library {
        out.push(
            Diagnostic::lint(
                codes::NO_SUPERVISION_POLICY,
                element.span,
                eco_format!(
                    "Actor subclass `{name}` has no explicit `class supervisionPolicy` override (supervision-policy)"
                ),
            )
            .with_hint("Without one it is `#temporary`: never restarted."),
        );
    }
}
