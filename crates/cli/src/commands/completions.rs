//! `beamtalk completions`: a completion script for a shell.

use std::io::Write;

use clap::CommandFactory;
use clap_complete::Shell;

use crate::exit::Exit;
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The shell: bash, zsh or fish.
    #[arg(value_parser = ["bash", "zsh", "fish"])]
    shell: String,
}

pub(crate) fn run(_terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    let shell = match arguments.shell.as_str() {
        "zsh" => Shell::Zsh,
        "fish" => Shell::Fish,
        _ => Shell::Bash,
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut crate::Arguments::command(), "beamtalk", &mut script);
    std::io::stdout().lock().write_all(&script)?;
    Ok(Exit::Success)
}
