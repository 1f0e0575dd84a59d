//! What `:status` tells.

use beamtalk_wire::answers::{DescribeAnswer, FileAccess, HealthAnswer};

use super::super::paint::Palette;
use super::super::render::Rendered;
use super::{count, grouped};

/// Follows wherever capability flags are shown.
pub const CAPABILITY_LINE: &str = "Capability flags reduce accidents. They are not a sandbox: code running in the workspace has your user's rights.";

/// Where the session is: not in the answers of the workspace.
#[derive(Clone, Debug, Default)]
pub(crate) struct Here {
    pub(crate) session: String,
    pub(crate) address: String,
}

pub(crate) fn status(
    here: &Here,
    health: &HealthAnswer,
    described: &DescribeAnswer,
    palette: Palette,
) -> Rendered {
    let mut rendered = Rendered::default();
    let mut row = |name: &str, value: &str| {
        rendered.line(&format!("  {}{value}", palette.aside(&format!("{name:<14}"))));
    };
    row("Workspace", &health.workspace_id);
    row("Address", &here.address);
    row("Session", &here.session);
    if let Some(project) = &health.project {
        let classes = count(project.classes, "class");
        row(
            "Project",
            &format!("{} v{}, {classes}", project.name, project.version),
        );
    }
    let restarts = match health.restarts {
        0 => String::new(),
        restarts => format!(", {} so far", count(restarts, "restart")),
    };
    row(
        "Node",
        &format!("{} for {}{restarts}", health.node, duration(health.uptime_s)),
    );
    if let Some(error) = &health.last_error {
        row("Last error", error);
    }
    if let (Some(memory), Some(processes)) = (&health.memory, health.processes) {
        let parts = format!(
            "{} (processes {}, binaries {}, code {})",
            size(memory.total),
            size(memory.processes),
            size(memory.binary),
            size(memory.code)
        );
        row("Memory", &parts);
        row("Processes", &grouped(processes));
    }
    let sessions = count(health.sessions, "session");
    row(
        "Clients",
        &format!("{}, {sessions}", count(health.connections, "connection")),
    );
    let can = &described.capabilities;
    let flag = |name: &str, is_on: bool| format!("{name} {}", if is_on { "yes" } else { "no" });
    let files = match can.fs {
        FileAccess::ReadWrite => "read and write",
        FileAccess::ReadOnly => "read only",
    };
    row(
        "Capabilities",
        &format!(
            "files {files}, {}, {}, {}",
            flag("subprocess", can.subprocess),
            flag("ffi", can.ffi),
            flag("http", can.http)
        ),
    );
    row("", CAPABILITY_LINE);
    let limits = &described.limits;
    let or_none = |value: u64, unit: &str| match value {
        0 => "none".to_owned(),
        value => format!("{value} {unit}"),
    };
    row(
        "Limits",
        &format!(
            "heap {}, time {}, output {}, value {}",
            or_none(limits.eval_heap_mb, "MiB"),
            or_none(limits.eval_timeout_s, "s"),
            size(limits.eval_output),
            size(limits.eval_text)
        ),
    );
    row(
        "Version",
        &format!(
            "{}, protocol {}",
            described.versions.beamtalk, described.versions.protocol
        ),
    );
    rendered
}

/// `1.5 MiB`
pub(crate) fn size(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    #[expect(clippy::cast_precision_loss, reason = "a size for people")]
    let mut number = bytes as f64 / 1024.0;
    let mut unit = 0;
    while number >= 1024.0 && unit + 1 < units.len() {
        number /= 1024.0;
        unit += 1;
    }
    let unit = units.get(unit).copied().unwrap_or_default();
    if number < 10.0 && number.fract() > 0.05 {
        format!("{number:.1} {unit}")
    } else {
        format!("{number:.0} {unit}")
    }
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min", seconds / 60),
        3600..86_400 => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds % 86_400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::test_answers::answer;
    use super::*;

    #[test]
    fn everything_is_told() {
        let health = answer(
            json!({"workspace_id": "d0dc08b498b6", "nonce": "n", "node": "up", "uptime_s": 4000,
            "connections": 2, "sessions": 3, "restarts": 1, "queue_drops": 0, "compiler_kills": 0,
            "audit": {"ok": true, "seq": 1, "lost": 0, "text": true, "required": false}, "last_error": null,
            "memory": {"total": 52_428_800, "processes": 20_000_000, "system": 1, "atom": 1, "binary": 900_000,
                       "code": 9_000_000, "ets": 1},
            "processes": 1234, "run_queue": 0, "project": {"name": "orbit", "version": "0.3.0", "classes": 7}}),
        );
        let described = answer(
            json!({"ops": {}, "versions": {"protocol": "1.0", "beamtalk": "0.1.0"},
            "capabilities": {"subprocess": true, "ffi": false, "http": true, "fs": "ro"},
            "limits": {"inbound_frame": 1, "outbound_frame": 1, "open_requests": 1, "waiting_evals": 1,
                       "eval_heap_mb": 512, "eval_timeout_s": 0, "eval_output": 1_048_576, "eval_text": 65_536,
                       "session_grace_s": 1, "compiler_memory_mb": 1, "compiler_timeout_s": 1}}),
        );
        let here = Here {
            session: "s-7f2a".to_owned(),
            address: "127.0.0.1:41873".to_owned(),
        };
        insta::assert_snapshot!(status(&here, &health, &described, Palette::Plain).out);
        insta::assert_snapshot!(
            "status_in_colour",
            status(&here, &health, &described, Palette::Colored).out
        );
    }

    #[test]
    fn sizes_and_times_are_short() {
        let sizes = [0, 1023, 1024, 1536, 65_536, 1_048_576, 5_368_709_120].map(size);
        assert_eq!(
            sizes,
            ["0 B", "1023 B", "1 KiB", "1.5 KiB", "64 KiB", "1 MiB", "5 GiB"]
        );
        let times = [59, 60, 3700, 90_000].map(duration);
        assert_eq!(times, ["59 s", "1 min", "1 h 1 min", "1 d 1 h"]);
    }
}
