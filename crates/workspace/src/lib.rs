//! The daemon: one live image behind one boundary.

pub mod audit;
pub mod compile;
pub mod gate;
