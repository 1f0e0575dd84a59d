//! `beamtalk workspace …`: administration of workspaces, over the control socket and the state directory.

mod approvals;
mod attach;
mod audit;
mod life;
mod listing;
mod logs;
mod remote;
mod restart;
mod secrets;
pub(crate) mod status;
mod transcript;

use clap::Subcommand;
pub(crate) use life::{defaults, flags_of_last_start, warn_without_effect};

use crate::exit::Exit;
use crate::start_flags::StartFlags;
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

/// Which workspace.
#[derive(clap::Args)]
pub(crate) struct Which {
    /// The workspace; that of the current directory if not given.
    name: Option<String>,
}

#[derive(Subcommand)]
enum Command {
    /// List all workspaces; `▸` marks the one of the current directory.
    List,
    /// Make a workspace with a name for the project of the current directory.
    Create {
        /// Its name.
        name: String,
        /// Start it too.
        #[arg(long)]
        background: bool,
        #[command(flatten)]
        flags: StartFlags,
    },
    /// Start a workspace.
    Start {
        #[command(flatten)]
        which: Which,
        /// Do not detach: for init systems.
        #[arg(long)]
        foreground: bool,
        #[command(flatten)]
        flags: StartFlags,
    },
    /// Show what a workspace is doing.
    Status(Which),
    /// Stop a workspace.
    Stop {
        #[command(flatten)]
        which: Which,
        /// Do not wait for evaluations and supervisors.
        #[arg(long)]
        force: bool,
        /// Stop every workspace that runs.
        #[arg(long, conflicts_with = "name")]
        all: bool,
    },
    /// Stop a workspace and start it again with the flags it had.
    Restart {
        #[command(flatten)]
        which: Which,
        /// Trust nothing that code in it may have left: new cookie, tokens revoked, build output deleted, pending
        /// changes archived.
        #[arg(long)]
        clean: bool,
        /// Do not wait for evaluations and supervisors.
        #[arg(long)]
        force: bool,
    },
    /// Open a terminal session in a workspace that runs, here or elsewhere; nothing is started.
    Attach(attach::Arguments),
    /// Show what was written to the Transcript.
    Transcript(transcript::Arguments),
    /// Show the log of the node.
    Logs(logs::Arguments),
    /// Show what was asked of a workspace through its boundary.
    ///
    /// The trail records what came through the boundary. Code in the image acts as the same user and could alter the
    /// file; send it to another machine if that matters.
    Audit(audit::Arguments),
    /// Show calls of AI clients that wait for a person, and answer them.
    Approvals(approvals::Arguments),
    /// Make a new cookie, so that the old one opens nothing any more.
    RotateCookie {
        #[command(flatten)]
        which: Which,
        /// Leave clients connected that showed the old one.
        #[arg(long)]
        keep_connections: bool,
    },
    /// Make, list and revoke access tokens for other machines.
    Token {
        #[command(subcommand)]
        command: secrets::TokenCommand,
    },
    /// Save, list and forget names for workspaces of other machines.
    Remote {
        #[command(subcommand)]
        command: remote::RemoteCommand,
    },
    /// Delete a stopped workspace; files of the project stay.
    Rm {
        /// The workspace.
        name: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

pub(crate) fn run(terminal: &mut Terminal, arguments: Arguments) -> anyhow::Result<Exit> {
    match arguments.command {
        Command::List => listing::list(terminal),
        Command::Create {
            name,
            background,
            flags,
        } => life::create(terminal, &name, background, &flags),
        Command::Start {
            which,
            foreground: true,
            flags,
        } => life::start_in_foreground(terminal, which.name.as_deref(), &flags),
        Command::Start { which, flags, .. } => life::start(terminal, which.name.as_deref(), &flags),
        Command::Status(which) => status::status(terminal, which.name.as_deref()),
        Command::Stop { force, all: true, .. } => life::stop_all(terminal, force),
        Command::Stop { which, force, .. } => life::stop(terminal, which.name.as_deref(), force),
        Command::Restart { which, clean, force } => {
            restart::restart(terminal, which.name.as_deref(), clean, force)
        }
        Command::Attach(arguments) => attach::run(terminal, arguments),
        Command::Transcript(arguments) => transcript::run(terminal, &arguments),
        Command::Logs(arguments) => logs::run(terminal, &arguments),
        Command::Audit(arguments) => audit::run(terminal, &arguments),
        Command::Approvals(arguments) => approvals::run(terminal, &arguments),
        Command::RotateCookie {
            which,
            keep_connections,
        } => secrets::rotate_cookie(terminal, which.name.as_deref(), keep_connections),
        Command::Token { command } => secrets::token(terminal, &command),
        Command::Remote { command } => remote::run(terminal, &command),
        Command::Rm { name, yes } => listing::remove(terminal, &name, yes),
    }
}
