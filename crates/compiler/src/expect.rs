//! `@expect`: suppresses diagnostics of one category on what follows it.

use beamtalk_syntax::ast::{self, ExpressionKind};
use beamtalk_syntax::diagnostic::{Category, Diagnostic, Edit};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk::{self, Part};
use ecow::{EcoString, eco_format};

use crate::SourceFile;
use crate::codes;

/// The categories people may name, and what they suppress.
const CATEGORIES: &[(&str, &[Category])] = &[
    ("dnu", &[Category::Dnu]),
    ("type", &[Category::Type, Category::Dnu]),
    ("unused", &[Category::Unused]),
    ("dead_assignment", &[Category::DeadAssignment]),
    ("deprecation", &[Category::Deprecation]),
    ("actor_new", &[Category::ActorNew]),
    ("visibility", &[Category::Visibility]),
    ("unresolved_class", &[Category::UnresolvedClass]),
    ("unresolved_ffi", &[Category::UnresolvedFfi]),
    ("arity_mismatch", &[Category::ArityMismatch]),
    ("shadowed_class", &[Category::ShadowedClass]),
    ("type_annotation", &[Category::TypeAnnotation]),
    ("inheritance", &[Category::Inheritance]),
    ("sendability", &[Category::Sendability]),
    ("lint", &[Category::Lint]),
    ("all", &[]),
];

/// Who asks: only the linter sees findings of the linter.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tool {
    Compiler,
    Linter,
}

struct Directive {
    category: EcoString,
    span: Span,
    scope: Span,
    /// It stands before something whose types could be looked at.
    has_types: bool,
    is_used: bool,
}

/// Remove what directives suppress; report stale ones. Unknown categories are the parser's to report.
pub(crate) fn apply(file: &SourceFile, diagnostics: Vec<Diagnostic>, tool: Tool) -> Vec<Diagnostic> {
    let mut directives = collect(&file.unit);
    let mut out = Vec::with_capacity(diagnostics.len());
    for diagnostic in diagnostics {
        // The nearest one around the place is the one that is meant.
        let suppressing = directives
            .iter_mut()
            .rev()
            .find(|directive| suppresses(directive, &diagnostic));
        match suppressing {
            Some(directive) => directive.is_used = true,
            None => out.push(diagnostic),
        }
    }
    for directive in directives {
        if !directive.is_used && is_judged(&directive, tool) {
            out.push(
                Diagnostic::warning(
                    codes::STALE_EXPECT,
                    directive.span,
                    eco_format!("stale @expect: no {} diagnostic here", directive.category),
                )
                .with_edits(vec![Edit {
                    span: removal(&file.text, directive.span),
                    text: "",
                }]),
            );
        }
    }
    out.sort_by_key(|diagnostic| diagnostic.span);
    out
}

/// Is everything looked at that the directive could be there for?
fn is_judged(directive: &Directive, tool: Tool) -> bool {
    match directive.category.as_str() {
        "lint" | "dead_assignment" => tool == Tool::Linter,
        "type_annotation" | "arity_mismatch" | "unresolved_ffi" | "visibility" | "deprecation" => {
            !directive.has_types
        }
        "all" => tool == Tool::Linter && !directive.has_types,
        _ => true,
    }
}

/// What goes away with a directive: its line when it stands alone there, else the blanks behind it.
fn removal(text: &str, span: Span) -> Span {
    let before = text.get(..span.start as usize).unwrap_or("");
    let after = text.get(span.end as usize..).unwrap_or("");
    let indent = before.len() - before.trim_end_matches([' ', '\t']).len();
    let blanks = after.len() - after.trim_start_matches([' ', '\t']).len();
    let starts_line = before.len() == indent || before[..before.len() - indent].ends_with('\n');
    let rest = &after[blanks..];
    let line_end = if rest.starts_with("\r\n") {
        Some(2)
    } else if rest.starts_with('\n') {
        Some(1)
    } else {
        None
    };
    match line_end {
        Some(line_end) if starts_line => {
            Span::new(span.start - indent as u32, span.end + (blanks + line_end) as u32)
        }
        _ => Span::new(span.start, span.end + blanks as u32),
    }
}

fn suppresses(directive: &Directive, diagnostic: &Diagnostic) -> bool {
    let inside = directive.scope.start <= diagnostic.span.start && diagnostic.span.end <= directive.scope.end;
    if !inside {
        return false;
    }
    if directive.category == "all" {
        return true;
    }
    let Some(category) = diagnostic.category else {
        return false;
    };
    CATEGORIES
        .iter()
        .any(|(name, suppressed)| *name == directive.category && suppressed.contains(&category))
}

fn collect(unit: &ast::Unit) -> Vec<Directive> {
    let mut out = Vec::new();
    for item in &unit.items {
        match item {
            ast::Item::Class(class) => {
                add(&mut out, &class.expect, class.span, true);
                for slot in &class.slots {
                    add(&mut out, &slot.expect, slot.span, true);
                }
                for method in &class.methods {
                    add(&mut out, &method.expect, method.span, true);
                    statements(&mut out, &method.body);
                }
            }
            ast::Item::Extension(extension) => {
                add(&mut out, &extension.method.expect, extension.span, true);
                statements(&mut out, &extension.method.body);
            }
            ast::Item::Protocol(protocol) => add(&mut out, &protocol.expect, protocol.span, true),
            ast::Item::TypeAlias(alias) => add(&mut out, &alias.expect, alias.span, true),
            ast::Item::Statement(statement) => statements(&mut out, std::slice::from_ref(statement)),
        }
    }
    out
}

fn add(out: &mut Vec<Directive>, expects: &[ast::Expect], scope: Span, has_types: bool) {
    out.extend(expects.iter().map(|expect| Directive {
        category: expect.category.text.clone(),
        span: expect.span,
        scope,
        has_types,
        is_used: false,
    }));
}

fn statements(out: &mut Vec<Directive>, body: &[ast::Statement]) {
    for statement in body {
        let has_types = has_types(&statement.expression);
        add(out, &statement.expect, statement.expression.span, has_types);
        expression(out, &statement.expression);
    }
}

fn expression(out: &mut Vec<Directive>, node: &ast::Expression) {
    walk::parts(node, &mut |part| match part {
        Part::Expression(inner) => expression(out, inner),
        Part::Statements(body) => statements(out, body),
        _ => {}
    });
}

/// Does a message, a class or an annotation stand in it?
fn has_types(node: &ast::Expression) -> bool {
    let mut found = false;
    walk::all(node, &mut |node| {
        found |= matches!(
            node.kind,
            ExpressionKind::Send(_)
                | ExpressionKind::Cascade { .. }
                | ExpressionKind::Match { .. }
                | ExpressionKind::ClassName(_)
                | ExpressionKind::Assign { .. }
        );
    });
    found
}
