//! `new` and `spawn` on classes that cannot be made that way, and unknown slots given to them.

use beamtalk_syntax::ast::{self, ExpressionKind};
use beamtalk_syntax::diagnostic::{Category, Diagnostic, Severity};
use beamtalk_syntax::walk;
use ecow::{EcoString, eco_format};

use super::Checker;
use crate::codes;
use crate::suggest;
use crate::table::{ClassEntry, ClassTable, Kind, Origin};

/// Warnings of sessions that are errors in files.
pub(crate) const ERRORS_IN_FILES: &[&str] = &[
    codes::ACTOR_NEW,
    codes::ABSTRACT_NEW,
    codes::NATIVE_NEW,
    codes::OBJECT_NEW,
];

impl Checker<'_> {
    /// Check every send inside an expression.
    pub(super) fn sends(&mut self, expression: &ast::Expression) {
        self.improper_list(expression);
        if let ExpressionKind::Send(send) = &expression.kind
            && let ExpressionKind::ClassName(class) = &send.receiver.kind
        {
            self.class_send(class, &send.message);
        }
        if let ExpressionKind::Cascade { receiver, messages } = &expression.kind
            && let ExpressionKind::ClassName(class) = &receiver.kind
        {
            messages
                .iter()
                .for_each(|message| self.class_send(class, message));
        }
        walk::inner(expression, &mut |inner| self.sends(inner));
    }

    fn class_send(&mut self, class: &ast::ClassRef, message: &ast::Message) {
        let table = self.table;
        let Some(entry) = table.class(&class.name.text) else {
            return;
        };
        match message.selector.as_str() {
            "new" | "new:" => self.new_send(entry, class, message),
            "spawn" | "spawnWith:" | "spawnAs:" | "spawnWith:as:" if entry.modifiers.is_abstract => {
                self.report(codes::ABSTRACT_NEW, Category::Type, class, abstract_text(entry));
            }
            _ => {}
        }
        if matches!(message.selector.as_str(), "new:" | "spawnWith:" | "spawnWith:as:")
            && let Some(argument) = message.arguments.first()
        {
            self.slot_keys(entry, argument);
        }
    }

    fn new_send(&mut self, entry: &ClassEntry, class: &ast::ClassRef, message: &ast::Message) {
        let name = &entry.name;
        let selector = &message.selector;
        let definer = self
            .table
            .find_method(name, true, selector)
            .map(|(definer, _)| definer.name.clone());
        let extended = self
            .table
            .chain(name)
            .iter()
            .any(|class| !self.table.extensions(&class.name, true, selector).is_empty());
        let is_own = extended
            || definer
                .as_deref()
                .is_some_and(|definer| !matches!(definer, "Value" | "Actor"));
        if is_own || !crate::class::is_closed(self.table, name) {
            return;
        }
        if self.table.kind(name) == Kind::Actor {
            let text = eco_format!("Actor subclass `{name}` must use `spawn` instead of `new`");
            self.report(codes::ACTOR_NEW, Category::ActorNew, class, text);
        } else if entry.modifiers.is_abstract {
            self.report(codes::ABSTRACT_NEW, Category::Type, class, abstract_text(entry));
        } else if entry.native.is_some() && self.table.all_slots(name).is_empty() {
            let constructors: Vec<EcoString> = {
                let mut names: Vec<EcoString> = entry.class_methods.keys().cloned().collect();
                names.sort();
                names
            };
            let text = eco_format!(
                "Native class `{name}` cannot be instantiated with `{selector}`; its class methods: {}",
                constructors.join(", ")
            );
            self.report(codes::NATIVE_NEW, Category::Type, class, text);
        } else if definer.is_none() {
            let text = eco_format!("Object-kind class `{name}` cannot be instantiated with `{selector}`");
            self.report(codes::OBJECT_NEW, Category::Type, class, text);
        }
    }

    /// An error in package files, a warning in scripts and sessions.
    fn report(&mut self, code: &'static str, category: Category, class: &ast::ClassRef, text: EcoString) {
        let severity = if self.file.origin == Origin::Session {
            Severity::Warning
        } else {
            Severity::Error
        };
        self.diagnostics
            .push(Diagnostic::new(code, severity, class.span, text).with_category(category));
    }

    fn slot_keys(&mut self, entry: &ClassEntry, argument: &ast::Expression) {
        let ExpressionKind::Dictionary(pairs) = &argument.kind else {
            return;
        };
        if entry.native.is_some() || !crate::class::is_closed(self.table, &entry.name) {
            return;
        }
        if self.table.kind(&entry.name) == Kind::Object || makes_itself(self.table, entry) {
            return;
        }
        let slots = self.table.all_slots(&entry.name);
        for (key, _) in pairs {
            let ExpressionKind::Symbol(name) = &key.kind else {
                continue;
            };
            if slots.iter().any(|slot| slot.name == *name) {
                continue;
            }
            let mut diagnostic = Diagnostic::warning(
                codes::UNKNOWN_FIELD_KEY,
                key.span,
                eco_format!("Unknown field '{name}' for {}", entry.name),
            )
            .with_category(Category::Type);
            if let Some(nearest) = suggest::nearest(name, slots.iter().map(|slot| slot.name.as_str())) {
                diagnostic = diagnostic.with_hint(eco_format!("Did you mean `#{nearest}`?"));
            }
            self.diagnostics.push(diagnostic);
        }
    }
}

/// A class of the library that has a `new:` of its own, with whatever keys.
pub(crate) fn makes_itself(table: &ClassTable, entry: &ClassEntry) -> bool {
    let definer = table.find_method(&entry.name, true, "new:");
    entry.origin == Origin::Library && definer.is_none_or(|(definer, _)| definer.name != "Value")
}

fn abstract_text(entry: &ClassEntry) -> EcoString {
    eco_format!(
        "Cannot instantiate abstract class `{}`. Subclass it first.",
        entry.name
    )
}
