//! Any text as a source: see the check.

#[path = "../checks/source.rs"]
mod source;

#[path = "grammar_of_source.rs"]
mod grammar_of_source;

use std::process::ExitCode;

use beamtalk_fuzz::{Target, drive};

fn check(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        source::check(text);
    }
}

fn main() -> ExitCode {
    drive(&Target {
        name: "source",
        check: check,
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
