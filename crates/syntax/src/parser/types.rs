//! Type annotations.

use ecow::eco_format;

use super::{Lines, Parser};
use crate::ast::{Type, TypeKind, TypeParameter};
use crate::codes;
use crate::span::Span;
use crate::token::TokenKind;

impl Parser<'_> {
    /// `A & B | C`.
    pub(super) fn parse_type(&mut self) -> Type {
        let first = self.parse_type_chain();
        if !self.at(TokenKind::Pipe) {
            return first;
        }
        let start = first.span.start;
        let mut members = vec![first];
        while self.eat(TokenKind::Pipe) {
            members.push(self.parse_type_chain());
        }
        Type {
            kind: TypeKind::Union(members),
            span: self.span_from(start),
        }
    }

    fn parse_type_chain(&mut self) -> Type {
        let first = self.parse_simple_type();
        let operator = match self.kind() {
            TokenKind::DoubleBackslash => TokenKind::Backslash,
            kind => kind,
        };
        if !matches!(operator, TokenKind::Ampersand | TokenKind::Backslash) {
            return first;
        }
        let start = first.span.start;
        let mut members = vec![first];
        let mut is_mixed = false;
        loop {
            match self.kind() {
                TokenKind::DoubleBackslash => {
                    self.error_here(
                        codes::DOUBLE_BACKSLASH,
                        "`\\\\` is not a type operator; use a single `\\` for a difference",
                    );
                }
                TokenKind::Ampersand | TokenKind::Backslash if self.kind() != operator => {
                    self.error_here(
                        codes::MIXED_TYPE_OPERATORS,
                        "Cannot mix `&` and `\\` in a type annotation without parentheses",
                    );
                    is_mixed = true;
                }
                TokenKind::Ampersand | TokenKind::Backslash => {}
                _ => break,
            }
            self.bump();
            members.push(self.parse_simple_type());
        }
        let span = self.span_from(start);
        let kind = if is_mixed {
            TypeKind::Error
        } else if operator == TokenKind::Ampersand {
            TypeKind::Intersection(members)
        } else {
            TypeKind::Difference(members)
        };
        Type { kind, span }
    }

    /// One type without operators; anything in parentheses.
    pub(super) fn parse_simple_type(&mut self) -> Type {
        let first = self.token();
        let kind = match self.kind() {
            TokenKind::ParenOpen => return self.parse_grouped_type(),
            TokenKind::Symbol => {
                self.bump();
                TypeKind::Symbol(super::literal::symbol_text(first.span().text(self.source)))
            }
            TokenKind::NilWord => {
                self.bump();
                TypeKind::Nil
            }
            TokenKind::TrueWord => {
                self.bump();
                TypeKind::True
            }
            TokenKind::FalseWord => {
                self.bump();
                TypeKind::False
            }
            _ => self.parse_named_type(),
        };
        Type {
            kind,
            span: self.span_from(first.start),
        }
    }

    fn parse_grouped_type(&mut self) -> Type {
        let opener = self.token();
        let inner = self.nested(Lines::Ignored, |parser| {
            parser.bump();
            let inner = parser.parse_type();
            parser.close(opener, TokenKind::ParenClose, "Expected ')' to close parentheses");
            inner
        });
        let Some(inner) = inner else {
            self.too_deep();
            return Type {
                kind: TypeKind::Error,
                span: self.span_from(opener.start),
            };
        };
        Type {
            kind: inner.kind,
            span: self.span_from(opener.start),
        }
    }

    fn parse_named_type(&mut self) -> TypeKind {
        let is_self = self.at(TokenKind::Upper) && self.text() == "Self";
        let Some(class) = self.parse_class_ref() else {
            let message = eco_format!("Expected a type, found {}", self.found());
            self.error_here(codes::EXPECTED_TYPE, message);
            return TypeKind::Error;
        };
        let names_class = !self.token().newline && self.is_word_at(self.position, "class");
        if names_class {
            self.bump();
        }
        match (is_self, names_class) {
            (true, true) => TypeKind::SelfClass,
            (true, false) => TypeKind::SelfType,
            (false, true) => TypeKind::ClassOf(class),
            (false, false) => TypeKind::Named {
                class,
                arguments: self.parse_type_arguments(),
            },
        }
    }

    /// `(A, B)` on the line of the name before it.
    pub(super) fn parse_type_arguments(&mut self) -> Vec<Type> {
        let opener = self.token();
        if !self.at(TokenKind::ParenOpen) || self.on_new_line() {
            return Vec::new();
        }
        let arguments = self.nested(Lines::Ignored, |parser| {
            parser.bump();
            let mut arguments = vec![parser.parse_type()];
            while parser.eat(TokenKind::Comma) {
                arguments.push(parser.parse_type());
            }
            parser.close(opener, TokenKind::ParenClose, "Expected ')' to close parentheses");
            arguments
        });
        arguments.unwrap_or_else(|| {
            self.too_deep();
            Vec::new()
        })
    }

    /// `(A, B :: Bound)` after the name of a class or protocol, on its line.
    pub(super) fn parse_type_parameters(&mut self) -> Vec<TypeParameter> {
        let opener = self.token();
        let mut parameters = Vec::new();
        if !self.at(TokenKind::ParenOpen) || self.token().newline {
            return parameters;
        }
        self.bump();
        loop {
            if !self.at(TokenKind::Upper) {
                let message = eco_format!("Expected a type parameter name, found {}", self.found());
                self.error_here(codes::EXPECTED_TYPE, message);
                break;
            }
            let name = self.bump();
            let mut bound = None;
            if self.eat_double_colon() {
                if self.at(TokenKind::Upper) {
                    let token = self.bump();
                    bound = Some(self.name_from(token));
                } else {
                    let message = eco_format!("Expected a protocol name, found {}", self.found());
                    self.error_here(codes::EXPECTED_TYPE, message);
                }
            }
            parameters.push(TypeParameter {
                name: self.name_from(name),
                bound,
            });
            if !self.eat(TokenKind::Comma) {
                break;
            }
        }
        self.close(opener, TokenKind::ParenClose, "Expected ')' to close parentheses");
        parameters
    }

    /// Takes `::`; a single `:` is reported and taken for it.
    pub(super) fn eat_double_colon(&mut self) -> bool {
        if self.at(TokenKind::Colon) {
            let span = self.here();
            self.single_colon(span);
            self.bump();
            return true;
        }
        self.eat(TokenKind::DoubleColon)
    }

    pub(super) fn single_colon(&mut self, span: Span) {
        self.error(
            codes::SINGLE_COLON,
            span,
            "Use `::` for type annotations, not `:`",
        );
    }
}
