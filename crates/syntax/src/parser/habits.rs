//! Hints for what is right in other languages: what to write here instead.

use ecow::{EcoString, eco_format};

use crate::codes;
use crate::diagnostic::Diagnostic;
use crate::token::{Token, TokenKind};

/// Give errors without a hint the one for the habit behind them, if there is one.
pub(super) fn explain(source: &str, tokens: &[Token], diagnostics: &mut [Diagnostic]) {
    for diagnostic in diagnostics.iter_mut().filter(|found| found.hint.is_none()) {
        let at = tokens.partition_point(|token| token.start < diagnostic.span.start);
        diagnostic.hint = Place { source, tokens, at }.hint(diagnostic);
    }
}

/// Where an error is.
struct Place<'s> {
    source: &'s str,
    tokens: &'s [Token],
    at: usize,
}

impl Place<'_> {
    fn hint(&self, found: &Diagnostic) -> Option<EcoString> {
        match found.code {
            codes::UNKNOWN_OPERATOR => operator(found.span.text(self.source)),
            codes::EXPECTED_EXPRESSION => self.declaration(),
            codes::EXPECTED_STATEMENT_END => self.statement(),
            codes::UNCLOSED_BRACKET => self.separator(found),
            codes::ASSIGNMENT_TARGET => Some(
                "An assignment inside an expression stands in parentheses, as in `list add: (x := 1)`."
                    .into(),
            ),
            _ => None,
        }
    }

    fn kind(&self, index: usize) -> TokenKind {
        self.tokens.get(index).map_or(TokenKind::Eof, |token| token.kind)
    }

    fn text(&self, index: usize) -> &str {
        self.tokens
            .get(index)
            .map_or("", |token| token.span().text(self.source))
    }

    /// The word before the error.
    fn before(&self) -> &str {
        self.at.checked_sub(1).map_or("", |index| self.text(index))
    }

    /// `| a b |`.
    fn declaration(&self) -> Option<EcoString> {
        let names = (self.at + 1..)
            .take_while(|index| self.kind(*index) == TokenKind::Lower)
            .count();
        let is_declaration = self.kind(self.at) == TokenKind::Pipe
            && names > 0
            && self.kind(self.at + 1 + names) == TokenKind::Pipe;
        is_declaration.then(|| {
            eco_format!(
                "Variables are not declared: leave the line out and assign, as in `{} := 1`.",
                self.text(self.at + 1)
            )
        })
    }

    fn statement(&self) -> Option<EcoString> {
        let hint = match (self.before(), self.kind(self.at)) {
            ("if", _) => "A condition is a message: `x > 1 ifTrue: [ … ] ifFalse: [ … ]`.",
            ("while", _) => "A loop is a message: `[ x > 1 ] whileTrue: [ … ]`.",
            ("for", _) => "A loop is a message: `1 to: 10 do: [:i | … ]`, `list do: [:each | … ]`.",
            ("return", _) => "A method answers its last value, or earlier with `^ value`.",
            (_, TokenKind::Pipe) => "Write `a or: [b]`.",
            (_, TokenKind::Comma) => "Strings and lists are joined with `++`.",
            (word, TokenKind::BracketOpen) if self.kind(self.at.wrapping_sub(1)) == TokenKind::Lower => {
                return Some(eco_format!(
                    "A message that takes an argument ends in a colon: `{word}:`."
                ));
            }
            _ => return None,
        };
        Some(hint.into())
    }

    /// `#(1 2 3)`.
    fn separator(&self, found: &Diagnostic) -> Option<EcoString> {
        let (opener, _) = found.notes.first()?;
        let (open, close) = match opener.text(self.source) {
            "#(" => ("#(", ')'),
            "#[" => ("#[", ']'),
            _ => return None,
        };
        let is_element = matches!(
            self.kind(self.at),
            TokenKind::Integer
                | TokenKind::Float
                | TokenKind::Character
                | TokenKind::String
                | TokenKind::StringStart
                | TokenKind::Symbol
                | TokenKind::ListOpen
                | TokenKind::ArrayOpen
                | TokenKind::MapOpen
                | TokenKind::ParenOpen
                | TokenKind::BracketOpen
                | TokenKind::Upper
                | TokenKind::NilWord
                | TokenKind::TrueWord
                | TokenKind::FalseWord
        );
        is_element.then(|| eco_format!("Elements are separated by commas, as in `{open}1, 2, 3{close}`."))
    }
}

fn operator(text: &str) -> Option<EcoString> {
    let hint = match text {
        "!=" | "<>" | "~=" | "~~" | "!==" => {
            "Write `/=` for different values, `=/=` for strictly different ones."
        }
        "===" => "Write `=:=` for the same value and class, `==` for the same value.",
        "&&" | "&" => "Write `a and: [b]`.",
        "||" => "Write `a or: [b]`.",
        "+=" | "-=" | "*=" | "/=" => "Write `x := x + 1`.",
        "\\\\" | "\\" => "Write `%` for the remainder.",
        _ => return None,
    };
    Some(hint.into())
}

#[cfg(test)]
mod tests {
    use crate::parser::{Mode, parse};

    fn hint(source: &str) -> Option<String> {
        let (_, diagnostics) = parse(source, Mode::Input);
        diagnostics
            .first()
            .and_then(|found| found.hint.as_ref())
            .map(ToString::to_string)
    }

    #[test]
    fn habits_are_answered_with_what_to_write() {
        for (source, wanted) in [
            ("| temp other |\ntemp := 1", "`temp := 1`"),
            ("#(1 2 3)", "`#(1, 2, 3)`"),
            ("#[$a $b]", "`#[1, 2, 3]`"),
            ("x at: y := 4", "in parentheses"),
            ("if (x) [1]", "ifTrue:"),
            ("while (x) [1]", "whileTrue:"),
            ("return 3", "`^ value`"),
            ("1 to: 3 do [:i | i]", "`do:`"),
            ("a && b", "`a and: [b]`"),
            ("a | b", "`a or: [b]`"),
            ("1 != 2", "`/=`"),
            ("\"a\", \"b\"", "`++`"),
        ] {
            let hint = hint(source).unwrap_or_default();
            assert!(hint.contains(wanted), "{source}: {hint:?}");
        }
    }

    #[test]
    fn other_mistakes_get_no_habit() {
        for source in ["#(1, 2", "[:x | x", "(1 + 2", "x := )", "#(1, ]"] {
            assert_eq!(hint(source), None, "{source}");
        }
    }
}
