//! What stands at an offset of a parsed text, and what is known there.

use beamtalk_syntax::ast::{
    self, ClassRef, Expression, ExpressionKind, Item, Message, Name, Statement, Target, Unit,
};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk::{self, Part};
use ecow::EcoString;

use super::Binding;
use super::describe::{Classes, Known};

/// What stands at the offset.
pub(super) enum Site<'a> {
    Variable(EcoString),
    /// A part of the selector of a message.
    Message {
        receiver: &'a Expression,
        message: &'a Message,
    },
    /// `self.field`.
    Field(EcoString),
    Class(EcoString),
    /// The name of a class, protocol or alias in the header of a definition.
    Type(EcoString),
}

/// What names mean at the offset.
#[derive(Clone, Default)]
pub(super) struct Scope {
    /// What `self` is.
    pub(super) own: Option<Known>,
    /// Innermost last.
    pub(super) locals: Vec<(EcoString, Option<Known>)>,
    bindings: Vec<(EcoString, Option<Known>)>,
}

impl Scope {
    /// What a variable holds, as far as it is known.
    pub(super) fn local(&self, name: &str) -> Option<Known> {
        let nearest = self.locals.iter().rev().find(|(known, _)| known == name);
        let nearest = nearest.or_else(|| self.bindings.iter().find(|(known, _)| known == name));
        nearest.and_then(|(_, known)| known.clone())
    }
}

pub(super) struct Found<'a> {
    pub(super) site: Site<'a>,
    pub(super) span: Span,
    pub(super) scope: Scope,
    /// Keyword messages whose last argument ends at the site: receiver and selector so far, innermost first.
    pub(super) keywords: Vec<(&'a Expression, EcoString)>,
}

/// What stands at the offset; none in comments, strings and other places where no name is.
pub(super) fn find<'a>(
    unit: &'a Unit,
    offset: usize,
    classes: &'a Classes<'a>,
    bindings: &[Binding],
) -> Option<Found<'a>> {
    let offset = u32::try_from(offset).ok()?;
    let mut search = Search {
        offset,
        classes,
        scope: Scope {
            bindings: bindings
                .iter()
                .map(|binding| {
                    (
                        binding.name.clone(),
                        binding.class.as_deref().map(Known::from_text),
                    )
                })
                .collect(),
            ..Scope::default()
        },
        keywords: Vec::new(),
    };
    for item in &unit.items {
        match item {
            Item::Statement(statement) => {
                if let Some(found) = search.statement(statement) {
                    return Some(found);
                }
            }
            Item::Class(class) if search.is_in(class.span) => return search.class(class),
            Item::Extension(extension) if search.is_in(extension.span) => {
                if search.is_in(extension.target.span) {
                    return Some(search.found(
                        Site::Type(extension.target.name.text.clone()),
                        extension.target.span,
                    ));
                }
                return search.method(&extension.target.name.text, &extension.method);
            }
            Item::Protocol(protocol) if search.is_in(protocol.name.span) => {
                return Some(search.found(Site::Type(protocol.name.text.clone()), protocol.name.span));
            }
            Item::Class(_) | Item::Extension(_) | Item::Protocol(_) | Item::TypeAlias(_) => {}
        }
    }
    None
}

struct Search<'a> {
    offset: u32,
    classes: &'a Classes<'a>,
    scope: Scope,
    keywords: Vec<(&'a Expression, EcoString)>,
}

impl<'a> Search<'a> {
    /// The character at the offset, or the one before it, is in the span.
    fn is_in(&self, span: Span) -> bool {
        span.start <= self.offset && self.offset <= span.end
    }

    fn found(&mut self, site: Site<'a>, span: Span) -> Found<'a> {
        let mut keywords = std::mem::take(&mut self.keywords);
        keywords.reverse();
        Found {
            site,
            span,
            scope: self.scope.clone(),
            keywords,
        }
    }

    fn class(&mut self, class: &'a ast::Class) -> Option<Found<'a>> {
        for name in class
            .superclass
            .iter()
            .map(|superclass| &superclass.name)
            .chain([&class.name])
        {
            if self.is_in(name.span) {
                return Some(self.found(Site::Type(name.text.clone()), name.span));
            }
        }
        self.scope.own = Some(Known::instance(class.name.text.clone()));
        for slot in &class.slots {
            if let Some(default) = &slot.default
                && self.is_in(default.span)
            {
                return self.expression(default);
            }
        }
        let method = class.methods.iter().rfind(|method| self.is_in(method.span))?;
        self.method(&class.name.text, method)
    }

    fn method(&mut self, class: &EcoString, method: &'a ast::Method) -> Option<Found<'a>> {
        self.scope.own = Some(if method.is_class {
            Known::class(class.clone())
        } else {
            Known::instance(class.clone())
        });
        self.parameters(&method.head.parameters);
        self.statements(&method.body)
    }

    fn parameters(&mut self, parameters: &[ast::Parameter]) {
        for parameter in parameters {
            let known = parameter
                .annotation
                .as_ref()
                .and_then(|annotation| self.classes.declared(annotation, self.scope.own.as_ref()));
            self.scope.locals.push((parameter.name.text.clone(), known));
        }
    }

    fn statements(&mut self, statements: &'a [Statement]) -> Option<Found<'a>> {
        statements.iter().find_map(|statement| self.statement(statement))
    }

    /// Looks into the statement, or learns what it assigns.
    fn statement(&mut self, statement: &'a Statement) -> Option<Found<'a>> {
        if self.is_in(statement.expression.span)
            && let Some(found) = self.expression(&statement.expression)
        {
            return Some(found);
        }
        if let ExpressionKind::Assign {
            target: Target::Variable(name),
            ..
        } = &statement.expression.kind
            && statement.span.end <= self.offset
        {
            let known = self.classes.infer(&statement.expression, &self.scope);
            self.scope.locals.push((name.text.clone(), known));
        }
        None
    }

    fn expression(&mut self, node: &'a Expression) -> Option<Found<'a>> {
        match &node.kind {
            ExpressionKind::Variable(name) => Some(self.found(Site::Variable(name.clone()), node.span)),
            ExpressionKind::ClassName(ClassRef { name, .. }) => {
                Some(self.found(Site::Class(name.text.clone()), node.span))
            }
            ExpressionKind::Field(Name { text, span }) if self.is_in(*span) => {
                Some(self.found(Site::Field(text.clone()), *span))
            }
            ExpressionKind::Assign {
                target: Target::Variable(name),
                ..
            } if self.is_in(name.span) => Some(self.found(Site::Variable(name.text.clone()), name.span)),
            ExpressionKind::Send(send) => self.message(&send.receiver, std::slice::from_ref(&send.message)),
            ExpressionKind::Cascade { receiver, messages } => self.message(receiver, messages),
            ExpressionKind::Block(block) => {
                let depth = self.scope.locals.len();
                let keywords = std::mem::take(&mut self.keywords);
                self.parameters(&block.parameters);
                let found = self.statements(&block.body);
                self.scope.locals.truncate(depth);
                self.keywords = keywords;
                found
            }
            _ => {
                let keywords = std::mem::take(&mut self.keywords);
                let found = self.children(node);
                self.keywords = keywords;
                found
            }
        }
    }

    fn children(&mut self, node: &'a Expression) -> Option<Found<'a>> {
        let mut found = None;
        walk::parts(node, &mut |part| {
            if found.is_none() {
                found = match part {
                    Part::Expression(inner) if self.is_in(inner.span) => self.expression(inner),
                    Part::Statements(statements) => self.statements(statements),
                    _ => None,
                };
            }
        });
        found
    }

    fn message(&mut self, receiver: &'a Expression, messages: &'a [Message]) -> Option<Found<'a>> {
        for message in messages {
            for part in &message.parts {
                if self.is_in(*part) {
                    return Some(self.found(Site::Message { receiver, message }, *part));
                }
            }
        }
        if self.is_in(receiver.span)
            && let Some(found) = self.expression(receiver)
        {
            return Some(found);
        }
        for message in messages {
            let count = message.arguments.len();
            for (index, argument) in message.arguments.iter().enumerate() {
                if !self.is_in(argument.span) {
                    continue;
                }
                let is_last = index + 1 == count && message.selector.ends_with(':');
                if is_last {
                    self.keywords.push((receiver, message.selector.clone()));
                }
                let found = self.expression(argument);
                if is_last {
                    self.keywords.pop();
                }
                if found.is_some() {
                    return found;
                }
            }
        }
        None
    }
}
