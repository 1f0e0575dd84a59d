//! Where work reports to: a terminal, or nobody.

use std::io;

use beamtalk_syntax::span::LineIndex;

use crate::findings::{FileFindings, Finding};

/// Whether the network may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    Allowed,
    Refused,
}

pub trait Progress {
    fn network(&self) -> Network;
    /// One line about what is done.
    fn status(&mut self, text: &str);
    /// A line for those who want to know more.
    fn detail(&mut self, text: &str);
    /// A phase of work begins.
    fn phase(&mut self, text: &str);
    /// How far it has come.
    fn step(&mut self, verb: &str, done: usize, total: usize, what: &str);
    /// What must be seen.
    fn error(&mut self, text: &str);
    /// A finding, with its severity as configured.
    fn finding(&mut self, file: &FileFindings, index: &LineIndex, finding: &Finding) -> io::Result<()>;
    /// Errors of a file that were too many to be reported one by one.
    fn more_errors(&mut self, file: &FileFindings, count: usize);
}

/// Says nothing and fetches nothing.
pub struct Silent;

impl Progress for Silent {
    fn network(&self) -> Network {
        Network::Refused
    }

    fn status(&mut self, _: &str) {}

    fn detail(&mut self, _: &str) {}

    fn phase(&mut self, _: &str) {}

    fn step(&mut self, _: &str, _: usize, _: usize, _: &str) {}

    fn error(&mut self, _: &str) {}

    fn finding(&mut self, _: &FileFindings, _: &LineIndex, _: &Finding) -> io::Result<()> {
        Ok(())
    }

    fn more_errors(&mut self, _: &FileFindings, _: usize) {}
}
