//! The values of literal tokens.

use ecow::EcoString;
use num_bigint::BigInt;

use super::Parser;
use crate::token::Token;

/// The name of a symbol token, without `#` and quotes.
pub(super) fn symbol_text(text: &str) -> EcoString {
    let text = text.strip_prefix('#').unwrap_or(text);
    match text.strip_prefix('\'') {
        Some(quoted) => quoted
            .strip_suffix('\'')
            .unwrap_or(quoted)
            .replace("''", "'")
            .into(),
        None => text.into(),
    }
}

/// The character of `$a` or `$\n`.
pub(super) fn character_value(text: &str) -> char {
    let mut chars = text.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), Some('n')) => '\n',
        (Some('\\'), Some('t')) => '\t',
        (Some('\\'), Some('r')) => '\r',
        (Some('\\'), Some(escaped)) => escaped,
        (Some(char), _) => char,
        (None, _) => '\0',
    }
}

/// Zero when the lexer has reported the literal.
pub(super) fn float_value(text: &str) -> f64 {
    text.replace('_', "")
        .parse()
        .ok()
        .filter(|value: &f64| value.is_finite())
        .unwrap_or(0.0)
}

/// Zero when the lexer has reported the literal.
pub(super) fn integer_value(text: &str) -> BigInt {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let clean: String = digits.chars().filter(|char| *char != '_').collect();
    let value = match clean.split_once('r') {
        Some((radix, digits)) => radix
            .parse::<u32>()
            .ok()
            .filter(|radix| (2..=36).contains(radix) && digits.chars().all(|char| char.is_digit(*radix)))
            .map(|radix| digits_value(digits.as_bytes(), radix)),
        None => Some(digits_value(clean.as_bytes(), 10)),
    };
    let value = value.unwrap_or_default();
    if negative { -value } else { value }
}

/// Halves long numbers, so that the time does not grow with the square of the length.
fn digits_value(digits: &[u8], radix: u32) -> BigInt {
    const SHORT: usize = 2_000;
    if digits.len() <= SHORT {
        return BigInt::parse_bytes(digits, radix).unwrap_or_default();
    }
    let (high, low) = digits.split_at(digits.len() / 2);
    digits_value(high, radix) * BigInt::from(radix).pow(low.len() as u32) + digits_value(low, radix)
}

impl Parser<'_> {
    /// The text of a string piece, with its escapes turned into characters.
    pub(super) fn string_text(&self, token: Token) -> EcoString {
        let raw = token.span().text(self.source);
        let mut text = raw.get(1..).unwrap_or("");
        if !token.unterminated {
            text = text.get(..text.len().saturating_sub(1)).unwrap_or("");
        }
        unescape(text)
    }
}

pub(crate) fn unescape(text: &str) -> EcoString {
    if !text.contains(['\\', '"']) {
        return text.into();
    }
    let mut result = EcoString::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(char) = chars.next() {
        match char {
            '"' => {
                chars.next_if_eq(&'"');
                result.push('"');
            }
            '\\' => match chars.next() {
                Some('n') => result.push('\n'),
                Some('t') => result.push('\t'),
                Some('r') => result.push('\r'),
                Some(escaped @ ('\\' | '"' | '{' | '}')) => result.push(escaped),
                Some(other) => {
                    result.push('\\');
                    result.push(other);
                }
                None => result.push('\\'),
            },
            _ => result.push(char),
        }
    }
    result
}
