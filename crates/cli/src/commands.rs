//! One module per command; each has `Arguments` and `run`.

pub(crate) mod agents;
pub(crate) mod build;
pub(crate) mod check;
pub(crate) mod clean;
pub(crate) mod completions;
pub(crate) mod daemon;
pub(crate) mod deps;
pub(crate) mod doc;
pub(crate) mod docs;
pub(crate) mod doctor;
pub(crate) mod fmt;
pub(crate) mod generate;
pub(crate) mod lint;
pub(crate) mod loop_command;
pub(crate) mod new;
pub(crate) mod ninep;
pub(crate) mod port_helper;
pub(crate) mod project_image;
pub(crate) mod repl;
pub(crate) mod run;
pub(crate) mod test;
pub(crate) mod tls;
pub(crate) mod type_coverage;
pub(crate) mod version;
pub(crate) mod web;
pub(crate) mod workspace;
