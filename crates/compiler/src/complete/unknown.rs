//! Messages that a receiver is known not to understand.
//!
//! Only receivers whose class is certain are looked at: literals, classes, and what `new` and `spawn` of a class
//! answer. Variables, slots and answers of methods may hold something more special.

use beamtalk_syntax::ast::{Expression, ExpressionKind, Item, Message, Statement};
use beamtalk_syntax::diagnostic::{Category, Diagnostic, Severity};
use beamtalk_syntax::walk;
use ecow::eco_format;

use super::describe::{Classes, Known, Side};
use crate::SourceFile;
use crate::class::is_closed;
use crate::codes;
use crate::resolve::unparenthesized;
use crate::suggest;
use crate::table::{ClassTable, Kind, Origin};

/// Report them for every method of a file.
pub(crate) fn unknown_selectors(file: &SourceFile, table: &ClassTable, diagnostics: &mut Vec<Diagnostic>) {
    if file.origin == Origin::Library {
        return;
    }
    let mut finder = Finder {
        classes: Classes::new(table),
        diagnostics,
    };
    for item in &file.unit.items {
        match item {
            Item::Class(class) => class
                .methods
                .iter()
                .for_each(|method| finder.statements(&method.body)),
            Item::Extension(extension) => finder.statements(&extension.method.body),
            Item::Protocol(_) | Item::TypeAlias(_) | Item::Statement(_) => {}
        }
    }
}

struct Finder<'a, 'b> {
    classes: Classes<'a>,
    diagnostics: &'b mut Vec<Diagnostic>,
}

impl Finder<'_, '_> {
    fn statements(&mut self, body: &[Statement]) {
        for statement in body {
            self.expression(&statement.expression);
        }
    }

    fn expression(&mut self, node: &Expression) {
        match &node.kind {
            ExpressionKind::Send(send) => self.check(&send.receiver, std::slice::from_ref(&send.message)),
            ExpressionKind::Cascade { receiver, messages } => self.check(receiver, messages),
            _ => {}
        }
        walk::inner(node, &mut |inner| self.expression(inner));
    }

    fn check(&mut self, receiver: &Expression, messages: &[Message]) {
        let Some(known) = self.certain(unparenthesized(receiver)) else {
            return;
        };
        if !self.is_fully_known(&known) {
            return;
        }
        for message in messages {
            // Equality is no message; making an instance has checks of its own.
            let is_checked = matches!(
                message.selector.as_str(),
                "==" | "/=" | "=:=" | "=/=" | "new" | "new:" | "spawn" | "spawnWith:"
            );
            if is_checked || self.understands(&known, &message.selector) {
                continue;
            }
            let span = message.parts.first().copied().unwrap_or(message.span);
            let text = eco_format!("{} does not understand '{}'", known.text(), message.selector);
            let mut hint = Diagnostic::new(codes::UNKNOWN_SELECTOR, Severity::Hint, span, text)
                .with_category(Category::Dnu);
            let members = self.classes.members(&known);
            let colons = |selector: &str| selector.matches(':').count();
            let names = members
                .iter()
                .map(|member| member.selector.as_str())
                .filter(|name| colons(name) == colons(&message.selector));
            if let Some(nearest) = suggest::nearest(&message.selector, names) {
                hint = hint.with_hint(eco_format!("Did you mean '{nearest}'?"));
            }
            self.diagnostics.push(hint);
        }
    }

    /// What the receiver is, beyond doubt.
    fn certain(&self, receiver: &Expression) -> Option<Known> {
        let class = match &receiver.kind {
            ExpressionKind::Integer(_) => "Integer",
            ExpressionKind::Float(_) => "Float",
            ExpressionKind::String(_) => "String",
            ExpressionKind::Symbol(_) => "Symbol",
            ExpressionKind::Nil => "UndefinedObject",
            ExpressionKind::True => "True",
            ExpressionKind::False => "False",
            ExpressionKind::List { .. } => "List",
            ExpressionKind::Array(_) => "Array",
            ExpressionKind::Dictionary(_) => "Dictionary",
            ExpressionKind::Block(_) => "Block",
            ExpressionKind::ClassName(class) if class.package.is_none() => {
                let entry = self.classes.table.class(&class.name.text)?;
                return Some(Known::class(entry.name.clone()));
            }
            ExpressionKind::Send(send) => return self.made(&send.receiver, &send.message),
            _ => return None,
        };
        self.classes.table.class(class)?;
        Some(Known::instance(class))
    }

    /// `Orbit new` and `Lamp spawn`, unless the class says what they answer.
    fn made(&self, receiver: &Expression, message: &Message) -> Option<Known> {
        let ExpressionKind::ClassName(class) = &unparenthesized(receiver).kind else {
            return None;
        };
        let table = self.classes.table;
        let name = &class.name.text;
        let is_maker = match table.kind(name) {
            Kind::Value => matches!(message.selector.as_str(), "new" | "new:"),
            Kind::Actor => matches!(message.selector.as_str(), "spawn" | "spawnWith:"),
            Kind::Object => false,
        };
        let (definer, _) = table.find_method(name, true, &message.selector)?;
        let is_own = table.class(name)?.origin != Origin::Library;
        (is_maker && is_own && definer.origin == Origin::Library).then(|| Known::instance(name.clone()))
    }

    /// All its methods stand in texts, and no method of its own answers the rest.
    fn is_fully_known(&self, known: &Known) -> bool {
        let table = self.classes.table;
        let is_open = |class: &str| {
            table
                .find_method(class, known.side == Side::Class, "doesNotUnderstand:args:")
                .is_some_and(|(definer, _)| !matches!(definer.name.as_str(), "Object" | "ProtoObject"))
        };
        let is_written = |class: &str| {
            table
                .chain(class)
                .into_iter()
                .all(|entry| self.classes.declaration(entry).is_some())
        };
        let is_proxy = known.side == Side::Class && known.class == "Erlang";
        is_closed(table, &known.class) && !is_proxy && !is_open(&known.class) && is_written(&known.class)
    }

    fn understands(&self, known: &Known, selector: &str) -> bool {
        let table = self.classes.table;
        let is_class = known.side == Side::Class;
        table.find_method(&known.class, is_class, selector).is_some()
            || (is_class && table.find_method("Class", false, selector).is_some())
            || self.classes.member(known, selector).is_some()
    }
}
