//! Reading the trail: in order across rotated files, following it, and checking it.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};

use beamtalk_storage::{Directory, LogTail, RotatingLog, WorkspaceDirectory, time};
use serde_json::{Map, Value};

use super::mark::Mark;
use super::{AuditError, FILE, TRAIL};

/// One record that was read.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub seq: u64,
    /// The line as it stands in the file, without its end.
    pub line: String,
    pub fields: Map<String, Value>,
}

impl Record {
    fn parse(line: &[u8]) -> Option<Self> {
        let line = std::str::from_utf8(line).ok()?;
        let fields: Map<String, Value> = serde_json::from_str(line).ok()?;
        Some(Self {
            seq: fields.get("seq")?.as_u64()?,
            line: line.to_owned(),
            fields,
        })
    }

    /// A field that is text.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.fields.get(name)?.as_str()
    }

    /// How many records were lost before this one, which confesses it.
    fn lost(&self) -> Option<u64> {
        if self.text("type") != Some("limit") || self.text("what") != Some(TRAIL) {
            return None;
        }
        let said = || self.text("detail")?.split(' ').next()?.parse().ok();
        let count = self.fields.get("count").and_then(Value::as_u64);
        count.or_else(said)
    }

    /// Whether this one says that nothing was known of those before it.
    fn is_forgetful(&self) -> bool {
        self.text("type") == Some("limit") && self.text("what") == Some(TRAIL) && self.lost().is_none()
    }

    /// Milliseconds since 1970.
    pub fn time(&self) -> Option<u64> {
        time::parse_timestamp(self.text("ts")?)
    }
}

/// Which records are wanted; the default is all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter {
    /// Any of these types; empty for all.
    pub kinds: Vec<String>,
    /// Milliseconds since 1970.
    pub since: Option<u64>,
    pub session: Option<String>,
    /// Only records after this number.
    pub after: u64,
}

impl Filter {
    pub fn accepts(&self, record: &Record) -> bool {
        let is_kind = |kind: &str| self.kinds.iter().any(|wanted| wanted == kind);
        record.seq > self.after
            && (self.kinds.is_empty() || record.text("type").is_some_and(is_kind))
            && self
                .since
                .is_none_or(|since| record.time().is_some_and(|time| time >= since))
            && (self.session.is_none() || record.text("session") == self.session.as_deref())
    }
}

/// The moment a text such as `2h`, `30m`, `7d` or a timestamp means, in milliseconds since 1970.
pub fn parse_since(text: &str, now: u64) -> Option<u64> {
    let unit = match text.bytes().last()? {
        b's' => 1,
        b'm' => 60,
        b'h' => 3600,
        b'd' => 86_400,
        _ => return time::parse_timestamp(text),
    };
    let number: u64 = text.get(..text.len() - 1)?.parse().ok()?;
    Some(now.saturating_sub(number.checked_mul(unit * 1000)?))
}

/// Something about the trail that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    #[error("{file}:{line}: not a record")]
    NotARecord { file: String, line: u64 },
    #[error("{file}:{line}: record {found} comes where {expected} should")]
    Gap {
        file: String,
        line: u64,
        expected: u64,
        found: u64,
    },
    #[error("{file}:{line}: the last line is cut short")]
    Torn { file: String, line: u64 },
    #[error("{file}:{line}: {count} records before this one could not be written")]
    Lost { file: String, line: u64, count: u64 },
    #[error("{0} records after the last one could not be written")]
    LostAtEnd(u64),
    #[error("{count} records up to number {last} are not there any more")]
    EndMissing { count: u64, last: u64 },
    #[error("{count} records from number {first} on are not there any more")]
    BeginMissing { count: u64, first: u64 },
    #[error(
        "audit.state is not there or cannot be read: whether the oldest and newest records are cannot be told"
    )]
    NothingRemembered,
    #[error(
        "{file}:{line}: audit.state was not there when this was written: records may be missing before it"
    )]
    Forgotten { file: String, line: u64 },
    #[error("there is no trail: nothing was recorded yet, or all of it was removed")]
    NoTrail,
}

/// What checking the whole trail found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    pub records: u64,
    pub first: Option<u64>,
    pub last: Option<u64>,
    /// Records that are known to have been lost or taken away.
    pub missing: u64,
    pub faults: Vec<Fault>,
}

/// The trail of a workspace, running or not, for reading.
#[derive(Clone, Debug)]
pub struct AuditReader {
    directory: Directory,
}

impl AuditReader {
    pub fn new(workspace: &WorkspaceDirectory) -> Self {
        Self {
            directory: workspace.directory().clone(),
        }
    }

    #[cfg(test)]
    pub(super) fn in_directory(directory: &Directory) -> Self {
        Self {
            directory: directory.clone(),
        }
    }

    /// The wanted records, the oldest first. What is not a record is passed over; see
    /// [`AuditReader::verify`].
    pub fn read(
        &self,
        filter: Filter,
    ) -> Result<impl Iterator<Item = Result<Record, AuditError>> + use<>, AuditError> {
        let files = open_all(&self.directory)?;
        let lines = files.into_iter().flat_map(|(_, file)| Lines::new(file));
        Ok(lines.filter_map(move |line| match line {
            Ok(line) => {
                let record = Record::parse(line.strip_suffix(b"\n")?)?;
                filter.accepts(&record).then_some(Ok(record))
            }
            Err(error) => Some(Err(error)),
        }))
    }

    /// Follow the trail from its beginning, or from after a record: see [`Tail::poll`].
    pub fn follow(&self, filter: Filter) -> Tail {
        Tail {
            log: LogTail::new(&self.directory, FILE),
            filter,
        }
    }

    /// Check that every line is a record, that none is missing, and that all could be written.
    pub fn verify(&self) -> Result<Verification, AuditError> {
        let mut found = Verification::default();
        // Before the records: a trail that grows meanwhile is longer than was said, never shorter.
        let known = Mark::read(&self.directory)?;
        let mut mark = known.unwrap_or_default();
        for (file, content) in open_all(&self.directory)? {
            for (number, line) in (1..).zip(Lines::new(content)) {
                let line = line?;
                let file = file.clone();
                let Some(whole) = line.strip_suffix(b"\n") else {
                    found.faults.push(Fault::Torn { file, line: number });
                    continue;
                };
                let Some(record) = Record::parse(whole) else {
                    found.faults.push(Fault::NotARecord { file, line: number });
                    continue;
                };
                if let Some(count) = record.lost() {
                    // Confessed since the mark was read: those it counts are these.
                    if record.seq > mark.last {
                        mark.lost = 0;
                    }
                    found.missing += count;
                    let file = file.clone();
                    found.faults.push(Fault::Lost {
                        file,
                        line: number,
                        count,
                    });
                }
                if record.is_forgetful() {
                    let file = file.clone();
                    found.faults.push(Fault::Forgotten { file, line: number });
                }
                // What was given up need not be there, and may be: files kept when more of them were.
                if let Some(last) = found.last
                    && let expected = mark.first.max(last + 1)
                    && (record.seq <= last || record.seq > expected)
                {
                    found.missing += record.seq.saturating_sub(expected);
                    found.faults.push(Fault::Gap {
                        file,
                        line: number,
                        expected,
                        found: record.seq,
                    });
                }
                found.records += 1;
                found.first = found.first.or(Some(record.seq));
                found.last = Some(record.seq);
            }
        }
        if known.is_none() {
            found.faults.push(if found.records == 0 {
                Fault::NoTrail
            } else {
                Fault::NothingRemembered
            });
        }
        // Read again: a trail that grows meanwhile may give up its oldest file.
        let first = Mark::read(&self.directory)?
            .unwrap_or_default()
            .first
            .max(mark.first);
        if let Some(found_first) = found.first.filter(|found| first > 0 && *found > first) {
            let count = found_first - first;
            found.missing += count;
            found.faults.push(Fault::BeginMissing { count, first });
        }
        let last = found.last.unwrap_or(first.saturating_sub(1));
        if mark.last > last {
            let count = mark.last - last;
            found.missing += count;
            found.faults.push(Fault::EndMissing {
                count,
                last: mark.last,
            });
        }
        if mark.lost > 0 {
            found.missing += mark.lost;
            found.faults.push(Fault::LostAtEnd(mark.lost));
        }
        Ok(found)
    }
}

/// The end of a trail that grows.
#[derive(Debug)]
pub struct Tail {
    log: LogTail,
    filter: Filter,
}

impl Tail {
    /// The wanted records that came since the last call; an empty list when there are none yet.
    pub fn poll(&mut self) -> Result<Vec<Record>, AuditError> {
        let lines = self.log.poll()?;
        let records = lines.iter().filter_map(|line| Record::parse(line));
        Ok(records.filter(|record| self.filter.accepts(record)).collect())
    }
}

/// The lines of a file as bytes, with their ends.
struct Lines(BufReader<File>);

impl Lines {
    fn new(file: File) -> Self {
        Self(BufReader::new(file))
    }
}

impl Iterator for Lines {
    type Item = Result<Vec<u8>, AuditError>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        match self.0.read_until(b'\n', &mut line) {
            Ok(0) => None,
            Ok(_) => Some(Ok(line)),
            Err(cause) => Some(Err(AuditError::Read(cause))),
        }
    }
}

/// All files of the trail, the oldest first, each once.
fn open_all(directory: &Directory) -> Result<Vec<(String, File)>, AuditError> {
    Ok(RotatingLog::open_all(directory, FILE)?)
}

/// End the current file with a whole line: a record that lacks only its end gets it, a part of one
/// goes. Says if one went.
pub(super) fn repair(directory: &Directory) -> Result<bool, AuditError> {
    let Some(mut file) = directory.open_for_update(FILE)? else {
        return Ok(false);
    };
    let mut content = Vec::new();
    file.read_to_end(&mut content).map_err(AuditError::Read)?;
    let whole = content
        .iter()
        .rposition(|byte| *byte == b'\n')
        .map_or(0, |end| end + 1);
    let Some(part) = content.get(whole..).filter(|part| !part.is_empty()) else {
        return Ok(false);
    };
    let is_whole = Record::parse(part).is_some();
    let repaired = if is_whole {
        file.seek(SeekFrom::End(0)).and_then(|_| file.write_all(b"\n"))
    } else {
        file.set_len(whole as u64)
    };
    repaired.map_err(|cause| AuditError::Write {
        path: directory.path_of(FILE),
        cause,
    })?;
    Ok(!is_whole)
}

/// The number of the last record; 0 if there is none.
pub(super) fn last_seq(directory: &Directory) -> Result<u64, AuditError> {
    for (_, file) in open_all(directory)?.into_iter().rev() {
        if let Some(seq) = last_in(file)? {
            return Ok(seq);
        }
    }
    Ok(0)
}

/// The number of the last record in one file of the trail.
pub(super) fn last_seq_of(directory: &Directory, name: &str) -> Result<Option<u64>, AuditError> {
    directory.open(name)?.map_or(Ok(None), last_in)
}

fn last_in(mut file: File) -> Result<Option<u64>, AuditError> {
    let mut content = Vec::new();
    file.read_to_end(&mut content).map_err(AuditError::Read)?;
    let last = content.rsplit(|byte| *byte == b'\n').find_map(Record::parse);
    Ok(last.map(|record| record.seq))
}

/// The number of the oldest record there is.
pub(super) fn first_seq(directory: &Directory) -> Result<Option<u64>, AuditError> {
    for (_, file) in open_all(directory)? {
        for line in Lines::new(file) {
            if let Some(record) = Record::parse(line?.trim_ascii_end()) {
                return Ok(Some(record.seq));
            }
        }
    }
    Ok(None)
}
