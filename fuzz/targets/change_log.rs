//! Any bytes as a change log: no panic, and what was read is written alike.

use std::process::ExitCode;

use beamtalk_fuzz::{Grammar, Target, drive};

const GRAMMAR: Grammar = Grammar(&[
    ("log", &["<line>\n", "<line>\n<line>\n", "<line>\n{\n<line>"]),
    (
        "line",
        &[
            r#"{"seq":<n>,"ts":"2026-01-01T00:00:00Z","epoch":<n>,"kind":"<kind>","class":"<c>","selector":<s>,"side":<side>,"intent":"<intent>","flushable":<b>,"not_flushable_reason":<s>,"source_ref":<s>,"prev_source_ref":<s>,"source_file":<s>,"span":<span>,"file_hash":<s>,"author":"<c>","author_kind":"<who>","state":"<state>"<more>}"#,
            r#"{"seq":<n>}"#,
            "[]",
        ],
    ),
    (
        "more",
        &[
            "",
            r#","source":<s>"#,
            r#","source":<s>,"prev_source":<s>"#,
            r#","x":<n>"#,
        ],
    ),
    (
        "kind",
        &[
            "instance",
            "class",
            "new-class",
            "remove-method",
            "remove-class",
            "x",
        ],
    ),
    ("side", &[r#""instance""#, r#""class""#, "null", "1"]),
    ("intent", &["durable", "ephemeral", "x"]),
    ("who", &["human", "agent", "x"]),
    (
        "state",
        &["pending", "flushed", "reverted", "active", "shadowed", "x"],
    ),
    ("b", &["true", "false", "null"]),
    (
        "n",
        &[
            "1",
            "0",
            "-1",
            "18446744073709551615",
            "18446744073709551616",
            "1.5",
        ],
    ),
    ("c", &["A", "", "é", r#"a\u0000b"#]),
    (
        "s",
        &[
            "null",
            r#""x""#,
            r#""sources/1.bt""#,
            r#""sources/../../x""#,
            r#""at:put:""#,
        ],
    ),
    ("span", &["null", "[1,2]", r#"{"start":1,"end":2}"#, "[2,1]"]),
]);

fn main() -> ExitCode {
    drive(&Target {
        name: "change_log",
        check: beamtalk_workspace::changes::read_strange_log,
        seeds: &["seeds/change_log"],
        words: &[
            r#""seq":"#,
            r#""kind":"instance""#,
            r#""span":"#,
            "null",
            "18446744073709551615",
        ],
        grammar: Some(GRAMMAR),
        length: 4096,
    })
}
