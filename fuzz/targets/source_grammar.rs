//! Sources by the grammar: the input is the choices, so that what reaches new places is changed in its choices.

#[path = "../checks/source.rs"]
mod source;

#[path = "grammar_of_source.rs"]
mod grammar_of_source;

use std::process::ExitCode;

use beamtalk_fuzz::{Entropy, Target, drive};

fn check(bytes: &[u8]) {
    source::check(&grammar_of_source::GRAMMAR.text(&mut Entropy::new(bytes)));
}

fn main() -> ExitCode {
    drive(&Target {
        name: "source_grammar",
        check: check,
        seeds: &["seeds/choices"],
        words: &[],
        grammar: None,
        length: 1024,
    })
}
