//! Any bytes as a line of a client, for tests with random bytes: every request gets one answer, and nothing panics.

use std::cell::RefCell;
use std::rc::Rc;

use beamtalk_wire::requests::McpCall;
use beamtalk_wire::{Event, Operation};
use serde_json::Value;
use tokio::sync::broadcast;
use tokio::task::LocalSet;

use crate::host::{Asked, Host, HostError, LoopCommand, failure};
use crate::message::{LINE_LIMIT, Message};
use crate::{Line, Outgoing, Policy, Session, Settings};

/// A world in which there is nothing, or nothing but the state of a loop.
pub(crate) struct Nowhere {
    events: broadcast::Sender<Event>,
    pub(crate) state: RefCell<Option<Value>>,
}

impl Nowhere {
    pub(crate) fn new() -> Self {
        Self {
            events: broadcast::channel(1).0,
            state: RefCell::default(),
        }
    }
}

impl Host for Nowhere {
    async fn ask<O: Operation>(&self, _: &O) -> Result<Asked<O::Answer>, HostError> {
        Err(failure("no_workspace", "none runs"))
    }

    fn is_connected(&self) -> bool {
        false
    }

    fn events(&self) -> broadcast::Receiver<Event> {
        self.events.subscribe()
    }

    async fn record(&self, _: McpCall) {}

    async fn loop_command(&self, _: LoopCommand) -> Result<Value, HostError> {
        let state = self.state.borrow().clone();
        state.ok_or_else(|| failure("loop_not_running", "none runs"))
    }
}

/// Hand lines to a server as one client would, and count the answers.
#[doc(hidden)]
pub fn read_strange_lines(bytes: &[u8]) {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .build()
    else {
        return;
    };
    LocalSet::new().block_on(&runtime, async {
        for line in bytes.split(|byte| *byte == b'\n') {
            one_line(line).await;
        }
    });
}

async fn one_line(line: &[u8]) {
    if line.len() > LINE_LIMIT || line.iter().all(u8::is_ascii_whitespace) {
        return;
    }
    let settings = Settings {
        policy: Policy::Full,
        ..Settings::default()
    };
    let (outgoing, mut answers) = Outgoing::new(crate::Secrets::default());
    let host = Rc::new(Nowhere::new());
    let session = Session::new(host, Rc::new(settings), outgoing);
    // An old client has opened, so that both eras are reached.
    let open =
        br#"{"jsonrpc":"2.0","id":"open","method":"initialize","params":{"protocolVersion":"2025-11-25"}}"#;
    session.receive(Line::Text(open.to_vec()));
    assert!(answers.try_recv().is_ok_and(|text| text.contains("2025-11-25")));
    session.receive(Line::Text(line.to_vec()));
    let (wanted, is_watch) = match Message::parse(line) {
        Ok(Message::Request { id, method, .. }) => (Some(id), method == "subscriptions/listen"),
        Ok(Message::Notification { .. } | Message::Response { .. }) => (None, false),
        Err(bad) => (bad.id, false),
    };
    let is_answered = !matches!(
        Message::parse(line),
        Ok(Message::Notification { .. } | Message::Response { .. })
    );
    for _ in 0..200 {
        if session.is_idle() || is_watch {
            break;
        }
        tokio::task::yield_now().await;
    }
    let mut count = 0;
    while let Ok(text) = answers.try_recv() {
        let answer: Value = serde_json::from_str(&text).expect("what is written is JSON");
        if answer.get("method").is_none() {
            assert_eq!(answer.get("id"), wanted.as_ref(), "{text}");
            count += 1;
        }
    }
    if !is_watch {
        assert_eq!(count, usize::from(is_answered), "an answer was lost");
    }
    session.cancel_all().await;
}
