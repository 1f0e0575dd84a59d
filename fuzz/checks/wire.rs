//! Any text as a request: no panic, and what is read is written and read again the same.

use beamtalk_wire::{Call, Request, commands, negotiate};

pub fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return;
    };
    drop(negotiate(text));
    drop(commands(text));
    let Ok(call) = Call::parse(text) else { return };
    assert!(!call.id.is_empty());
    match call.request {
        Ok(request) => {
            assert_eq!(request.op(), call.op);
            let again = request.text().expect("a request has a form in JSON");
            assert_eq!(Request::parse(call.op, &again), Ok(request));
        }
        Err(error) => assert!(!error.message.is_empty()),
    }
}
