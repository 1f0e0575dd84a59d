//! Packages: manifest, lock file, fetching, what a build does and its cache, findings as data.
//!
//! Nothing here prints: what a person should see goes to a [`Progress`], and what went wrong is an [`Error`].

pub mod build;
pub mod checks;
mod error;
mod fault;
mod fetch;
pub mod files;
pub mod findings;
pub mod generate;
pub mod library_pages;
pub mod live;
pub mod lock;
pub mod manifest;
mod progress;
mod project;
pub mod site;
pub mod source;
pub mod specs;

pub use error::{At, Error, Result};
pub use fault::{Blame, Fault};
pub use progress::{Network, Progress, Silent};
pub use project::Project;
