//! Cascades on a ClassBuilder: blocks written there become methods.

use beamtalk_syntax::ast::{self, ExpressionKind};
use ecow::EcoString;

use super::Resolver;
use crate::ir::{BuiltMethod, Node, NodeKind};

/// What a cascade on `aClass classBuilder` says about the class.
pub(super) struct Builder {
    /// From `name: #Literal`.
    class: Option<EcoString>,
}

impl Builder {
    /// The builder of a cascade, if its receiver is one.
    pub(super) fn of(receiver: &ast::Expression, messages: &[ast::Message]) -> Option<Self> {
        let ExpressionKind::Send(send) = &super::unparenthesized(receiver).kind else {
            return None;
        };
        if send.message.selector != "classBuilder" {
            return None;
        }
        let class = messages
            .iter()
            .find_map(|message| match message.arguments.as_slice() {
                [
                    ast::Expression {
                        kind: ExpressionKind::Symbol(name),
                        ..
                    },
                ] if message.selector == "name:" => Some(name.clone()),
                _ => None,
            });
        Some(Self { class })
    }
}

/// Whether the selector takes method bodies, and for which side.
fn method_side(selector: &str) -> Option<bool> {
    match selector {
        "methods:" | "addMethod:body:" => Some(false),
        "classMethods:" | "addClassMethod:body:" => Some(true),
        _ => None,
    }
}

impl Resolver<'_> {
    pub(super) fn builder_send(&mut self, builder: &Builder, receiver: Node, message: &ast::Message) -> Node {
        let Some(is_class_side) = method_side(&message.selector) else {
            return self.plain_send(receiver, message);
        };
        let arguments = message
            .arguments
            .iter()
            .map(|argument| self.built(builder, is_class_side, argument))
            .collect();
        let span = message.parts.first().copied().unwrap_or(message.span);
        let selector = message.selector.clone();
        Node {
            kind: NodeKind::Send {
                receiver: Box::new(receiver),
                selector,
                arguments,
            },
            span,
        }
    }

    /// A literal block, alone or as a value of a literal dictionary, becomes a method.
    fn built(&mut self, builder: &Builder, is_class_side: bool, argument: &ast::Expression) -> Node {
        let span = argument.span;
        let kind = match &argument.kind {
            ExpressionKind::Block(block) => {
                let body = block.body_span.text(&self.file.text).trim().into();
                let parameters = block.parameters.iter().skip(1);
                let parameters = parameters.map(|parameter| parameter.name.text.clone()).collect();
                let closure = self.closure(block);
                NodeKind::BuiltMethod(BuiltMethod {
                    closure,
                    class: builder.class.clone(),
                    is_class_side,
                    parameters,
                    body,
                })
            }
            ExpressionKind::Dictionary(pairs) => NodeKind::Dictionary(
                pairs
                    .iter()
                    .map(|(key, value)| (self.expression(key), self.built(builder, is_class_side, value)))
                    .collect(),
            ),
            _ => return self.expression(argument),
        };
        Node { kind, span }
    }
}
