//! The one binary, `beamtalk`: argument types here, one file per command in `commands/`.

mod commands;
mod exit;

use clap::{Parser, Subcommand};

use crate::exit::Exit;

/// A live workspace for a developer and their agents.
#[derive(Parser)]
#[command(name = "beamtalk", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show a page of the user guide.
    Docs(commands::docs::Arguments),
    /// Run agents in tmux and serve them as files.
    Agents(commands::agents::Arguments),
    /// Read and write files of a 9P server.
    #[command(name = "9p")]
    Ninep(commands::ninep::Arguments),
}

fn main() -> std::process::ExitCode {
    let arguments = Arguments::parse_from(commands::agents::by_name(std::env::args_os()));
    let outcome: anyhow::Result<Exit> = match arguments.command {
        Command::Docs(arguments) => commands::docs::run(&arguments),
        Command::Agents(arguments) => commands::agents::run(arguments),
        Command::Ninep(arguments) => commands::ninep::run(&arguments),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            exit::report(&error);
            Exit::Failure.into()
        }
    }
}
