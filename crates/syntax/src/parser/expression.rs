//! Returns, assignments, cascades and sends.

use ecow::{EcoString, eco_format};

use super::{Lines, MAX_HEIGHT, Parser};
use crate::ast::{Expression, ExpressionKind, Message, Send, Target, Type};
use crate::codes;
use crate::span::Span;
use crate::token::{FALSE_OPERATORS, OPERATORS, RESERVED_WORDS, TokenKind};

/// Where an operand stands, which decides what may make `super` a receiver.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Operand {
    /// First in a send: any message may follow.
    Receiver,
    /// First in a keyword argument: an operator may follow.
    BinaryReceiver,
    /// Right of an operator: only unary messages follow.
    Argument,
}

struct PendingOperator {
    selector: EcoString,
    span: Span,
    level: u8,
}

/// Precedence and whether the operator groups to the right.
pub(crate) fn precedence(operator: &str) -> (u8, bool) {
    match operator {
        "**" => (50, true),
        "*" | "/" | "%" => (40, false),
        "+" | "-" | "++" => (30, false),
        "<" | ">" | "<=" | ">=" => (20, false),
        ">>" => (5, false),
        "->" => (3, false),
        _ => (10, false),
    }
}

impl Parser<'_> {
    /// `^ value`, or an assignment or anything below it.
    pub(super) fn parse_expression(&mut self) -> Expression {
        let first = self.token();
        if !self.eat(TokenKind::Caret) {
            return self.parse_assignment();
        }
        let value = self.parse_assignment();
        self.height += 1;
        Expression {
            kind: ExpressionKind::Return(Box::new(value)),
            span: self.span_from(first.start),
        }
    }

    pub(super) fn parse_assignment(&mut self) -> Expression {
        let mut targets: Vec<(u32, Target, Option<Type>)> = Vec::new();
        let value = loop {
            let start = self.token().start;
            if let Some((target, annotation)) = self.parse_target() {
                targets.push((start, target, annotation));
                continue;
            }
            if self.eat_bad_target() {
                continue;
            }
            let value = self.parse_cascade();
            if !self.at(TokenKind::Assign) || self.on_new_line() {
                break value;
            }
            self.report_bad_target(&value);
            self.bump();
        };
        targets
            .into_iter()
            .rev()
            .fold(value, |value, (start, target, annotation)| {
                let span = Span::new(start, value.span.end);
                self.height += 1;
                let kind = ExpressionKind::Assign {
                    target,
                    annotation,
                    value: Box::new(value),
                };
                self.bounded(Expression { kind, span })
            })
    }

    fn report_bad_target(&mut self, value: &Expression) {
        if let ExpressionKind::ForeignField { .. } = value.kind {
            let text = value.span.text(self.source);
            let message =
                eco_format!("Cannot assign to `{text}` — objects cannot mutate another object's state");
            self.error(codes::ASSIGN_FOREIGN_FIELD, value.span, message);
        } else if !matches!(value.kind, ExpressionKind::Error) {
            let message = "Assignment target must be an identifier or field access";
            self.error(codes::ASSIGNMENT_TARGET, value.span, message);
        }
    }

    /// `name :=`, `name :: T :=`, `self.name :=` or `pattern :=`.
    fn parse_target(&mut self) -> Option<(Target, Option<Type>)> {
        let first = self.token();
        let at = self.position;
        match self.kind() {
            TokenKind::Lower => match self.kind_at(at + 1) {
                TokenKind::Assign => {
                    self.bump();
                    self.bump();
                    Some((Target::Variable(self.name_from(first)), None))
                }
                TokenKind::DoubleColon => Some(self.parse_typed_target()),
                TokenKind::Colon if self.skip_type(at + 2).is_some() => Some(self.parse_typed_target()),
                _ => None,
            },
            TokenKind::SelfWord if self.is_field_at(at) && self.kind_at(at + 3) == TokenKind::Assign => {
                self.bump();
                self.bump();
                let field = self.bump();
                self.bump();
                Some((Target::Field(self.name_from(field)), None))
            }
            TokenKind::ListOpen | TokenKind::ArrayOpen | TokenKind::MapOpen | TokenKind::BraceOpen => {
                self.parse_pattern_target()
            }
            _ => None,
        }
    }

    fn parse_typed_target(&mut self) -> (Target, Option<Type>) {
        let name = self.bump();
        self.eat_double_colon();
        let annotation = self.parse_type();
        if !self.eat(TokenKind::Assign) {
            let message = eco_format!("Expected ':=' after the type of a local, found {}", self.found());
            self.error_here(codes::MISSING_ASSIGN, message);
        }
        (Target::Variable(self.name_from(name)), Some(annotation))
    }

    fn parse_pattern_target(&mut self) -> Option<(Target, Option<Type>)> {
        let opener = self.token();
        let behind = opener.partner as usize + 1;
        if !opener.has_partner() || behind >= self.end {
            return None;
        }
        let next = self.token_at(behind);
        let continues = !next.newline || self.lines == Lines::Ignored;
        if !continues || !matches!(next.kind, TokenKind::Assign | TokenKind::DoubleColon) {
            return None;
        }
        let pattern = self.parse_pattern();
        self.position = behind;
        if self.at(TokenKind::DoubleColon) {
            self.error_here(
                codes::ANNOTATED_DESTRUCTURING,
                "a destructuring cannot have a type annotation",
            );
            self.bump();
            self.parse_type();
        }
        if !self.eat(TokenKind::Assign) {
            let message = eco_format!("Expected ':=' after a pattern, found {}", self.found());
            self.error_here(codes::MISSING_ASSIGN, message);
        }
        Some((Target::Pattern(pattern), None))
    }

    /// `nil :=`: reported and taken, so that the value is still read.
    fn eat_bad_target(&mut self) -> bool {
        if !RESERVED_WORDS.contains(self.kind()) || self.kind_at(self.position + 1) != TokenKind::Assign {
            return false;
        }
        let message = eco_format!("cannot assign to `{}`: it is a reserved word", self.text());
        self.error_here(codes::ASSIGN_RESERVED, message);
        self.bump();
        self.bump();
        true
    }

    /// Cuts off a tree that grows too high for the passes that walk it.
    pub(super) fn bounded(&mut self, expression: Expression) -> Expression {
        if self.height < MAX_HEIGHT {
            return expression;
        }
        let message = eco_format!("Expression is too long (maximum {MAX_HEIGHT} messages in a chain)");
        self.error(codes::CHAIN_TOO_LONG, expression.span, message);
        self.height = 0;
        Expression {
            kind: ExpressionKind::Error,
            span: expression.span,
        }
    }

    fn parse_cascade(&mut self) -> Expression {
        let first = self.parse_send();
        if !self.at(TokenKind::Semicolon) {
            return first;
        }
        let span = first.span;
        let (receiver, mut messages) = match first.kind {
            ExpressionKind::Send(send) => (send.receiver, vec![send.message]),
            kind @ (ExpressionKind::Parenthesized(_) | ExpressionKind::Error) => {
                (Box::new(Expression { kind, span }), Vec::new())
            }
            kind => {
                self.error_here(
                    codes::CASCADE_RECEIVER,
                    "a cascade (;) must follow a message send",
                );
                (Box::new(Expression { kind, span }), Vec::new())
            }
        };
        let mut height = self.height;
        while self.eat(TokenKind::Semicolon) {
            match self.parse_message() {
                Some(message) => {
                    height = height.max(self.height + 1);
                    messages.push(message);
                }
                None => self.error_here(codes::CASCADE_SELECTOR, "Expected message selector in cascade"),
            }
        }
        self.height = height + 1;
        let span = self.span_from(span.start);
        let kind = match (messages.pop(), messages.is_empty()) {
            (None, _) => receiver.kind,
            (Some(message), true) => ExpressionKind::Send(Send { receiver, message }),
            (Some(message), false) => {
                messages.push(message);
                ExpressionKind::Cascade { receiver, messages }
            }
        };
        self.bounded(Expression { kind, span })
    }

    /// A message without receiver, as a part of a cascade.
    fn parse_message(&mut self) -> Option<Message> {
        self.height = 0;
        match self.kind() {
            TokenKind::Lower => Some(self.parse_unary_message()),
            TokenKind::Keyword => Some(self.parse_keyword_message()),
            _ if self.at_operator() => {
                let (selector, span) = self.parse_operator();
                let argument = self.parse_unary(Operand::Argument);
                let whole = span.to(argument.span);
                Some(Message {
                    selector,
                    arguments: vec![argument],
                    parts: vec![span],
                    span: whole,
                })
            }
            _ => None,
        }
    }

    fn parse_unary_message(&mut self) -> Message {
        let token = self.bump();
        let selector = token.span().text(self.source).into();
        Message {
            selector,
            arguments: Vec::new(),
            parts: vec![token.span()],
            span: token.span(),
        }
    }

    /// A keyword send or anything below it.
    pub(super) fn parse_send(&mut self) -> Expression {
        let receiver = self.parse_binary(Operand::Receiver);
        if !self.at(TokenKind::Keyword) {
            return receiver;
        }
        let is_match = matches!(self.text(), "match:" | "matchExhaustive:")
            && self.kind_at(self.position + 1) == TokenKind::BracketOpen;
        if is_match {
            return self.parse_match(receiver);
        }
        let height = self.height;
        let message = self.parse_keyword_message();
        self.height = self.height.max(height) + 1;
        let span = receiver.span.to(message.span);
        let send = Send {
            receiver: Box::new(receiver),
            message,
        };
        self.bounded(Expression {
            kind: ExpressionKind::Send(send),
            span,
        })
    }

    fn parse_keyword_message(&mut self) -> Message {
        let start = self.token().start;
        let mut selector = EcoString::new();
        let mut arguments = Vec::new();
        let mut parts = Vec::new();
        let mut height = 0;
        let outer = self.in_builder;
        while self.at(TokenKind::Keyword) {
            let text = self.text();
            selector.push_str(text);
            parts.push(self.bump().span());
            self.in_builder = matches!(text, "methods:" | "classMethods:" | "body:");
            arguments.push(self.parse_binary(Operand::BinaryReceiver));
            height = height.max(self.height);
        }
        self.in_builder = outer;
        self.height = height;
        Message {
            selector,
            arguments,
            parts,
            span: self.span_from(start),
        }
    }

    /// Is there an operator, or something that was meant as one?
    fn at_operator(&self) -> bool {
        let kind = self.kind();
        if OPERATORS.contains(kind) {
            return true;
        }
        let is_false = FALSE_OPERATORS.contains(kind)
            || (kind == TokenKind::Bang
                && self.is_adjacent(self.position)
                && self.kind_at(self.position + 1) == TokenKind::Equal);
        is_false && !self.on_new_line()
    }

    fn parse_operator(&mut self) -> (EcoString, Span) {
        let first = self.token();
        let (text, span, is_known) = self.take_operator();
        if text == "=" {
            self.error(
                codes::EQUALS_OPERATOR,
                span,
                "'=' is not an operator; use '=:=' for value equality or '==' for loose equality",
            );
        } else if !is_known && first.kind != TokenKind::UnknownOperator {
            let message = eco_format!("unknown operator `{text}`");
            self.error(codes::UNKNOWN_OPERATOR, span, message);
        }
        (text, span)
    }

    pub(super) fn parse_binary(&mut self, operand: Operand) -> Expression {
        let first = self.parse_unary(operand);
        if !self.at_operator() {
            return first;
        }
        let mut operands = vec![(first, self.height)];
        let mut operators: Vec<PendingOperator> = Vec::new();
        while self.at_operator() {
            let (selector, span) = self.parse_operator();
            let (level, groups_right) = precedence(&selector);
            while operators
                .last()
                .is_some_and(|top| top.level > level || (top.level == level && !groups_right))
            {
                self.reduce(&mut operands, &mut operators);
            }
            operators.push(PendingOperator {
                selector,
                span,
                level,
            });
            let argument = self.parse_unary(Operand::Argument);
            operands.push((argument, self.height));
        }
        while !operators.is_empty() {
            self.reduce(&mut operands, &mut operators);
        }
        let (expression, height) = operands.pop().expect("one operand is left");
        self.height = height;
        expression
    }

    /// Applies the last operator to the last two operands.
    fn reduce(&mut self, operands: &mut Vec<(Expression, u32)>, operators: &mut Vec<PendingOperator>) {
        let (Some(operator), Some((argument, right)), Some((receiver, left))) =
            (operators.pop(), operands.pop(), operands.pop())
        else {
            return;
        };
        let span = receiver.span.to(argument.span);
        let message = Message {
            selector: operator.selector,
            span: operator.span.to(argument.span),
            arguments: vec![argument],
            parts: vec![operator.span],
        };
        self.height = left.max(right) + 1;
        let send = Send {
            receiver: Box::new(receiver),
            message,
        };
        let expression = self.bounded(Expression {
            kind: ExpressionKind::Send(send),
            span,
        });
        operands.push((expression, self.height));
    }

    pub(super) fn parse_unary(&mut self, operand: Operand) -> Expression {
        let mut expression = self.parse_primary();
        let is_super = matches!(expression.kind, ExpressionKind::Super);
        let before = self.position;
        while self.at_unary_selector() {
            let message = self.parse_unary_message();
            let span = expression.span.to(message.span);
            self.height += 1;
            let send = Send {
                receiver: Box::new(expression),
                message,
            };
            expression = self.bounded(Expression {
                kind: ExpressionKind::Send(send),
                span,
            });
        }
        if is_super && self.position == before {
            let receives = match operand {
                Operand::Receiver => self.at_operator() || self.at(TokenKind::Keyword),
                Operand::BinaryReceiver => self.at_operator(),
                Operand::Argument => false,
            };
            if !receives {
                self.error(
                    codes::LONE_SUPER,
                    expression.span,
                    "`super` must be the receiver of a message",
                );
            }
        }
        expression
    }

    fn at_unary_selector(&self) -> bool {
        let kind = self.kind();
        if kind == TokenKind::Lower {
            return !self.on_new_line() && !self.is_package_at(self.position);
        }
        RESERVED_WORDS.contains(kind) && !self.token().newline
    }
}
