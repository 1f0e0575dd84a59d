//! What can be left out without changing anything: `trailing-caret`, `unnecessary-parens`, `needless-separator`.

use beamtalk_syntax::ast::{self, Expression, ExpressionKind, Message, StringPart};
use beamtalk_syntax::diagnostic::{Diagnostic, Edit};
use beamtalk_syntax::precedence;
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;

use super::each_body;
use crate::SourceFile;
use crate::codes;
use crate::resolve::{is_placeholder, unparenthesized};

/// How loosely an expression binds, and up to which looseness a place takes an expression without parentheses.
/// Operators lie between the unary and the keyword message, by their precedence.
type Looseness = u8;
const PRIMARY: Looseness = 0;
const UNARY: Looseness = 1;
const BELOW_KEYWORD: Looseness = 99;
const KEYWORD: Looseness = 100;
const CASCADE: Looseness = 101;
const ASSIGNMENT: Looseness = 102;
const RETURN: Looseness = 103;

pub(super) fn method(file: &SourceFile, method: &ast::Method, out: &mut Vec<Diagnostic>) {
    if is_placeholder(&method.body) {
        return;
    }
    let mut finder = Finder {
        text: &file.text,
        out,
    };
    finder.trailing_caret(&method.body);
    finder.statements(&method.body);
    each_body(&method.body, &mut |body| finder.separators(body));
}

/// A slot default.
pub(super) fn default(file: &SourceFile, default: &Expression, out: &mut Vec<Diagnostic>) {
    let mut finder = Finder {
        text: &file.text,
        out,
    };
    finder.expression(default, KEYWORD);
}

struct Finder<'a> {
    text: &'a str,
    out: &'a mut Vec<Diagnostic>,
}

impl Finder<'_> {
    fn trailing_caret(&mut self, body: &[ast::Statement]) {
        let Some(last) = body.last() else { return };
        let ExpressionKind::Return(value) = &last.expression.kind else {
            return;
        };
        // `^ self delegate` is no declaration, `self delegate` alone is one.
        let bare = ast::Statement {
            expression: Expression::clone(value),
            ..last.clone()
        };
        if is_placeholder(&[bare]) && body.len() == 1 {
            return;
        }
        let start = last.expression.span.start;
        let end = skip_blanks(self.text, start + 1);
        self.out.push(
            Diagnostic::lint(
                codes::TRAILING_CARET,
                Span::new(start, start + 1),
                "needless `^`: a method answers its last expression (trailing-caret)",
            )
            .with_hint("Remove the `^`.")
            .with_edits(vec![Edit {
                span: Span::new(start, end),
                text: "",
            }]),
        );
    }

    /// A `.` that a line end or a `]` follows.
    fn separators(&mut self, body: &[ast::Statement]) {
        for statement in body {
            let at = skip_blanks(self.text, statement.span.end);
            if !self.rest(at).starts_with('.') {
                continue;
            }
            let behind = self.rest(skip_blanks(self.text, at + 1));
            let is_needless = ["\n", "\r", "]", "//"].iter().any(|end| behind.starts_with(end));
            if is_needless || behind.is_empty() {
                self.out.push(
                    Diagnostic::lint(
                        codes::NEEDLESS_SEPARATOR,
                        Span::new(at, at + 1),
                        "needless `.`: the end of the line or block ends the statement (needless-separator)",
                    )
                    .with_hint("Remove the `.`."),
                );
            }
        }
    }

    fn rest(&self, at: u32) -> &str {
        self.text.get(at as usize..).unwrap_or("")
    }

    fn statements(&mut self, body: &[ast::Statement]) {
        for statement in body {
            let is_reason = !statement.expect.is_empty()
                && matches!(&statement.expression.kind, ExpressionKind::Parenthesized(inner) if starts_with(self.text, inner, '"'));
            let is_declaration = body.len() == 1
                && matches!(&statement.expression.kind, ExpressionKind::Parenthesized(inner) if {
                    is_placeholder(&[ast::Statement { expression: Expression::clone(inner), ..statement.clone() }])
                });
            if is_reason || is_declaration || statement.is_cast {
                self.inside(&statement.expression);
            } else {
                self.expression(&statement.expression, ASSIGNMENT);
            }
        }
    }

    /// An expression in a place that takes `allowed` without parentheses.
    fn expression(&mut self, node: &Expression, allowed: Looseness) {
        if let ExpressionKind::Parenthesized(inner) = &node.kind
            && looseness(unparenthesized(inner)) <= allowed
            && !node.span.text(self.text).contains('\n')
        {
            self.parentheses(node, inner);
        }
        self.inside(node);
    }

    /// The parts of an expression, each in its place.
    fn inside(&mut self, node: &Expression) {
        match &node.kind {
            ExpressionKind::Parenthesized(inner) => {
                // One pair is enough, whatever is in it.
                if let ExpressionKind::Parenthesized(innermost) = &inner.kind {
                    self.parentheses(inner, innermost);
                }
                self.inside(inner);
            }
            ExpressionKind::String(parts) => {
                for part in parts {
                    if let StringPart::Interpolation(value) = part {
                        self.expression(value, KEYWORD);
                    }
                }
            }
            ExpressionKind::List { elements, tail } => {
                elements
                    .iter()
                    .for_each(|element| self.expression(element, KEYWORD));
                if let Some(tail) = tail {
                    self.expression(tail, UNARY);
                }
            }
            ExpressionKind::Array(elements) => {
                elements
                    .iter()
                    .for_each(|element| self.expression(element, KEYWORD));
            }
            ExpressionKind::Dictionary(pairs) => {
                for (key, value) in pairs {
                    // A computed key is marked by its parentheses.
                    if matches!(&key.kind, ExpressionKind::Parenthesized(inner) if is_literal(inner)) {
                        self.expression(key, PRIMARY);
                    } else {
                        self.inside(key);
                    }
                    self.expression(value, KEYWORD);
                }
            }
            ExpressionKind::Block(block) => self.statements(&block.body),
            ExpressionKind::Send(send) => {
                self.receiver(&send.receiver, &send.message);
                self.arguments(&send.message, false);
            }
            ExpressionKind::Cascade { receiver, messages } => {
                for (at, message) in messages.iter().enumerate() {
                    if at == 0 {
                        self.receiver(receiver, message);
                    }
                    self.arguments(message, at > 0);
                }
            }
            ExpressionKind::Match { value, arms, .. } => {
                self.expression(value, BELOW_KEYWORD);
                for arm in arms {
                    if let Some(guard) = &arm.guard {
                        self.expression(guard, KEYWORD);
                    }
                    // `([..])` is the block itself, `[..]` its statements.
                    if starts_with_block(&arm.body) {
                        self.inside(&arm.body);
                    } else {
                        self.expression(&arm.body, KEYWORD);
                    }
                }
            }
            ExpressionKind::Assign { value, .. } | ExpressionKind::Return(value) => {
                self.expression(value, ASSIGNMENT);
            }
            // Where nothing is known about the place, the parentheses stay.
            _ => walk::inner(node, &mut |inner| self.inside(inner)),
        }
    }

    fn receiver(&mut self, receiver: &Expression, message: &Message) {
        let between = Span::new(receiver.span.end, message.span.start).text(self.text);
        // `(a b); c` sends `c` to the value of `a b`.
        if between.contains(';') {
            self.inside(receiver);
            return;
        }
        let allowed = if message.selector.ends_with(':') {
            BELOW_KEYWORD
        } else if message.arguments.is_empty() {
            UNARY
        } else {
            let (level, is_right) = precedence(&message.selector);
            KEYWORD - level - u8::from(is_right)
        };
        self.expression(receiver, allowed);
    }

    fn arguments(&mut self, message: &Message, is_cascaded: bool) {
        let allowed = if message.selector.ends_with(':') {
            BELOW_KEYWORD
        } else if is_cascaded {
            UNARY
        } else {
            let (level, is_right) = precedence(&message.selector);
            KEYWORD - level - u8::from(!is_right)
        };
        let is_match = message.selector.contains("match:") || message.selector.contains("matchExhaustive:");
        for argument in &message.arguments {
            // `match: [` would begin arms.
            if is_match && starts_with_block(argument) {
                self.inside(argument);
            } else {
                self.expression(argument, allowed);
            }
        }
    }

    fn parentheses(&mut self, node: &Expression, inner: &Expression) {
        let Some(edits) = self.without(node.span, inner.span) else {
            return;
        };
        self.out.push(
            Diagnostic::lint(
                codes::UNNECESSARY_PARENS,
                node.span,
                "these parentheses change nothing (unnecessary-parens)",
            )
            .with_hint("Remove them.")
            .with_edits(edits),
        );
    }

    /// The edits that take a pair of parentheses away; `None` where the text around would be read differently.
    fn without(&self, outer: Span, inner: Span) -> Option<Vec<Edit>> {
        let open = Span::new(outer.start, skip_blanks(self.text, outer.start + 1));
        let inner_text = Span::new(outer.start + 1, outer.end.checked_sub(1)?).text(self.text);
        let close_start = outer.end - 1 - trailing_blanks(inner_text);
        let close = Span::new(close_start, outer.end);
        let before = self.text.get(..outer.start as usize)?.chars().next_back();
        let after = self.rest(outer.end).chars().next();
        let first = self.rest(open.end).chars().next()?;
        let last = self.text.get(..close_start as usize)?.chars().next_back()?;
        // A sign is read with what stands before it; `.`, `@` and `:` with what stands beside them.
        let is_risky = first == '-'
            || inner.start < open.end
            || before.is_some_and(|c| matches!(c, '.' | '@' | '$' | '#'))
            || after.is_some_and(|c| matches!(c, '.' | '@' | ':') && self.continues(outer.end));
        if is_risky {
            return None;
        }
        let gap = |left: Option<char>, right: Option<char>| match (left, right) {
            (Some(left), Some(right)) if joins(left, right) => " ",
            _ => "",
        };
        Some(vec![
            Edit {
                span: open,
                text: gap(before, Some(first)),
            },
            Edit {
                span: close,
                text: gap(Some(last), after),
            },
        ])
    }

    /// Does the point, at sign or colon at this place touch what follows?
    fn continues(&self, at: u32) -> bool {
        self.rest(at + 1)
            .chars()
            .next()
            .is_some_and(|c| !c.is_whitespace() && c != ']')
    }
}

fn joins(left: char, right: char) -> bool {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let is_operator = |c: char| "+-*/%<>=&\\|!^:,;~?@".contains(c);
    (is_word(left) && is_word(right))
        || (is_operator(left) && is_operator(right))
        || (left == '-' && right.is_ascii_digit())
        || (left == '"' && right == '"')
        || (left == ':' && is_word(right))
}

fn skip_blanks(text: &str, at: u32) -> u32 {
    let rest = text.get(at as usize..).unwrap_or("");
    at + (rest.len() - rest.trim_start_matches([' ', '\t']).len()) as u32
}

fn trailing_blanks(text: &str) -> u32 {
    (text.len() - text.trim_end_matches([' ', '\t']).len()) as u32
}

fn starts_with(text: &str, node: &Expression, c: char) -> bool {
    node.span.text(text).starts_with(c)
}

fn starts_with_block(node: &Expression) -> bool {
    match &node.kind {
        ExpressionKind::Block(_) => true,
        ExpressionKind::Parenthesized(inner) => starts_with_block(inner),
        ExpressionKind::Send(send) => starts_with_block(&send.receiver),
        ExpressionKind::Cascade { receiver, .. } => starts_with_block(receiver),
        ExpressionKind::Match { value, .. } => starts_with_block(value),
        _ => false,
    }
}

fn is_literal(node: &Expression) -> bool {
    matches!(
        node.kind,
        ExpressionKind::Integer(_)
            | ExpressionKind::Float(_)
            | ExpressionKind::Character(_)
            | ExpressionKind::String(_)
            | ExpressionKind::Symbol(_)
    )
}

fn looseness(node: &Expression) -> Looseness {
    match &node.kind {
        ExpressionKind::Send(send) if send.message.selector.ends_with(':') => KEYWORD,
        ExpressionKind::Send(send) if send.message.arguments.is_empty() => UNARY,
        ExpressionKind::Send(send) => KEYWORD - precedence(&send.message.selector).0,
        ExpressionKind::Match { .. } => KEYWORD,
        ExpressionKind::Cascade { .. } => CASCADE,
        ExpressionKind::Assign { .. } => ASSIGNMENT,
        ExpressionKind::Return(_) | ExpressionKind::Error | ExpressionKind::Primitive { .. } => RETURN,
        ExpressionKind::Integer(_)
        | ExpressionKind::Float(_)
        | ExpressionKind::Character(_)
        | ExpressionKind::String(_)
        | ExpressionKind::Symbol(_)
        | ExpressionKind::Nil
        | ExpressionKind::True
        | ExpressionKind::False
        | ExpressionKind::Variable(_)
        | ExpressionKind::ClassName(_)
        | ExpressionKind::SelfReference
        | ExpressionKind::Super
        | ExpressionKind::Field(_)
        | ExpressionKind::ForeignField { .. }
        | ExpressionKind::List { .. }
        | ExpressionKind::Array(_)
        | ExpressionKind::Dictionary(_)
        | ExpressionKind::Block(_)
        | ExpressionKind::Parenthesized(_) => PRIMARY,
    }
}
