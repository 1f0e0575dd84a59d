//! What a method mentions: the messages it sends, the classes it names, the fields it reads and assigns, the Erlang
//! functions it calls and the events it announces, each with its line in the method. Kept with the method, so that
//! the running image can be asked about it without its source being parsed again.

use beamtalk_etf::Term;
use beamtalk_syntax::ast::{self, ExpressionKind};
use beamtalk_syntax::span::{LineIndex, Span};
use beamtalk_syntax::walk;
use ecow::EcoString;

/// The sites of a method as a list of `{send | self_send | class | read | write | announce, Name, Line}` and
/// `{erlang, Module, Function, Arity, Line}`.
pub(crate) fn of(method: &ast::Method, lines: &LineIndex) -> Term {
    let mut collector = Collector {
        lines,
        first: lines.line(method.span.start),
        found: Vec::new(),
    };
    collector.statements(&method.body);
    Term::list(collector.found)
}

struct Collector<'a> {
    lines: &'a LineIndex,
    first: u32,
    found: Vec<Term>,
}

impl Collector<'_> {
    fn statements(&mut self, statements: &[ast::Statement]) {
        for statement in statements {
            self.expression(&statement.expression);
        }
    }

    fn expression(&mut self, node: &ast::Expression) {
        match &node.kind {
            ExpressionKind::ClassName(class) => self.add("class", &class.name.text, class.span),
            ExpressionKind::Field(field) => self.add("read", &field.text, node.span),
            ExpressionKind::Assign {
                target: ast::Target::Field(field),
                ..
            } => self.add("write", &field.text, field.span),
            ExpressionKind::Send(send) => match erlang_module(&send.receiver) {
                Some(module) => {
                    self.erlang(module, &send.message);
                    let class = innermost(&send.receiver);
                    self.expression(class);
                    send.message
                        .arguments
                        .iter()
                        .for_each(|argument| self.expression(argument));
                    return;
                }
                None => self.message(&send.receiver, &send.message),
            },
            ExpressionKind::Cascade { receiver, messages } => {
                for message in messages {
                    self.message(receiver, message);
                }
            }
            _ => {}
        }
        walk::inner(node, &mut |inner| self.expression(inner));
    }

    fn message(&mut self, receiver: &ast::Expression, message: &ast::Message) {
        let selector = &message.selector;
        if matches!(selector.as_str(), "==" | "/=" | "=:=" | "=/=") {
            return;
        }
        let span = message.parts.first().copied().unwrap_or(message.span);
        let kind = if matches!(receiver.kind, ExpressionKind::SelfReference) {
            "self_send"
        } else {
            "send"
        };
        self.add(kind, selector, span);
        let is_announcing = matches!(
            selector.as_str(),
            "announce:" | "announceAndWait:" | "announceAndWait:timeout:"
        );
        if is_announcing
            && let Some(event) = message.arguments.first()
            && let ExpressionKind::ClassName(class) = &innermost(event).kind
        {
            self.add("announce", &class.name.text, span);
        }
    }

    fn erlang(&mut self, module: &EcoString, message: &ast::Message) {
        let function: EcoString = message.selector.split(':').next().unwrap_or_default().into();
        let site = [
            Term::atom("erlang"),
            Term::Atom(module.clone()),
            Term::Atom(function),
            Term::Integer(message.arguments.len() as i64),
            self.line(message.span),
        ];
        self.found.push(Term::tuple(site));
    }

    fn add(&mut self, kind: &str, name: &EcoString, span: Span) {
        let site = [Term::atom(kind), Term::Atom(name.clone()), self.line(span)];
        self.found.push(Term::tuple(site));
    }

    fn line(&self, span: Span) -> Term {
        let line = self.lines.line(span.start).saturating_sub(self.first) + 1;
        Term::Integer(i64::from(line))
    }
}

/// The module of `Erlang module`.
fn erlang_module(node: &ast::Expression) -> Option<&EcoString> {
    match &node.kind {
        ExpressionKind::Parenthesized(inner) => erlang_module(inner),
        ExpressionKind::Send(send) => match &send.receiver.kind {
            ExpressionKind::ClassName(class)
                if class.name.text == "Erlang" && send.message.arguments.is_empty() =>
            {
                Some(&send.message.selector)
            }
            _ => None,
        },
        _ => None,
    }
}

/// The receiver of the receiver and so on.
fn innermost(node: &ast::Expression) -> &ast::Expression {
    match &node.kind {
        ExpressionKind::Parenthesized(inner) => innermost(inner),
        ExpressionKind::Send(send) => innermost(&send.receiver),
        ExpressionKind::Cascade { receiver, .. } => innermost(receiver),
        _ => node,
    }
}
