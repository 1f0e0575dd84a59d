//! One module per command; each has `Arguments` and `run`.

pub(crate) mod docs;
pub(crate) mod loop_command;
