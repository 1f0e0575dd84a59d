//! Tokens and sets of token kinds.

use crate::span::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum TokenKind {
    Eof,
    /// `name`, `_`.
    Lower,
    /// `Name`.
    Upper,
    /// `name:`.
    Keyword,
    SelfWord,
    SuperWord,
    NilWord,
    TrueWord,
    FalseWord,
    Integer,
    Float,
    Character,
    /// A whole string without interpolation.
    String,
    /// `"text{`.
    StringStart,
    /// `}text{`.
    StringMiddle,
    /// `}text"`.
    StringEnd,
    Symbol,
    /// `#(`.
    ListOpen,
    /// `#[`.
    ArrayOpen,
    /// `#{`.
    MapOpen,
    ParenOpen,
    ParenClose,
    BracketOpen,
    BracketClose,
    BraceOpen,
    BraceClose,
    /// An operator of the precedence table that has no other use.
    Operator,
    Minus,
    Slash,
    Arrow,
    ShiftRight,
    ShiftLeft,
    FatArrow,
    Equal,
    Ampersand,
    Backslash,
    DoubleBackslash,
    Comma,
    Assign,
    DoubleColon,
    Colon,
    Ellipsis,
    Dot,
    Caret,
    Semicolon,
    Bang,
    Pipe,
    /// The `@` of `pkg@Name`.
    At,
    Primitive,
    Intrinsic,
    Expect,
    /// A run of characters that is no operator; already reported.
    UnknownOperator,
    /// Already reported.
    Error,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    /// At least one line end lies between this token and the previous one.
    pub(crate) newline: bool,
    /// A string piece without its closing delimiter.
    pub(crate) unterminated: bool,
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// Characters before it on its line.
    pub(crate) column: u32,
    /// How many comments stand before it in the text.
    pub(crate) comments: u32,
    /// The index of the matching bracket or of the next string piece; `NO_PARTNER` without one.
    pub(crate) partner: u32,
}

pub(crate) const NO_PARTNER: u32 = u32::MAX;

impl Token {
    pub(crate) fn span(self) -> Span {
        Span::new(self.start, self.end)
    }

    pub(crate) fn has_partner(self) -> bool {
        self.partner != NO_PARTNER
    }
}

/// A set of token kinds as bits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TokenSet(u64);

impl TokenSet {
    pub(crate) const fn new(kinds: &[TokenKind]) -> Self {
        let mut bits = 0;
        let mut rest = kinds;
        while let [first, tail @ ..] = rest {
            bits |= 1 << (*first as u8);
            rest = tail;
        }
        Self(bits)
    }

    pub(crate) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(crate) const fn contains(self, kind: TokenKind) -> bool {
        self.0 & (1 << (kind as u8)) != 0
    }
}

pub(crate) const RESERVED_WORDS: TokenSet = TokenSet::new(&[
    TokenKind::SelfWord,
    TokenKind::SuperWord,
    TokenKind::NilWord,
    TokenKind::TrueWord,
    TokenKind::FalseWord,
]);

/// Operators of the precedence table.
pub(crate) const OPERATORS: TokenSet = TokenSet::new(&[
    TokenKind::Operator,
    TokenKind::Minus,
    TokenKind::Slash,
    TokenKind::Arrow,
    TokenKind::ShiftRight,
]);

/// Characters that look like an operator but are none in an expression.
pub(crate) const FALSE_OPERATORS: TokenSet = TokenSet::new(&[
    TokenKind::Ampersand,
    TokenKind::Backslash,
    TokenKind::DoubleBackslash,
    TokenKind::ShiftLeft,
    TokenKind::Equal,
    TokenKind::UnknownOperator,
]);

/// What makes a longer, unknown operator when it directly follows one.
pub(crate) const OPERATOR_TAIL: TokenSet = OPERATORS.union(FALSE_OPERATORS).union(TokenSet::new(&[
    TokenKind::FatArrow,
    TokenKind::Pipe,
    TokenKind::Bang,
]));

pub(crate) const OPENERS: TokenSet = TokenSet::new(&[
    TokenKind::ListOpen,
    TokenKind::ArrayOpen,
    TokenKind::MapOpen,
    TokenKind::ParenOpen,
    TokenKind::BracketOpen,
    TokenKind::BraceOpen,
    TokenKind::StringStart,
]);

pub(crate) const CLOSERS: TokenSet = TokenSet::new(&[
    TokenKind::ParenClose,
    TokenKind::BracketClose,
    TokenKind::BraceClose,
    TokenKind::StringMiddle,
    TokenKind::StringEnd,
]);

/// After one of these a `-` is the subtraction operator, unless it opens a line.
pub(crate) const OPERAND_ENDS: TokenSet = RESERVED_WORDS.union(TokenSet::new(&[
    TokenKind::Lower,
    TokenKind::Upper,
    TokenKind::Integer,
    TokenKind::Float,
    TokenKind::Character,
    TokenKind::String,
    TokenKind::StringEnd,
    TokenKind::Symbol,
    TokenKind::ParenClose,
    TokenKind::BracketClose,
    TokenKind::BraceClose,
    TokenKind::Error,
]));

/// On a new line these continue the expression above.
pub(crate) const CONTINUES_LINE: TokenSet =
    OPERATORS.union(TokenSet::new(&[TokenKind::Keyword, TokenKind::Semicolon]));

/// Input that ends in one of these waits for more.
pub(crate) const WANTS_MORE: TokenSet = OPERATORS.union(FALSE_OPERATORS).union(TokenSet::new(&[
    TokenKind::Keyword,
    TokenKind::Assign,
    TokenKind::DoubleColon,
    TokenKind::FatArrow,
    TokenKind::Semicolon,
    TokenKind::Caret,
    TokenKind::Comma,
    TokenKind::Pipe,
]));
