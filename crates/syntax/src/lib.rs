//! Text to tree and back: spans, tokens, lexer, parser, formatter, and the `Diagnostic` data type.
//!
//! Nothing here touches the world: no files, no clock, no async. Every entry point takes text and
//! answers data; faults in the text are diagnostics, never errors.

#![deny(clippy::indexing_slicing)]

pub mod ast;
pub mod codes;
pub mod definitions;
pub mod diagnostic;
pub mod diff;
pub mod examples;
pub mod fences;
pub mod layout;
pub mod span;
pub mod walk;

mod dump;
mod format;
mod highlight;
mod lexer;
mod nearest;
mod parser;
mod token;

use crate::ast::{Item, Unit};
use crate::diagnostic::Diagnostic;
use crate::parser::Mode;
use crate::token::{TokenKind, WANTS_MORE};

pub use crate::dump::dump;
pub use crate::format::{FormatError, format, format_input};
pub use crate::highlight::{Paint, highlight};
pub use crate::nearest::nearest;

/// What became of a source text: always a tree, and everything that is wrong with the text.
#[derive(Clone, Debug, Default)]
pub struct Parse {
    pub unit: Unit,
    /// In source order.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a package file: at most one class or protocol, with type aliases and extensions.
pub fn parse_file(source: &str) -> Parse {
    let (unit, diagnostics) = parser::parse(source, Mode::File);
    Parse { unit, diagnostics }
}

/// Parses the input of a session or script: any mix of items and statements.
pub fn parse_input(source: &str) -> Parse {
    let (unit, diagnostics) = parser::parse(source, Mode::Input);
    Parse { unit, diagnostics }
}

/// Parses one method definition alone, as given to `compile:source:`. `None` when the text does not
/// start with a method head and `=>`.
pub fn parse_method(source: &str) -> (Option<ast::Method>, Vec<Diagnostic>) {
    parser::parse_method(source)
}

/// Parses the statements of a method body alone, as `compile:source:` takes for a unary selector.
pub fn parse_body(source: &str) -> (Vec<ast::Statement>, Vec<Diagnostic>) {
    parser::parse_body(source)
}

/// How tightly an operator binds (higher is tighter), and whether it groups to the right.
pub fn precedence(operator: &str) -> (u8, bool) {
    parser::precedence(operator)
}

/// Should a session wait for more before it evaluates this input?
///
/// True while a bracket, string or block comment is open, after a trailing keyword, operator,
/// `:=`, `;` or `^`, and for a protocol or a class without a method that no blank line ends yet.
pub fn is_incomplete(source: &str) -> bool {
    if is_open(source) {
        return true;
    }
    let ends_blank = source
        .rsplit_once('\n')
        .is_some_and(|(_, last)| last.trim().is_empty());
    if ends_blank {
        return false;
    }
    match last_definition(source) {
        Some(Item::Class(class)) => class.methods.is_empty(),
        Some(Item::Protocol(_)) => true,
        _ => false,
    }
}

/// Does the next line belong to an input that began before it? It does while the input is incomplete, and when it is
/// indented; a blank line or a comment ends an input.
pub fn goes_on(input: &str, line: &str) -> bool {
    let trimmed = line.trim_start();
    !trimmed.is_empty()
        && !trimmed.starts_with("//")
        && (line.starts_with([' ', '\t']) || is_incomplete(input))
}

/// Where the inputs of a text are, without the line end of the last line of each.
pub fn inputs(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut found: Vec<std::ops::Range<usize>> = Vec::new();
    let (mut at, mut is_going) = (0, false);
    for line in text.split_inclusive('\n') {
        let shown = line.trim_end_matches(['\n', '\r']);
        let (start, end) = (at, at + shown.len());
        at += line.len();
        let trimmed = shown.trim_start();
        match found.last_mut() {
            Some(last) if is_going && goes_on(&text[last.clone()], shown) => last.end = end,
            _ => {
                is_going = !trimmed.is_empty() && !trimmed.starts_with("//");
                if is_going {
                    found.push(start..end);
                }
            }
        }
    }
    found
}

/// Does this text break off inside of something: a bracket, a string, a comment, after an operator or a keyword?
pub fn is_open(source: &str) -> bool {
    let lexed = lexer::lex(source);
    let mut tokens = lexed
        .tokens
        .iter()
        .rev()
        .filter(|token| token.kind != TokenKind::Eof);
    lexed.is_open || tokens.next().is_some_and(|last| WANTS_MORE.contains(last.kind))
}

/// Does this text break off inside of a string or a comment, where every blank counts?
pub fn is_text_open(source: &str) -> bool {
    lexer::lex(source).is_text_open
}

/// Is the last thing of this input a class or a protocol, which further indented lines would belong to?
pub fn ends_in_definition(source: &str) -> bool {
    last_definition(source).is_some()
}

fn last_definition(source: &str) -> Option<Item> {
    if !(source.contains("subclass:") || source.contains("define:")) {
        return None;
    }
    let last = parse_input(source).unit.items.pop();
    last.filter(|item| matches!(item, Item::Class(_) | Item::Protocol(_)))
}
