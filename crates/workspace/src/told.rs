//! What was written to the Transcript, numbered and kept, so that a client that comes later can read it.

use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{SystemTime, UNIX_EPOCH};

use beamtalk_wire::answers::TranscriptEntry;
use beamtalk_wire::{Channel, Event, TranscriptEvent};

/// How much is kept.
const BYTES: usize = 4 << 20;

#[derive(Default)]
pub(crate) struct Told {
    last: u64,
    entries: VecDeque<TranscriptEntry>,
    bytes: usize,
}

impl Told {
    /// Keep what was written; the answer is its number.
    pub(crate) fn keep(&mut self, text: &str) -> u64 {
        self.last += 1;
        self.bytes += text.len();
        self.entries.push_back(TranscriptEntry {
            seq: self.last,
            at: milliseconds(),
            text: text.to_owned(),
        });
        while self.bytes > BYTES && self.entries.len() > 1 {
            let gone = self.entries.pop_front();
            self.bytes -= gone.map_or(0, |entry| entry.text.len());
        }
        self.last
    }

    /// The number of the oldest that is kept.
    pub(crate) fn first(&self) -> u64 {
        self.entries.front().map_or(0, |entry| entry.seq)
    }

    /// At most so many events that were told after a number, and before them what is no longer kept.
    pub(crate) fn after(&self, since: u64, most: usize) -> (Option<Event>, Vec<(u64, Rc<Event>)>) {
        let is_gone = self.first() > since + 1;
        let gap = is_gone.then(|| Event::gap(Channel::Transcript, since + 1, self.first() - 1));
        let event = |entry: &TranscriptEntry| {
            let text = entry.text.clone();
            (
                entry.seq,
                Rc::new(Event::Transcript(TranscriptEvent::Text { text, r#for: None })),
            )
        };
        let place = self.entries.partition_point(|entry| entry.seq <= since);
        (gap, self.entries.range(place..).take(most).map(event).collect())
    }

    /// At most `limit` entries before a number, the newest last.
    pub(crate) fn before(&self, seq: Option<u64>, limit: usize, find: Option<&str>) -> Vec<TranscriptEntry> {
        let is_meant = |entry: &&TranscriptEntry| {
            seq.is_none_or(|seq| entry.seq < seq) && find.is_none_or(|find| entry.text.contains(find))
        };
        let newest = self.entries.iter().rev().filter(is_meant).take(limit);
        let mut found: Vec<TranscriptEntry> = newest.cloned().collect();
        found.reverse();
        found
    }
}

pub(crate) fn milliseconds() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_go_and_numbers_stay() {
        let mut told = Told::default();
        for number in 0..5 {
            told.keep(&format!("{number}{}", "x".repeat(BYTES / 4)));
        }
        assert_eq!((told.first(), told.last), (3, 5));
        let (gap, later) = told.after(4, 10);
        assert_eq!((gap, later.len(), later[0].0), (None, 1, 5));
        assert_eq!(told.after(0, 2).0, Some(Event::gap(Channel::Transcript, 1, 2)));
        let found = told.before(Some(5), 1, None);
        assert_eq!(found.iter().map(|entry| entry.seq).collect::<Vec<_>>(), [4]);
        assert_eq!(told.before(None, 10, Some("3x")).len(), 1);
    }
}
