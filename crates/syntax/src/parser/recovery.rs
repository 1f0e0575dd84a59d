//! Where reading resumes after a fault.

use ecow::EcoString;

use super::{Lines, Parser};
use crate::codes;
use crate::diagnostic::Diagnostic;
use crate::token::{CLOSERS, CONTINUES_LINE, OPENERS, Token, TokenKind};

impl Parser<'_> {
    /// Skips the rest of a broken statement: to a separator, a line that starts a new statement,
    /// or a closing bracket that someone around waits for.
    pub(super) fn skip_statement(&mut self) {
        let start = self.position;
        while self.position < self.end {
            let token = self.token();
            let kind = token.kind;
            if kind == TokenKind::Dot || (CLOSERS.contains(kind) && self.is_awaited_closer()) {
                return;
            }
            let opens_line = token.newline && self.lines == Lines::Significant;
            if opens_line && self.position > start && !CONTINUES_LINE.contains(kind) {
                return;
            }
            self.skip_group();
        }
    }

    /// Skips one token, or a whole bracketed group.
    pub(super) fn skip_group(&mut self) {
        let token = self.token();
        let partner = token.partner as usize;
        if OPENERS.contains(token.kind) && token.has_partner() && partner < self.end {
            self.position = partner;
            if self.kind() == TokenKind::StringMiddle {
                return self.skip_string();
            }
        }
        self.bump();
    }

    fn skip_string(&mut self) {
        while self.kind() == TokenKind::StringMiddle {
            let token = self.token();
            if !token.has_partner() || token.partner as usize >= self.end {
                break;
            }
            self.position = token.partner as usize;
        }
        self.bump();
    }

    /// Takes the closing bracket of `opener`. When something else stands there, reports it and
    /// resumes behind the closing bracket, if there is one in this region.
    pub(super) fn close(&mut self, opener: Token, kind: TokenKind, message: &str) {
        if self.at(kind) {
            self.bump();
            return;
        }
        if self.at(TokenKind::Bang) {
            self.error_here(codes::MISPLACED_CAST, super::statement::MISPLACED_CAST);
        } else {
            let span = self.here();
            self.report(
                Diagnostic::error(codes::UNCLOSED_BRACKET, span, message)
                    .with_note(opener.span(), "opened here"),
            );
        }
        self.resume_behind(opener);
    }

    pub(super) fn resume_behind(&mut self, opener: Token) {
        let partner = opener.partner as usize;
        if opener.has_partner() && partner < self.end && partner >= self.position {
            self.position = partner + 1;
        }
    }

    /// Reports nesting that is too deep at the current opening bracket, and skips it.
    pub(super) fn too_deep(&mut self) {
        self.error_here(
            codes::NESTING_TOO_DEEP,
            "Expression nesting is too deep (maximum 64 levels)",
        );
        let token = self.token();
        if token.has_partner() && (token.partner as usize) < self.end {
            self.skip_group();
        } else {
            self.position = self.end;
            // The brackets around it are open too; one report is enough.
            self.last_error = Some(self.here().start);
        }
    }

    /// Reports what is left of a member or item, and skips it.
    pub(super) fn skip_rest(&mut self, code: &'static str, message: impl FnOnce(&Self) -> EcoString) {
        if self.position < self.end {
            let message = message(self);
            self.error_here(code, message);
            self.position = self.end;
        }
    }

    /// The index of the first token of the next line that starts at or left of `column`. A closing
    /// bracket opened inside does not end the region.
    pub(super) fn region_end(&self, start: usize, column: u32, limit: usize) -> usize {
        let mut depth = 0_u32;
        for index in start..limit {
            let token = self.token_at(index);
            if index > start && token.newline && token.column <= column {
                let closes = CLOSERS.contains(token.kind) && depth > 0;
                if !closes {
                    return index;
                }
            }
            if OPENERS.contains(token.kind) {
                depth += 1;
            } else if CLOSERS.contains(token.kind) && token.kind != TokenKind::StringMiddle {
                depth = depth.saturating_sub(1);
            }
        }
        limit
    }

    /// Reads inside a region that ends at token `end`.
    pub(super) fn within<T>(&mut self, end: usize, read: impl FnOnce(&mut Self) -> T) -> T {
        let outer = std::mem::replace(&mut self.end, end);
        let result = read(self);
        self.end = outer;
        result
    }
}
