//! Statements and expressions.

use super::comments::{Entry, Placement};
use super::document::{Document, VerbatimLine, concat, group, is_forced, nest, text};
use super::pattern::{annotation, block_parameter, class_ref, selector_parts};
use super::{Formatter, pattern};
use crate::ast::{Arm, Block, Expect, Expression, ExpressionKind, Message, Statement, StringPart};
use crate::span::Span;

impl Formatter<'_> {
    /// `@expect` lines, each followed by a line end.
    pub(super) fn expects(&mut self, expects: &[Expect], declaration: u32) -> Vec<Document> {
        let mut parts = Vec::new();
        for expect in expects {
            let (leading, _) = self.leading(expect.span.start, Placement::Above);
            parts.extend(leading);
            parts.push(text(format!("@expect {}", expect.category.text)));
            if let Some(reason) = &expect.reason {
                parts.push(text(format!(" {}", pattern::string_literal(reason))));
            }
            let (trailing, _) = self.trailing(expect.span.end, declaration);
            parts.extend(trailing);
            parts.push(Document::HardLine);
        }
        if !expects.is_empty() {
            let (leading, _) = self.leading(declaration, Placement::Above);
            parts.extend(leading);
        }
        parts
    }

    pub(super) fn statement(&mut self, statement: &Statement) -> Entry {
        let span = statement.span;
        let expression = &statement.expression;
        let mut parts = self.expects(&statement.expect, expression.span.start);
        let whole = Span::new(expression.span.start, span.end);
        parts.push(self.or_verbatim(whole, 0, |formatter| {
            let document = formatter.expression(expression);
            if statement.is_cast {
                concat(vec![document, text("!")])
            } else {
                document
            }
        }));
        Entry {
            document: concat(parts),
            start: span.start,
            end: span.end,
            wants_blank: false,
        }
    }

    /// The statements of a body on lines of their own. `from` is where the line before ends, `limit`
    /// where the body does.
    pub(super) fn statements(&mut self, body: &[Statement], from: Option<u32>, limit: u32) -> Vec<Document> {
        self.lines(
            body,
            from,
            limit,
            Placement::Inline,
            |statement| statement.span.start,
            |formatter, statement, _| formatter.statement(statement),
        )
    }

    pub(super) fn expression(&mut self, expression: &Expression) -> Document {
        let span = expression.span;
        match &expression.kind {
            ExpressionKind::Integer(_)
            | ExpressionKind::Float(_)
            | ExpressionKind::Character(_)
            | ExpressionKind::Symbol(_)
            | ExpressionKind::Primitive { .. }
            | ExpressionKind::Error => text(self.source_text(span)),
            ExpressionKind::Nil => text("nil"),
            ExpressionKind::True => text("true"),
            ExpressionKind::False => text("false"),
            ExpressionKind::SelfReference => text("self"),
            ExpressionKind::Super => text("super"),
            ExpressionKind::Variable(name) => text(name.clone()),
            ExpressionKind::ClassName(class) => text(class_ref(class)),
            ExpressionKind::Field(name) => text(format!("self.{}", name.text)),
            ExpressionKind::ForeignField { object, field } => {
                concat(vec![self.expression(object), text(format!(".{}", field.text))])
            }
            ExpressionKind::String(parts) => self.string(parts, span),
            ExpressionKind::List { elements, tail } => {
                self.sequence("#(", ")", elements, tail.as_deref(), span)
            }
            ExpressionKind::Array(elements) => self.sequence("#[", "]", elements, None, span),
            ExpressionKind::Dictionary(pairs) => self.dictionary(pairs, span),
            ExpressionKind::Block(block) => self.block(block, span),
            ExpressionKind::Send(send) => self.send(&send.receiver, &send.message),
            ExpressionKind::Cascade { receiver, messages } => self.cascade(receiver, messages),
            ExpressionKind::Match {
                value,
                arms,
                exhaustive,
            } => self.match_arms(value, arms, *exhaustive, span),
            ExpressionKind::Assign {
                target,
                annotation: kind,
                value,
            } => {
                let target = self.target(target) + &annotation(kind.as_ref()) + " := ";
                concat(vec![text(target), self.expression(value)])
            }
            ExpressionKind::Return(value) => concat(vec![text("^"), self.expression(value)]),
            ExpressionKind::Parenthesized(inner) => {
                let inner = self.expression(inner);
                if is_forced(&inner) {
                    return concat(vec![text("("), inner, text(")")]);
                }
                let inner = nest(concat(vec![Document::SoftLine, inner]));
                group(concat(vec![text("("), inner, Document::SoftLine, text(")")]))
            }
        }
    }

    /// Text as it is written; interpolations are formatted when no comment is in the way.
    fn string(&mut self, parts: &[StringPart], span: Span) -> Document {
        if self.has_pending_before(span.end) {
            self.is_odd = true;
            return text("");
        }
        let mut documents = Vec::new();
        let mut cursor = span.start;
        for part in parts {
            let StringPart::Interpolation(expression) = part else {
                continue;
            };
            documents.push(raw(self.gap(cursor, expression.span.start).trim_end()));
            documents.push(nest(self.expression(expression)));
            let rest = self.gap(expression.span.end, span.end);
            cursor = span.end - rest.trim_start().len() as u32;
        }
        documents.push(raw(self.gap(cursor, span.end)));
        concat(documents)
    }

    fn sequence(
        &mut self,
        open: &'static str,
        close: &'static str,
        elements: &[Expression],
        tail: Option<&Expression>,
        span: Span,
    ) -> Document {
        self.enter(span.start);
        if elements.is_empty() && !self.has_pending_before(span.end) {
            return text(format!("{open}{close}"));
        }
        let limit = tail.map_or(span.end, |tail| tail.span.start);
        let mut parts = self.elements(elements, limit, |formatter, element, is_last| {
            let mut parts = vec![formatter.expression(element)];
            if !is_last {
                parts.push(text(","));
            }
            (concat(parts), element.span)
        });
        if let Some(tail) = tail {
            parts.push(Document::Line);
            parts.push(text("| "));
            parts.push(self.expression(tail));
        }
        self.is_odd |= self.has_pending_before(span.end);
        group(concat(vec![
            text(open),
            nest(concat(parts)),
            Document::SoftLine,
            text(close),
        ]))
    }

    fn dictionary(&mut self, pairs: &[(Expression, Expression)], span: Span) -> Document {
        self.enter(span.start);
        if pairs.is_empty() && !self.has_pending_before(span.end) {
            return text("#{}");
        }
        let parts = self.elements(pairs, span.end, |formatter, (key, value), is_last| {
            let mut parts = vec![
                formatter.expression(key),
                text(" => "),
                formatter.expression(value),
            ];
            if !is_last {
                parts.push(text(","));
            }
            (concat(parts), key.span.to(value.span))
        });
        group(concat(vec![
            text("#{"),
            nest(concat(parts)),
            Document::SoftLine,
            text("}"),
        ]))
    }

    /// Elements of a collection: on one line, or each on its own.
    fn elements<T>(
        &mut self,
        elements: &[T],
        limit: u32,
        mut print: impl FnMut(&mut Self, &T, bool) -> (Document, Span),
    ) -> Vec<Document>
    where
        T: Spanned,
    {
        let mut parts = Vec::new();
        for (index, element) in elements.iter().enumerate() {
            let is_last = index + 1 == elements.len();
            parts.push(if index == 0 {
                Document::SoftLine
            } else {
                Document::Line
            });
            let (leading, _) = self.leading(element.start(), Placement::Inline);
            if !leading.is_empty() {
                parts.push(Document::ForceBreak);
            }
            parts.extend(leading);
            let (document, span) = print(self, element, is_last);
            parts.push(document);
            let next = elements.get(index + 1).map_or(limit, Spanned::start);
            let (trailing, _) = self.trailing(span.end, next);
            parts.extend(trailing);
        }
        let (mut dangling, first) = self.leading(limit, Placement::Above);
        if first.is_some() {
            dangling.pop();
            parts.push(Document::HardLine);
            parts.extend(dangling);
            parts.push(Document::ForceBreak);
        }
        parts
    }

    fn block(&mut self, block: &Block, span: Span) -> Document {
        self.enter(span.start);
        let parameters: Vec<String> = block.parameters.iter().map(block_parameter).collect();
        let opening = if parameters.is_empty() {
            "[".to_owned()
        } else {
            format!("[{} |", parameters.join(" "))
        };
        let close = span.end.saturating_sub(1);
        if block.body.is_empty() && !self.has_pending_before(close) {
            return text(opening + "]");
        }
        // A comment among the parameters has no place.
        self.is_odd |= self.has_pending_before(block.body_span.start);
        let first = block.body.first().map_or(close, |statement| statement.span.start);
        let (mut parts, _) = self.trailing(block.body_span.start, first);
        let is_inline = parts.is_empty() && !self.has_pending_before(close) && block.body.len() == 1;
        if is_inline {
            let body = concat(self.statements(&block.body, None, close));
            let separator = if block.parameters.is_empty() {
                Document::SoftLine
            } else {
                Document::Line
            };
            let body = nest(concat(vec![separator, body]));
            return group(concat(vec![text(opening), body, Document::SoftLine, text("]")]));
        }
        parts.insert(0, text(opening));
        // No empty line before the first statement.
        let body = self.statements(&block.body, None, close);
        parts.push(nest(concat(vec![Document::HardLine, concat(body)])));
        parts.push(Document::HardLine);
        parts.push(text("]"));
        group(concat(parts))
    }

    fn send(&mut self, receiver: &Expression, message: &Message) -> Document {
        match message.arguments.as_slice() {
            [] => concat(vec![
                self.expression(receiver),
                text(format!(" {}", message.selector)),
            ]),
            [argument] if !message.selector.ends_with(':') => self.binary(receiver, message, argument),
            arguments => {
                let receiver = self.expression(receiver);
                let hugs = matches!(arguments, [only] if is_huggable(only));
                let separator = if hugs { text(" ") } else { Document::Line };
                let keywords = self.keywords(message, hugs);
                if hugs {
                    return concat(vec![receiver, separator, keywords]);
                }
                group(concat(vec![receiver, nest(concat(vec![separator, keywords]))]))
            }
        }
    }

    /// `a + b - c` as one chain.
    fn binary(&mut self, receiver: &Expression, message: &Message, argument: &Expression) -> Document {
        let mut chain = vec![(message, argument)];
        let mut first = receiver;
        while let ExpressionKind::Send(inner) = &first.kind {
            let [argument] = inner.message.arguments.as_slice() else {
                break;
            };
            if inner.message.selector.ends_with(':') {
                break;
            }
            chain.push((&inner.message, argument));
            first = &inner.receiver;
        }
        let first = self.expression(first);
        let mut rest = Vec::new();
        for (message, argument) in chain.iter().rev() {
            rest.push(Document::Line);
            rest.push(text(format!("{} ", message.selector)));
            rest.push(self.expression(argument));
        }
        group(concat(vec![first, nest(concat(rest))]))
    }

    /// `at: a put: b`, broken between the parts.
    fn keywords(&mut self, message: &Message, hugs: bool) -> Document {
        let mut parts = Vec::new();
        for (part, argument) in selector_parts(&message.selector).zip(&message.arguments) {
            if !parts.is_empty() {
                parts.push(Document::Line);
            }
            parts.push(text(format!("{part} ")));
            let argument = self.expression(argument);
            parts.push(if hugs { argument } else { nest_argument(argument) });
        }
        concat(parts)
    }

    fn message(&mut self, message: &Message) -> Document {
        match message.arguments.as_slice() {
            [] => text(message.selector.clone()),
            [argument] if !message.selector.ends_with(':') => concat(vec![
                text(format!("{} ", message.selector)),
                self.expression(argument),
            ]),
            _ => {
                let hugs = message.arguments.len() == 1;
                let keywords = self.keywords(message, hugs);
                if hugs { keywords } else { group(nest(keywords)) }
            }
        }
    }

    fn cascade(&mut self, receiver: &Expression, messages: &[Message]) -> Document {
        let receiver = self.expression(receiver);
        let mut parts = Vec::new();
        for (index, message) in messages.iter().enumerate() {
            if index > 0 {
                parts.push(text(";"));
                parts.push(Document::Line);
            } else if message.arguments.is_empty() {
                // On a new line it would be the next statement.
                parts.push(text(" "));
            } else {
                parts.push(Document::Line);
            }
            parts.push(self.message(message));
        }
        group(concat(vec![receiver, nest(concat(parts))]))
    }

    fn match_arms(&mut self, value: &Expression, arms: &[Arm], exhaustive: bool, span: Span) -> Document {
        let word = if exhaustive { "matchExhaustive:" } else { "match:" };
        let value = self.expression(value);
        let first = arms.first().map_or(span.end, |arm| arm.span.start);
        let opening = self.gap(span.start, first).trim_end().len() as u32 + span.start;
        let opening = self
            .pending()
            .filter(|comment| comment.span.start < first)
            .map_or(opening, |comment| {
                self.gap(span.start, comment.span.start).trim_end().len() as u32 + span.start
            });
        let close = span.end.saturating_sub(1);
        let is_bracket = self.gap(span.start, opening).ends_with('[');
        self.is_odd |= !is_bracket;
        let (mut parts, _) = self.trailing(opening, first);
        let is_short = arms.len() <= 2 && parts.is_empty() && !self.has_pending_before(close);
        parts.insert(0, text(format!(" {word} [")));
        if is_short {
            let mut body = Vec::new();
            for (index, arm) in arms.iter().enumerate() {
                if index > 0 {
                    body.push(Document::FlatText(";"));
                    body.push(Document::Line);
                }
                body.push(self.arm(arm));
            }
            parts.push(nest(concat(vec![Document::SoftLine, concat(body)])));
            parts.push(Document::SoftLine);
        } else {
            let body = self.lines(
                arms,
                None,
                close,
                Placement::Inline,
                |arm| arm.span.start,
                |formatter, arm, _| Entry {
                    document: formatter.or_verbatim(arm.span, 0, |formatter| formatter.arm(arm)),
                    start: arm.span.start,
                    end: arm.span.end,
                    wants_blank: false,
                },
            );
            parts.push(nest(concat(vec![Document::HardLine, concat(body)])));
            parts.push(Document::HardLine);
        }
        parts.push(text("]"));
        concat(vec![value, group(concat(parts))])
    }

    fn arm(&mut self, arm: &Arm) -> Document {
        let mut parts = vec![text(self.pattern(&arm.pattern))];
        if let Some(guard) = &arm.guard {
            parts.push(text(" when: ["));
            parts.push(nest(self.expression(guard)));
            parts.push(text("]"));
        }
        parts.push(text(" -> "));
        parts.push(self.expression(&arm.body));
        concat(parts)
    }
}

/// String text, whose line ends stay as they are.
fn raw(source: &str) -> Document {
    if !source.contains('\n') {
        return text(source);
    }
    let lines = source.split('\n').map(|line| VerbatimLine {
        indent: None,
        text: line.into(),
    });
    Document::Verbatim(lines.collect())
}

/// Blocks and collections open on the line of their keyword.
fn is_huggable(expression: &Expression) -> bool {
    matches!(
        expression.kind,
        ExpressionKind::Block(_)
            | ExpressionKind::List { .. }
            | ExpressionKind::Array(_)
            | ExpressionKind::Dictionary(_)
            | ExpressionKind::Parenthesized(_)
            | ExpressionKind::String(_)
    )
}

/// Indents the further lines of an argument, except where it brings its own bracket.
fn nest_argument(argument: Document) -> Document {
    if is_forced(&argument) {
        argument
    } else {
        nest(argument)
    }
}

/// Something with a place in the source.
pub(super) trait Spanned {
    fn start(&self) -> u32;
}

impl Spanned for Expression {
    fn start(&self) -> u32 {
        self.span.start
    }
}

impl Spanned for (Expression, Expression) {
    fn start(&self) -> u32 {
        self.0.span.start
    }
}
