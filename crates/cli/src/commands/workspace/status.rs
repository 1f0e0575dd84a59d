//! `workspace status`: what a running workspace says of itself.

use std::fmt::Write as _;

use beamtalk_client::control_answer;
use beamtalk_repl::CAPABILITY_LINE;
use serde_json::{Value, json};

use crate::exit::Exit;
use crate::terminal::Terminal;
use crate::workspace_link::find_place;

pub(super) fn status(terminal: &mut Terminal, name: Option<&str>) -> anyhow::Result<Exit> {
    let place = find_place(terminal, name)?;
    let (mut control, _) = place.require_control()?;
    let status = control_answer(control.call(&json!({"op": "status"}))?)?;
    if terminal.is_json() {
        terminal.print(status)?;
    } else {
        terminal.print(text(&status).trim_end())?;
    }
    Ok(Exit::Success)
}

fn text(status: &Value) -> String {
    let mut page = String::new();
    let mut line = |label: &str, value: String| {
        // Writing to a String cannot fail.
        let label = if label.is_empty() {
            String::new()
        } else {
            format!("{label}:")
        };
        let _ = writeln!(page, "{label:<13} {value}");
    };
    let word = |field: &str| shown(&status[field]);
    line("Workspace", word("workspace_id"));
    line("Project", word("project_path"));
    line("Home", word("home"));
    line("State", format!("{}, node {}", word("state"), word("node")));
    let pids = format!("daemon {}, node {}", word("pid"), word("node_pid"));
    line("Processes", pids);
    let tls = if status["tls"] == true {
        "with TLS"
    } else {
        "no TLS"
    };
    line(
        "Listens on",
        format!("{} port {} ({tls})", word("bind"), word("port")),
    );
    line(
        "Local",
        format!("commands of this machine come in at {}", word("local")),
    );
    let cluster = &status["cluster"];
    if !cluster.is_null() {
        let (node, address) = (shown(&cluster["node"]), shown(&cluster["address"]));
        let port = shown(&cluster["port"]);
        line("Cluster", format!("{node}, {address} port {port} (with TLS)"));
    }
    line(
        "Version",
        format!("{}, protocol {}", word("version"), word("protocol")),
    );
    line("Uptime", duration(status["uptime_s"].as_u64().unwrap_or(0)));
    let capabilities = &status["capabilities"];
    line("Capabilities", capabilities_text(capabilities));
    line("", CAPABILITY_LINE.to_owned());
    line("Limits", limits(&status["limits"]));
    if status["observers_see_bindings"] == true {
        line("Observers", "may read the variables of other sessions".to_owned());
    }
    let memory = memory(&status["memory"]);
    line(
        "Memory",
        format!("{memory}, {} processes in the node", word("processes")),
    );
    line("Restarts", format!("{} of the node", word("restarts")));
    let drops = format!("{} events dropped for slow clients", word("queue_drops"));
    line(
        "Queues",
        format!(
            "{drops}, run queue {}, {} compilers killed",
            word("run_queue"),
            word("compiler_kills")
        ),
    );
    line("Audit", audit(&status["audit"]));
    if !status["last_error"].is_null() {
        line("Last error", word("last_error"));
    }
    let clients = status["clients"].as_array().map_or(&[][..], Vec::as_slice);
    line(
        "Clients",
        format!("{} connected, {} sessions", word("connections"), word("sessions")),
    );
    for client in clients {
        let busy = if client["busy"] == true { ", busy" } else { "" };
        let _ = writeln!(
            page,
            "  {} {} from {}{busy}",
            shown(&client["id"]),
            shown(&client["client"]),
            shown(&client["peer"])
        );
    }
    page
}

fn capabilities_text(capabilities: &Value) -> String {
    let switch = |name: &str| {
        let is_on = capabilities[name] == true;
        format!("{name} {}", if is_on { "on" } else { "off" })
    };
    let files = if capabilities["fs"] == "ro" {
        "read only"
    } else {
        "read and write"
    };
    format!(
        "{}, {}, {}, files {files}",
        switch("subprocess"),
        switch("ffi"),
        switch("http")
    )
}

fn limits(limits: &Value) -> String {
    let number = |field: &str| limits[field].as_u64().unwrap_or(0);
    let limited = |value: u64, unit: &str| match value {
        0 => "none".to_owned(),
        value => format!("{value} {unit}"),
    };
    let idle = match limits["idle_timeout_s"].as_u64() {
        Some(seconds) => format!("after {}", duration(seconds)),
        None => "never".to_owned(),
    };
    format!(
        "evaluation heap {}, time {}; compiler {}, {}; idle stop {idle}",
        limited(number("eval_max_heap_mb"), "MiB"),
        limited(number("eval_timeout_s"), "s"),
        limited(number("compiler_memory_mb"), "MiB"),
        limited(number("compiler_timeout_s"), "s"),
    )
}

fn audit(audit: &Value) -> String {
    let mut parts = vec![format!("{} records", shown(&audit["seq"]))];
    if audit["ok"] != true {
        let error = shown(&audit["error"]);
        parts.push(format!(
            "cannot be written ({error}), {} lost",
            shown(&audit["lost"])
        ));
    }
    if audit["text"] == true {
        parts.push("with source texts".to_owned());
    }
    if audit["required"] == true {
        parts.push("required".to_owned());
    }
    parts.join(", ")
}

/// Bytes by kind, or one number.
fn memory(memory: &Value) -> String {
    let mebibytes = |bytes: u64| format!("{}.{} MiB", bytes >> 20, ((bytes & 0xf_ffff) * 10) >> 20);
    match memory {
        Value::Object(kinds) => {
            let total = kinds.get("total").and_then(Value::as_u64).unwrap_or(0);
            let parts: Vec<String> = ["processes", "binary", "code", "ets", "atom"]
                .iter()
                .filter_map(|kind| Some(format!("{kind} {}", mebibytes(kinds.get(*kind)?.as_u64()?))))
                .collect();
            if parts.is_empty() {
                mebibytes(total)
            } else {
                format!("{} ({})", mebibytes(total), parts.join(", "))
            }
        }
        Value::Number(bytes) => mebibytes(bytes.as_u64().unwrap_or(0)),
        _ => "unknown".to_owned(),
    }
}

fn duration(seconds: u64) -> String {
    match (seconds / 86_400, seconds / 3600 % 24, seconds / 60 % 60) {
        (0, 0, 0) => format!("{seconds} s"),
        (0, 0, minutes) => format!("{minutes} min"),
        (0, hours, minutes) => format!("{hours} h {minutes} min"),
        (days, hours, _) => format!("{days} d {hours} h"),
    }
}

/// A value in a sentence.
fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "unknown".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{CAPABILITY_LINE, duration, text};

    #[test]
    fn status_names_everything_and_claims_no_sandbox() {
        let status = json!({
            "workspace_id": "orbit", "project_path": "/p", "state": "running", "node": "up", "pid": 7,
            "node_pid": 8, "bind": "10.0.0.7", "port": 4000, "tls": true, "version": "0.1.0",
            "home": "/h", "local": "127.0.0.1:4000", "observers_see_bindings": true,
            "protocol": "1.0", "uptime_s": 3700, "restarts": 0, "connections": 1, "sessions": 1,
            "capabilities": {"subprocess": false, "ffi": true, "http": true, "fs": "ro"},
            "limits": {"eval_max_heap_mb": 512, "eval_timeout_s": 0, "idle_timeout_s": null,
                "compiler_memory_mb": 2048, "compiler_timeout_s": 30},
            "memory": {"total": 31_457_280, "code": 10_485_760}, "processes": 60, "run_queue": 0,
            "queue_drops": 0, "compiler_kills": 0, "audit": {"ok": true, "seq": 12, "lost": 0, "text": false, "required": true}, "last_error": null,
            "clients": [{"id": "s-1", "client": "repl", "peer": "127.0.0.1:5", "busy": true}],
        });
        let page = text(&status);
        assert!(page.contains(CAPABILITY_LINE));
        insta::assert_snapshot!(page);
    }

    #[test]
    fn durations_are_short() {
        let texts = [59, 60, 14_400, 90_000].map(duration);
        assert_eq!(texts, ["59 s", "1 min", "4 h 0 min", "1 d 1 h"]);
    }
}
