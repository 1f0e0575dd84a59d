//! What instances are made with, and what crosses to another process.

use beamtalk_syntax::ast::{Expression, ExpressionKind, Message};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;
use ecow::{EcoString, eco_format};

use super::values::graded;
use crate::check::makes_itself;
use crate::codes;
use crate::resolve::unparenthesized;
use crate::table::Kind;
use crate::types::form::{Form, Type};
use crate::types::infer::Infer;
use crate::types::infer::block::literal;
use crate::types::infer::flow::Place;

/// Values in values are looked into this deep.
const MAX_DEPTH: usize = 4;

impl Infer<'_, '_> {
    /// Values for the slots in a literal map for `new:` or `spawnWith:`.
    pub(in crate::types) fn check_maker(&mut self, receiver: &Expression, of: &Type, message: &Message) {
        let Form::ClassOf(class) = of.form() else { return };
        if !matches!(message.selector.as_str(), "new:" | "spawnWith:" | "spawnWith:as:") || !self.is_told() {
            return;
        }
        let table = self.world.table;
        let is_made = table.kind(class) != Kind::Object
            && table
                .class(class)
                .is_some_and(|entry| !makes_itself(table, entry));
        let Some(argument) = message.arguments.first().map(unparenthesized).filter(|_| is_made) else {
            return;
        };
        let ExpressionKind::Dictionary(pairs) = &argument.kind else {
            return;
        };
        // Where the class itself is written the key is looked at without types.
        let is_written = matches!(unparenthesized(receiver).kind, ExpressionKind::ClassName(_));
        let values = self.maps.get(&argument.span).cloned().unwrap_or_default();
        for ((key, value), given) in pairs.iter().zip(values) {
            let ExpressionKind::Symbol(name) = &key.kind else {
                continue;
            };
            if let Some(declared) = self.world.slot_type(class, &[], false, name) {
                self.check_slot(name, value, &given, &declared);
            } else if !is_written && self.is_no_slot(class, name) {
                let text = eco_format!("Unknown field '{name}' for {class}");
                let found = Diagnostic::warning(codes::UNKNOWN_FIELD_KEY, key.span, text);
                let found = self.explained(found.with_category(Category::Type), receiver, of);
                self.tell(found);
            }
        }
    }

    /// Neither a class nor one below it has such a slot.
    fn is_no_slot(&self, class: &str, name: &str) -> bool {
        let table = self.world.table;
        let is_open = table
            .class(class)
            .is_none_or(|entry| entry.modifiers.is_abstract || entry.native.is_some());
        let has = |class: &str| {
            !crate::class::is_closed(table, class)
                || table.all_slots(class).iter().any(|slot| slot.name == name)
        };
        !is_open && !has(class) && !self.world.descendants(class).iter().any(|below| has(below))
    }

    /// Handles that work in their own process only.
    pub(in crate::types) fn check_sendable(
        &mut self,
        receiver: &Expression,
        of: &Type,
        message: &Message,
        arguments: &[Type],
    ) {
        if !self.is_told() || matches!(unparenthesized(receiver).kind, ExpressionKind::SelfReference) {
            return;
        }
        match of.form() {
            Form::Class { name, .. } if self.world.table.kind(name) == Kind::Actor => {
                for (argument, given) in message.arguments.iter().zip(arguments) {
                    self.check_crossing(argument.span, given);
                    self.check_captured(argument);
                }
            }
            // Whoever announces runs the block, in a process of the announcer's.
            Form::Class { name, .. }
                if self.world.table.inherits_from(name, "Announcer")
                    && message.selector.starts_with("when:") =>
            {
                for argument in &message.arguments {
                    self.check_captured(argument);
                }
            }
            Form::ClassOf(name)
                if self.world.table.kind(name) == Kind::Actor
                    && matches!(message.selector.as_str(), "spawnWith:" | "spawnWith:as:") =>
            {
                let Some(argument) = message.arguments.first().map(unparenthesized) else {
                    return;
                };
                let ExpressionKind::Dictionary(pairs) = &argument.kind else {
                    return;
                };
                let values = self.maps.get(&argument.span).cloned().unwrap_or_default();
                for ((_, value), given) in pairs.iter().zip(values) {
                    self.check_crossing(value.span, &given);
                }
            }
            Form::ClassOf(name)
                if name == "Timer" && matches!(message.selector.as_str(), "after:do:" | "every:do:") =>
            {
                for argument in &message.arguments {
                    self.check_captured(argument);
                }
            }
            _ => {}
        }
    }

    /// The variables that a block takes along.
    fn check_captured(&mut self, argument: &Expression) {
        let Some(block) = literal(argument) else { return };
        let mut found: Vec<(Span, Type)> = Vec::new();
        for statement in &block.body {
            walk::all(&statement.expression, &mut |node| {
                if let ExpressionKind::Variable(_) = &node.kind
                    && let Some(place @ Place::Local(_)) = self.place(node)
                    && let Some(held) = self.held(&place)
                    && found.iter().all(|(_, of)| *of != held.of)
                {
                    found.push((node.span, held.of));
                }
            });
        }
        for (span, of) in found {
            self.check_crossing(span, &of);
        }
    }

    fn check_crossing(&mut self, span: Span, of: &Type) {
        let mut members = of.members().iter();
        let Some((bound, handle)) =
            members.find_map(|member| Some((member, self.bound_to_process(member, MAX_DEPTH)?)))
        else {
            return;
        };
        let is_certain = self.bound_to_process(of, MAX_DEPTH).is_some();
        let text = if bound.is_class(&handle) {
            eco_format!("`{bound}` works in the process that made it only, and this takes it to another")
        } else {
            eco_format!("`{bound}` holds a `{handle}`, which works in the process that made it only")
        };
        let mut found = graded(codes::NOT_SENDABLE, is_certain, span, text)
            .with_category(Category::Sendability)
            .with_witness(eco_format!("{bound}"));
        if !is_certain {
            found = found.with_hint(eco_format!("This is `{of}`."));
        }
        self.tell(found);
    }

    /// The handle that every value of a type is or holds.
    fn bound_to_process(&self, of: &Type, depth: usize) -> Option<EcoString> {
        let depth = depth.checked_sub(1)?;
        let members = of.members();
        let mut handles = members.iter().map(|member| self.handle_in(member, depth));
        let first = handles.next()??;
        handles.all(|handle| handle.is_some()).then_some(first)
    }

    fn handle_in(&self, of: &Type, depth: usize) -> Option<EcoString> {
        let parts = match of.form() {
            Form::Tuple(parts) => parts,
            Form::Class { name, arguments, .. } => {
                let chain = self.world.table.chain(name);
                let scope = chain.iter().find_map(|entry| {
                    let (_, class) = entry.declaration()?;
                    class
                        .handle_scope
                        .as_ref()
                        .map(|scope| (scope.text == "process", entry.name.clone()))
                });
                if let Some((is_process, _)) = scope {
                    return is_process.then(|| name.clone());
                }
                if self.world.table.kind(name) == Kind::Value && arguments.is_empty() {
                    let slots = self.world.table.all_slots(name);
                    return slots.iter().find_map(|slot| {
                        let of = self.world.slot_type(name, &[], false, &slot.name)?;
                        self.bound_to_process(&of, depth)
                    });
                }
                arguments
            }
            _ => return None,
        };
        parts.iter().find_map(|part| self.bound_to_process(part, depth))
    }
}
