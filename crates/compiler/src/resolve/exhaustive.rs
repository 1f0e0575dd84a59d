//! A match on Result must take both cases (language reference 7.3); unions are looked at with their types.

use beamtalk_syntax::ast::{self, PatternKind};
use beamtalk_syntax::span::Span;
use ecow::eco_format;

use super::Resolver;
use crate::codes;

impl Resolver<'_> {
    /// A match on Result cases must have both, or an arm for all the rest.
    pub(super) fn check_result_arms(&mut self, arms: &[ast::Arm], span: Span) {
        let unguarded = || {
            arms.iter()
                .filter(|arm| arm.guard.is_none())
                .map(|arm| &arm.pattern.kind)
        };
        let is_result =
            |kind: &ast::PatternKind| matches!(kind, PatternKind::ResultOk(_) | PatternKind::ResultError(_));
        let mentions_result = arms.iter().any(|arm| is_result(&arm.pattern.kind));
        let has_catch_all =
            unguarded().any(|kind| matches!(kind, PatternKind::Wildcard | PatternKind::Variable(_)));
        if !mentions_result || has_catch_all {
            return;
        }
        let covers_all =
            |inner: &ast::Pattern| matches!(inner.kind, PatternKind::Wildcard | PatternKind::Variable(_));
        let has_ok =
            unguarded().any(|kind| matches!(kind, PatternKind::ResultOk(inner) if covers_all(inner)));
        let has_error =
            unguarded().any(|kind| matches!(kind, PatternKind::ResultError(inner) if covers_all(inner)));
        let missing = match (has_ok, has_error) {
            (true, true) => return,
            (true, false) => "error:",
            (false, true) => "ok:",
            (false, false) => "ok:, error:",
        };
        self.error(
            codes::NON_EXHAUSTIVE,
            span,
            eco_format!("Non-exhaustive match: on sealed type `Result` — missing arm: {missing}"),
        );
    }
}
