//! Top-level items, statements and `@expect`.

use ecow::{EcoString, eco_format};

use super::class::Shape;
use super::{Mode, Parser};
use crate::ast::{Expect, ExpressionKind, Item, Method, Statement, TypeAlias};
use crate::codes;
use crate::diagnostic::{Category, Diagnostic};
use crate::span::Span;
use crate::token::{CLOSERS, TokenKind};

pub(super) const MISPLACED_CAST: &str =
    "a cast (!) answers nothing and must stand alone as a statement; drop the ! to wait for the answer";

const EXPECT_CATEGORIES: &[&str] = &[
    "dnu",
    "type",
    "unused",
    "dead_assignment",
    "deprecation",
    "actor_new",
    "visibility",
    "unresolved_class",
    "unresolved_ffi",
    "arity_mismatch",
    "shadowed_class",
    "type_annotation",
    "inheritance",
    "sendability",
    "lint",
    "all",
];

/// One method definition alone, as given to `compile:source:`.
pub(crate) fn parse_method(source: &str) -> (Option<Method>, Vec<Diagnostic>) {
    let Some(mut parser) = Parser::new(source, Mode::File) else {
        let message = "the source text is over four gigabytes";
        return (
            None,
            vec![Diagnostic::error(
                codes::SOURCE_TOO_LONG,
                Span::default(),
                message,
            )],
        );
    };
    let first = parser.position;
    let expect = parser.parse_expects();
    let start = parser.position;
    let shape = parser.method_shape(start);
    let method = if shape == Shape::Method {
        let doc = parser.doc_above(first, start);
        let end = parser.region_end(start, parser.token().column, parser.end);
        let method = parser.within(end, |parser| parser.parse_method(doc, expect));
        parser.skip_rest(codes::TRAILING_TOKENS, |_| {
            "expected a single method definition, found trailing tokens after the method body".into()
        });
        Some(method)
    } else {
        if shape == Shape::Head {
            parser.error_here(
                codes::EXPECTED_METHOD_ARROW,
                "Expected '=>' after method selector",
            );
        } else {
            let message = eco_format!("Expected a method definition, found {}", parser.found());
            parser.error_here(codes::EXPECTED_MEMBER, message);
        }
        None
    };
    let (_, diagnostics) = parser.finish(Vec::new());
    (method, diagnostics)
}

/// The statements of a method body alone.
pub(crate) fn parse_body(source: &str) -> (Vec<Statement>, Vec<Diagnostic>) {
    let Some(mut parser) = Parser::new(source, Mode::File) else {
        let message = "the source text is over four gigabytes";
        return (
            Vec::new(),
            vec![Diagnostic::error(
                codes::SOURCE_TOO_LONG,
                Span::default(),
                message,
            )],
        );
    };
    parser.primitive_at = 0;
    let body = parser.parse_body_part(Parser::parse_statements);
    parser.check_primitive(&body);
    let (_, diagnostics) = parser.finish(Vec::new());
    (body, diagnostics)
}

impl Parser<'_> {
    pub(super) fn parse_items(&mut self) -> Vec<Item> {
        let mut items = Vec::new();
        while !self.at(TokenKind::Eof) {
            let before = self.position;
            if self.eat(TokenKind::Dot) {
                continue;
            }
            if let Some(item) = self.parse_item() {
                items.push(item);
            }
            if self.position == before {
                self.bump();
            }
        }
        if self.mode == Mode::File {
            self.check_file(&items);
        }
        items
    }

    fn parse_item(&mut self) -> Option<Item> {
        let first = self.position;
        let expect = self.parse_expects();
        let start = self.position;
        if self.is_class_ahead() {
            let doc = self.doc_above(first, start);
            return Some(Item::Class(self.parse_class(doc, expect)));
        }
        if self.is_protocol_ahead() {
            let doc = self.doc_above(first, start);
            return Some(Item::Protocol(self.parse_protocol(doc, expect)));
        }
        if self.is_alias_ahead() {
            let doc = self.doc_above(first, start);
            let end = self.region_end(start, self.token().column, self.end);
            return Some(Item::TypeAlias(
                self.within(end, |parser| parser.parse_alias(doc, expect)),
            ));
        }
        if self.is_extension_ahead() {
            let doc = self.doc_above(first, start);
            let end = self.region_end(start, self.token().column, self.end);
            return Some(Item::Extension(
                self.within(end, |parser| parser.parse_extension(doc, expect)),
            ));
        }
        if CLOSERS.contains(self.kind()) {
            self.expected_expression();
            self.bump();
            return None;
        }
        if self.mode == Mode::Input {
            return self.parse_statement_after(first, expect).map(Item::Statement);
        }
        self.parse_misplaced_statement(first, expect)
    }

    /// A statement in a package file: one report, and the whole of it is skipped.
    fn parse_misplaced_statement(&mut self, first: usize, expect: Vec<Expect>) -> Option<Item> {
        let token = self.token_at(first);
        self.error(
            codes::TOP_LEVEL_STATEMENT,
            token.span(),
            "A statement is not allowed at the top level of a package file",
        );
        let end = self.region_end(self.position, self.token().column, self.end);
        let reported = self.diagnostics.len();
        let statement = self.within(end, |parser| parser.parse_statement_after(first, expect));
        self.diagnostics.truncate(reported);
        self.position = self.position.max(end);
        statement.map(Item::Statement)
    }

    fn check_file(&mut self, items: &[Item]) {
        let mut has_class = false;
        let mut has_protocol = false;
        for item in items {
            match item {
                Item::Class(class) => {
                    let second = std::mem::replace(&mut has_class, true);
                    self.check_lone(second, has_protocol, class.header, true);
                }
                Item::Protocol(protocol) => {
                    let second = std::mem::replace(&mut has_protocol, true);
                    self.check_lone(second, has_class, protocol.name.span, false);
                }
                Item::TypeAlias(_) | Item::Extension(_) | Item::Statement(_) => {}
            }
        }
    }

    fn check_lone(&mut self, is_second: bool, is_mixed: bool, span: Span, is_class: bool) {
        let (code, message) = match (is_second, is_class) {
            (true, true) => (
                codes::MULTIPLE_CLASSES,
                "Multiple classes in one file is not supported",
            ),
            (true, false) => (
                codes::MULTIPLE_PROTOCOLS,
                "Multiple protocols in one file is not supported",
            ),
            (false, _) if is_mixed => (
                codes::CLASS_AND_PROTOCOL,
                "A class and a protocol cannot be in the same file",
            ),
            (false, _) => return,
        };
        self.diagnostics.push(Diagnostic::error(code, span, message));
    }

    /// The documentation above a declaration; an `@expect` may stand between.
    pub(super) fn doc_above(&mut self, first: usize, declaration: usize) -> Option<EcoString> {
        let direct = self.doc_before(declaration);
        if direct.is_none() && first != declaration {
            self.doc_before(first)
        } else {
            direct
        }
    }

    /// `[internal] type Name = T`.
    fn is_alias_ahead(&self) -> bool {
        let at = self.position + usize::from(self.is_word_at(self.position, "internal"));
        self.is_word_at(at, "type")
            && self.kind_at(at + 1) == TokenKind::Upper
            && !self.token_at(at + 1).newline
            && (at == self.position || !self.token_at(at).newline)
            && matches!(self.kind_at(at + 2), TokenKind::Equal | TokenKind::ParenOpen)
    }

    fn parse_alias(&mut self, doc: Option<EcoString>, expect: Vec<Expect>) -> TypeAlias {
        let start = self.token().start;
        let is_internal = self.is_word_at(self.position, "internal");
        if is_internal {
            self.bump();
        }
        self.bump();
        let name = self.bump();
        let name = self.name_from(name);
        if self.at(TokenKind::ParenOpen) {
            self.error_here(codes::TYPE_ALIAS, "a type alias cannot have parameters");
            self.skip_group();
        }
        if !self.eat(TokenKind::Equal) {
            let message = eco_format!(
                "Expected '=' after the name of a type alias, found {}",
                self.found()
            );
            self.error_here(codes::TYPE_ALIAS, message);
        }
        let definition = self.parse_type();
        let span = self.span_from(start);
        while self.eat(TokenKind::Dot) {}
        self.skip_rest(codes::EXPECTED_STATEMENT_END, Self::statement_end_message);
        TypeAlias {
            doc,
            expect,
            is_internal,
            name,
            definition,
            span,
        }
    }

    pub(super) fn statement_end_message(&self) -> EcoString {
        eco_format!("expected end of statement, found {}", self.found())
    }

    /// Statements up to the end of the region or a closing bracket.
    pub(super) fn parse_statements(&mut self) -> Vec<Statement> {
        let mut statements = Vec::new();
        let mut height = 0;
        loop {
            let before = self.position;
            if self.eat(TokenKind::Dot) {
                continue;
            }
            if self.at(TokenKind::Eof) {
                break;
            }
            if CLOSERS.contains(self.kind()) {
                if self.is_awaited_closer() {
                    break;
                }
                self.expected_expression();
                self.bump();
                continue;
            }
            let expect = self.parse_expects();
            if let Some(statement) = self.parse_statement_after(before, expect) {
                statements.push(statement);
            }
            height = height.max(self.height);
            if self.position == before {
                self.bump();
            }
        }
        self.height = height;
        statements
    }

    /// Does a bracket opened in this region wait for this closing one?
    pub(super) fn is_awaited_closer(&self) -> bool {
        let token = self.token();
        token.kind == TokenKind::StringMiddle
            || (token.has_partner() && token.partner as usize >= self.start && self.depth > 0)
    }

    /// A statement whose `@expect`s, from token `first` on, are already read.
    fn parse_statement_after(&mut self, first: usize, expect: Vec<Expect>) -> Option<Statement> {
        let start = self.token_at(first).start;
        if !expect.is_empty() && (self.at(TokenKind::Eof) || CLOSERS.contains(self.kind())) {
            let span = expect.last().map_or_else(|| self.here(), |expect| expect.span);
            self.error(
                codes::MISPLACED_EXPECT,
                span,
                "@expect must precede a statement or declaration",
            );
            return None;
        }
        let expression = self.parse_expression();
        let mut is_cast = false;
        let mut span = self.span_from(start);
        if self.at(TokenKind::Bang) && !self.token().newline {
            is_cast = self.check_cast(&expression.kind);
            self.bump();
            span = self.span_from(start);
            if self.at(TokenKind::Semicolon) && !self.token().newline {
                self.error_here(codes::MISPLACED_CAST, MISPLACED_CAST);
                self.skip_statement();
            }
        } else if !self.is_statement_end() {
            let message = self.statement_end_message();
            self.error_here(codes::EXPECTED_STATEMENT_END, message);
            self.skip_statement();
        }
        Some(Statement {
            expect,
            expression,
            is_cast,
            span,
        })
    }

    fn is_statement_end(&self) -> bool {
        let kind = self.kind();
        matches!(kind, TokenKind::Eof | TokenKind::Dot) || CLOSERS.contains(kind) || self.on_new_line()
    }

    /// Is `!` right after this expression? Reports it when not.
    fn check_cast(&mut self, kind: &ExpressionKind) -> bool {
        match kind {
            ExpressionKind::Send(_) => return true,
            ExpressionKind::Assign { .. } | ExpressionKind::Return(_) | ExpressionKind::Cascade { .. } => {
                self.error_here(codes::MISPLACED_CAST, MISPLACED_CAST);
            }
            _ => self.error_here(codes::CAST_WITHOUT_SEND, "a cast (!) must follow a message send"),
        }
        false
    }

    /// Any number of `@expect category "reason"`.
    pub(super) fn parse_expects(&mut self) -> Vec<Expect> {
        let mut expects = Vec::new();
        while self.at(TokenKind::Expect) {
            let directive = self.bump();
            if self.at(TokenKind::Lower) && !self.token().newline {
                let token = self.bump();
                let category = self.name_from(token);
                if !EXPECT_CATEGORIES.contains(&category.text.as_str()) {
                    let message = eco_format!(
                        "unknown @expect category '{}', valid categories are: {}",
                        category.text,
                        EXPECT_CATEGORIES.join(", ")
                    );
                    self.report(
                        Diagnostic::error(codes::UNKNOWN_EXPECT_CATEGORY, category.span, message)
                            .with_category(Category::Syntax),
                    );
                }
                let mut reason = None;
                if self.at(TokenKind::String) && !self.token().newline {
                    let token = self.bump();
                    reason = Some(self.string_text(token));
                }
                expects.push(Expect {
                    category,
                    reason,
                    span: self.span_from(directive.start),
                });
            } else {
                let message = eco_format!(
                    "expected a category after @expect, valid categories are: {}",
                    EXPECT_CATEGORIES.join(", ")
                );
                self.error(codes::UNKNOWN_EXPECT_CATEGORY, directive.span(), message);
            }
            while self.eat(TokenKind::Dot) {}
        }
        expects
    }
}
