//! The daemon: one live image behind one boundary.

pub mod certificates;
pub mod compile;
pub mod gate;
