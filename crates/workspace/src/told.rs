//! What was written to the Transcript, numbered and kept, so that a client that comes later can read it: the newest in
//! memory, all of it in files that outlive the daemon.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader};
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use beamtalk_storage::{Directory, RotatingLog, StorageError};
use beamtalk_wire::answers::TranscriptEntry;
use beamtalk_wire::{Channel, Event, TranscriptEvent, limits};

/// How much is kept in memory.
const BYTES: usize = 4 << 20;
/// Size of a file, and how many older ones there are: 64 MiB in all.
const FILE: u64 = 2 << 20;
const FILES: u32 = 31;
const NAME: &str = "transcript";
/// Entries that are answered at once, as JSON: they fit into a message with what else is in it.
const PAGE: usize = limits::OUTBOUND_FRAME / 8 * 7;
/// The longest text of an entry: as JSON it has at most six times as many bytes, and so it fits into a page.
const ENTRY: usize = 512 << 10;
/// What waits to be written is written at the latest when it is so much.
const WAITING: usize = 64 << 10;

/// Some entries, the newest last.
#[derive(Default)]
pub(crate) struct Page {
    pub(crate) entries: Vec<TranscriptEntry>,
    /// There was no room for all that was asked for.
    pub(crate) is_cut: bool,
    bytes: usize,
}

impl Page {
    /// Add entries, the newest first, up to so many or until there is no room.
    fn fill(&mut self, limit: usize, newest: impl Iterator<Item = TranscriptEntry>) {
        for mut entry in newest {
            if self.is_full(limit) {
                return;
            }
            // Kept by a version that had longer ones.
            if let Some(excess) = entry.text.len().checked_sub(ENTRY).filter(|excess| *excess > 0) {
                entry.text.drain(..entry.text.ceil_char_boundary(excess));
                self.is_cut = true;
            }
            let bytes = serde_json::to_string(&entry).map_or(0, |text| text.len() + 1);
            if self.bytes + bytes > PAGE && !self.entries.is_empty() {
                self.is_cut = true;
                return;
            }
            self.bytes += bytes;
            self.entries.push(entry);
        }
    }

    fn is_full(&self, limit: usize) -> bool {
        self.is_cut || self.entries.len() >= limit
    }
}

/// A text as entries have it: in pieces, if it is long.
pub(crate) fn pieces(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let (piece, later) = {
            let text = rest?;
            text.split_at(text.floor_char_boundary(ENTRY))
        };
        rest = Some(later).filter(|later| !later.is_empty());
        Some(piece)
    })
}

#[derive(Default)]
pub(crate) struct Told {
    last: u64,
    entries: VecDeque<TranscriptEntry>,
    bytes: usize,
    file: Option<RotatingLog>,
    waiting: Vec<u8>,
}

impl Told {
    /// One that goes on where the last daemon ended.
    pub(crate) fn open(directory: Directory) -> Result<Self, StorageError> {
        let mut told = Self::default();
        for name in RotatingLog::files(&directory, NAME)? {
            for entry in read(&directory, &name)? {
                told.last = told.last.max(entry.seq);
                told.add(entry);
            }
        }
        told.file = Some(RotatingLog::open(directory, NAME, FILE, FILES)?);
        Ok(told)
    }

    /// Keep what was written; the answer is its number.
    pub(crate) fn keep(&mut self, text: &str, by: Option<String>) -> u64 {
        self.last += 1;
        let entry = TranscriptEntry {
            seq: self.last,
            at: milliseconds(),
            text: text.to_owned(),
            by,
        };
        if self.file.is_some() {
            // A text is always JSON.
            self.waiting
                .extend(serde_json::to_vec(&entry).unwrap_or_default());
            self.waiting.push(b'\n');
            if self.waiting.len() > WAITING {
                self.write();
            }
        }
        self.add(entry);
        self.last
    }

    fn add(&mut self, entry: TranscriptEntry) {
        self.bytes += entry.text.len();
        self.entries.push_back(entry);
        while self.bytes > BYTES && self.entries.len() > 1 {
            let gone = self.entries.pop_front();
            self.bytes -= gone.map_or(0, |entry| entry.text.len());
        }
    }

    /// Whether something is in no file yet.
    pub(crate) fn is_waiting(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Write what waits. On a disk that takes nothing it is in memory only.
    pub(crate) fn write(&mut self) {
        let waiting = std::mem::take(&mut self.waiting);
        if let Some(file) = &mut self.file
            && !waiting.is_empty()
            && let Err(error) = file.write_whole(&waiting)
        {
            tracing::error!("transcript: {error}");
        }
    }

    /// The number of the oldest that is kept.
    pub(crate) fn first(&self) -> u64 {
        let in_memory = self.entries.front().map_or(0, |entry| entry.seq);
        let in_files = self.starts().first().map(|(_, seq)| *seq);
        in_files.map_or(in_memory, |seq| seq.min(in_memory))
    }

    /// The files, the oldest first, each with the number of its first entry.
    fn starts(&self) -> Vec<(String, u64)> {
        let Some(file) = &self.file else {
            return Vec::new();
        };
        let names = RotatingLog::files(file.directory(), NAME).unwrap_or_default();
        let start = |name: String| {
            let opened = file.directory().open(&name).ok().flatten()?;
            let mut lines = BufReader::new(opened).lines().map_while(Result::ok);
            let first = lines.find_map(|line| serde_json::from_str::<TranscriptEntry>(&line).ok())?;
            Some((name, first.seq))
        };
        names.into_iter().filter_map(start).collect()
    }

    /// Entries after a number that are in memory no more, of one file.
    fn older_after(&mut self, since: u64) -> Vec<TranscriptEntry> {
        if self.entries.front().is_none_or(|entry| entry.seq <= since + 1) {
            return Vec::new();
        }
        self.write();
        let starts = self.starts();
        let place = starts
            .partition_point(|(_, seq)| *seq <= since + 1)
            .saturating_sub(1);
        let Some(file) = &self.file else {
            return Vec::new();
        };
        // The end of a file leads to the next one.
        let of = |(name, _): &(String, u64)| read(file.directory(), name).unwrap_or_default();
        let files = starts.iter().skip(place).map(of);
        let mut later = files.map(|mut entries| {
            entries.retain(|entry| entry.seq > since);
            entries
        });
        later.find(|entries| !entries.is_empty()).unwrap_or_default()
    }

    /// So many events that were told after a number, more of those in files, and before them what is no longer kept.
    pub(crate) fn after(&mut self, since: u64, most: usize) -> (Option<Event>, Vec<(u64, Rc<Event>)>) {
        let event = |entry: &TranscriptEntry| {
            let TranscriptEntry { text, by, .. } = entry.clone();
            let event = TranscriptEvent::Text {
                text,
                r#for: None,
                by,
            };
            (entry.seq, Rc::new(Event::Transcript(event)))
        };
        let older = self.older_after(since);
        let place = self.entries.partition_point(|entry| entry.seq <= since);
        let in_memory = self.entries.range(place..);
        let found: Vec<_> = if older.is_empty() {
            in_memory.take(most).map(event).collect()
        } else {
            // A file is read once, and so it is told as a whole.
            older.iter().map(event).collect()
        };
        let first = found.first().map_or(since + 1, |(seq, _)| *seq);
        let gap = (first > since + 1).then(|| Event::gap(Channel::Transcript, since + 1, first - 1));
        (gap, found)
    }

    /// At most `limit` entries before a number, and no more than fit into an answer.
    pub(crate) fn before(&mut self, seq: Option<u64>, limit: usize, find: Option<&str>) -> Page {
        let is_meant = |entry: &TranscriptEntry| {
            seq.is_none_or(|seq| entry.seq < seq) && find.is_none_or(|find| entry.text.contains(find))
        };
        let mut page = Page::default();
        let newest = self.entries.iter().rev().filter(|entry| is_meant(entry));
        page.fill(limit, newest.cloned());
        let in_memory = self.entries.front().map_or(0, |entry| entry.seq);
        if !page.is_full(limit) && self.file.is_some() {
            self.write();
            for (name, start) in self.starts().into_iter().rev() {
                let Some(file) = self.file.as_ref().filter(|_| !page.is_full(limit)) else {
                    break;
                };
                if seq.is_some_and(|seq| start >= seq) {
                    continue;
                }
                let older = read(file.directory(), &name).unwrap_or_default();
                let meant = older.into_iter().rev().filter(|entry| entry.seq < in_memory);
                page.fill(limit, meant.filter(is_meant));
            }
        }
        page.entries.reverse();
        page
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.write();
    }
}

/// The entries of a file; a line that is none is left out.
fn read(directory: &Directory, name: &str) -> Result<Vec<TranscriptEntry>, StorageError> {
    let text = directory.read(name)?.unwrap_or_default();
    let lines = text.split(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| serde_json::from_slice(line).ok())
        .collect())
}

pub(crate) fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(entries: &[TranscriptEntry]) -> Vec<u64> {
        entries.iter().map(|entry| entry.seq).collect()
    }

    #[test]
    fn the_oldest_go_and_numbers_stay() {
        let mut told = Told::default();
        for number in 0..5 {
            told.keep(&format!("{number}{}", "x".repeat(BYTES / 4)), None);
        }
        assert_eq!((told.first(), told.last), (3, 5));
        let (gap, later) = told.after(4, 10);
        assert_eq!((gap, later.len(), later[0].0), (None, 1, 5));
        assert_eq!(told.after(0, 2).0, Some(Event::gap(Channel::Transcript, 1, 2)));
        assert_eq!(numbers(&told.before(Some(5), 1, None).entries), [4]);
        assert_eq!(told.before(None, 10, Some("3x")).entries.len(), 1);
    }

    /// Whatever the texts are made of, a page is one message, and page by page all of it comes.
    #[test]
    fn a_page_has_the_newest_that_fit() {
        for text in ["x", "\u{1}", "ä\n", "🦀"] {
            let mut told = Told::default();
            for piece in pieces(&text.repeat(3 * ENTRY / text.len() + 7)) {
                assert!(piece.len() <= ENTRY);
                told.keep(piece, None);
            }
            for _ in 0..20 {
                told.keep(&text.repeat(40_000), None);
            }
            let (first, last) = (told.first(), told.last);
            let (mut before, mut seen) = (None, Vec::new());
            while before != Some(first) {
                let page = told.before(before, 1_000, None);
                assert!(serde_json::to_string(&page.entries).unwrap().len() < limits::OUTBOUND_FRAME);
                before = page.entries.first().map(|entry| entry.seq);
                assert_eq!(page.is_cut, before != Some(first));
                seen.splice(0..0, numbers(&page.entries));
            }
            assert_eq!(seen, (first..=last).collect::<Vec<_>>());
        }
        assert_eq!(pieces("").collect::<Vec<_>>(), [""]);
        let mut told = Told::default();
        told.keep(&format!("{}end", "ä".repeat(ENTRY)), None);
        let page = told.before(None, 1, None);
        assert!(page.is_cut && page.entries[0].text.ends_with("äend") && page.entries[0].text.len() <= ENTRY);
    }

    /// Files have what memory has no more, whoever opens them; 64 MiB of it.
    #[test]
    fn files_go_on_where_memory_ends() {
        let place = tempfile::tempdir().expect("a directory");
        let open = || {
            let (directory, _) = Directory::open_existing(place.path())
                .expect("the directory")
                .create_directory("transcript")
                .expect("a directory in it");
            Told::open(directory).expect("the files")
        };
        let mut told = open();
        let long = "x".repeat(100_000);
        let count = (70 << 20) / 100_000;
        for number in 1..=count {
            told.keep(&format!("{number} {long}"), Some("0.1.0".to_owned()));
        }
        let in_memory = told.entries.front().expect("an entry").seq;
        let first = told.first();
        assert!(
            first > 1 && first < in_memory && count - first > 600,
            "{first} {in_memory}"
        );
        drop(told);
        let mut told = open();
        assert_eq!((told.last, told.first()), (count, first));
        assert_eq!(
            numbers(&told.before(Some(in_memory), 2, None).entries),
            [in_memory - 2, in_memory - 1]
        );
        assert_eq!(
            numbers(&told.before(Some(first + 2), 9, None).entries),
            [first, first + 1]
        );
        assert_eq!(
            told.before(None, 1, Some(&format!("{} x", first + 5))).entries[0]
                .by
                .as_deref(),
            Some("0.1.0")
        );
        // From any number on everything comes, in order, once.
        let (mut since, mut seen) = (0, Vec::new());
        loop {
            let (gap, piece) = told.after(since, 256);
            assert_eq!(gap.is_some(), since == 0);
            seen.extend(piece.iter().map(|(seq, _)| *seq));
            match seen.last() {
                Some(last) if *last != since => since = *last,
                _ => break,
            }
        }
        assert_eq!(seen, (first..=count).collect::<Vec<_>>());
        assert_eq!(told.keep("more", None), count + 1);
    }
}
