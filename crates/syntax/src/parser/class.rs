//! Classes, slots, methods and extensions.

use std::collections::HashMap;

use ecow::{EcoString, eco_format};

use super::{Lines, Parser};
use crate::ast::{
    Class, ClassModifiers, Expect, ExpressionKind, Extension, Head, Method, Name, Parameter, Slot,
    SlotKeyword, Type,
};
use crate::codes;
use crate::diagnostic::{Category, Diagnostic};
use crate::span::Span;
use crate::token::{FALSE_OPERATORS, OPERATOR_TAIL, OPERATORS, RESERVED_WORDS, TokenKind};

/// What a line that may open a method looks like.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// A selector head and `=>`.
    Method,
    /// Starts like a selector head.
    Head,
    Other,
}

fn slot_keyword(text: &str) -> Option<SlotKeyword> {
    match text {
        "field:" => Some(SlotKeyword::Field),
        "state:" => Some(SlotKeyword::State),
        "classState:" => Some(SlotKeyword::ClassState),
        _ => None,
    }
}

impl Parser<'_> {
    /// Modifiers stand on the line of what they modify.
    fn skip_class_modifiers(&self, mut index: usize) -> usize {
        while self.kind_at(index) == TokenKind::Lower
            && matches!(self.text_at(index), "abstract" | "sealed" | "typed" | "internal")
            && !self.token_at(index + 1).newline
        {
            index += 1;
        }
        index
    }

    /// `{modifier} super subclass:`.
    pub(super) fn is_class_ahead(&self) -> bool {
        let start = self.skip_class_modifiers(self.position);
        let behind = if self.kind_at(start) == TokenKind::NilWord {
            start + 1
        } else {
            match self.skip_class_ref(start) {
                Some(behind) => self.skip_parens(behind),
                None => return false,
            }
        };
        self.is_keyword_at(behind, "subclass:")
    }

    /// The index behind the parentheses at this token, or the token itself.
    fn skip_parens(&self, index: usize) -> usize {
        let token = self.token_at(index);
        let is_group = self.kind_at(index) == TokenKind::ParenOpen && token.has_partner();
        if is_group {
            token.partner as usize + 1
        } else {
            index
        }
    }

    pub(super) fn parse_class(&mut self, doc: Option<EcoString>, expect: Vec<Expect>) -> Class {
        let first = self.token();
        let mut modifiers = ClassModifiers::default();
        let super_at = self.skip_class_modifiers(self.position);
        while self.position < super_at {
            match self.text() {
                "abstract" => modifiers.is_abstract = true,
                "sealed" => modifiers.is_sealed = true,
                "typed" => modifiers.is_typed = true,
                _ => modifiers.is_internal = true,
            }
            self.bump();
        }
        let superclass = if self.eat(TokenKind::NilWord) {
            None
        } else {
            self.parse_class_ref()
        };
        let superclass_arguments = self.parse_type_arguments();
        self.bump();
        let name = if self.at(TokenKind::Upper) {
            let token = self.bump();
            self.name_from(token)
        } else {
            let message = eco_format!("Expected a class name after 'subclass:', found {}", self.found());
            self.error_here(codes::CLASS_HEADER, message);
            let skips = matches!(self.kind(), TokenKind::Lower | TokenKind::Symbol) && !self.token().newline;
            let span = if skips {
                self.bump().span()
            } else {
                self.span_from(self.previous_end())
            };
            Name {
                text: EcoString::new(),
                span,
            }
        };
        let type_parameters = self.parse_type_parameters();
        let (native, handle_scope) = self.parse_class_clauses();
        let header = self.span_from(first.start);
        let mut class = Class {
            doc,
            expect,
            modifiers,
            superclass,
            superclass_arguments,
            name,
            type_parameters,
            native,
            handle_scope,
            slots: Vec::new(),
            methods: Vec::new(),
            span: header,
            header,
        };
        self.parse_members(&mut class, first.column);
        class.span = self.span_from(first.start);
        self.check_duplicates(&class);
        class
    }

    /// `native: module`, `handleScope: #scope`.
    fn parse_class_clauses(&mut self) -> (Option<Name>, Option<Name>) {
        let mut native = None;
        let mut handle_scope = None;
        loop {
            let at = self.position;
            if self.method_shape(at) == Shape::Method {
                break;
            }
            if self.is_keyword_at(at, "native:") {
                if handle_scope.is_some() {
                    self.error_here(codes::CLASS_HEADER, "'native:' must come before 'handleScope:'");
                }
                self.bump();
                if self.at(TokenKind::Lower) && !self.token().newline {
                    let token = self.bump();
                    native = Some(self.name_from(token));
                } else {
                    self.error_here(
                        codes::CLASS_HEADER,
                        "Expected an Erlang module name after 'native:'",
                    );
                }
            } else if self.is_keyword_at(at, "handleScope:") {
                self.bump();
                if self.at(TokenKind::Symbol) {
                    let span = self.bump().span();
                    let text = super::literal::symbol_text(span.text(self.source));
                    handle_scope = Some(Name { text, span });
                } else {
                    self.error_here(
                        codes::HANDLE_SCOPE,
                        "Expected a symbol (e.g. #process or #node) after 'handleScope:'",
                    );
                    if !self.token().newline {
                        self.bump();
                    }
                }
            } else {
                break;
            }
        }
        (native, handle_scope)
    }

    fn parse_members(&mut self, class: &mut Class, column: u32) {
        while !self.at(TokenKind::Eof) {
            let before = self.position;
            if self.eat(TokenKind::Dot) {
                continue;
            }
            let token = self.token();
            if token.newline && token.column <= column && !self.is_member_ahead() {
                break;
            }
            self.parse_member(class, column);
            if self.position == before {
                self.bump();
            }
        }
    }

    /// Is the line at the current token a member, whatever its column?
    fn is_member_ahead(&self) -> bool {
        let mut at = self.position;
        while self.kind_at(at) == TokenKind::Expect {
            at += 1;
            at += usize::from(self.kind_at(at) == TokenKind::Lower);
            at += usize::from(self.kind_at(at) == TokenKind::String);
        }
        self.is_slot_at(at) || self.method_shape(at) == Shape::Method
    }

    fn is_slot_at(&self, index: usize) -> bool {
        self.kind_at(index) == TokenKind::Keyword && slot_keyword(self.text_at(index)).is_some()
    }

    fn parse_member(&mut self, class: &mut Class, column: u32) {
        let first = self.position;
        let expect = self.parse_expects();
        let start = self.position;
        let shape = self.method_shape(start);
        let is_slot = self.is_slot_at(start) && shape != Shape::Method;
        if !expect.is_empty() {
            let token = self.token();
            let is_outside = token.newline && token.column <= column;
            let is_member = is_slot || shape == Shape::Method || (shape == Shape::Head && !is_outside);
            if !is_member {
                let span = expect.last().map_or_else(|| self.here(), |expect| expect.span);
                self.error(
                    codes::MISPLACED_EXPECT,
                    span,
                    "@expect in a class body must precede a state/field or method declaration",
                );
                return;
            }
        }
        let end = self.region_end(start, self.token().column, self.end);
        if is_slot {
            let doc = self.doc_above(first, start);
            let slot = self.within(end, |parser| parser.parse_slot(doc, expect));
            class.slots.push(slot);
        } else if shape == Shape::Other {
            let message = eco_format!("Expected a slot or method declaration, found {}", self.found());
            self.error_here(codes::EXPECTED_MEMBER, message);
            self.position = end;
        } else {
            let doc = self.doc_above(first, start);
            let method = self.within(end, |parser| parser.parse_method(doc, expect));
            class.methods.push(method);
        }
    }

    fn parse_slot(&mut self, doc: Option<EcoString>, expect: Vec<Expect>) -> Slot {
        let start = self.token().start;
        let keyword = slot_keyword(self.text()).unwrap_or(SlotKeyword::Field);
        self.bump();
        let (name, annotation) = self.parse_slot_name();
        let mut default = None;
        if self.at(TokenKind::Assign) {
            self.error_here(
                codes::EXPECTED_MEMBER,
                "Use '=' for the default of a slot, not ':='",
            );
            self.bump();
            default = Some(self.parse_body_part(Self::parse_expression));
        } else if self.eat(TokenKind::Equal) {
            default = Some(self.parse_body_part(Self::parse_expression));
        }
        let span = self.span_from(start);
        while self.eat(TokenKind::Dot) {}
        if self.at(TokenKind::Bang) {
            self.error_here(codes::MISPLACED_CAST, super::statement::MISPLACED_CAST);
        }
        self.skip_rest(codes::EXPECTED_STATEMENT_END, Self::statement_end_message);
        Slot {
            doc,
            expect,
            keyword,
            name,
            annotation,
            default,
            span,
        }
    }

    fn parse_slot_name(&mut self) -> (Name, Option<Type>) {
        if self.at(TokenKind::Upper) {
            let token = self.bump();
            return (self.name_from(token), self.parse_annotation());
        }
        let parameter = self.parse_parameter("slot");
        (parameter.name, parameter.annotation)
    }

    /// Reads code of a method body, where all rules of bodies hold.
    pub(super) fn parse_body_part<T>(&mut self, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = (
            self.in_method,
            self.depth,
            self.lines,
            self.in_builder,
            self.start,
        );
        (self.in_method, self.depth, self.lines, self.in_builder) = (true, 0, Lines::Significant, false);
        self.start = self.position;
        let result = read(self);
        (
            self.in_method,
            self.depth,
            self.lines,
            self.in_builder,
            self.start,
        ) = outer;
        result
    }

    /// A name with an optional type, as a parameter or slot.
    pub(super) fn parse_parameter(&mut self, role: &str) -> Parameter {
        let token = self.token();
        match self.kind() {
            TokenKind::Lower => {
                self.bump();
                Parameter {
                    name: self.name_from(token),
                    annotation: self.parse_annotation(),
                }
            }
            // `at: i: Integer`: a type with one colon too few.
            TokenKind::Keyword if self.skip_type(self.position + 1).is_some() => {
                self.bump();
                let span = Span::new(token.start, token.end.saturating_sub(1));
                self.single_colon(Span::new(span.end, token.end));
                let name = Name {
                    text: span.text(self.source).into(),
                    span,
                };
                Parameter {
                    name,
                    annotation: Some(self.parse_type()),
                }
            }
            kind if RESERVED_WORDS.contains(kind) => {
                let message = eco_format!("`{}` is a reserved word and cannot name a {role}", self.text());
                self.error_here(codes::RESERVED_NAME, message);
                self.bump();
                Parameter {
                    name: self.name_from(token),
                    annotation: self.parse_annotation(),
                }
            }
            kind => {
                let message = eco_format!("Expected a {role} name, found {}", self.found());
                self.error_here(codes::EXPECTED_PARAMETER, message);
                if kind == TokenKind::Upper {
                    self.bump();
                }
                let name = Name {
                    text: EcoString::new(),
                    span: self.span_from(self.previous_end()),
                };
                Parameter {
                    name,
                    annotation: self.parse_annotation(),
                }
            }
        }
    }

    /// `:: T`, unless it is the `:: ->` of a result.
    fn parse_annotation(&mut self) -> Option<Type> {
        if self.at(TokenKind::DoubleColon) && self.kind_at(self.position + 1) == TokenKind::Arrow {
            return None;
        }
        if self.eat_double_colon() {
            Some(self.parse_type())
        } else {
            None
        }
    }

    /// Is the word at this token a modifier of the method that follows?
    fn is_modifier_at(&self, index: usize) -> bool {
        if self.kind_at(index) != TokenKind::Lower
            || !matches!(self.text_at(index), "class" | "sealed" | "internal")
        {
            return false;
        }
        match self.kind_at(index + 1) {
            TokenKind::FatArrow | TokenKind::DoubleColon | TokenKind::Eof => false,
            // `class -> other => …` is an operator method, `class -> Integer => …` is named `class`.
            TokenKind::Arrow => {
                self.kind_at(index + 2) == TokenKind::Lower && self.kind_at(index + 3) != TokenKind::At
            }
            _ => true,
        }
    }

    /// Looks at the line that starts at a token: is it the head of a method?
    pub(super) fn method_shape(&self, start: usize) -> Shape {
        let column = self.token_at(start).column;
        let mut at = start;
        while self.is_modifier_at(at) {
            at += 1;
        }
        self.head_shape(at, column)
    }

    pub(super) fn head_shape(&self, start: usize, column: u32) -> Shape {
        // A line at or left of the member column belongs to the next member.
        let kind = |index: usize| {
            let token = self.token_at(index);
            let is_outside = index > start && token.newline && token.column <= column;
            if is_outside {
                TokenKind::Eof
            } else {
                self.kind_at(index)
            }
        };
        let is_operator = |kind| OPERATORS.contains(kind) || FALSE_OPERATORS.contains(kind);
        let mut at = start;
        match kind(at) {
            TokenKind::Lower => at += 1,
            TokenKind::Keyword => {
                while kind(at) == TokenKind::Keyword {
                    match self.skip_parameter(at + 1) {
                        Some(behind) => at = behind,
                        None => return if at > start { Shape::Head } else { Shape::Other },
                    }
                }
            }
            first if is_operator(first) => {
                while is_operator(kind(at)) {
                    at += 1;
                }
                match self.skip_parameter(at) {
                    Some(behind) => at = behind,
                    None => return Shape::Other,
                }
            }
            _ => return Shape::Other,
        }
        if kind(at) == TokenKind::DoubleColon {
            at += 1;
        }
        if kind(at) == TokenKind::Arrow {
            match self.skip_type(at + 1) {
                Some(behind) => at = behind,
                None => return Shape::Head,
            }
        }
        if kind(at) == TokenKind::FatArrow {
            Shape::Method
        } else {
            Shape::Head
        }
    }

    fn skip_parameter(&self, index: usize) -> Option<usize> {
        let kind = self.kind_at(index);
        if kind == TokenKind::Keyword {
            return self.skip_type(index + 1);
        }
        let is_name = matches!(kind, TokenKind::Lower | TokenKind::Upper) || RESERVED_WORDS.contains(kind);
        if !is_name {
            return None;
        }
        let is_annotation = matches!(self.kind_at(index + 1), TokenKind::DoubleColon | TokenKind::Colon)
            && self.kind_at(index + 2) != TokenKind::Arrow;
        if is_annotation {
            self.skip_type(index + 2).or(Some(index + 2))
        } else {
            Some(index + 1)
        }
    }

    /// The index behind the type at this token.
    pub(super) fn skip_type(&self, index: usize) -> Option<usize> {
        let mut at = index;
        loop {
            at = match self.kind_at(at) {
                TokenKind::ParenOpen if self.token_at(at).has_partner() => self.skip_parens(at),
                TokenKind::Symbol | TokenKind::NilWord | TokenKind::TrueWord | TokenKind::FalseWord => at + 1,
                _ => {
                    let behind = self.skip_class_ref(at)?;
                    let is_plain = self.token_at(behind).newline;
                    let behind = if is_plain {
                        behind
                    } else {
                        self.skip_parens(behind)
                    };
                    let names_class = !self.token_at(behind).newline && self.is_word_at(behind, "class");
                    behind + usize::from(names_class)
                }
            };
            let continues = matches!(
                self.kind_at(at),
                TokenKind::Pipe | TokenKind::Ampersand | TokenKind::Backslash | TokenKind::DoubleBackslash
            );
            if !continues {
                return Some(at);
            }
            at += 1;
        }
    }

    /// Modifiers, head, result and body; the region is the method's.
    pub(super) fn parse_method(&mut self, doc: Option<EcoString>, expect: Vec<Expect>) -> Method {
        let start = self.token().start;
        let (mut is_class, mut is_sealed, mut is_internal) = (false, false, false);
        while self.is_modifier_at(self.position) {
            match self.text() {
                "class" => is_class = true,
                "sealed" => is_sealed = true,
                _ => is_internal = true,
            }
            self.bump();
        }
        let reported = self.diagnostics.len();
        let head = self.parse_head();
        let result = self.parse_result();
        let mut body = Vec::new();
        if self.eat(TokenKind::FatArrow) {
            self.primitive_at = self.position;
            body = self.parse_body_part(Self::parse_statements);
            self.check_primitive(&body);
            if body.is_empty() && self.diagnostics.len() == reported {
                let message = eco_format!("Method `{}` has an empty body", head.selector);
                self.report(
                    Diagnostic::error(codes::EMPTY_BODY, head.span, message)
                        .with_category(Category::EmptyBody),
                );
            }
        } else {
            self.error_here(
                codes::EXPECTED_METHOD_ARROW,
                "Expected '=>' after method selector",
            );
        }
        self.position = self.position.max(self.end);
        let span = self.span_from(start);
        Method {
            doc,
            expect,
            is_class,
            is_sealed,
            is_internal,
            head,
            result,
            body,
            span,
        }
    }

    pub(super) fn check_primitive(&mut self, body: &[crate::ast::Statement]) {
        let [first, second, ..] = body else { return };
        if matches!(first.expression.kind, ExpressionKind::Primitive { .. }) {
            self.error(
                codes::MISPLACED_PRIMITIVE,
                second.span,
                super::primary::MISPLACED_PRIMITIVE,
            );
        }
    }

    /// `-> T` or `:: -> T`.
    pub(super) fn parse_result(&mut self) -> Option<Type> {
        if self.at(TokenKind::DoubleColon) && self.kind_at(self.position + 1) == TokenKind::Arrow {
            self.bump();
        }
        if self.eat(TokenKind::Arrow) {
            Some(self.parse_type())
        } else {
            None
        }
    }

    pub(super) fn parse_head(&mut self) -> Head {
        let first = self.token();
        let mut parameters = Vec::new();
        let mut parts = Vec::new();
        let mut selector = EcoString::new();
        let kind = self.kind();
        if kind == TokenKind::Keyword {
            while self.at(TokenKind::Keyword) && (parts.is_empty() || !self.ends_head()) {
                selector.push_str(self.text());
                parts.push(self.bump().span());
                parameters.push(self.parse_parameter("parameter"));
            }
        } else if kind == TokenKind::Lower {
            selector.push_str(self.text());
            parts.push(self.bump().span());
        } else if OPERATORS.contains(kind) || FALSE_OPERATORS.contains(kind) {
            let (text, span, is_known) = self.take_operator();
            if !is_known {
                let message = eco_format!("unknown operator `{text}`");
                self.error(codes::UNKNOWN_OPERATOR, span, message);
            }
            selector = text;
            parts.push(span);
            parameters.push(self.parse_parameter("parameter"));
        } else {
            let message = eco_format!("Expected a method selector, found {}", self.found());
            self.error_here(codes::EXPECTED_MEMBER, message);
        }
        Head {
            selector,
            parameters,
            parts,
            span: self.span_from(first.start),
        }
    }

    /// In a protocol a keyword on a new line starts the next signature.
    fn ends_head(&self) -> bool {
        self.lines == Lines::Significant && self.in_signature && self.token().newline
    }

    /// Takes an operator with all operator characters that touch it; tells whether it is known.
    pub(super) fn take_operator(&mut self) -> (EcoString, Span, bool) {
        let first = self.token();
        let mut is_known = OPERATORS.contains(first.kind);
        while self.is_adjacent(self.position) && OPERATOR_TAIL.contains(self.kind_at(self.position + 1)) {
            is_known = false;
            self.bump();
        }
        self.bump();
        let span = self.span_from(first.start);
        (span.text(self.source).into(), span, is_known)
    }

    /// `Target >> head =>`, `Target class >> head =>`.
    pub(super) fn is_extension_ahead(&self) -> bool {
        let Some(mut at) = self.skip_class_ref(self.position) else {
            return false;
        };
        at += usize::from(self.is_word_at(at, "class") && !self.token_at(at).newline);
        if self.kind_at(at) != TokenKind::ShiftRight {
            return false;
        }
        let column = self.token().column;
        let mut head = at + 1;
        while self.is_modifier_at(head) && self.text_at(head) != "class" {
            head += 1;
        }
        match self.head_shape(head, column) {
            Shape::Method => true,
            Shape::Head => self.mode == super::Mode::File,
            Shape::Other => false,
        }
    }

    pub(super) fn parse_extension(&mut self, doc: Option<EcoString>, expect: Vec<Expect>) -> Extension {
        let first = self.token();
        let target = self.parse_class_ref();
        let target = target.unwrap_or_else(|| crate::ast::ClassRef {
            package: None,
            name: self.name_from(first),
            span: first.span(),
        });
        let is_class = self.is_word_at(self.position, "class");
        if is_class {
            self.bump();
        }
        self.bump();
        let mut method = self.parse_method(doc, expect);
        method.is_class |= is_class;
        Extension {
            target,
            method,
            span: self.span_from(first.start),
        }
    }

    fn check_duplicates(&mut self, class: &Class) {
        let mut seen: HashMap<(bool, &str), Span> = HashMap::new();
        for method in &class.methods {
            let selector = method.head.selector.as_str();
            if selector.is_empty() {
                continue;
            }
            if let Some(first) = seen.insert((method.is_class, selector), method.head.span) {
                let side = if method.is_class { "class method" } else { "method" };
                let message = eco_format!("Duplicate {side} `{selector}` in class `{}`", class.name.text);
                self.report(
                    Diagnostic::error(codes::DUPLICATE_METHOD, method.head.span, message)
                        .with_note(first, "first defined here"),
                );
            }
        }
    }
}
