//! A coverage-guided fuzzer that needs nothing but the stable compiler.
//!
//! Each target is a program that calls [`drive`] with its seeds, its grammar and its check. Built with coverage counters
//! (`fuzz/run.sh` sets the flags) it keeps every input that reaches something new and mutates those; built without, it
//! mutates the seeds. What makes the check panic, or takes too long, is written to `artifacts/` and ends the run.

mod coverage;
pub mod grammar;
mod mutate;
mod run;

pub use grammar::{Entropy, Grammar};
pub use run::{Target, drive};
