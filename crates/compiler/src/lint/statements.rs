//! Statements beside each other: `cascade-candidate`, `effect-free-statement`, `redundant-annotation`.

use beamtalk_syntax::ast::{self, Expression, ExpressionKind, StringPart, Target, TypeKind};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use beamtalk_syntax::walk;
use ecow::{EcoString, eco_format};

use super::{Linter, Method, each_body, each_expression};
use crate::class::is_test_case;
use crate::codes;
use crate::resolve::unparenthesized;

/// So many messages in a row are worth a cascade.
const RUN: usize = 3;

/// Selectors that are control flow: a cascade of them would hide what runs when.
const CONTROL: &[&str] = &[
    "if",
    "and:",
    "or:",
    "while",
    "to:",
    "timesRepeat:",
    "repeat",
    "match",
];

pub(super) fn method(linter: &Linter<'_>, method: &Method<'_>, out: &mut Vec<Diagnostic>) {
    let is_test = is_test_case(linter.table, method.class);
    let block_targets = assigned_in_blocks(&method.method.body);
    each_body(&method.method.body, &mut |body| {
        cascades(body, is_test, &block_targets, out);
        effect_free(linter, body, out);
    });
    each_expression(&method.method.body, &mut |node| redundant_annotation(node, out));
}

// ---- cascade-candidate ----

/// The receiver of a statement that could be a part of a cascade, as its text.
fn cascade_receiver(
    statement: &ast::Statement,
    is_test: bool,
    block_targets: &[EcoString],
) -> Option<EcoString> {
    let ExpressionKind::Send(send) = &statement.expression.kind else {
        return None;
    };
    let is_control = CONTROL.iter().any(|word| send.message.selector.starts_with(word));
    if statement.is_cast || is_control {
        return None;
    }
    let receiver: EcoString = match &send.receiver.kind {
        ExpressionKind::Variable(name) if !block_targets.contains(name) => name.clone(),
        ExpressionKind::ClassName(class) if class.package.is_none() => class.name.text.clone(),
        // Assertions stand one beside the other by nature.
        ExpressionKind::SelfReference if !is_test => "self".into(),
        _ => return None,
    };
    let mut assigns = false;
    for argument in &send.message.arguments {
        walk::all(argument, &mut |node| {
            assigns |= matches!(&node.kind, ExpressionKind::Assign { target: Target::Variable(name), .. } if name.text == receiver)
                || matches!(
                    &node.kind,
                    ExpressionKind::Assign {
                        target: Target::Pattern(_),
                        ..
                    }
                );
        });
    }
    (!assigns).then_some(receiver)
}

/// Variables that a block assigns may change while a message is sent.
fn assigned_in_blocks(body: &[ast::Statement]) -> Vec<EcoString> {
    let mut names = Vec::new();
    each_expression(body, &mut |node| {
        if let ExpressionKind::Block(block) = &node.kind {
            each_expression(&block.body, &mut |inner| {
                if let ExpressionKind::Assign {
                    target: Target::Variable(name),
                    ..
                } = &inner.kind
                {
                    names.push(name.text.clone());
                }
            });
        }
    });
    names
}

fn cascades(body: &[ast::Statement], is_test: bool, block_targets: &[EcoString], out: &mut Vec<Diagnostic>) {
    let receivers: Vec<Option<EcoString>> = body
        .iter()
        .map(|statement| cascade_receiver(statement, is_test, block_targets))
        .collect();
    let mut at = 0;
    while at < receivers.len() {
        let length = receivers
            .iter()
            .skip(at)
            .take_while(|receiver| receiver.is_some() && **receiver == receivers[at])
            .count();
        if let (Some(receiver), true) = (&receivers[at], length >= RUN) {
            out.push(
                Diagnostic::lint(
                    codes::CASCADE_CANDIDATE,
                    body[at].expression.span,
                    eco_format!("{length} messages in a row to `{receiver}` (cascade-candidate)"),
                )
                .with_hint(eco_format!(
                    "Write the receiver once: `{receiver} first; second; third`."
                )),
            );
        }
        at += length.max(1);
    }
}

// ---- effect-free-statement ----

fn effect_free(linter: &Linter<'_>, body: &[ast::Statement], out: &mut Vec<Diagnostic>) {
    let Some((_, dropped)) = body.split_last() else {
        return;
    };
    for statement in dropped {
        let node = unparenthesized(&statement.expression);
        if !statement.is_cast && is_pure(linter, node) {
            out.push(
                Diagnostic::lint(
                    codes::EFFECT_FREE_STATEMENT,
                    statement.expression.span,
                    "this statement has no effect and its value is dropped (effect-free-statement)",
                )
                .with_hint("Remove it, or use its value."),
            );
        }
    }
}

/// Evaluating it changes nothing.
fn is_pure(linter: &Linter<'_>, node: &Expression) -> bool {
    let all = |nodes: &[Expression]| nodes.iter().all(|node| is_pure(linter, node));
    match &node.kind {
        scalar if scalar.is_scalar() => true,
        ExpressionKind::Variable(_)
        | ExpressionKind::SelfReference
        | ExpressionKind::Field(_)
        | ExpressionKind::Block(_) => true,
        ExpressionKind::String(parts) => parts.iter().all(|part| matches!(part, StringPart::Text(_))),
        ExpressionKind::List { elements, tail } => tail.is_none() && all(elements),
        ExpressionKind::Array(elements) => all(elements),
        ExpressionKind::Dictionary(pairs) => pairs
            .iter()
            .all(|(key, value)| is_pure(linter, key) && is_pure(linter, value)),
        ExpressionKind::Parenthesized(inner) => is_pure(linter, inner),
        ExpressionKind::Send(send) => {
            let [argument] = send.message.arguments.as_slice() else {
                return false;
            };
            is_pure_operator(linter, &send.message.selector, &send.receiver, argument)
                && is_pure(linter, &send.receiver)
                && is_pure(linter, argument)
        }
        _ => false,
    }
}

fn is_pure_operator(
    linter: &Linter<'_>,
    selector: &str,
    receiver: &Expression,
    argument: &Expression,
) -> bool {
    match selector {
        "==" | "/=" | "=:=" | "=/=" => true,
        // Any class may define these; where none of the program does, they compute.
        "+" | "-" | "*" | "<" | ">" | "<=" | ">=" => {
            !linter.table.is_user_selector(selector) || (is_number(receiver) && is_number(argument))
        }
        "/" | "%" => is_number(receiver) && is_nonzero(argument),
        _ => false,
    }
}

fn is_number(node: &Expression) -> bool {
    match &unparenthesized(node).kind {
        ExpressionKind::Integer(_) | ExpressionKind::Float(_) => true,
        ExpressionKind::Send(send) => {
            matches!(send.message.selector.as_str(), "+" | "-" | "*")
                && is_number(&send.receiver)
                && send.message.arguments.iter().all(is_number)
        }
        _ => false,
    }
}

fn is_nonzero(node: &Expression) -> bool {
    match &node.kind {
        ExpressionKind::Integer(value) => value.sign() != num_bigint::Sign::NoSign,
        _ => false,
    }
}

// ---- redundant-annotation ----

fn redundant_annotation(node: &Expression, out: &mut Vec<Diagnostic>) {
    let ExpressionKind::Assign {
        target: Target::Variable(name),
        annotation: Some(annotation),
        value,
    } = &node.kind
    else {
        return;
    };
    let TypeKind::Named { class, arguments } = &annotation.kind else {
        return;
    };
    if arguments.is_empty() && class.package.is_none() && literal_class(value) == Some(&class.name.text) {
        let message = eco_format!(
            "the annotation of `{}` says what its value shows: {} (redundant-annotation)",
            name.text,
            class.name.text
        );
        out.push(
            Diagnostic::lint(codes::REDUNDANT_ANNOTATION, annotation.span, message)
                .with_category(Category::TypeAnnotation)
                .with_hint("Leave the annotation out."),
        );
    }
}

fn literal_class(value: &Expression) -> Option<&str> {
    match &unparenthesized(value).kind {
        ExpressionKind::Integer(_) => Some("Integer"),
        ExpressionKind::Float(_) => Some("Float"),
        ExpressionKind::Character(_) => Some("Character"),
        ExpressionKind::String(_) => Some("String"),
        _ => None,
    }
}
