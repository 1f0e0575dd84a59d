//! Events with their numbers, kept for a while: who lost its connection, or was too slow, asks from where it had come.

use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use beamtalk_wire::{Channel, Event, Push};

/// How much of each channel is kept.
const EVENTS: usize = 10_000;
const BYTES: usize = 4 << 20;

#[derive(Default)]
struct Ring {
    last: u64,
    /// As they were sent: a text takes a tenth of what the event it says would.
    events: VecDeque<(u64, Box<str>)>,
    bytes: usize,
}

#[derive(Default)]
pub(crate) struct Broadcast(BTreeMap<Channel, Ring>);

impl Broadcast {
    /// Keep the text of an event; the answer is its number, which is the next unless it has one of its own.
    pub(crate) fn keep(&mut self, channel: Channel, text: &str, own: Option<u64>) -> u64 {
        let ring = self.0.entry(channel).or_default();
        ring.last = own.unwrap_or(ring.last + 1);
        ring.bytes += text.len();
        ring.events.push_back((ring.last, text.into()));
        while ring.events.len() > EVENTS || ring.bytes > BYTES && ring.events.len() > 1 {
            let gone = ring.events.pop_front();
            ring.bytes -= gone.map_or(0, |(_, text)| text.len());
        }
        ring.last
    }

    /// At most so many events that were told after a number, and before them what is no longer kept.
    pub(crate) fn after(
        &self,
        channel: Channel,
        since: u64,
        most: usize,
    ) -> (Option<Event>, Vec<(u64, Rc<Event>)>) {
        let Some(ring) = self.0.get(&channel) else {
            return (None, Vec::new());
        };
        let first = ring.events.front().map_or(ring.last + 1, |(seq, ..)| *seq);
        let gap = (first > since + 1).then(|| Event::gap(channel, since + 1, first - 1));
        let place = ring.events.partition_point(|(seq, ..)| *seq <= since);
        let later = ring.events.range(place..).take(most);
        let read = |(seq, text): &(u64, Box<str>)| {
            let push: Push = serde_json::from_str(text).ok()?;
            Some((*seq, Rc::new(push.event)))
        };
        (gap, later.filter_map(read).collect())
    }
}

#[cfg(test)]
mod tests {
    use beamtalk_wire::DeskEvent;

    use super::*;

    fn changed(name: &str, version: u64) -> Event {
        Event::Desk(DeskEvent::Changed {
            name: name.to_owned(),
            version,
        })
    }

    /// Whoever asks from a number gets everything after it, or hears which numbers are gone.
    #[test]
    fn what_is_kept_follows_and_what_is_gone_is_named() {
        let mut broadcast = Broadcast::default();
        assert_eq!(broadcast.after(Channel::Desk, 0, usize::MAX).1.len(), 0);
        let total = EVENTS as u64 + 5;
        for version in 1..=total {
            let text = changed("main", version).text();
            assert_eq!(broadcast.keep(Channel::Desk, &text, None), version);
        }
        let (gap, kept) = broadcast.after(Channel::Desk, total - 2, usize::MAX);
        assert_eq!(gap, None);
        assert_eq!(
            kept,
            [total - 1, total].map(|version| (version, Rc::new(changed("main", version)))),
            "as it was told"
        );
        let (gap, kept) = broadcast.after(Channel::Desk, 2, usize::MAX);
        assert_eq!(gap, Some(Event::gap(Channel::Desk, 3, 5)));
        assert_eq!(kept.len(), EVENTS);
        let (gap, kept) = broadcast.after(Channel::Desk, total, usize::MAX);
        assert_eq!((gap, kept.len()), (None, 0));
        let long = changed(&"x".repeat(BYTES), 0).text();
        broadcast.keep(Channel::Desk, &long, None);
        assert_eq!(
            broadcast.after(Channel::Desk, 0, usize::MAX).1.len(),
            1,
            "bytes count too"
        );
        assert_eq!(broadcast.after(Channel::Actors, 7, usize::MAX).0, None);
    }
}
