//! What is kept of the answers to a session, so that a client that was away misses nothing and hears nothing twice.
//!
//! Every frame that answers a request which does something has a number. The oldest finished request goes as a whole
//! when there is too much; its last frame stays as a stub that says how much is gone.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

use beamtalk_wire::{Flag, Head};

/// Of one session.
const BYTES: usize = 16 << 20;
const FRAMES: usize = 20_000;
/// Of all sessions.
const ALL_BYTES: usize = 256 << 20;

#[derive(Default)]
pub(crate) struct Kept {
    /// What all sessions keep.
    all: Rc<Cell<usize>>,
    /// The number of the last frame.
    last: u64,
    frames: VecDeque<Frame>,
    bytes: usize,
    /// Requests that were begun: what they are about, and whether they ended.
    requests: BTreeMap<String, Request>,
    lost: u64,
}

struct Frame {
    number: u64,
    request: String,
    text: String,
    is_stub: bool,
}

#[derive(Default)]
struct Request {
    about: Option<String>,
    frames: usize,
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
        Self {
            all: all.clone(),
            last: 0,
            frames: VecDeque::new(),
            bytes: 0,
            requests: BTreeMap::new(),
            lost: 0,
        }
    }

    fn grow(&mut self, bytes: usize) {
        self.bytes += bytes;
        self.all.set(self.all.get() + bytes);
    }

    fn shrink(&mut self, bytes: usize) {
        self.bytes -= bytes;
        self.all.set(self.all.get() - bytes);
    }

    /// A request begins: this is what its first and last frames repeat.
    pub(crate) fn begin(&mut self, request: &str, about: Option<&str>) {
        let begun = Request {
            about: about.map(str::to_owned),
            ..Request::default()
        };
        self.requests.insert(request.to_owned(), begun);
    }

    /// Number and keep a frame; the answer is what is sent.
    pub(crate) fn keep(&mut self, request: &str, text: &str, is_last: bool) -> String {
        self.last += 1;
        let known = self.requests.entry(request.to_owned()).or_default();
        let is_first = known.frames == 0;
        known.frames += 1;
        known.is_done |= is_last;
        let marks = Marks {
            n: Some(self.last),
            about: known.about.as_deref().filter(|_| is_first || is_last),
            replayed: None,
        };
        let text = marks.on(text);
        self.grow(text.len());
        self.frames.push_back(Frame {
            number: self.last,
            request: request.to_owned(),
            text: text.clone(),
            is_stub: false,
        });
        let is_much =
            |kept: &Self| kept.bytes > BYTES || kept.frames.len() > FRAMES || kept.all.get() > ALL_BYTES;
        while is_much(self) && self.forget_oldest() {}
        text
    }

    /// Forget the oldest finished request; says if there was one.
    fn forget_oldest(&mut self) -> bool {
        let oldest = self
            .frames
            .iter()
            .find(|frame| !frame.is_stub && self.requests.get(&frame.request).is_some_and(|one| one.is_done))
            .map(|frame| frame.request.clone());
        let Some(gone) = oldest else {
            // Stubs alone are too many.
            return self.forget_stub();
        };
        let about = self.requests.remove(&gone).and_then(|one| one.about);
        let (mut bytes, mut number) = (0, 0);
        for frame in self.frames.iter().filter(|frame| frame.request == gone) {
            bytes += frame.text.len();
            number = frame.number;
        }
        let stub = Head {
            id: Some(gone.clone()),
            status: vec![Flag::Done],
            n: Some(number),
            about,
            lost_bytes: Some(bytes as u64),
            ..Head::default()
        };
        let text = crate::ops::text_of(&stub);
        self.shrink(bytes);
        self.grow(text.len());
        self.lost += 1;
        self.frames.retain_mut(|frame| {
            if frame.number == number {
                frame.text.clone_from(&text);
                frame.is_stub = true;
            }
            frame.request != gone || frame.number == number
        });
        true
    }

    fn forget_stub(&mut self) -> bool {
        let Some(place) = self.frames.iter().position(|frame| frame.is_stub) else {
            return false;
        };
        if let Some(stub) = self.frames.remove(place) {
            self.shrink(stub.text.len());
        }
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
        let open = self.requests.iter().filter(|(_, request)| !request.is_done);
        open.map(|(id, _)| id.clone()).collect()
    }

    /// Everything with a greater number, marked as sent again.
    pub(crate) fn after(&self, number: u64) -> Vec<String> {
        let marks = Marks {
            replayed: Some(true),
            ..Marks::default()
        };
        let later = self.frames.iter().filter(|frame| frame.number > number);
        later.map(|frame| marks.on(&frame.text)).collect()
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
        for number in 0..FRAMES + 100 {
            let name = number.to_string();
            kept.begin(&name, None);
            kept.keep(&name, "{}", true);
        }
        assert!(kept.frames.len() <= FRAMES, "{}", kept.frames.len());
        assert!(kept.requests.len() <= FRAMES);
    }
}
