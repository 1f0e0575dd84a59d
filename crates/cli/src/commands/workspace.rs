//! `beamtalk workspace …`: administration of workspaces, over the control socket and the state directory.

mod life;

use crate::exit::Exit;
use crate::start_flags::StartFlags;
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Start a workspace.
    Start {
        /// The workspace; that of the current directory if not given.
        name: Option<String>,
        #[command(flatten)]
        flags: StartFlags,
    },
    /// Show what a workspace is doing.
    Status {
        /// The workspace; that of the current directory if not given.
        name: Option<String>,
    },
    /// Stop a workspace.
    Stop {
        /// The workspace; that of the current directory if not given.
        name: Option<String>,
        /// Do not wait for evaluations and supervisors.
        #[arg(long)]
        force: bool,
    },
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    match &arguments.command {
        Command::Start { name, flags } => life::start(terminal, name.as_deref(), flags),
        Command::Status { name } => life::status(terminal, name.as_deref()),
        Command::Stop { name, force } => life::stop(terminal, name.as_deref(), *force),
    }
}
