//! A variable that is assigned once gives way to what it holds.

use beamtalk_syntax::ast::{Expression, ExpressionKind, Statement, Target};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;
use serde_json::Value;

use super::{Asked, action};
use crate::analysis::find;
use crate::analysis::names::{self, Role};
use crate::analysis::references::Certainty;
use crate::edit::Edits;
use crate::fault::Fault;

pub(super) fn actions(asked: &Asked<'_>) -> Result<Vec<Value>, Fault> {
    let view = asked.view;
    let names = names::all(&view.file.source.unit);
    let Some((name, variable, declared)) = names::local_at(&names, asked.span.start) else {
        return Ok(Vec::new());
    };
    let uses: Vec<_> = names
        .iter()
        .filter(|other| other.meaning == name.meaning)
        .collect();
    let is_written = uses.iter().any(|one| one.role == Role::Write);
    if name.is_parameter || is_written {
        return Ok(Vec::new());
    }
    let reads: Vec<Span> = uses
        .iter()
        .filter(|one| one.role == Role::Read)
        .map(|one| one.span)
        .collect();
    let Some((statement, value)) = assignment(asked, declared) else {
        return Ok(Vec::new());
    };
    // What has effects happens once and at its place: only one use, in the statement right behind, keeps both.
    let is_next = match reads.as_slice() {
        [only] => follows(asked, statement, *only),
        _ => false,
    };
    if reads.is_empty() || !(is_constant(value) || is_next) {
        return Ok(Vec::new());
    }
    let text = view.text();
    let code = value.span.text(text);
    let is_simple = !matches!(
        value.kind,
        ExpressionKind::Send(_) | ExpressionKind::Cascade { .. } | ExpressionKind::Match { .. }
    );
    let put = if is_simple {
        code.to_owned()
    } else {
        format!("({code})")
    };
    let mut edits = Edits::new(asked.snapshot, "");
    edits.replace(&view.file, line_of(asked, statement), "", Certainty::Sure)?;
    for read in reads {
        edits.replace(&view.file, read, put.as_str(), Certainty::Sure)?;
    }
    let title = format!("Inline '{variable}'");
    Ok(vec![action(title, "refactor.inline", edits.finish()?)])
}

fn each_body<'a>(body: &'a [Statement], visit: &mut dyn FnMut(&'a [Statement])) {
    visit(body);
    for statement in body {
        walk::all(&statement.expression, &mut |node| {
            if let ExpressionKind::Block(block) = &node.kind {
                visit(&block.body);
            }
        });
    }
}

/// The statement that gives a variable its value.
fn assignment<'a>(asked: &Asked<'a>, declared: Span) -> Option<(Span, &'a Expression)> {
    let mut found = None;
    for method in find::methods(&asked.view.file) {
        each_body(&method.method.body, &mut |body| {
            for statement in body {
                if let ExpressionKind::Assign {
                    target: Target::Variable(name),
                    value,
                    ..
                } = &statement.expression.kind
                    && name.span == declared
                {
                    found = Some((statement.span, value.as_ref()));
                }
            }
        });
    }
    found
}

/// Whether a place is in the statement right behind another one of the same body, and in no block of it.
fn follows(asked: &Asked<'_>, statement: Span, place: Span) -> bool {
    let mut is_next = false;
    for method in find::methods(&asked.view.file) {
        each_body(&method.method.body, &mut |body| {
            let at = body.iter().position(|one| one.span == statement);
            let Some(next) = at.and_then(|at| body.get(at + 1)) else {
                return;
            };
            let is_in = next.span.start <= place.start && place.end <= next.span.end;
            let mut is_in_block = false;
            walk::all(&next.expression, &mut |node| {
                let is_block = matches!(node.kind, ExpressionKind::Block(_));
                is_in_block |= is_block && node.span.start <= place.start && place.end <= node.span.end;
            });
            is_next |= is_in && !is_in_block;
        });
    }
    is_next
}

/// The value can be written anywhere and as often as one likes.
fn is_constant(value: &Expression) -> bool {
    match &value.kind {
        ExpressionKind::SelfReference | ExpressionKind::ClassName(_) => true,
        ExpressionKind::Parenthesized(inner) => is_constant(inner),
        other => other.is_scalar(),
    }
}

/// The statement with its line, if it has one to itself.
fn line_of(asked: &Asked<'_>, statement: Span) -> Span {
    let (text, lines) = (asked.view.text(), &asked.view.file.lines);
    let (first, last) = (lines.line(statement.start), lines.line(statement.end));
    let start = lines.start(first);
    let before = Span::new(start, statement.start).text(text);
    let after = text.get(statement.end as usize..).unwrap_or_default();
    let rest = after.lines().next().unwrap_or_default();
    if before.trim().is_empty() && rest.trim().trim_start_matches('.').is_empty() && last + 1 < lines.count()
    {
        return Span::new(start, lines.start(last + 1));
    }
    // Something else is on the line: the separator goes with the statement.
    let separator = rest.len() - rest.trim_start_matches(['.', ' ']).len();
    Span::new(statement.start, statement.end + separator as u32)
}
