//! Whether the arms of a match leave something out (language reference 7.3).

use beamtalk_syntax::ast::{Arm, Pattern, PatternKind};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use beamtalk_syntax::span::Span;
use ecow::{EcoString, eco_format};
use rustc_hash::FxHashSet;
use std::fmt::Write as _;

use crate::codes;
use crate::types::form::{Form, Type};
use crate::types::infer::Infer;
use crate::types::relate::witness;

/// So many cases are named.
const MAX_NAMED: usize = 20;

impl Infer<'_, '_> {
    pub(in crate::types) fn check_exhaustive(
        &mut self,
        of: &Type,
        arms: &[Arm],
        is_exhaustive: bool,
        span: Span,
    ) {
        if !self.is_told() || of.is_never() || leaves_result_open(arms) {
            return;
        }
        if !self.is_closed(of) {
            if is_exhaustive {
                let text = eco_format!(
                    "matchExhaustive: needs a closed union (symbol singletons, nil, concrete classes); \
                     this value is `{of}`"
                );
                self.tell(Diagnostic::error(codes::NON_EXHAUSTIVE, span, text));
            }
            return;
        }
        let cases = of.members().iter().flat_map(cases);
        // Of many symbols each is looked up among those that have an arm.
        let (symbols, others): (Vec<&Pattern>, Vec<&Pattern>) =
            unguarded(arms).partition(|pattern| matches!(pattern.kind, PatternKind::Symbol(_)));
        let symbols: FxHashSet<&str> = symbols
            .iter()
            .filter_map(|pattern| match &pattern.kind {
                PatternKind::Symbol(name) => Some(name.as_str()),
                _ => None,
            })
            .collect();
        let has_arm =
            |case: &Type| matches!(case.form(), Form::Symbol(name) if symbols.contains(name.as_str()));
        let both_results = takes_both_results(arms);
        let missing: Vec<Type> = cases
            .filter(|case| !has_arm(case) && !self.is_covered(case, &others, both_results))
            .collect();
        if missing.is_empty() {
            return;
        }
        let witness = witness(&missing);
        let more = missing.len().saturating_sub(MAX_NAMED);
        let missing: Vec<EcoString> = missing
            .iter()
            .take(MAX_NAMED)
            .map(|member| {
                if member.is_nil() {
                    "`nil`".into()
                } else {
                    eco_format!("`{member}`")
                }
            })
            .collect();
        let mut missing = missing.join(", ");
        if more > 0 {
            let _ = write!(missing, " and {more} more");
        }
        let found = if is_exhaustive {
            let text = eco_format!("matchExhaustive: leaves {missing} unhandled");
            Diagnostic::error(codes::NON_EXHAUSTIVE, span, text)
        } else {
            let text = eco_format!("match leaves {missing} unhandled");
            Diagnostic::warning(codes::UNHANDLED_CASE, span, text).with_category(Category::Type)
        };
        self.tell(found.with_witness(witness));
    }

    /// Singletons, nil and concrete classes only. One class alone is no union: its instances are not told apart by
    /// their class.
    fn is_closed(&self, of: &Type) -> bool {
        let is_case = |member: &Type| match member.form() {
            Form::Symbol(_) => true,
            Form::Class { name, .. } if name == "Boolean" => true,
            Form::Class { name, .. } => {
                let entry = self.world.table.class(name);
                name != "Object" && entry.is_some_and(|entry| !entry.modifiers.is_abstract)
            }
            Form::Tuple(_) | Form::Block { .. } => true,
            _ => false,
        };
        match of.members() {
            [only] => matches!(only.form(), Form::Symbol(_)) || only.is_nil() || only.is_class("Boolean"),
            members => members.iter().all(is_case),
        }
    }

    /// Whether one of these patterns takes every value of a case, or both sides of a Result are taken.
    fn is_covered(&self, case: &Type, patterns: &[&Pattern], both_results: bool) -> bool {
        let class = case.class_name().unwrap_or("");
        let takes = |kind: &PatternKind| match kind {
            PatternKind::Wildcard | PatternKind::Variable(_) | PatternKind::Error => true,
            PatternKind::Symbol(name) => matches!(case.form(), Form::Symbol(symbol) if symbol == name),
            PatternKind::Nil => class == "UndefinedObject",
            PatternKind::True => class == "True",
            PatternKind::False => class == "False",
            PatternKind::Typed { class: wanted, .. } => {
                let wanted = match wanted.name.text.as_str() {
                    "Nil" => "UndefinedObject",
                    name => name,
                };
                self.world.table.inherits_from(class, wanted)
            }
            PatternKind::Tuple(parts) => {
                matches!(case.form(), Form::Tuple(types) if types.len() == parts.len())
                    && parts.iter().all(is_open)
            }
            PatternKind::Integer(_)
            | PatternKind::Float(_)
            | PatternKind::Character(_)
            | PatternKind::String(_)
            | PatternKind::List { .. }
            | PatternKind::Array { .. }
            | PatternKind::Dictionary(_)
            | PatternKind::ResultOk(_)
            | PatternKind::ResultError(_)
            | PatternKind::Binary(_) => false,
        };
        patterns.iter().any(|pattern| takes(&pattern.kind)) || (class == "Result" && both_results)
    }
}

/// What a member of a closed union is told apart into.
fn cases(member: &Type) -> Vec<Type> {
    if member.is_class("Boolean") {
        vec![Type::class("True"), Type::class("False")]
    } else {
        vec![member.clone()]
    }
}

/// Has a case of Result and not all of them: that is an error by a rule of its own.
fn leaves_result_open(arms: &[Arm]) -> bool {
    let is_result = |arm: &Arm| {
        matches!(
            arm.pattern.kind,
            PatternKind::ResultOk(_) | PatternKind::ResultError(_)
        )
    };
    arms.iter().any(is_result) && !takes_both_results(arms) && !unguarded(arms).any(is_open)
}

fn takes_both_results(arms: &[Arm]) -> bool {
    unguarded(arms).any(|pattern| matches!(&pattern.kind, PatternKind::ResultOk(inner) if is_open(inner)))
        && unguarded(arms)
            .any(|pattern| matches!(&pattern.kind, PatternKind::ResultError(inner) if is_open(inner)))
}

fn unguarded(arms: &[Arm]) -> impl Iterator<Item = &Pattern> {
    arms.iter()
        .filter(|arm| arm.guard.is_none())
        .map(|arm| &arm.pattern)
}

/// Takes anything.
fn is_open(pattern: &Pattern) -> bool {
    matches!(pattern.kind, PatternKind::Wildcard | PatternKind::Variable(_))
}
