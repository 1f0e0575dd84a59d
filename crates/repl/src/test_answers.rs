//! Answers for tests.

use beamtalk_wire::Entry;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

pub(crate) fn answer<A: DeserializeOwned>(value: Value) -> A {
    serde_json::from_value(value).expect("an answer")
}

/// A pending method of the project, but for these fields.
pub(crate) fn entry(more: Value) -> Entry {
    let mut entry = json!({
        "seq": 1, "ts": "2026-01-01T00:00:00Z", "epoch": 1, "kind": "instance", "class": "Lamp", "selector": null,
        "side": null, "intent": "durable", "flushable": true, "not_flushable_reason": null, "source_ref": null,
        "prev_source_ref": null, "source_file": "src/Lamp.bt", "author": "s-1", "author_kind": "human",
    });
    entry
        .as_object_mut()
        .expect("an object")
        .extend(more.as_object().cloned().expect("an object"));
    answer(entry)
}
