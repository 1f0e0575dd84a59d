//! Texts to start from: Erlang for a native class, classes for Erlang.

mod native;
mod stubs;

pub use native::skeleton;
pub use stubs::{is_word, stub};
