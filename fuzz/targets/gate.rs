//! Any bytes as frames of the control socket, a first message, the headers of an upgrade, a login form.

#[path = "grammar_of_heads.rs"]
mod grammar_of_heads;

use std::process::ExitCode;

use beamtalk_fuzz::{Target, drive};


fn main() -> ExitCode {
    drive(&Target {
        name: "gate",
        check: beamtalk_workspace::gate::read_strange_bytes,
        seeds: &["seeds/head", "seeds/wire"],
        words: &[
            "Authorization: Bearer ",
            "Cookie: login=",
            "Sec-WebSocket-Protocol: ",
            "token=",
            r#"{"type":"auth""#,
        ],
        grammar: Some(grammar_of_heads::GRAMMAR),
        length: 4096,
    })
}
