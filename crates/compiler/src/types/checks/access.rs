//! Messages that a receiver must not get: casts to values, and methods that another package keeps to itself.

use beamtalk_syntax::ast::Message;
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use ecow::eco_format;

use crate::codes;
use crate::table::Kind;
use crate::types::form::{Form, Type};
use crate::types::infer::Infer;
use crate::types::infer::send::Candidate;

/// Classes without data that are as little an actor as a Value is.
const PLAIN: &[&str] = &["Symbol", "True", "False", "UndefinedObject", "Block", "Character"];

impl<'a> Infer<'_, 'a> {
    /// `receiver message!` needs somebody with a mailbox.
    pub(in crate::types) fn check_cast(&mut self, of: &Type, message: &Message) {
        if of.is_dynamic() || of.is_never() {
            return;
        }
        let is_plain = |member: &Type| {
            let name = member
                .class_name()
                .filter(|_| !matches!(member.form(), Form::Intersection(_)));
            name.is_some_and(|name| self.world.table.kind(name) == Kind::Value || PLAIN.contains(&name))
        };
        if !of.members().iter().all(is_plain) {
            return;
        }
        let named = of.members().iter().find(|member| !member.is_nil()).unwrap_or(of);
        let name = named.class_name().unwrap_or("Nil");
        let text = eco_format!("Cannot use ! (cast) on value type `{name}`. Value types are not actors.");
        self.tell(
            Diagnostic::error(codes::CAST_ON_VALUE, message.span, text)
                .with_hint("Drop the ! to send the message."),
        );
    }

    /// Methods that their package keeps to itself.
    pub(in crate::types) fn check_internal(&mut self, candidates: &[Candidate<'a>], message: &Message) {
        let Some(package) = self.world.package.clone() else {
            return;
        };
        let kept = candidates.iter().find_map(|candidate| candidate.found.kept_by());
        if let Some(keeper) = kept.filter(|keeper| **keeper != package) {
            let text = eco_format!(
                "Method '{}' is internal to package '{keeper}' and cannot be called from '{package}'",
                message.selector
            );
            let span = message.parts.first().copied().unwrap_or(message.span);
            self.tell(
                Diagnostic::error(codes::INTERNAL_METHOD, span, text).with_category(Category::Visibility),
            );
        }
    }
}
