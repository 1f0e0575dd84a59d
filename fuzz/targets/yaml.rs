//! Any text as a file of the agents' configuration: no panic.

use std::process::ExitCode;

use beamtalk_fuzz::{Grammar, Target, drive};

const GRAMMAR: Grammar = Grammar(&[
    (
        "file",
        &[
            "command: [x]\n<entry><entry><entry>",
            "<entry>\n",
            "---\nname: <v>\ndescription: <v>\n---\n<v>\n",
            "# Name: x\n# Description: <v>\n<v>\n",
            "<entry><entry>---\n<entry>",
        ],
    ),
    (
        "entry",
        &[
            "<key>: <v>\n",
            "<key>:\n  <key>: <v>\n  <key>: [<v>, <v>]\n",
            "<key>:\n  - <v>\n  - <key>: <v>\n",
            "<key>: {<key>: <v>}\n",
            "<key>: |\n  <v>\n",
            "&a <key>: *a\n",
            "? <v>\n: <v>\n",
        ],
    ),
    (
        "key",
        &[
            "command",
            "name",
            "models",
            "default_model",
            "idle",
            "busy",
            "prompt",
            "sandbox",
            "read",
            "write",
            "env",
            "network",
            "limits",
            "mail",
            "audit",
            "auth",
            "output",
            "may_spawn",
            "x",
            "<<",
        ],
    ),
    (
        "v",
        &[
            "x",
            "1",
            "true",
            "null",
            r#""a""#,
            "'b'",
            "~",
            "[a, b]",
            "{low: l}",
            "&a [*a]",
            "!!binary aGk=",
            "1e400",
            "(",
            "[a-z+",
            r#""\u0000""#,
            "{{id}}",
            "é",
            "2001-01-01",
            "&a x",
            "*a",
        ],
    ),
]);

fn check(bytes: &[u8]) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        beamtalk_agents::read_strange_config(text);
    }
}

fn main() -> ExitCode {
    drive(&Target {
        name: "yaml",
        check: check,
        seeds: &["seeds/yaml", "../crates/agents/presets"],
        words: &[
            "command: [",
            "  - ",
            ": |\n",
            "&a ",
            "*a",
            "!!",
            "---\n",
            "models:\n",
            "{{",
            "}}",
        ],
        grammar: Some(GRAMMAR),
        length: 4096,
    })
}
