//! Any text as a source: see the check.

#[path = "../checks/source.rs"]
mod source;

#[path = "grammar_of_source.rs"]
mod grammar_of_source;

use std::process::ExitCode;

use beamtalk_fuzz::{Target, drive};

fn main() -> ExitCode {
    drive(&Target {
        name: "source",
        check: source::check_bytes,
        seeds: &["seeds/source", "../lib", "../tests/lang"],
        words: &[
            "=>",
            "->",
            ":=",
            "::",
            "[:",
            "]",
            "(",
            ")",
            "#(",
            "#[",
            "#{",
            "}",
            "subclass: ",
            "class ",
            "^",
            "!",
            "self.",
            "match: [",
            "@expect ",
            "///",
            "/*",
            "*/",
            r#"""#,
            "\n  ",
            "\n",
            "|",
            ";",
            ".",
            "$",
            "<<",
            ">>",
            r#"\{"#,
            "{",
            "...",
        ],
        grammar: Some(grammar_of_source::GRAMMAR),
        length: 512,
    })
}
