//! A definition that differs on disk and in the image: which one counts.

use serde_json::{Value, json};

use super::Asked;
use crate::requests::diagnostic::live;

pub(super) fn actions(asked: &Asked<'_>) -> Vec<Value> {
    let state = &asked.snapshot.state;
    let document = state.documents.get(&asked.view.key);
    let image = document.and_then(|document| state.images.get(&document.root));
    let (Some(document), Some(image)) = (document, image) else {
        return Vec::new();
    };
    let Some(conflict) = live::conflict(image, document, &asked.view.key) else {
        return Vec::new();
    };
    let place = live::place(image, conflict, document);
    if place.start > asked.span.end || asked.span.start > place.end {
        return Vec::new();
    }
    let make = |title: &str, command: &str, from: Option<&str>| {
        let argument = json!({"uri": document.uri, "file": conflict.file, "from": from});
        json!({
            "title": title,
            "kind": "quickfix",
            "command": {"title": title, "command": command, "arguments": [argument]},
        })
    };
    vec![
        make("Take the image's version", "beamtalk.take", Some("image")),
        make("Take the disk's version", "beamtalk.take", Some("disk")),
        make("Show the difference", "beamtalk.showDiff", None),
    ]
}
