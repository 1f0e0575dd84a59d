//! Messages that a receiver must not get: casts to values, and methods that another package keeps to itself.

use beamtalk_syntax::ast::{Expression, Message};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use ecow::eco_format;

use crate::codes;
use crate::table::Kind;
use crate::types::form::{Form, Type};
use crate::types::infer::Infer;
use crate::types::infer::flow::Note;
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

    /// `value` of a Result that a test found to be an error, and the reason of a success.
    pub(in crate::types) fn check_side(&mut self, receiver: &Expression, of: &Type, message: &Message) {
        let (is_value, wrong, is) = match message.selector.as_str() {
            "value" | "unwrap" => (true, Note::IsError, "an error"),
            "error" => (false, Note::IsOk, "a success"),
            _ => return,
        };
        let Some(place) = self.place(receiver).filter(|_| of.is_class("Result")) else {
            return;
        };
        let is_wrong = self
            .held(&place)
            .is_some_and(|held| held.notes.last() == Some(&wrong));
        if !is_wrong || !self.is_told() {
            return;
        }
        let selector = &message.selector;
        let text = eco_format!("'{selector}' always raises here: this Result is {is}");
        let hint = if is_value {
            "On this side of the test `error` is what there is."
        } else {
            "On this side of the test `value` is what there is."
        };
        let found = Diagnostic::warning(codes::WRONG_SIDE, message.span, text)
            .with_category(Category::Type)
            .with_hint(hint);
        self.tell(self.explained(found, receiver, of));
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
