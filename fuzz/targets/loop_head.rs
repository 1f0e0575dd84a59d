//! Any bytes as a post to the loop: nobody without the token is admitted.

#[path = "grammar_of_heads.rs"]
mod grammar_of_heads;

use std::process::ExitCode;

use beamtalk_fuzz::{Target, drive};


fn main() -> ExitCode {
    drive(&Target {
        name: "loop_head",
        check: beamtalk_loop::read_strange_post,
        seeds: &["seeds/head"],
        words: &[
            "Host: ",
            "Origin: ",
            "Authorization: Bearer ",
            "/events/",
            "%",
            "\n\n",
        ],
        grammar: Some(grammar_of_heads::GRAMMAR),
        length: 4096,
    })
}
