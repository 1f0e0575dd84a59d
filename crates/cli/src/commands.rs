//! One module per command; each has `Arguments` and `run`.

pub(crate) mod agents;
pub(crate) mod docs;
pub(crate) mod ninep;
