//! Erlang external term format: terms as data, encoding, decoding with limits. No I/O.

mod decode;
mod encode;
pub mod read;
mod term;

pub use decode::{DecodeError, Limits, decode};
pub use encode::encode;
pub use term::Term;
