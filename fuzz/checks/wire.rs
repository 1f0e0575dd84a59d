//! Any text as a request: no panic, and every field can be asked for.

use beamtalk_wire::{Request, negotiate};

pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    drop(negotiate(text));
    let Ok(request) = Request::parse(text) else { return };
    assert!(!request.id.is_empty());
    for field in request
        .fields
        .keys()
        .map(String::as_str)
        .chain(["code", "class", "cursor"])
    {
        drop(request.text(field));
        drop(request.optional_text(field));
        drop(request.flag(field));
        drop(request.number(field));
        drop(request.texts(field));
    }
}
