//! Tests: finding them, running them in a node, and telling what happened.

pub(crate) mod collect;
pub(crate) mod connected;
pub(crate) mod doctest;
pub(crate) mod expectation;
pub(crate) mod filter;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod script;
pub(crate) mod units;
pub(crate) mod watching;
