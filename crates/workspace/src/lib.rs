//! The daemon: one live image behind one boundary.

pub mod compile;
pub mod gate;
