//! Session state in memory.

use std::collections::BTreeMap;

use serde_json::Value;

use super::Ms;

/// How long a change may wait for others before it is written.
const SAVE_AFTER: Ms = 50;

/// The keys and values, and whether the file still has to hear of a change.
#[derive(Debug, Default)]
pub(crate) struct State {
    values: BTreeMap<String, Value>,
    /// Grows with every change.
    version: u64,
    /// The version the file is known to hold.
    saved: u64,
    save_at: Option<Ms>,
}

impl State {
    pub(crate) fn new(values: BTreeMap<String, Value>) -> Self {
        Self {
            values,
            version: 0,
            saved: 0,
            save_at: None,
        }
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Value> {
        self.values.get(key)
    }

    pub(crate) fn values(&self) -> &BTreeMap<String, Value> {
        &self.values
    }

    /// Store a value; true when it differs from the one before.
    pub(crate) fn set(&mut self, now: Ms, key: &str, value: Value) -> bool {
        if self.values.get(key) == Some(&value) {
            return false;
        }
        self.values.insert(key.to_owned(), value);
        self.touch(now);
        true
    }

    /// Put back what was there before, as if it had never been replaced.
    pub(crate) fn restore(&mut self, key: &str, before: Option<Value>) {
        match before {
            Some(value) => self.values.insert(key.to_owned(), value),
            None => self.values.remove(key),
        };
        self.version += 1;
    }

    fn touch(&mut self, now: Ms) {
        self.version += 1;
        self.save_at.get_or_insert(now + SAVE_AFTER);
    }

    /// Which change the values stand at; what is written is told by it.
    pub(crate) fn version(&self) -> u64 {
        self.version
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.version != self.saved
    }

    /// When the next write is due on its own.
    pub(crate) fn save_at(&self) -> Option<Ms> {
        self.save_at
    }

    /// A write begins; until its answer comes none is due for what it writes.
    pub(crate) fn saving(&mut self) {
        self.save_at = None;
    }

    /// A write of this version was tried. What changed since is still to be written, and when it
    /// is due stays as it is; a write that failed is tried again with the next change.
    pub(crate) fn tried(&mut self, version: u64, succeeded: bool) {
        if succeeded {
            self.saved = self.saved.max(version);
        }
        if !self.is_dirty() || version == self.version {
            self.save_at = None;
        }
    }

    /// Whether the key holds something a probe calls ready.
    pub(crate) fn is_set(&self, key: &str) -> bool {
        match self.values.get(key) {
            None | Some(Value::Null) => false,
            Some(Value::Bool(answer)) => *answer,
            Some(Value::Number(_)) => true,
            Some(Value::String(text)) => !text.trim().is_empty(),
            Some(Value::Array(items)) => !items.is_empty(),
            Some(Value::Object(members)) => !members.is_empty(),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn equal_values_cause_no_write() {
        let mut state = State::default();
        assert!(state.set(5, "a", json!("x")));
        assert_eq!(state.save_at(), Some(55));
        state.tried(state.version(), true);
        assert!(!state.set(9, "a", json!("x")));
        assert!(!state.is_dirty());
        assert_eq!(state.save_at(), None);
    }

    #[test]
    fn a_failed_write_waits_for_the_next_change() {
        let mut state = State::default();
        state.set(0, "a", json!(1));
        state.tried(state.version(), false);
        assert!(state.is_dirty());
        assert_eq!(state.save_at(), None);
        state.set(100, "b", json!(2));
        assert_eq!(state.save_at(), Some(150));
    }

    #[test]
    fn what_changed_while_a_write_was_under_way_is_still_due() {
        let mut state = State::default();
        state.set(0, "a", json!(1));
        let written = state.version();
        state.saving();
        state.set(10, "a", json!(2));
        state.tried(written, true);
        assert!(state.is_dirty());
        assert_eq!(state.save_at(), Some(60));
        state.tried(state.version(), true);
        assert!(!state.is_dirty());
    }

    #[test]
    fn readiness_of_a_key_depends_on_what_it_holds() {
        let table = [
            (json!(""), false),
            (json!(" \n"), false),
            (json!("x"), true),
            (json!(0), true),
            (json!(true), true),
            (json!(false), false),
            (json!(null), false),
            (json!([]), false),
            (json!([0]), true),
            (json!({}), false),
            (json!({"a": 1}), true),
        ];
        for (value, expected) in table {
            let mut state = State::default();
            state.set(0, "k", value.clone());
            assert_eq!(state.is_set("k"), expected, "{value}");
        }
        assert!(!State::default().is_set("k"));
    }
}
