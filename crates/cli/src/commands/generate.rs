//! `beamtalk generate`: files to start from.

mod native;
mod stubs;

use crate::exit::Exit;
use crate::terminal::Terminal;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Write an Erlang module for a `native:` class of the project.
    Native(native::Arguments),
    /// Write typed Beamtalk classes for Erlang modules, from the types in their `.beam` files.
    Stubs(stubs::Arguments),
}

pub(crate) fn run(terminal: &mut Terminal, arguments: &Arguments) -> anyhow::Result<Exit> {
    match &arguments.what {
        What::Native(arguments) => native::run(terminal, arguments),
        What::Stubs(arguments) => stubs::run(terminal, arguments),
    }
}
