//! Any bytes as lines of an AI client.

#[path = "../checks/mcp.rs"]
mod mcp;

use std::process::ExitCode;

use beamtalk_fuzz::{Target, drive};

fn main() -> ExitCode {
    drive(&Target {
        name: "mcp",
        check: mcp::check,
        seeds: &["seeds/mcp"],
        words: &[
            r#""method":"tools/call""#,
            r#""method":"prompts/get""#,
            r#""method":"resources/list""#,
            "io.modelcontextprotocol/protocolVersion",
            r#""name":"describe""#,
            r#""arguments":{"#,
            "beamtalk://",
        ],
        grammar: None,
        length: 4096,
    })
}
