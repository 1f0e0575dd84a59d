//! `beamtalk loop status`: the table.

use std::io::Write;

use beamtalk_loop::control::{Answer, Ask};
use beamtalk_loop::core::Status;
use beamtalk_storage::time::{now_seconds, parse_seconds};

use super::{Located, no_loop};
use crate::exit::Exit;
use crate::terminal::aligned;

pub(super) fn once(place: &Located, json: bool) -> anyhow::Result<Exit> {
    let Some(mut client) = place.connect() else {
        return no_loop();
    };
    let Answer::Status(status) = client.ask(&Ask::Status)? else {
        anyhow::bail!("the loop gave an unexpected answer");
    };
    let mut out = std::io::stdout().lock();
    if json {
        writeln!(out, "{}", serde_json::to_string(&status)?)?;
    } else {
        for line in table(&status, now_seconds()) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(Exit::Success)
}

/// The lines of the table at a moment, in seconds since 1970.
pub(super) fn table(status: &Status, now: u64) -> Vec<String> {
    let age = |at: &str| parse_seconds(at).map_or(0, |at| now.saturating_sub(at));
    let mut lines = vec![format!(
        "loop {} {}  pid {}  {}",
        status.phase,
        clock(age(&status.since)),
        status.pid,
        status.config
    )];
    let mut rows = vec![
        ["PROCESS", "STATE", "PID", "UP", "RESTARTS", "LAST EXIT"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(status.processes.iter().map(|process| {
        let exit = process
            .last_exit
            .as_ref()
            .map(|exit| match (exit.code, exit.signal) {
                (Some(code), _) => format!("exit status: {code}"),
                (None, Some(signal)) => format!("signal: {signal}"),
                (None, None) => "-".to_owned(),
            });
        let next = process
            .next_start_ms
            .map(|ms| format!("next in {} s", ms.div_ceil(1000)));
        let last: Vec<String> = [exit, next].into_iter().flatten().collect();
        vec![
            process.name.clone(),
            process.state.clone(),
            process.pid.map_or_else(dash, |pid| pid.to_string()),
            process
                .since
                .as_deref()
                .map_or_else(dash, |since| clock(age(since))),
            process.restarts.to_string(),
            if last.is_empty() { dash() } else { last.join(", ") },
        ]
    }));
    if rows.len() > 1 {
        lines.extend(aligned(&rows));
    }
    let mut rows = vec![
        ["WORKFLOW", "RUNS", "FAILED", "LAST", "TOOK"]
            .map(str::to_owned)
            .to_vec(),
    ];
    rows.extend(status.workflows.iter().map(|workflow| {
        let last = workflow.last.as_ref();
        vec![
            workflow.name.clone(),
            workflow.runs.to_string(),
            workflow.failures.to_string(),
            last.map_or_else(dash, |last| format!("{} {}s", last.result, age(&last.at))),
            last.map_or_else(dash, |last| format!("{} ms", last.ms)),
        ]
    }));
    lines.extend(aligned(&rows));
    if !status.detached.is_empty() {
        let all: Vec<String> = status
            .detached
            .iter()
            .map(|program| format!("{} (pid {})", program.name, program.pid))
            .collect();
        lines.push(format!("DETACHED  {}", all.join("  ")));
    }
    lines.push(lane(status));
    lines.push(format!(
        "WATCH  {}  {} directories  {} files",
        status.watch.backend, status.watch.directories, status.watch.files
    ));
    lines
}

fn dash() -> String {
    "-".to_owned()
}

fn lane(status: &Status) -> String {
    let mut line = match &status.lane.running {
        Some(running) => {
            let target = running
                .target
                .as_ref()
                .map(|target| format!(" {target}"))
                .unwrap_or_default();
            format!(
                "LANE  running {} (step {}/{} {}{target})",
                running.workflow, running.step, running.steps, running.action
            )
        }
        None => "LANE  idle".to_owned(),
    };
    if !status.lane.queue.is_empty() {
        let queued: Vec<&str> = status
            .lane
            .queue
            .iter()
            .map(|request| request.workflow.as_str())
            .collect();
        line = format!("{line}  queued: {}", queued.join(", "));
    }
    line
}

/// Hours, minutes and seconds.
fn clock(seconds: u64) -> String {
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status() -> Status {
        serde_json::from_value(serde_json::json!({
            "schema": 1, "pid": 7120, "config": "/home/kim/shop/devloop.toml", "root": "/home/kim/shop",
            "state_file": "/s", "since": "2031-04-02T09:00:00.000000Z", "phase": "running",
            "watch": { "backend": "native", "directories": 41, "files": 612, "groups": [] },
            "processes": [
                { "name": "db", "state": "ready", "pid": 7131, "since": "2031-04-02T09:00:01.000000Z",
                  "restarts": 0, "last_exit": null, "next_start_ms": null },
                { "name": "server", "state": "backoff", "pid": null, "since": null, "restarts": 4,
                  "last_exit": { "code": 1, "signal": null, "at": "2031-04-02T09:12:00.000000Z" },
                  "next_start_ms": 2300 },
            ],
            "lane": {
                "running": { "workflow": "rust", "step": 2, "steps": 3, "action": "wait_for_process",
                             "target": "server", "since": "2031-04-02T09:12:00.000000Z" },
                "queue": [{ "workflow": "css", "source": "watch", "changed": 1 }],
            },
            "workflows": [{ "name": "rust", "runs": 9, "failures": 2,
                "last": { "result": "ok", "at": "2031-04-02T09:12:29.000000Z", "ms": 840, "error": null } }],
            "events": [], "servers": { "events": null, "browser": null },
        }))
        .unwrap()
    }

    #[test]
    fn the_table_reads_as_documented() {
        let now = parse_seconds("2031-04-02T09:12:41.000000Z").unwrap();
        assert_eq!(
            table(&status(), now),
            [
                "loop running 00:12:41  pid 7120  /home/kim/shop/devloop.toml",
                "PROCESS  STATE    PID   UP        RESTARTS  LAST EXIT",
                "db       ready    7131  00:12:40  0         -",
                "server   backoff  -     -         4         exit status: 1, next in 3 s",
                "WORKFLOW  RUNS  FAILED  LAST    TOOK",
                "rust      9     2       ok 12s  840 ms",
                "LANE  running rust (step 2/3 wait_for_process server)  queued: css",
                "WATCH  native  41 directories  612 files",
            ]
        );
    }
}
