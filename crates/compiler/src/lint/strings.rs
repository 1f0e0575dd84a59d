//! Text made the wrong way: `inspect-in-string-position`.

use beamtalk_syntax::ast::{self, Expression, ExpressionKind, StringPart, TypeKind};
use beamtalk_syntax::diagnostic::Diagnostic;

use super::{Linter, each_expression};
use crate::codes;
use crate::resolve::unparenthesized;

/// Library messages whose argument is a String.
const TAKES_TEXT: &[&str] = &["error:", "signal:", "fail:", "skip:"];

pub(super) fn method(linter: &Linter<'_>, method: &ast::Method, out: &mut Vec<Diagnostic>) {
    // A class of the program may answer text to `inspect`.
    if linter.table.is_user_selector("inspect") {
        return;
    }
    each_expression(&method.body, &mut |node| positions(node, out));
    if method.result.as_ref().is_some_and(is_string)
        && let Some(last) = method.body.last()
    {
        match &last.expression.kind {
            ExpressionKind::Return(_) => {}
            _ => check(&last.expression, out),
        }
        each_expression(&method.body, &mut |node| {
            if let ExpressionKind::Return(value) = &node.kind {
                check(value, out);
            }
        });
    }
}

fn positions(node: &Expression, out: &mut Vec<Diagnostic>) {
    match &node.kind {
        ExpressionKind::String(parts) => {
            for part in parts {
                if let StringPart::Interpolation(value) = part {
                    check(value, out);
                }
            }
        }
        ExpressionKind::Send(send) => {
            let selector = send.message.selector.as_str();
            if selector == "++" {
                check(&send.receiver, out);
            }
            if selector == "++" || TAKES_TEXT.contains(&selector) {
                send.message
                    .arguments
                    .iter()
                    .for_each(|argument| check(argument, out));
            }
        }
        ExpressionKind::Assign {
            annotation: Some(annotation),
            value,
            ..
        } if is_string(annotation) => check(value, out),
        _ => {}
    }
}

fn is_string(annotation: &ast::Type) -> bool {
    matches!(&annotation.kind, TypeKind::Named { class, .. } if class.name.text == "String")
}

fn check(node: &Expression, out: &mut Vec<Diagnostic>) {
    let node = unparenthesized(node);
    if let ExpressionKind::Send(send) = &node.kind
        && send.message.selector == "inspect"
    {
        out.push(
            Diagnostic::lint(
                codes::INSPECT_AS_STRING,
                send.message.span,
                "`inspect` answers an Inspector, a String is needed here (inspect-in-string-position)",
            )
            .with_hint("Use `printString`."),
        );
    }
}
