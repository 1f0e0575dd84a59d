//! The workspace protocol as data.
