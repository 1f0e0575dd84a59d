//! Any bytes as a message of 9P.

#[path = "../checks/ninep.rs"]
mod ninep;

use std::process::ExitCode;

use beamtalk_fuzz::{Target, drive};

fn main() -> ExitCode {
    drive(&Target {
        name: "ninep",
        check: ninep::check,
        seeds: &["seeds/ninep", "../tests/ninep"],
        words: &["Twalk", "Tread", "Tversion", "9P2000.L", "9P2000"],
        grammar: None,
        length: 4096,
    })
}
