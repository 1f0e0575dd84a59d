//! The tree-sitter grammar of Beamtalk, for programs in Rust and for our own tests of it.
//!
//! Editors take `src/parser.c`, `src/scanner.c` and `queries/` directly; `docs/editors.md` says how.

#![expect(unsafe_code, reason = "the parser is C")]

use tree_sitter::Language;
use tree_sitter::ffi::TSLanguage;

unsafe extern "C" {
    fn tree_sitter_beamtalk() -> *const TSLanguage;
}

pub const HIGHLIGHTS: &str = include_str!("../../queries/highlights.scm");
pub const FOLDS: &str = include_str!("../../queries/folds.scm");
pub const INDENTS: &str = include_str!("../../queries/indents.scm");
pub const LOCALS: &str = include_str!("../../queries/locals.scm");

/// The language, as parsers and queries take it.
pub fn language() -> Language {
    // SAFETY: the generated function answers a table that lives as long as the program.
    unsafe { Language::from_raw(tree_sitter_beamtalk()) }
}
