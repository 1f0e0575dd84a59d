//! Changes to the image that files do not have yet: log, flush, revert.
//!
//! Every change is recorded before it is acknowledged. `splice` and `plan` decide what a flush does to the sources,
//! without touching any; `flush` does it in two phases that survive a crash between any two steps.

mod entry;
mod error;
mod flush;
mod log;
mod new_class;
mod plan;
mod project;
mod revert;
mod splice;
mod store;

#[cfg(test)]
mod tests;

pub use entry::{AuthorKind, Intent, Kind, NewEntry, Side};
pub use error::ChangeError;
pub use log::ChangeLog;
pub use plan::Filter;
pub use revert::InverseChange;
pub(crate) use splice::{class_source, replace_class};
#[doc(hidden)]
pub use store::read_strange_log;
