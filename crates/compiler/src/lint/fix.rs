//! `lint --fix`: the edits of findings that need no decision, applied to the text.
//!
//! Every other byte stays. The result is taken only if it parses to the same tree apart from what the fixes remove.

use beamtalk_syntax::ast::{self, Expression, ExpressionKind, Item};
use beamtalk_syntax::diagnostic::{Diagnostic, Edit, Severity};
use beamtalk_syntax::walk::{self, PartMut};
use beamtalk_syntax::{dump, parse_file};

/// The text with all fixes of these findings applied, and how many they are. `None` when there is nothing to fix, or
/// the result would mean something else.
pub fn fix(text: &str, diagnostics: &[Diagnostic]) -> Option<(String, usize)> {
    let mut chosen: Vec<&Edit> = Vec::new();
    let mut count = 0;
    for diagnostic in diagnostics
        .iter()
        .filter(|diagnostic| !diagnostic.edits.is_empty())
    {
        let overlaps = |edit: &Edit| {
            chosen
                .iter()
                .any(|other| edit.span.start < other.span.end && other.span.start < edit.span.end)
        };
        if !diagnostic.edits.iter().any(overlaps) {
            chosen.extend(&diagnostic.edits);
            count += 1;
        }
    }
    if count == 0 {
        return None;
    }
    chosen.sort_by_key(|edit| edit.span);
    let mut fixed = String::with_capacity(text.len());
    let mut done = 0;
    for edit in chosen {
        fixed.push_str(text.get(done..edit.span.start as usize)?);
        fixed.push_str(edit.text);
        done = edit.span.end as usize;
    }
    fixed.push_str(text.get(done..)?);
    is_same(text, &fixed).then_some((fixed, count))
}

/// Do both texts parse to one tree, parentheses, last carets and directives aside?
fn is_same(old: &str, new: &str) -> bool {
    let (old, new) = (parse_file(old), parse_file(new));
    let has_errors = |diagnostics: &[Diagnostic]| {
        diagnostics
            .iter()
            .any(|diagnostic| diagnostic.severity == Severity::Error)
    };
    !has_errors(&old.diagnostics)
        && !has_errors(&new.diagnostics)
        && dump(&bare(old.unit)) == dump(&bare(new.unit))
}

/// A tree without what fixes remove.
fn bare(mut unit: ast::Unit) -> ast::Unit {
    for item in &mut unit.items {
        match item {
            Item::Class(class) => {
                class.expect.clear();
                for slot in &mut class.slots {
                    slot.expect.clear();
                    slot.default.iter_mut().for_each(expression);
                }
                class.methods.iter_mut().for_each(method);
            }
            Item::Extension(extension) => method(&mut extension.method),
            Item::Protocol(protocol) => protocol.expect.clear(),
            Item::TypeAlias(alias) => alias.expect.clear(),
            Item::Statement(statement) => statements(std::slice::from_mut(statement)),
        }
    }
    unit
}

fn method(method: &mut ast::Method) {
    method.expect.clear();
    statements(&mut method.body);
    if let Some(last) = method.body.last_mut()
        && let ExpressionKind::Return(value) = &last.expression.kind
    {
        last.expression = Expression::clone(value);
    }
}

fn statements(body: &mut [ast::Statement]) {
    for statement in body {
        statement.expect.clear();
        expression(&mut statement.expression);
    }
}

fn expression(node: &mut Expression) {
    while let ExpressionKind::Parenthesized(inner) = &mut node.kind {
        *node = std::mem::replace(
            inner,
            Expression {
                kind: ExpressionKind::Error,
                span: node.span,
            },
        );
    }
    // `([..])` as the body of an arm is the block, `[..]` its statements: they are not the same.
    if let ExpressionKind::Match { value, arms, .. } = &mut node.kind {
        expression(value);
        for arm in arms {
            arm.guard.iter_mut().for_each(expression);
            match &mut arm.body.kind {
                ExpressionKind::Parenthesized(inner) if matches!(inner.kind, ExpressionKind::Block(_)) => {
                    expression(inner);
                }
                _ => expression(&mut arm.body),
            }
        }
        return;
    }
    walk::parts_mut(node, &mut |part| match part {
        PartMut::Expression(inner) => expression(inner),
        PartMut::Statements(body) => statements(body),
        _ => {}
    });
}
