//! What exists: a row per file, with mode and kind.

use super::super::place::Kind;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) mode: u32,
    pub(super) kind: Kind,
}

const fn value(name: &'static str) -> Row {
    Row {
        name,
        mode: 0o400,
        kind: Kind::Value,
    }
}

const fn other(name: &'static str, mode: u32, kind: Kind) -> Row {
    Row { name, mode, kind }
}

/// At the root, beside the directories.
pub(super) const TOP: &[Row] = &[
    other("eval", 0o600, Kind::Rpc),
    other("eval.json", 0o600, Kind::Rpc),
    other("transcript", 0o600, Kind::Document),
    other("transcript.follow", 0o600, Kind::Stream),
];

pub(super) const CLASSES: &[Row] = &[other(".new", 0o200, Kind::Document)];

/// Beside the methods of a class.
pub(super) const CLASS: &[Row] = &[
    value(".definition"),
    value(".doc"),
    value(".error"),
    value(".info"),
    other(".source", 0o600, Kind::Document),
];

pub(super) const METHOD: Row = other("", 0o600, Kind::Document);

pub(super) const ACTOR: &[Row] = &[
    value("class"),
    other("ctl", 0o600, Kind::Ctl),
    value("info"),
    value("name"),
    other("send", 0o600, Kind::Rpc),
    value("state"),
    value("state.json"),
];

pub(super) const CHANGES: &[Row] = &[
    other("ctl", 0o600, Kind::Ctl),
    value("diff"),
    other("follow", 0o600, Kind::Stream),
    value("log"),
    value("pending"),
];

pub(super) fn row(table: &'static [Row], name: &str) -> Option<&'static Row> {
    table.iter().find(|row| row.name == name)
}

impl Row {
    /// Whatever is done with it changes something, or may.
    pub(super) fn always_changes(&self) -> bool {
        matches!(self.kind, Kind::Ctl | Kind::Rpc) || self.mode == 0o200
    }
}
