//! Compiling in separate processes with limits, so that no source text can harm the daemon.

mod diagnostic;
mod frame;
mod held;
pub mod job;
mod known;
mod pool;
mod redefinition;
mod worker;

pub use known::Known;
pub use pool::{Compiled, CompilerLimits, CompilerPool};
pub use worker::run as run_worker;
