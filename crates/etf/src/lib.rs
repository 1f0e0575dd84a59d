//! Erlang external term format: terms as data, encoding, decoding with limits. No I/O.

mod encode;
mod term;

pub use encode::encode;
pub use term::Term;
