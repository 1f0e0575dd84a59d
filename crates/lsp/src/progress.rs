//! Reading a project says nothing and fetches nothing.

use std::io;

use beamtalk_project::findings::{FileFindings, Finding};
use beamtalk_project::{Network, Progress};
use beamtalk_syntax::span::LineIndex;

pub(crate) struct Silent;

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
