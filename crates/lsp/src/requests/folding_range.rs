//! What can be folded: definitions, blocks, collections and comments over several lines.

use beamtalk_syntax::ast::{CommentKind, ExpressionKind, Item, Method};
use beamtalk_syntax::span::Span;
use beamtalk_syntax::walk;
use gen_lsp_types::{FoldingRange, FoldingRangeKind, FoldingRangeParams};

use crate::fault::Fault;
use crate::state::{Snapshot, View};

pub(crate) fn handle(snapshot: &Snapshot, params: FoldingRangeParams) -> Result<Vec<FoldingRange>, Fault> {
    let view = snapshot.view(&params.text_document)?;
    let mut folds = Folds {
        view: &view,
        found: Vec::new(),
    };
    for item in &view.file.source.unit.items {
        folds.item(item);
    }
    folds.comments();
    let mut found = folds.found;
    found.sort_by_key(|fold| (fold.start_line, std::cmp::Reverse(fold.end_line)));
    // Of two that start on one line a client shows only one: the larger.
    found.dedup_by_key(|fold| fold.start_line);
    Ok(found)
}

struct Folds<'a> {
    view: &'a View,
    found: Vec<FoldingRange>,
}

impl Folds<'_> {
    fn add(&mut self, span: Span, kind: Option<FoldingRangeKind>) {
        let lines = &self.view.file.lines;
        let (start_line, end_line) = (lines.line(span.start), lines.line(span.end));
        if end_line > start_line {
            self.found.push(FoldingRange {
                start_line,
                start_character: None,
                end_line,
                end_character: None,
                kind,
                collapsed_text: None,
            });
        }
    }

    fn item(&mut self, item: &Item) {
        match item {
            Item::Class(class) => {
                self.add(class.span, None);
                for method in &class.methods {
                    self.method(method);
                }
            }
            Item::Protocol(protocol) => self.add(protocol.span, None),
            Item::TypeAlias(alias) => self.add(alias.span, None),
            Item::Extension(extension) => self.method(&extension.method),
            Item::Statement(statement) => self.expression(&statement.expression),
        }
    }

    fn method(&mut self, method: &Method) {
        self.add(method.span, None);
        for statement in &method.body {
            self.expression(&statement.expression);
        }
    }

    fn expression(&mut self, node: &beamtalk_syntax::ast::Expression) {
        walk::all(node, &mut |node| {
            let folds = matches!(
                node.kind,
                ExpressionKind::Block(_)
                    | ExpressionKind::List { .. }
                    | ExpressionKind::Array(_)
                    | ExpressionKind::Dictionary(_)
                    | ExpressionKind::Match { .. }
                    | ExpressionKind::String(_)
            );
            if folds {
                self.add(node.span, None);
            }
        });
    }

    /// Block comments, and line comments on lines that follow each other.
    fn comments(&mut self) {
        let lines = &self.view.file.lines;
        let mut run: Option<Span> = None;
        for comment in &self.view.file.source.unit.comments {
            let follows = |run: Span| {
                comment.kind != CommentKind::Block
                    && lines.line(comment.span.start) == lines.line(run.end) + 1
            };
            match run {
                Some(open) if follows(open) => run = Some(open.to(comment.span)),
                _ => {
                    if let Some(open) = run.replace(comment.span) {
                        self.add(open, Some(FoldingRangeKind::Comment));
                    }
                }
            }
        }
        if let Some(open) = run {
            self.add(open, Some(FoldingRangeKind::Comment));
        }
    }
}
