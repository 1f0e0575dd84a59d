//! Match arms and patterns.

use ecow::eco_format;

use super::{Lines, Parser, literal};
use crate::ast::{
    Arm, Endian, Expression, ExpressionKind, Name, Pattern, PatternKey, PatternKind, Segment, SegmentKind,
    SegmentSize, Target,
};
use crate::codes;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::token::{CLOSERS, CONTINUES_LINE, TokenKind};

impl Parser<'_> {
    /// `match: [arms]` behind its receiver.
    pub(super) fn parse_match(&mut self, value: Expression) -> Expression {
        let receiver_height = self.height;
        let exhaustive = self.text() == "matchExhaustive:";
        self.bump();
        let arms = self.nested(Lines::Significant, Self::parse_arms);
        let Some(arms) = arms else {
            self.too_deep();
            let span = self.span_from(value.span.start);
            return Expression {
                kind: ExpressionKind::Error,
                span,
            };
        };
        self.height = self.height.max(receiver_height) + 1;
        let span = self.span_from(value.span.start);
        let kind = ExpressionKind::Match {
            value: Box::new(value),
            arms,
            exhaustive,
        };
        self.bounded(Expression { kind, span })
    }

    fn parse_arms(&mut self) -> Vec<Arm> {
        let opener = self.bump();
        let mut arms = Vec::new();
        let mut height = 0;
        loop {
            let before = self.position;
            while self.eat(TokenKind::Semicolon) {}
            if self.at(TokenKind::Eof) {
                break;
            }
            if CLOSERS.contains(self.kind()) && (self.at(TokenKind::BracketClose) || self.is_awaited_closer())
            {
                break;
            }
            if let Some(arm) = self.parse_arm() {
                arms.push(arm);
            }
            height = height.max(self.height);
            self.end_arm();
            if self.position == before {
                self.bump();
            }
        }
        if arms.is_empty() && self.at(TokenKind::BracketClose) && opener.partner as usize == self.position {
            let message = eco_format!("Expected a pattern, found {}", self.found());
            self.error_here(codes::EXPECTED_PATTERN, message);
        }
        self.height = height;
        self.close(opener, TokenKind::BracketClose, "Expected ']' to close block");
        arms
    }

    /// An arm ends at `;`, a new line or the closing bracket.
    fn end_arm(&mut self) {
        let kind = self.kind();
        if matches!(kind, TokenKind::Semicolon | TokenKind::Eof)
            || CLOSERS.contains(kind)
            || self.on_new_line()
        {
            return;
        }
        if kind == TokenKind::Bang {
            self.error_here(codes::MISPLACED_CAST, super::statement::MISPLACED_CAST);
        } else {
            let message = self.statement_end_message();
            self.error_here(codes::EXPECTED_STATEMENT_END, message);
        }
        self.skip_arm();
    }

    fn skip_arm(&mut self) {
        let start = self.position;
        while self.position < self.end {
            let token = self.token();
            let opens_line = token.newline && self.position > start && !CONTINUES_LINE.contains(token.kind);
            let is_closer = CLOSERS.contains(token.kind) && self.is_awaited_closer();
            if token.kind == TokenKind::Semicolon || opens_line || is_closer {
                return;
            }
            self.skip_group();
        }
    }

    fn parse_arm(&mut self) -> Option<Arm> {
        let start = self.token().start;
        self.height = 0;
        let pattern = self.parse_pattern();
        if matches!(pattern.kind, PatternKind::Error) && !self.at(TokenKind::Arrow) {
            self.skip_to_arrow();
        }
        let mut guard = None;
        let mut height = 0;
        if self.is_keyword_at(self.position, "when:") {
            self.bump();
            if self.at(TokenKind::BracketOpen) {
                guard = self.parse_guard();
                height = self.height;
            } else {
                self.error_here(codes::GUARD_BRACKET, "Expected '[' after when:");
            }
        }
        if !self.eat(TokenKind::Arrow) {
            self.error_here(codes::ARM_ARROW, "Expected '->' after pattern in match arm");
            self.skip_arm();
            return None;
        }
        let body = self.parse_arm_body();
        self.height = self.height.max(height);
        Some(Arm {
            pattern,
            guard,
            body,
            span: self.span_from(start),
        })
    }

    /// After a broken pattern: to the arrow of the same line.
    fn skip_to_arrow(&mut self) {
        while self.position < self.end && !self.at(TokenKind::Arrow) {
            let token = self.token();
            if token.kind == TokenKind::Semicolon
                || token.newline
                || (CLOSERS.contains(token.kind) && self.is_awaited_closer())
            {
                return;
            }
            self.skip_group();
        }
    }

    fn parse_guard(&mut self) -> Option<Expression> {
        let guard = self.nested(Lines::Significant, |parser| {
            let opener = parser.bump();
            let guard = parser.parse_expression();
            while parser.eat(TokenKind::Dot) {}
            parser.close(opener, TokenKind::BracketClose, "Expected ']' to close block");
            guard
        });
        if guard.is_none() {
            self.too_deep();
        }
        guard
    }

    fn parse_arm_body(&mut self) -> Expression {
        let first = self.token();
        if self.eat(TokenKind::Caret) {
            let value = self.parse_send();
            self.height += 1;
            let span = self.span_from(first.start);
            return Expression {
                kind: ExpressionKind::Return(Box::new(value)),
                span,
            };
        }
        let at = self.position;
        let target = if self.at(TokenKind::Lower) && self.kind_at(at + 1) == TokenKind::Assign {
            self.bump();
            Some(Target::Variable(self.name_from(first)))
        } else if self.at(TokenKind::SelfWord)
            && self.is_field_at(at)
            && self.kind_at(at + 3) == TokenKind::Assign
        {
            self.bump();
            self.bump();
            let field = self.bump();
            Some(Target::Field(self.name_from(field)))
        } else {
            None
        };
        let Some(target) = target else {
            return self.parse_send();
        };
        self.bump();
        let value = self.parse_send();
        self.height += 1;
        let kind = ExpressionKind::Assign {
            target,
            annotation: None,
            value: Box::new(value),
        };
        Expression {
            kind,
            span: self.span_from(first.start),
        }
    }

    pub(super) fn parse_pattern(&mut self) -> Pattern {
        let first = self.token();
        let text = self.text();
        let kind = match self.kind() {
            TokenKind::Integer => self.take_pattern(PatternKind::Integer(literal::integer_value(text))),
            TokenKind::Float => self.take_pattern(PatternKind::Float(literal::float_value(text))),
            TokenKind::Character => self.take_pattern(PatternKind::Character(literal::character_value(text))),
            TokenKind::Symbol => self.take_pattern(PatternKind::Symbol(literal::symbol_text(text))),
            TokenKind::String => {
                let text = self.string_text(first);
                self.take_pattern(PatternKind::String(text))
            }
            TokenKind::NilWord => self.take_singleton(PatternKind::Nil),
            TokenKind::TrueWord => self.take_singleton(PatternKind::True),
            TokenKind::FalseWord => self.take_singleton(PatternKind::False),
            TokenKind::Lower if !self.is_package_at(self.position) => self.parse_name_pattern(),
            TokenKind::Lower | TokenKind::Upper => self.parse_class_pattern(),
            TokenKind::BraceOpen => self.parse_tuple_pattern(),
            TokenKind::ArrayOpen => self.parse_sequence_pattern(TokenKind::BracketClose),
            TokenKind::ListOpen => self.parse_sequence_pattern(TokenKind::ParenClose),
            TokenKind::MapOpen => self.parse_map_pattern(),
            TokenKind::ShiftLeft => self.parse_binary_pattern(),
            TokenKind::StringStart => {
                self.error_here(
                    codes::EXPECTED_PATTERN,
                    "a string pattern cannot have interpolations",
                );
                self.skip_group();
                PatternKind::Error
            }
            _ => {
                let message = eco_format!("Expected a pattern, found {}", self.found());
                self.error_here(codes::EXPECTED_PATTERN, message);
                PatternKind::Error
            }
        };
        Pattern {
            kind,
            span: self.span_from(first.start),
        }
    }

    fn take_pattern(&mut self, kind: PatternKind) -> PatternKind {
        self.bump();
        kind
    }

    /// `nil`, `true` or `false`, which take no type.
    fn take_singleton(&mut self, kind: PatternKind) -> PatternKind {
        let name = self.text();
        self.bump();
        if self.at(TokenKind::DoubleColon) {
            let message = eco_format!("`{name}` cannot have a type in a pattern");
            self.error_here(codes::EXPECTED_PATTERN, message);
            self.bump();
            self.parse_type();
        }
        kind
    }

    fn parse_name_pattern(&mut self) -> PatternKind {
        let token = self.bump();
        let name = self.name_from(token);
        if !self.at(TokenKind::DoubleColon) && !self.at(TokenKind::Colon) {
            return if name.text == "_" {
                PatternKind::Wildcard
            } else {
                PatternKind::Variable(name.text)
            };
        }
        self.eat_double_colon();
        let Some(class) = self.parse_class_ref() else {
            let message = eco_format!("Expected a class name in a type pattern, found {}", self.found());
            self.error_here(codes::EXPECTED_PATTERN, message);
            return PatternKind::Error;
        };
        if self.at(TokenKind::ParenOpen) && !self.on_new_line() {
            self.error_here(
                codes::GENERIC_PATTERN,
                "generic type arguments are not supported in a type pattern",
            );
            self.skip_group();
        }
        PatternKind::Typed { name, class }
    }

    /// `Result ok: p`; every other class name is an error.
    fn parse_class_pattern(&mut self) -> PatternKind {
        let start = self.token().start;
        let Some(class) = self.parse_class_ref() else {
            self.bump();
            return PatternKind::Error;
        };
        let keyword = self.token();
        let is_constructor = self.at(TokenKind::Keyword) && self.text() != "when:";
        if !is_constructor {
            let text = class.span.text(self.source);
            let message =
                eco_format!("a class name is not a pattern; use `x :: {text}` to match its instances");
            self.error(codes::CLASS_PATTERN, class.span, message);
            return PatternKind::Error;
        }
        let word = self.text();
        self.bump();
        let payload = self.nested(self.lines, Self::parse_pattern);
        let Some(payload) = payload else {
            self.too_deep();
            return PatternKind::Error;
        };
        match (class.name.text.as_str(), word) {
            ("Result", "ok:") if class.package.is_none() => PatternKind::ResultOk(Box::new(payload)),
            ("Result", "error:") if class.package.is_none() => PatternKind::ResultError(Box::new(payload)),
            _ => {
                self.error(
                    codes::CLASS_PATTERN,
                    Span::new(start, keyword.end),
                    "constructor patterns exist for `Result ok:` and `Result error:` only",
                );
                PatternKind::Error
            }
        }
    }

    fn parse_nested_pattern(&mut self, read: impl FnOnce(&mut Self) -> PatternKind) -> PatternKind {
        let kind = self.nested(Lines::Ignored, read);
        kind.unwrap_or_else(|| {
            self.too_deep();
            PatternKind::Error
        })
    }

    fn parse_tuple_pattern(&mut self) -> PatternKind {
        self.parse_nested_pattern(|parser| {
            let opener = parser.bump();
            let mut elements = Vec::new();
            if !parser.at(TokenKind::BraceClose) {
                elements.push(parser.parse_pattern());
                while parser.eat(TokenKind::Comma) {
                    elements.push(parser.parse_pattern());
                }
            }
            parser.close(
                opener,
                TokenKind::BraceClose,
                "Expected '}' to close tuple pattern",
            );
            PatternKind::Tuple(elements)
        })
    }

    /// `#[p, ...rest]` and `#(p, ...rest)`.
    fn parse_sequence_pattern(&mut self, closer: TokenKind) -> PatternKind {
        self.parse_nested_pattern(|parser| {
            let opener = parser.bump();
            let mut elements = Vec::new();
            let mut rest: Option<Name> = None;
            while !parser.at(closer) && !parser.at(TokenKind::Eof) {
                if parser.at(TokenKind::Ellipsis) {
                    rest = Some(parser.parse_rest());
                } else {
                    elements.push(parser.parse_pattern());
                }
                if parser.at(TokenKind::Pipe) && closer == TokenKind::ParenClose {
                    let before: Vec<&str> = elements
                        .iter()
                        .map(|element| element.span.text(parser.source))
                        .collect();
                    let before = before.join(", ");
                    let tail = parser.text_at(parser.position + 1);
                    let message =
                        eco_format!("`|` is not allowed in a list pattern; use `#({before}, ...{tail})`");
                    parser.error_here(codes::CONS_PATTERN, message);
                    parser.resume_before(opener.partner as usize);
                    break;
                }
                let is_last = !parser.eat(TokenKind::Comma);
                if rest.is_some() && !parser.at(closer) && !is_last {
                    parser.error_here(
                        codes::REST_NOT_LAST,
                        "Rest pattern `...` must be the last element",
                    );
                    parser.resume_before(opener.partner as usize);
                    break;
                }
                if is_last {
                    break;
                }
            }
            if closer == TokenKind::ParenClose {
                parser.close(opener, closer, "Expected ')' to close list pattern");
                PatternKind::List { elements, rest }
            } else {
                parser.close(opener, closer, "Expected ']' to close array pattern");
                PatternKind::Array { elements, rest }
            }
        })
    }

    fn resume_before(&mut self, partner: usize) {
        if partner < self.end && partner >= self.position {
            self.position = partner;
        }
    }

    /// `...name`.
    fn parse_rest(&mut self) -> Name {
        self.bump();
        if self.at(TokenKind::Lower) {
            let token = self.bump();
            return self.name_from(token);
        }
        let message = eco_format!("Expected a name after `...`, found {}", self.found());
        self.error_here(codes::EXPECTED_PATTERN, message);
        self.missing_name()
    }

    fn parse_map_pattern(&mut self) -> PatternKind {
        self.parse_nested_pattern(|parser| {
            let opener = parser.bump();
            let mut pairs = Vec::new();
            while !parser.at(TokenKind::BraceClose) && !parser.at(TokenKind::Eof) {
                let token = parser.token();
                let key = match parser.kind() {
                    TokenKind::Symbol => PatternKey::Symbol(literal::symbol_text(parser.text())),
                    TokenKind::String => PatternKey::String(parser.string_text(token)),
                    TokenKind::Lower => {
                        let word = parser.text();
                        let message =
                            eco_format!("bare word '{word}' is not a valid map key; did you mean '#{word}'?");
                        parser.error_here(codes::BARE_MAP_KEY, message);
                        PatternKey::Symbol(word.into())
                    }
                    _ => {
                        let message = eco_format!(
                            "Expected a symbol or string as key of a map pattern, found {}",
                            parser.found()
                        );
                        parser.error_here(codes::EXPECTED_PATTERN, message);
                        parser.resume_before(opener.partner as usize);
                        break;
                    }
                };
                parser.bump();
                if !parser.eat(TokenKind::FatArrow) {
                    parser.error_here(codes::MAP_ARROW, "Expected '=>' after map key");
                    parser.resume_before(opener.partner as usize);
                    break;
                }
                pairs.push((key, parser.parse_pattern()));
                if !parser.eat(TokenKind::Comma) {
                    break;
                }
            }
            parser.close(opener, TokenKind::BraceClose, "Expected '}' to close map pattern");
            PatternKind::Dictionary(pairs)
        })
    }

    /// `<<a:16/little, rest/binary>>`. There are no keywords inside: `a:` is a name and a colon.
    fn parse_binary_pattern(&mut self) -> PatternKind {
        let opener = self.bump();
        let outer = std::mem::replace(&mut self.lines, Lines::Ignored);
        let mut segments: Vec<Segment> = Vec::new();
        while !self.at(TokenKind::ShiftRight) && !self.at(TokenKind::Eof) {
            let Some(segment) = self.parse_segment() else {
                break;
            };
            segments.push(segment);
            if !self.eat(TokenKind::Comma) {
                break;
            }
            if self.at(TokenKind::ShiftRight) {
                self.error_here(
                    codes::SEGMENT_TRAILING_COMMA,
                    "Trailing comma is not allowed before '>>' in binary pattern",
                );
            }
        }
        if !self.eat(TokenKind::ShiftRight) {
            let span = self.here();
            self.report(
                Diagnostic::error(
                    codes::UNCLOSED_BRACKET,
                    span,
                    "Expected '>>' to close binary pattern",
                )
                .with_note(opener.span(), "opened here"),
            );
        }
        self.lines = outer;
        let all_but_last = segments.len().saturating_sub(1);
        for segment in segments.iter().take(all_but_last) {
            if segment.kind == SegmentKind::Binary && segment.size.is_none() {
                let message = "a `binary` segment without a size takes the rest and must be the last one";
                self.error(codes::SEGMENT_NOT_LAST, segment.span, message);
            }
        }
        PatternKind::Binary(segments)
    }

    fn parse_segment(&mut self) -> Option<Segment> {
        let first = self.token();
        let (name, has_size) = match self.kind() {
            TokenKind::Lower => {
                self.bump();
                (self.name_from(first), self.eat(TokenKind::Colon))
            }
            TokenKind::Keyword => {
                self.bump();
                let span = Span::new(first.start, first.end.saturating_sub(1));
                (
                    Name {
                        text: span.text(self.source).into(),
                        span,
                    },
                    true,
                )
            }
            _ => {
                let message = eco_format!("Expected a name in a binary pattern, found {}", self.found());
                self.error_here(codes::EXPECTED_PATTERN, message);
                return None;
            }
        };
        let size = if has_size { self.parse_segment_size() } else { None };
        let mut segment = Segment {
            name,
            size,
            kind: SegmentKind::default(),
            is_signed: false,
            endian: Endian::default(),
            span: first.span(),
        };
        if self.eat(TokenKind::Slash) {
            self.parse_specifiers(&mut segment);
        }
        segment.span = self.span_from(first.start);
        Some(segment)
    }

    fn parse_segment_size(&mut self) -> Option<SegmentSize> {
        let token = self.token();
        let size = match self.kind() {
            TokenKind::Integer => u32::try_from(literal::integer_value(self.text()))
                .ok()
                .map(SegmentSize::Literal),
            TokenKind::Lower => Some(SegmentSize::Variable(self.name_from(token))),
            _ => None,
        };
        if size.is_none() {
            let message = eco_format!("Expected the size of a binary segment, found {}", self.found());
            self.error_here(codes::SEGMENT_SIZE, message);
        }
        if matches!(self.kind(), TokenKind::Integer | TokenKind::Lower) {
            self.bump();
        }
        size
    }

    /// `little-signed`: at most one of each group.
    fn parse_specifiers(&mut self, segment: &mut Segment) {
        let mut has_kind = false;
        let mut has_sign = false;
        let mut has_endian = false;
        loop {
            let token = self.token();
            let word = self.text();
            let (group, seen) = match word {
                "integer" | "float" | "binary" | "bytes" | "utf8" => ("type", &mut has_kind),
                "signed" | "unsigned" => ("signedness", &mut has_sign),
                "big" | "little" | "native" => ("endianness", &mut has_endian),
                _ => {
                    let message = eco_format!("Unknown binary segment specifier: '{}'", self.found());
                    self.error_here(codes::UNKNOWN_SEGMENT_SPECIFIER, message);
                    if self.at(TokenKind::Lower) || self.at(TokenKind::Upper) {
                        self.bump();
                    }
                    if self.eat(TokenKind::Minus) {
                        continue;
                    }
                    return;
                }
            };
            if std::mem::replace(seen, true) {
                let message = eco_format!("Conflicting binary segment {group}: '{word}'");
                self.error(codes::CONFLICTING_SEGMENT, token.span(), message);
            }
            match word {
                "float" => segment.kind = SegmentKind::Float,
                "binary" | "bytes" => segment.kind = SegmentKind::Binary,
                "utf8" => segment.kind = SegmentKind::Utf8,
                "signed" => segment.is_signed = true,
                "little" => segment.endian = Endian::Little,
                "native" => segment.endian = Endian::Native,
                _ => {}
            }
            self.bump();
            if !self.eat(TokenKind::Minus) {
                return;
            }
        }
    }
}
