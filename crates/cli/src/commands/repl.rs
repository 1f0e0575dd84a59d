//! `beamtalk repl` and `beamtalk eval`: a session in the workspace of the current project.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use beamtalk_client::Greeting;
use beamtalk_project::Network;
use beamtalk_workspace::StartOptions;

use crate::commands::workspace::{defaults, flags_of_last_start, warn_without_effect};
use crate::config::Config;
use crate::exit::Exit;
use crate::repl::batch::{self, Source};
use crate::repl::greeting::{About, Arrival};
use crate::repl::history::History;
use crate::repl::interactive;
use crate::repl::link::{Dial, Dialed, Life, Link};
use crate::repl::paint::Palette;
use crate::repl::screen::Screen;
use crate::start_flags::StartFlags;
use crate::terminal::Terminal;
use crate::workspace_link::{Found, Place, Trust, connect, not_running, refused};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Evaluate this and leave; may be repeated.
    #[arg(short = 'e', value_name = "EXPRESSION")]
    expressions: Vec<String>,
    /// Stop the workspace afterwards, if this command started it.
    #[arg(long, conflicts_with = "persistent")]
    ephemeral: bool,
    #[command(flatten)]
    start: StartFlags,
}

#[derive(clap::Args)]
pub(crate) struct EvalArguments {
    /// What to evaluate.
    expression: String,
    /// Stop the workspace afterwards, if this command started it.
    #[arg(long)]
    ephemeral: bool,
    /// The longest the evaluation may take, in seconds.
    #[arg(long, value_name = "S", value_parser = seconds)]
    timeout: Option<Duration>,
}

fn seconds(text: &str) -> Result<Duration, String> {
    let seconds: f64 = text
        .parse()
        .map_err(|_| "a number of seconds is wanted".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(limit) if limit > Duration::ZERO => Ok(limit),
        _ => Err("a number of seconds above 0 is wanted".to_owned()),
    }
}

pub(crate) fn run(terminal: &mut Terminal, arguments: Arguments) -> anyhow::Result<Exit> {
    let place = Place::find(terminal, None)?;
    let config = Config::of(&place.state)?;
    let options = arguments.start.options(defaults(&place, config.start)?)?;
    let is_ephemeral = arguments.ephemeral || (config.is_ephemeral && !options.persistent);
    let is_terminal = std::io::stdin().is_terminal() && std::io::stdout().is_terminal();
    let source = if !arguments.expressions.is_empty() {
        Some(Source::Expressions(arguments.expressions.into_iter()))
    } else if is_terminal && !terminal.is_json() {
        None
    } else {
        Some(Source::Stream)
    };
    in_workspace(
        terminal,
        place,
        &arguments.start,
        &options,
        is_ephemeral,
        |terminal, link, reached| match source {
            Some(source) => batch::run(link, screen(terminal), source, None, reached.arrival()),
            None => at_terminal(terminal, link, reached),
        },
    )
}

pub(crate) fn run_eval(terminal: &mut Terminal, arguments: EvalArguments) -> anyhow::Result<Exit> {
    let flags = StartFlags::of_environment()?;
    let place = Place::find(terminal, None)?;
    let options = flags.options(defaults(&place, Config::of(&place.state)?.start)?)?;
    let source = Source::Expressions(vec![arguments.expression].into_iter());
    in_workspace(
        terminal,
        place,
        &flags,
        &options,
        arguments.ephemeral,
        |terminal, link, reached| {
            batch::run(
                link,
                screen(terminal),
                source,
                arguments.timeout,
                reached.arrival(),
            )
        },
    )
}

/// The workspace of this command, and how it was reached.
struct Reached {
    place: Arc<Place>,
    found: Found,
}

impl Reached {
    fn arrival(&self) -> Arrival {
        if self.found.started.is_some() {
            Arrival::Started
        } else {
            Arrival::Attached
        }
    }
}

/// Find or start the workspace, work in it, and stop it again when it was for this command only.
fn in_workspace(
    terminal: &mut Terminal,
    place: Place,
    flags: &StartFlags,
    options: &StartOptions,
    is_ephemeral: bool,
    work: impl FnOnce(&mut Terminal, Link, &Reached) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let place = Arc::new(place);
    let found = place.find_or_start(terminal, options)?;
    if found.started.is_none() && *flags != StartFlags::default() {
        warn_without_effect(terminal, &place, flags)?;
    }
    let reached = Reached { place, found };
    let stops = is_ephemeral && reached.found.started.is_some();
    let dial = LocalDial {
        place: reached.place.clone(),
        network: terminal.network,
    };
    let ended = Link::open(Box::new(dial)).and_then(|link| work(terminal, link, &reached));
    if stops {
        reached.place.stop("stop", false)?;
    }
    ended
}

fn at_terminal(terminal: &mut Terminal, link: Link, reached: &Reached) -> anyhow::Result<Exit> {
    let Reached { place, found } = reached;
    let started = found.started.as_ref();
    let about = About {
        workspace: place.id.to_string(),
        discovered_from: (!place.is_named).then(|| place.root.display().to_string()),
        is_first: started.is_some_and(|report| report.is_first),
    };
    let palette = palette(terminal);
    let kept = place.state.create_workspace(&place.id).map_err(refused)?;
    let history = History::open(Some(kept.directory().clone())).map_err(refused)?;
    interactive::run(terminal, palette, link, &about, reached.arrival(), history)
}

pub(crate) fn palette(terminal: &Terminal) -> Palette {
    if terminal.paints_output() {
        Palette::Colored
    } else {
        Palette::Plain
    }
}

pub(crate) fn screen(terminal: &Terminal) -> Screen {
    Screen::new(palette(terminal), terminal.is_json())
}

/// Reaches the workspace of this user; where it is and its cookie are read at each try.
struct LocalDial {
    place: Arc<Place>,
    network: Network,
}

impl Dial for LocalDial {
    fn dial<'a>(&'a self, resume: Option<&'a str>) -> Dialed<'a> {
        Box::pin(async move {
            let place = &self.place;
            let info = place
                .running()?
                .ok_or_else(|| not_running(format!("workspace '{}' is not running", place.id)))?;
            let greeting = Greeting {
                client: "repl",
                resume,
            };
            connect(place, &info, greeting).await
        })
    }

    fn life(&self) -> Life {
        match self.place.running() {
            Ok(None) => Life::Gone,
            Ok(Some(_)) | Err(_) => Life::Held,
        }
    }

    /// As it was started the last time, whoever did that.
    fn revive(&self) -> anyhow::Result<Vec<String>> {
        let options = match flags_of_last_start(&self.place)? {
            Some(options) => options,
            None => Config::of(&self.place.state)?.start,
        };
        let mut terminal = Terminal::silent(self.network);
        let found = self.place.launch(&mut terminal, &options, Trust::Everything)?;
        Ok(found.started.map(|report| report.notices).unwrap_or_default())
    }
}
