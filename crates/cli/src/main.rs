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
    /// Watch files, supervise processes, run workflows.
    Loop(commands::loop_command::Arguments),
}

fn main() -> std::process::ExitCode {
    if let Some(code) = beamtalk_process::run_guard_if_asked() {
        return code;
    }
    let arguments = Arguments::parse();
    let outcome: anyhow::Result<Exit> = match arguments.command {
        Command::Docs(arguments) => commands::docs::run(&arguments),
        Command::Loop(arguments) => commands::loop_command::run(arguments),
    };
    match outcome {
        Ok(exit) => exit.into(),
        Err(error) => {
            exit::report(&error);
            Exit::Failure.into()
        }
    }
}
