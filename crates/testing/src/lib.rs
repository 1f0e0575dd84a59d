//! Tests: finding them, running them in a node, and telling what happened.

pub mod collect;
pub mod doctest;
pub mod expectation;
pub mod filter;
pub mod report;
pub mod run;
pub mod script;
pub mod units;
pub mod watching;
