//! Start programs, stop them with everything they started, read what they print.
//!
//! This is the only crate that starts programs. A [`Spec`] says what to run; [`spawn`] puts it
//! into a process group of its own; [`Child::stop`] ends the whole group, gently first. A
//! [`Guard`] is a small second process that ends every reported group when this one dies without
//! saying goodbye, so that not even `kill -9` leaves orphans. [`LineSplitter`] turns bytes into
//! lines the way a terminal shows them.
//!
//! It knows nothing of what the programs are for: no restart policy, no labels, no state.

mod child;
mod error;
mod group;
mod guard;
mod lines;

pub use child::{Child, Spec, Stdin, Stop, announce_before_exec, find_program, spawn};
pub use error::Error;
pub use group::{Group, descendants_of_self, kill_each, reap_strangers};
pub use guard::{GUARD_ARGUMENT, Guard, GuardLink, run_guard_if_asked};
pub use lines::{LINE_LIMIT, Line, LineSplitter};
pub use rustix::process::Signal;
