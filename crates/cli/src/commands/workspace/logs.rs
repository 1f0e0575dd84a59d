//! `workspace logs`: the node's log, running or not.

use std::time::Duration;

use beamtalk_storage::LogTail;
use serde_json::{Value, json};

use crate::exit::{Exit, Fault};
use crate::terminal::Terminal;
use crate::workspace_link::find_place;
use beamtalk_wire::LOG_LEVELS;

const FILE: &str = "workspace.log";
/// How often a log that is followed is looked at.
const PAUSE: Duration = Duration::from_millis(200);

#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(flatten)]
    which: super::Which,
    /// Go on with what is written from now on.
    #[arg(short, long)]
    follow: bool,
    /// Only this level and graver ones.
    #[arg(long, value_name = "LEVEL", value_parser = LOG_LEVELS)]
    level: Option<String>,
    /// Print where the log is.
    #[arg(long)]
    path: bool,
    /// How many lines.
    #[arg(short, value_name = "N", default_value_t = 50)]
    number: usize,
}

pub(super) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let place = find_place(terminal, arguments.which.name.as_deref())?;
    let workspace = place.require_directory()?;
    if arguments.path {
        terminal.print(workspace.log_path().display())?;
        return Ok(Exit::Success);
    }
    let directory = workspace.directory();
    let mut filter = Levels::new(arguments.level.as_deref());
    let mut tail = LogTail::new(directory, FILE);
    let mut accepted = |lines: Vec<Vec<u8>>| -> Vec<String> {
        let lines = lines
            .iter()
            .map(|line| String::from_utf8_lossy(line).into_owned());
        lines.filter(|line| filter.accepts(line)).collect()
    };
    let mut lines = tail.poll().map_err(Fault::from)?;
    if !arguments.follow {
        lines.extend(tail.rest());
    }
    let mut lines = accepted(lines);
    let first = lines.len().saturating_sub(arguments.number);
    for line in lines.drain(first..) {
        show(terminal, &line)?;
    }
    if !arguments.follow {
        return Ok(Exit::Success);
    }
    loop {
        std::thread::sleep(PAUSE);
        for line in accepted(tail.poll().map_err(Fault::from)?) {
            show(terminal, &line)?;
        }
    }
}

fn show(terminal: &mut Terminal, line: &str) -> anyhow::Result<()> {
    if !terminal.is_json() {
        terminal.print(line)?;
    } else if serde_json::from_str::<Value>(line).is_ok_and(|value| value.is_object()) {
        // The workspace writes JSON itself.
        terminal.print(line)?;
    } else {
        terminal.print(object(line))?;
    }
    Ok(())
}

/// `TIME [level] [domain] message`; another line is a message alone.
fn object(line: &str) -> Value {
    let parts = || {
        let (time, rest) = line.split_once(" [")?;
        let (level, rest) = rest.split_once("] [")?;
        let (domain, message) = rest.split_once("] ")?;
        Some(json!({"time": time, "level": level, "domain": domain, "msg": message}))
    };
    parts().unwrap_or_else(|| json!({"msg": line}))
}

/// Lines of a level and graver ones. A line without a level belongs to the one before.
struct Levels {
    wanted: usize,
    is_wanted: bool,
}

impl Levels {
    fn new(level: Option<&str>) -> Self {
        let wanted = LOG_LEVELS.iter().position(|name| Some(*name) == level);
        Self {
            wanted: wanted.unwrap_or(LOG_LEVELS.len()),
            is_wanted: true,
        }
    }

    fn accepts(&mut self, line: &str) -> bool {
        let has = |level: &str| {
            line.contains(&format!(" [{level}] [")) || line.contains(&format!("\"level\":\"{level}\""))
        };
        if let Some(level) = LOG_LEVELS.iter().position(|level| has(level)) {
            self.is_wanted = level <= self.wanted;
        }
        self.is_wanted
    }
}

#[cfg(test)]
mod tests {
    use super::{Levels, object};

    const LINE: &str = "2026-01-05T09:14:07.221Z [info] [user] Lamp>>toggle switched on";

    #[test]
    fn continued_lines_go_with_their_first() {
        let mut levels = Levels::new(Some("error"));
        let found: Vec<bool> = [
            LINE,
            "  more of it",
            "2026-01-05T09:14:07.221Z [error] [otp] crash",
            "  with a stack",
            "{\"level\":\"debug\",\"msg\":\"x\"}",
        ]
        .iter()
        .map(|line| levels.accepts(line))
        .collect();
        assert_eq!(found, [false, false, true, true, false]);
        assert!(Levels::new(None).accepts("anything"));
    }

    #[test]
    fn a_line_becomes_an_object() {
        let found = object(LINE);
        assert_eq!(found["level"], "info");
        assert_eq!(found["domain"], "user");
        assert_eq!(found["msg"], "Lamp>>toggle switched on");
        assert_eq!(object("plain")["msg"], "plain");
    }
}
