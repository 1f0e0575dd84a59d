//! Tokens to tree, with recovery.
//!
//! The parser never fails: whatever the text, it answers a tree and reports every fault. Three
//! things keep that simple. A member of a class ends where its layout says (a line at or left of
//! its column), so `end` bounds everything read inside it. Brackets are paired by the lexer, so a
//! broken bracketed construct resumes behind its own closing bracket. Everything else resumes at
//! the next statement. At most one error is reported for one place.

mod class;
mod expression;
mod habits;
mod literal;
mod pattern;
mod primary;
mod protocol;
mod recovery;
mod statement;
mod types;

use ecow::{EcoString, eco_format};

use crate::ast::{ClassRef, Comment, CommentKind, Item, Name, Unit};
use crate::codes;
use crate::diagnostic::Diagnostic;
use crate::lexer::lex;
use crate::span::Span;
use crate::token::{Token, TokenKind};

pub(crate) use expression::precedence;
pub(crate) use statement::{parse_body, parse_method};

/// What a text may hold at its top level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// One class or protocol, aliases and extensions.
    File,
    /// Any mix of items and statements.
    Input,
}

/// Whether a line end may end a statement here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Lines {
    Significant,
    Ignored,
}

const MAX_DEPTH: u32 = 64;
/// Bounds the height of the tree, which later passes walk recursively.
const MAX_HEIGHT: u32 = 512;

struct Parser<'s> {
    source: &'s str,
    tokens: Vec<Token>,
    comments: Vec<Comment>,
    /// For each comment: is it part of some declaration's documentation?
    attached: Vec<bool>,
    diagnostics: Vec<Diagnostic>,
    position: usize,
    /// The first token of the region: brackets opened before it are not ours.
    start: usize,
    /// Tokens from here on belong to the next member or item and read as `Eof`.
    end: usize,
    lines: Lines,
    depth: u32,
    /// The height of the expression read last.
    height: u32,
    mode: Mode,
    in_method: bool,
    in_signature: bool,
    /// In the argument of a ClassBuilder message, where a block may name its parameter `self`.
    in_builder: bool,
    /// The token at which `@primitive` is a whole method body.
    primitive_at: usize,
    last_error: Option<u32>,
}

pub(crate) fn parse(source: &str, mode: Mode) -> (Unit, Vec<Diagnostic>) {
    let Some(mut parser) = Parser::new(source, mode) else {
        let message = "the source text is over four gigabytes";
        return (
            Unit::default(),
            vec![Diagnostic::error(
                codes::SOURCE_TOO_LONG,
                Span::default(),
                message,
            )],
        );
    };
    let items = parser.parse_items();
    parser.finish(items)
}

impl<'s> Parser<'s> {
    fn new(source: &'s str, mode: Mode) -> Option<Self> {
        if source.len() >= u32::MAX as usize {
            return None;
        }
        let lexed = lex(source);
        Some(Self {
            source,
            attached: vec![false; lexed.comments.len()],
            end: lexed.tokens.len().saturating_sub(1),
            tokens: lexed.tokens,
            comments: lexed.comments,
            diagnostics: lexed.diagnostics,
            position: 0,
            start: 0,
            lines: Lines::Significant,
            depth: 0,
            height: 0,
            mode,
            in_method: mode == Mode::File,
            in_signature: false,
            in_builder: false,
            primitive_at: usize::MAX,
            last_error: None,
        })
    }

    fn finish(mut self, items: Vec<Item>) -> (Unit, Vec<Diagnostic>) {
        self.report_detached_docs();
        self.diagnostics.sort_by_key(|diagnostic| diagnostic.span);
        habits::explain(self.source, &self.tokens, &mut self.diagnostics);
        (
            Unit {
                items,
                comments: self.comments,
            },
            self.diagnostics,
        )
    }

    fn token_at(&self, index: usize) -> Token {
        self.tokens
            .get(index)
            .or(self.tokens.last())
            .copied()
            .unwrap_or(Token {
                kind: TokenKind::Eof,
                newline: false,
                unterminated: false,
                start: 0,
                end: 0,
                column: 0,
                comments: 0,
                partner: crate::token::NO_PARTNER,
            })
    }

    /// The kind of a token, `Eof` from the end of the current region on.
    fn kind_at(&self, index: usize) -> TokenKind {
        if index < self.end {
            self.token_at(index).kind
        } else {
            TokenKind::Eof
        }
    }

    fn kind(&self) -> TokenKind {
        self.kind_at(self.position)
    }

    fn token(&self) -> Token {
        self.token_at(self.position)
    }

    fn at(&self, kind: TokenKind) -> bool {
        self.kind() == kind
    }

    fn text_at(&self, index: usize) -> &'s str {
        self.token_at(index).span().text(self.source)
    }

    fn text(&self) -> &'s str {
        self.text_at(self.position)
    }

    fn is_word_at(&self, index: usize, word: &str) -> bool {
        self.kind_at(index) == TokenKind::Lower && self.text_at(index) == word
    }

    fn is_keyword_at(&self, index: usize, word: &str) -> bool {
        self.kind_at(index) == TokenKind::Keyword && self.text_at(index) == word
    }

    /// Takes the current token; stays put at the end of the region.
    fn bump(&mut self) -> Token {
        let token = self.token();
        if self.position < self.end {
            self.position += 1;
        }
        token
    }

    fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.at(kind);
        if found {
            self.bump();
        }
        found
    }

    /// Where the token before the current one ends.
    fn previous_end(&self) -> u32 {
        self.position
            .checked_sub(1)
            .map_or(0, |index| self.token_at(index).end)
    }

    fn span_from(&self, start: u32) -> Span {
        Span::new(start, self.previous_end().max(start))
    }

    /// Does the current token stand on a new line, where lines count?
    fn on_new_line(&self) -> bool {
        self.lines == Lines::Significant && self.token().newline
    }

    /// Do the two tokens touch?
    fn is_adjacent(&self, index: usize) -> bool {
        self.token_at(index).end == self.token_at(index + 1).start && index + 1 < self.end
    }

    fn name_from(&self, token: Token) -> Name {
        Name {
            text: token.span().text(self.source).into(),
            span: token.span(),
        }
    }

    /// How the current token is named in a message.
    fn found(&self) -> EcoString {
        if self.token().kind == TokenKind::Eof {
            return "<eof>".into();
        }
        let text = self.text();
        let line = text.lines().next().unwrap_or("");
        match line.char_indices().nth(30) {
            Some((at, _)) => eco_format!("{}…", line.get(..at).unwrap_or("")),
            None => line.into(),
        }
    }

    /// The current token, or the place behind the last one at the end of the region.
    fn here(&self) -> Span {
        if self.position < self.end {
            self.token().span()
        } else {
            let end = self.previous_end();
            Span::new(end, end)
        }
    }

    fn error(&mut self, code: &'static str, span: Span, message: impl Into<EcoString>) {
        self.report(Diagnostic::error(code, span, message));
    }

    fn error_here(&mut self, code: &'static str, message: impl Into<EcoString>) {
        if matches!(self.kind(), TokenKind::Error | TokenKind::UnknownOperator) {
            self.last_error = Some(self.token().start);
        }
        let span = self.here();
        self.error(code, span, message);
    }

    /// Keeps the first error of each place.
    fn report(&mut self, diagnostic: Diagnostic) {
        if self.last_error != Some(diagnostic.span.start) {
            self.last_error = Some(diagnostic.span.start);
            self.diagnostics.push(diagnostic);
        }
    }

    /// Reads something inside brackets, where `lines` holds; answers `None` when nested too deep.
    fn nested<T>(&mut self, lines: Lines, read: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.depth >= MAX_DEPTH {
            return None;
        }
        let outer = std::mem::replace(&mut self.lines, lines);
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        self.lines = outer;
        Some(result)
    }

    /// Is the name at this token followed by `@Name`?
    fn is_package_at(&self, index: usize) -> bool {
        self.kind_at(index + 1) == TokenKind::At && self.kind_at(index + 2) == TokenKind::Upper
    }

    /// `pkg@Name` or `Name`.
    fn parse_class_ref(&mut self) -> Option<ClassRef> {
        let first = self.token();
        let package = if self.at(TokenKind::Lower) && self.is_package_at(self.position) {
            self.bump();
            self.bump();
            Some(self.name_from(first))
        } else {
            None
        };
        if !self.at(TokenKind::Upper) {
            return None;
        }
        let name = self.bump();
        Some(ClassRef {
            package,
            name: self.name_from(name),
            span: first.span().to(name.span()),
        })
    }

    /// Is there a class reference at this token? Answers the index behind it.
    fn skip_class_ref(&self, index: usize) -> Option<usize> {
        match self.kind_at(index) {
            TokenKind::Upper => Some(index + 1),
            TokenKind::Lower if self.is_package_at(index) => Some(index + 3),
            _ => None,
        }
    }

    /// The doc comment lines directly above a token, joined.
    fn doc_before(&mut self, index: usize) -> Option<EcoString> {
        let token = self.token_at(index);
        // A separator between is no code.
        let dots = (0..index)
            .rev()
            .take_while(|before| self.token_at(*before).kind == TokenKind::Dot)
            .count();
        let before = (index - dots).checked_sub(1);
        let first = before.map_or(0, |before| self.token_at(before).comments) as usize;
        let mut below = token.start;
        let mut lines: Vec<&str> = Vec::new();
        for at in (first..token.comments as usize).rev() {
            let Some(comment) = self.comments.get(at) else {
                break;
            };
            let (kind, span) = (comment.kind, comment.span);
            let gap = Span::new(span.end, below).text(self.source);
            let is_own_line = starts_line(self.source, span.start);
            if kind != CommentKind::Doc || gap.matches('\n').count() != 1 || !is_own_line {
                break;
            }
            if let Some(attached) = self.attached.get_mut(at) {
                *attached = true;
            }
            let text = span.text(self.source);
            let text = text.strip_prefix("///").unwrap_or(text);
            lines.push(text.strip_prefix(' ').unwrap_or(text));
            below = span.start;
        }
        if lines.is_empty() {
            return None;
        }
        lines.reverse();
        Some(lines.join("\n").into())
    }

    /// One warning for each block of doc comment lines that documents nothing.
    fn report_detached_docs(&mut self) {
        let mut block: Option<Span> = None;
        for (comment, attached) in self.comments.iter().zip(&self.attached) {
            let is_detached = comment.kind == CommentKind::Doc && !attached;
            if let Some(open) = block {
                let gap = Span::new(open.end, comment.span.start).text(self.source);
                let joins = is_detached && gap.trim().is_empty() && gap.matches('\n').count() == 1;
                if joins {
                    block = Some(open.to(comment.span));
                    continue;
                }
                self.diagnostics.push(detached_doc(open));
                block = None;
            }
            if is_detached {
                block = Some(comment.span);
            }
        }
        if let Some(open) = block {
            self.diagnostics.push(detached_doc(open));
        }
    }
}

/// Is there nothing but white space and separators before this offset on its line?
pub(crate) fn starts_line(source: &str, offset: u32) -> bool {
    let before = source.get(..offset as usize).unwrap_or("");
    let gap = before.trim_end_matches([' ', '\t', '.', '\u{feff}']);
    gap.is_empty() || gap.ends_with('\n')
}

fn detached_doc(span: Span) -> Diagnostic {
    Diagnostic::warning(
        codes::DETACHED_DOC_COMMENT,
        span,
        "doc comment not attached to any declaration",
    )
    .with_category(crate::diagnostic::Category::Syntax)
    .with_hint("Put it directly above a class, method, slot, protocol or type alias, or write `//`.")
}
