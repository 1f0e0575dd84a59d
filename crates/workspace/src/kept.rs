//! What is kept of the answers to a session, so that a client that was away misses nothing and hears nothing twice.
//!
//! Every frame that answers a request which does something has a number. The oldest finished request goes as a whole
//! when there is too much; its last frame stays as a stub that says how much is gone.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use beamtalk_wire::{Flag, Head};

/// Of one session.
const BYTES: usize = 16 << 20;
const FRAMES: usize = 20_000;
/// As many of these may say what is gone: the rest is for answers, however short they are.
const STUBS: usize = FRAMES / 2;
/// Of all sessions.
const ALL_BYTES: usize = 256 << 20;

#[derive(Default)]
pub(crate) struct Kept {
    /// What all sessions keep.
    all: Rc<Cell<usize>>,
    /// The number of the last frame.
    last: u64,
    /// The frames by their numbers.
    frames: BTreeMap<u64, String>,
    bytes: usize,
    /// Requests in the order in which they began.
    requests: BTreeMap<u64, Request>,
    begun: u64,
    /// The last request of each name.
    names: BTreeMap<String, u64>,
    finished: BTreeSet<u64>,
    /// The numbers of frames that say what is gone.
    stubs: BTreeSet<u64>,
    lost: u64,
}

#[derive(Default)]
struct Request {
    name: String,
    about: Option<String>,
    frames: Vec<u64>,
    is_done: bool,
}

/// What is added to a frame.
#[derive(Default, serde::Serialize)]
struct Marks<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    n: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    replayed: Option<bool>,
}

impl Marks<'_> {
    /// A frame is an object; the marks go to its beginning, without reading the rest again.
    fn on(&self, text: &str) -> String {
        let marks = serde_json::to_string(self).unwrap_or_default();
        match (marks.strip_suffix('}'), text.strip_prefix('{')) {
            (Some(marks), Some("}")) => format!("{marks}}}"),
            (Some(marks), Some(rest)) if marks.len() > 1 => format!("{marks},{rest}"),
            _ => text.to_owned(),
        }
    }
}

impl Kept {
    /// One of several that have a limit in common.
    pub(crate) fn beside(all: &Rc<Cell<usize>>) -> Self {
        let mut kept = Self::default();
        kept.all.clone_from(all);
        kept
    }

    fn put(&mut self, number: u64, text: String) {
        self.bytes += text.len();
        self.all.set(self.all.get() + text.len());
        self.frames.insert(number, text);
    }

    /// Answers how long the frame was.
    fn take(&mut self, number: u64) -> usize {
        let bytes = self.frames.remove(&number).map_or(0, |text| text.len());
        self.shrink(bytes);
        bytes
    }

    fn shrink(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.all.set(self.all.get() - bytes);
    }

    /// A request begins: this is what its first and last frames repeat.
    pub(crate) fn begin(&mut self, request: &str, about: Option<&str>) -> u64 {
        self.begun += 1;
        let begun = Request {
            name: request.to_owned(),
            about: about.map(str::to_owned),
            ..Request::default()
        };
        self.requests.insert(self.begun, begun);
        self.names.insert(request.to_owned(), self.begun);
        self.begun
    }

    /// Number and keep a frame; the answer is what is sent.
    pub(crate) fn keep(&mut self, request: &str, text: &str, is_last: bool) -> String {
        self.last += 1;
        let place = match self.names.get(request) {
            Some(place) => *place,
            None => self.begin(request, None),
        };
        let mut about = None;
        if let Some(known) = self.requests.get_mut(&place) {
            let is_first = known.frames.is_empty();
            known.frames.push(self.last);
            known.is_done |= is_last;
            if known.is_done {
                self.finished.insert(place);
            }
            about = known.about.as_deref().filter(|_| is_first || is_last);
        }
        let marks = Marks {
            n: Some(self.last),
            about,
            replayed: None,
        };
        let text = marks.on(text);
        self.put(self.last, text.clone());
        while self.is_much() && self.forget_something() {}
        text
    }

    fn is_much(&self) -> bool {
        self.bytes > BYTES || self.frames.len() > FRAMES || self.all.get() > ALL_BYTES
    }

    /// Says if there was something.
    fn forget_something(&mut self) -> bool {
        (self.stubs.len() <= STUBS && self.forget_oldest()) || self.forget_stub()
    }

    /// Forget the oldest finished request; says if there was one.
    fn forget_oldest(&mut self) -> bool {
        let gone = self
            .finished
            .pop_first()
            .and_then(|place| Some((place, self.requests.remove(&place)?)));
        let Some((place, gone)) = gone else {
            return false;
        };
        if self.names.get(&gone.name) == Some(&place) {
            self.names.remove(&gone.name);
        }
        let bytes: usize = gone.frames.iter().map(|number| self.take(*number)).sum();
        self.lost += 1;
        if let Some(number) = gone.frames.last() {
            let stub = Head {
                id: Some(gone.name),
                status: vec![Flag::Done],
                n: Some(*number),
                about: gone.about,
                lost_bytes: Some(bytes as u64),
                ..Head::default()
            };
            self.put(*number, crate::ops::text_of(&stub));
            self.stubs.insert(*number);
        }
        true
    }

    fn forget_stub(&mut self) -> bool {
        let Some(number) = self.stubs.pop_first() else {
            return false;
        };
        self.take(number);
        true
    }

    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Requests that were begun and have not had their last frame.
    pub(crate) fn open(&self) -> Vec<String> {
        let open = self.requests.values().filter(|request| !request.is_done);
        open.map(|request| request.name.clone()).collect()
    }

    /// Everything with a greater number, marked as sent again.
    pub(crate) fn after(&self, number: u64) -> Vec<String> {
        let marks = Marks {
            replayed: Some(true),
            ..Marks::default()
        };
        let later = self.frames.range(number.saturating_add(1)..);
        later.map(|(_, text)| marks.on(text)).collect()
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn values(texts: &[String]) -> Vec<Value> {
        texts
            .iter()
            .map(|text| serde_json::from_str(text).expect("json"))
            .collect()
    }

    #[test]
    fn frames_are_numbered_and_come_again_in_order() {
        let mut kept = Kept::default();
        kept.begin("a-1", Some("here"));
        assert_eq!(
            kept.keep("a-1", r#"{"id":"a-1","out":"1"}"#, false),
            r#"{"n":1,"about":"here","id":"a-1","out":"1"}"#
        );
        kept.keep("a-1", r#"{"id":"a-1","out":"2"}"#, false);
        kept.keep("a-1", r#"{"id":"a-1","status":["done"]}"#, true);
        let again = values(&kept.after(1));
        assert_eq!(
            again,
            [
                json!({"replayed": true, "n": 2, "id": "a-1", "out": "2"}),
                json!({"replayed": true, "n": 3, "about": "here", "id": "a-1", "status": ["done"]}),
            ]
        );
        assert_eq!((kept.last(), kept.lost(), kept.after(3).len()), (3, 0, 0));
    }

    #[test]
    fn what_was_begun_is_open_until_its_last_frame() {
        let mut kept = Kept::default();
        kept.begin("a-1", None);
        kept.begin("a-2", None);
        kept.keep("a-1", "{}", false);
        assert_eq!(kept.open(), ["a-1", "a-2"]);
        kept.keep("a-1", "{}", true);
        assert_eq!(kept.open(), ["a-2"]);
    }

    #[test]
    fn all_sessions_together_have_a_limit_too() {
        let all = Rc::new(Cell::new(0));
        let long = format!(r#"{{"out":"{}"}}"#, "x".repeat(5 << 20));
        let mut sessions: Vec<Kept> = (0..20).map(|_| Kept::beside(&all)).collect();
        for kept in &mut sessions {
            for request in ["a", "b", "c"] {
                kept.begin(request, None);
                kept.keep(request, &long, true);
            }
        }
        assert!(all.get() <= ALL_BYTES, "{}", all.get());
        assert!(sessions.iter().any(|kept| kept.lost() > 0));
        drop(sessions);
        assert_eq!(all.get(), 0);
    }

    #[test]
    fn the_oldest_finished_request_goes_as_a_whole_and_leaves_a_stub() {
        let mut kept = Kept::default();
        let long = format!(r#"{{"out":"{}"}}"#, "x".repeat(4 << 20));
        kept.begin("runs", None);
        kept.keep("runs", &long, false);
        for name in ["one", "two", "three"] {
            kept.begin(name, Some(name));
            kept.keep(name, &long, false);
            kept.keep(name, "{}", true);
        }
        let left = values(&kept.after(0));
        let stub = left.iter().find(|frame| frame["about"] == "one").expect("a stub");
        assert!(
            stub["lost_bytes"].as_u64().is_some_and(|bytes| bytes > 4 << 20),
            "{stub}"
        );
        assert_eq!(stub["n"], 3);
        assert_eq!(kept.lost(), 1);
        // What still runs stays, although it is older.
        assert!(left[0]["out"].is_string());
        assert!(kept.bytes <= BYTES);
    }

    #[test]
    fn many_small_requests_are_bounded_too() {
        let mut kept = Kept::default();
        let most = FRAMES * 3;
        for number in 1..=most {
            let name = number.to_string();
            kept.begin(&name, None);
            kept.keep(&name, r#"{"value":1}"#, true);
        }
        assert!(kept.frames.len() <= FRAMES, "{}", kept.frames.len());
        assert!(kept.requests.len() <= FRAMES);
        assert!(kept.names.len() <= FRAMES);
        // The newest are there as they were; of the oldest nothing is left, and those between say that they are gone.
        let newest = values(&kept.after((most - FRAMES + STUBS) as u64));
        assert_eq!(newest.len(), FRAMES - STUBS);
        assert!(newest.iter().all(|frame| frame["value"] == 1));
        let all = values(&kept.after(0));
        assert!(all[0]["lost_bytes"].is_u64(), "{}", all[0]);
        assert_eq!(kept.lost(), (most - FRAMES + STUBS) as u64);
    }

    #[test]
    fn a_name_that_is_used_again_is_another_request() {
        let mut kept = Kept::default();
        let long = format!(r#"{{"out":"{}"}}"#, "x".repeat(6 << 20));
        for about in ["first", "second"] {
            kept.begin("a", Some(about));
            kept.keep("a", &long, true);
        }
        kept.begin("b", None);
        kept.keep("b", &long, true);
        let left = values(&kept.after(0));
        assert!(left[0]["lost_bytes"].is_u64());
        assert_eq!(left[0]["about"], "first");
        assert!(left[1]["out"].is_string());
        assert!(kept.bytes <= BYTES);
        assert!(kept.open().is_empty());
    }
}
