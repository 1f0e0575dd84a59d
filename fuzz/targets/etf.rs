//! Any bytes as a term of Erlang.

#[path = "../checks/etf.rs"]
mod etf;

use std::process::ExitCode;

use beamtalk_fuzz::{Target, drive};

fn main() -> ExitCode {
    drive(&Target {
        name: "etf",
        check: etf::check,
        seeds: &["seeds/etf"],
        words: &[],
        grammar: None,
        length: 4096,
    })
}
