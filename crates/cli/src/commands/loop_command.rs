//! `beamtalk loop`: watch files, supervise processes, run workflows.

mod follow;
mod hosted;
mod process;
mod run;
mod status;
mod ui;
mod why;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use beamtalk_loop::Record;
use beamtalk_loop::config::{Loaded, Problem, RemoteBind, load, locate};
use beamtalk_loop::control::{Answer, Ask, Client, socket_path};
use beamtalk_loop::core::Operation;
use clap::Subcommand;

use crate::exit::Exit;
use crate::terminal::Terminal;

/// A loop that ends quickly may be gone before its answer is read; one that lives longer was not asked.
const LOST_ANSWER: Duration = Duration::from_secs(5);

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
    /// End the running loop, or one process of it, and wait for the end.
    Stop {
        /// The process; without it the whole loop ends.
        process: Option<String>,
        #[arg(long, value_name = "N", default_value_t = STOP_LIMIT_MS)]
        timeout_ms: u64,
    },
    /// Start a process of the running loop.
    Start { process: String },
    /// Stop a process of the running loop and start it again.
    Restart { process: String },
    /// Show what a process of the running loop said last.
    Logs {
        process: String,
        /// Keep showing what it says.
        #[arg(short, long)]
        follow: bool,
        /// How many of the last lines to show; at most 1000 are kept.
        #[arg(long, value_name = "N", default_value_t = 100)]
        tail: usize,
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show why workflows ran, the last run last.
    Why {
        workflow: Option<String>,
        #[arg(long)]
        json: bool,
    },
    /// Watch and steer the running loop in the terminal.
    Ui,
    /// Print a page of the built-in reference.
    Docs {
        #[arg(value_parser = clap::builder::PossibleValuesParser::new(beamtalk_loop::TOPICS.map(|(topic, _)| topic)))]
        topic: String,
    },
}

pub(crate) fn run(terminal: &mut Terminal, arguments: Arguments) -> anyhow::Result<Exit> {
    let config = arguments.config.as_deref();
    match arguments.command {
        Command::Run(arguments) => run::run(terminal, config, &arguments),
        Command::Validate { strict, json } => validate(config, strict, json),
        Command::Status { json, follow: false } => status::once(&located(config)?, json),
        Command::Status { json, follow: true } => follow::follow(&located(config)?, json),
        Command::State { key, json } => state(config, key.as_deref(), json),
        Command::Trigger {
            event,
            value,
            wait,
            timeout_ms,
            json,
        } => trigger(&located(config)?, event, value, wait, timeout_ms, json),
        Command::Graph { format } => graph(config, &format),
        Command::Stop {
            process: None,
            timeout_ms,
        } => stop(&located(config)?, Duration::from_millis(timeout_ms)),
        Command::Stop {
            process: Some(name), ..
        } => process::operate(&located(config)?, &name, Operation::Stop),
        Command::Start { process } => process::operate(&located(config)?, &process, Operation::Start),
        Command::Restart { process } => process::operate(&located(config)?, &process, Operation::Restart),
        Command::Logs {
            process,
            follow,
            tail,
            json,
        } => process::logs(&located(config)?, &process, tail, follow, json),
        Command::Why { workflow, json } => why::why(&located(config)?, workflow, json),
        Command::Ui => ui::run(&located(config)?),
        Command::Docs { topic } => docs(&topic),
    }
}

fn read(path: Option<&Path>, remote: RemoteBind) -> anyhow::Result<Loaded> {
    let directory = std::env::current_dir().context("the current directory cannot be read")?;
    Ok(load(path, &directory, remote))
}

/// Where a loop is, or would be if one ran.
pub(crate) struct Located {
    socket: PathBuf,
    /// None when no loop runs and the config does not say.
    state_file: Option<PathBuf>,
}

impl Located {
    pub(crate) fn connect(&self) -> Option<Client> {
        Client::connect_to(&self.socket)
    }
}

/// Find the loop of a config. One that runs has left word where it is, so that what is wrong in
/// the config does not matter; the config is read only when there is no such word.
pub(crate) fn located(path: Option<&Path>) -> anyhow::Result<Located> {
    let directory = std::env::current_dir().context("the current directory cannot be read")?;
    let file = locate(path, &directory);
    if let Some(record) = Record::find(&file) {
        return Ok(Located {
            socket: record.socket,
            state_file: Some(record.state_file),
        });
    }
    if !file.exists() {
        let texts = read(path, RemoteBind::Allow)?.errors;
        let texts: Vec<String> = texts.into_iter().map(|problem| problem.text).collect();
        anyhow::bail!("{}", texts.join("\nerror: "));
    }
    let state_file = read(path, RemoteBind::Allow)?
        .config
        .map(|config| config.state_file);
    Ok(Located {
        socket: state_file.as_deref().map(socket_path).unwrap_or_default(),
        state_file,
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

fn state(path: Option<&Path>, key: Option<&str>, json: bool) -> anyhow::Result<Exit> {
    let place = located(path)?;
    let values = match (place.connect(), &place.state_file) {
        (Some(mut client), _) => match client.ask(&Ask::State {
            key: key.map(str::to_owned),
        })? {
            Answer::State(values) => values,
            other => anyhow::bail!("the loop gave an unexpected answer: {other:?}"),
        },
        (None, Some(state_file)) => beamtalk_loop::read_state(state_file)?.into_iter().collect(),
        (None, None) => {
            print_problems("error", &read(path, RemoteBind::Allow)?.errors);
            return Ok(Exit::Failure);
        }
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
    place: &Located,
    event: String,
    value: String,
    wait: bool,
    timeout_ms: Option<u64>,
    json: bool,
) -> anyhow::Result<Exit> {
    let Some(mut client) = place.connect() else {
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
    // A loop that runs knows best what it follows.
    let directory = std::env::current_dir().context("the current directory cannot be read")?;
    let running = Record::find(&locate(path, &directory));
    if let Some(mut client) = running.and_then(|record| Client::connect_to(&record.socket))
        && let Answer::Text(text) = client.ask(&Ask::Graph { dot: format == "dot" })?
    {
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(Exit::Success);
    }
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

fn stop(place: &Located, limit: Duration) -> anyhow::Result<Exit> {
    let (Some(mut client), Some(state_file)) = (place.connect(), &place.state_file) else {
        return no_loop();
    };
    let deadline = Instant::now() + limit;
    client.set_limit(Some(limit.max(Duration::from_millis(1))))?;
    // The answer may be lost when the loop ends quickly; the lock says when it has ended.
    let asked = client.ask(&Ask::Stop);
    let lost = Instant::now() + LOST_ANSWER;
    while !beamtalk_loop::is_free(state_file) {
        if let Err(error) = &asked
            && Instant::now() >= lost.min(deadline)
        {
            writeln!(std::io::stderr(), "error: {error}")?;
            return Ok(Exit::Failure);
        }
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
