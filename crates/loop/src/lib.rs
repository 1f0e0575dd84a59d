//! The loop: watches files, supervises processes, runs hooks and workflows, takes narrow events.
//!
//! Three layers. `config` and `pattern` say what is wanted. `core` decides: a plain value that
//! takes events and gives effects, without clock, channel or file. The shell waits on the world,
//! feeds the core and performs its effects. The command line
//! starts the shell with [`run`] and talks to it through its control socket; a workspace hosts it
//! with [`host::run`] and talks to it through a [`host::Handle`].

#![cfg_attr(
    test,
    expect(clippy::disallowed_methods, reason = "tests set up what they look at")
)]

pub mod config;
pub mod control;
pub mod core;
mod dry_run;
mod error;
mod events;
mod files;
mod graph_text;
pub mod host;
mod ignore_files;
mod manual;
mod output;
mod pattern;
mod record;
mod reload;
pub mod report;
mod shell;
mod state_file;
mod template;
mod terminal;
mod watch;

pub use dry_run::{Foreseen, dry_run};
pub use error::Fatal;
#[doc(hidden)]
pub use events::gate::read_strange_post;
pub use graph_text::{Graph, graph, graph_dot, graph_text};
pub use manual::{TOPICS, plain};
pub use output::Style;
pub use record::Record;
pub use shell::{Environment, Options, Outcome, Said, run};
pub use state_file::{is_free, read as read_state};
pub use terminal::Colour;
