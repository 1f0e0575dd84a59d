//! Text to tokens and comments, in one pass before the parser runs.
//!
//! The lexer knows brackets: it pairs them, so that the parser can look past one in a single step,
//! and it uses them to find the end of an interpolation and to read `-1` correctly. Strings with
//! interpolation become a start piece, the tokens of the expression, and middle or end pieces.
//!
//! An interpolation or string that never closes would swallow the rest of the text; the lexer then
//! goes back and reads the brace as text, or ends the string at its line end. A budget bounds the
//! text that is read again, so the work stays linear.

mod literal;

use crate::ast::{Comment, CommentKind};
use crate::codes;
use crate::diagnostic::Diagnostic;
use crate::span::Span;
use crate::token::{NO_PARTNER, OPERAND_ENDS, Token, TokenKind};

pub(crate) struct Lexed {
    /// Never empty: the last one is `Eof`.
    pub(crate) tokens: Vec<Token>,
    pub(crate) comments: Vec<Comment>,
    pub(crate) diagnostics: Vec<Diagnostic>,
    /// A string, comment or bracket is open at the end, and no closing bracket was surplus.
    pub(crate) is_open: bool,
    /// The text ends inside of a string or a comment.
    pub(crate) is_text_open: bool,
}

pub(crate) fn lex(source: &str) -> Lexed {
    let mut lexer = Lexer::new(source);
    lexer.run();
    Lexed {
        tokens: lexer.tokens,
        comments: lexer.comments,
        diagnostics: lexer.diagnostics,
        is_text_open: lexer.open_text,
        is_open: lexer.open_text || (lexer.open_bracket && !lexer.surplus),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Closer {
    Paren,
    Bracket,
    Brace,
}

#[derive(Clone, Copy)]
enum Open {
    Bracket {
        token: u32,
        closer: Closer,
        /// `[` of a block: lines count again inside.
        is_block: bool,
    },
    Interpolation {
        piece: PieceStart,
        brace: u32,
        outer_counts: [u32; 3],
    },
}

/// Where a string piece starts, with everything needed to read it again.
#[derive(Clone, Copy)]
struct PieceStart {
    at: u32,
    /// The first token of the piece's string.
    is_first: bool,
    newline: bool,
    token: u32,
    comments: u32,
    diagnostics: u32,
    column_at: u32,
    column: u32,
}

struct Lexer<'s> {
    source: &'s str,
    bytes: &'s [u8],
    at: usize,
    tokens: Vec<Token>,
    comments: Vec<Comment>,
    diagnostics: Vec<Diagnostic>,
    stack: Vec<Open>,
    /// Open interpolations on the stack.
    interpolations: usize,
    /// Open brackets of each kind inside the innermost interpolation.
    counts: [u32; 3],
    newline: bool,
    /// The column is known at this offset.
    column_at: usize,
    column: u32,
    /// Braces of the current string piece up to here are text.
    literal_until: Option<u32>,
    /// Bytes that may still be read again.
    budget: usize,
    no_comment_end: bool,
    open_text: bool,
    open_bracket: bool,
    surplus: bool,
}

/// Longest first.
const OPERATORS: &[(&str, TokenKind)] = &[
    ("=:=", TokenKind::Operator),
    ("=/=", TokenKind::Operator),
    ("...", TokenKind::Ellipsis),
    ("**", TokenKind::Operator),
    ("++", TokenKind::Operator),
    ("<=", TokenKind::Operator),
    (">=", TokenKind::Operator),
    ("==", TokenKind::Operator),
    ("/=", TokenKind::Operator),
    (">>", TokenKind::ShiftRight),
    ("<<", TokenKind::ShiftLeft),
    ("->", TokenKind::Arrow),
    ("=>", TokenKind::FatArrow),
    ("\\\\", TokenKind::DoubleBackslash),
    (":=", TokenKind::Assign),
    ("::", TokenKind::DoubleColon),
    ("*", TokenKind::Operator),
    ("/", TokenKind::Slash),
    ("%", TokenKind::Operator),
    ("+", TokenKind::Operator),
    ("-", TokenKind::Minus),
    ("<", TokenKind::Operator),
    (">", TokenKind::Operator),
    ("=", TokenKind::Equal),
    ("&", TokenKind::Ampersand),
    ("\\", TokenKind::Backslash),
    (",", TokenKind::Comma),
    (":", TokenKind::Colon),
    (".", TokenKind::Dot),
    ("^", TokenKind::Caret),
    (";", TokenKind::Semicolon),
    ("!", TokenKind::Bang),
    ("|", TokenKind::Pipe),
];

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn is_false_operator_byte(byte: u8) -> bool {
    matches!(
        byte,
        b'~' | b'?' | b'=' | b'<' | b'>' | b'!' | b'&' | b'|' | b'*' | b'+' | b'/' | b'%' | b'-'
    )
}

impl<'s> Lexer<'s> {
    fn new(source: &'s str) -> Self {
        let start = if source.starts_with('\u{feff}') {
            '\u{feff}'.len_utf8()
        } else {
            0
        };
        Self {
            source,
            bytes: source.as_bytes(),
            at: start,
            tokens: Vec::with_capacity(source.len() / 4),
            comments: Vec::new(),
            diagnostics: Vec::new(),
            stack: Vec::new(),
            interpolations: 0,
            counts: [0; 3],
            newline: false,
            column_at: start,
            column: 0,
            literal_until: None,
            budget: source.len() * 8 + 65_536,
            no_comment_end: false,
            open_text: false,
            open_bracket: false,
            surplus: false,
        }
    }

    fn run(&mut self) {
        loop {
            while let Some(byte) = self.peek(0) {
                let before = self.at;
                self.lex_token(byte);
                debug_assert!(self.at > before || self.tokens.len() < u32::MAX as usize);
            }
            if !self.reopen_interpolation() {
                break;
            }
        }
        self.open_bracket = !self.stack.is_empty();
        let end = self.at;
        self.push(TokenKind::Eof, end);
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn rest(&self) -> &'s str {
        self.source.get(self.at..).unwrap_or("")
    }

    fn error(&mut self, code: &'static str, start: usize, end: usize, message: impl Into<ecow::EcoString>) {
        let span = Span::new(start as u32, end as u32);
        self.diagnostics.push(Diagnostic::error(code, span, message));
    }

    /// The column of an offset at or after the last one asked for.
    fn advance_column(&mut self, offset: usize) -> u32 {
        let gap = self.source.get(self.column_at..offset).unwrap_or("");
        for byte in gap.bytes() {
            match byte {
                b'\n' => self.column = 0,
                // Bytes that go on with a character.
                0x80..0xc0 => {}
                _ => self.column += 1,
            }
        }
        self.column_at = offset;
        self.column
    }

    /// Adds the token from `start` to the current offset.
    fn push(&mut self, kind: TokenKind, start: usize) {
        let column = self.advance_column(start);
        self.tokens.push(Token {
            kind,
            newline: self.newline,
            unterminated: false,
            start: start as u32,
            end: self.at as u32,
            column,
            comments: self.comments.len() as u32,
            partner: NO_PARTNER,
        });
        self.newline = false;
    }

    fn lex_token(&mut self, byte: u8) {
        let start = self.at;
        match byte {
            b'\n' => {
                self.newline = true;
                self.at += 1;
            }
            b' ' | b'\t' | b'\r' => self.at += 1,
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.lex_name(),
            b'0'..=b'9' => self.lex_number(start),
            b'"' => {
                self.at += 1;
                self.lex_string_piece(self.piece_start(start, true));
            }
            b'#' => self.lex_hash(),
            b'$' => self.lex_character(),
            b'(' => self.open(TokenKind::ParenOpen, 1),
            b'[' => self.open(TokenKind::BracketOpen, 1),
            b'{' => self.open(TokenKind::BraceOpen, 1),
            b')' => self.close(TokenKind::ParenClose, Closer::Paren),
            b']' => self.close(TokenKind::BracketClose, Closer::Bracket),
            b'}' => self.close(TokenKind::BraceClose, Closer::Brace),
            b'@' => self.lex_at(),
            b'/' if self.peek(1) == Some(b'/') => self.lex_line_comment(),
            b'/' if self.peek(1) == Some(b'*') => self.lex_block_comment(),
            b'-' if self.peek(1).is_some_and(|next| next.is_ascii_digit()) && self.is_negative() => {
                self.at += 1;
                self.lex_number(start);
            }
            b'\'' => self.lex_single_quote(),
            b'~' | b'?' => self.lex_unknown_operator(),
            _ => self.lex_operator(),
        }
    }

    /// Does a `-` before a digit start a literal here?
    fn is_negative(&self) -> bool {
        let Some(previous) = self.tokens.last() else {
            return true;
        };
        let lines_count = match self.stack.last() {
            None => true,
            Some(Open::Bracket { is_block, .. }) => *is_block,
            Some(Open::Interpolation { .. }) => false,
        };
        (self.newline && lines_count) || !OPERAND_ENDS.contains(previous.kind)
    }

    fn lex_operator(&mut self) {
        let start = self.at;
        let rest = self.rest();
        for (text, kind) in OPERATORS {
            if rest.starts_with(text) {
                self.at += text.len();
                self.push(*kind, start);
                return;
            }
        }
        self.lex_invalid();
    }

    /// A run of characters that start nothing is reported once and read as space.
    fn lex_invalid(&mut self) {
        let start = self.at;
        let first = self.rest().chars().next().unwrap_or(' ');
        if first.is_alphabetic() {
            self.lex_name();
            return;
        }
        let is_invalid = |char: char| !char.is_ascii() || char.is_ascii_control() || char == '`';
        for char in self.rest().chars() {
            if !is_invalid(char) || char.is_alphabetic() || matches!(char, '\n' | '\r' | '\t') {
                break;
            }
            self.at += char.len_utf8();
        }
        if self.at == start {
            self.at += first.len_utf8();
        }
        self.error(
            codes::INVALID_CHARACTER,
            start,
            self.at,
            ecow::eco_format!("unexpected character {first:?}"),
        );
    }

    fn lex_unknown_operator(&mut self) {
        let start = self.at;
        while self.peek(0).is_some_and(is_false_operator_byte) {
            self.at += 1;
        }
        let text = self.source.get(start..self.at).unwrap_or("");
        self.error(
            codes::UNKNOWN_OPERATOR,
            start,
            self.at,
            ecow::eco_format!("unknown operator `{text}`"),
        );
        self.push(TokenKind::UnknownOperator, start);
    }

    fn lex_name(&mut self) {
        let start = self.at;
        let mut foreign = None;
        loop {
            match self.peek(0) {
                Some(byte) if is_name_byte(byte) => self.at += 1,
                Some(byte) if !byte.is_ascii() => {
                    let Some(char) = self.rest().chars().next().filter(|char| char.is_alphanumeric()) else {
                        break;
                    };
                    foreign.get_or_insert((self.at, char));
                    self.at += char.len_utf8();
                }
                _ => break,
            }
        }
        if let Some((at, char)) = foreign {
            let message = ecow::eco_format!("names are ASCII only: '{char}' is not allowed");
            self.error(codes::INVALID_CHARACTER, at, at + char.len_utf8(), message);
        }
        let text = self.source.get(start..self.at).unwrap_or("");
        if text.starts_with("__") {
            let message = ecow::eco_format!("name `{text}` uses the reserved `__` prefix");
            self.error(codes::RESERVED_PREFIX, start, self.at, message);
        }
        self.check_name_length(start, text);
        if self.peek(0) == Some(b':') && !matches!(self.peek(1), Some(b'=' | b':')) {
            self.at += 1;
            self.push(TokenKind::Keyword, start);
            return;
        }
        let kind = match text {
            "self" => TokenKind::SelfWord,
            "super" => TokenKind::SuperWord,
            "nil" => TokenKind::NilWord,
            "true" => TokenKind::TrueWord,
            "false" => TokenKind::FalseWord,
            _ if text.starts_with(|char: char| char.is_ascii_uppercase()) => TokenKind::Upper,
            _ => TokenKind::Lower,
        };
        self.push(kind, start);
    }

    /// Names and symbols are atoms of the engine, which hold this many characters.
    fn check_name_length(&mut self, start: usize, text: &str) {
        const LONGEST: usize = 255;
        let length = text.chars().count();
        if length > LONGEST {
            let message = ecow::eco_format!("a name has at most {LONGEST} characters, this one has {length}");
            self.error(codes::NAME_TOO_LONG, start, start + text.len(), message);
        }
    }

    fn lex_at(&mut self) {
        let start = self.at;
        let follows_package = self
            .tokens
            .last()
            .is_some_and(|previous| previous.kind == TokenKind::Lower && previous.end as usize == start);
        self.at += 1;
        let upper = self.peek(0).is_some_and(|byte| byte.is_ascii_uppercase());
        if follows_package && upper {
            self.push(TokenKind::At, start);
            return;
        }
        if upper {
            self.error(
                codes::MISSING_PACKAGE,
                start,
                self.at,
                "missing package name before '@'",
            );
            return;
        }
        while self.peek(0).is_some_and(is_name_byte) {
            self.at += 1;
        }
        let text = self.source.get(start..self.at).unwrap_or("");
        let kind = match text {
            "@primitive" => TokenKind::Primitive,
            "@intrinsic" => TokenKind::Intrinsic,
            "@expect" => TokenKind::Expect,
            _ => {
                let message = ecow::eco_format!(
                    "unknown directive '{text}', only '@primitive', '@intrinsic', and '@expect' are supported"
                );
                self.error(codes::UNKNOWN_DIRECTIVE, start, self.at, message);
                TokenKind::Error
            }
        };
        self.push(kind, start);
    }

    fn lex_line_comment(&mut self) {
        let start = self.at;
        let rest = self.rest();
        let line = rest.split('\n').next().unwrap_or("");
        let line = line.strip_suffix('\r').unwrap_or(line);
        self.at += line.len();
        let is_doc = line.starts_with("///") && !line.starts_with("////");
        let kind = if is_doc {
            CommentKind::Doc
        } else {
            CommentKind::Line
        };
        self.comments.push(Comment {
            kind,
            span: Span::new(start as u32, self.at as u32),
        });
    }

    fn lex_block_comment(&mut self) {
        let start = self.at;
        let body = self.source.get(start + 2..).unwrap_or("");
        let close = if self.no_comment_end {
            None
        } else {
            body.find("*/")
        };
        if let Some(length) = close {
            self.newline |= body.get(..length).is_some_and(|text| text.contains('\n'));
            self.at = start + 2 + length + 2;
        } else {
            self.no_comment_end = true;
            self.open_text = true;
            self.at = start + self.rest().find('\n').unwrap_or(self.rest().len());
            self.error(
                codes::UNTERMINATED_COMMENT,
                start,
                start + 2,
                "unterminated block comment",
            );
        }
        self.comments.push(Comment {
            kind: CommentKind::Block,
            span: Span::new(start as u32, self.at as u32),
        });
    }

    fn open(&mut self, kind: TokenKind, length: usize) {
        let start = self.at;
        self.at += length;
        let closer = match kind {
            TokenKind::ParenOpen | TokenKind::ListOpen => Closer::Paren,
            TokenKind::BracketOpen | TokenKind::ArrayOpen => Closer::Bracket,
            _ => Closer::Brace,
        };
        if let Some(count) = self.counts.get_mut(closer as usize) {
            *count += 1;
        }
        let token = self.tokens.len() as u32;
        self.stack.push(Open::Bracket {
            token,
            closer,
            is_block: kind == TokenKind::BracketOpen,
        });
        self.push(kind, start);
    }

    fn close(&mut self, kind: TokenKind, closer: Closer) {
        let start = self.at;
        let open = self.counts.get(closer as usize).copied().unwrap_or(0);
        if open == 0 {
            if closer == Closer::Brace && self.close_interpolation() {
                return;
            }
            self.surplus = true;
            self.at += 1;
            self.push(kind, start);
            return;
        }
        // Brackets left open inside are dropped: the parser reports them.
        while let Some(Open::Bracket {
            token,
            closer: expected,
            ..
        }) = self.stack.last().copied()
        {
            self.stack.pop();
            if let Some(count) = self.counts.get_mut(expected as usize) {
                *count -= 1;
            }
            if expected == closer {
                self.at += 1;
                let index = self.tokens.len() as u32;
                self.push(kind, start);
                self.pair(token, index);
                return;
            }
        }
        self.at += 1;
        self.push(kind, start);
    }

    fn pair(&mut self, opener: u32, closer: u32) {
        if let Some(token) = self.tokens.get_mut(opener as usize) {
            token.partner = closer;
        }
        if let Some(token) = self.tokens.get_mut(closer as usize) {
            // A middle piece is closed by its own next piece later.
            if token.kind != TokenKind::StringMiddle {
                token.partner = opener;
            }
        }
    }
}
