//! `workspace audit`: the trail of what was asked through the boundary, running or not.

use std::time::Duration;

use beamtalk_storage::time;
use beamtalk_workspace::audit::{AuditReader, Filter, Record, parse_since};
use serde_json::{Value, json};

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;
use crate::workspace_link::find_place;

/// How often a trail that is followed is looked at.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    which: super::Which,
    /// Only records of this type, such as `eval`; may be repeated.
    #[arg(long = "type", value_name = "TYPE")]
    kinds: Vec<String>,
    /// Only records since then: `2h`, `30m`, `7d` ago, or a time such as 2026-01-05T09:14.
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only records of this session.
    #[arg(long, value_name = "SESSION")]
    session: Option<String>,
    /// Go on with what is recorded from now on.
    #[arg(short, long)]
    follow: bool,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Check that every line is a record, that none is missing, and that all could be written.
    Verify(super::Which),
}

pub(super) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    if let Some(Command::Verify(which)) = &arguments.command {
        return verify(terminal, which.name.as_deref());
    }
    let since = match &arguments.since {
        None => None,
        Some(text) => Some(parse_since(text, time::now_millis()).ok_or_else(|| {
            let message = format!("'{text}' is no time");
            Fault::usage("bad_time", message)
                .with_hint("write 30m, 2h, 7d, or a time such as 2026-01-05T09:14")
        })?),
    };
    let filter = Filter {
        kinds: arguments.kinds.clone(),
        since,
        session: arguments.session.clone(),
        after: 0,
    };
    let reader = reader(terminal, arguments.which.name.as_deref())?;
    if arguments.follow {
        let mut tail = reader.follow(filter);
        loop {
            for record in tail.poll()? {
                show(terminal, &record)?;
            }
            std::thread::sleep(PAUSE);
        }
    }
    for record in reader.read(filter)? {
        show(terminal, &record?)?;
    }
    Ok(Exit::Success)
}

fn reader(terminal: &mut Terminal, name: Option<&str>) -> anyhow::Result<AuditReader> {
    let place = find_place(terminal, name)?;
    Ok(AuditReader::new(&place.require_directory()?))
}

fn show(terminal: &mut Terminal, record: &Record) -> anyhow::Result<()> {
    if terminal.is_json() {
        terminal.print(&record.line)?;
    } else {
        terminal.print(line(record))?;
    }
    Ok(())
}

/// Time, number, type and who; then the rest as `name=value`.
fn line(record: &Record) -> String {
    let text = |name: &str| record.text(name).unwrap_or("-");
    let mut line = format!(
        "{} {:>6} {:<12} {:<8} {:<8} {}",
        text("ts"),
        record.seq,
        text("type"),
        text("client"),
        text("session"),
        text("auth")
    );
    for (name, value) in &record.fields {
        if matches!(
            name.as_str(),
            "ts" | "seq" | "type" | "client" | "session" | "auth" | "peer"
        ) {
            continue;
        }
        let value = match value {
            // A text of the trail may hold what a terminal would obey.
            Value::String(text) if text.chars().all(|c| !c.is_control() && c != ' ') => text.clone(),
            other => other.to_string(),
        };
        line.push_str(&format!(" {name}={value}"));
    }
    line
}

fn verify(terminal: &mut Terminal, name: Option<&str>) -> anyhow::Result<Exit> {
    let found = reader(terminal, name)?.verify()?;
    if terminal.is_json() {
        let faults: Vec<String> = found.faults.iter().map(ToString::to_string).collect();
        terminal.print(json!({
            "records": found.records, "first": found.first, "last": found.last,
            "missing": found.missing, "faults": faults,
        }))?;
    } else {
        for fault in &found.faults {
            terminal.error(format_args!("{fault}"));
        }
        let verdict = match (found.faults.is_empty(), found.missing) {
            // Of what was rotated or moved away nothing is said.
            (true, _) if found.first > Some(1) => {
                format!("none missing since number {}", found.first.unwrap_or(1))
            }
            (true, _) => "none missing".to_owned(),
            (false, 0) => "not complete".to_owned(),
            (false, missing) => format!("not complete: {missing} missing"),
        };
        terminal.print(format_args!("{} records, {verdict}", found.records))?;
    }
    Ok(if found.faults.is_empty() {
        Exit::Success
    } else {
        Exit::Failure
    })
}
