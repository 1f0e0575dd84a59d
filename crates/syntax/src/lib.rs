//! Text to tree and back: spans, tokens, lexer, parser, formatter, and the `Diagnostic` data type.
//!
//! Nothing here touches the world: no files, no clock, no async. Every entry point takes text and
//! answers data; faults in the text are diagnostics, never errors.

pub mod ast;
pub mod diagnostic;
pub mod span;
