//! What is told about the types of a body: one file for each kind of place where types can clash.

mod access;
mod coverage;
pub(super) mod declarations;
mod exhaustive;
mod messages;
mod origins;
mod sending;
mod values;
