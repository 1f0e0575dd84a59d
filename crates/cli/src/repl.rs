//! The terminal session of a workspace: `beamtalk repl`, `beamtalk eval`.
//!
//! The core is pure: which input is complete (`input`), what a command is (`table`), what an answer looks like
//! (`render`, `answers`, `inspect`, `paint`). Around it stand the connection with its keeper (`link`, `notices`), the
//! editor (`editor`) and the two ways to run a session: at a terminal (`interactive`) and without one (`batch`).

mod answers;
pub(crate) mod batch;
mod browse;
mod editor;
pub(crate) mod greeting;
pub(crate) mod help;
pub(crate) mod history;
mod input;
mod inspect;
pub(crate) mod interactive;
mod keys;
pub(crate) mod link;
mod notices;
pub(crate) mod paint;
mod pending;
mod perform;
mod quiet;
pub(crate) mod render;
pub(crate) mod screen;
mod session;
pub(crate) mod table;
#[cfg(test)]
mod test_answers;
mod top;
