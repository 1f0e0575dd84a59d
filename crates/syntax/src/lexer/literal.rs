//! Numbers, characters, symbols and strings.

use ecow::eco_format;

use super::{Lexer, Open, PieceStart, is_name_byte};
use crate::codes;
use crate::token::{NO_PARTNER, Token, TokenKind};

/// Operators that may be the name of a symbol; longest first.
const SYMBOL_OPERATORS: &[&str] = &[
    "=:=", "=/=", "**", "++", "<=", ">=", "==", "/=", ">>", "->", "*", "/", "%", "+", "-", "<", ">",
];

impl Lexer<'_> {
    /// Skips digits with single underscores between; false when there is none.
    fn skip_digits(&mut self, is_digit: impl Fn(u8) -> bool) -> bool {
        if !self.peek(0).is_some_and(&is_digit) {
            return false;
        }
        loop {
            if self.peek(0).is_some_and(&is_digit) {
                self.at += 1;
            } else if self.peek(0) == Some(b'_') && self.peek(1).is_some_and(&is_digit) {
                self.at += 2;
            } else {
                return true;
            }
        }
    }

    /// A number from `start`, where a sign may stand; the current offset is at its first digit.
    pub(super) fn lex_number(&mut self, start: usize) {
        let digits = self.at;
        self.skip_digits(|byte| byte.is_ascii_digit());
        if self.peek(0) == Some(b'r') && self.peek(1).is_some_and(|byte| byte.is_ascii_alphanumeric()) {
            self.lex_radix(start, digits);
            return;
        }
        let mut is_float = false;
        if self.peek(0) == Some(b'.') && self.peek(1).is_some_and(|byte| byte.is_ascii_digit()) {
            is_float = true;
            self.at += 1;
            self.skip_digits(|byte| byte.is_ascii_digit());
        }
        if matches!(self.peek(0), Some(b'e' | b'E')) {
            let sign = usize::from(matches!(self.peek(1), Some(b'+' | b'-')));
            if self.peek(1 + sign).is_some_and(|byte| byte.is_ascii_digit()) {
                is_float = true;
                self.at += 1 + sign;
                self.skip_digits(|byte| byte.is_ascii_digit());
            }
        }
        if is_float {
            let text = self.source.get(start..self.at).unwrap_or("");
            if !text.replace('_', "").parse::<f64>().is_ok_and(f64::is_finite) {
                let message = eco_format!("Float literal out of range: {text}");
                self.error(codes::FLOAT_RANGE, start, self.at, message);
            }
        }
        self.push(
            if is_float {
                TokenKind::Float
            } else {
                TokenKind::Integer
            },
            start,
        );
    }

    fn lex_radix(&mut self, start: usize, digits: usize) {
        let radix = self.source.get(digits..self.at).unwrap_or("").replace('_', "");
        self.at += 1;
        let first = self.at;
        self.skip_digits(|byte| byte.is_ascii_alphanumeric());
        match radix.parse::<u32>().ok().filter(|radix| (2..=36).contains(radix)) {
            None => {
                let message = eco_format!("Radix must be between 2 and 36, got {radix}");
                self.error(codes::INVALID_RADIX, start, self.at, message);
            }
            Some(radix) => {
                let text = self.source.get(first..self.at).unwrap_or("");
                let invalid = text
                    .char_indices()
                    .find(|(_, char)| *char != '_' && !char.is_digit(radix));
                if let Some((at, char)) = invalid {
                    let message = eco_format!("Invalid digit for radix {radix}: {char}");
                    self.error(codes::INVALID_DIGIT, first + at, first + at + 1, message);
                }
            }
        }
        self.push(TokenKind::Integer, start);
    }

    pub(super) fn lex_character(&mut self) {
        let start = self.at;
        let mut chars = self.rest().chars();
        chars.next();
        let char = chars.next();
        let escaped = chars.next();
        let Some(char) = char.filter(|char| *char != '\\' || escaped.is_some()) else {
            self.at += 1 + char.map_or(0, char::len_utf8);
            self.error(
                codes::MISSING_CHARACTER,
                start,
                self.at,
                "expected a character after '$'",
            );
            self.push(TokenKind::Error, start);
            return;
        };
        self.at += 1 + char.len_utf8();
        if char == '\\' {
            self.at += escaped.map_or(0, char::len_utf8);
        }
        self.push(TokenKind::Character, start);
    }

    pub(super) fn lex_hash(&mut self) {
        let start = self.at;
        match self.peek(1) {
            Some(b'(') => self.open(TokenKind::ListOpen, 2),
            Some(b'[') => self.open(TokenKind::ArrayOpen, 2),
            Some(b'{') => self.open(TokenKind::MapOpen, 2),
            Some(b'\'') => self.lex_quoted_symbol(),
            Some(byte) if byte.is_ascii_alphabetic() || byte == b'_' => {
                self.at += 1;
                self.skip_symbol_part();
                let name = self.source.get(start + 1..self.at).unwrap_or("");
                self.check_name_length(start + 1, name);
                while self.skip_symbol_colon() && self.next_part_has_colon() {
                    self.skip_symbol_part();
                }
                self.push(TokenKind::Symbol, start);
            }
            _ => {
                let rest = self.source.get(start + 1..).unwrap_or("");
                let is_comment = rest.starts_with("//") || rest.starts_with("/*");
                let operator = SYMBOL_OPERATORS
                    .iter()
                    .find(|text| !is_comment && rest.starts_with(**text));
                self.at += 1 + operator.map_or(0, |text| text.len());
                if operator.is_none() {
                    self.error(
                        codes::LONE_HASH,
                        start,
                        self.at,
                        "expected a symbol or collection after '#': #name, #key:word:, #+, #'quoted text', #(list), #[array] or #{map}",
                    );
                }
                self.push(
                    if operator.is_some() {
                        TokenKind::Symbol
                    } else {
                        TokenKind::Error
                    },
                    start,
                );
            }
        }
    }

    fn skip_symbol_part(&mut self) {
        while self.peek(0).is_some_and(is_name_byte) {
            self.at += 1;
        }
    }

    fn skip_symbol_colon(&mut self) -> bool {
        let is_colon = self.peek(0) == Some(b':') && !matches!(self.peek(1), Some(b'=' | b':'));
        self.at += usize::from(is_colon);
        is_colon
    }

    /// Is the text here a name that ends in a keyword colon?
    fn next_part_has_colon(&self) -> bool {
        if !self
            .peek(0)
            .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_')
        {
            return false;
        }
        let length = self.rest().bytes().take_while(|byte| is_name_byte(*byte)).count();
        self.peek(length) == Some(b':') && !matches!(self.peek(length + 1), Some(b'=' | b':'))
    }

    fn lex_quoted_symbol(&mut self) {
        let start = self.at;
        self.at += 2;
        loop {
            match self.peek(0) {
                Some(b'\'') if self.peek(1) == Some(b'\'') => self.at += 2,
                Some(b'\'') => {
                    self.at += 1;
                    break;
                }
                Some(b'\n') | None => {
                    self.open_text |= self.peek(0).is_none();
                    self.error(
                        codes::UNTERMINATED_STRING,
                        start,
                        start + 2,
                        "unterminated symbol",
                    );
                    break;
                }
                Some(_) => self.at += 1,
            }
        }
        let text = self
            .source
            .get(start + 2..self.at.saturating_sub(1))
            .unwrap_or("");
        self.check_name_length(start, text);
        self.push(TokenKind::Symbol, start);
    }

    /// `'text'`: reported, and skipped to the closing quote when it is on the same line.
    pub(super) fn lex_single_quote(&mut self) {
        let start = self.at;
        let text = self.source.get(start + 1..).unwrap_or("");
        let close = text
            .find(['\'', '\n'])
            .filter(|at| text.as_bytes().get(*at) == Some(&b'\''));
        let length = close.map_or(1, |at| at + 2);
        self.at += length;
        self.error(
            codes::SINGLE_QUOTE,
            start,
            self.at,
            "single-quoted strings are not supported, use double quotes: \"...\"",
        );
        self.push(TokenKind::Error, start);
    }

    pub(super) fn piece_start(&self, at: usize, is_first: bool) -> PieceStart {
        PieceStart {
            at: at as u32,
            is_first,
            newline: self.newline,
            token: self.tokens.len() as u32,
            comments: self.comments.len() as u32,
            diagnostics: self.diagnostics.len() as u32,
            column_at: self.column_at as u32,
            column: self.column,
        }
    }

    /// Reads string text from the current offset to the closing quote or the next interpolation.
    pub(super) fn lex_string_piece(&mut self, piece: PieceStart) {
        let start = piece.at as usize;
        loop {
            match self.peek(0) {
                Some(b'\\') => self.at += if self.peek(1).is_some() { 2 } else { 1 },
                Some(b'"') if self.peek(1) == Some(b'"') => self.at += 2,
                Some(b'"') => {
                    self.at += 1;
                    self.literal_until = None;
                    self.push_piece(
                        if piece.is_first {
                            TokenKind::String
                        } else {
                            TokenKind::StringEnd
                        },
                        piece,
                    );
                    return;
                }
                Some(b'{') => {
                    if self.lex_brace(piece) {
                        return;
                    }
                }
                Some(_) => self.at += 1,
                None => {
                    self.end_unterminated(start);
                    let kind = if piece.is_first {
                        TokenKind::String
                    } else {
                        TokenKind::StringEnd
                    };
                    self.push_piece(kind, piece);
                    if let Some(token) = self.tokens.last_mut() {
                        token.unterminated = true;
                    }
                    return;
                }
            }
        }
    }

    /// A `{` in string text; true when it ends the piece.
    fn lex_brace(&mut self, piece: PieceStart) -> bool {
        let brace = self.at;
        if self.literal_until.is_some_and(|until| brace as u32 <= until) {
            self.error(
                codes::UNESCAPED_BRACE,
                brace,
                brace + 1,
                "unescaped { in string literal — use \\{ for a literal brace, or close the interpolation with }",
            );
            self.at += 1;
            return false;
        }
        if self.peek(1) == Some(b'{') {
            self.at += 2;
            self.error(
                codes::DOUBLED_BRACE,
                brace,
                brace + 2,
                "doubled {{ }} in string literal is not interpolation — use \\{ and \\} for literal braces",
            );
            return false;
        }
        let blank = self
            .rest()
            .bytes()
            .skip(1)
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .count();
        if self.peek(1 + blank) == Some(b'}') {
            self.at += blank + 2;
            self.error(
                codes::EMPTY_INTERPOLATION,
                brace,
                self.at,
                "empty interpolation {} is not allowed, use \\{ for literal brace",
            );
            return false;
        }
        self.at += 1;
        self.literal_until = None;
        self.push_piece(
            if piece.is_first {
                TokenKind::StringStart
            } else {
                TokenKind::StringMiddle
            },
            piece,
        );
        self.stack.push(Open::Interpolation {
            piece,
            brace: brace as u32,
            outer_counts: self.counts,
        });
        self.interpolations += 1;
        self.counts = [0; 3];
        true
    }

    fn push_piece(&mut self, kind: TokenKind, piece: PieceStart) {
        let column = self.advance_column(piece.at as usize);
        self.tokens.push(Token {
            kind,
            newline: piece.newline,
            unterminated: false,
            start: piece.at,
            end: self.at as u32,
            column,
            comments: self.comments.len() as u32,
            partner: NO_PARTNER,
        });
        self.newline = false;
    }

    /// The text ended inside a string: it is cut at its first line end when the budget allows.
    fn end_unterminated(&mut self, start: usize) {
        self.open_text = true;
        self.literal_until = None;
        let text = self.source.get(start..).unwrap_or("");
        if let (Some(line), Some(budget)) = (text.find('\n'), self.budget.checked_sub(text.len())) {
            self.budget = budget;
            let end = start + line;
            self.at = if text.get(..line).is_some_and(|line| line.ends_with('\r')) {
                end - 1
            } else {
                end
            };
            self.at = self.at.max(start + 1);
        }
        self.error(
            codes::UNTERMINATED_STRING,
            start,
            start + 1,
            "unterminated string",
        );
    }

    /// A `}` that belongs to no bracket: the next piece of the string around, if there is one.
    pub(super) fn close_interpolation(&mut self) -> bool {
        if self.interpolations == 0 {
            return false;
        }
        while let Some(open) = self.stack.pop() {
            match open {
                // Left open inside the interpolation: the parser reports it.
                Open::Bracket { .. } => {}
                Open::Interpolation {
                    piece, outer_counts, ..
                } => {
                    self.interpolations -= 1;
                    self.counts = outer_counts;
                    let next = self.piece_start(self.at, false);
                    self.at += 1;
                    self.lex_string_piece(next);
                    self.pair(piece.token, next.token);
                    return true;
                }
            }
        }
        false
    }

    /// The text ended inside an interpolation: goes back and reads the outermost brace as text.
    pub(super) fn reopen_interpolation(&mut self) -> bool {
        let position = self
            .stack
            .iter()
            .position(|open| matches!(open, Open::Interpolation { .. }));
        let found = position.and_then(|position| self.stack.get(position).map(|open| (position, *open)));
        let Some((
            depth,
            Open::Interpolation {
                piece,
                brace,
                outer_counts,
            },
        )) = found
        else {
            return false;
        };
        self.open_text = true;
        let reread = self.source.len().saturating_sub(piece.at as usize);
        let Some(budget) = self.budget.checked_sub(reread) else {
            self.error(
                codes::UNESCAPED_BRACE,
                brace as usize,
                brace as usize + 1,
                "unescaped { in string literal — use \\{ for a literal brace, or close the interpolation with }",
            );
            return false;
        };
        self.budget = budget;
        self.stack.truncate(depth);
        self.interpolations = 0;
        self.no_comment_end = false;
        self.counts = outer_counts;
        self.tokens.truncate(piece.token as usize);
        self.comments.truncate(piece.comments as usize);
        self.diagnostics.truncate(piece.diagnostics as usize);
        self.column_at = piece.column_at as usize;
        self.column = piece.column;
        self.newline = piece.newline;
        self.at = piece.at as usize + 1;
        self.literal_until = Some(brace);
        self.lex_string_piece(piece);
        true
    }
}
