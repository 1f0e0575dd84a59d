//! Any text as `devloop.toml`.

#[path = "../checks/loop_config.rs"]
mod loop_config;

use std::process::ExitCode;

use beamtalk_fuzz::{Grammar, Target, drive};

const GRAMMAR: Grammar = Grammar(&[
    (
        "file",
        &[
            "watch.w.paths = [\"<glob>\"]\nworkflow.w.steps = [<step>]\n",
            "<section><section><section>",
            "<section><section><section><section><section><section>",
        ],
    ),
    (
        "section",
        &[
            "[watch.<name>]\npaths = [\"<glob>\", \"<glob>\"]\nworkflow = \"<name>\"\n",
            "[process.<name>]\ncommand = [\"<name>\", \"<template>\"]\nrestart = \"<word>\"\ncwd = \"<glob>\"\nenv = { A = \"<template>\" }\nreadiness = <probe>\nliveness = <probe>\n",
            "[hook.<name>]\ncommand = [\"x\"]\ncapture = \"<word>\"\nstate_key = \"<name>\"\n",
            "[workflow.<name>]\nsteps = [<step>, <step>]\n",
            "[event.<name>]\nstate_key = \"<name>\"\nworkflow = \"<name>\"\npattern = \"<regex>\"\nrate = <value>\n",
            "startup_workflows = [\"<name>\"]\n",
            "debounce_ms = <value>\n",
            "root = \"<glob>\"\n",
            "[event_server]\nbind = \"<bind>\"\n",
            "[browser_reload_server]\nbind = \"<bind>\"\n",
            "<name> = <value>\n",
        ],
    ),
    (
        "step",
        &[
            r#"{ action = "notify_reload" }"#,
            r#"{ action = "run_hook", hook = "<name>" }"#,
            r#"{ action = "restart_process", process = "<name>" }"#,
            r#"{ action = "run_workflow", workflow = "<name>" }"#,
            r#"{ action = "log", message = "<template>", style = "<word>" }"#,
            r#"{ action = "sleep_ms", duration_ms = <value> }"#,
            r#"{ action = "write_state", key = "<name>", value = "<template>" }"#,
            r#"{ action = "wait_for_process", process = "<name>" }"#,
            r#"{ action = "<word>" }"#,
        ],
    ),
    (
        "probe",
        &[
            r#"{ kind = "http", url = "http://<bind>/x", interval_ms = <value> }"#,
            r#"{ kind = "state_key", key = "<name>", timeout_ms = <value> }"#,
            r#"{ kind = "<word>" }"#,
        ],
    ),
    ("template", &["x", "{{<name>}}", "{{", "}}", "{{ a }} {{b}}", "é"]),
    (
        "glob",
        &[
            "go",
            "src/**/*.rs",
            "*.{a,b}",
            "[",
            "../x",
            "/",
            "**",
            "{a",
            r#"\\"#,
        ],
    ),
    ("regex", &["a+", "[", "(?P<X>a)", "^.*$", "(((("]),
    (
        "bind",
        &["127.0.0.1:0", "0.0.0.0:80", "[::1]:1", "x", "127.0.0.1:99999"],
    ),
    (
        "word",
        &["text", "json", "always", "never", "on_failure", "heading", "x"],
    ),
    ("name", &["w", "a", "b", "go", "é", "a b", "__x"]),
    (
        "value",
        &[
            "1",
            "0",
            "-1",
            "9223372036854775807",
            r#""x""#,
            "true",
            "1.5",
            "[]",
            "{}",
        ],
    ),
]);

fn main() -> ExitCode {
    drive(&Target {
        name: "loop_config",
        check: loop_config::check,
        seeds: &["seeds/loop_config"],
        words: &[
            "watch.",
            "process.",
            "hook.",
            "workflow.",
            "event.",
            "steps = [",
            r#"{ action = ""#,
            "{{",
            "}}",
            "paths = [",
            "**/",
        ],
        grammar: Some(GRAMMAR),
        length: 4096,
    })
}
