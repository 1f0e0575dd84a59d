//! Literals, names, blocks and everything else without a message.

use ecow::eco_format;

use super::expression::Operand;
use super::{Lines, Parser, literal};
use crate::ast::{Block, Expression, ExpressionKind, Name, Parameter, StringPart};
use crate::codes;
use crate::span::Span;
use crate::token::{Token, TokenKind};

pub(super) const MISPLACED_PRIMITIVE: &str = "@primitive and @intrinsic must be the whole body of a method";

impl Parser<'_> {
    /// Reports that an expression is missing here.
    pub(super) fn expected_expression(&mut self) {
        let message = eco_format!("Unexpected token: expected expression, found {}", self.found());
        self.error_here(codes::EXPECTED_EXPRESSION, message);
    }

    pub(super) fn parse_primary(&mut self) -> Expression {
        self.height = 0;
        let token = self.token();
        let text = self.text();
        let kind = match self.kind() {
            TokenKind::Integer => self.take(ExpressionKind::Integer(literal::integer_value(text))),
            TokenKind::Float => self.take(ExpressionKind::Float(literal::float_value(text))),
            TokenKind::Character => self.take(ExpressionKind::Character(literal::character_value(text))),
            TokenKind::Symbol => self.take(ExpressionKind::Symbol(literal::symbol_text(text))),
            TokenKind::NilWord => self.take(ExpressionKind::Nil),
            TokenKind::TrueWord => self.take(ExpressionKind::True),
            TokenKind::FalseWord => self.take(ExpressionKind::False),
            TokenKind::SuperWord => self.take(ExpressionKind::Super),
            TokenKind::String => {
                let text = self.string_text(token);
                let parts = if text.is_empty() {
                    Vec::new()
                } else {
                    vec![StringPart::Text(text)]
                };
                self.take(ExpressionKind::String(parts))
            }
            TokenKind::StringStart => self.parse_interpolated(),
            TokenKind::SelfWord => {
                let mut expression = self.take_expression(ExpressionKind::SelfReference, token);
                if self.is_field_at(self.position - 1) {
                    self.bump();
                    let field = self.bump();
                    let kind = ExpressionKind::Field(self.name_from(field));
                    expression = Expression {
                        kind,
                        span: token.span().to(field.span()),
                    };
                }
                return self.parse_foreign_fields(expression);
            }
            TokenKind::Lower | TokenKind::Upper => return self.parse_name(),
            TokenKind::ParenOpen => self.parse_parenthesized(),
            TokenKind::ListOpen => self.parse_list(),
            TokenKind::ArrayOpen => self.parse_array(),
            TokenKind::MapOpen => self.parse_map(),
            TokenKind::BracketOpen => self.parse_block(),
            TokenKind::BraceOpen => self.parse_tuple_literal(),
            TokenKind::Primitive | TokenKind::Intrinsic => self.parse_primitive(),
            // Reported by the lexer.
            TokenKind::Error => self.take(ExpressionKind::Error),
            _ => {
                self.expected_expression();
                let at = self.here().start;
                return Expression {
                    kind: ExpressionKind::Error,
                    span: Span::new(at, at),
                };
            }
        };
        Expression {
            kind,
            span: self.span_from(token.start),
        }
    }

    fn take(&mut self, kind: ExpressionKind) -> ExpressionKind {
        self.bump();
        kind
    }

    fn take_expression(&mut self, kind: ExpressionKind, token: Token) -> Expression {
        self.bump();
        Expression {
            kind,
            span: token.span(),
        }
    }

    /// Is the token at `index` followed by `.name`, all touching?
    pub(super) fn is_field_at(&self, index: usize) -> bool {
        self.kind_at(index + 1) == TokenKind::Dot
            && self.is_adjacent(index)
            && self.is_adjacent(index + 1)
            && matches!(self.kind_at(index + 2), TokenKind::Lower | TokenKind::Upper)
    }

    fn parse_name(&mut self) -> Expression {
        let token = self.token();
        let expression = if let Some(class) = self.parse_class_ref() {
            let span = class.span;
            Expression {
                kind: ExpressionKind::ClassName(class),
                span,
            }
        } else {
            let text = self.text();
            if text == "_" && self.in_method {
                self.error_here(codes::WILDCARD_READ, "`_` is a wildcard and cannot be read");
            }
            self.take_expression(ExpressionKind::Variable(text.into()), token)
        };
        self.parse_foreign_fields(expression)
    }

    /// `object.field`, kept for the message of a later pass.
    fn parse_foreign_fields(&mut self, mut object: Expression) -> Expression {
        while self.is_field_at(self.position - 1) {
            self.bump();
            let field = self.bump();
            let span = object.span.to(field.span());
            self.height += 1;
            let kind = ExpressionKind::ForeignField {
                object: Box::new(object),
                field: self.name_from(field),
            };
            object = self.bounded(Expression { kind, span });
        }
        object
    }

    /// Reads a bracketed construct; an error when it nests too deep.
    fn parse_nested(
        &mut self,
        lines: Lines,
        read: impl FnOnce(&mut Self) -> ExpressionKind,
    ) -> ExpressionKind {
        let kind = self.nested(lines, read);
        self.height += 1;
        kind.unwrap_or_else(|| {
            self.too_deep();
            self.height = 0;
            ExpressionKind::Error
        })
    }

    fn parse_parenthesized(&mut self) -> ExpressionKind {
        self.parse_nested(Lines::Ignored, |parser| {
            let opener = parser.bump();
            let inner = parser.parse_expression();
            parser.close(opener, TokenKind::ParenClose, "Expected ')' to close parentheses");
            ExpressionKind::Parenthesized(Box::new(inner))
        })
    }

    fn parse_list(&mut self) -> ExpressionKind {
        self.parse_nested(Lines::Ignored, |parser| {
            let opener = parser.bump();
            let (elements, tail) = parser.parse_elements(TokenKind::ParenClose);
            parser.close(
                opener,
                TokenKind::ParenClose,
                "Expected ')' to close list literal",
            );
            ExpressionKind::List {
                elements,
                tail: tail.map(Box::new),
            }
        })
    }

    fn parse_array(&mut self) -> ExpressionKind {
        self.parse_nested(Lines::Ignored, |parser| {
            let opener = parser.bump();
            let (elements, tail) = parser.parse_elements(TokenKind::BracketClose);
            if let Some(tail) = tail {
                let message = "an array literal has no tail; use #( | ) for a list";
                parser.error(codes::COLLECTION_ELEMENT, tail.span, message);
            }
            parser.close(
                opener,
                TokenKind::BracketClose,
                "Expected ']' to close array literal",
            );
            ExpressionKind::Array(elements)
        })
    }

    /// Elements up to the closing bracket, and the tail after `|`.
    fn parse_elements(&mut self, closer: TokenKind) -> (Vec<Expression>, Option<Expression>) {
        let mut elements = Vec::new();
        let mut tail = None;
        let mut height = 0;
        while !self.at(closer) && !self.at(TokenKind::Eof) {
            elements.push(self.parse_send());
            height = height.max(self.height);
            if self.eat(TokenKind::Comma) && !self.at(TokenKind::Pipe) {
                continue;
            }
            if self.eat(TokenKind::Pipe) {
                tail = Some(self.parse_unary(Operand::Argument));
                height = height.max(self.height);
            }
            break;
        }
        self.height = height;
        (elements, tail)
    }

    fn parse_map(&mut self) -> ExpressionKind {
        self.parse_nested(Lines::Ignored, |parser| {
            let opener = parser.bump();
            let mut pairs = Vec::new();
            let mut height = 0;
            while !parser.at(TokenKind::BraceClose) && !parser.at(TokenKind::Eof) {
                let key = parser.parse_unary(Operand::Argument);
                height = height.max(parser.height);
                if let ExpressionKind::Variable(word) = &key.kind {
                    let message =
                        eco_format!("bare word '{word}' is not a valid map key; did you mean '#{word}'?");
                    parser.error(codes::BARE_MAP_KEY, key.span, message);
                }
                if !parser.eat(TokenKind::FatArrow) {
                    parser.error_here(codes::MAP_ARROW, "Expected '=>' after map key");
                    parser.resume_before_partner(opener);
                    break;
                }
                let value = parser.parse_send();
                height = height.max(parser.height);
                pairs.push((key, value));
                if !parser.eat(TokenKind::Comma) {
                    break;
                }
            }
            parser.height = height;
            parser.close(opener, TokenKind::BraceClose, "Expected '}' to close map literal");
            ExpressionKind::Dictionary(pairs)
        })
    }

    /// Moves to the closing bracket of `opener`, if it is in this region.
    fn resume_before_partner(&mut self, opener: Token) {
        let partner = opener.partner as usize;
        if opener.has_partner() && partner < self.end && partner >= self.position {
            self.position = partner;
        } else {
            self.last_error = Some(self.here().start);
        }
    }

    fn parse_tuple_literal(&mut self) -> ExpressionKind {
        let opener = self.token();
        self.error_here(
            codes::TUPLE_LITERAL,
            "Tuple literals are not valid expressions; use {a, b} := expr for destructuring",
        );
        self.skip_group();
        if !opener.has_partner() {
            self.last_error = Some(self.here().start);
        }
        ExpressionKind::Error
    }

    pub(super) fn parse_block(&mut self) -> ExpressionKind {
        self.parse_nested(Lines::Significant, |parser| {
            let opener = parser.bump();
            let in_builder = std::mem::replace(&mut parser.in_builder, false);
            let parameters = parser.parse_block_parameters(in_builder);
            let body_start = parser.previous_end();
            let body = parser.parse_statements();
            let body_end = if parser.position < parser.end {
                parser.token().start
            } else {
                parser.previous_end()
            };
            let body_span = Span::new(body_start, body_end.max(body_start));
            parser.close(opener, TokenKind::BracketClose, "Expected ']' to close block");
            parser.in_builder = in_builder;
            ExpressionKind::Block(Block {
                parameters,
                body,
                body_span,
            })
        })
    }

    /// `:a :b :: T |`.
    fn parse_block_parameters(&mut self, in_builder: bool) -> Vec<Parameter> {
        let mut parameters = Vec::new();
        while self.eat(TokenKind::Colon) {
            let is_self = parameters.is_empty() && in_builder && self.at(TokenKind::SelfWord);
            let parameter = if is_self || self.at(TokenKind::Lower) {
                let token = self.bump();
                let annotation = if self.at(TokenKind::DoubleColon) || self.is_single_colon_type() {
                    self.eat_double_colon();
                    Some(self.parse_simple_type())
                } else {
                    None
                };
                Parameter {
                    name: self.name_from(token),
                    annotation,
                }
            } else {
                self.parse_parameter("parameter")
            };
            parameters.push(parameter);
        }
        if !self.eat(TokenKind::Pipe) && !parameters.is_empty() {
            self.error_here(codes::BLOCK_PARAMETERS, "Expected '|' after block parameters");
        }
        parameters
    }

    /// `[:x : Integer | …]`, as opposed to the next parameter.
    fn is_single_colon_type(&self) -> bool {
        self.at(TokenKind::Colon)
            && matches!(
                self.kind_at(self.position + 1),
                TokenKind::Upper | TokenKind::ParenOpen
            )
    }

    fn parse_interpolated(&mut self) -> ExpressionKind {
        self.parse_nested(Lines::Ignored, |parser| {
            let mut parts = Vec::new();
            let mut height = 0;
            let mut piece = parser.bump();
            loop {
                let text = parser.string_text(piece);
                if !text.is_empty() {
                    parts.push(StringPart::Text(text));
                }
                if piece.kind == TokenKind::StringEnd {
                    break;
                }
                if matches!(parser.kind(), TokenKind::StringMiddle | TokenKind::StringEnd) {
                    let message = "empty interpolation {} is not allowed, use \\{ for literal brace";
                    parser.error(codes::EMPTY_INTERPOLATION, piece.span(), message);
                } else {
                    let expression = parser.parse_send();
                    height = height.max(parser.height);
                    parts.push(StringPart::Interpolation(expression));
                }
                if !parser.resume_string(piece) {
                    break;
                }
                piece = parser.bump();
            }
            parser.height = height;
            ExpressionKind::String(parts)
        })
    }

    /// Moves to the piece behind an interpolation; false when the string has none.
    fn resume_string(&mut self, piece: Token) -> bool {
        if matches!(self.kind(), TokenKind::StringMiddle | TokenKind::StringEnd) {
            return true;
        }
        if self.at(TokenKind::Bang) {
            self.error_here(codes::MISPLACED_CAST, super::statement::MISPLACED_CAST);
        } else {
            let message = eco_format!("Expected '}}' to close interpolation, found {}", self.found());
            self.error_here(codes::UNCLOSED_BRACKET, message);
        }
        let partner = piece.partner as usize;
        let has_next = piece.has_partner() && partner < self.end && partner >= self.position;
        if has_next {
            self.position = partner;
        }
        has_next
    }

    fn parse_primitive(&mut self) -> ExpressionKind {
        let is_alone = self.position == self.primitive_at;
        let is_intrinsic = self.at(TokenKind::Intrinsic);
        let directive = self.bump();
        if !is_alone {
            self.error(codes::MISPLACED_PRIMITIVE, directive.span(), MISPLACED_PRIMITIVE);
        }
        let mut name = None;
        if !self.token().newline {
            if self.at(TokenKind::String) {
                let token = self.bump();
                name = Some(self.string_text(token));
            } else if self.at(TokenKind::Lower) {
                name = Some(self.text().into());
                self.bump();
            }
        }
        if is_intrinsic && name.is_none() {
            self.error(
                codes::BARE_INTRINSIC,
                directive.span(),
                "@intrinsic needs the name of an intrinsic",
            );
        }
        ExpressionKind::Primitive { is_intrinsic, name }
    }

    /// A placeholder where a name is missing.
    pub(super) fn missing_name(&self) -> Name {
        let at = self.here().start;
        Name {
            text: ecow::EcoString::new(),
            span: Span::new(at, at),
        }
    }
}
