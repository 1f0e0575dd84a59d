//! `beamtalk loop`: watch files, supervise processes, run workflows.

mod follow;
mod run;
mod status;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use beamtalk_loop::config::{Config, Loaded, Problem, RemoteBind, load};
use beamtalk_loop::control::{Answer, Ask, Client};
use clap::Subcommand;

use crate::exit::Exit;

/// How long `loop stop` waits when it is not told.
const STOP_LIMIT_MS: u64 = 30_000;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The config file; `devloop.toml` of this directory without it.
    #[arg(long, global = true, value_name = "PATH")]
    config: Option<PathBuf>,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Run the loop.
    Run(run::Arguments),
    /// Check the config.
    Validate {
        /// Treat warnings as errors.
        #[arg(long)]
        strict: bool,
        /// One JSON document on standard output.
        #[arg(long)]
        json: bool,
    },
    /// Show what a running loop does.
    Status {
        #[arg(long)]
        json: bool,
        /// Keep showing it as it changes.
        #[arg(long)]
        follow: bool,
    },
    /// Show session state, all of it or one key.
    State {
        key: Option<String>,
        #[arg(long)]
        json: bool,
    },
    /// Post a value to a declared event of the running loop.
    Trigger {
        event: String,
        value: String,
        /// Wait for the workflow it requests.
        #[arg(long)]
        wait: bool,
        /// Give up after this time.
        #[arg(long, value_name = "N")]
        timeout_ms: Option<u64>,
        #[arg(long)]
        json: bool,
    },
    /// Show who sets which workflow in motion.
    Graph {
        #[arg(long, value_parser = ["text", "dot"], default_value = "text")]
        format: String,
    },
    /// End the running loop and wait for its end.
    Stop {
        #[arg(long, value_name = "N", default_value_t = STOP_LIMIT_MS)]
        timeout_ms: u64,
    },
    /// Print a page of the built-in reference.
    Docs {
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(beamtalk_loop::TOPICS.map(|(topic, _)| topic)))]
        topic: String,
    },
}

pub(crate) fn run(arguments: Arguments) -> anyhow::Result<Exit> {
    let config = arguments.config.as_deref();
    match arguments.command {
        Command::Run(arguments) => run::run(config, &arguments),
        Command::Validate { strict, json } => validate(config, strict, json),
        Command::Status { json, follow: false } => status::once(&located(config)?, json),
        Command::Status { json, follow: true } => follow::follow(&located(config)?, json),
        Command::State { key, json } => state(&located(config)?, key.as_deref(), json),
        Command::Trigger {
            event,
            value,
            wait,
            timeout_ms,
            json,
        } => trigger(&located(config)?, event, value, wait, timeout_ms, json),
        Command::Graph { format } => graph(config, &format),
        Command::Stop { timeout_ms } => stop(&located(config)?, Duration::from_millis(timeout_ms)),
        Command::Docs { topic } => docs(&topic),
    }
}

fn read(path: Option<&Path>, remote: RemoteBind) -> anyhow::Result<Loaded> {
    let directory = std::env::current_dir().context("the current directory cannot be read")?;
    Ok(load(path, &directory, remote))
}

/// The config of a loop that runs somewhere: it may have been edited since, so what is wrong in
/// it does not matter as long as it says where the state is.
fn located(path: Option<&Path>) -> anyhow::Result<Config> {
    let loaded = read(path, RemoteBind::Allow)?;
    loaded.config.ok_or_else(|| {
        let texts: Vec<String> = loaded.errors.into_iter().map(|problem| problem.text).collect();
        anyhow::anyhow!("{}", texts.join("\nerror: "))
    })
}

/// Print problems on standard error, one per line.
fn print_problems(word: &str, problems: &[Problem]) {
    let mut out = std::io::stderr().lock();
    for problem in problems {
        // A closed standard error leaves nobody to tell.
        drop(writeln!(out, "{word}: {}", problem.text));
    }
}

fn validate(path: Option<&Path>, strict: bool, json: bool) -> anyhow::Result<Exit> {
    let mut loaded = read(path, RemoteBind::Refuse)?;
    if strict {
        loaded.errors.append(&mut loaded.warnings);
    }
    let valid = loaded.errors.is_empty();
    if json {
        let document = serde_json::json!({
            "valid": valid, "errors": loaded.errors, "warnings": loaded.warnings,
        });
        writeln!(std::io::stdout(), "{document}")?;
    } else {
        print_problems("error", &loaded.errors);
        print_problems("warning", &loaded.warnings);
        if valid {
            writeln!(std::io::stdout(), "ok")?;
        }
    }
    Ok(if valid { Exit::Success } else { Exit::Failure })
}

fn state(config: &Config, key: Option<&str>, json: bool) -> anyhow::Result<Exit> {
    let values = match Client::connect(&config.state_file) {
        Some(mut client) => match client.ask(&Ask::State {
            key: key.map(str::to_owned),
        })? {
            Answer::State(values) => values,
            other => anyhow::bail!("the loop gave an unexpected answer: {other:?}"),
        },
        None => beamtalk_loop::read_state(&config.state_file)?
            .into_iter()
            .collect(),
    };
    let mut out = std::io::stdout().lock();
    let Some(key) = key else {
        if json {
            writeln!(out, "{}", serde_json::Value::Object(values))?;
        } else {
            for (key, value) in values {
                writeln!(out, "{key} = {value}")?;
            }
        }
        return Ok(Exit::Success);
    };
    match values.get(key) {
        Some(serde_json::Value::String(text)) if !json => writeln!(out, "{text}")?,
        Some(value) => writeln!(out, "{value}")?,
        None => anyhow::bail!("no key '{key}' in the state"),
    }
    Ok(Exit::Success)
}

fn trigger(
    config: &Config,
    event: String,
    value: String,
    wait: bool,
    timeout_ms: Option<u64>,
    json: bool,
) -> anyhow::Result<Exit> {
    let Some(mut client) = Client::connect(&config.state_file) else {
        return no_loop();
    };
    client.set_limit(timeout_ms.map(Duration::from_millis))?;
    let report = |accepted: bool, changed: Option<bool>, error: Option<&str>| -> anyhow::Result<()> {
        if json {
            let document = serde_json::json!({ "accepted": accepted, "changed": changed, "error": error });
            writeln!(std::io::stdout(), "{document}")?;
        } else if let Some(error) = error {
            writeln!(std::io::stderr(), "error: {error}")?;
        }
        Ok(())
    };
    let changed = match client.ask(&Ask::Trigger { event, value, wait }) {
        Ok(Answer::Accepted { changed }) => changed,
        Ok(Answer::Error(kind)) => {
            report(false, None, Some(&format!("rejected: {kind}")))?;
            return Ok(Exit::Failure);
        }
        Ok(other) => anyhow::bail!("the loop gave an unexpected answer: {other:?}"),
        Err(error) => {
            report(false, None, Some(&late(&error)))?;
            return Ok(Exit::Failure);
        }
    };
    if wait && changed {
        let failure = match client.receive() {
            Ok(Some(Answer::Finished { error })) => error,
            Ok(_) => Some("the loop ended".to_owned()),
            Err(error) => Some(late(&error)),
        };
        report(true, Some(changed), failure.as_deref())?;
        return Ok(if failure.is_none() {
            Exit::Success
        } else {
            Exit::Failure
        });
    }
    report(true, Some(changed), None)?;
    Ok(Exit::Success)
}

fn late(error: &std::io::Error) -> String {
    match error.kind() {
        std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut => "timed out".to_owned(),
        _ => error.to_string(),
    }
}

fn no_loop() -> anyhow::Result<Exit> {
    writeln!(std::io::stderr(), "error: no loop is running here")?;
    Ok(Exit::NotRunning)
}

fn graph(path: Option<&Path>, format: &str) -> anyhow::Result<Exit> {
    match read(path, RemoteBind::Allow)?.valid() {
        Ok(config) => {
            let text = if format == "dot" {
                beamtalk_loop::graph_dot(&config)
            } else {
                beamtalk_loop::graph_text(&config)
            };
            std::io::stdout().write_all(text.as_bytes())?;
            Ok(Exit::Success)
        }
        Err(errors) => {
            print_problems("error", &errors);
            Ok(Exit::Failure)
        }
    }
}

fn stop(config: &Config, limit: Duration) -> anyhow::Result<Exit> {
    let Some(mut client) = Client::connect(&config.state_file) else {
        return no_loop();
    };
    let deadline = Instant::now() + limit;
    client.set_limit(Some(limit.max(Duration::from_millis(1))))?;
    // The answer may be lost when the loop ends quickly; the lock says when it has ended.
    drop(client.ask(&Ask::Stop));
    while !beamtalk_loop::is_free(&config.state_file) {
        if Instant::now() >= deadline {
            writeln!(
                std::io::stderr(),
                "error: the loop did not end within {} ms",
                limit.as_millis()
            )?;
            return Ok(Exit::Failure);
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(Exit::Success)
}

fn docs(topic: &str) -> anyhow::Result<Exit> {
    for (name, page) in beamtalk_loop::TOPICS {
        if name == topic {
            std::io::stdout().write_all(beamtalk_loop::plain(page).as_bytes())?;
        }
    }
    Ok(Exit::Success)
}
