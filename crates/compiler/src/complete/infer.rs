//! What an expression is known to answer.

use beamtalk_syntax::ast::{self, Expression, ExpressionKind, Message, TypeKind};
use ecow::EcoString;

use super::cursor::Scope;
use super::describe::{Classes, Known, Result, Side};
use crate::types::MAX_ALIASES;

impl Classes<'_> {
    /// What types say; where they are silent, what can be read off the text.
    pub(super) fn infer(&self, node: &Expression, scope: &Scope) -> Option<Known> {
        if let Some(known) = self.inferred(node) {
            return Some(known);
        }
        let class = match &node.kind {
            ExpressionKind::Integer(_) => "Integer",
            ExpressionKind::Float(_) => "Float",
            ExpressionKind::Character(_) => "Character",
            ExpressionKind::String(_) => "String",
            ExpressionKind::Symbol(_) => "Symbol",
            ExpressionKind::Nil => "UndefinedObject",
            ExpressionKind::True => "True",
            ExpressionKind::False => "False",
            ExpressionKind::List { .. } => "List",
            ExpressionKind::Array(_) => "Array",
            ExpressionKind::Dictionary(_) => "Dictionary",
            ExpressionKind::Block(_) => "Block",
            ExpressionKind::ClassName(class) => {
                return self
                    .table
                    .class(&class.name.text)
                    .map(|entry| Known::class(entry.name.clone()));
            }
            ExpressionKind::Variable(name) => return scope.local(name),
            ExpressionKind::SelfReference => return scope.own.clone(),
            ExpressionKind::Super => return self.above(scope),
            ExpressionKind::Field(name) => return self.field(&name.text, scope),
            ExpressionKind::Send(send) => {
                let receiver = self.infer(&send.receiver, scope)?;
                return self.answer(&receiver, &send.message);
            }
            ExpressionKind::Cascade { receiver, messages } => {
                let receiver = self.infer(receiver, scope)?;
                return self.answer(&receiver, messages.last()?);
            }
            ExpressionKind::Assign {
                annotation, value, ..
            } => {
                return match annotation {
                    Some(annotation) => self.declared(annotation, scope.own.as_ref()),
                    None => self.infer(value, scope),
                };
            }
            ExpressionKind::Return(value) | ExpressionKind::Parenthesized(value) => {
                return self.infer(value, scope);
            }
            ExpressionKind::ForeignField { .. }
            | ExpressionKind::Match { .. }
            | ExpressionKind::Primitive { .. }
            | ExpressionKind::Error => return None,
        };
        Some(Known::instance(class))
    }

    /// The superclass of the class around.
    fn above(&self, scope: &Scope) -> Option<Known> {
        let own = scope.own.as_ref()?;
        let superclass = self.table.class(&own.class)?.superclass.clone()?;
        Some(Known {
            class: superclass,
            side: own.side,
        })
    }

    fn field(&self, name: &str, scope: &Scope) -> Option<Known> {
        let own = scope.own.as_ref()?;
        let slot = self.slot(own, name)?;
        self.declared(slot.annotation.as_ref()?, Some(own))
    }

    fn answer(&self, receiver: &Known, message: &Message) -> Option<Known> {
        if message.selector == "class" && receiver.side == Side::Instance {
            return Some(Known::class(receiver.class.clone()));
        }
        match self.member(receiver, &message.selector)?.result {
            Result::Unknown => None,
            Result::Own => Some(Known::instance(receiver.class.clone())),
            Result::Declared(declared) => self.declared(&declared, Some(receiver)),
        }
    }

    /// What a declared type says; `Self` is the receiver's class.
    pub(super) fn declared(&self, declared: &ast::Type, receiver: Option<&Known>) -> Option<Known> {
        self.resolved(declared, receiver, MAX_ALIASES)
    }

    fn resolved(&self, declared: &ast::Type, receiver: Option<&Known>, aliases: usize) -> Option<Known> {
        match &declared.kind {
            TypeKind::Named { class, .. } => self.named(&class.name.text, receiver, aliases),
            TypeKind::ClassOf(class) => Some(Known::class(class.name.text.clone())),
            TypeKind::SelfType => receiver.map(|known| Known::instance(known.class.clone())),
            TypeKind::SelfClass => receiver.map(|known| Known::class(known.class.clone())),
            TypeKind::Symbol(_) => Some(Known::instance("Symbol")),
            TypeKind::Nil => Some(Known::instance("UndefinedObject")),
            TypeKind::True => Some(Known::instance("True")),
            TypeKind::False => Some(Known::instance("False")),
            TypeKind::Union(members) => {
                // `Lamp | Nil` is a Lamp for all who want to send it something.
                let mut all: Vec<Known> = Vec::new();
                for member in members.iter().filter(|member| !is_nil(member)) {
                    let known = self.resolved(member, receiver, aliases)?;
                    if !all.contains(&known) {
                        all.push(known);
                    }
                }
                <[Known; 1]>::try_from(all).ok().map(|[only]| only)
            }
            TypeKind::Intersection(members) | TypeKind::Difference(members) => members
                .iter()
                .find_map(|member| self.resolved(member, receiver, aliases)),
            TypeKind::Error => None,
        }
    }

    fn named(&self, name: &EcoString, receiver: Option<&Known>, aliases: usize) -> Option<Known> {
        if self.table.class(name).is_some() {
            return Some(Known::instance(name.clone()));
        }
        let alias = self.table.alias(name)?;
        self.resolved(&alias.definition, receiver, aliases.checked_sub(1)?)
    }
}

fn is_nil(member: &ast::Type) -> bool {
    match &member.kind {
        TypeKind::Nil => true,
        TypeKind::Named { class, .. } => matches!(class.name.text.as_str(), "Nil" | "UndefinedObject"),
        _ => false,
    }
}
