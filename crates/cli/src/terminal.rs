//! What a command knows about its caller, and the two streams it writes.
//!
//! Results go to standard output; progress, status, warnings and errors to standard error.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::time::{Duration, Instant};

use beamtalk_project::findings::{FileFindings, Finding, Level, human, json};
use beamtalk_project::{Network, Progress};
use beamtalk_syntax::span::LineIndex;

/// Arguments every command takes.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct GlobalArguments {
    /// Log more: -v debug, -vv trace.
    #[arg(short = 'v', action = clap::ArgAction::Count, global = true)]
    verbose: u8,
    /// Only errors and requested output.
    #[arg(short, long, global = true)]
    quiet: bool,
    /// Machine output on standard output.
    #[arg(long, global = true)]
    json: bool,
    /// Output format.
    // A String, since `loop graph` has a `--format` with other values.
    #[arg(long, global = true, value_parser = ["text", "json"], default_value = "text", hide = true)]
    format: String,
    /// When to use colours.
    #[arg(long, global = true, value_enum, default_value = "auto")]
    color: Color,
    /// The same as `--color never`.
    #[arg(long, global = true)]
    no_color: bool,
    /// Name of the workspace to use.
    #[arg(long, global = true, value_name = "NAME")]
    workspace: Option<String>,
    /// Never use the network.
    #[arg(long, global = true)]
    offline: bool,
}

/// When to use colours.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Color {
    Auto,
    Always,
    Never,
}

/// How results are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    Text,
    Json,
}

/// The caller's terminal, as one command sees it.
#[derive(Debug)]
pub(crate) struct Terminal {
    pub(crate) output: Output,
    pub(crate) is_quiet: bool,
    pub(crate) network: Network,
    /// Colours on standard error, where diagnostics go.
    pub(crate) has_color: bool,
    /// `--color always` was given.
    is_color_forced: bool,
    /// `--workspace`.
    pub(crate) workspace: Option<String>,
    verbose: u8,
    bar: Option<Bar>,
}

#[derive(Debug)]
struct Bar {
    started: Instant,
    is_drawn: bool,
}

/// Quick work shows no bar.
const BAR_DELAY: Duration = Duration::from_millis(300);

impl Terminal {
    pub(crate) fn new(arguments: &GlobalArguments) -> Self {
        let is_json = arguments.json || arguments.format == "json";
        let is_terminal = io::stderr().is_terminal();
        let color = if arguments.no_color {
            Color::Never
        } else {
            arguments.color
        };
        let has_color = match color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => {
                is_terminal
                    && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && std::env::var_os("TERM").is_none_or(|value| value != "dumb")
            }
        };
        let has_bar = is_terminal && !is_json && !arguments.quiet && std::env::var_os("CI").is_none();
        Self {
            output: if is_json { Output::Json } else { Output::Text },
            is_quiet: arguments.quiet,
            network: if arguments.offline {
                Network::Refused
            } else {
                Network::Allowed
            },
            has_color,
            is_color_forced: color == Color::Always,
            workspace: arguments.workspace.clone(),
            verbose: arguments.verbose,
            bar: has_bar.then(|| Bar {
                started: Instant::now(),
                is_drawn: false,
            }),
        }
    }

    /// One that shows no progress, for work in the background of this one.
    pub(crate) fn silent(network: Network) -> Self {
        Self {
            output: Output::Text,
            is_quiet: true,
            network,
            has_color: false,
            is_color_forced: false,
            workspace: None,
            verbose: 0,
            bar: None,
        }
    }

    pub(crate) fn is_json(&self) -> bool {
        self.output == Output::Json
    }

    /// Colours on both streams, for a session that writes to both.
    pub(crate) fn paints_output(&self) -> bool {
        self.has_color && (self.is_color_forced || io::stdout().is_terminal())
    }

    /// A result, on standard output.
    pub(crate) fn print(&mut self, text: impl Display) -> io::Result<()> {
        self.erase();
        let mut out = io::stdout().lock();
        writeln!(out, "{text}")
    }

    /// A status line on standard error; silent when the caller asked for quiet or for JSON.
    pub(crate) fn status(&mut self, text: impl Display) {
        if !self.is_quiet && !self.is_json() {
            self.error(text);
        }
    }

    /// Something the caller must see, on standard error.
    pub(crate) fn error(&mut self, text: impl Display) {
        self.erase();
        // A closed standard error leaves nobody to tell.
        drop(writeln!(io::stderr().lock(), "{text}"));
    }

    /// A detail for `-v`.
    pub(crate) fn detail(&mut self, text: impl Display) {
        if self.verbose > 0 {
            self.error(text);
        }
    }

    /// The start of a phase of work; a bar takes its place where one may be drawn.
    pub(crate) fn phase(&mut self, text: impl Display) {
        match &mut self.bar {
            Some(bar) => bar.started = Instant::now(),
            None => self.status(text),
        }
    }

    /// How far a phase has come.
    pub(crate) fn progress(&mut self, verb: &str, done: usize, total: usize, what: &str) {
        let Some(bar) = &mut self.bar else { return };
        if bar.started.elapsed() < BAR_DELAY || total == 0 {
            return;
        }
        bar.is_drawn = true;
        let width = 24;
        let filled = (done * width / total).min(width);
        let head = if filled < width { ">" } else { "" };
        let line = format!(
            "\r{verb} [{}{head}{}] {done}/{total} {what}\x1b[K",
            "=".repeat(filled),
            ".".repeat(width - filled - head.len()),
        );
        drop(io::stderr().lock().write_all(line.as_bytes()));
    }

    fn erase(&mut self) {
        if let Some(bar) = &mut self.bar
            && bar.is_drawn
        {
            bar.is_drawn = false;
            drop(io::stderr().lock().write_all(b"\r\x1b[K"));
        }
    }
}

impl Progress for Terminal {
    fn network(&self) -> Network {
        self.network
    }

    fn status(&mut self, text: &str) {
        Self::status(self, text);
    }

    fn detail(&mut self, text: &str) {
        Self::detail(self, text);
    }

    fn phase(&mut self, text: &str) {
        Self::phase(self, text);
    }

    fn step(&mut self, verb: &str, done: usize, total: usize, what: &str) {
        Self::progress(self, verb, done, total, what);
    }

    fn error(&mut self, text: &str) {
        Self::error(self, text);
    }

    fn finding(&mut self, file: &FileFindings, index: &LineIndex, finding: &Finding) -> io::Result<()> {
        if self.is_json() {
            self.print(json::render(index, &file.path, &file.text, finding))?;
        } else if finding.severity == Level::Error || !self.is_quiet {
            let text = human::render(&file.path, &file.text, finding, self.has_color);
            self.error(format_args!("{text}\n"));
        }
        Ok(())
    }

    fn more_errors(&mut self, file: &FileFindings, count: usize) {
        if !self.is_json() {
            self.error(format_args!("{}: … {count} more\n", file.path));
        }
    }
}
/// Columns as wide as their widest cell, two blanks apart.
pub(crate) fn aligned<Cell: AsRef<str>>(rows: &[Vec<Cell>]) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.as_ref().chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let line = |row: &Vec<Cell>| {
        let cells = row.iter().zip(&widths);
        let cells = cells.map(|(cell, width)| format!("{:<width$}", cell.as_ref()));
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect()
}
