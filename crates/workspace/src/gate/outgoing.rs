//! What waits to be sent to one client.
//!
//! The queue is bounded. Answers and output wait for room, which is the back-pressure on whatever
//! makes them; events never wait: the oldest are dropped and the client is told how many. So a slow
//! client slows only itself.
//!
//! A browser pays for every frame, and for thousands in a second with pauses of its collector. A client
//! that wishes it gets the events of a flood several at a time, as an array.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use beamtalk_wire::{Channel, limits};
use tokio::sync::Notify;

/// Events of a client that gathers follow those before them after this time, all that have come by then.
const PAUSE: Duration = Duration::from_millis(10);
/// A frame of gathered events is not made longer than this.
const GATHERED: usize = 64 * 1024;

/// The connection is gone; there is nobody to send to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection is closed")]
pub struct Closed;

/// The end of a connection as it is told to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Farewell {
    pub(crate) code: u16,
    pub(crate) reason: String,
}

/// Where frames for one client are put; clones go to the same client.
#[derive(Clone, Default)]
pub struct Outgoing(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// Something to send, or the end.
    filled: Notify,
    /// Room again, or the end.
    drained: Notify,
    ended: Notify,
}

#[derive(Default)]
struct Queue {
    frames: VecDeque<Frame>,
    bytes: usize,
    /// Events dropped since the client was last told.
    dropped: BTreeMap<Channel, u64>,
    dropped_ever: u64,
    farewell: Option<Farewell>,
    is_gone: bool,
    /// Events are sent several in a frame.
    is_gathering: bool,
    /// When that was last done.
    gathered: Option<Instant>,
}

struct Frame {
    text: String,
    /// The channel, if it is an event.
    channel: Option<Channel>,
}

/// What the writer of a connection does next.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Send(String),
    Close(Farewell),
}

impl Queue {
    fn has_room(&self, bytes: usize) -> bool {
        self.frames.is_empty()
            || self.frames.len() < limits::QUEUE_MESSAGES && self.bytes + bytes <= limits::QUEUE_BYTES
    }

    /// Whether as much again as waits has room.
    fn is_calm(&self) -> bool {
        self.frames.len() <= limits::QUEUE_MESSAGES / 2 && self.bytes <= limits::QUEUE_BYTES / 2
    }

    fn put(&mut self, text: String, channel: Option<Channel>) {
        self.bytes += text.len();
        self.frames.push_back(Frame { text, channel });
    }

    fn drop_event(&mut self, channel: Channel) {
        *self.dropped.entry(channel).or_default() += 1;
        self.dropped_ever += 1;
    }

    /// Drop the oldest event; false if there is none.
    fn drop_oldest_event(&mut self) -> bool {
        let Some(place) = self.frames.iter().position(|frame| frame.channel.is_some()) else {
            return false;
        };
        if let Some(Frame {
            text,
            channel: Some(channel),
        }) = self.frames.remove(place)
        {
            self.bytes -= text.len();
            self.drop_event(channel);
        }
        true
    }

    fn next(&mut self) -> Option<Next> {
        if let Some((channel, count)) = self.dropped.pop_first() {
            return Some(Next::Send(beamtalk_wire::Event::dropped(channel, count).text()));
        }
        if let Some(frame) = self.frames.pop_front() {
            self.bytes -= frame.text.len();
            if self.is_gathering && frame.channel.is_some() {
                return Some(Next::Send(self.gather(frame.text)));
            }
            return Some(Next::Send(frame.text));
        }
        self.farewell.clone().map(Next::Close)
    }

    /// An event with those that wait behind it.
    fn gather(&mut self, first: String) -> String {
        self.gathered = Some(Instant::now());
        let mut length = first.len();
        let mut texts = vec![first];
        while let Some(frame) = self.frames.front()
            && frame.channel.is_some()
            && length + frame.text.len() <= GATHERED
        {
            length += frame.text.len();
            texts.extend(self.frames.pop_front().map(|frame| frame.text));
        }
        self.bytes -= texts.iter().skip(1).map(String::len).sum::<usize>();
        array(&texts)
    }

    /// How long events wait for more of them; what else waits goes at once, and they before it.
    fn pause(&self) -> Option<Duration> {
        let are_events = self.dropped.is_empty()
            && self.farewell.is_none()
            && !self.frames.is_empty()
            && self.bytes < GATHERED
            && self.frames.iter().all(|frame| frame.channel.is_some());
        let left = PAUSE.checked_sub(self.gathered?.elapsed())?;
        are_events.then_some(left)
    }
}

/// Several messages as one; one is itself.
fn array(texts: &[String]) -> String {
    match texts {
        [one] => one.clone(),
        all => format!("[{}]", all.join(",")),
    }
}

impl Outgoing {
    /// From now on events may be sent several in a frame.
    pub(crate) fn gather(&self) {
        self.queue().is_gathering = true;
    }

    /// Events as this client takes them: each by itself, or as few frames.
    pub(crate) fn gathered(&self, texts: Vec<String>) -> Vec<String> {
        if !self.queue().is_gathering {
            return texts;
        }
        let mut frames: Vec<Vec<String>> = Vec::new();
        let mut length = 0;
        for text in texts {
            length += text.len();
            match frames.last_mut() {
                Some(last) if length <= GATHERED => last.push(text),
                _ => {
                    length = text.len();
                    frames.push(vec![text]);
                }
            }
        }
        frames.iter().map(|texts| array(texts)).collect()
    }

    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.0.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Queue an answer or a piece of output; waits while the queue is full.
    pub async fn send(&self, text: String) -> Result<(), Closed> {
        let mut text = Some(text);
        self.wait(|queue| {
            let has_room = text.as_ref().is_none_or(|text| queue.has_room(text.len()));
            if let Some(text) = text.take_if(|_| has_room) {
                queue.put(text, None);
                self.0.filled.notify_one();
            }
            has_room
        })
        .await
    }

    /// Wait until half of the queue is free: who sends events from now on has room for them.
    pub(crate) async fn calm(&self) -> Result<(), Closed> {
        self.wait(|queue| queue.is_calm()).await
    }

    /// Wait until something can be done with the queue.
    async fn wait(&self, mut is_done: impl FnMut(&mut Queue) -> bool) -> Result<(), Closed> {
        loop {
            let drained = self.0.drained.notified();
            tokio::pin!(drained);
            // Registered before looking, so that room made in between is not missed.
            drained.as_mut().enable();
            {
                let mut queue = self.queue();
                if queue.farewell.is_some() {
                    return Err(Closed);
                }
                if is_done(&mut queue) {
                    return Ok(());
                }
            }
            drained.await;
        }
    }

    /// Queue an event. Never waits; when there is no room the oldest events go.
    pub fn push_event(&self, channel: Channel, text: String) {
        let mut queue = self.queue();
        if queue.farewell.is_some() {
            return;
        }
        while !queue.has_room(text.len()) {
            if !queue.drop_oldest_event() {
                queue.drop_event(channel);
                self.0.filled.notify_one();
                return;
            }
        }
        queue.put(text, Some(channel));
        self.0.filled.notify_one();
    }

    /// The events of a channel that wait will be sent in another way.
    pub fn forget(&self, channel: Channel) {
        let mut queue = self.queue();
        queue.dropped.remove(&channel);
        let gone: usize = queue
            .frames
            .iter()
            .filter(|frame| frame.channel == Some(channel))
            .map(|frame| frame.text.len())
            .sum();
        queue.bytes -= gone;
        queue.frames.retain(|frame| frame.channel != Some(channel));
        self.0.drained.notify_waiters();
    }

    /// Send what is queued, then close. The first farewell counts.
    pub fn close(&self, code: u16, reason: &str) {
        let mut queue = self.queue();
        if queue.farewell.is_none() {
            queue.farewell = Some(Farewell {
                code,
                reason: reason.to_owned(),
            });
        }
        self.0.filled.notify_one();
        self.0.drained.notify_waiters();
    }

    /// Close at once; what is queued is not sent.
    pub(crate) fn sever(&self, code: u16, reason: &str) {
        {
            let mut queue = self.queue();
            queue.frames.clear();
            queue.dropped.clear();
            queue.bytes = 0;
            queue.farewell = Some(Farewell {
                code,
                reason: reason.to_owned(),
            });
        }
        self.0.filled.notify_one();
        self.0.drained.notify_waiters();
    }

    /// Whether the end has begun: nothing more can be sent.
    pub fn is_closed(&self) -> bool {
        self.queue().farewell.is_some()
    }

    /// Wait until the connection is gone.
    pub async fn closed(&self) {
        loop {
            let ended = self.0.ended.notified();
            tokio::pin!(ended);
            ended.as_mut().enable();
            if self.queue().is_gone {
                return;
            }
            ended.await;
        }
    }

    /// How many events this client missed.
    pub fn dropped(&self) -> u64 {
        self.queue().dropped_ever
    }

    /// The next thing to do for the writer.
    pub(crate) async fn next(&self) -> Next {
        loop {
            let pause = {
                let mut queue = self.queue();
                let pause = queue.pause();
                if pause.is_none()
                    && let Some(next) = queue.next()
                {
                    self.0.drained.notify_waiters();
                    return next;
                }
                pause
            };
            // One writer waits here, and a permit is kept for it, so nothing is missed.
            match pause {
                Some(pause) => drop(tokio::time::timeout(pause, self.0.filled.notified()).await),
                None => self.0.filled.notified().await,
            }
        }
    }

    /// Wait until the end has begun.
    pub(crate) async fn closing(&self) {
        loop {
            let drained = self.0.drained.notified();
            tokio::pin!(drained);
            drained.as_mut().enable();
            if self.is_closed() {
                return;
            }
            drained.await;
        }
    }

    /// The connection is gone: nothing waits for it any more.
    pub(crate) fn end(&self, code: u16) -> u16 {
        let told = {
            let mut queue = self.queue();
            queue.frames.clear();
            queue.bytes = 0;
            queue.is_gone = true;
            queue
                .farewell
                .get_or_insert(Farewell {
                    code,
                    reason: String::new(),
                })
                .code
        };
        self.0.filled.notify_one();
        self.0.drained.notify_waiters();
        self.0.ended.notify_waiters();
        told
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn event(number: usize) -> String {
        format!("{{\"n\":{number}}}")
    }

    async fn drain(outgoing: &Outgoing) -> Vec<String> {
        let mut texts = Vec::new();
        while let Ok(Next::Send(text)) =
            tokio::time::timeout(Duration::from_millis(20), outgoing.next()).await
        {
            texts.push(text);
        }
        texts
    }

    #[tokio::test]
    async fn the_oldest_events_go_first_and_are_counted() {
        let outgoing = Outgoing::default();
        outgoing.send("answer".into()).await.unwrap();
        for number in 0..2_000 {
            outgoing.push_event(Channel::Transcript, event(number));
        }
        assert_eq!(outgoing.dropped(), 977);
        let texts = drain(&outgoing).await;
        let notice: serde_json::Value = serde_json::from_str(&texts[0]).unwrap();
        assert_eq!(
            notice,
            serde_json::json!({"type": "push", "channel": "transcript", "event": "dropped", "data": {"count": 977}})
        );
        assert_eq!(texts[1], "answer");
        assert_eq!(texts[2], event(977));
        assert_eq!(texts.last().unwrap(), &event(1_999));
        assert_eq!(texts.len(), 1_025);
    }

    /// The first goes at once, the flood behind it in few frames; answers are frames of their own, and nothing changes places.
    #[tokio::test]
    async fn events_of_a_flood_share_frames_where_that_is_wished() {
        let outgoing = Outgoing::default();
        outgoing.gather();
        outgoing.push_event(Channel::Actors, event(0));
        assert_eq!(outgoing.next().await, Next::Send(event(0)));
        for number in 1..500 {
            outgoing.push_event(Channel::Transcript, event(number));
        }
        outgoing.send("answer".into()).await.unwrap();
        outgoing.push_event(Channel::Transcript, event(500));
        let texts = drain(&outgoing).await;
        assert_eq!(texts.len(), 3);
        let together: Vec<serde_json::Value> = serde_json::from_str(&texts[0]).unwrap();
        assert_eq!(together.len(), 499);
        assert_eq!(together[498], serde_json::json!({"n": 499}));
        assert_eq!(texts[1..], ["answer".to_owned(), event(500)]);
        assert_eq!(outgoing.queue().bytes, 0);
        let long = "x".repeat(GATHERED);
        let texts = outgoing.gathered(vec![event(1), event(2), long.clone(), event(3)]);
        assert!(texts == [format!("[{},{}]", event(1), event(2)), long, event(3)]);
    }

    #[tokio::test]
    async fn answers_wait_for_room_and_none_is_lost() {
        let outgoing = Outgoing::default();
        let writer = outgoing.clone();
        let sender = tokio::spawn(async move {
            for number in 0..3_000 {
                writer.send(event(number)).await.unwrap();
            }
        });
        tokio::task::yield_now().await;
        assert!(!sender.is_finished());
        assert_eq!(outgoing.queue().frames.len(), limits::QUEUE_MESSAGES);
        let texts = drain(&outgoing).await;
        sender.await.unwrap();
        assert_eq!(texts, (0..3_000).map(event).collect::<Vec<_>>());
    }

    /// Whoever was sent what it missed is told the rest only when there is room for that.
    #[tokio::test]
    async fn a_full_queue_is_calm_when_half_of_it_was_read() {
        let outgoing = Outgoing::default();
        for number in 0..limits::QUEUE_MESSAGES {
            outgoing.send(event(number)).await.unwrap();
        }
        let waiting = outgoing.clone();
        let calm = tokio::spawn(async move { waiting.calm().await });
        for _ in 0..limits::QUEUE_MESSAGES / 2 - 1 {
            outgoing.next().await;
            tokio::task::yield_now().await;
        }
        assert!(!calm.is_finished());
        outgoing.next().await;
        assert_eq!(calm.await.unwrap(), Ok(()));
        for number in 0..limits::QUEUE_MESSAGES / 2 {
            outgoing.push_event(Channel::Transcript, event(number));
        }
        assert_eq!(outgoing.dropped(), 0);
        outgoing.end(1006);
        assert_eq!(outgoing.calm().await, Err(Closed));
    }

    #[tokio::test]
    async fn bytes_are_bounded_too() {
        let outgoing = Outgoing::default();
        let large = "x".repeat(limits::OUTBOUND_FRAME);
        outgoing.send(large.clone()).await.unwrap();
        outgoing.send(large.clone()).await.unwrap();
        let third = outgoing.send(large.clone());
        assert!(
            tokio::time::timeout(Duration::from_millis(20), third)
                .await
                .is_err()
        );
        outgoing.push_event(Channel::Actors, "late".into());
        assert_eq!(outgoing.dropped(), 1);
        let texts = drain(&outgoing).await;
        assert!(texts[0].contains("\"dropped\""));
        assert_eq!(texts.len(), 3);
    }

    #[tokio::test]
    async fn closing_sends_what_is_queued_and_severing_does_not() {
        let outgoing = Outgoing::default();
        outgoing.send("last".into()).await.unwrap();
        outgoing.close(1000, "bye");
        assert_eq!(outgoing.send("more".into()).await, Err(Closed));
        assert_eq!(outgoing.next().await, Next::Send("last".into()));
        assert!(matches!(
            outgoing.next().await,
            Next::Close(Farewell { code: 1000, .. })
        ));

        let outgoing = Outgoing::default();
        outgoing.send("last".into()).await.unwrap();
        outgoing.sever(4001, "credentials rotated");
        assert!(matches!(
            outgoing.next().await,
            Next::Close(Farewell { code: 4001, .. })
        ));
    }

    #[tokio::test]
    async fn waiting_senders_hear_of_the_end() {
        let outgoing = Outgoing::default();
        for number in 0..limits::QUEUE_MESSAGES {
            outgoing.send(event(number)).await.unwrap();
        }
        let (sender, closed) = (outgoing.clone(), outgoing.clone());
        let sender = tokio::spawn(async move { sender.send("more".into()).await });
        let closed = tokio::spawn(async move { closed.closed().await });
        tokio::task::yield_now().await;
        assert_eq!(outgoing.end(1006), 1006);
        assert_eq!(sender.await.unwrap(), Err(Closed));
        closed.await.unwrap();
    }
}
