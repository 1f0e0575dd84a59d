//! A selected expression becomes a variable or a method of its own.

use std::collections::BTreeSet;

use beamtalk_syntax::ast::{Expression, ExpressionKind, Statement};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;
use ecow::EcoString;
use serde_json::Value;

use super::{Asked, action};
use crate::analysis::find::{self, Found};
use crate::analysis::names::{self, Meaning, Occurrence, Role};
use crate::analysis::references::Certainty;
use crate::edit::Edits;
use crate::fault::Fault;

pub(super) fn actions(asked: &Asked<'_>) -> Result<Vec<Value>, Fault> {
    let mut actions = Vec::new();
    let selected = trimmed(asked);
    if selected.start == selected.end {
        return Ok(actions);
    }
    let Some(method) = find::methods(&asked.view.file)
        .find(|found| found.method.span.start <= selected.start && selected.end <= found.method.span.end)
    else {
        return Ok(actions);
    };
    let Some(what) = selection(&method, selected) else {
        return Ok(actions);
    };
    let names = names::all(&asked.view.file.source.unit);
    if let Selection::Expression { statement, .. } = &what {
        actions.extend(local(asked, &names, &method, *statement, selected)?);
    }
    actions.extend(self::method(asked, &names, &method, &what, selected)?);
    Ok(actions)
}

/// The selection without the white space around it.
fn trimmed(asked: &Asked<'_>) -> Span {
    let text = asked.span.text(asked.view.text());
    let start = asked.span.start + (text.len() - text.trim_start().len()) as u32;
    let end = asked.span.end - (text.len() - text.trim_end().len()) as u32;
    Span::new(start, end.max(start))
}

enum Selection {
    /// One expression, and the statement of a body it stands in.
    Expression { statement: Span },
    /// Whole statements.
    Statements { has_return: bool, ends_body: bool },
}

fn selection(method: &Found<'_>, selected: Span) -> Option<Selection> {
    let mut found = None;
    bodies(&method.method.body, &mut |body| {
        let inside: Vec<&Statement> = body
            .iter()
            .filter(|one| selected.start <= one.span.start && one.span.end <= selected.end)
            .collect();
        if let (Some(first), Some(last)) = (inside.first(), inside.last())
            && first.span.start == selected.start
            && last.span.end == selected.end
            && inside.len() > 1
        {
            let mut has_return = false;
            for statement in &inside {
                walk::all(&statement.expression, &mut |node| {
                    has_return |= matches!(node.kind, ExpressionKind::Return(_));
                });
            }
            let ends_body = body.last().is_some_and(|end| end.span == last.span);
            found = Some(Selection::Statements {
                has_return,
                ends_body,
            });
            return;
        }
        for statement in body {
            let mut is_whole = false;
            each(&statement.expression, &mut |node| {
                is_whole |= node.span == selected && is_value(node);
            });
            if is_whole && found.is_none() {
                found = Some(Selection::Expression {
                    statement: statement.span,
                });
            }
        }
    });
    found
}

/// The bodies inside of one, innermost first.
fn bodies<'a>(body: &'a [Statement], visit: &mut dyn FnMut(&'a [Statement])) {
    for statement in body {
        walk::all(&statement.expression, &mut |node| {
            if let ExpressionKind::Block(block) = &node.kind {
                bodies(&block.body, visit);
            }
        });
    }
    visit(body);
}

/// An expression and what is inside of it, up to the next block: a block has statements of its own.
fn each<'a>(node: &'a Expression, visit: &mut dyn FnMut(&'a Expression)) {
    visit(node);
    if !matches!(node.kind, ExpressionKind::Block(_)) {
        walk::inner(node, &mut |inner| each(inner, visit));
    }
}

fn is_value(node: &Expression) -> bool {
    !matches!(
        node.kind,
        ExpressionKind::Super
            | ExpressionKind::Return(_)
            | ExpressionKind::Assign { .. }
            | ExpressionKind::Error
            | ExpressionKind::Primitive { .. }
    )
}

/// A name that nothing in the method has.
fn free(names: &[Occurrence], within: Span, wanted: &str) -> String {
    let is_taken = |text: &str| {
        names.iter().any(|name| {
            let is_near = within.start <= name.span.start && name.span.end <= within.end;
            is_near
                && matches!(&name.meaning, Meaning::Local { name, .. } | Meaning::Unbound(name) if name == text)
        })
    };
    if !is_taken(wanted) {
        return wanted.to_owned();
    }
    let mut number = 2;
    while is_taken(&format!("{wanted}{number}")) {
        number += 1;
    }
    format!("{wanted}{number}")
}

fn local(
    asked: &Asked<'_>,
    names: &[Occurrence],
    method: &Found<'_>,
    statement: Span,
    selected: Span,
) -> Result<Option<Value>, Fault> {
    let view = asked.view;
    let text = view.text();
    let name = free(names, method.method.span, "value");
    let lines = &view.file.lines;
    let start = lines.start(lines.line(statement.start));
    let before = Span::new(start, statement.start).text(text);
    let indent: String = before.chars().take_while(|c| c.is_whitespace()).collect();
    let code = selected.text(text);
    let mut edits = Edits::new(asked.snapshot, "");
    // A body on the line of its head moves to a line of its own.
    let mut place = Span::new(statement.start, statement.start);
    let inserted = if before.trim().is_empty() {
        format!("{name} := {code}\n{indent}")
    } else if before.trim_end().ends_with("=>") {
        place.start = start + before.trim_end().len() as u32;
        format!("\n{indent}  {name} := {code}\n{indent}  ")
    } else {
        format!("{name} := {code}. ")
    };
    edits.replace(&view.file, place, inserted, Certainty::Sure)?;
    edits.replace(&view.file, selected, name.as_str(), Certainty::Sure)?;
    let title = format!("Extract into a variable '{name}'");
    Ok(Some(action(title, "refactor.extract", edits.finish()?)))
}

fn method(
    asked: &Asked<'_>,
    names: &[Occurrence],
    method: &Found<'_>,
    what: &Selection,
    selected: Span,
) -> Result<Option<Value>, Fault> {
    let view = asked.view;
    let is_inside = |span: Span| selected.start <= span.start && span.end <= selected.end;
    let whole = method.method.span;
    let mut needs: Vec<EcoString> = Vec::new();
    let mut gives: BTreeSet<EcoString> = BTreeSet::new();
    for name in names {
        let is_near = whole.start <= name.span.start && name.span.end <= whole.end;
        let Meaning::Local {
            name: variable,
            declared,
        } = &name.meaning
        else {
            continue;
        };
        if !is_near {
            continue;
        }
        if is_inside(name.span) && !is_inside(*declared) {
            if name.role == Role::Write {
                // What is assigned in the new method would not be seen in the old one.
                return Ok(None);
            }
            if !needs.contains(variable) {
                needs.push(variable.clone());
            }
        }
        if !is_inside(name.span) && is_inside(*declared) {
            gives.insert(variable.clone());
        }
    }
    let is_whole = match what {
        Selection::Expression { .. } => true,
        // `^` would leave the wrong method, and only a value at the end is answered.
        Selection::Statements {
            has_return,
            ends_body,
        } => !has_return && *ends_body,
    };
    if !gives.is_empty() || !is_whole || method.is_extension {
        return Ok(None);
    }
    let table = &view.world.table;
    let is_taken = |selector: &str| {
        let known = beamtalk_compiler::complete::Receiver {
            class: method.class.clone(),
            is_class: method.method.is_class,
        };
        beamtalk_compiler::complete::Lookup::new(table)
            .answerer(&known, selector)
            .is_some()
    };
    let mut word = "extracted".to_owned();
    let selector_of = |word: &str| match needs.as_slice() {
        [] => word.to_owned(),
        [_, rest @ ..] => {
            let rest: String = rest.iter().map(|name| format!("{name}:")).collect();
            format!("{word}:{rest}")
        }
    };
    let mut number = 2;
    while is_taken(&selector_of(&word)) {
        word = format!("extracted{number}");
        number += 1;
    }
    let keyword = |index: usize, name: &str| if index == 0 { word.clone() } else { name.to_owned() };
    let parts: Vec<String> = needs
        .iter()
        .enumerate()
        .map(|(index, name)| format!("{}: {name}", keyword(index, name)))
        .collect();
    let head = if parts.is_empty() {
        word.clone()
    } else {
        parts.join(" ")
    };
    let side = if method.method.is_class { "class " } else { "" };
    let code = body(view.text(), &view.file.lines, selected);
    let call = match what {
        Selection::Expression { statement }
            if *statement != selected && !is_enclosed(view.text(), selected) =>
        {
            format!("(self {head})")
        }
        Selection::Expression { .. } | Selection::Statements { .. } => format!("self {head}"),
    };
    let mut edits = Edits::new(asked.snapshot, "");
    edits.replace(&view.file, selected, call, Certainty::Sure)?;
    let end = Span::new(whole.end, whole.end);
    let new = format!("\n\n  {side}{head} =>\n{code}");
    edits.replace(&view.file, end, new, Certainty::Sure)?;
    let title = format!("Extract into a method '{}'", selector_of(&word));
    Ok(Some(action(title, "refactor.extract", edits.finish()?)))
}

/// Whether parentheses stand around it already.
fn is_enclosed(text: &str, span: Span) -> bool {
    let before = text.get(..span.start as usize).unwrap_or_default();
    let after = text.get(span.end as usize..).unwrap_or_default();
    before.ends_with('(') && after.starts_with(')')
}

/// The selected lines, indented as the body of a method.
fn body(text: &str, lines: &crate::position::Lines, selected: Span) -> String {
    let start = lines.start(lines.line(selected.start));
    let before = Span::new(start, selected.start).text(text);
    let depth = before.len() - before.trim_start().len();
    let code = selected.text(text);
    let mut out: Vec<String> = Vec::new();
    for (number, line) in code.lines().enumerate() {
        let blank = line.len() - line.trim_start().len();
        let line = if number == 0 {
            line
        } else {
            line.get(blank.min(depth)..).unwrap_or(line)
        };
        out.push(if line.trim().is_empty() {
            String::new()
        } else {
            format!("    {line}")
        });
    }
    out.join("\n")
}
