//! Which messages with literal blocks run in place.

use beamtalk_syntax::ast::{self, ExpressionKind};
use ecow::{EcoString, eco_format};

use super::{Resolver, unparenthesized};
use crate::codes;
use crate::ir::{Inline, Node};

/// A literal block with the given number of parameters.
fn block(expression: &ast::Expression, parameters: usize) -> Option<&ast::Block> {
    match &unparenthesized(expression).kind {
        ExpressionKind::Block(block) if block.parameters.len() == parameters => Some(block),
        _ => None,
    }
}

impl Resolver<'_> {
    /// The inlined form of a control-flow send, if all its blocks are literal.
    pub(super) fn inline(&mut self, send: &ast::Send) -> Option<Inline> {
        let selector = &send.message.selector;
        let arguments = send.message.arguments.as_slice();
        let receiver = &*send.receiver;
        match (selector.as_str(), arguments) {
            ("whileTrue:" | "whileFalse:", [body]) => {
                let (condition, body) = (block(receiver, 0)?, block(body, 0)?);
                let until = selector == "whileFalse:";
                let opened = self.scopes.open_loop();
                let condition = self.block_body(condition);
                let body = self.block_body(body);
                self.scopes.close_loop(&opened);
                Some(Inline::While {
                    condition,
                    body,
                    until,
                })
            }
            ("repeat", []) => {
                let body = block(receiver, 0)?;
                Some(Inline::Repeat {
                    body: self.loop_body(body),
                })
            }
            _ if self.table.is_user_selector(selector) => None,
            ("ifTrue:ifFalse:", [yes, no]) => self.if_else(selector, receiver, Some(yes), Some(no)),
            ("ifFalse:ifTrue:", [no, yes]) => self.if_else(selector, receiver, Some(yes), Some(no)),
            ("ifTrue:" | "and:", [yes]) => self.if_else(selector, receiver, Some(yes), None),
            ("ifFalse:" | "or:", [no]) => self.if_else(selector, receiver, None, Some(no)),
            ("ifNil:", [nil]) => self.if_nil(receiver, Some(nil), None),
            ("ifNotNil:", [other]) => self.if_nil(receiver, None, Some(other)),
            ("ifNil:ifNotNil:", [nil, other]) | ("ifNotNil:ifNil:", [other, nil]) => {
                self.if_nil(receiver, Some(nil), Some(other))
            }
            ("timesRepeat:", [body]) => {
                let body = block(body, 0)?;
                let count = Box::new(self.expression(receiver));
                Some(Inline::Times {
                    count,
                    body: self.loop_body(body),
                })
            }
            ("to:do:", [to, body]) => self.range(receiver, to, None, body),
            ("to:by:do:", [to, by, body]) => self.range(receiver, to, Some(by), body),
            _ => None,
        }
    }

    fn block_body(&mut self, block: &ast::Block) -> Vec<Node> {
        self.scopes.open_block();
        let body = self.statements(&block.body);
        self.scopes.close_block();
        body
    }

    fn loop_body(&mut self, block: &ast::Block) -> Vec<Node> {
        let opened = self.scopes.open_loop();
        let body = self.block_body(block);
        self.scopes.close_loop(&opened);
        body
    }

    fn if_else(
        &mut self,
        selector: &EcoString,
        receiver: &ast::Expression,
        when_true: Option<&ast::Expression>,
        when_false: Option<&ast::Expression>,
    ) -> Option<Inline> {
        let when_true = when_true
            .map(|argument| block(argument, 0).ok_or(()))
            .transpose()
            .ok()?;
        let when_false = when_false
            .map(|argument| block(argument, 0).ok_or(()))
            .transpose()
            .ok()?;
        if let ExpressionKind::True | ExpressionKind::False = &receiver.kind {
            let value = matches!(receiver.kind, ExpressionKind::True);
            self.warn(
                codes::CONSTANT_CONDITION,
                receiver.span,
                eco_format!("Condition is always `{value}`"),
            );
        }
        let condition = Box::new(self.expression(receiver));
        let when_true = when_true.map(|block| self.block_body(block));
        let when_false = when_false.map(|block| self.block_body(block));
        Some(Inline::If {
            selector: selector.clone(),
            condition,
            when_true,
            when_false,
        })
    }

    fn if_nil(
        &mut self,
        receiver: &ast::Expression,
        when_nil: Option<&ast::Expression>,
        otherwise: Option<&ast::Expression>,
    ) -> Option<Inline> {
        let when_nil = when_nil
            .map(|argument| block(argument, 0).ok_or(()))
            .transpose()
            .ok()?;
        let otherwise = otherwise
            .map(|argument| block(argument, 1).or_else(|| block(argument, 0)).ok_or(()))
            .transpose()
            .ok()?;
        let value = Box::new(self.expression(receiver));
        let when_nil = when_nil.map(|block| self.block_body(block));
        let otherwise = otherwise.map(|block| {
            self.scopes.open_block();
            let parameter = block
                .parameters
                .first()
                .map(|parameter| self.declare_parameter(parameter, false));
            let body = self.statements(&block.body);
            self.scopes.close_block();
            (parameter, body)
        });
        Some(Inline::IfNil {
            value,
            when_nil,
            otherwise,
        })
    }

    fn range(
        &mut self,
        from: &ast::Expression,
        to: &ast::Expression,
        by: Option<&ast::Expression>,
        body: &ast::Expression,
    ) -> Option<Inline> {
        let body = block(body, 1)?;
        let from = Box::new(self.expression(from));
        let to = Box::new(self.expression(to));
        let by = by.map(|by| Box::new(self.expression(by)));
        self.scopes.open_block();
        let parameter = body.parameters.first()?;
        let opened = self.scopes.open_loop();
        let variable = self.declare_parameter(parameter, false);
        let body = self.statements(&body.body);
        self.scopes.close_loop(&opened);
        self.scopes.close_block();
        Some(Inline::Range {
            from,
            to,
            by,
            variable,
            body,
        })
    }
}
