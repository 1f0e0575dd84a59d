//! Start programs, stop them with everything they started, read what they print.
//!
//! This is the only crate that starts programs. A [`Spec`] says what to run. [`Keepers::spawn`]
//! starts it below a keeper, which ends everything the program ever made, whatever that did to
//! its group, session or environment, and also when this process is killed. [`spawn`] is the
//! plain way: a process group of its own, which [`Child::stop`] ends. [`asked`] is for a program
//! that answers and ends. [`run_port_helper`]
//! does all that for a node, over a pipe. [`LineSplitter`] turns bytes into lines the way a terminal shows them. A process
//! that waits gives back the memory it does not need ([`Rest`], [`give_back`]).
//!
//! It knows nothing of what the programs are for: no restart policy, no labels, no state.

#![expect(clippy::disallowed_methods, reason = "the one crate that starts programs")]

mod asked;
mod child;
mod detached;
mod error;
mod group;
mod guard;
mod keepers;
mod keeping;
mod lines;
mod members;
mod memory;
mod port_helper;
mod rest;
mod sentry;
mod wire;

pub use asked::{asked, with_terminal};
pub use child::{Child, Spec, Stdin, Stop, find_program, is_executable, spawn};
pub use detached::{
    Detached, detached_with_mark, detached_with_words, detached_with_words_and_mark, spawn_detached,
};
pub use error::Error;
pub use group::{Entry, Group, entry_of};
pub use guard::run_guard_if_asked;
pub use keepers::{Happened, KEEPERS_ARGUMENT, Keepers, Kept};
pub use lines::{LINE_LIMIT, Line, LineSplitter};
pub use memory::give_back;
pub use port_helper::run_port_helper;
pub use rest::{Rest, RestingInput};
pub use rustix::process::Signal;
