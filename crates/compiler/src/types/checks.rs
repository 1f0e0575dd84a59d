//! What is told about the types of a body: one file for each kind of place where types can clash.

mod messages;
mod origins;
mod values;
