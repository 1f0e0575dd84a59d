//! Any bytes as terminal output or command line.

#[path = "../checks/agents.rs"]
mod agents;

use std::process::ExitCode;

use beamtalk_fuzz::{Target, drive};

fn main() -> ExitCode {
    drive(&Target {
        name: "agents_text",
        check: agents::check,
        seeds: &["seeds/text"],
        words: &["[x", "../"],
        grammar: None,
        length: 4096,
    })
}
