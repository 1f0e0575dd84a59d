//! Streams of events that an old client can come back to after its connection broke.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::sync::mpsc;

use super::{KEEP_ALIVE, Probe};

/// How long a stream is kept that nobody reads.
const KEPT: Duration = Duration::from_mins(1);
/// Events that are kept for who comes back, and their bytes.
const EVENTS: usize = 256;
const BYTES: usize = 1024 * 1024;

/// An event as it is written.
pub(super) fn frame(id: Option<&str>, text: &str) -> String {
    match id {
        Some(id) => format!("id: {id}\nevent: message\ndata: {text}\n\n"),
        None => format!("event: message\ndata: {text}\n\n"),
    }
}

pub(super) struct Stream {
    number: u64,
    kept: RefCell<VecDeque<(u64, String)>>,
    next: Cell<u64>,
    reader: RefCell<Option<mpsc::UnboundedSender<String>>>,
    is_done: Cell<bool>,
    left: Cell<Instant>,
}

impl Stream {
    pub(super) fn new(number: u64) -> Rc<Self> {
        Rc::new(Self {
            number,
            kept: RefCell::default(),
            next: Cell::new(1),
            reader: RefCell::new(None),
            is_done: Cell::new(false),
            left: Cell::new(Instant::now()),
        })
    }

    /// Nobody came back to it in time.
    pub(super) fn is_over(&self) -> bool {
        let is_read = self
            .reader
            .borrow()
            .as_ref()
            .is_some_and(|reader| !reader.is_closed());
        !is_read && self.left.get().elapsed() > KEPT
    }

    /// Somebody reads it from now on: after the event they had last, or what comes.
    pub(super) fn attach(&self, last: Option<u64>) -> mpsc::UnboundedReceiver<String> {
        let (sender, events) = mpsc::unbounded_channel();
        if let Some(last) = last {
            for (number, event) in self.kept.borrow().iter().filter(|(number, _)| *number > last) {
                drop(sender.send(frame(Some(&self.name(*number)), event)));
            }
        }
        if !self.is_done.get() {
            *self.reader.borrow_mut() = Some(sender);
        }
        self.left.set(Instant::now());
        events
    }

    fn name(&self, event: u64) -> String {
        format!("{}-{event}", self.number)
    }

    /// An event without content, so that there is something to come back to.
    pub(super) fn prime(&self) {
        self.say(&format!("id: {}\ndata:\n\n", self.name(0)));
    }

    pub(super) fn tell(&self, text: &str) {
        let number = self.next.get();
        self.next.set(number + 1);
        {
            let mut kept = self.kept.borrow_mut();
            kept.push_back((number, text.to_owned()));
            let size =
                |kept: &VecDeque<(u64, String)>| kept.iter().map(|(_, text)| text.len()).sum::<usize>();
            while kept.len() > EVENTS || (kept.len() > 1 && size(&kept) > BYTES) {
                kept.pop_front();
            }
        }
        self.say(&frame(Some(&self.name(number)), text));
    }

    fn say(&self, text: &str) {
        let mut reader = self.reader.borrow_mut();
        if let Some(sender) = &*reader
            && sender.send(text.to_owned()).is_err()
        {
            *reader = None;
            self.left.set(Instant::now());
        }
    }

    /// Pass on all lines; a call's stream ends with its answer.
    pub(super) fn pump(self: Rc<Self>, mut lines: mpsc::UnboundedReceiver<String>) {
        tokio::task::spawn_local(async move {
            loop {
                tokio::select! {
                    line = lines.recv() => {
                        let Some(text) = line else { break };
                        self.tell(&text);
                        if self.number > 0 && Probe::status(&text).is_some() {
                            break;
                        }
                    }
                    () = tokio::time::sleep(KEEP_ALIVE) => self.say(":\n\n"),
                }
            }
            self.is_done.set(true);
            self.left.set(Instant::now());
            self.reader.borrow_mut().take();
        });
    }
}
