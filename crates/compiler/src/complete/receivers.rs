//! Messages that a receiver of known class does not take: casts to values, and methods that another package keeps to
//! itself.
//!
//! Known are literals, classes, `self`, what annotations say, and variables that are assigned once.

use beamtalk_syntax::ast::{self, Expression, ExpressionKind, Item, Message, Parameter, Statement, Target};
use beamtalk_syntax::diagnostic::{Category, Diagnostic};
use beamtalk_syntax::walk::{self, Part};
use ecow::{EcoString, eco_format};
use rustc_hash::{FxHashMap, FxHashSet};

use super::cursor::Scope;
use super::describe::{Classes, Known, Side};
use crate::SourceFile;
use crate::codes;
use crate::resolve::unparenthesized;
use crate::table::{ClassTable, Kind, Origin};

/// Classes without data that are as little an actor as a Value is.
const PLAIN: &[&str] = &["Symbol", "True", "False", "UndefinedObject", "Block", "Character"];

/// Report them for everything in a file.
pub(crate) fn known_receivers(file: &SourceFile, table: &ClassTable, diagnostics: &mut Vec<Diagnostic>) {
    if file.origin == Origin::Library {
        return;
    }
    // A session is no package and may send everything.
    let kept = file.package.as_ref().map(|package| Kept {
        selectors: table.selectors_kept_from(package),
        package: package.clone(),
    });
    let mut walker = Walker {
        classes: Classes::new(table),
        kept,
        scope: Scope::default(),
        assigned: FxHashMap::default(),
        diagnostics,
    };
    let mut statements: Vec<&Statement> = Vec::new();
    for item in &file.unit.items {
        match item {
            Item::Class(class) => {
                let name = &class.name.text;
                class
                    .methods
                    .iter()
                    .for_each(|method| walker.method(name, method));
            }
            Item::Extension(extension) => {
                walker.method(&extension.target.name.text, &extension.method);
            }
            Item::Statement(statement) => statements.push(statement),
            Item::Protocol(_) | Item::TypeAlias(_) => {}
        }
    }
    walker.body(None, &[], &statements);
}

/// What the package of the file must not send.
struct Kept {
    package: EcoString,
    selectors: FxHashSet<EcoString>,
}

impl Kept {
    fn is_in(&self, messages: &[Message]) -> bool {
        messages
            .iter()
            .any(|message| self.selectors.contains(&message.selector))
    }
}

struct Walker<'a, 'b> {
    classes: Classes<'a>,
    kept: Option<Kept>,
    scope: Scope,
    /// How often each variable of the body is assigned.
    assigned: FxHashMap<EcoString, usize>,
    diagnostics: &'b mut Vec<Diagnostic>,
}

impl Walker<'_, '_> {
    fn method(&mut self, class: &EcoString, method: &ast::Method) {
        let own = if method.is_class {
            Known::class(class.clone())
        } else {
            Known::instance(class.clone())
        };
        let body: Vec<&Statement> = method.body.iter().collect();
        self.body(Some(own), &method.head.parameters, &body);
    }

    fn body(&mut self, own: Option<Known>, parameters: &[Parameter], statements: &[&Statement]) {
        // Looking at types means reading the texts of classes.
        if !statements.iter().any(|statement| self.is_looked_at(statement)) {
            return;
        }
        self.scope = Scope::default();
        self.scope.own = own;
        self.assigned.clear();
        for parameter in parameters {
            self.count(&parameter.name.text);
        }
        for statement in statements {
            self.count_assignments(&statement.expression);
        }
        self.parameters(parameters);
        for statement in statements {
            self.statement(statement);
        }
    }

    /// A cast, or a message that somebody keeps, is in it.
    fn is_looked_at(&self, statement: &Statement) -> bool {
        statement.is_cast || self.has_message_to_look_at(&statement.expression)
    }

    fn has_message_to_look_at(&self, node: &Expression) -> bool {
        let is_kept = |messages: &[Message]| self.kept.as_ref().is_some_and(|kept| kept.is_in(messages));
        let mut found = match &node.kind {
            ExpressionKind::Send(send) => is_kept(std::slice::from_ref(&send.message)),
            ExpressionKind::Cascade { messages, .. } => is_kept(messages),
            _ => false,
        };
        walk::parts(node, &mut |part| {
            found = found
                || match part {
                    Part::Expression(inner) => self.has_message_to_look_at(inner),
                    Part::Statements(body) => body.iter().any(|statement| self.is_looked_at(statement)),
                    _ => false,
                };
        });
        found
    }

    fn count(&mut self, name: &EcoString) {
        *self.assigned.entry(name.clone()).or_default() += 1;
    }

    fn count_assignments(&mut self, node: &Expression) {
        if let ExpressionKind::Assign { target, .. } = &node.kind {
            match target {
                Target::Variable(name) => self.count(&name.text),
                Target::Pattern(pattern) => walk::bound_names(pattern, &mut |name| self.count(name)),
                Target::Field(_) => {}
            }
        }
        walk::inner(node, &mut |inner| self.count_assignments(inner));
    }

    fn parameters(&mut self, parameters: &[Parameter]) {
        for parameter in parameters {
            let declared = parameter.annotation.as_ref();
            let known =
                declared.and_then(|declared| self.classes.declared(declared, self.scope.own.as_ref()));
            self.scope.locals.push((parameter.name.text.clone(), known));
        }
    }

    fn statements(&mut self, body: &[Statement]) {
        let depth = self.scope.locals.len();
        for statement in body {
            self.statement(statement);
        }
        self.scope.locals.truncate(depth);
    }

    fn statement(&mut self, statement: &Statement) {
        self.expression(&statement.expression);
        if statement.is_cast
            && let ExpressionKind::Send(send) = &unparenthesized(&statement.expression).kind
        {
            self.cast(&send.receiver, &send.message);
        }
    }

    fn expression(&mut self, node: &Expression) {
        match &node.kind {
            ExpressionKind::Block(block) => {
                let depth = self.scope.locals.len();
                self.parameters(&block.parameters);
                self.statements(&block.body);
                self.scope.locals.truncate(depth);
                return;
            }
            ExpressionKind::Match { value, arms, .. } => {
                self.expression(value);
                for arm in arms {
                    let depth = self.scope.locals.len();
                    let locals = &mut self.scope.locals;
                    walk::bound_names(&arm.pattern, &mut |name| locals.push((name.clone(), None)));
                    arm.guard.iter().for_each(|guard| self.expression(guard));
                    self.expression(&arm.body);
                    self.scope.locals.truncate(depth);
                }
                return;
            }
            ExpressionKind::Send(send) => self.sent(&send.receiver, std::slice::from_ref(&send.message)),
            ExpressionKind::Cascade { receiver, messages } => self.sent(receiver, messages),
            _ => {}
        }
        walk::parts(node, &mut |part| match part {
            Part::Expression(inner) => self.expression(inner),
            Part::Statements(body) => self.statements(body),
            _ => {}
        });
        if let ExpressionKind::Assign {
            target: Target::Variable(name),
            annotation,
            ..
        } = &node.kind
        {
            let is_certain = annotation.is_some() || self.assigned.get(&name.text) == Some(&1);
            // Assigned again, a variable with a declared type keeps it.
            if is_certain {
                let known = self.classes.infer(node, &self.scope);
                self.scope.locals.push((name.text.clone(), known));
            }
        }
    }

    fn cast(&mut self, receiver: &Expression, message: &Message) {
        let known = self.classes.infer(receiver, &self.scope);
        let Some(known) = known.filter(|known| known.side == Side::Instance) else {
            return;
        };
        let class = &known.class;
        if self.classes.table.kind(class) != Kind::Value && !PLAIN.contains(&class.as_str()) {
            return;
        }
        let message_text =
            eco_format!("Cannot use ! (cast) on value type `{class}`. Value types are not actors.");
        self.diagnostics.push(
            Diagnostic::error(codes::CAST_ON_VALUE, message.span, message_text)
                .with_hint("Drop the ! to send the message."),
        );
    }

    /// A method that the receiver's package keeps to itself.
    fn sent(&mut self, receiver: &Expression, messages: &[Message]) {
        let Some(kept) = self.kept.as_ref().filter(|kept| kept.is_in(messages)) else {
            return;
        };
        let Some(known) = self.classes.infer(receiver, &self.scope) else {
            return;
        };
        let package = &kept.package;
        let is_class = known.side == Side::Class;
        for message in messages {
            let keeper = self
                .classes
                .table
                .keeper_of_method(&known.class, is_class, &message.selector);
            if let Some(keeper) = keeper.filter(|keeper| *keeper != package) {
                let text = eco_format!(
                    "Method '{}' is internal to package '{keeper}' and cannot be called from '{package}'",
                    message.selector
                );
                let span = message.parts.first().copied().unwrap_or(message.span);
                self.diagnostics.push(
                    Diagnostic::error(codes::INTERNAL_METHOD, span, text).with_category(Category::Visibility),
                );
            }
        }
    }
}
