//! stub
#![allow(missing_docs, unused)]
use beamtalk_wire::ErrorBody;
use serde::Serialize;
use std::path::*;
#[derive(Clone, Copy, PartialEq)]
pub enum AuthorKind {
    Human,
    Agent,
}
#[derive(Clone, Copy, PartialEq)]
pub enum ChangeKind {
    Instance,
    Class,
    NewClass,
    RemoveMethod,
    RemoveClass,
}
#[derive(Clone, Copy, PartialEq)]
pub enum Intent {
    Durable,
    Ephemeral,
}
#[derive(Clone, Copy, PartialEq, Serialize)]
pub enum Side {
    Class,
    Instance,
}
#[derive(Default)]
pub struct FlushFilter {
    pub class: Option<String>,
    pub file: Option<String>,
    pub kinds: Vec<String>,
    pub author_kinds: Vec<String>,
    pub confirm_destructive: bool,
    pub force_files: Vec<String>,
    pub session: Option<String>,
}
pub enum InverseChange {
    SaveMethod {
        class: String,
        selector: String,
        side: Side,
        source: String,
    },
    RemoveMethod {
        class: String,
        selector: String,
        side: Side,
    },
    RemoveClass {
        class: String,
    },
    LoadFile {
        path: String,
    },
}
pub struct NewEntry {
    pub kind: ChangeKind,
    pub class: String,
    pub selector: Option<String>,
    pub side: Side,
    pub intent: Intent,
    pub source: Option<String>,
    pub previous_source: Option<String>,
    pub source_file: Option<String>,
    pub not_flushable_reason: Option<String>,
    pub author: String,
    pub author_kind: AuthorKind,
}
#[derive(Serialize)]
pub struct Entry {
    seq: u64,
}
#[derive(Serialize)]
pub struct FlushReport {}
pub struct ChangeLog;
impl ChangeLog {
    pub fn open(_d: beamtalk_storage::Directory, _r: PathBuf) -> Result<Self, ErrorBody> {
        Ok(Self)
    }
    pub fn record(&mut self, _e: NewEntry) -> Result<Entry, ErrorBody> {
        Ok(Entry { seq: 1 })
    }
    pub fn all(&self) -> Vec<Entry> {
        vec![]
    }
    pub fn active(&self) -> Vec<Entry> {
        vec![]
    }
    pub fn dirty(&self) -> std::collections::BTreeMap<String, Vec<String>> {
        Default::default()
    }
    pub fn diff(&self, _s: u64) -> Result<String, ErrorBody> {
        Ok(String::new())
    }
    pub fn revert(&self, _s: u64) -> Result<InverseChange, ErrorBody> {
        Err(ErrorBody::new("x", ""))
    }
    pub fn reverted(&mut self, _s: u64) -> Result<(), ErrorBody> {
        Ok(())
    }
    pub fn clear(&mut self) -> Result<u64, ErrorBody> {
        Ok(0)
    }
    pub fn flush(&mut self, _f: &FlushFilter) -> Result<FlushReport, ErrorBody> {
        Ok(FlushReport {})
    }
}
pub fn new_class_target(_r: &Path, _p: &str, _c: &str, _l: bool) -> Result<(), ErrorBody> {
    Ok(())
}
