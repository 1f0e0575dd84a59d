//! Sessions: the pure core, the record on disk, and the task that performs effects.

pub(crate) mod chat;
pub(crate) mod conversation;
pub(crate) mod core;
mod deliver;
pub(crate) mod launch;
pub(crate) mod prompt_queue;
pub(crate) mod record;
pub(crate) mod shared;
pub(crate) mod task;
pub(crate) mod usage;

pub use self::core::State;
