//! Walking expressions.

use beamtalk_syntax::ast::{self, ExpressionKind};

/// A part of an expression.
pub(crate) enum Child<'a> {
    Expression(&'a ast::Expression),
    Statements(&'a [ast::Statement]),
}

/// Calls `visit` on the direct parts of an expression, in source order.
pub(crate) fn each_child<'a>(node: &'a ast::Expression, visit: &mut dyn FnMut(Child<'a>)) {
    match &node.kind {
        ExpressionKind::Integer(_)
        | ExpressionKind::Float(_)
        | ExpressionKind::Character(_)
        | ExpressionKind::Symbol(_)
        | ExpressionKind::Nil
        | ExpressionKind::True
        | ExpressionKind::False
        | ExpressionKind::Variable(_)
        | ExpressionKind::ClassName(_)
        | ExpressionKind::SelfReference
        | ExpressionKind::Super
        | ExpressionKind::Field(_)
        | ExpressionKind::Primitive { .. }
        | ExpressionKind::Error => {}
        ExpressionKind::String(parts) => {
            for part in parts {
                if let ast::StringPart::Interpolation(value) = part {
                    visit(Child::Expression(value));
                }
            }
        }
        ExpressionKind::ForeignField { object, .. } => visit(Child::Expression(object)),
        ExpressionKind::List { elements, tail } => {
            elements
                .iter()
                .chain(tail.as_deref())
                .for_each(|e| visit(Child::Expression(e)));
        }
        ExpressionKind::Array(elements) => elements.iter().for_each(|e| visit(Child::Expression(e))),
        ExpressionKind::Dictionary(pairs) => {
            for (key, value) in pairs {
                visit(Child::Expression(key));
                visit(Child::Expression(value));
            }
        }
        ExpressionKind::Block(block) => visit(Child::Statements(&block.body)),
        ExpressionKind::Send(send) => {
            visit(Child::Expression(&send.receiver));
            send.message
                .arguments
                .iter()
                .for_each(|e| visit(Child::Expression(e)));
        }
        ExpressionKind::Cascade { receiver, messages } => {
            visit(Child::Expression(receiver));
            messages
                .iter()
                .flat_map(|message| &message.arguments)
                .for_each(|e| visit(Child::Expression(e)));
        }
        ExpressionKind::Match { value, arms, .. } => {
            visit(Child::Expression(value));
            for arm in arms {
                arm.guard.iter().for_each(|e| visit(Child::Expression(e)));
                visit(Child::Expression(&arm.body));
            }
        }
        ExpressionKind::Assign { value, .. }
        | ExpressionKind::Return(value)
        | ExpressionKind::Parenthesized(value) => {
            visit(Child::Expression(value));
        }
    }
}
