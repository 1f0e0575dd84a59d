//! What is made of the types at test time: JSON Schemas, TypeScript, tables.

use crate::Operation;
pub use crate::op::{answer_again, each_operation};

/// Something that is done with the types of every operation.
pub trait Visitor {
    fn operation<O, A>(&mut self)
    where
        O: Operation<Answer = A> + schemars::JsonSchema + ts_rs::TS + 'static,
        A: schemars::JsonSchema + ts_rs::TS + 'static;
}
