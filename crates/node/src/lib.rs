//! The BEAM child: find Erlang, unpack the runtime and library this binary carries, start a node
//! and talk to it over a framed pipe.
//!
//! A node started here opens no port and starts no distribution of its own accord. Callers are the commands that run
//! or compile code; this crate knows nothing about what they ask for.

mod embedded;
mod erlang;
mod error;
mod launch;
mod link;
mod printer;
mod worker;

pub use embedded::{LIBRARY_HASH, Runtime, library_sources};
pub use erlang::{Erlang, INSTALL_COMMAND, OLDEST_RELEASE};
pub use error::Error;
pub use launch::{DistributionFlags, script_command};
pub use link::{Answer, NodeLink, NodeMessage, NodeOptions, Reply};
pub use printer::{PrintError, PrinterLimits, print_forms};
pub use worker::Worker;
