//! `@expect`: suppresses diagnostics of one category on what follows it.

use beamtalk_syntax::ast;
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use beamtalk_syntax::span::Span;
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
    ("all", &[]),
];

struct Directive {
    category: EcoString,
    span: Span,
    scope: Span,
    is_used: bool,
}

/// Remove what directives suppress; report stale ones. Unknown categories are the parser's to report.
pub(crate) fn apply(file: &SourceFile, diagnostics: Vec<Diagnostic>) -> Vec<Diagnostic> {
    let mut directives = collect(&file.unit);
    let mut out = Vec::with_capacity(diagnostics.len());
    for diagnostic in diagnostics {
        let suppressing = directives
            .iter_mut()
            .find(|directive| suppresses(directive, &diagnostic));
        match suppressing {
            Some(directive) => directive.is_used = true,
            None => out.push(diagnostic),
        }
    }
    for directive in directives {
        if !directive.is_used && !needs_inference(&directive.category) {
            out.push(Diagnostic::warning(
                codes::STALE_EXPECT,
                directive.span,
                eco_format!("stale @expect: no {} diagnostic here", directive.category),
            ));
        }
    }
    out.sort_by_key(|diagnostic| diagnostic.span);
    out
}

/// Categories whose diagnostics come from type inference: without it nothing can be called stale.
fn needs_inference(category: &str) -> bool {
    matches!(
        category,
        "dnu"
            | "type"
            | "dead_assignment"
            | "type_annotation"
            | "sendability"
            | "arity_mismatch"
            | "unresolved_ffi"
            | "visibility"
            | "deprecation"
            | "all"
    )
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
                add(&mut out, &class.expect, class.span);
                for slot in &class.slots {
                    add(&mut out, &slot.expect, slot.span);
                }
                for method in &class.methods {
                    add(&mut out, &method.expect, method.span);
                    statements(&mut out, &method.body);
                }
            }
            ast::Item::Extension(extension) => {
                add(&mut out, &extension.method.expect, extension.span);
                statements(&mut out, &extension.method.body);
            }
            ast::Item::Protocol(protocol) => add(&mut out, &protocol.expect, protocol.span),
            ast::Item::TypeAlias(alias) => add(&mut out, &alias.expect, alias.span),
            ast::Item::Statement(statement) => statements(&mut out, std::slice::from_ref(statement)),
        }
    }
    out
}

fn add(out: &mut Vec<Directive>, expects: &[ast::Expect], scope: Span) {
    out.extend(expects.iter().map(|expect| Directive {
        category: expect.category.text.clone(),
        span: expect.span,
        scope,
        is_used: false,
    }));
}

fn statements(out: &mut Vec<Directive>, body: &[ast::Statement]) {
    for statement in body {
        add(out, &statement.expect, statement.expression.span);
        expression(out, &statement.expression);
    }
}

fn expression(out: &mut Vec<Directive>, node: &ast::Expression) {
    crate::check::each_child(node, &mut |child| match child {
        crate::check::Child::Expression(inner) => expression(out, inner),
        crate::check::Child::Statements(body) => statements(out, body),
    });
}
