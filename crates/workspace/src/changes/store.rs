//! The log on disk: one entry a line, sources beside it, what is old in an archive.
//!
//! An entry is acknowledged when its line, which carries its sources, is on the disk: one wait for the disk for each
//! change. The files of the sources are for reading; what a loss of power took of them comes back from the lines. A line that cannot be read is the end of a write that was
//! never acknowledged, or damage; it is put aside, never thrown away.

use std::collections::BTreeSet;
use std::io::Write as _;

use beamtalk_storage::{Directory, PRIVATE_FILE};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use super::entry::Entry;
use super::error::ChangeError;

const LOG: &str = "changes.jsonl";
const EPOCH: &str = "epoch";
const DAMAGED: &str = "damaged.jsonl";
/// No log counts this far: a line with such a number is none of ours. Readers of JSON lose precision beyond it too.
const LAST_NUMBER: u64 = 1 << 53;

#[derive(Debug)]
pub(crate) struct Store {
    pub(crate) directory: Directory,
    sources: Directory,
    archive: Directory,
}

/// An entry with its sources, as lines carry them.
#[derive(Serialize)]
struct Whole<'a> {
    #[serde(flatten)]
    entry: &'a Entry,
    #[serde(flatten)]
    texts: Texts<'a>,
}

/// The texts of an entry.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Texts<'a> {
    pub(crate) source: Option<&'a str>,
    pub(crate) prev_source: Option<&'a str>,
    pub(crate) base: Option<&'a str>,
}

/// A line as it is read back. Lines of a log that was written anew have no sources: their files are safe then.
#[derive(Deserialize)]
struct Line {
    #[serde(flatten)]
    entry: Entry,
    #[serde(default)]
    source: Option<String>,
    #[serde(default)]
    prev_source: Option<String>,
    #[serde(default)]
    base: Option<String>,
}

/// Read bytes as a log and write what was read again; for tests with random bytes.
#[doc(hidden)]
pub fn read_strange_log(bytes: &[u8]) {
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(line) = serde_json::from_slice::<Line>(line) else {
            continue;
        };
        let texts = Texts {
            source: line.source.as_deref(),
            prev_source: line.prev_source.as_deref(),
            base: line.base.as_deref(),
        };
        let entry = &line.entry;
        let again = serde_json::to_vec(&Whole { entry, texts }).unwrap_or_default();
        let again =
            serde_json::from_slice::<Line>(&again).map(|again| (again.entry, again.source, again.base));
        assert!(
            again.is_ok_and(|again| again == (line.entry, line.source, line.base)),
            "a line changes when it is written again"
        );
    }
}

impl Store {
    pub(crate) fn open(directory: Directory) -> Result<Self, ChangeError> {
        let (sources, _) = directory.create_directory("sources")?;
        let (archive, _) = directory.create_directory("archive")?;
        // The workspace is locked: what a writer that was killed left is nobody's.
        for place in [&directory, &sources, &archive] {
            place.remove_temporaries()?;
        }
        Ok(Self {
            directory,
            sources,
            archive,
        })
    }

    /// All entries in their order; unreadable lines and those with impossible numbers are put aside.
    pub(crate) fn load(&self) -> Result<Vec<Entry>, ChangeError> {
        let bytes = self.directory.read(LOG)?.unwrap_or_default();
        let mut entries: Vec<Entry> = Vec::new();
        let mut damaged = Vec::new();
        let mut seen = BTreeSet::new();
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            let whole: Option<Line> = line
                .strip_suffix(b"\n")
                .and_then(|whole| serde_json::from_slice(whole).ok());
            let is_possible = |whole: &Line| {
                whole.entry.seq < LAST_NUMBER
                    && whole.entry.epoch < LAST_NUMBER
                    && seen.insert(whole.entry.seq)
            };
            match whole.filter(is_possible) {
                Some(whole) => {
                    self.restore(whole.entry.source_ref.as_ref(), whole.source.as_deref())?;
                    self.restore(whole.entry.prev_source_ref.as_ref(), whole.prev_source.as_deref())?;
                    self.restore(whole.entry.base_ref.as_ref(), whole.base.as_deref())?;
                    entries.push(whole.entry);
                }
                None => damaged.extend_from_slice(line),
            }
        }
        if !damaged.is_empty() {
            damaged.push(b'\n');
            let mut aside = self.archive.append(DAMAGED)?;
            aside
                .write_all(&damaged)
                .and_then(|()| aside.sync_all())
                .map_err(|cause| ChangeError::Write { cause })?;
            self.rewrite(&entries)?;
        }
        entries.sort_by_key(|entry| entry.seq);
        Ok(entries)
    }

    /// Put back the file of a source that is not what its line says.
    fn restore(&self, reference: Option<&String>, text: Option<&str>) -> Result<(), ChangeError> {
        let name = reference.and_then(|reference| reference.strip_prefix("sources/"));
        let (Some(name), Some(text)) = (name, text) else {
            return Ok(());
        };
        if self.sources.read(name)?.as_deref() != Some(text.as_bytes()) {
            self.sources
                .write_atomically(name, text.as_bytes(), PRIVATE_FILE)?;
        }
        Ok(())
    }

    /// One more start: its number.
    pub(crate) fn next_epoch(&self, entries: &[Entry]) -> Result<u64, ChangeError> {
        let stored = self.directory.read(EPOCH)?.unwrap_or_default();
        let stored: Option<u64> = String::from_utf8_lossy(&stored).trim().parse().ok();
        let stored = stored.filter(|stored| *stored < LAST_NUMBER).unwrap_or(0);
        let used = entries.iter().map(|entry| entry.epoch).max().unwrap_or(0);
        let epoch = stored.max(used) + 1;
        self.directory
            .write_atomically(EPOCH, format!("{epoch}\n").as_bytes(), PRIVATE_FILE)?;
        Ok(epoch)
    }

    /// On the disk when this returns; after an error nothing of it is.
    pub(crate) fn append(&self, entry: &Entry, texts: Texts) -> Result<(), ChangeError> {
        let whole = Whole { entry, texts };
        let mut file = self.directory.append(LOG)?;
        let length = file
            .metadata()
            .map_err(|cause| ChangeError::Write { cause })?
            .len();
        let written = file.write_all(&line(&whole)).and_then(|()| file.sync_data());
        written.map_err(|cause| {
            // The rest of a line would spoil the next one.
            let _ = file.set_len(length);
            ChangeError::Write { cause }
        })
    }

    pub(crate) fn rewrite(&self, entries: &[Entry]) -> Result<(), ChangeError> {
        // The lines lose their sources, so the files must be on the disk first.
        rustix::fs::syncfs(&self.directory).map_err(|cause| ChangeError::Write { cause: cause.into() })?;
        let bytes: Vec<u8> = entries.iter().flat_map(line).collect();
        Ok(self.directory.write_atomically(LOG, &bytes, PRIVATE_FILE)?)
    }

    /// Keep a source; answers the name to find it by.
    pub(crate) fn write_source(&self, seq: u64, role: &str, text: &str) -> Result<String, ChangeError> {
        let name = format!("{seq}-{role}.bt");
        let mut file = self.sources.create(&name)?;
        file.write_all(text.as_bytes())
            .map_err(|cause| ChangeError::Write { cause })?;
        Ok(format!("sources/{name}"))
    }

    /// Keep another source in the place of one that is there.
    pub(crate) fn replace_source(&self, seq: u64, role: &str, text: &str) -> Result<String, ChangeError> {
        let name = format!("{seq}-{role}.bt");
        self.sources
            .write_atomically(&name, text.as_bytes(), PRIVATE_FILE)?;
        Ok(format!("sources/{name}"))
    }

    pub(crate) fn read_source(&self, reference: Option<&String>) -> Result<Option<String>, ChangeError> {
        let Some(name) = reference.and_then(|reference| reference.strip_prefix("sources/")) else {
            return Ok(None);
        };
        let bytes = self.sources.read(name)?;
        Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
    }

    /// Move entries out of the log. They are in the archive before they leave it.
    pub(crate) fn archive(&self, old: &[Entry], kept: &[Entry]) -> Result<(), ChangeError> {
        let (Some(first), Some(last)) = (old.first(), old.last()) else {
            return Ok(());
        };
        let failed = |cause| ChangeError::Write { cause };
        let mut packed = GzEncoder::new(Vec::new(), Compression::default());
        for entry in old {
            let source = self.read_source(entry.source_ref.as_ref())?;
            let prev_source = self.read_source(entry.prev_source_ref.as_ref())?;
            let base = self.read_source(entry.base_ref.as_ref())?;
            let texts = Texts {
                source: source.as_deref(),
                prev_source: prev_source.as_deref(),
                base: base.as_deref(),
            };
            let whole = line(&Whole { entry, texts });
            packed.write_all(&whole).map_err(failed)?;
        }
        let name = format!("changes-{}-{}.jsonl.gz", first.seq, last.seq);
        self.archive
            .write_atomically(&name, &packed.finish().map_err(failed)?, PRIVATE_FILE)?;
        self.rewrite(kept)?;
        for reference in old
            .iter()
            .flat_map(|entry| [&entry.source_ref, &entry.prev_source_ref, &entry.base_ref])
            .flatten()
        {
            if let Some(name) = reference.strip_prefix("sources/") {
                self.sources.remove(name)?;
            }
        }
        Ok(())
    }
}

fn line(entry: &impl Serialize) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(entry).expect("an entry has only text and numbers");
    bytes.push(b'\n');
    bytes
}
