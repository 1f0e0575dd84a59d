//! Code that works but is rarely meant.

use beamtalk_syntax::ast::{self, ExpressionKind, Target, TypeKind};
use beamtalk_syntax::diagnostic::Diagnostic;
use beamtalk_syntax::walk::{self, Part};
use ecow::eco_format;

use super::Checker;
use crate::class::setter_selector;
use crate::codes;
use crate::resolve::unparenthesized;
use crate::table::Kind;

/// Messages about an actor that do not go through its mailbox.
const ANSWERED_AT_ONCE: &[&str] = &[
    "pid",
    "isAlive",
    "class",
    "registeredName",
    "isRegistered",
    "yourself",
    "isNil",
    "notNil",
];

impl Checker<'_> {
    pub(super) fn habits(&mut self, class: &ast::Class, method: &ast::Method) {
        if self.is_library() || method.is_class {
            return;
        }
        let name = &class.name.text;
        match self.table.kind(name) {
            Kind::Value => {
                if !self.table.inherits_from(name, "TestCase") {
                    self.nil_result(method);
                }
            }
            Kind::Actor => {
                for statement in &method.body {
                    self.direct_assignments(class, method, &statement.expression);
                    self.timer_blocks(&statement.expression);
                }
            }
            Kind::Object => {}
        }
    }

    /// A value cannot change, so a method of it that answers nothing does nothing to it.
    fn nil_result(&mut self, method: &ast::Method) {
        let is_nil = method.result.as_ref().is_some_and(|result| match &result.kind {
            TypeKind::Nil => true,
            TypeKind::Named { class, .. } => matches!(class.name.text.as_str(), "Nil" | "UndefinedObject"),
            _ => false,
        });
        if is_nil {
            let message = eco_format!("method `{}` returns Nil on a Value type", method.head.selector);
            self.diagnostics.push(
                Diagnostic::warning(codes::NIL_ON_VALUE, method.head.span, message)
                    .with_hint("A method that is there for its effect belongs to an Object class."),
            );
        }
    }

    /// An actor that defines `withF:` has a reason to go through it.
    fn direct_assignments(&mut self, class: &ast::Class, method: &ast::Method, node: &ast::Expression) {
        if let ExpressionKind::Assign {
            target: Target::Field(field),
            ..
        } = &node.kind
        {
            let setter = setter_selector(&field.text);
            let is_defined = class
                .methods
                .iter()
                .any(|other| !other.is_class && other.head.selector == setter);
            if is_defined && method.head.selector != setter {
                let message = eco_format!(
                    "Direct slot assignment `self.{} :=` bypasses the `{setter}` method",
                    field.text
                );
                self.diagnostics
                    .push(Diagnostic::warning(codes::DIRECT_ASSIGNMENT, node.span, message));
            }
        }
        walk::inner(node, &mut |inner| self.direct_assignments(class, method, inner));
    }

    /// The block of a timer runs in a process of its own; a synchronous send to the actor makes it wait.
    fn timer_blocks(&mut self, node: &ast::Expression) {
        if let ExpressionKind::Send(send) = &node.kind
            && let ExpressionKind::ClassName(class) = &send.receiver.kind
            && class.name.text == "Timer"
            && matches!(send.message.selector.as_str(), "every:do:" | "after:do:")
            && let Some(ExpressionKind::Block(block)) = send.message.arguments.last().map(|last| &last.kind)
        {
            block
                .body
                .iter()
                .for_each(|statement| self.waiting_sends(statement));
        }
        walk::inner(node, &mut |inner| self.timer_blocks(inner));
    }

    fn waiting_sends(&mut self, statement: &ast::Statement) {
        if !statement.is_cast {
            self.waiting_send(&statement.expression);
        }
    }

    fn waiting_send(&mut self, node: &ast::Expression) {
        let (receiver, messages) = match &node.kind {
            ExpressionKind::Send(send) => (Some(&*send.receiver), std::slice::from_ref(&send.message)),
            ExpressionKind::Cascade { receiver, messages } => (Some(&**receiver), messages.as_slice()),
            _ => (None, [].as_slice()),
        };
        let is_self = receiver
            .is_some_and(|receiver| matches!(unparenthesized(receiver).kind, ExpressionKind::SelfReference));
        let waiting = messages.iter().map(|message| &message.selector);
        for selector in waiting.filter(|selector| is_self && !ANSWERED_AT_ONCE.contains(&selector.as_str())) {
            let message = eco_format!(
                "synchronous send of `{selector}` to self inside a timer block; use 'self {selector}!' instead"
            );
            self.diagnostics.push(
                Diagnostic::warning(codes::TIMER_SELF_SEND, node.span, message)
                    .with_hint("The actor may be waiting for this very block (sync-send-in-timer-block)."),
            );
        }
        walk::parts(node, &mut |part| match part {
            Part::Expression(inner) => self.waiting_send(inner),
            Part::Statements(body) => body.iter().for_each(|statement| self.waiting_sends(statement)),
            _ => {}
        });
    }
}
