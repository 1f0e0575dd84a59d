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
    dirty: bool,
    save_at: Option<Ms>,
}

impl State {
    pub(crate) fn new(values: BTreeMap<String, Value>) -> Self {
        Self {
            values,
            dirty: false,
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
    }

    fn touch(&mut self, now: Ms) {
        self.dirty = true;
        self.save_at.get_or_insert(now + SAVE_AFTER);
    }

    pub(crate) fn is_dirty(&self) -> bool {
        self.dirty
    }

    /// When the next write is due on its own.
    pub(crate) fn save_at(&self) -> Option<Ms> {
        self.save_at
    }

    /// A write was tried. One that failed is tried again with the next change.
    pub(crate) fn tried(&mut self, succeeded: bool) {
        self.save_at = None;
        if succeeded {
            self.dirty = false;
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
        state.tried(true);
        assert!(!state.set(9, "a", json!("x")));
        assert!(!state.is_dirty());
        assert_eq!(state.save_at(), None);
    }

    #[test]
    fn a_failed_write_waits_for_the_next_change() {
        let mut state = State::default();
        state.set(0, "a", json!(1));
        state.tried(false);
        assert!(state.is_dirty());
        assert_eq!(state.save_at(), None);
        state.set(100, "b", json!(2));
        assert_eq!(state.save_at(), Some(150));
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
