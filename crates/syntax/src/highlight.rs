//! Which parts of a text a terminal paints, and as what.

use crate::lexer;
use crate::span::Span;
use crate::token::TokenKind;

/// What a painted part is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    String,
    Number,
    /// `true`, `false`, `nil`.
    Constant,
    ClassName,
    Comment,
}

/// The parts to paint, in source order and apart from each other.
pub fn highlight(source: &str) -> Vec<(Span, Paint)> {
    let lexed = lexer::lex(source);
    let tokens = lexed.tokens.iter().filter_map(|token| {
        let paint = match token.kind {
            TokenKind::String
            | TokenKind::StringStart
            | TokenKind::StringMiddle
            | TokenKind::StringEnd
            | TokenKind::Character => Paint::String,
            TokenKind::Integer | TokenKind::Float => Paint::Number,
            TokenKind::TrueWord | TokenKind::FalseWord | TokenKind::NilWord => Paint::Constant,
            TokenKind::Upper => Paint::ClassName,
            _ => return None,
        };
        Some((token.span(), paint))
    });
    let comments = lexed
        .comments
        .iter()
        .map(|comment| (comment.span, Paint::Comment));
    let mut parts: Vec<(Span, Paint)> = tokens.chain(comments).collect();
    parts.sort_by_key(|(span, _)| span.start);
    parts
}

#[cfg(test)]
mod tests {
    use super::{Paint, highlight};

    fn painted(source: &str) -> Vec<(&str, Paint)> {
        highlight(source)
            .into_iter()
            .map(|(span, paint)| (span.text(source), paint))
            .collect()
    }

    #[test]
    fn literals_names_and_comments_are_found_in_order() {
        assert_eq!(
            painted("Lamp at: 2.5 put: \"a{x}b\" // nil\nnil"),
            [
                ("Lamp", Paint::ClassName),
                ("2.5", Paint::Number),
                ("\"a{", Paint::String),
                ("}b\"", Paint::String),
                ("// nil", Paint::Comment),
                ("nil", Paint::Constant),
            ]
        );
        assert_eq!(painted("x foo: #bar"), []);
    }

    #[test]
    fn an_open_string_is_a_string() {
        assert_eq!(painted("x := \"abc"), [("\"abc", Paint::String)]);
    }
}
