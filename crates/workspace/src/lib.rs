//! The daemon: one live image behind one boundary.

pub mod changes;
pub mod compile;
