//! `beamtalk repl` and `beamtalk eval`: a session in the workspace of the current project.

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;

use beamtalk_client::{Greeting, Place};
use beamtalk_project::Network;
use beamtalk_repl::{
    About, Arrival, Dial, Dialed, History, Life, Link, Opening, Output, Palette, Screen, Source,
};
use beamtalk_workspace::StartOptions;

use crate::commands::docs::Guide;
use crate::commands::workspace::{defaults, flags_of_last_start, warn_without_effect};
use crate::config::Config;
use crate::exit::{Exit, Fault, ended};
use crate::start_flags::StartFlags;
use crate::terminal::Terminal;
use crate::workspace_link::{Found, Trust, find_or_start, find_place, launch};

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
    let place = find_place(terminal, None)?;
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
        |opening, reached| match source {
            Some(source) => opening.evaluate(source).map_err(ended),
            None => at_terminal(opening, reached),
        },
    )
}

pub(crate) fn run_eval(terminal: &mut Terminal, arguments: EvalArguments) -> anyhow::Result<Exit> {
    let flags = StartFlags::of_environment()?;
    let place = find_place(terminal, None)?;
    let options = flags.options(defaults(&place, Config::of(&place.state)?.start)?)?;
    let source = Source::Expressions(vec![arguments.expression].into_iter());
    in_workspace(
        terminal,
        place,
        &flags,
        &options,
        arguments.ephemeral,
        |mut opening, _| {
            opening.time_limit = arguments.timeout;
            opening.evaluate(source).map_err(ended)
        },
    )
}

/// The workspace of this command, and how it was reached.
struct Reached {
    place: Arc<Place>,
    found: Found,
}

/// Find or start the workspace, work in it, and stop it again when it was for this command only.
fn in_workspace(
    terminal: &mut Terminal,
    place: Place,
    flags: &StartFlags,
    options: &StartOptions,
    is_ephemeral: bool,
    work: impl FnOnce(Opening, &Reached) -> anyhow::Result<Exit>,
) -> anyhow::Result<Exit> {
    let place = Arc::new(place);
    let found = find_or_start(&place, terminal, options)?;
    if found.started.is_none() && *flags != StartFlags::default() {
        warn_without_effect(terminal, &place, flags)?;
    }
    let reached = Reached { place, found };
    let stops = is_ephemeral && reached.found.started.is_some();
    let dial = LocalDial {
        place: reached.place.clone(),
        network: terminal.network,
    };
    let arrival = match reached.found.started {
        Some(_) => Arrival::Started,
        None => Arrival::Attached,
    };
    let ended = opening(terminal, Box::new(dial), arrival).and_then(|opening| work(opening, &reached));
    if stops {
        reached.place.stop("stop", false)?;
    }
    ended
}

fn at_terminal(opening: Opening, reached: &Reached) -> anyhow::Result<Exit> {
    let Reached { place, found } = reached;
    let started = found.started.as_ref();
    let about = About {
        workspace: place.id.to_string(),
        discovered_from: (!place.is_named).then(|| place.root.display().to_string()),
        is_first: started.is_some_and(|report| report.is_first),
    };
    let kept = place.state.create_workspace(&place.id).map_err(Fault::from)?;
    let history = History::open(Some(kept.directory().clone())).map_err(Fault::from)?;
    opening.interact(&about, history).map_err(ended)
}

/// Connect, for a session on the streams of this command.
pub(crate) fn opening(terminal: &Terminal, dial: Box<dyn Dial>, arrival: Arrival) -> anyhow::Result<Opening> {
    let palette = if terminal.paints_output() {
        Palette::Colored
    } else {
        Palette::Plain
    };
    let output = match terminal.output {
        _ if terminal.is_json() => Output::Json,
        _ if terminal.is_quiet => Output::Quiet,
        _ => Output::Text,
    };
    Ok(Opening {
        link: Link::open(dial).map_err(ended)?,
        screen: Screen::new(palette, output),
        manual: &Guide,
        arrival,
        time_limit: None,
    })
}

/// Reaches the workspace of this user; where it is and its cookie are read at each try.
struct LocalDial {
    place: Arc<Place>,
    network: Network,
}

impl Dial for LocalDial {
    fn dial<'a>(&'a self, resume: Option<&'a str>) -> Dialed<'a> {
        let greeting = Greeting {
            client: "repl",
            resume,
        };
        Box::pin(self.place.dial(greeting))
    }

    fn life(&self) -> Life {
        match self.place.running() {
            Ok(None) => Life::Gone,
            Ok(Some(_)) | Err(_) => Life::Held,
        }
    }

    fn revive(&self) -> Result<Vec<String>, String> {
        self.start_again().map_err(|error| format!("{error:#}"))
    }
}

impl LocalDial {
    /// As it was started the last time, whoever did that.
    fn start_again(&self) -> anyhow::Result<Vec<String>> {
        let options = match flags_of_last_start(&self.place)? {
            Some(options) => options,
            None => Config::of(&self.place.state)?.start,
        };
        let mut terminal = Terminal::silent(self.network);
        let found = launch(&self.place, &mut terminal, &options, Trust::Everything)?;
        Ok(found.started.map(|report| report.notices).unwrap_or_default())
    }
}
