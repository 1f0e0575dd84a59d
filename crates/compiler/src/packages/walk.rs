//! Every class name of a tree.

use beamtalk_syntax::ast::{
    Block, Class, Expression, ExpressionKind, Head, Item, Message, Method, Pattern, PatternKind, Protocol,
    Statement, StringPart, Target, Type, TypeKind, TypeParameter, Unit,
};
use beamtalk_syntax::diagnostic::Diagnostic;

use super::View;

type Found = Vec<Diagnostic>;

impl View<'_> {
    pub(super) fn unit(&self, unit: &mut Unit, found: &mut Found) {
        for item in &mut unit.items {
            match item {
                Item::Class(class) => self.class_declaration(class, found),
                Item::Protocol(protocol) => self.protocol(protocol, found),
                Item::TypeAlias(alias) => {
                    found.extend(self.hiding(&alias.name.text, alias.name.span));
                    alias.name.text = self.declared(&alias.name.text);
                    self.annotation(&mut alias.definition, found);
                }
                Item::Extension(extension) => {
                    self.class(&mut extension.target, found);
                    self.method(&mut extension.method, found);
                }
                Item::Statement(statement) => self.statement(statement, found),
            }
        }
    }

    fn class_declaration(&self, class: &mut Class, found: &mut Found) {
        found.extend(self.hiding(&class.name.text, class.name.span));
        class.name.text = self.declared(&class.name.text);
        if let Some(superclass) = &mut class.superclass {
            self.class(superclass, found);
        }
        self.annotations(&mut class.superclass_arguments, found);
        self.bounds(&mut class.type_parameters, found);
        for slot in &mut class.slots {
            self.annotations(&mut slot.annotation, found);
            if let Some(default) = &mut slot.default {
                self.expression(default, found);
            }
        }
        for method in &mut class.methods {
            self.method(method, found);
        }
    }

    fn protocol(&self, protocol: &mut Protocol, found: &mut Found) {
        found.extend(self.hiding(&protocol.name.text, protocol.name.span));
        protocol.name.text = self.declared(&protocol.name.text);
        if let Some(extending) = &mut protocol.extending {
            self.plain(extending, found);
        }
        self.bounds(&mut protocol.type_parameters, found);
        for signature in &mut protocol.signatures {
            self.head(&mut signature.head, found);
            self.annotations(&mut signature.result, found);
        }
    }

    fn bounds(&self, parameters: &mut [TypeParameter], found: &mut Found) {
        for bound in parameters
            .iter_mut()
            .filter_map(|parameter| parameter.bound.as_mut())
        {
            self.plain(bound, found);
        }
    }

    fn method(&self, method: &mut Method, found: &mut Found) {
        self.head(&mut method.head, found);
        self.annotations(&mut method.result, found);
        self.statements(&mut method.body, found);
    }

    fn head(&self, head: &mut Head, found: &mut Found) {
        for parameter in &mut head.parameters {
            self.annotations(&mut parameter.annotation, found);
        }
    }

    fn annotations<'a>(&self, types: impl IntoIterator<Item = &'a mut Type>, found: &mut Found) {
        for annotation in types {
            self.annotation(annotation, found);
        }
    }

    fn annotation(&self, annotation: &mut Type, found: &mut Found) {
        match &mut annotation.kind {
            TypeKind::Named { class, arguments } => {
                self.class(class, found);
                self.annotations(arguments, found);
            }
            TypeKind::ClassOf(class) => self.class(class, found),
            TypeKind::Union(types) | TypeKind::Intersection(types) | TypeKind::Difference(types) => {
                self.annotations(types, found);
            }
            TypeKind::SelfType
            | TypeKind::SelfClass
            | TypeKind::Symbol(_)
            | TypeKind::Nil
            | TypeKind::True
            | TypeKind::False
            | TypeKind::Error => {}
        }
    }

    fn statements(&self, statements: &mut [Statement], found: &mut Found) {
        for statement in statements {
            self.statement(statement, found);
        }
    }

    fn statement(&self, statement: &mut Statement, found: &mut Found) {
        self.expression(&mut statement.expression, found);
    }

    fn expressions<'a>(&self, expressions: impl IntoIterator<Item = &'a mut Expression>, found: &mut Found) {
        for expression in expressions {
            self.expression(expression, found);
        }
    }

    fn expression(&self, expression: &mut Expression, found: &mut Found) {
        match &mut expression.kind {
            ExpressionKind::ClassName(class) => self.class(class, found),
            ExpressionKind::String(parts) => {
                for part in parts {
                    if let StringPart::Interpolation(inner) = part {
                        self.expression(inner, found);
                    }
                }
            }
            ExpressionKind::ForeignField { object: inner, .. }
            | ExpressionKind::Return(inner)
            | ExpressionKind::Parenthesized(inner) => self.expression(inner, found),
            ExpressionKind::List { elements, tail } => {
                self.expressions(elements, found);
                if let Some(tail) = tail {
                    self.expression(tail, found);
                }
            }
            ExpressionKind::Array(elements) => self.expressions(elements, found),
            ExpressionKind::Dictionary(pairs) => {
                for (key, value) in pairs {
                    self.expression(key, found);
                    self.expression(value, found);
                }
            }
            ExpressionKind::Block(block) => self.block(block, found),
            ExpressionKind::Send(send) => {
                self.expression(&mut send.receiver, found);
                self.message(&mut send.message, found);
            }
            ExpressionKind::Cascade { receiver, messages } => {
                self.expression(receiver, found);
                for message in messages {
                    self.message(message, found);
                }
            }
            ExpressionKind::Match { value, arms, .. } => {
                self.expression(value, found);
                for arm in arms {
                    self.pattern(&mut arm.pattern, found);
                    self.expressions(&mut arm.guard, found);
                    self.expression(&mut arm.body, found);
                }
            }
            ExpressionKind::Assign {
                target,
                annotation,
                value,
            } => {
                if let Target::Pattern(pattern) = target {
                    self.pattern(pattern, found);
                }
                self.annotations(annotation, found);
                self.expression(value, found);
            }
            ExpressionKind::Integer(_)
            | ExpressionKind::Float(_)
            | ExpressionKind::Character(_)
            | ExpressionKind::Symbol(_)
            | ExpressionKind::Nil
            | ExpressionKind::True
            | ExpressionKind::False
            | ExpressionKind::Variable(_)
            | ExpressionKind::SelfReference
            | ExpressionKind::Super
            | ExpressionKind::Field(_)
            | ExpressionKind::Primitive { .. }
            | ExpressionKind::Error => {}
        }
    }

    fn block(&self, block: &mut Block, found: &mut Found) {
        for parameter in &mut block.parameters {
            self.annotations(&mut parameter.annotation, found);
        }
        self.statements(&mut block.body, found);
    }

    fn message(&self, message: &mut Message, found: &mut Found) {
        self.expressions(&mut message.arguments, found);
    }

    fn pattern(&self, pattern: &mut Pattern, found: &mut Found) {
        match &mut pattern.kind {
            PatternKind::Typed { class, .. } => self.class(class, found),
            PatternKind::Tuple(elements) => self.patterns(elements, found),
            PatternKind::List { elements, .. } | PatternKind::Array { elements, .. } => {
                self.patterns(elements, found);
            }
            PatternKind::Dictionary(pairs) => {
                for (_, value) in pairs {
                    self.pattern(value, found);
                }
            }
            PatternKind::ResultOk(inner) | PatternKind::ResultError(inner) => self.pattern(inner, found),
            PatternKind::Wildcard
            | PatternKind::Integer(_)
            | PatternKind::Float(_)
            | PatternKind::Character(_)
            | PatternKind::String(_)
            | PatternKind::Symbol(_)
            | PatternKind::Nil
            | PatternKind::True
            | PatternKind::False
            | PatternKind::Variable(_)
            | PatternKind::Binary(_)
            | PatternKind::Error => {}
        }
    }

    fn patterns(&self, patterns: &mut [Pattern], found: &mut Found) {
        for pattern in patterns {
            self.pattern(pattern, found);
        }
    }
}
