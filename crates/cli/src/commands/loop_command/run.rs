//! `beamtalk loop run`.

use std::io::{IsTerminal, Write};
use std::path::Path;

use beamtalk_loop::config::{Config, RemoteBind};
use beamtalk_loop::core::Plan;
use beamtalk_loop::report::Level;
use beamtalk_loop::{Colour, Options, Outcome, Style, dry_run};

use super::{hosted, print_problems, read};
use crate::exit::Exit;
use crate::terminal::{Color, Terminal};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Run the startup workflows, then end.
    #[arg(long)]
    once: bool,
    /// Run this workflow instead of the startup ones (with --once).
    #[arg(long, value_name = "NAME", requires = "once")]
    workflow: Vec<String>,
    /// A changed path (with --once or --dry-run).
    #[arg(long, value_name = "PATH")]
    change: Vec<String>,
    /// End a single run after this time (with --once).
    #[arg(long, value_name = "N", requires = "once")]
    timeout_ms: Option<u64>,
    /// Say what would happen, start nothing.
    #[arg(long, conflicts_with = "once")]
    dry_run: bool,
    /// An event to judge (with --dry-run).
    #[arg(long, value_name = "NAME=VALUE", requires = "dry_run")]
    event: Vec<String>,
    /// One JSON object per line on standard output.
    #[arg(long)]
    json: bool,
    #[arg(long, value_enum, default_value = "auto")]
    color: Color,
    /// How much the loop says of itself.
    #[arg(long, value_name = "LEVEL", value_parser = ["error", "warn", "info", "debug", "trace"])]
    log: Option<String>,
    /// Only warnings and errors.
    #[arg(long, conflicts_with = "log")]
    quiet: bool,
    /// Begin with empty state.
    #[arg(long)]
    fresh_state: bool,
    /// Let the event server bind to an address others can reach.
    #[arg(long)]
    allow_remote_bind: bool,
    /// Run it inside a workspace, where it is the object `Loop`: the one named, or that of this project.
    #[arg(long, value_name = "NAME", num_args = 0..=1, default_missing_value = "", conflicts_with = "dry_run")]
    workspace: Option<String>,
}

pub(super) fn run(
    terminal: &mut Terminal,
    path: Option<&Path>,
    arguments: &Arguments,
) -> anyhow::Result<Exit> {
    if !arguments.change.is_empty() && !arguments.once && !arguments.dry_run {
        return usage("--change needs --once or --dry-run");
    }
    let remote = if arguments.allow_remote_bind {
        RemoteBind::Allow
    } else {
        RemoteBind::Refuse
    };
    let loaded = read(path, remote)?;
    print_problems("warning", &loaded.warnings);
    let config = match loaded.valid() {
        Ok(config) => config,
        Err(errors) => {
            print_problems("error", &errors);
            return Ok(Exit::Failure);
        }
    };
    if arguments.dry_run {
        return foresee(&config, arguments);
    }
    if let Some(name) = arguments
        .workflow
        .iter()
        .find(|name| !config.workflow.contains_key(*name))
    {
        return usage(&format!("no workflow named '{name}'"));
    }
    if arguments.allow_remote_bind && !config.event.is_empty() {
        writeln!(
            std::io::stderr(),
            "warning: the event server may be reached from other machines"
        )?;
    }
    let stdout = colour(arguments.color, std::io::stdout().is_terminal());
    let stderr = colour(arguments.color, std::io::stderr().is_terminal());
    if let Some(name) = &arguments.workspace {
        let request = serde_json::json!({
            "config": config.file, "json": arguments.json, "level": level(arguments).label(),
            "stdout_colour": stdout == Colour::On, "stderr_colour": stderr == Colour::On,
            "once": arguments.once, "workflows": arguments.workflow, "changed": sorted(&arguments.change),
            "timeout_ms": arguments.timeout_ms, "fresh_state": arguments.fresh_state,
            "allow_remote_bind": arguments.allow_remote_bind,
        });
        // The flag without a name means the workspace of this project.
        terminal.workspace = Some(name.clone()).filter(|name| !name.is_empty());
        return hosted::run(terminal, request);
    }
    let plan = Plan {
        once: arguments.once,
        workflows: (!arguments.workflow.is_empty()).then(|| arguments.workflow.clone()),
        changed: sorted(&arguments.change),
        epoch_ms: 0,
    };
    let options = Options {
        style: Style {
            json: arguments.json,
            level: level(arguments),
            stdout,
            stderr,
        },
        plan,
        fresh_state: arguments.fresh_state,
        timeout_ms: arguments.timeout_ms,
        environment: None,
    };
    Ok(match beamtalk_loop::run(config, options) {
        Outcome::Ended(0) => Exit::Success,
        Outcome::Ended(_) => Exit::Failure,
        Outcome::Owned => Exit::Owned,
        Outcome::Forced => Exit::Forced,
    })
}

fn sorted(paths: &[String]) -> Vec<String> {
    let mut paths = paths.to_vec();
    paths.sort();
    paths.dedup();
    paths
}

fn usage(text: &str) -> anyhow::Result<Exit> {
    writeln!(std::io::stderr(), "error: {text}")?;
    Ok(Exit::Usage)
}

fn foresee(config: &Config, arguments: &Arguments) -> anyhow::Result<Exit> {
    let mut events = Vec::new();
    for event in &arguments.event {
        match event.split_once('=') {
            Some((name, value)) => events.push((name.to_owned(), value.to_owned())),
            None => return usage(&format!("--event wants NAME=VALUE, not '{event}'")),
        }
    }
    let foreseen = dry_run(config, &arguments.change, &events);
    std::io::stdout().write_all(foreseen.text.as_bytes())?;
    Ok(if foreseen.accepted {
        Exit::Success
    } else {
        Exit::Failure
    })
}

fn colour(when: Color, terminal: bool) -> Colour {
    let on = match when {
        Color::Always => true,
        Color::Never => false,
        Color::Auto => terminal && std::env::var_os("NO_COLOR").is_none(),
    };
    if on { Colour::On } else { Colour::Off }
}

fn level(arguments: &Arguments) -> Level {
    if arguments.quiet {
        return Level::Warn;
    }
    if let Some(level) = arguments.log.as_deref().and_then(Level::named) {
        return level;
    }
    let from = |name: &str| std::env::var(name).ok().and_then(|filter| level_in(&filter));
    from("BEAMTALK_LOG")
        .or_else(|| from("RUST_LOG"))
        .unwrap_or(Level::Info)
}

/// The level a filter gives everything: the last word that names one and no target.
fn level_in(filter: &str) -> Option<Level> {
    filter.split(',').rev().find_map(|word| Level::named(word.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_may_name_targets() {
        assert_eq!(level_in("debug"), Some(Level::Debug));
        assert_eq!(level_in("hyper=trace,warn"), Some(Level::Warn));
        assert_eq!(level_in("hyper=trace"), None);
        assert_eq!(level_in(""), None);
    }
}
