//! `@expect`: suppresses diagnostics of one category on what follows it.

use beamtalk_syntax::ast;
use beamtalk_syntax::diagnostic::{Category, Diagnostic, Edit};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk::{self, Part};
use ecow::{EcoString, eco_format};

use crate::SourceFile;
use crate::codes;
use crate::ffi::{self, Looked};
use crate::table::ClassTable;

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

/// What directives may be there for besides what is shown: the compiler shows no findings of the linter.
pub(crate) enum Unseen<'a> {
    Nothing,
    Lints(&'a dyn Fn() -> Vec<Diagnostic>),
}

struct Directive {
    category: EcoString,
    span: Span,
    scope: Span,
    is_used: bool,
}

/// Remove what directives suppress; report stale ones. Unknown categories are the parser's to report. All tools find the
/// same ones stale: what one does not show still counts.
pub(crate) fn apply(
    file: &SourceFile,
    table: &ClassTable,
    diagnostics: Vec<Diagnostic>,
    unseen: &Unseen<'_>,
) -> Vec<Diagnostic> {
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
    if let Unseen::Lints(lints) = unseen
        && directives
            .iter()
            .any(|it| !it.is_used && may_be_lint(&it.category))
    {
        for lint in lints() {
            let mut nearest = directives.iter_mut().rev();
            if let Some(directive) = nearest.find(|directive| suppresses(directive, &lint)) {
                directive.is_used = true;
            }
        }
    }
    for directive in directives {
        let is_known = CATEGORIES.iter().any(|(name, _)| *name == directive.category);
        if !directive.is_used && is_known && !rests_on_unread_erlang(&directive, file, table) {
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

/// Whether a finding of the linter can be what a directive is there for.
fn may_be_lint(category: &str) -> bool {
    matches!(category, "lint" | "dead_assignment" | "type_annotation" | "all")
}

/// Whether a directive is about a call of an Erlang module whose specifications are not at hand: nobody can tell.
fn rests_on_unread_erlang(directive: &Directive, file: &SourceFile, table: &ClassTable) -> bool {
    let is_about_types = matches!(
        directive.category.as_str(),
        "type" | "dnu" | "unresolved_ffi" | "arity_mismatch" | "all"
    );
    is_about_types
        && ffi::calls(file, directive.scope)
            .iter()
            .any(|module| matches!(table.specs().module(module), Looked::Open))
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
    walk::parts(node, &mut |part| match part {
        Part::Expression(inner) => expression(out, inner),
        Part::Statements(body) => statements(out, body),
        _ => {}
    });
}
