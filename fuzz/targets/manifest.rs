//! Any text as `beamtalk.toml`: no panic; a fault names the line.

use std::process::ExitCode;

use beamtalk_fuzz::{Grammar, Target, drive};
use beamtalk_project::manifest::Manifest;

const GRAMMAR: Grammar = Grammar(&[
    (
        "file",
        &[
            "[package]\nname = \"<name>\"\nversion = \"<version>\"\n<section>",
            "<section><section><section>",
            "[package]\n<entry><entry>\n<section>",
        ],
    ),
    (
        "section",
        &[
            "",
            "[dependencies]\n<dependency><dependency>",
            "[diagnostics]\n<category> = \"<level>\"\n",
            "[application]\nsupervisor = \"<name>\"\n",
            "[native.dependencies]\n<name> = <value>\n",
            "[package]\n<entry>",
            "[<name>]\n<entry>",
            "[[<name>]]\n<entry>",
            "<entry>",
        ],
    ),
    (
        "entry",
        &[
            "name = \"<name>\"\n",
            "version = \"<version>\"\n",
            "description = <value>\n",
            "strict-deps = <value>\n",
            "<name> = <value>\n",
            "<name>.<name> = <value>\n",
            "# é\n",
        ],
    ),
    (
        "dependency",
        &[
            "a = { path = \"../a\" }\n",
            "<name> = { git = \"<url>\", tag = \"<version>\" }\n",
            "<name> = { git = \"<url>\", branch = \"-x\", rev = \"1\" }\n",
            "<name> = \"<version>\"\n",
            "[dependencies.<name>]\npath = \"<name>\"\n",
        ],
    ),
    (
        "url",
        &[
            "https://x/y",
            "ssh://a@b/c",
            "ext::sh -c x",
            "file:///x",
            "-u",
            "git@host:path",
            "http://x",
        ],
    ),
    (
        "category",
        &["type", "dnu", "unused", "all", "nope", "visibility"],
    ),
    ("level", &["warn", "error", "ignore", "hint", "x"]),
    (
        "name",
        &[
            "a",
            "my_app",
            "stdlib",
            "kernel",
            "A",
            "é",
            "1",
            r#"\u0000"#,
            "very-long-name-that-goes-on-and-on",
        ],
    ),
    (
        "version",
        &["1.0.0", "0.1.0-rc.1", "1", "18446744073709551616.0.0", "x"],
    ),
    (
        "value",
        &[
            "1",
            r#""x""#,
            "true",
            r#"[1, "a"]"#,
            "{ a = 1 }",
            "1979-05-27",
            "nan",
            "\"\"\"a\nb\"\"\"",
            "0x7fffffffffffffff",
        ],
    ),
]);

fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    if let Err(fault) = Manifest::parse(text, "beamtalk.toml") {
        assert!(!fault.to_string().is_empty(), "refused without a word");
    }
}

fn main() -> ExitCode {
    drive(&Target {
        name: "manifest",
        check: check,
        seeds: &["seeds/manifest"],
        words: &[
            "[package]\n",
            "name = ",
            "version = ",
            "[dependencies]\n",
            "{ path = ",
            r#"git = ""#,
            "= [",
            r#"""""#,
            "'''",
            "[[",
            "]]",
        ],
        grammar: Some(GRAMMAR),
        length: 4096,
    })
}
