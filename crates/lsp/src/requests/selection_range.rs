//! From a position outwards: name, expression, statement, block, method, class, text.

use beamtalk_syntax::ast::{Expression, ExpressionKind, Item, Message, Method, Statement};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk::{self, Part};
use gen_lsp_types::{SelectionRange, SelectionRangeParams};

use crate::analysis::names;
use crate::fault::Fault;
use crate::state::{Snapshot, View};

pub(crate) fn handle(
    snapshot: &Snapshot,
    params: SelectionRangeParams,
) -> Result<Vec<SelectionRange>, Fault> {
    let view = snapshot.view(&params.text_document)?;
    let places = params.positions.into_iter();
    places
        .map(|position| {
            let offset = view.offset(position)?;
            Ok(ranges(&view, &spans(&view, offset)))
        })
        .collect()
}

/// What is around an offset, outermost first, each larger than the next.
pub(crate) fn spans(view: &View, offset: u32) -> Vec<Span> {
    let mut around = Around {
        offset,
        found: vec![Span::new(0, view.text().len() as u32)],
    };
    let unit = &view.file.source.unit;
    for item in &unit.items {
        around.item(item);
    }
    for comment in &unit.comments {
        around.add(comment.span);
    }
    if let Some(name) = names::at(&names::all(unit), offset) {
        around.add(name.span);
    }
    let mut found = around.found;
    found.sort_by_key(|span| (span.start, std::cmp::Reverse(span.end)));
    let mut nested: Vec<Span> = Vec::new();
    for span in found {
        let fits = nested
            .last()
            .is_none_or(|outer| outer.start <= span.start && span.end <= outer.end && *outer != span);
        if fits {
            nested.push(span);
        }
    }
    nested
}

fn ranges(view: &View, spans: &[Span]) -> SelectionRange {
    let mut outer: Option<Box<SelectionRange>> = None;
    for span in spans {
        outer = Some(Box::new(SelectionRange {
            range: view.range(*span),
            parent: outer,
        }));
    }
    outer.map_or_else(
        || SelectionRange {
            range: view.range(Span::new(0, 0)),
            parent: None,
        },
        |innermost| *innermost,
    )
}

struct Around {
    offset: u32,
    found: Vec<Span>,
}

impl Around {
    /// Whether the offset is in it.
    fn add(&mut self, span: Span) -> bool {
        let is_in = span.start <= self.offset && self.offset <= span.end;
        if is_in {
            self.found.push(span);
        }
        is_in
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Class(class) => {
                if self.add(class.span) {
                    self.add(class.header);
                    for slot in &class.slots {
                        self.add(slot.span);
                        slot.default.iter().for_each(|default| self.expression(default));
                    }
                    class.methods.iter().for_each(|method| self.method(method));
                }
            }
            Item::Protocol(protocol) => {
                self.add(protocol.span);
                for signature in &protocol.signatures {
                    self.add(signature.span);
                }
            }
            Item::TypeAlias(alias) => {
                self.add(alias.span);
            }
            Item::Extension(extension) => {
                if self.add(extension.span) {
                    self.method(&extension.method);
                }
            }
            Item::Statement(statement) => self.statement(statement),
        }
    }

    fn method(&mut self, method: &Method) {
        if !self.add(method.span) {
            return;
        }
        self.add(method.head.span);
        if let (Some(first), Some(last)) = (method.body.first(), method.body.last()) {
            self.add(first.span.to(last.span));
        }
        self.statements(&method.body);
    }

    fn statements(&mut self, statements: &[Statement]) {
        statements.iter().for_each(|statement| self.statement(statement));
    }

    fn statement(&mut self, statement: &Statement) {
        if self.add(statement.span) {
            self.expression(&statement.expression);
        }
    }

    fn expression(&mut self, node: &Expression) {
        if !self.add(node.span) {
            return;
        }
        match &node.kind {
            ExpressionKind::Send(send) => self.message(&send.message),
            ExpressionKind::Cascade { messages, .. } => {
                messages.iter().for_each(|message| self.message(message));
            }
            ExpressionKind::Block(block) => {
                self.add(block.body_span);
            }
            _ => {}
        }
        walk::parts(node, &mut |part| match part {
            Part::Expression(inner) => self.expression(inner),
            Part::Statements(statements) => self.statements(statements),
            Part::Pattern(pattern) => {
                self.add(pattern.span);
            }
            Part::Type(annotation) => {
                self.add(annotation.span);
            }
            Part::Binding(_) | Part::Class(_) => {}
        });
    }

    fn message(&mut self, message: &Message) {
        self.add(message.span);
    }
}
