//! Tests: finding them, running them in a node, and telling what happened.

pub mod collect;
pub mod filter;
pub mod report;
pub mod run;
pub mod units;
pub mod watching;
