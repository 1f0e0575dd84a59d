//! Values that are replaced before anybody reads them: `dead-assignment`.

use beamtalk_syntax::ast::{self, Expression, ExpressionKind, Statement, Target};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use beamtalk_syntax::walk;
use ecow::{EcoString, eco_format};

use super::each_expression;
use crate::codes;

/// Statements of a method beside each other: an assignment whose variable is next mentioned by another assignment that
/// does not read it. A variable that a block mentions may be read at any time.
pub(super) fn method(method: &ast::Method, out: &mut Vec<Diagnostic>) {
    for (index, statement) in method.body.iter().enumerate() {
        let Some(name) = assigned(statement) else { continue };
        let rest = method.body.get(index + 1..).unwrap_or_default();
        let Some(next) = rest.iter().find(|next| mentions(&next.expression, name)) else {
            continue;
        };
        let is_replaced = assigned(next) == Some(name) && !reads(next, name);
        if !is_replaced || name.starts_with('_') || is_in_a_block(&method.body, name) {
            continue;
        }
        let text = eco_format!("nobody reads what is assigned to `{name}` here (dead-assignment)");
        out.push(
            Diagnostic::lint(codes::DEAD_ASSIGNMENT, statement.expression.span, text)
                .with_category(Category::DeadAssignment)
                .with_hint("Remove the assignment, or give the second value a name of its own."),
        );
    }
}

/// The variable that a statement assigns.
fn assigned(statement: &Statement) -> Option<&EcoString> {
    match &statement.expression.kind {
        ExpressionKind::Assign {
            target: Target::Variable(name),
            ..
        } => Some(&name.text),
        _ => None,
    }
}

/// Whether the value of an assignment reads a variable.
fn reads(statement: &Statement, name: &str) -> bool {
    match &statement.expression.kind {
        ExpressionKind::Assign { value, .. } => mentions(value, name),
        _ => true,
    }
}

fn mentions(node: &Expression, name: &str) -> bool {
    let mut found = false;
    walk::all(node, &mut |node| {
        found |= match &node.kind {
            ExpressionKind::Variable(known) => known == name,
            ExpressionKind::Assign {
                target: Target::Variable(known),
                ..
            } => known.text == name,
            // What a pattern binds may be the same variable.
            ExpressionKind::Assign {
                target: Target::Pattern(_),
                ..
            } => true,
            _ => false,
        };
    });
    found
}

fn is_in_a_block(body: &[Statement], name: &str) -> bool {
    let mut found = false;
    each_expression(body, &mut |node| {
        if let ExpressionKind::Block(block) = &node.kind {
            found |= block
                .body
                .iter()
                .any(|statement| mentions(&statement.expression, name));
        }
    });
    found
}
