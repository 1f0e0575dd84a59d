//! Messages that nobody understands, and arguments that do not fit.

use beamtalk_syntax::ast::{Expression, ExpressionKind, Message};
use beamtalk_syntax::diagnostic::{Category, Diagnostic, Severity};
use ecow::{EcoString, eco_format};

use crate::codes;
use crate::resolve::unparenthesized;
use crate::suggest;
use crate::table::{Kind, Origin};
use crate::types::form::{Form, Type};
use crate::types::infer::Infer;
use crate::types::infer::block::literal;
use crate::types::infer::send::{Candidate, Reached};
use crate::types::relate::witness;

impl<'a> Infer<'_, 'a> {
    /// A message that a member has no method for, and yet nothing is wrong.
    pub(in crate::types) fn is_allowed(&self, receiver: &Expression, member: &Type, selector: &str) -> bool {
        // Making an instance has checks of its own, and what does not exist yet is looked for by name.
        if matches!(
            selector,
            "new" | "new:" | "spawn" | "spawnWith:" | "spawnAs:" | "spawnWith:as:"
        ) {
            return true;
        }
        let world = self.world;
        let (class, is_class): (EcoString, bool) = match member.form() {
            Form::ClassOf(name) => (name.clone(), true),
            _ => match member.class_name() {
                Some(name) => (name.into(), false),
                None => return true,
            },
        };
        // Compared natively (language reference 3.4).
        if matches!(selector, "<" | ">" | "<=" | ">=") {
            let is_library = world.table.is_library_class(&class);
            if is_class || is_library || world.table.kind(&class) == Kind::Object {
                return true;
            }
        }
        if self.was_asked(receiver, selector) {
            return true;
        }
        // Anything may be there.
        if !is_class && matches!(class.as_str(), "Object" | "ProtoObject" | "Actor" | "Value") {
            return true;
        }
        let entry = world.table.class(&class);
        let is_abstract = entry.is_some_and(|entry| entry.modifiers.is_abstract);
        let is_sealed = entry.is_some_and(|entry| entry.modifiers.is_sealed);
        let is_self = matches!(unparenthesized(receiver).kind, ExpressionKind::SelfReference);
        if is_abstract && !is_sealed && (is_self || is_class) {
            return true;
        }
        // Somebody below may be meant.
        world
            .descendants(&class)
            .iter()
            .any(|below| world.find(below, is_class, selector).is_some() || !world.is_known(below, is_class))
    }

    /// Only whether the message is understood; for control flow, whose blocks are looked at elsewhere.
    pub(in crate::types) fn check_understood(&mut self, receiver: &Expression, of: &Type, message: &Message) {
        let mut failing = Vec::new();
        for member in of.members() {
            if matches!(self.reach(member, &message.selector, false), Reached::Nothing)
                && !self.is_allowed(receiver, member, &message.selector)
            {
                failing.push(member.clone());
            }
        }
        if !failing.is_empty() {
            self.tell_unknown(receiver, of, &failing, message, false);
        }
    }

    pub(in crate::types) fn tell_unknown(
        &mut self,
        receiver: &Expression,
        of: &Type,
        failing: &[Type],
        message: &Message,
        is_super: bool,
    ) {
        let Some(first) = failing.first().filter(|_| self.is_told()) else {
            return;
        };
        let selector = &message.selector;
        let span = message.parts.first().copied().unwrap_or(message.span);
        let count = of.members().len();
        let is_union = count > 1;
        let mut diagnostic = if is_union && failing.len() == count {
            let text = eco_format!("{of} does not understand '{selector}'");
            Diagnostic::warning(codes::UNKNOWN_TO_ALL, span, text)
        } else {
            // The class, whatever is known of its elements.
            let name = match first.class_name() {
                Some(name) if !is_super && name != "UndefinedObject" => EcoString::from(name),
                _ => shown(first, is_super),
            };
            let text = eco_format!("{name} does not understand '{selector}'");
            Diagnostic::new(codes::UNKNOWN_SELECTOR, Severity::Hint, span, text)
        }
        .with_category(Category::Dnu)
        .with_witness(witness(failing));
        if is_union && failing.len() < count {
            diagnostic = diagnostic.with_hint(eco_format!("The receiver is `{of}`."));
        }
        if let Some(nearest) = self.nearest(first, selector) {
            diagnostic = diagnostic.with_hint(eco_format!("Did you mean '{nearest}'?"));
        }
        let diagnostic = self.explained(diagnostic, receiver, of);
        self.tell(diagnostic);
    }

    fn nearest(&self, member: &Type, selector: &str) -> Option<EcoString> {
        let (class, is_class) = match member.form() {
            Form::ClassOf(name) => (name.as_str(), true),
            _ => (member.class_name()?, false),
        };
        let names = self.world.selectors(class, is_class);
        let colons = |selector: &str| selector.matches(':').count();
        let names = names
            .iter()
            .map(EcoString::as_str)
            .filter(|name| colons(name) == colons(selector));
        suggest::nearest(selector, names).map(EcoString::from)
    }

    /// Arguments against what all methods that may be reached ask for.
    pub(in crate::types) fn check_arguments(
        &mut self,
        candidates: &[Candidate<'a>],
        message: &Message,
        arguments: &[Type],
        is_open: bool,
    ) {
        if !self.is_told() || candidates.is_empty() || is_open {
            return;
        }
        let selector = message.selector.as_str();
        if takes_anything(selector) && Self::is_of_library(candidates) {
            let most = usize::from(selector.contains("ifNotNil:"));
            for argument in &message.arguments {
                self.check_block_size(argument, most);
            }
            return;
        }
        for (index, (argument, of)) in message.arguments.iter().zip(arguments).enumerate() {
            // What fits one of the methods may be right.
            let mut clashes = candidates.iter().filter_map(|candidate| {
                let wanted = candidate.promised(index)?;
                let clash = self.world.fit(of, &wanted).clash(of)?;
                Some((wanted, candidate, clash))
            });
            let Some((wanted, candidate, mut clash)) = clashes.next() else {
                continue;
            };
            let others: Vec<bool> = clashes.map(|(_, _, clash)| clash.is_certain).collect();
            if others.len() + 1 < candidates.len() {
                continue;
            }
            clash.is_certain &= others.iter().all(|is_certain| *is_certain);
            let text = match (wanted.form(), clash.hint.as_ref()) {
                (Form::Protocol(protocol), Some(_)) if clash.is_certain => {
                    eco_format!("{of} does not conform to protocol {protocol}")
                }
                _ => eco_format!(
                    "Argument {} of '{selector}' on {} expects {wanted}, got {of}",
                    index + 1,
                    shown(&candidate.member, false)
                ),
            };
            let diagnostic = clash.told(codes::WRONG_ARGUMENT, argument.span, text);
            let diagnostic = self.explained(diagnostic, argument, of);
            self.tell(diagnostic);
        }
    }

    fn is_of_library(candidates: &[Candidate<'a>]) -> bool {
        candidates
            .iter()
            .all(|candidate| candidate.found.owner.origin == Origin::Library)
    }

    /// A literal block that is evaluated with no more than so many arguments.
    pub(in crate::types) fn check_block_size(&mut self, argument: &Expression, most: usize) {
        let Some(block) = literal(argument) else { return };
        let count = block.parameters.len();
        if count > most {
            let text =
                eco_format!("Wrong number of arguments: block expects {count} but is called with {most}");
            let found = Diagnostic::warning(codes::WRONG_BLOCK_CALL, argument.span, text);
            self.tell(found.with_category(Category::Type));
        }
    }

    /// A block literal, or a variable that holds one, is evaluated with another number of arguments, or with ones that
    /// its parameters cannot take.
    pub(in crate::types) fn check_block_call(
        &mut self,
        receiver: &Expression,
        of: &Type,
        message: &Message,
        parameters: &[Type],
        given: &[Type],
    ) {
        if !self.is_told() {
            return;
        }
        let count = parameters.len();
        if count == given.len() {
            // Who writes block and arguments together sees both.
            if matches!(unparenthesized(receiver).kind, ExpressionKind::Block(_)) {
                return;
            }
            let pairs = parameters.iter().zip(message.arguments.iter().zip(given));
            for (index, (wanted, (argument, given))) in pairs.enumerate() {
                let Some(clash) = self.world.fit(given, wanted).clash(given) else {
                    continue;
                };
                let selector = &message.selector;
                let text = eco_format!(
                    "Argument {} of '{selector}' on {of} expects {wanted}, got {given}",
                    index + 1
                );
                let diagnostic = clash.told(codes::WRONG_ARGUMENT, argument.span, text);
                let diagnostic = self.explained(diagnostic, argument, given);
                self.tell(diagnostic);
            }
            return;
        }
        let text = eco_format!(
            "Wrong number of arguments: block expects {count} but is called with {}",
            given.len()
        );
        let span = message.parts.first().copied().unwrap_or(message.span);
        let diagnostic =
            Diagnostic::warning(codes::WRONG_BLOCK_CALL, span, text).with_category(Category::Type);
        let diagnostic = self.explained(diagnostic, receiver, &Type::class("Block"));
        self.tell(diagnostic);
    }

    /// A symbol that the other side can never be.
    pub(in crate::types) fn check_comparison(
        &mut self,
        receiver: &Expression,
        of: &Type,
        message: &Message,
        arguments: &[Type],
    ) {
        let (Some(other), Some(argument)) = (arguments.first(), message.arguments.first()) else {
            return;
        };
        let is_single = |of: &Type| matches!(of.form(), Form::Symbol(_));
        let sides = [(receiver, of, other), (argument, other, of)];
        for (node, of, single) in sides {
            // Who compares a literal knows what it is.
            let is_literal = !matches!(
                unparenthesized(node).kind,
                ExpressionKind::Variable(_)
                    | ExpressionKind::Field(_)
                    | ExpressionKind::Send(_)
                    | ExpressionKind::Cascade { .. }
            );
            if !is_single(single) || is_literal || of.is_never() || of.is_dynamic() || !self.is_told() {
                continue;
            }
            let is_same = of == single;
            if !is_same && !self.world.are_disjoint(of, single) {
                continue;
            }
            let is_equality = matches!(message.selector.as_str(), "==" | "=:=");
            let always = is_same == is_equality;
            let text = eco_format!("`{of}` compared with `{single}` is always `{always}`");
            let diagnostic = Diagnostic::new(codes::CONSTANT_COMPARISON, Severity::Hint, message.span, text)
                .with_category(Category::Type);
            let diagnostic = self.explained(diagnostic, node, of);
            self.tell(diagnostic);
            return;
        }
    }
}

/// Anything can be compared with anything, and what a condition does not evaluate may be anything.
fn takes_anything(selector: &str) -> bool {
    let is_comparison = matches!(selector, "<" | ">" | "<=" | ">=");
    let is_condition = matches!(
        selector,
        "and:"
            | "or:"
            | "ifTrue:"
            | "ifFalse:"
            | "ifTrue:ifFalse:"
            | "ifFalse:ifTrue:"
            | "ifNil:"
            | "ifNotNil:"
            | "ifNil:ifNotNil:"
            | "ifNotNil:ifNil:"
    );
    is_comparison || is_condition
}

fn shown(member: &Type, is_super: bool) -> EcoString {
    match member.form() {
        Form::Class { name, .. } if is_super => eco_format!("The superclass of {name}"),
        Form::Class { name, .. } if name == "UndefinedObject" => "Nil".into(),
        _ => eco_format!("{member}"),
    }
}
