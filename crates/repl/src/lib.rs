//! The terminal session of a workspace: `beamtalk repl`, `beamtalk eval`, `workspace attach`.
//!
//! A caller dials a workspace ([`Dial`], [`Link`]), says what its streams are like ([`Screen`]) and runs an [`Opening`]
//! at a terminal or without one. The core is pure: which input is complete (`input`), what a command is (`table`), what
//! an answer looks like (`render`, `answers`, `inspect`, `paint`). Around it stand the connection with its keeper
//! (`link`, `notices`), the editor (`editor`) and the two ways to run a session (`interactive`, `batch`).

mod answers;
pub mod approvals;
mod batch;
mod browse;
mod editor;
mod error;
mod greeting;
pub mod harmless;
mod help;
mod history;
mod input;
mod inspect;
mod interactive;
mod keys;
mod link;
mod manual;
pub mod markdown;
mod notices;
pub mod pager;
mod paint;
mod pending;
mod perform;
mod quiet;
mod render;
mod screen;
mod session;
mod table;
#[cfg(test)]
mod test_answers;
mod top;

use std::time::Duration;

pub use answers::status::CAPABILITY_LINE;
pub use batch::Source;
pub use error::Error;
pub use greeting::{About, Arrival, state_lines};
pub use help::about;
pub use history::History;
pub use link::{Dial, Dialed, Life, Link, state};
pub use manual::Manual;
pub use paint::Palette;
pub use render::failure;
pub use screen::{Output, Screen};
pub use table::{COMMANDS, Entry, find};

/// What a session begins with.
pub struct Opening {
    pub link: Link,
    pub screen: Screen,
    pub manual: &'static dyn Manual,
    pub arrival: Arrival,
    /// The longest an evaluation may take.
    pub time_limit: Option<Duration>,
}
