//! The loop: watches files, supervises processes, runs hooks and workflows, takes narrow events.
//!
//! Three layers. `config` and `pattern` say what is wanted. `core` decides: a plain value that
//! takes events and gives effects, without clock, channel or file. The shell waits on the world,
//! feeds the core and performs its effects. The command line and, later, a hosting workspace
//! start the shell with [`run`] and talk to it through its control socket.

pub mod config;
pub mod core;
mod pattern;
pub mod report;
mod template;
pub mod time;
mod watch;
