//! How far a call is: told to a client that wants to know, and shown with a task.

use std::cell::{Cell, RefCell};

use serde_json::{Value, json};

#[derive(Debug, Default)]
pub struct Progress {
    /// Somebody looks at it.
    pub(crate) is_wanted: Cell<bool>,
    /// What is counted, how many are done, and of how many.
    counted: Cell<Option<(&'static str, u64, u64)>>,
    /// Waiting for a person, in our words.
    waiting: RefCell<Option<String>>,
    /// The name of the approval it went on with.
    pub(crate) approval: RefCell<Option<String>>,
}

impl Progress {
    pub(crate) fn count(&self, what: &'static str, done: u64, total: u64) {
        self.counted.set(Some((what, done, total)));
    }

    pub(crate) fn is_counted(&self) -> bool {
        self.counted.get().is_some()
    }

    pub(crate) fn wait(&self, text: Option<String>) {
        *self.waiting.borrow_mut() = text;
    }

    /// In a few words; `None` as long as nothing is known.
    pub fn message(&self) -> Option<String> {
        let waiting = self.waiting.borrow().clone();
        let counted = |(what, done, total)| format!("{what} {done} of {total}");
        waiting.or_else(|| self.counted.get().map(counted))
    }

    /// What a client is told after so many seconds.
    pub(crate) fn shown(&self, seconds: u64) -> Value {
        match self.counted.get() {
            Some((what, done, total)) => json!({
                "progress": done,
                "total": total,
                "message": format!("{what} {done} of {total}"),
            }),
            None => json!({
                "progress": seconds,
                "message": self.message().unwrap_or_else(|| format!("running for {seconds} s")),
            }),
        }
    }
}
