//! Where the type of an expression comes from, as a note to a finding.

use beamtalk_syntax::ast::{Expression, ExpressionKind};
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::span::Span;
use ecow::{EcoString, eco_format};

use crate::resolve::unparenthesized;
use crate::types::form::Type;
use crate::types::infer::Infer;
use crate::types::infer::flow::{Origin, Place};

impl Infer<'_, '_> {
    /// The diagnostic with a note on the origin of an expression's type.
    pub(super) fn explained(&self, diagnostic: Diagnostic, node: &Expression, of: &Type) -> Diagnostic {
        match self.origin(node, of) {
            Some((span, text)) => diagnostic.with_note(span, text),
            None => diagnostic,
        }
    }

    fn origin(&self, node: &Expression, of: &Type) -> Option<(Span, EcoString)> {
        let node = unparenthesized(node);
        match &node.kind {
            ExpressionKind::Variable(name) => self.held_origin(&self.place(node)?, name, of),
            ExpressionKind::Field(name) => {
                let text = eco_format!("self.{}", name.text);
                self.held_origin(&self.place(node)?, &text, of)
                    .or_else(|| Some((node.span, eco_format!("`{text}` is declared as `{of}`"))))
            }
            ExpressionKind::Send(send) => {
                let span = send.message.parts.first().copied().unwrap_or(send.message.span);
                Some((
                    span,
                    eco_format!("`{}` answers `{of}` here", send.message.selector),
                ))
            }
            ExpressionKind::Cascade { messages, .. } => {
                let last = messages.last()?;
                Some((last.span, eco_format!("`{}` answers `{of}` here", last.selector)))
            }
            _ => None,
        }
    }

    fn held_origin(&self, place: &Place, name: &str, of: &Type) -> Option<(Span, EcoString)> {
        let held = self.held(place)?;
        let (span, how) = match held.origin {
            Origin::Answered(span, selector) => {
                let answerer = self.answerer(span, &selector);
                return Some((
                    span,
                    eco_format!("`{name}` is `{of}`: {answerer} answers it here"),
                ));
            }
            Origin::Declared(span) => (span, "declared"),
            Origin::Assigned(span) => (span, "assigned"),
            Origin::Tested(span) => (span, "tested"),
            Origin::Given(span) => (span, "handed to the block"),
            Origin::Unknown => return None,
        };
        Some((span, eco_format!("`{name}` is `{of}`: {how} here")))
    }

    /// `Dictionary >> at:`, when one method is meant.
    fn answerer(&self, part: Span, selector: &str) -> EcoString {
        let targets = self.out.targets.iter().rev().find(|(span, _)| *span == part);
        match targets.map(|(_, methods)| methods.as_slice()) {
            Some([method]) => {
                let side = if method.is_class_side { " class" } else { "" };
                eco_format!("`{}{side} >> {selector}`", method.class)
            }
            _ => eco_format!("`{selector}`"),
        }
    }
}
