//! Changes to the image that files do not have yet: log, flush, revert.
//!
//! Every change is recorded before it is acknowledged. `plan` decides what a flush does to the sources,
//! without touching any; `flush` does it in two phases that survive a crash between any two steps.

mod entry;
mod error;
mod flush;
mod log;
mod merge;
mod new_class;
mod plan;
mod project;
mod store;

#[cfg(test)]
mod tests;

pub use entry::{AuthorKind, Entry, Intent, Kind, NewEntry, Settled, Side, State};
pub use error::ChangeError;
pub use log::ChangeLog;
pub use plan::{Conflict, ConflictReason, Filter};
pub(crate) use plan::{FileState, Wanted, first_error, is_class_same, moved_base};
pub(crate) use project::hash;
#[doc(hidden)]
pub use store::read_strange_log;
