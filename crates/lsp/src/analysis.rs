//! What the names of a text mean.

pub(crate) mod find;
pub(crate) mod names;
pub(crate) mod references;
pub(crate) mod words;
