//! Protocols and their signatures.

use ecow::{EcoString, eco_format};

use super::Parser;
use crate::ast::{Expect, Name, Protocol, Signature};
use crate::codes;
use crate::token::TokenKind;

impl Parser<'_> {
    /// `Protocol define:`.
    pub(super) fn is_protocol_ahead(&self) -> bool {
        self.at(TokenKind::Upper)
            && self.text() == "Protocol"
            && self.is_keyword_at(self.position + 1, "define:")
    }

    pub(super) fn parse_protocol(&mut self, doc: Option<EcoString>, expect: Vec<Expect>) -> Protocol {
        let first = self.bump();
        self.bump();
        let name = if self.at(TokenKind::Upper) {
            let token = self.bump();
            self.name_from(token)
        } else {
            let message = eco_format!("Expected a protocol name after 'define:', found {}", self.found());
            self.error_here(codes::PROTOCOL_HEADER, message);
            Name {
                text: EcoString::new(),
                span: self.span_from(self.previous_end()),
            }
        };
        let type_parameters = self.parse_type_parameters();
        let mut extending = None;
        if self.is_keyword_at(self.position, "extending:") {
            self.bump();
            if self.at(TokenKind::Upper) {
                let token = self.bump();
                extending = Some(self.name_from(token));
            } else {
                let message = eco_format!(
                    "Expected a protocol name after 'extending:', found {}",
                    self.found()
                );
                self.error_here(codes::PROTOCOL_HEADER, message);
            }
        }
        if !self.token().newline && !self.at(TokenKind::Eof) {
            let message = self.statement_end_message();
            self.error_here(codes::EXPECTED_STATEMENT_END, message);
            self.skip_line();
        }
        let signatures = self.parse_signatures(first.column);
        let span = self.span_from(first.start);
        Protocol {
            doc,
            expect,
            name,
            type_parameters,
            extending,
            signatures,
            span,
        }
    }

    fn parse_signatures(&mut self, column: u32) -> Vec<Signature> {
        let mut signatures = Vec::new();
        while !self.at(TokenKind::Eof) && self.token().column > column {
            let before = self.position;
            if self.eat(TokenKind::Dot) {
                continue;
            }
            self.in_signature = true;
            if let Some(signature) = self.parse_signature() {
                signatures.push(signature);
            }
            self.in_signature = false;
            if self.position == before {
                self.bump();
            }
        }
        signatures
    }

    fn parse_signature(&mut self) -> Option<Signature> {
        let first = self.token();
        let region = self.region_end(self.position, first.column, self.end);
        let is_class =
            self.is_word_at(self.position, "class") && !self.token_at(self.position + 1).newline && {
                let next = self.kind_at(self.position + 1);
                let starts_head = matches!(next, TokenKind::Lower | TokenKind::Keyword)
                    || (crate::token::OPERATORS.contains(next)
                        && self.kind_at(self.position + 2) == TokenKind::Lower);
                starts_head && next != TokenKind::Eof
            };
        let head_at = self.position + usize::from(is_class);
        if self.head_shape(head_at, first.column) == super::class::Shape::Other {
            let message = eco_format!("Expected a method signature, found {}", self.found());
            self.error_here(codes::PROTOCOL_SIGNATURE, message);
            self.position = region;
            return None;
        }
        let doc = self.doc_before(self.position);
        self.position = head_at;
        let head = self.parse_head();
        let result = self.parse_result();
        let span = self.span_from(first.start);
        while self.at(TokenKind::Dot) && !self.token().newline {
            self.bump();
        }
        if self.at(TokenKind::FatArrow) {
            self.error_here(
                codes::SIGNATURE_BODY,
                "Protocol method signatures cannot have implementations ('=>')",
            );
            self.position = region;
        } else if !self.token().newline && !self.at(TokenKind::Eof) {
            let message = self.statement_end_message();
            self.error_here(codes::EXPECTED_STATEMENT_END, message);
            self.skip_line();
        }
        Some(Signature {
            doc,
            is_class,
            head,
            result,
            span,
        })
    }

    fn skip_line(&mut self) {
        while !self.at(TokenKind::Eof) && !self.token().newline {
            self.bump();
        }
    }
}
