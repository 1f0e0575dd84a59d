//! Any text as a request of the workspace protocol.

#[path = "../checks/wire.rs"]
mod wire;

use std::process::ExitCode;

use beamtalk_fuzz::{Grammar, Target, drive};

const GRAMMAR: Grammar = Grammar(&[
    (
        "request",
        &[
            r#"{"op":"<op>","id":"<id>"<fields>}"#,
            r#"{"id":"<id>","op":"<op>","session":<value><fields>}"#,
            "[<value>]",
            "{<pair>,<pair>}",
        ],
    ),
    (
        "op",
        &[
            "eval",
            "complete",
            "hover",
            "close",
            "describe",
            "info",
            "docs",
            "load-file",
            "save-class",
            "flush",
            "nav-query",
            "inspect",
            "subscribe",
            "interrupt",
            "bindings",
            "nope",
        ],
    ),
    (
        "id",
        &[
            "1",
            "e7",
            "é",
            r#"x\u0000"#,
            "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
            "",
        ],
    ),
    ("fields", &["", ",<pair>", ",<pair><fields>"]),
    (
        "pair",
        &[
            r#""code":<value>"#,
            r#""class":<value>"#,
            r#""cursor":<value>"#,
            r#""timeout_ms":<value>"#,
            r#""channels":<value>"#,
            r#""selector":<value>"#,
            r#""x":<value>"#,
            r#""id":<value>"#,
        ],
    ),
    (
        "value",
        &[
            "null",
            r#""1 + 1""#,
            "true",
            "-1",
            "1e400",
            "18446744073709551616",
            "0.5",
            r#"["a",<value>]"#,
            r#"{"a":<value>}"#,
            r#""\ud83d\ude00""#,
            r#""\ud800""#,
            "[]",
        ],
    ),
]);

fn main() -> ExitCode {
    drive(&Target {
        name: "wire",
        check: wire::check,
        seeds: &["seeds/wire"],
        words: &[
            r#""op":"#,
            r#""id":"#,
            r#""session":"#,
            "null",
            "[[[[[[",
            r#"{"a":"#,
            r#"\u0000"#,
            "1e308",
        ],
        grammar: Some(GRAMMAR),
        length: 4096,
    })
}
